//! Puts the catalogue into the library: its header and the provider lines as they are, and the lines of each provider compressed.
//! Start-up reads the former only. Plain, the latter are 300 kB of every program.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default());
    let path = root.join("data/catalogue.jsonl");
    println!("cargo:rerun-if-changed={}", path.display());
    println!("cargo:rerun-if-changed=build.rs");
    let text = fs::read_to_string(&path)?;
    let out = PathBuf::from(std::env::var("OUT_DIR").unwrap_or_default());
    fs::write(out.join("catalogue.rs"), table(&text, &out)?)?;
    Ok(())
}

/// The constants that `src/catalogue.rs` includes. The packed lines go to files in `out`.
fn table(text: &str, out: &Path) -> Result<String, Box<dyn Error>> {
    let (header, mut rest) = text.split_once('\n').ok_or("no header")?;
    let mut table = format!("const FIRST_LINE: &str = {header:?};\nconst PROVIDERS: &[(&str, &[u8])] = &[\n");
    while let Some((line, below)) = rest.split_once('\n') {
        let size = size_below(line).ok_or("a provider line without \"bytes\"")?;
        let (lines, next) = below
            .split_at_checked(size)
            .ok_or("\"bytes\" of a provider line is wrong")?;
        let packed = out.join(format!("catalogue-{}.gz", table.lines().count()));
        let mut encoder = GzEncoder::new(fs::File::create(&packed)?, Compression::best());
        encoder.write_all(lines.as_bytes())?;
        encoder.finish()?;
        let packed = packed.display().to_string();
        writeln!(table, "    ({line:?}, include_bytes!({packed:?})),")?;
        rest = next;
    }
    table.push_str("];\n");
    Ok(table)
}

/// How many bytes of lines follow a provider line.
fn size_below(line: &str) -> Option<usize> {
    let (_, size) = line.split_once("\"bytes\":")?;
    size.split_once([',', '}'])?.0.parse().ok()
}
