//! `pinion doctor`: what it finds, what it never shows, and that it leaves everything as it was.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::Command;
use std::sync::mpsc;

use serde_json::{Value, json};

use crate::kit::{Done, LONG, PROGRAM, World, files_below};

fn visit(world: &World, args: &[&str], env: &[(&str, &str)]) -> Done {
    let mut command = Command::new(PROGRAM);
    command.arg("doctor").args(args).env_clear().envs(world.dir.env());
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.envs(env.iter().copied()).current_dir(world.dir.cwd());
    world.run_command(&mut command, "")
}

fn examine(world: &World, args: &[&str], env: &[(&str, &str)]) -> (Option<i32>, Value) {
    let args: Vec<&str> = args.iter().copied().chain(["--json"]).collect();
    let visit = visit(world, &args, env);
    assert_eq!(visit.err, "");
    let line = visit.out.strip_suffix('\n').unwrap();
    assert!(!line.contains('\n'), "one line for programs");
    (visit.code, serde_json::from_str(line).unwrap())
}

/// Nothing in the agent directory.
fn clean() -> World {
    let world = World::new([]);
    for file in files_below(&world.dir.agent_dir()) {
        std::fs::remove_file(file).unwrap();
    }
    world
}

fn auth(world: &World, entries: &Value) {
    let path = world.dir.agent_dir().join("auth.json");
    world.dir.write(&path, entries.to_string()).unwrap();
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(path, private).unwrap();
}

fn messages(report: &Value) -> Vec<&str> {
    let problems = report["problems"].as_array().unwrap().iter();
    problems
        .map(|problem| problem["message"].as_str().unwrap())
        .collect()
}

#[test]
fn doctor_in_clean_home_advises_and_changes_nothing() {
    let world = clean();
    let visit = visit(&world, &[], &[]);
    assert_eq!((visit.code, visit.err.as_str()), (Some(1), ""), "{}", visit.out);
    let result = visit.out.split("\nResult\n").nth(1).unwrap();
    assert!(
        result.starts_with("  ✗ Not ready: no provider has a key."),
        "{result}"
    );
    assert!(
        result.contains("export ANTHROPIC_API_KEY=") && result.contains("not an AI"),
        "{result}"
    );
    assert!(
        visit.out.contains("/auth.json  not there") && visit.out.contains("no sessions yet"),
        "{}",
        visit.out
    );
    let (code, report) = examine(&world, &[], &[]);
    assert_eq!((code, &report["ready"]), (Some(1), &json!(false)));
    assert_eq!(report["model"]["provider"], "offline");
    assert_eq!(report["credentials"]["providers"], json!([]));
    assert_eq!(report["problems"].as_array().unwrap().len(), 1, "{report}");
    assert_eq!(files_below(world.dir.root()), Vec::<std::path::PathBuf>::new());
    assert!(!world.dir.agent_dir().join("sessions").exists());
    // The stand-in is good enough for those who ask for it.
    let (code, report) = examine(&world, &["--model", "offline/echo"], &[]);
    assert_eq!((code, &report["model"]["chosenBy"]), (Some(0), &json!("--model")));
}

#[test]
fn doctor_with_key_is_ready_without_requests() {
    let world = World::new([]);
    std::fs::remove_file(world.dir.agent_dir().join("models.json")).unwrap();
    let env = [("ANTHROPIC_API_KEY", "planted-key-of-anthropic-0001")];
    let seen = visit(&world, &[], &env);
    assert_eq!(seen.code, Some(0), "{}", seen.out);
    assert!(seen.out.contains("\n  ✓ Ready: anthropic/"), "{}", seen.out);
    let (_, report) = examine(&world, &["--thinking", "high"], &env);
    let model = &report["model"];
    assert_eq!(
        (&model["provider"], &model["keyFrom"]),
        (&json!("anthropic"), &json!("ANTHROPIC_API_KEY"))
    );
    assert_eq!(
        (&model["thinking"], &model["thinkingBy"]),
        (&json!("high"), &json!("--thinking"))
    );
    assert_eq!(report["credentials"]["providers"][0]["provider"], "anthropic");
    assert!(world.server.requests().is_empty());
}

