//! The offline provider: echo and script.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::NamedTempFile;
use tokio_util::sync::CancellationToken;
use wire::{Message, ToolSpec};

use super::{last, model};
use crate::request::ModelRequest;
use crate::{Client, ClientConfig, ModelEvent};

fn request(id: &str, prompt: &str) -> ModelRequest {
    let mut model = model("offline");
    model.id = id.to_owned();
    let mut request = ModelRequest::new(model, 7);
    request.messages = vec![Arc::new(Message::user(prompt, 0))];
    request
}

fn with_tools(mut request: ModelRequest, names: &[&str]) -> ModelRequest {
    let spec = |name: &&str| ToolSpec {
        name: (*name).to_owned(),
        description: String::new(),
        parameters: json!({}),
        prefers_strict: false,
    };
    request.tools = names.iter().map(spec).collect();
    request
}

async fn all(client: &Client, request: ModelRequest) -> Vec<ModelEvent> {
    let mut stream = client.stream(request, CancellationToken::new());
    let mut out = Vec::new();
    while stream.next_batch(&mut out).await {}
    assert!(stream.next().await.is_none());
    out
}

fn quick() -> Client {
    Client::new(ClientConfig {
        word_delay: Duration::ZERO,
        ..ClientConfig::default()
    })
}

fn scripted(replies: &Value) -> (Client, NamedTempFile) {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(replies.to_string().as_bytes()).unwrap();
    let config = ClientConfig {
        script: Some(file.path().to_owned()),
        ..ClientConfig::default()
    };
    (Client::new(config), file)
}

#[tokio::test]
async fn echo_model_identifies_itself_and_streams_words() {
    let events = all(&quick(), request("echo", "Tell me a story.")).await;
    assert!(matches!(events[0], ModelEvent::Start(_)));
    let (message, failed) = last(&events);
    assert!(!failed);
    let text = message["content"][0]["text"].as_str().unwrap();
    assert!(
        text.contains("not an AI") && text.contains("> Tell me a story."),
        "{text}"
    );
    let deltas = events
        .iter()
        .filter(|event| matches!(event, ModelEvent::Stream(wire::StreamEvent::TextDelta { .. })))
        .count();
    assert!(deltas > 20);
    assert_eq!(message["stopReason"], "stop");
    assert!(message["usage"]["output"].as_u64().unwrap() > 10);
}

#[tokio::test]
async fn echo_model_calls_tool_and_summarises_result() {
    let client = quick();
    for (tools, name, arguments) in [
        (&["bash", "ls"][..], "ls", json!({"path": "."})),
        (&["read", "bash"][..], "bash", json!({"command": "ls -la"})),
    ] {
        let mut request = with_tools(request("echo", "Please list the files here"), tools);
        let (message, _) = last(&all(&client, request.clone()).await);
        assert_eq!(message["stopReason"], "toolUse");
        assert_eq!(message["content"][1]["name"], name);
        assert_eq!(message["content"][1]["arguments"], arguments);
        let result = json!({"role": "toolResult", "toolCallId": "x", "toolName": name, "content": [{"type": "text", "text": "a.txt\nb.txt\n"}]});
        request.messages.push(serde_json::from_value(result).unwrap());
        let (message, _) = last(&all(&client, request).await);
        let text = message["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("2 line(s)") && text.contains("a.txt"), "{text}");
    }
    let (message, _) = last(&all(&client, with_tools(request("echo", "list the files"), &["read"])).await);
    assert_eq!(message["stopReason"], "stop");
}

#[tokio::test]
async fn offline_scripts_play_by_order_and_match() {
    let (client, _file) = scripted(&json!({"llm": [
        {"match": {"contains": "special"}, "stream": [{"text": "matched"}]},
        {"stream": [{"thinking": ["hm", "m"], "signature": "s"}, {"text": ["a", {"delay": 0.001}, "b"]},
                    {"tool": {"name": "read", "args": {"path": "x"}}}], "usage": {"input": 10, "output": 2}},
        {"error": {"kind": "rate_limit", "headers": {"Retry-After": "3"}}},
        {"stream": [{"text": "part"}, {"drop": "reset"}]},
        {"stream": [{"text": "cut"}], "stop": "length"},
    ]}));
    let (first, _) = last(&all(&client, request("script", "go")).await);
    assert_eq!(
        first["content"][0],
        json!({"type": "thinking", "thinking": "hmm", "thinkingSignature": "s"})
    );
    assert_eq!(first["content"][1]["text"], "ab");
    assert_eq!(first["content"][2]["arguments"], json!({"path": "x"}));
    assert_eq!(
        (&first["stopReason"], &first["usage"]["totalTokens"]),
        (&json!("toolUse"), &json!(12))
    );
    let second = all(&client, request("script", "go")).await;
    let ModelEvent::Error { message, retry_after } = &second[0] else {
        panic!("{second:?}")
    };
    assert!(message.error_message.as_deref().unwrap().starts_with("429 "));
    assert_eq!(*retry_after, Some(Duration::from_secs(3)));
    let (third, failed) = last(&all(&client, request("script", "go")).await);
    assert!(failed && third["errorMessage"] == "terminated" && third["content"][0]["text"] == "part");
    assert_eq!(
        last(&all(&client, request("script", "special")).await).0["content"][0]["text"],
        "matched"
    );
    assert_eq!(
        last(&all(&client, request("script", "go")).await).0["stopReason"],
        "length"
    );
    let (end, failed) = last(&all(&client, request("script", "go")).await);
    assert!(failed && end["errorMessage"].as_str().unwrap().starts_with("400 "));
}

#[tokio::test]
async fn invalid_offline_scripts_are_explained() {
    let (client, file) = scripted(&json!([{"stream": [{"text": "x"}]}, {"stream": [{"tx": "x"}]}]));
    let (message, failed) = last(&all(&client, request("script", "go")).await);
    let text = message["errorMessage"].as_str().unwrap();
    assert!(
        failed && text.contains("reply 2") && text.contains(&*file.path().to_string_lossy()),
        "{text}"
    );
    let (message, _) = last(&all(&quick(), request("script", "go")).await);
    assert!(message["errorMessage"].as_str().unwrap().contains("--script"));
}

#[tokio::test]
async fn offline_script_must_be_regular_file() {
    let client = Client::new(ClientConfig {
        script: Some("/dev/null".into()),
        ..ClientConfig::default()
    });
    let (message, failed) = last(&all(&client, request("script", "go")).await);
    assert!(failed);
    assert_eq!(message["errorMessage"], "Script /dev/null: not a regular file");
}

#[tokio::test(start_paused = true)]
async fn waiting_offline_script_can_be_aborted() {
    let (client, _file) = scripted(&json!([{"stream": [{"text": ["one", {"delay": 1000}, "two"]}]}]));
    let cancel = CancellationToken::new();
    let mut stream = client.stream(request("script", "go"), cancel.clone());
    let mut out = Vec::new();
    assert!(stream.next_batch(&mut out).await);
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(5)).await;
        cancel.cancel();
    });
    while stream.next_batch(&mut out).await {}
    let (message, failed) = last(&out);
    assert!(failed);
    assert_eq!(message["stopReason"], "aborted");
    assert_eq!(message["errorMessage"], "Request was aborted");
    assert_eq!(message["content"][0]["text"], "one");
}
