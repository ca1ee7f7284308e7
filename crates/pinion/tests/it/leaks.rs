//! Forty keys in every place where a key can be, a day's work with all of them, and a search through everything that came out.
//!
//! A key that a tool prints is the user's own doing: the model, the client, the session file and exports of it see the tool's
//! output as it is. It stays out of logs, stderr and recordings of other things all the same.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use testkit::driver::AgentConfig;
use testkit::llm::{ErrorReply, Recorded, Reply, Request};

use crate::families::jwt;
use crate::kit::{PROGRAM, Pi, World, bash, files_below, until};

/// Every variable that a built-in provider reads a secret from.
const VARIABLES: [&str; 34] = [
    "AI_GATEWAY_API_KEY",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_OAUTH_TOKEN",
    "AWS_ACCESS_KEY_ID",
    "AWS_BEARER_TOKEN_BEDROCK",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AZURE_OPENAI_API_KEY",
    "CEREBRAS_API_KEY",
    "CLOUDFLARE_API_KEY",
    "COPILOT_GITHUB_TOKEN",
    "DEEPSEEK_API_KEY",
    "FIREWORKS_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_CLOUD_API_KEY",
    "GROQ_API_KEY",
    "HF_TOKEN",
    "KIMI_API_KEY",
    "MINIMAX_API_KEY",
    "MINIMAX_CN_API_KEY",
    "MISTRAL_API_KEY",
    "MOONSHOT_API_KEY",
    "OPENAI_API_KEY",
    "OPENCODE_API_KEY",
    "OPENROUTER_API_KEY",
    "TOGETHER_API_KEY",
    "XAI_API_KEY",
    "XIAOMI_API_KEY",
    "XIAOMI_TOKEN_PLAN_AMS_API_KEY",
    "XIAOMI_TOKEN_PLAN_CN_API_KEY",
    "XIAOMI_TOKEN_PLAN_SGP_API_KEY",
    "ZAI_API_KEY",
];

/// Places of further keys.
const PLACES: [&str; 25] = [
    "own-variable",
    "auth-literal",
    "auth-command",
    "auth-env",
    "oauth-access",
    "oauth-refresh",
    "models-literal",
    "models-header",
    "models-header-command",
    "model-header",
    "url-parameter",
    "url-login",
    "proxy-login",
    "tool-output",
    "chatgpt-token",
    "aws-file-id",
    "aws-file-secret",
    "aws-file-token",
    "sso-login",
    "sso-id",
    "sso-secret",
    "sso-token",
    "adc-client-secret",
    "adc-refresh",
    "adc-access",
];

/// The key planted at a place. Its middle is unique, and longer than the part that the doctor shows.
fn key(place: &str) -> String {
    format!("sk-{}-9f", mark(place))
}

fn mark(place: &str) -> String {
    let number = VARIABLES
        .iter()
        .chain(&PLACES)
        .position(|known| *known == place)
        .unwrap();
    format!("Planted{number:02}Seed{}", 7919 * (number + 1))
}

/// The providers of `models.json`, each with another place for its key.
const OWN: [&str; 9] = [
    "by-auth",
    "by-command",
    "by-models",
    "by-url",
    "by-variable",
    "by-chatgpt",
    "by-aws-file",
    "by-sso",
    "by-adc",
];

