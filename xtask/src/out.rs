//! The terminal. A closed terminal is no error: chores go on without it.

use std::io::Write as _;

/// Prints a line.
pub fn say(line: &str) {
    let _closed = writeln!(std::io::stdout().lock(), "{line}");
}

/// Prints a line to stderr.
pub fn complain(line: &str) {
    let _closed = writeln!(std::io::stderr().lock(), "{line}");
}
