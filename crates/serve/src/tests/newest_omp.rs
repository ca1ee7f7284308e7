//! Forms that only clients of today's oh-my-pi see (dialects.md 14.1).

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use wire::message::StopReason;
use wire::omp::{SILENT_ANSWER, StateWithPrompt};
use wire::reply::Messages;
use wire::state::{BashResult, SessionState};
use wire::subagent::{SubagentEvent, SubagentLevel, SubagentSubscription};
use wire::{AssistantMessage, Dialect, Event, Message, Reply, Response, StreamEvent, Usage};

use crate::connection::NegotiatedOptions;
use crate::encode::Encoder;
use crate::manner::Spoken;

fn encoder(dialect: Dialect) -> Encoder {
    Encoder::speaking(Spoken::new(dialect))
}

fn lines(out: &[u8]) -> Vec<Value> {
    let lines = out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
}

fn answer(stop_reason: StopReason) -> Arc<Message> {
    let answer = AssistantMessage {
        stop_reason,
        ..AssistantMessage::begin("api", "p", "m", 0)
    };
    Arc::new(Message::Assistant(answer))
}

fn thinking(content_index: usize, text: &str) -> StreamEvent {
    StreamEvent::ThinkingDelta {
        content_index,
        delta: text.to_owned(),
    }
}

fn text(content_index: usize, text: &str) -> StreamEvent {
    StreamEvent::TextDelta {
        content_index,
        delta: text.to_owned(),
    }
}

fn thinking_end(text: &str) -> StreamEvent {
    StreamEvent::ThinkingEnd {
        content_index: 0,
        content: text.to_owned(),
    }
}

/// The kinds of the steps of an answer that ends with this reason, and the texts of the ends of blocks.
fn steps(dialect: Dialect, steps: Vec<StreamEvent>, stop_reason: StopReason) -> (Vec<String>, Vec<Value>) {
    let (mut encoder, now, mut out) = (encoder(dialect), Instant::now(), Vec::new());
    let message = answer(StopReason::Stop);
    encoder.event(&Event::MessageStart { message }, now, &mut out);
    for assistant_message_event in steps {
        let usage = Usage::default();
        let event = Event::MessageUpdate {
            usage,
            assistant_message_event,
        };
        encoder.event(&event, now, &mut out);
    }
    let message = answer(stop_reason);
    encoder.event(&Event::MessageEnd { message }, now, &mut out);
    let lines = lines(&out);
    let events: Vec<&Value> = lines.iter().map(|line| &line["assistantMessageEvent"]).collect();
    let kinds = events.iter().filter_map(|event| event["type"].as_str());
    let ends = events.iter().filter(|event| event["content"].is_string());
    (
        kinds.map(str::to_owned).collect(),
        ends.map(|event| event["content"].clone()).collect(),
    )
}

#[test]
fn reasoning_ends_when_text_begins() {
    let run = || {
        vec![
            StreamEvent::ThinkingStart { content_index: 0 },
            thinking(0, "h"),
            thinking(0, "m"),
            StreamEvent::TextStart { content_index: 1 },
            text(1, "Yes"),
            thinking_end("hm"),
            StreamEvent::TextEnd {
                content_index: 1,
                content: "Yes".to_owned(),
            },
        ]
    };
    let (kinds, ends) = steps(Dialect::OmpNow, run(), StopReason::Stop);
    let expected = [
        "thinking_start",
        "thinking_delta",
        "thinking_end",
        "text_start",
        "text_delta",
        "text_end",
    ];
    assert_eq!(kinds, expected);
    assert_eq!(ends, [json!("hm"), json!("Yes")]);
    let (kinds, _) = steps(Dialect::Pi, run(), StopReason::Stop);
    assert_eq!(
        kinds[2], "text_start",
        "other dialects get the ends of the provider"
    );
}

#[test]
fn continued_block_has_second_end() {
    let run = vec![
        StreamEvent::ThinkingStart { content_index: 0 },
        thinking(0, "h"),
        StreamEvent::TextStart { content_index: 1 },
        thinking(0, "m"),
        thinking_end("hm"),
    ];
    let (kinds, ends) = steps(Dialect::OmpNow, run, StopReason::Stop);
    assert_eq!(kinds.iter().filter(|kind| *kind == "thinking_end").count(), 2);
    assert_eq!(ends, [json!("h"), json!("hm")]);
}

