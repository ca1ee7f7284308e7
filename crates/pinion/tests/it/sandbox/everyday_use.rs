//! Permitted work in the sandbox, its texts, and which setting decides.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use serde_json::{Value, json};
use testkit::llm::Reply;

use super::{ends, offered, world};
use crate::kit::{World, bash, skipped, until};

#[test]
fn sandbox_is_off_by_default() {
    let world = World::new([
        bash("c1", "echo x > ../beside && cat /proc/self/status"),
        Reply::text(["done"]),
    ]);
    let pi = world.start();
    assert!(pi.state().get("sandbox").is_none());
    pi.say("Go");
    assert!(world.dir.root().join("beside").exists());
    assert!(ends(&pi)[0].1.contains("Seccomp:\t0"), "{}", ends(&pi)[0].1);
    pi.finish();
}

#[test]
fn everyday_commands_work_inside_sandbox() {
    if offered().0 == 0 {
        return;
    }
    let calls = [
        bash(
            "c1",
            "echo one > a && mkdir -p d/e && mv a d/e/b && cat d/e/b && rm -r d && ln -s x l && chmod 700 .",
        ),
        bash(
            "c2",
            "mktemp && echo \"$TMPDIR\" && cat <<< here && echo $(seq 3 | wc -l) > /dev/null",
        ),
        bash(
            "c3",
            "ls / > /dev/null && head -c 8 /dev/urandom | wc -c && cat /etc/passwd > /dev/null",
        ),
        bash(
            "c4",
            "(sleep 0.1; echo later) & wait; kill $! 2>/dev/null; sleep 60 & kill $! && echo killed",
        ),
        bash("c5", "echo problem >&2; exit 3"),
        bash(
            "c6",
            "python3 -c 'import multiprocessing as m; print(m.Pool(2).map(abs, [-1, -2]))'",
        ),
    ];
    let world = world(json!({"mode": "workspace-write"}), calls);
    let pi = world.start();
    assert_eq!(
        pi.state()["sandbox"],
        json!({"mode": "workspace-write", "network": false})
    );
    pi.say("Go");
    let ends = ends(&pi);
    assert_eq!(ends[0], (false, "one\n".to_owned()));
    let temp = ends[1].1.lines().nth(1).unwrap().to_owned();
    assert!(temp.starts_with(&world.dir.tmp().display().to_string()), "{temp}");
    assert!(ends[1].1.starts_with(&format!("{temp}/")), "{}", ends[1].1);
    assert_eq!(ends[2], (false, "8\n".to_owned()));
    assert_eq!(ends[3], (false, "later\nkilled\n".to_owned()));
    assert_eq!(
        ends[4],
        (true, "problem\n\n\nCommand exited with code 3".to_owned())
    );
    if offered().1 {
        assert_eq!(ends[5], (false, "[1, 2]\n".to_owned()));
    }
    assert!(!offered().1 || world.dir.cwd().join(".pi").is_dir());
    pi.finish();
    assert!(!std::path::Path::new(&temp).exists());
    for name in [".pi", ".mcp.json"] {
        assert!(!world.dir.cwd().join(name).exists(), "{name} is left");
    }
}

#[test]
fn sandbox_denials_explain_what_is_allowed() {
    if offered().0 == 0 {
        return;
    }
    let calls = [
        bash("c1", "echo x > /etc/pinion-test"),
        bash("c2", "exec 9<>/dev/tcp/127.0.0.1/9"),
        bash("c3", "echo x > .pi/settings.json"),
        bash("c4", "false"),
    ];
    let world = world(json!({"mode": "workspace-write"}), calls);
    let cwd = world.dir.cwd().canonicalize().unwrap().display().to_string();
    let pi = world.start();
    pi.say("Go");
    let ends = ends(&pi);
    for (is_error, said) in &ends[..3] {
        assert!(*is_error && said.contains("Command exited with code 1"), "{said}");
        let hint = said.lines().last().unwrap();
        assert!(
            hint.starts_with("[Commands run in a sandbox. The network is off"),
            "{said}"
        );
        assert!(
            hint.contains(&cwd) && hint.contains(&format!("not in {cwd}/")),
            "{said}"
        );
    }
    assert_eq!(ends[3].1, "(no output)\n\nCommand exited with code 1");
    pi.finish();
}

