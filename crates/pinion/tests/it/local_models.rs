//! Models on the user's own machines: probed only when needed, with requests of their kind, and clear errors when missing.

use std::path::Path;

use serde_json::{Value, json};
use testkit::llm::Reply;

use crate::kit::{Done, LONG, PROGRAM, Pi, World, answered_at, answers, text, until};
use crate::local_server::Front;

/// Ollama with one model that thinks and calls tools.
pub(crate) fn ollama(world: &World) -> Front {
    Front::start(
        &[
            ("/api/tags", json!({"models": [{"name": "qwen3:8b"}]})),
            ("/api/ps", json!({"models": []})),
            (
                "/api/show",
                json!({"capabilities": ["completion", "tools", "thinking"],
                    "model_info": {"general.architecture": "qwen3", "qwen3.context_length": 40960}}),
            ),
        ],
        &world.server.url(),
    )
}

/// A world whose only providers are local servers.
fn alone(replies: Vec<Reply>) -> World {
    let world = World::new(replies).without_retries();
    std::fs::remove_file(world.dir.agent_dir().join("models.json")).unwrap();
    world
}

/// RPC mode with these options and the server in `OLLAMA_HOST`. All other places are unreachable, so that servers on
/// this machine do not matter.
fn rpc(world: &World, front: &Front, options: &[&str]) -> Pi {
    let mut config = world.dir.agent(PROGRAM).args(["--mode", "rpc"]);
    for (name, value) in variables(front) {
        config = config.env(name, value);
    }
    Pi::spawn(config.args(options.iter().copied()))
}

/// RPC mode with a model of this provider, which a local server has. The query of a server has a timeout of a second. Where a busy
/// machine needs longer, the program is started again.
fn rpc_with_model(world: &World, front: &Front, provider: &str, options: &[&str]) -> Pi {
    let mut begun = None;
    until("a model of the local server", || {
        let pi = rpc(world, front, options);
        // Without an id, and the program may have ended.
        let asked = pi.agent.send(&json!({"type": "get_state"}));
        let is_state = |line: &Value| line["command"] == "get_state";
        let state = asked.and_then(|()| pi.agent.wait(is_state, LONG));
        let is_found = state.is_ok_and(|state| state["data"]["model"]["provider"] == provider);
        begun = is_found.then_some(pi);
        begun.is_some()
    });
    begun.unwrap()
}

pub(crate) fn variables(front: &Front) -> Vec<(&'static str, String)> {
    let nowhere = || "http://127.0.0.1:9".to_owned();
    vec![
        ("PI_OFFLINE", "0".to_owned()),
        ("OLLAMA_HOST", front.url()),
        ("LLAMA_CPP_BASE_URL", nowhere()),
        ("LMSTUDIO_BASE_URL", nowhere()),
        ("VLLM_BASE_URL", nowhere()),
    ]
}

/// Runs the program to its end with the same variables and more.
fn run(world: &World, front: &Front, more: &[&str], options: &[&str]) -> Done {
    let variables = variables(front)
        .into_iter()
        .map(|(name, value)| format!("{name}={value}"));
    let more = more.iter().map(|text| (*text).to_owned());
    let options = options.iter().map(|text| (*text).to_owned());
    let words: Vec<String> = variables
        .chain(more)
        .chain([PROGRAM.to_owned()])
        .chain(options)
        .collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    world.run_as(Path::new("/usr/bin/env"), &words, "")
}

/// Runs the program until its output has these words, which it has from a local server. See [`rpc_with_model`].
fn run_until(world: &World, front: &Front, words: &str, options: &[&str]) -> Done {
    let mut done = run(world, front, &[], options);
    until(words, || {
        let is_found = done.out.contains(words);
        if !is_found {
            done = run(world, front, &[], options);
        }
        is_found
    });
    done
}