fn plant(world: &World) {
    let url = world.server.url();
    let secrets = world.dir.root().join("secrets");
    for place in ["auth-command", "models-header-command"] {
        world.dir.write(secrets.join(place), key(place)).unwrap();
    }
    let command = |place: &str| format!("!cat {}", secrets.join(place).display());
    let api = [
        "openai-completions",
        "anthropic-messages",
        "openai-responses",
        "google-generative-ai",
        "mistral-conversations",
        "openai-codex-responses",
        "bedrock-converse-stream",
        "bedrock-converse-stream",
        "google-vertex",
    ];
    let mut providers = serde_json::Map::new();
    for (id, api) in OWN.iter().zip(api) {
        let provider = json!({"baseUrl": format!("{url}/{id}"), "api": api, "apiKey": "unused-placeholder",
            "models": [{"id": "m", "contextWindow": 200_000, "maxTokens": 8000}]});
        providers.insert((*id).to_owned(), provider);
    }
    providers["by-models"]["apiKey"] = json!(key("models-literal"));
    providers["by-models"]["authHeader"] = json!(true);
    providers["by-models"]["headers"] =
        json!({"X-Corp": key("models-header"), "X-Run": command("models-header-command")});
    providers["by-models"]["models"][0]["headers"] = json!({"X-Model": key("model-header")});
    let login = url.replace("http://", &format!("http://me:{}@", key("url-login")));
    providers["by-url"]["baseUrl"] = json!(format!("{login}/by-url?key={}", key("url-parameter")));
    providers["by-variable"]["apiKey"] = json!("$MY_OWN_SECRET");
    providers["by-chatgpt"]["apiKey"] = json!(jwt(&key("chatgpt-token")));
    for ambient in ["by-aws-file", "by-sso", "by-adc"] {
        providers[ambient]["apiKey"] = json!("<authenticated>");
    }
    world
        .dir
        .write_models(&json!({ "providers": providers }))
        .unwrap();
    let auth = json!({
        "by-auth": {"type": "api_key", "key": key("auth-literal"), "env": {"EXTRA_API_KEY": key("auth-env")}},
        "by-command": {"type": "api_key", "key": command("auth-command")},
        "github-copilot": {"type": "oauth", "access": key("oauth-access"), "refresh": key("oauth-refresh"),
            "expires": 1},
        "by-aws-file": {"type": "api_key", "key": "<authenticated>", "env": {"AWS_PROFILE": "file"}},
        "by-sso": {"type": "api_key", "key": "<authenticated>",
            "env": {"AWS_PROFILE": "login", "AWS_ENDPOINT_URL_SSO": credential_server()}},
    });
    plant_ambient(world);
    world
        .dir
        .write(world.dir.agent_dir().join("auth.json"), auth.to_string())
        .unwrap();
    let proxy = format!("http://me:{}@127.0.0.1:9", key("proxy-login"));
    world.settings(json!({"httpProxy": proxy, "compaction": {"keepRecentTokens": 1},
        "retry": {"baseDelayMs": 1, "maxRetries": 1, "provider": {"maxRetries": 1}}}));
    world.dir.write("note.txt", key("tool-output")).unwrap();
}

/// Where a login of Amazon's tool is kept: the name is the SHA-1 of its address.
const SSO_FILE: &str = ".aws/sso/cache/f7c9b39d0b4c7a7d82c79307585f77e1c5e74378.json";

/// The files that the tools of Amazon and Google leave in the home folder.
fn plant_ambient(world: &World) {
    let home = world.dir.home();
    let keys = format!(
        "[file]\naws_access_key_id = {}\naws_secret_access_key = {}\naws_session_token = {}\n",
        key("aws-file-id"),
        key("aws-file-secret"),
        key("aws-file-token")
    );
    let login = "[profile login]\nsso_start_url = https://corp.example/start\nsso_region = eu-west-1\n\
        sso_account_id = 1\nsso_role_name = dev\nregion = eu-west-1\n[profile file]\nregion = eu-west-1\n";
    let token = json!({"accessToken": key("sso-login"), "expiresAt": "2099-01-01T00:00:00Z"});
    let google = json!({"type": "authorized_user", "client_id": "c", "client_secret": key("adc-client-secret"),
        "refresh_token": key("adc-refresh"), "token_uri": credential_server()});
    for (path, text) in [
        (".aws/credentials", keys),
        (".aws/config", login.to_owned()),
        (SSO_FILE, token.to_string()),
        (
            ".config/gcloud/application_default_credentials.json",
            google.to_string(),
        ),
    ] {
        world.dir.write(home.join(path), text).unwrap();
    }
}

/// Gives credentials to everybody; the first that asks is refused and told what it said, padded so that the text ends in the
/// middle of a key.
fn credential_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            let asked = whole_request(&mut stream);
            let (status, body) = if number == 0 {
                (
                    400,
                    json!({"error_description": format!("You said {asked}, {asked}")}),
                )
            } else if asked.starts_with("GET") {
                let role = json!({"accessKeyId": key("sso-id"), "secretAccessKey": key("sso-secret"),
                    "sessionToken": key("sso-token"), "expiration": 4_000_000_000_000_u64});
                (200, json!({"roleCredentials": role}))
            } else {
                (
                    200,
                    json!({"access_token": key("adc-access"), "expires_in": 3599}),
                )
            };
            let body = body.to_string();
            let length = body.len();
            let head =
                format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
            stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        }
    });
    url
}

fn whole_request(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let count = stream.read(&mut piece).unwrap();
        bytes.extend_from_slice(&piece[..count]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            if count == 0 {
                return text;
            }
            continue;
        };
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        if count == 0 || body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
            return text;
        }
    }
}

