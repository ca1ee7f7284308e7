//! Events to lines: what every line must hold, that nothing is lost by merging, and what it costs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use wire::{AssistantMessage, Event, Message, StreamEvent, ToolCall, Usage};

use crate::encode::{Encoder, Form};
use crate::limits::ANNOUNCED_BYTES;

fn head() -> AssistantMessage {
    let mut message =
        AssistantMessage::begin("anthropic-messages", "mock", "claude-\"mock\"", 1_700_000_000_000);
    message.response_id = Some("msg_1".to_owned());
    message
}

fn start() -> Event {
    Event::MessageStart {
        message: Arc::new(Message::Assistant(head())),
    }
}

fn end() -> Event {
    Event::MessageEnd {
        message: Arc::new(Message::Assistant(head())),
    }
}

fn update(event: StreamEvent) -> Event {
    Event::MessageUpdate {
        usage: Usage {
            output: 3,
            ..Usage::default()
        },
        assistant_message_event: event,
    }
}

fn text(content_index: usize, delta: &str) -> Event {
    update(StreamEvent::TextDelta {
        content_index,
        delta: delta.to_owned(),
    })
}

fn call_delta(content_index: usize, delta: &str) -> Event {
    update(StreamEvent::ToolcallDelta {
        content_index,
        delta: delta.to_owned(),
    })
}

fn parse(bytes: &[u8]) -> Vec<Value> {
    assert!(bytes.is_empty() || bytes.ends_with(b"\n"));
    bytes
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| {
            serde_json::from_slice(line)
                .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(line)))
        })
        .collect()
}

/// Encodes all events at one moment; with `each` every event is a batch of its own.
fn encode(form: Form, events: &[Event], each: bool) -> Vec<u8> {
    let now = Instant::now();
    let mut encoder = Encoder::new(form);
    let mut out = Vec::new();
    for event in events {
        encoder.event(event, now, &mut out);
        if each {
            encoder.flush_due(now, &mut out);
        }
    }
    encoder.flush(now, &mut out);
    assert_eq!((encoder.next_deadline(), encoder.held_back()), (None, 0));
    out
}

fn a_whole_answer() -> Vec<Event> {
    let call = ToolCall {
        id: "c\"1".to_owned(),
        name: "bash".to_owned(),
        arguments: json!({"command": "ls \u{1F600}", "n": 1.5})
            .as_object()
            .unwrap()
            .clone(),
        thought_signature: Some("sig".to_owned()),
        extra: wire::Extra::default(),
    };
    vec![
        start(),
        update(StreamEvent::ThinkingStart { content_index: 0 }),
        update(StreamEvent::ThinkingDelta {
            content_index: 0,
            delta: "hm\n".to_owned(),
        }),
        update(StreamEvent::ThinkingEnd {
            content_index: 0,
            content: "hm\n".to_owned(),
        }),
        update(StreamEvent::TextStart { content_index: 1 }),
        text(1, "a\"b\\c\u{1}\u{2028}"),
        text(1, "\u{1F600}\t"),
        update(StreamEvent::TextEnd {
            content_index: 1,
            content: "another final text".to_owned(),
        }),
        update(StreamEvent::ToolcallStart {
            content_index: 2,
            id: "c\"1".to_owned(),
            tool_name: "bash".to_owned(),
        }),
        call_delta(2, "{\"command\": \"ls \\ud83d"),
        call_delta(2, "\\ude00\",\"n\":1.5}"),
        update(StreamEvent::ToolcallEnd {
            content_index: 2,
            tool_call: call,
        }),
        end(),
        Event::AgentSettled { aborted: false },
    ]
}

/// Encodes as for a writer of repeats: the batches as the reader gets them, and the capacity of the largest one.
fn encode_repeating(events: &[Event]) -> (Vec<u8>, usize) {
    let now = Instant::now();
    let mut encoder = Encoder::new(Form::Cumulative);
    encoder.share_long_text();
    let (mut all, mut most) = (Vec::new(), 0);
    for event in events {
        // Deltas before an event get a batch of their own, as from the writer.
        let mut deltas = Vec::new();
        encoder.flush_before(event, now, &mut deltas);
        encoder.take_repeats().write(&deltas, &mut all).unwrap();
        let mut batch = Vec::new();
        encoder.event(event, now, &mut batch);
        encoder.flush_due(now, &mut batch);
        encoder.take_repeats().write(&batch, &mut all).unwrap();
        most = most.max(deltas.capacity()).max(batch.capacity());
    }
    (all, most)
}

