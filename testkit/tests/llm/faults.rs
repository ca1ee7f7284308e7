//! Each fault as a client on a raw socket sees it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::json;
use testkit::llm::{
    Before, CutHow, DeadPort, End as Marks, Framing, Item, Outcome, Part, Reply, ScriptedServer, Tool,
};

use crate::client::{ANTHROPIC, Client, End, GOOGLE, LONG, OPENAI, RESPONSES, post};

/// Short enough for a test, long enough for bytes that are on their way.
const SILENCE: Duration = Duration::from_millis(300);

#[test]
fn dead_port_refuses_connections() {
    let dead = DeadPort::new().unwrap();
    let addr = dead.url().strip_prefix("http://").unwrap().to_owned();
    for _ in 0..3 {
        let error = TcpStream::connect(&addr).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
    }
}

#[test]
fn cuts_work_at_every_byte() {
    let whole = {
        let server = ScriptedServer::start([Reply::text(["Hi"])]).unwrap();
        post(&server, ANTHROPIC).body
    };
    let server = ScriptedServer::start([]).unwrap();
    for (how, end) in [(CutHow::Reset, End::Reset), (CutHow::Close, End::Eof)] {
        for at in 0..=whole.len() {
            server.push(Reply::text(["Hi"]).cut(at as u64, how));
            let response = post(&server, ANTHROPIC);
            assert_eq!(response.status, 200);
            assert_eq!(response.end, end, "{how:?} at {at}");
            // The reply's number differs in the message id, so only sizes are compared.
            assert_eq!(response.body.len(), at, "{how:?} at {at}");
        }
    }
    let seen = server.wait_ended(2 * (whole.len() as u64 + 1), LONG).unwrap();
    assert!(seen.iter().all(|r| r.outcome == Outcome::Dropped));
    assert_eq!(seen[17].sent, 17);
}

#[test]
fn cut_behind_end_changes_nothing() {
    let server = ScriptedServer::start([Reply::text(["Hi"]).cut(1_000_000, CutHow::Reset)]).unwrap();
    assert_eq!(post(&server, ANTHROPIC).end, End::Complete);
    assert_eq!(server.wait_ended(1, LONG).unwrap()[0].outcome, Outcome::Completed);
}

#[test]
fn orderly_cut_of_unframed_body_looks_complete() {
    let reply = Reply {
        framing: Framing::Eof,
        ..Reply::text(["Hi"]).cut(50, CutHow::Close)
    };
    let server = ScriptedServer::start([reply]).unwrap();
    let response = post(&server, ANTHROPIC);
    assert_eq!(response.header("transfer-encoding"), None);
    assert_eq!((response.body.len(), response.end), (50, End::Eof));
}

#[test]
fn stalled_connection_stays_open_and_silent() {
    let server = ScriptedServer::start([Reply::text(["Hi"]).cut(60, CutHow::Stall)]).unwrap();
    let mut client = Client::new(&server);
    client.send(ANTHROPIC, "{}");
    client.wait_first_chunk(60);
    let mut client = client.silence_after(SILENCE);
    let response = client.read();
    assert_eq!((response.body.len(), response.end), (60, End::Silence));
    assert_eq!(server.requests()[0].outcome, Outcome::Pending);
    drop(client);
    assert_eq!(
        server.wait_ended(1, LONG).unwrap()[0].outcome,
        Outcome::ClientClosed
    );
}

#[test]
fn dropped_server_ends_stalled_connection() {
    let server = ScriptedServer::start([Reply::text(["Hi"]).cut(0, CutHow::Stall)]).unwrap();
    let mut client = Client::new(&server);
    client.send(ANTHROPIC, "{}");
    server.wait_requests(1, LONG).unwrap();
    drop(server);
    assert_ne!(client.read().end, End::Silence);
}

#[test]
fn connections_fail_before_any_byte_of_the_head() {
    let server = ScriptedServer::start([]).unwrap();
    for (how, end) in [
        (CutHow::Reset, End::Reset),
        (CutHow::Close, End::Eof),
        (CutHow::Stall, End::Silence),
    ] {
        server.push(Reply::text(["x"]).before(Before {
            drop: Some(how),
            ..Before::default()
        }));
        let client = Client::new(&server);
        let mut client = if how == CutHow::Stall {
            client.silence_after(SILENCE)
        } else {
            client
        };
        let response = client.post(ANTHROPIC, "{}");
        assert_eq!((response.status, response.end), (0, end));
    }
}

