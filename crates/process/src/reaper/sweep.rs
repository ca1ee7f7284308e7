//! Ends process trees so that nothing can fork its way out: everything is stopped first, until a look finds nothing that runs,
//! and killed then. Linux only.
//!
//! Once SIGSTOP or SIGKILL is pending, the kernel completes no fork of that process. So when a look finds only processes that
//! were sent the signal already, there are no others. A process that forks and exits at once is no exception for its subreaper:
//! each of its descendants becomes the subreaper's child.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions};

use super::procfs::{self, Aim};
use crate::limits;

/// How the process `pid` ended: with an exit code, or by a signal.
pub(super) type OnEnd<'a> = &'a mut dyn FnMut(i32, Option<i32>, Option<i32>);

/// Kills what `aim` names among the descendants of `root`, at most for `limit`. Returns how many were left then.
///
/// `group` is a process group that belongs to the aim as a whole. With `ended`, children of this process that have ended are
/// reaped on the way.
pub(super) fn sweep(
    root: i32,
    aim: &Aim<'_>,
    group: Option<i32>,
    limit: Duration,
    mut ended: Option<OnEnd<'_>>,
) -> usize {
    let end = Instant::now() + limit;
    let mut pause = limits::KILL_PAUSE.0;
    let mut group = group.and_then(Pid::from_raw);
    loop {
        if let Some(group) = group {
            let _ = rustix::process::kill_process_group(group, Signal::STOP);
        }
        let stopped = freeze(root, aim, &mut ended);
        let mut found = kill(root, aim, &stopped);
        // Once only: a group's id may belong to another one later.
        if let Some(group) = group.take() {
            let _ = rustix::process::kill_process_group(group, Signal::KILL);
        }
        loop {
            if let Some(ended) = &mut ended {
                reap(*ended);
            }
            if found.left == 0 || Instant::now() >= end {
                return found.left;
            }
            // It was not stopped before and may have forked, so everything is stopped again.
            if found.has_new {
                break;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(limits::KILL_PAUSE.1);
            found = kill(root, aim, &stopped);
        }
    }
}

/// Ends every descendant of this process for good: its last work.
pub(super) fn end_all() {
    let me = rustix::process::getpid().as_raw_pid();
    let end = Instant::now() + limits::END_WAIT;
    let left = |now: Instant| end.saturating_duration_since(now);
    while sweep(me, &Aim::All, None, left(Instant::now()), Some(&mut |_, _, _| {})) == 0 {
        // The kernel's lists of children can miss one while others exit.
        if procfs::count_below(me) == 0 || left(Instant::now()).is_zero() {
            return;
        }
    }
}

/// Kills all processes with a marker of this agent. Needed after the processes that had started them were killed.
pub(super) fn end_marked(prefix: &[u8]) {
    let end = Instant::now() + limits::KILL_WAIT;
    let mut stopped = HashSet::new();
    while Instant::now() < end {
        let found = procfs::marked(prefix);
        if found.is_empty() {
            return;
        }
        let is_new = found.iter().fold(false, |new, pid| {
            send(*pid, Signal::STOP);
            stopped.insert(*pid) || new
        });
        if !is_new {
            found.iter().for_each(|pid| {
                send(*pid, Signal::KILL);
            });
            // What the next look finds has not been stopped.
            stopped.clear();
            std::thread::sleep(limits::KILL_PAUSE.0);
        }
    }
}

/// Stops the processes that `aim` takes, until a walk finds no new one. Returns the stopped ones.
fn freeze(root: i32, aim: &Aim<'_>, ended: &mut Option<OnEnd<'_>>) -> HashSet<i32> {
    let end = Instant::now() + limits::FREEZE_WAIT;
    let mut stopped = HashSet::new();
    loop {
        // A process that forks and exits leaves a dead child here with each round, and the list of children gets longer.
        if let Some(ended) = ended {
            reap(*ended);
        }
        let mut is_new = false;
        if matches!(aim, Aim::All) {
            // A process may live shorter than a look at its state takes. So children get the signal straight from the list.
            for pid in procfs::children(root) {
                if stopped.insert(pid) {
                    is_new = true;
                    send(pid, Signal::STOP);
                }
            }
        }
        // The walk reads more files, so it waits until the list shows no new child.
        let is_steady = is_new
            || procfs::walk(root, |process, below| {
                let taken = aim.takes(process, below, procfs::environ);
                if taken && stopped.insert(process.pid) {
                    is_new = true;
                    send(process.pid, Signal::STOP);
                }
                taken
            });
        if (is_steady && !is_new) || Instant::now() >= end {
            return stopped;
        }
    }
}

/// The processes that a look found.
struct Found {
    /// Processes that can be killed.
    left: usize,
    /// True if one of them was not stopped before.
    has_new: bool,
}

/// Sends SIGKILL to the processes that `aim` takes and to the stopped ones.
fn kill(root: i32, aim: &Aim<'_>, stopped: &HashSet<i32>) -> Found {
    let mut found = Found {
        left: 0,
        has_new: false,
    };
    let is_steady = procfs::walk(root, |process, below| {
        let is_known = stopped.contains(&process.pid);
        let taken = is_known || aim.takes(process, below, procfs::environ);
        // A program of another user (sudo) is out of reach; waiting for it would not help.
        if taken && send(process.pid, Signal::KILL) {
            found.left += 1;
            found.has_new |= !is_known;
        }
        taken
    });
    // What the walk may have missed counts as one process, so that the caller looks again.
    found.left += usize::from(!is_steady);
    found
}

/// False if the process belongs to another user.
fn send(pid: i32, signal: Signal) -> bool {
    let sent = Pid::from_raw(pid).map(|pid| rustix::process::kill_process(pid, signal));
    // A process that has gone counts as reached; the next look does not find it.
    !matches!(sent, Some(Err(Errno::PERM)))
}

/// Collects every child that has ended, adopted ones included.
pub(super) fn reap(ended: OnEnd<'_>) {
    while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
        ended(
            pid.as_raw_pid(),
            status.exit_status(),
            status.terminating_signal(),
        );
    }
}
