//! Tells the program which commit it is built from and when that was committed, for `--version`.
//!
//! The order of sources: `PINION_COMMIT` and `SOURCE_DATE_EPOCH`, which packagers set; the git repository around this
//! crate; the file that `cargo package` leaves in a published crate. Without any of them nothing is said.
//!
//! It also compresses the protocol files that the program prints.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Digits of the commit that are shown, as many as a reader can compare.
const COMMIT_DIGITS: usize = 10;

fn main() {
    println!("cargo:rerun-if-env-changed=PINION_COMMIT");
    println!("cargo:rerun-if-env-changed=SOURCE_DATE_EPOCH");
    println!("cargo:rerun-if-changed=build.rs");
    order_functions();
    if let Err(error) = compress_protocol() {
        println!("cargo:error=The protocol files cannot be compressed: {error}");
    }
    let here = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default());
    let repository = Repository::around(&here);
    if let Some(repository) = &repository {
        repository.watch();
    }
    let commit = variable("PINION_COMMIT")
        .or_else(|| repository.as_ref()?.commit())
        .or_else(|| published(&here));
    let date = variable("SOURCE_DATE_EPOCH")
        .and_then(|seconds| day(seconds.parse().ok()?))
        .or_else(|| day(repository.as_ref()?.seconds()?));
    let commit: String = commit.unwrap_or_default().chars().take(COMMIT_DIGITS).collect();
    println!("cargo:rustc-env=PINION_BUILD_COMMIT={commit}");
    println!("cargo:rustc-env=PINION_BUILD_DATE={}", date.unwrap_or_default());
}

/// Puts the schema and the types of the protocol into the output directory, compressed.
fn compress_protocol() -> std::io::Result<()> {
    let out = PathBuf::from(variable("OUT_DIR").unwrap_or_default());
    for name in ["schema.json", "types.d.ts"] {
        let path = Path::new("protocol").join(name);
        println!("cargo:rerun-if-changed={}", path.display());
        let file = std::fs::File::create(out.join(format!("{name}.gz")))?;
        let mut packed = flate2::write::GzEncoder::new(file, flate2::Compression::best());
        packed.write_all(&std::fs::read(path)?)?;
        packed.finish()?;
    }
    Ok(())
}

/// Hands the linker the functions that a start runs and the form of the program. The functions lie together: the kernel maps 64 KiB around each page that is
/// touched, and without the order most of the program becomes resident (`xtask startup`). Patterns that match nothing, because the
/// toolchain or a dependency changed, are passed over. Only optimised builds, and only where the linker knows the options.
fn order_functions() {
    println!("cargo:rerun-if-changed=startup-order.txt");
    let is_optimised = variable("PROFILE").as_deref() == Some("release");
    let is_linux = variable("CARGO_CFG_TARGET_OS").as_deref() == Some("linux");
    let Some(directory) = variable("CARGO_MANIFEST_DIR").filter(|_| is_optimised && is_linux) else {
        return;
    };
    let list = Path::new(&directory).join("startup-order.txt");
    let Some(script) = linker_script(&list) else {
        return;
    };
    let mut options = vec![
        format!("-Wl,-T,{}", script.display()),
        // One copy of functions with the same code, which are 1.5 % of the program.
        "-Wl,--icf=all".to_owned(),
    ];
    // Flags for the whole build only: `cargo rustc -- -C target-feature=+crt-static` needs `-C relocation-model=static` as well.
    let features = variable("CARGO_CFG_TARGET_FEATURE").unwrap_or_default();
    if !features.split(',').any(|feature| feature == "crt-static") {
        // docs/internals/decisions/38-fixed-address.md
        options.push("-no-pie".to_owned());
    }
    if linker_takes(&options).unwrap_or(false) {
        for option in options {
            println!("cargo:rustc-link-arg-bins={option}");
        }
    }
}

