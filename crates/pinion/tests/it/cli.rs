//! Arguments: output, refused options, and effects of flags.

use std::path::Path;

use serde_json::json;
use testkit::llm::Reply;

use crate::check;
use crate::kit::{PROGRAM, Pi, World};

#[test]
fn version_flag_prints_version() {
    let world = World::new([]);
    for flag in ["--version", "-v"] {
        let done = world.run(&[flag], "");
        assert_eq!((done.code, done.err.as_str()), (Some(0), ""));
        let ours = format!("pinion {} (", env!("CARGO_PKG_VERSION"));
        assert!(
            done.out.starts_with(&ours) && done.out.ends_with(")\n"),
            "{}",
            done.out
        );
    }
}

#[test]
fn program_named_pi_prints_version_of_pi() {
    let world = World::new([Reply::text(["ok"])]);
    let link = world.dir.root().join("pi");
    std::os::unix::fs::symlink(PROGRAM, &link).unwrap();
    let done = world.run_as(&link, &["--version"], "");
    assert_eq!(done.code, Some(0));
    let parts: Vec<u32> = done
        .out
        .trim()
        .split('.')
        .map(|part| part.parse().unwrap())
        .collect();
    assert_eq!(parts.len(), 3, "{}", done.out);
    let mut config = world.config();
    config.program = link;
    let pi = Pi::spawn(config);
    pi.data(json!({"type": "bash", "command": "true"}));
    pi.say("Hi");
    pi.finish();
}

#[test]
fn help_flag_lists_options() {
    let world = World::new([]);
    for flag in ["--help", "-h"] {
        let done = world.run(&[flag], "");
        assert_eq!(done.code, Some(0));
        for word in ["--mode", "--model", "--session", "--no-tools", "--offline"] {
            assert!(done.out.contains(word), "{word}");
        }
    }
}

#[test]
fn list_models_flag_prints_and_filters() {
    let world = World::new([]);
    let done = world.run(&["--list-models"], "");
    assert_eq!(done.code, Some(0));
    assert!(
        done.out.contains("claude-mock") && done.out.contains("gpt-mock"),
        "{}",
        done.out
    );
    let done = world.run(&["--list-models", "plain"], "");
    assert!(
        done.out.contains("claude-plain") && !done.out.contains("gpt-mock"),
        "{}",
        done.out
    );
}

#[test]
fn command_line_mistakes_exit_with_error() {
    let world = World::new([]);
    for (args, word, code) in [
        (&["-x"][..], "-x", 2),
        (&["--mode", "rpc", "-x"], "-x", 2),
        (&["--mode", "sideways"], "sideways", 2),
        (&["--model"], "--model", 2),
        (
            &["--mode", "rpc", "--model", "no-such-model-anywhere"],
            "no-such-model-anywhere",
            1,
        ),
        (&["--mode", "rpc", "@file.txt"], "@file", 1),
        (
            &["--mode", "rpc", "--session", "a", "--session-id", "b"],
            "--session",
            1,
        ),
    ] {
        let done = world.run(args, "");
        assert_eq!(done.code, Some(code), "{args:?}: {}{}", done.out, done.err);
        assert_eq!(done.out, "", "{args:?}");
        assert!(done.err.contains(word), "{args:?}: {}", done.err);
    }
}

#[test]
fn cwd_flag_changes_working_directory() {
    let world = World::new([Reply::text(["ok"])]);
    world
        .dir
        .write("other/AGENTS.md", "Speak like a pirate.")
        .unwrap();
    let pi = world.start_with(&["--cwd", "other", "--session-dir", "kept"]);
    pi.say("Hi");
    let (file, other) = (pi.file(), world.dir.cwd().join("other").canonicalize().unwrap());
    pi.finish();
    assert!(file.starts_with(other.join("kept")), "{}", file.display());
    assert_eq!(check::header(&file)["cwd"], other.to_str().unwrap());
    assert!(
        world.server.requests()[0].body["system"]
            .to_string()
            .contains("pirate")
    );
    let done = world.run(&["--cwd", "nowhere", "-p", "Hi"], "");
    assert_eq!(done.code, Some(1));
    assert!(
        done.err.contains("Cannot change working directory to nowhere"),
        "{}",
        done.err
    );
}

