//! Packages from npm, and the dependencies of packages from git, through the user's own package manager: npm, or the program of
//! the setting `npmCommand` (npm, pnpm or bun). Directories and options are those of pi 1.5 (packages docs), so that pi can go on
//! with these packages. Other than pi, scripts of packages run only on request.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail};
use config::settings::Settings;
use files::Root;
use serde_json::Value;

use super::limits::{INSTALL, MANIFEST_BYTES};
use super::programs::{Programs, Run};

/// Manifest of a directory that packages are installed into.
const PROJECT: &str = "{\n  \"name\": \"pi-extensions\",\n  \"private\": true\n}";
/// Keeps installed packages out of the repository of a project.
pub(super) const IGNORED: &str = "*\n!.gitignore\n";

const ADVICE: &str = "Install Node.js with npm, or set \"npmCommand\" in settings.json";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Npm,
    Pnpm,
    Bun,
}

/// The user's package manager.
pub(super) struct Npm {
    command: Vec<String>,
    kind: Kind,
    allow_scripts: bool,
}

impl Npm {
    /// Reads `npmCommand`.
    ///
    /// # Errors
    /// If the setting names no known package manager.
    pub(super) fn of(settings: &Settings, allow_scripts: bool) -> anyhow::Result<Self> {
        let command = match settings.shell.npm_command.as_slice() {
            [] => vec!["npm".to_owned()],
            words => words.to_vec(),
        };
        let kind = |word: &String| {
            let name = Path::new(word).file_name()?.to_str()?;
            match name {
                "npm" => Some(Kind::Npm),
                "pnpm" => Some(Kind::Pnpm),
                "bun" => Some(Kind::Bun),
                _ => None,
            }
        };
        // A wrapper such as `mise exec -- npm` names the package manager last.
        let Some(kind) = command.iter().rev().find_map(kind) else {
            bail!("\"npmCommand\" in settings.json names none of npm, pnpm and bun");
        };
        Ok(Self {
            command,
            kind,
            allow_scripts,
        })
    }

    /// Makes a directory ready for packages.
    pub(super) fn prepare(root: &Path) -> std::io::Result<()> {
        for (name, text) in [(".gitignore", IGNORED), ("package.json", PROJECT)] {
            let path = root.join(name);
            if !path.exists() {
                fs::write(path, text)?;
            }
        }
        Ok(())
    }

    /// Installs packages, each as `NAME` or `NAME@VERSION`, into a directory.
    pub(super) async fn install(
        &self,
        programs: &Programs,
        root: &Path,
        specs: &[String],
    ) -> anyhow::Result<()> {
        let mut args = vec!["install"];
        if self.kind != Kind::Npm {
            args.extend(specs.iter().map(String::as_str));
        }
        args.extend(self.without_peers());
        args.extend(self.scripts());
        if self.kind == Kind::Npm {
            // What follows cannot be an option.
            args.push("--");
            args.extend(specs.iter().map(String::as_str));
        }
        self.run(programs, root, &args).await
    }

    /// Removes a package from a directory.
    pub(super) async fn uninstall(&self, programs: &Programs, root: &Path, name: &str) -> anyhow::Result<()> {
        let mut args = vec![if self.kind == Kind::Npm {
            "uninstall"
        } else {
            "remove"
        }];
        if self.kind == Kind::Npm {
            args.extend(self.without_peers());
            args.extend(self.scripts());
            args.push("--");
        }
        args.push(name);
        self.run(programs, root, &args).await
    }

    /// Installs what the manifest of a checked-out repository names.
    pub(super) async fn dependencies(&self, programs: &Programs, checkout: &Path) -> anyhow::Result<()> {
        if !needs_dependencies(checkout) {
            return Ok(());
        }
        let mut args = vec!["install"];
        args.push(if self.kind == Kind::Pnpm {
            "--prod"
        } else {
            "--omit=dev"
        });
        args.extend(self.without_peers());
        args.extend(self.scripts());
        // The file can name programs to run, and send variables of the environment to a server.
        let (own, aside) = (checkout.join(".npmrc"), checkout.join(".git/pinion-npmrc"));
        let is_aside = !self.allow_scripts && fs::rename(&own, &aside).is_ok();
        if !self.allow_scripts && own.symlink_metadata().is_ok() {
            bail!("Cannot set the file .npmrc of the repository aside");
        }
        let done = self.run(programs, checkout, &args).await;
        if is_aside {
            fs::rename(&aside, &own).context("Cannot put the file .npmrc of the repository back")?;
        }
        done
    }

    async fn run(&self, programs: &Programs, root: &Path, args: &[&str]) -> anyhow::Result<()> {
        let (program, first) = self.command.split_first().context("\"npmCommand\" is empty")?;
        let mut all: Vec<OsString> = first.iter().map(OsString::from).collect();
        let mut args = args.iter().map(OsString::from);
        all.extend(args.next());
        match self.kind {
            Kind::Npm => all.extend(["--prefix".into(), root.as_os_str().to_owned()]),
            Kind::Pnpm => all.extend(["--dir".into(), root.as_os_str().to_owned()]),
            Kind::Bun => all.extend(["--cwd".into(), root.as_os_str().to_owned()]),
        }
        all.extend(args);
        let run = Run {
            program,
            args: all,
            cwd: root,
            limit: INSTALL,
            advice: ADVICE,
        };
        programs.run(run).await.map(drop)
    }

    /// The agent provides the packages that extensions name as peers.
    fn without_peers(&self) -> &'static [&'static str] {
        match self.kind {
            Kind::Npm => &["--legacy-peer-deps", "--no-audit", "--no-fund", "--no-global"],
            Kind::Pnpm => &[
                "--config.auto-install-peers=false",
                "--config.strict-peer-dependencies=false",
                "--config.strict-dep-builds=false",
            ],
            Kind::Bun => &["--omit=peer"],
        }
    }

    fn scripts(&self) -> &'static [&'static str] {
        match (self.allow_scripts, self.kind) {
            (true, Kind::Npm) => &["--ignore-scripts=false"],
            (true, _) => &[],
            (false, Kind::Pnpm) => &["--ignore-scripts", "--ignore-pnpmfile"],
            (false, _) => &["--ignore-scripts"],
        }
    }
}

/// Returns the version that a package has, from its manifest.
pub(super) fn version(package: &Path) -> Option<String> {
    Some(manifest(package)?.get("version")?.as_str()?.to_owned())
}

fn needs_dependencies(package: &Path) -> bool {
    let manifest = manifest(package).unwrap_or_default();
    ["dependencies", "optionalDependencies", "workspaces"]
        .iter()
        .any(|key| {
            let value = manifest.get(*key);
            value.is_some_and(|value| value != &Value::Null && value != &serde_json::json!({}))
        })
}

fn manifest(package: &Path) -> Option<Value> {
    // A package may bring a link to a device in place of the file.
    let read = Root::user()
        .read(&package.join("package.json"), MANIFEST_BYTES)
        .ok()?;
    serde_json::from_str(&read.text).ok()
}
