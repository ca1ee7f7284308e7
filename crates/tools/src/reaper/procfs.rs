//! Looks through `/proc` for the processes a kill has to reach. Sends no signals. Linux only.

use std::collections::{HashMap, HashSet};

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
    /// Everything below the guardian.
    All,
    /// What belongs to one command: its first process (while that pid is its own), group, session and marker.
    Command { pid: Option<i32>, marker: &'a [u8] },
}

/// All processes that are visible.
pub(crate) fn processes() -> Vec<Process> {
    let Ok(dir) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    dir.flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter_map(|pid| parse_stat(pid, &std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?))
        .collect()
}

/// Parses `/proc/<pid>/stat`. The name in parentheses may hold anything, so the fields count from the last one.
fn parse_stat(pid: i32, stat: &str) -> Option<Process> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let state = fields.next()?;
    let mut number = || fields.next()?.parse::<i32>().ok();
    let (parent, group, session) = (number()?, number()?, number()?);
    Some(Process {
        pid,
        parent,
        group,
        session,
        zombie: matches!(state, "Z" | "X" | "x"),
    })
}

/// The living descendants of `root` that `aim` is for.
pub(crate) fn targets(
    all: &[Process],
    root: i32,
    aim: &Aim<'_>,
    environ: impl Fn(i32) -> Vec<u8>,
) -> Vec<i32> {
    let below = descendants(all, root);
    let alive = all.iter().filter(|p| below.contains(&p.pid) && !p.zombie);
    match *aim {
        Aim::All => alive.map(|p| p.pid).collect(),
        Aim::Command { pid, marker } => {
            let under = pid.map(|pid| descendants(all, pid)).unwrap_or_default();
            let own = |p: &&Process| {
                pid.is_some_and(|pid| p.pid == pid || p.group == pid || p.session == pid)
                    || under.contains(&p.pid)
                    || environ(p.pid)
                        .split(|byte| *byte == 0)
                        .any(|entry| entry == marker)
            };
            alive.filter(own).map(|p| p.pid).collect()
        }
    }
}

fn descendants(all: &[Process], root: i32) -> HashSet<i32> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for p in all {
        children.entry(p.parent).or_default().push(p.pid);
    }
    let (mut found, mut open) = (HashSet::new(), vec![root]);
    while let Some(pid) = open.pop() {
        for child in children.get(&pid).into_iter().flatten() {
            if found.insert(*child) {
                open.push(*child);
            }
        }
    }
    found
}

/// The environment a process was started with; empty when it may not be read.
pub(crate) fn environ(pid: i32) -> Vec<u8> {
    std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default()
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
    fn stat_with_a_hostile_name() {
        let p = parse_stat(5, "5 (a) Z 9 (b)) S 4 3 2 0 -1").unwrap();
        assert_eq!((p.parent, p.group, p.session, p.zombie), (4, 3, 2, false));
        assert!(parse_stat(5, "5 (x) Z 4 3 2").unwrap().zombie);
        assert!(parse_stat(5, "").is_none());
    }

    #[test]
    fn aims() {
        // Guardian 10 with command 20 (child 21, escaped 22), command 30, and a stranger 40.
        let all = [
            p(10, 1, 10),
            p(20, 10, 20),
            p(21, 20, 20),
            p(22, 10, 22),
            p(30, 10, 30),
            p(40, 1, 40),
        ];
        let environ = |pid| {
            if matches!(pid, 20..=22 | 40) {
                b"A=1\0M=x\0".to_vec()
            } else {
                b"M=xy\0".to_vec()
            }
        };
        let aim = |pid| Aim::Command { pid, marker: b"M=x" };
        assert_eq!(targets(&all, 10, &aim(Some(20)), environ), [20, 21, 22]);
        assert_eq!(targets(&all, 10, &aim(None), environ), [20, 21, 22]);
        assert_eq!(targets(&all, 10, &aim(Some(30)), |_| Vec::new()), [30]);
        assert_eq!(targets(&all, 10, &Aim::All, environ), [20, 21, 22, 30]);
    }

    #[test]
    fn we_see_ourselves() {
        let me = i32::try_from(std::process::id()).unwrap();
        assert!(processes().iter().any(|p| p.pid == me && !p.zombie));
    }
}
