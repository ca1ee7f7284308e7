//! Lists processes and their descendants from `/proc`. Sends no signals. Linux only.
//!
//! Where the kernel offers `/proc/PID/task/TID/children`, only the tree is read. That is faster than a scan of all processes
//! by the ratio of the two numbers, which matters when processes fork faster than a scan takes.

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::Path;
use std::sync::OnceLock;

use super::frame::MARKER_NAME;

/// What a kill needs to know of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process {
    /// Its id.
    pub(crate) pid: i32,
    /// Its parent.
    pub(crate) parent: i32,
    /// Its process group.
    pub(crate) group: i32,
    /// Its session.
    pub(crate) session: i32,
    /// Dead, but not reaped yet.
    pub(crate) zombie: bool,
}

/// Which processes a kill is for.
#[derive(Debug)]
pub(crate) enum Aim<'a> {
    /// Every descendant.
    All,
    /// What belongs to one command: its first process (while that pid is its own), its group, session and marker, and the
    /// descendants of all these.
    Command {
        pid: Option<i32>,
        marker: &'a [u8],
        adopted: Option<Adopted<'a>>,
    },
}

/// For a command that has run alone: processes without any marker that became children of the guardian since it started can
/// only be its own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Adopted<'a> {
    /// The guardian.
    pub(crate) by: i32,
    /// The children it had before.
    pub(crate) before: &'a HashSet<i32>,
}

impl Aim<'_> {
    /// True if the process belongs to the aim. `below`: its parent does.
    pub(crate) fn takes(&self, process: &Process, below: bool, environ: impl Fn(i32) -> Vec<u8>) -> bool {
        match self {
            Self::All => true,
            Self::Command { pid, marker, adopted } => {
                if below
                    || pid.is_some_and(|pid| [process.pid, process.group, process.session].contains(&pid))
                {
                    return true;
                }
                // Read last: it costs reading a file for each process.
                let environ = environ(process.pid);
                let is_new = |adopted: &Adopted<'_>| {
                    process.parent == adopted.by && !adopted.before.contains(&process.pid)
                };
                has_entry(&environ, |entry| entry == *marker)
                    || adopted.as_ref().is_some_and(is_new)
                        && !has_entry(&environ, |entry| entry.starts_with(MARKER_NAME.as_bytes()))
            }
        }
    }
}

/// Calls `visit` for every descendant of `root` that is not a zombie, parents before their children. `visit` gets what it
/// returned for the parent (false for children of `root`). Returns false if a process disappeared on the way whose children
/// may have been missed.
pub(crate) fn walk(root: i32, mut visit: impl FnMut(&Process, bool) -> bool) -> bool {
    // Without lists of children in the kernel (CONFIG_PROC_CHILDREN), one scan of all processes stands in.
    let scan = (!lists_children()).then(processes);
    let children = |pid: i32| match &scan {
        Some(all) => all.iter().filter(|p| p.parent == pid).map(|p| p.pid).collect(),
        None => children(pid),
    };
    // A process can get another parent during the walk; each is visited once.
    let (mut seen, mut open) = (HashSet::new(), VecDeque::from([(root, false)]));
    let mut is_steady = true;
    while let Some((parent, taken)) = open.pop_front() {
        for pid in children(parent) {
            if !seen.insert(pid) {
                continue;
            }
            match stat(pid) {
                Some(process) if process.zombie => {}
                Some(process) => {
                    let taken = visit(&process, taken);
                    open.push_back((pid, taken));
                }
                // It ended between the list and the look, so its children have another parent now: walk again, unless
                // it was never ours.
                None => is_steady &= !(taken || parent == root),
            }
        }
    }
    is_steady
}

/// True if the kernel lists the children of a process.
fn lists_children() -> bool {
    static LISTS: OnceLock<bool> = OnceLock::new();
    *LISTS.get_or_init(|| Path::new("/proc/thread-self/children").exists())
}

