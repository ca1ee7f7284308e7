//! Tapes as files: whole, damaged, binary, in their time. What they are good for is tested through the program.

use std::io::Write as _;
use std::time::Duration;

use auth::Secrets;
use serde_json::{Value, json};
use tempfile::NamedTempFile;
use tokio_util::sync::CancellationToken;

use super::format::Data;
use super::{Player, Recorder, Replaying, Tape};
use crate::request::ModelRequest;
use crate::tests::{last, model, request};
use crate::{Client, ClientConfig, ModelEvent};

const TEXT: &str = "data: {\"id\":\"c\",\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n";
const END: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

fn ask() -> ModelRequest {
    request(model("openai-completions"))
}

/// A recording of one exchange, its body as given.
fn lines(chunks: &[(u64, Value)], how: &str) -> Vec<String> {
    let body = json!({"messages": [{"role": "user", "content": "Hi."}]});
    let mut lines = vec![
        json!({"type": "tape", "version": 1, "program": "t"}),
        json!({"type": "request", "exchange": 1, "at": 0, "api": "openai-completions", "provider": "p", "model": "m",
            "method": "POST", "url": "https://h/v1/chat/completions", "headers": [], "body": body}),
        json!({"type": "response", "exchange": 1, "at": 1000, "status": 200, "headers": [["content-type", "text/event-stream"]]}),
    ];
    for (at, data) in chunks {
        let mut line = json!({"type": "chunk", "exchange": 1, "at": at});
        line.as_object_mut()
            .unwrap()
            .extend(data.as_object().unwrap().clone());
        lines.push(line);
    }
    lines.push(json!({"type": "end", "exchange": 1, "at": 0, "how": how}));
    lines.iter().map(ToString::to_string).collect()
}

fn file(lines: &[String]) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all((lines.join("\n") + "\n").as_bytes()).unwrap();
    file
}

fn open(file: &NamedTempFile, how: Replaying) -> Player {
    Player::open(file.path(), how).unwrap()
}

async fn answer(player: Player) -> Vec<ModelEvent> {
    let client = Client::new(ClientConfig {
        tape: Tape::Replay(player),
        ..ClientConfig::default()
    });
    let mut stream = client.stream(ask(), CancellationToken::new());
    let mut events = Vec::new();
    while stream.next_batch(&mut events).await {}
    events
}

#[tokio::test]
async fn recorded_binary_chunks_replay_unchanged() {
    let cut = TEXT.replace("Hi", "ä");
    let at = cut.find('ä').unwrap() + 1;
    let halves = [&cut.as_bytes()[..at], &cut.as_bytes()[at..]].map(|half| Data::new(half.to_vec()));
    assert!(matches!(halves, [Data::Base64(_), Data::Base64(_)]));
    let mut chunks: Vec<(u64, Value)> = halves
        .iter()
        .map(|half| (0, serde_json::to_value(half).unwrap()))
        .collect();
    chunks.push((0, json!({ "text": END })));
    let events = answer(open(&file(&lines(&chunks, "complete")), Replaying::default())).await;
    let (message, failed) = last(&events);
    assert_eq!(
        (&message["content"][0]["text"], failed),
        (&json!("ä"), false),
        "{message}"
    );
}

#[tokio::test(start_paused = true)]
async fn recording_replays_at_once_or_at_given_speed() {
    let chunks = [(3000, json!({ "text": TEXT })), (9000, json!({ "text": END }))];
    let file = file(&lines(&chunks, "complete"));
    for (speed, ms) in [(None, 0), (Some(1.0), 9000), (Some(3.0), 3000)] {
        let began = tokio::time::Instant::now();
        let events = answer(open(&file, Replaying { speed, strict: false })).await;
        assert!(!last(&events).1);
        // Timers count in whole milliseconds.
        let took = began.elapsed().as_millis();
        assert!((ms..ms + 10).contains(&took), "{speed:?}: {took}");
    }
}

#[tokio::test(start_paused = true)]
async fn failed_recording_fails_and_unfinished_one_stays_open() {
    for (how, waits) in [("failed", false), ("left", true)] {
        let file = file(&lines(&[(0, json!({ "text": TEXT }))], how));
        let began = tokio::time::Instant::now();
        let (message, failed) = last(&answer(open(&file, Replaying::default())).await);
        assert_eq!((&message["errorMessage"], failed), (&json!("terminated"), true));
        assert_eq!(began.elapsed() >= Duration::from_secs(10), waits);
    }
}

#[test]
fn damaged_recording_is_reported_except_torn_end() {
    let whole = lines(&[(0, json!({ "text": TEXT }))], "complete");
    let why = |lines: &[String]| {
        let error = Player::open(file(lines).path(), Replaying::default()).map(drop);
        error.map_err(|error| error.to_string().rsplit_once(": ").unwrap().1.to_owned())
    };
    assert_eq!(why(&whole), Ok(()));
    let torn = [&whole[..4], &["{\"type\":\"ch".to_owned()]].concat();
    assert_eq!(why(&torn), Ok(()));
    assert_eq!(why(&[&torn[..], &whole[..]].concat()), Ok(()));
    assert_eq!(
        why(&[&torn[..], &whole[4..]].concat()),
        Err("line 5 is damaged".to_owned())
    );
    assert_eq!(
        why(&[&whole[..1], &whole[2..]].concat()),
        Err("line 2 is damaged".to_owned())
    );
    assert_eq!(why(&whole[1..]), Err("it is no recording".to_owned()));
    let newer = whole[0].replace("\"version\":1", "\"version\":2");
    assert_eq!(
        why(&[newer]),
        Err("recordings of version 2 are not known".to_owned())
    );
}

#[test]
fn recording_file_is_locked_by_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tape");
    let first = Recorder::open(&path, "t", Secrets::default()).unwrap();
    let second = Recorder::open(&path, "t", Secrets::default()).unwrap_err();
    assert!(second.to_string().contains("another process"), "{second}");
    drop(first);
    // A child that another test is starting has the file until its program runs.
    let end = std::time::Instant::now() + Duration::from_secs(30);
    while let Err(error) = Recorder::open(&path, "t", Secrets::default()) {
        assert!(std::time::Instant::now() < end, "{error}");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 2);
}