#[test]
fn only_local_model_is_chosen_and_answers() {
    let world = alone(vec![Reply::text(["Hello ", "from home."])]);
    let front = ollama(&world);
    let pi = rpc_with_model(&world, &front, "ollama", &[]);
    let model = pi.state()["model"].clone();
    assert_eq!(
        (
            &model["provider"],
            &model["id"],
            &model["contextWindow"],
            &model["reasoning"]
        ),
        (&json!("ollama"), &json!("qwen3:8b"), &json!(40960), &json!(true))
    );
    assert_eq!(pi.get("get_available_models")["models"], json!([model]));
    pi.data(json!({"type": "set_thinking_level", "level": "max"}));
    let lines = pi.say("Hi");
    let answer = answers(&lines)[0];
    assert_eq!(text(answer), "Hello from home.");
    assert_eq!(answer["usage"]["cost"]["total"], json!(0));
    let request = world.server.requests()[0].clone();
    let body = &request.body;
    assert_eq!(body["model"], "qwen3:8b");
    assert_eq!(body["messages"][0]["role"], "system");
    assert_eq!(
        (&body["max_tokens"], &body["reasoning_effort"]),
        (&json!(10240), &json!("high"))
    );
    for absent in ["store", "max_completion_tokens"] {
        assert_eq!(body.get(absent), None, "{absent}");
    }
    assert!(body["tools"][0]["function"].get("strict").is_none());
    assert_eq!(request.header("authorization"), None);
    pi.data(json!({"type": "set_thinking_level", "level": "off"}));
    pi.finish();
}

#[test]
fn local_servers_are_not_probed_until_needed() {
    let world = World::new([]);
    let front = ollama(&world);
    let pi = rpc(
        &world,
        &front,
        &["--provider", "mock-openai", "--model", "gpt-mock"],
    );
    assert_eq!(pi.state()["model"]["id"], "gpt-mock");
    assert_eq!(front.asked(), Vec::<String>::new());
    let (mut models, mut asked) = (Value::Null, Vec::new());
    // The query has a timeout of a second, which a busy machine can exceed.
    until("the model of the local server", || {
        models = pi.get("get_available_models")["models"].clone();
        asked = front.asked();
        models.as_array().unwrap().last().unwrap()["id"] == "qwen3:8b"
    });
    assert_eq!(asked, ["/api/tags", "/api/ps", "/api/show"]);
    let set = pi.data(json!({"type": "set_model", "provider": "ollama", "modelId": "qwen3:8b"}));
    assert_eq!(set, models.as_array().unwrap().last().unwrap().clone());
    let missing = pi.error(json!({"type": "set_model", "provider": "ollama", "modelId": "nope"}));
    assert_eq!(missing, "Model not found: ollama/nope");
    pi.finish();
    // A model of such a server can be chosen before it was ever looked for.
    let pi = rpc(&world, &front, &["--model", "claude-mock"]);
    until("the model of the local server", || {
        let set = json!({"type": "set_model", "provider": "ollama", "modelId": "qwen3:8b"});
        pi.ask(set)["success"] == true
    });
    pi.finish();
}

#[test]
fn session_resumes_with_local_model() {
    let world = World::new([Reply::text(["one"]), Reply::text(["two"])]);
    let front = ollama(&world);
    let named = ["--provider", "ollama", "--model", "qwen3:8b:low"];
    let pi = rpc_with_model(&world, &front, "ollama", &named);
    assert_eq!(pi.state()["thinkingLevel"], "low");
    pi.say("Hi");
    let file = pi.file();
    pi.finish();
    let pi = rpc_with_model(&world, &front, "ollama", &["--continue"]);
    assert_eq!(pi.state()["model"]["id"], "qwen3:8b");
    pi.say("Again");
    pi.finish();
    // Another session switches to it.
    let pi = rpc(&world, &front, &["--model", "claude-mock", "--no-session"]);
    pi.data(json!({"type": "switch_session", "sessionPath": file}));
    assert_eq!(pi.state()["model"]["provider"], "ollama");
    pi.finish();
}

