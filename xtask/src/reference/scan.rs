//! Reads facts out of Rust sources: constants and fields with their comments. The sources are formatted by rustfmt, so
//! reading line by line is enough; other content is skipped.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// A constant or field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Item {
    /// Its name.
    pub(crate) name: String,
    /// Its type, as written.
    pub(crate) kind: String,
    /// Its value, as written; empty for a field.
    pub(crate) value: String,
    /// Its comment, on one line.
    pub(crate) doc: String,
}

/// The constants of a source, in its order.
pub(crate) fn constants(source: &str) -> Vec<Item> {
    items(source, |statement| {
        let rest = statement.split_once("const ")?.1;
        let (name, rest) = rest.split_once(": ")?;
        let (kind, value) = rest.split_once(" = ")?;
        Some(Item {
            name: name.to_owned(),
            kind: kind.to_owned(),
            value: value.trim_end_matches(';').to_owned(),
            doc: String::new(),
        })
    })
}

/// The fields of a struct.
///
/// # Errors
/// When the source has no such struct.
pub(crate) fn fields(source: &str, name: &str) -> Result<Vec<Item>> {
    let start = [format!("struct {name} {{\n"), format!("struct {name}<")];
    let at = start.iter().find_map(|start| source.find(start));
    let body = at.and_then(|at| source.get(at..)).and_then(|rest| {
        let (_, body) = rest.split_once("{\n")?;
        Some(body.split_once("\n}")?.0)
    });
    let body = body.with_context(|| format!("no struct {name}"))?;
    Ok(items(body, |statement| {
        let (name, kind) = statement.trim_end_matches(',').split_once(": ")?;
        Some(Item {
            name: name.rsplit(' ').next().unwrap_or(name).to_owned(),
            kind: kind.to_owned(),
            value: String::new(),
            doc: String::new(),
        })
    }))
}

fn items(source: &str, parse: impl Fn(&str) -> Option<Item>) -> Vec<Item> {
    let mut out = Vec::new();
    let mut doc: Vec<&str> = Vec::new();
    let mut statement = String::new();
    for line in source.lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("///") {
            doc.push(text.trim());
        } else if line.starts_with("//") || line.is_empty() || line.starts_with("#[") && line.ends_with(']') {
            continue;
        } else {
            statement = format!("{statement} {line}").trim().to_owned();
            if statement.ends_with([';', ',', '}']) {
                let item = parse(&statement);
                out.extend(item.map(|item| Item {
                    doc: doc.join(" "),
                    ..item
                }));
                statement.clear();
                doc.clear();
            }
        }
    }
    out
}

/// All Rust sources below a folder, without tests, sorted.
///
/// # Errors
/// When a folder cannot be read.
pub(crate) fn sources(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut out = Vec::new();
    let list = fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    for entry in list {
        let path = entry?.path();
        let name = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if name == "tests" {
            continue;
        }
        if path.is_dir() {
            out.extend(sources(&path)?);
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            out.push(path);
        }
    }
    out.sort();
    Ok(out)
}

/// A name in camel case, as JSON has it.
pub(crate) fn camel(name: &str) -> String {
    let mut out = String::new();
    let mut upper = false;
    for letter in name.chars() {
        if letter == '_' {
            upper = true;
        } else {
            out.push(if upper {
                letter.to_ascii_uppercase()
            } else {
                letter
            });
            upper = false;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_keep_comment_type_and_value() {
        let source = "//! x\n\nuse a;\n\n/// One\n/// two.\npub const A_B: Duration = Duration::from_secs(2);\n\nconst C: (u8, u8) =\n    (1, 2);\n";
        let found = constants(source);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].name, "A_B");
        assert_eq!(found[0].doc, "One two.");
        assert_eq!(found[0].value, "Duration::from_secs(2)");
        assert_eq!(found[1].value, "(1, 2)");
    }

    #[test]
    fn fields_skip_attributes() {
        let source = "struct X {\n    /// A.\n    #[serde(default)]\n    pub(crate) base_url: Option<String>,\n    b: u8,\n}\n";
        let names: Vec<String> = fields(source, "X")
            .unwrap()
            .into_iter()
            .map(|item| camel(&item.name))
            .collect();
        assert_eq!(names, ["baseUrl", "b"]);
        assert!(fields(source, "Y").is_err());
    }
}
