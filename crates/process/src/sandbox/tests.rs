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