#[test]
fn read_only_sandbox_writes_temporary_files_only() {
    if offered().0 == 0 {
        return;
    }
    let calls = [
        bash("c1", "echo x > new"),
        bash("c2", "echo x > $TMPDIR/new && cat $TMPDIR/new seen"),
        Reply::tool("c3", "write", json!({"path": "new", "content": "x"})),
    ];
    let world = world(json!({"mode": "workspace-write"}), calls);
    fs::write(world.dir.cwd().join("seen"), "y\n").unwrap();
    let pi = world.start_with(&["--sandbox", "read-only"]);
    pi.say("Go");
    let ends = ends(&pi);
    assert!(ends[0].0 && ends[2].0, "{ends:?}");
    assert_eq!(ends[1], (false, "x\ny\n".to_owned()));
    assert!(!world.dir.cwd().join("new").exists() && !world.dir.cwd().join(".pi").exists());
    pi.finish();
}

#[test]
fn sandbox_path_lists_are_applied() {
    if offered().0 == 0 {
        return;
    }
    let calls = [
        bash(
            "c1",
            "echo x > ../more/a && echo y > .git/index && cat ../shown/a",
        ),
        bash("c2", "cat ../kept/a"),
        bash("c3", "echo x > .git/hooks/h"),
        bash("c4", "echo x > .git/config"),
        bash("c5", "mv .git git.old"),
    ];
    let world = world(Value::Null, calls);
    let root = world.dir.root().to_path_buf();
    let paths = |names: &[&str]| names.iter().map(|name| root.join(name)).collect::<Vec<_>>();
    world.settings(json!({"sandbox": {
        "mode": "workspace-write", "gitWritable": true, "writable": paths(&["more"]), "readable": paths(&["shown"]),
    }}));
    for name in ["more", "shown", "kept", "cwd/.git/hooks"] {
        fs::create_dir_all(root.join(name)).unwrap();
    }
    for name in ["shown/a", "kept/a", "cwd/.git/config"] {
        fs::write(root.join(name), "z\n").unwrap();
    }
    let pi = world.start();
    pi.say("Go");
    let ends = ends(&pi);
    assert_eq!(ends[0], (false, "z\n".to_owned()));
    assert!(ends[1..].iter().all(|(is_error, _)| *is_error), "{ends:?}");
    assert_eq!(fs::read_to_string(root.join("cwd/.git/config")).unwrap(), "z\n");
    pi.finish();
}

#[test]
fn writable_directory_of_another_user_stops_no_command() {
    if offered().0 == 0 {
        return;
    }
    if fs::metadata("/proc/self").unwrap().uid() == 0 {
        skipped("root can make names in every directory");
        return;
    }
    let sandbox = json!({"mode": "workspace-write", "writable": ["/etc"]});
    let world = world(sandbox, [bash("c1", "echo x > new && cat new")]);
    let pi = world.start();
    pi.say("Go");
    assert_eq!(ends(&pi), [(false, "x\n".to_owned())]);
    pi.finish();
}

#[test]
fn project_only_tightens_sandbox() {
    let project = |settings: Value, warning: &str| {
        let world = world(json!({"mode": "workspace-write", "network": true}), []);
        world
            .dir
            .write(".pi/settings.json", json!({ "sandbox": settings }).to_string())
            .unwrap();
        let pi = world.start_with(&["--approve"]);
        let state = pi.state()["sandbox"].clone();
        pi.warns(warning);
        pi.finish();
        state
    };
    let held = json!({"mode": "workspace-write", "network": true});
    let looser = json!({"mode": "off", "network": true, "writable": ["/"], "readable": "all"});
    assert_eq!(project(looser, "\"sandbox.writable\" is left out"), held);
    let tighter = json!({"mode": "read-only", "network": false});
    assert_eq!(project(tighter.clone(), ""), tighter);
    let unknown = project(json!({"mode": "wide-open"}), "taken as read-only");
    assert_eq!(unknown["mode"], "read-only");
}

#[test]
fn sandbox_flag_overrides_settings_and_rejects_unknown() {
    let world = world(json!({"mode": "workspace-write"}), []);
    let done = world.run(&["--sandbox", "readonly", "-p", "x"], "");
    assert_eq!(done.code, Some(2));
    assert!(
        done.err.contains("off, workspace-write or read-only"),
        "{}",
        done.err
    );
    let pi = world.start_with(&["--sandbox", "off"]);
    assert!(pi.state().get("sandbox").is_none());
    pi.finish();
    let pi = world.start_with(&["--sandbox-network"]);
    assert_eq!(
        pi.state()["sandbox"],
        json!({"mode": "workspace-write", "network": true})
    );
    pi.finish();
}