#[test]
fn long_update_does_not_copy_its_text() {
    const PIECE: usize = 100_000;
    let pieces = 20;
    let piece = "a\"b\u{e9}\n".repeat(PIECE / 6);
    let mut events = vec![start(), update(StreamEvent::TextStart { content_index: 0 })];
    events.extend((0..pieces).map(|_| text(0, &piece)));
    events.extend([
        update(StreamEvent::TextEnd {
            content_index: 0,
            content: piece.repeat(pieces),
        }),
        update(StreamEvent::ThinkingStart { content_index: 1 }),
        update(StreamEvent::ThinkingEnd {
            content_index: 1,
            content: piece.repeat(pieces),
        }),
        end(),
    ]);
    let (all, most) = encode_repeating(&events);
    let now = Instant::now();
    let mut plain = Encoder::new(Form::Cumulative);
    let mut expected = Vec::new();
    for event in &events {
        plain.flush_before(event, now, &mut expected);
        plain.event(event, now, &mut expected);
        plain.flush_due(now, &mut expected);
    }
    assert!(all == expected, "the reader gets the same bytes");
    let lines = parse(&all);
    let last = lines.iter().rev().nth(1).unwrap();
    assert_eq!(last["message"], last["assistantMessageEvent"]["partial"]);
    assert_eq!(last["message"]["content"][1]["thinking"], piece.repeat(pieces));
    // Deltas that waited are in a batch, and no copy of the answer.
    let mut escaped = Vec::new();
    crate::encode::escape(&mut escaped, &piece.repeat(pieces));
    assert!(
        most < escaped.len() * 3 / 2,
        "{most} for two texts of {}",
        escaped.len()
    );
}

#[test]
fn cumulative_updates_keep_key_order_of_pi() {
    let bytes = encode(Form::Cumulative, &a_whole_answer(), true);
    let line = String::from_utf8(bytes).unwrap();
    let line = line.lines().nth(5).unwrap();
    let content = r#"[{"type":"thinking","thinking":"hm\n"},{"type":"text","text":"a\"b\\c\u0001"#.to_owned()
        + "\u{2028}\"}]";
    let usage = r#"{"input":0,"output":3,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}"#;
    let message = format!(
        r#"{{"role":"assistant","content":{content},"api":"anthropic-messages","provider":"mock","model":"claude-\"mock\"","usage":{usage},"stopReason":"stop","timestamp":1700000000000,"responseId":"msg_1"}}"#
    );
    let delta = r#"a\"b\\c\u0001"#.to_owned() + "\u{2028}";
    assert_eq!(
        line,
        format!(
            r#"{{"type":"message_update","assistantMessageEvent":{{"type":"text_delta","contentIndex":1,"delta":"{delta}","partial":{message}}},"message":{message},"usage":{usage}}}"#
        )
    );
}