#[test]
fn drops_take_effect_after_sent_content() {
    let chunk = Reply::text([
        Part::from("seen"),
        Part::Drop { drop: CutHow::Reset },
        Part::from("unseen"),
    ]);
    let item = Reply::text(["seen"])
        .drop_here(CutHow::Close)
        .then_text(["unseen"])
        .batch(1 << 20);
    let server = ScriptedServer::start([chunk, item]).unwrap();
    for end in [End::Reset, End::Eof] {
        let response = post(&server, OPENAI);
        assert_eq!(response.end, end);
        assert!(response.text().contains("seen") && !response.text().contains("unseen"));
    }
}

#[test]
fn errors_and_pages_are_cut_and_paced_too() {
    let page = Reply::html(502);
    let server = ScriptedServer::start([
        page.clone(),
        page.clone().cut(20, CutHow::Reset),
        Reply::html(200),
    ]);
    let server = server.unwrap();
    let whole = post(&server, ANTHROPIC);
    assert_eq!((whole.status, whole.end), (502, End::Complete));
    assert!(whole.text().starts_with("<html>"));
    let cut = post(&server, ANTHROPIC);
    assert_eq!((cut.body.len(), cut.end), (20, End::Reset));
    let fine = post(&server, ANTHROPIC);
    assert_eq!(
        (fine.status, fine.header("content-type")),
        (200, Some("text/html; charset=utf-8"))
    );
}

#[test]
fn paced_bodies_arrive_in_pieces() {
    let reply = Reply::new()
        .raw("data: 0123456789\n\n")
        .item(Item::Eof { eof: json!(1) });
    let server = ScriptedServer::start([reply.pace(1, Duration::from_millis(2))]).unwrap();
    let response = post(&server, OPENAI);
    assert_eq!(response.end, End::Complete);
    assert!(response.chunks.iter().all(|n| *n == 1) && response.chunks.len() > 18);
    let seen = server.wait_ended(1, LONG).unwrap();
    assert!(seen[0].ended.unwrap() - seen[0].at >= Duration::from_millis(36));
}

#[test]
fn end_markers_can_be_missing_or_doubled() {
    let cases = [
        (ANTHROPIC, "event: message_stop"),
        (OPENAI, "data: [DONE]"),
        (RESPONSES, "event: response.completed"),
        (GOOGLE, "finishReason"),
    ];
    let server = ScriptedServer::start([]).unwrap();
    for (path, mark) in cases {
        for (end, times) in [(Marks::Missing, 0), (Marks::Normal, 1), (Marks::Double, 2)] {
            server.push(Reply::text(["x"]).end(end));
            let response = post(&server, path);
            assert_eq!(response.end, End::Complete);
            assert_eq!(response.text().matches(mark).count(), times, "{path} {end:?}");
        }
        server.push(Reply::text(["x"]).item(Item::Eof { eof: json!(1) }));
        assert!(!post(&server, path).text().contains(mark));
    }
}

#[test]
fn garbage_and_invalid_utf8_are_sent_verbatim() {
    let reply = Reply::new()
        .item(Item::Garbage { garbage: 5000 })
        .raw_bytes(&[0xff, 0x00, 0xc3])
        .then_text([Part::from("ok"), Part::Hex { hex: "c328".into() }]);
    let server = ScriptedServer::start([reply]).unwrap();
    let response = post(&server, ANTHROPIC);
    assert_eq!(response.end, End::Complete);
    assert!(std::str::from_utf8(&response.body).is_err());
    let has = |bytes: &[u8]| response.body.windows(bytes.len()).any(|w| w == bytes);
    assert!(has(&[0xff, 0x00, 0xc3]));
    assert!(has(b"\"text_delta\",\"text\":\"\xc3\x28\""));
    let noise = response.body.split(|b| *b == b'\n').map(<[u8]>::len).max();
    assert_eq!(noise, Some(5000 + "data: ".len()));
}

#[test]
fn comments_pings_and_unknown_events_are_sent() {
    let reply = Reply::new()
        .item(Item::Comment {
            comment: "OPENROUTER PROCESSING".into(),
            count: 3,
        })
        .item(Item::Ping { ping: 2 })
        .item(Item::Event {
            event: "vendor.news".into(),
            data: json!({"type": "vendor.news"}),
        })
        .item(Item::Event {
            event: String::new(),
            data: json!([]),
        });
    let server = ScriptedServer::start([reply.repeat()]).unwrap();
    let anthropic = post(&server, ANTHROPIC).text();
    assert_eq!(anthropic.matches(": OPENROUTER PROCESSING\n\n").count(), 3);
    // One ping belongs to every answer.
    assert_eq!(anthropic.matches("event: ping\n").count(), 3);
    assert!(anthropic.contains("event: vendor.news\ndata: {\"type\":\"vendor.news\"}\n\ndata: []\n\n"));
    assert_eq!(post(&server, OPENAI).text().matches(": ping\n\n").count(), 2);
}

