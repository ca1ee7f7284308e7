//! One answer, as each API family sends it: one row per family. Only the output of a provider is here; the other files
//! of this folder test with it. A new family is one more row of [`VOICES`].

use serde_json::{Value, json};

/// A block of an answer.
#[derive(Debug, Clone)]
pub(crate) enum Block {
    /// Reasoning, its deltas.
    Think(Vec<String>),
    /// Text, its deltas.
    Text(Vec<String>),
    /// A call: id, tool, deltas of the argument JSON.
    Call(String, String, Vec<String>),
}

impl Block {
    pub(crate) fn think<const N: usize>(deltas: [&str; N]) -> Self {
        Self::Think(deltas.map(str::to_owned).to_vec())
    }

    pub(crate) fn text<const N: usize>(deltas: [&str; N]) -> Self {
        Self::Text(deltas.map(str::to_owned).to_vec())
    }

    pub(crate) fn call<const N: usize>(id: &str, tool: &str, deltas: [&str; N]) -> Self {
        Self::Call(id.to_owned(), tool.to_owned(), deltas.map(str::to_owned).to_vec())
    }
}

/// A family's way to speak.
#[derive(Clone, Copy)]
pub(crate) struct Voice {
    /// The API that models name.
    pub(crate) api: &'static str,
    /// The frames of a whole answer.
    pub(crate) say: fn(&[Block]) -> Vec<Vec<u8>>,
    /// Makes a frame of any payload, for garbage and unknown events.
    pub(crate) frame: fn(&[u8]) -> Vec<u8>,
    /// The frame of an error inside the stream.
    pub(crate) trouble: fn(&str) -> Vec<u8>,
    /// True if arguments of calls arrive in pieces.
    pub(crate) argument_deltas: bool,
    /// The type of the body.
    pub(crate) content_type: &'static str,
}

const SSE: &str = "text/event-stream";

/// Every family. Families with the same stream format differ in requests, credentials and error texts.
pub(crate) const VOICES: [Voice; 9] = [
    sse("anthropic-messages", anthropic, anthropic_trouble, true),
    sse("openai-completions", completions, error_object, true),
    sse("openai-responses", responses, responses_trouble, true),
    sse("azure-openai-responses", responses, responses_trouble, true),
    sse("openai-codex-responses", responses, responses_trouble, true),
    sse("google-generative-ai", google, error_object, false),
    sse("google-vertex", google, error_object, false),
    sse("mistral-conversations", mistral, error_object, true),
    Voice {
        api: "bedrock-converse-stream",
        say: converse,
        frame: converse_frame,
        trouble: converse_trouble,
        argument_deltas: true,
        content_type: "application/vnd.amazon.eventstream",
    },
];

const fn sse(
    api: &'static str,
    say: fn(&[Block]) -> Vec<Vec<u8>>,
    trouble: fn(&str) -> Vec<u8>,
    argument_deltas: bool,
) -> Voice {
    Voice {
        api,
        say,
        frame: plain,
        trouble,
        argument_deltas,
        content_type: SSE,
    }
}

fn plain(payload: &[u8]) -> Vec<u8> {
    [b"data: ", payload, b"\n\n"].concat()
}

fn data(value: &Value) -> Vec<u8> {
    plain(value.to_string().as_bytes())
}

fn named(value: &Value) -> Vec<u8> {
    let name = value["type"].as_str().unwrap_or_default();
    [format!("event: {name}\n").into_bytes(), data(value)].concat()
}

