//! The corpus and the generator are honest: what the installed bash does with their lines.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{ATTACKS, Generator, PROGRAM, is_refused, lines, policy, rule};

/// A directory in which the program leaves a mark.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let bin = dir.path().join("bin");
        std::fs::create_dir(&bin).unwrap();
        let program = bin.join(PROGRAM);
        let text = format!("#!/bin/sh\n: > '{}/marker'\n", dir.path().display());
        std::fs::write(&program, text).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        Self(dir)
    }

    /// True if bash runs the program.
    fn runs(&self, line: &str) -> bool {
        let dir = self.0.path();
        let mut child = Command::new("setsid")
            .args(["bash", "-c", line])
            .current_dir(dir)
            .env_clear()
            .env(
                "PATH",
                format!("{}/bin:/usr/bin:/bin:/usr/sbin:/sbin", dir.display()),
            )
            .env("HOME", dir)
            .env("MARKER", dir.join("marker"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let start = Instant::now();
        let marker = dir.join("marker");
        // A generated line may wait for ever.
        while !marker.exists()
            && child.try_wait().unwrap().is_none()
            && start.elapsed() < Duration::from_secs(5)
        {
            std::thread::sleep(Duration::from_millis(2));
        }
        let ran = (0..200).any(|_| {
            let is_there = marker.exists();
            if !is_there {
                std::thread::sleep(Duration::from_millis(2));
            }
            is_there
        });
        // Some lines wait or repeat themselves, and would keep a processor busy for as long as they like.
        let group = rustix::process::Pid::from_child(&child);
        let _none_left = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        child.wait().unwrap();
        ran
    }
}

/// Major version of the installed bash, if it can be used here.
fn has_bash() -> bool {
    let output = Command::new("bash")
        .args(["-c", "echo ${BASH_VERSINFO[0]}"])
        .output();
    let version = output
        .ok()
        .and_then(|output| String::from_utf8(output.stdout).ok());
    let is_new = version
        .and_then(|version| version.trim().parse::<u32>().ok())
        .is_some_and(|version| version >= 5);
    let has_setsid = Command::new("setsid")
        .arg("true")
        .status()
        .is_ok_and(|status| status.success());
    if !(is_new && has_setsid) {
        // Not `println!`: the harness hides what a passing test prints.
        let line = b"skipped: bash 5 and setsid are not installed\n";
        std::io::Write::write_all(&mut std::io::stderr(), line).unwrap();
    }
    is_new && has_setsid
}

/// The corpus is honest: the installed bash runs the program. Lines that need other programs are not run here.
#[test]
fn attacks_run_the_program_in_bash() {
    if !has_bash() {
        return;
    }
    let groups = [
        "plain sight",
        "letters",
        "places where text runs",
        "here-documents",
        "text that is calculated",
        "plain sight, again",
        "lists and texts that are calculated",
        "letters and variables",
    ];
    let mut idle = Vec::new();
    let mut count = 0;
    for line in lines(ATTACKS) {
        if groups.contains(&line.group) && line.needs.is_none() {
            count += 1;
            // On a busy machine a program in the background can be later than the wait for it.
            if !(0..3).any(|_| Place::new().runs(&line.text)) {
                idle.push(line.text);
            }
        }
    }
    // Versions of bash differ in a few of them.
    assert!(
        idle.len() * 50 <= count,
        "{} of {count}:\n{}",
        idle.len(),
        idle.join("\n")
    );
}

/// What the generator makes is honest as well, and nothing that bash runs is let through.
#[test]
fn generated_lines_are_judged_like_bash() {
    if !has_bash() {
        return;
    }
    let policy = policy("auto", &[], &[], &rule());
    let is_run = &|seed: u64| {
        let line = Generator(seed * 7 + 1).line(4);
        let runs = Place::new().runs(&line);
        assert!(!runs || is_refused(&policy, &line), "seed {seed}: {line}");
        runs
    };
    // A line that does not run the program costs a wait.
    let ran: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|first| {
                scope.spawn(move || (first..150_u64).step_by(4).filter(|seed| is_run(*seed)).count())
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert!(ran >= 100, "{ran} of 150");
}