#[test]
fn user_commands_run_unconfined_unless_configured() {
    if offered().0 == 0 {
        return;
    }
    for (is_confined, command) in [(false, "echo x > ../mine"), (true, "echo x > ../mine")] {
        let world = world(json!({"mode": "workspace-write", "userBash": is_confined}), []);
        let pi = world.start();
        let done = pi.data(json!({"type": "bash", "command": command}));
        assert_eq!(done["exitCode"], json!(i32::from(is_confined)), "{done}");
        assert_eq!(world.dir.root().join("mine").exists(), !is_confined);
        pi.finish();
    }
}

#[test]
fn abort_kills_sandboxed_processes() {
    if offered().0 == 0 {
        return;
    }
    let hang = "env -i setsid sh -c 'sleep 600' & echo $! > pid; sleep 600";
    let world = world(json!({"mode": "workspace-write"}), [bash("c1", hang)]);
    let pi = world.start();
    pi.prompt("Go");
    pi.wait("tool_execution_start");
    let file = world.dir.cwd().join("pid");
    until("the command", || {
        fs::read_to_string(&file).is_ok_and(|text| text.ends_with('\n'))
    });
    pi.get("abort");
    let id = fs::read_to_string(&file).unwrap();
    let gone = || !std::path::Path::new("/proc").join(id.trim()).exists();
    until("its end", gone);
    pi.finish();
}

#[test]
fn doctor_reports_sandbox_support() {
    let (landlock, namespaces) = offered();
    let world = world(json!({"mode": "read-only"}), []);
    let done = world.run(&["doctor", "--json"], "");
    let report: Value = serde_json::from_str(&done.out).unwrap();
    let text = report.to_string();
    let expected = json!({"mode": "read-only", "landlock": landlock, "namespaces": namespaces});
    assert!(text.contains(&expected.to_string()), "{text}");
    let done = world.run(&["doctor"], "");
    let said = format!("read-only (available: Landlock {landlock}, ");
    assert!(landlock == 0 || done.out.contains(&said), "{}", done.out);
}

#[test]
fn skills_are_readable_and_network_follows_setting() {
    if offered().0 == 0 {
        return;
    }
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let connect = format!("exec 9<>/dev/tcp/127.0.0.1/{port} && echo connected");
    let socket =
        |kind: &str| format!("python3 -c 'import socket as s; s.socket({kind})' 2>/dev/null && echo got");
    let calls = [
        bash("c1", &connect),
        bash("c2", &socket("s.AF_UNIX")),
        bash("c3", &socket("s.AF_INET, s.SOCK_RAW, 1")),
        bash("c4", &socket("s.AF_PACKET, s.SOCK_RAW")),
        bash("c5", "cat $PI_CODING_AGENT_DIR/skills/one/SKILL.md"),
        Reply::tool("c6", "read", json!({"path": "../agent/skills/one/SKILL.md"})),
    ];
    let world = world(json!({"mode": "read-only", "network": true}), calls);
    world
        .dir
        .write("../agent/skills/one/SKILL.md", "how to\n")
        .unwrap();
    let pi = world.start();
    pi.say("Go");
    let ends = ends(&pi);
    assert_eq!(ends[0], (false, "connected\n".to_owned()));
    assert!(ends[1..4].iter().all(|(is_error, _)| *is_error), "{ends:?}");
    assert_eq!((ends[4].1.as_str(), ends[5].1.as_str()), ("how to\n", "how to\n"));
    pi.finish();
}

#[test]
fn sandbox_limits_reach_model_and_pipes() {
    if offered().0 == 0 {
        return;
    }
    let calls = [
        bash("c1", "(exec 9<>/dev/tcp/127.0.0.1/9) 2>&1 | cat"),
        bash("c2", "echo x > /etc/pinion-test; true"),
        bash("c3", "echo permission denied, says the manual"),
    ];
    let world = world(json!({"mode": "workspace-write"}), calls);
    let pi = world.start();
    pi.say("Go");
    let ends = ends(&pi);
    for (is_error, said) in &ends[..2] {
        assert!(
            !is_error && said.contains("\n[Commands run in a sandbox."),
            "{said}"
        );
    }
    assert_eq!(ends[2].1, "permission denied, says the manual\n");
    let system = world.server.requests()[0].body["system"].to_string();
    assert!(system.contains("Commands have no network access"), "{system}");
    pi.finish();
}
