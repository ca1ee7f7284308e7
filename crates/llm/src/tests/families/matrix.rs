//! Features of each family: a proof per feature, tried with every family, and compared with `data/features.json`. The page
//! docs/reference/providers.md is generated from that file, so it claims exactly the features shown here.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wire::{AssistantBlock, StreamEvent, ThinkingLevel};

use super::super::handover;
use super::super::requests::{build, with};
use super::voices::{Block, Voice};
use super::{End, Outcome, drain, everything, hear, judge, nonsense, request, respond, voices};
use crate::event::ModelEvent;
use crate::family::Family;
use crate::request::{CacheRetention, ModelRequest};

/// Shows that a family can do something, or that it cannot.
type Proof = fn(&Voice) -> bool;

/// The features, in the order of the page's columns.
const FEATURES: [(&str, Proof); 14] = [
    ("streaming", streaming),
    ("thinking", thinking),
    ("tools", tools),
    ("toolDeltas", tool_deltas),
    ("images", images),
    ("toolImages", tool_images),
    ("caching", caching),
    ("usage", usage),
    ("cachedTokens", cached_tokens),
    ("cost", cost),
    ("errors", errors),
    ("abort", abort),
    ("faults", faults),
    ("handOver", hand_over),
];

fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

fn events(voice: &Voice) -> Vec<ModelEvent> {
    let pieces = (voice.say)(&everything());
    wait(hear(
        voice,
        pieces.into_iter().map(Into::into).collect(),
        End::Close,
    ))
}

fn outcome(voice: &Voice) -> Outcome {
    judge(&events(voice), voice.api)
}

/// A request to a model of the family with everything in it.
fn asked(voice: &Voice) -> ModelRequest {
    // Of the servers of chat completions only some take hints about caching.
    let url = match voice.api {
        "openai-completions" => "https://api.openai.com/v1",
        _ => "http://127.0.0.1:9",
    };
    // Bedrock has many makers' models; reasoning and cache points are for some of them.
    let id = match voice.api {
        "bedrock-converse-stream" => "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        _ => "m",
    };
    let mut request = request(with(voice.api, json!({"baseUrl": url, "id": id})));
    request.session_id = Some("sid".to_owned());
    request.system_prompt = "S".to_owned();
    request.thinking = ThinkingLevel::High;
    request.tools = serde_json::from_value(
        json!([{"name": "look", "description": "d", "parameters": {"type": "object"}}]),
    )
    .unwrap();
    let image = json!({"type": "image", "data": "aW1hZ2U=", "mimeType": "image/png"});
    let tool_image = json!({"type": "image", "data": "dG9vbA==", "mimeType": "image/png"});
    let messages = json!([
        {"role": "user", "content": [{"type": "text", "text": "u"}, image]},
        {"role": "assistant", "content": [{"type": "toolCall", "id": "abcdefgh1", "name": "look", "arguments": {}}],
         "api": voice.api, "provider": "p", "model": "m", "stopReason": "toolUse"},
        {"role": "toolResult", "toolCallId": "abcdefgh1", "toolName": "look", "content": [tool_image]},
        {"role": "user", "content": "v"},
    ]);
    request.messages = serde_json::from_value(messages).unwrap();
    request
}

/// Body and headers as one text.
fn sent(request: &ModelRequest) -> String {
    let (http, body) = build(request);
    let headers: BTreeMap<&str, &str> = http
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.to_str().unwrap_or_default()))
        .collect();
    format!("{body}{headers:?}")
}

/// Deltas arrive as they are sent, before the answer is whole.
fn streaming(voice: &Voice) -> bool {
    let frames = (voice.say)(&[Block::text(["one ", "two "])]);
    let at = frames
        .iter()
        .position(|frame| frame.windows(4).any(|part| part == b"two "))
        .unwrap();
    let heard = wait(hear(voice, vec![frames[..=at].concat().into()], End::Reset));
    let deltas: Vec<&str> = heard
        .iter()
        .filter_map(|event| match event {
            ModelEvent::Stream(StreamEvent::TextDelta { delta, .. }) => Some(delta.as_str()),
            _ => None,
        })
        .collect();
    deltas == ["one ", "two "]
}

/// Reasoning is asked for, and told apart from text.
fn thinking(voice: &Voice) -> bool {
    let on = asked(voice);
    let mut off = on.clone();
    off.thinking = ThinkingLevel::Off;
    let told = events(voice)
        .iter()
        .any(|event| matches!(event, ModelEvent::Stream(StreamEvent::ThinkingDelta { .. })));
    told && sent(&on) != sent(&off)
}

/// Tools are offered, and calls understood.
fn tools(voice: &Voice) -> bool {
    let heard = outcome(voice);
    let names = heard
        .message
        .tool_calls()
        .map(|call| call.name.clone())
        .collect::<Vec<_>>();
    sent(&asked(voice)).contains("\"look\"") && names == ["read", "bash"] && heard.arguments().len() == 2
}

/// Arguments of calls arrive in pieces.
fn tool_deltas(voice: &Voice) -> bool {
    let deltas = |event: &&ModelEvent| matches!(event, ModelEvent::Stream(StreamEvent::ToolcallDelta { delta, .. }) if !delta.is_empty());
    let came = events(voice).iter().filter(deltas).count() == 5;
    assert_eq!(came, voice.argument_deltas, "{}", voice.api);
    came
}

