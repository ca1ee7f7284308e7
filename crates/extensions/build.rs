//! Puts the TypeScript host (the folder `typescript`) into the library: a table of its files, and a name for this very
//! set of them. A source tree without the folder makes a library without a host, which says so when it is asked for one.

use std::collections::hash_map::DefaultHasher;
use std::fmt::Write as _;
use std::fs;
use std::hash::{Hash as _, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};

fn main() -> io::Result<()> {
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default()).join("typescript");
    println!("cargo:rerun-if-changed={}", root.display());
    let mut files = Vec::new();
    if root.is_dir() {
        collect(&root, &root, &mut files)?;
    }
    files.sort();
    let mut hash = DefaultHasher::new();
    let mut table = String::from("pub(super) const FILES: &[(&str, &[u8])] = &[\n");
    for (name, path) in &files {
        println!("cargo:rerun-if-changed={}", path.display());
        name.hash(&mut hash);
        fs::read(path)?.hash(&mut hash);
        let _infallible = writeln!(
            table,
            "    ({name:?}, include_bytes!({:?})),",
            path.display().to_string()
        );
    }
    let _infallible = writeln!(
        table,
        "];\npub(super) const HASH: &str = \"{:016x}\";",
        hash.finish()
    );
    let out = PathBuf::from(std::env::var("OUT_DIR").unwrap_or_default()).join("host_files.rs");
    fs::write(out, table)
}

/// All files but the tests, by their path below the folder.
fn collect(root: &Path, dir: &Path, files: &mut Vec<(String, PathBuf)>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path
            .strip_prefix(root)
            .unwrap_or(&path)
            .to_string_lossy()
            .replace('\\', "/");
        if path.is_dir() {
            if !["test", "tests", "node_modules"].contains(&name.as_str()) {
                collect(root, &path, files)?;
            }
        } else {
            files.push((name, path.canonicalize()?));
        }
    }
    Ok(())
}