fn config(world: &World) -> AgentConfig {
    let out = world.dir.root().join("out");
    fs::create_dir_all(&out).unwrap();
    let paths = [out.join("log"), out.join("tape")];
    let args = ["--mode", "rpc", "--model", "by-auth/m", "--log-file"];
    let mut config = world
        .dir
        .agent(PROGRAM)
        .args(args)
        .args([&paths[0]])
        .args(["--record"])
        .args([&paths[1]]);
    for name in VARIABLES {
        config = config.env(name, key(name));
    }
    config
        .env("MY_OWN_SECRET", key("own-variable"))
        .env("PINION_LOG", "trace")
        .env("NO_PROXY", "127.0.0.1")
}

/// A provider that repeats its input in errors, both retried and final ones.
fn parrot(request: &Request) -> Reply {
    let said = last_words(&request.body);
    let heard: Vec<String> = request
        .headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    let heard = format!("I got {} at {}", heard.join(", "), request.path);
    let error = |status: u16| Reply {
        error: Some(ErrorReply {
            status: Some(status),
            body: Some(json!({"error": {"message": heard, "type": "x", "status": "X", "code": status}})),
            ..ErrorReply::default()
        }),
        ..Reply::new()
    };
    match () {
        () if said.contains("FAIL") => error(401),
        () if said.contains("AGAIN") => error(503),
        () if said.contains("ENV") => bash("c1", "env; cat /proc/self/environ /proc/$PPID/environ"),
        () if said.contains("NOTE") => bash("c2", "cat note.txt"),
        () => Reply::text(["Fine."]),
    }
}

fn last_words(body: &Value) -> String {
    let list = ["messages", "input", "contents"]
        .iter()
        .find_map(|name| body[*name].as_array());
    list.and_then(|list| list.last())
        .map(Value::to_string)
        .unwrap_or_default()
}

/// What each key was found in.
type Finds = BTreeMap<String, Vec<String>>;

fn search(what: &str, bytes: &[u8], finds: &mut Finds) {
    let text = String::from_utf8_lossy(bytes);
    for place in VARIABLES.iter().chain(&PLACES) {
        if let Some(at) = text.find(&mark(place)) {
            let from = text[..at].char_indices().rev().nth(60).map_or(0, |(at, _)| at);
            let around = text[from..at].replace('\n', " ");
            finds
                .entry((*place).to_owned())
                .or_default()
                .push(format!("{what} after {around:?}"));
        }
    }
}

fn work(world: &World, pi: &Pi) {
    for provider in OWN {
        pi.data(json!({"type": "set_model", "provider": provider, "modelId": "m"}));
        for prompt in ["Hello", "ENV", "FAIL", "AGAIN"] {
            pi.say(prompt);
        }
    }
    pi.data(json!({"type": "bash", "command": "env"}));
    pi.data(json!({"type": "set_model", "provider": "github-copilot", "modelId": "kimi-k3"}));
    pi.say("An expired login.");
    pi.data(json!({"type": "set_model", "provider": "by-auth", "modelId": "m"}));
    // The request repeats the conversation, so this provider refuses it.
    pi.error(json!({"type": "compact"}));
    for ask in [
        "get_available_models",
        "get_state",
        "get_messages",
        "get_session_stats",
    ] {
        pi.get(ask);
    }
    let out = world.dir.root().join("out");
    for name in ["s.html", "s.md", "s.json"] {
        let path = out.join(name);
        pi.data(json!({"type": "export_html", "outputPath": path.to_str().unwrap()}));
    }
}

fn doctor(world: &World) -> Vec<u8> {
    let mut said = Vec::new();
    for args in [&["doctor"][..], &["doctor", "--json"], &["--list-models"]] {
        let mut command = std::process::Command::new(PROGRAM);
        command
            .args(args)
            .env_clear()
            .envs(world.dir.env())
            .current_dir(world.dir.cwd());
        command
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("RUST_LOG", "trace");
        command.env("MY_OWN_SECRET", key("own-variable"));
        command.envs(VARIABLES.map(|name| (name, key(name))));
        command.env("HOME", world.dir.home());
        let output = command.output().unwrap();
        said.extend(output.stdout);
        said.extend(output.stderr);
    }
    said
}

fn sent(requests: &[Recorded], provider: &str, place: &str) -> bool {
    let of = requests.iter().filter(|request| request.path.contains(provider));
    of.into_iter()
        .any(|request| format!("{:?} {}", request.headers, request.path).contains(&mark(place)))
}

