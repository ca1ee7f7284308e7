//! Where extensions are: files `*.ts` and `*.js` of a directory, programs, and directories in it that say what they hold.
//! Which directories are looked at, and whether a project may bring code, is decided by the caller.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::program::{self, Program};

/// The extensions in a directory, sorted by name. A directory that is not there holds none.
#[must_use]
pub fn in_directory(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let mut found = Vec::new();
    for path in paths {
        if path.is_dir() {
            found.extend(package(&path));
        } else if is_script(&path) || matches!(Program::at(&path), Ok(Some(_))) {
            found.push(path);
        }
    }
    found
}

/// The extensions at a path that somebody named: a file is one; a directory holds what its `package.json` names, an index, or
/// scripts. A path where nothing is stands for itself, so that loading it says what is wrong.
#[must_use]
pub fn at(path: &Path) -> Vec<PathBuf> {
    if !path.is_dir() {
        return vec![path.to_path_buf()];
    }
    let own = package(path);
    if own.is_empty() { in_directory(path) } else { own }
}

/// What a directory says it holds: itself, as a program; `pi.extensions` of its `package.json`; else its index.
fn package(dir: &Path) -> Vec<PathBuf> {
    if dir.join(program::MANIFEST).is_file() {
        return vec![dir.to_path_buf()];
    }
    if let Some(named) = manifest(dir) {
        let there = named.into_iter().filter(|path| path.exists());
        return there
            .flat_map(|path| {
                if path.is_dir() {
                    in_directory(&path)
                } else {
                    vec![path]
                }
            })
            .collect();
    }
    let index = ["index.ts", "index.js"].map(|name| dir.join(name));
    index
        .into_iter()
        .find(|path| path.is_file())
        .into_iter()
        .collect()
}

fn manifest(dir: &Path) -> Option<Vec<PathBuf>> {
    let text = fs::read_to_string(dir.join("package.json")).ok()?;
    let package: Value = serde_json::from_str(&text).ok()?;
    let list = package.get("pi")?.get("extensions")?.as_array()?;
    Some(
        list.iter()
            .filter_map(Value::as_str)
            .map(|name| tidy(&dir.join(name)))
            .collect(),
    )
}

/// Without the `./` that people write in front.
fn tidy(path: &Path) -> PathBuf {
    path.components().collect()
}

fn is_script(path: &Path) -> bool {
    path.extension()
        .is_some_and(|ending| ending == "ts" || ending == "js")
        && path.is_file()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{at, in_directory};

    #[test]
    fn scripts_packages_and_indexes_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("b.ts", "");
        put("a.js", "");
        put("notes.md", "");
        put("index-dir/index.ts", "");
        put("index-dir/index.js", "");
        put("empty/readme.txt", "");
        put(
            "pack/package.json",
            r#"{"pi": {"extensions": ["./src/x.ts", "missing.ts", "more"]}}"#,
        );
        put("pack/src/x.ts", "");
        put("pack/more/y.ts", "");
        put("pack/index.ts", "");
        put("loose/one.ts", "");
        put("program/extension.json", "{}");
        put("program/index.ts", "");
        put("tool.py", "#!/usr/bin/env python3\n");
        let names = |paths: Vec<std::path::PathBuf>| -> Vec<String> {
            let short =
                |path: &std::path::PathBuf| path.strip_prefix(dir.path()).unwrap().display().to_string();
            paths.iter().map(short).collect()
        };
        assert_eq!(
            names(in_directory(dir.path())),
            [
                "a.js",
                "b.ts",
                "index-dir/index.ts",
                "pack/src/x.ts",
                "pack/more/y.ts",
                "program",
                "tool.py"
            ]
        );
        assert_eq!(
            names(at(&dir.path().join("pack"))),
            ["pack/src/x.ts", "pack/more/y.ts"]
        );
        assert_eq!(names(at(&dir.path().join("loose"))), ["loose/one.ts"]);
        assert_eq!(names(at(&dir.path().join("nowhere.ts"))), ["nowhere.ts"]);
        assert!(in_directory(&dir.path().join("nowhere")).is_empty());
    }
}
