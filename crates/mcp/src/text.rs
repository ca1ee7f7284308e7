//! Texts of servers, made fit to be shown: nothing in them moves a cursor, changes a colour or takes more room than it may.

/// One line of plain text, at most `most` bytes.
pub(crate) fn line(text: &str, most: usize) -> String {
    let words = plain(text, most.saturating_mul(2));
    let joined = words.split_whitespace().collect::<Vec<_>>().join(" ");
    cut(&joined, most)
}

/// Plain text, at most `most` bytes: no control characters but line breaks and tabs, no escape sequences, nothing that
/// turns the direction of writing.
pub(crate) fn plain(text: &str, most: usize) -> String {
    let mut out = String::new();
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' if rest.peek() == Some(&'[') => {
                // A control sequence ends with its first letter.
                while rest.next().is_some_and(|c| !('@'..='~').contains(&c) || c == '[') {}
            }
            '\n' | '\t' => out.push(c),
            _ if is_hidden(c) => {}
            _ if c.is_whitespace() => out.push(' '),
            _ => out.push(c),
        }
        if out.len() > most {
            break;
        }
    }
    cut(&out, most)
}

/// The beginning of a text, with a sign that there was more.
fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(most.saturating_sub('…'.len_utf8()));
    format!("{}…", text.get(..end).unwrap_or_default())
}

/// True for controls, ends of lines, and characters that no reader can see. Blanks of any kind separate words.
fn is_hidden(c: char) -> bool {
    let is_blank = c.is_whitespace() && !matches!(c, '\u{2028}' | '\u{2029}');
    c.is_control() || !is_blank && wire::hidden::is_hidden(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mcp_text_loses_control_and_hidden_characters() {
        assert_eq!(
            line("\u{1b}[31mred\u{1b}[0m  alert\u{7}\n two", 100),
            "red alert two"
        );
        assert_eq!(plain("a\u{202e}b\u{e0041}\nc\td", 100), "ab\nc\td");
        assert_eq!(plain("\u{1b}[2J", 100), "");
        let hidden =
            "a\u{61c}\u{ad}\u{180e}\u{2066}\u{206a}\u{3164}\u{fe0f}\u{fff9}\u{e007f}\u{e0100}\u{e000}b";
        assert_eq!(plain(hidden, 100), "ab");
        assert_eq!(
            plain("gro\u{308}ßer\u{a0}日本 हिन्दी 😀", 100),
            "gro\u{308}ßer 日本 हिन्दी 😀"
        );
        assert_eq!(line("ééé", 5), "é…");
        assert_eq!(plain(&"x".repeat(50), 10).len(), 10);
    }
}
