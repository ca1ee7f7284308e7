//! File tools in the sandbox: the same rules by path, and no way around them by links that change.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::llm::Reply;

use super::{ends, offered, world};
use crate::kit::{World, bash};

/// Calls that must be refused; the first member of each is a tool. `OUT` and the like are put in.
fn calls(world: &World) -> Vec<(&'static str, Value)> {
    let root = world.dir.root().display().to_string();
    let write = |path: &str| json!({"path": path.replace("ROOT", &root), "content": "x"});
    let edit = |path: &str| {
        let edits = json!([{"oldText": "as", "newText": "x"}]);
        json!({"path": path.replace("ROOT", &root), "edits": edits})
    };
    let path = |path: &str| json!({"path": path.replace("ROOT", &root)});
    let look = |text: &str| json!({"pattern": "SECRET", "path": text.replace("ROOT", &root)});
    vec![
        ("write", write("../outside/new")),
        ("write", write("ROOT/outside/file")),
        ("write", write("~/.bashrc")),
        ("write", write("link/new")),
        ("write", write("flink")),
        ("write", write(".pi/settings.json")),
        ("write", write(".pi/extensions/x.ts")),
        ("write", write(".git/hooks/pre-commit")),
        ("write", write(".git")),
        ("write", write("ROOT/agent/settings.json")),
        ("write", write("ROOT/agent/skills/new/SKILL.md")),
        ("write", write("/proc/self/root/ROOT/outside/new")),
        ("write", write("/proc/self/cwd/../outside/new")),
        ("edit", edit("../outside/file")),
        ("edit", edit("flink")),
        ("edit", edit(".git/config")),
        ("read", path("ROOT/agent/auth.json")),
        ("read", path("ROOT/agent/models.json")),
        ("read", path("~/.ssh/id")),
        ("read", path("sshlink/id")),
        ("read", path("~/other/../.ssh/id")),
        ("read", path("/proc/self/environ")),
        ("read", path("/proc/thread-self/environ")),
        ("read", path("/proc/self/root/ROOT/agent/auth.json")),
        ("read", path("/dev/vda")),
        ("ls", path("~/.ssh")),
        ("ls", path("ROOT/agent/sessions")),
        ("find", look("ROOT/agent/sessions")),
        ("grep", look("~/.ssh")),
        ("grep", look("sshlink")),
    ]
}

fn prepare(world: &World) {
    let (root, cwd, home) = (world.dir.root(), world.dir.cwd(), world.dir.home());
    for dir in [
        root.join("outside"),
        home.join(".ssh"),
        home.join("other"),
        cwd.join(".git/hooks"),
    ] {
        fs::create_dir_all(dir).unwrap();
    }
    for file in [
        root.join("outside/file"),
        cwd.join(".git/config"),
        home.join(".ssh/id"),
    ] {
        fs::write(file, "as it was SECRET").unwrap();
    }
    fs::write(
        world.dir.agent_dir().join("auth.json"),
        r#"{"k": {"type": "api_key", "key": "SECRET"}}"#,
    )
    .unwrap();
    for (to, name) in [
        (root.join("outside"), "link"),
        (root.join("outside/file"), "flink"),
        (home.join(".ssh"), "sshlink"),
    ] {
        std::os::unix::fs::symlink(to, cwd.join(name)).unwrap();
    }
}

#[test]
fn file_tools_obey_sandbox_paths() {
    if offered().0 == 0 {
        return;
    }
    let world = world(json!({"mode": "workspace-write", "denyRead": ["~/.ssh"]}), []);
    prepare(&world);
    let calls = calls(&world);
    let pi = world.start_with(&["--tools", "read,write,edit,grep,find,ls,bash"]);
    for (tool, args) in &calls {
        world.server.push(Reply::tool("c", *tool, args.clone()));
    }
    // The text of the world's own last reply has come first.
    world.server.push(Reply::text(["done"]));
    pi.say("Begin");
    pi.say("Go");
    let ends = ends(&pi);
    assert_eq!(ends.len(), calls.len());
    for ((tool, args), (is_error, said)) in calls.iter().zip(&ends) {
        assert!(*is_error, "{tool} {args}: {said}");
        assert!(
            said.starts_with("The sandbox refuses this: ") || said.starts_with("ENO"),
            "{tool} {args}: {said}"
        );
        assert!(!said.contains("SECRET"), "{tool} {args}: {said}");
    }
    let outside = fs::read_to_string(world.dir.root().join("outside/file")).unwrap();
    assert_eq!(outside, "as it was SECRET");
    pi.finish();
}

