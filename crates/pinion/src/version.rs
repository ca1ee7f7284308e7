//! What `--version` prints. Clients of pi check it (clients.md 0, item 3), so under the name `pi` it is the version of pi
//! whose protocol is spoken.

use std::ffi::OsStr;
use std::path::Path;

/// Our own version.
pub(crate) const OWN: &str = env!("CARGO_PKG_VERSION");

/// The version of pi whose RPC protocol the default wire covers.
const PI: &str = "1.4.0";

/// The name a program was started under, without directories and extension.
pub(crate) fn program(started_as: Option<&OsStr>) -> String {
    let name = started_as.and_then(|path| Path::new(path).file_stem());
    name.map_or_else(|| "pinion".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// The line for a program started as `program`.
pub(crate) fn line(program: Option<&OsStr>) -> String {
    let name = program.and_then(|program| Path::new(program).file_stem());
    if name == Some(OsStr::new("pi")) {
        PI.to_owned()
    } else {
        format!("pinion {OWN}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depends_on_the_name() {
        assert_eq!(line(Some(OsStr::new("/usr/bin/pi"))), PI);
        assert_eq!(line(Some(OsStr::new("pinion"))), format!("pinion {OWN}"));
    }
}