#[test]
fn cumulative_updates_show_partial_answer() {
    let lines = parse(&encode(Form::Cumulative, &a_whole_answer(), true));
    let updates: Vec<&Value> = lines
        .iter()
        .filter(|line| line["type"] == "message_update")
        .collect();
    assert_eq!(updates.len(), 11);
    for update in &updates {
        assert_eq!(update["assistantMessageEvent"]["partial"], update["message"]);
        // What a client reads is a message like any other.
        let message = Message::from_json(&update["message"].to_string()).unwrap();
        assert_eq!(message.as_assistant().unwrap().usage.output, 3);
    }
    let content = |at: usize| &updates[at]["message"]["content"];
    assert_eq!(content(0), &json!([{"type": "thinking", "thinking": ""}]));
    assert_eq!(content(5)[1]["text"], "a\"b\\c\u{1}\u{2028}\u{1F600}\t");
    assert_eq!(content(6)[1]["text"], "another final text");
    assert_eq!(updates[7]["assistantMessageEvent"]["id"], "c\"1");
    assert_eq!(updates[7]["assistantMessageEvent"]["toolName"], "bash");
    assert_eq!(
        content(7)[2],
        json!({"type": "toolCall", "id": "c\"1", "name": "bash", "arguments": {}})
    );
    assert_eq!(content(8)[2]["arguments"], json!({"command": "ls "}));
    assert_eq!(
        content(9)[2]["arguments"],
        json!({"command": "ls \u{1F600}", "n": 1.5})
    );
    let done = json!({"type": "toolCall", "id": "c\"1", "name": "bash",
        "arguments": {"command": "ls \u{1F600}", "n": 1.5}, "thoughtSignature": "sig"});
    assert_eq!(content(10)[2], done);
    assert_eq!(updates[10]["assistantMessageEvent"]["toolCall"], done);
    assert_eq!(lines.last().unwrap()["type"], "agent_settled");
}

#[test]
fn delta_updates_contain_only_new_content() {
    let bytes = encode(Form::Delta, &a_whole_answer(), true);
    assert!(String::from_utf8_lossy(&bytes).contains("{\"type\":\"message_update\",\"usage\":{\"input\":0,"));
    let lines = parse(&bytes);
    let kinds: Vec<&str> = lines
        .iter()
        .filter_map(|line| line["assistantMessageEvent"]["type"].as_str())
        .collect();
    assert_eq!(
        kinds,
        [
            "thinking_start",
            "thinking_delta",
            "thinking_end",
            "text_start",
            "text_delta",
            "text_delta",
            "text_end",
            "toolcall_start",
            "toolcall_delta",
            "toolcall_delta",
            "toolcall_end"
        ]
    );
    for line in &lines[1..12] {
        let keys: Vec<&String> = line.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["type", "usage", "assistantMessageEvent"]);
        assert!(line["assistantMessageEvent"].get("partial").is_none());
    }
}

#[test]
fn batched_deltas_merge_without_reordering() {
    for form in [Form::Cumulative, Form::Delta] {
        let events = [
            start(),
            text(0, "a"),
            text(0, "b"),
            Event::TurnStart,
            text(0, "c"),
            text(1, "d"),
            text(0, "e"),
        ];
        let lines = parse(&encode(form, &events, false));
        let seen: Vec<&str> = lines
            .iter()
            .map(|line| {
                line["assistantMessageEvent"]["delta"]
                    .as_str()
                    .or(line["type"].as_str())
                    .unwrap()
            })
            .collect();
        assert_eq!(seen, ["message_start", "ab", "turn_start", "c", "d", "e"]);
    }
}

#[test]
fn answer_without_start_is_shown_sparse_indexes_harmless() {
    let events = [
        text(usize::MAX, "x"),
        call_delta(7, "{\"a\":1"),
        text(7, "lost"),
        end(),
        text(0, "y"),
    ];
    let lines = parse(&encode(Form::Cumulative, &events, false));
    let content = &lines[1]["message"]["content"];
    assert_eq!(content[0]["text"], "x");
    assert_eq!(content[1]["arguments"], json!({"a": 1}));
    assert_eq!(
        lines.last().unwrap()["message"]["content"],
        json!([{"type": "text", "text": "y"}])
    );
}

#[test]
fn message_start_with_content_is_continued() {
    let mut message = head();
    message.content.push(wire::AssistantBlock::text("before"));
    let events = [
        Event::MessageStart {
            message: Arc::new(Message::Assistant(message)),
        },
        text(1, "after"),
    ];
    let lines = parse(&encode(Form::Cumulative, &events, true));
    assert_eq!(
        lines[1]["message"]["content"],
        json!([{"type": "text", "text": "before"}, {"type": "text", "text": "after"}])
    );
}

/// Bytes written for `count` deltas of 20 bytes that come one by one in no time.
fn burst(count: usize, make: impl Fn(usize) -> Event) -> (usize, Vec<u8>) {
    let mut events = vec![start()];
    events.extend((0..count).map(make));
    (count * 20, encode(Form::Cumulative, &events, true))
}

