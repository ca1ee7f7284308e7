//! JSON of any depth. A session is a chain of entries and `get_tree` nests each in the one before, so neither reading nor
//! dropping an answer may recurse.

use serde_json::{Map, Value};

/// How many containers are inside each other in a text that is JSON.
pub(crate) fn depth(text: &str) -> usize {
    let (mut depth, mut most): (usize, usize) = (0, 0);
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'[' | b'{' => {
                depth += 1;
                most = most.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'"' => {
                while let Some(byte) = bytes.next() {
                    match byte {
                        b'"' => break,
                        b'\\' => drop(bytes.next()),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    most
}

/// A container whose end was not reached.
enum Open {
    Array(Vec<Value>),
    /// With the name of the member that is being read.
    Object(Map<String, Value>, String),
}

impl Open {
    fn put(&mut self, value: Value) {
        match self {
            Self::Array(values) => values.push(value),
            Self::Object(members, name) => {
                if let Some(before) = members.insert(std::mem::take(name), value) {
                    discard(before);
                }
            }
        }
    }

    fn close(self) -> Value {
        match self {
            Self::Array(values) => Value::Array(values),
            Self::Object(members, _) => Value::Object(members),
        }
    }
}

/// The value of a text. It may be too deep to be dropped: [`discard`] does that.
///
/// # Errors
/// When the text is not JSON.
pub(crate) fn parse(text: &str) -> Result<Value, String> {
    let mut parser = Parser {
        rest: text,
        open: Vec::new(),
    };
    let parsed = parser.run();
    for open in parser.open {
        discard(open.close());
    }
    parsed
}

struct Parser<'a> {
    rest: &'a str,
    open: Vec<Open>,
}

impl Parser<'_> {
    fn run(&mut self) -> Result<Value, String> {
        loop {
            let Some(mut value) = self.begin()? else { continue };
            // It is complete, and perhaps the containers around it are.
            loop {
                let Some(container) = self.open.last_mut() else {
                    self.space();
                    if self.rest.is_empty() {
                        return Ok(value);
                    }
                    discard(value);
                    return Err("something follows the value".to_owned());
                };
                container.put(value);
                let (is_object, end) = match container {
                    Open::Array(_) => (false, ']'),
                    Open::Object(..) => (true, '}'),
                };
                if self.take(',') {
                    if is_object {
                        let name = self.name()?;
                        if let Some(Open::Object(_, open)) = self.open.last_mut() {
                            *open = name;
                        }
                    }
                    break;
                }
                if !self.take(end) {
                    return Err(format!("a comma or {end} is missing"));
                }
                value = self.open.pop().map_or(Value::Null, Open::close);
            }
        }
    }

    /// Reads a value that contains no others, or opens a container.
    fn begin(&mut self) -> Result<Option<Value>, String> {
        if self.take('[') {
            if self.take(']') {
                return Ok(Some(Value::Array(Vec::new())));
            }
            self.open.push(Open::Array(Vec::new()));
            return Ok(None);
        }
        if self.take('{') {
            if self.take('}') {
                return Ok(Some(Value::Object(Map::new())));
            }
            let name = self.name()?;
            self.open.push(Open::Object(Map::new(), name));
            return Ok(None);
        }
        let scalar = self.scalar();
        serde_json::from_str(scalar)
            .map(Some)
            .map_err(|error| error.to_string())
    }

    fn name(&mut self) -> Result<String, String> {
        self.space();
        let scalar = self.scalar();
        let name = serde_json::from_str(scalar).map_err(|error| error.to_string())?;
        if self.take(':') {
            Ok(name)
        } else {
            Err("a colon is missing".to_owned())
        }
    }

    /// Takes what may be a string, a number or a word.
    fn scalar(&mut self) -> &str {
        let bytes = self.rest.as_bytes();
        let end = if bytes.first() == Some(&b'"') {
            let mut at = 1;
            loop {
                match bytes.get(at) {
                    Some(b'"') => break at + 1,
                    Some(b'\\') => at += 2,
                    Some(_) => at += 1,
                    None => break bytes.len(),
                }
            }
        } else {
            let is_end = |byte: &u8| {
                matches!(
                    byte,
                    b',' | b':' | b']' | b'}' | b'[' | b'{' | b'"' | b' ' | b'\t' | b'\n' | b'\r'
                )
            };
            bytes.iter().position(is_end).unwrap_or(bytes.len())
        };
        let (scalar, rest) = self.rest.split_at_checked(end).unwrap_or((self.rest, ""));
        self.rest = rest;
        scalar
    }

    fn take(&mut self, letter: char) -> bool {
        self.space();
        let rest = self.rest.strip_prefix(letter);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
    }
}

/// Drops a value of any depth.
pub(crate) fn discard(value: Value) {
    let mut left = vec![value];
    while let Some(value) = left.pop() {
        match value {
            Value::Array(values) => left.extend(values),
            Value::Object(members) => left.extend(members.into_iter().map(|(_, value)| value)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_json_parsers_accept_same_values() {
        for text in [
            "null",
            " true ",
            "-1.5e3",
            r#""a\"\\\u00e9""#,
            "[]",
            "{}",
            "[1, [2, {}], \"]\"]",
            r#" { "a" : [ { "b" : { } , "c" : "}" } , null ] , "é" : 12345678901234567890 } "#,
            r#"{"a":1,"a":2}"#,
        ] {
            assert_eq!(
                parse(text).unwrap(),
                serde_json::from_str::<Value>(text).unwrap(),
                "{text}"
            );
        }
    }

    #[test]
    fn both_json_parsers_refuse_same_errors() {
        let whole = r#"{"a": [1, -2.5e3, "x\u00e9\n", null, true], "b": {"c": {}}}"#;
        let cut = (0..whole.len()).map(|end| whole[..end].to_owned());
        let odd = [
            "[1,]",
            "{\"a\":1,}",
            "{1:2}",
            "[1 2]",
            "01",
            "\"\n\"",
            "[}",
            "{]",
            "nul",
            "1 1",
            "{\"a\"}",
            "\"\\",
        ];
        for text in cut.chain(odd.map(str::to_owned)) {
            assert!(serde_json::from_str::<Value>(&text).is_err(), "{text}");
            assert!(parse(&text).is_err(), "{text}");
        }
    }

    #[test]
    fn json_depth_ignores_brackets_in_strings() {
        for (text, expected) in [
            ("1", 0),
            ("[]", 1),
            (r#"{"a":"[[[","b\"{":[1]}"#, 2),
            (r#"["\\",[[]]]"#, 3),
        ] {
            assert_eq!(depth(text), expected, "{text}");
        }
    }

    #[test]
    fn deeply_nested_values_are_read_and_dropped() {
        let text = format!(
            "{}{}",
            "[{\"a\":".repeat(200_000),
            "1".to_owned() + &"}]".repeat(200_000)
        );
        assert_eq!(depth(&text), 400_000);
        discard(parse(&text).unwrap());
        assert!(
            parse(&text[..text.len() - 1]).is_err(),
            "what was read of it is dropped, too"
        );
    }
}
