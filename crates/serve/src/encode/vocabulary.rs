//! Events and responses in the words of a dialect (dialects.md 5). Everything but `message_update`, which `encode` writes
//! itself. A new event whose name or form depends on the dialect gets an arm in [`Vocabulary::event`]; for all others serde's
//! form is what every client gets.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use wire::content::UserBlock;
use wire::dialect::{BUSY, COMPACTING, CompactionEvents};
use wire::event::{CompactionReason, CompactionResult};
use wire::omp::{NO_ENTRY, PAGE_BUSY, PAGE_STALE, SILENT_ANSWER, UNKNOWN_CURSOR};
use wire::reply::Messages;
use wire::state::{BashResult, OutputCounts};
use wire::ui::UiRequest;
use wire::{AssistantMessage, Dialect, Event, Message, Reply, Response, StopReason, ToolResult};

use super::json as text;
use crate::limits::{FRAME_BYTES, REASSEMBLED_BYTES};
use crate::manner::Manner;

/// The line before the output of a shell command that was aborted, in today's oh-my-pi.
const CANCELLED: &str = "[Command cancelled]\n";

/// What must be remembered from one line to the next.
#[derive(Debug, Default)]
pub(super) struct Vocabulary {
    /// The format in which the start of the running compaction was written; its end uses the same format.
    compaction: Option<Manner>,
}

impl Vocabulary {
    /// Writes an event: one line, several, or none.
    pub(super) fn event(&mut self, event: &Event, manner: Manner, out: &mut Vec<u8>) {
        match event {
            Event::CompactionStart { reason } => {
                self.compaction = Some(manner);
                compaction_start(event, *reason, manner, out);
            }
            Event::CompactionEnd { .. } => {
                // A client that saw the start under one name waits for the end of that name, also if its dialect was detected
                // in between.
                let manner = self.compaction.take().unwrap_or(manner);
                compaction_end(event, manner, out);
            }
            Event::ToolExecutionUpdate { .. } | Event::ToolExecutionEnd { .. } => {
                tool_result(event, manner, out)
            }
            Event::ThinkingLevelChanged { .. } if manner.dialect == Dialect::OmpNow => {
                let mut line = object(event);
                if let Some(level) = line.remove("level") {
                    line.insert("thinkingLevel".to_owned(), level);
                }
                push(&line, out);
            }
            Event::Ready { .. } if manner.dialect.offers_versions() => ready(event, out),
            Event::MessageStart { message } | Event::MessageEnd { message } => {
                self::message(event, message, manner, out);
            }
            Event::TurnEnd { message, .. } => match known(message, manner) {
                Some(message) => with_member(event, "message", message, out),
                None => push(event, out),
            },
            Event::AgentEnd { messages, .. } => match all_known(messages, manner) {
                Some(messages) => with_member(event, "messages", messages.into(), out),
                None => push(event, out),
            },
            Event::BashExecutionStart { .. }
            | Event::BashExecutionUpdate { .. }
            | Event::BashExecutionEnd { .. } => shell(event, manner, out),
            Event::ExtensionUiRequest { request, .. } => ui_request(event, request, manner, out),
            Event::ExtensionError { extension_path, .. } => {
                extension_error(event, extension_path, manner, out)
            }
            _ => push(event, out),
        }
    }

    /// Returns true if [`event`](Self::event) writes an event with an answer as it is.
    pub(super) fn is_plain(event: &Event, manner: Manner) -> bool {
        match event {
            Event::MessageEnd { message } | Event::TurnEnd { message, .. } => {
                known(message, manner).is_none()
            }
            Event::AgentEnd { messages, .. } => all_known(messages, manner).is_none(),
            _ => false,
        }
    }

