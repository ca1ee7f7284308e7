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

/// Why an answer or a retry ended.
const LOST: &str = "The worker was lost";

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
    /// Beginnings of the calls that have no end, also of calls that other calls made.
    calls: Vec<Line>,
    results: HashMap<String, Line>,
    run: bool,
    turn: bool,
    ended: Vec<Value>,
    compaction: Option<Value>,
    /// Number of the retry that has no end.
    retry: Option<Value>,
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
            "tool_execution_start" => self.calls.push(event.clone()),
            "tool_execution_end" => {
                self.calls.retain(|call| !same("toolCallId", call, event));
                self.results.insert(text("toolCallId").to_owned(), event.clone());
            }
            "compaction_start" => self.compaction = Some(field("reason")),
            "compaction_end" => self.compaction = None,
            "auto_retry_start" => self.retry = Some(field("attempt")),
            "auto_retry_end" => self.retry = None,
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
    let new = results(&log, &open, began, now);
    let results = [unannounced(&log, &open.ended), new.clone()].concat();
    recovery.events.extend(ends(&open.calls, &results));
    for result in results {
        for kind in ["message_start", "message_end"] {
            recovery.events.push(event(kind, [("message", result.clone())]));
        }
        open.ended.push(result);
    }
    recovery.messages.extend(new.iter().cloned());
    log.extend(new);
    close(&mut recovery, open, &log);
    recovery
}

/// Results of the last answer that the lost worker, or an owner after it, stored without announcing them.
fn unannounced(log: &[Value], ended: &[Value]) -> Vec<Value> {
    let is_known = |message: &Value| ended.iter().any(|known| is_same(known, message));
    let at = log.iter().rposition(is_assistant);
    let answer = at.and_then(|at| log.get(at..)?.split_first());
    // The results of an answer of another run have been announced.
    let Some((_, after)) = answer.filter(|(answer, _)| is_known(answer)) else {
        return Vec::new();
    };
    let results = after.iter().filter(|message| role(message) == "toolResult");
    results.filter(|result| !is_known(result)).cloned().collect()
}

/// The ends of calls whose beginning clients saw. A call that another call made ends before it.
fn ends(calls: &[Line], results: &[Value]) -> Vec<Line> {
    let (nested, own): (Vec<&Line>, Vec<&Line>) = calls
        .iter()
        .partition(|call| call.contains_key("parentToolCallId"));
    let end = |call: &Line| {
        let id = call.get("toolCallId");
        let result = results.iter().find(|result| result.get("toolCallId") == id);
        let member = |name: &str| result.and_then(|result| result.get(name)).cloned();
        let content = member("content").unwrap_or_else(|| json!([{"type": "text", "text": MAY_HAVE_RUN}]));
        let mut end = event(
            "tool_execution_end",
            [
                ("toolCallId", id.cloned().unwrap_or_default()),
                ("toolName", call.get("toolName").cloned().unwrap_or_default()),
                ("result", json!({"content": content})),
                ("isError", member("isError").unwrap_or(json!(true))),
            ],
        );
        let parent = call.get("parentToolCallId");
        end.extend(parent.map(|parent| ("parentToolCallId".to_owned(), parent.clone())));
        end
    };
    nested.into_iter().chain(own).map(end).collect()
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
    if let Some(attempt) = open.retry {
        recovery.events.push(event(
            "auto_retry_end",
            [
                ("success", json!(false)),
                ("attempt", attempt),
                ("finalError", json!(LOST)),
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
    let mut last = log.iter().rev().take(64);
    last.find(|other| is_same(other, message)).cloned()
}

/// Returns true for two forms of one message.
fn is_same(one: &Value, other: &Value) -> bool {
    ["role", "timestamp", "toolCallId"]
        .iter()
        .all(|name| one.get(name) == other.get(name))
}

fn same(name: &str, one: &Line, other: &Line) -> bool {
    one.get(name) == other.get(name)
}

/// An answer as far as it came. Unfinished calls cannot run, and thinking without its signature is refused by providers.
fn aborted(mut message: Value) -> Value {
    if let Some(content) = message.get_mut("content").and_then(Value::as_array_mut) {
        content.retain(|block| block.get("type").and_then(Value::as_str) == Some("text"));
    }
    if let Some(message) = message.as_object_mut() {
        message.insert("stopReason".to_owned(), json!("aborted"));
        message.insert("errorMessage".to_owned(), json!(LOST));
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
    fn stored_result_ends_its_call() {
        let call = |id: &str| json!({"type": "toolCall", "id": id, "name": "ls", "arguments": {}});
        let before =
            json!({"role": "assistant", "timestamp": 2, "stopReason": "toolUse", "content": [call("old")]});
        let old = json!({"role": "toolResult", "timestamp": 3, "toolCallId": "old", "toolName": "ls", "content": [], "isError": false});
        let answer =
            json!({"role": "assistant", "timestamp": 5, "stopReason": "toolUse", "content": [call("a")]});
        let result = json!({"role": "toolResult", "timestamp": 6, "toolCallId": "a", "toolName": "ls",
            "content": [{"type": "text", "text": "files"}], "isError": false});
        let begun = json!([{"type": "agent_start"}, {"type": "turn_start"}]);
        // Nothing of this run is stored: the results are those of another run.
        let recovery = recover(&lines(&begun), &[before, old], |_| true, 9);
        assert_eq!(kinds(&recovery), ["turn_end", "agent_end", "agent_settled"]);
        let mut events = lines(&begun);
        events.extend(lines(&json!([
            {"type": "message_start", "message": answer}, {"type": "message_end", "message": answer},
            {"type": "tool_execution_start", "toolCallId": "a", "toolName": "ls"}])));
        // The worker stored the result, and was lost before it announced it.
        let recovery = recover(&events, &[answer, result.clone()], |_| true, 9);
        assert!(recovery.messages.is_empty());
        let end = json!({"type": "tool_execution_end", "toolCallId": "a", "toolName": "ls",
            "result": {"content": [{"type": "text", "text": "files"}]}, "isError": false});
        assert_eq!(json!(recovery.events[0]), end);
        assert_eq!(recovery.events[2]["message"], result);
        assert_eq!(
            kinds(&recovery)[..4],
            ["tool_execution_end", "message_start", "message_end", "turn_end"]
        );
    }

    #[test]
    fn nested_calls_and_retries_end() {
        let answer = json!({"role": "assistant", "timestamp": 2, "stopReason": "toolUse", "content": [
            {"type": "toolCall", "id": "a", "name": "task", "arguments": {}}]});
        let events = json!([{"type": "agent_start"}, {"type": "auto_retry_start", "attempt": 1}, {"type": "turn_start"},
            {"type": "message_start", "message": answer}, {"type": "message_end", "message": answer},
            {"type": "tool_execution_start", "toolCallId": "a", "toolName": "task"},
            {"type": "tool_execution_start", "toolCallId": "b", "toolName": "bash", "parentToolCallId": "a"}]);
        let recovery = recover(&lines(&events), &[answer], |_| true, 9);
        assert_eq!(recovery.events[0]["toolCallId"], "b");
        assert_eq!(recovery.events[0]["parentToolCallId"], "a");
        assert_eq!(recovery.events[0]["result"]["content"][0]["text"], MAY_HAVE_RUN);
        assert_eq!(recovery.events[1]["toolCallId"], "a");
        assert_eq!(recovery.events[1].get("parentToolCallId"), None);
        let retry = json!({"type": "auto_retry_end", "success": false, "attempt": 1, "finalError": "The worker was lost"});
        assert!(recovery.events.iter().any(|event| json!(event) == retry));
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
