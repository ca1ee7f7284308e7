//! URIs that the client serves to `read` and `write` (dialects.md 7).

use serde_json::{Value, json};
use testkit::llm::Reply;

use crate::kit::{LONG, Pi, World, of_type, text};

fn serve(pi: &Pi, schemes: Value) -> Value {
    pi.data(json!({"type": "set_host_uri_schemes", "schemes": schemes}))["schemes"].clone()
}

fn notes(pi: &Pi) {
    let scheme = json!({"scheme": "notes", "description": "The user's notes", "writable": true});
    assert_eq!(serve(pi, json!([scheme])), json!(["notes"]));
}

fn reading(args: Value) -> World {
    World::new([Reply::tool("c1", "read", args), Reply::text(["done"])])
}

fn writing(url: &str) -> World {
    let args = json!({"path": url, "content": "é1"});
    World::new([Reply::tool("c1", "write", args), Reply::text(["done"])])
}

/// Sends the answer to a request, with these members.
fn answer(pi: &Pi, request: &Value, members: Value) {
    let mut frame = members;
    frame["type"] = "host_uri_result".into();
    frame["id"] = request["id"].clone();
    pi.agent.send(&frame).unwrap();
}

/// The only result: error or not, text.
fn result(pi: &Pi) -> (bool, String) {
    let message = &pi.messages()[2];
    (message["isError"].as_bool().unwrap(), text(message))
}

#[test]
fn host_uri_schemes_are_validated_and_replaced() {
    let world = World::new([Reply::text(["hi"])]);
    let pi = world.start();
    let all = json!([{"scheme": " Notes ", "writable": true}, {"scheme": "a+b.c-1"}, {"scheme": "NOTES"}]);
    assert_eq!(serve(&pi, all), json!(["notes", "a+b.c-1"]));
    let empty = "Host URI scheme must be a non-empty string";
    for (schemes, error) in [
        (json!([{"scheme": " "}]), empty),
        (json!([{"scheme": 5}]), empty),
        (json!(["x"]), empty),
        (
            json!([{"scheme": "1a"}]),
            "Host URI scheme contains invalid characters: 1a",
        ),
        (
            json!([{"scheme": "A:b"}]),
            "Host URI scheme contains invalid characters: A:b",
        ),
        (
            json!([{"scheme": "Security"}]),
            "Host URI scheme is reserved by OMP: security://",
        ),
        (
            (0..65).map(|n| json!({"scheme": format!("s{n}")})).collect(),
            "65 host URI schemes are too many; the limit is 64",
        ),
        (
            json!([{"scheme": "x", "description": "y".repeat(5_000)}]),
            "Host URI scheme x:// is larger than 4096 bytes",
        ),
    ] {
        let command = json!({"type": "set_host_uri_schemes", "schemes": schemes});
        assert_eq!(pi.error(command), error, "{schemes}");
    }
    assert_eq!(
        serve(&pi, json!([{"scheme": "x", "description": "Exes"}])),
        json!(["x"])
    );
    pi.say("Hello");
    let system = world.server.requests()[0].body["system"].to_string();
    assert!(system.contains("x://") && system.contains("Exes"), "{system}");
    assert!(!system.contains("notes://"), "{system}");
    pi.finish();
}

#[test]
fn read_tool_requests_host_uri() {
    let world = reading(json!({"path": "NOTES://ideas/1"}));
    let pi = world.start();
    notes(&pi);
    pi.prompt("Go");
    let request = pi.wait("host_uri_request");
    let id = request["id"].as_str().unwrap();
    assert_eq!(
        request,
        json!({"type": "host_uri_request", "id": id, "operation": "read", "url": "NOTES://ideas/1"})
    );
    answer(
        &pi,
        &request,
        json!({"content": "one\ntwo", "contentType": "text/markdown", "notes": ["from today"], "immutable": true}),
    );
    // A second answer finds no question.
    answer(&pi, &request, json!({"content": "other"}));
    pi.settled();
    assert_eq!(result(&pi), (false, "one\ntwo\n\n[from today]".to_owned()));
    assert_eq!(
        pi.messages()[2]["details"],
        json!({"url": "NOTES://ideas/1", "contentType": "text/markdown", "immutable": true})
    );
    pi.finish();
}

#[test]
fn host_uri_read_respects_offset_and_limit() {
    let lines: String = (1..=3_000).map(|n| format!("line {n}\n")).collect();
    let world = reading(json!({"path": "notes://long", "offset": "2", "limit": 2}));
    let pi = world.start();
    notes(&pi);
    pi.prompt("Go");
    answer(&pi, &pi.wait("host_uri_request"), json!({"content": lines}));
    pi.settled();
    let (_, shown) = result(&pi);
    assert!(shown.starts_with("line 2\nline 3\n\n["), "{shown}");
    pi.finish();

    let world = reading(json!({"path": "notes://long"}));
    let pi = world.start();
    notes(&pi);
    pi.prompt("Go");
    answer(&pi, &pi.wait("host_uri_request"), json!({"content": lines}));
    pi.settled();
    let (_, shown) = result(&pi);
    assert!(
        shown.ends_with("[Showing lines 1-2000 of 3000. Use offset=2001 to continue.]"),
        "{shown}"
    );
    assert!(pi.messages()[2]["details"]["truncation"].is_object());
    pi.finish();
}

