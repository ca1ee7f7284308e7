//! Lines and members that only clients of single dialects receive (docs/internals/specifications/dialects.md 5). Which
//! dialect has which is decided in `dialect` and `protocol`; `serve` writes them.

use serde_json::{Value, json};

use super::Defs;
use super::events::numbered;
use super::tagged::pascal;
use crate::Dialect;
use crate::event_name::canonical_event;
use crate::protocol::{dialect_lines, is_written};

/// The key of a member's schema that lists the dialects with this member. Absent: all have it.
const DIALECTS: &str = "x-dialects";

/// The definitions of the lines, made from the events that they stand for.
pub(super) fn lines(events: &Defs) -> Defs {
    let lines = dialect_lines().map(|kind| {
        let today = canonical_event(kind);
        let event = events.get(&format!("{}Event", pascal(today)));
        let own = own(kind).or_else(|| renamed(event?, kind));
        let mut line = own.unwrap_or_else(|| json!({}));
        let dialects = Dialect::spoken().filter(|dialect| is_written(*dialect, kind));
        let dialects: Vec<String> = dialects
            .map(|dialect| format!("`{}`", dialect.as_str()))
            .collect();
        if let Some(line) = line.as_object_mut() {
            let doc = line
                .get("description")
                .and_then(Value::as_str)
                .unwrap_or_default();
            let doc = format!("{doc} Dialects: {}.", dialects.join(", "));
            line.insert("description".to_owned(), doc.into());
        }
        (format!("{}Event", pascal(kind)), numbered(line))
    });
    lines.collect()
}

/// Lines with members of their own.
fn own(kind: &str) -> Option<Value> {
    let text = |doc: &str| json!({ "type": "string", "description": doc });
    let count = |doc: &str| json!({ "type": "integer", "minimum": 0, "description": doc });
    let flag = |doc: &str| json!({ "type": "boolean", "description": doc });
    let (doc, mut members, required): (_, _, &[&str]) = match kind {
        "compaction" => (
            "A compaction succeeded.",
            json!({
                "summary": text("The summary."),
                "tokensBefore": count("Tokens of the context before it."),
                "auto": { "type": "boolean", "const": true, "description": "True if no command asked for it." },
            }),
            &["type", "summary", "tokensBefore"],
        ),
        "error" => (
            "A command or an automatic compaction failed.",
            json!({ "error": text("The error message.") }),
            &["type", "error"],
        ),
        "prompt_result" => (
            "The outcome of an accepted prompt.",
            json!({
                "id": { "description": "The `id` of the prompt; absent when it had none." },
                "agentInvoked": flag("Whether a run followed."),
                "status": { "type": "string", "enum": ["completed", "aborted", "error"], "description": "How the run ended." },
                "error": {
                    "type": "object",
                    "description": "Why it failed.",
                    "properties": {
                        "message": text("The error message."),
                        "provider": text("The provider of the model."),
                        "model": text("The id of the model."),
                        "httpStatus": count("The HTTP status of the provider's response."),
                        "retryable": flag("Whether the same prompt may succeed later."),
                    },
                    "required": ["message", "retryable"],
                },
                "sessionSettled": flag("Whether the session is idle, no other prompt is open and no background process may wake it."),
            }),
            &["type", "agentInvoked", "status", "sessionSettled"],
        ),
        "session_settled" => (
            "The session is idle, every prompt has its `prompt_result`, and no background process may wake it.",
            json!({}),
            &["type"],
        ),
        "rpc_chunk" => (
            "A part of a line above 1 MiB, after `negotiate_protocol` with version 2.",
            json!({
                "chunkId": text("The same in all parts of a line."),
                "index": count("Number of the part, from 0."),
                "count": count("Number of the parts."),
                "byteLength": count("Bytes of the line without its line feed."),
                "data": text("Bytes of the line, as base64."),
            }),
            &["type", "chunkId", "index", "count", "byteLength", "data"],
        ),
        _ => return of_fallback(kind),
    };
    set_kind(&mut members, kind);
    Some(json!({ "description": doc, "type": "object", "properties": members, "required": required }))
}

