//! Extensions that are programs: any executable that speaks the protocol itself. This module recognises and reads them; the
//! owner of the processes starts them.

use std::path::{Path, PathBuf};

use files::Root;
use serde::Deserialize;

/// The file of a directory that says how its program is started.
pub const MANIFEST: &str = "extension.json";

/// Bytes of a manifest.
pub(crate) const MANIFEST_BYTES: u64 = 1024 * 1024;
/// Bytes of a file that say whether it is a program.
const HEAD_BYTES: u64 = 256;

/// Extensions of files that the TypeScript host runs, with any mode and first line.
const SCRIPTS: [&str; 6] = ["ts", "js", "mjs", "cjs", "mts", "cts"];

/// How a program extension is started.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Program {
    /// The file or directory that was found: what the extension is known by.
    pub path: PathBuf,
    /// The executable and its arguments.
    pub command: Vec<String>,
    /// What people call it.
    pub name: String,
    /// Events that it listens to, for a program that does not say so when it is opened.
    pub events: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Manifest {
    command: Vec<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    events: Vec<String>,
}

impl Program {
    /// The program at a path; none when it is no program, but for example TypeScript.
    ///
    /// # Errors
    /// In words, when it says itself how it is started and that cannot be understood.
    pub fn at(root: &Root, path: &Path) -> Result<Option<Self>, String> {
        if root.is_dir(path) {
            return if root.is_file(&path.join(MANIFEST)) {
                Self::of_directory(root, path).map(Some)
            } else {
                Ok(None)
            };
        }
        if is_script(path) {
            return Ok(None);
        }
        Ok(command_of(root, path).map(|command| Self {
            path: path.to_path_buf(),
            command,
            name: name_of(path),
            events: Vec::new(),
        }))
    }

    /// Parts of the command that name something in the directory are made absolute: the process works elsewhere.
    fn of_directory(root: &Root, dir: &Path) -> Result<Self, String> {
        let text = root.read(&dir.join(MANIFEST), MANIFEST_BYTES);
        let text = text.map_err(|error| format!("{MANIFEST}: {error}"))?.text;
        let manifest: Manifest =
            serde_json::from_str(&text).map_err(|error| format!("{MANIFEST}: {error}"))?;
        if manifest.command.is_empty() {
            return Err(format!("{MANIFEST}: command is empty"));
        }
        let absolute = |part: String| {
            let inside = dir.join(&part);
            if !part.is_empty() && root.find(&inside).is_ok() {
                let inside: PathBuf = inside.components().collect();
                inside.to_string_lossy().into_owned()
            } else {
                part
            }
        };
        Ok(Self {
            path: dir.to_path_buf(),
            command: manifest.command.into_iter().map(absolute).collect(),
            name: manifest.name.unwrap_or_else(|| name_of(dir)),
            events: manifest.events,
        })
    }
}

/// Returns true if the TypeScript host runs the file.
fn is_script(path: &Path) -> bool {
    path.extension()
        .is_some_and(|ending| SCRIPTS.iter().any(|script| ending == *script))
}

fn name_of(path: &Path) -> String {
    let name = path.file_stem().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// How a file is run: by itself when it may be executed, by the interpreter of its first line otherwise. A file that may be
/// executed but is neither a script nor machine code is none: on some disks everything may be.
fn command_of(root: &Root, path: &Path) -> Option<Vec<String>> {
    let own = path.to_string_lossy().into_owned();
    let may_run = root.find(path).ok()?.mode & 0o111 != 0;
    let (head, _) = root.read_bytes(path, HEAD_BYTES).ok()?;
    if let Some(line) = head.strip_prefix(b"#!") {
        if may_run {
            return Some(vec![own]);
        }
        let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        let mut command: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        if command.is_empty() {
            return None;
        }
        command.push(own);
        return Some(command);
    }
    let machine_code: [&[u8]; 4] = [b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"MZ"];
    (may_run && machine_code.iter().any(|magic| head.starts_with(magic))).then(|| vec![own])
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;

    use files::Root;

    use super::Program;

    fn put(dir: &Path, name: &str, text: &[u8], mode: u32) -> String {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path.display().to_string()
    }

    fn command(dir: &Path, name: &str) -> Option<Vec<String>> {
        Program::at(&Root::user(), &dir.join(name))
            .unwrap()
            .map(|program| program.command)
    }

    #[test]
    fn programs_are_recognised_by_mode_and_first_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let gate = put(dir, "gate.sh", b"#!/bin/sh\n", 0o755);
        let quiet = put(dir, "quiet.py", b"#!/usr/bin/env python3\nx", 0o644);
        let binary = put(dir, "binary", b"\x7fELF....", 0o755);
        put(dir, "data", b"\x7fELF....", 0o644);
        put(dir, "notes.md", b"# Notes", 0o755);
        put(dir, "cli.ts", b"#!/usr/bin/env node\n", 0o755);
        put(dir, "empty", b"#!\n", 0o644);
        assert_eq!(command(dir, "gate.sh").unwrap(), [gate]);
        assert_eq!(
            command(dir, "quiet.py").unwrap(),
            ["/usr/bin/env", "python3", quiet.as_str()]
        );
        assert_eq!(command(dir, "binary").unwrap(), [binary]);
        for none in ["data", "notes.md", "cli.ts", "empty", "nowhere"] {
            assert_eq!(command(dir, none), None, "{none}");
        }
    }

    #[test]
    fn extension_json_gives_start_command() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let main = put(dir, "kit/main.py", b"", 0o644);
        put(
            dir,
            "kit/extension.json",
            br#"{"command": ["python3", "./main.py", "--fast"], "events": ["input"]}"#,
            0o644,
        );
        let program = Program::at(&Root::user(), &dir.join("kit")).unwrap().unwrap();
        assert_eq!(program.command, ["python3", main.as_str(), "--fast"]);
        assert_eq!(
            (program.name.as_str(), program.events.as_slice()),
            ("kit", &["input".to_owned()][..])
        );
        assert_eq!(Program::at(&Root::user(), dir), Ok(None));
        for (text, why) in [
            ("{", "extension.json: "),
            (r#"{"command": []}"#, "command is empty"),
        ] {
            fs::write(dir.join("kit/extension.json"), text).unwrap();
            let error = Program::at(&Root::user(), &dir.join("kit")).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
