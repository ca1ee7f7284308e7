//! JSON text with `, ` and `: ` between the tokens, as Python's `json.dumps` writes it: recorded transcripts hold
//! tool arguments in this form. All other JSON of this crate is compact.

use std::io;

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{Formatter, Serializer};

struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + io::Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { out.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { out.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }
}

/// Writes `value` in that form.
pub(crate) fn to_string(value: &Value) -> String {
    let mut out = Vec::new();
    let written = value.serialize(&mut Serializer::with_formatter(&mut out, Spaced));
    // A value is always writable and its JSON always UTF-8; the compact form is the answer that needs no proof.
    match (written, String::from_utf8(out)) {
        (Ok(()), Ok(text)) => text,
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_spaces_between_tokens_only() {
        let value = serde_json::json!({"a": [1, "x,y:z", {}], "b": null});
        assert_eq!(to_string(&value), r#"{"a": [1, "x,y:z", {}], "b": null}"#);
    }
}
