//! Code that a confined command would leave for the next start, which runs it outside the sandbox.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use serde_json::json;
use testkit::llm::Reply;

use super::{ends, offered, world};
use crate::kit::{Pi, World, bash, skipped, until, write_program};

/// Where code is looked for.
const PLACES: [&str; 5] = [".pi", ".omp", ".xcsh", ".mcp.json", "mcp.json"];

fn plant(name: &str) -> String {
    format!(
        "mkdir -p {name}/hooks && echo x > {name}/hooks/tool_call; echo x > {name}; rm -rf {name}; mkdir {name}"
    )
}

fn nothing_is_left(world: &World) {
    for name in PLACES {
        assert!(!world.dir.cwd().join(name).exists(), "{name} is left");
    }
}

#[test]
fn code_cannot_be_planted_in_missing_places() {
    if offered().0 == 0 {
        return;
    }
    let calls = PLACES.map(|name| bash("c", &plant(name)));
    let world = world(json!({"mode": "workspace-write"}), calls);
    let pi = world.start();
    pi.say("Go");
    assert!(ends(&pi).iter().all(|(is_error, _)| *is_error), "{:?}", ends(&pi));
    pi.finish();
    nothing_is_left(&world);
}

#[test]
fn second_agent_stays_protected_after_first_ends() {
    if offered().0 == 0 {
        return;
    }
    let wait = "echo ready > ready; for n in $(seq 1500); do test -e go && break; sleep 0.02; done; ";
    let all: String = PLACES
        .iter()
        .map(|name| format!("({}) 2>&1; ", plant(name)))
        .collect();
    let files: String = PLACES
        .iter()
        .map(|name| format!("test -e {name}/hooks/tool_call -o -f {name} && echo PLANTED {name}; "))
        .collect();
    let running = bash("c1", &format!("{wait}{all}{files}true"));
    let later = bash("c2", &format!("{all}{files}true"));
    let first = world(json!({"mode": "workspace-write"}), [bash("c0", "true")]);
    let model = [
        "--mode",
        "rpc",
        "--provider",
        "mock-anthropic",
        "--model",
        "claude-mock",
    ];
    let one = first.start();
    one.say("Go");
    let second = World::new([running, later, Reply::text(["done"])]);
    second.settings(json!({"sandbox": {"mode": "workspace-write"}}));
    let other = Pi::spawn(
        second
            .dir
            .agent(crate::kit::PROGRAM)
            .args(model)
            .cwd(first.dir.cwd()),
    );
    other.prompt("Go");
    until("the command", || first.dir.cwd().join("ready").exists());
    one.finish();
    fs::write(first.dir.cwd().join("go"), "").unwrap();
    other.settled();
    for (_, said) in ends(&other) {
        assert!(!said.contains("PLANTED"), "{said}");
    }
    other.finish();
    nothing_is_left(&first);
}

#[test]
fn placeholders_do_not_outlive_a_killed_agent() {
    let (landlock, has_namespaces) = offered();
    if !has_namespaces {
        if landlock > 0 {
            skipped("there are no user namespaces, so there are no placeholders");
        }
        return;
    }
    let world = world(
        json!({"mode": "workspace-write"}),
        [bash("c1", "true"), bash("c2", "sleep 600")],
    );
    let pi = world.start();
    pi.prompt("Go");
    until("the placeholder", || world.dir.cwd().join(".mcp.json").is_dir());
    pi.agent.kill9().unwrap();
    until("the end of the placeholders", || {
        PLACES.iter().all(|name| !world.dir.cwd().join(name).exists())
    });
    // One whose guardian was killed, too, is removed at the next start.
    let left = world.dir.cwd().join(".mcp.json");
    fs::create_dir(&left).unwrap();
    fs::set_permissions(&left, fs::Permissions::from_mode(0o1755)).unwrap();
    fs::create_dir(world.dir.cwd().join(".pi")).unwrap();
    world.settings(json!({}));
    let pi = world.start();
    pi.state();
    pi.finish();
    assert!(!left.exists() && world.dir.cwd().join(".pi").exists());
}

/// The content of a file after a command has tried to change it in each way.
fn attacked(world: &World, file: &str) -> Vec<(bool, String)> {
    let dir = Path::new(file).parent().unwrap().display().to_string();
    for command in [
        format!("echo planted > {file}"),
        format!("rm -f {file} && echo planted > {file}"),
        format!("echo planted > new && mv new {file}"),
        format!("test '{dir}' != '' && mv {dir} gone && mkdir -p {dir} && echo planted > {file}"),
    ] {
        world.server.push(bash("c", &command));
    }
    world.server.push(Reply::text(["done"]));
    let pi = world.start_with(&["--approve"]);
    pi.say("Go");
    let ends = ends(&pi);
    pi.finish();
    ends
}

