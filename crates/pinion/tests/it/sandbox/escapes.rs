//! The table of escapes (`escapes.txt`): each is tried without a sandbox, where it must work, and in one, where it must not.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::json;
use testkit::llm::Reply;

use super::{ends, offered};
use crate::kit::{PROGRAM, Pi, World, bash, files_below, skipped};

/// Rows tried with one prompt.
const AT_ONCE: usize = 20;
/// Between the agent and a command are processes of its own, whose command line says so.
const FIND_AGENT: &str = "export APID=$PPID; while tr '\\0' '\\n' < /proc/$APID/cmdline | grep -qx __guardian; do \
                          APID=$(cut -d' ' -f4 /proc/$APID/stat); done";
/// Calls that make a segment of shared memory, a set of semaphores and a message queue with a key.
const MAKE_SHARED: [&[&str]; 3] = [
    &["29", "KEY", "4096", "0o1600"],
    &["64", "KEY", "1", "0o1600"],
    &["68", "KEY", "0o1600"],
];

struct Row {
    name: &'static str,
    flags: &'static str,
    command: &'static str,
}

fn rows() -> Vec<Row> {
    let table = include_str!("escapes.txt");
    let rows = table.split("\n## ").skip(1);
    rows.map(|row| {
        let (head, command) = row.split_once('\n').unwrap();
        let (name, flags) = head.split_once(" [").unwrap_or((head, ""));
        Row { name, flags, command }
    })
    .collect()
}

/// What the attempts are aimed at; gone with this.
struct Targets {
    world: World,
    victims: Vec<Child>,
    shared: PathBuf,
    /// The key of its System V objects.
    ipc: String,
    env: BTreeMap<&'static str, OsString>,
    _servers: (TcpListener, UdpSocket, UnixListener, UnixListener, UnixDatagram),
}

impl Drop for Targets {
    fn drop(&mut self) {
        for victim in &mut self.victims {
            let _ = victim.kill();
            let _ = victim.wait();
        }
        let _ = std::fs::remove_file(&self.shared);
        for kind in ["-M", "-S", "-Q"] {
            let _ = Command::new("ipcrm").args([kind, &self.ipc]).status();
        }
    }
}

/// Makes System V objects that nothing else has; returns their key.
fn make_shared(name: &str, script: &Path) -> String {
    let name = name.bytes().fold(0_u32, |sum, byte| sum + u32::from(byte));
    let ipc = format!(
        "{:#x}",
        0x5000_0000 + (std::process::id() << 12) % 0x1000_0000 + name
    );
    for call in MAKE_SHARED {
        let words = call.iter().map(|word| word.replace("KEY", &ipc));
        let made = Command::new(python()).arg(script).args(words).status();
        assert!(made.unwrap().success());
    }
    ipc
}

impl Targets {
    fn new(name: &str) -> Self {
        let world = World::new([]);
        let root = world.dir.root().to_path_buf();
        let out = root.join("outside");
        std::fs::create_dir_all(out.join("empty")).unwrap();
        for n in 0..8 {
            std::fs::write(out.join(format!("file{n}")), "as it was").unwrap();
        }
        let home = world.dir.home();
        for dir in [home.join(".ssh"), home.join("other")] {
            std::fs::create_dir_all(dir).unwrap();
        }
        for secret in [
            home.join(".ssh/id"),
            home.join(".netrc"),
            root.join("open"),
            world.dir.agent_dir().join("auth.json"),
        ] {
            std::fs::write(secret, r#"{"key": {"type": "api_key", "key": "SECRET"}}"#).unwrap();
        }
        std::fs::write(root.join("syscall.py"), include_str!("syscall.py")).unwrap();
        let ipc = make_shared(name, &root.join("syscall.py"));
        let git = Command::new("git")
            .args(["init", "-q"])
            .current_dir(world.dir.cwd())
            .status();
        assert!(git.unwrap().success());
        let shared = PathBuf::from(format!("/dev/shm/pinion-{}-{name}", std::process::id()));
        std::fs::write(&shared, "SECRET").unwrap();
        let victims: Vec<Child> = (0..3).map(|_| victim()).collect();
        let abstract_name = format!("pinion-{}-{name}", std::process::id());
        let address = SocketAddr::from_abstract_name(&abstract_name).unwrap();
        let servers = (
            TcpListener::bind("127.0.0.1:0").unwrap(),
            UdpSocket::bind("127.0.0.1:0").unwrap(),
            UnixListener::bind(root.join("sock")).unwrap(),
            UnixListener::bind_addr(&address).unwrap(),
            UnixDatagram::bind(root.join("dsock")).unwrap(),
        );
        let port = |port: u16| port.to_string().into();
        let mut env: BTreeMap<&'static str, OsString> = BTreeMap::from([
            ("OUT", out.into()),
            ("AGENT", world.dir.agent_dir().into()),
            ("OLDTMP", world.dir.tmp().into()),
            ("PORT", port(servers.0.local_addr().unwrap().port())),
            ("UPORT", port(servers.1.local_addr().unwrap().port())),
            ("SOCK", root.join("sock").into()),
            ("DSOCK", root.join("dsock").into()),
            ("ABSTRACT", abstract_name.into()),
            ("SHARED", shared.file_name().unwrap().into()),
            ("SYS", root.join("syscall.py").into()),
            ("PY", python()),
            ("IPC", ipc.clone().into()),
            ("OPENED", root.join("open").into()),
            ("SSH_AUTH_SOCK", root.join("sock").into()),
        ]);
        for (name, victim) in ["V1", "V2", "V3"].into_iter().zip(&victims) {
            env.insert(name, victim.id().to_string().into());
        }
        Self {
            world,
            victims,
            shared,
            ipc,
            env,
            _servers: servers,
        }
    }

    /// Starts the agent as a shell does that has a file open, behind `before`; tries all rows and says which ones printed GOT.
    fn run(&self, before: &str, args: &[&str], rows: &[Row]) -> Vec<bool> {
        let start = format!("{before}; exec 7<\"$OPENED\"; exec \"$0\" \"$@\"");
        let model = [
            "--mode",
            "rpc",
            "--provider",
            "mock-anthropic",
            "--model",
            "claude-mock",
        ];
        let mut config = self.world.dir.agent("/bin/sh").args(["-c", &start, PROGRAM]);
        config = config.args(model).args(args.iter().copied());
        for (name, value) in &self.env {
            config = config.env(*name, value);
        }
        let pi = Pi::spawn(config);
        for rows in rows.chunks(AT_ONCE) {
            for row in rows {
                let command = format!("{FIND_AGENT}; (\n{}\n) 2>&1; echo END", row.command);
                self.world.server.push(bash("c", &command));
            }
            self.world.server.push(Reply::text(["done"]));
            pi.say("Go");
        }
        let ends = ends(&pi);
        assert_eq!(ends.len(), rows.len());
        let got = ends.iter().zip(rows).map(|((_, said), row)| {
            assert!(said.contains("END"), "{}: {said}", row.name);
            said.lines().any(|line| line == "GOT")
        });
        let got = got.collect();
        pi.finish();
        got
    }
}

