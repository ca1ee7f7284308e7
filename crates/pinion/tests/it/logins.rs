//! Logins: `pinion auth`, requests with the tokens of a login, and that no token or key is seen anywhere.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use testkit::llm::{ErrorKind, Reply};

use crate::kit::{Done, PROGRAM, Pi, World, answers, bash, files_below, of_type, text, until};

const REFRESH: &str = "rt_planted_refresh_token";
const KEY: &str = "sk-planted-api-key-0123456789";

/// A token of ChatGPT's form.
fn jwt() -> String {
    let claims = json!({"https://api.openai.com/auth": {"chatgpt_account_id": "acc-7"}});
    format!("planted.{}.signature", URL_SAFE_NO_PAD.encode(claims.to_string()))
}

fn login(access: &str, expires: u64) -> Value {
    json!({"type": "oauth", "access": access, "refresh": REFRESH, "expires": expires})
}

const FAR: u64 = 4_000_000_000_000;

/// A world whose `auth.json` has this login, and whose provider of that name is the scripted server.
fn world(provider: &str, entry: &Value, replies: Vec<Reply>) -> World {
    let world = World::new(replies);
    let providers = json!({"providers": {provider: {"baseUrl": world.server.url()}}});
    world.dir.write_models(&providers).unwrap();
    let auth = json!({provider: entry}).to_string();
    world
        .dir
        .write(world.dir.agent_dir().join("auth.json"), auth)
        .unwrap();
    world
}

fn start(world: &World, provider: &str, model: &str) -> Pi {
    let words = ["--mode", "rpc", "--provider", provider, "--model", model];
    Pi::spawn(
        world
            .dir
            .agent(PROGRAM)
            .args(words)
            .env("HTTPS_PROXY", "http://127.0.0.1:9"),
    )
}

/// Nothing that was printed or written, `auth.json` apart, holds a secret.
fn nothing_leaked(world: &World, lines: &[Value], stderr: &str) {
    let mut texts = vec![stderr.to_owned(), lines.iter().map(Value::to_string).collect()];
    for file in files_below(world.dir.root()) {
        if file.file_name().is_some_and(|name| name != "auth.json") {
            texts.push(String::from_utf8_lossy(&std::fs::read(&file).unwrap()).into_owned());
        }
    }
    for secret in [jwt().as_str(), REFRESH, KEY, "tid=planted"] {
        assert!(
            !texts.iter().any(|text| text.contains(secret)),
            "{secret} was seen"
        );
    }
}

#[test]
fn chatgpt_login_supports_text_tools_and_abort() {
    let replies = vec![
        bash("call_1|fc_1", "echo from-the-tool"),
        Reply::text(["It ", "says so."]),
        Reply::text(["never"]).gate("never"),
        Reply::text(["back"]),
    ];
    let world = world("openai-codex", &login(&jwt(), FAR), replies);
    let pi = start(&world, "openai-codex", "gpt-6-sol");
    let lines = pi.say("Go");
    assert_eq!(text(answers(&lines).last().unwrap()), "It says so.");
    pi.prompt("On");
    pi.wait_update("text_start");
    pi.data(json!({"type": "abort"}));
    pi.settled();
    assert_eq!(text(answers(&pi.say("Again"))[0]), "back");
    let requests = world.server.requests();
    let first = &requests[0];
    assert_eq!(first.path, "/codex/responses");
    assert_eq!(first.header("chatgpt-account-id"), Some("acc-7"));
    assert_eq!(
        first.header("authorization"),
        Some(format!("Bearer {}", jwt()).as_str())
    );
    assert!(first.body["instructions"].as_str().unwrap().len() > 100);
    assert_eq!(
        (&first.body["store"], &first.body["tool_choice"]),
        (&json!(false), &json!("auto"))
    );
    assert!(
        first.body["input"]
            .as_array()
            .unwrap()
            .iter()
            .all(|item| item["role"] != "developer")
    );
    let output = requests[1].body["input"].to_string();
    assert!(
        output.contains("function_call_output") && output.contains("from-the-tool"),
        "{output}"
    );
    assert_eq!(requests.len(), 4);
    let (lines, stderr) = (pi.lines(), pi.agent.stderr());
    pi.finish();
    nothing_leaked(&world, &lines, &stderr);
}

