//! Protection that cannot be set up as the user wants it stops the start, or locks the agent down where a client must connect:
//! misspelled keys, settings that are no file, guards that cannot be loaded. Values of the wrong type are in `startup_errors`.

use std::path::Path;

use serde_json::json;
use testkit::llm::Reply;

use crate::extensions::can_run;
use crate::kit::World;
use crate::startup_errors::{MODEL, armed};

/// Requires that text and JSON mode end with exit code 1 and these words, and that nothing was asked or run.
fn stops(world: &World, args: &[&str], words: &[&str], about: &str) {
    for tail in [&["-p", "Go"][..], &["--mode", "json", "Go"]] {
        let all: Vec<&str> = MODEL.iter().chain(args).chain(tail).copied().collect();
        let done = world.run(&all, "");
        assert_eq!(done.code, Some(1), "{about}: {}{}", done.out, done.err);
        // JSON mode prints the header of the session and failures before the prompt is refused.
        let is_early = |line: &str| {
            ["session", "extension_error"]
                .iter()
                .any(|kind| line.starts_with(&format!("{{\"type\":\"{kind}\"")))
        };
        assert!(done.out.lines().all(is_early), "{about}: {}", done.out);
        for word in words {
            assert!(done.err.contains(word), "{about}: {word}: {}", done.err);
        }
    }
    assert!(world.server.requests().is_empty(), "{about}");
    assert!(!world.dir.cwd().join("must-not-run").exists(), "{about}");
}