/// Lines that tell of a fallback model.
fn of_fallback(kind: &str) -> Option<Value> {
    let text = |doc: &str| json!({ "type": "string", "description": doc });
    let (doc, mut members, required): (_, _, &[&str]) = match kind {
        "retry_fallback_applied" => (
            "A fallback model takes over, as `model_fallback` says.",
            json!({
                "from": text("The model that failed, as `provider/id`."),
                "to": text("The model of the following requests, as `provider/id`."),
                "role": text("Always `default`."),
                "reason": text("The error of the model that failed."),
            }),
            &["type", "from", "to", "role", "reason"],
        ),
        "retry_fallback_succeeded" => (
            "A fallback model has given its first answer.",
            json!({
                "model": text("The model, as `provider/id`."),
                "role": text("Always `default`."),
            }),
            &["type", "model", "role"],
        ),
        _ => return None,
    };
    set_kind(&mut members, kind);
    Some(json!({ "description": doc, "type": "object", "properties": members, "required": required }))
}

/// An event under another name.
fn renamed(event: &Value, kind: &str) -> Option<Value> {
    let mut line = event.clone();
    let members = line.get_mut("properties")?;
    set_kind(members, kind);
    let members = members.as_object_mut()?;
    match kind {
        "auto_compaction_start" | "auto_compaction_end" => {
            let doc = "What the compaction does.";
            members.insert(
                "action".to_owned(),
                json!({ "type": "string", "const": "context-full", "description": doc }),
            );
            require(&mut line, "action");
        }
        "hook_error" => {
            let path = members.shift_remove("extensionPath")?;
            members.insert("hookPath".to_owned(), path);
            let required = line.get_mut("required")?.as_array_mut()?;
            required.retain(|name| name != "extensionPath");
            require(&mut line, "hookPath");
        }
        _ => {}
    }
    Some(line)
}

fn set_kind(members: &mut Value, kind: &str) {
    if let Some(members) = members.as_object_mut() {
        members.shift_remove("type");
        let tag = json!({ "type": "string", "const": kind });
        members.shift_insert(0, "type".to_owned(), tag);
    }
}

fn require(line: &mut Value, name: &str) {
    if let Some(required) = line.get_mut("required").and_then(Value::as_array_mut) {
        required.push(name.into());
    }
}

/// A member that single dialects have: its line or type, its name, schema, description and dialects.
type Member = (
    &'static str,
    &'static str,
    Value,
    &'static str,
    fn(Dialect) -> bool,
);

/// Adds the members that single dialects have to the definitions.
pub(super) fn add_members(defs: &mut Defs) {
    for (line, name, mut schema, doc, has) in event_members()
        .into_iter()
        .chain(state_members())
        .chain(data_members())
    {
        let dialects = Dialect::ALL.into_iter().filter(|dialect| has(*dialect));
        let dialects: Vec<&str> = dialects.map(Dialect::as_str).collect();
        if let Some(schema) = schema.as_object_mut() {
            let doc = format!("{doc} Dialects: {}.", dialects.join(", "));
            schema.insert("description".to_owned(), doc.into());
            schema.insert(DIALECTS.to_owned(), json!(dialects));
        }
        let members = defs.get_mut(line).and_then(|def| def.get_mut("properties"));
        if let Some(members) = members.and_then(Value::as_object_mut) {
            members.insert(name.to_owned(), schema);
        }
    }
}

fn count() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