/// Any provider of `models.json` can speak the family.
#[test]
fn custom_provider_can_use_codex_family() {
    let world = World::new([Reply::text(["ok"])]);
    let own = json!({"baseUrl": world.server.url(), "api": "openai-codex-responses", "apiKey": jwt(), "models": [{"id": "m"}]});
    world
        .dir
        .write_models(&json!({"providers": {"own": own}}))
        .unwrap();
    let done = world.run(&["-p", "--provider", "own", "--model", "m", "Hi"], "");
    assert_eq!((done.code, done.out.trim()), (Some(0), "ok"));
    assert_eq!(world.server.requests()[0].header("originator"), Some("pinion"));
}

#[test]
fn exhausted_plan_fails_without_retry() {
    let world = world("openai-codex", &login(&jwt(), FAR), Vec::new());
    let page = json!({"status": 429, "content_type": "application/json",
        "body": json!({"error": {"type": "usage_limit_reached", "plan_type": "plus", "resets_in_seconds": 30_000}}).to_string()});
    let reply: Reply = serde_json::from_value(json!({ "page": page, "repeat": true })).unwrap();
    world.server.set_default(reply);
    world.settings(json!({"retry": {"baseDelayMs": 10, "provider": {"maxRetries": 3}}}));
    let pi = start(&world, "openai-codex", "gpt-6-sol");
    let lines = pi.say("Go");
    assert_eq!(
        answers(&lines)[0]["errorMessage"],
        "You have hit your ChatGPT usage limit (plus plan). Try again in ~500 min."
    );
    assert_eq!(world.server.requests().len(), 1);
    pi.finish();
}

/// The proxy of these tests is not there, so a renewal cannot work.
#[test]
fn failed_token_refresh_is_reported_and_login_kept() {
    for (expires, replies) in [(1, vec![]), (FAR, vec![Reply::error(ErrorKind::Auth)])] {
        let world = world("openai-codex", &login(&jwt(), expires), replies).without_retries();
        let before = std::fs::read(world.dir.agent_dir().join("auth.json")).unwrap();
        let pi = start(&world, "openai-codex", "gpt-6-sol");
        let lines = pi.say("Go");
        let error = answers(&lines)[0]["errorMessage"].as_str().unwrap();
        assert!(
            error.starts_with(
                "Authentication failed for \"openai-codex\": Connection error: auth.openai.com:"
            ),
            "{error}"
        );
        assert!(!error.contains("rejected"), "{error}");
        let (lines, stderr) = (pi.lines(), pi.agent.stderr());
        pi.finish();
        assert_eq!(
            std::fs::read(world.dir.agent_dir().join("auth.json")).unwrap(),
            before
        );
        nothing_leaked(&world, &lines, &stderr);
    }
}

#[test]
fn copilot_models_use_three_families() {
    let table = [
        ("claude-sonnet-4.6", "/v1/messages"),
        ("kimi-k3", "/chat/completions"),
        ("gpt-6-sol", "/responses"),
    ];
    for (model, path) in table {
        let replies = vec![bash("c1", "true"), Reply::text(["done"])];
        let world = world(
            "github-copilot",
            &login("tid=planted;exp=1;proxy-ep=proxy.elsewhere.test", FAR),
            replies,
        );
        let pi = start(&world, "github-copilot", model);
        let lines = pi.say("Go");
        assert_eq!(text(answers(&lines).last().unwrap()), "done", "{model}");
        let requests = world.server.requests();
        let sent: Vec<_> = requests
            .iter()
            .map(|request| (request.path.as_str(), request.header("x-initiator")))
            .collect();
        assert_eq!(sent, [(path, Some("user")), (path, Some("agent"))]);
        let header = |name| requests[0].header(name);
        assert_eq!(
            header("authorization"),
            Some("Bearer tid=planted;exp=1;proxy-ep=proxy.elsewhere.test")
        );
        assert_eq!(
            (header("openai-intent"), header("copilot-integration-id")),
            (Some("conversation-edits"), Some("vscode-chat"))
        );
        let (lines, stderr) = (pi.lines(), pi.agent.stderr());
        pi.finish();
        nothing_leaked(&world, &lines, &stderr);
    }
}

