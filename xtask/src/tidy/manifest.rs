//! Who may depend on whom (ARCHITECTURE.md, "Code map"), read from each `Cargo.toml`.

use super::files::package;
use super::{Finding, finding};

/// Our packages and, of each, those it may depend on. Tests may use `testkit` everywhere, and more where [`TESTS`] says so.
const ARROWS: [(&str, &[&str]); 20] = [
    ("wire", &[]),
    ("files", &[]),
    ("core", &["wire"]),
    ("auth", &["files"]),
    ("llm", &["wire", "files", "auth"]),
    ("models", &["wire", "auth", "llm"]),
    ("tools", &["wire"]),
    ("store", &["wire"]),
    ("export", &["wire", "store"]),
    ("extensions", &["files"]),
    ("mcp", &[]),
    ("permissions", &["wire"]),
    ("config", &["wire", "files", "core", "permissions", "extensions"]),
    (
        "host",
        &[
            "wire",
            "files",
            "permissions",
            "config",
            "core",
            "auth",
            "llm",
            "models",
            "tools",
            "store",
            "export",
            "extensions",
            "mcp",
        ],
    ),
    ("serve", &["wire", "config", "host"]),
    ("web", &["wire", "config", "host", "serve"]),
    (
        "pinion",
        &[
            "wire",
            "files",
            "permissions",
            "config",
            "core",
            "auth",
            "llm",
            "models",
            "tools",
            "store",
            "export",
            "host",
            "serve",
            "web",
            "mcp",
        ],
    ),
    ("client", &["wire"]),
    ("testkit", &["wire"]),
    (
        "xtask",
        &[
            "wire",
            "core",
            "auth",
            "llm",
            "models",
            "tools",
            "store",
            "extensions",
            "config",
            "host",
            "serve",
            "testkit",
        ],
    ),
];

/// What only tests may use: those of the program the client, those of permissions the names of the tools and their paths.
const TESTS: [(&str, &str); 3] = [
    ("pinion", "client"),
    ("permissions", "core"),
    ("permissions", "tools"),
];

/// Checks one manifest; those of packages that are not ours pass.
pub(super) fn check(path: &str, text: &str) -> Vec<Finding> {
    let owner = package(path);
    let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == owner) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for (line, section, name) in dependencies(text) {
        let ours = ours(&name);
        if ARROWS.iter().any(|(known, _)| *known == ours) {
            let tests_only = section.contains("dev-dependencies");
            if !(allowed.contains(&ours)
                || tests_only && (ours == "testkit" || TESTS.contains(&(owner, ours))))
            {
                found.push(finding(path, line, &format!("{owner} must not depend on {ours}")));
            }
        }
        if matches!(owner, "wire" | "core") && name.starts_with("tokio") {
            found.push(finding(path, line, &format!("{owner} must not depend on {name}")));
        }
    }
    found
}

/// `pinion-core` and `core` are one package; the host imports the extensions crate under another name.
fn ours(name: &str) -> &str {
    match name.strip_prefix("pinion-").unwrap_or(name) {
        "door" => "extensions",
        other => other,
    }
}

/// Line, section and name of every dependency.
fn dependencies(text: &str) -> Vec<(usize, String, String)> {
    let mut found = Vec::new();
    let mut section = String::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = name.to_owned();
            // `[dependencies.tokio]` names the dependency in the heading.
            if let Some((_, name)) = name.rsplit_once("dependencies.") {
                found.push((index + 1, section.clone(), name.to_owned()));
            }
        } else if section.ends_with("dependencies") && !line.starts_with('#') {
            let name: String = line
                .chars()
                .take_while(|letter| letter.is_alphanumeric() || "-_".contains(*letter))
                .collect();
            if !name.is_empty() {
                let renamed = line
                    .split_once("package = \"")
                    .and_then(|(_, rest)| rest.split_once('"'));
                found.push((
                    index + 1,
                    section.clone(),
                    renamed.map_or(name, |(real, _)| real.to_owned()),
                ));
            }
        }
    }
    found
}