fn flag() -> Value {
    json!({ "type": "boolean" })
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn event_members() -> Vec<Member> {
    let ready = |name, schema, doc| -> Member { ("ReadyEvent", name, schema, doc, Dialect::offers_versions) };
    let id = |line| -> Member {
        let doc = "Id of the message: the same in all its lines, unique on the connection.";
        (line, "messageId", text(), doc, Dialect::has_message_ids)
    };
    let numbers = json!({ "type": "array", "items": { "type": "integer" } });
    vec![
        ready("protocolVersion", count(), "The version of the framing."),
        ready(
            "supportedProtocolVersions",
            numbers,
            "The versions for `negotiate_protocol`.",
        ),
        ready("maxFrameBytes", count(), "Longest line in version 2, in bytes."),
        ready(
            "maxReassembledFrameBytes",
            count(),
            "Longest line that comes in parts, in bytes.",
        ),
        (
            "ExtensionErrorEvent",
            "hookPath",
            text(),
            "The same as `extensionPath`, for clients that call extensions hooks.",
            |dialect| dialect == Dialect::Auto,
        ),
        (
            "ExtensionUiRequestEvent",
            "optionDetails",
            json!({ "type": "array", "items": { "type": "object", "properties": { "description": { "type": "string" } } } }),
            "`select`: an object for each option, with its description if it has one.",
            Dialect::is_newest_omp,
        ),
        (
            "ThinkingLevelChangedEvent",
            "thinkingLevel",
            json!({ "$ref": "#/$defs/ThinkingLevel" }),
            "The new level, in place of `level`.",
            |dialect| dialect == Dialect::OmpNow,
        ),
        id("MessageStartEvent"),
        id("MessageUpdateCumulativeEvent"),
        id("MessageUpdateEvent"),
        id("MessageEndEvent"),
        (
            "MessageUpdateEvent",
            "message",
            json!({ "type": "object" }),
            "The message without its content; only over a WebSocket.",
            |dialect| dialect == Dialect::Web,
        ),
    ]
}

fn state_members() -> Vec<Member> {
    let state = |name, doc| -> Member { ("SessionState", name, flag(), doc, Dialect::reports_prompts) };
    vec![
        state(
            "isSettled",
            "Whether the session is idle, every prompt has its `prompt_result` and no background process may wake it.",
        ),
        state(
            "hasPendingAsyncWork",
            "Whether the end of a background process may wake the idle session.",
        ),
        state("fastModeEnabled", "Whether fast mode is on: always false."),
        state("fastModeActive", "Whether requests use fast mode: always false."),
        (
            "SessionState",
            "tokensPerSecond",
            json!({ "type": ["number", "null"] }),
            "Output tokens per second of the newest answer; null if unknown.",
            Dialect::reports_prompts,
        ),
        (
            "SessionState",
            "systemPrompt",
            json!({ "type": "array", "items": { "type": "string" } }),
            "The system prompt of the next request, in parts. Only in a process that starts with the dialect.",
            Dialect::reports_prompts,
        ),
        (
            "SessionState",
            "dumpTools",
            json!({ "type": "array", "items": { "$ref": "#/$defs/ToolSpec" } }),
            "The tools that the model can call. Only in a process that starts with the dialect.",
            Dialect::reports_prompts,
        ),
    ]
}

fn data_members() -> Vec<Member> {
    let end = |name, doc| -> Member { ("AgentEndEvent", name, flag(), doc, Dialect::has_message_ids) };
    let counts = |name, doc| -> Member { ("BashResult", name, count(), doc, Dialect::counts_bash_output) };
    vec![
        (
            "ErrorResponse",
            "code",
            text(),
            "The reason, for programs.",
            Dialect::has_error_codes,
        ),
        end(
            "isTerminal",
            "Whether no other run follows by itself: false if the end of a background process may begin one.",
        ),
        end(
            "awaitingAsyncWork",
            "True if only the end of a background process may begin another run; absent otherwise.",
        ),
        end("yielded", "Whether the agent has finished its turn: always true."),
        (
            "Usage",
            "reasoningTokens",
            count(),
            "The same as `reasoning`.",
            Dialect::has_omp_members,
        ),
        (
            "AssistantMessage",
            "errorStatus",
            count(),
            "The HTTP status of the response that made the answer fail. Pinion does not store it in session files.",
            Dialect::has_omp_members,
        ),
        (
            "TokenStats",
            "reasoning",
            count(),
            "Output spent on reasoning, part of `output`.",
            Dialect::has_omp_members,
        ),
        counts("totalLines", "Lines of the whole output."),
        counts("totalBytes", "Bytes of the whole output."),
        counts("outputLines", "Lines in `output`."),
        counts("outputBytes", "Bytes in `output`."),
    ]
}