#[test]
fn error_ends_block_but_abort_does_not() {
    let run = || vec![StreamEvent::TextStart { content_index: 0 }, text(0, "Half")];
    let ends = |dialect, stop_reason| steps(dialect, run(), stop_reason).1;
    assert_eq!(ends(Dialect::OmpNow, StopReason::Error), [json!("Half")]);
    assert_eq!(ends(Dialect::OmpNow, StopReason::Aborted), [] as [Value; 0]);
    assert_eq!(ends(Dialect::Pi, StopReason::Error), [] as [Value; 0]);
}

fn respond(dialect: Dialect, command: &str, reply: Reply) -> Value {
    let response = Response {
        id: None,
        command: Some(command.into()),
        outcome: Ok(reply),
    };
    let mut out = Vec::new();
    encoder(dialect).response(&response, Instant::now(), &mut out);
    lines(&out).remove(0)
}

fn refuse(dialect: Dialect, command: &str, error: &str) -> Value {
    let response = Response {
        id: None,
        command: Some(command.into()),
        outcome: Err(error.to_owned()),
    };
    let mut out = Vec::new();
    encoder(dialect).response(&response, Instant::now(), &mut out);
    lines(&out).remove(0)
}

fn idle_state() -> SessionState {
    let state = json!({
        "model": null, "thinkingLevel": "off", "isStreaming": false, "isCompacting": false, "isRetrying": false,
        "queueMode": "all", "steeringMode": "all", "followUpMode": "all", "interruptMode": "wait",
        "sessionFile": null, "sessionId": "s", "autoCompactionEnabled": true, "messageCount": 2,
        "pendingMessageCount": 0, "queuedMessageCount": 0, "todoPhases": [],
    });
    serde_json::from_value(state).unwrap()
}

#[test]
fn prompt_in_state_is_for_omp_only() {
    let state = |dialect| {
        let shown = StateWithPrompt {
            state: idle_state(),
            system_prompt: vec!["Be kind.".to_owned()],
            dump_tools: Vec::new(),
        };
        respond(dialect, "get_state", Reply::from(shown))["data"].clone()
    };
    let shown = state(Dialect::OmpNow);
    assert_eq!(shown["systemPrompt"], json!(["Be kind."]));
    assert_eq!(
        (&shown["dumpTools"], &shown["isSettled"]),
        (&json!([]), &json!(true))
    );
    let plain = serde_json::to_value(idle_state()).unwrap();
    assert_eq!(state(Dialect::Pi), plain);
}

#[test]
fn state_tells_speed_of_newest_answer() {
    let state = idle_state();
    let (mut encoder, now) = (encoder(Dialect::OmpNow), Instant::now());
    let mut speed = |ended: Option<(u64, Option<u64>)>| {
        let mut out = Vec::new();
        if let Some((output, duration_ms)) = ended {
            let answer = AssistantMessage {
                usage: Usage {
                    output,
                    ..Usage::default()
                },
                duration_ms,
                ..AssistantMessage::begin("api", "p", "m", 0)
            };
            let message = Arc::new(Message::Assistant(answer));
            encoder.event(&Event::MessageEnd { message }, now, &mut out);
        }
        out.clear();
        let response = Response {
            id: None,
            command: Some("get_state".into()),
            outcome: Ok(Reply::State(Box::new(state.clone()))),
        };
        encoder.response(&response, now, &mut out);
        lines(&out)[0]["data"]["tokensPerSecond"].clone()
    };
    assert_eq!(speed(None), Value::Null);
    assert_eq!(speed(Some((30, Some(1_500)))), json!(20.0));
    assert_eq!(speed(None), json!(20.0));
    assert_eq!(speed(Some((30, Some(99)))), Value::Null, "too short for a figure");
    assert_eq!(speed(Some((30, None))), Value::Null);
}

