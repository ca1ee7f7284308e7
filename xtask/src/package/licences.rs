//! The licences of all libraries in the program, read from the sources that cargo built it from.
//!
//! Where a library offers MIT among others, Pinion uses it under MIT and the other texts are left out. A library without
//! a text of its own gets the standard text of MIT or Apache-2.0; for any other licence the build of the packages
//! fails until `packaging/licences/NAME.txt` exists.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::Release;

const RULE: &str = "--------------------------------------------------------------------------------";
/// Beginnings of the names of files that hold a licence or a notice.
const NAMES: [&str; 6] = [
    "LICENSE",
    "LICENCE",
    "COPYING",
    "UNLICENSE",
    "NOTICE",
    "COPYRIGHT",
];
/// Folders with JavaScript of others in the repository, which have a file `NAME-LICENSE.txt` or `NAME/LICENSE` for each.
const VENDORED: [&str; 2] = ["crates/web/page/vendor", "crates/extensions/typescript/vendor"];

const MIT: &str = "Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the \"Software\"), to deal in the Software without restriction, including without limitation
the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and
to permit persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of
the Software.

THE SOFTWARE IS PROVIDED \"AS IS\", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO
THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF
CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS
IN THE SOFTWARE.";

/// A library and its licence.
#[derive(Debug)]
struct Library {
    name: String,
    version: String,
    licence: String,
    authors: String,
    folder: PathBuf,
}

/// Returns the text of `THIRD-PARTY-LICENSES.txt`.
pub(crate) fn text(release: &Release) -> Result<String> {
    let libraries = libraries(release)?;
    let mut out = format!(
        "Pinion {} contains the following libraries, statically linked. Where a library may be used under MIT, Pinion\n\
         uses it under MIT.\n\n",
        release.version
    );
    let mut texts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for library in &libraries {
        let name = format!("{} {}", library.name, library.version);
        out.push_str(&format!("  {name}  ({})\n", library.licence));
        for text in texts_of(release, library)? {
            texts.entry(text).or_default().insert(name.clone());
        }
    }
    add_others(release, &mut out, &mut texts)?;
    for (text, users) in texts {
        let users: Vec<String> = users.into_iter().collect();
        out.push_str(&format!(
            "\n{RULE}\n{}\n{RULE}\n\n{text}\n",
            wrap(&users.join(", "))
        ));
    }
    Ok(out)
}

/// Adds what cargo does not know of: vendored JavaScript, Rust's own library, and the C library of static programs.
fn add_others(
    release: &Release,
    out: &mut String,
    texts: &mut BTreeMap<String, BTreeSet<String>>,
) -> Result<()> {
    out.push_str("  The Rust standard library  (MIT OR Apache-2.0)\n");
    texts
        .entry(format!("Copyright (c) The Rust Project Contributors\n\n{MIT}"))
        .or_default()
        .insert("The Rust standard library".to_owned());
    if release.target.triple.ends_with("gnu") {
        out.push_str(
            "  The GNU C library, in the container image only  (LGPL-2.1-or-later; https://sourceware.org/glibc/;\n  \
             the sources of Pinion, with which the image can be linked again: https://github.com/pinion-agent/pinion)\n",
        );
    }
    for folder in VENDORED {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(release.root.join(folder))? {
            let path = entry?.path();
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if let Some(library) = name.strip_suffix("-LICENSE.txt") {
                found.push((library.to_owned(), path));
            } else if path.is_dir() {
                found.push((name, path.join("LICENSE")));
            }
        }
        found.sort();
        for (library, path) in found {
            let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            out.push_str(&format!("  {library}  (JavaScript, in {folder})\n"));
            texts.entry(normal(&text)).or_default().insert(library);
        }
    }
    Ok(())
}

