//! Policies: what holds where; and that nothing is done where the kernel has nothing to offer.

use std::path::{Path, PathBuf};

use wire::state::SandboxMode;

use super::policy::{Access, Policy};
use super::{Aim, Sandbox, file_tool, hint};

struct Place {
    dir: tempfile::TempDir,
    sandbox: Sandbox,
}

impl Place {
    fn new(mode: SandboxMode) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["cwd/.git/hooks", "agent/skills", "temp", "other/deep"] {
            std::fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        let sandbox = Sandbox::new(mode, &dir.path().join("agent"));
        Self { dir, sandbox }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    fn policy(&self) -> Policy {
        Policy::of(&self.sandbox, &self.at("cwd"), &self.at("temp"))
    }

    /// What holds at each of the names: `w`, `r` or `-`.
    fn access(&self, names: &[&str]) -> String {
        let policy = self.policy();
        let letter = |name: &&str| match policy.access(&self.at(name)) {
            Access::Write => 'w',
            Access::Read => 'r',
            Access::None => '-',
        };
        names.iter().map(letter).collect()
    }
}

const NAMES: [&str; 12] = [
    "cwd/a",
    "cwd/.gitx",
    "cwd/.git/index",
    "cwd/.git/hooks/a",
    "cwd/.git/config",
    "cwd/.pi/a",
    "cwd/.mcp.json",
    "temp/a",
    "other/a",
    "agent/auth.json",
    "agent/skills/a",
    "/etc/passwd",
];

#[test]
fn longest_sandbox_path_decides() {
    let mut place = Place::new(SandboxMode::WorkspaceWrite);
    assert_eq!(place.access(&NAMES), "wwrrrrrwr-rr");
    std::fs::write(place.at("cwd/.git/config"), "").unwrap();
    place.sandbox.git_writable = true;
    assert_eq!(place.access(&NAMES), "wwwrrrrwr-rr");
    place.sandbox.writable = vec![place.at("other"), place.at("agent"), place.at("cwd/.pi")];
    place.sandbox.deny_read = vec![place.at("other/deep"), place.at("agent/skills")];
    assert_eq!(place.access(&NAMES), "wwwrrwrww--r");
    assert_eq!(place.access(&["other/deep/a", "other/.pi"]), "-r");
    assert_eq!(
        place.access(&["cwd/mcp.json", "cwd/.omp/a", "cwd/.xcsh/a"]),
        "rrr"
    );
    place.sandbox.mode = SandboxMode::ReadOnly;
    assert_eq!(place.access(&NAMES), "rrrrrrrwr--r");
}

#[test]
fn linked_git_directory_stays_closed() {
    let mut place = Place::new(SandboxMode::WorkspaceWrite);
    std::fs::rename(place.at("cwd/.git"), place.at("other/git")).unwrap();
    std::os::unix::fs::symlink(place.at("other/git"), place.at("cwd/.git")).unwrap();
    place.sandbox.git_writable = true;
    assert_eq!(place.access(&["cwd/.git", "other/git/hooks"]), "rr");
}

#[test]
fn readable_list_limits_reading() {
    let mut place = Place::new(SandboxMode::ReadOnly);
    place.sandbox.readable = Some(vec![place.at("other")]);
    assert_eq!(place.access(&NAMES), "rrrrrrrwr-rr");
    place.sandbox.readable = Some(Vec::new());
    assert_eq!(place.access(&["other/a", "cwd/a", "/home/x", "/dev/sda"]), "-r--");
}

#[test]
fn sandbox_paths_are_resolved_before_judging() {
    let mut place = Place::new(SandboxMode::WorkspaceWrite);
    std::os::unix::fs::symlink(place.at("other"), place.at("cwd/link")).unwrap();
    std::os::unix::fs::symlink(place.at("other"), place.at("cwd/.pi")).unwrap();
    place.sandbox.writable = vec![place.at("cwd/link")];
    place.sandbox.deny_read = vec![place.at("cwd/link/deep")];
    assert_eq!(place.access(&["other/deep/a", "cwd/.pi"]), "-r");
}

#[test]
fn project_links_protect_targets_without_granting_access() {
    let mut place = Place::new(SandboxMode::WorkspaceWrite);
    for dir in ["cwd/.pi/hooks", "cwd/scripts", "cwd/closed", "cwd/code"] {
        std::fs::create_dir_all(place.at(dir)).unwrap();
    }
    let link = |target: &str, name: &str| {
        std::os::unix::fs::symlink(place.at(target), place.at(name)).unwrap();
    };
    link("cwd/scripts", "cwd/.pi/hooks/linked");
    link("cwd/closed/a", "cwd/.pi/hooks/closed");
    link("other", "cwd/.pi/hooks/outside");
    link("cwd/code", "cwd/.omp");
    std::fs::write(place.at("cwd/closed/a"), "").unwrap();
    place.sandbox.readable = Some(Vec::new());
    place.sandbox.deny_read = vec![place.at("cwd/closed")];
    place.sandbox.code = vec![place.at("cwd/server.py"), place.at("cwd")];
    std::fs::write(place.at("cwd/server.py"), "").unwrap();
    let names = ["cwd/scripts/x", "cwd/code/x", "cwd/server.py", "cwd/a"];
    assert_eq!(place.access(&names), "rrrw");
    assert_eq!(place.access(&["cwd/closed/a", "other/a"]), "--");
    // Who names a place means it.
    place.sandbox.writable = vec![place.at("cwd/server.py")];
    assert_eq!(place.access(&["cwd/server.py"]), "w");
}

#[test]
fn partly_forbidden_directory_is_granted_per_child() {
    let place = Place::new(SandboxMode::WorkspaceWrite);
    std::fs::create_dir(place.at("cwd/src")).unwrap();
    std::os::unix::fs::symlink(place.at("other"), place.at("cwd/link")).unwrap();
    let policy = place.policy();
    let mut writable = policy.grants(Access::Write);
    writable.sort();
    assert_eq!(writable, [place.at("cwd/src"), place.at("temp")]);
    let readable = policy.grants(Access::Read);
    let covers = |path: PathBuf| readable.iter().any(|zone| path.starts_with(zone));
    assert!(covers(place.at("cwd/.git/hooks")) && covers(place.at("agent/skills/x")));
    assert!(!covers(place.at("agent/auth.json")) && !covers("/dev/sda".into()));
}

#[test]
fn sandbox_hint_follows_permission_errors() {
    use hint::Outcome::{Failed, Succeeded, TimedOut};
    let mut place = Place::new(SandboxMode::WorkspaceWrite);
    let policy = place.policy();
    for (said, outcome, is_hinted) in [
        ("touch: cannot touch '/x': Read-only file system", Failed, true),
        ("bash: /x: Permission denied", Failed, true),
        ("curl: (6) Could not resolve host: example.org", Failed, true),
        ("connect ECONNREFUSED 127.0.0.1:8080", Failed, true),
        ("assertion failed", Failed, false),
        ("", Failed, false),
        ("", TimedOut, true),
        ("bash: /x: Permission denied\n0 lines", Succeeded, true),
        ("curl: (6) Could not resolve host: example.org\n", Succeeded, true),
        (
            "docs: what to do when permission denied appears",
            Succeeded,
            false,
        ),
        ("", Succeeded, false),
    ] {
        let text = hint::hint(&policy, said, outcome);
        let text = text.unwrap_or_default();
        assert_eq!(
            text.starts_with("[Commands run in a sandbox."),
            is_hinted,
            "{said} {outcome:?}"
        );
        assert!(!is_hinted || text.contains("sandbox.writable"), "{text}");
    }
    let network = hint::hint(&policy, "connection refused", Failed).unwrap();
    assert!(network.contains("setting sandbox.network"), "{network}");
    let long = format!("permission denied{}", "\u{e9}".repeat(40_000));
    assert_eq!(hint::hint(&policy, &long, Failed), None);
    assert!(hint::rules(&policy).contains("have no network access"));
    place.sandbox.network = true;
    let policy = place.policy();
    for (said, outcome) in [("connection refused", Failed), ("", TimedOut)] {
        assert_eq!(hint::hint(&policy, said, outcome), None);
    }
    assert!(hint::rules(&policy).contains("have network access"));
}

/// A thread for which the kernel has no Landlock, as far as it can tell.
#[cfg(target_os = "linux")]
fn in_an_old_kernel<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch};
    let calls = [
        libc::SYS_landlock_create_ruleset,
        libc::SYS_landlock_restrict_self,
    ];
    let filter = SeccompFilter::new(
        calls.into_iter().map(|call| (call, Vec::new())).collect(),
        SeccompAction::Allow,
        SeccompAction::Errno(libc::ENOSYS.cast_unsigned()),
        TargetArch::try_from(std::env::consts::ARCH).unwrap(),
    );
    let program: BpfProgram = filter.unwrap().try_into().unwrap();
    std::thread::scope(|threads| {
        let thread = threads.spawn(|| {
            seccompiler::apply_filter(&program).unwrap();
            work()
        });
        thread.join().unwrap()
    })
}

