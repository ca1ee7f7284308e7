//! Row 12 of the attack list (`attacks.txt`): floods of every kind. The server answers within bounds, and serves later
//! clients.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;
use testkit::llm::Reply;

use super::{Tab, Web};
use crate::kit::{LONG, World, skipped, until};

/// Connections at the same time (`serve::limits::WEB_CONNECTIONS`).
const CONNECTIONS: usize = 2_000;
/// Clients at the same time (`serve::limits::WEB_CLIENTS`).
const CLIENTS: usize = 1_200;

/// How many files this process may have open.
fn files() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"))
        .unwrap();
    line.split_whitespace()
        .nth(3)
        .unwrap()
        .parse()
        .unwrap_or(usize::MAX)
}

/// The status of a connection that requests /health; 0 if it is closed without a response.
fn asks(stream: &mut TcpStream, address: &str) -> u16 {
    let _closed = write!(stream, "GET /health HTTP/1.1\r\nhost: {address}\r\n\r\n");
    let mut head = [0; 12];
    match stream.read_exact(&mut head) {
        Ok(()) => std::str::from_utf8(&head[9..]).unwrap().parse().unwrap(),
        Err(_) => 0,
    }
}

#[test]
fn ten_thousand_connections_are_limited_then_others_served() {
    let world = World::new([]);
    let mut web = Web::start(&world, &[]);
    let mut before = web.tab();
    before.data(json!({"type": "get_state"}));
    // many-connections: as many at once as this process can hold, ten thousand in all.
    let most = CONNECTIONS + 300;
    let at_once = most.min(files().saturating_sub(200));
    let (mut held, mut served, mut refused) = (Vec::new(), 0, 0);
    let begin = Instant::now();
    let mut held_after = Duration::ZERO;
    for number in 0..10_000 {
        if number % 500 == 0 {
            // Clients that were connected before notice nothing, and answer the server's pings.
            before.data(json!({"type": "get_state"}));
        }
        let Ok(mut stream) = TcpStream::connect(&web.address) else {
            continue;
        };
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        if held.len() < at_once {
            // Answered ones stay, and keep their place.
            match asks(&mut stream, &web.address) {
                200 => served += 1,
                503 | 0 => refused += 1,
                other => panic!("{other} after {number}"),
            }
            held.push(stream);
            held_after = begin.elapsed();
        }
    }
    assert!(served > 0);
    // After 15 s without a request a connection loses its place, so a slow machine gets fewer refusals.
    let is_slow_machine = held_after > Duration::from_secs(14);
    if is_slow_machine {
        skipped("this machine is too slow to hold that many connections before the first ones time out");
    } else if at_once == most {
        assert!(refused >= 250, "{refused} refused, {served} served");
        assert!(served <= CONNECTIONS, "{served}");
    } else {
        skipped("the limit is beyond the files that this process may open");
    }
    before.data(json!({"type": "get_state"}));
    drop(held);
    until("room for others", || {
        web.connect().set_read_timeout(None).is_ok() && web.get("/health", &[]).0 == 200
    });
    assert_eq!(web.tab().data(json!({"type": "get_state"}))["isStreaming"], false);
    assert!(web.is_alive());
    web.finish();
}