#[test]
fn misspelled_protection_keys_stop_the_start() {
    for (text, place, named, meant) in [
        (
            r#"{"permissions": {"dney": ["bash"]}}"#,
            ":1:26",
            "permissions.dney",
            "permissions.deny",
        ),
        (
            r#"{"sandbox": {"mod": "read-only"}}"#,
            ":1:21",
            "sandbox.mod",
            "sandbox.mode",
        ),
        (
            r#"{"sandbox": {"denyred": ["."]}}"#,
            ":1:25",
            "sandbox.denyred",
            "sandbox.denyRead",
        ),
        (
            r#"{"limits": {"maxCots": 1}}"#,
            ":1:24",
            "limits.maxCots",
            "limits.maxCost",
        ),
        (r#"{"permisions": {}}"#, ":1:16", "permisions", "permissions"),
        (
            r#"{"permissions": {"deny": ["edit", "bsh"]}}"#,
            ":1:26",
            "bsh",
            "bash",
        ),
        (
            r#"{"permissions": {"ask": ["wirte(src/**)"]}}"#,
            ":1:25",
            "wirte(src/**)",
            "write",
        ),
        (r#"{"premissions": {}}"#, ":1:17", "premissions", "permissions"),
        (
            "{\n \"sandbx\": {\"mode\": \"read-only\"}}",
            ":2:12",
            "sandbx",
            "sandbox",
        ),
        (r#"{"snadbox": {}}"#, ":1:13", "snadbox", "sandbox"),
        (r#"{"Sandbox": {}}"#, ":1:13", "Sandbox", "sandbox"),
        (
            r#"{"sandboxMode": "read-only"}"#,
            ":1:17",
            "sandboxMode",
            "sandbox",
        ),
        (
            r#"{"permission_mode": "ask"}"#,
            ":1:21",
            "permission_mode",
            "permissions",
        ),
        (
            r#"{"sandbox.mode": "read-only"}"#,
            ":1:18",
            "sandbox.mode",
            "sandbox",
        ),
        (r#"{"hoks": []}"#, ":1:10", "hoks", "hooks"),
        (
            r#"{"defaultTool": ["read"]}"#,
            ":1:17",
            "defaultTool",
            "defaultTools",
        ),
        (
            r#"{"images": {"blockImage": true}}"#,
            ":1:27",
            "images.blockImage",
            "images.blockImages",
        ),
    ] {
        let world = armed();
        let file = world.dir.agent_dir().join("settings.json");
        std::fs::write(&file, text).unwrap();
        let place = format!("{}{place}", file.display());
        let (named, meant) = (format!("\"{named}\""), format!("\"{meant}\""));
        stops(&world, &[], &[&place, &named, &meant], text);
    }
    // Keys of related programs and rules for tools of extensions do not stop anything.
    let world = World::new([Reply::text(["ok"])]);
    let text = r#"{"theme": "dark", "permissions": {"allow": ["bsh"], "deny": ["bsh*", "lsp", "deploy"]}, "zzz": {"deny": 1}, "mcp": {}, "todo": {"eager": true}}"#;
    std::fs::write(world.dir.agent_dir().join("settings.json"), text).unwrap();
    let done = world.run(&[MODEL[0], MODEL[1], "-p", "Go"], "");
    assert_eq!((done.code, done.out.as_str()), (Some(0), "ok\n"), "{}", done.err);
    // No extension is loaded, so a rule that names no tool certainly has no effect.
    for rule in ["bsh*", "lsp", "deploy"] {
        let warning = format!("the permission rule \"{rule}\" matches no tool");
        assert!(done.err.contains(&warning), "{}", done.err);
    }
    let doctor = world.run(&["doctor"], "");
    assert!(
        doctor.out.contains("bsh*, lsp, deploy: only for tools of"),
        "{}",
        doctor.out
    );
}

#[test]
fn misspelled_protection_keys_lock_clients_down() {
    let world = armed();
    world
        .dir
        .write(".pi/settings.json", r#"{"sandbox": {"mod": "read-only"}}"#)
        .unwrap();
    let pi = world.start_with(&["--permission-mode", "off"]);
    let state = pi.state();
    assert_eq!(state["permissionMode"], "ask", "{state}");
    assert_eq!(state["sandbox"]["mode"], "read-only", "{state}");
    let error = state["settingsError"].as_str().unwrap();
    assert!(error.contains("settings.json:1:21"), "{error}");
    pi.finish();
}

#[test]
fn settings_that_are_no_file_stop_the_start() {
    type Make = fn(&Path);
    let table: [(&str, Make, &str); 5] = [
        (
            "directory",
            |path| std::fs::create_dir(path).unwrap(),
            "directory",
        ),
        (
            "dangling link",
            |path| std::os::unix::fs::symlink("gone.json", path).unwrap(),
            "link",
        ),
        ("empty file", |path| std::fs::write(path, "").unwrap(), "empty"),
        (
            "blank file",
            |path| std::fs::write(path, " \n\t\n").unwrap(),
            "empty",
        ),
        (
            "zeros of a power cut",
            |path| std::fs::write(path, [0; 64]).unwrap(),
            "JSON",
        ),
    ];
    for (about, make, word) in table {
        for is_project in [false, true] {
            let world = armed();
            let file = if is_project {
                world.dir.cwd().join(".pi/settings.json")
            } else {
                world.dir.agent_dir().join("settings.json")
            };
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            let _none = std::fs::remove_file(&file);
            make(&file);
            let named = if is_project {
                ".pi/settings.json"
            } else {
                "agent/settings.json"
            };
            stops(&world, &[], &[named, word], about);
        }
    }
    let world = armed();
    std::fs::write(world.dir.agent_dir().join("settings.json"), "").unwrap();
    let pi = world.start_with(&[]);
    assert!(pi.state()["settingsError"].as_str().unwrap().contains("empty"));
    pi.finish();
}

#[test]
fn named_guards_that_cannot_load_stop_the_start() {
    let world = armed();
    world.dir.write("guard.txt", "no hook").unwrap();
    world
        .dir
        .write("bad.ts", "export default function (pi) {")
        .unwrap();
    world
        .dir
        .write(
            "throws.ts",
            "export default function () { throw new Error(\"no key\"); }",
        )
        .unwrap();
    world.dir.write("bad.extension.json", "{").unwrap();
    let mut table: Vec<(&[&str], &[&str])> = vec![
        (&["--hook", "tool_call-typo.py"], &["tool_call-typo.py"]),
        (&["--hook", "guard.txt"], &["guard.txt"]),
        (&["-e", "bad.extension.json"], &["bad.extension.json"]),
    ];
    if can_run() {
        table.extend([
            (&["-e", "guard-typo.ts"][..], &["guard-typo.ts"][..]),
            (&["-e", "bad.ts"], &["bad.ts"]),
            (&["-e", "throws.ts"], &["throws.ts", "no key"]),
            (&["--hook", "hook-typo.ts"], &["hook-typo.ts"]),
            (&["--tool", "tool-typo.ts"], &["tool-typo.ts"]),
        ]);
    }
    for (args, words) in table {
        stops(&world, args, words, args[1]);
    }
}

#[test]
fn named_guards_that_cannot_load_lock_clients_down() {
    let world = armed();
    let pi = world.start_with(&["--permission-mode", "off", "--hook", "tool_call-typo.py"]);
    pi.prompt("Go");
    let asked = pi.wait("extension_ui_request");
    let state = pi.state();
    assert_eq!(state["permissionMode"], "ask", "{state}");
    assert!(
        state["settingsError"]
            .as_str()
            .is_some_and(|error| error.contains("tool_call-typo.py")),
        "{state}"
    );
    pi.agent
        .send(&json!({"type": "extension_ui_response", "id": asked["id"], "cancelled": true}))
        .unwrap();
    pi.settled();
    assert!(!world.dir.cwd().join("must-not-run").exists());
    pi.finish();
}
