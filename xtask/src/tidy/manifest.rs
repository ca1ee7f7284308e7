//! Who may depend on whom (ARCHITECTURE.md), as `cargo metadata` has it.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use super::{Finding, finding};

/// Our packages and, of each, those it may depend on. Tests may use `testkit` everywhere, and more where [`TESTS`] says so.
const ARROWS: [(&str, &[&str]); 26] = [
    ("wire", &[]),
    ("net", &[]),
    ("fetch", &["net"]),
    ("files", &[]),
    ("checkpoints", &["wire", "files"]),
    ("agent", &["wire"]),
    ("auth", &["files"]),
    ("llm", &["wire", "files", "auth"]),
    ("models", &["wire", "auth", "llm"]),
    ("process", &["wire"]),
    ("tools", &["wire", "files", "process"]),
    ("store", &["wire"]),
    ("cluster", &["store", "wire"]),
    ("export", &["wire", "store"]),
    ("extensions", &["wire", "files", "process"]),
    ("mcp", &["wire", "files", "net", "process"]),
    ("permissions", &["wire"]),
    ("config", &["wire", "files", "agent", "permissions", "extensions"]),
    (
        "session",
        &[
            "wire",
            "fetch",
            "files",
            "permissions",
            "process",
            "config",
            "agent",
            "auth",
            "llm",
            "models",
            "tools",
            "store",
            "export",
            "extensions",
            "mcp",
            "checkpoints",
        ],
    ),
    ("serve", &["wire", "config", "session"]),
    ("acp", &["wire", "tools", "session", "serve"]),
    ("web", &["wire", "config", "session", "serve"]),
    (
        "pinion",
        &[
            "wire",
            "fetch",
            "files",
            "permissions",
            "process",
            "config",
            "agent",
            "auth",
            "llm",
            "models",
            "tools",
            "store",
            "export",
            "session",
            "serve",
            "acp",
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
            "agent",
            "auth",
            "llm",
            "models",
            "tools",
            "store",
            "extensions",
            "config",
            "session",
            "serve",
            "testkit",
        ],
    ),
];

/// Further packages that the tests of a package may use.
const TESTS: [(&str, &str); 4] = [
    ("pinion", "client"),
    ("permissions", "agent"),
    ("permissions", "process"),
    ("permissions", "tools"),
];
/// Packages without an async runtime.
const WITHOUT_RUNTIME: [&str; 2] = ["wire", "agent"];

/// What `cargo metadata` prints, as far as it is needed.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    /// None for an ordinary dependency, `dev` or `build` for others.
    kind: Option<String>,
}

/// Checks all packages of the workspace at `root`.
///
/// # Errors
/// When `cargo metadata` fails.
pub(super) fn check(root: &Path) -> Result<Vec<Finding>> {
    let output = std::process::Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root)
        .output()
        .context("cargo cannot be run")?;
    ensure!(
        output.status.success(),
        "cargo metadata failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let mut findings = check_metadata(&output.stdout)?;
    findings.extend(licences(root)?);
    Ok(findings)
}

/// Checks that each crate has the licences of the repository: cargo packs only files of the crate's own directory.
pub(super) fn licences(root: &Path) -> Result<Vec<Finding>> {
    let mut folders = vec!["testkit".to_owned()];
    for entry in std::fs::read_dir(root.join("crates")).context("cannot list crates")? {
        folders.push(format!("crates/{}", entry?.file_name().to_string_lossy()));
    }
    let mut findings = Vec::new();
    for folder in folders {
        for name in ["LICENSE-APACHE", "LICENSE-MIT"] {
            let path = format!("{folder}/{name}");
            let wanted = std::fs::read(root.join(name)).context(name)?;
            if std::fs::read(root.join(&path)).ok() != Some(wanted) {
                findings.push(finding(&path, 1, "must be a link to the licence at the root"));
            }
        }
    }
    Ok(findings)
}

/// Checks what `cargo metadata` printed.
pub(super) fn check_metadata(json: &[u8]) -> Result<Vec<Finding>> {
    let metadata: Metadata = serde_json::from_slice(json)?;
    Ok(metadata.packages.iter().flat_map(of_package).collect())
}

fn of_package(package: &Package) -> Vec<Finding> {
    let owner = short(&package.name);
    let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == owner) else {
        let message = format!("the package {owner} is not in the table of xtask/src/tidy/manifest.rs");
        return vec![finding("Cargo.toml", 1, &message)];
    };
    let may = |dependency: &Dependency| {
        let name = short(&dependency.name);
        let is_ours = ARROWS.iter().any(|(known, _)| *known == name);
        let is_for_tests = dependency.kind.as_deref() == Some("dev")
            && (name == "testkit" || TESTS.contains(&(owner, name)));
        let is_runtime = WITHOUT_RUNTIME.contains(&owner) && name.starts_with("tokio");
        (!is_ours || allowed.contains(&name) || is_for_tests) && !is_runtime
    };
    let refused = package.dependencies.iter().filter(|dependency| !may(dependency));
    refused
        .map(|dependency| {
            let message = format!("{owner} must not depend on {}", short(&dependency.name));
            finding(&format!("{owner}: Cargo.toml"), 1, &message)
        })
        .collect()
}

/// The name of a package without the prefix that all of ours have.
fn short(name: &str) -> &str {
    name.strip_prefix("pinion-").unwrap_or(name)
}