/// Writes a script that adds one section to the linker's own layout: the functions of the list, in its order.
fn linker_script(list: &Path) -> Option<PathBuf> {
    let mut script = "SECTIONS {\n  .text.start : {\n".to_owned();
    for pattern in std::fs::read_to_string(list).ok()?.lines() {
        script += &format!("    *(.text.{pattern})\n");
    }
    script += "  }\n}\nINSERT BEFORE .text;\n";
    let path = PathBuf::from(variable("OUT_DIR")?).join("startup-order.ld");
    std::fs::write(&path, script).ok()?;
    Some(path)
}

/// Links a program that does nothing with these options. LLD takes them, GNU ld does not.
fn linker_takes(options: &[String]) -> Option<bool> {
    let directory = PathBuf::from(variable("OUT_DIR")?);
    let source = directory.join("probe.rs");
    std::fs::write(&source, "fn main() {}\n").ok()?;
    let mut rustc = Command::new(variable("RUSTC")?);
    rustc.arg(&source).arg("-o").arg(directory.join("probe"));
    rustc.arg("--target").arg(variable("TARGET")?);
    if let Some(linker) = variable("RUSTC_LINKER") {
        rustc.arg("-C").arg(format!("linker={linker}"));
    }
    let flags = variable("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    rustc.args(flags.split('\u{1f}').filter(|flag| !flag.is_empty()));
    for option in options {
        rustc.arg("-C").arg(format!("link-arg={option}"));
    }
    Some(rustc.output().ok()?.status.success())
}

/// A variable that has a value.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The git repository that this crate is a part of.
struct Repository(PathBuf);

impl Repository {
    /// Returns none for a crate that merely lies inside a repository, as an unpacked one in a directory under version
    /// control does.
    fn around(here: &Path) -> Option<Self> {
        let root = here.parent()?.parent()?;
        let ours = root.join(".git").exists()
            && root.join("crates/pinion").canonicalize().ok()? == here.canonicalize().ok()?;
        ours.then(|| Self(root.to_owned()))
    }

    /// Asks cargo to run this again after a commit or a switch of branches. A path that does not exist would make
    /// every build run it, so only existing paths are named. The log of HEAD grows with every commit, even where the
    /// branch's own file is packed away.
    fn watch(&self) {
        let branch = self.git(&["symbolic-ref", "-q", "HEAD"]);
        for name in ["HEAD".to_owned(), "logs/HEAD".to_owned()]
            .into_iter()
            .chain(branch)
        {
            if let Some(path) = self.git(&["rev-parse", "--git-path", &name]) {
                let path = self.0.join(path);
                if path.exists() {
                    println!("cargo:rerun-if-changed={}", path.display());
                }
            }
        }
    }

    fn commit(&self) -> Option<String> {
        self.git(&["rev-parse", "HEAD"])
    }

    /// When the commit was made, in seconds since 1970.
    fn seconds(&self) -> Option<i64> {
        self.git(&["log", "-1", "--format=%ct"])?.parse().ok()
    }

    fn git(&self, words: &[&str]) -> Option<String> {
        let output = Command::new("git")
            .arg("-C")
            .arg(&self.0)
            .args(words)
            .output()
            .ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        let text = text.trim();
        (output.status.success() && !text.is_empty()).then(|| text.to_owned())
    }
}

/// The commit of a published crate: `{"git":{"sha1":"..."},...}`.
fn published(here: &Path) -> Option<String> {
    let text = std::fs::read_to_string(here.join(".cargo_vcs_info.json")).ok()?;
    let (_, rest) = text.split_once("\"sha1\"")?;
    let (_, rest) = rest.split_once('"')?;
    let (sha, _) = rest.split_once('"')?;
    Some(sha.to_owned())
}

/// The day in UTC, as `2026-11-22` (Howard Hinnant's civil_from_days; no date library for one line).
fn day(seconds: i64) -> Option<String> {
    let days = seconds.div_euclid(86_400).checked_add(719_468)?;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    Some(format!("{year:04}-{month:02}-{day:02}"))
}
