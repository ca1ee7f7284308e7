//! Traces for a collector, in a program built with them (`--features otel`).

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};
use testkit::llm::Reply;

use crate::kit::{LONG, Pi, World, bash};

/// A collector that takes everything and hands it on.
fn collector() -> (String, Receiver<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut bytes = Vec::new();
            let mut piece = [0; 65536];
            loop {
                let read = stream.read(&mut piece).unwrap_or(0);
                bytes.extend_from_slice(&piece[..read]);
                let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
                    if read == 0 {
                        break;
                    }
                    continue;
                };
                let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
                let length = head
                    .lines()
                    .find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
                let length: usize = length.unwrap_or(0);
                if bytes.len() >= end + 4 + length {
                    let body = serde_json::from_slice(&bytes[end + 4..end + 4 + length]).unwrap();
                    // Before the response: the program may end as soon as it has that, and the test then empties the channel.
                    let _over = sender.send((head, body));
                    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}").unwrap();
                    break;
                }
            }
        }
    });
    (url, receiver)
}

#[test]
fn otlp_collector_receives_spans_after_run() {
    let (url, spans) = collector();
    let world = World::new([bash("c1", "echo said"), Reply::text(["done"])]);
    let pi = Pi::spawn(
        world
            .config()
            .env("OTEL_EXPORTER_OTLP_ENDPOINT", &url)
            .env(
                "OTEL_EXPORTER_OTLP_HEADERS",
                "x-collector=collector-key-0123456789",
            )
            .env("OTEL_SERVICE_NAME", "under-test"),
    );
    pi.say("Go");
    let session = pi.state()["sessionId"].clone();
    pi.finish();
    let (head, body) = spans.recv_timeout(LONG).unwrap();
    assert!(
        head.starts_with("POST /v1/traces ") && head.contains("collector-key-0123456789"),
        "{head}"
    );
    let resource = &body["resourceSpans"][0];
    assert!(resource["resource"].to_string().contains("under-test"));
    let mut all: Vec<Value> = Vec::new();
    for body in std::iter::once(body.clone()).chain(spans.try_iter().map(|(_, body)| body)) {
        for scope in body["resourceSpans"][0]["scopeSpans"].as_array().unwrap() {
            all.extend(scope["spans"].as_array().unwrap().iter().cloned());
        }
    }
    let named = |name: &str| all.iter().filter(|span| span["name"] == name).collect::<Vec<_>>();
    let (chats, tools) = (named("chat claude-mock"), named("execute_tool bash"));
    assert_eq!(
        (
            chats.len(),
            tools.len(),
            named("turn").len(),
            named("run").len(),
            named("session").len()
        ),
        (2, 1, 2, 1, 1)
    );
    let attribute = |span: &Value, key: &str| {
        let list = span["attributes"].as_array().unwrap().clone();
        list.into_iter()
            .find(|item| item["key"] == key)
            .map(|item| item["value"].clone())
            .unwrap_or_default()
    };
    assert_eq!(
        attribute(chats[0], "gen_ai.request.model")["stringValue"],
        "claude-mock"
    );
    assert_eq!(
        attribute(chats[0], "gen_ai.conversation.id")["stringValue"],
        session
    );
    assert_eq!(
        attribute(chats[0], "gen_ai.usage.output_tokens")["intValue"]
            .to_string()
            .replace('"', ""),
        "20"
    );
    assert_eq!(chats[0]["kind"], json!(3), "a client's");
    let trace = &named("session")[0]["traceId"];
    assert!(all.iter().all(|span| &span["traceId"] == trace), "one trace");
    assert!(!format!("{all:?}").contains("said"));
}

#[test]
fn unresponsive_otlp_collector_delays_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let world = World::new([Reply::text(["done"])]);
    let pi = Pi::spawn(world.config().env("OTEL_EXPORTER_OTLP_ENDPOINT", &url));
    pi.say("Go");
    assert_eq!(pi.agent.stderr(), "");
    pi.finish();
}
