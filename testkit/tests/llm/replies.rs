//! What scripted replies look like to a client, for each protocol, and how they are chosen and recorded.

use std::io::Write;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::llm::{Before, ErrorKind, Item, Options, Outcome, Part, Reply, Request, ScriptedServer, Usage};

use crate::client::{ANTHROPIC, Client, End, GOOGLE, LONG, OPENAI, RESPONSES, post};

/// A reply with every kind of content.
fn rich() -> Reply {
    let usage = Usage {
        input: 7,
        output: 5,
        cache_read: 3,
        cache_write: 2,
        thinking: 1,
    };
    Reply::new()
        .thinking(["Hm", "m"], "sig-1")
        .redacted("opaque")
        .then_text(["Hel", "lo \u{2028}ü"])
        .then_tool("call_1", "write", json!({"path": "a.txt", "n": [1, 2]}))
        .usage(usage)
}

/// The texts at `pointer` of all events that have one, joined.
fn joined(events: &[Value], pointer: &str) -> String {
    events
        .iter()
        .filter_map(|e| e.pointer(pointer)?.as_str())
        .collect()
}

#[test]
fn anthropic_stream_has_all_parts() {
    let server = ScriptedServer::start([rich()]).unwrap();
    let response = post(&server, ANTHROPIC);
    assert_eq!((response.status, response.end), (200, End::Complete));
    let events = response.events();
    let names: Vec<&str> = events.iter().map(|e| e["type"].as_str().unwrap()).collect();
    assert_eq!(names[..3], ["message_start", "ping", "content_block_start"]);
    assert_eq!(names[names.len() - 2..], ["message_delta", "message_stop"]);
    assert_eq!(joined(&events, "/delta/thinking"), "Hmm");
    assert_eq!(joined(&events, "/delta/signature"), "sig-1");
    assert_eq!(joined(&events, "/content_block/data"), "opaque");
    assert_eq!(joined(&events, "/delta/text"), "Hello \u{2028}ü");
    assert_eq!(
        joined(&events, "/delta/partial_json"),
        r#"{"path": "a.txt", "n": [1, 2]}"#
    );
    let stop = &events[events.len() - 2];
    assert_eq!(stop["delta"]["stop_reason"], "tool_use");
    assert_eq!(stop["usage"]["output_tokens"], 5);
    let usage = &events[0]["message"]["usage"];
    assert_eq!(usage["cache_creation_input_tokens"], 2);
    assert_eq!(events[0]["message"]["model"], "m");
    // Blocks are numbered, opened and closed one after the other.
    let blocks: Vec<u64> = events.iter().filter_map(|e| e["index"].as_u64()).collect();
    assert!(blocks.is_sorted() && blocks.last() == Some(&3));
    assert_eq!(names.iter().filter(|n| **n == "content_block_stop").count(), 4);
}