fn merged(lines: &[Value], index: usize) -> String {
    lines
        .iter()
        .map(|line| &line["assistantMessageEvent"])
        .filter(|event| event["contentIndex"] == index)
        .filter_map(|event| event["delta"].as_str())
        .collect()
}

#[test]
fn fast_burst_costs_linear_bytes() {
    let twenty = |at: usize| format!("{at:019} ");
    let (size, bytes) = burst(20_000, |at| text(0, &twenty(at)));
    assert!(bytes.len() <= 64 * size, "{} times", bytes.len() / size);
    let whole: String = (0..20_000).map(twenty).collect();
    assert_eq!(merged(&parse(&bytes), 0), whole);
    // Twice the answer, about twice the bytes: the cost is linear.
    let (_, double) = burst(40_000, |at| text(0, &twenty(at)));
    assert!(
        double.len() <= bytes.len() * 9 / 4,
        "{} after {}",
        double.len(),
        bytes.len()
    );
}

#[test]
fn interleaved_blocks_cost_linear_bytes() {
    let (size, bytes) = burst(20_000, |at| text(at % 4, "12345678901234567890"));
    assert!(bytes.len() <= 128 * size, "{} times", bytes.len() / size);
    let lines = parse(&bytes);
    for index in 0..4 {
        assert_eq!(merged(&lines, index), "12345678901234567890".repeat(5_000));
    }
}

#[test]
fn large_call_arguments_stay_linear_and_valid() {
    let piece = "1\\n2\\\"\\\\34\\u00e9567";
    assert_eq!(piece.len(), 19);
    let (size, bytes) = burst(20_000, |at| {
        call_delta(
            0,
            if at == 0 {
                "{\"path\":\"x\",\"content\":\""
            } else {
                piece
            },
        )
    });
    assert!(bytes.len() <= 64 * size, "{} times", bytes.len() / size);
    let mut before = 0;
    for line in parse(&bytes).iter().skip(1) {
        let content = line["message"]["content"][0]["arguments"]["content"]
            .as_str()
            .unwrap();
        assert!(content.len() >= before);
        before = content.len();
    }
    assert_eq!(before, 19_999 * 12);
}

/// Bytes of an answer of so many blocks, and the lines written for it; each block is a tool call, or a text.
fn many_blocks(count: usize, is_call: bool) -> (usize, Vec<u8>) {
    let now = Instant::now();
    let mut encoder = Encoder::new(Form::Cumulative);
    let (mut out, mut size) = (Vec::new(), 0);
    let mut say = |encoder: &mut Encoder, event: &Event| encoder.event(event, now, &mut out);
    say(&mut encoder, &start());
    for index in 0..count {
        let content = format!("text number {index} of a few words more than nothing");
        let [begin, end] = if is_call {
            let arguments = json!({ "path": content }).as_object().unwrap().clone();
            let call = ToolCall {
                id: format!("call_{index}"),
                name: "read".to_owned(),
                arguments,
                thought_signature: None,
                extra: wire::Extra::default(),
            };
            [
                StreamEvent::ToolcallStart {
                    content_index: index,
                    id: call.id.clone(),
                    tool_name: call.name.clone(),
                },
                StreamEvent::ToolcallEnd {
                    content_index: index,
                    tool_call: call,
                },
            ]
        } else {
            [
                StreamEvent::TextStart { content_index: index },
                StreamEvent::TextEnd {
                    content_index: index,
                    content: content.clone(),
                },
            ]
        };
        say(&mut encoder, &update(begin));
        if is_call {
            say(
                &mut encoder,
                &call_delta(index, &json!({ "path": content }).to_string()),
            );
        } else {
            say(&mut encoder, &text(index, &content));
        }
        say(&mut encoder, &update(end));
        size += content.len() + 50;
    }
    say(&mut encoder, &Event::TurnStart);
    (size, out)
}