#[test]
fn missing_local_server_is_named_in_error() {
    let world = alone(vec![Reply::text(["one"])]);
    let front = ollama(&world);
    let pi = rpc_with_model(&world, &front, "ollama", &[]);
    pi.say("Hi");
    front.leave();
    let lines = pi.say("Are you there?");
    let error = answers(&lines)[0]["errorMessage"].as_str().unwrap().to_owned();
    let address = front.url().replace("http://", "");
    assert_eq!(
        error,
        format!(
            "Connection error: connection refused: no server runs at {address}\nStart it with: ollama serve. If it has another \
             address, set OLLAMA_HOST or \"localServers\" in settings.json."
        )
    );
    pi.finish();
    let done = run(
        &world,
        &front,
        &[],
        &["-p", "Hi", "--provider", "ollama", "--model", "qwen3"],
    );
    assert_eq!((done.code, done.out.as_str()), (Some(1), ""));
    let wanted = format!("Error: No Ollama server answers at {}.", front.url());
    assert!(done.err.starts_with(&wanted), "{}", done.err);
}

#[test]
fn local_models_are_listed() {
    let world = World::new([]);
    let front = ollama(&world);
    let done = run_until(&world, &front, "qwen3:8b", &["--list-models", "qwen 8b"]);
    assert_eq!(done.code, Some(0));
    assert_eq!(
        done.out,
        "provider  model     context  max-out  thinking  images\nollama    qwen3:8b  41.0K    10.2K    yes       no\n"
    );
    // Letters in their order will do when nothing has the word itself.
    run_until(&world, &front, "qwen3:8b", &["--list-models", "qw8"]);
    for options in [
        &["--list-models", "qwen", "--json"][..],
        &["--list-models", "--json"],
        &["--json", "--list-models"],
    ] {
        let done = run_until(&world, &front, "qwen3:8b", options);
        assert_eq!(done.err, "", "{options:?}");
        let list: Value = serde_json::from_str(&done.out).unwrap();
        let ids: Vec<&str> = list
            .as_array()
            .unwrap()
            .iter()
            .map(|model| model["id"].as_str().unwrap())
            .collect();
        let wanted = if options.contains(&"qwen") { 1 } else { 6 };
        assert_eq!(
            (ids.len(), ids.last()),
            (wanted, Some(&"qwen3:8b")),
            "{options:?}"
        );
    }
    front.asked();
    for quiet in [&["PI_OFFLINE=1"][..], &[]] {
        let options: &[&str] = if quiet.is_empty() {
            &["--list-models", "--offline"]
        } else {
            &["--list-models"]
        };
        let done = run(&world, &front, quiet, options);
        assert!(!done.out.contains("qwen3"), "{}", done.out);
    }
    assert_eq!(front.asked(), Vec::<String>::new());
}

#[test]
fn settings_name_local_servers_and_disable_search() {
    let world = World::new([]);
    let front = ollama(&world);
    let list = json!({"data": [{"id": "big", "owned_by": "vllm", "max_model_len": 32768}]});
    let gpu = Front::start(&[("/v1/models", list)], &world.server.url());
    let servers = |enabled: bool| {
        world.settings(json!({"localServers": {"enabled": enabled, "servers": {"gpu-box": format!("{}/v1", gpu.url())}}}));
    };
    servers(true);
    let line = "gpu-box   big    32.8K    8.2K";
    run_until(&world, &front, line, &["--list-models", "gpu-box"]);
    servers(false);
    front.asked();
    let done = run(&world, &front, &[], &["--list-models"]);
    assert!(
        !done.out.contains("gpu-box") && front.asked().is_empty(),
        "{}",
        done.out
    );
    // Who is named is asked all the same.
    let pi = rpc_with_model(&world, &front, "gpu-box", &["--model", "gpu-box/big"]);
    assert_eq!(pi.state()["model"]["contextWindow"], 32768);
    pi.finish();
    // The settings of an untrusted project add no server.
    world.settings(json!({}));
    let own = json!({"localServers": {"servers": {"gpu-box": gpu.url()}}});
    world.dir.write(".pi/settings.json", own.to_string()).unwrap();
    let done = run(&world, &front, &[], &["--list-models", "gpu-box"]);
    assert!(done.err.contains("\"localServers\" is left out"), "{}", done.err);
    assert!(!done.out.contains("big"), "{}", done.out);
}

