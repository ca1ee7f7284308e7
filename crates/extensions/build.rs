//! Puts the TypeScript host (the folder `typescript`) into the library: a table of its files, and a name for this very
//! set of them. The files are compressed: few starts unpack them, and they would be half a megabyte of every program. A source
//! tree without the folder makes a library without a host, which reports that on use.

use std::collections::hash_map::DefaultHasher;
use std::fmt::Write as _;
use std::fs;
use std::hash::{Hash as _, Hasher as _};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

fn main() -> io::Result<()> {
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default()).join("typescript");
    println!("cargo:rerun-if-changed={}", root.display());
    let mut files = Vec::new();
    if root.is_dir() {
        collect(&root, &root, &mut files)?;
    }
    files.sort();
    let out = PathBuf::from(std::env::var("OUT_DIR").unwrap_or_default());
    let mut hash = DefaultHasher::new();
    let mut table = String::from("pub(super) const FILES: &[(&str, &[u8])] = &[\n");
    for (index, (name, path)) in files.iter().enumerate() {
        println!("cargo:rerun-if-changed={}", path.display());
        let bytes = fs::read(path)?;
        name.hash(&mut hash);
        bytes.hash(&mut hash);
        let packed = out.join(format!("{index}.gz"));
        let mut encoder = GzEncoder::new(fs::File::create(&packed)?, Compression::best());
        encoder.write_all(&bytes)?;
        encoder.finish()?;
        let _infallible = writeln!(
            table,
            "    ({name:?}, include_bytes!({:?})),",
            packed.display().to_string()
        );
    }
    let _infallible = writeln!(
        table,
        "];\npub(super) const HASH: &str = \"{:016x}\";",
        hash.finish()
    );
    fs::write(out.join("host_files.rs"), table)
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