    /// Writes a response: one line, or an event in its place, or nothing.
    pub(super) fn response(response: &Response, manner: Manner, out: &mut Vec<u8>) {
        if let Err(error) = &response.outcome {
            // Row 4. A client that only seems early gets both: if it is not, the response is the one it waits for.
            if manner.dialect.is_silent() || manner.seems_early() {
                let command = response.command.as_ref().and_then(Value::as_str);
                let error = match command {
                    Some("compact") => format!("Compaction failed: {error}"),
                    _ => error.clone(),
                };
                push(&json!({"type": "error", "error": error}), out);
            }
            // Row 12: clients compare this text to tell a busy agent from other failures.
            let words = match error.as_str() {
                BUSY => manner.dialect.busy(),
                COMPACTING => manner.dialect.compacting(),
                _ => error,
            };
            if words != error {
                let response = Response {
                    id: response.id.clone(),
                    command: response.command.clone(),
                    outcome: Err(words.to_owned()),
                };
                push(&response, out);
                return;
            }
        }
        // Clients of this dialect expect no responses (dialects.md 2).
        if manner.dialect.is_silent() {
            return;
        }
        if let Err(error) = &response.outcome
            && manner.dialect.has_error_codes()
            && let Some(code) = error_code(response, error)
        {
            return failure(response, error, code, out);
        }
        match &response.outcome {
            Ok(Reply::Bash(result)) if manner.dialect.counts_bash_output() => {
                bash(response, result, manner, out);
            }
            Ok(Reply::Stats(stats)) if manner.dialect.has_omp_members() => {
                let mut line = object(response);
                if let Some(Value::Object(tokens)) =
                    line.get_mut("data").and_then(|data| data.get_mut("tokens"))
                {
                    tokens.insert("reasoning".to_owned(), stats.tokens.reasoning.into());
                }
                push(&line, out);
            }
            Ok(Reply::Messages(Messages { messages })) => match all_known(messages, manner) {
                Some(messages) => with_member(response, "data", json!({ "messages": messages }), out),
                None => push(response, out),
            },
            Ok(Reply::MessagesPage(page)) if manner.dialect.is_newest_omp() => {
                let mut data = object(page);
                if let Some(messages) = all_known(&page.messages, manner) {
                    data.insert("messages".to_owned(), messages.into());
                }
                with_member(response, "data", data.into(), out);
            }
            _ => push(response, out),
        }
    }
}

/// Writes a failed response with its code, in the words of today's oh-my-pi.
fn failure(response: &Response, error: &str, code: &str, out: &mut Vec<u8>) {
    let mut line = object(response);
    line.insert("code".to_owned(), code.into());
    // Today's oh-my-pi has words of its own for an unknown entry (dialects.md 14).
    if let ("unknown_since", Some(id)) = (code, error.strip_prefix(NO_ENTRY)) {
        line.insert("error".to_owned(), format!("{UNKNOWN_CURSOR}{id}").into());
    }
    push(&line, out);
}

/// Writes the result of a shell command of the user, with its counts.
fn bash(response: &Response, result: &BashResult, manner: Manner, out: &mut Vec<u8>) {
    let mut line = object(response);
    // Today's oh-my-pi counts no line in an empty output, xcsh counts one.
    let is_empty = manner.dialect.has_omp_members() && result.output.is_empty();
    let counts = match is_empty {
        true => Some(OutputCounts::default()),
        false => result.counts,
    };
    if let Some(Value::Object(data)) = line.get_mut("data") {
        if let Some(counts) = &counts {
            data.extend(object(counts));
        }
        // The counts are those of the output alone.
        if result.cancelled && manner.dialect.is_newest_omp() {
            data.insert(
                "output".to_owned(),
                format!("{CANCELLED}{}", result.output).into(),
            );
        }
    }
    push(&line, out);
}

/// Writes a message that begins or ends.
fn message(event: &Event, message: &Message, manner: Manner, out: &mut Vec<u8>) {
    // A stream that failed before its start begins with the final message, whose reason stays (pi-core.md 1.4).
    let is_open = matches!(event, Event::MessageStart { .. })
        && message
            .as_assistant()
            .is_some_and(|answer| answer.stop_reason == StopReason::Stop);
    if is_open && manner.dialect.is_newest_pi() {
        // The reason is not known before the end; older dialects show `stop`.
        let mut shown = object(message);
        shown.insert("stopReason".to_owned(), json!(StopReason::Pending));
        return with_member(event, "message", shown.into(), out);
    }
    match known(message, manner) {
        Some(message) => with_member(event, "message", message, out),
        None => push(event, out),
    }
}