fn anthropic(blocks: &[Block]) -> Vec<Vec<u8>> {
    let usage = json!({"input_tokens": 100, "cache_read_input_tokens": 40, "cache_creation_input_tokens": 10, "output_tokens": 1});
    let mut out = vec![
        json!({"type": "message_start", "message": {"id": "msg_1", "model": "m", "usage": usage}}),
        json!({"type": "ping"}),
    ];
    for (index, block) in blocks.iter().enumerate() {
        let (start, deltas, kind, field) = match block {
            Block::Think(deltas) => (
                json!({"type": "thinking", "thinking": "", "signature": ""}),
                deltas,
                "thinking_delta",
                "thinking",
            ),
            Block::Text(deltas) => (json!({"type": "text", "text": ""}), deltas, "text_delta", "text"),
            Block::Call(id, tool, deltas) => (
                json!({"type": "tool_use", "id": id, "name": tool, "input": {}}),
                deltas,
                "input_json_delta",
                "partial_json",
            ),
        };
        out.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
        for delta in deltas {
            out.push(
                json!({"type": "content_block_delta", "index": index, "delta": {"type": kind, field: delta}}),
            );
        }
        if matches!(block, Block::Think(_)) {
            let delta = json!({"type": "signature_delta", "signature": "c2ln"});
            out.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        out.push(json!({"type": "content_block_stop", "index": index}));
    }
    let reason = if calls(blocks) { "tool_use" } else { "end_turn" };
    out.push(
        json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 20}}),
    );
    out.push(json!({"type": "message_stop"}));
    out.iter().map(named).collect()
}

fn anthropic_trouble(text: &str) -> Vec<u8> {
    named(&json!({"type": "error", "error": {"type": "overloaded_error", "message": text}}))
}

fn completions(blocks: &[Block]) -> Vec<Vec<u8>> {
    let chunk = |delta: Value| json!({"id": "c1", "model": "m", "choices": [{"index": 0, "delta": delta}]});
    let mut out = vec![chunk(json!({"role": "assistant", "content": ""}))];
    let mut calls_so_far = 0;
    for block in blocks {
        match block {
            Block::Think(deltas) => {
                out.extend(
                    deltas
                        .iter()
                        .map(|delta| chunk(json!({"reasoning_content": delta}))),
                );
            }
            Block::Text(deltas) => out.extend(deltas.iter().map(|delta| chunk(json!({"content": delta})))),
            Block::Call(id, tool, deltas) => {
                out.extend(chat_call(calls_so_far, id, tool, deltas).map(chunk));
                calls_so_far += 1;
            }
        }
    }
    let usage = json!({"prompt_tokens": 150, "completion_tokens": 20, "total_tokens": 170,
        "prompt_tokens_details": {"cached_tokens": 40, "cache_write_tokens": 10}});
    chat_end(out, blocks, usage)
}

/// The pieces of a call in chat completions.
fn chat_call<'a>(
    index: usize,
    id: &'a str,
    tool: &'a str,
    deltas: &'a [String],
) -> impl Iterator<Item = Value> + 'a {
    let first = json!({"tool_calls": [{"index": index, "id": id, "type": "function", "function": {"name": tool, "arguments": ""}}]});
    let more =
        move |delta: &String| json!({"tool_calls": [{"index": index, "function": {"arguments": delta}}]});
    std::iter::once(first).chain(deltas.iter().map(more))
}

fn chat_end(mut out: Vec<Value>, blocks: &[Block], usage: Value) -> Vec<Vec<u8>> {
    let reason = if calls(blocks) { "tool_calls" } else { "stop" };
    out.push(json!({"choices": [{"delta": {}, "finish_reason": reason}]}));
    out.push(json!({"choices": [], "usage": usage}));
    let mut frames: Vec<Vec<u8>> = out.iter().map(data).collect();
    frames.push(plain(b"[DONE]"));
    frames
}

