//! Row 12 of the attack list (`attacks.txt`), the part about memory: what all clients together keep the server from freeing is
//! bounded, small commands get through all the same, and everything comes back.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::json;
use testkit::llm::Reply;

use super::Web;
use crate::kit::World;

/// Length of an unfinished body or message.
const LONG: usize = 50 << 20;
/// Memory that all clients may hold (`serve::limits::WEB_MEMORY_BYTES`), and memory of the program itself, in kB.
const MOST: u64 = (192 + 64) << 10;
/// What one stalled reader may cost, in kB.
const STALLED: u64 = 64 << 10;

/// Sends bytes until so many are through, or the server takes no more.
fn pour(stream: &mut TcpStream, before: &[u8], bytes: usize, after: &[u8]) {
    stream.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
    let piece = [before, &vec![b' '; 1 << 20], after].concat();
    for _ in 0..bytes >> 20 {
        if stream.write_all(&piece).is_err() {
            return;
        }
    }
}

/// The head of an answer; none if there is no answer yet.
fn head(stream: &mut TcpStream) -> Option<String> {
    stream.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let mut bytes = [0; 512];
    let length = stream.read(&mut bytes).unwrap_or(0);
    (length > 0).then(|| String::from_utf8_lossy(&bytes[..length]).to_lowercase())
}

