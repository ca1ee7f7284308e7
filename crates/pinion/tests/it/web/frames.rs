//! Rows 10 and 11 of the attack list (`attacks.txt`): invalid frames, messages without end, JSON that is broken or
//! meaningless. At most one connection ends, and its client gets the reason.

use std::io::{Read, Write};

use serde_json::{Value, json};
use testkit::llm::Reply;
use tungstenite::Message;

use super::{Tab, Web};
use crate::kit::World;

/// Longest message of a client, in bytes (`serve::limits::WEB_MESSAGE_BYTES`).
const MESSAGE: usize = 64 << 20;

/// Sends bytes as they are; gives the code that the connection is then closed with, 0 when it just ends.
fn close_code(tab: &mut Tab, bytes: &[u8]) -> u16 {
    // The server may disconnect in the middle of the write.
    let _refused = tab.socket().get_mut().write_all(bytes);
    frames_to_the_end(tab)
}

fn frames_to_the_end(tab: &mut Tab) -> u16 {
    let mut rest = Vec::new();
    let _reset = tab.socket().get_mut().read_to_end(&mut rest);
    let mut rest = rest.as_slice();
    loop {
        match rest {
            [0x88, _, high, low, ..] => return u16::from_be_bytes([*high, *low]),
            // Pongs, and short answers.
            [_, length @ 0..126, after @ ..] => rest = &after[usize::from(*length)..],
            _ => return 0,
        }
    }
}

fn frame(first: u8, length: usize, body: &[u8]) -> Vec<u8> {
    let mut head = vec![first];
    match length {
        0..126 => head.push(0x80 | u8::try_from(length).unwrap()),
        126..65536 => {
            head.push(0xfe);
            head.extend(u16::try_from(length).unwrap().to_be_bytes());
        }
        _ => {
            head.push(0xff);
            head.extend((length as u64).to_be_bytes());
        }
    }
    head.extend([0; 4]);
    head.extend(body);
    head
}

#[test]
fn invalid_frames_close_only_their_connection() {
    let world = World::new([]);
    let mut web = Web::start(&world, &[]);
    let mut witness = web.tab();
    let cases: [(&str, u16, Vec<u8>); 13] = [
        ("frame-unmasked", 1002, b"\x81\x02{}".to_vec()),
        ("frame-rsv1", 1002, frame(0xc1, 2, b"{}")),
        ("frame-rsv2", 1002, frame(0xa1, 2, b"{}")),
        ("frame-rsv3", 1002, frame(0x91, 2, b"{}")),
        ("frame-opcode", 1002, frame(0x83, 2, b"{}")),
        ("frame-control-opcode", 1002, frame(0x8b, 0, b"")),
        ("frame-control-long", 1002, frame(0x89, 126, &[0; 126])),
        ("frame-control-fragment", 1002, frame(0x09, 1, b"x")),
        ("frame-continuation", 1002, frame(0x80, 1, b"x")),
        (
            "frame-interleaved",
            1002,
            [frame(0x01, 1, b"x"), frame(0x81, 1, b"x")].concat(),
        ),
        ("frame-utf8", 1007, frame(0x81, 2, b"\xc3\x28")),
        ("frame-length-lie", 1009, frame(0x81, 1 << 62, b"{}")),
        ("frame-length-over", 1009, frame(0x82, MESSAGE + 1, &[0; 1000])),
    ];
    for (name, code, bytes) in cases {
        let mut tab = web.tab();
        assert_eq!(close_code(&mut tab, &bytes), code, "{name}");
        assert!(web.is_alive(), "{name}");
    }
    // frame-close-bad: codes that are forbidden on the wire, and half a code.
    for body in [&b"\x03"[..], b"\x00\x00", b"\x03\xed", b"\x03\xe8\xff\xff"] {
        let mut tab = web.tab();
        close_code(&mut tab, &frame(0x88, body.len(), body));
        assert!(web.is_alive());
    }
    assert_eq!(witness.data(json!({"type": "get_state"}))["isStreaming"], false);
    web.finish();
}

#[test]
fn disconnect_inside_frame_affects_no_other_client() {
    let world = World::new([]);
    let mut web = Web::start(&world, &[]);
    // abrupt-close-mid-frame: in the head, in the mask, in the body, between fragments.
    let whole = frame(0x81, 200, &[b' '; 200]);
    for end in [1, 2, 5, 8, 100] {
        let mut tab = web.tab();
        tab.socket().get_mut().write_all(&whole[..end]).unwrap();
        drop(tab);
        assert!(web.is_alive());
    }
    let mut tab = web.tab();
    tab.socket()
        .get_mut()
        .write_all(&frame(0x01, 3, b"{\"t"))
        .unwrap();
    drop(tab);
    web.wait_for_clients(0);
    assert!(web.is_alive());
    web.finish();
}