/// Lists the libraries that are linked into the program, by name and version.
fn libraries(release: &Release) -> Result<Vec<Library>> {
    let output = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--locked",
            "--offline",
            "--filter-platform",
        ])
        .arg(release.target.triple)
        .current_dir(&release.root)
        .output()
        .context("cargo does not start")?;
    if !output.status.success() {
        bail!(
            "cargo metadata: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let linked = linked(&metadata);
    let mut found: Vec<Library> = list(&metadata, "/packages")
        .filter(|package| linked.contains(string(package, "id")) && !package["source"].is_null())
        .map(|package| Library {
            name: string(package, "name").to_owned(),
            version: string(package, "version").to_owned(),
            licence: string(package, "license").to_owned(),
            authors: list(package, "/authors")
                .filter_map(Value::as_str)
                .collect::<Vec<_>>()
                .join(", "),
            folder: Path::new(string(package, "manifest_path"))
                .parent()
                .unwrap_or(Path::new(""))
                .to_owned(),
        })
        .collect();
    found.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    if found.is_empty() {
        bail!("cargo metadata names no libraries of pinion");
    }
    Ok(found)
}

/// Follows the normal dependencies of `pinion`. Macros run in the compiler, so they and what they need are left out.
fn linked(metadata: &Value) -> BTreeSet<&str> {
    let mut macros = BTreeSet::new();
    let mut open = Vec::new();
    for package in list(metadata, "/packages") {
        let kinds = list(package, "/targets").flat_map(|target| list(target, "/kind"));
        if kinds.filter_map(Value::as_str).any(|kind| kind == "proc-macro") {
            macros.insert(string(package, "id"));
        }
        if string(package, "name") == "pinion" && package["source"].is_null() {
            open.push(string(package, "id"));
        }
    }
    let nodes: BTreeMap<&str, &Value> = list(metadata, "/resolve/nodes")
        .map(|node| (string(node, "id"), node))
        .collect();
    let mut found = BTreeSet::new();
    while let Some(id) = open.pop() {
        if macros.contains(id) || !found.insert(id) {
            continue;
        }
        for dependency in nodes.get(id).into_iter().flat_map(|node| list(node, "/deps")) {
            if list(dependency, "/dep_kinds").any(|kind| kind["kind"].is_null()) {
                open.push(string(dependency, "pkg"));
            }
        }
    }
    found
}

/// Returns the licence texts and notices of a library.
fn texts_of(release: &Release, library: &Library) -> Result<Vec<String>> {
    let own = release
        .root
        .join(format!("packaging/licences/{}.txt", library.name));
    if own.is_file() {
        return Ok(vec![normal(&std::fs::read_to_string(own)?)]);
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&library.folder).with_context(|| library.folder.display().to_string())? {
        let path = entry?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .to_uppercase();
        if path.is_file() && NAMES.iter().any(|start| name.starts_with(start)) {
            files.push((name, path));
        }
    }
    files.sort();
    let alternatives = library.licence.replace('/', " OR ");
    let may_be_mit = alternatives
        .split(" OR ")
        .any(|part| part.trim_matches([' ', '(', ')']) == "MIT");
    if may_be_mit && files.iter().any(|(name, _)| name.contains("MIT")) {
        files.retain(|(name, _)| {
            name.contains("MIT") || name.starts_with("NOTICE") || name.starts_with("COPYRIGHT")
        });
    }
    let is_licence = |name: &String| !name.starts_with("NOTICE") && !name.starts_with("COPYRIGHT");
    let mut texts = Vec::new();
    for (_, path) in &files {
        texts.push(normal(&String::from_utf8_lossy(&std::fs::read(path)?)));
    }
    if !files.iter().any(|(name, _)| is_licence(name)) {
        texts.push(standard(release, library, may_be_mit)?);
    }
    Ok(texts)
}

/// Returns the standard text for a library that has none of its own.
fn standard(release: &Release, library: &Library, may_be_mit: bool) -> Result<String> {
    if may_be_mit {
        let authors = if library.authors.is_empty() {
            format!("the authors of {}", library.name)
        } else {
            library.authors.clone()
        };
        return Ok(format!("Copyright (c) {authors}\n\n{MIT}"));
    }
    if library.licence.contains("Apache-2.0") {
        return Ok(normal(&String::from_utf8(release.read("LICENSE-APACHE")?)?));
    }
    bail!(
        "{} {} ({}) contains no licence text; write it to packaging/licences/{}.txt",
        library.name,
        library.version,
        library.licence,
        library.name
    )
}

/// Takes out what differs between copies of one text: line ends and blanks at the ends of lines.
fn normal(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n").trim_matches('\n').to_owned()
}

/// Breaks a list of names into lines.
fn wrap(text: &str) -> String {
    let mut out = String::new();
    let mut width = 0;
    for word in text.split(' ') {
        if width > 0 && width + word.len() >= RULE.len() {
            out.push('\n');
            width = 0;
        } else if width > 0 {
            out.push(' ');
        }
        out.push_str(word);
        width += word.len() + 1;
    }
    out
}

fn list<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    value
        .pointer(pointer)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn string<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}
