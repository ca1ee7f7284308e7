//! Mistakes on the command line and in settings stop the program before a tool can run. What a first user meets lives in
//! `first_contact`.

use std::path::Path;

use serde_json::json;
use testkit::llm::Reply;

use crate::extensions::{can_run, extended};
use crate::kit::{PROGRAM, Pi, World, bash};
use crate::web::Web;

pub(crate) const MODEL: [&str; 2] = ["--model", "mock-anthropic/claude-mock"];

/// A model that runs a command as soon as it is asked.
pub(crate) fn armed() -> World {
    World::new([bash("c1", "touch must-not-run"), Reply::text(["done"])])
}

/// Runs the program and requires exit code 2 with these words, and neither output, request nor tool.
fn refused(world: &World, args: &[&str], words: &[&str]) {
    let done = world.run(args, "");
    assert_eq!(done.code, Some(2), "{args:?}: {}{}", done.out, done.err);
    assert_eq!(done.out, "", "{args:?}");
    for word in words {
        assert!(done.err.contains(word), "{args:?}: {word}: {}", done.err);
    }
    assert!(world.server.requests().is_empty(), "{args:?}");
    assert!(!world.dir.cwd().join("must-not-run").exists(), "{args:?}");
    assert!(world.session_files().is_empty(), "{args:?}");
}

#[test]
fn unknown_option_stops_before_tools() {
    let world = armed();
    let [model, name] = MODEL;
    for (args, words) in [
        (
            &["--sandbx", "read-only", "-p", "Go"][..],
            &["--sandbx", "--sandbox"][..],
        ),
        (
            &["--permision-mode", "ask", "-p", "Go"],
            &["--permision-mode", "--permission-mode"],
        ),
        (
            &["--permision-mode=ask", "-p", "Go"],
            &["--permision-mode", "--permission-mode"],
        ),
        (
            &["--mode", "json", "--no-tool", "Go"],
            &["--no-tool", "--no-tools"],
        ),
        (
            &["--mode", "rpc", "--sandbx", "read-only"],
            &["--sandbx", "--sandbox"],
        ),
        (
            &["--mode", "web", "--web-tokn", "x"],
            &["--web-tokn", "--web-token"],
        ),
        (
            &["--no-such-thing-at-all", "-p", "Go"],
            &["--no-such-thing-at-all", "--help"],
        ),
        (&["-x", "-p", "Go"], &["-x"]),
        (&["doctor", "--jsn"], &["--jsn", "--json"]),
        (&["--no-extensions", "--plan", "-p", "Go"], &["--plan"]),
    ] {
        let all: Vec<&str> = args.iter().copied().chain([model, name]).collect();
        refused(&world, &all, words);
    }
}

#[test]
fn unusable_value_stops_before_tools() {
    let world = armed();
    for (args, words) in [
        (&["--tools", "bsh", "-p", "Go"][..], &["bsh", "bash"][..]),
        (&["--exclude-tools", "bsh", "-p", "Go"], &["bsh", "bash"]),
        (
            &["--tools", "read,nothing-like-it", "-p", "Go"],
            &["nothing-like-it", "read"],
        ),
        (&["--mode", "rpc", "--tools", "bsh"], &["bsh", "bash"]),
        (&["--mode", "foo", "-p", "Go"], &["foo", "rpc", "web"]),
        (&["--mode", "web", "--port", "99999"], &["99999", "65535"]),
        (&["--mode", "web", "--port", "many"], &["many", "--port"]),
        (&["--sandbox", "x", "-p", "Go"], &["\"x\"", "read-only"]),
        (&["--permission-mode", "x", "-p", "Go"], &["\"x\"", "ask"]),
    ] {
        refused(&world, args, words);
    }
}

#[test]
fn tool_names_of_other_agents_are_accepted() {
    let world = World::new([Reply::text(["ok"])]);
    let done = world.run(
        &[
            "--model",
            "mock-anthropic/claude-mock",
            "--tools",
            "read,lsp,*grep*",
            "-p",
            "Go",
        ],
        "",
    );
    assert_eq!((done.code, done.out.as_str()), (Some(0), "ok\n"), "{}", done.err);
    assert!(done.err.contains("lsp"), "{}", done.err);
}