/// Writes the result of a call, or a part of it.
fn tool_result(event: &Event, manner: Manner, out: &mut Vec<u8>) {
    match event {
        Event::ToolExecutionEnd {
            result,
            is_error: true,
            ..
        } if manner.dialect.tool_errors_are_text() => {
            // Row 17.
            let said = wire::content::joined_text(&result.content);
            with_member(event, "result", said.into(), out);
        }
        Event::ToolExecutionEnd {
            tool_name,
            result,
            is_error,
            ..
        } if manner.dialect.is_newest_pi() && (tool_name == "read" || result.has_failed) => {
            match newest_result(tool_name, result, *is_error) {
                Some(shown) => with_member(event, "result", shown.into(), out),
                None => push(event, out),
            }
        }
        Event::ToolExecutionEnd {
            result,
            is_error: true,
            ..
        } if manner.dialect.has_omp_members() => {
            let mut shown = object(result);
            // Row 36.
            shown.remove("structuredContent");
            shown.entry("details").or_insert_with(|| json!({}));
            // A tool that throws has no result of its own to mark.
            if result.has_failed {
                shown.insert("isError".to_owned(), true.into());
            }
            with_member(event, "result", shown.into(), out);
        }
        Event::ToolExecutionEnd { result, .. }
            if result.structured_content.is_some() && !manner.dialect.has_structured_content() =>
        {
            without_structure(event, result, manner.dialect, out);
        }
        Event::ToolExecutionUpdate {
            partial_result: result,
            ..
        }
        | Event::ToolExecutionEnd { result, .. }
            if result.details.is_none() && manner.dialect.results_have_details() =>
        {
            // The agents of these dialects always wrote `details`, and their clients rely on it.
            let mut shown = object(result);
            shown.insert("details".to_owned(), json!({}));
            let name = match event {
                Event::ToolExecutionEnd { .. } => "result",
                _ => "partialResult",
            };
            with_member(event, name, shown.into(), out);
        }
        _ => push(event, out),
    }
}

/// The reason of a failure that clients of today's oh-my-pi read (dialects.md 14).
fn error_code(response: &Response, error: &str) -> Option<&'static str> {
    let command = response.command.as_ref().and_then(Value::as_str);
    match (command, error) {
        (Some("get_messages_page"), PAGE_BUSY) => Some("session_busy"),
        (Some("get_messages_page"), PAGE_STALE) => Some("stale_cursor"),
        (Some("get_entries"), _) => Some("unknown_since"),
        _ => None,
    }
}

/// A result as today's pi repeats it for programs: the text or the image of `read`, and whether a command of `bash`, or a tool of an
/// extension, failed.
fn newest_result(tool: &str, result: &ToolResult, is_error: bool) -> Option<Map<String, Value>> {
    let mut shown = object(result);
    if result.has_failed {
        shown.insert("isError".to_owned(), true.into());
        return Some(shown);
    }
    // Content that an extension replaced is not repeated: it would not match.
    if tool != "read" || is_error || result.is_replaced || result.structured_content.is_some() {
        return None;
    }
    let text = wire::content::joined_text(&result.content);
    let image = result.content.iter().find_map(|block| match block {
        UserBlock::Image(image) => Some(image),
        UserBlock::Text(_) => None,
    });
    let content = match image {
        None => text.into(),
        Some(image) => {
            json!({"type": "image", "data": image.data, "mimeType": image.mime_type, "note": text})
        }
    };
    shown.insert("structuredContent".to_owned(), content);
    Some(shown)
}

/// Row 36. The agents of these dialects never repeated an output, which can be a megabyte.
fn without_structure(event: &Event, result: &wire::ToolResult, dialect: Dialect, out: &mut Vec<u8>) {
    let mut shown = object(result);
    shown.remove("structuredContent");
    if dialect.results_have_details() {
        shown.entry("details").or_insert_with(|| json!({}));
    }
    with_member(event, "result", shown.into(), out);
}

/// Row 20. A client that is offered version 2 answers with `negotiate_protocol`, which names its dialect.
fn ready(event: &Event, out: &mut Vec<u8>) {
    let mut line = object(event);
    // 1 until the client answers with `negotiate_protocol` (dialects.md 1).
    line.insert("protocolVersion".to_owned(), 1.into());
    line.insert("supportedProtocolVersions".to_owned(), json!([1, 2]));
    line.insert("maxFrameBytes".to_owned(), FRAME_BYTES.into());
    line.insert("maxReassembledFrameBytes".to_owned(), REASSEMBLED_BYTES.into());
    push(&line, out);
}

