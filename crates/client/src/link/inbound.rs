//! What the agent says: answers, events, calls of tools, dialogs.

use std::borrow::Cow;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::sync::mpsc::error::TrySendError;
use tokio::time::timeout;
use wire::ToolResult;

use super::Link;
use crate::dialog::{Answer, Dialog, asks};
use crate::error::{Error, Result};
use crate::event::Event;
use crate::limits::{ENDS, MAX_LINE};
use crate::tool::{CallFrame, ToolCall};

/// The members of a line that are read before its type is known.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    session: Option<String>,
    #[serde(default)]
    success: bool,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    method: Option<String>,
    target_id: Option<String>,
}

/// Reads until the stream ends.
///
/// # Errors
/// What breaks the protocol.
pub(crate) async fn read(link: &Arc<Link>, stream: impl AsyncRead + Unpin) -> Result<()> {
    let mut stream = BufReader::with_capacity(1 << 16, stream);
    let mut line = Vec::new();
    // Of a line that is too long only the ends are kept.
    let mut left_out = 0;
    loop {
        let Ok(chunk) = stream.fill_buf().await else {
            return Ok(());
        };
        if chunk.is_empty() {
            return Ok(());
        }
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(chunk.len(), |end| end + 1);
        line.extend(chunk.iter().take(taken));
        stream.consume(taken);
        if line.len() > MAX_LINE || (left_out > 0 && line.len() > 1 << 20) {
            let before = line.len();
            line.drain(ENDS..line.len() - ENDS);
            left_out += before - line.len();
        }
        if end.is_some() && left_out > 0 {
            line.shrink_to(1 << 20);
            left_out = 0;
            link.unreadable(&line, &format!("a line is longer than {MAX_LINE} bytes"))?;
            line.clear();
        } else if end.is_some() {
            let text = String::from_utf8_lossy(&line);
            if !text.trim().is_empty() {
                heard(link, text.trim())?;
            }
            line.clear();
        }
    }
}

fn heard(link: &Arc<Link>, line: &str) -> Result<()> {
    let head: Head<'_> = match serde_json::from_str(line) {
        Ok(head) => head,
        Err(_) if serde_json::from_str::<serde::de::IgnoredAny>(line).is_ok() => return Ok(()),
        Err(error) => return link.unreadable(line.as_bytes(), &error.to_string()),
    };
    match &*head.kind {
        "response" => {
            link.answered(head);
            return Ok(());
        }
        "host_tool_call" => link.tool_called(line),
        "host_tool_cancel" => link.cancelled(head.target_id.as_deref()),
        "extension_ui_request" => match head.method.as_deref() {
            Some("cancel") => link.cancelled(head.target_id.as_deref()),
            Some(method) if asks(method) => link.asked(line),
            _ => {}
        },
        _ => {}
    }
    if let Some(event) = Event::read(&head.kind, line) {
        link.tell(head.session.as_deref(), &event);
    }
    Ok(())
}

/// The id of an answer, looked for at both ends of a line that cannot be read.
fn id_of(line: &[u8]) -> Option<String> {
    let first = line.get(..ENDS.min(line.len())).unwrap_or_default();
    let last = line.get(line.len().saturating_sub(ENDS)..).unwrap_or_default();
    let ends = [first, last].map(String::from_utf8_lossy);
    if !ends.iter().any(|end| end.contains("\"response\"")) {
        return None;
    }
    let find = |end: &Cow<'_, str>| {
        let (_, after) = end.split_once("\"id\":")?;
        let (id, _) = after.trim_start().strip_prefix('"')?.split_once('"')?;
        Some(id.to_owned())
    };
    ends.iter().find_map(find)
}

/// Runs code of the host. None if it panics: the agent waits for an answer all the same.
async fn caught<T>(work: impl Future<Output = T>) -> Option<T> {
    AssertUnwindSafe(work).catch_unwind().await.ok()
}

impl Link {
    /// Fails the call that a line answers which cannot be read.
    ///
    /// # Errors
    /// When the line is no answer to a call.
    fn unreadable(&self, line: &[u8], reason: &str) -> Result<()> {
        let start: String = String::from_utf8_lossy(line).chars().take(200).collect();
        let waiting = id_of(line).and_then(|id| self.state().pending.remove(&id));
        let Some(waiting) = waiting else {
            return Err(Error::Protocol(format!("not JSON ({reason}): {start}")));
        };
        let error = Error::Protocol(format!("the answer cannot be read ({reason}): {start}"));
        let _nobody_waits = waiting.answer.send(Err(error));
        Ok(())
    }

