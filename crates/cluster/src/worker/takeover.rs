//! What a new owner does about a run that the lost worker had: it ends the answer as aborted with the text that clients saw, gives
//! each open tool call a result, and sends the events that clients wait for. Pure; the session task stores and publishes.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use super::child::Line;
use crate::answer::Answer;

/// The result of a call that had begun, or may have.
pub(crate) const MAY_HAVE_RUN: &str =
    "The worker that ran this call was lost. The call may have run; check its effects before you repeat it.";
/// The result of a call that had not begun.
pub(crate) const DID_NOT_RUN: &str =
    "The worker of this call was lost before the call began. The call did not run.";

/// The end of an interrupted run.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Recovery {
    /// Messages to append to the session, in order.
    pub(crate) messages: Vec<Value>,
    /// Events to publish, in order, without numbers.
    pub(crate) events: Vec<Line>,
}

/// What the events of an interrupted run leave open.
#[derive(Default)]
struct Open {
    message: Option<Value>,
    answer: Option<Answer>,
    calls: Vec<(String, String)>,
    results: HashMap<String, Line>,
    run: bool,
    turn: bool,
    ended: Vec<Value>,
    compaction: Option<Value>,
}

impl Open {
    fn take(&mut self, event: &Line) {
        let field = |name: &str| event.get(name).cloned().unwrap_or_default();
        let text = |name: &str| event.get(name).and_then(Value::as_str).unwrap_or_default();
        match text("type") {
            "agent_start" => self.run = true,
            "agent_end" => {
                self.run = false;
                self.ended.clear();
            }
            "turn_start" => self.turn = true,
            "turn_end" => self.turn = false,
            "message_start" => {
                self.message = Some(field("message"));
                Answer::follow(&mut self.answer, event);
            }
            "message_update" => Answer::follow(&mut self.answer, event),
            "message_end" => {
                self.message = None;
                self.answer = None;
                self.ended.push(field("message"));
            }
            "tool_execution_start" if !event.contains_key("parentToolCallId") => {
                self.calls
                    .push((text("toolCallId").to_owned(), text("toolName").to_owned()));
            }
            "tool_execution_end" => {
                let id = text("toolCallId");
                self.calls.retain(|(call, _)| call != id);
                self.results.insert(id.to_owned(), event.clone());
            }
            "compaction_start" => self.compaction = Some(field("reason")),
            "compaction_end" => self.compaction = None,
            _ => {}
        }
    }
}

/// Works out the end of an interrupted run. `events` are those since it began, or the last of them if the stream has dropped the
/// others; `log` are the messages of the session, `began` tells whether the call with an id may have begun, `now` is the time in
/// milliseconds.
pub(crate) fn recover(events: &[Line], log: &[Value], began: impl Fn(&str) -> bool, now: u64) -> Recovery {
    let begins = events.first().and_then(|first| first.get("type")) == Some(&json!("agent_start"));
    let mut open = Open {
        run: true,
        // Between turns there is no time in which a run could be lost after so many events.
        turn: !begins,
        ..Open::default()
    };
    for event in events {
        open.take(event);
    }
    let mut recovery = Recovery::default();
    let mut log = log.to_vec();
    let answer = open.answer.take().map(Answer::into_message);
    if let Some(message) = answer.or(open.message.take()) {
        let last = stored(&log, &message).unwrap_or_else(|| {
            let message = if is_assistant(&message) {
                aborted(message)
            } else {
                message
            };
            recovery.messages.push(message.clone());
            log.push(message.clone());
            message
        });
        recovery
            .events
            .push(event("message_end", [("message", last.clone())]));
        open.ended.push(last);
    }
    let results = results(&log, &open, began, now);
    let mut events_of_results = Vec::new();
    for result in &results {
        let text = |name: &str| result.get(name).cloned().unwrap_or_default();
        let id = text("toolCallId");
        if open.calls.iter().any(|(call, _)| id == call.as_str()) {
            recovery.events.push(event(
                "tool_execution_end",
                [
                    ("toolCallId", id),
                    ("toolName", text("toolName")),
                    ("result", json!({"content": text("content")})),
                    ("isError", json!(true)),
                ],
            ));
        }
        events_of_results.push(event("message_start", [("message", result.clone())]));
        events_of_results.push(event("message_end", [("message", result.clone())]));
        open.ended.push(result.clone());
    }
    recovery.events.extend(events_of_results);
    recovery.messages.extend(results.iter().cloned());
    log.extend(results);
    close(&mut recovery, open, &log);
    recovery
}