#[test]
fn doctor_report_contains_no_secrets() {
    let world = clean();
    let url = "http://me:passwordInAddress@127.0.0.1:9/tokenInPath?key=keyInQuery";
    let own = json!({"baseUrl": url, "api": "openai-completions", "apiKey": "literalModelsKey-0123456789",
        "headers": {"X-Key": "headerSecret-0123456789", "X-Var": "MY_HEADER_KEY"}, "models": [{"id": "m"}]});
    world
        .dir
        .write_models(&json!({"providers": {"mine": own}}))
        .unwrap();
    let later = 4_102_444_800_000_u64;
    auth(
        &world,
        &json!({
            "anthropic": {"type": "oauth", "access": "accessToken-0123456789", "refresh": "refreshToken-0123456789",
                          "expires": later, "accountId": "accountSecret-0123456789"},
            "openai": {"type": "api_key", "key": "storedOpenaiKey-0123456789", "env": {"X": "envSecret-0123456789"}},
            "groq": {"type": "api_key", "key": "short-key"},
            "xai": {"type": "api_key", "key": "!echo commandSecret-0123456789"},
            "odd": {"type": "api_key", "key": 5, "note": "wrongShape-0123456789"},
        }),
    );
    world
        .dir
        .write_settings(
            &json!({"httpProxy": "http://u:settingsPassword@p", "shellCommandPrefix": "export T=prefixSecret",
            "zzz": "unknownValue-0123", "defaultTools": 5, "defaultProvider": "mine", "defaultModel": "m"}),
        )
        .unwrap();
    let env = [
        ("OPENAI_API_KEY", "sk-planted-openai-0123456789"),
        ("GEMINI_API_KEY", "plantedShort"),
        ("AWS_SECRET_ACCESS_KEY", "awsSecretPlanted0123456789"),
        ("AWS_ACCESS_KEY_ID", "AKIAplanted0123456789"),
        ("HTTPS_PROXY", "http://user:proxyPassword@proxy.example:8080"),
        ("MY_HEADER_KEY", "headerVariable-0123456789"),
        ("NOT_OURS", "someoneElses-0123456789"),
    ];
    let secrets = [
        "passwordInAddress",
        "tokenInPath",
        "keyInQuery",
        "literalModelsKey",
        "headerSecret",
        "accessToken-",
        "refreshToken",
        "accountSecret",
        "storedOpenaiKey",
        "envSecret",
        "short-key",
        "commandSecret",
        "wrongShape",
        "settingsPassword",
        "prefixSecret",
        "unknownValue",
        "sk-planted",
        "plantedShort",
        "awsSecretPlanted",
        "AKIAplanted",
        "proxyPassword",
        "headerVariable",
        "someoneElses",
        "runtimeKeyPlanted",
        "0123456789",
    ];
    for args in [
        &[][..],
        &["--json"],
        &["--model", "mine/m", "--api-key", "runtimeKeyPlanted-0123"],
    ] {
        let seen = visit(&world, args, &env);
        assert_eq!(seen.code, Some(0), "{}{}", seen.out, seen.err);
        let all = format!("{}{}", seen.out, seen.err);
        for secret in secrets {
            assert!(!all.contains(secret), "{args:?} shows {secret}:\n{all}");
            // Nor a piece of it that is longer than what a mask lets through.
            let letters: Vec<char> = secret.chars().collect();
            for piece in letters.windows(9) {
                let piece: String = piece.iter().collect();
                assert!(
                    !all.contains(&piece),
                    "{args:?} shows {piece} of {secret}:\n{all}"
                );
            }
        }
    }
    let (_, report) = examine(&world, &[], &env);
    let shown = report["environment"].as_array().unwrap();
    let value = |name: &str| {
        shown.iter().find(|one| one["name"] == name).unwrap()["value"]
            .as_str()
            .unwrap()
    };
    assert_eq!(value("OPENAI_API_KEY"), "sk-…89");
    assert_eq!(value("GEMINI_API_KEY"), "****");
    assert_eq!(value("HTTPS_PROXY"), "http://****@proxy.example:8080");
    assert_eq!(
        report["credentials"]["modelsFile"]["providers"][0]["address"],
        "http://****@127.0.0.1:9"
    );
}

