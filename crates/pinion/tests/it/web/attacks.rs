//! Attacks on a server that a user's browser can reach (web.md 3): each is refused, and the server goes on.

use std::io::{Read, Write};

use serde_json::json;
use testkit::llm::Reply;
use tungstenite::Message;

use super::Web;
use crate::kit::{World, until};

#[test]
fn web_access_requires_token_and_never_shows_it() {
    let world = World::new([]);
    let web = Web::start(&world, &["--web-token", "s3cret-t0ken"]);
    assert!(web.banner.contains("/?token=s3cret-t0ken") && web.banner.contains("Token:     s3cret-t0ken"));
    let origin = web.origin();
    let own = [("origin", origin.as_str())];
    assert_eq!(web.try_tab("/ws", &own).err(), Some(401));
    assert_eq!(web.try_tab("/ws?token=s3cret", &own).err(), Some(401));
    let foreign = [("origin", "http://evil.example")];
    assert_eq!(web.try_tab("/ws?token=s3cret-t0ken", &foreign).err(), Some(403));
    let mut tab = web.try_tab("/ws?token=s3cret-t0ken", &own).unwrap();
    tab.data(json!({"type": "get_state"}));
    let bearer = [("authorization", "Bearer s3cret-t0ken")];
    web.try_tab("/ws", &bearer).unwrap();
    assert_eq!(web.get("/api/events", &own).0, 401);
    for path in ["/", "/index.html", "/health", "/ready", "/nope"] {
        let (_, head, body) = web.get(path, &[]);
        assert!(
            !head.contains("s3cret") && !String::from_utf8_lossy(&body).contains("s3cret"),
            "{path}"
        );
    }
    for _ in 0..30 {
        web.get("/api/events?token=guess", &own);
    }
    assert_eq!(web.get("/api/events?token=guess", &own).0, 429);
    web.try_tab("/ws?token=s3cret-t0ken", &own).unwrap();
    assert!(!web.errors().contains("s3cret"));
    web.finish();
}

#[test]
fn generated_token_is_long_and_required_beyond_loopback() {
    let world = World::new([]);
    let web = Web::start(&world, &["--web-token"]);
    let line = web.banner.lines().find(|line| line.contains("Token:")).unwrap();
    assert!(line.split_whitespace().last().unwrap().len() >= 43, "{line}");
    web.finish();
    let mut open = Web::try_start(&world, &["--host", "0.0.0.0"]);
    assert_eq!(open.wait().code(), Some(1));
    assert!(open.errors().contains("--web-token"), "{}", open.errors());
    let web = Web::start(&world, &["--host", "0.0.0.0", "--web-token", "t"]);
    assert!(web.banner.contains("http://localhost:"), "{}", web.banner);
    web.finish();
}

#[test]
fn foreign_origins_and_hosts_are_refused() {
    let world = World::new([]);
    let web = Web::start(&world, &["--web-allowed-origin", "https://host.ts.net:4781"]);
    for origin in [
        "http://evil.example",
        "null",
        "http://localhost",
        "http://127.0.0.1:1",
    ] {
        assert_eq!(
            web.try_tab("/ws", &[("origin", origin)]).err(),
            Some(403),
            "{origin}"
        );
    }
    assert_eq!(web.try_tab("/ws", &[]).err(), Some(403), "no origin and no token");
    web.try_tab("/ws", &[("origin", "https://host.ts.net:4781")])
        .unwrap();
    for host in ["evil.example", "evil.example:4781", "127.0.0.1:1"] {
        assert_eq!(web.get("/", &[("host", host)]).0, 403, "{host}");
        assert_eq!(web.get("/health", &[("host", host)]).0, 403, "{host}");
    }
    let origin = web.origin();
    let preflight = [
        ("origin", "http://evil.example"),
        ("access-control-request-method", "POST"),
    ];
    let (_, head, _) = web.request("OPTIONS", "/api/command", &preflight, "");
    assert!(!head.contains("access-control"), "{head}");
    assert_eq!(web.try_tab("/other", &[("origin", &origin)]).err(), Some(404));
    assert_eq!(web.try_tab("/ws/", &[("origin", &origin)]).err(), Some(404));
    web.finish();
}

