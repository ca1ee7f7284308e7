//! Every number that bounds a fetch.

use std::time::Duration;

/// Longest time for a page, with redirects and conversion.
pub const FETCH_TIME: Duration = Duration::from_secs(30);
/// Bytes of a body that are read; the rest is left out.
pub const FETCH_BODY: usize = 2 * 1024 * 1024;
/// Bytes of text in one result.
pub const FETCH_TEXT: usize = 50 * 1024;
/// Bytes of the body of a failed answer that the error shows.
pub const FETCH_ERROR_TEXT: usize = 2000;
/// Redirects that are followed on one host.
pub const FETCH_REDIRECTS: usize = 5;
/// Elements that may be open at once in a page that is converted. Deeper pages give their text without structure.
pub const FETCH_DEPTH: usize = 256;
/// Children that one element may have in a page that is converted, since the conversion compares neighbours. With more, a page gives its
/// text without structure.
pub const FETCH_SIBLINGS: usize = 65_536;
/// Lines that a page that is converted may have, each counted once for each element around it, since lists and quotations indent their
/// lines. With more, a page gives its text without structure.
pub const FETCH_NESTED_LINES: usize = 8_000_000;
/// Stack of the thread that converts a page, in bytes.
pub const FETCH_STACK: usize = 64 * 1024 * 1024;
/// Bytes of the title of a page, and of its media type; the rest is left out.
pub const FETCH_TITLE: usize = 1000;
/// Bytes of a URL, also if a redirect names it.
pub const FETCH_URL: usize = 4096;
