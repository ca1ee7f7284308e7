//! JSON-RPC 2.0: lines to messages, and messages to lines.

use serde_json::{Map, Value, json};

/// A member has the wrong type or value.
pub(crate) const INVALID_PARAMS: i64 = -32602;
/// A message is no request, or comes at the wrong time.
pub(crate) const INVALID_REQUEST: i64 = -32600;
/// The command failed.
pub(crate) const INTERNAL: i64 = -32603;
/// The line is no JSON.
const PARSE: i64 = -32700;
/// Pinion does not have the method.
const NO_METHOD: i64 = -32601;
/// The session does not exist.
pub(crate) const NOT_FOUND: i64 = -32002;
/// The model needs credentials that the user does not have.
pub(crate) const AUTH_REQUIRED: i64 = -32000;
/// The client cancelled the request.
const CANCELLED: i64 = -32800;

/// Why a request failed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Failure {
    pub(crate) code: i64,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { code, message }
    }

    pub(crate) fn no_method(method: &str) -> Self {
        let shown: String = method.chars().take(100).collect();
        Self::new(NO_METHOD, format!("Method not found: {shown}"))
    }

    pub(crate) fn cancelled() -> Self {
        Self::new(CANCELLED, "The client cancelled the request")
    }
}

/// A line of the client.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Message {
    /// A call that is answered under `id`.
    Request {
        id: Value,
        method: String,
        params: Map<String, Value>,
    },
    /// A call without an answer.
    Notification {
        method: String,
        params: Map<String, Value>,
    },
    /// The client's answer to a request of Pinion. The error is the message of the client. A malformed answer is an error, too.
    Answer {
        id: Value,
        result: Result<Value, String>,
    },
    /// A line that is none of these. The answer carries the id if the line has a usable one.
    Invalid { id: Value, failure: Failure },
}

/// Reads a line.
pub(crate) fn parse(line: &[u8]) -> Message {
    if wire::values::has_too_many(line) {
        let most = wire::limits::MAX_VALUES;
        return invalid(Value::Null, &format!("The line has more than {most} values"));
    }
    let Ok(value) = serde_json::from_slice::<Value>(line) else {
        let failure = Failure::new(PARSE, "The line is not valid JSON");
        return Message::Invalid {
            id: Value::Null,
            failure,
        };
    };
    let Value::Object(mut object) = value else {
        return invalid(
            Value::Null,
            "A message must be a JSON object; batches are not supported",
        );
    };
    if !object.contains_key("method") && (object.contains_key("result") || object.contains_key("error")) {
        return answer(object);
    }
    let id = object.remove("id");
    if id
        .as_ref()
        .is_some_and(|id| !id.is_string() && !id.is_i64() && !id.is_u64())
    {
        return invalid(Value::Null, "The member id must be a string or an integer");
    }
    let known_id = id.clone().unwrap_or_default();
    if object.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return invalid(known_id, "The member jsonrpc must be \"2.0\"");
    }
    match object.remove("method") {
        Some(Value::String(method)) => call(id, method, object.remove("params")),
        Some(_) => invalid(known_id, "The member method must be a string"),
        None => invalid(known_id, "A message needs a method, a result or an error"),
    }
}

/// Reads an answer. A malformed one gets no response, since its id is that of a request of Pinion. It ends that request as an
/// error does, so that a question without a usable answer is denied.
fn answer(mut object: Map<String, Value>) -> Message {
    let id = object.remove("id").unwrap_or_default();
    let is_version_2 = object.get("jsonrpc").and_then(Value::as_str) == Some("2.0");
    // Some clients write the member that they do not use as null.
    let error = object.remove("error").filter(|error| !error.is_null());
    let result = match (object.remove("result"), error) {
        _ if !is_version_2 => Err("The client's answer is not JSON-RPC 2.0"),
        (None | Some(Value::Null), Some(error)) => {
            let message = error.get("message").and_then(Value::as_str);
            let result = Err(message.unwrap_or("The client failed").to_owned());
            return Message::Answer { id, result };
        }
        (Some(_), Some(_)) => Err("The client's answer has a result and an error"),
        (result, None) => Ok(result.unwrap_or_default()),
    };
    let result = result.map_err(str::to_owned);
    Message::Answer { id, result }
}

fn call(id: Option<Value>, method: String, params: Option<Value>) -> Message {
    let params = match params {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(params)) => params,
        Some(_) => {
            let failure = Failure::new(INVALID_PARAMS, "The member params must be an object");
            let id = id.unwrap_or_default();
            return Message::Invalid { id, failure };
        }
    };
    match id {
        Some(id) => Message::Request { id, method, params },
        None => Message::Notification { method, params },
    }
}

fn invalid(id: Value, message: &str) -> Message {
    let failure = Failure::new(INVALID_REQUEST, message);
    Message::Invalid { id, failure }
}

/// The answer to a line that is longer than the limit.
pub(crate) fn too_long() -> Message {
    let limit = crate::limits::MAX_LINE;
    invalid(Value::Null, &format!("The line is longer than {limit} bytes"))
}

/// Reads the member `sessionId`.
pub(crate) fn session_id(params: &Map<String, Value>) -> Result<&str, Failure> {
    let id = params.get("sessionId").and_then(Value::as_str);
    id.ok_or_else(|| Failure::new(INVALID_PARAMS, "The member sessionId must be a string"))
}

/// The failure of a request about a session that the connection does not have.
pub(crate) fn not_found(session: &str) -> Failure {
    let shown: String = session.chars().take(100).collect();
    Failure::new(
        NOT_FOUND,
        format!("There is no session {shown:?} on this connection"),
    )
}

/// The failure of a request about a session that is neither open nor stored.
pub(crate) fn not_stored(session: &str) -> Failure {
    let shown: String = session.chars().take(100).collect();
    Failure::new(NOT_FOUND, format!("There is no stored session {shown:?}"))
}

/// Makes the response to a request.
pub(crate) fn response(id: &Value, outcome: Result<Value, Failure>) -> Value {
    match outcome {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(Failure { code, message }) => {
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
        }
    }
}

/// Makes a request to the client.
pub(crate) fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// Makes the notification that a request to the client needs no response any more.
pub(crate) fn cancel(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": id}})
}

/// Makes a `session/update` notification.
pub(crate) fn update(session: &str, update: &Value) -> Value {
    json!({
        "jsonrpc": "2.0",
        "method": "session/update",
        "params": {"sessionId": session, "update": update},
    })
}
