//! JSON files that people write: reading them within a limit. Comments and trailing commas are blanked out, so that line and
//! column of an error stay true.

use std::io;
use std::path::Path;

use super::limits::MAX_FILE;

/// The text of a file up to the limit; `None` when there is no such file.
///
/// # Errors
/// When the file is too large, is not UTF-8, or cannot be read.
pub fn read_text(path: &Path) -> io::Result<Option<String>> {
    // Its owner may link it from elsewhere; a pipe in its place must not stop the agent.
    match files::Root::user().read_bytes(path, MAX_FILE) {
        Ok((_, true)) => Err(io::Error::other("file too large")),
        Ok((bytes, false)) => match String::from_utf8(bytes) {
            Ok(text) => Ok(Some(text)),
            Err(_) => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the text is not UTF-8",
            )),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// `Failed to read auth.json: why`, the file being the last part of `path`.
#[must_use]
pub fn describe(what: &str, why: &str, path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().display();
    format!("{what} {name}: {why}\n\nFile: {}", path.display())
}

/// Returns the text with `//` and `/* */` comments and commas before a closing bracket replaced by spaces (pi-core.md 8.2).
#[must_use]
pub fn plain_json(text: &str) -> String {
    blank_commas(&blank_comments(text))
}

fn blank_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let mut string = StringState::default();
    while let Some(ch) = chars.next() {
        if string.step(ch) || ch != '/' {
            out.push(ch);
            continue;
        }
        match chars.peek() {
            Some('/') => {
                out.push(' ');
                while let Some(ch) = chars.next_if(|ch| *ch != '\n') {
                    out.push(if ch == '\r' { ch } else { ' ' });
                }
            }
            Some('*') => {
                out.push_str("  ");
                let mut last = ' ';
                for ch in chars.by_ref().skip(1) {
                    out.push(if ch == '\n' { ch } else { ' ' });
                    if last == '*' && ch == '/' {
                        break;
                    }
                    last = ch;
                }
            }
            _ => out.push(ch),
        }
    }
    out
}

fn blank_commas(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut string = StringState::default();
    for (at, ch) in text.char_indices() {
        let inside = string.step(ch);
        let rest = text.get(at + ch.len_utf8()..).unwrap_or("");
        let trailing = ch == ',' && !inside && rest.trim_start().starts_with([']', '}']);
        out.push(if trailing { ' ' } else { ch });
    }
    out
}

/// Follows string literals through JSON text.
#[derive(Default)]
struct StringState {
    inside: bool,
    escaped: bool,
}

impl StringState {
    /// Takes the next character; true when it belongs to a string (its quotes included).
    fn step(&mut self, ch: char) -> bool {
        let was = self.inside;
        if self.escaped {
            self.escaped = false;
        } else if was && ch == '\\' {
            self.escaped = true;
        } else if ch == '"' {
            self.inside = !was;
        }
        was || self.inside
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanked_comments_keep_columns() {
        for (text, plain) in [
            ("{/* a */1}", "{       1}"),
            ("{/**/1}", "{    1}"),
            ("{/*\n*/1}", "{  \n  1}"),
            ("[1,] // b\n2", "[1 ]     \n2"),
            ("\"/* c */\"", "\"/* c */\""),
        ] {
            assert_eq!(plain_json(text), plain, "{text}");
        }
    }
}