#[test]
fn tool_arguments_can_be_cut_off() {
    let tool = Tool {
        id: "c".into(),
        name: "write".into(),
        args_raw: Some(r#"{"path": "a"#.into()),
        unfinished: true,
        ..Tool::default()
    };
    let chunks = Reply::new().tool_chunks("c", "write", [r#"{"pa"#, r#"th": "#]);
    let server = ScriptedServer::start([chunks, Reply::new().item(Item::Tool { tool })]).unwrap();
    let finished = post(&server, ANTHROPIC).text();
    assert!(finished.contains(r#""partial_json":"{\"pa""#) && finished.contains("content_block_stop"));
    let unfinished = post(&server, ANTHROPIC).text();
    assert!(unfinished.contains("message_stop") && !unfinished.contains("content_block_stop"));
}

#[test]
fn large_lines_and_deltas_are_generated_while_writing() {
    const SIZE: usize = 8 << 20;
    let line = Reply::new().item(Item::BigLine {
        big_line: SIZE as u64,
    });
    let delta = Reply::text([Part::from("a"), Part::Fill { fill: SIZE as u64 }]);
    let server = ScriptedServer::start([line, delta.clone(), delta]).unwrap();
    let longest = |body: &[u8]| body.split(|b| *b == b'\n').map(<[u8]>::len).max().unwrap();
    let response = post(&server, ANTHROPIC);
    assert_eq!(longest(&response.body), SIZE + "data: ".len());
    assert!(response.chunks.iter().all(|n| *n <= 1 << 17), "sent in pieces");
    for path in [ANTHROPIC, RESPONSES] {
        let events = post(&server, path).events();
        let found = events.iter().any(|e| {
            let text = e
                .pointer("/delta/text")
                .or(e.get("delta"))
                .and_then(|t| t.as_str());
            text.is_some_and(|t| t.len() == SIZE)
        });
        assert!(found, "{path}");
    }
}

#[test]
fn gzip_bomb_expands_a_thousandfold() {
    const SIZE: u64 = 64 << 20;
    let server = ScriptedServer::start([Reply::gzip_bomb(SIZE)]).unwrap();
    let response = post(&server, ANTHROPIC);
    assert_eq!(response.header("content-encoding"), Some("gzip"));
    let mut unpacked = 0;
    let mut unpacker = flate2::read::GzDecoder::new(response.body.as_slice());
    let mut buffer = vec![0; 1 << 16];
    loop {
        match unpacker.read(&mut buffer).unwrap() {
            0 => break,
            n => unpacked += n as u64,
        }
    }
    assert!(unpacked > SIZE);
    let ratio = unpacked / response.body.len() as u64;
    assert!(ratio > 900, "{ratio}");
}

#[test]
fn compressed_events_are_readable_individually() {
    let mut reply = Reply::text(["visible"]).gate("g");
    reply.gzip = true;
    let server = ScriptedServer::start([reply]).unwrap();
    let mut client = Client::new(&server).silence_after(SILENCE);
    client.send(OPENAI, "{}");
    server.wait_gate("g", LONG).unwrap();
    let so_far = client.read();
    assert_eq!(so_far.end, End::Silence);
    let mut text = Vec::new();
    // The stream is incomplete, so decompression fails after returning the first part.
    let _ = flate2::read::GzDecoder::new(so_far.body.as_slice()).read_to_end(&mut text);
    assert!(String::from_utf8(text).unwrap().contains("visible"));
}

#[test]
fn stalled_client_does_not_block_others() {
    let big = Reply::text([Part::Fill { fill: 64 << 20 }]);
    let server = ScriptedServer::start([big, Reply::text(["quick"])]).unwrap();
    let mut slow = Client::new(&server);
    slow.send(ANTHROPIC, "{}");
    // Its first byte shows that it has the big reply.
    slow.stream.read_exact(&mut [0]).unwrap();
    assert!(post(&server, ANTHROPIC).text().contains("quick"));
    assert_eq!(server.requests()[0].outcome, Outcome::Pending);
    slow.stream.flush().unwrap();
    drop(slow);
    assert_eq!(
        server.wait_ended(2, LONG).unwrap()[0].outcome,
        Outcome::ClientClosed
    );
}