#[test]
fn doctor_reports_local_server() {
    let world = alone(Vec::new());
    let front = ollama(&world);
    let ready = "Ready: ollama/qwen3:8b can be asked";
    let done = run_until(&world, &front, ready, &["doctor"]);
    assert_eq!(done.code, Some(0), "{}", done.out);
    assert!(
        done.out.contains("a server of your own has this model"),
        "{}",
        done.out
    );
    front.leave();
    let done = run(&world, &front, &[], &["doctor"]);
    assert_eq!(done.code, Some(1), "{}", done.out);
}

/// Sends `commands`, of which the first one asks a local server that answers late, while a run streams. The next delta and an
/// abort must pass them. Returns the responses to `commands`, which come in their order.
fn responses_beside_slow_server(commands: &[Value]) -> Vec<Value> {
    let mut responses = None;
    // The server is given up after a second, which a busy machine may need for the abort.
    until("an abort that passes the commands", || {
        responses = responses_after_abort(commands);
        responses.is_some()
    });
    responses.unwrap()
}

/// As [`responses_beside_slow_server`]. Returns none if the server was given up.
fn responses_after_abort(commands: &[Value]) -> Option<Vec<Value>> {
    let reply = Reply::text(["Hello"]).gate("more").then_text([" there"]);
    let world = World::new([reply.gate("never")]);
    let front = ollama(&world);
    front.hold();
    let pi = rpc(&world, &front, &["--model", "claude-mock"]);
    pi.prompt("Hi");
    pi.wait_update("text_delta");
    let ids: Vec<String> = commands.iter().map(|command| pi.send(command.clone())).collect();
    until("the local server to be asked", || !front.asked().is_empty());
    world.server.release("more");
    pi.wait_update("text_delta");
    let abort = pi.send(json!({"type": "abort"}));
    pi.response(&abort);
    front.release();
    let responses: Vec<Value> = ids.iter().map(|id| pi.response(id)).collect();
    let lines = pi.lines();
    let is_next = |line: &Value| line["assistantMessageEvent"]["delta"] == " there";
    let delta = lines.iter().position(is_next).unwrap();
    let (abort, places) = (
        answered_at(&lines, &abort),
        ids.iter().map(|id| answered_at(&lines, id)),
    );
    let places: Vec<usize> = places.collect();
    assert!(delta < abort && places.is_sorted(), "{delta} {abort} {places:?}");
    pi.finish();
    let is_answered = responses.iter().all(|response| response["success"] == true);
    (abort < places[0] && is_answered).then_some(responses)
}

#[test]
fn models_listed_from_slow_server_delay_nothing() {
    let responses = responses_beside_slow_server(&[json!({"type": "get_available_models"})]);
    let models = responses[0]["data"]["models"].as_array().unwrap();
    assert!(
        models.iter().any(|model| model["id"] == "claude-mock"),
        "{models:?}"
    );
}

#[test]
fn model_set_from_slow_server_precedes_later_commands() {
    let responses = responses_beside_slow_server(&[
        json!({"type": "set_model", "provider": "ollama", "modelId": "qwen3:8b"}),
        json!({"type": "get_state"}),
    ]);
    assert_eq!(responses[0]["data"]["id"], "qwen3:8b", "{}", responses[0]);
    assert_eq!(responses[1]["data"]["model"], responses[0]["data"]);
}

#[test]
fn model_set_from_slow_server_is_refused_when_session_closes() {
    let world = World::new([]);
    let front = ollama(&world);
    front.hold();
    let pi = rpc(&world, &front, &["--model", "claude-mock"]);
    pi.data(json!({"type": "open_session", "session": "side"}));
    let set =
        pi.send(json!({"type": "set_model", "provider": "ollama", "modelId": "qwen3:8b", "session": "side"}));
    until("the local server to be asked", || !front.asked().is_empty());
    pi.data(json!({"type": "close_session", "session": "side"}));
    assert_eq!(pi.response(&set)["success"], false);
    pi.finish();
}
