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
                        "retryable": flag("Whether all automatic retries failed."),
                    },
                    "required": ["message", "retryable"],
                },
                "sessionSettled": flag("Whether the session is idle and no other prompt is open."),
            }),
            &["type", "agentInvoked", "status", "sessionSettled"],
        ),
        "session_settled" => (
            "The session is idle, and every prompt has its `prompt_result`.",
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

/// Adds the members that single dialects have to the definitions.
pub(super) fn add_members(defs: &mut Defs) {
    type Has = fn(Dialect) -> bool;
    let versions: Has = Dialect::offers_versions;
    let counts: Has = Dialect::counts_bash_output;
    let ids: Has = Dialect::has_message_ids;
    let prompts: Has = Dialect::reports_prompts;
    let count = json!({ "type": "integer", "minimum": 0 });
    let flag = json!({ "type": "boolean" });
    let text = json!({ "type": "string" });
    let numbers = json!({ "type": "array", "items": { "type": "integer" } });
    let id = "Id of the message: the same in all its lines, unique on the connection.";
    for (line, name, schema, doc, has) in [
        (
            "ReadyEvent",
            "protocolVersion",
            &count,
            "The version of the framing.",
            versions,
        ),
        (
            "ReadyEvent",
            "supportedProtocolVersions",
            &numbers,
            "The versions for `negotiate_protocol`.",
            versions,
        ),
        (
            "ReadyEvent",
            "maxFrameBytes",
            &count,
            "Longest line in version 2, in bytes.",
            versions,
        ),
        (
            "ReadyEvent",
            "maxReassembledFrameBytes",
            &count,
            "Longest line that comes in parts, in bytes.",
            versions,
        ),
        (
            "ExtensionErrorEvent",
            "hookPath",
            &text,
            "The same as `extensionPath`, for clients that call extensions hooks.",
            |dialect| dialect == Dialect::Auto,
        ),
        ("MessageStartEvent", "messageId", &text, id, ids),
        ("MessageUpdateCumulativeEvent", "messageId", &text, id, ids),
        ("MessageUpdateEvent", "messageId", &text, id, ids),
        ("MessageEndEvent", "messageId", &text, id, ids),
        (
            "MessageUpdateEvent",
            "message",
            &json!({ "type": "object" }),
            "The message without its content; only over a WebSocket.",
            |dialect| dialect == Dialect::Web,
        ),
        (
            "ErrorResponse",
            "code",
            &text,
            "The reason, for programs.",
            Dialect::has_error_codes,
        ),
        (
            "SessionState",
            "isSettled",
            &flag,
            "Whether the session is idle and every prompt has its `prompt_result`.",
            prompts,
        ),
        (
            "SessionState",
            "hasPendingAsyncWork",
            &flag,
            "Whether an automatic retry waits.",
            prompts,
        ),
        (
            "BashResult",
            "totalLines",
            &count,
            "Lines of the whole output.",
            counts,
        ),
        (
            "BashResult",
            "totalBytes",
            &count,
            "Bytes of the whole output.",
            counts,
        ),
        ("BashResult", "outputLines", &count, "Lines in `output`.", counts),
        ("BashResult", "outputBytes", &count, "Bytes in `output`.", counts),
    ] {
        let dialects: Vec<&str> = Dialect::ALL
            .into_iter()
            .filter(|d| has(*d))
            .map(Dialect::as_str)
            .collect();
        let mut schema = schema.clone();
        if let Some(schema) = schema.as_object_mut() {
            schema.insert(
                "description".to_owned(),
                format!("{doc} Dialects: {}.", dialects.join(", ")).into(),
            );
            schema.insert(DIALECTS.to_owned(), json!(dialects));
        }
        let members = defs.get_mut(line).and_then(|def| def.get_mut("properties"));
        if let Some(members) = members.and_then(Value::as_object_mut) {
            members.insert(name.to_owned(), schema);
        }
    }
}