fn mistral(blocks: &[Block]) -> Vec<Vec<u8>> {
    let chunk = |delta: Value| json!({"id": "m1", "choices": [{"index": 0, "delta": delta}]});
    let mut out = vec![chunk(json!({"role": "assistant", "content": ""}))];
    let mut calls_so_far = 0;
    for block in blocks {
        match block {
            Block::Think(deltas) => {
                let part =
                    |text: &String| json!({"type": "thinking", "thinking": [{"type": "text", "text": text}]});
                out.extend(
                    deltas
                        .iter()
                        .map(|delta| chunk(json!({"content": [part(delta)]}))),
                );
            }
            Block::Text(deltas) => out.extend(deltas.iter().map(|delta| chunk(json!({"content": delta})))),
            Block::Call(id, tool, deltas) => {
                out.extend(chat_call(calls_so_far, id, tool, deltas).map(chunk));
                calls_so_far += 1;
            }
        }
    }
    let usage = json!({"prompt_tokens": 140, "completion_tokens": 20, "total_tokens": 160,
        "prompt_tokens_details": {"cached_tokens": 40}});
    chat_end(out, blocks, usage)
}

fn error_object(text: &str) -> Vec<u8> {
    data(&json!({"error": {"code": 503, "message": text, "status": "UNAVAILABLE"}}))
}

fn responses(blocks: &[Block]) -> Vec<Vec<u8>> {
    let mut out = vec![json!({"type": "response.created", "response": {"id": "resp_1"}})];
    for (index, block) in blocks.iter().enumerate() {
        let (begun, kind, deltas, item) = match block {
            Block::Think(deltas) => {
                let whole = json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "e",
                    "summary": [{"type": "summary_text", "text": deltas.concat()}]});
                (
                    json!({"type": "reasoning", "id": "rs_1", "summary": []}),
                    "response.reasoning_summary_text.delta",
                    deltas,
                    whole,
                )
            }
            Block::Text(deltas) => {
                let whole = json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
                    "content": [{"type": "output_text", "text": deltas.concat(), "annotations": []}]});
                (
                    json!({"type": "message", "id": "msg_1", "content": []}),
                    "response.output_text.delta",
                    deltas,
                    whole,
                )
            }
            Block::Call(id, tool, deltas) => {
                let item = |arguments: String| json!({"type": "function_call", "id": format!("fc_{index}"), "call_id": id, "name": tool, "arguments": arguments});
                (
                    item(String::new()),
                    "response.function_call_arguments.delta",
                    deltas,
                    item(deltas.concat()),
                )
            }
        };
        let event = |kind: &str, field: &str, value: Value| json!({"type": kind, "output_index": index, field: value});
        out.push(event("response.output_item.added", "item", begun));
        out.extend(deltas.iter().map(|delta| event(kind, "delta", json!(delta))));
        out.push(event("response.output_item.done", "item", item));
    }
    let usage = json!({"input_tokens": 140, "output_tokens": 20, "total_tokens": 160, "input_tokens_details": {"cached_tokens": 40}});
    out.push(json!({"type": "response.completed", "response": {"id": "resp_1", "status": "completed", "usage": usage}}));
    out.iter().map(named).collect()
}

fn responses_trouble(text: &str) -> Vec<u8> {
    named(&json!({"type": "error", "code": "server_error", "message": text}))
}

fn google(blocks: &[Block]) -> Vec<Vec<u8>> {
    let chunk = |part: Value| json!({"candidates": [{"content": {"role": "model", "parts": [part]}}], "responseId": "g1"});
    let mut out = Vec::new();
    for block in blocks {
        match block {
            Block::Think(deltas) => out.extend(
                deltas
                    .iter()
                    .map(|delta| chunk(json!({"text": delta, "thought": true}))),
            ),
            Block::Text(deltas) => out.extend(deltas.iter().map(|delta| chunk(json!({"text": delta})))),
            Block::Call(id, tool, deltas) => {
                let text = deltas.concat();
                let args: Value = serde_json::from_str(&text).unwrap_or(Value::String(text));
                out.push(chunk(
                    json!({"functionCall": {"id": id, "name": tool, "args": args}, "thoughtSignature": "c2ln"}),
                ));
            }
        }
    }
    let usage = json!({"promptTokenCount": 140, "cachedContentTokenCount": 40, "candidatesTokenCount": 15,
        "thoughtsTokenCount": 5, "totalTokenCount": 160});
    let parts = json!({"role": "model", "parts": [{"text": ""}]});
    out.push(json!({"candidates": [{"content": parts, "finishReason": "STOP"}], "usageMetadata": usage}));
    // Google ends its lines with CRLF.
    let frame = |value: &Value| format!("data: {value}\r\n\r\n").into_bytes();
    out.iter().map(frame).collect()
}

