//! Which files the repository has, and what kind each is.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// Folders that are no part of the sources.
const SKIPPED: [&str; 3] = ["target", "node_modules", ".git"];

/// Largest file that is looked at, in bytes.
const MAX_BYTES: u64 = 4 << 20;

/// A Rust file.
pub(super) struct SourceFile {
    /// Path from the root of the repository, with forward slashes.
    pub(super) path: String,
    /// As it is.
    pub(super) text: String,
    /// Parsed.
    pub(super) syntax: syn::File,
    /// True for test code and example programs.
    pub(super) is_test: bool,
}

impl SourceFile {
    /// Parses the text.
    ///
    /// # Errors
    /// When it is not Rust.
    pub(super) fn new(path: String, text: String) -> Result<Self> {
        let syntax = syn::parse_file(&text).with_context(|| format!("{path} cannot be parsed"))?;
        let is_test = is_test(&path);
        Ok(Self {
            path,
            text,
            syntax,
            is_test,
        })
    }
}

/// The package a path belongs to, by its folder: `wire` for `crates/wire/src/lib.rs`, `xtask` for `xtask/src/main.rs`.
pub(super) fn package(path: &str) -> &str {
    let rest = path.strip_prefix("crates/").unwrap_or(path);
    rest.split_once('/').map_or(rest, |(name, _)| name)
}

fn is_test(path: &str) -> bool {
    path.split('/')
        .any(|part| matches!(part, "tests" | "tests.rs" | "benches" | "examples"))
}

/// Paths of all files below the root, sorted.
///
/// # Errors
/// When a folder cannot be listed.
pub(super) fn all(root: &Path) -> Result<Vec<String>> {
    let mut paths = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        let full = root.join(&folder);
        for entry in fs::read_dir(&full).with_context(|| format!("cannot list {}", full.display()))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if folder.is_empty() {
                name.clone()
            } else {
                format!("{folder}/{name}")
            };
            // In a linked worktree `.git` is a file, which names a folder of this machine.
            if SKIPPED.contains(&name.as_str()) {
                continue;
            }
            let kind = entry.file_type()?;
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() {
                paths.push(path);
            }
        }
    }
    paths.sort();
    Ok(paths)
}

/// Returns the text of a file; nothing for large files and files that are not UTF-8.
pub(super) fn text(root: &Path, path: &str) -> Option<String> {
    let full = root.join(path);
    if fs::metadata(&full).ok()?.len() > MAX_BYTES {
        return None;
    }
    fs::read_to_string(full).ok()
}