#[test]
fn provider_session_id_is_key_of_prompt_cache() {
    let world = World::new([Reply::text(["ok"])]);
    let options = ["--mode", "rpc", "--provider-session-id", "mine"];
    let model = ["--provider", "mock-responses", "--model", "resp-mock"];
    let pi = Pi::spawn(world.dir.agent(PROGRAM).args(options).args(model));
    pi.say("Hi");
    pi.finish();
    assert_eq!(world.server.requests()[0].body["prompt_cache_key"], "mine");
}

#[test]
fn system_prompt_flags_change_request() {
    let world = World::new([Reply::text(["ok"]), Reply::text(["ok"]), Reply::text(["ok"])]);
    world.dir.write("AGENTS.md", "Speak like a pirate.").unwrap();
    let system = |number: usize| world.server.requests()[number].body["system"].to_string();
    let pi = world.start();
    pi.say("Hi");
    pi.finish();
    assert!(system(0).contains("Speak like a pirate."));
    world.dir.write("extra.md", "From a file.").unwrap();
    let pi = world.start_with(&[
        "--system-prompt",
        "You are a fish.",
        "--append-system-prompt",
        "./extra.md",
        "--append-system-prompt",
        "Be brief.",
    ]);
    pi.say("Hi");
    pi.finish();
    let prompt = system(1);
    assert!(
        ["You are a fish.", "From a file.", "Be brief."]
            .iter()
            .all(|part| prompt.contains(part)),
        "{prompt}"
    );
    let pi = world.start_with(&["--no-context-files"]);
    pi.say("Hi");
    pi.finish();
    assert!(!system(2).contains("Speak like a pirate."));
}

#[test]
fn tool_flags_change_offered_tools() {
    let cases: [(&[&str], &[&str]); 4] = [
        (&[], &["read", "bash", "edit", "write"]),
        (&["--tools", "read,grep"], &["read", "grep"]),
        (&["--exclude-tools", "bash"], &["read", "edit", "write"]),
        (&["--no-tools"], &[]),
    ];
    for (args, expected) in cases {
        let world = World::new([Reply::text(["ok"])]);
        let pi = world.start_with(args);
        pi.say("Hi");
        pi.finish();
        let body = world.server.requests()[0].body.clone();
        let tools = body["tools"].as_array().cloned().unwrap_or_default();
        let mut names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        names.sort_unstable();
        let mut expected = expected.to_vec();
        expected.sort_unstable();
        assert_eq!(names, expected, "{args:?}");
    }
}

#[test]
fn disabled_tool_call_does_not_run() {
    let world = World::new([crate::kit::bash("c1", "touch must-not-run"), Reply::text(["ok"])]);
    let pi = world.start_with(&["--tools", "read"]);
    pi.say("Hi");
    pi.finish();
    assert!(!world.dir.cwd().join("must-not-run").exists());
}

#[test]
fn model_patterns_and_levels_are_applied() {
    let world = World::new([]);
    for (args, id, level) in [
        (&["--model", "mock-openai/gpt-mock"][..], "gpt-mock", "medium"),
        (&["--model", "claude-mock:high"], "claude-mock", "high"),
        (
            &["--provider", "mock-openai", "--model", "gpt"],
            "gpt-mock",
            "medium",
        ),
        (
            &["--model", "claude-plain", "--thinking", "high"],
            "claude-plain",
            "off",
        ),
    ] {
        let pi = Pi::spawn(
            world
                .dir
                .agent(PROGRAM)
                .args(["--mode", "rpc"])
                .args(args.iter().copied()),
        );
        let state = pi.state();
        assert_eq!(
            (&state["model"]["id"], &state["thinkingLevel"]),
            (&json!(id), &json!(level)),
            "{args:?}"
        );
        pi.finish();
    }
}

