//! Lines of the protocol as the types of the crate `agent-client-protocol-schema` read them. Those types forgive much: a member
//! that is unknown or has the wrong type is dropped. So a line counts as read only if all its members are still there when it is
//! written again.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use agent_client_protocol_schema::v1;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Reads a value as a type and writes it again.
type Parse = fn(&Value) -> Result<Value, String>;

fn again<T: DeserializeOwned + Serialize>(value: &Value) -> Result<Value, String> {
    let read = serde_json::from_value::<T>(value.clone());
    let read = read.map_err(|error| error.to_string())?;
    serde_json::to_value(read).map_err(|error| error.to_string())
}

/// The types of the parameters and of the result of a method. A notification has no result.
fn types(method: &str) -> Option<(Parse, Option<Parse>)> {
    macro_rules! table {
        ($($name:literal $params:ident $($result:ident)?;)*) => {
            match method {
                $($name => Some((again::<v1::$params> as Parse, table!(@ $($result)?))),)*
                _ => None,
            }
        };
        (@ $result:ident) => { Some(again::<v1::$result> as Parse) };
        (@) => { None };
    }
    table! {
        "initialize" InitializeRequest InitializeResponse;
        "authenticate" AuthenticateRequest AuthenticateResponse;
        "logout" LogoutRequest LogoutResponse;
        "session/new" NewSessionRequest NewSessionResponse;
        "session/load" LoadSessionRequest LoadSessionResponse;
        "session/resume" ResumeSessionRequest ResumeSessionResponse;
        "session/fork" ForkSessionRequest ForkSessionResponse;
        "session/list" ListSessionsRequest ListSessionsResponse;
        "session/delete" DeleteSessionRequest DeleteSessionResponse;
        "session/close" CloseSessionRequest CloseSessionResponse;
        "session/prompt" PromptRequest PromptResponse;
        "session/set_mode" SetSessionModeRequest SetSessionModeResponse;
        "session/set_config_option" SetSessionConfigOptionRequest SetSessionConfigOptionResponse;
        "session/cancel" CancelNotification;
        "$/cancel_request" CancelRequestNotification;
        "session/update" SessionNotification;
        "session/request_permission" RequestPermissionRequest RequestPermissionResponse;
        "fs/read_text_file" ReadTextFileRequest ReadTextFileResponse;
        "fs/write_text_file" WriteTextFileRequest WriteTextFileResponse;
        "terminal/create" CreateTerminalRequest CreateTerminalResponse;
        "terminal/output" TerminalOutputRequest TerminalOutputResponse;
        "terminal/wait_for_exit" WaitForTerminalExitRequest WaitForTerminalExitResponse;
        "terminal/kill" KillTerminalRequest KillTerminalResponse;
        "terminal/release" ReleaseTerminalRequest ReleaseTerminalResponse;
        "elicitation/create" CreateElicitationRequest CreateElicitationResponse;
        "elicitation/complete" CompleteElicitationNotification;
    }
}

/// Returns true for a member that may be missing when a value is written again.
fn may_be_missing(name: &str, value: &Value) -> bool {
    match (name, value) {
        // Null stands for an absent member.
        (_, Value::Null) => true,
        // The types leave defaults out.
        (_, Value::Array(items)) => items.is_empty(),
        ("env", Value::Object(members)) => members.is_empty(),
        ("status", value) => value == "pending",
        ("kind", value) => value == "other",
        // The registry of agents wants the type of every login, acplint 0.1 the label of an option.
        ("type", value) => value == "agent",
        ("label", Value::String(_)) => true,
        _ => false,
    }
}

/// Returns the path of the first member that is not the same any more.
fn lost(sent: &Value, kept: &Value) -> Option<String> {
    match (sent, kept) {
        (Value::Null, _) => None,
        (Value::Object(sent), Value::Object(kept)) => sent.iter().find_map(|(name, value)| {
            let path = match kept.get(name) {
                Some(kept) => lost(value, kept),
                None => (!may_be_missing(name, value)).then(String::new),
            };
            path.map(|path| format!("/{name}{path}"))
        }),
        (Value::Array(sent), Value::Array(kept)) if sent.len() == kept.len() => {
            let mut pairs = sent.iter().zip(kept).enumerate();
            pairs.find_map(|(at, (sent, kept))| lost(sent, kept).map(|path| format!("/{at}{path}")))
        }
        (Value::Number(sent), Value::Number(kept)) if sent.as_f64() == kept.as_f64() => None,
        (sent, kept) => (sent != kept).then(String::new),
    }
}

fn fits(value: &Value, parse: Parse) -> Result<(), String> {
    let kept = parse(value)?;
    match lost(value, &kept) {
        Some(path) => Err(format!("the type does not have the value of {path:?}")),
        None => Ok(()),
    }
}

