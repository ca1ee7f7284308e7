//! The text of `--version`. Clients of pi compare it with the version of pi that they need, so a program that is called
//! `pi` prints only the version of pi whose protocol Pinion speaks.

use std::ffi::OsStr;
use std::path::Path;

/// Pinion's own version.
pub(crate) const OWN: &str = env!("CARGO_PKG_VERSION");

/// Commit of the build, empty if unknown. The build script sets it.
const COMMIT: &str = env!("PINION_BUILD_COMMIT");
/// Date of that commit in UTC, empty if unknown.
const DATE: &str = env!("PINION_BUILD_DATE");

/// The version of pi whose RPC protocol the default wire covers.
const PI: &str = "1.4.0";

/// Returns the name a program was started under, without directories and extension.
pub(crate) fn program(started_as: Option<&OsStr>) -> String {
    let name = started_as.and_then(|path| Path::new(path).file_stem());
    name.map_or_else(|| "pinion".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// Returns the line for a program started as `program`.
pub(crate) fn line(program: Option<&OsStr>) -> String {
    let name = program.and_then(|program| Path::new(program).file_stem());
    if name == Some(OsStr::new("pi")) {
        PI.to_owned()
    } else {
        own_line(COMMIT, DATE)
    }
}

/// The name and the version come first: scripts cut the line at spaces.
fn own_line(commit: &str, date: &str) -> String {
    let commit = if commit.is_empty() {
        "unknown commit"
    } else {
        commit
    };
    let date = if date.is_empty() { "unknown date" } else { date };
    format!("pinion {OWN} ({commit}, {date})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_called_pi_prints_version_of_pi() {
        assert_eq!(line(Some(OsStr::new("/usr/bin/pi"))), PI);
        assert_eq!(line(Some(OsStr::new("pinion"))), own_line(COMMIT, DATE));
    }

    #[test]
    fn line_names_commit_and_date() {
        let line = own_line("0123456789", "2026-11-22");
        assert_eq!(line, format!("pinion {OWN} (0123456789, 2026-11-22)"));
        assert_eq!(
            own_line("", ""),
            format!("pinion {OWN} (unknown commit, unknown date)")
        );
    }

    #[test]
    fn commit_is_hexadecimal_and_date_is_iso() {
        assert!(COMMIT.chars().all(|digit| digit.is_ascii_hexdigit()), "{COMMIT}");
        let numbers: Vec<_> = DATE.split('-').map(str::parse::<u16>).collect();
        assert!(
            DATE.is_empty() || matches!(numbers.as_slice(), [Ok(2020..), Ok(1..=12), Ok(1..=31)]),
            "{DATE}"
        );
    }
}