/// Rows 3 and 28. Which methods a client renders is known where it is asked; here only what its dialect never had is left out.
fn ui_request(event: &Event, request: &UiRequest, manner: Manner, out: &mut Vec<u8>) {
    if !manner.sends_ui(request.method) {
        return;
    }
    let kind = manner.dialect.ui_request();
    if kind != event.name() {
        with_member(event, "type", kind.into(), out);
    } else if manner.dialect.is_newest_omp()
        && let Some(details) = option_details(request)
    {
        with_member(event, "optionDetails", details, out);
    } else {
        push(event, out);
    }
}

/// The descriptions of options, one object for each option; none if no option has one.
fn option_details(request: &UiRequest) -> Option<Value> {
    let options = request.options.as_ref()?;
    let has_any = options.iter().any(|option| option.description.is_some());
    let details = options.iter().map(|option| match &option.description {
        Some(description) => json!({"description": description}),
        None => json!({}),
    });
    // The member is absent if no option has a description (dialects.md 10.4).
    has_any.then(|| details.collect())
}

/// A shell command of a client: the web dialect says whose it was without an `id`, the others know no more than the `id`.
fn shell(event: &Event, manner: Manner, out: &mut Vec<u8>) {
    match event {
        Event::BashExecutionUpdate {
            id,
            bash_id: Some(_),
            delta,
            ..
        } if manner.dialect != Dialect::Web => push(
            &Event::BashExecutionUpdate {
                id: id.clone(),
                command_id: None,
                bash_id: None,
                delta: delta.clone(),
            },
            out,
        ),
        Event::BashExecutionStart { id: Some(_), .. }
        | Event::BashExecutionUpdate { id: Some(_), .. }
        | Event::BashExecutionEnd { id: Some(_), .. }
            if manner.dialect == Dialect::Web =>
        {
            shell_of_another(event, out);
        }
        _ => push(event, out),
    }
}

/// An event that all tabs get, whose ids mean something else to each (web.md 1.4).
fn shell_of_another(event: &Event, out: &mut Vec<u8>) {
    let mut line = object(event);
    if let Some(id) = line.remove("id") {
        line.insert("commandId".to_owned(), id);
    }
    push(&line, out);
}

/// Row 2. A client that has not shown its dialect yet finds the path under both names.
fn extension_error(event: &Event, path: &str, manner: Manner, out: &mut Vec<u8>) {
    let (kind, member) = manner.dialect.extension_error();
    let mut line = object(event);
    line.insert("type".to_owned(), kind.into());
    if member == "hookPath" {
        line.remove("extensionPath");
    }
    if member == "hookPath" || manner.dialect == Dialect::Auto {
        line.insert("hookPath".to_owned(), path.into());
    }
    push(&line, out);
}

/// Row 1.
fn compaction_start(event: &Event, reason: CompactionReason, manner: Manner, out: &mut Vec<u8>) {
    let family = manner.dialect.compaction_events();
    if family == CompactionEvents::All {
        push(event, out);
    }
    // Under the older name there are automatic ones only: a manual one is the answer to a command.
    let automatic = reason != CompactionReason::Manual;
    if automatic && (family == CompactionEvents::Automatic || manner.seems_old()) {
        push(&automatic_form("auto_compaction_start", event), out);
    }
}

/// Row 1, and row 23: a result that is not there is null.
fn compaction_end(event: &Event, manner: Manner, out: &mut Vec<u8>) {
    let Event::CompactionEnd {
        reason,
        result,
        error_message,
        ..
    } = event
    else {
        return;
    };
    let family = manner.dialect.compaction_events();
    let automatic = *reason != CompactionReason::Manual;
    if family == CompactionEvents::All {
        push(event, out);
    }
    if automatic && (family == CompactionEvents::Automatic || manner.seems_old()) {
        push(&automatic_form("auto_compaction_end", event), out);
    }
    if family == CompactionEvents::Early || manner.seems_early() {
        match (result, error_message) {
            (Some(result), _) => push(&early_form(result, automatic), out),
            // The response to the command already reports the error of a manual compaction.
            (None, Some(error)) if automatic => push(&json!({"type": "error", "error": error}), out),
            _ => {}
        }
    }
}

