//! Names that exist and are spelled like a missing name: advice under the errors for missing files and unknown tools. The
//! advice of failed edits is in `edit::nearest`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::limits;
use crate::search::Names;
use process::sandbox::Policy;

/// Returns the names that are spelled almost like `wanted`, best first: with few letters changed, with another ending, or
/// shorter or longer. Upper and lower case are the same. `wanted` itself is left out.
#[must_use]
pub fn similar<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let lower = wanted.to_lowercase();
    let mut found: Vec<(usize, &str)> = names
        .into_iter()
        .filter(|name| *name != wanted)
        .filter_map(|name| Some((distance(&lower, &name.to_lowercase())?, name)))
        .collect();
    found.sort_unstable();
    found.dedup();
    found.truncate(limits::NEAREST_NAMED);
    found.into_iter().map(|(_, name)| name).collect()
}

/// How far apart two names in lower case are; none if they are too different to be meant.
fn distance(wanted: &str, name: &str) -> Option<usize> {
    let (letters, most) = (wanted.chars().count(), limits::NEAREST_NAME_MAX);
    if letters == 0 || letters > most || name.chars().count() > most {
        return None;
    }
    let edits = strsim::osa_distance(wanted, name);
    let stem = |name: &str| name.rsplit_once('.').map_or(name, |(stem, _)| stem).to_owned();
    let is_close = edits <= (letters / 3).max(1);
    let has_same_stem = stem(wanted) == stem(name);
    let is_start = letters > 3 && name.len() > 3 && (name.starts_with(wanted) || wanted.starts_with(name));
    (is_close || has_same_stem || is_start).then_some(edits)
}

/// Adds the nearest tools to the error for an unknown tool.
#[must_use]
pub fn unknown_tool<'a>(name: &str, tools: impl IntoIterator<Item = &'a str>) -> String {
    let error = format!("Tool {name} not found");
    match similar(name, tools).as_slice() {
        [] => error,
        nearest => format!("{error}. Did you mean {}?", nearest.join(" or ")),
    }
}

/// Adds to the error of a tool the existing paths that are spelled like a missing one. Names that the sandbox keeps from being
/// read are not told. Blocks.
pub(crate) fn with_similar_paths(error: String, path: &Path, policy: Option<&Policy>) -> String {
    let is_missing = path
        .symlink_metadata()
        .is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
    if !is_missing {
        return error;
    }
    match similar_paths(path, policy).as_slice() {
        [] => error,
        paths => format!("{error}\nSimilar paths that exist: {}", paths.join(", ")),
    }
}

/// Existing paths that differ from a missing one in the first part that does not exist.
fn similar_paths(path: &Path, policy: Option<&Policy>) -> Vec<String> {
    let Some((directory, missing)) = path
        .ancestors()
        .filter_map(|part| Some((part.parent()?, part)))
        .find(|(directory, _)| directory.is_dir())
    else {
        return Vec::new();
    };
    let Some(wanted) = missing.file_name().and_then(|name| name.to_str()) else {
        return Vec::new();
    };
    let rest = path.strip_prefix(missing).unwrap_or(Path::new(""));
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let told = Names::new(policy, directory);
    let names: Vec<String> = entries
        .flatten()
        .take(limits::NEAREST_SCAN_MAX)
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| told.may_tell(&directory.join(name)))
        .collect();
    let whole = |name: &str| -> PathBuf {
        match rest.as_os_str().is_empty() {
            true => directory.join(name),
            false => directory.join(name).join(rest),
        }
    };
    let found = similar(wanted, names.iter().map(String::as_str)).into_iter();
    found
        .map(whole)
        .filter(|path| path.symlink_metadata().is_ok() && told.may_tell(path))
        .map(|path| path.display().to_string())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_come_best_first() {
        let names = [
            "main.rs",
            "main.py",
            "Main.rs",
            "domain.rs",
            "lib.rs",
            "README.md",
        ];
        assert_eq!(similar("mian.rs", names), ["Main.rs", "main.rs"]);
        assert_eq!(similar("readme", names), ["README.md"]);
        assert_eq!(similar("main.c", names), ["Main.rs", "main.py", "main.rs"]);
        assert!(similar("missing.txt", names).is_empty());
        assert!(similar("", names).is_empty());
    }

    #[test]
    fn unknown_tool_names_nearest() {
        let tools = ["read", "bash", "edit", "write"];
        assert_eq!(
            unknown_tool("read_file", tools),
            "Tool read_file not found. Did you mean read?"
        );
        assert_eq!(unknown_tool("teleport", tools), "Tool teleport not found");
    }

    #[test]
    fn missing_path_lists_similar_paths() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        fs::create_dir_all(at("source/deep")).unwrap();
        for path in ["source/deep/a.txt", "notes.md", "other.md"] {
            fs::write(at(path), "").unwrap();
        }
        let said = |path: &str| with_similar_paths("E".to_owned(), &at(path), None);
        let similar = |path: &str| format!("E\nSimilar paths that exist: {}", at(path).display());
        assert_eq!(said("note.md"), similar("notes.md"));
        assert_eq!(said("sourcr/deep/a.txt"), similar("source/deep/a.txt"));
        assert_eq!(said("source/deep/b.txt"), similar("source/deep/a.txt"));
        for none in ["sourcr/shallow", "zzz", "notes.md"] {
            assert_eq!(said(none), "E", "{none}");
        }
    }
}
