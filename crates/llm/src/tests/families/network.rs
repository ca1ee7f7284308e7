//! How an answer comes, over TCP, with the client that sessions use: after every fault the same client gets an answer.

use std::io::Write;
use std::time::Duration;

use auth::Secret;

use super::super::server::{Act, collect, serve};
use super::super::{model, request};
use super::voices::{Block, Voice};
use super::{everything, judge, voices};
use crate::request::ModelRequest;
use crate::{Client, ClientConfig, ModelEvent};

/// An answer as a server sends it.
fn response(voice: &Voice, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\n{headers}content-length: {}\r\n\r\n",
        body.len()
    );
    let head = if headers.contains("content-type") {
        head
    } else {
        head.replace(
            "200 OK\r\n",
            &format!("200 OK\r\ncontent-type: {}\r\n", voice.content_type),
        )
    };
    [head.as_bytes(), body].concat()
}

fn whole(voice: &Voice) -> Vec<u8> {
    (voice.say)(&everything()).concat()
}

fn page(status: &str, kind: &str, body: &str) -> Act {
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    Act::Say(format!("{head}{body}").into_bytes())
}

/// A small body that becomes large.
fn bomb(voice: &Voice) -> Act {
    let mut zip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let frame = (voice.frame)(&vec![b' '; 1 << 20]);
    for _ in 0..64 {
        zip.write_all(&frame[..frame.len() - 2]).unwrap();
    }
    Act::Say(response(
        voice,
        "content-encoding: gzip\r\n",
        &zip.finish().unwrap(),
    ))
}

/// What must come of a fault.
#[derive(PartialEq)]
enum Must {
    Fail,
    Answer,
}

/// The table.
fn faults(voice: &Voice) -> Vec<(String, Act, Must)> {
    let good = response(voice, "", &whole(voice));
    let mut rows = Vec::new();
    for part in [0, 5, 30, 50, 75, 95] {
        let cut = good[..good.len() * part / 100].to_vec();
        rows.push((format!("reset at {part} %"), Act::Reset(cut.clone()), Must::Fail));
        rows.push((format!("closed at {part} %"), Act::Close(cut.clone()), Must::Fail));
        rows.push((format!("silent at {part} %"), Act::Hang(cut), Must::Fail));
    }
    let kinds = |kind: &str| {
        Act::Say(response(
            voice,
            &format!("content-type: {kind}\r\n"),
            &whole(voice),
        ))
    };
    let html = "<html><head><title>Log in</title></head><body>Please</body></html>";
    let say = |bytes: &[u8]| Act::Say(bytes.to_vec());
    rows.extend([
        ("byte by byte".to_owned(), Act::Drip(good.clone()), Must::Answer),
        ("text/plain".to_owned(), kinds("text/plain"), Must::Answer),
        (
            "no type".to_owned(),
            kinds("application/octet-stream"),
            Must::Answer,
        ),
        (
            "JSON instead of a stream".to_owned(),
            page("200 x", "application/json", "{\"error\":{\"message\":\"m\"}}"),
            Must::Fail,
        ),
        (
            "a page instead of a stream".to_owned(),
            page("200 x", "text/html", html),
            Must::Fail,
        ),
        (
            "a page with 403".to_owned(),
            page("403 x", "text/html", html),
            Must::Fail,
        ),
        (
            "a page with 502".to_owned(),
            page("502 x", "text/html", html),
            Must::Fail,
        ),
        (
            "an empty 500".to_owned(),
            page("500 x", "text/plain", ""),
            Must::Fail,
        ),
        (
            "an empty stream".to_owned(),
            say(&response(voice, "", b"")),
            Must::Fail,
        ),
        (
            "no HTTP".to_owned(),
            Act::Close(b"this is not http at all\r\n\r\n".to_vec()),
            Must::Fail,
        ),
        (
            "a length that lies".to_owned(),
            Act::Close(good.iter().copied().take(good.len() - 9).collect()),
            Must::Fail,
        ),
        (
            "gzip that is none".to_owned(),
            say(&response(voice, "content-encoding: gzip\r\n", &whole(voice))),
            Must::Fail,
        ),
        ("a gzip bomb".to_owned(), bomb(voice), Must::Fail),
    ]);
    rows
}

/// A request that a server of the test can be asked with, keys included where the family wants one.
pub(super) fn ask(voice: &Voice, url: &str) -> ModelRequest {
    let mut model = model(voice.api);
    model.base_url = url.to_owned();
    let mut request = request(model);
    request.api_key = Some(match voice.api {
        "openai-codex-responses" => Secret::new(&super::super::codex::token()),
        _ => Secret::new("test-key-0123456789"),
    });
    // For servers that fall silent. A request that must be answered has more time.
    request.timeouts = Duration::from_secs(1).into();
    request
}

async fn faults_end_and_the_client_recovers(voice: &Voice) {
    let good = Act::Say(response(
        voice,
        "",
        &(voice.say)(&[Block::text(["well again"])]).concat(),
    ));
    let rows = faults(voice);
    // The answer three times: on a busy machine, a request that was given up can be read after the next one was sent.
    let acts = rows
        .iter()
        .flat_map(|(_, act, _)| [act, &good, &good, &good].map(Clone::clone));
    let server = serve(acts.collect()).await;
    let client = Client::new(ClientConfig::default());
    for (at, (name, act, must)) in rows.iter().enumerate() {
        let what = format!("{}: {name}", voice.api);
        let mut request = ask(voice, &server.url);
        if !matches!(act, Act::Hang(_)) {
            request.timeouts = Duration::from_secs(30).into();
        }
        server.go_to(4 * at);
        let heard = judge(&collect(&client, request).await, &what);
        assert_eq!(heard.failed, *must == Must::Fail, "{what}: {}", heard.error());
        assert!(!heard.error().contains('<'), "{what}: {}", heard.error());
        let text = heard.text();
        assert!(
            "Héllo \u{1f600} \"World\"\nand so on".starts_with(&text),
            "{what}: {text}"
        );
        let mut patient = ask(voice, &server.url);
        patient.timeouts = Duration::from_secs(30).into();
        server.go_to(4 * at + 1);
        let heard = judge(&collect(&client, patient).await, &what);
        assert_eq!(heard.text(), "well again", "after {what}: {}", heard.error());
    }
}

/// All families at once: most of the time is spent waiting.
#[tokio::test]
async fn every_network_fault_ends_and_recovers() {
    futures_util::future::join_all(voices().map(faults_end_and_the_client_recovers)).await;
}

#[tokio::test]
async fn refused_request_has_http_status() {
    // Texts of exhausted plans and of Bedrock do not contain the status.
    let plan = "{\"error\":{\"type\":\"usage_limit_reached\",\"resets_at\":31000}}";
    for voice in voices() {
        for (status, body) in [(403, "{\"message\":\"no\"}"), (429, plan)] {
            let server = serve(vec![page(&format!("{status} x"), "application/json", body)]).await;
            let mut request = ask(voice, &server.url);
            request.timeouts = Duration::from_secs(30).into();
            let events = collect(&Client::new(ClientConfig::default()), request).await;
            let Some(ModelEvent::Error { message, .. }) = events.last() else {
                panic!("{}: {events:?}", voice.api)
            };
            assert_eq!(message.http_status, Some(status), "{}: {message:?}", voice.api);
        }
    }
}