#[test]
fn only_declared_options_reach_extensions() {
    if !can_run() {
        return;
    }
    let body = r#"
        pi.registerFlag("plan", { type: "boolean" });
        pi.registerFlag("depth", { type: "string" });
        pi.registerTool({ name: "measure", label: "m", description: "d", parameters: { type: "object", properties: {} },
          execute: async () => ({ content: [] }) });
        pi.on("before_agent_start", () => ({ systemPrompt: `plan ${pi.getFlag("plan")} depth ${pi.getFlag("depth")}` }));
    "#;
    let world = extended([Reply::text(["ok"])], body);
    let [model, name] = MODEL;
    refused(
        &world,
        &[model, name, "--plann", "-p", "Go"],
        &["--plann", "--plan"],
    );
    refused(
        &world,
        &[model, name, "--mode", "rpc", "--dept", "3"],
        &["--dept", "--depth"],
    );
    refused(
        &world,
        &[model, name, "--tools", "measur", "-p", "Go"],
        &["measur", "measure"],
    );
    // A boolean option does not swallow the prompt.
    let done = world.run(
        &[
            model, name, "--tools", "measure", "--depth", "3", "--plan", "Go on", "--print",
        ],
        "",
    );
    assert_eq!((done.code, done.out.as_str()), (Some(0), "ok\n"), "{}", done.err);
    let body = world.server.requests()[0].body.to_string();
    assert!(
        body.contains("plan true depth 3") && body.contains("Go on"),
        "{body}"
    );
    assert!(body.contains("\"measure\""), "{body}");
}

#[test]
fn unreadable_settings_stop_the_start() {
    for (text, place, about) in [
        (
            "{\n  \"sandbox\": {\"mode\": \"read-only\"}\n  \"theme\": 1\n}\n",
            ":3:3",
            "JSON",
        ),
        ("{\"sandbox\": \"strict\"}", ":1:13", "\"sandbox\""),
        (
            "{\n \"sandbox\": {\n  \"mode\": \"red-only\"}}",
            ":3:11",
            "\"sandbox.mode\"",
        ),
        (
            "{\"permissions\": {\"mode\": 5}}",
            ":1:26",
            "\"permissions.mode\"",
        ),
        (
            "{\"permissions\": {\"deny\": {\"bash\": true}}}",
            ":1:26",
            "\"permissions.deny\"",
        ),
        ("{\"permissions\": []}", ":1:17", "\"permissions\""),
        (
            "{\"sandbox\": {\"network\": \"no\"}}",
            ":1:25",
            "\"sandbox.network\"",
        ),
        ("{\"defaultTools\": \"read\"}", ":1:18", "\"defaultTools\""),
        ("[1]", ":1:1", "object"),
    ] {
        let world = armed();
        let file = world.dir.agent_dir().join("settings.json");
        std::fs::write(&file, text).unwrap();
        for args in [&["-p", "Go"][..], &["--mode", "json", "Go"]] {
            let all: Vec<&str> = MODEL.iter().chain(args).copied().collect();
            let done = world.run(&all, "");
            assert_eq!(
                (done.code, done.out.as_str()),
                (Some(1), ""),
                "{text}: {}",
                done.err
            );
            let named = format!("{}{place}", file.display());
            assert!(
                done.err.contains(&named) && done.err.contains(about),
                "{text}: {}",
                done.err
            );
            assert!(done.err.contains("pinion doctor"), "{}", done.err);
        }
        assert!(world.server.requests().is_empty());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    }
}

