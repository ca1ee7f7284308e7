//! `xtask startup`: what a start costs in memory, and the order of functions in the executable that keeps it low.
//!
//! The kernel maps file pages in blocks of 64 KiB around each page that is touched. Functions that a start runs are a tenth of the
//! program; scattered over it they make most of its text resident. `crates/pinion/startup-order.txt` lists patterns of their
//! sections, and `crates/pinion/build.rs` hands the list to the linker. `--write` records it again with callgrind, when the check
//! fails or says that the goal is missed. Linux only.

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
/// Resident and proportional memory of the agent process after the first `get_state` that are aimed at, in KiB.
const GOAL: Memory = Memory {
    resident: 12 * 1024,
    proportional: 8 * 1024,
};
/// The most that passes, in KiB. Kernels from 6.18 map larger parts of a file that came into memory by reading than of a file
/// that was just linked, which is 1.5 MiB. A program whose order is lost has 4 MiB more.
const MOST: Memory = Memory {
    resident: 14 * 1024,
    proportional: 12 * 1024,
};
/// Most bytes of functions that differ in the hash only, for them to be placed together.
const FAMILY_MAX: u64 = 4 * 1024;
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
                // Both belong to the list: a program whose functions are missing in it keeps half as much again resident.
                profiles.extend(["release", "dist"].map(str::to_owned));
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
    let fits = resident <= MOST.resident && proportional <= MOST.proportional;
    say(&format!(
        "after the first get_state, the agent process: {resident} KiB resident (goal {}, at most {}), {proportional} KiB \
         proportional (goal {}, at most {}); the executable has {:.1} MB",
        GOAL.resident,
        MOST.resident,
        GOAL.proportional,
        MOST.proportional,
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
        // A helper process may end before it is looked at.
        let Ok(more) = memory(process) else { continue };
        open.extend(children(process).unwrap_or_default());
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
        // Threads end while the list is read.
        let Ok(text) = std::fs::read_to_string(task?.path().join("children")) else {
            continue;
        };
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
    let mut patterns = Vec::new();
    let mut known = HashSet::new();
    for profile in profiles {
        let map = target.join(profile).join("pinion.map");
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
                &format!("link-arg=-Wl,-Map={}", map.display()),
            ])
            .status()?;
        if !built.success() {
            bail!("cargo could not build the profile {profile}");
        }
        let ran = record(&target.join(profile).join("pinion"))?;
        let map = std::fs::read_to_string(&map)?;
        let sections = Sections::read(&map);
        let mut functions = HashSet::new();
        for section in ran.into_iter().filter_map(|address| sections.at(address)) {
            if functions.insert(section) {
                let pattern = sections.pattern(section);
                if known.insert(pattern.clone()) {
                    patterns.push(pattern);
                }
            }
        }
        say(&format!(
            "{profile}: a start runs {} functions of the program",
            functions.len()
        ));
    }
    let path = root.join(ORDER);
    std::fs::write(&path, patterns.join("\n") + "\n")?;
    say(&format!(
        "{} patterns in {ORDER}; build again to use them",
        patterns.len()
    ));
    Ok(true)
}

/// Addresses of the instructions that run until the first `get_state` is answered, and at the end.
fn record(agent: &Path) -> Result<Vec<u64>> {
    let home = tempfile::tempdir()?;
    let profile = home.path().join("profile");
    let mut command = Command::new("valgrind");
    command
        .args(["--tool=callgrind", "--dump-instr=yes", "--compress-pos=no"])
        .arg(format!("--callgrind-out-file={}", profile.display()))
        .arg(agent);
    let mut running = Running::start(command, home.path()).context("cannot start valgrind")?;
    running.ask_state()?;
    running.end()?;
    Ok(addresses(&std::fs::read_to_string(&profile)?))
}

/// The addresses in callgrind's output: a line of costs begins with one
/// (<https://valgrind.org/docs/manual/cl-format.html>).
fn addresses(profile: &str) -> Vec<u64> {
    let of_line = |line: &str| {
        let (address, _) = line.strip_prefix("0x")?.split_once(' ')?;
        u64::from_str_radix(address, 16).ok()
    };
    profile.lines().filter_map(of_line).collect()
}