#[test]
fn client_count_is_limited() {
    if files() < CLIENTS + 500 {
        skipped(&format!(
            "this process may not open enough files for {CLIENTS} clients"
        ));
        return;
    }
    let world = World::new([Reply::text(["Hello", " all."])]);
    let web = Web::start(&world, &[]);
    let mut tabs: Vec<_> = (0..CLIENTS).map(|_| web.tab()).collect();
    let own = web.origin();
    assert_eq!(web.try_tab("/ws", &[("origin", &own)]).err(), Some(503));
    assert_eq!(web.get("/api/events", &[("origin", &own)]).0, 503);
    let headers = [("origin", own.as_str()), ("content-type", "application/json")];
    assert_eq!(
        web.request("POST", "/api/command", &headers, r#"{"type":"get_state"}"#)
            .0,
        503
    );
    tabs[0].say("Hi");
    tabs.last_mut().unwrap().wait_type("agent_settled");
    tabs.truncate(10);
    until("seats", || web.try_tab("/ws", &[("origin", &own)]).is_ok());
    web.finish();
}

#[test]
fn low_file_limit_reduces_connection_limit() {
    let world = World::new([]);
    // No more than this, and the program cannot raise it.
    let web = Web::start_limited(&world, 640);
    let mut held = Vec::new();
    let mut answers = Vec::new();
    for _ in 0..200 {
        let mut stream = web.connect();
        answers.push(asks(&mut stream, &web.address));
        held.push(stream);
    }
    assert_eq!(
        answers.iter().filter(|status| **status == 200).count(),
        128,
        "{answers:?}"
    );
    assert!(answers[128..].iter().all(|status| [0, 503].contains(status)));
    drop(held);
    until("room", || web.get("/health", &[]).0 == 200);
    web.tab().data(json!({"type": "get_state"}));
    web.finish();
}

/// Reads the answers to so many commands among other lines; returns the number of refusals.
fn refusals(flood: &mut Tab, sent: usize) -> usize {
    let (mut answered, mut refused) = (0, 0);
    while answered < sent {
        let line = flood
            .line()
            .unwrap_or_else(|code| panic!("closed with {code} after {answered} answers"));
        if line["type"] != "response" {
            continue;
        }
        answered += 1;
        if line["success"] == false {
            let error = line["error"].as_str().unwrap();
            assert!(error.starts_with("Too many messages"), "{line}");
            refused += 1;
        }
    }
    refused
}

#[test]
fn command_flood_is_answered_without_delaying_others() {
    let world = World::new([]);
    let mut web = Web::start(&world, &[]);
    let (mut flood, mut other) = (web.tab(), web.tab());
    // flood: more than the burst that a client may send (10,000), without reading in between.
    let sent = 12_000;
    let mut lines = Vec::new();
    for _ in 0..sent {
        // A masked text frame with an empty mask.
        let line = br#"{"type":"get_session_stats"}"#;
        lines.extend([0x81, 0x80 | u8::try_from(line.len()).unwrap(), 0, 0, 0, 0]);
        lines.extend(line);
    }
    flood.socket().get_mut().write_all(&lines).unwrap();
    // The first client reads while the second asks: a machine of any speed may take its time for so many answers, but a client
    // that reads nothing for long is sent away.
    let refused = std::thread::scope(|scope| {
        let reader = scope.spawn(|| refusals(&mut flood, sent));
        other.data(json!({"type": "get_state"}));
        reader.join().unwrap()
    });
    assert!(refused <= sent - 10_000, "{refused}");
    assert!(web.is_alive());
    assert!(web.peak() < 300_000, "{} kB", web.peak());
    web.finish();
}

#[test]
fn stalled_readers_do_not_delay_others() {
    let replies = (0..30).map(|_| Reply::text_deltas(400, 2_000));
    let world = World::new(replies);
    let mut web = Web::start(&world, &[]);
    // stalled-reader: on a socket, on events, on the answer to a request.
    let mut stalled = web.tab();
    stalled.send_text(r#"{"type":"get_state"}"#);
    let mut stream = web.connect();
    let ask = format!(
        "GET /api/events HTTP/1.1\r\nhost: {}\r\nsec-fetch-site: same-origin\r\n\r\n",
        web.address
    );
    stream.write_all(ask.as_bytes()).unwrap();
    let mut files = web.connect();
    let ask = format!("GET /main.js HTTP/1.1\r\nhost: {}\r\n\r\n", web.address);
    let _full = files.set_nonblocking(true);
    for _ in 0..50_000 {
        if files.write_all(ask.as_bytes()).is_err() {
            break;
        }
    }
    let mut busy = web.tab();
    for _ in 0..30 {
        busy.say("More");
    }
    assert!(web.peak() < 400_000, "{} kB", web.peak());
    assert!(web.is_alive());
    web.finish();
}

#[test]
fn slow_request_heads_time_out() {
    let world = World::new([]);
    let web = Web::start(&world, &[]);
    // slow-heads: a byte now and then, and nothing at all; fifteen seconds is all they get.
    let mut silent = web.connect();
    let mut dripping = web.connect();
    dripping
        .set_read_timeout(Some(Duration::from_millis(200)))
        .unwrap();
    let begin = Instant::now();
    let mut closed = false;
    while begin.elapsed() < LONG && !closed {
        let _refused = dripping.write_all(b"x");
        closed = matches!(dripping.read(&mut [0; 512]), Ok(0))
            || dripping.take_error().is_ok_and(|error| error.is_some());
        if let Err(error) = dripping.read(&mut [0; 512]) {
            closed |= error.kind() == std::io::ErrorKind::ConnectionReset;
        }
    }
    assert!(closed);
    let mut rest = Vec::new();
    silent.read_to_end(&mut rest).unwrap();
    web.finish();
}
