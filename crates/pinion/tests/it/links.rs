//! Files of a project: links cannot lead out of the project, and irregular files do not block the start.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use serde_json::json;
use testkit::driver::Signal;
use testkit::llm::Reply;

use crate::kit::World;

const SECRET: &str = "hunter-two-and-a-half-0123456789";

/// A world with a secret in the agent directory, one in `.ssh` and one next to the project.
fn world() -> World {
    let world = World::new([
        Reply::text(["done"]),
        Reply::text(["done"]),
        Reply::text(["done"]),
    ]);
    let note = format!("---\nname: secret\ndescription: {SECRET}\ncondition: x\n---\n{SECRET}\n");
    for file in [
        world.dir.agent_dir().join("auth.json"),
        world.dir.home().join(".ssh/id"),
        world.dir.root().join("outside/SKILL.md"),
        world.dir.root().join("outside/SYSTEM.md"),
        world.dir.root().join("outside/APPEND_SYSTEM.md"),
        world.dir.root().join("outside/prompts/secret.md"),
        world.dir.root().join("outside/skills/secret/SKILL.md"),
        world.dir.root().join("outside/rules/secret.md"),
    ] {
        world.dir.write(file, &note).unwrap();
    }
    let auth = json!({"other": {"type": "api_key", "key": SECRET}});
    world
        .dir
        .write(world.dir.agent_dir().join("auth.json"), auth.to_string())
        .unwrap();
    world
}

fn link(target: impl AsRef<Path>, path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    symlink(target, path).unwrap();
}

/// Prompts that would use everything, and looks for the secret in what reached the provider and the client.
fn check(world: &World, what: &str, flags: &[&str]) {
    let pi = world.start_with(flags);
    pi.get("get_commands");
    pi.say("Go");
    pi.say("/skill:secret now");
    pi.say("/secret now");
    let shown: String = pi.lines().iter().map(ToString::to_string).collect();
    let sent: String = world
        .server
        .requests()
        .iter()
        .map(|request| request.body.to_string())
        .collect();
    pi.finish();
    assert!(!sent.contains(SECRET), "{what} {flags:?} was sent");
    assert!(!shown.contains(SECRET), "{what} {flags:?} was shown");
}

#[test]
fn link_out_of_project_is_never_sent() {
    let cases = [
        ("AGENTS.md", "agent/auth.json"),
        ("CLAUDE.md", "home/.ssh/id"),
        ("AGENTS.md", "outside/SYSTEM.md"),
        (".pi/SYSTEM.md", "agent/auth.json"),
        (".pi/APPEND_SYSTEM.md", "agent/auth.json"),
        (".pi/prompts/secret.md", "agent/auth.json"),
        (".pi/prompts", "outside/prompts"),
        (".pi/skills/secret/SKILL.md", "outside/SKILL.md"),
        (".pi/skills/secret", "outside/skills/secret"),
        (".pi/skills", "outside/skills"),
        (".agents/skills", "outside/skills"),
        (".agents", "outside"),
        (".pi/rules/secret.md", "agent/auth.json"),
        (".pi", "outside"),
        ("linked", "outside/prompts"),
        ("linked", "outside/skills"),
    ];
    for (name, target) in cases {
        for (flags, is_relative) in [
            (&["--no-approve"][..], false),
            (&[], true),
            (&["--approve"], false),
        ] {
            let world = world();
            let target = match is_relative {
                true => Path::new("../".repeat(name.split('/').count()).as_str()).join(target),
                false => world.dir.root().join(target),
            };
            link(&target, &world.dir.cwd().join(name));
            if name == "linked" {
                let settings = json!({"skills": ["./../linked"], "prompts": ["./../linked"]});
                world
                    .dir
                    .write(".pi/settings.json", settings.to_string())
                    .unwrap();
            }
            check(&world, &format!("{name} -> {}", target.display()), flags);
        }
    }
}

#[test]
fn link_out_of_project_is_reported() {
    let world = world();
    link(
        world.dir.root().join("outside/SYSTEM.md"),
        &world.dir.cwd().join("AGENTS.md"),
    );
    let pi = world.start();
    pi.say("Go");
    let told: String = pi.lines().iter().map(ToString::to_string).collect();
    assert!(
        told.contains("AGENTS.md") && told.contains("leads out of"),
        "{told}"
    );
    pi.finish();
    let done = world.run(&["doctor"], "");
    assert!(
        done.out.contains("AGENTS.md") && done.out.contains("leads out of"),
        "{}",
        done.out
    );
}