#[test]
fn unreadable_project_settings_stop_the_start() {
    let world = armed();
    world
        .dir
        .write(".pi/settings.json", "{\"permissions\": {\"deny\": [\"bash\"]}")
        .unwrap();
    let done = world.run(&[MODEL[0], MODEL[1], "-p", "Go"], "");
    assert_eq!((done.code, done.out.as_str()), (Some(1), ""), "{}", done.err);
    assert!(done.err.contains(".pi/settings.json:1:"), "{}", done.err);
    // A file that is not read cannot stop the start.
    let world = World::new([Reply::text(["ok"])]);
    world.dir.write(".pi/settings.json", "{").unwrap();
    let done = world.run(&[MODEL[0], MODEL[1], "--no-approve", "-p", "Go"], "");
    assert_eq!((done.code, done.out.as_str()), (Some(0), "ok\n"), "{}", done.err);
}

#[test]
fn unreadable_settings_start_rpc_in_locked_mode() {
    let world = armed();
    let file = world.dir.agent_dir().join("settings.json");
    std::fs::write(&file, "{\"sandbox\": {\"mode\": \"workspace-write\"} \"a\": 1}").unwrap();
    let locked = |state: &serde_json::Value| {
        assert_eq!(state["permissionMode"], "ask", "{state}");
        assert_eq!(state["sandbox"]["mode"], "read-only", "{state}");
        let error = state["settingsError"].as_str().unwrap();
        assert!(error.contains("settings.json:1:41"), "{error}");
    };
    let pi = world.start_with(&["--permission-mode", "off", "--sandbox", "off"]);
    locked(&pi.state());
    pi.warns("settings.json:1:41");
    let before = pi.lines().len();
    pi.prompt("Go");
    let asked = pi.wait("extension_ui_request");
    pi.agent
        .send(&json!({"type": "extension_ui_response", "id": asked["id"], "cancelled": true}))
        .unwrap();
    pi.settled();
    assert!(pi.lines().len() > before);
    assert!(!world.dir.cwd().join("must-not-run").exists());
    pi.finish();
    let web = Web::start(&world, &[]);
    locked(&web.tab().data(json!({"type": "get_state"})));
    web.finish();
}

#[test]
fn unlisted_hooks_folder_stops_the_start() {
    // A link to nothing, and one to itself, which fails for root, too.
    for target in ["gone", "hooks"] {
        let world = armed();
        let folder = world.dir.agent_dir().join("hooks");
        std::os::unix::fs::symlink(target, &folder).unwrap();
        for args in [&["-p", "Go"][..], &["--mode", "json", "Go"]] {
            let all: Vec<&str> = MODEL.iter().chain(args).copied().collect();
            let done = world.run(&all, "");
            assert_eq!(done.code, Some(1), "{target}: {}{}", done.out, done.err);
            assert!(done.err.contains("agent/hooks"), "{target}: {}", done.err);
        }
        assert!(world.server.requests().is_empty(), "{target}");
        let pi = world.start_with(&["--permission-mode", "off"]);
        pi.prompt("Go");
        let asked = pi.wait("extension_ui_request");
        let state = pi.state();
        assert_eq!(state["permissionMode"], "ask", "{state}");
        assert_eq!(state["sandbox"]["mode"], "read-only", "{state}");
        let error = state["settingsError"].as_str().unwrap();
        assert!(error.contains("agent/hooks"), "{error}");
        pi.agent
            .send(&json!({"type": "extension_ui_response", "id": asked["id"], "cancelled": true}))
            .unwrap();
        pi.settled();
        assert!(!world.dir.cwd().join("must-not-run").exists());
        pi.finish();
    }
}

#[test]
fn commands_behind_options_are_recognised() {
    let world = World::new([]);
    let done = world.run(&["--model", "mock-anthropic/claude-mock", "doctor", "--json"], "");
    let report: serde_json::Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(report["model"]["id"], "claude-mock");
    let done = world.run(&["--json", "models", "status"], "");
    assert!(done.out.starts_with("{\"inUse\""), "{}{}", done.out, done.err);
    for args in [&["help"][..], &["--offline", "help"], &["--help"]] {
        let done = world.run(args, "");
        assert_eq!(done.code, Some(0), "{}", done.err);
        assert!(done.out.contains("Usage: pinion"), "{}", done.out);
    }
    assert!(world.server.requests().is_empty());
}