#[test]
fn doctor_names_line_and_column_of_broken_files() {
    let broken = "{\n  \"a\": 1,\n  oops\n}";
    for (name, section, file) in [
        ("settings.json", "settings", "/settings/files/0"),
        ("models.json", "credentials", "/credentials/modelsFile"),
        ("auth.json", "credentials", "/credentials/authFile"),
    ] {
        let world = World::new([]);
        let path = world.dir.agent_dir().join(name);
        world.dir.write(&path, broken).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let env = [("ANTHROPIC_API_KEY", "planted-key-of-anthropic-0001")];
        let seen = visit(&world, &[], &env);
        assert_eq!(seen.code, Some(0), "a model can still be used\n{}", seen.out);
        let line = seen
            .out
            .split("\nWorth a look\n")
            .nth(1)
            .unwrap()
            .replace("\n    ", " ");
        assert!(line.contains(&format!("{}: ", path.display())), "{}", seen.out);
        assert!(line.contains("line 3 column 3"), "{}", seen.out);
        assert!(
            seen.out.contains("broken, so all of it is left out"),
            "{}",
            seen.out
        );
        let (_, report) = examine(&world, &[], &env);
        assert_eq!(report.pointer(file).unwrap()["state"], "broken", "{section}");
        assert_eq!(messages(&report).len(), 1, "{report}");
        // Without that key there is nothing left to ask, and the broken file is the first thing to repair.
        let (code, _) = examine(&world, &[], &[]);
        assert_eq!(code, Some(i32::from(name == "models.json")));
    }
}

