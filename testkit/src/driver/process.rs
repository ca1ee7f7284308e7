//! Signals, and finding the processes an agent left behind. Talking to the agent is `agent`'s work.

use std::collections::BTreeSet;
use std::thread;
use std::time::Instant;

pub use rustix::process::Signal;
use rustix::process::{Pid, kill_process, kill_process_group};

use crate::limits::{POLL, REAP_GRACE};

/// Name of the environment variable that marks an agent's descendants.
pub(super) const MARK: &str = "TESTKIT_AGENT";

/// Makes the next program start with default dispositions of SIGHUP, SIGINT, SIGQUIT and SIGTERM, also when this process
/// inherited them as ignored: a shell without job control starts background commands that way, `nohup` likewise. An ignored
/// signal stays ignored across `exec`; a handled one returns to its default. So each ignored one gets a handler that does
/// nothing. Signals that are not ignored keep their effect on this process (Ctrl-C still ends the tests). Linux only.
pub(super) fn reset_ignored_signals() {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    static RESET: std::sync::Once = std::sync::Once::new();
    RESET.call_once(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let ignored = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        for number in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
            if ignored.is_some_and(|mask| mask & (1 << (number - 1)) != 0) {
                let never_read = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
                let _registered = signal_hook::flag::register(number, never_read);
            }
        }
    });
}

/// Sends a signal to one process; failure means it is gone.
pub(super) fn signal(pid: u32, signal: Signal) -> bool {
    to_pid(pid).is_some_and(|pid| kill_process(pid, signal).is_ok())
}

/// Kills a process group; failure means it is gone.
pub(super) fn kill_group(pid: u32) -> bool {
    to_pid(pid).is_some_and(|pid| kill_process_group(pid, Signal::KILL).is_ok())
}

/// Kills every process with the mark and waits until they are gone, at most [`REAP_GRACE`]. In rounds, since a process
/// can start another before it dies, and since a killed process takes a moment to disappear.
pub(super) fn kill_marked(mark: &str) {
    let end = Instant::now() + REAP_GRACE;
    loop {
        let found = processes_marked(mark);
        for pid in &found {
            signal(*pid, Signal::KILL);
        }
        if found.is_empty() || Instant::now() >= end {
            return;
        }
        thread::sleep(POLL);
    }
}

/// Ids of the living processes (zombies left out) whose environment holds the mark `mark`, see
/// [`super::Agent::mark`]. Empty where there is no `/proc`.
#[must_use]
pub fn processes_marked(mark: &str) -> BTreeSet<u32> {
    let wanted = format!("{MARK}={mark}");
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return BTreeSet::new();
    };
    let pids = entries
        .flatten()
        .filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ.split(|b| *b == 0).any(|var| var == wanted.as_bytes()) && !is_zombie(*pid)
    })
    .collect()
}

fn is_zombie(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The state follows the name, which stands in brackets and may itself hold any character.
    stat.rsplit_once(')')
        .is_none_or(|(_, rest)| rest.trim_start().starts_with(['Z', 'X']))
}

fn to_pid(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}
