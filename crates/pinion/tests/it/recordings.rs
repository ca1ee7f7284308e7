//! `--record` and `--replay`: what a provider said once is said again, without provider, network and keys.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use testkit::driver::AgentConfig;
use testkit::llm::{CutHow, ErrorKind, FAMILIES, Reply};

use crate::families::jwt;
use crate::kit::{PROGRAM, Pi, World, answers, of_type, text};

const KEY: &str = "sk-planted-0123456789abcdef";

/// `models.json` with a provider for each family, named after it.
fn models(url: &str) -> Value {
    let mut providers = serde_json::Map::new();
    for (api, path) in FAMILIES {
        let model =
            json!({"id": "m", "name": "M", "reasoning": true, "contextWindow": 200_000, "maxTokens": 8000});
        let provider =
            json!({"baseUrl": format!("{url}/{path}"), "api": api, "apiKey": "$PLANTED", "models": [model]});
        providers.insert(api.to_owned(), provider);
    }
    json!({ "providers": providers })
}

fn tape(world: &World) -> PathBuf {
    world.dir.root().join("tape.jsonl")
}

fn config(world: &World, api: &str, option: &str) -> AgentConfig {
    let file = tape(world);
    let args = [
        "--mode",
        "rpc",
        "--rpc-dialect",
        "pi-delta",
        "--model",
        &format!("{api}/m"),
        option,
    ];
    world.dir.agent(PROGRAM).args(args).args([file])
}

/// A world without a provider: the address is unreachable, the key is not set.
fn deserted(like: &World) -> World {
    let world = World::new([]);
    world.dir.write_models(&models("http://127.0.0.1:9")).unwrap();
    std::fs::copy(tape(like), tape(&world)).unwrap();
    world
}

/// The lines without values that are new each time, neighbouring deltas joined.
fn plain(lines: &[Value], world: &World) -> Vec<Value> {
    let mut out: Vec<Value> = Vec::new();
    for line in lines {
        let line = strip(line, &world.dir.root().to_string_lossy());
        let event = &line["assistantMessageEvent"];
        if let Some(last) = out.last_mut()
            && event["delta"].is_string()
            && last["assistantMessageEvent"]["type"] == event["type"]
            && last["assistantMessageEvent"]["contentIndex"] == event["contentIndex"]
        {
            let before = last["assistantMessageEvent"]["delta"]
                .as_str()
                .unwrap()
                .to_owned();
            *last = line.clone();
            last["assistantMessageEvent"]["delta"] = json!(before + event["delta"].as_str().unwrap());
            continue;
        }
        out.push(line);
    }
    out
}

fn strip(value: &Value, root: &str) -> Value {
    const NEW: [&str; 10] = [
        "targetId",
        "timestamp",
        "sessionId",
        "sessionFile",
        "durationMs",
        "wall_time_seconds",
        "id",
        "toolCallId",
        "parentId",
        "entryId",
    ];
    match value {
        Value::Object(members) => {
            let kept = members.iter().filter(|(name, _)| !NEW.contains(&name.as_str()));
            Value::Object(
                kept.map(|(name, value)| (name.clone(), strip(value, root)))
                    .collect(),
            )
        }
        Value::Array(items) => items.iter().map(|item| strip(item, root)).collect(),
        // A recording has no key, so that a replay cannot say where a rejected one came from.
        Value::String(text) => {
            let rejected = |line: &&str| !line.contains(" rejected the key ");
            let lines: Vec<&str> = text.split('\n').take_while(rejected).collect();
            json!(lines.join("\n").replace(root, ""))
        }
        other => other.clone(),
    }
}