fn calls(blocks: &[Block]) -> bool {
    blocks.iter().any(|block| matches!(block, Block::Call(..)))
}

/// A frame of AWS' event stream: lengths and their checksum, headers of strings, payload, checksum of the whole.
fn aws(headers: &[(&str, &str)], payload: &[u8]) -> Vec<u8> {
    let mut names = Vec::new();
    for (name, value) in headers {
        names.push(u8::try_from(name.len()).unwrap_or_default());
        names.extend_from_slice(name.as_bytes());
        names.push(7);
        names.extend(u16::try_from(value.len()).unwrap_or_default().to_be_bytes());
        names.extend_from_slice(value.as_bytes());
    }
    let length = |bytes: usize| u32::try_from(bytes).unwrap_or_default().to_be_bytes();
    let checksum = |bytes: &[u8]| {
        let mut crc = flate2::Crc::new();
        crc.update(bytes);
        crc.sum().to_be_bytes()
    };
    let mut out = [length(16 + names.len() + payload.len()), length(names.len())].concat();
    out.extend(checksum(&out));
    out.extend(names);
    out.extend_from_slice(payload);
    out.extend(checksum(&out));
    out
}

fn converse_event(kind: &str, payload: &[u8]) -> Vec<u8> {
    let headers = [
        (":message-type", "event"),
        (":event-type", kind),
        (":content-type", "application/json"),
    ];
    aws(&headers, payload)
}

fn converse_frame(payload: &[u8]) -> Vec<u8> {
    converse_event("surprise", payload)
}

fn converse_trouble(text: &str) -> Vec<u8> {
    let headers = [
        (":message-type", "exception"),
        (":exception-type", "throttlingException"),
    ];
    aws(&headers, json!({"message": text}).to_string().as_bytes())
}

fn converse(blocks: &[Block]) -> Vec<Vec<u8>> {
    let event = |kind: &str, value: Value| converse_event(kind, value.to_string().as_bytes());
    let mut out = vec![event("messageStart", json!({"role": "assistant"}))];
    for (index, block) in blocks.iter().enumerate() {
        let mut delta = |delta: Value| {
            out.push(event(
                "contentBlockDelta",
                json!({"contentBlockIndex": index, "delta": delta}),
            ))
        };
        match block {
            Block::Think(deltas) => {
                deltas
                    .iter()
                    .for_each(|text| delta(json!({"reasoningContent": {"text": text}})));
                delta(json!({"reasoningContent": {"signature": "c2ln"}}));
            }
            Block::Text(deltas) => deltas.iter().for_each(|text| delta(json!({"text": text}))),
            Block::Call(id, tool, deltas) => {
                let start = json!({"contentBlockIndex": index, "start": {"toolUse": {"toolUseId": id, "name": tool}}});
                out.push(event("contentBlockStart", start));
                let delta = |text: &String| json!({"contentBlockIndex": index, "delta": {"toolUse": {"input": text}}});
                out.extend(deltas.iter().map(|text| event("contentBlockDelta", delta(text))));
            }
        }
        out.push(event("contentBlockStop", json!({"contentBlockIndex": index})));
    }
    let reason = if calls(blocks) { "tool_use" } else { "end_turn" };
    out.push(event("messageStop", json!({"stopReason": reason})));
    let usage =
        json!({"inputTokens": 100, "outputTokens": 20, "totalTokens": 160, "cacheReadInputTokens": 40});
    out.push(event("metadata", json!({"usage": usage})));
    out
}