#[cfg(target_os = "linux")]
#[test]
fn sandbox_without_kernel_support_refuses_everything() {
    let place = Place::new(SandboxMode::WorkspaceWrite);
    let policy = place.policy();
    std::fs::write(place.at("cwd/a"), "as it was").unwrap();
    for (aim, name) in [(Aim::Read, "cwd/a"), (Aim::Edit, "cwd/a"), (Aim::Write, "cwd/a")] {
        let done = in_an_old_kernel(|| {
            file_tool(Some(&policy), aim, &place.at(name), || {
                Ok::<_, String>("it was done".to_owned())
            })
        });
        let error = done.unwrap_err();
        assert!(
            error.starts_with("The sandbox could not be set up, so nothing was run"),
            "{error}"
        );
    }
    let reach = super::landlock::Reach::All {
        policy: &policy,
        is_shaped: false,
    };
    assert!(in_an_old_kernel(|| super::landlock::confine(&reach)).is_err());
    assert_eq!(in_an_old_kernel(super::landlock::version), 0);
}

#[cfg(target_os = "linux")]
#[test]
fn landlocked_thread_is_confined_and_next_is_not() {
    if std::thread::spawn(super::landlock::version).join().unwrap() == 0 {
        // Not `eprintln!`: the harness hides what a passing test prints.
        let line = b"skipped: this kernel has no Landlock\n";
        std::io::Write::write_all(&mut std::io::stderr(), line).unwrap();
        return;
    }
    let place = Place::new(SandboxMode::WorkspaceWrite);
    let policy = place.policy();
    let (file, beside) = (place.at("cwd/file"), place.at("cwd/beside"));
    std::fs::write(&beside, "x").unwrap();
    let write = |path: &Path| std::fs::write(path, "y").map_err(|error| error.to_string());
    // Even what the policy would allow is closed to a call that is about something else.
    let done = file_tool(Some(&policy), Aim::Write, &file, || {
        write(&file).map(|()| write(&beside).is_err() && std::fs::read(&beside).is_err())
    });
    assert_eq!(done, Ok(true));
    let done = file_tool(Some(&policy), Aim::Read, &beside, || {
        Ok::<_, String>(std::fs::read(&beside).is_ok() && write(&beside).is_err())
    });
    assert_eq!(done, Ok(true));
    assert_eq!(write(&beside), Ok(()));
}

