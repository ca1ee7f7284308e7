//! Nothing is left behind: kill, dropped child, end of the agent, `kill -9` of the agent and of the guardian, with children that
//! detach themselves in every way (GUARANTEES.md 7).
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a failing helper is meant to stop its test")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use pinion_process::{Ended, GuardianLaunch, Reaper, SpawnSpec};

/// A wait that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// Long enough that only a kill ends it; the number finds our own processes again.
struct Mark(String);

impl Mark {
    fn new() -> Self {
        Self(format!("{}.{}", 900_000 + std::process::id() % 90_000, fresh()))
    }

    /// A command with children in the group, in another session, and orphaned by a double fork.
    fn family(&self) -> String {
        let sleep = format!("sleep {}", self.0);
        format!(
            "{sleep} & setsid {sleep} & (setsid -f {sleep}); (setsid {sleep} &) ; env -i setsid {sleep} & sh -c 'trap \"\" TERM HUP INT; {sleep} & wait' & wait"
        )
    }

    fn alive(&self) -> usize {
        let wanted = format!("sleep\0{}\0", self.0).into_bytes();
        processes()
            .filter(|dir| std::fs::read(dir.join("cmdline")).is_ok_and(|line| line == wanted))
            .count()
    }

    /// As [`Self::wait_for`], while the runtime goes on.
    async fn becomes(&self, count: impl Fn(usize) -> bool) {
        let start = Instant::now();
        while !count(self.alive()) {
            assert!(start.elapsed() < PATIENCE, "{} processes are alive", self.alive());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    fn wait_for(&self, count: impl Fn(usize) -> bool) {
        let start = Instant::now();
        while !count(self.alive()) {
            assert!(start.elapsed() < PATIENCE, "{} processes are alive", self.alive());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// All gone, and staying so.
    fn gone(&self) {
        self.wait_for(|alive| alive == 0);
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(self.alive(), 0);
    }
}

/// A program that leaves its session, and whose first thread ends: the kernel then reports it as dead. Afterwards it writes its process
/// id to `file`.
fn headless(file: &Path) -> String {
    const PROGRAM: &str = r#"import ctypes, os, platform, sys, threading, time
def rest():
    while open("/proc/self/stat").read().rsplit(")", 1)[1].split()[0] != "Z":
        time.sleep(0.01)
    open(sys.argv[1], "w").write("%d\n" % os.getpid())
    time.sleep(1000)
threading.Thread(target=rest).start()
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[platform.machine()], 0)"#;
    let file = file.display();
    format!("(setsid python3 -c '{PROGRAM}' {file} >/dev/null 2>&1 &); sleep 1000")
}

/// The process id that a program writes to a file.
fn written(file: &Path) -> u32 {
    let start = Instant::now();
    loop {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        if let Some(pid) = text.strip_suffix('\n') {
            return pid.parse().unwrap();
        }
        assert!(start.elapsed() < PATIENCE, "{text}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until a process has no thread but its first one, which is dead.
fn wait_for_headless_end(pid: u32) {
    let threads = || std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
    let start = Instant::now();
    while threads() > 1 {
        assert!(start.elapsed() < PATIENCE, "{pid} is alive");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn fresh() -> u32 {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(1);
    NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}

fn processes() -> impl Iterator<Item = PathBuf> {
    let is_pid = |path: &PathBuf| {
        path.file_name()
            .unwrap()
            .to_str()
            .is_some_and(|n| n.parse::<u32>().is_ok())
    };
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .map(|entry| entry.path())
        .filter(is_pid)
}

/// The example that stands for the agent's binary; cargo builds it along with the tests.
fn probe() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let path = tests
        .parent()
        .and_then(Path::parent)
        .unwrap()
        .join("examples/reaper_probe");
    assert!(
        path.exists(),
        "{} is missing: run the tests with the examples",
        path.display()
    );
    path
}

fn reaper() -> Reaper {
    Reaper::new(GuardianLaunch {
        program: probe(),
        args: vec!["__guardian".into()],
    })
}

fn shell(command: &str) -> SpawnSpec {
    SpawnSpec {
        program: "/bin/sh".into(),
        args: vec!["-c".into(), command.into()],
        env: vec![("PATH".into(), std::env::var_os("PATH").unwrap())],
        cwd: "/".into(),
    }
}

/// What a child writes until no process holds its output any more.
async fn heard(mut output: impl tokio::io::AsyncRead + Unpin) -> String {
    use tokio::io::AsyncReadExt as _;
    let mut text = String::new();
    output.read_to_string(&mut text).await.unwrap();
    text
}

/// Runs a command to its end.
async fn run(reaper: &Reaper, command: &str) -> (String, Ended) {
    let (mut child, output) = reaper.spawn(shell(command)).await.unwrap();
    let ended = child.ended().await;
    (heard(output).await, ended)
}

#[tokio::test]
async fn kill_leaves_no_process() {
    let (reaper, mark) = (reaper(), Mark::new());
    let command = format!("echo started; {}", mark.family());
    let (mut child, output) = reaper.spawn(shell(&command)).await.unwrap();
    mark.becomes(|alive| alive >= 6).await;
    child.kill().await.unwrap();
    assert_eq!(child.ended().await, Ended::Signal(9));
    assert_eq!(heard(output).await, "started\n");
    mark.gone();
}

#[tokio::test]
async fn dropped_child_is_killed() {
    let (reaper, mark) = (reaper(), Mark::new());
    let child = reaper.spawn(shell(&mark.family())).await.unwrap();
    mark.becomes(|alive| alive >= 6).await;
    drop(child);
    mark.becomes(|alive| alive == 0).await;
    mark.gone();
}

#[tokio::test]
async fn process_without_first_thread_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pid");
    let reaper = reaper();
    let (mut child, _output) = reaper.spawn(shell(&headless(&file))).await.unwrap();
    let pid = written(&file);
    child.kill().await.unwrap();
    wait_for_headless_end(pid);
}

#[tokio::test]
async fn background_children_live_until_agent_ends() {
    let (reaper, mark) = (reaper(), Mark::new());
    let background = format!(
        "sleep {0} >&- 2>&- & setsid -f sleep {0} >&- 2>&-; echo bg",
        mark.0
    );
    assert_eq!(
        run(&reaper, &background).await,
        ("bg\n".to_owned(), Ended::Code(0))
    );
    mark.wait_for(|alive| alive == 2);
    let guardian = reaper.guardian_pid().await.unwrap();
    reaper.shutdown().await;
    mark.gone();
    assert!(!Path::new(&format!("/proc/{guardian}")).exists());
    // And it goes on with a new guardian.
    assert_eq!(run(&reaper, "echo again").await.0, "again\n");
}

struct Agent(Child);

impl Agent {
    fn start(command: &str) -> Self {
        Self(
            Command::new(probe())
                .args(["run", command])
                .stdin(Stdio::piped())
                .spawn()
                .unwrap(),
        )
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn kill_9_of_agent_leaves_no_process() {
    for _ in 0..5 {
        let mark = Mark::new();
        let mut agent = Agent::start(&mark.family());
        mark.wait_for(|alive| alive >= 6);
        agent.0.kill().unwrap();
        mark.gone();
    }
}

#[test]
fn agent_exit_leaves_no_process() {
    let mark = Mark::new();
    let mut agent = Agent::start(&mark.family());
    mark.wait_for(|alive| alive >= 6);
    drop(agent.0.stdin.take());
    agent.0.wait().unwrap();
    mark.gone();
}

#[test]
fn process_without_first_thread_ends_with_agent() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pid");
    let mut agent = Agent::start(&headless(&file));
    let pid = written(&file);
    agent.0.kill().unwrap();
    wait_for_headless_end(pid);
}

#[tokio::test]
async fn killed_guardian_fails_call_and_is_replaced() {
    let (reaper, mark) = (reaper(), Mark::new());
    let (mut child, _output) = reaper.spawn(shell(&format!("sleep {}", mark.0))).await.unwrap();
    mark.becomes(|alive| alive >= 1).await;
    let guardian = reaper.guardian_pid().await.unwrap().to_string();
    Command::new("kill").args(["-9", &guardian]).status().unwrap();
    assert_eq!(child.ended().await, Ended::Lost);
    mark.gone();
    assert_eq!(run(&reaper, "echo again").await.0, "again\n");
}

#[tokio::test]
async fn guardian_ignores_polite_signals() {
    let reaper = reaper();
    run(&reaper, "true").await;
    let guardian = reaper.guardian_pid().await.unwrap().to_string();
    for signal in ["-INT", "-TERM", "-HUP", "-QUIT"] {
        Command::new("kill").args([signal, &guardian]).status().unwrap();
    }
    // Commands do not inherit the ignored signals.
    assert_eq!(run(&reaper, "kill -TERM $$").await.1, Ended::Signal(15));
    assert_eq!(reaper.guardian_pid().await.unwrap().to_string(), guardian);
}

#[tokio::test]
async fn commands_leave_no_zombies() {
    let reaper = reaper();
    for _ in 0..200 {
        assert_eq!(run(&reaper, "(true &) ; true").await.1, Ended::Code(0));
    }
    let guardian = reaper.guardian_pid().await.unwrap();
    let children = || {
        let parent = format!(" {guardian} ");
        let is_child = |dir: &PathBuf| {
            let stat = std::fs::read_to_string(dir.join("stat")).unwrap_or_default();
            stat.rsplit_once(')')
                .is_some_and(|(_, rest)| rest.get(2..).is_some_and(|r| r.starts_with(&parent)))
        };
        processes().filter(is_child).count()
    };
    let start = Instant::now();
    while children() > 0 {
        assert!(start.elapsed() < PATIENCE, "{} children left", children());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let fds = std::fs::read_dir(format!("/proc/{guardian}/fd")).unwrap().count();
    assert!(fds < 20, "{fds} descriptors are open in the guardian");
}

#[tokio::test]
async fn program_that_cannot_start_is_an_error() {
    let unusable = SpawnSpec {
        program: "/etc/passwd".into(),
        ..shell("true")
    };
    let error = reaper().spawn(unusable).await.unwrap_err().to_string();
    assert!(error.starts_with("Failed to start /etc/passwd: "), "{error}");
    let nul = SpawnSpec {
        args: vec!["-c".into(), "echo \0".into()],
        ..shell("true")
    };
    let error = reaper().spawn(nul).await.unwrap_err().to_string();
    assert!(
        error.starts_with("Failed to start /bin/sh: Invalid argument"),
        "{error}"
    );
    let missing = Reaper::new(GuardianLaunch {
        program: "/no/such/guardian".into(),
        args: Vec::new(),
    });
    let error = missing.spawn(shell("true")).await.unwrap_err().to_string();
    assert!(
        error.starts_with("The process guardian is not available: "),
        "{error}"
    );
}

#[tokio::test]
async fn piped_child_has_separate_streams() {
    use tokio::io::AsyncWriteExt as _;
    for reaper in [reaper(), Reaper::direct()] {
        let command = "while read line; do echo \"got $line\"; echo \"odd $line\" >&2; done; echo over";
        let (mut child, mut pipes) = reaper.spawn_piped(shell(command)).await.unwrap();
        pipes.input.write_all(b"one\ntwo\n").await.unwrap();
        drop(pipes.input);
        assert_eq!(heard(pipes.output).await, "got one\ngot two\nover\n");
        assert_eq!(heard(pipes.errors).await, "odd one\nodd two\n");
        assert_eq!(child.ended().await, Ended::Code(0));
    }
}

#[tokio::test]
async fn killed_piped_child_takes_descendants_along() {
    for reaper in [reaper(), Reaper::direct()] {
        let (mut child, pipes) = reaper
            .spawn_piped(shell("sleep 1000 & echo up; wait"))
            .await
            .unwrap();
        child.kill().await.unwrap();
        // The pipe ends when no process holds it any more, not even the sleeper.
        let said = tokio::time::timeout(PATIENCE, heard(pipes.output)).await;
        assert!(said.is_ok());
        assert!(matches!(child.ended().await, Ended::Signal(9) | Ended::Lost));
    }
}