/// The methods of the requests of one side, by their ids.
#[derive(Default)]
struct Requests(HashMap<String, Vec<String>>);

impl Requests {
    fn of<'a>(lines: impl IntoIterator<Item = &'a Value>) -> Self {
        let mut methods: HashMap<String, Vec<String>> = HashMap::new();
        for line in lines {
            if let (Some(id), Some(method)) = (line.get("id"), line["method"].as_str()) {
                methods.entry(id.to_string()).or_default().push(method.to_owned());
            }
        }
        Self(methods)
    }

    /// Checks a line of the other side, which may be the response to one of these.
    fn check(&self, line: &Value) -> Result<(), String> {
        if line["jsonrpc"] != "2.0" {
            return Err("the member jsonrpc is not 2.0".to_owned());
        }
        if let Some(method) = line.get("method") {
            let method = method.as_str().ok_or("the method is no string")?;
            let (params, result) = types(method).ok_or("the schema has no such method")?;
            if result.is_some() != line.get("id").is_some() {
                return Err("a request has an id, a notification has none".to_owned());
            }
            return fits(line.get("params").unwrap_or(&json!({})), params);
        }
        if let Some(error) = line.get("error") {
            return fits(error, again::<v1::Error>);
        }
        let methods = self.0.get(&line["id"].to_string());
        let methods = methods.ok_or("a response to no request")?;
        let result = line.get("result").ok_or("neither a result nor an error")?;
        // An id may be used again for another method.
        let checked = methods.iter().map(|method| {
            let parse = types(method).and_then(|(_, result)| result);
            fits(result, parse.ok_or("a response to a notification")?)
        });
        checked.reduce(Result::or).unwrap_or(Ok(()))
    }
}

/// Lines that are read of one process: a flood repeats its updates.
const MOST_LINES: usize = 20_000;

/// Asserts that the lines of the agent fit the schema. `sent` are those of the client.
pub(super) fn assert_lines<'a>(sent: &[Value], lines: impl IntoIterator<Item = &'a Value>) {
    let requests = Requests::of(sent);
    for line in lines.into_iter().take(MOST_LINES) {
        let checked = requests.check(line);
        assert_eq!(checked, Ok(()), "{line}");
    }
}

/// The lines of a transcript that one side wrote.
fn side<'a>(lines: &'a [Value], name: &str) -> Vec<&'a Value> {
    lines.iter().filter_map(|line| line.get(name)).collect()
}

#[test]
fn transcripts_fit_the_protocol_schema() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../protocol/examples/acp");
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let (client, agent) = (side(&lines, "client"), side(&lines, "agent"));
        assert_eq!(client.len() + agent.len(), lines.len(), "{}", path.display());
        let of_client = Requests::of(client.iter().copied());
        for line in &agent {
            assert_eq!(of_client.check(line), Ok(()), "{}: {line}", path.display());
        }
        // A request that is answered with an error may break the schema.
        let failed = |line: &Value| {
            (agent.iter()).any(|answer| answer.get("error").is_some() && answer["id"] == line["id"])
        };
        let of_agent = Requests::of(agent.iter().copied());
        for line in client.iter().filter(|line| line.is_object() && !failed(line)) {
            assert_eq!(of_agent.check(line), Ok(()), "{}: {line}", path.display());
        }
        count += lines.len();
    }
    assert!(count > 200, "{count} lines");
}

#[test]
fn lines_outside_the_schema_are_found() {
    let sent = json!({"jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": {}});
    let requests = Requests::of([&sent]);
    let good = json!({"jsonrpc": "2.0", "id": 1, "result": {"stopReason": "end_turn"}});
    assert_eq!(requests.check(&good), Ok(()));
    let chunk = |update: Value| json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}});
    let text = json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "Hi"}});
    assert_eq!(requests.check(&chunk(text.clone())), Ok(()));
    let (mut unknown, mut wrong) = (text.clone(), text);
    unknown["colour"] = json!("red");
    wrong["messageId"] = json!(5);
    for bad in [
        json!({"jsonrpc": "2.0", "id": 2, "result": {"stopReason": "end_turn"}}),
        json!({"jsonrpc": "2.0", "id": 1, "result": {"stopReason": "tired"}}),
        json!({"jsonrpc": "2.0", "id": 1, "error": {"code": "x", "message": "y"}}),
        json!({"id": 1, "result": {"stopReason": "end_turn"}}),
        json!({"jsonrpc": "2.0", "method": "session/dance", "params": {}}),
        chunk(unknown),
        chunk(wrong),
        chunk(json!({"sessionUpdate": "dance"})),
    ] {
        assert!(requests.check(&bad).is_err(), "{bad}");
    }
}