#[test]
fn message_size_is_limited() {
    let world = World::new([Reply::text(["Seen."]).gate("read")]);
    let web = Web::start(&world, &[]);
    // message-28MB-accepted: as long as a picture of 20 MB, in one frame. All clients get it in two events. That
    // exceeds the log's size, but no client is disconnected.
    let (mut tab, mut other) = (web.tab(), web.tab());
    let long = "x".repeat(28 << 20);
    let read = |tab: &mut Tab| {
        let end = tab.wait(|line| line["type"] == "message_end" && line["message"]["role"] == "user");
        assert_eq!(
            end["message"]["content"][0]["text"].as_str().map(str::len),
            Some(28 << 20)
        );
    };
    // At the same time, and before the end of the run brings the message once more: who has more than two such events to read
    // is a client that does not read, which is closed with 1013.
    std::thread::scope(|scope| {
        scope.spawn(|| read(&mut other));
        tab.data(json!({"type": "prompt", "message": long}));
        read(&mut tab);
    });
    world.server.release("read");
    std::thread::scope(|scope| {
        scope.spawn(|| other.wait_type("agent_settled"));
        tab.wait_type("agent_settled");
    });
    drop((tab, other));
    // frame-endless-fragments: small ones, each allowed, that never end; message-endless: large ones.
    for piece in [1 << 16, 4 << 20] {
        let mut tab = web.tab();
        let body = vec![b'x'; piece];
        tab.socket()
            .get_mut()
            .write_all(&frame(0x01, piece, &body))
            .unwrap();
        let next = frame(0x00, piece, &body);
        let mut sent = piece;
        while tab.socket().get_mut().write_all(&next).is_ok() && sent <= MESSAGE {
            sent += piece;
        }
        assert!(sent <= MESSAGE + piece, "{sent}");
        assert_eq!(frames_to_the_end(&mut tab), 1009, "{piece}");
        web.wait_for_clients(0);
    }
    // One byte too many, as one message by the book.
    let mut tab = web.tab();
    let _refused = tab.socket().send(Message::text("x".repeat(MESSAGE + 1)));
    assert_eq!(frames_to_the_end(&mut tab), 1009);
    // Empty fragments cost nothing, and do not keep others waiting.
    let mut tab = web.tab();
    let many = [frame(0x01, 0, b""), frame(0x00, 0, b"").repeat(200_000)].concat();
    tab.socket().get_mut().write_all(&many).unwrap();
    assert_eq!(web.tab().data(json!({"type": "get_state"}))["isStreaming"], false);
    drop(tab);
    // The same over plain HTTP.
    let own = web.origin();
    let headers = [("origin", own.as_str()), ("content-type", "application/json")];
    let (status, ..) = web.request("POST", "/api/command", &headers, &"x".repeat(MESSAGE + 1));
    assert_eq!(status, 413);
    assert!(web.peak() < 900_000, "{} kB", web.peak());
    web.finish();
}

/// Lines that are no command, or none that makes sense (json-nasty).
fn nasty() -> Vec<String> {
    let deep_object = format!("{}1{}", r#"{"a":"#.repeat(100_000), "}".repeat(100_000));
    let many = format!(r#"{{"type":"get_state"{}}}"#, r#","k":1"#.repeat(50_000));
    let lines = [
        "null",
        "1",
        "-0",
        "1e999",
        "true",
        "\"x\"",
        "[]",
        "{}",
        "{",
        "",
        " ",
        "\u{feff}{}",
        r#"{"type":null}"#,
        r#"{"type":{}}"#,
        r#"{"type":["prompt"]}"#,
        r#"{"type":7}"#,
        r#"{"type":"__proto__"}"#,
        r#"{"type":"constructor"}"#,
        r#"{"type":"toString"}"#,
        r#"{"__proto__":{"type":"get_state"}}"#,
        r#"{"type":"prompt"}"#,
        r#"{"type":"prompt","message":7}"#,
        r#"{"type":"prompt","message":{"a":1}}"#,
        r#"{"type":"\ud800"}"#,
        r#"{"type":"get_state","id":"\udfff\ud800"}"#,
        r#"{"id":{"a":[1]},"type":"get_state"}"#,
        r#"{"type":"get_state","type":"bash"}"#,
        r#"{"type":"get_state","session":7}"#,
        r#"{"type":"get_state","session":"none"}"#,
        r#"{"type":"get_state","id":12345678901234567890123456789}"#,
        r#"{"type":"set_thinking_level","level":"\u0000"}"#,
        r#"{"type":"switch_session","sessionPath":""}"#,
        r#"{"type":"switch_session","sessionPath":"\u0000/etc/passwd"}"#,
        r#"{"type":"GET_STATE"}"#,
        "{\"type\":\"get_state\"}{\"type\":\"get_state\"}",
        "NaN",
        "{'type':'get_state'}",
    ];
    let mut all: Vec<String> = lines.into_iter().map(str::to_owned).collect();
    all.extend([
        "[".repeat(200_000),
        deep_object,
        many,
        format!("\"{}", "\\u0041".repeat(100_000)),
    ]);
    all
}

#[test]
fn each_line_gets_one_response() {
    let world = World::new([]);
    let mut web = Web::start(&world, &[]);
    let lines = nasty();
    assert!(lines.len() >= 28);
    let mut tab = web.tab();
    for line in &lines {
        tab.send_text(line);
    }
    // Frames of bytes are lines, too, if they are text.
    tab.socket()
        .send(Message::binary(b"\xff\xfe{}".to_vec()))
        .unwrap();
    tab.socket()
        .send(Message::binary(br#"{"id":"last","type":"get_state"}"#.to_vec()))
        .unwrap();
    tab.wait(|line| line["id"] == "last");
    let answers = tab
        .seen
        .borrow()
        .iter()
        .filter(|line| line["type"] == "response")
        .count();
    assert_eq!(answers, lines.len() + 2, "each line has an answer");
    // And over plain HTTP, where a body that is no command gets status 400.
    let own = web.origin();
    let headers = [("origin", own.as_str()), ("content-type", "application/json")];
    for line in &lines {
        let (status, _, body) = web.request("POST", "/api/command", &headers, line);
        let shown = &line.chars().take(60).collect::<String>();
        assert!([200, 400].contains(&status), "{status}: {shown}");
        let answer: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(answer["type"], "response", "{shown}");
    }
    assert!(web.is_alive());
    web.finish();
}