/// A login that pi has stored works at once.
#[test]
fn stored_logins_are_sent_as_bearer() {
    let table = [
        ("openrouter", "moonshotai/kimi-k2.7-code", "/chat/completions"),
        ("xai", "grok-4.7", "/responses"),
        ("kimi-coding", "kimi-for-coding", "/chat/completions"),
        ("openai", "gpt-6.1-sol", "/responses"),
        ("meta", "muse-spark-1.3", "/responses"),
    ];
    for (provider, model, path) in table {
        let world = world(provider, &login("tid=planted", FAR), vec![Reply::text(["done"])]);
        let pi = start(&world, provider, model);
        let lines = pi.say("Go");
        assert_eq!(text(answers(&lines).last().unwrap()), "done", "{provider}");
        let requests = world.server.requests();
        assert_eq!(
            (requests[0].path.as_str(), requests[0].header("authorization")),
            (path, Some("Bearer tid=planted")),
            "{provider}"
        );
        let listed = pi.get("get_login_providers");
        let mut providers = listed["providers"].as_array().unwrap().iter();
        let entry = providers.find(|entry| entry["id"] == provider);
        assert_eq!(entry.unwrap()["authenticated"], true, "{listed}");
        let (lines, stderr) = (pi.lines(), pi.agent.stderr());
        pi.finish();
        nothing_leaked(&world, &lines, &stderr);
    }
}

#[test]
fn key_of_openrouter_login_does_not_expire() {
    let entry = json!({"type": "oauth", "access": "tid=planted", "refresh": "", "expires": 9_007_199_254_740_991_u64});
    let world = world("openrouter", &entry, Vec::new());
    let status = auth(&world, &["auth", "status"], "", 0).out;
    let line = status
        .lines()
        .find(|line| line.starts_with("openrouter"))
        .unwrap();
    assert!(line.ends_with("auth.json (login), does not expire"), "{line}");
    let out = auth(&world, &["auth", "logout", "openrouter"], "", 0).out;
    assert!(out.contains("Removed what was stored for openrouter"), "{out}");
}

/// Runs a command that must end so; nothing of it may show a secret.
fn auth(world: &World, words: &[&str], stdin: &str, code: i32) -> Done {
    let done = world.run(words, stdin);
    assert_eq!(done.code, Some(code), "{words:?}: {}{}", done.out, done.err);
    for secret in [KEY, REFRESH, "tid=planted"] {
        assert!(
            !done.out.contains(secret) && !done.err.contains(secret),
            "{words:?}"
        );
    }
    done
}

