//! What connections may take of time (web.md R6, 3 row 12), on streams in memory and a clock that does not have to be waited
//! for.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::time::{Instant, sleep, timeout};

use crate::clients::Clients;
use crate::guard::Guard;
use crate::limits::{
    WEB_BODY_WAIT, WEB_HEAD_WAIT, WEB_LINGER, WEB_MESSAGE_BURST, WEB_MESSAGE_RATE, WEB_PING, WEB_SEND_WAIT,
    WEB_WRONG_PAUSE, WEB_WRONG_QUEUE, WEB_WRONG_TOKENS,
};
use crate::page::Page;
use crate::rooms::Served;
use crate::server::{connection, service};
use crate::state::{Slot, WebState};
use crate::stream::Stream;

const LONG: Duration = Duration::from_secs(100_000);

fn server(token: Option<&str>) -> (Arc<WebState>, session::RequestReceiver) {
    let (slot, requests) = session::request_queue();
    let bound = "127.0.0.1:4781".parse().unwrap();
    let guard = Guard::new(bound, "127.0.0.1", false, token.map(str::to_owned), Vec::new());
    let server = WebState::new(
        Clients::new(crate::memory::Memory::default()),
        Arc::new(guard),
        Arc::new(Page::Own),
        Some(Slot::Sessions(slot)),
    );
    (Arc::new(server), requests)
}

/// The client's end of a connection to this server.
fn connect(server: &Arc<WebState>) -> DuplexStream {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let stream = Stream::new(theirs, None);
    let pulse = stream.pulse();
    tokio::spawn(connection(
        stream,
        pulse,
        service(Served::One(Arc::clone(server))),
    ));
    ours
}

