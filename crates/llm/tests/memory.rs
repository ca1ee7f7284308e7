//! What an answer costs in memory, for every API family. The client runs in a process of its own, so that nothing but it is
//! measured; the server is here. Linux only.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test")]

#[path = "../src/tests/families/voices.rs"]
#[expect(dead_code, reason = "the other tests use the rest")]
mod voices;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::sync::Arc;

use auth::Secret;
use pinion_llm::{Client, ClientConfig, ModelEvent, ModelRequest, supports};
use tokio_util::sync::CancellationToken;
use voices::{Block, VOICES, Voice};

/// Names the account `acc`.
const TOKEN: &str = "h.eyJodHRwczovL2FwaS5vcGVuYWkuY29tL2F1dGgiOiB7ImNoYXRncHRfYWNjb3VudF9pZCI6ICJhY2MifX0.s";

/// Bytes that a fault may cost at most (GUARANTEES.md 30).
const MOST: u64 = 64 << 20;

/// A number of `/proc/self/status`, bytes.
fn status(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

/// Answers one request with what `body` writes.
fn serve(body: impl FnOnce(&mut dyn Write) + Send + 'static, headers: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 65_536];
        assert!(stream.read(&mut request).unwrap() > 0);
        stream
            .write_all(format!("HTTP/1.1 200 OK\r\n{headers}connection: close\r\n\r\n").as_bytes())
            .unwrap();
        body(&mut stream);
        // Unread bytes of the request would turn the end into a reset, which discards the rest of the answer.
        let _closed = stream.shutdown(std::net::Shutdown::Write);
        let _rest = std::io::copy(&mut stream, &mut std::io::sink());
    });
    url
}

/// Variables for the measured process: the family and the address of its server.
const TOLD: [&str; 2] = ["PINION_TEST_API", "PINION_TEST_URL"];

/// The peak of a client while an answer comes, above what it held before; and the answer's size, 0 when it failed.
fn peak(voice: &Voice, headers: &str, body: impl FnOnce(&mut dyn Write) + Send + 'static) -> (u64, u64) {
    let url = serve(body, format!("content-type: {}\r\n{headers}", voice.content_type));
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_measured_process", "--nocapture"])
        .envs([(TOLD[0], voice.api), (TOLD[1], &url)])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find_map(|line| line.split_once("MEASURED "));
    let (_, numbers) = line.unwrap_or_else(|| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)));
    let mut numbers = numbers.split(' ').map(|number| number.parse().unwrap());
    (numbers.next().unwrap(), numbers.next().unwrap())
}

/// Not a test by itself: runs as the measured client if the variables are set.
#[tokio::test]
async fn the_measured_process() {
    let [Ok(api), Ok(url)] = TOLD.map(std::env::var) else {
        return;
    };
    let model = serde_json::json!({"id": "m", "name": "M", "api": api, "provider": "p", "baseUrl": url,
        "reasoning": true, "input": ["text"], "contextWindow": 1000, "maxTokens": 1000});
    let mut request = ModelRequest::new(serde_json::from_value(model).unwrap(), 0);
    request.messages = vec![Arc::new(wire::Message::user("Hi.", 0))];
    // ChatGPT reads the account from its token; other families accept any token.
    request.api_key = Some(Secret::new(TOKEN));
    let before = status("VmRSS:");
    let mut stream = Client::new(ClientConfig::default()).stream(request, CancellationToken::new());
    let mut size = None;
    let mut batch = Vec::new();
    while stream.next_batch(&mut batch).await {
        for event in batch.drain(..) {
            match event {
                ModelEvent::Done(message) => {
                    let grown = status("VmHWM:").saturating_sub(before);
                    size = Some((grown, serde_json::to_vec(&*message).unwrap().len()));
                }
                ModelEvent::Error { message, .. } => {
                    assert!(!message.error_message.unwrap().is_empty());
                    size = Some((status("VmHWM:").saturating_sub(before), 0));
                }
                _ => {}
            }
        }
    }
    let (grown, size) = size.unwrap();
    println!("MEASURED {grown} {size}");
}

/// Frames that are repeated until the reader closes the connection.
fn endless(frame: Vec<u8>, times: usize) -> impl FnOnce(&mut dyn Write) + Send {
    move |out| {
        for _ in 0..times {
            if out.write_all(&frame).is_err() {
                return;
            }
        }
    }
}

#[test]
fn stream_memory_stays_within_limits() {
    // Faults and a long answer in one family.
    let check = |voice: &Voice| {
        let api = voice.api;
        // One line of 100 MB.
        let (grown, size) = peak(voice, "", endless(b"data: xxxxxxxx".repeat(1 << 16), 120));
        assert!(size == 0 && grown < MOST, "{api}, endless line: {grown}");
        // Garbage and unknown events without end.
        let unknown =
            (voice.frame)(br#"{"type":"surprise","padding":"0123456789012345678901234567890123456789"}"#);
        let (grown, _) = peak(voice, "", endless(unknown.repeat(1_000), 1_000));
        assert!(grown < MOST / 4, "{api}, unknown events: {grown}");
        // A bomb of 256 MB.
        let frame = (voice.frame)(&vec![b' '; 1 << 20]);
        let bomb = move |out: &mut dyn Write| {
            let mut zip = flate2::write::GzEncoder::new(out, flate2::Compression::fast());
            // It ends when the client has had enough.
            let _unread = (0..256).try_for_each(|_| zip.write_all(&frame[..frame.len() - 2]));
        };
        let (grown, size) = peak(voice, "content-encoding: gzip\r\n", bomb);
        assert!(size == 0 && grown < MOST, "{api}, bomb: {grown}");
        // An answer of 12 MB in small deltas costs little more than itself.
        let deltas = vec!["lorem ipsum dolor sit amet, ".repeat(4); 110_000];
        let body = (voice.say)(&[Block::Text(deltas)]).concat();
        let (grown, size) = peak(voice, "", endless(body, 1));
        assert!(size > 12_000_000, "{api}: {size}");
        println!("{api}: answer of {size} bytes, peak +{grown}");
        assert!(grown < 4 * size, "{api}, long answer: {grown}");
    };
    std::thread::scope(|scope| {
        for voice in VOICES.iter().filter(|voice| supports(voice.api)) {
            scope.spawn(move || check(voice));
        }
    });
}
