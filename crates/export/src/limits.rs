//! Every number that bounds what an export reads or writes. No logic here.

/// Bytes at the beginning of a file in which an export says that it is one.
pub const EXPORT_PROBE: u64 = 4 << 10;

/// Bytes of an export that are written at once.
pub const EXPORT_BUFFER: usize = 256 << 10;

/// Longest title of an exported page, in characters.
pub const TITLE_CHARS: usize = 120;

/// Times the HTML in a message is looked for and turned to text before every `<` is.
pub const HTML_PASSES: usize = 4;