#[test]
fn api_key_flag_takes_precedence() {
    let world = World::new([Reply::text(["ok"])]);
    let pi = world.start_with(&["--api-key", "from-the-command-line"]);
    pi.say("Hi");
    pi.finish();
    assert_eq!(
        world.server.requests()[0].header("x-api-key"),
        Some("from-the-command-line")
    );
}

#[test]
fn prompt_without_key_is_refused() {
    let world = World::new([]);
    std::fs::remove_file(world.dir.agent_dir().join("models.json")).unwrap();
    let pi = Pi::spawn(world.dir.agent(PROGRAM).args([
        "--mode",
        "rpc",
        "--provider",
        "anthropic",
        "--model",
        "claude-sonnet-4-5",
    ]));
    let error = pi.error(json!({"type": "prompt", "message": "Hi"}));
    assert!(error.contains("anthropic"), "{error}");
    assert!(crate::kit::of_type(&pi.lines(), "agent_start").is_empty());
    pi.finish();
}

#[test]
fn offline_model_answers_without_configuration() {
    let world = World::new([]);
    std::fs::remove_file(world.dir.agent_dir().join("models.json")).unwrap();
    world.dir.write("a-file.txt", "x").unwrap();
    let pi = Pi::spawn(world.dir.agent(PROGRAM).args(["--mode", "rpc"]));
    let lines = pi.say("List the files in this directory");
    assert!(
        crate::kit::of_type(&lines, "tool_execution_end")[0]
            .to_string()
            .contains("a-file.txt")
    );
    pi.warns("not an AI");
    pi.finish();
}

#[test]
fn offline_script_answers_with_scripted_replies() {
    let world = World::new([]);
    let script = json!([
        {"stream": [{"text": ["I ", "look."]}, {"tool": {"name": "bash", "args": {"command": "echo scripted"}}}]},
        {"error": {"kind": "overloaded"}},
        {"stream": [{"text": "Done."}], "usage": {"input": 7, "output": 2}},
    ]);
    world.dir.write("replies.json", script.to_string()).unwrap();
    let pi = Pi::spawn(world.dir.agent(PROGRAM).args([
        "--mode",
        "rpc",
        "--model",
        "offline/script",
        "--script",
        "replies.json",
    ]));
    let lines = pi.say("Go");
    assert!(
        crate::kit::of_type(&lines, "tool_execution_end")[0]
            .to_string()
            .contains("scripted")
    );
    assert_eq!(crate::kit::of_type(&lines, "auto_retry_start").len(), 1);
    assert_eq!(crate::kit::answers(&lines).last().unwrap()["usage"]["input"], 7);
    assert_eq!(pi.get("get_last_assistant_text")["text"], "Done.");
    pi.finish();
    assert!(world.server.requests().is_empty());
}

#[test]
fn broken_settings_are_reported_and_kept() {
    let world = World::new([Reply::text(["ok"])]);
    std::fs::write(world.dir.agent_dir().join("settings.json"), "{ this is not JSON").unwrap();
    let pi = world.start();
    pi.say("Hi");
    pi.warns("settings.json");
    pi.finish();
    let content = std::fs::read_to_string(world.dir.agent_dir().join("settings.json")).unwrap();
    assert_eq!(content, "{ this is not JSON");
}

#[test]
fn agent_writes_nothing_into_working_directory() {
    let world = World::new([Reply::text(["ok"])]);
    let pi = world.start();
    pi.say("Hi");
    pi.finish();
    let left: Vec<_> = std::fs::read_dir(world.dir.cwd()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    assert!(!Path::new(&world.dir.home()).join(".pi").exists());
}
