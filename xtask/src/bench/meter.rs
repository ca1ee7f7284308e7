//! CPU and memory of a process and its descendants, from `/proc`. Linux only; elsewhere everything reads as zero.

use std::collections::BTreeMap;
use std::path::Path;

/// How CPU is counted, for the head of the table.
pub(super) const METHOD: &str = "CPU: user + system of the agent, its helper processes and the children they waited for. Living processes: \
     /proc/PID/task/*/schedstat (ns; /proc/PID/stat where threads have ended); waited-for children: cutime + cstime of \
     /proc/PID/stat (10 ms steps). Memory: VmRSS and VmHWM of /proc/PID/status, reset before each measurement. MB are 10^6 bytes.";

/// Length of a clock tick in `/proc/PID/stat`, ns: 100 a second on every architecture Linux still gets new machines for.
const TICK_NS: u64 = 10_000_000;

/// What a process tree has used up to now, and what it holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// CPU in ns, children that were waited for included.
    pub(crate) cpu: u64,
    /// The part of it that children used that were waited for.
    pub(crate) children: u64,
    /// Resident memory of the program itself, bytes.
    pub(crate) resident: u64,
    /// Resident memory of all processes of the tree, bytes; pages they share count more than once.
    pub(crate) resident_all: u64,
    /// The most that each of these processes ever held, summed, bytes.
    pub(crate) peak_all: u64,
}

/// Reads the usage of a process tree.
pub(crate) fn usage(root: u32) -> Usage {
    let mut total = Usage::default();
    for pid in tree(root) {
        let Some(stat) = Stat::read(pid) else { continue };
        let resident = status(pid, "VmRSS:");
        total.cpu += stat.own.max(scheduled(pid)) + stat.children;
        total.children += stat.children;
        total.resident_all += resident;
        total.peak_all += status(pid, "VmHWM:");
        if pid == root {
            total.resident = resident;
        }
    }
    total
}

/// Resident memory of one process, bytes.
pub(super) fn resident(pid: u32) -> u64 {
    status(pid, "VmRSS:")
}

/// Returns true if the process runs. A zombie does not.
pub(super) fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit_once(')')
        .and_then(|(_, rest)| rest.split_ascii_whitespace().next());
    state.is_some_and(|state| !matches!(state, "Z" | "X"))
}

/// Starts the peaks of a process tree anew.
pub(super) fn reset_peaks(root: u32) {
    for pid in tree(root) {
        // A process that has just ended has no peak any more.
        let _gone = std::fs::write(format!("/proc/{pid}/clear_refs"), "5");
    }
}

/// The process and its living descendants.
pub(crate) fn tree(root: u32) -> Vec<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let pid = entry.file_name().to_str().and_then(|name| name.parse().ok());
        if let Some((pid, stat)) = pid.and_then(|pid| Some((pid, Stat::read(pid)?))) {
            children.entry(stat.parent).or_default().push(pid);
        }
    }
    let mut found = vec![root];
    let mut at = 0;
    while let Some(pid) = found.get(at) {
        found.extend(children.remove(pid).unwrap_or_default());
        at += 1;
    }
    found
}

/// The numbers of `/proc/PID/stat` that matter here; times in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) parent: u32,
    pub(super) own: u64,
    pub(crate) children: u64,
}

impl Stat {
    fn read(pid: u32) -> Option<Self> {
        Self::parse(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// From the file's text. The name, second of its words, stands in brackets and may hold any character.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (_, rest) = text.rsplit_once(')')?;
        let words: Vec<&str> = rest.split_ascii_whitespace().collect();
        let ticks = |at: usize| words.get(at)?.parse::<u64>().ok();
        Some(Self {
            parent: words.get(1)?.parse().ok()?,
            own: (ticks(11)? + ticks(12)?) * TICK_NS,
            children: (ticks(13)? + ticks(14)?) * TICK_NS,
        })
    }
}

/// Time all living threads of a process ran, ns.
fn scheduled(pid: u32) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten();
    tasks.filter_map(|task| ran(&task.path().join("schedstat"))).sum()
}

fn ran(schedstat: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(schedstat).ok()?;
    text.split_ascii_whitespace().next()?.parse().ok()
}

/// A size of `/proc/PID/status`, bytes.
fn status(pid: u32, key: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let kib = text.lines().find_map(|line| {
        line.strip_prefix(key)?
            .trim()
            .strip_suffix(" kB")?
            .parse::<u64>()
            .ok()
    });
    kib.unwrap_or(0) * 1024
}