#[test]
fn answer_of_many_blocks_costs_linear_bytes() {
    for is_call in [true, false] {
        let (size, bytes) = many_blocks(2_000, is_call);
        let (_, double) = many_blocks(4_000, is_call);
        assert!(
            bytes.len() <= ANNOUNCED_BYTES + 160 * size,
            "{} of {size}",
            bytes.len()
        );
        assert!(
            double.len() <= bytes.len() * 9 / 4,
            "{} after {}",
            double.len(),
            bytes.len()
        );
        // Every block that is announced has a start, its whole text or call, and an end; the first ones are.
        let kind = if is_call { "toolcall" } else { "text" };
        let mut open = std::collections::BTreeMap::new();
        let lines = parse(&bytes);
        for line in lines.iter().filter(|line| line["type"] == "message_update") {
            let event = &line["assistantMessageEvent"];
            let index = event["contentIndex"].as_u64().unwrap();
            let stage = event["type"].as_str().unwrap().strip_prefix(kind).unwrap();
            open.entry(index).or_insert_with(String::new).push_str(stage);
        }
        assert!((0..40).all(|index| open.contains_key(&index)), "{open:?}");
        assert!(open.len() < 2_000);
        assert!(
            open.values().all(|stages| stages == "_start_delta_end"),
            "{open:?}"
        );
    }
}

#[test]
fn long_text_after_many_blocks_streams_updates() {
    let now = Instant::now();
    let (mut encoder, mut out) = (Encoder::new(Form::Cumulative), Vec::new());
    encoder.event(&start(), now, &mut out);
    for index in 0..2_000 {
        encoder.event(
            &update(StreamEvent::TextStart { content_index: index }),
            now,
            &mut out,
        );
        let content = "some words".to_owned();
        encoder.event(
            &update(StreamEvent::TextEnd {
                content_index: index,
                content,
            }),
            now,
            &mut out,
        );
    }
    out.clear();
    encoder.event(
        &update(StreamEvent::TextStart { content_index: 2_000 }),
        now,
        &mut out,
    );
    assert!(out.is_empty(), "there is nothing left to pay for it");
    let piece = "four words for it. ".repeat(50);
    for _ in 0..1_000 {
        encoder.event(&text(2_000, &piece), now, &mut out);
        encoder.flush_due(now, &mut out);
    }
    let whole = piece.repeat(1_000);
    let event = update(StreamEvent::TextEnd {
        content_index: 2_000,
        content: whole.clone(),
    });
    encoder.event(&event, now, &mut out);
    let lines = parse(&out);
    assert_eq!(lines[0]["assistantMessageEvent"]["type"], "text_start");
    assert!(lines.len() > 5, "{}", lines.len());
    assert_eq!(merged(&lines, 2_000), whole);
    assert_eq!(lines.last().unwrap()["message"]["content"][2_000]["text"], whole);
}

#[test]
fn delta_form_announces_blocks_after_long_text() {
    let events = [
        start(),
        update(StreamEvent::TextStart { content_index: 0 }),
        update(StreamEvent::TextEnd {
            content_index: 0,
            content: "x".repeat(ANNOUNCED_BYTES),
        }),
        update(StreamEvent::TextStart { content_index: 1 }),
    ];
    let lines = parse(&encode(Form::Delta, &events, true));
    assert_eq!(lines[3]["assistantMessageEvent"]["type"], "text_start");
}

#[test]
fn left_out_block_writes_no_end() {
    let now = Instant::now();
    let (mut encoder, mut out) = (Encoder::new(Form::Cumulative), Vec::new());
    encoder.event(&start(), now, &mut out);
    let (mut block, mut is_left_out) = (0, false);
    while !is_left_out {
        out.clear();
        let begin = update(StreamEvent::TextStart { content_index: block });
        encoder.event(&begin, now, &mut out);
        is_left_out = out.is_empty();
        // An end with a text that no delta brought replaces the block.
        let end = update(StreamEvent::TextEnd {
            content_index: block,
            content: "some words".to_owned(),
        });
        encoder.event(&end, now, &mut out);
        block += 1;
    }
    assert!(out.is_empty());
}

