//! What holds for every API family alike: one table of faults, tried with each. Here are the stage and the judge; how the
//! families speak is in `voices`, what goes wrong in `cuts` (where a stream ends), `nonsense` (what it says) and `network`
//! (how it comes). What each can do is in `matrix`.

mod cuts;
mod matrix;
mod network;
mod nonsense;
pub(crate) mod voices;

use std::collections::BTreeMap;
use std::fs;
use std::future::ready;
use std::path::Path;
use std::time::Duration;

use auth::Secrets;
use bytes::Bytes;
use futures_util::stream;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use wire::{AssistantBlock, AssistantMessage, StreamEvent};

use super::{model, request};
use crate::event::ModelEvent;
use crate::family::{Family, supports};
use crate::ids::CallNumbers;
use crate::request::ModelRequest;
use crate::stream::{ModelStream, State, Waiting};
use voices::{Block, VOICES, Voice};

/// The families that are built in.
pub(super) fn voices() -> impl Iterator<Item = &'static Voice> {
    VOICES.iter().filter(|voice| supports(voice.api))
}

/// An answer with everything, about 3 kB in each family.
pub(super) fn everything() -> Vec<Block> {
    vec![
        Block::think(["Let me ", "see. "]),
        Block::text(["Hé", "llo \u{1f600} ", "\"World\"\n", "and so on"]),
        Block::call(
            "abcdefgh1",
            "read",
            ["{\"path\": \"", "a.txt\", \"limit\": 2", "0}"],
        ),
        Block::call("abcdefgh2", "bash", ["{\"command\":", " \"ls\"}"]),
    ]
}

/// How a body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// As it should.
    Close,
    /// The connection breaks.
    Reset,
    /// Nothing more comes.
    Stall,
}

/// The stream of a response with this body: the real driver, only without a network.
pub(super) fn respond(request: &ModelRequest, pieces: Vec<Bytes>, end: End) -> ModelStream {
    let pieces = pieces.into_iter().map(Ok::<_, std::io::Error>);
    let last = stream::iter((end == End::Reset).then(|| Err(std::io::ErrorKind::ConnectionReset.into())));
    let silence = stream::iter((end == End::Stall).then_some(()));
    let silence = futures_util::StreamExt::filter_map(silence, |()| std::future::pending());
    let body = futures_util::StreamExt::chain(stream::iter(pieces), last);
    let body = futures_util::StreamExt::chain(body, silence);
    respond_with(request, reqwest::Body::wrap_stream(body))
}

/// Responds with a body of any kind.
pub(super) fn respond_with(request: &ModelRequest, body: reqwest::Body) -> ModelStream {
    let response = http::Response::new(body);
    let family = Family::of(&request.model.api).unwrap();
    let waiting = Waiting {
        head: Box::pin(ready(Ok(response.into()))),
        parser: family.parser(request, &CallNumbers::default()),
        framing: family.framing(),
        idle: request.timeouts.idle,
    };
    ModelStream::new(
        State::Waiting(Box::new(waiting)),
        CancellationToken::new(),
        Secrets::default(),
        tracing::Span::none(),
    )
}

/// All events of a stream.
pub(super) async fn drain(mut stream: ModelStream) -> Vec<ModelEvent> {
    let mut out = Vec::new();
    while stream.next_batch(&mut out).await {}
    out
}

/// The events of a body that comes in pieces.
pub(super) async fn hear(voice: &Voice, pieces: Vec<Bytes>, end: End) -> Vec<ModelEvent> {
    let mut request = request(model(voice.api));
    request.timeouts = Duration::from_millis(100).into();
    let mut events = drain(respond(&request, pieces, end)).await;
    if let Some(ModelEvent::Done(message) | ModelEvent::Error { message, .. }) = events.last_mut() {
        // Times of two streams differ.
        assert!(message.duration_ms.take().is_some(), "{}", voice.api);
    }
    events
}

/// Responds with a body in one piece that ends properly.
pub(super) async fn hear_whole(voice: &Voice, body: Vec<u8>) -> Vec<ModelEvent> {
    hear(voice, vec![body.into()], End::Close).await
}

/// What a stream came to.
pub(super) struct Outcome {
    pub(super) message: AssistantMessage,
    pub(super) failed: bool,
}

impl Outcome {
    /// The error text; empty for an answer.
    pub(super) fn error(&self) -> &str {
        self.message.error_message.as_deref().unwrap_or_default()
    }