#[test]
fn write_tool_requests_host_uri() {
    for (members, said) in [
        (json!({}), "Successfully wrote 2 bytes to notes://new"),
        (json!({"content": "Kept as note 7"}), "Kept as note 7"),
    ] {
        let world = writing("notes://new");
        let pi = world.start();
        notes(&pi);
        pi.prompt("Go");
        let request = pi.wait("host_uri_request");
        assert_eq!(
            (&request["operation"], &request["content"]),
            (&json!("write"), &json!("é1"))
        );
        assert_eq!(request["url"], "notes://new");
        answer(&pi, &request, members);
        pi.settled();
        assert_eq!(result(&pi), (false, said.to_owned()));
        pi.finish();
    }
}

#[test]
fn host_uri_write_needs_writable_scheme() {
    let world = writing("docs://page");
    let pi = world.start();
    serve(&pi, json!([{"scheme": "docs"}]));
    pi.prompt("Go");
    pi.settled();
    assert_eq!(
        result(&pi),
        (true, "Host URI scheme is read-only: docs://".to_owned())
    );
    assert!(of_type(&pi.lines(), "host_uri_request").is_empty());
    assert!(!world.dir.cwd().join("docs:").exists());
    pi.finish();
}

#[test]
fn unregistered_uri_schemes_are_paths() {
    let world = reading(json!({"path": "gone://x"}));
    let pi = world.start();
    serve(&pi, json!([{"scheme": "gone"}]));
    serve(&pi, json!([{"scheme": "here"}]));
    pi.prompt("Go");
    pi.settled();
    let (is_error, said) = result(&pi);
    assert!(is_error && said.starts_with("ENOENT"), "{said}");
    assert!(of_type(&pi.lines(), "host_uri_request").is_empty());
    pi.finish();
}

#[test]
fn host_uri_failures_show_reason() {
    for (members, said) in [
        (
            json!({"isError": true, "error": "no such note", "content": "c"}),
            "no such note",
        ),
        (json!({"isError": true, "content": "gone"}), "gone"),
        (json!({"isError": true}), "Host URI read failed for notes://x"),
    ] {
        let world = reading(json!({"path": "notes://x"}));
        let pi = world.start();
        notes(&pi);
        pi.prompt("Go");
        answer(&pi, &pi.wait("host_uri_request"), members);
        pi.settled();
        assert_eq!(result(&pi), (true, said.to_owned()));
        pi.finish();
    }
}

#[test]
fn host_uri_non_text_content_keeps_request_open() {
    let world = reading(json!({"path": "notes://x"}));
    let pi = world.start();
    notes(&pi);
    pi.prompt("Go");
    let request = pi.wait("host_uri_request");
    answer(&pi, &request, json!({"content": ["x"]}));
    let response = pi.wait("response");
    assert_eq!(
        (&response["command"], &response["success"]),
        (&json!("parse"), &json!(false))
    );
    answer(&pi, &request, json!({"content": "x"}));
    pi.settled();
    assert_eq!(result(&pi), (false, "x".to_owned()));
    pi.finish();
}

#[test]
fn abort_cancels_host_uri_requests() {
    for (world, said) in [
        (
            reading(json!({"path": "notes://x"})),
            "Host URI read for notes://x was aborted",
        ),
        (writing("notes://y"), "Host URI write for notes://y was aborted"),
    ] {
        let pi = world.start();
        notes(&pi);
        pi.prompt("Go");
        let request = pi.wait("host_uri_request");
        let abort = pi.send(json!({"type": "abort"}));
        assert_eq!(pi.wait("host_uri_cancel")["targetId"], request["id"]);
        answer(&pi, &request, json!({"content": "too late"}));
        assert_eq!(pi.response(&abort)["success"], true);
        assert_eq!(result(&pi), (true, said.to_owned()));
        pi.finish();
    }
}

#[test]
fn end_of_input_ends_host_uri_requests() {
    let world = reading(json!({"path": "notes://x"}));
    let pi = world.start();
    notes(&pi);
    pi.prompt("Go");
    pi.wait("host_uri_request");
    let file = pi.file();
    pi.agent.close_stdin();
    assert_eq!(
        pi.agent.wait_exit(LONG).unwrap().code(),
        Some(0),
        "{}",
        pi.agent.stderr()
    );
    let written = std::fs::read_to_string(file).unwrap();
    let gone = "RPC client disconnected before host URI request completed";
    assert_eq!(written.matches(gone).count(), 1, "{written}");
}
