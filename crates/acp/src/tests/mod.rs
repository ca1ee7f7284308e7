//! Lines, prompts and permission answers without a session.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use session::{Outgoing, SessionRequest};
use tools::client::Caller;
use wire::event::ChangeReason;
use wire::hosted::Frame;
use wire::reply::{Accepted, Disposition, Messages, OpenedSession};
use wire::ui::{UiMethod, UiRequest};
use wire::{Event, Reply, Response, SessionCommand};

use crate::accounts::{Accounts, LoggingOut, Provider};
use crate::connection::Connection;
use crate::host::Host;
use crate::output::Output;
use crate::port::{Ask, ClientPort, Posted, TERMINAL_CREATE};
use crate::purpose::Command;
use crate::rpc::{self, Message};
use crate::state::SessionState;
use crate::{elicitation, permission, prompt, tool_calls};

/// One provider with a login.
struct OneProvider;

impl Accounts for OneProvider {
    fn providers(&self) -> Vec<Provider> {
        let (id, name) = ("acme".to_owned(), "Acme".to_owned());
        vec![Provider { id, name }]
    }

    fn needs_login(&self, error: &str) -> bool {
        error.starts_with("No key")
    }

    fn terminal_args(&self, provider: &str) -> Vec<String> {
        vec!["--login".to_owned(), provider.to_owned()]
    }

    fn open_page(&self, _url: &str) -> Result<(), String> {
        Ok(())
    }

    fn log_out(&self) -> LoggingOut {
        Box::pin(async { Ok(()) })
    }
}

pub(crate) fn connection() -> Connection {
    Connection::from(&Host {
        version: "1.2.3".to_owned(),
        accounts: Arc::new(OneProvider),
        port: ClientPort::default(),
        is_gateway: false,
    })
}

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

#[test]
fn lines_with_too_many_values_are_refused() {
    let line = |values: usize| {
        let values = vec!["0"; values].join(",");
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{{"a":[{values}]}}}}"#)
    };
    assert!(matches!(
        rpc::parse(line(1_000).as_bytes()),
        Message::Request { .. }
    ));
    let most = wire::limits::MAX_VALUES;
    assert_eq!(code_of(&line(most)), (Value::Null, rpc::INVALID_REQUEST));
}

/// The answer that a line is read as.
fn answer_of(line: &str) -> (Value, Result<Value, String>) {
    match rpc::parse(line.as_bytes()) {
        Message::Answer { id, result } => (id, result),
        other => panic!("{other:?}"),
    }
}

#[test]
fn unused_null_member_of_answer_is_ignored() {
    let result = answer_of(r#"{"jsonrpc":"2.0","id":1,"result":{"a":1},"error":null}"#);
    assert_eq!(result, (json!(1), Ok(json!({"a": 1}))));
    let error = answer_of(r#"{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":1,"message":"no"}}"#);
    assert_eq!(error, (json!(1), Err("no".to_owned())));
    let nothing = answer_of(r#"{"jsonrpc":"2.0","id":1,"result":null}"#);
    assert_eq!(nothing, (json!(1), Ok(Value::Null)));
}

#[test]
fn malformed_answers_get_no_response() {
    for answer in [
        json!({"jsonrpc": "2.0", "id": 1, "result": {}, "error": {"code": 1, "message": "no"}}),
        json!({"jsonrpc": "1.0", "id": 1, "result": {}}),
        json!({"id": 1, "result": {}}),
    ] {
        assert!(answer_of(&answer.to_string()).1.is_err(), "{answer}");
        assert_eq!(replies(&[answer]), Vec::<Value>::new());
    }
    let lines = [
        json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "Parse error"}}),
        json!({"jsonrpc": "2.0", "id": {}, "result": {}}),
        json!({"jsonrpc": "2.0", "error": 5}),
    ];
    assert_eq!(replies(&lines), Vec::<Value>::new());
}

#[test]
fn waiting_text_becomes_one_message() {
    let mut out = Output::default();
    let mut batch = Vec::new();
    for (session, kind, text) in [
        ("s1", "agent_message_chunk", "a\""),
        ("s1", "agent_message_chunk", "b"),
        ("s2", "agent_message_chunk", "c"),
        ("s2", "agent_thought_chunk", "d"),
    ] {
        out.push_text(session, kind, text);
    }
    out.write_complete(&mut batch);
    let complete = batch.len();
    out.push_text("s2", "agent_thought_chunk", "e");
    out.write_complete(&mut batch);
    assert_eq!((batch.len(), out.held_back()), (complete, 2));
    assert!(!out.write(&mut batch));
    let text = String::from_utf8(batch).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let expected = |session: &str, kind: &str, text: &str| {
        let content = json!({"type": "text", "text": text});
        rpc::update(session, &json!({"sessionUpdate": kind, "content": content}))
    };
    let expected = [
        expected("s1", "agent_message_chunk", "a\"b"),
        expected("s2", "agent_message_chunk", "c"),
        expected("s2", "agent_thought_chunk", "de"),
    ];
    assert_eq!(lines, expected);
}

