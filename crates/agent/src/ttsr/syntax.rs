//! Conditions are written as for JavaScript, whose agents read the same files; here they become what the `regex` crate reads.
//! Only what means the same or is an error otherwise is changed.

/// A condition in the syntax of the `regex` crate. What that has no words for (look-around, back references) stays as it is
/// and is refused there.
pub(super) fn translated(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut rest = pattern;
    let mut in_class = false;
    while let Some(letter) = rest.chars().next() {
        let (_, after) = rest.split_at_checked(letter.len_utf8()).unwrap_or_default();
        rest = after;
        match letter {
            '\\' => rest = escape(rest, in_class, &mut out),
            '[' | '&' | '~' if in_class => {
                // Sets of sets are unknown there.
                out.push('\\');
                out.push(letter);
            }
            // A brace that begins no count stands for itself in JavaScript; here it would be an error.
            '{' if !in_class && !is_count(rest) => out.push_str("\\{"),
            _ => {
                in_class = (in_class || letter == '[') && letter != ']';
                out.push(letter);
            }
        }
    }
    out
}

/// What follows a backslash; gives the text after it.
fn escape<'a>(rest: &'a str, in_class: bool, out: &mut String) -> &'a str {
    let Some(letter) = rest.chars().next() else {
        // A backslash at the end, which the `regex` crate refuses.
        out.push('\\');
        return rest;
    };
    let (_, after) = rest.split_at_checked(letter.len_utf8()).unwrap_or_default();
    match letter {
        // In a class it is a backspace.
        'b' if in_class => out.push_str("\\x08"),
        // Between ASCII letters, as there; an automaton knows no others.
        'b' | 'B' if !in_class => {
            out.push_str("(?-u:\\");
            out.push(letter);
            out.push(')');
        }
        // Braces after these hold a name or a number.
        'p' | 'P' | 'u' | 'x' if after.starts_with('{') => {
            let end = after.find('}').map_or(after.len(), |at| at + 1);
            let (braces, after) = after.split_at_checked(end).unwrap_or_default();
            out.push('\\');
            out.push(letter);
            out.push_str(braces);
            return after;
        }
        _ => {
            out.push('\\');
            out.push(letter);
        }
    }
    after
}

/// Does a count like `{2}`, `{2,}` or `{2,3}` begin here? Any other brace stands for itself.
fn is_count(rest: &str) -> bool {
    let Some((inside, _)) = rest.split_once('}') else {
        return false;
    };
    let (from, to) = inside.split_once(',').unwrap_or((inside, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    !from.is_empty() && is_number(from) && is_number(to)
}
