//! The TypeScript host that is part of the program: unpacked once into a cache directory, where a runtime can read it. It is
//! written in JavaScript, in the folder `typescript/` of this crate.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;

mod table {
    include!(concat!(env!("OUT_DIR"), "/host_files.rs"));
}

/// The file that a runtime is started with.
const MAIN: &str = "main.mjs";

/// Returns true if the program was built with the host.
#[must_use]
pub const fn is_there() -> bool {
    !table::FILES.is_empty()
}

/// The host's main file below `cache`, a directory of ours; it is unpacked there unless it is there already. Several processes
/// may do so at once: what can be seen under the name is always whole.
///
/// # Errors
/// When it cannot be written, or this program has no host.
pub fn unpack(cache: &Path) -> io::Result<PathBuf> {
    if !is_there() {
        return Err(io::Error::other(
            "this program was built without the extension host",
        ));
    }
    let home = cache.join(format!("extension-host-{}", table::HASH));
    let main = home.join(MAIN);
    if main.is_file() {
        return Ok(main);
    }
    let draft = cache.join(format!(".extension-host-{}-{}", table::HASH, std::process::id()));
    let _nothing_there = fs::remove_dir_all(&draft);
    private_dir(&draft)?;
    for (name, packed) in table::FILES {
        let path = draft.join(name);
        if let Some(dir) = path.parent() {
            private_dir(dir)?;
        }
        let mut file = fs::File::create(path)?;
        io::copy(&mut GzDecoder::new(*packed), &mut file)?;
    }
    match fs::rename(&draft, &home) {
        // Another process was faster.
        Err(_) if main.is_file() => fs::remove_dir_all(&draft)?,
        renamed => renamed?,
    }
    Ok(main)
}

fn private_dir(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

#[cfg(test)]
mod tests {
    use super::{is_there, unpack};

    #[test]
    fn embedded_host_is_unpacked_once_and_whole() {
        if !is_there() {
            // Not `println!`: the harness hides what a passing test prints.
            let line = b"skipped: built without the folder typescript\n";
            std::io::Write::write_all(&mut std::io::stderr(), line).unwrap();
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let cache = dir.path().join("cache");
        let main = unpack(&cache).unwrap();
        assert!(main.is_file() && main.with_file_name("src").join("host.mjs").is_file());
        let written = main.metadata().unwrap().modified().unwrap();
        assert_eq!(unpack(&cache).unwrap(), main);
        assert_eq!(main.metadata().unwrap().modified().unwrap(), written);
        assert_eq!(std::fs::read_dir(&cache).unwrap().count(), 1);
    }
}
