//! Message threads of Anthropic: off unless a model says otherwise. Then a request has only new messages, and all of them if the provider
//! cannot continue.

use serde_json::{Value, json};
use testkit::llm::{ErrorReply, Recorded, Reply, Request};

use crate::families::start_with_model;
use crate::kit::{Pi, World, bash};

/// An agent whose model has these flags.
fn start(world: &World, compat: &Value) -> Pi {
    let model = json!({"id": "mock", "name": "Mock", "reasoning": true, "input": ["text"], "contextWindow": 200_000, "maxTokens": 8_000,
        "compat": compat});
    start_with_model(world, "anthropic-messages", "anthropic", &model)
}

fn threads() -> Value {
    json!({"supportsMessageThreads": true})
}

/// Answers with a call first, then with texts.
fn reply(request: &Request) -> Reply {
    match request.n {
        0 => bash("call00001", "echo one"),
        n => Reply::new()
            .thinking(["hm"], "c2ln")
            .then_text([format!("answer {n}")]),
    }
}

/// A refusal with a code, or without one.
fn refusal(status: u16, message: &str, code: Option<&str>) -> Reply {
    let mut error = json!({"type": "invalid_request_error", "message": message});
    if let Some(code) = code {
        error["details"] = json!({"error_code": code});
    }
    Reply {
        error: Some(ErrorReply {
            status: Some(status),
            body: Some(json!({"type": "error", "error": error})),
            ..ErrorReply::default()
        }),
        ..Reply::new()
    }
}

/// The thread of each request, and how many messages it has.
fn sent(requests: &[Recorded]) -> Vec<(Value, usize)> {
    let one = |request: &Recorded| {
        let messages = request.body["messages"].as_array().unwrap().len();
        (request.body["thread"].clone(), messages)
    };
    requests.iter().map(one).collect()
}

fn goes_on(id: &str) -> Value {
    json!({"type": "continue", "previous_message_id": id})
}

#[test]
fn thread_gets_only_new_messages() {
    let world = World::new([]);
    world.server.set_rule(reply);
    let pi = start(&world, &threads());
    pi.say("Go");
    pi.say("Again");
    pi.finish();
    let requests = world.server.requests();
    let create = json!({"type": "create"});
    assert_eq!(
        sent(&requests),
        [
            (create, 1),
            (goes_on("msg_mock_0001"), 1),
            (goes_on("msg_mock_0002"), 1)
        ]
    );
    let [first, second, third] = &requests[..] else {
        panic!("three requests");
    };
    for request in &requests {
        let betas = request.header("anthropic-beta").unwrap();
        assert!(betas.contains("message-threads-2026-08-12"), "{betas}");
    }
    assert!(first.body.get("system").is_some() && first.body.get("tools").is_some());
    assert!(second.body.get("system").is_none() && second.body.get("tools").is_none());
    assert_eq!(second.body["messages"][0]["content"][0]["type"], "tool_result");
    assert_eq!(third.body["messages"][0]["content"][0]["text"], "Again");
}

#[test]
fn threads_are_off_by_default() {
    let world = World::new([]);
    world.server.set_rule(reply);
    let pi = start(&world, &json!({}));
    pi.say("Go");
    pi.finish();
    let requests = world.server.requests();
    assert_eq!(sent(&requests), [(Value::Null, 1), (Value::Null, 3)]);
    let betas = requests[0].header("anthropic-beta").unwrap_or_default();
    assert!(!betas.contains("thread"), "{betas}");
}

#[test]
fn changed_tools_begin_new_thread() {
    let world = World::new([]);
    world.server.set_rule(reply);
    let pi = start(&world, &threads());
    pi.say("Go");
    pi.data(json!({"type": "set_active_tools", "toolNames": ["read"]}));
    pi.say("Again");
    pi.say("And again");
    pi.finish();
    let sent = sent(&world.server.requests());
    assert_eq!(
        sent[2..],
        [(json!({"type": "create"}), 5), (goes_on("msg_mock_0003"), 1)]
    );
}

#[test]
fn other_branch_begins_new_thread() {
    let world = World::new([]);
    world.server.set_rule(reply);
    let pi = start(&world, &threads());
    pi.say("Go");
    pi.say("Again");
    let entries = pi.get("get_fork_messages")["messages"].clone();
    let entry = entries[1]["entryId"].as_str().unwrap();
    pi.data(json!({"type": "navigate_tree", "targetId": entry}));
    pi.say("Otherwise");
    pi.finish();
    let sent = sent(&world.server.requests());
    // As many messages as the thread has, and others.
    assert_eq!(sent[3], (json!({"type": "create"}), 5));
}

#[test]
fn lost_thread_is_sent_whole() {
    for code in [
        "thread_not_found",
        "thread_already_continued",
        "thread_continue_in_flight",
        "thread_fingerprint_mismatch",
    ] {
        let world = World::new([]);
        world.server.set_rule(move |request| match request.n {
            1 => refusal(404, "gone", Some(code)),
            _ => reply(request),
        });
        let pi = start(&world, &threads());
        pi.say("Go");
        pi.say("Again");
        pi.finish();
        let requests = world.server.requests();
        assert_eq!(
            sent(&requests)[1..],
            [
                (goes_on("msg_mock_0001"), 1),
                (json!({"type": "create"}), 3),
                (goes_on("msg_mock_0003"), 1)
            ],
            "{code}"
        );
        assert!(requests[2].body.get("system").is_some());
    }
}

#[test]
fn refused_threads_are_off_for_session() {
    for code in [None, Some("thread_unsupported_request")] {
        let world = World::new([]);
        world.server.set_rule(move |request| match request.n {
            0 => refusal(400, "thread: Extra inputs are not permitted", code),
            1 => bash("call00001", "echo one"),
            _ => reply(request),
        });
        let pi = start(&world, &threads());
        pi.say("Go");
        pi.say("Again");
        pi.finish();
        let create = json!({"type": "create"});
        assert_eq!(
            sent(&world.server.requests()),
            [(create, 1), (Value::Null, 1), (Value::Null, 3), (Value::Null, 5)],
            "{code:?}"
        );
    }
}

#[test]
fn other_refusals_are_not_repeated() {
    let world = World::new([]);
    world.server.set_rule(|_| refusal(400, "prompt is wrong", None));
    let pi = start(&world, &threads());
    pi.say("Go");
    assert_eq!(world.server.requests().len(), 1);
    let last = pi.messages().pop().unwrap();
    assert!(
        last["errorMessage"].to_string().contains("prompt is wrong"),
        "{last}"
    );
    pi.finish();
}

#[test]
fn failed_answer_is_not_continued() {
    let world = World::new([]);
    world.server.set_rule(|request| match request.n {
        1 => Reply::text(["half"]).drop_here(testkit::llm::CutHow::Close),
        _ => reply(request),
    });
    world.settings(json!({"retry": {"baseDelayMs": 1}}));
    let pi = start(&world, &threads());
    pi.say("Go");
    pi.finish();
    let sent = sent(&world.server.requests());
    assert_eq!(sent[2], (json!({"type": "create"}), 3));
}