#[test]
fn interleaved_blocks_flush_only_their_own_deltas() {
    let now = Instant::now();
    let (mut encoder, mut out) = (Encoder::new(Form::Cumulative), Vec::new());
    encoder.event(&start(), now, &mut out);
    for index in 0..20 {
        encoder.event(
            &update(StreamEvent::TextStart { content_index: index }),
            now,
            &mut out,
        );
    }
    encoder.event(&text(0, &"x".repeat(100_000)), now, &mut out);
    encoder.flush(now, &mut out);
    for index in 0..20 {
        encoder.event(&text(index, "last words"), now, &mut out);
    }
    out.clear();
    let content = "last words".to_owned();
    encoder.event(
        &update(StreamEvent::TextEnd {
            content_index: 7,
            content,
        }),
        now,
        &mut out,
    );
    let kinds: Vec<_> = parse(&out)
        .iter()
        .map(|line| line["assistantMessageEvent"]["type"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(kinds, ["text_delta", "text_end"]);
    out.clear();
    encoder.flush(now, &mut out);
    assert_eq!(parse(&out).len(), 19);
}

#[test]
fn slow_stream_update_rate_follows_answer_size() {
    let mut now = Instant::now();
    let mut encoder = Encoder::new(Form::Cumulative);
    let mut out = Vec::new();
    encoder.event(&start(), now, &mut out);
    encoder.event(&text(0, &"x".repeat(400_000)), now, &mut out);
    encoder.flush_due(now, &mut out);
    out.clear();
    encoder.event(&text(0, "y"), now, &mut out);
    encoder.flush_due(now, &mut out);
    assert!(out.is_empty());
    let deadline = encoder.next_deadline().unwrap();
    let wait = deadline - now;
    assert!(
        (Duration::from_millis(100)..Duration::from_millis(200)).contains(&wait),
        "{wait:?}"
    );
    now = deadline;
    encoder.flush_due(now, &mut out);
    assert_eq!(parse(&out)[0]["assistantMessageEvent"]["delta"], "y");
    assert_eq!(encoder.next_deadline(), None);
}

#[test]
fn response_keeps_its_place_behind_deltas() {
    let now = Instant::now();
    let mut encoder = Encoder::new(Form::Cumulative);
    let mut out = Vec::new();
    encoder.event(&start(), now, &mut out);
    encoder.event(&text(0, "hi"), now, &mut out);
    let response = wire::Response {
        id: None,
        command: Some(Value::from("abort")),
        outcome: Ok(wire::Reply::Nothing),
    };
    encoder.response(&response, now, &mut out);
    let lines = parse(&out);
    assert_eq!(lines[1]["assistantMessageEvent"]["delta"], "hi");
    assert_eq!(
        lines[2],
        json!({"type": "response", "command": "abort", "success": true})
    );
}

proptest! {
    /// For every merge of deltas: each block's deltas give its text, every line is JSON, and the last state is the
    /// whole text.
    #[test]
    fn merged_deltas_keep_content(
        deltas in proptest::collection::vec((0usize..3, ".{0,40}", any::<bool>(), 0u64..50), 1..60),
        padding in prop_oneof![Just(0usize), Just(10_000)],
    ) {
        for form in [Form::Cumulative, Form::Delta] {
            let mut now = Instant::now();
            let mut encoder = Encoder::new(form);
            let mut out = Vec::new();
            let mut want = [String::new(), String::new(), String::new()];
            encoder.event(&start(), now, &mut out);
            for (index, delta, flush, wait) in
                std::iter::once((0, "p".repeat(padding), true, 0)).chain(deltas.iter().cloned())
            {
                want[index].push_str(&delta);
                encoder.event(&text(index, &delta), now, &mut out);
                now += Duration::from_millis(wait);
                if flush {
                    encoder.flush_due(now, &mut out);
                }
            }
            encoder.event(&Event::TurnStart, now, &mut out);
            let lines = parse(&out);
            for (index, want) in want.iter().enumerate() {
                prop_assert_eq!(&merged(&lines, index), want);
            }
            if form == Form::Cumulative {
                let last: &Map<String, Value> = lines[lines.len() - 2]["message"].as_object().unwrap();
                let whole: usize = last["content"].as_array().unwrap().iter()
                    .map(|block| block["text"].as_str().unwrap().len()).sum();
                prop_assert_eq!(whole, want.iter().map(String::len).sum::<usize>());
            }
        }
    }
}
