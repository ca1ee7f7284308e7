//! Every API family through the program: a fault ends in an error and a settled agent, and the next prompt works. The whole
//! table of faults is tried in `llm`'s own tests; here is one of each kind, and that nothing on the way out makes a difference
//! between families.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use testkit::llm::{CutHow, ErrorKind, FAMILIES, Reply};

use crate::kit::{Pi, World, answers, memory_kb, of_type, text, until};

/// A key that the family takes: ChatGPT's names an account.
pub(crate) fn key(api: &str) -> String {
    match api {
        "openai-codex-responses" => jwt("mock"),
        _ => "mock-key".to_owned(),
    }
}

/// A token of ChatGPT's form with a signature of one's own.
pub(crate) fn jwt(signature: &str) -> String {
    let claims = json!({"https://api.openai.com/auth": {"chatgpt_account_id": "acc-7"}});
    format!("head.{}.{signature}", URL_SAFE_NO_PAD.encode(claims.to_string()))
}

/// A program that asks the server in the way of one family.
pub(crate) fn start(world: &World, api: &str, path: &str) -> Pi {
    let model = json!({"id": "mock", "name": "Mock", "reasoning": true, "input": ["text", "image"],
        "contextWindow": 200_000, "maxTokens": 32_000,
        "cost": {"input": 1.0, "output": 2.0, "cacheRead": 0.5, "cacheWrite": 0.0}});
    start_with_model(world, api, path, &model)
}

/// A program that asks the server for a model in the way of one family.
pub(crate) fn start_with_model(world: &World, api: &str, path: &str, model: &Value) -> Pi {
    let provider = json!({"baseUrl": format!("{}/{path}", world.server.url()), "api": api, "apiKey": key(api),
        "models": [model]});
    world
        .dir
        .write_models(&json!({"providers": {"family": provider}}))
        .unwrap();
    // In the delta form, because the other one tells the whole answer with each of 20,000 calls.
    let args = [
        "--mode",
        "rpc",
        "--rpc-dialect",
        "pi-delta",
        "--provider",
        "family",
        "--model",
        model["id"].as_str().unwrap(),
    ];
    Pi::spawn(world.dir.agent(crate::kit::PROGRAM).args(args))
}

/// An answer with everything.
fn whole() -> Reply {
    Reply::new()
        .thinking(["hm ", "yes"], "c2ln")
        .then_text(["Hello ", "World"])
        .then_tool("abcdefgh1", "ls", json!({}))
}

/// What goes wrong, and whether the answer must fail.
fn faults(size: u64) -> Vec<(String, Reply, bool)> {
    let item = |item: Value| serde_json::from_value(item).unwrap();
    let mut rows: Vec<(String, Reply, bool)> = vec![
        ("a page".into(), Reply::html(200), true),
        ("a page with 502".into(), Reply::html(502), true),
        ("an HTTP error".into(), Reply::error(ErrorKind::Server), true),
        (
            "an error event".into(),
            Reply::text(["Hel"]).error_event(ErrorKind::Server),
            true,
        ),
        (
            "garbage".into(),
            Reply::text(["Hel"]).item(item(json!({"garbage": 100_000}))),
            true,
        ),
        ("a bomb".into(), Reply::gzip_bomb(256 << 20), true),
        (
            "a long line".into(),
            Reply::text(["Hel"]).item(item(json!({"big_line": 100_000_000}))),
            true,
        ),
        (
            "an unknown event".into(),
            Reply::text(["Hel"])
                .item(item(
                    json!({"event": "surprise", "data": {"type": "surprise", "x": [1]}}),
                ))
                .then_text(["lo"]),
            false,
        ),
        (
            "invalid UTF-8".into(),
            Reply::text(["a"]).item(item(json!({"text": ["b", {"hex": "c328"}]}))),
            false,
        ),
    ];
    for part in [0, 3, 5, 8] {
        for how in [CutHow::Reset, CutHow::Close] {
            rows.push((
                format!("{how:?} at {part}/10"),
                whole().cut(size * part / 10, how),
                true,
            ));
        }
    }
    rows
}

/// Settings with this limit of silence, in milliseconds, and without retries.
fn idle_limit(limit: u32) -> Value {
    json!({"httpIdleTimeoutMs": limit, "retry": {"enabled": false, "provider": {"maxRetries": 0}}})
}

fn survives_silence(api: &str, path: &str) {
    let world = World::new([Reply::text(["Hel"]).drop_here(CutHow::Stall)]);
    world.server.set_default(Reply::text(["well again"]));
    world.settings(idle_limit(400));
    let pi = start(&world, api, path);
    let lines = pi.say("Go");
    let answer = answers(&lines)[0];
    assert_eq!(answer["stopReason"], "error", "{api}: {answer}");
    assert!(!answer["errorMessage"].as_str().unwrap().is_empty(), "{api}");
    assert_eq!(of_type(&lines, "agent_end").len(), 1, "{api}");
    // On a busy machine the server may be late, too.
    until("an answer after silence", || {
        text(answers(&pi.say("Again"))[0]) == "well again"
    });
    pi.finish();
}

fn survives_every_fault(api: &str) {
    let Some((_, path)) = FAMILIES.iter().find(|(name, _)| *name == api) else {
        panic!("{api} has no row");
    };
    survives_silence(api, path);
    // No fault of these is silent for long, however busy the machine is.
    let world = World::new([whole(), Reply::text(["x"])]);
    world.settings(idle_limit(20_000));
    let pi = start(&world, api, path);
    let lines = pi.say("Go");
    let first = answers(&lines)[0];
    assert_eq!(
        (text(first), &first["stopReason"]),
        ("Hello World".into(), &json!("toolUse")),
        "{api}"
    );
    assert!(first["usage"]["cost"]["total"].as_f64().unwrap() > 0.0, "{api}");
    let size = world.server.requests()[0].sent;
    for (name, fault, fails) in faults(size) {
        world.server.push(fault);
        let lines = pi.say("Go");
        let answer = answers(&lines)[0];
        let shown = answer.to_string();
        let shown = shown.get(..400).unwrap_or(&shown);
        assert_eq!(answer["stopReason"] == "error", fails, "{api}: {name}: {shown}");
        assert_eq!(of_type(&lines, "agent_end").len(), 1, "{api}: {name}");
        assert!(
            !fails || !answer["errorMessage"].as_str().unwrap().is_empty(),
            "{api}: {name}"
        );
        assert!(
            of_type(&lines, "tool_execution_start").is_empty(),
            "{api}: {name}"
        );
        world.server.push(Reply::text(["well again"]));
        let lines = pi.say("Again");
        assert_eq!(
            text(answers(&lines)[0]),
            "well again",
            "{api} after {name}: {}",
            answers(&lines)[0]
        );
    }
    let most = memory_kb(pi.agent.pid(), "VmHWM");
    assert!(most < 160 * 1024, "{api}: {most} kB");
    pi.finish();
}

macro_rules! survives_every_fault {
    ($($name:ident $api:literal)*) => {$(
        #[test]
        fn $name() {
            survives_every_fault($api);
        }
    )*};
}

survives_every_fault! {
    anthropic_survives_every_fault "anthropic-messages"
    completions_survives_every_fault "openai-completions"
    responses_survives_every_fault "openai-responses"
    azure_survives_every_fault "azure-openai-responses"
    google_survives_every_fault "google-generative-ai"
    mistral_survives_every_fault "mistral-conversations"
    bedrock_survives_every_fault "bedrock-converse-stream"
    vertex_survives_every_fault "google-vertex"
    codex_survives_every_fault "openai-codex-responses"
}