#[test]
fn unknown_entry_is_called_cursor() {
    let shown = refuse(Dialect::OmpNow, "get_entries", "Entry not found: x");
    assert_eq!(
        (&shown["error"], &shown["code"]),
        (&json!("Unknown entries cursor: x"), &json!("unknown_since"))
    );
    let other = refuse(Dialect::OmpNow, "navigate_tree", "Entry not found: x");
    assert_eq!(other["error"], "Entry not found: x");
    let pi = refuse(Dialect::Pi, "get_entries", "Entry not found: x");
    assert_eq!(
        (&pi["error"], &pi["code"]),
        (&json!("Entry not found: x"), &Value::Null)
    );
}

#[test]
fn filter_leaves_out_events_of_other_dialects() {
    let names = ["retry_fallback_succeeded".to_owned()];
    let options = NegotiatedOptions::new(Spoken::new(Dialect::OmpNow).manner()).filtered(Some(&names));
    for event in [
        "queue_update",
        "bash_execution_start",
        "bash_execution_update",
        "process_output",
        "entry_appended",
    ] {
        assert!(!options.wants(event), "{event}");
    }
    for event in [
        "model_fallback",
        "extension_ui_request",
        "host_tool_call",
        "storage_status",
    ] {
        assert!(options.wants(event), "{event}");
    }
}

#[test]
fn fallback_model_has_events_of_omp() {
    let told = |dialect| {
        let (mut encoder, now, mut out) = (encoder(dialect), Instant::now(), Vec::new());
        let fallback = Event::ModelFallback {
            from: "p/one".to_owned(),
            to: "p/two".to_owned(),
            reason: "529".to_owned(),
        };
        let reasons = [StopReason::Error, StopReason::Stop, StopReason::Stop];
        let ends = reasons.map(|reason| Event::MessageEnd {
            message: answer(reason),
        });
        for event in std::iter::once(fallback).chain(ends) {
            encoder.event(&event, now, &mut out);
        }
        lines(&out)
    };
    let kinds = |lines: &[Value]| -> Vec<String> {
        let kinds = lines.iter().filter_map(|line| line["type"].as_str());
        kinds.map(str::to_owned).collect()
    };
    for dialect in [Dialect::OmpNow, Dialect::Xcsh] {
        let lines = told(dialect);
        let expected = [
            "model_fallback",
            "retry_fallback_applied",
            "message_end",
            "message_end",
            "retry_fallback_succeeded",
            "message_end",
        ];
        assert_eq!(kinds(&lines), expected, "{dialect:?}");
        let applied = json!({"type": "retry_fallback_applied", "from": "p/one", "to": "p/two", "role": "default", "reason": "529"});
        assert_eq!(lines[1], applied);
        assert_eq!(lines[4]["model"], "p/two");
    }
    let pi = ["model_fallback", "message_end", "message_end", "message_end"];
    assert_eq!(kinds(&told(Dialect::Pi)), pi);
}

#[test]
fn aborted_command_has_line_before_output() {
    let output = |dialect, cancelled| {
        let result = BashResult {
            output: "begun".to_owned(),
            exit_code: None,
            cancelled,
            truncated: false,
            full_output_path: None,
            counts: None,
        };
        respond(dialect, "bash", Reply::Bash(result))["data"]["output"].clone()
    };
    assert_eq!(output(Dialect::OmpNow, true), "[Command cancelled]\nbegun");
    assert_eq!(output(Dialect::OmpNow, false), "begun");
    assert_eq!(output(Dialect::Xcsh, true), "begun");
}

#[test]
fn message_after_silent_answer_is_of_developer() {
    let shown = |dialect| {
        let line = json!({"role": "custom", "customType": SILENT_ANSWER, "content": "More.", "display": false, "timestamp": 1});
        let message = Message::from_json(&line.to_string()).unwrap();
        let messages = Messages {
            messages: vec![Arc::new(message)],
        };
        respond(dialect, "get_messages", Reply::Messages(messages))["data"]["messages"][0].clone()
    };
    let content = json!([{"type": "text", "text": "More."}]);
    assert_eq!(
        shown(Dialect::OmpNow),
        json!({"role": "developer", "content": content, "timestamp": 1})
    );
    assert_eq!(shown(Dialect::Xcsh)["role"], "custom");
}

fn of_subagent(id: &str, event: Event) -> Event {
    let payload = Box::new(SubagentEvent {
        id: id.to_owned(),
        parent_tool_call_id: "call".to_owned(),
        event: Arc::new(event),
    });
    Event::SubagentEvent { payload }
}