    fn answered(&self, head: Head<'_>) {
        let mut state = self.state();
        let id = head
            .id
            .and_then(|id| serde_json::from_str::<String>(id.get()).ok());
        let waiting = id.and_then(|id| state.pending.remove(&id));
        let Some(waiting) = waiting else { return };
        if head.success {
            state.listeners.extend(waiting.listener);
            let data = head
                .data
                .map_or_else(|| RawValue::NULL.to_owned(), RawValue::to_owned);
            let _nobody_waits = waiting.answer.send(Ok(data));
        } else {
            let error = head.error.map_or("null", RawValue::get);
            let message = serde_json::from_str(error).unwrap_or_else(|_| error.to_owned());
            let _nobody_waits = waiting.answer.send(Err(Error::Refused {
                command: waiting.command,
                message,
            }));
        }
    }

    fn tell(&self, session: Option<&str>, event: &Event) {
        self.state().listeners.retain(|listener| {
            if listener.session.as_deref() != session {
                return true;
            }
            match listener.sender.try_send(event.clone()) {
                Ok(()) => true,
                Err(TrySendError::Closed(_)) => false,
                Err(TrySendError::Full(_)) => {
                    listener.close(&Error::Lagged);
                    false
                }
            }
        });
    }

    fn tool_called(self: &Arc<Self>, line: &str) {
        let Ok(frame) = serde_json::from_str::<CallFrame>(line) else {
            return;
        };
        // The tool as it is now: replacing the set does not touch calls under way.
        let tool = {
            let state = self.state();
            let tools = state
                .tools
                .get(&frame.session)
                .map(Vec::as_slice)
                .unwrap_or_default();
            tools.iter().find(|tool| tool.name() == frame.tool_name).cloned()
        };
        let id = frame.id.clone();
        let call = ToolCall::new(frame, Arc::clone(self));
        let link = Arc::clone(self);
        self.start(id, async move {
            let outcome = match tool {
                Some(tool) => {
                    let asked = call.clone();
                    let run = async move { tool.run(asked).await.map_err(|error| error.to_string()) };
                    let panicked = || Err(format!("Tool {} panicked", call.name()));
                    caught(run).await.unwrap_or_else(panicked)
                }
                None => Err(format!("Tool {} not found", call.name())),
            };
            let members = match outcome {
                Ok(result) => json!({ "result": result }),
                Err(text) => json!({ "result": ToolResult::text(text), "isError": true }),
            };
            // The write fails only after the agent's end, which fails all pending calls.
            let _gone = link.write(&call.line("host_tool_result", members)).await;
        });
    }

    fn asked(self: &Arc<Self>, line: &str) {
        let Ok(dialog) = serde_json::from_str::<Dialog>(line) else {
            return;
        };
        let (id, session) = (dialog.id.clone(), dialog.session.clone());
        let limit = match dialog.timeout {
            Some(limit) if limit > 0 => self.times.dialog.min(Duration::from_millis(limit)),
            _ => self.times.dialog,
        };
        let handler = self.dialogs.clone();
        let link = Arc::clone(self);
        self.start(id.clone(), async move {
            let members = match handler {
                Some(handler) => {
                    let answer = caught(async move { (handler.0)(dialog).await });
                    timeout(limit, answer).await.map_or_else(
                        |_| json!({ "cancelled": true, "timedOut": true }),
                        |answer| answer.unwrap_or(Answer::Cancelled).members(),
                    )
                }
                None => Answer::Cancelled.members(),
            };
            let line = super::line("extension_ui_response", Some(&id), session.as_deref(), members);
            let _gone = link.write(&line).await;
        });
    }

    /// Runs a task that can be cancelled by its id.
    fn start(self: &Arc<Self>, id: String, work: impl Future<Output = ()> + Send + 'static) {
        let link = Arc::clone(self);
        let name = id.clone();
        let mut state = self.state();
        let task = tokio::spawn(async move {
            work.await;
            link.state().tasks.remove(&name);
        });
        state.tasks.insert(id, task.abort_handle());
    }

    /// Ends the task of a cancelled call or dialog.
    fn cancelled(&self, target: Option<&str>) {
        let task = target.and_then(|target| self.state().tasks.remove(target));
        if let Some(task) = task {
            task.abort();
        }
    }
}