#[test]
fn stored_keys_are_listed_and_removed_without_display() {
    let world = World::new([Reply::text(["ok"])]);
    let file = world.dir.agent_dir().join("auth.json");
    let kept = format!(
        "{{\"odd\": {{\"type\": \"magic\", \"n\": 1.50}}, \"github-copilot\": {}}}",
        login("tid=planted", 1)
    );
    world.dir.write(&file, &kept).unwrap();
    auth(
        &world,
        &["auth", "login", "mock-anthropic", "--api-key"],
        &format!("{KEY}\nmore\n"),
        0,
    );
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(
        text.contains(KEY) && text.contains("1.50") && text.contains("tid=planted"),
        "{text}"
    );
    assert_eq!(
        std::fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let used = auth(
        &world,
        &[
            "-p",
            "--provider",
            "mock-anthropic",
            "--model",
            "claude-mock",
            "Hi",
        ],
        "",
        0,
    );
    assert_eq!(used.out.trim(), "ok");
    assert_eq!(world.server.requests()[0].header("x-api-key"), Some(KEY));
    let status = auth(&world, &["auth", "status"], "", 0);
    let line = |name: &str| {
        status
            .out
            .lines()
            .find(|line| line.starts_with(name))
            .unwrap()
            .to_owned()
    };
    assert!(
        line("mock-anthropic").contains("key      auth.json"),
        "{}",
        status.out
    );
    let copilot = line("github-copilot");
    assert!(
        copilot.contains("login") && copilot.contains("expired") && copilot.ends_with("renewed when needed"),
        "{copilot}"
    );
    let json: Value = serde_json::from_str(&auth(&world, &["auth", "status", "--json"], "", 0).out).unwrap();
    let entry = json["providers"]
        .as_array()
        .unwrap()
        .iter()
        .find(|entry| entry["provider"] == "github-copilot");
    assert_eq!(
        entry.unwrap(),
        &json!({"provider": "github-copilot", "kind": "login", "source": "auth.json (login)", "expires": 1, "expired": true, "renews": true})
    );
    let out = auth(&world, &["auth", "logout", "mock-anthropic"], "", 0).out;
    assert!(
        out.contains("It can still be used: there is a key from models.json"),
        "{out}"
    );
    assert!(!std::fs::read_to_string(&file).unwrap().contains(KEY));
    assert!(
        auth(&world, &["auth", "logout", "mock-anthropic"], "", 1)
            .err
            .contains("Nothing is stored")
    );
    std::fs::write(&file, format!("{{\"xai\": \"{KEY}\"")).unwrap();
    let error = auth(&world, &["auth", "login", "xai", "--api-key"], KEY, 1).err;
    assert!(
        error.contains("not changed, since it is no JSON object"),
        "{error}"
    );
}

#[test]
fn invalid_auth_commands_are_explained() {
    let world = World::new([]);
    let table: [(&[&str], &str); 8] = [
        (&["auth"], "Usage: pinion auth"),
        (&["auth", "login", "xai", KEY], "Usage: pinion auth"),
        (&["auth", "login", "xai", "--api-key", KEY], "takes no key here"),
        (&["auth", "login", "xai", "--api-key=planted"], "takes no value"),
        (
            &["auth", "login", "nobody"],
            "With a login: openai-codex, github-copilot, openrouter, xai,",
        ),
        (&["auth", "login", "groq"], "There is no login for groq"),
        (
            &["auth", "login", "anthropic"],
            "pinion auth login anthropic --api-key",
        ),
        (
            &["auth", "login", "xai", "--domain", "a.b"],
            "--domain is for github-copilot",
        ),
    ];
    for (words, wanted) in table {
        let code = if wanted == "takes no value" { 2 } else { 1 };
        let error = auth(&world, words, "", code).err;
        assert!(error.contains(wanted), "{words:?}: {error}");
    }
    let empty = auth(&world, &["auth", "login", "xai", "--api-key"], "\n", 1).err;
    assert!(empty.contains("No key was given"), "{empty}");
    assert!(!world.dir.agent_dir().join("auth.json").exists());
    let missing = world.run(
        &["-p", "--provider", "openai-codex", "--model", "gpt-6-sol", "Hi"],
        "",
    );
    assert!(
        missing.err.contains("pinion auth login openai-codex"),
        "{}",
        missing.err
    );
}

/// Ctrl-C ends a login that waits. Its input stays open: if the port is taken, it waits for a pasted address.
#[test]
fn waiting_login_can_be_interrupted() {
    let world = World::new([]);
    let mut child = Command::new(PROGRAM)
        .args(["auth", "login", "openai-codex"])
        .env_clear()
        .envs(world.dir.env())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let page = lines
        .find_map(|line| {
            line.ok()
                .filter(|line| line.starts_with("https://auth.openai.com/"))
        })
        .unwrap();
    assert!(
        page.contains("code_challenge_method=S256") && page.contains("state="),
        "{page}"
    );
    let _ended = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    let mut ended = None;
    until("its end", || {
        ended = child.try_wait().unwrap();
        ended.is_some()
    });
    assert_eq!(ended.unwrap().code(), Some(130));
    assert!(!world.dir.agent_dir().join("auth.json").exists());
}

#[test]
fn wrong_pasted_address_is_asked_for_again() {
    let world = World::new([]);
    let pi = world.start();
    let id = pi.send(json!({"type": "login", "providerId": "openrouter"}));
    let questions = || {
        let lines = pi.lines();
        let frames = of_type(&lines, "extension_ui_request").into_iter();
        let questions = frames.filter(|frame| frame["method"] == "input");
        questions.map(|frame| frame["id"].clone()).collect::<Vec<Value>>()
    };
    until("it asks for the address", || questions().len() == 1);
    let answer = json!({"type": "extension_ui_response", "id": questions()[0], "value": "two words"});
    pi.agent.send(&answer).unwrap();
    until("it asks again", || questions().len() == 2);
    pi.get("abort");
    assert_eq!(pi.response(&id)["error"], "Operation aborted");
    pi.finish();
}
