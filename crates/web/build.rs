//! Puts the page (the folder `page`) into the library: a table of its files. They are compressed, since most browsers take them so,
//! and plain they would be two thirds of a megabyte more in every program.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

fn main() -> io::Result<()> {
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default()).join("page");
    println!("cargo:rerun-if-changed={}", root.display());
    let mut files = Vec::new();
    collect(&root, "", &mut files)?;
    files.sort();
    let out = PathBuf::from(std::env::var("OUT_DIR").unwrap_or_default());
    let mut table = String::from("const TABLE: &[(&str, bool, &[u8])] = &[\n");
    for (index, (name, path)) in files.iter().enumerate() {
        println!("cargo:rerun-if-changed={}", path.display());
        let bytes = fs::read(path)?;
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&bytes)?;
        let packed = encoder.finish()?;
        // Pictures are compressed already.
        let is_packed = packed.len() < bytes.len();
        let stored = out.join(format!("page-{index}"));
        fs::write(&stored, if is_packed { packed } else { bytes })?;
        let stored = stored.display().to_string();
        let _infallible = writeln!(table, "    ({name:?}, {is_packed}, include_bytes!({stored:?})),");
    }
    table.push_str("];\n");
    fs::write(out.join("page.rs"), table)
}

/// All files but notes and tests, by their path below the folder.
fn collect(dir: &Path, below: &str, files: &mut Vec<(String, PathBuf)>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = format!("{below}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), &format!("{name}/"), files)?;
        } else if !name.ends_with(".md") && !name.contains("test") {
            files.push((name, entry.path()));
        }
    }
    Ok(())
}
