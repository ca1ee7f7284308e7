//! Tells binary files from text by their first bytes, so that `read` reports them instead of printing them. Images that
//! models accept are sniffed in `image`.

use crate::text::format_size;

/// Beginnings of common formats and what they are called.
const MAGIC: [(&[u8], &str); 28] = [
    (b"\x7fELF", "ELF executable or library"),
    (b"\xcf\xfa\xed\xfe", "Mach-O executable"),
    (b"\xca\xfe\xba\xbe", "Java class or universal Mach-O"),
    (b"MZ", "Windows executable"),
    (b"\0asm", "WebAssembly module"),
    (b"!<arch>\n", "ar archive"),
    (b"%PDF-", "PDF document"),
    (b"PK\x03\x04", "ZIP archive"),
    (b"PK\x05\x06", "ZIP archive"),
    (b"\x1f\x8b", "gzip data"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ\0", "xz data"),
    (b"\x28\xb5\x2f\xfd", "zstd data"),
    (b"7z\xbc\xaf\x27\x1c", "7-Zip archive"),
    (b"Rar!\x1a\x07", "RAR archive"),
    (b"SQLite format 3\0", "SQLite database"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "Microsoft Office document"),
    (b"II*\0", "TIFF image"),
    (b"MM\0*", "TIFF image"),
    (b"BM", "BMP image"),
    (b"\0\0\x01\0", "icon"),
    (b"ID3", "MP3 audio"),
    (b"OggS", "Ogg media"),
    (b"fLaC", "FLAC audio"),
    (b"RIFF", "RIFF media"),
    (b"wOFF", "WOFF font"),
    (b"wOF2", "WOFF2 font"),
    (b"\0\x01\0\0", "TrueType font"),
];

/// One of this many bytes may be a control character in a text; more of them make it binary.
const CONTROLS: usize = 10;

/// What kind of binary file begins with `head`; none for a text.
///
/// A file is binary if its beginning has a null byte or many control characters. Text of an old encoding, with bytes
/// that are not UTF-8, stays text.
pub(crate) fn kind(head: &[u8]) -> Option<&'static str> {
    // Null bytes are what UTF-16 and UTF-32 consist of; say so, since the remedy differs.
    if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") {
        return Some("UTF-16 text; convert it with iconv");
    }
    let is_control = |byte: &&u8| matches!(**byte, 0..=6 | 14..=26 | 28..=31);
    let controls = head.iter().filter(is_control).count();
    // PDF documents may begin with many lines of text.
    let is_binary = head.contains(&0) || controls * CONTROLS > head.len() || head.starts_with(b"%PDF-");
    if !is_binary {
        return None;
    }
    let known = MAGIC.iter().find(|(magic, _)| head.starts_with(magic));
    Some(known.map_or("unknown type", |(_, kind)| kind))
}

/// The text for the model in the place of a binary file's content.
pub(crate) fn report(kind: &str, size: u64, shown: &str) -> String {
    let size = format_size(size);
    format!(
        "[Binary file: {kind}, {size}. read shows text and images only. Use bash to look into it: file {shown}; xxd {shown} | head]"
    )
}

#[cfg(test)]
mod tests {
    use super::kind;

    #[test]
    fn binary_kinds_are_told_from_text() {
        for (head, found) in [
            (
                b"\x7fELF\x02\x01\x01\0".as_slice(),
                Some("ELF executable or library"),
            ),
            (b"%PDF-1.7\ntext", Some("PDF document")),
            (b"ab\0cd", Some("unknown type")),
            (b"\xff\xfea\0", Some("UTF-16 text; convert it with iconv")),
            (b"\x01\x02\x03\x04", Some("unknown type")),
            (b"", None),
            (b"BMW cars, MZ and RIFF are text", None),
            (b"\x1b[31mred\x1b[0m \r\n\x0c", None),
            (b"caf\xe9 \xff", None),
        ] {
            assert_eq!(kind(head), found, "{head:?}");
        }
    }
}