    /// All text of the answer.
    pub(super) fn text(&self) -> String {
        let text = |block: &AssistantBlock| match block {
            AssistantBlock::Text(text) => text.text.clone(),
            _ => String::new(),
        };
        self.message.content.iter().map(text).collect()
    }

    /// Arguments of the calls.
    pub(super) fn arguments(&self) -> Vec<Value> {
        let calls = self
            .message
            .content
            .iter()
            .filter_map(AssistantBlock::as_tool_call);
        calls.map(|call| Value::Object(call.arguments.clone())).collect()
    }
}

/// Checks properties of every stream, complete or not: one last event and nothing after it, a start before every other
/// event, and a message with everything that the events contained. (A provider that repeats itself may correct itself;
/// then the block's end decides.)
pub(super) fn judge(events: &[ModelEvent], what: &str) -> Outcome {
    let ends = events.iter().filter(|event| event.is_last()).count();
    assert_eq!(ends, 1, "{what}: {ends} last events");
    let mut told = BTreeMap::<usize, String>::new();
    let mut started = false;
    for event in events {
        match event {
            ModelEvent::Start(head) => {
                assert!(!started && head.content.is_empty(), "{what}: a second start");
                started = true;
            }
            ModelEvent::Stream(event) => {
                assert!(started, "{what}: {event:?} before the start");
                if let StreamEvent::TextDelta { content_index, delta }
                | StreamEvent::ThinkingDelta { content_index, delta } = event
                {
                    told.entry(*content_index).or_default().push_str(delta);
                }
                if let StreamEvent::TextEnd {
                    content_index,
                    content,
                }
                | StreamEvent::ThinkingEnd {
                    content_index,
                    content,
                } = event
                {
                    told.insert(*content_index, content.clone());
                }
            }
            _ => {}
        }
    }
    let (message, failed) = match events.last() {
        Some(ModelEvent::Done(message)) => (message, false),
        Some(ModelEvent::Error { message, .. }) => (message, true),
        other => panic!("{what}: the last event is {other:?}"),
    };
    for (index, text) in told {
        let kept = match &message.content[index] {
            AssistantBlock::Text(block) => &block.text,
            AssistantBlock::Thinking(block) => &block.thinking,
            AssistantBlock::ToolCall(_) => panic!("{what}: text in a call"),
        };
        assert_eq!(*kept, text, "{what}: told and kept differ");
    }
    assert_eq!(failed, message.error_message.is_some(), "{what}");
    assert!(
        message.error_message.as_deref().unwrap_or_default().len() <= 9_000,
        "{what}"
    );
    Outcome {
        message: (**message).clone(),
        failed,
    }
}

#[test]
fn every_api_family_has_a_row() {
    // The catalogue is the only list of all APIs; this crate does not depend on the crate of the catalogue.
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../models/data/catalogue.jsonl");
    let catalogue = fs::read_to_string(path).unwrap();
    let apis = catalogue
        .split("\"api\":\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next());
    for api in apis.filter(|api| supports(api)) {
        assert!(
            VOICES.iter().any(|voice| voice.api == api),
            "{api} has no row in VOICES"
        );
    }
    assert!(voices().count() >= 6);
}

#[tokio::test]
async fn every_family_decodes_same_answer() {
    for voice in voices() {
        let heard = judge(
            &hear_whole(voice, (voice.say)(&everything()).concat()).await,
            voice.api,
        );
        assert!(!heard.failed, "{}: {}", voice.api, heard.error());
        assert_eq!(
            heard.text(),
            "Héllo \u{1f600} \"World\"\nand so on",
            "{}",
            voice.api
        );
        let arguments = [
            serde_json::json!({"path": "a.txt", "limit": 20}),
            serde_json::json!({"command": "ls"}),
        ];
        assert_eq!(heard.arguments(), arguments, "{}", voice.api);
        let thought = heard.message.content.iter().find_map(|block| match block {
            AssistantBlock::Thinking(block) => Some(block.thinking.as_str()),
            _ => None,
        });
        assert_eq!(thought, Some("Let me see. "), "{}", voice.api);
        assert_eq!(
            heard.message.stop_reason,
            wire::StopReason::ToolUse,
            "{}",
            voice.api
        );
        assert!(heard.message.usage.total_tokens >= 160, "{}", voice.api);
    }
}
