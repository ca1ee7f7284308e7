//! A model that remembers when it sent each delta, so that the way from there to the client can be timed. It speaks one
//! protocol and knows one answer; models that follow a script are `testkit`'s.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::{Value, json};

/// What every delta begins with; its number follows.
pub(super) const WORD: &str = "probe";

/// The model. Dropping it closes its port.
#[derive(Debug)]
pub(super) struct Probe {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// Deltas of an answer.
    deltas: usize,
    /// Time between them.
    pace: Duration,
    /// When each delta was handed to the kernel; its place is its number.
    sent: Mutex<Vec<Instant>>,
    over: AtomicBool,
}

impl Probe {
    /// Listens. Each answer has so many deltas, and a pause before each of them.
    pub(super) fn start(deltas: usize, pace: Duration) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            deltas,
            pace,
            sent: Mutex::default(),
            over: AtomicBool::new(false),
        });
        let own = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if own.over.load(Ordering::Relaxed) {
                    return;
                }
                let own = Arc::clone(&own);
                // A client that hangs up ends its own answer only.
                thread::spawn(move || drop(answer(stream, &own)));
            }
        });
        Ok(Self { address, shared })
    }

    /// Where it listens.
    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What `models.json` says about it.
    pub(super) fn provider(&self) -> Value {
        provider(&self.url(), "probe")
    }

    /// Clears the recorded times and counts from zero again.
    pub(super) fn reset(&self) {
        self.sent().clear();
    }

    /// When the delta with this number was sent.
    pub(super) fn sent_at(&self, number: usize) -> Option<Instant> {
        self.sent().get(number).copied()
    }

    fn sent(&self) -> std::sync::MutexGuard<'_, Vec<Instant>> {
        self.shared.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
        // Wakes the listening thread; when it fails there is none.
        let _woken = TcpStream::connect(self.address);
    }
}

/// A provider with one model, whose window no measurement fills.
pub(super) fn provider(url: &str, name: &str) -> Value {
    json!({
        "baseUrl": format!("{url}/anthropic"), "api": "anthropic-messages", "apiKey": "mock-key",
        "models": [{
            "id": name, "name": name, "reasoning": false, "input": ["text"],
            "contextWindow": 100_000_000, "maxTokens": 1_000_000,
            "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
        }],
    })
}

/// The numbers in the text of a delta; an agent may have joined several.
pub(super) fn numbers(delta: &str) -> impl Iterator<Item = usize> + '_ {
    delta
        .split_ascii_whitespace()
        .filter_map(|word| word.strip_prefix(WORD)?.parse().ok())
}

fn answer(mut stream: TcpStream, shared: &Shared) -> Result<()> {
    stream.set_nodelay(true)?;
    skip_request(&mut BufReader::new(stream.try_clone()?))?;
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")?;
    let message = json!({
        "id": "m", "type": "message", "role": "assistant", "content": [], "model": "probe",
        "usage": {"input_tokens": 1, "output_tokens": 1},
    });
    let block = json!({"type": "text", "text": ""});
    let begin = [
        event("message_start", json!({ "message": message })),
        event("content_block_start", json!({"index": 0, "content_block": block})),
    ];
    stream.write_all(begin.concat().as_bytes())?;
    for _ in 0..shared.deltas {
        thread::sleep(shared.pace);
        send_delta(&mut stream, shared)?;
    }
    let end = [
        event("content_block_stop", json!({"index": 0})),
        event(
            "message_delta",
            json!({"delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}),
        ),
        event("message_stop", json!({})),
    ];
    stream.write_all(end.concat().as_bytes())?;
    Ok(())
}

fn send_delta(stream: &mut TcpStream, shared: &Shared) -> Result<()> {
    let number = shared.sent.lock().unwrap_or_else(PoisonError::into_inner).len();
    let delta = json!({"type": "text_delta", "text": format!("{WORD}{number} ")});
    let text = event("content_block_delta", json!({"index": 0, "delta": delta}));
    // Noted first: the client may have it before `write_all` is back.
    let now = Instant::now();
    shared
        .sent
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(now);
    stream.write_all(text.as_bytes())?;
    Ok(())
}

fn event(name: &str, mut data: Value) -> String {
    if let Some(object) = data.as_object_mut() {
        object.insert("type".to_owned(), name.into());
    }
    format!("event: {name}\ndata: {data}\n\n")
}

/// Reads a request to its end.
fn skip_request(reader: &mut impl BufRead) -> Result<()> {
    let mut length = 0;
    let mut line = String::new();
    while reader.read_line(&mut line)? > 2 {
        let header = line.to_ascii_lowercase();
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse()?;
        }
        line.clear();
    }
    std::io::copy(&mut reader.take(length), &mut std::io::sink())?;
    Ok(())
}