#[test]
fn links_within_repository_and_of_user_are_followed() {
    let world = World::new([Reply::text(["done"])]);
    let cwd = world.dir.cwd();
    for (file, text) in [
        (cwd.join("docs/AGENTS.md"), "inner-words"),
        (
            cwd.join("docs/one/SKILL.md"),
            "---\nname: one\ndescription: skill-words\n---\n",
        ),
        (world.dir.root().join("dotfiles/AGENTS.md"), "user-words"),
        (world.dir.root().join("dotfiles/APPEND.md"), "appended-words"),
    ] {
        world.dir.write(file, text).unwrap();
    }
    fs::create_dir(cwd.join(".git")).unwrap();
    fs::create_dir(cwd.join("pack")).unwrap();
    link("../docs/AGENTS.md", &cwd.join("pack/AGENTS.md"));
    link(
        cwd.canonicalize().unwrap().join("docs"),
        &cwd.join("pack/.pi/skills"),
    );
    let agent = world.dir.agent_dir();
    link(
        world.dir.root().join("dotfiles/AGENTS.md"),
        &agent.join("AGENTS.md"),
    );
    link("../dotfiles/APPEND.md", &agent.join("APPEND_SYSTEM.md"));
    let pi = crate::kit::Pi::spawn(world.config().cwd(cwd.join("pack")));
    pi.say("Go");
    let sent = world.server.requests()[0].body.to_string();
    for words in ["inner-words", "skill-words", "user-words", "appended-words"] {
        assert!(sent.contains(words), "{words}: {sent}");
    }
    pi.finish();
}

fn fifo(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let _ = fs::remove_file(path);
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn pipe_in_place_of_project_file_never_hangs() {
    let world = World::new([Reply::text(["done"])]);
    let cwd = world.dir.cwd();
    for name in [
        ".mcp.json",
        "AGENTS.md",
        ".pi/mcp.json",
        ".pi/SYSTEM.md",
        ".pi/prompts/p.md",
        ".pi/skills/s/SKILL.md",
        ".pi/skills/.gitignore",
        ".pi/rules/r.md",
        ".pi/hooks/tool_call.js",
        ".pi/hooks/tool_call.sh",
        ".pi/hooks/context",
        ".pi/extensions/x.ts",
        ".pi/extensions/run",
        ".pi/extensions/pack/package.json",
        ".pi/extensions/kit/extension.json",
        ".pi/tools/t.ts",
        "pack/package.json",
    ] {
        fifo(&cwd.join(name));
    }
    let settings = json!({"packages": ["../pack"], "hooks": ["hooks/tool_call.js"]});
    world
        .dir
        .write(".pi/settings.json", settings.to_string())
        .unwrap();
    let pi = world.start_with(&["--approve"]);
    pi.say("Go");
    pi.get("get_commands");
    pi.agent.signal(Signal::TERM).unwrap();
    pi.agent.wait_exit(crate::kit::LONG).unwrap();
    let done = world.run(&["doctor"], "");
    assert!(done.out.contains("regular file"), "{}", done.out);
}

#[test]
fn pipe_in_place_of_user_file_never_hangs() {
    for name in [
        "settings.json",
        "models.json",
        "auth.json",
        "mcp.json",
        "trust.json",
        "AGENTS.md",
    ] {
        let world = World::new([]);
        fifo(&world.dir.agent_dir().join(name));
        let done = world.run(&["doctor"], "");
        assert!(
            done.code.is_some() && done.out.contains("egular file"),
            "{name}: {}{}",
            done.out,
            done.err
        );
    }
}

#[test]
fn pipe_named_on_the_command_line_is_refused() {
    let world = World::new([]);
    let path = world.dir.root().join("pipe");
    fifo(&path);
    let path = path.display().to_string();
    for args in [
        vec!["-p".to_owned(), format!("@{path}")],
        vec![
            "-p".to_owned(),
            "--log-file".to_owned(),
            path.clone(),
            "x".to_owned(),
        ],
        vec![
            "-p".to_owned(),
            "--replay".to_owned(),
            path.clone(),
            "x".to_owned(),
        ],
    ] {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let done = world.run(&args, "");
        assert!(done.code.is_some_and(|code| code != 0), "{args:?}");
        assert!(
            done.err.contains("regular file") && done.err.contains("pipe"),
            "{}",
            done.err
        );
    }
    let done = world.run(&["doctor", "--mcp-config", &path], "");
    assert!(done.out.contains("not a regular file"), "{}", done.out);
}

#[test]
fn project_skills_are_bounded_in_size_and_time() {
    let world = World::new([Reply::text(["done"])]);
    let filler = "words ".repeat(150);
    for number in 0..8_000 {
        let name = format!("skill-{number}");
        let text = format!("---\nname: {name}\ndescription: {filler}\n---\nDo it.\n");
        world
            .dir
            .write(format!(".pi/skills/{name}/SKILL.md"), text)
            .unwrap();
    }
    let mine = "---\nname: mine\ndescription: mine\n---\n";
    world
        .dir
        .write(world.dir.agent_dir().join("skills/mine/SKILL.md"), mine)
        .unwrap();
    let pi = world.start();
    pi.say("Go");
    let sent = world.server.requests()[0].body.to_string();
    assert!(sent.len() < 100 << 10, "{}", sent.len());
    assert!(sent.contains("<name>skill-0</name>") && sent.contains("<name>mine</name>"));
    let told: String = pi.lines().iter().map(ToString::to_string).collect();
    assert!(told.contains("are left out"), "{told}");
    pi.finish();
    let done = world.run(&["doctor"], "");
    assert!(done.out.contains("more than 256 skills"), "{}", done.out);
}
