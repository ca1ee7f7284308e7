//! Lines to commands or responses, as pi's recorded transcripts have them (goldens malformed-json, nonobject-json,
//! blank-lines, unknown-command, no-ids, crlf-lines, u2028-in-strings) and where we do better (null-line).

use serde_json::{Value, json};
use wire::protocol::FRAMES;
use wire::{Command, SessionCommand};

use crate::parse::{Inbound, Request, parse_line, too_long};

fn request(line: &str) -> Request {
    request_of(line.as_bytes())
}

fn request_of(line: &[u8]) -> Request {
    match parse_line(line) {
        Inbound::Request(request) => request,
        other => panic!("{}: {other:?}", String::from_utf8_lossy(line)),
    }
}

fn rejected(line: &[u8]) -> Value {
    match parse_line(line) {
        Inbound::Rejected(response) => serde_json::to_value(&response).unwrap(),
        other => panic!("{}: {other:?}", String::from_utf8_lossy(line)),
    }
}

/// A parse error: its form is fixed, the reason is free text.
fn no_json(line: &[u8]) -> String {
    let mut response = rejected(line);
    let error = response["error"].take();
    assert_eq!(
        response,
        json!({"type": "response", "command": "parse", "success": false, "error": null})
    );
    let error = error.as_str().unwrap();
    error
        .strip_prefix("Failed to parse command: ")
        .unwrap()
        .to_owned()
}

#[test]
fn malformed_json_is_a_parse_error() {
    for line in [
        "this is not json",
        "{\"id\": \"x\", \"type\": \"get_state\"",
        "{'single': 1}",
        "{}{}",
        "42 43",
        "{\"a\":}",
    ] {
        no_json(line.as_bytes());
    }
    for line in ["", "   ", "\t"] {
        assert_eq!(no_json(line.as_bytes()), "Unexpected end of JSON input");
    }
    assert_eq!(no_json(b"null"), "null is not an object");
    assert!(no_json(b"\"\\x\"").contains("escape"));
    match too_long(7) {
        Inbound::Rejected(response) => assert_eq!(
            response.outcome.unwrap_err(),
            "Failed to parse command: line is longer than 7 bytes"
        ),
        other => panic!("{other:?}"),
    }
}

#[test]
fn unknown_commands_are_rejected() {
    for line in ["42", "\"prompt\"", "[1,2]", "true", " -1.5e3 "] {
        assert_eq!(
            rejected(line.as_bytes()),
            json!({"type": "response", "success": false, "error": "Unknown command: undefined"})
        );
    }
    for (line, want) in [
        (
            r#"{"id":"u1","type":"frobnicate"}"#,
            json!({"id": "u1", "type": "response", "command": "frobnicate", "success": false, "error": "Unknown command: frobnicate"}),
        ),
        (
            r#"{"id":"u2"}"#,
            json!({"id": "u2", "type": "response", "success": false, "error": "Unknown command: undefined"}),
        ),
        (
            r#"{"id":"u3","type":null}"#,
            json!({"id": "u3", "type": "response", "command": null, "success": false, "error": "Unknown command: null"}),
        ),
        (
            r#"{"id":"u4","type":"Prompt","message":"case"}"#,
            json!({"id": "u4", "type": "response", "command": "Prompt", "success": false, "error": "Unknown command: Prompt"}),
        ),
        (
            r#"{"type":5}"#,
            json!({"type": "response", "command": 5, "success": false, "error": "Unknown command: 5"}),
        ),
        (
            r#"{"type":{"a":1}}"#,
            json!({"type": "response", "command": {"a": 1}, "success": false, "error": "Unknown command: [object Object]"}),
        ),
    ] {
        assert_eq!(rejected(line.as_bytes()), want);
    }
    let long = format!("{{\"type\":\"{}\"}}", "é".repeat(1_000_000));
    assert!(rejected(long.as_bytes()).to_string().len() < 10_000);
}

