//! Answers of extensions: events in any order and shape become ours, within bounds.

use std::collections::VecDeque;
use std::task::{Context, Poll};
use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use wire::{AssistantMessage, StopReason, StreamEvent};

use crate::{Client, ClientConfig, Lent, LentEvents, ModelEvent, ModelRequest};

struct Events(VecDeque<Value>, bool);

impl LentEvents for Events {
    fn poll_next(&mut self, _context: &mut Context<'_>) -> Poll<Option<Value>> {
        match self.0.pop_front() {
            Some(event) => Poll::Ready(Some(event)),
            None if self.1 => Poll::Ready(None),
            None => Poll::Pending,
        }
    }
}

fn request() -> ModelRequest {
    let model = json!({"id": "m", "name": "M", "api": "theirs", "provider": "p", "baseUrl": "",
        "cost": {"input": 1e5, "output": 2e5, "cacheRead": 0, "cacheWrite": 0}});
    let mut request = ModelRequest::new(serde_json::from_value(model).unwrap(), 7);
    request.timeouts = Duration::from_secs(5).into();
    request
}

/// Everything that comes of these events and this end; without an end nothing more ever comes.
async fn told(
    events: impl IntoIterator<Item = Value>,
    end: Option<Result<Value, String>>,
    cancel: CancellationToken,
) -> (Vec<StreamEvent>, AssistantMessage) {
    let lent = Lent {
        events: Box::new(Events(events.into_iter().collect(), end.is_some())),
        end: Box::pin(async move {
            match end {
                Some(end) => end,
                None => std::future::pending().await,
            }
        }),
    };
    let client = Client::new(ClientConfig::default());
    let mut stream = client.borrow(&request(), lent, cancel);
    let (mut streamed, mut last) = (Vec::new(), None);
    while let Some(event) = stream.next().await {
        match event {
            ModelEvent::Stream(event) => streamed.push(event),
            ModelEvent::Done(message) | ModelEvent::Error { message, .. } => last = Some(*message),
            _ => {}
        }
    }
    (streamed, last.unwrap())
}

fn whole(content: Value, stop: &str) -> Option<Result<Value, String>> {
    let usage =
        json!({"input": 1, "output": 2, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 3, "cost": {}});
    Some(Ok(
        json!({"role": "assistant", "content": content, "stopReason": stop, "usage": usage}),
    ))
}

#[tokio::test]
async fn delegated_stream_end_completes_missing_events() {
    let content = json!([{"type": "text", "text": "Hi"}, {"type": "toolCall", "id": "c", "name": "ls", "arguments": {"a": 1}}]);
    let events = [
        json!({"type": "text_delta", "contentIndex": 0, "delta": "H"}),
        json!({"type": "odd"}),
        json!(3),
    ];
    let (streamed, message) = told(events, whole(content, "toolUse"), CancellationToken::new()).await;
    let kinds: Vec<String> = streamed
        .iter()
        .map(|event| json!(event)["type"].as_str().unwrap().to_owned())
        .collect();
    let expected = [
        "text_start",
        "text_delta",
        "toolcall_start",
        "toolcall_delta",
        "toolcall_end",
        "text_end",
    ];
    assert_eq!(kinds, expected);
    assert_eq!(message.content.len(), 2);
    assert_eq!((message.provider.as_str(), message.timestamp), ("p", 7));
    // One input token and two output tokens at the model's prices.
    assert_eq!(message.usage.cost.total, 0.5);
}

#[tokio::test]
async fn delegated_call_has_arguments_of_its_end() {
    let call = json!({"type": "toolCall", "id": "c", "name": "ls", "arguments": {"a": 1, "b": 2}});
    let events = [
        json!({"type": "toolcall_start", "contentIndex": 0, "id": "c", "toolName": "ls"}),
        json!({"type": "toolcall_delta", "contentIndex": 0, "delta": "{\"a\":1 \"b\":2}"}),
        json!({"type": "toolcall_end", "contentIndex": 0, "toolCall": call}),
    ];
    let (streamed, _) = told(events, whole(json!([call]), "toolUse"), CancellationToken::new()).await;
    let Some(StreamEvent::ToolcallEnd { tool_call, .. }) = streamed.last() else {
        panic!("{streamed:?}")
    };
    assert_eq!(json!(tool_call.arguments), call["arguments"]);
    assert_eq!(tool_call.arguments_error(), None);
}

#[tokio::test]
async fn invalid_delegated_stream_ends_are_errors() {
    let none = CancellationToken::new;
    let (_, message) = told([], Some(Ok(Value::Null)), none()).await;
    assert_eq!(message.stop_reason, StopReason::Error);
    let (_, message) = told([], Some(Err("Connection lost: gone".to_owned())), none()).await;
    assert!(crate::is_retryable(message.error_message.as_deref().unwrap()));
    let (_, message) = told([], whole(json!([{"type": "text"}]), "error"), none()).await;
    assert_eq!(
        message.error_message.as_deref(),
        Some("The provider gave no reason")
    );
    assert_eq!(message.http_status, None);
    let refused = json!({"content": [], "stopReason": "error", "errorMessage": "busy", "errorStatus": 503});
    let (_, message) = told([], Some(Ok(refused)), none()).await;
    assert_eq!(message.http_status, Some(503));
}

#[tokio::test(start_paused = true)]
async fn delegated_stream_ends_on_silence_and_abort() {
    let begun = || [json!({"type": "text_delta", "contentIndex": 4, "delta": "so far"})];
    let (_, message) = told(begun(), None, CancellationToken::new()).await;
    assert!(message.error_message.unwrap().starts_with("Stream timed out"));
    let cancel = CancellationToken::new();
    let soon = cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        soon.cancel();
    });
    let (_, message) = told(begun(), None, cancel).await;
    assert_eq!(message.stop_reason, StopReason::Aborted);
    assert_eq!(message.content.len(), 1);
}

#[tokio::test]
async fn endless_delegated_answer_is_cut() {
    let piece = "x".repeat(1 << 20);
    let events = (0..40).map(|_| json!({"type": "text_delta", "contentIndex": 0, "delta": piece}));
    let (_, message) = told(events, whole(json!([]), "stop"), CancellationToken::new()).await;
    assert!(message.error_message.unwrap().contains("larger than"));
}
