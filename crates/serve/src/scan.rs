//! One pass over the bytes of a line before serde sees it: how deep it is nested, and whether it holds escapes of lone
//! surrogates, which JavaScript writes and Rust strings cannot hold. Nothing else about JSON is checked here.

/// What [`scan`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Scan {
    /// Deepest nesting of objects and arrays.
    pub(crate) depth: usize,
    /// True if the text contains an escape of a lone surrogate.
    pub(crate) lone_surrogate: bool,
}

/// Looks over a line. Linear, no memory.
pub(crate) fn scan(line: &[u8]) -> Scan {
    let mut found = Scan::default();
    let mut depth = 0usize;
    let mut rest = line;
    loop {
        let Some(at) = rest
            .iter()
            .position(|byte| matches!(byte, b'"' | b'{' | b'[' | b'}' | b']'))
        else {
            return found;
        };
        let (_, tail) = rest.split_at_checked(at).unwrap_or_default();
        let Some((byte, tail)) = tail.split_first() else {
            return found;
        };
        rest = tail;
        match byte {
            // Brackets inside of strings do not nest.
            b'"' => {
                let (tail, lone) = skip_string(rest);
                rest = tail;
                found.lone_surrogate |= lone;
            }
            b'{' | b'[' => {
                depth += 1;
                found.depth = found.depth.max(depth);
            }
            // More closing than opening brackets: bad JSON, which the parser reports.
            _ => depth = depth.saturating_sub(1),
        }
    }
}

/// Skips a string after its opening quote. Gives what follows and whether it holds a lone surrogate.
fn skip_string(mut rest: &[u8]) -> (&[u8], bool) {
    let mut lone = false;
    while let Some(at) = memchr::memchr2(b'"', b'\\', rest) {
        let (_, tail) = rest.split_at_checked(at).unwrap_or_default();
        match tail {
            [b'"', tail @ ..] => return (tail, lone),
            _ => {
                let (length, half) = escape(tail);
                lone |= half;
                (_, rest) = tail.split_at_checked(length).unwrap_or_default();
            }
        }
    }
    // A string without an end is bad JSON, which the parser reports.
    (&[], lone)
}

/// Length of the escape at the start of `text`, and whether it is half a surrogate pair. A whole pair is one escape.
fn escape(text: &[u8]) -> (usize, bool) {
    match unit(text) {
        Some(0xD800..=0xDBFF) => {
            // The second half must follow at once; anything in between leaves the first one alone.
            let next = text.get(6..).and_then(unit);
            match next {
                Some(0xDC00..=0xDFFF) => (12, false),
                _ => (6, true),
            }
        }
        Some(0xDC00..=0xDFFF) => (6, true),
        // Any other escape: digits after it are ordinary letters to the scan.
        _ => (2, false),
    }
}

/// The UTF-16 unit of a `\uXXXX` at the start of `text`.
fn unit(text: &[u8]) -> Option<u16> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    let digits = std::str::from_utf8(digits).ok()?;
    // `from_str_radix` would take a plus sign, too.
    digits
        .bytes()
        .all(|byte| byte.is_ascii_hexdigit())
        .then(|| u16::from_str_radix(digits, 16).ok())?
}

/// Writes `\ufffd` in place of every escape of a lone surrogate.
pub(crate) fn repair(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        let (plain, tail) = rest.split_at_checked(at).unwrap_or((rest, ""));
        out.push_str(plain);
        let (length, half) = escape(tail.as_bytes());
        // An escape of two bytes may be a backslash before a character of several bytes: bad JSON, passed on as it is.
        let (text, tail) = tail
            .split_at_checked(length)
            .or_else(|| tail.split_at_checked(1))
            .unwrap_or((tail, ""));
        out.push_str(if half { "\\ufffd" } else { text });
        rest = tail;
    }
    out.push_str(rest);
    out
}