#[test]
fn misspelled_commands_are_refused_with_suggestion() {
    let world = armed();
    let [model, name] = MODEL;
    for (word, suggestion) in [
        ("docter", "pinion doctor"),
        ("Doctor", "pinion doctor"),
        ("modles", "pinion models"),
        ("hlep", "pinion help"),
        ("login", "pinion auth login"),
        ("version", "pinion --version"),
    ] {
        refused(
            &world,
            &[model, name, word],
            &[word, suggestion, &format!("pinion -p {word}")],
        );
    }
    refused(&world, &["auht", "status"], &["auht", "pinion auth"]);
    let world = World::new([Reply::text(["ok"]), Reply::text(["ok"]), Reply::text(["ok"])]);
    for words in [&["-p", "docter"][..], &["--", "doctor"], &["The doctor said"]] {
        let all: Vec<&str> = MODEL.iter().chain(words).copied().collect();
        let done = world.run(&all, "");
        assert_eq!(
            (done.code, done.out.as_str()),
            (Some(0), "ok\n"),
            "{words:?}: {}",
            done.err
        );
    }
}

#[test]
fn config_command_of_pi_is_refused() {
    let world = armed();
    let link = world.dir.root().join("pi");
    std::os::unix::fs::symlink(PROGRAM, &link).unwrap();
    let all: Vec<&str> = MODEL.iter().copied().chain(["config"]).collect();
    let done = world.run_as(&link, &all, "");
    assert_eq!((done.code, done.out.as_str()), (Some(2), ""), "{}", done.err);
    assert!(done.err.contains("pi config"), "{}", done.err);
    assert!(world.server.requests().is_empty());
}

/// A home without any provider, key or default.
fn nothing_configured() -> World {
    let world = World::new([]);
    std::fs::remove_file(world.dir.agent_dir().join("models.json")).unwrap();
    world
}

/// Runs the program with these variables.
fn run_with(world: &World, env: &[&str], args: &[&str]) -> crate::kit::Done {
    let words: Vec<&str> = env.iter().chain([&PROGRAM]).chain(args).copied().collect();
    world.run_as(Path::new("/usr/bin/env"), &words, "")
}

#[test]
fn unusable_named_provider_or_model_is_an_error() {
    let table: [(&[&str], &[&str], &[&str]); 11] = [
        (
            &[],
            &["--provider", "anthropic"],
            &["anthropic", "ANTHROPIC_API_KEY", "pinion auth login anthropic"],
        ),
        (&[], &["--provider", "nope"], &["\"nope\"", "--list-models"]),
        (
            &["OLLAMA_HOST=http://127.0.0.1:9"],
            &["--provider", "ollama"],
            &["Ollama", "http://127.0.0.1:9", "ollama serve"],
        ),
        (
            &["OLLAMA_HOST=http://127.0.0.1:9"],
            &[],
            &["OLLAMA_HOST", "ollama serve"],
        ),
        (&[], &["--model", "claude-sonnet-4-5"], &["ANTHROPIC_API_KEY"]),
        (
            &[],
            &["--model", "no-such-model-anywhere"],
            &["no-such-model-anywhere", "--list-models"],
        ),
        (&[], &["--models", "nothing-like-it"], &["nothing-like-it"]),
        (&[], &["--api-key", "sk-1"], &["--api-key", "--model"]),
        (
            &["AZURE_OPENAI_BASE_URL=http://127.0.0.1:9"],
            &[],
            &["AZURE_OPENAI_BASE_URL"],
        ),
        (&["VLLM_BASE_URL=http://127.0.0.1:9"], &[], &["VLLM_BASE_URL"]),
        (
            &["ANTHROPIC_API_KEY="],
            &["--provider", "openai"],
            &["OPENAI_API_KEY"],
        ),
    ];
    for (env, args, words) in table {
        for tail in [&["-p", "Hi"][..], &["--mode", "json", "Hi"]] {
            let world = nothing_configured();
            let all: Vec<&str> = args.iter().chain(tail).copied().collect();
            let done = run_with(&world, env, &all);
            assert_eq!(done.code, Some(1), "{env:?} {all:?}: {}{}", done.out, done.err);
            assert!(!done.out.contains("offline"), "{all:?}: {}", done.out);
            for word in words {
                assert!(done.err.contains(word), "{env:?} {all:?}: {word}: {}", done.err);
            }
        }
    }
}

