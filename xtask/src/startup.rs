//! `xtask startup`: what a start costs in memory, and the order of functions in the executable that keeps it low.
//!
//! The kernel maps file pages in blocks of 64 KiB around each page that is touched. Functions that a start runs are a tenth of the
//! program; scattered over it they make most of its text resident. `crates/pinion/startup-order.txt` lists their symbols, and
//! `crates/pinion/build.rs` hands the list to the linker. `--write` records it again with callgrind: after a change of the
//! toolchain or of dependencies, or when the check fails. Linux only.

use std::collections::{BTreeMap, HashSet};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::args::Args;
use crate::out::say;

/// The list, from the root of the repository.
const ORDER: &str = "crates/pinion/startup-order.txt";
/// Most resident memory of the agent process after the first `get_state`, in KiB.
const MAX_RESIDENT: u64 = 12 * 1024;
/// Proportional memory at the same moment that is aimed at, in KiB.
const GOAL_PROPORTIONAL: u64 = 8 * 1024;
/// Most proportional memory at the same moment, in KiB. Kernels from 6.18 map larger parts of a file that came into memory by
/// reading than of a file that was just linked, which is 1.5 MiB; a program whose order is lost has 4 MiB more.
const MAX_PROPORTIONAL: u64 = 10 * 1024;
/// Starts that are measured; the median counts.
const STARTS: usize = 5;
/// How long a start under callgrind may take until it answers.
const SLOW_START: Duration = Duration::from_secs(60);

/// What to do.
#[derive(Debug, Clone)]
pub enum Options {
    /// Measure a program and compare with the limits.
    Check {
        /// The program.
        agent: PathBuf,
    },
    /// Build the profile with symbols and record the list.
    Write {
        /// Cargo profiles whose programs are recorded: symbols differ between them.
        profiles: Vec<String>,
    },
}

impl Options {
    /// Reads the command line: `--agent PATH`, or `--write [PROFILE...]`.
    ///
    /// # Errors
    /// When neither is given.
    pub fn parse(args: &mut Args) -> Result<Self> {
        if args.flag("--write") {
            let mut profiles = Vec::new();
            while let Some(profile) = args.next() {
                profiles.push(profile);
            }
            if profiles.is_empty() {
                profiles.push("release".to_owned());
            }
            return Ok(Self::Write { profiles });
        }
        Ok(Self::Check {
            agent: args.required("--agent")?,
        })
    }
}

/// Measures or records; false when a limit is missed.
///
/// # Errors
/// When the program cannot be built, started or read.
pub fn run(root: &Path, options: &Options) -> Result<bool> {
    match options {
        Options::Check { agent } => check(agent),
        Options::Write { profiles } => write(root, profiles),
    }
}

fn check(agent: &Path) -> Result<bool> {
    let agent = agent
        .canonicalize()
        .with_context(|| format!("cannot find {}", agent.display()))?;
    let mut starts = (0..STARTS).map(|_| measure(&agent)).collect::<Result<Vec<_>>>()?;
    starts.sort_unstable_by_key(|start| (start.agent, start.tree));
    let Start { agent: alone, tree } = starts.get(STARTS / 2).copied().unwrap_or_default();
    let (resident, proportional) = (alone.resident, alone.proportional);
    let size = std::fs::metadata(&agent)?.len();
    let fits = resident <= MAX_RESIDENT && proportional <= MAX_PROPORTIONAL;
    say(&format!(
        "after the first get_state, the agent process: {resident} KiB resident (at most {MAX_RESIDENT}), {proportional} KiB \
         proportional (goal {GOAL_PROPORTIONAL}, at most {MAX_PROPORTIONAL}); the executable has {:.1} MB",
        size as f64 / 1e6
    ));
    say(&format!(
        "with its guardian processes: {} KiB resident, {} KiB proportional",
        tree.resident, tree.proportional
    ));
    if !fits {
        say("too much: record the order of functions again with `cargo xtask startup --write`");
    }
    Ok(fits)
}

/// Memory in KiB.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Memory {
    resident: u64,
    proportional: u64,
}

/// Memory after the first `get_state`.
#[derive(Debug, Clone, Copy, Default)]
struct Start {
    /// The agent process alone.
    agent: Memory,
    /// The agent process and its descendants: the guardian and its supervisors.
    tree: Memory,
}

/// Starts an agent and measures it after the first `get_state`.
fn measure(agent: &Path) -> Result<Start> {
    let home = tempfile::tempdir()?;
    let mut command = Command::new(agent);
    // Without it, only root can read its memory map.
    command.env("PINION_DEBUGGABLE", "1");
    let mut running = Running::start(command, home.path())?;
    running.ask_state()?;
    let alone = memory(running.0.id())?;
    let mut tree = alone;
    let mut open = children(running.0.id())?;
    while let Some(process) = open.pop() {
        open.extend(children(process)?);
        let more = memory(process)?;
        tree.resident += more.resident;
        tree.proportional += more.proportional;
    }
    Ok(Start { agent: alone, tree })
}

/// Child processes of a process.
fn children(process: u32) -> Result<Vec<u32>> {
    let mut out = Vec::new();
    let tasks =
        std::fs::read_dir(format!("/proc/{process}/task")).context("cannot list the agent's threads")?;
    for task in tasks {
        let text = std::fs::read_to_string(task?.path().join("children"))?;
        out.extend(text.split_whitespace().filter_map(|id| id.parse::<u32>().ok()));
    }
    Ok(out)
}