fn update(assistant_message_event: StreamEvent) -> Event {
    Event::MessageUpdate {
        usage: Usage::default(),
        assistant_message_event,
    }
}

/// The lines of two sub-agents that say `Hello` and `Bye` at the same time.
fn told_of_two_subagents(dialect: Dialect) -> Vec<Value> {
    let (mut encoder, now, mut out) = (encoder(dialect), Instant::now(), Vec::new());
    let start = || Event::MessageStart {
        message: answer(StopReason::Stop),
    };
    let begin = || update(StreamEvent::TextStart { content_index: 0 });
    let events = [
        ("a-0", Event::AgentStart),
        ("b-1", Event::AgentStart),
        ("a-0", start()),
        ("b-1", start()),
        ("a-0", begin()),
        ("b-1", begin()),
        ("a-0", update(text(0, "Hel"))),
        ("b-1", update(text(0, "Bye"))),
        ("a-0", update(text(0, "lo"))),
    ];
    for (id, event) in events {
        encoder.event(&of_subagent(id, event), now, &mut out);
    }
    encoder.flush_due(now, &mut out);
    assert_eq!((encoder.held_back(), encoder.next_deadline()), (0, None));
    let settled = Event::AgentSettled { aborted: false };
    encoder.event(&of_subagent("a-0", settled), now, &mut out);
    lines(&out)
}

#[test]
fn events_of_subagents_repeat_their_own_message() {
    let lines = told_of_two_subagents(Dialect::OmpNow);
    // A host waits for these lines about its own prompt.
    assert!(lines.iter().all(|line| line["type"] == "subagent_event"));
    let newest = |id: &str| {
        let mut payloads = lines.iter().rev().map(|line| &line["payload"]);
        let found = payloads.find(|payload| payload["id"] == id && payload["event"]["message"].is_object());
        found.unwrap().clone()
    };
    for (id, text) in [("a-0", "Hello"), ("b-1", "Bye")] {
        let payload = newest(id);
        assert_eq!(payload["parentToolCallId"], "call");
        let event = &payload["event"];
        assert_eq!(event["type"], "message_update");
        assert_eq!(event["message"]["content"][0]["text"], text);
        assert_eq!(event["assistantMessageEvent"]["delta"], text);
        assert_eq!(event["assistantMessageEvent"]["partial"], event["message"]);
    }
    let lines = told_of_two_subagents(Dialect::Pi);
    let updates = lines.iter().map(|line| &line["payload"]["event"]);
    let mut updates = updates.filter(|event| event["type"] == "message_update");
    assert!(
        updates.all(|event| event["message"].is_null()),
        "other dialects get the new text alone"
    );
}

#[test]
fn events_of_subagents_left_out_stay_out() {
    let (mut encoder, now, mut out) = (encoder(Dialect::OmpNow), Instant::now(), Vec::new());
    let message = answer(StopReason::Stop);
    for event in [Event::MessageStart { message }, update(text(0, "Hello"))] {
        encoder.follow(&of_subagent("a-0", event), now, &mut out);
    }
    assert_eq!(encoder.held_back(), 0);
    encoder.flush(now, &mut out);
    assert!(out.is_empty(), "{:?}", lines(&out));
}

#[test]
fn new_subscription_continues_no_earlier_answer() {
    let (mut encoder, now, mut out) = (encoder(Dialect::OmpNow), Instant::now(), Vec::new());
    let message = answer(StopReason::Stop);
    for event in [Event::MessageStart { message }, update(text(0, "Earlier."))] {
        encoder.event(&of_subagent("a-0", event), now, &mut out);
    }
    let level = SubagentLevel::Off;
    let off = Response {
        id: None,
        command: None,
        outcome: Ok(Reply::SubagentSubscription(SubagentSubscription { level })),
    };
    encoder.response(&off, now, &mut out);
    out.clear();
    encoder.event(&of_subagent("a-0", update(text(0, "Later."))), now, &mut out);
    encoder.flush(now, &mut out);
    let written = String::from_utf8(out).unwrap();
    assert!(
        written.contains("Later.") && !written.contains("Earlier."),
        "{written}"
    );
}
