//! Where extensions are: files `*.ts` and `*.js` of a directory, programs, and directories in it that say what they hold.
//! Which directories are looked at, and whether a project may bring code, is decided by the caller.

use std::path::{Path, PathBuf};

use files::Root;
use serde_json::Value;

use crate::line::Generation;
use crate::program::{self, Program};

/// Directory entries looked at in one directory of extensions.
const ENTRIES: usize = 2_000;

/// The extensions in a directory, sorted by name. A directory that is not there holds none.
#[must_use]
pub fn in_directory(root: &Root, dir: &Path, generation: Generation) -> Vec<PathBuf> {
    let (paths, _) = root.list(dir, ENTRIES).unwrap_or_default();
    let mut found = Vec::new();
    for path in paths {
        if root.is_dir(&path) {
            found.extend(package(root, &path, generation));
        } else if is_script(root, &path) || matches!(Program::at(root, &path), Ok(Some(_))) {
            found.push(path);
        }
    }
    found
}

/// Returns the extensions at a configured path: a file is one; a directory holds those of its `package.json`, an index,
/// or scripts. A path that does not exist is returned itself, so that loading it reports the error.
#[must_use]
pub fn at(root: &Root, path: &Path, generation: Generation) -> Vec<PathBuf> {
    if !root.is_dir(path) {
        return vec![path.to_path_buf()];
    }
    let own = package(root, path, generation);
    if own.is_empty() {
        in_directory(root, path, generation)
    } else {
        own
    }
}

/// Commands in TypeScript of oh-my-pi: the index of each directory in a directory of commands, sorted by name.
#[must_use]
pub fn commands(root: &Root, dir: &Path) -> Vec<PathBuf> {
    let (paths, _) = root.list(dir, ENTRIES).unwrap_or_default();
    let names = ["index.ts", "index.js", "index.mjs", "index.cjs"];
    let mut found = Vec::new();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if !name.starts_with('.') && root.is_dir(&path) {
            found.extend(first_of(root, &path, &names));
        }
    }
    found
}

/// What a directory says it holds: itself, as a program; the `extensions` of its `package.json`; else, or if nothing that it names is
/// there, its index.
fn package(root: &Root, dir: &Path, generation: Generation) -> Vec<PathBuf> {
    if root.is_file(&dir.join(program::MANIFEST)) {
        return vec![dir.to_path_buf()];
    }
    let named = manifest(root, dir, generation).unwrap_or_default().into_iter();
    let there = named.filter(|path| root.find(path).is_ok());
    let found: Vec<PathBuf> = there
        .flat_map(|path| {
            if !root.is_dir(&path) {
                return vec![path];
            }
            // The other files in the directory of an index are parts of it.
            match index(root, &path) {
                Some(index) => vec![index],
                None => in_directory(root, &path, generation),
            }
        })
        .collect();
    if found.is_empty() {
        index(root, dir).into_iter().collect()
    } else {
        found
    }
}

fn index(root: &Root, dir: &Path) -> Option<PathBuf> {
    first_of(root, dir, &["index.ts", "index.js"])
}

/// The first of these files that is in a directory.
fn first_of(root: &Root, dir: &Path, names: &[&str]) -> Option<PathBuf> {
    let mut paths = names.iter().map(|name| dir.join(name));
    paths.find(|path| root.is_file(path))
}

/// The paths that `package.json` names. oh-my-pi and its relative look for their own member before that of pi.
fn manifest(root: &Root, dir: &Path, generation: Generation) -> Option<Vec<PathBuf>> {
    let text = root
        .read(&dir.join("package.json"), program::MANIFEST_BYTES)
        .ok()?;
    let package: Value = serde_json::from_str(&text.text).ok()?;
    let members: &[&str] = match generation {
        Generation::Omp => &["omp", "xcsh", "pi"],
        _ => &["pi"],
    };
    let own = members
        .iter()
        .find_map(|member| package.get(*member).filter(|own| !own.is_null()))?;
    let list = own.get("extensions")?.as_array()?;
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

fn is_script(root: &Root, path: &Path) -> bool {
    path.extension()
        .is_some_and(|ending| ending == "ts" || ending == "js")
        && root.is_readable_or_refused(path)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use files::Root;

    use crate::line::Generation;

    #[test]
    fn manifests_and_commands_of_omp_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put(
            "both/package.json",
            r#"{"pi": {"extensions": ["pi.ts"]}, "omp": {"extensions": ["omp.ts"]}}"#,
        );
        put("both/pi.ts", "");
        put("both/omp.ts", "");
        put(
            "own/package.json",
            r#"{"omp": {"extensions": ["./src/main.ts"]}}"#,
        );
        put("own/src/main.ts", "");
        put(
            "pi/package.json",
            r#"{"omp": null, "pi": {"extensions": ["x.ts"]}}"#,
        );
        put("pi/x.ts", "");
        put("commands/one/index.mjs", "");
        put("commands/.hidden/index.ts", "");
        put("commands/text.md", "");
        let names = |paths: Vec<std::path::PathBuf>| -> Vec<String> {
            let short =
                |path: &std::path::PathBuf| path.strip_prefix(dir.path()).unwrap().display().to_string();
            paths.iter().map(short).collect()
        };
        let found = |generation| names(super::in_directory(&Root::user(), dir.path(), generation));
        assert_eq!(
            found(Generation::Omp),
            ["both/omp.ts", "own/src/main.ts", "pi/x.ts"]
        );
        assert_eq!(found(Generation::Pi), ["both/pi.ts", "pi/x.ts"]);
        let commands = super::commands(&Root::user(), &dir.path().join("commands"));
        assert_eq!(names(commands), ["commands/one/index.mjs"]);
    }

    #[test]
    fn extension_scripts_packages_and_indexes_are_found() {
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
            r#"{"pi": {"extensions": ["./src/x.ts", "missing.ts", "more", "whole"]}}"#,
        );
        put("pack/whole/index.ts", "");
        put("pack/whole/part.ts", "");
        put("pack/src/x.ts", "");
        put("pack/more/y.ts", "");
        put("pack/index.ts", "");
        put(
            "fallback/package.json",
            r#"{"pi": {"extensions": ["missing.ts"]}}"#,
        );
        put("fallback/index.ts", "");
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
            names(super::in_directory(&Root::user(), dir.path(), Generation::Pi)),
            [
                "a.js",
                "b.ts",
                "fallback/index.ts",
                "index-dir/index.ts",
                "pack/src/x.ts",
                "pack/more/y.ts",
                "pack/whole/index.ts",
                "program",
                "tool.py"
            ]
        );
        assert_eq!(
            names(super::at(&Root::user(), &dir.path().join("pack"), Generation::Pi)),
            ["pack/src/x.ts", "pack/more/y.ts", "pack/whole/index.ts"]
        );
        assert_eq!(
            names(super::at(
                &Root::user(),
                &dir.path().join("loose"),
                Generation::Pi
            )),
            ["loose/one.ts"]
        );
        assert_eq!(
            names(super::at(
                &Root::user(),
                &dir.path().join("nowhere.ts"),
                Generation::Pi
            )),
            ["nowhere.ts"]
        );
        assert!(super::in_directory(&Root::user(), &dir.path().join("nowhere"), Generation::Pi).is_empty());
    }
}
