//! Lines of all agents, seen at a glance by a listing and by a parser that knows nothing of it.

use std::ops::ControlFlow;

use proptest::prelude::*;
use serde_json::Value;

use super::fixtures::*;
use crate::glance::{Glance, Speaker, glance};
use crate::lines::{Line, Source, each_line};
use crate::{iso_to_ms, summarize};

const MESSAGE: &str =
    r#"{"type":"message","id":"e1","parentId":null,"timestamp":"2025-11-01T10:00:12.000Z","message":"#;

/// Messages in the order of members that pi, xcsh, omp and we write, and in stranger ones.
fn messages() -> Vec<(String, Glance)> {
    let user = |rest: &str| format!("{{\"role\":\"user\",\"content\":\"q\"{rest}}}");
    let answer = |rest: &str| {
        format!(
            "{{\"role\":\"assistant\",\"content\":[{{\"type\":\"toolCall\",\"id\":\"c\",\"name\":\"n\",\"arguments\":{{\"timestamp\":9}}}}],\"stopReason\":\"stop\"{rest}}}"
        )
    };
    let seen = |speaker, time| Glance::Message(speaker, time);
    vec![
        (user(",\"timestamp\":5"), seen(Speaker::User, 5)),
        (answer(",\"timestamp\":5"), seen(Speaker::Assistant, 5)),
        (
            answer(",\"timestamp\":5,\"responseId\":\"r\",\"errorMessage\":\"say \\\"timestamp\\\":7}\""),
            seen(Speaker::Assistant, 5),
        ),
        (
            answer(",\"timestamp\":5,\"diagnostics\":[{\"a\":[1,{}]}],\"endTurn\":true"),
            seen(Speaker::Assistant, 5),
        ),
        (
            r#"{"role":"toolResult","toolCallId":"c","content":[],"isError":false,"timestamp":5}"#.into(),
            seen(Speaker::Other, 0),
        ),
        // The parser's.
        (answer(""), Glance::Unsure),
        (
            answer(",\"timestamp\":5,\"diagnostics\":[{\"timestamp\":9}]"),
            Glance::Unsure,
        ),
        (answer(",\"timestamp\":5.5"), Glance::Unsure),
        (answer(",\"timestamp\":\"5\""), Glance::Unsure),
        (
            r#"{"timestamp":5,"role":"user","content":"q"}"#.into(),
            Glance::Unsure,
        ),
        (
            r#"{"role":"user","timestamp":5,"content":[{"type":"text","text":"q","timestamp":9}]}"#.into(),
            Glance::Unsure,
        ),
        (
            r#"{"role":"us\u0065r","content":"q","timestamp":5}"#.into(),
            Glance::Unsure,
        ),
    ]
}

