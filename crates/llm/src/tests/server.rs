//! A small server over TCP: what goes wrong between us and a provider.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use auth::Secret;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use super::{last, model, request};
use crate::request::ModelRequest;
use crate::{Client, ClientConfig, ModelEvent, ProxyConfig, Timeouts};

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
const TEXT: &str = "data: {\"id\":\"c\",\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n";
const END: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

/// What the server does with a connection after each request.
#[derive(Clone)]
pub(super) enum Act {
    /// Sends these bytes and keeps the connection.
    Say(Vec<u8>),
    /// Sends these bytes and closes.
    Close(Vec<u8>),
    /// Sends these bytes and resets.
    Reset(Vec<u8>),
    /// Sends these bytes and says nothing more.
    Hang(Vec<u8>),
    /// Sends these bytes one by one and keeps the connection.
    Drip(Vec<u8>),
}

fn say(text: &str) -> Act {
    Act::Say(text.as_bytes().to_vec())
}

pub(super) struct Server {
    pub(super) url: String,
    requests: Arc<AtomicUsize>,
    connections: Arc<AtomicUsize>,
}

impl Server {
    /// The next request gets the act with this number.
    pub(super) fn go_to(&self, number: usize) {
        self.requests.store(number, Ordering::SeqCst);
    }
}

/// Serves the acts in order, the last one again and again.
pub(super) async fn serve(acts: Vec<Act>) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let requests = Arc::new(AtomicUsize::new(0));
    let connections = Arc::new(AtomicUsize::new(0));
    let server = Server {
        url,
        requests: Arc::clone(&requests),
        connections: Arc::clone(&connections),
    };
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            connections.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(connection(stream, acts.clone(), Arc::clone(&requests)));
        }
    });
    server
}

async fn connection(mut stream: TcpStream, acts: Vec<Act>, requests: Arc<AtomicUsize>) {
    while read_request(&mut stream).await {
        let number = requests.fetch_add(1, Ordering::SeqCst);
        let act = acts.get(number).or(acts.last()).unwrap();
        let (Act::Say(bytes) | Act::Close(bytes) | Act::Reset(bytes) | Act::Hang(bytes) | Act::Drip(bytes)) =
            act;
        if let Act::Drip(_) = act {
            stream.set_nodelay(true).unwrap();
            for byte in bytes {
                let _ = stream.write_all(&[*byte]).await;
                tokio::task::yield_now().await;
            }
            continue;
        }
        // A reader that has seen enough hangs up.
        let _ = stream.write_all(bytes).await;
        match act {
            Act::Say(_) | Act::Drip(_) => {}
            Act::Close(_) => return,
            Act::Reset(_) => {
                stream.flush().await.unwrap();
                tokio::time::sleep(Duration::from_millis(20)).await;
                stream.set_zero_linger().unwrap();
                return;
            }
            Act::Hang(_) => std::future::pending().await,
        }
    }
}

/// Reads one request with its body; false when the connection is closed.
async fn read_request(stream: &mut TcpStream) -> bool {
    let mut buf = Vec::new();
    loop {
        let mut piece = [0; 4096];
        match stream.read(&mut piece).await {
            Ok(0) | Err(_) => return false,
            Ok(n) => buf.extend_from_slice(&piece[..n]),
        }
        let text = String::from_utf8_lossy(&buf);
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .unwrap_or("0");
        if body.len() >= length.parse::<usize>().unwrap() {
            return true;
        }
    }
}

fn ask(url: &str) -> ModelRequest {
    let mut model = model("openai-completions");
    model.base_url = url.to_owned();
    request(model)
}

async fn answer(request: ModelRequest) -> Vec<ModelEvent> {
    collect(&Client::new(ClientConfig::default()), request).await
}

pub(super) async fn collect(client: &Client, request: ModelRequest) -> Vec<ModelEvent> {
    let mut stream = client.stream(request, CancellationToken::new());
    let mut out = Vec::new();
    while let Some(event) = stream.next().await {
        out.push(event);
    }
    assert_eq!(out.iter().filter(|event| event.is_last()).count(), 1);
    out
}

