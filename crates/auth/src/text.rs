//! Texts of servers as errors may show them: bounded, without web pages.

use crate::limits::MAX_PAGE_TEXT_BYTES;

/// The text, cut at a character boundary and marked when it is longer than `max` bytes.
#[must_use]
pub fn cut(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(max);
    format!("{}...", text.get(..end).unwrap_or_default())
}

/// What a web page says in a few words: its title, else its first words without tags. Other text stays as it is.
#[must_use]
pub fn without_markup(text: &str) -> String {
    let trimmed = text.trim();
    if !trimmed.starts_with('<') {
        return trimmed.to_owned();
    }
    let lower = trimmed.to_ascii_lowercase();
    let title = lower
        .find("<title>")
        .map(|at| at + "<title>".len())
        .and_then(|from| Some((from, from + lower.get(from..)?.find("</title>")?)))
        .and_then(|(from, to)| trimmed.get(from..to));
    let plain = title.map_or_else(|| strip_tags(trimmed), str::to_owned);
    let words: Vec<&str> = plain.split_whitespace().collect();
    cut(&words.join(" "), MAX_PAGE_TEXT_BYTES)
}

fn strip_tags(text: &str) -> String {
    let mut out = String::new();
    for piece in text.split('<') {
        if let Some((_, rest)) = piece.split_once('>') {
            out.push_str(rest);
            out.push(' ');
        }
        if out.len() > 4 * MAX_PAGE_TEXT_BYTES {
            break;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_error_pages_become_their_title() {
        assert_eq!(
            without_markup("<html><head><TITLE>502 Bad\n Gateway</TITLE></head>..."),
            "502 Bad Gateway"
        );
        assert_eq!(without_markup("<h1>Nope</h1><p>Go away</p>"), "Nope Go away");
        assert_eq!(without_markup(" plain < text "), "plain < text");
    }

    #[test]
    fn truncation_never_splits_a_character() {
        assert_eq!(cut("aäb", 2), "a...");
        assert_eq!(cut("abc", 3), "abc");
    }
}