#[test]
fn made_code_directories_are_read_only() {
    let place = Place::new(SandboxMode::WorkspaceWrite);
    let policy = place.policy();
    let mut made: Vec<&Path> = policy.made().collect();
    made.sort_unstable();
    assert!(!made.contains(&place.at("cwd/.git").as_path()), "{made:?}");
    for path in &made {
        assert_eq!(policy.access(path), Access::Read, "{}", path.display());
    }
    let read_only = Place::new(SandboxMode::ReadOnly);
    assert_eq!(read_only.policy().made().count(), 0);
}

#[test]
fn named_place_opens_what_is_usually_protected() {
    let mut place = Place::new(SandboxMode::WorkspaceWrite);
    std::fs::create_dir_all(place.at("cwd/.pi")).unwrap();
    assert_eq!(place.access(&["cwd/.pi/a"]), "r");
    place.sandbox.writable = vec![place.at("cwd/.pi")];
    assert_eq!(place.access(&["cwd/.pi/a", "cwd/.git/index"]), "wr");
}

#[test]
fn denied_path_wins_over_writable_one() {
    let mut place = Place::new(SandboxMode::WorkspaceWrite);
    place.sandbox.deny_read = vec![place.at("other")];
    place.sandbox.writable = vec![place.at("other"), place.at("other/deep")];
    assert_eq!(
        place.access(&["other/a", "other/deep/a"]),
        "-w",
        "the longer path decides"
    );
}

#[test]
fn closed_place_replaces_what_was_said_of_it() {
    let place = Place::new(SandboxMode::WorkspaceWrite);
    let closed = place.policy().without(&place.at("temp"));
    assert_eq!(closed.access(&place.at("temp/a")), Access::None);
    assert_eq!(closed.access(&place.at("cwd/a")), Access::Write);
    let zones = closed.zones();
    assert!(
        zones.is_sorted_by(|a, b| a.path < b.path),
        "each path once, in order"
    );
}

#[test]
fn uncovered_policy_keeps_devices_closed() {
    let place = Place::new(SandboxMode::WorkspaceWrite);
    let uncovered = place.policy().uncovered();
    assert_eq!(uncovered.access("/dev/sda".as_ref()), Access::None);
    assert_eq!(uncovered.access(&place.at("agent/auth.json")), Access::Read);
    assert_eq!(uncovered.access(&place.at("cwd/a")), Access::Write);
}