#[test]
fn doctor_reports_odd_values_and_open_files() {
    let world = World::new([]);
    world
        .dir
        .write_settings(&json!({"defaultModel": "gone", "defaultProvider": "mock-openai", "compaction": {"enabled": "yes"},
            "theme": "dark", "steeringmode": "all"}))
        .unwrap();
    let path = world.dir.agent_dir().join("auth.json");
    world
        .dir
        .write(
            &path,
            json!({"antropic": {"type": "api_key", "key": "k"}}).to_string(),
        )
        .unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let (code, report) = examine(&world, &[], &[]);
    assert_eq!(code, Some(0));
    let told = messages(&report).join("\n");
    for words in [
        "settings.json: \"compaction.enabled\" should be true or false",
        "mock-openai/gone, is not known",
        "chmod 600",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
    assert_eq!(report["credentials"]["authFile"]["entries"][0]["known"], false);
    let seen = visit(&world, &[], &[]).out;
    assert!(
        seen.contains("unknown: steeringmode (did you mean steeringMode?)"),
        "{seen}"
    );
    assert!(seen.contains("no meaning here: theme"), "{seen}");
}

#[test]
fn doctor_explains_problems() {
    let world = World::new([]);
    let (code, report) = examine(&world, &["--model", "no-such-model-anywhere"], &[]);
    assert_eq!(code, Some(1));
    assert!(
        report["summary"]
            .as_str()
            .unwrap()
            .contains("no-such-model-anywhere"),
        "{report}"
    );
    assert!(
        report["advice"].as_str().unwrap().contains("--list-models"),
        "{report}"
    );

    let (code, report) = examine(&world, &["--provider", "openai", "--model", "gpt-4o"], &[]);
    assert_eq!(code, Some(1));
    assert!(
        report["advice"].as_str().unwrap().contains("OPENAI_API_KEY"),
        "{report}"
    );

    let tokens = |expires: u64| json!({"type": "oauth", "access": "a", "refresh": "r", "expires": expires});
    auth(
        &world,
        &json!({"anthropic": tokens(1_000), "openai": tokens(4_102_444_800_000)}),
    );
    let (code, report) = examine(&world, &["--provider", "anthropic", "--model", "sonnet"], &[]);
    assert_eq!(code, Some(1));
    assert!(
        report["summary"].as_str().unwrap().contains("has run out"),
        "{report}"
    );
    let shown = &report["credentials"]["authFile"]["entries"];
    assert!(
        shown[0]["shown"].as_str().unwrap().starts_with("****, expired "),
        "{shown}"
    );
    assert!(
        shown[1]["shown"]
            .as_str()
            .unwrap()
            .starts_with("****, expires in "),
        "{shown}"
    );
}

#[test]
fn doctor_does_not_run_key_commands() {
    let world = clean();
    let mark = world.dir.root().join("ran");
    let command = format!("!touch {}; echo key", mark.display());
    auth(&world, &json!({"anthropic": {"type": "api_key", "key": command}}));
    let (code, report) = examine(&world, &[], &[]);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(
        report["credentials"]["authFile"]["entries"][0]["shown"],
        "from a command (not run here)"
    );
    assert!(!mark.exists());
}

#[test]
fn doctor_project_section_depends_on_trust() {
    let world = World::new([]);
    world
        .dir
        .write(
            ".pi/settings.json",
            r#"{"shellPath": "/no/shell", "defaultTools": ["+grep"]}"#,
        )
        .unwrap();
    world
        .dir
        .write(
            ".pi/skills/review/SKILL.md",
            "---\nname: review\ndescription: d\n---\nx",
        )
        .unwrap();
    world.dir.write("AGENTS.md", "hello").unwrap();
    let (_, report) = examine(&world, &[], &[]);
    assert_eq!(
        (&report["program"]["project"], &report["tools"]["shellExists"]),
        (&json!("limited"), &json!(true))
    );
    assert_eq!(report["settings"]["files"][1]["keys"][0]["use"], "untrusted");
    assert_eq!(report["resources"]["skills"][0]["name"], "review");
    assert_eq!(
        report["tools"]["active"],
        json!(["read", "bash", "edit", "write"])
    );
    let (_, report) = examine(&world, &["--approve"], &[]);
    assert_eq!(
        (&report["program"]["project"], &report["tools"]["shellExists"]),
        (&json!("trusted"), &json!(false))
    );
    assert!(
        messages(&report).join("\n").contains("/no/shell does not exist"),
        "{report}"
    );
    assert!(
        report["tools"]["active"]
            .as_array()
            .unwrap()
            .contains(&json!("grep"))
    );
    let (_, report) = examine(&world, &["--no-approve"], &[]);
    assert_eq!(
        (
            &report["program"]["project"],
            &report["resources"]["contextFiles"]
        ),
        (&json!("ignored"), &json!([world.dir.cwd().join("AGENTS.md")]))
    );
    assert_eq!(report["settings"]["files"][1]["state"], "not-read");
}

#[test]
fn doctor_counts_rules_and_names_broken_ones() {
    let world = World::new([]);
    for (name, condition) in [("no-unsafe", "unsafe"), ("broken", "'('")] {
        let text = format!("---\ncondition: {condition}\n---\nDo not.");
        world.dir.write(format!(".pi/rules/{name}.md"), &text).unwrap();
    }
    let (_, report) = examine(&world, &[], &[]);
    let rules = report["resources"]["rules"].as_array().unwrap();
    assert_eq!(rules.len(), 1, "{rules:?}");
    assert_eq!(
        (&rules[0]["name"], &rules[0]["scope"]),
        (&json!("no-unsafe"), &json!("project"))
    );
    let messages = messages(&report).join("\n");
    assert!(
        messages.contains("broken.md: condition \"(\" cannot be used"),
        "{messages}"
    );
    let shown = visit(&world, &[], &[]).out;
    assert!(
        shown.contains("1 (1 of the project, 0 of yours); 1 problem (see below)"),
        "{shown}"
    );
}

#[test]
fn doctor_counts_sessions() {
    let world = World::new([testkit::llm::Reply::text(["ok"])]);
    let done = world.run(&["--model", "mock-anthropic/claude-mock", "-p", "Hi"], "");
    assert_eq!(done.code, Some(0), "{}", done.err);
    let before = world.session_files();
    let (_, report) = examine(&world, &[], &[]);
    let here = &report["sessions"]["here"];
    assert_eq!(
        (&here["count"], &report["sessions"]["all"]["count"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(here["newest"].as_str().unwrap(), before[0].to_str().unwrap());
    assert_eq!(here["bytes"], std::fs::metadata(&before[0]).unwrap().len());
    assert_eq!(world.session_files(), before);
    let (_, report) = examine(&world, &["--session-dir", "elsewhere"], &[]);
    assert_eq!(
        (
            &report["sessions"]["chosenBy"],
            &report["sessions"]["here"]["count"]
        ),
        (&json!("--session-dir"), &json!(0))
    );
    let (_, report) = examine(&world, &["--no-session"], &[]);
    assert_eq!(report["sessions"]["dir"], Value::Null);
}

#[test]
fn doctor_is_a_separate_command() {
    let world = World::new([]);
    let done = visit(&world, &["what", "is", "wrong"], &[]);
    assert_eq!((done.code, done.out.as_str()), (Some(2), ""));
    assert!(
        done.err.contains("doctor takes options only, not \"what\""),
        "{}",
        done.err
    );
    let help = world.run(&["doctor", "--help"], "").out;
    assert!(help.contains("doctor [--json]"), "{help}");
    // Elsewhere the word is a word, and the option an error.
    let world = World::new([testkit::llm::Reply::text(["ok"])]);
    let done = world.run(&["--model", "mock-anthropic/claude-mock", "-p", "doctor"], "");
    assert_eq!(done.code, Some(0), "{}", done.err);
    let done = world.run(&["--json", "-p", "doctor"], "");
    assert_eq!(done.code, Some(2));
    assert!(done.err.contains("Unknown option: --json"), "{}", done.err);
}

#[test]
fn doctor_with_unusable_home_reports_without_crash() {
    let world = World::new([]);
    let file = world.dir.root().join("file");
    world.dir.write(&file, "x").unwrap();
    let file = file.to_str().unwrap();
    let (code, report) = examine(&world, &[], &[("PI_CODING_AGENT_DIR", file)]);
    assert_eq!(code, Some(1));
    assert!(
        messages(&report).join("\n").contains("is no directory"),
        "{report}"
    );
    let (code, report) = examine(&world, &[], &[("PI_CODING_AGENT_DIR", "/no/such/place")]);
    assert_eq!(
        (code, &report["program"]["agentDirExists"]),
        (Some(1), &json!(false))
    );
    let seen = visit(&world, &[], &[("PI_CODING_AGENT_DIR", ""), ("HOME", "")]);
    assert_eq!((seen.code, seen.out.as_str()), (Some(1), ""));
    assert!(seen.err.contains("HOME is not set"), "{}", seen.err);
}

#[test]
fn proxy_setting_routes_requests() {
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", proxy.local_addr().unwrap());
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let (stream, _) = proxy.accept().unwrap();
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        sender.send(line)
    });
    let world = World::new([]);
    let own = json!({"baseUrl": "http://model.invalid/v1", "api": "openai-completions", "apiKey": "k", "models": [{"id": "m"}]});
    world
        .dir
        .write_models(&json!({"providers": {"mine": own}}))
        .unwrap();
    world.settings(json!({"httpProxy": address, "retry": {"enabled": false}}));
    let done = world.run(&["-p", "Hi", "--model", "mine/m"], "");
    assert_eq!(done.code, Some(1), "{}", done.out);
    let line = receiver.recv_timeout(LONG).unwrap();
    assert!(
        line.starts_with("POST http://model.invalid/v1/chat/completions "),
        "{line}"
    );
}

#[test]
fn doctor_lists_hooks_and_load_failures() {
    let world = World::new([]);
    let (hooks, project) = (
        world.dir.agent_dir().join("hooks"),
        world.dir.cwd().join(".pi/hooks"),
    );
    crate::hooks::script(hooks.join("tool_call-guard.sh"), "exit 0");
    crate::hooks::script(hooks.join("message_update.sh"), "exit 0");
    crate::hooks::script(project.join("agent_end.sh"), "exit 0");
    std::fs::write(hooks.join("older.ts"), "export default () => {}").unwrap();
    let find = |report: &Value, name: &str| {
        let loaded = report["extensions"]["loaded"].as_array().unwrap().clone();
        let mut found = loaded.into_iter();
        found
            .find(|one| one["path"].as_str().unwrap().ends_with(name))
            .unwrap()
    };
    let (_, report) = examine(&world, &[], &[]);
    let guard = find(&report, "tool_call-guard.sh");
    assert_eq!(
        (&guard["kind"], &guard["event"], &guard["problem"]),
        (&json!("executable"), &json!("tool_call"), &Value::Null)
    );
    assert_eq!(find(&report, "older.ts")["kind"], "hook");
    let why = |name: &str| find(&report, name)["problem"].as_str().unwrap().to_owned();
    assert!(why("message_update.sh").contains("message_end"));
    assert!(why("agent_end.sh").contains("not trusted"));
    assert!(
        messages(&report)
            .iter()
            .any(|message| message.contains("agent_end.sh"))
    );
    let (_, report) = examine(&world, &["--approve"], &[]);
    assert_eq!(find(&report, "agent_end.sh")["event"], "agent_end");
    let shown = visit(&world, &[], &[("PATH", "/nonexistent")]).out;
    assert!(
        shown.contains("for tool_call") && shown.contains("not loaded"),
        "{shown}"
    );
    assert!(shown.contains("Node 20"), "{shown}");
}

#[test]
fn doctor_shows_age_of_model_list() {
    let world = clean();
    let (_, report) = examine(&world, &[], &[]);
    let list = &report["model"]["list"];
    let source = list["source"].as_str().unwrap();
    assert!(
        source.starts_with("npm package @earendil-works/pi-ai "),
        "{report}"
    );
    assert!(
        list["ageDays"].as_i64().is_some() && list["models"].as_u64().unwrap() > 1600,
        "{list}"
    );
    let day = &list["date"].as_str().unwrap()[..10];
    let visit = visit(&world, &[], &[]);
    let row = visit.out.lines().find(|line| line.contains(source)).unwrap();
    assert!(row.contains(day) && row.contains(" old"), "{row}");
}