/// The events at the end of turns and runs.
fn close(recovery: &mut Recovery, open: Open, log: &[Value]) {
    let answer = log.iter().rev().find(|message| is_assistant(message)).cloned();
    if open.turn {
        let results: Vec<&Value> = open
            .ended
            .iter()
            .filter(|message| role(message) == "toolResult")
            .collect();
        recovery.events.push(event(
            "turn_end",
            [
                ("message", answer.clone().unwrap_or_default()),
                ("toolResults", json!(results)),
            ],
        ));
    }
    if open.run {
        recovery.events.push(event(
            "agent_end",
            [
                ("messages", Value::Array(open.ended)),
                ("willRetry", json!(false)),
            ],
        ));
    }
    if let Some(reason) = open.compaction {
        recovery.events.push(event(
            "compaction_end",
            [
                ("reason", reason),
                ("result", Value::Null),
                ("aborted", json!(true)),
                ("willRetry", json!(false)),
            ],
        ));
    }
    let is_complete = log.last().is_some_and(|last| {
        is_assistant(last) && last.get("stopReason").and_then(Value::as_str) == Some("stop")
    });
    recovery
        .events
        .push(event("agent_settled", [("aborted", json!(!is_complete))]));
}

/// Results for the calls of the last answer that have none.
fn results(log: &[Value], open: &Open, began: impl Fn(&str) -> bool, now: u64) -> Vec<Value> {
    let Some(at) = log.iter().rposition(is_assistant) else {
        return Vec::new();
    };
    let Some((answer, after)) = log.get(at..).and_then(<[Value]>::split_first) else {
        return Vec::new();
    };
    if matches!(
        answer.get("stopReason").and_then(Value::as_str),
        Some("aborted" | "error")
    ) {
        return Vec::new();
    }
    let answered: HashSet<&str> = after
        .iter()
        .filter_map(|message| message.get("toolCallId").and_then(Value::as_str))
        .collect();
    let content = answer.get("content").and_then(Value::as_array);
    let calls = content
        .into_iter()
        .flatten()
        .filter(|block| block.get("type").and_then(Value::as_str) == Some("toolCall"));
    calls
        .filter_map(|call| Some((call.get("id")?.as_str()?, call.get("name")?.as_str()?)))
        .filter(|(id, _)| !answered.contains(id))
        .map(|(id, name)| {
            // A call that ended in front of clients has its own result.
            let (content, is_error) = match open.results.get(id) {
                Some(end) => (
                    end.get("result")
                        .and_then(|result| result.get("content"))
                        .cloned()
                        .unwrap_or_default(),
                    end.get("isError").cloned().unwrap_or_default(),
                ),
                None => {
                    let text = if began(id) { MAY_HAVE_RUN } else { DID_NOT_RUN };
                    (json!([{"type": "text", "text": text}]), json!(true))
                }
            };
            json!({
                "role": "toolResult",
                "toolCallId": id,
                "toolName": name,
                "content": content,
                "isError": is_error,
                "timestamp": now,
            })
        })
        .collect()
}

/// The stored form of a message that clients saw begin.
fn stored(log: &[Value], message: &Value) -> Option<Value> {
    let same = |name: &str, other: &Value| other.get(name) == message.get(name);
    let is_same =
        |other: &&Value| same("role", other) && same("timestamp", other) && same("toolCallId", other);
    log.iter().rev().take(64).find(is_same).cloned()
}

/// An answer as far as it came. Unfinished calls cannot run, and thinking without its signature is refused by providers.
fn aborted(mut message: Value) -> Value {
    if let Some(content) = message.get_mut("content").and_then(Value::as_array_mut) {
        content.retain(|block| block.get("type").and_then(Value::as_str) == Some("text"));
    }
    if let Some(message) = message.as_object_mut() {
        message.insert("stopReason".to_owned(), json!("aborted"));
        message.insert("errorMessage".to_owned(), json!("The worker was lost"));
    }
    message
}

fn role(message: &Value) -> &str {
    message.get("role").and_then(Value::as_str).unwrap_or_default()
}

fn is_assistant(message: &Value) -> bool {
    role(message) == "assistant"
}

fn event<const N: usize>(kind: &str, fields: [(&str, Value); N]) -> Line {
    let mut line = Line::new();
    line.insert("type".to_owned(), json!(kind));
    line.extend(fields.map(|(name, value)| (name.to_owned(), value)));
    line
}

#[cfg(test)]
mod tests {
    use super::{DID_NOT_RUN, Line, MAY_HAVE_RUN, Recovery, recover};
    use serde_json::{Value, json};