/// The children of all threads of a process; empty where the kernel does not list them.
pub(crate) fn children(pid: i32) -> Vec<i32> {
    let mut found = Vec::new();
    // The kernel lists children by the thread that forked them.
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten()
    {
        let list = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        found.extend(list.split_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
    }
    found
}

/// All processes that are visible.
pub(crate) fn processes() -> Vec<Process> {
    let Ok(dir) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    dir.flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter_map(stat)
        .collect()
}

/// How many living descendants a scan of all processes finds.
pub(crate) fn count_below(root: i32) -> usize {
    let all = processes();
    let mut below: HashMap<i32, Vec<&Process>> = HashMap::new();
    for process in &all {
        below.entry(process.parent).or_default().push(process);
    }
    // Zombies are walked through, since their children may still live, but they do not count.
    let (mut seen, mut open, mut alive) = (HashSet::new(), vec![root], 0);
    while let Some(pid) = open.pop() {
        for process in below.get(&pid).into_iter().flatten() {
            if seen.insert(process.pid) {
                alive += usize::from(!process.zombie);
                open.push(process.pid);
            }
        }
    }
    alive
}

/// The living processes whose environment has an entry that starts with `prefix`, wherever they are.
pub(crate) fn marked(prefix: &[u8]) -> Vec<i32> {
    processes()
        .into_iter()
        .filter(|p| !p.zombie && has_entry(&environ(p.pid), |entry| entry.starts_with(prefix)))
        .map(|p| p.pid)
        .collect()
}

fn has_entry(environ: &[u8], fits: impl Fn(&[u8]) -> bool) -> bool {
    environ.split(|byte| *byte == 0).any(fits)
}

fn stat(pid: i32) -> Option<Process> {
    parse_stat(pid, &lossy(Path::new(&format!("/proc/{pid}/stat")))?)
}

/// A file with the name of a process in it. Names are any bytes, and the kernel cuts them after 15, also within a character.
fn lossy(path: &Path) -> Option<String> {
    let bytes = std::fs::read(path).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns what `read` finds in the directory of a process, or in that of its second thread. A first thread that has ended has neither
/// memory nor environment any more, and stays the first one of the list.
fn of_threads<T>(process: &Path, read: impl Fn(&Path) -> Option<T>) -> Option<T> {
    read(process).or_else(|| {
        let mut threads = std::fs::read_dir(process.join("task")).ok()?.flatten();
        read(&threads.nth(1)?.path())
    })
}

/// Parses `/proc/<pid>/stat`. The name in parentheses may hold anything, so the fields count from the last one.
fn parse_stat(pid: i32, stat: &str) -> Option<Process> {
    // A program chooses its name and could otherwise pass itself off as dead or as a child of another process.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let state = fields.next()?;
    let mut number = || fields.next()?.parse::<i32>().ok();
    let (parent, group, session) = (number()?, number()?, number()?);
    // A process whose first thread has ended counts as dead here, although its other threads live (proc_pid_stat(5), `num_threads`).
    let threads: i32 = fields.nth(13).and_then(|field| field.parse().ok()).unwrap_or(1);
    Some(Process {
        pid,
        parent,
        group,
        session,
        zombie: matches!(state, "Z" | "X" | "x") && threads < 2,
    })
}

/// Bytes of memory that a process holds; none when it is gone.
pub(crate) fn resident(pid: u32) -> Option<u64> {
    of_threads(Path::new(&format!("/proc/{pid}")), |dir| {
        let status = lossy(&dir.join("status"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().ok()?;
        Some(kilobytes << 10)
    })
}

/// The environment a process was started with; empty when it may not be read.
pub(crate) fn environ(pid: i32) -> Vec<u8> {
    let found = of_threads(Path::new(&format!("/proc/{pid}")), |dir| {
        let environ = std::fs::read(dir.join("environ")).ok()?;
        (!environ.is_empty()).then_some(environ)
    });
    found.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn p(pid: i32, parent: i32, group: i32) -> Process {
        Process {
            pid,
            parent,
            group,
            session: group,
            zombie: false,
        }
    }

    #[test]
    fn proc_stat_with_hostile_name_is_parsed() {
        let p = parse_stat(5, "5 (a) Z 9 (b)) S 4 3 2 0 -1").unwrap();
        assert_eq!((p.parent, p.group, p.session, p.zombie), (4, 3, 2, false));
        assert!(parse_stat(5, "5 (x) Z 4 3 2").unwrap().zombie);
        assert!(parse_stat(5, "").is_none());
    }

    #[test]
    fn kill_targets_match_command_descendants() {
        let environ = |pid| {
            if pid == 22 {
                b"A=1\0M=x\0".to_vec()
            } else {
                b"M=xy\0".to_vec()
            }
        };
        let takes = |pid, process: &Process, below| {
            let aim = Aim::Command {
                pid,
                marker: b"M=x",
                adopted: None,
            };
            aim.takes(process, below, environ)
        };
        assert!(takes(Some(20), &p(20, 10, 20), false), "its first process");
        assert!(takes(Some(20), &p(21, 20, 20), false), "its group");
        assert!(takes(Some(20), &p(23, 20, 23), true), "a child of one of its own");
        assert!(takes(None, &p(22, 10, 22), false), "its marker");
        assert!(!takes(Some(20), &p(30, 10, 30), false), "another command");
        assert!(
            !takes(None, &p(20, 10, 20), false),
            "a pid that is not its own any more"
        );
        assert!(Aim::All.takes(&p(30, 10, 30), false, environ));
        let before = HashSet::from([30]);
        let alone = |pid, parent| {
            let adopted = Some(Adopted {
                by: 10,
                before: &before,
            });
            let aim = Aim::Command {
                pid: Some(20),
                marker: b"M=x",
                adopted,
            };
            aim.takes(&p(pid, parent, pid), false, |pid| match pid {
                32 => b"PINION_COMMAND_ID=other-1\0".to_vec(),
                _ => Vec::new(),
            })
        };
        assert!(alone(31, 10), "adopted while it ran alone");
        assert!(!alone(30, 10), "adopted before");
        assert!(!alone(32, 10), "with the marker of another command");
        assert!(!alone(33, 30), "a child of one that was there before");
    }

    #[test]
    fn process_walk_finds_children() {
        let mut child = std::process::Command::new("sh")
            .args(["-c", "sleep 1000 & wait"])
            .spawn()
            .unwrap();
        let me = i32::try_from(std::process::id()).unwrap();
        let first = i32::try_from(child.id()).unwrap();
        let start = std::time::Instant::now();
        let mut found = Vec::new();
        while found.len() < 2 && start.elapsed().as_secs() < 20 {
            found.clear();
            walk(me, |p, below| {
                let taken = below || p.pid == first;
                if taken {
                    found.push(p.pid);
                }
                taken
            });
        }
        assert_eq!(found.first(), Some(&first));
        assert_eq!(found.len(), 2);
        assert_eq!(count_below(first), 1);
        for pid in found.iter().rev() {
            let pid = rustix::process::Pid::from_raw(*pid).unwrap();
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        child.wait().unwrap();
    }

    #[test]
    fn process_list_contains_own_process() {
        let me = i32::try_from(std::process::id()).unwrap();
        assert!(processes().iter().any(|p| p.pid == me && !p.zombie));
    }
    #[test]
    fn cut_or_odd_stat_lines_are_no_process() {
        for stat in ["5 (sh) S", "5 (sh) S 4 3", "5 (sh) S a b c", "5 sh S 4 3 2"] {
            assert_eq!(parse_stat(5, stat), None, "{stat}");
        }
        assert!(parse_stat(5, "5 (x) X 4 3 2").unwrap().zombie, "dead");
        assert!(!parse_stat(5, "5 (x) T 4 3 2").unwrap().zombie, "stopped");
    }

    #[test]
    fn process_without_its_first_thread_is_alive() {
        // As in Linux 6.18, for a process whose first thread has called exit(2).
        let stat = |threads| format!("5 (x) Z 4 3 2 0 -1 4227084 1985 0 0 0 2 0 0 0 20 0 {threads} 0 48512");
        assert!(!parse_stat(5, &stat(2)).unwrap().zombie);
        assert!(parse_stat(5, &stat(1)).unwrap().zombie);
    }

    #[test]
    fn process_with_cut_name_is_seen() {
        use std::os::unix::ffi::OsStrExt as _;
        use std::os::unix::process::CommandExt as _;
        let dir = tempfile::tempdir().unwrap();
        // Eight letters of two bytes, of which the kernel keeps seven and a half.
        let program = dir
            .path()
            .join("\u{43f}\u{440}\u{43e}\u{432}\u{435}\u{440}\u{43a}\u{430}");
        std::os::unix::fs::symlink("/bin/sh", &program).unwrap();
        let mut command = std::process::Command::new(&program);
        command.arg0("sh").args(["-c", "read line"]);
        let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let cut = program.file_name().unwrap().as_bytes()[..15].to_vec();
        // The kernel sets the name after it has told the parent that the program runs.
        let start = std::time::Instant::now();
        while std::fs::read(format!("/proc/{pid}/comm"))
            .unwrap()
            .trim_ascii_end()
            != cut
        {
            assert!(start.elapsed().as_secs() < 20);
        }
        let me = i32::try_from(std::process::id()).unwrap();
        assert_eq!(stat(pid).map(|process| process.parent), Some(me));
        assert!(resident(child.id()).is_some());
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn environment_entries_are_compared_as_a_whole() {
        let environ = b"A=1\0MARK=x-12\0EMPTY=\0";
        assert!(has_entry(environ, |entry| entry == b"MARK=x-12"));
        assert!(!has_entry(environ, |entry| entry == b"MARK=x-1"));
        assert!(!has_entry(b"", |entry| entry.starts_with(b"MARK")));
    }

    #[test]
    fn own_memory_is_known_and_others_not() {
        assert!(resident(std::process::id()).unwrap() > 1 << 20);
        assert_eq!(resident(u32::MAX), None);
        assert!(environ(i32::MAX).is_empty() && children(i32::MAX).is_empty());
    }
}
