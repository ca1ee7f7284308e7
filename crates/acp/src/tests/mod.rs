//! Lines, prompts and permission answers without a session.

use std::sync::Arc;

use serde_json::{Value, json};
use session::{Outgoing, SessionRequest};
use wire::Event;
use wire::hosted::Frame;
use wire::ui::{UiMethod, UiRequest};

use crate::connection::Connection;
use crate::rpc::{self, Message};
use crate::{permission, prompt};

fn code_of(line: &str) -> (Value, i64) {
    match rpc::parse(line.as_bytes()) {
        Message::Invalid { id, failure } => (id, failure.code),
        other => (json!(format!("{other:?}")), 0),
    }
}

#[test]
fn malformed_lines_get_their_errors() {
    assert_eq!(code_of("{"), (Value::Null, -32700));
    assert_eq!(code_of("\u{fffd}"), (Value::Null, -32700));
    assert_eq!(code_of("[]"), (Value::Null, -32600));
    assert_eq!(code_of(r#"{"id":1,"method":"x"}"#), (json!(1), -32600));
    assert_eq!(
        code_of(r#"{"jsonrpc":"2.0","id":{},"method":"x"}"#),
        (Value::Null, -32600)
    );
    assert_eq!(
        code_of(r#"{"jsonrpc":"2.0","id":"a","method":5}"#),
        (json!("a"), -32600)
    );
    assert_eq!(
        code_of(r#"{"jsonrpc":"2.0","id":1,"method":"x","params":[]}"#),
        (json!(1), -32602)
    );
    assert_eq!(code_of(r#"{"jsonrpc":"2.0","id":1}"#), (json!(1), -32600));
}

/// The responses to lines on one connection.
fn replies(lines: &[Value]) -> Vec<Value> {
    let mut connection = Connection::new("1.2.3");
    let mut batch = Vec::new();
    for line in lines {
        let _command = connection.message(rpc::parse(line.to_string().as_bytes()));
        assert!(!connection.write(&mut batch));
    }
    let text = String::from_utf8_lossy(&batch).into_owned();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_default())
        .collect()
}

fn request(id: u64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn codes(lines: &[Value]) -> Vec<Option<i64>> {
    let code = |reply: &Value| reply.pointer("/error/code").and_then(Value::as_i64);
    replies(lines).iter().map(code).collect()
}

#[test]
fn requests_out_of_order_are_refused() {
    let new = json!({"cwd": "/tmp", "mcpServers": []});
    let version = json!({"protocolVersion": 1});
    let lines = [
        request(1, "session/new", new.clone()),
        request(2, "initialize", json!({"protocolVersion": "one"})),
        request(3, "initialize", version.clone()),
        request(4, "initialize", version),
        request(5, "session/dance", json!({})),
        request(6, "session/new", json!({"cwd": "relative", "mcpServers": []})),
        request(7, "session/prompt", json!({"sessionId": "gone", "prompt": []})),
        request(8, "session/new", new.clone()),
        request(8, "session/new", new),
    ];
    let expected = [-32600, -32602, 0, 0, -32601, -32602, -32002, -32600];
    let expected = expected.map(|code| (code != 0).then_some(code));
    assert_eq!(codes(&lines), expected);
}

#[test]
fn cancelling_nothing_is_ignored() {
    let cancel = |method: &str, params: Value| json!({"jsonrpc": "2.0", "method": method, "params": params});
    let lines = [
        cancel("session/cancel", json!({"sessionId": "gone"})),
        cancel("session/cancel", json!({})),
        cancel("$/cancel_request", json!({"requestId": 7})),
    ];
    assert_eq!(replies(&lines), Vec::<Value>::new());
}

#[test]
fn prompt_blocks_become_text_and_images() {
    let params = json!({"prompt": [
        {"type": "text", "text": "Look"},
        {"type": "image", "data": "AAAA", "mimeType": "image/png"},
        {"type": "resource_link", "name": "a.rs", "uri": "file:///a.rs"},
        {"type": "resource", "resource": {"uri": "file:///b.rs", "text": "fn b() {}"}},
    ]});
    let read = prompt::read(params.as_object().unwrap()).unwrap();
    let expected = "Look\n[a.rs](file:///a.rs)\n<resource uri=\"file:///b.rs\">\nfn b() {}\n</resource>";
    assert_eq!((read.message.as_str(), read.images.len()), (expected, 1));
    let audio = json!({"prompt": [{"type": "audio", "data": "", "mimeType": "audio/wav"}]});
    assert_eq!(prompt::read(audio.as_object().unwrap()).unwrap_err().code, -32602);
}

/// The value that the dialog gets; none if it is cancelled.
fn chosen(result: Option<Value>) -> Option<String> {
    match permission::answer("d1", result.as_ref()) {
        Some(Frame::UiResponse(response)) => response.value.as_str().map(str::to_owned),
        _ => None,
    }
}

#[test]
fn unusable_permission_answers_deny_the_call() {
    let selected = |id: Value| json!({"outcome": {"outcome": "selected", "optionId": id}});
    assert_eq!(
        chosen(Some(selected(json!("allow-once")))).as_deref(),
        Some("Allow once")
    );
    assert_eq!(chosen(Some(selected(json!("reject")))).as_deref(), Some("Deny"));
    for answer in [
        None,
        Some(json!({"outcome": {"outcome": "cancelled", "optionId": "allow-once"}})),
        Some(json!({"outcome": "selected"})),
        Some(selected(json!("yes"))),
        Some(selected(json!(1))),
        Some(json!([])),
    ] {
        assert_eq!(chosen(answer.clone()), None, "{answer:?}");
    }
}

#[test]
fn long_output_takes_several_batches() {
    let mut connection = Connection::new("1.2.3");
    let message = json!("x".repeat(100_000));
    connection
        .out
        .extend([message.clone(), message.clone(), message.clone(), message]);
    let (mut first, mut second) = (Vec::new(), Vec::new());
    assert!(connection.write(&mut first));
    assert!(!connection.write(&mut second));
    assert_eq!((first.len(), second.len()), (300_009, 100_003));
}

#[test]
fn dialogs_of_hidden_sessions_are_cancelled() {
    let mut connection = Connection::new("1.2.3");
    let request = UiRequest::new("d1".to_owned(), UiMethod::Confirm).into();
    let event = Event::ExtensionUiRequest {
        request,
        permission_for: None,
    };
    let item = Outgoing::Event(event.into());
    let unknown: Arc<str> = "s9".into();
    for handle in [None, Some(&unknown)] {
        let (request, target) = connection.outgoing(handle, &item, None).unwrap();
        let SessionRequest::Frame(Frame::UiResponse(response)) = request else {
            panic!("no response to the dialog");
        };
        assert_eq!((response.id.as_str(), &response.cancelled), ("d1", &json!(true)));
        assert_eq!(target.as_deref(), handle.map(|handle| &**handle));
    }
}