#[test]
fn confined_command_loses_ways_to_outside() {
    let mut place = Place::new(SandboxMode::WorkspaceWrite);
    let names = |place: &Place| -> Vec<String> {
        let env = ["TMPDIR", "SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "HOME"];
        let spec = crate::reaper::SpawnSpec {
            program: "/bin/true".into(),
            args: vec!["x".into()],
            env: env.map(|name| (name.into(), "old".into())).to_vec(),
            cwd: "/".into(),
        };
        let confined = place
            .sandbox
            .confine(spec, &place.policy(), Path::new("/own"))
            .unwrap();
        assert_eq!(confined.args[0], super::SANDBOX_ARG);
        assert_eq!(confined.args[2..], ["/bin/true", "x"]);
        let entry = |(name, value): &(std::ffi::OsString, std::ffi::OsString)| {
            format!("{}={}", name.display(), value.display())
        };
        confined.env.iter().map(entry).collect()
    };
    assert_eq!(names(&place), ["HOME=old", "TMPDIR=/own"]);
    place.sandbox.unix_sockets = true;
    assert_eq!(
        names(&place),
        [
            "SSH_AUTH_SOCK=old",
            "DBUS_SESSION_BUS_ADDRESS=old",
            "HOME=old",
            "TMPDIR=/own"
        ]
    );
}

#[test]
fn refusal_names_writable_places_only_for_writes() {
    let place = Place::new(SandboxMode::WorkspaceWrite);
    let policy = place.policy();
    let read = hint::refused(&policy, Path::new("/secret"), Access::Read);
    assert!(
        read.contains("/secret") && !read.contains("Writing is allowed"),
        "{read}"
    );
    let write = hint::refused(&policy, Path::new("/secret"), Access::Write);
    assert!(write.contains(&place.at("cwd").display().to_string()), "{write}");
}

#[test]
fn temporary_directory_of_guard_ends_with_it() {
    let place = Place::new(SandboxMode::WorkspaceWrite);
    let guard = super::Guard::new(place.sandbox.clone(), &place.at("temp"));
    let count = || std::fs::read_dir(place.at("temp")).unwrap().count();
    assert_eq!(count(), 0, "nothing was needed yet");
    guard.policy(&place.at("cwd")).unwrap();
    guard.policy(&place.at("other")).unwrap();
    assert_eq!(count(), 1, "one directory for all calls");
    drop(guard);
    assert_eq!(count(), 0);
}

#[test]
fn removed_temporary_directory_is_replaced() {
    let place = Place::new(SandboxMode::WorkspaceWrite);
    let guard = super::Guard::new(place.sandbox.clone(), &place.at("temp"));
    let made = || {
        let mut entries = std::fs::read_dir(place.at("temp")).unwrap();
        entries.next().map(|entry| entry.unwrap().path())
    };
    guard.policy(&place.at("cwd")).unwrap();
    std::fs::remove_dir(made().unwrap()).unwrap();
    let policy = guard.policy(&place.at("cwd")).unwrap();
    assert_eq!(policy.access(&made().unwrap()), Access::Write);
}

#[test]
fn missing_temporary_directory_is_tried_again() {
    let place = Place::new(SandboxMode::WorkspaceWrite);
    let guard = super::Guard::new(place.sandbox.clone(), &place.at("temp/late"));
    guard.policy(&place.at("cwd")).unwrap_err();
    std::fs::create_dir(place.at("temp/late")).unwrap();
    let policy = guard.policy(&place.at("cwd")).unwrap();
    let own = std::fs::read_dir(place.at("temp/late"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    assert_eq!(policy.access(&own.path()), Access::Write);
}

#[test]
fn file_outside_the_sandbox_is_refused_unread() {
    let place = Place::new(SandboxMode::WorkspaceWrite);
    let policy = place.policy();
    let check = |aim, name: &str| super::check_file(Some(&policy), aim, &place.at(name));
    assert_eq!(check(Aim::Read, "other/a"), Ok(()));
    assert!(check(Aim::Edit, "other/a").is_err() && check(Aim::Write, "other/a").is_err());
    assert!(check(Aim::Read, "agent/auth.json").is_err());
    let proc = super::check_file(Some(&policy), Aim::Read, Path::new("/proc/self/environ"));
    assert!(proc.is_err(), "the process has secrets there");
    assert_eq!(
        super::check_file(None, Aim::Write, Path::new("/etc/passwd")),
        Ok(())
    );
}