/// Memory of one process.
fn memory(process: u32) -> Result<Memory> {
    let text = std::fs::read_to_string(format!("/proc/{process}/smaps_rollup"))
        .with_context(|| format!("cannot read the memory of process {process}"))?;
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok())
            .with_context(|| format!("{name} is missing"))
    };
    Ok(Memory {
        resident: field("Rss:")?,
        proportional: field("Pss:")?,
    })
}

fn write(root: &Path, profiles: &[String]) -> Result<bool> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let mut symbols = Vec::new();
    let mut known = HashSet::new();
    for profile in profiles {
        let built = Command::new("cargo")
            .current_dir(root)
            .args([
                "rustc",
                "--profile",
                profile,
                "-p",
                "pinion",
                "--bin",
                "pinion",
                "--",
                "-C",
                "strip=none",
            ])
            .status()?;
        if !built.success() {
            bail!("cargo could not build the profile {profile}");
        }
        let found = record(&target.join(profile).join("pinion"))?;
        say(&format!(
            "{profile}: a start runs {} functions of the program",
            found.len()
        ));
        symbols.extend(found.into_iter().filter(|symbol| known.insert(symbol.clone())));
    }
    let path = root.join(ORDER);
    std::fs::write(&path, symbols.join("\n") + "\n")?;
    say(&format!(
        "{} symbols in {ORDER}; build again to use them",
        symbols.len()
    ));
    Ok(true)
}

/// Symbols of the functions that run until the first `get_state` is answered, in the order of the profile.
fn record(agent: &Path) -> Result<Vec<String>> {
    let home = tempfile::tempdir()?;
    let profile = home.path().join("profile");
    let mut command = Command::new("valgrind");
    command
        .args(["--tool=callgrind", "--demangle=no"])
        .arg(format!("--callgrind-out-file={}", profile.display()))
        .arg(agent);
    let mut running = Running::start(command, home.path()).context("cannot start valgrind")?;
    running.ask_state()?;
    running.end()?;
    Ok(functions(&std::fs::read_to_string(&profile)?))
}

/// Names of the functions of the object called `pinion` in callgrind's output, where a name is written out once and is a number
/// from then on (<https://valgrind.org/docs/manual/cl-format.html>).
fn functions(profile: &str) -> Vec<String> {
    let (mut objects, mut names) = (BTreeMap::new(), BTreeMap::new());
    let (mut is_ours, mut found, mut known) = (false, Vec::new(), HashSet::new());
    for line in profile.lines() {
        let Some((key, value)) = line.split_once('=') else {
            continue;
        };
        let Some((number, name)) = value.split_once(')') else {
            continue;
        };
        let name = name.trim();
        match key {
            "ob" | "cob" => {
                if !name.is_empty() {
                    objects.insert(number, name.ends_with("/pinion"));
                }
                if key == "ob" {
                    is_ours = objects.get(number).copied().unwrap_or(false);
                }
            }
            "fn" | "cfn" => {
                if !name.is_empty() {
                    names.insert(number, name);
                }
                // An apostrophe and a number mark levels of recursion.
                let symbol = names.get(number).and_then(|name| name.split('\'').next());
                // Code without a symbol has an address or a description in its place.
                let is_named = |symbol: &str| !symbol.starts_with("0x") && !symbol.starts_with('(');
                let symbol = symbol.filter(|symbol| key == "fn" && is_ours && is_named(symbol));
                if let Some(symbol) = symbol.filter(|symbol| known.insert(*symbol)) {
                    found.push(symbol.to_owned());
                }
            }
            _ => {}
        }
    }
    found
}

/// A started agent; killed when dropped.
struct Running(Child);

impl Running {
    fn start(mut command: Command, home: &Path) -> Result<Self> {
        let child = command
            .args(["--mode", "rpc"])
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", home)
            .current_dir(home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start the agent")?;
        Ok(Self(child))
    }

    /// Sends `get_state` and reads to its response.
    fn ask_state(&mut self) -> Result<()> {
        let input = self.0.stdin.as_mut().context("no stdin")?;
        input.write_all(b"{\"id\":\"1\",\"type\":\"get_state\"}\n")?;
        input.flush()?;
        let output = self.0.stdout.as_mut().context("no stdout")?;
        for line in BufReader::new(output).lines() {
            if line?.contains("\"response\"") {
                return Ok(());
            }
        }
        bail!("the agent ended before it answered")
    }

    /// Closes stdin and waits for the end.
    fn end(mut self) -> Result<()> {
        drop(self.0.stdin.take());
        let end = std::time::Instant::now() + SLOW_START;
        while self.0.try_wait()?.is_none() {
            if std::time::Instant::now() > end {
                bail!("the agent did not end within {} s", SLOW_START.as_secs());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _reaped = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::{children, functions, memory};

    #[test]
    fn child_processes_are_found_and_measured() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let found = children(std::process::id()).unwrap();
        let read = memory(child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(found.contains(&child.id()), "{found:?}");
        assert!(read.unwrap().resident > 0);
    }

    #[test]
    fn profile_functions_are_listed_once_in_order() {
        let profile = "version: 1\nob=(1) /lib/libc.so.6\nfn=(1) malloc\n0 5\nob=(2) /x/target/release/pinion\nfn=(2) first\ncfn=(3) \
                       second'2\ncalls=1 0\n0 7\nfn=(3)\n0 1\nob=(1)\nfn=(4) free\ncob=(2)\ncfn=(5) third\nob=(2)\nfn=(2)\nfn=(5)\n\
                       fn=(6) 0x0000000000c849a0\n0 1\nfn=(7) (below main)\n0 1\n";
        assert_eq!(functions(profile), ["first", "second", "third"]);
    }
}