    fn lines(events: &Value) -> Vec<Line> {
        let events = events.as_array().unwrap();
        events
            .iter()
            .map(|event| event.as_object().unwrap().clone())
            .collect()
    }

    fn kinds(recovery: &Recovery) -> Vec<&str> {
        let kinds = recovery.events.iter();
        kinds.map(|event| event["type"].as_str().unwrap()).collect()
    }

    #[test]
    fn half_answer_ends_aborted_with_its_text() {
        let user = json!({"role": "user", "content": "Go", "timestamp": 1});
        let half = json!({"role": "assistant", "timestamp": 2, "stopReason": "stop", "content": [
            {"type": "text", "text": "half"}, {"type": "toolCall", "id": "c", "name": "bash", "arguments": {}}]});
        let events = json!([{"type": "agent_start"}, {"type": "turn_start"},
            {"type": "message_start", "message": user}, {"type": "message_end", "message": user},
            {"type": "message_start", "message": {"role": "assistant", "timestamp": 2}},
            {"type": "message_update", "message": half}]);
        let recovery = recover(&lines(&events), &[user], |_| true, 9);
        assert_eq!(recovery.messages.len(), 1);
        assert_eq!(recovery.messages[0]["stopReason"], "aborted");
        assert_eq!(
            recovery.messages[0]["content"],
            json!([{"type": "text", "text": "half"}])
        );
        assert_eq!(
            kinds(&recovery),
            ["message_end", "turn_end", "agent_end", "agent_settled"]
        );
        assert_eq!(recovery.events[2]["messages"].as_array().unwrap().len(), 2);
        assert_eq!(recovery.events[3]["aborted"], true);
    }

    #[test]
    fn run_without_its_first_events_ends_like_others() {
        let half = json!({"role": "assistant", "timestamp": 2, "stopReason": "stop", "content": [{"type": "text", "text": "half"}]});
        let events = json!([{"type": "message_update", "message": half}]);
        let recovery = recover(&lines(&events), &[], |_| true, 9);
        assert_eq!(recovery.messages[0]["content"], half["content"]);
        assert_eq!(
            kinds(&recovery),
            ["message_end", "turn_end", "agent_end", "agent_settled"]
        );
    }

    #[test]
    fn open_calls_get_results_about_their_start() {
        let answer = json!({"role": "assistant", "timestamp": 2, "stopReason": "toolUse", "content": [
            {"type": "toolCall", "id": "a", "name": "bash", "arguments": {}},
            {"type": "toolCall", "id": "b", "name": "bash", "arguments": {}},
            {"type": "toolCall", "id": "c", "name": "bash", "arguments": {}}]});
        let events = json!([{"type": "agent_start"}, {"type": "turn_start"},
            {"type": "message_start", "message": answer}, {"type": "message_end", "message": answer},
            {"type": "tool_execution_start", "toolCallId": "a", "toolName": "bash"},
            {"type": "tool_execution_start", "toolCallId": "b", "toolName": "bash"},
            {"type": "tool_execution_end", "toolCallId": "a", "toolName": "bash",
                "result": {"content": [{"type": "text", "text": "done"}]}, "isError": false}]);
        let recovery = recover(&lines(&events), &[answer], |id| id == "b", 9);
        let texts: Vec<&str> = recovery
            .messages
            .iter()
            .map(|result| result["content"][0]["text"].as_str().unwrap())
            .collect();
        assert_eq!(texts, ["done", MAY_HAVE_RUN, DID_NOT_RUN]);
        assert_eq!(
            kinds(&recovery)
                .iter()
                .filter(|kind| **kind == "tool_execution_end")
                .count(),
            1
        );
        assert_eq!(kinds(&recovery).last(), Some(&"agent_settled"));
    }

    #[test]
    fn stored_answer_is_announced_as_it_is_stored() {
        let begun = json!({"role": "assistant", "timestamp": 2, "stopReason": "stop", "content": []});
        let whole = json!({"role": "assistant", "timestamp": 2, "stopReason": "stop", "content": [{"type": "text", "text": "all"}]});
        let events = json!([{"type": "agent_start"}, {"type": "message_start", "message": begun}]);
        let recovery = recover(&lines(&events), std::slice::from_ref(&whole), |_| true, 9);
        assert!(recovery.messages.is_empty());
        assert_eq!(recovery.events[0]["message"], whole);
        assert_eq!(recovery.events.last().unwrap()["aborted"], false);
    }
}
