//! Archives are read back by the system's own tools, which are not ours to get wrong.

use std::path::Path;
use std::process::Command;

use super::archive::{Entry, gzip, tar, with_directories};
use super::elf;
use super::oci::timestamp;
use super::target::Target;
use super::zip::zip;

fn output(dir: &Path, program: &str, words: &[&str]) -> String {
    let output = Command::new(program)
        .args(words)
        .current_dir(dir)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn tar_is_read_by_tar() {
    let long = format!("a/{}/{}", "d".repeat(90), "f".repeat(60));
    let entries = with_directories(vec![
        Entry::file("bin/program", 0o755, b"text".as_slice()),
        Entry::file(long.as_str(), 0o644, vec![7; 1000]),
    ]);
    let dir = tempfile::tempdir().unwrap();
    let archive = gzip(&tar(&entries, "./", 1_000_000_000).unwrap()).unwrap();
    std::fs::write(dir.path().join("a.tgz"), archive).unwrap();
    output(dir.path(), "tar", &["xzf", "a.tgz"]);
    assert_eq!(std::fs::read(dir.path().join("bin/program")).unwrap(), b"text");
    assert_eq!(std::fs::read(dir.path().join(&long)).unwrap(), vec![7; 1000]);
    let listing = output(dir.path(), "tar", &["tzvf", "a.tgz", "--utc", "--full-time"]);
    assert!(listing.contains("-rwxr-xr-x 0/0"), "{listing}");
    assert!(listing.contains("2001-09-09 01:46:40"), "{listing}");
}

#[test]
fn tar_refuses_path_that_does_not_fit() {
    let entry = Entry::file("x".repeat(101), 0o644, b"".as_slice());
    assert!(tar(&[entry], "", 0).is_err());
}

#[test]
fn zip_is_read_by_python() {
    let files = [
        ("a/text".to_owned(), 0o644, b"some text".to_vec()),
        ("program".to_owned(), 0o755, vec![9; 70_000]),
    ];
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.zip"), zip(&files).unwrap()).unwrap();
    let script = "import zipfile; z = zipfile.ZipFile('a.zip'); print(z.testzip(), z.read('a/text'), \
                  len(z.read('program')), oct(z.getinfo('program').external_attr >> 16))";
    let text = output(dir.path(), "python3", &["-c", script]);
    assert_eq!(text, "None b'some text' 70000 0o100755\n");
}

#[test]
fn needs_of_program_are_those_of_objdump() {
    let program = std::env::current_exe().unwrap();
    let needs = elf::needs(&std::fs::read(&program).unwrap()).unwrap();
    let table = output(Path::new("/"), "objdump", &["-p", program.to_str().unwrap()]);
    for library in &needs.libraries {
        assert!(
            table.contains(&format!("NEEDED               {library}\n")),
            "{table}"
        );
    }
    let highest = table
        .split_whitespace()
        .filter_map(|word| word.strip_prefix("GLIBC_"))
        .map(|version| {
            let mut numbers = version.split('.').map(|number| number.parse::<u32>().unwrap());
            (numbers.next().unwrap(), numbers.next().unwrap())
        })
        .max();
    assert!(highest.is_some());
    assert_eq!(needs.glibc, highest);
}

#[test]
fn cut_program_is_an_error() {
    let bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    assert!(elf::needs(&bytes[..bytes.len() / 2]).is_err());
    assert_eq!(elf::needs(b"#!/bin/sh").unwrap(), elf::Needs::default());
}

#[test]
fn targets_have_names_in_every_package_system() {
    let glibc = Target::parse("x86_64-unknown-linux-gnu").unwrap();
    assert_eq!(glibc.wheel(Some((2, 34))), "manylinux_2_34_x86_64");
    assert_eq!(
        (glibc.npm().as_str(), glibc.debian()),
        ("linux-x64", Some("amd64"))
    );
    let musl = Target::parse("aarch64-unknown-linux-musl").unwrap();
    assert_eq!(musl.wheel(None), "musllinux_1_2_aarch64");
    assert_eq!((musl.npm().as_str(), musl.debian()), ("linux-arm64-musl", None));
    assert!(Target::parse("x86_64-pc-windows-msvc").is_err());
}

#[test]
fn pages_are_read_from_main_page() {
    let page = b".SH SEE ALSO\n.BR pinion\\-doctor (1),\n.BR pinion\\-mcp (1)\n";
    assert_eq!(super::contents::pages(page), ["doctor", "mcp"]);
}

#[test]
fn clients_have_version_of_program() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let version = env!("CARGO_PKG_VERSION");
    let python = std::fs::read_to_string(root.join("sdk/python/pyproject.toml")).unwrap();
    assert!(python.contains(&format!("\nversion = \"{version}\"\n")));
    assert!(python.contains(&format!("\"pinion-agent-cli=={version}\"")));
    let node = std::fs::read_to_string(root.join("sdk/typescript/package.json")).unwrap();
    assert!(node.contains(&format!("\"version\": \"{version}\"")));
    let changes = std::fs::read_to_string(root.join("CHANGELOG.md")).unwrap();
    assert!(
        changes.contains(&format!("\n## {version}\n")),
        "no entry for {version}"
    );
}

#[test]
fn timestamp_is_rfc_3339() {
    assert_eq!(timestamp(0), "1970-01-01T00:00:00Z");
    assert_eq!(timestamp(951_782_400 + 3_661), "2000-02-29T01:01:01Z");
}
