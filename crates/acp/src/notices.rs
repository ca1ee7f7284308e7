//! Messages for the user and compactions as `session/update`, for clients that show them.

use serde_json::{Map, Value, json};
use wire::Event;
use wire::event::CompactionResult;
use wire::ui::{NotifyType, UiMethod, UiRequest};

use crate::client::{Capability, Client};
use crate::content;

/// Converts an event. `compaction` is the number of the compaction in its session.
pub(crate) fn of_event(event: &Event, client: &Client, compaction: u64) -> Option<Value> {
    let is_compaction = matches!(event, Event::CompactionStart { .. } | Event::CompactionEnd { .. });
    let needed = if is_compaction {
        Capability::Compactions
    } else {
        Capability::Notices
    };
    if !client.has(needed) {
        return None;
    }
    match event {
        Event::CompactionStart { .. } => Some(update(compaction, "in_progress", None, None)),
        Event::CompactionEnd {
            result,
            aborted,
            error_message,
            ..
        } => Some(end(
            compaction,
            result.as_ref(),
            *aborted,
            error_message.as_deref(),
        )),
        Event::Notice { level, message } => notice(level, message),
        Event::ExtensionError {
            extension_path,
            event,
            error,
        } => notice(
            "error",
            &format!("An extension failed\n{extension_path} ({event}): {error}"),
        ),
        Event::SessionDamage { path, message, .. } => notice(
            "warning",
            &format!("The session file is damaged\n{path}: {message}"),
        ),
        Event::StorageStatus {
            path,
            error: Some(error),
            ..
        } => notice(
            "error",
            &format!("The session cannot be written to disk\n{path}: {error}"),
        ),
        Event::AutoRetryStart {
            attempt,
            max_attempts,
            error_message,
            ..
        } => notice(
            "warning",
            &format!("The model request is retried ({attempt} of {max_attempts})\n{error_message}"),
        ),
        Event::ModelFallback { from, to, reason } => {
            notice("warning", &format!("{from} failed, {to} answers\n{reason}"))
        }
        Event::ExtensionUiRequest { request, .. } => notification(request),
        _ => None,
    }
}

fn notification(request: &UiRequest) -> Option<Value> {
    if request.method != UiMethod::Notify {
        return None;
    }
    let severity = match request.notify_type {
        Some(NotifyType::Warning) => "warning",
        Some(NotifyType::Error) => "error",
        Some(NotifyType::Info) | None => "info",
    };
    notice(severity, request.message.as_deref()?)
}

/// The first line is the title. `None` if there is no text.
fn notice(severity: &str, text: &str) -> Option<Value> {
    let (title, rest) = text.trim().split_once('\n').unwrap_or((text.trim(), ""));
    if title.is_empty() {
        return None;
    }
    let description = Some(rest.trim()).filter(|rest| !rest.is_empty());
    Some(json!({
        "sessionUpdate": "notice",
        "severity": severity,
        "title": title.trim(),
        "description": description,
    }))
}

fn update(compaction: u64, status: &str, summary: Option<&str>, error: Option<&str>) -> Value {
    let mut update = Map::new();
    update.insert("sessionUpdate".to_owned(), "compaction_update".into());
    update.insert(
        "compactionId".to_owned(),
        format!("compaction-{compaction}").into(),
    );
    update.insert("status".to_owned(), status.into());
    if let Some(summary) = summary {
        update.insert("summary".to_owned(), json!([content::text(summary)]));
    }
    if let Some(error) = error {
        update.insert("error".to_owned(), error.into());
    }
    update.into()
}

fn end(compaction: u64, result: Option<&CompactionResult>, aborted: bool, error: Option<&str>) -> Value {
    match result {
        Some(result) => update(compaction, "completed", Some(&result.summary), None),
        None if aborted => update(compaction, "cancelled", None, None),
        None => {
            let error = error.unwrap_or("The summary could not be made");
            update(compaction, "failed", None, Some(error))
        }
    }
}