#[test]
fn odd_http_requests_are_survived() {
    let world = World::new([]);
    let mut web = Web::start(&world, &[]);
    let address = web.address.clone();
    let long = "x".repeat(100_000);
    let requests = [
        format!("GET // HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n"),
        format!("GET /// HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n"),
        format!("GET http://[ HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n"),
        "GET / HTTP/1.1\r\nconnection: close\r\n\r\n".to_owned(),
        "GET / HTTP/1.1\r\nhost:\r\nconnection: close\r\n\r\n".to_owned(),
        "GET / HTTP/1.1\r\nhost: [::\r\nconnection: close\r\n\r\n".to_owned(),
        format!("GET / HTTP/1.1\r\nhost: {address}\r\nx: {long}\r\n\r\n"),
        format!("GET /{long} HTTP/1.1\r\nhost: {address}\r\n\r\n"),
        format!(
            "POST / HTTP/1.1\r\nhost: {address}\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n0\r\n\r\n"
        ),
        "\x16\x03\x01\x02\x00\x01\x00".to_owned(),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
        format!(
            "GET /ws HTTP/1.1\r\nhost: {address}\r\norigin: http://{address}\r\nupgrade: websocket\r\nconnection: upgrade\r\n\
             sec-websocket-version: 8\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        ),
        format!(
            "GET /ws HTTP/1.1\r\nhost: {address}\r\norigin: http://{address}\r\nupgrade: websocket\r\nconnection: close\r\n\r\n"
        ),
    ];
    for request in &requests {
        let (status, ..) = web.raw(request.as_bytes());
        assert!(
            status == 0 || status == 200 || (400..500).contains(&status),
            "{status}: {request:.80}"
        );
        assert!(web.is_alive(), "{request:.80}");
    }
    web.finish();
}

#[test]
fn malformed_frames_and_lines_end_one_connection() {
    let world = World::new([]);
    let mut web = Web::start(&world, &[]);
    // Unmasked, reserved bits, a long ping, text that is no UTF-8, a length that never comes.
    let frames: [&[u8]; 5] = [
        b"\x81\x02{}",
        b"\xf1\x82\x00\x00\x00\x00{}",
        &[b"\x89\xfe\x00\x80\x00\x00\x00\x00".as_slice(), &[0; 128]].concat(),
        b"\x81\x82\x00\x00\x00\x00\xc3\x28",
        b"\x81\xff\x7f\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00",
    ];
    for frame in frames {
        let mut tab = web.tab();
        tab.socket().get_mut().write_all(frame).unwrap();
        let mut rest = Vec::new();
        let _reset = tab.socket().get_mut().read_to_end(&mut rest);
        assert!(web.is_alive());
    }
    let deep = "[".repeat(200_000);
    let lines = [
        "null",
        "1",
        "\"x\"",
        "[]",
        "{}",
        "{",
        "",
        " ",
        "{\"type\":null}",
        "{\"type\":{}}",
        "{\"type\":[\"prompt\"]}",
        "{\"type\":\"__proto__\"}",
        "{\"type\":\"constructor\"}",
        "{\"type\":\"prompt\"}",
        "{\"type\":\"prompt\",\"message\":7}",
        "{\"type\":\"\\ud800\"}",
        "{\"id\":{\"a\":[1]},\"type\":\"get_state\"}",
        "{\"type\":\"get_state\",\"session\":7}",
        "{\"type\":\"get_state\",\"session\":\"none\"}",
        "{\"type\":\"switch_session\",\"sessionPath\":\"\"}",
        deep.as_str(),
    ];
    let mut tab = web.tab();
    for line in lines {
        tab.send_text(line);
    }
    tab.socket()
        .send(Message::binary(br#"{"id":"last","type":"get_state"}"#.to_vec()))
        .unwrap();
    tab.wait(|line| line["id"] == "last");
    // The first session may become ready after the client came.
    let answers = tab
        .seen
        .borrow()
        .iter()
        .filter(|line| line["type"] == "response")
        .count();
    assert_eq!(answers, lines.len() + 1, "each line has an answer");
    web.finish();
}

#[test]
fn switching_to_non_session_file_leaves_it_unchanged() {
    let world = World::new([]);
    let web = Web::start(&world, &[]);
    world.dir.write("precious.txt", "precious").unwrap();
    world.dir.write("empty.jsonl", "").unwrap();
    let mut tab = web.tab();
    for (name, content) in [("precious.txt", "precious"), ("empty.jsonl", "")] {
        let path = world.dir.cwd().join(name);
        let answer = tab.ask(json!({"type": "switch_session", "sessionPath": path}));
        if content.is_empty() && answer["success"] == true {
            continue;
        }
        assert_eq!(answer["success"], false, "{answer}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), content);
    }
    let missing = world.dir.cwd().join("missing.jsonl");
    tab.ask(json!({"type": "switch_session", "sessionPath": missing}));
    web.finish();
}

#[test]
fn stalled_client_is_disconnected_without_delaying_others() {
    let replies = (0..40).map(|_| Reply::text_deltas(400, 2_000));
    let world = World::new(replies);
    let mut web = Web::start(&world, &[]);
    let mut stalled = web.tab();
    stalled.hold_little();
    stalled.send_text(r#"{"type":"get_state"}"#);
    let mut busy = web.tab();
    for _ in 0..40 {
        busy.say("More");
    }
    until("its end", || {
        let (_, _, body) = web.get("/health", &[]);
        String::from_utf8_lossy(&body).contains("\"clients\":1}")
    });
    let rss = std::fs::read_to_string(format!("/proc/{}/status", web.pid())).unwrap();
    let peak = rss.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak < 400_000, "{peak} kB");
    assert!(web.is_alive());
    web.finish();
}