#[test]
fn tools_have_kinds_of_protocol() {
    let kind = |tool: &str| {
        let call = tool_calls::describe("c1", tool, &Map::new(), Path::new("/"), None);
        call["kind"].as_str().unwrap().to_owned()
    };
    let tools = [
        "read",
        "edit",
        "grep",
        "bash",
        "process",
        "fetch",
        "task",
        "todo_write",
    ];
    let expected = [
        "read", "edit", "search", "execute", "execute", "fetch", "think", "other",
    ];
    assert_eq!(tools.map(kind), expected);
}

#[test]
fn calls_have_locations_of_known_paths() {
    let locations = |path: &str| {
        let args = Map::from_iter([("path".to_owned(), json!(path))]);
        let call = tool_calls::describe("c1", "read", &args, Path::new("/w"), None);
        call["locations"].clone()
    };
    assert_eq!(locations("a"), json!([{"path": "/w/a"}]));
    for unknown in ["", "~/a", "file:///a"] {
        assert_eq!(locations(unknown), json!([]));
    }
}

/// The responses to lines on one connection.
fn replies(lines: &[Value]) -> Vec<Value> {
    let mut connection = connection();
    let mut batch = Vec::new();
    for line in lines {
        let _command = connection.message(rpc::parse(line.to_string().as_bytes()));
        assert!(!connection.out.write(&mut batch));
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
    let mut connection = connection();
    let message = json!("x".repeat(100_000));
    connection
        .out
        .extend([message.clone(), message.clone(), message.clone(), message]);
    let (mut first, mut second) = (Vec::new(), Vec::new());
    assert!(connection.out.write(&mut first));
    assert!(!connection.out.write(&mut second));
    assert_eq!((first.len(), second.len()), (300_009, 100_003));
}

#[test]
fn dialogs_of_hidden_sessions_are_cancelled() {
    let mut connection = connection();
    let request = UiRequest::new("d1".to_owned(), UiMethod::Confirm).into();
    let event = Event::ExtensionUiRequest { request };
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

#[test]
fn terminal_logins_need_a_terminal() {
    let capabilities = json!({"auth": {"terminal": true}});
    let lines = [
        request(1, "initialize", json!({"protocolVersion": 1})),
        request(
            2,
            "initialize",
            json!({"protocolVersion": 1, "clientCapabilities": capabilities}),
        ),
        request(3, "authenticate", json!({"methodId": "acme-terminal"})),
        request(4, "authenticate", json!({"methodId": "other"})),
    ];
    let replies = replies(&lines);
    let methods = |reply: &Value| -> Vec<(String, String)> {
        let methods = reply["result"]["authMethods"].as_array().unwrap().iter();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        methods
            .map(|method| (text(&method["id"]), text(&method["type"])))
            .collect()
    };
    let expected = |all: &[(&str, &str)]| -> Vec<(String, String)> {
        all.iter()
            .map(|(id, kind)| ((*id).to_owned(), (*kind).to_owned()))
            .collect()
    };
    assert_eq!(methods(&replies[0]), expected(&[("acme", "agent")]));
    assert_eq!(
        methods(&replies[1]),
        expected(&[("acme", "agent"), ("acme-terminal", "terminal")])
    );
    assert_eq!(
        replies[1]["result"]["authMethods"][1]["args"],
        json!(["--login", "acme"])
    );
    assert_eq!(replies[2]["error"]["code"], -32602);
    assert_eq!(replies[3]["error"]["code"], -32602);
}

/// The message that was written last.
fn last_message(connection: &mut Connection) -> Value {
    let mut batch = Vec::new();
    assert!(!connection.out.write(&mut batch));
    let text = String::from_utf8(batch).unwrap();
    serde_json::from_str(text.lines().last().unwrap()).unwrap()
}

/// Answers a command. Returns the command that follows.
fn answer(connection: &mut Connection, command: Command, outcome: Result<Reply, String>) -> Option<Command> {
    let (SessionRequest::Command(origin, _) | SessionRequest::Manager(origin, _)) = command.0 else {
        panic!("no command");
    };
    let response = Response {
        id: origin.id,
        command: None,
        outcome,
    };
    connection.outgoing(None, &Outgoing::Response(origin.client, response), None)
}

/// Begins to load a session. Returns the first command after it was opened.
fn loading(connection: &mut Connection) -> Command {
    let mut send = |line: Value| connection.message(rpc::parse(line.to_string().as_bytes()));
    send(request(1, "initialize", json!({"protocolVersion": 1})));
    let params = json!({"sessionId": "stored", "cwd": "/tmp", "mcpServers": []});
    let list = send(request(2, "session/load", params)).unwrap();
    let listed = json!({
        "path": "/tmp/stored.jsonl",
        "id": "stored",
        "cwd": "/tmp",
        "created": "",
        "modified": "",
        "messageCount": 1,
        "firstMessage": "Hi",
        "allMessagesText": "",
    });
    let sessions = serde_json::from_value(json!({"sessions": [listed]})).unwrap();
    let open = answer(connection, list, Ok(Reply::Sessions(sessions))).unwrap();
    let opened = OpenedSession {
        session: "s1".to_owned(),
        session_id: "stored".to_owned(),
        session_file: None,
        cwd: "/tmp".to_owned(),
    };
    answer(connection, open, Ok(Reply::OpenedSession(Box::new(opened)))).unwrap()
}

#[test]
fn failed_load_closes_its_session() {
    let changed = || -> Result<Reply, String> { Err("The file was changed".to_owned()) };
    let messages = Messages { messages: Vec::new() };
    // Either the history cannot be read, or, after it and the usage, the options.
    for before in [Vec::new(), vec![Ok(Reply::Messages(messages)), changed()]] {
        let mut connection = connection();
        let mut command = loading(&mut connection);
        for outcome in before {
            command = answer(&mut connection, command, outcome).unwrap();
        }
        let close = answer(&mut connection, command, changed());
        let Some((SessionRequest::Command(_, SessionCommand::CloseSession(_)), handle)) = close else {
            panic!("the session stays open");
        };
        assert_eq!(handle.as_deref(), Some("s1"));
        assert!(connection.sessions.is_empty() && connection.names.is_empty());
        let error = json!({"code": -32603, "message": "The file was changed"});
        let failed = json!({"jsonrpc": "2.0", "id": 2, "error": error});
        assert_eq!(last_message(&mut connection), failed);
    }
}

#[test]
fn terminal_of_closed_session_is_released() {
    let (mut connection, handle) = (connection(), Arc::<str>::from("s1"));
    let state = SessionState::new(Arc::clone(&handle), Path::new("/tmp"));
    connection.names.insert(Arc::clone(&handle), "a".to_owned());
    connection.sessions.insert("a".to_owned(), state);
    let (answer, call) = tokio::sync::oneshot::channel();
    let ask = Ask {
        number: 1,
        caller: Caller {
            session: "a".to_owned(),
            call: "c1".to_owned(),
        },
        method: TERMINAL_CREATE,
        params: json!({"command": "make"}),
        answer,
    };
    let Connection {
        requests,
        sessions,
        out,
        ..
    } = &mut connection;
    requests.post(Posted::Ask(ask), sessions, out);
    // The call ends with its session, before the client has answered.
    drop(call);
    connection.left(&handle);
    let made = json!({"jsonrpc": "2.0", "id": 1, "result": {"terminalId": "t1"}});
    connection.message(rpc::parse(made.to_string().as_bytes()));
    let release = last_message(&mut connection);
    assert_eq!(release["method"], "terminal/release");
    assert_eq!(release["params"], json!({"sessionId": "a", "terminalId": "t1"}));
}

#[test]
fn session_change_ends_accepted_prompt() {
    let (mut connection, handle) = (connection(), Arc::<str>::from("s1"));
    let state = SessionState::new(Arc::clone(&handle), Path::new("/tmp"));
    connection.names.insert(Arc::clone(&handle), "a".to_owned());
    connection.sessions.insert("a".to_owned(), state);
    let mut send = |line: Value| connection.message(rpc::parse(line.to_string().as_bytes()));
    send(request(1, "initialize", json!({"protocolVersion": 1})));
    let params = json!({"sessionId": "a", "prompt": [{"type": "text", "text": "Hi"}]});
    let prompt = send(request(2, "session/prompt", params)).unwrap();
    let accepted = Accepted::new(Disposition::Started);
    assert!(answer(&mut connection, prompt, Ok(Reply::Accepted(accepted))).is_none());
    let changed = Event::SessionChanged {
        reason: ChangeReason::New,
        session_id: "b".to_owned(),
        session_file: None,
        session_name: None,
        message_count: 0,
    };
    connection.outgoing(Some(&handle), &Outgoing::Event(changed.into()), None);
    let ended = json!({"jsonrpc": "2.0", "id": 2, "result": {"stopReason": "cancelled"}});
    assert_eq!(last_message(&mut connection), ended);
}

/// The response to `authenticate` when the session's login ends like this.
fn authenticated(outcome: Result<Reply, String>) -> Value {
    let mut connection = connection();
    let mut send = |line: Value| connection.message(rpc::parse(line.to_string().as_bytes()));
    send(request(1, "initialize", json!({"protocolVersion": 1})));
    let login = send(request(2, "authenticate", json!({"methodId": "acme"})));
    let Some((SessionRequest::Command(origin, SessionCommand::Login(params)), None)) = login else {
        panic!("no login");
    };
    assert_eq!(params.provider_id, "acme");
    let response = Response {
        id: origin.id,
        command: Some(json!("login")),
        outcome,
    };
    let follows = connection.outgoing(None, &Outgoing::Response(origin.client, response), None);
    assert!(follows.is_none());
    last_message(&mut connection)
}

#[test]
fn outcome_of_login_answers_authenticate() {
    let done = authenticated(Ok(Reply::Nothing));
    assert_eq!(done, json!({"jsonrpc": "2.0", "id": 2, "result": {}}));
    let denied = authenticated(Err("The login was denied".to_owned()));
    let error = json!({"code": -32603, "message": "The login was denied"});
    assert_eq!(denied, json!({"jsonrpc": "2.0", "id": 2, "error": error}));
}

fn dialog(method: UiMethod) -> UiRequest {
    let mut dialog = UiRequest::new("d1".to_owned(), method);
    dialog.title = Some("Which?".to_owned());
    dialog.options = (method == UiMethod::Select).then(|| vec!["a".to_owned().into(), "b".to_owned().into()]);
    dialog
}

#[test]
fn forms_answer_their_dialogs() {
    let answered = |method: UiMethod, result: Value| match elicitation::answer(&dialog(method), Some(&result))
    {
        Some(Frame::UiResponse(answer)) => [answer.value, answer.confirmed, answer.cancelled],
        other => panic!("{other:?}"),
    };
    let accept = |value: Value| json!({"action": "accept", "content": {"value": value}});
    let cancelled = [Value::Null, Value::Null, json!(true)];
    for (method, result, expected) in [
        (
            UiMethod::Select,
            accept(json!("b")),
            [json!("b"), Value::Null, Value::Null],
        ),
        (UiMethod::Select, accept(json!("c")), cancelled.clone()),
        (
            UiMethod::Input,
            accept(json!("text")),
            [json!("text"), Value::Null, Value::Null],
        ),
        (UiMethod::Input, accept(json!(5)), cancelled.clone()),
        (
            UiMethod::Input,
            json!({"action": "decline", "content": {"value": "x"}}),
            cancelled.clone(),
        ),
        (
            UiMethod::Confirm,
            json!({"action": "accept"}),
            [Value::Null, json!(true), Value::Null],
        ),
        (
            UiMethod::Confirm,
            json!({"action": "decline"}),
            [Value::Null, json!(false), Value::Null],
        ),
        (UiMethod::Confirm, json!({"action": "cancel"}), cancelled.clone()),
        (UiMethod::Confirm, json!({}), cancelled.clone()),
    ] {
        assert_eq!(answered(method, result.clone()), expected, "{method:?} {result}");
    }
}

#[test]
fn blobs_become_images_and_documents() {
    let blob = |mime: &str| json!({"type": "resource", "resource": {"uri": "file:///b", "mimeType": mime, "blob": "aGk="}});
    let params = json!({"prompt": [blob("image/png"), blob("text/plain")]});
    let read = prompt::read(params.as_object().unwrap()).unwrap();
    assert_eq!(
        (read.images[0].mime_type.as_str(), read.images[0].data.as_str()),
        ("image/png", "aGk=")
    );
    assert_eq!(read.attachments[0]["type"], "document");
    assert_eq!(read.attachments[0]["fileName"], "file:///b");
    let broken = json!({"prompt": [{"type": "resource", "resource": {"uri": "file:///b", "blob": 5}}]});
    assert_eq!(
        prompt::read(broken.as_object().unwrap()).unwrap_err().code,
        -32602
    );
}