#[test]
fn request_id_of_any_type_is_echoed_verbatim() {
    for id in [
        "7",
        "null",
        "\"\"",
        "{\"b\": 1, \"a\":[ ]}",
        "1e400",
        "12345678901234567890123",
        "\"\\u0041\"",
    ] {
        let line = format!("{{\"type\":\"get_state\",\"id\":{id}}}");
        assert_eq!(request(&line).id.unwrap().get(), id);
        let response = request(&line).respond(Ok(wire::Reply::Nothing));
        let text = serde_json::to_string(&response).unwrap();
        assert_eq!(
            text,
            format!("{{\"id\":{id},\"type\":\"response\",\"command\":\"get_state\",\"success\":true}}")
        );
    }
    assert!(request(r#"{"type":"get_state"}"#).id.is_none());
}

#[test]
fn invalid_parameters_keep_command_and_id() {
    for line in [
        r#"{"id":"p","type":"prompt"}"#,
        r#"{"id":"p","type":"prompt","message":3}"#,
    ] {
        let response = rejected(line.as_bytes());
        assert_eq!(
            (&response["id"], &response["command"]),
            (&json!("p"), &json!("prompt"))
        );
        assert!(
            response["error"]
                .as_str()
                .unwrap()
                .starts_with("Invalid prompt command: ")
        );
    }
    assert_eq!(request(r#"{"type":"set_auto_retry"}"#).name, "set_auto_retry");
}

#[test]
fn unicode_strings_are_parsed_unchanged() {
    let line =
        "{\"type\":\"prompt\",\"message\":\"a\u{2028}b\u{2029}c\u{85}d\\r\\ne\\ud83d\\ude00\u{1F600}\"}";
    let Command::Session(SessionCommand::Prompt(prompt)) = request(line).command else {
        panic!()
    };
    assert_eq!(
        prompt.message,
        "a\u{2028}b\u{2029}c\u{85}d\r\ne\u{1F600}\u{1F600}"
    );
    assert_eq!(
        request(" \t{\"\\u0074ype\":\"get_st\\u0061te\"} ").name,
        "get_state"
    );
}

#[test]
fn lone_surrogates_are_replaced() {
    for (text, want) in [
        (r"a\ud800b", "a\u{FFFD}b"),
        (r"\udc00", "\u{FFFD}"),
        (r"\uD83D\ude00\ud83d", "\u{1F600}\u{FFFD}"),
        (r"\ud83d\ud83d\ude00", "\u{FFFD}\u{1F600}"),
        (r"\ud83d\n\\ud800", "\u{FFFD}\n\\ud800"),
        (r"\\\ud800", "\\\u{FFFD}"),
    ] {
        let line = format!("{{\"type\":\"prompt\",\"message\":\"{text}\"}}");
        let Command::Session(SessionCommand::Prompt(prompt)) = request(&line).command else {
            panic!()
        };
        assert_eq!(prompt.message, want, "{text}");
    }
    no_json("{\"type\":\"\\ud800\\é\"}".as_bytes());
    no_json(b"{\"type\":\"\\ud8");
}

#[test]
fn last_of_repeated_members_counts() {
    let twice = request(r#"{"id":"a","type":"abort","id":"b","type":"prompt","message":"1","message":"2"}"#);
    assert_eq!(twice.id.unwrap().get(), "\"b\"");
    let Command::Session(SessionCommand::Prompt(prompt)) = twice.command else {
        panic!()
    };
    assert_eq!(prompt.message, "2");
    // Two names of one member stay an error.
    let both = r#"{"type":"prompt","message":"1","streamingBehavior":"steer","streaming_behavior":"steer"}"#;
    assert!(matches!(parse_line(both.as_bytes()), Inbound::Rejected(_)));
}

#[test]
fn json_depth_is_bounded() {
    let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    let line = |value: &str| format!("{{\"type\":\"get_state\",\"x\":{value}}}");
    assert_eq!(request(&line(&nested(127))).name, "get_state");
    assert_eq!(
        no_json(line(&nested(128)).as_bytes()),
        "nested deeper than 128 levels"
    );
    assert_eq!(
        no_json("[".repeat(5_000_000).as_bytes()),
        "nested deeper than 128 levels"
    );
    assert_eq!(
        request(&line(&format!("\"\\\"{}\"", "[{".repeat(500)))).name,
        "get_state"
    );
    let id = format!("{{\"type\":\"get_state\",\"id\":{}}}", nested(127));
    assert!(request(&id).id.is_some());
}

#[test]
fn invalid_utf8_becomes_replacement_characters() {
    for (bytes, shown) in [
        (&b"a\xffb"[..], "a\u{FFFD}b"),
        (b"\xe2\x82", "\u{FFFD}"),
        (b"\xe2\x82x", "\u{FFFD}x"),
        (b"\xed\xa0\x80", "\u{FFFD}\u{FFFD}\u{FFFD}"),
        (b"\xc3\xa9", "\u{e9}"),
    ] {
        let line = [
            &b"{\"id\":1,\"type\":\"prompt\",\"message\":\""[..],
            bytes,
            b"\"}",
        ]
        .concat();
        let request = request_of(&line);
        assert_eq!(request.id.map(|id| id.get().to_owned()).as_deref(), Some("1"));
        match request.command {
            Command::Session(SessionCommand::Prompt(params)) => assert_eq!(params.message, shown),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn client_frames_are_no_commands() {
    for (name, _) in FRAMES {
        let line = format!("{{\"type\":\"{name}\",\"id\":\"1\",\"value\":\"x\"}}");
        match parse_line(line.as_bytes()) {
            Inbound::Frame(found, text) => assert_eq!((found, text), (name, line)),
            other => panic!("{other:?}"),
        }
    }
}

proptest::proptest! {
    /// No bytes crash the parser, and every line that is no request or frame gets a response.
    #[test]
    fn arbitrary_bytes_are_parsed_without_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
        assert!(!matches!(parse_line(&bytes), Inbound::Eof));
    }

    /// Text that looks like JSON does not crash the parser.
    #[test]
    fn near_json_is_parsed_without_panic(text in r#"[{}\[\]",:\\udcUD8-9a-f ]{0,60}"#) {
        assert!(!matches!(parse_line(text.as_bytes()), Inbound::Eof));
    }
}

#[test]
fn lines_with_too_many_values_are_refused() {
    let line = |items: usize| {
        let items = vec!["0"; items].join(",");
        format!(r#"{{"id":"1","type":"prompt","message":"x","attachments":[{items}]}}"#)
    };
    request(&line(1_000));
    // Each would take more than 72 bytes of memory for two of text.
    let error = no_json(line(wire::limits::MAX_VALUES).as_bytes());
    assert_eq!(error, "more than 500000 values");
    let text = ",".repeat(wire::limits::MAX_VALUES + 1);
    request(&format!(r#"{{"id":"1","type":"prompt","message":"{text}"}}"#));
}
