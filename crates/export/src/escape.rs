//! Making text harmless inside a page. Nothing else here knows about HTML's rules for text.

use std::io::{self, Write};

/// Passes JSON on so that it may stand in a `<script>` element: no `<`, `>` or `&` is left, so that no text in it can end
/// the element, begin a comment or be taken for a reference. In JSON these three occur in strings only, where an escape means
/// the same.
pub(super) struct ScriptJson<W>(pub(super) W);

impl<W: Write> Write for ScriptJson<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut rest = bytes;
        while let Some((plain, tail)) =
            memchr::memchr3(b'<', b'>', b'&', rest).and_then(|at| rest.split_at_checked(at))
        {
            self.0.write_all(plain)?;
            let Some((special, tail)) = tail.split_first() else {
                break;
            };
            self.0.write_all(match special {
                b'<' => b"\\u003c",
                b'>' => b"\\u003e",
                _ => b"\\u0026",
            })?;
            rest = tail;
        }
        self.0.write_all(rest)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Text as it may stand between tags or in a quoted attribute; control characters become blanks.
pub(super) fn text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