fn victim() -> Child {
    Command::new("sleep")
        .arg("600")
        .env("TOKEN", "SECRET")
        .stdin(Stdio::null())
        .spawn()
        .unwrap()
}

/// The program itself: what stands on the path may be a script that looks for it.
fn python() -> OsString {
    let found = Command::new("python3")
        .args(["-c", "import sys; print(sys.executable)"])
        .output();
    String::from_utf8(found.unwrap().stdout).unwrap().trim().into()
}

/// Every file below a directory, with its content.
fn contents(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let files = files_below(dir).into_iter();
    files
        .map(|path| (path.clone(), std::fs::read(path).unwrap()))
        .collect()
}

/// The rows that got what they wanted in spite of the sandbox.
fn escaped(name: &str, before: &str, has_view: bool) -> Vec<&'static str> {
    let rows = rows();
    let targets = Targets::new(name);
    let closed = json!({"mode": "workspace-write", "denyRead": ["~/.ssh", "~/.netrc"]});
    targets.world.settings(json!({ "sandbox": closed }));
    let out = targets.world.dir.root().join("outside");
    let was = contents(&out);
    let got = targets.run(before, &[], &rows);
    assert_eq!(contents(&out), was);
    assert!(!targets.world.dir.home().join(".bashrc").exists());
    assert!(!targets.world.dir.cwd().join(".git/hooks/pre-commit").exists());
    let rows = rows.iter().zip(got);
    rows.filter(|(row, got)| *got && (has_view || !row.flags.contains("view")))
        .map(|(row, _)| row.name)
        .collect()
}

#[test]
fn escapes_succeed_without_sandbox() {
    let rows = rows();
    assert!(rows.len() >= 60, "{}", rows.len());
    let got = Targets::new("canary").run(":", &[], &rows);
    for (row, got) in rows.iter().zip(got) {
        assert!(got || row.flags.contains("maybe"), "{} shows nothing", row.name);
        if !got {
            eprintln!("shows nothing on this system: {}", row.name);
        }
    }
}

#[test]
fn escapes_fail_inside_sandbox() {
    let (landlock, has_view) = offered();
    if landlock < 6 {
        skipped(&format!("Landlock {landlock} leaves signals alone"));
        return;
    }
    assert_eq!(escaped("view", ":", has_view), Vec::<&str>::new());
}

#[test]
fn escapes_without_namespaces_fail_except_namespace_ones() {
    let (landlock, has_view) = offered();
    if landlock < 6 || !has_view {
        skipped("the test needs namespaces to take them away");
        return;
    }
    // The root user of a user namespace can disable further namespaces in it.
    let before = "test -n \"$AGAIN\" || { export AGAIN=1; exec unshare -Ur /bin/sh -c \
        'echo 0 > /proc/sys/user/max_user_namespaces; exec 7<\"$OPENED\"; exec \"$0\" \"$@\"' \"$0\" \"$@\"; }";
    assert_eq!(escaped("plain", before, false), Vec::<&str>::new());
}