#[test]
fn quick_scan_recognises_messages_or_reports_unsure() {
    for (message, expected) in messages() {
        let line = format!("{MESSAGE}{message}}}");
        assert_eq!(glance(line.as_bytes()), expected, "{line}");
        assert_eq!(glance(format!(" {line}\r").as_bytes()), expected, "{line}");
        assert_eq!(
            glance(&line.as_bytes()[..line.len() - 1]),
            Glance::Unsure,
            "torn: {line}"
        );
        // As a migration from version 1 leaves it, and as a program with spaces writes it.
        let moved = format!(
            "{{\"type\":\"message\",\"timestamp\":\"t\",\"message\":{message},\"id\":\"e\",\"parentId\":null}}"
        );
        assert_eq!(glance(moved.as_bytes()), Glance::Unsure);
        assert_eq!(glance(line.replace(':', ": ").as_bytes()), Glance::Unsure);
    }
    assert_eq!(glance(br#"{"type":"label","id":"x"}"#), Glance::Nothing);
    assert_eq!(glance(br#"{"type":"session_info","name":"x"}"#), Glance::Unsure);
    assert_eq!(glance(br#"{"id":"x","type":"message"}"#), Glance::Unsure);
}

/// What a listing says, by the letter of pi-core.md 2.8: messages, newest time, first question, name.
fn by_the_letter(content: &str) -> (u64, i64, Option<String>, Option<String>) {
    let (mut count, mut newest, mut first, mut name) = (0, 0, None, None);
    for line in content.lines().skip(1) {
        let Ok(line) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        if line["type"] == "session_info" {
            name = line["name"].as_str().map(str::to_owned);
        }
        let message = &line["message"];
        if line["type"] != "message" || message.is_null() {
            continue;
        }
        count += 1;
        if message["role"] == "user" || message["role"] == "assistant" {
            let entry = || iso_to_ms(line["timestamp"].as_str()?);
            newest = newest.max(
                message["timestamp"]
                    .as_f64()
                    .map(|t| t as i64)
                    .or_else(entry)
                    .unwrap_or(0),
            );
        }
        if message["role"] == "user" && first.is_none() {
            let text = &message["content"];
            first = text.as_str().or(text[0]["text"].as_str()).map(str::to_owned);
        }
    }
    (count, newest, first, name)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn quick_scan_agrees_with_full_parse(picks in prop::collection::vec((0..5u8, any::<prop::sample::Index>(), 0..3000i64), 0..30)) {
        let (messages, entries) = (messages(), all_entries());
        let mut lines = vec![HEADER.to_owned()];
        for (kind, at, time) in picks {
            let (message, _) = at.get(&messages);
            lines.push(match kind {
                0 => at.get(&entries[1..]).clone(),
                1 => format!("{{\"type\":\"message\",\"timestamp\":\"t\",\"message\":{message},\"id\":\"e\",\"parentId\":null}}"),
                2 => format!("{MESSAGE}{message}"),
                _ => format!("{MESSAGE}{}}}", message.replace("\"timestamp\":5", &format!("\"timestamp\":{time}"))),
            });
        }
        let content = text(&lines);
        let (_dir, path) = on_disk(&content);
        let found = summarize(&path, false).unwrap().unwrap();
        let with_texts = summarize(&path, true).unwrap().unwrap();
        let (count, newest, first, name) = by_the_letter(&content);
        prop_assert_eq!(found.message_count, count);
        prop_assert_eq!(found.modified, if newest == 0 { found.created } else { newest });
        prop_assert_eq!(&found.first_message, &first.unwrap_or_else(|| "(no messages)".into()));
        prop_assert_eq!(&found.name, &name);
        prop_assert_eq!(crate::SessionSummary { all_messages_text: None, ..with_texts }, found);
    }

    #[test]
    fn lines_split_equally_for_any_read_size(lengths in prop::collection::vec(prop_oneof![0..50usize, 250_000..600_000usize], 0..6), piece in 1..400_000usize, ended: bool) {
        struct Slow<'a>(&'a [u8], usize);
        impl std::io::Read for Slow<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
                let most = self.1.min(buffer.len());
                std::io::Read::read(&mut self.0, &mut buffer[..most])
            }
        }
        impl Source for Slow<'_> {}
        let lines: Vec<String> = lengths.iter().enumerate().map(|(n, len)| format!("{n}").repeat(*len)).collect();
        let joined = lines.join("\n") + if ended { "\n" } else { "" };
        let mut seen = Vec::new();
        let whole = each_line(Slow(joined.as_bytes(), piece), &mut Vec::new(), |line| {
            let Line::Whole(line) = line else { panic!("cut") };
            seen.push(String::from_utf8(line.to_vec()).unwrap());
            ControlFlow::Continue(())
        }).unwrap();
        let mut expected: Vec<String> = joined.split('\n').map(str::to_owned).collect();
        if expected.last().is_some_and(String::is_empty) {
            expected.pop();
        }
        prop_assert_eq!(seen, expected);
        prop_assert_eq!(whole as usize, joined.rfind('\n').map_or(0, |at| at + 1));
    }
}