async fn head(stream: &mut DuplexStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

/// A request for a socket.
const UPGRADE: &str = "GET /ws HTTP/1.1\r\nhost: 127.0.0.1:4781\r\norigin: http://127.0.0.1:4781\r\nupgrade: websocket\r\n\
                       connection: upgrade\r\nsec-websocket-version: 13\r\n\
                       sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// The status of the response to a request on a new connection.
async fn status(server: &Arc<WebState>, request: &str) -> String {
    let mut stream = connect(server);
    stream.write_all(request.as_bytes()).await.unwrap();
    head(&mut stream).await[9..12].to_owned()
}

async fn socket(server: &Arc<WebState>) -> DuplexStream {
    let mut stream = connect(server);
    stream.write_all(UPGRADE.as_bytes()).await.unwrap();
    assert!(head(&mut stream).await.starts_with("HTTP/1.1 101"));
    stream
}

/// The next frame of the server; none at the end.
async fn frame(stream: &mut (impl AsyncRead + Unpin)) -> Option<(u8, Vec<u8>)> {
    let first = stream.read_u8().await.ok()?;
    let length = match stream.read_u8().await.ok()? {
        126 => u64::from(stream.read_u16().await.ok()?),
        127 => stream.read_u64().await.ok()?,
        short => u64::from(short),
    };
    let mut body = vec![0; usize::try_from(length).unwrap()];
    stream.read_exact(&mut body).await.ok()?;
    Some((first & 0xf, body))
}

/// A frame of a client; its mask is zero.
fn masked(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(body.len()).unwrap().to_be_bytes();
    [&[0x80 | kind, 0xfe], length.as_slice(), &[0; 4], body].concat()
}

#[tokio::test(start_paused = true)]
async fn draining_server_is_alive_but_not_ready_and_takes_no_client() {
    let (server, _mailbox) = server(None);
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nhost: 127.0.0.1:4781\r\n\r\n");
    let mut client = socket(&server).await;
    assert_eq!(status(&server, &get("/ready")).await, "200");
    server.drain();
    assert_eq!(status(&server, &get("/ready")).await, "503");
    assert_eq!(status(&server, &get("/health")).await, "200");
    assert_eq!(status(&server, UPGRADE).await, "503");
    // Who is there stays until the server ends.
    assert_eq!(server.clients.count(), 1);
    server.clients.end();
    let (kind, body) = frame(&mut client).await.unwrap();
    assert_eq!((kind, &body[..2]), (8, 1001_u16.to_be_bytes().as_slice()));
}

#[tokio::test(start_paused = true)]
async fn client_is_dropped_after_two_unanswered_pings() {
    let (server, _mailbox) = server(None);
    let mut stream = socket(&server).await;
    let begin = Instant::now();
    for _ in 0..50 {
        let (kind, _) = frame(&mut stream).await.unwrap();
        assert_eq!(kind, 9);
        stream.write_all(&masked(10, b"")).await.unwrap();
    }
    assert_eq!(
        begin.elapsed().as_secs(),
        50 * WEB_PING.as_secs(),
        "one every twenty seconds"
    );
    assert_eq!(server.clients.count(), 1);
    let silent = Instant::now();
    let mut pings = 0;
    while let Some((kind, _)) = frame(&mut stream).await {
        assert_eq!(kind, 9);
        pings += 1;
    }
    assert_eq!(pings, 2);
    assert_eq!(silent.elapsed().as_secs(), 3 * WEB_PING.as_secs());
    assert_eq!(server.clients.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn client_sending_long_message_is_not_dropped() {
    let (server, _mailbox) = server(None);
    let mut stream = socket(&server).await;
    // One frame of 1000 bytes, a byte every ten seconds: it cannot answer pings in between.
    stream
        .write_all(&[0x81, 0xfe, 0x03, 0xe8, 0, 0, 0, 0])
        .await
        .unwrap();
    for _ in 0..100 {
        stream.write_all(b"x").await.unwrap();
        sleep(WEB_PING / 2).await;
        assert_eq!(server.clients.count(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn silent_connections_time_out() {
    let (server, _mailbox) = server(None);
    let ask = "GET /health HTTP/1.1\r\nhost: 127.0.0.1:4781\r\n\r\n";
    // Nothing at all, half a head, a head that drips, an answered request and then nothing.
    for (first, drips) in [("", false), (&ask[..20], false), (&ask[..20], true), (ask, false)] {
        let mut stream = connect(&server);
        let begin = Instant::now();
        stream.write_all(first.as_bytes()).await.unwrap();
        if drips {
            let (mut reading, mut writing) = tokio::io::split(stream);
            tokio::spawn(async move {
                while writing.write_all(b"x").await.is_ok() {
                    sleep(Duration::from_secs(1)).await;
                }
            });
            let mut rest = Vec::new();
            timeout(LONG, reading.read_to_end(&mut rest))
                .await
                .unwrap()
                .unwrap();
        } else {
            let mut rest = Vec::new();
            timeout(LONG, stream.read_to_end(&mut rest))
                .await
                .unwrap()
                .unwrap();
            assert_eq!(rest.is_empty(), first.len() < 30, "{first}");
        }
        let took = begin.elapsed();
        assert!(
            took <= WEB_HEAD_WAIT + WEB_LINGER + Duration::from_secs(1),
            "{first:?}: {took:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn incomplete_body_times_out() {
    let (server, _mailbox) = server(None);
    let mut stream = connect(&server);
    let ask = "POST /api/command HTTP/1.1\r\nhost: 127.0.0.1:4781\r\norigin: http://127.0.0.1:4781\r\n\
               content-type: application/json\r\ncontent-length: 1000\r\n\r\n{";
    stream.write_all(ask.as_bytes()).await.unwrap();
    let begin = Instant::now();
    assert!(head(&mut stream).await.starts_with("HTTP/1.1 408"));
    assert_eq!(begin.elapsed().as_secs(), WEB_BODY_WAIT.as_secs());
}

#[tokio::test(start_paused = true)]
async fn stalled_event_stream_is_disconnected() {
    let (server, _mailbox) = server(None);
    let (mut ours, theirs) = tokio::io::duplex(256);
    let stream = Stream::new(theirs, None);
    let pulse = stream.pulse();
    tokio::spawn(connection(
        stream,
        pulse,
        service(Served::One(Arc::clone(&server))),
    ));
    let ask = "GET /api/events HTTP/1.1\r\nhost: 127.0.0.1:4781\r\nsec-fetch-site: same-origin\r\n\r\n";
    ours.write_all(ask.as_bytes()).await.unwrap();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(server.clients.count(), 1);
    // Its pipe is full: signs of life do not fit into it.
    sleep(WEB_PING * 20 + WEB_SEND_WAIT).await;
    assert_eq!(server.clients.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn flooding_client_is_refused_commands_then_continues() {
    let (server, _mailbox) = server(None);
    let stream = socket(&server).await;
    // Every command is answered at once, then: the agent ends.
    server.drain();
    let (mut reading, mut writing) = tokio::io::split(stream);
    let command = masked(1, br#"{"id":"x","type":"get_state"}"#);
    tokio::spawn(async move {
        let too_many = WEB_MESSAGE_BURST + 10;
        writing
            .write_all(&command.repeat(too_many as usize))
            .await
            .unwrap();
        sleep(Duration::from_secs(1)).await;
        writing
            .write_all(&command.repeat(WEB_MESSAGE_RATE as usize))
            .await
            .unwrap();
        sleep(LONG).await;
    });
    let mut refused = Vec::new();
    for number in 0..WEB_MESSAGE_BURST + 10 + WEB_MESSAGE_RATE {
        let (_, body) = frame(&mut reading).await.unwrap();
        let answer: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!((&answer["id"], &answer["success"]), (&"x".into(), &false.into()));
        if answer["error"].as_str().unwrap().contains("Too many") {
            refused.push(number);
        }
    }
    assert_eq!(
        refused,
        (WEB_MESSAGE_BURST..WEB_MESSAGE_BURST + 10).collect::<Vec<_>>()
    );
}

#[tokio::test(start_paused = true)]
async fn wrong_token_guesses_are_serialised_and_bounded() {
    let (server, _mailbox) = server(Some("t"));
    let ask = |token: &str| {
        let mut stream = connect(&server);
        let token = token.to_owned();
        async move {
            let text = format!(
                "GET /api/events?token={token} HTTP/1.1\r\nhost: 127.0.0.1:4781\r\nconnection: close\r\n\r\n"
            );
            stream.write_all(text.as_bytes()).await.unwrap();
            let status: u16 = head(&mut stream).await[9..12].parse().unwrap();
            status
        }
    };
    for _ in 0..WEB_WRONG_TOKENS {
        assert_eq!(ask("x").await, 401);
    }
    let begin = Instant::now();
    for _ in 0..10 {
        assert_eq!(ask("x").await, 429);
    }
    assert_eq!(ask("t").await, 200, "whoever knows it gets in all the same");
    assert!(begin.elapsed() >= WEB_WRONG_PAUSE * 11, "{:?}", begin.elapsed());
    // A thousand at once: most are not even looked at.
    let begin = Instant::now();
    let all: Vec<_> = (0..1000).map(|_| tokio::spawn(ask("x"))).collect();
    for one in all {
        assert_eq!(one.await.unwrap(), 429);
    }
    let most = WEB_WRONG_PAUSE * u32::try_from(WEB_WRONG_QUEUE + 1).unwrap();
    assert!(begin.elapsed() <= most, "{:?}", begin.elapsed());
}