#[test]
fn code_named_by_settings_and_links_is_protected() {
    if offered().0 == 0 {
        return;
    }
    for (file, settings, link) in [
        (
            "code/tool_call.sh",
            json!({"hooks": ["../code/tool_call.sh"]}),
            None,
        ),
        (
            "code/run.py",
            json!({"hooks": [{"event": "tool_call", "command": ["python3", "code/run.py"]}]}),
            None,
        ),
        ("code/x.ts", json!({"extensions": ["../code/x.ts"]}), None),
        (
            "code/server.py",
            json!({"mcpServers": {"x": {"command": "python3", "args": ["code/server.py"], "enabled": false}}}),
            None,
        ),
        ("scripts/tool_call", json!({}), Some(("../scripts", ".pi/hooks"))),
        (
            "scripts/x.ts",
            json!({}),
            Some(("../../scripts/x.ts", ".pi/extensions/x.ts")),
        ),
        ("config/settings.json", json!({}), Some(("config", ".pi"))),
    ] {
        let world = World::new([]);
        world.settings(json!({"sandbox": {"mode": "workspace-write"}, "retry": {"enabled": false}}));
        let path = world.dir.cwd().join(file);
        // Hooks that cannot be loaded would lock the agent down.
        let is_script = file.ends_with(".sh") || file.ends_with("tool_call");
        let content = if is_script { "#!/bin/sh\n" } else { "{}" };
        if is_script {
            write_program(&path, content);
        } else {
            world.dir.write(&path, content).unwrap();
        }
        if let Some((target, name)) = link {
            let name = world.dir.cwd().join(name);
            fs::create_dir_all(name.parent().unwrap()).unwrap();
            symlink(target, name).unwrap();
        } else {
            world
                .dir
                .write(".pi/settings.json", settings.to_string())
                .unwrap();
        }
        let ends = attacked(&world, file);
        assert!(ends.iter().all(|(is_error, _)| *is_error), "{file}: {ends:?}");
        assert_eq!(fs::read_to_string(&path).unwrap(), content, "{file}");
    }
}

#[test]
fn link_in_place_of_project_folder_is_protected() {
    if offered().0 == 0 {
        return;
    }
    let calls = [
        bash(
            "c1",
            "rm .pi && mkdir -p .pi/hooks && echo x > .pi/hooks/tool_call",
        ),
        bash(
            "c2",
            "mv .pi gone && mkdir -p .pi/hooks && echo x > .pi/hooks/tool_call",
        ),
        bash("c3", "ln -sfn evil .pi"),
    ];
    let world = world(json!({"mode": "workspace-write"}), calls);
    fs::create_dir_all(world.dir.cwd().join("config/pi")).unwrap();
    symlink("config/pi", world.dir.cwd().join(".pi")).unwrap();
    let pi = world.start();
    pi.say("Go");
    assert!(ends(&pi).iter().all(|(is_error, _)| *is_error), "{:?}", ends(&pi));
    pi.finish();
    let target = fs::read_link(world.dir.cwd().join(".pi")).unwrap();
    assert_eq!(target, Path::new("config/pi"));
}

#[test]
fn protected_files_are_not_named() {
    if offered().0 == 0 {
        return;
    }
    let calls = [
        Reply::tool("c1", "find", json!({"pattern": "*", "path": ".."})),
        Reply::tool("c2", "ls", json!({"path": "../agent"})),
        Reply::tool("c3", "ls", json!({"path": "../home"})),
        Reply::tool("c4", "find", json!({"pattern": "**/home/**", "path": ".."})),
    ];
    let world = world(
        json!({"mode": "workspace-write", "denyRead": ["~/.ssh", "~/kept.txt"]}),
        calls,
    );
    for file in [".ssh/id_hidden", "kept.txt", "open.txt"] {
        world.dir.write(world.dir.home().join(file), "x").unwrap();
    }
    world
        .dir
        .write("../agent/skills/one/SKILL.md", "how to\n")
        .unwrap();
    let pi = world.start_with(&["--tools", "find,ls"]);
    pi.say("Go");
    let ends = ends(&pi);
    for (_, said) in &ends {
        for name in [
            "auth.json",
            "models.json",
            "settings.json",
            ".ssh",
            "id_hidden",
            "kept.txt",
        ] {
            assert!(!said.contains(name), "{name}: {said}");
        }
    }
    assert!(ends[0].1.contains("home/open.txt"), "{}", ends[0].1);
    assert!(ends[2].1.contains("open.txt"), "{}", ends[2].1);
    pi.finish();
}

#[test]
fn code_planted_in_nested_project_is_not_run() {
    if offered().0 == 0 {
        return;
    }
    let plant = |dir: &str| {
        let hook = format!("{dir}/.pi/hooks/session_start");
        format!("mkdir -p {dir}/.pi/hooks && printf '#!/bin/sh\\necho ran > ran' > {hook} && chmod +x {hook}")
    };
    let calls = [
        bash("c1", &plant("sub")),
        bash("c2", &plant("own")),
        bash("c3", "mv own gone"),
    ];
    let world = world(json!({"mode": "workspace-write"}), calls);
    let cwd = world.dir.cwd();
    for dir in ["sub", "own"] {
        fs::create_dir(cwd.join(dir)).unwrap();
    }
    let path = |name: &str| cwd.join(name).display().to_string();
    for dir in [path("."), path("own")] {
        assert_eq!(world.run(&["trust", &dir], "").code, Some(0));
    }
    let pi = world.start();
    pi.say("Go");
    let ends = ends(&pi);
    // A nested project that is trusted itself is protected like the first; any other loses the trust.
    assert_eq!(
        ends.iter().map(|end| end.0).collect::<Vec<_>>(),
        [false, true, true],
        "{ends:?}"
    );
    pi.finish();
    world.settings(json!({}));
    for settings in [json!({}), json!({"defaultProjectTrust": "always"})] {
        world.settings(settings);
        let pi = Pi::spawn(world.config().cwd(cwd.join("sub")));
        pi.state();
        pi.warns("pinion trust");
        pi.finish();
        assert!(!cwd.join("sub/ran").exists());
    }
    // Once the user has looked at it, it runs.
    assert_eq!(world.run(&["trust", &path("sub")], "").code, Some(0));
    let pi = Pi::spawn(world.config().cwd(cwd.join("sub")));
    until("the hook", || cwd.join("sub/ran").exists());
    pi.finish();
}