#[test]
fn unusable_stored_defaults_and_keys_are_errors() {
    let files: [(&str, &str, &[&str]); 6] = [
        (
            "settings.json",
            r#"{"defaultProvider": "anthropic"}"#,
            &["defaultProvider", "anthropic"],
        ),
        (
            "settings.json",
            r#"{"defaultProvider": "anthropic", "defaultModel": "gone-1"}"#,
            &["anthropic/gone-1"],
        ),
        ("settings.json", r#"{"enabledModels": ["gone-*"]}"#, &["gone-*"]),
        (
            "auth.json",
            r#"{"anthropic": {"type": "api_key", "key": "$NOWHERE_KEY"}}"#,
            &["anthropic", "auth.json"],
        ),
        (
            "models.json",
            r#"{"providers": {"home": {"baseUrl": "http://127.0.0.1:9/v1", "api": "openai-completions",
            "apiKey": "$NOWHERE_KEY", "models": [{"id": "m"}]}}}"#,
            &["home", "models.json"],
        ),
        ("models.json", "{ not json", &["models.json"]),
    ];
    for (file, text, words) in files {
        let world = nothing_configured();
        std::fs::write(world.dir.agent_dir().join(file), text).unwrap();
        let done = world.run(&["-p", "Hi"], "");
        assert_eq!(
            (done.code, done.out.as_str()),
            (Some(1), ""),
            "{text}: {}",
            done.err
        );
        for word in words {
            assert!(done.err.contains(word), "{text}: {word}: {}", done.err);
        }
    }
}

#[test]
fn unusable_local_servers_setting_is_an_error() {
    for text in [
        r#"{"localServers": "http://127.0.0.1:9"}"#,
        r#"{"localServers": {"servers": ["http://127.0.0.1:9"]}}"#,
        r#"{"localServers": {"servers": {"mine": 9}}}"#,
    ] {
        let world = nothing_configured();
        std::fs::write(world.dir.agent_dir().join("settings.json"), text).unwrap();
        let done = world.run(&["-p", "Hi"], "");
        assert_eq!(
            (done.code, done.out.as_str()),
            (Some(1), ""),
            "{text}: {}",
            done.err
        );
        assert!(done.err.contains("localServers"), "{text}: {}", done.err);
    }
}

#[test]
fn provider_flag_alone_selects_its_default_model() {
    let world = World::new([Reply::text(["ok"])]);
    let done = world.run(&["--provider", "mock-openai", "-p", "Hi"], "");
    assert_eq!((done.code, done.out.as_str()), (Some(0), "ok\n"), "{}", done.err);
    assert_eq!(world.server.requests()[0].body["model"], "gpt-mock");
}

#[test]
fn offline_answer_states_that_no_ai_answered() {
    let world = nothing_configured();
    let done = world.run(&["-p", "Hi"], "");
    assert_eq!(done.code, Some(0), "{}", done.err);
    let first = done.out.lines().next().unwrap();
    assert!(first.contains("No AI was asked"), "{}", done.out);
    let pi = Pi::spawn(world.dir.agent(PROGRAM).args(["--mode", "rpc"]));
    let models = pi.get("get_available_models");
    assert_eq!(models["models"].as_array().unwrap().len(), 1, "{models}");
    assert_eq!(models["models"][0]["provider"], "offline");
    pi.finish();
    let world = World::new([]);
    let pi = Pi::spawn(
        world
            .dir
            .agent(PROGRAM)
            .args(["--mode", "rpc", "--model", "offline/echo"]),
    );
    let models = pi.get("get_available_models").to_string();
    assert!(
        models.contains("claude-mock") && !models.contains("offline"),
        "{models}"
    );
    pi.finish();
}