fn error_text(events: &[ModelEvent]) -> String {
    let (message, failed) = last(events);
    assert!(failed, "{message}");
    message["errorMessage"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn connection_is_reused_after_complete_answer() {
    let whole = format!("{HEAD}{}{}0\r\n\r\n", chunk(TEXT), chunk(END));
    let server = serve(vec![say(&whole)]).await;
    let client = Client::new(ClientConfig::default());
    for _ in 0..3 {
        let events = collect(&client, ask(&server.url)).await;
        assert!(matches!(events[0], ModelEvent::Start(_)));
        let (message, failed) = last(&events);
        assert!(!failed && message["content"][0]["text"] == "Hi");
        // The connection goes back once its end was read.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(server.requests.load(Ordering::SeqCst), 3);
    assert_eq!(server.connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn transport_faults_have_retryable_texts() {
    // No server listens there. A port that was merely free a moment ago can be the next one of another test.
    let free = "127.0.0.1:1";
    let refused = error_text(&answer(ask(&format!("http://{free}"))).await);
    assert_eq!(
        refused,
        format!("Connection error: connection refused: no server runs at {free}")
    );
    let partial = format!("{HEAD}{}", chunk(TEXT));
    for (act, text, head) in [
        (
            Act::Close(Vec::new()),
            "Connection error: other side closed",
            false,
        ),
        (
            Act::Close(b"HTTP/1.1 200 OK\r\ncont".to_vec()),
            "Connection error: other side closed",
            false,
        ),
        (Act::Close(partial.clone().into_bytes()), "terminated", true),
        (Act::Reset(partial.into_bytes()), "terminated", true),
    ] {
        let server = serve(vec![act]).await;
        let events = answer(ask(&server.url)).await;
        assert_eq!(error_text(&events), text);
        assert!(crate::is_retryable(text));
        assert_eq!(matches!(events[0], ModelEvent::Start(_)), head);
    }
    let garbage = serve(vec![Act::Close(b"this is not http\r\n\r\n".to_vec())]).await;
    assert!(crate::is_retryable(&error_text(&answer(ask(&garbage.url)).await)));
    let mut wrong = ask("http://x");
    wrong.model.base_url = "ftp://x".to_owned();
    assert_eq!(error_text(&answer(wrong).await), "Invalid base URL of the model");
}

#[tokio::test]
async fn proxy_that_refuses_is_named_without_its_password() {
    let proxy = |address: &str, no_proxy: &str| {
        Client::new(ClientConfig {
            proxy: ProxyConfig {
                all: Some(address.to_owned()),
                no_proxy: Some(no_proxy.to_owned()),
                ..ProxyConfig::default()
            },
            ..ClientConfig::default()
        })
    };
    let url = "http://model.invalid:81";
    let text = error_text(&collect(&proxy("http://me:secret@127.0.0.1:9", ""), ask(url)).await);
    assert_eq!(
        text,
        "Connection error: connection refused: model.invalid:81 through the proxy 127.0.0.1:9 (check ALL_PROXY)"
    );
    assert!(crate::is_retryable(&text));
    let text = error_text(&collect(&proxy("http://proxy.invalid:8", ""), ask(url)).await);
    assert!(
        text.starts_with("Connection error: getaddrinfo ENOTFOUND proxy.invalid: model.invalid:81 through"),
        "{text}"
    );
    let text = error_text(&collect(&proxy("http://127.0.0.1:9", "model.invalid"), ask(url)).await);
    assert_eq!(text, "Connection error: getaddrinfo ENOTFOUND model.invalid");
}

#[tokio::test]
async fn unresolvable_host_is_named_in_error() {
    let text = error_text(&answer(ask("http://no-such-host.invalid")).await);
    assert!(
        text.starts_with("Connection error: getaddrinfo ENOTFOUND no-such-host.invalid"),
        "{text}"
    );
}

#[tokio::test]
async fn silent_server_times_out_before_and_during_answer() {
    let keeps_alive = format!("{HEAD}{}", chunk(TEXT));
    let (short, long) = (Duration::from_millis(150), Duration::from_secs(600));
    for (bytes, response, idle, expected) in [
        (
            Vec::new(),
            short,
            long,
            "Request timed out: no response for 0.15 s",
        ),
        (
            keeps_alive.into_bytes(),
            long,
            short,
            "Stream timed out: nothing came for 0.15 s",
        ),
    ] {
        let server = serve(vec![Act::Hang(bytes)]).await;
        let mut request = ask(&server.url);
        request.timeouts = Timeouts { response, idle };
        let text = error_text(&answer(request).await);
        assert_eq!(text, expected);
        assert!(crate::is_retryable(&text));
    }
}

#[tokio::test]
async fn abort_ends_answer_at_once() {
    let partial = format!("{HEAD}{}", chunk(TEXT));
    for (bytes, wait, text) in [
        (Vec::new(), 0, "Request was aborted."),
        (partial.into_bytes(), 4, "Request was aborted"),
    ] {
        let server = serve(vec![Act::Hang(bytes)]).await;
        let cancel = CancellationToken::new();
        let mut stream = Client::new(ClientConfig::default()).stream(ask(&server.url), cancel.clone());
        let mut out = Vec::new();
        while out.len() < wait {
            out.push(stream.next().await.unwrap());
            if out
                .iter()
                .any(|event| matches!(event, ModelEvent::Stream(wire::StreamEvent::TextDelta { .. })))
            {
                break;
            }
        }
        cancel.cancel();
        while let Some(event) = stream.next().await {
            out.push(event);
        }
        let (message, _) = last(&out);
        assert_eq!(message["stopReason"], "aborted");
        assert_eq!(message["errorMessage"], text);
    }
}

fn refusal(status: &str, headers: &str, body: &str) -> Act {
    say(&format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\n{headers}\r\n{body}",
        body.len()
    ))
}

#[tokio::test]
async fn refusal_shows_status_text_and_retry_after() {
    let server = serve(vec![refusal(
        "429 x",
        "retry-after: 7\r\n",
        "{\"error\":{\"message\":\"slow down\"}}",
    )])
    .await;
    let events = answer(ask(&server.url)).await;
    let ModelEvent::Error { message, retry_after } = &events[0] else {
        panic!("{events:?}")
    };
    assert_eq!(message.error_message.as_deref(), Some("429 slow down"));
    assert_eq!(*retry_after, Some(Duration::from_secs(7)));
    assert_eq!(server.requests.load(Ordering::SeqCst), 1);
    let huge = format!("<p>{}", "word ".repeat(100_000));
    let server = serve(vec![refusal("502 x", "", &huge)]).await;
    let text = error_text(&answer(ask(&server.url)).await);
    assert!(text.starts_with("502 word") && text.len() < 400, "{}", text.len());
}

#[tokio::test]
async fn document_instead_of_stream_is_an_error() {
    let server = serve(vec![refusal(
        "200 x",
        "content-type: application/json\r\n",
        "{\"error\":{\"message\":\"no model\"}}",
    )])
    .await;
    assert_eq!(error_text(&answer(ask(&server.url)).await), "200 no model");
    let server = serve(vec![refusal(
        "200 x",
        "content-type: text/html\r\n",
        "<title>Log in</title>",
    )])
    .await;
    assert_eq!(error_text(&answer(ask(&server.url)).await), "200 Log in");
}

#[tokio::test]
async fn key_echoed_in_error_is_redacted() {
    let server = serve(vec![refusal(
        "401 x",
        "",
        "{\"error\":{\"message\":\"bad key sk-0123456789abcdef!\"}}",
    )])
    .await;
    let mut request = ask(&server.url);
    request.api_key = Some(Secret::new("sk-0123456789abcdef"));
    assert!(!format!("{request:?}").contains("0123456789"));
    assert_eq!(error_text(&answer(request).await), "401 bad key [key]!");
}

#[tokio::test]
async fn key_cut_off_in_stream_error_is_redacted() {
    let key = format!("sk-{}", "0123456789abcdef".repeat(8));
    // Longer than the piece of an unreadable event, and than an error text.
    let unreadable = format!("data: Incorrect API key provided: {key}\n\n");
    let long = format!("{}{key}", "x ".repeat(4_080));
    let long = format!("data: {{\"error\":{{\"message\":\"{long}\"}}}}\n\n");
    for (event, shown) in [(unreadable, "provided: [key]..."), (long, "x x [key]...")] {
        let server = serve(vec![say(&format!("{HEAD}{}0\r\n\r\n", chunk(&event)))]).await;
        let mut request = ask(&server.url);
        request.api_key = Some(Secret::new(&key));
        let text = error_text(&answer(request).await);
        assert!(text.ends_with(shown), "{text}");
    }
}

#[tokio::test]
async fn session_id_echoed_in_error_is_shown() {
    const SESSION: &str = "0198c0de-7e57-7000-8000-000000000000";
    for api in ["openai-responses", "mistral-conversations"] {
        let body = format!("{{\"error\":{{\"message\":\"no session {SESSION}\"}}}}");
        let server = serve(vec![refusal("400 x", "", &body)]).await;
        let mut request = ask(&server.url);
        request.model.api = api.to_owned();
        request.session_id = Some(SESSION.to_owned());
        let text = error_text(&answer(request).await);
        assert!(text.contains(SESSION), "{api}: {text}");
    }
}

#[tokio::test]
async fn refused_strict_tools_are_sent_plain() {
    let whole = format!("{HEAD}{}{}0\r\n\r\n", chunk(TEXT), chunk(END));
    let refused = refusal(
        "400 x",
        "",
        "{\"error\":{\"message\":\"Invalid schema for function 'read'\"}}",
    );
    let server = serve(vec![refused.clone(), say(&whole), say(&whole)]).await;
    let client = Client::new(ClientConfig::default());
    let mut request = ask(&server.url);
    request.session_id = Some("s".to_owned());
    request.conventions.strict_by_flag = true;
    request.tools = vec![wire::ToolSpec {
        name: "read".to_owned(),
        description: String::new(),
        parameters: serde_json::json!({"type": "object", "properties": {}}),
        prefers_strict: true,
    }];
    // The second request of the session knows of the refusal.
    for requests in [2, 3] {
        let events = collect(&client, request.clone()).await;
        assert!(!last(&events).1);
        assert_eq!(server.requests.load(Ordering::SeqCst), requests);
    }
    // Without strict tools there is nothing to send again, and other refusals stand.
    let other = refusal("400 x", "", "{\"error\":{\"message\":\"no such model\"}}");
    for (act, prefers_strict) in [(refused, false), (other, true)] {
        let server = serve(vec![act]).await;
        let mut request = request.clone();
        request.model.base_url = server.url.clone();
        request.tools[0].prefers_strict = prefers_strict;
        error_text(&answer(request).await);
        assert_eq!(server.requests.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test]
async fn answer_of_claude_notes_refused_strict_tools() {
    let whole = format!("{HEAD}{}{}0\r\n\r\n", chunk(TEXT), chunk(END));
    for (text, is_pi, is_noted) in [
        ("Too many strict tools (21) in the request", true, true),
        ("Too many strict tools (21) in the request", false, false),
        ("Invalid schema for function 'read'", true, false),
    ] {
        let body = format!("{{\"error\":{{\"type\":\"invalid_request_error\",\"message\":\"{text}\"}}}}");
        let server = serve(vec![refusal("400 x", "", &body), say(&whole)]).await;
        let mut request = ask(&server.url);
        request.model.api = "anthropic-messages".to_owned();
        request.conventions.strict_by_flag = true;
        request.conventions.strict_diagnostics = is_pi;
        request.tools = vec![wire::ToolSpec {
            name: "read".to_owned(),
            description: String::new(),
            parameters: serde_json::json!({"type": "object", "properties": {}}),
            prefers_strict: true,
        }];
        let timestamp = request.timestamp;
        let events = answer(request).await;
        assert_eq!(server.requests.load(Ordering::SeqCst), 2, "{events:?}");
        let Some(ModelEvent::Start(head)) = events.first() else {
            panic!("{events:?}");
        };
        let Some(notes) = head.extra.get("diagnostics").filter(|_| is_noted) else {
            assert!(!is_noted && head.extra.is_empty(), "{head:?}");
            continue;
        };
        let note = &notes[0];
        assert_eq!(
            (&note["type"], &note["timestamp"], &note["details"]["reason"]),
            (
                &"anthropic_strict_tools_fallback".into(),
                &timestamp.into(),
                &"strict_tool_limits_exceeded".into()
            )
        );
        assert!(
            note["error"]["message"].as_str().unwrap().contains(text),
            "{note}"
        );
        // The message of the answer keeps the note in any case.
        assert_eq!(&last(&events).0["diagnostics"], notes);
    }
}

#[tokio::test]
async fn provider_retries_follow_retry_after() {
    let whole = format!("{HEAD}{}{}0\r\n\r\n", chunk(TEXT), chunk(END));
    let busy = refusal("503 x", "retry-after-ms: 10\r\n", "");
    let server = serve(vec![busy.clone(), busy.clone(), say(&whole)]).await;
    let mut request = ask(&server.url);
    request.provider_retries = 2;
    assert!(!last(&answer(request.clone()).await).1);
    assert_eq!(server.requests.load(Ordering::SeqCst), 3);
    for (act, requests) in [
        (busy, 3),
        (refusal("400 x", "retry-after-ms: 10\r\n", ""), 1),
        (
            refusal("503 x", "x-should-retry: false\r\nretry-after-ms: 10\r\n", ""),
            1,
        ),
        (
            refusal("400 x", "x-should-retry: true\r\nretry-after-ms: 10\r\n", ""),
            3,
        ),
        (refusal("503 x", "retry-after: 3600\r\n", ""), 1),
    ] {
        let server = serve(vec![act]).await;
        request.model.base_url = server.url.clone();
        error_text(&answer(request.clone()).await);
        assert_eq!(server.requests.load(Ordering::SeqCst), requests);
    }
}

#[tokio::test]
async fn redirects_to_other_origins_are_refused() {
    let other = serve(vec![say("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")]).await;
    let location = format!("location: {}/x\r\n", other.url);
    let server = serve(vec![refusal("307 x", &location, "")]).await;
    assert!(error_text(&answer(ask(&server.url)).await).starts_with("307 "));
    assert_eq!(other.requests.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn compressed_bomb_is_bounded() {
    let mut zip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let line = format!(
        "data: {{\"choices\":[{{\"delta\":{{\"content\":\"{}\"}}}}]}}\n\n",
        "x".repeat(1 << 20)
    );
    for _ in 0..64 {
        zip.write_all(line.as_bytes()).unwrap();
    }
    let body = zip.finish().unwrap();
    let mut bytes = format!(
        "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    bytes.extend_from_slice(&body);
    let server = serve(vec![Act::Say(bytes)]).await;
    assert!(error_text(&answer(ask(&server.url)).await).contains("larger than"));
}

#[tokio::test]
async fn cancelled_read_of_stream_loses_nothing() {
    let whole = format!("{HEAD}{}{}0\r\n\r\n", chunk(TEXT), chunk(END));
    let server = serve(vec![say(&whole)]).await;
    let mut stream = Client::new(ClientConfig::default()).stream(ask(&server.url), CancellationToken::new());
    let mut out = Vec::new();
    while !out.last().is_some_and(ModelEvent::is_last) {
        tokio::select! {
            biased;
            event = stream.next() => out.extend(event),
            () = tokio::task::yield_now() => {}
        }
    }
    assert_eq!(last(&out).0["content"][0]["text"], "Hi");
}

#[tokio::test]
async fn unknown_api_and_missing_tls_are_errors() {
    let mut unknown = ask("http://x");
    unknown.model.api = "smoke-signals".to_owned();
    assert_eq!(
        error_text(&answer(unknown).await),
        "Unsupported API: smoke-signals"
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"no tls here").await.unwrap();
    });
    let text = error_text(&answer(ask(&url)).await);
    assert!(crate::is_retryable(&text) || text.contains("TLS"), "{text}");
}

/// Answers one request and gives its first line.
async fn first_line() -> (String, tokio::task::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let task = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut buf = vec![0; 4096];
        let n = stream.read(&mut buf).await.unwrap();
        stream
            .write_all(b"HTTP/1.1 418 x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            .await
            .unwrap();
        String::from_utf8_lossy(&buf[..n])
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned()
    });
    (url, task)
}

#[tokio::test]
async fn proxy_and_no_proxy_settings_are_applied() {
    for (no_proxy, line) in [
        (None, "POST http://example.invalid/chat/completions HTTP/1.1"),
        (Some("localhost,127.0.0.1"), "POST /chat/completions HTTP/1.1"),
    ] {
        let (url, task) = first_line().await;
        let mut config = ClientConfig::default();
        config.proxy.no_proxy = no_proxy.map(str::to_owned);
        let target = if no_proxy.is_none() {
            config.proxy.http = Some(url);
            "http://example.invalid".to_owned()
        } else {
            config.proxy.http = Some("http://127.0.0.1:1".to_owned());
            url
        };
        let text = error_text(&collect(&Client::new(config), ask(&target)).await);
        assert_eq!(text, "418 status code (no body)");
        assert_eq!(task.await.unwrap(), line);
    }
}

#[tokio::test]
async fn invalid_proxy_address_is_not_shown() {
    let mut config = ClientConfig::default();
    config.proxy.all = Some("http://user:hidden word@ho st:x".to_owned());
    let text = error_text(&collect(&Client::new(config), ask("http://x")).await);
    assert_eq!(text, "Invalid all proxy address");
}