/// The functions of a linked program by the sections that they came in, from LLD's map of it.
#[derive(Default)]
struct Sections<'a> {
    /// Begin, end and name of each section without `.text.`, by address. Functions that were folded into one have one section.
    all: Vec<(u64, u64, &'a str)>,
    /// Bytes of all sections whose names differ in the hash only.
    sizes: BTreeMap<&'a str, u64>,
}

impl<'a> Sections<'a> {
    fn read(map: &'a str) -> Self {
        let mut sections = Self::default();
        for line in map.lines() {
            // Address, load address, size and alignment, then what lies there: for a section its file and, in brackets, its name.
            let Some(section) = line
                .rsplit_once(":(.text.")
                .and_then(|(_, name)| name.strip_suffix(')'))
            else {
                continue;
            };
            let mut columns = line
                .split_whitespace()
                .map(|column| u64::from_str_radix(column, 16));
            let (Some(Ok(begin)), Some(Ok(size))) = (columns.next(), columns.nth(1)) else {
                continue;
            };
            if size > 0 {
                sections.all.push((begin, begin + size, section));
                *sections.sizes.entry(without_hash(section)).or_default() += size;
            }
        }
        sections.all.sort_unstable();
        sections
    }

    /// The name of the section that contains an address.
    fn at(&self, address: u64) -> Option<&'a str> {
        let after = self.all.partition_point(|(begin, _, _)| *begin <= address);
        let (_, end, section) = self.all.get(after.checked_sub(1)?)?;
        (address < *end).then_some(*section)
    }

    /// A pattern of the name of a section. The hash in it depends on types, on versions and on the division of the program into
    /// parts; it is a part of the pattern only where many functions have the same name.
    fn pattern(&self, section: &str) -> String {
        let stem = without_hash(section);
        let size = self.sizes.get(stem).copied().unwrap_or_default();
        if size <= FAMILY_MAX {
            format!("{stem}*")
        } else {
            let end = (stem.len() + HASH).min(section.len());
            format!("{}*", section.get(..end).unwrap_or(section))
        }
    }
}

/// Characters of the hash at the end of a symbol, with the `E` behind it.
const HASH: usize = 17;

/// The name of a function up to its hash, or up to what the optimiser has added.
fn without_hash(section: &str) -> &str {
    let is_hash = |rest: &str| rest.bytes().take(HASH - 1).all(|byte| byte.is_ascii_hexdigit());
    match section.rfind("17h") {
        Some(at) if section.get(at + 3..).is_some_and(is_hash) => section.get(..at + 3).unwrap_or(section),
        _ => section.split(".llvm.").next().unwrap_or(section),
    }
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
    use super::{Sections, addresses, children, memory};

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
    fn addresses_of_profile_lead_to_patterns() {
        let profile = "ob=(2) /x/pinion\nfn=(2) first\n0x1004 1\n+3 9\ncalls=1 0\n0x2010 7\n0x9000 1\n";
        let map = "  VMA  LMA  Size Align Out     In      Symbol\n\
                   1000 1000 20 16         /x/a.o:(.text._ZN1a1b17h0123456789abcdefE.llvm.77)\n\
                   1000 1000 20 16                 a::b\n\
                   2000 2000 8001 16         /x/b.rlib(c.o):(.text._ZN1c1d17hfedcba9876543210E)\n\
                   b000 b000 0 16         /x/b.rlib(c.o):(.text._ZN1e1f17hfedcba9876543210E)\n\
                   b000 b000 4 16         /x/b.rlib(c.o):(.rodata.x)\n";
        assert_eq!(addresses(profile), [0x1004, 0x2010, 0x9000]);
        let sections = Sections::read(map);
        let patterns: Vec<_> = [0x1004, 0x2010, 0x1020, 0xb000]
            .map(|address| sections.at(address).map(|section| sections.pattern(section)))
            .into();
        let patterns: Vec<_> = patterns.iter().map(Option::as_deref).collect();
        // The second one has more bytes than are placed together without their hash.
        assert_eq!(
            patterns,
            [
                Some("_ZN1a1b17h*"),
                Some("_ZN1c1d17hfedcba9876543210E*"),
                None,
                None
            ]
        );
    }
}
