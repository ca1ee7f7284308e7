//! The example hooks for working directories move a directory from one worker to another, with the programs that they need.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

/// Two workers with a directory each, and the place that both reach.
struct Hosts {
    dir: tempfile::TempDir,
    hook: PathBuf,
    variables: Vec<(&'static str, String)>,
}

impl Hosts {
    /// None if a program is missing.
    fn with(hook: &str, programs: &[&str]) -> Result<Option<Self>> {
        for program in programs {
            let answers = |word| {
                let output = Command::new(program).arg(word).output();
                output.is_ok_and(|output| output.status.success())
            };
            if !answers("--version") && !answers("version") {
                writeln!(std::io::stderr(), "skipped: {program} is not installed")?;
                return Ok(None);
            }
        }
        let hooks = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/workspaces");
        Ok(Some(Self {
            dir: tempfile::tempdir()?,
            hook: hooks.join(hook),
            variables: Vec::new(),
        }))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn run(&self, hook: &str, worker: &str, session: &str) -> Result<bool> {
        let status = Command::new(&self.hook)
            .env("PINION_HOOK", hook)
            .env("PINION_SESSION", session)
            .env("PINION_CWD", self.path(worker))
            .env("HOME", self.dir.path())
            .envs(self.variables.iter().cloned())
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .status()?;
        Ok(status.success())
    }

    /// Moves a session from one worker to the other and back, and checks what arrives.
    fn moves(&self, deletes: bool) -> Result<()> {
        ensure!(self.run("prepare", "a", "s/1")?);
        let a = self.path("a");
        std::fs::create_dir_all(a.join("src"))?;
        std::fs::write(a.join("src/one"), "1")?;
        std::fs::write(a.join("two"), "2")?;
        ensure!(self.run("save", "a", "s/1")?);
        // Another session does not see it.
        ensure!(self.run("prepare", "other", "s/2")?);
        ensure!(!self.path("other/two").exists());
        ensure!(self.run("prepare", "b", "s/1")?);
        ensure!(std::fs::read_to_string(self.path("b/src/one"))? == "1");
        std::fs::write(self.path("b/src/one"), "changed")?;
        std::fs::remove_file(self.path("b/two"))?;
        ensure!(self.run("save", "b", "s/1")?);
        ensure!(self.run("prepare", "a", "s/1")?);
        ensure!(std::fs::read_to_string(a.join("src/one"))? == "changed");
        ensure!(a.join("two").exists() != deletes);
        // Saving twice without a change is no error.
        ensure!(self.run("save", "a", "s/1")? && self.run("save", "a", "s/1")?);
        Ok(())
    }
}

#[test]
fn git_hook_moves_directory_and_refuses_stale_worker() -> Result<()> {
    let Some(mut hosts) = Hosts::with("git-branch", &["git"])? else {
        return Ok(());
    };
    let remote = hosts.path("remote.git");
    let mut init = Command::new("git");
    init.args(["init", "--bare", "--quiet"]).arg(&remote);
    ensure!(init.status().context("git does not run")?.success());
    let remote = remote.to_string_lossy().into_owned();
    hosts.variables.push(("WORKSPACE_REMOTE", remote));
    hosts.moves(true)?;
    // Worker b continues with what it had, after worker a has saved.
    std::fs::write(hosts.path("a/three"), "3")?;
    ensure!(hosts.run("save", "a", "s/1")?);
    std::fs::write(hosts.path("b/late"), "")?;
    ensure!(!hosts.run("save", "b", "s/1")?);
    Ok(())
}

#[test]
fn rsync_hook_moves_directory() -> Result<()> {
    let Some(mut hosts) = Hosts::with("rsync", &["rsync"])? else {
        return Ok(());
    };
    let store = hosts.path("store").to_string_lossy().into_owned();
    hosts.variables.push(("WORKSPACE_STORE", store));
    hosts.moves(true)
}

#[test]
fn restic_hook_moves_directory() -> Result<()> {
    let Some(mut hosts) = Hosts::with("restic", &["restic"])? else {
        return Ok(());
    };
    let repository = hosts.path("repository").to_string_lossy().into_owned();
    hosts.variables.push(("RESTIC_REPOSITORY", repository));
    hosts.variables.push(("RESTIC_PASSWORD", "test".to_owned()));
    let init = Command::new("restic")
        .args(["init", "--quiet"])
        .envs(hosts.variables.iter().cloned())
        .status()?;
    ensure!(init.success());
    hosts.moves(false)
}