#[test]
fn unfinished_bodies_share_memory_budget() {
    let world = World::new([]);
    let mut web = Web::start(&world, &[]);
    web.tab().data(json!({"type": "get_state"}));
    let before = web.peak();
    let ask = format!(
        "POST /api/command HTTP/1.1\r\nhost: {0}\r\norigin: http://{0}\r\ncontent-type: application/json\r\n",
        web.address
    );
    // unfinished-bodies: with a length that is claimed, and in chunks.
    let mut held = Vec::new();
    for number in 0..6 {
        let mut stream = web.connect();
        let is_chunked = number % 2 == 1;
        let length = if is_chunked {
            "transfer-encoding: chunked".to_owned()
        } else {
            format!("content-length: {LONG}")
        };
        let _refused = stream.write_all(format!("{ask}{length}\r\n\r\n").as_bytes());
        let (before, after): (&[u8], &[u8]) = if is_chunked {
            (b"100000\r\n", b"\r\n")
        } else {
            (b"", b"")
        };
        pour(&mut stream, before, LONG - (1 << 20), after);
        held.push(stream);
    }
    let mut answers: Vec<Option<String>> = vec![None; held.len()];
    crate::kit::until("two refusals", || {
        for (stream, answer) in held.iter_mut().zip(&mut answers) {
            if answer.is_none() {
                *answer = head(stream);
            }
        }
        answers.iter().flatten().count() >= 2
    });
    for answer in answers.iter().flatten() {
        assert!(answer.starts_with("http/1.1 503 "), "{answer}");
        assert!(answer.contains("retry-after: "), "{answer}");
    }
    let grown = web.peak() - before;
    assert!(grown < MOST, "{grown} kB");
    // A client without much to say notices nothing.
    let own = web.origin();
    let headers = [("origin", own.as_str()), ("content-type", "application/json")];
    let small = |web: &Web| {
        web.request("POST", "/api/command", &headers, r#"{"type":"get_state"}"#)
            .0
    };
    assert_eq!(small(&web), 200);
    web.tab().data(json!({"type": "get_state"}));
    // The memory is free again: a large body is refused as long as it is not.
    drop(held);
    crate::kit::until("memory for a long body", || {
        let mut stream = web.connect();
        stream
            .write_all(format!("{ask}content-length: {LONG}\r\n\r\n").as_bytes())
            .unwrap();
        head(&mut stream).is_none()
    });
    assert!(web.is_alive());
    web.finish();
}

#[test]
fn web_memory_setting_limits_bodies() {
    let world = World::new([]);
    world.settings(json!({"webMemoryMib": 4}));
    let web = Web::start(&world, &[]);
    let mut stream = web.connect();
    let ask = format!(
        "POST /api/command HTTP/1.1\r\nhost: {0}\r\norigin: http://{0}\r\ncontent-type: application/json\r\ncontent-length: {1}\r\n\r\n",
        web.address,
        8 << 20
    );
    let _refused = stream.write_all(ask.as_bytes());
    pour(&mut stream, b"", 7 << 20, b"");
    let mut answer = None;
    crate::kit::until("an answer", || {
        answer = head(&mut stream);
        answer.is_some()
    });
    let answer = answer.unwrap();
    assert!(answer.starts_with("http/1.1 503 "), "{answer}");
    web.tab().data(json!({"type": "get_state"}));
    web.finish();
}

/// A frame of a client, with an empty mask, and so much of its payload.
fn frame(first: u8, length: usize) -> Vec<u8> {
    let mut head = vec![first, 0x80 | 127];
    head.extend(u64::try_from(length).unwrap().to_be_bytes());
    head.extend([0; 4]);
    head
}

#[test]
fn unfinished_messages_share_memory_budget() {
    let world = World::new([]);
    let mut web = Web::start(&world, &[]);
    let mut witness = web.tab();
    witness.data(json!({"type": "get_state"}));
    let before = web.peak();
    // unfinished-messages: in one frame, and in pieces.
    let mut tabs = Vec::new();
    for number in 0..6 {
        let mut tab = web.tab();
        let stream = tab.socket().get_mut();
        if number % 2 == 0 {
            // One frame that never ends.
            let _refused = stream.write_all(&frame(0x81, LONG));
            pour(stream, b"", LONG - (1 << 20), b"");
        } else {
            // A message in pieces that never ends.
            let _refused = stream.write_all(&[frame(0x01, 1), b" ".to_vec()].concat());
            pour(stream, &frame(0x00, 1 << 20), LONG, b"");
        }
        tabs.push(tab);
    }
    for tab in &mut tabs {
        let stream = tab.socket().get_ref();
        stream.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    }
    let mut refused = vec![false; tabs.len()];
    crate::kit::until("two refusals", || {
        for (tab, is_refused) in tabs.iter_mut().zip(&mut refused) {
            while !*is_refused {
                match tab.line() {
                    Ok(_) => {}
                    Err(1013) => *is_refused = true,
                    // Nothing yet, or nothing any more.
                    Err(_) => break,
                }
            }
        }
        refused.iter().filter(|is_refused| **is_refused).count() >= 2
    });
    let grown = web.peak() - before;
    assert!(grown < MOST, "{grown} kB");
    witness.data(json!({"type": "get_state"}));
    web.tab().data(json!({"type": "get_state"}));
    drop(tabs);
    web.wait_for_clients(1);
    // A client that goes on after a long message keeps no memory for it.
    let before = web.resident();
    let blank = [frame(0x82, LONG), vec![b' '; LONG]].concat();
    witness.socket().get_mut().write_all(&blank).unwrap();
    witness.data(json!({"type": "get_state"}));
    crate::kit::until("freed memory", || web.resident() < before + (16 << 10));
    assert!(web.is_alive());
    web.finish();
}

#[test]
fn stalled_reader_costs_little_memory() {
    let world = World::new([Reply::text(["Seen."])]);
    let mut web = Web::start(&world, &[]);
    let mut tab = web.tab();
    tab.say(&"x".repeat(4 << 20));
    for _ in 0..2 {
        tab.data(json!({"type": "get_messages"}));
    }
    let before = web.peak();
    // It asks for much and reads nothing.
    let mut stalled = web.tab();
    stalled.hold_little();
    for _ in 0..24 {
        stalled.send_text(r#"{"type":"get_messages"}"#);
    }
    stalled.send_text(r#"{"type":"set_session_name","name":"all asked"}"#);
    tab.socket()
        .get_ref()
        .set_read_timeout(Some(Duration::from_secs(200)))
        .unwrap();
    // The answers to the others came before this event.
    tab.wait_type("session_info_changed");
    let cost = web.peak() - before;
    assert!(cost < STALLED, "{cost} kB");
    let code = loop {
        match stalled.line() {
            Ok(_) => {}
            Err(code) => break code,
        }
    };
    // 1006: it took nothing for so long that there was no more sense in a reason.
    assert!([1006, 1013].contains(&code), "{code}");
    assert!(web.is_alive());
    web.finish();
}

/// What an answer of 16 MB may cost while a client does not read it, in kB: four times its text, five times if the line for the
/// session file is made while an event is encoded.
const SLOW: u64 = 92 << 10;

/// Sends the prompt over HTTP, so that no client reads events meanwhile, and waits for the end of the run.
fn run_without_reader(web: &Web) {
    let own = web.origin();
    let headers = [("origin", own.as_str()), ("content-type", "application/json")];
    let ask = |command: &str| web.request("POST", "/api/command", &headers, command);
    assert_eq!(ask(r#"{"type":"prompt","message":"Go"}"#).0, 200);
    crate::kit::until("the end of the run", || {
        let (_, _, body) = ask(r#"{"type":"get_state"}"#);
        let state = String::from_utf8_lossy(&body).into_owned();
        state.contains("\"isStreaming\":false") && state.contains("\"messageCount\":2")
    });
}

#[test]
fn unread_long_answer_costs_little_memory() {
    for (about, deltas) in [("8 MB", 534), ("16 MB", 1_110), ("over 16 MB", 1_200)] {
        let world = World::new([Reply::text_deltas(deltas, 15_000).batch(65_536)]);
        let web = Web::start(&world, &[]);
        let mut tab = web.tab();
        tab.hold_little();
        tab.data(json!({"type": "get_state"}));
        let before = web.peak();
        run_without_reader(&web);
        let mut text = String::new();
        // A client that reads late is sent the whole answer, too.
        let end = loop {
            let line = match tab.line() {
                Ok(line) => line,
                // The run took longer than the socket waits for a reader.
                Err(1006) => break None,
                Err(code) => panic!("{about}: {code}"),
            };
            match line["type"].as_str() {
                Some("message_update") => {
                    let event = &line["assistantMessageEvent"];
                    text.push_str(event["delta"].as_str().unwrap_or_default());
                    let is_end = event["type"] == "text_end";
                    assert!(!is_end || event["content"] == text.as_str(), "{about}");
                }
                Some("message_end" | "turn_end") if line["message"]["role"] == "assistant" => {
                    assert!(line["message"]["content"][0]["text"] == text.as_str(), "{about}");
                }
                Some("agent_end") => break Some(line),
                _ => {}
            }
        };
        if let Some(end) = end {
            assert!(
                end["messages"][1]["content"][0]["text"] == text.as_str(),
                "{about}"
            );
        }
        let peak = web.peak() - before;
        eprintln!("{about}: {peak} kB at most");
        assert!(peak < SLOW, "{about}: {peak} kB");
        web.finish();
    }
}

#[test]
fn unread_event_stream_costs_little_memory() {
    let world = World::new([Reply::text_deltas(534, 15_000).batch(65_536)]);
    let web = Web::start(&world, &[]);
    web.tab().data(json!({"type": "get_state"}));
    web.wait_for_clients(0);
    let mut stream = web.connect();
    let ask = format!(
        "GET /api/events HTTP/1.1\r\nhost: {0}\r\norigin: http://{0}\r\n\r\n",
        web.address
    );
    stream.write_all(ask.as_bytes()).unwrap();
    web.wait_for_clients(1);
    let before = web.peak();
    run_without_reader(&web);
    // Four lines repeat the text after its deltas.
    let (mut bytes, mut count) = (vec![0; 1 << 20], 0);
    while count < 5 * 534 * 15_000 {
        let length = stream.read(&mut bytes).unwrap();
        assert!(length > 0, "{count}");
        count += length;
    }
    let peak = web.peak() - before;
    eprintln!("events: {peak} kB at most");
    assert!(peak < SLOW, "{peak} kB");
    web.finish();
}

#[test]
fn listing_with_sparse_file_uses_little_memory() {
    let world = World::new([Reply::text(["Seen."])]);
    let web = Web::start(&world, &[]);
    let mut tab = web.tab();
    tab.say("Hi");
    let file = tab.data(json!({"type": "get_state"}))["sessionFile"].clone();
    let folder = std::path::Path::new(file.as_str().unwrap()).parent().unwrap();
    for number in 0..4 {
        let sparse = std::fs::File::create(folder.join(format!("sparse{number}.jsonl"))).unwrap();
        (&sparse)
            .write_all(b"{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"2026-01-01T10:00:00.000Z\",\"cwd\":\"/\"}\n")
            .unwrap();
        sparse.set_len(3 << 30).unwrap();
    }
    let before = web.peak();
    let listed = tab.data(json!({"type": "list_sessions"}));
    assert!(listed["sessions"].as_array().unwrap().len() >= 4, "{listed}");
    let grown = web.peak() - before;
    assert!(grown < 64 << 10, "{grown} kB");
    web.finish();
}

#[test]
fn parsed_values_count_against_client_memory() {
    let world = World::new([]);
    let mut web = Web::start(&world, &[]);
    let mut tab = web.tab();
    tab.data(json!({"type": "get_state"}));
    let before = web.peak();
    // many-values: 2 bytes of text each, 72 of memory. Too many for any client, and too many for this one.
    let line = |values: usize, padding: usize| {
        let items = vec!["0"; values].join(",");
        let text = " ".repeat(padding);
        format!(r#"{{"id":"many","type":"prompt","message":"{text}","attachments":[{items}]}}"#)
    };
    for (line, reason) in [
        (line(20_000_000, 0), "more than 500000 values"),
        (line(400_000, 0), "too many values for the memory of the server"),
    ] {
        let mut stream = web.connect();
        let head = format!(
            "POST /api/command HTTP/1.1\r\nhost: {0}\r\norigin: http://{0}\r\ncontent-type: application/json\r\n\
             connection: close\r\ncontent-length: {1}\r\n\r\n",
            web.address,
            line.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(line.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.contains(reason), "{answer}");
        tab.send_text(&line);
        let error = tab.wait(|event| event["type"] == "response" && event["success"] == false);
        assert!(error["error"].as_str().unwrap().contains(reason), "{error}");
    }
    let grown = web.peak() - before;
    assert!(grown < MOST, "{grown} kB");
    assert!(web.is_alive());
    web.finish();
}

#[test]
fn unread_page_files_take_little_memory() {
    let world = World::new([]);
    world.dir.write("ui/index.html", "<h1>Mine</h1>").unwrap();
    let long = "x".repeat(10 << 20);
    world.dir.write("ui/long.js", &long).unwrap();
    let mut web = Web::start(&world, &["--serve-ui", "ui", "--web-token", "t"]);
    assert_eq!(web.get("/long.js", &[]).2.len(), long.len());
    let before = web.peak();
    // unread-files: no token is needed for them. Each used to cost its whole length.
    let ask = format!("GET /long.js HTTP/1.1\r\nhost: {}\r\n\r\n", web.address);
    let mut held = Vec::new();
    for _ in 0..50 {
        let mut stream = web.connect();
        stream.write_all(ask.as_bytes()).unwrap();
        let mut start = [0; 12];
        stream.read_exact(&mut start).unwrap();
        assert_eq!(&start, b"HTTP/1.1 200");
        held.push(stream);
    }
    std::thread::sleep(Duration::from_millis(500));
    let grown = web.peak() - before;
    assert!(grown < STALLED, "{grown} kB");
    assert!(web.is_alive());
    web.finish();
}
