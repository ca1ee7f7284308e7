//! Pieces of JSON text. What they are put together to is decided in `encode` and `answer`.

use serde::Serialize;

/// Appends a value.
pub(crate) fn value<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    let start = out.len();
    if serde_json::to_writer(&mut *out, value).is_err() {
        // Cannot happen: our types have string keys only and a Vec takes every write. A line must stay JSON all the same.
        out.truncate(start);
        out.extend_from_slice(b"null");
    }
}

/// Appends a value as a line.
pub(crate) fn line<T: Serialize + ?Sized>(out: &mut Vec<u8>, object: &T) {
    value(out, object);
    out.push(b'\n');
}

/// Appends the fields of an object without its opening brace, so that fields can stand before them. The object must have
/// at least one field.
pub(crate) fn fields<T: Serialize + ?Sized>(out: &mut Vec<u8>, object: &T) {
    let start = out.len();
    value(out, object);
    if out.get(start) == Some(&b'{') {
        out.remove(start);
    }
}

/// Appends what stands between the quotes of a JSON string. The escapes of two pieces one after the other are the escape of
/// the whole text, which is what makes append-only buffers possible.
pub fn escape(out: &mut Vec<u8>, text: &str) {
    let mut rest = text.as_bytes();
    loop {
        let (plain, tail) = rest.split_at_checked(plain(rest)).unwrap_or((rest, &[]));
        out.extend_from_slice(plain);
        let Some((byte, tail)) = tail.split_first() else {
            return;
        };
        match byte {
            // The same escapes as serde_json and JavaScript make, so that both ways to write a text give the same bytes.
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0C => out.extend_from_slice(b"\\f"),
            control => out.extend_from_slice(format!("\\u{control:04x}").as_bytes()),
        }
        // Bytes above 0x7F pass as they are: JSON is UTF-8, and no client needs ASCII.
        rest = tail;
    }
}

/// Returns true if these pieces, one after the other, are the escape of the text.
pub(crate) fn is_escape<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, text: &str) -> bool {
    // In pieces, so that memory never holds the escape of a long text as a whole.
    const PIECE: usize = 16 * 1024;
    let (mut pieces, mut left) = (pieces.into_iter(), &[][..]);
    let (mut text, mut made) = (text, Vec::new());
    while !text.is_empty() {
        let (head, tail) = text.split_at(text.floor_char_boundary(PIECE));
        made.clear();
        escape(&mut made, head);
        let mut wanted = made.as_slice();
        while !wanted.is_empty() {
            if left.is_empty() {
                let Some(next) = pieces.next() else { return false };
                left = next;
                continue;
            }
            let both = left.len().min(wanted.len());
            let (Some((now, later)), Some((head, rest))) =
                (left.split_at_checked(both), wanted.split_at_checked(both))
            else {
                return false;
            };
            if now != head {
                return false;
            }
            (left, wanted) = (later, rest);
        }
        text = tail;
    }
    left.is_empty() && pieces.all(<[u8]>::is_empty)
}

/// Bytes at the beginning that need no escape. Whole chunks are looked at without a branch for each byte, which the compiler
/// turns into a few wide instructions.
fn plain(text: &[u8]) -> usize {
    let is_special = |byte: &u8| *byte < 0x20 || matches!(byte, b'"' | b'\\');
    let (chunks, _) = text.as_chunks::<32>();
    let whole = chunks
        .iter()
        .take_while(|chunk| !chunk.iter().fold(false, |found, byte| found | is_special(byte)))
        .count()
        * 32;
    let rest = text.get(whole..).unwrap_or_default();
    whole + rest.iter().position(is_special).unwrap_or(rest.len())
}