fn lines_of(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The key of a family; ChatGPT's names an account.
fn said_key(api: &str) -> String {
    match api {
        "openai-codex-responses" => jwt(KEY),
        _ => KEY.to_owned(),
    }
}

fn replies(api: &str, key: &str) -> Vec<Reply> {
    let looks = Reply::text(["I ", "look."]);
    // The Responses API ends reasoning in another text than its deltas.
    let looks = if api.contains("responses") {
        looks
    } else {
        looks.thinking(["Hm", "m."], "sig-mock")
    };
    vec![
        Reply::error(ErrorKind::Overloaded),
        looks.then_tool("call_1", "bash", json!({"command": "echo from-the-tool"})),
        Reply::text(["Half an ans"]).cut(300, CutHow::Reset),
        Reply::text(["It ", "says ", "é ☃."]),
        serde_json::from_value(json!({"error": {"kind": "auth", "message": format!("bad key {key}!")}}))
            .unwrap(),
        Reply::text(["Good bye."]),
    ]
}

fn talk(pi: &Pi) -> Vec<Value> {
    for prompt in ["Look", "And?", "Bye"] {
        pi.say(prompt);
    }
    let lines = pi.lines();
    lines
        .into_iter()
        .filter(|line| line["type"] != "response" && line["type"] != "ready")
        .collect()
}

#[test]
fn every_family_replays_its_recording() {
    for (api, _) in FAMILIES {
        let world = World::new(replies(api, &said_key(api)));
        world.dir.write_models(&models(&world.server.url())).unwrap();
        let key = said_key(api);
        let pi = Pi::spawn(config(&world, api, "--record").env("PLANTED", &key));
        let recorded = talk(&pi);
        pi.finish();
        assert_eq!(world.server.requests().len(), 6, "{api}");
        let file = std::fs::read_to_string(tape(&world)).unwrap();
        assert!(!file.contains(&key) && file.contains("[key]"), "{api}");
        let mode = std::fs::metadata(tape(&world)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);

        let again = deserted(&world);
        let pi = Pi::spawn(config(&again, api, "--replay").args(["--replay-strict"]));
        let played = talk(&pi);
        pi.finish();
        let (recorded, played) = (plain(&recorded, &world), plain(&played, &again));
        for (at, (one, other)) in recorded.iter().zip(&played).enumerate() {
            assert_eq!(one, other, "{api}: line {at}");
        }
        assert_eq!(recorded.len(), played.len(), "{api}");
        assert_eq!(text(answers(&played).last().unwrap()), "Good bye.", "{api}");
        assert!(again.server.requests().is_empty());
    }
}

#[test]
fn one_shot_modes_record_and_replay() {
    for mode in ["text", "json"] {
        let world = World::new([Reply::tool("c", "ls", json!({})), Reply::text(["Two files."])]);
        world
            .dir
            .write_models(&models(&world.server.url()).clone())
            .unwrap();
        let file = tape(&world);
        let file = file.to_str().unwrap();
        let auth = json!({"anthropic-messages": {"type": "api_key", "key": KEY}});
        world
            .dir
            .write(world.dir.agent_dir().join("auth.json"), auth.to_string())
            .unwrap();
        let args = ["--model", "anthropic-messages/m", "--mode", mode, "-p", "Look"];
        let run = |world: &World, option: &[&str]| world.run(&[&args, option].concat(), "");
        let recorded = run(&world, &["--record", file]);
        assert_eq!(recorded.code, Some(0), "{}", recorded.err);
        assert!(!std::fs::read_to_string(file).unwrap().contains(KEY));
        let again = deserted(&world);
        let played = run(&again, &["--replay", file]);
        assert_eq!((played.code, played.err.as_str()), (Some(0), ""));
        let kinds = |out: &str| -> Vec<Value> {
            let parsed = out
                .lines()
                .map(|line| serde_json::from_str(line).unwrap_or(json!(line)));
            plain(&parsed.collect::<Vec<Value>>(), &again)
                .into_iter()
                .map(|line| line["type"].clone())
                .collect()
        };
        if mode == "text" {
            assert_eq!(played.out, recorded.out);
        } else {
            let updates = |kinds: Vec<Value>| -> Vec<Value> {
                kinds
                    .into_iter()
                    .filter(|kind| kind != "message_update")
                    .collect()
            };
            assert_eq!(updates(kinds(&played.out)), updates(kinds(&recorded.out)));
        }
    }
}

#[test]
fn sessions_of_one_process_replay_separately() {
    let world = World::new([]);
    world.server.set_rule(|request| {
        let said = request.body["messages"].to_string();
        if said.contains("apples") {
            Reply::text(["red"])
        } else {
            Reply::text(["yellow"])
        }
    });
    world.dir.write_models(&models(&world.server.url())).unwrap();
    let ask = |pi: &Pi, order: [&str; 2]| {
        let other = pi.data(json!({"type": "open_session"}))["session"].clone();
        for fruit in order {
            let mut prompt = json!({"type": "prompt", "message": fruit});
            if fruit == "bananas" {
                prompt["session"] = other.clone();
            }
            pi.data(prompt);
        }
        pi.settled();
        pi.settled();
        let lines = pi.lines();
        let of = |session: &Value| -> String {
            let own: Vec<Value> = lines
                .iter()
                .filter(|line| line.get("session").unwrap_or(&Value::Null) == session)
                .cloned()
                .collect();
            text(answers(&own)[0])
        };
        (of(&Value::Null), of(&other))
    };
    let api = "openai-completions";
    let pi = Pi::spawn(config(&world, api, "--record").env("PLANTED", KEY));
    assert_eq!(ask(&pi, ["apples", "bananas"]), ("red".into(), "yellow".into()));
    pi.finish();
    let again = deserted(&world);
    let pi = Pi::spawn(config(&again, api, "--replay"));
    assert_eq!(ask(&pi, ["bananas", "apples"]), ("red".into(), "yellow".into()));
    pi.finish();
}

#[test]
fn replayed_aborted_answer_stays_open_until_abort() {
    let world = World::new([Reply::text(["one ", "two "]).gate("g"), Reply::text(["after"])]);
    world.dir.write_models(&models(&world.server.url())).unwrap();
    let go = |pi: &Pi| {
        pi.prompt("count");
        pi.agent
            .wait(
                |line| {
                    let event = &line["assistantMessageEvent"];
                    event["type"] == "text_delta" && event["delta"].as_str().unwrap().ends_with("two ")
                },
                crate::kit::LONG,
            )
            .unwrap();
        pi.get("abort");
        pi.settled();
        pi.say("next");
        let lines = pi.lines();
        answers(&lines)
            .into_iter()
            .map(|answer| (text(answer), answer["stopReason"].clone()))
            .collect::<Vec<_>>()
    };
    let api = "anthropic-messages";
    let pi = Pi::spawn(config(&world, api, "--record").env("PLANTED", KEY));
    let recorded = go(&pi);
    pi.finish();
    let again = deserted(&world);
    let pi = Pi::spawn(config(&again, api, "--replay"));
    let played = go(&pi);
    pi.finish();
    assert_eq!(recorded, played);
    assert_eq!(played[0], ("one two ".to_owned(), json!("aborted")));
}

#[test]
fn compaction_is_recorded_and_replayed() {
    let world = World::new([
        Reply::text(["long ago"]),
        Reply::text(["a summary of it"]),
        Reply::text(["now"]),
    ]);
    world.dir.write_models(&models(&world.server.url())).unwrap();
    world.settings(json!({"compaction": {"keepRecentTokens": 1}}));
    let go = |pi: &Pi| {
        pi.say("begin");
        let done = pi.get("compact");
        pi.say("go on");
        (
            done["summary"].clone(),
            pi.get("get_last_assistant_text")["text"].clone(),
        )
    };
    let pi = Pi::spawn(config(&world, "google-generative-ai", "--record").env("PLANTED", KEY));
    let recorded = go(&pi);
    pi.finish();
    let again = deserted(&world);
    again.settings(json!({"compaction": {"keepRecentTokens": 1}}));
    let pi = Pi::spawn(config(&again, "google-generative-ai", "--replay").args(["--replay-strict"]));
    assert_eq!(go(&pi), recorded);
    assert_eq!(recorded.1, "now");
    pi.finish();
}

#[test]
fn replay_reports_missing_and_different_requests() {
    let world = World::new([Reply::text(["Hello!"])]);
    world.dir.write_models(&models(&world.server.url())).unwrap();
    let api = "openai-responses";
    let pi = Pi::spawn(config(&world, api, "--record").env("PLANTED", KEY));
    pi.say("Hi");
    pi.finish();

    let again = deserted(&world);
    let pi = Pi::spawn(config(&again, api, "--replay"));
    let lines = pi.say("Howdy");
    assert_eq!(text(answers(&lines)[0]), "Hello!");
    let notice = of_type(&lines, "notice")[0]["message"].as_str().unwrap();
    assert!(
        notice.contains("differs") && notice.contains(".input[0]"),
        "{notice}"
    );
    let lines = pi.say("And now?");
    let answer = answers(&lines)[0];
    assert_eq!(answer["stopReason"], "error");
    let error = answer["errorMessage"].as_str().unwrap();
    assert!(
        error.contains("no further answer") && error.contains(api),
        "{error}"
    );
    assert!(of_type(&lines, "auto_retry_start").is_empty());
    pi.finish();

    let pi = Pi::spawn(config(&again, api, "--replay").args(["--replay-strict"]));
    let lines = pi.say("Howdy");
    assert!(
        answers(&lines)[0]["errorMessage"]
            .as_str()
            .unwrap()
            .contains("differs")
    );
    pi.finish();
}

#[test]
fn recordings_are_appended_and_other_files_refused() {
    let world = World::new([Reply::text(["one"]), Reply::text(["two"])]);
    world.dir.write_models(&models(&world.server.url())).unwrap();
    for prompt in ["first", "second"] {
        let pi = Pi::spawn(config(&world, "anthropic-messages", "--record").env("PLANTED", KEY));
        pi.say(prompt);
        pi.finish();
        // As a kill leaves it.
        let mut bytes = std::fs::read(tape(&world)).unwrap();
        bytes.extend(b"{\"type\":\"chu");
        std::fs::write(tape(&world), bytes).unwrap();
    }
    let again = deserted(&world);
    let pi = Pi::spawn(config(&again, "anthropic-messages", "--replay"));
    assert_eq!(text(answers(&pi.say("first"))[0]), "one");
    pi.get("new_session");
    assert_eq!(text(answers(&pi.say("second"))[0]), "two");
    pi.finish();

    let text = "my notes\n";
    let notes = world.dir.cwd().join("notes.txt");
    std::fs::write(&notes, text).unwrap();
    let notes = notes.to_str().unwrap();
    for option in ["--record", "--replay"] {
        let done = world.run(&["--model", "anthropic-messages/m", option, notes, "-p", "x"], "");
        assert_eq!(done.code, Some(1));
        assert!(done.err.contains("notes.txt"), "{}", done.err);
        assert_eq!(std::fs::read_to_string(notes).unwrap(), text);
    }
}

#[test]
fn recording_has_requests_responses_and_times() {
    let world = World::new([Reply::text(["a", "b"])]);
    world
        .dir
        .write_models(&models(&format!("{}/x?key={KEY}&alt=sse", world.server.url())))
        .unwrap();
    let url = format!("{}/anthropic?key={KEY}", world.server.url());
    let provider = json!({"baseUrl": url, "api": "anthropic-messages", "apiKey": "$PLANTED", "authHeader": true,
        "headers": {"X-Corp": "corp-secret-0123456789", "X-Title": "shown"}, "models": [{"id": "m"}]});
    world
        .dir
        .write_models(&json!({"providers": {"own": provider}}))
        .unwrap();
    let pi = Pi::spawn(config(&world, "own", "--record").env("PLANTED", KEY));
    let state = pi.state();
    assert!(!state.to_string().contains(KEY), "{state}");
    pi.say(&format!("My key is {KEY}."));
    pi.finish();
    assert!(
        world.server.requests()[0].path.contains(KEY),
        "the provider gets it"
    );
    let lines = lines_of(&tape(&world));
    let kinds: Vec<&str> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert_eq!(kinds[..3], ["tape", "request", "response"]);
    assert_eq!(kinds.last(), Some(&"end"));
    let request = &lines[1];
    assert_eq!(request["method"], "POST");
    assert!(
        request["url"]
            .as_str()
            .unwrap()
            .ends_with("/anthropic/v1/messages?key=[key]")
    );
    let headers = request["headers"].as_array().unwrap();
    for shown in [
        ["x-title", "shown"],
        ["x-corp", "[key]"],
        ["authorization", "[key]"],
        ["x-api-key", "[key]"],
    ] {
        assert!(headers.contains(&json!(shown)), "{headers:?}");
    }
    assert!(
        request["body"]["messages"][0]
            .to_string()
            .contains("My key is [key].")
    );
    assert_eq!(lines[2]["status"], 200);
    let body: String = of_type(&lines, "chunk")
        .iter()
        .map(|line| line["text"].as_str().unwrap())
        .collect();
    assert!(body.contains("message_start") && body.contains("message_stop"));
}