fn images(voice: &Voice) -> bool {
    sent(&asked(voice)).contains("aW1hZ2U=")
}

fn tool_images(voice: &Voice) -> bool {
    sent(&asked(voice)).contains("dG9vbA==")
}

/// The prompt is marked or keyed for the provider's cache, unless that is switched off.
fn caching(voice: &Voice) -> bool {
    let short = asked(voice);
    let mut none = short.clone();
    none.cache_retention = CacheRetention::None;
    sent(&short) != sent(&none)
}

fn usage(voice: &Voice) -> bool {
    let usage = outcome(voice).message.usage;
    usage.input > 0 && usage.output == 20 && usage.total_tokens >= usage.input + usage.output
}

fn cached_tokens(voice: &Voice) -> bool {
    let usage = outcome(voice).message.usage;
    usage.cache_read == 40 && usage.input == 100
}

/// The tokens times the prices of the model.
fn cost(voice: &Voice) -> bool {
    let usage = outcome(voice).message.usage;
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    let price = |tokens: u64, dollars: f64| tokens as f64 * dollars / 1e6;
    let expected = price(usage.input, 3.0)
        + price(usage.output, 15.0)
        + price(usage.cache_read, 0.3)
        + price(usage.cache_write, 3.75);
    expected > 0.0 && (usage.cost.total - expected).abs() < 1e-12
}

/// HTTP errors and errors in the stream are shown in the provider's words.
fn errors(voice: &Voice) -> bool {
    let body = "{\"error\":{\"message\":\"no boats\"},\"message\":\"no boats\"}";
    let http = Family::of(voice.api).unwrap().error_text(429, body);
    let stream = judge(
        &wait(hear(voice, vec![(voice.trouble)("no boats").into()], End::Close)),
        voice.api,
    );
    http.contains("no boats") && http.contains("429") && stream.failed && stream.error().contains("no boats")
}

/// An abort ends the answer at once and keeps what came.
fn abort(voice: &Voice) -> bool {
    let frames = (voice.say)(&[Block::text(["one ", "two "])]);
    let at = frames
        .iter()
        .position(|frame| frame.windows(4).any(|part| part == b"two "))
        .unwrap();
    let request = request(super::model(voice.api));
    let heard = wait(async {
        let mut stream = respond(&request, vec![frames[..=at].concat().into()], End::Stall);
        let mut heard = Vec::new();
        assert!(stream.next_batch(&mut heard).await);
        while !heard
            .iter()
            .any(|event| matches!(event, ModelEvent::Stream(StreamEvent::TextDelta { .. })))
        {
            assert!(stream.next_batch(&mut heard).await);
        }
        stream.abort_for_test();
        heard.extend(drain(stream).await);
        heard
    });
    let heard = judge(&heard, voice.api);
    heard.message.stop_reason == wire::StopReason::Aborted && heard.text() == "one two "
}

/// Nonsense in the stream; other files of this folder try the rest of the table with every family.
fn faults(voice: &Voice) -> bool {
    wait(nonsense::between_two_deltas(voice));
    true
}

/// Conversations of every family go on here.
fn hand_over(voice: &Voice) -> bool {
    handover::wrong_at(voice.api).is_empty()
}

/// Family -> the features that were shown.
fn shown() -> BTreeMap<&'static str, Vec<&'static str>> {
    let proven = |voice: &Voice| {
        let features = FEATURES.iter().filter(|(_, proof)| proof(voice));
        features.map(|(name, _)| *name).collect()
    };
    voices().map(|voice| (voice.api, proven(voice))).collect()
}

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/features.json");

/// The file: what each column is called and means, and what each family can do.
fn file(shown: &BTreeMap<&str, Vec<&str>>) -> String {
    let rows: Vec<String> = shown
        .iter()
        .map(|(api, features)| format!("    {}: {}", json!(api), json!(features)))
        .collect();
    format!(
        "{{\n  \"features\": {},\n  \"families\": {{\n{}\n  }}\n}}\n",
        json!(FEATURES.map(|(name, _)| name)),
        rows.join(",\n")
    )
}

#[test]
fn features_file_equals_demonstrated_features() {
    let expected = file(&shown());
    let claimed = std::fs::read_to_string(FILE).unwrap_or_default();
    assert!(
        claimed == expected,
        "data/features.json claims\n{claimed}\nbut this was shown (`-- --ignored record` writes it):\n{expected}"
    );
    let value: Value = serde_json::from_str(&claimed).unwrap();
    assert_eq!(value["features"].as_array().unwrap().len(), FEATURES.len());
}

/// Writes the results, for developers who have added a feature to a family.
#[test]
#[ignore = "writes data/features.json"]
fn record() {
    std::fs::write(FILE, file(&shown())).unwrap();
}

/// A proof that always holds would prove nothing: here is what none of them may accept.
#[test]
fn feature_proofs_can_fail() {
    fn silent(_: &[Block]) -> Vec<Vec<u8>> {
        vec![b"data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n".to_vec()]
    }
    let mute = Voice {
        say: silent,
        ..*voices().find(|voice| voice.api == "openai-completions").unwrap()
    };
    for proof in [thinking, tools, usage, cached_tokens, cost] {
        assert!(!proof(&mute));
    }
    let none: Vec<AssistantBlock> = Vec::new();
    assert_eq!(outcome(&mute).message.content, none);
}