#[test]
fn planted_keys_are_used_but_never_leak() {
    assert!(VARIABLES.len() + PLACES.len() >= 40);
    let world = World::new([]);
    world.server.set_rule(parrot);
    plant(&world);
    let pi = Pi::spawn(config(&world));
    work(&world, &pi);
    let session = pi.file();
    let mut finds = Finds::new();
    // Before a tool prints one.
    search("the session file", &fs::read(&session).unwrap(), &mut finds);
    for path in files_below(&world.dir.root().join("out")) {
        search(&name(&path), &fs::read(&path).unwrap(), &mut finds);
    }
    search("stdout", format!("{:?}", pi.lines()).as_bytes(), &mut finds);
    search("the doctor", &doctor(&world), &mut finds);
    pi.say("NOTE");
    pi.agent.close_stdin();
    pi.agent.wait_exit(crate::kit::LONG).unwrap();
    pi.wait_ended();
    until("the end of stderr", || pi.agent.stderr_ended());
    let log = fs::read(world.dir.root().join("out/log")).unwrap();
    search("the log", &log, &mut finds);
    search("stderr", pi.agent.stderr().as_bytes(), &mut finds);
    for path in files_below(&world.dir.tmp()) {
        search(&name(&path), &fs::read(&path).unwrap(), &mut finds);
    }
    assert!(finds.is_empty(), "{finds:#?}");
    // The test could find something: keys were used, echoed, logged about, and a tool's output is its own.
    let requests = world.server.requests();
    for (provider, place) in [
        ("by-auth", "auth-literal"),
        ("by-command", "auth-command"),
        ("by-models", "models-literal"),
        ("by-models", "models-header"),
        ("by-models", "models-header-command"),
        ("by-models", "model-header"),
        ("by-url", "url-parameter"),
        ("by-variable", "own-variable"),
        ("by-chatgpt", "chatgpt-token"),
        ("by-aws-file", "aws-file-id"),
        ("by-aws-file", "aws-file-token"),
        ("by-sso", "sso-id"),
        ("by-sso", "sso-token"),
        ("by-adc", "adc-access"),
    ] {
        assert!(sent(&requests, provider, place), "{place} was not sent");
    }
    let text = format!("{:?}", pi.lines());
    assert!(text.contains("I got") && text.contains("[key]"));
    assert!(
        text.contains(&mark("tool-output"))
            && fs::read_to_string(&session)
                .unwrap()
                .contains(&mark("tool-output"))
    );
    assert!(String::from_utf8_lossy(&log).lines().count() > 100);
}

#[test]
fn processes_between_agent_and_tool_have_no_keys() {
    let world = World::new([bash(
        "c1",
        "sleep 0.2; for p in $(pgrep -P $PPID; echo $PPID); do tr '\\0' '\\n' < /proc/$p/environ; done",
    )]);
    world.server.set_default(Reply::text(["ok"]));
    plant(&world);
    let pi = Pi::spawn(config(&world));
    pi.say("Look around");
    let mut finds = Finds::new();
    search("environments", format!("{:?}", pi.lines()).as_bytes(), &mut finds);
    assert!(finds.is_empty(), "{finds:#?}");
    assert!(format!("{:?}", pi.lines()).contains("PI_CODING_AGENT"));
    pi.finish();
}

#[test]
fn tools_see_keys_when_setting_allows() {
    let world = World::new([bash("c1", "env"), Reply::text(["ok"])]);
    plant(&world);
    world.settings(json!({"keepKeysInToolEnv": true}));
    let model = ["--model", "by-auth/m", "--mode", "rpc"];
    let pi = Pi::spawn(
        world
            .dir
            .agent(PROGRAM)
            .args(model)
            .env("OPENAI_API_KEY", key("OPENAI_API_KEY")),
    );
    pi.say("Go");
    assert!(format!("{:?}", pi.lines()).contains(&mark("OPENAI_API_KEY")));
    pi.finish();
    // A project cannot ask for it.
    let world = World::new([bash("c1", "env"), Reply::text(["ok"])]);
    plant(&world);
    world
        .dir
        .write(".pi/settings.json", r#"{"keepKeysInToolEnv": true}"#)
        .unwrap();
    let pi = Pi::spawn(
        world
            .dir
            .agent(PROGRAM)
            .args(model)
            .args(["--approve"])
            .env("OPENAI_API_KEY", key("OPENAI_API_KEY")),
    );
    pi.say("Go");
    assert!(!format!("{:?}", pi.lines()).contains(&mark("OPENAI_API_KEY")));
    pi.finish();
}

fn name(path: &Path) -> String {
    let path: PathBuf = path.to_path_buf();
    path.file_name().unwrap().to_string_lossy().into_owned()
}