#[test]
fn openai_stream_has_all_parts() {
    let server = ScriptedServer::start([rich()]).unwrap();
    let response = post(&server, OPENAI);
    let events = response.events();
    assert!(response.text().ends_with("data: [DONE]\n\n"));
    assert_eq!(joined(&events, "/choices/0/delta/reasoning_content"), "Hmm");
    assert_eq!(joined(&events, "/choices/0/delta/content"), "Hello \u{2028}ü");
    let arguments = joined(&events, "/choices/0/delta/tool_calls/0/function/arguments");
    assert_eq!(arguments, r#"{"path": "a.txt", "n": [1, 2]}"#);
    assert_eq!(joined(&events, "/choices/0/finish_reason"), "tool_calls");
    let usage = &events.last().unwrap()["usage"];
    assert_eq!(usage["prompt_tokens"], 12);
    assert_eq!(usage["total_tokens"], 17);
    assert_eq!(usage["prompt_tokens_details"]["cached_tokens"], 3);
}

#[test]
fn responses_stream_has_all_parts() {
    let server = ScriptedServer::start([rich(), Reply::text(["cut"]).stop("length")]).unwrap();
    let events = post(&server, RESPONSES).events();
    let numbers: Vec<u64> = events
        .iter()
        .map(|e| e["sequence_number"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, (0..events.len() as u64).collect::<Vec<_>>());
    let last = &events.last().unwrap();
    assert_eq!(last["type"], "response.completed");
    let output = last["response"]["output"].as_array().unwrap();
    let kinds: Vec<&str> = output.iter().map(|o| o["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["reasoning", "message", "function_call"]);
    assert_eq!(output[1]["content"][0]["text"], "Hello \u{2028}ü");
    assert_eq!(output[2]["arguments"], r#"{"path": "a.txt", "n": [1, 2]}"#);
    assert_eq!(last["response"]["usage"]["input_tokens"], 10);

    let events = post(&server, RESPONSES).events();
    let last = &events.last().unwrap();
    assert_eq!(last["type"], "response.incomplete");
    assert_eq!(
        last["response"]["incomplete_details"]["reason"],
        "max_output_tokens"
    );
}

#[test]
fn google_stream_has_all_parts() {
    let server = ScriptedServer::start([rich()]).unwrap();
    let events = post(&server, GOOGLE).events();
    let parts: Vec<&Value> = events
        .iter()
        .map(|e| e.pointer("/candidates/0/content/parts/0").unwrap())
        .collect();
    assert_eq!(parts[0], &json!({"text": "Hm", "thought": true}));
    assert_eq!(
        parts[4]["functionCall"],
        json!({"name": "write", "args": {"path": "a.txt", "n": [1, 2]}})
    );
    let last = events.last().unwrap();
    assert_eq!(last["candidates"][0]["finishReason"], "STOP");
    assert_eq!(last["usageMetadata"]["thoughtsTokenCount"], 1);
    assert_eq!(last["usageMetadata"]["cachedContentTokenCount"], 3);
    assert_eq!(server.requests()[0].model, "m");
}

#[test]
fn scripted_errors_have_provider_status_and_body() {
    let kinds = [
        (ErrorKind::RateLimit, [429, 429, 429, 429]),
        (ErrorKind::Server, [500; 4]),
        (ErrorKind::Overloaded, [529, 503, 503, 503]),
        (ErrorKind::ContextOverflow, [400; 4]),
        (ErrorKind::TooLarge, [413; 4]),
        (ErrorKind::Auth, [401, 401, 401, 400]),
        (ErrorKind::Invalid, [400; 4]),
    ];
    let server = ScriptedServer::start([]).unwrap();
    for (kind, statuses) in kinds {
        for (path, status) in [ANTHROPIC, OPENAI, RESPONSES, GOOGLE].into_iter().zip(statuses) {
            server.push(Reply::error(kind).header("retry-after", "3"));
            let response = post(&server, path);
            assert_eq!(response.status, status, "{kind:?} {path}");
            assert_eq!(response.header("retry-after"), Some("3"));
            let body: Value = serde_json::from_slice(&response.body).unwrap();
            assert!(
                body["error"]["message"].as_str().is_some_and(|m| m.len() > 5),
                "{body}"
            );
            assert_eq!(body["type"] == "error", path == ANTHROPIC);
        }
    }
    // The server notes an outcome after the client has the answer.
    let seen = server.wait_ended(28, LONG).unwrap();
    assert_eq!(seen[0].outcome, Outcome::Http(429));
    assert_eq!(seen[0].outcome.to_string(), "http_429");
}

#[test]
fn errors_and_pages_can_be_anything() {
    let server = ScriptedServer::from_json(
        r#"{"llm": [
            {"error": {"status": 418, "raw_body": "tea", "headers": {"x-n": 5, "x-s": "s"}}},
            {"error": {"status": 422, "body": {"detail": []}}},
            {"error": {"kind": "auth", "message": "go away", "status": 403}},
            {"page": {"status": 502, "body": "<html>"}}
        ]}"#,
    )
    .unwrap();
    let tea = post(&server, OPENAI);
    assert_eq!((tea.status, tea.text().as_str()), (418, "tea"));
    assert_eq!((tea.header("x-n"), tea.header("x-s")), (Some("5"), Some("s")));
    let detail = post(&server, OPENAI);
    assert_eq!((detail.status, detail.text().as_str()), (422, r#"{"detail":[]}"#));
    let auth = post(&server, ANTHROPIC);
    assert_eq!(auth.status, 403);
    assert!(auth.text().contains("go away") && auth.text().contains("authentication_error"));
    let page = post(&server, ANTHROPIC);
    assert_eq!(
        (page.status, page.header("content-type")),
        (502, Some("text/html; charset=utf-8"))
    );
}

#[test]
fn error_event_ends_stream_in_each_protocol() {
    let reply = Reply::text(["a"])
        .error_event(ErrorKind::Overloaded)
        .then_text(["never"]);
    let server = ScriptedServer::start([reply.repeat()]).unwrap();
    let texts: Vec<String> = [ANTHROPIC, OPENAI, RESPONSES, GOOGLE]
        .map(|p| post(&server, p).text())
        .into();
    assert!(texts[0].ends_with("\"request_id\":\"req_mock_0001\"}\n\n") && texts[0].contains("event: error"));
    assert!(texts[1].contains("currently overloaded") && !texts[1].contains("[DONE]"));
    assert!(texts[2].contains("event: error"));
    assert!(texts[3].contains("UNAVAILABLE"));
    assert!(texts.iter().all(|t| !t.contains("never")));
}

#[test]
fn gate_holds_stream_until_released() {
    let reply = Reply::text([
        Part::from("before"),
        Part::Gate { gate: "g".into() },
        Part::from("after"),
    ]);
    let server = ScriptedServer::start([reply]).unwrap();
    let mut client = Client::new(&server);
    client.send(ANTHROPIC, "{}");
    server.wait_gate("g", LONG).unwrap();
    assert_eq!(server.requests()[0].outcome, Outcome::Pending);
    assert!(server.wait_ended(1, Duration::from_millis(50)).is_err());
    server.release("g");
    let response = client.read();
    assert_eq!(joined(&response.events(), "/delta/text"), "beforeafter");
    server.wait_ended(1, LONG).unwrap();
    assert_eq!(server.requests()[0].outcome, Outcome::Completed);
    assert_eq!(server.requests()[0].sent, response.body.len() as u64);
}

#[test]
fn client_leaving_at_gate_is_noticed() {
    let server = ScriptedServer::start([Reply::text(["x"]).gate("g")]).unwrap();
    let mut client = Client::new(&server);
    client.send(ANTHROPIC, "{}");
    server.wait_gate("g", LONG).unwrap();
    drop(client);
    let requests = server.wait_ended(1, LONG).unwrap();
    assert_eq!(requests[0].outcome, Outcome::ClientClosed);
}

#[test]
fn gate_before_head_is_released_over_http() {
    let before = Before {
        gate: Some("g".into()),
        ..Before::default()
    };
    let server = ScriptedServer::start([Reply::text(["x"]).before(before)]).unwrap();
    let mut client = Client::new(&server);
    client.send(OPENAI, "{}");
    server.wait_gate("g", LONG).unwrap();
    let gate = post(&server, "/__gate/g");
    assert_eq!(gate.status, 200);
    assert_eq!(client.read().status, 200);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn connections_are_kept_alive_unless_closed() {
    let server = ScriptedServer::start([Reply::text(["a"]), Reply::error(ErrorKind::Server)]).unwrap();
    server.set_default(Reply::text(["z"]));
    let mut client = Client::new(&server);
    let statuses: Vec<u16> = (0..4).map(|_| client.post(ANTHROPIC, "{}").status).collect();
    assert_eq!(statuses, [200, 500, 200, 200]);
    assert_eq!(server.connections(), 1);

    client.send_with(ANTHROPIC, "{}", "Connection: close\r\n");
    let last = client.read();
    assert_eq!(
        (last.end, last.header("connection")),
        (End::Complete, Some("close"))
    );
    assert_eq!(client.read().end, End::Eof);

    server.push(Reply::text(["b"]).close());
    let mut client = Client::new(&server);
    assert_eq!(client.post(ANTHROPIC, "{}").header("connection"), Some("close"));
    assert_eq!(client.read().end, End::Eof);
}

#[test]
fn replies_are_chosen_by_match_rule_default() {
    let server = ScriptedServer::start([
        Reply::text(["apple"]).when_contains("fruit"),
        Reply::text(["first"]),
        Reply::text(["never"]).when_contains("no such text"),
    ])
    .unwrap();
    let mut client = Client::new(&server);
    let mut ask = |body: &str| client.post(ANTHROPIC, body).text();
    assert!(ask(r#"{"a": "x"}"#).contains("first"));
    assert!(ask(r#"{"a": "fruit"}"#).contains("apple"));
    let exhausted = ask("{}");
    assert!(exhausted.contains("script exhausted"), "{exhausted}");
    server.set_default(Reply::text(["default"]));
    assert!(ask("{}").contains("default"));
    server.set_rule(|r: &Request| Reply::text([format!("rule {}", r.body["a"])]));
    assert!(ask(r#"{"a": 5}"#).contains("rule 5"));
    assert_eq!(server.unused(), [2]);
    assert_eq!(server.requests()[2].outcome, Outcome::Unscripted);
}

#[test]
fn client_library_retry_gets_same_reply() {
    let server = ScriptedServer::start([Reply::error(ErrorKind::Server), Reply::text(["ok"])]).unwrap();
    let mut client = Client::new(&server);
    assert_eq!(client.post(OPENAI, "{}").status, 500);
    client.send_with(OPENAI, "{}", "x-stainless-retry-count: 1\r\n");
    assert_eq!(client.read().status, 500);
    assert_eq!(client.post(OPENAI, "{}").status, 200);
    assert_eq!(server.requests()[1].sdk_retry, 1);
}

#[test]
fn requests_are_recorded_in_any_form() {
    let server = ScriptedServer::start([Reply::text(["a"]).repeat()]).unwrap();
    let mut client = Client::new(&server);
    let chunked = "POST /v1/messages?beta=true HTTP/1.1\r\nX-Api-Key: k\r\nTransfer-Encoding: chunked\r\n\r\n\
                   7;ext=1\r\n{\"a\": [\r\n3\r\n1]}\r\n0\r\n\r\n";
    client.stream.write_all(chunked.as_bytes()).unwrap();
    assert_eq!(client.read().status, 200);
    client.post(OPENAI, "no json");
    client
        .stream
        .write_all(b"GET /v1/models HTTP/1.1\r\n\r\n")
        .unwrap();
    assert_eq!(client.read().status, 404);
    let seen = server.wait_ended(3, LONG).unwrap();
    assert_eq!(seen[0].body, json!({"a": [1]}));
    assert_eq!(
        (seen[0].header("x-api-key"), seen[0].path.as_str()),
        (Some("k"), "/v1/messages?beta=true")
    );
    assert_eq!(seen[1].body, json!({"$unparsed": "no json"}));
    assert_eq!(
        (seen[2].method.as_str(), seen[2].outcome),
        ("GET", Outcome::UnknownPath)
    );

    client.stream.write_all(b"nonsense\r\n\r\n").unwrap();
    assert_eq!(client.read().status, 400);
}

#[test]
fn each_delta_is_own_write_unless_batched() {
    let server = ScriptedServer::start([
        Reply::text_deltas(100, 20),
        Reply::text_deltas(100, 20).batch(4096),
    ]);
    let server = server.unwrap();
    let single = post(&server, ANTHROPIC);
    let batched = post(&server, ANTHROPIC);
    // message_start, ping, block start, 100 deltas, block stop, message_delta, message_stop
    assert_eq!(single.chunks.len(), 106);
    assert!(
        batched.chunks.len() < 10 && batched.chunks[0] >= 4096,
        "{:?}",
        batched.chunks
    );
    let text = joined(&single.events(), "/delta/text");
    assert_eq!(text.len(), 2000);
    assert_eq!(text, joined(&batched.events(), "/delta/text"));
}

#[test]
fn generated_write_call_is_valid_json_everywhere() {
    let server = ScriptedServer::start([Reply::write_deltas("o\"ut.txt", 50, 30).repeat()]).unwrap();
    let check = |arguments: &str| {
        let arguments: Value = serde_json::from_str(arguments).unwrap();
        assert_eq!(arguments["path"], "o\"ut.txt");
        assert_eq!(arguments["content"].as_str().unwrap().len(), 1500);
    };
    check(&joined(&post(&server, ANTHROPIC).events(), "/delta/partial_json"));
    check(&joined(
        &post(&server, OPENAI).events(),
        "/choices/0/delta/tool_calls/0/function/arguments",
    ));
    let done = post(&server, RESPONSES).events();
    check(
        done.last().unwrap()["response"]["output"][0]["arguments"]
            .as_str()
            .unwrap(),
    );
    let google = post(&server, GOOGLE).events();
    check(
        &google[0]
            .pointer("/candidates/0/content/parts/0/functionCall/args")
            .unwrap()
            .to_string(),
    );
}

#[test]
fn many_tool_calls_are_generated_while_sending() {
    let reply = Reply::many_tools(10_000, "read", json!({"path": "f{i}"})).batch(65536);
    let server = ScriptedServer::start([reply]).unwrap();
    let events = post(&server, ANTHROPIC).events();
    let starts: Vec<&Value> = events
        .iter()
        .filter(|e| e["type"] == "content_block_start")
        .collect();
    assert_eq!(starts.len(), 10_000);
    assert_eq!(starts[9_999]["content_block"]["id"], "call_9999");
    let last = events
        .iter()
        .rev()
        .find_map(|e| e.pointer("/delta/partial_json"))
        .unwrap();
    assert_eq!(last, r#"{"path": "f9999"}"#);
}

#[test]
fn delays_pause_stream() {
    let options = Options {
        chunk_delay: Duration::from_millis(5),
        ..Options::default()
    };
    let replies = [
        Reply::text_deltas(20, 5),
        Reply::text(["a"]).delay(Duration::from_millis(100)),
    ];
    let server = ScriptedServer::with_options(replies, options).unwrap();
    post(&server, ANTHROPIC);
    post(&server, ANTHROPIC);
    let seen = server.wait_ended(2, LONG).unwrap();
    // Only the lower bound says something on a busy machine.
    let took = |n: usize| seen[n].ended.unwrap() - seen[n].at;
    assert!(
        took(0) >= Duration::from_millis(100) && took(1) >= Duration::from_millis(100),
        "{seen:?}"
    );
}

#[test]
fn scripts_round_trip_and_refuse_unknown_keys() {
    let script = r#"[{"stream": [{"text": "one"}, {"thinking": ["a", {"gate": "g"}], "signature": ""},
        {"tool": {"id": "i", "name": "n", "arg_chunks": ["{", {"delay": 0.5}, {"drop": "reset"}]}},
        {"raw_hex": "ff"}, {"comment": "c"}, {"event": "e", "data": null}, {"eof": 1}, {"tools": {"count": 2, "name": "x"}},
        {"error_event": {"kind": "server", "as": "failed"}}, {"big_line": 5}, {"garbage": 5}, {"ping": 2}],
        "pace": {"bytes": 1, "every": 0.01}, "match": {"api": "openai", "tools": true}, "end": "double"}]"#;
    let replies: Vec<Reply> = serde_json::from_str(script).unwrap();
    let again: Vec<Reply> = serde_json::from_str(&serde_json::to_string(&replies).unwrap()).unwrap();
    assert_eq!(replies, again);
    assert!(matches!(&replies[0].stream[0], Item::Text { text } if text == &[Part::from("one")]));
    for wrong in [
        r#"{"streem": []}"#,
        r#"{"stream": [{"txt": "a"}]}"#,
        r#"{"stream": [{"text": [{"gat": 1}]}]}"#,
    ] {
        assert!(serde_json::from_str::<Reply>(wrong).is_err(), "{wrong}");
    }
}
