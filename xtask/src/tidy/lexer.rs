//! Blanks out comments, and the contents of strings and characters, in Rust text. Lines stay lines, so that places in
//! the result are places in the file.

/// The text with everything but code replaced by spaces.
pub(super) fn blank(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut before = ' ';
    while let Some(first) = rest.chars().next() {
        let skip = length_of_non_code(rest, before);
        let (head, tail) = match skip {
            0 => rest.split_at_checked(first.len_utf8()),
            length => rest.split_at_checked(length),
        }
        .unwrap_or((rest, ""));
        if skip == 0 {
            out.push_str(head);
            before = first;
        } else {
            out.extend(head.chars().map(|letter| if letter == '\n' { '\n' } else { ' ' }));
            before = ' ';
        }
        rest = tail;
    }
    out
}

/// Bytes of the comment or literal that begins here; 0 when code does.
fn length_of_non_code(rest: &str, before: char) -> usize {
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return block_comment(rest);
    }
    if rest.starts_with('\'') {
        return character(rest);
    }
    if rest.starts_with('"') {
        return 1 + after_escapes(rest.get(1..).unwrap_or(""), '"');
    }
    let begins_word = !(before.is_alphanumeric() || before == '_');
    if begins_word { raw_string(rest) } else { 0 }
}

fn block_comment(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(tail) = rest.get(at..).filter(|tail| !tail.is_empty()) {
        if tail.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if tail.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += tail.chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

/// `'a'` and `'\n'` are characters, `'a` is a lifetime.
fn character(rest: &str) -> usize {
    let inside = rest.get(1..).unwrap_or("");
    if inside.starts_with('\\') {
        return 1 + after_escapes(inside, '\'');
    }
    let Some(letter) = inside.chars().next() else {
        return 0;
    };
    let end = 1 + letter.len_utf8();
    if rest.get(end..).is_some_and(|tail| tail.starts_with('\'')) {
        end + 1
    } else {
        0
    }
}

/// Bytes up to and with the closing quote.
fn after_escapes(inside: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, letter) in inside.char_indices() {
        if escaped {
            escaped = false;
        } else if letter == '\\' {
            escaped = true;
        } else if letter == quote {
            return at + letter.len_utf8();
        }
    }
    inside.len()
}

/// `r"…"`, `r#"…"#`, also with `b` or `c` in front.
fn raw_string(rest: &str) -> usize {
    let prefix = rest.strip_prefix(['b', 'c']).unwrap_or(rest);
    let Some(hashes) = prefix.strip_prefix('r') else {
        return 0;
    };
    let inside = hashes.trim_start_matches('#');
    let count = hashes.len() - inside.len();
    let Some(inside) = inside.strip_prefix('"') else {
        return 0;
    };
    let end = format!("\"{}", "#".repeat(count));
    let head = rest.len() - inside.len();
    inside.find(&end).map_or(rest.len(), |at| head + at + end.len())
}