#[test]
fn search_from_above_skips_forbidden_paths() {
    if offered().0 == 0 {
        return;
    }
    let look = json!({"pattern": "SECRET", "path": "~", "glob": "**"});
    let calls = [
        Reply::tool("c1", "grep", look),
        Reply::tool("c2", "read", json!({"path": "~/seen"})),
        Reply::tool("c3", "write", json!({"path": "deep/new/file", "content": "x"})),
        Reply::tool(
            "c4",
            "edit",
            json!({"path": "deep/new/file", "edits": [{"oldText": "x", "newText": "y"}]}),
        ),
    ];
    let world = world(
        json!({"mode": "workspace-write", "denyRead": ["~/.ssh", "~/hidden"]}),
        calls,
    );
    prepare(&world);
    let home = world.dir.home();
    fs::create_dir_all(home.join("hidden")).unwrap();
    fs::write(home.join("hidden/a"), "SECRET closed").unwrap();
    fs::write(home.join("seen"), "SECRET open").unwrap();
    let pi = world.start_with(&["--tools", "read,write,edit,grep"]);
    pi.say("Go");
    let ends = ends(&pi);
    assert!(ends.iter().all(|(is_error, _)| !is_error), "{ends:?}");
    assert!(
        ends[0].1.contains("open") && !ends[0].1.contains("closed"),
        "{}",
        ends[0].1
    );
    assert_eq!(
        fs::read_to_string(world.dir.cwd().join("deep/new/file")).unwrap(),
        "y"
    );
    pi.finish();
}

/// Returns files that were written outside of the workspace, or in read-only places. Meanwhile a process that was left
/// behind replaces a name by a link and back, again and again, and the agent writes to that name: so many answers with so many
/// calls each.
fn written_through_links(mode: &str, answers: usize, each: usize) -> Vec<String> {
    let exchange = "import ctypes, time
call = ctypes.CDLL(None).syscall
end = time.time() + 1200
open('ready', 'w')
while time.time() < end: call(316, -100, b'd2', -100, b'l' + str(int(time.time() * 100) % 2).encode(), 2)";
    let swap = format!(
        "mkdir -p .pi d2; ln -s ../outside l0; ln -s .pi l1; (setsid python3 -c \"{exchange}\" >/dev/null 2>&1 &) ; until [ -e ready ]; do sleep 0.05; done"
    );
    let writes = (0..answers).map(|answer| {
        (0..each).fold(Reply::text(["Go"]), |reply, n| {
            let path = format!("d2/swapped{answer}-{n}");
            reply.then_tool(
                format!("w{answer}-{n}"),
                "write",
                json!({"path": path, "content": "x"}),
            )
        })
    });
    let calls = std::iter::once(bash("c1", &swap)).chain(writes);
    let world = world(json!({ "mode": mode }), calls);
    prepare(&world);
    let pi = world.start();
    pi.prompt("Go");
    let most = Duration::from_secs(1_000);
    pi.agent.wait_type("agent_settled", most).unwrap();
    let dirs = [world.dir.root().join("outside"), world.dir.cwd().join(".pi")];
    let names = dirs
        .iter()
        .flat_map(|dir| fs::read_dir(dir).unwrap())
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with("swapped"))
        .collect();
    pi.finish();
    names
}

#[test]
fn swapped_links_do_not_escape_sandbox() {
    if offered().0 == 0 {
        return;
    }
    let free = written_through_links("off", 60, 1);
    eprintln!("{} of 60 calls follow the link without a sandbox", free.len());
    assert!(!free.is_empty());
    assert_eq!(
        written_through_links("workspace-write", 60, 1),
        Vec::<String>::new()
    );
}

#[test]
#[ignore = "takes minutes; see docs/project/robustness.md"]
fn ten_thousand_swapped_links_do_not_escape_sandbox() {
    if offered().0 == 0 {
        return;
    }
    let free = written_through_links("off", 10, 100);
    eprintln!("{} of 1,000 calls follow the link without a sandbox", free.len());
    assert!(!free.is_empty());
    assert_eq!(
        written_through_links("workspace-write", 100, 100),
        Vec::<String>::new()
    );
}