/// The event of a compaction under its older name, with the action that xcsh's clients look for.
fn automatic_form(kind: &str, event: &Event) -> Map<String, Value> {
    let mut line = object(event);
    line.insert("type".to_owned(), kind.into());
    line.insert("action".to_owned(), "context-full".into());
    line
}

/// A compaction as the early dialect tells it, once it has succeeded.
fn early_form(result: &CompactionResult, automatic: bool) -> Value {
    let mut line = json!({
        "type": "compaction",
        "summary": result.summary,
        "tokensBefore": result.tokens_before,
    });
    if let (true, Some(line)) = (automatic, line.as_object_mut()) {
        line.insert("auto".to_owned(), true.into());
    }
    line
}

/// Row 29: a message as this client may see it, when that is not as it is.
fn known(message: &Message, manner: Manner) -> Option<Value> {
    if let (true, Some(answer)) = (manner.dialect.has_omp_members(), message.as_assistant()) {
        return answer_of_omp(message, answer);
    }
    if let (true, Message::Custom(hidden)) = (manner.dialect.is_newest_omp(), message)
        && hidden.custom_type == SILENT_ANSWER
    {
        // oh-my-pi has a role for its own messages to the model; files have the role of pi.
        let content = json!([{"type": "text", "text": hidden.content.text()}]);
        return Some(json!({"role": "developer", "content": content, "timestamp": hidden.timestamp}));
    }
    let role = message.role();
    if role == "custom" && manner.dialect.custom_role() != role {
        let mut shown = object(message);
        shown.insert("role".to_owned(), manner.dialect.custom_role().into());
        return Some(shown.into());
    }
    if manner.dialect.knows_role(role) {
        return None;
    }
    // Strict clients fail on an unknown role. Hidden and with every member that the known role requires, the message does no
    // harm and still counts.
    let mut shown = object(message);
    let kind = shown.insert("role".to_owned(), manner.dialect.custom_role().into());
    shown.insert("customType".to_owned(), kind.unwrap_or_default());
    shown.insert("display".to_owned(), false.into());
    shown.entry("content").or_insert_with(|| "".into());
    shown.entry("timestamp").or_insert_with(|| 0.into());
    Some(shown.into())
}

/// An answer with the members of today's oh-my-pi, if it has any of them.
fn answer_of_omp(message: &Message, answer: &AssistantMessage) -> Option<Value> {
    let (status, reasoning) = (answer.http_status, answer.usage.reasoning);
    if status.is_none() && reasoning.is_none() {
        return None;
    }
    let mut shown = object(message);
    if let Some(status) = status {
        shown.insert("errorStatus".to_owned(), status.into());
    }
    if let (Some(tokens), Some(Value::Object(usage))) = (reasoning, shown.get_mut("usage")) {
        usage.insert("reasoningTokens".to_owned(), tokens.into());
    }
    Some(shown.into())
}

/// Converts messages for a dialect; none if no message changes.
fn all_known(messages: &[Arc<Message>], manner: Manner) -> Option<Vec<Value>> {
    let changed: Vec<Option<Value>> = messages.iter().map(|message| known(message, manner)).collect();
    // Without a change the event is written as it is, without a copy.
    if changed.iter().all(Option::is_none) {
        return None;
    }
    let shown = messages.iter().zip(changed);
    Some(
        shown
            .map(|(message, changed)| changed.unwrap_or_else(|| object(&**message).into()))
            .collect(),
    )
}

fn with_member<T: serde::Serialize>(value: &T, name: &str, member: Value, out: &mut Vec<u8>) {
    let mut line = object(value);
    line.insert(name.to_owned(), member);
    push(&line, out);
}

fn object<T: serde::Serialize>(value: &T) -> Map<String, Value> {
    match serde_json::to_value(value) {
        Ok(Value::Object(map)) => map,
        // Cannot happen: everything here is an object.
        _ => Map::new(),
    }
}

fn push<T: serde::Serialize>(value: &T, out: &mut Vec<u8>) {
    text::line(out, value);
}
