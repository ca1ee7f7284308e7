//! Replies from a file, for tests of embedders: a JSON list, or an object with the list under `llm`. Format: "Replies" of the
//! conformance kit, without what only a server can do (gates, raw bytes).

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use wire::{StopReason, ThinkingContent, Usage};

use super::play::Step;
use crate::answer::Fault;
use crate::error::LlmError;
use crate::limits::{MAX_SCRIPT_BYTES, MAX_SCRIPT_DELAY};
use crate::request::ModelRequest;

/// One reply as it is written in the file.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Reply {
    stream: Vec<Value>,
    usage: Tokens,
    stop: Option<String>,
    error: Option<Refusal>,
    before: Option<Value>,
    #[serde(rename = "match")]
    matcher: Matcher,
    repeat: bool,
}

/// Token counts of a reply.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(default)]
struct Tokens {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
}

impl Default for Tokens {
    fn default() -> Self {
        Self {
            input: 100,
            output: 20,
            cache_read: 0,
            cache_write: 0,
        }
    }
}

/// An error instead of an answer.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Refusal {
    kind: Option<String>,
    status: Option<u16>,
    message: Option<String>,
    body: Option<Value>,
    headers: serde_json::Map<String, Value>,
}

/// Which requests a reply is for; empty means any.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Matcher {
    contains: Option<String>,
    not_contains: Option<String>,
    tools: Option<bool>,
}

/// A reply that can be played.
#[derive(Debug)]
struct Ready {
    steps: VecDeque<Step>,
    matcher: Matcher,
    repeat: bool,
    used: bool,
}

/// A script and how far it has been played.
#[derive(Debug)]
pub(super) struct Script {
    replies: Vec<Ready>,
}

impl Script {
    /// Reads and checks a script.
    pub(super) fn load(path: Option<&Path>) -> Result<Self, LlmError> {
        let Some(path) = path else {
            let reason = "no script was named; give one with --script FILE".to_owned();
            return Err(LlmError::Script {
                path: "(none)".to_owned(),
                reason,
            });
        };
        let bad = |reason: String| LlmError::Script {
            path: path.display().to_string(),
            reason,
        };
        // All sessions share this thread, so it must not wait for the other end of a pipe.
        let script = files::Root::user()
            .read(path, MAX_SCRIPT_BYTES)
            .map_err(|error| bad(error.to_string()))?;
        if script.cut {
            return Err(bad(format!("is larger than {MAX_SCRIPT_BYTES} bytes")));
        }
        Self::parse(&script.text).map_err(bad)
    }

    /// Checks a script.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut json: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if let Some(list) = json.get_mut("llm") {
            json = list.take();
        }
        let Value::Array(list) = json else {
            return Err("must be a list of replies".to_owned());
        };
        let ready = |(index, value): (usize, Value)| {
            let named = |reason: String| format!("reply {}: {reason}", index + 1);
            let reply: Reply = serde_json::from_value(value).map_err(|error| named(error.to_string()))?;
            let steps = compile(&reply, index + 1).map_err(named)?;
            Ok(Ready {
                steps,
                matcher: reply.matcher,
                repeat: reply.repeat,
                used: false,
            })
        };
        let replies = list
            .into_iter()
            .enumerate()
            .map(ready)
            .collect::<Result<_, String>>()?;
        Ok(Self { replies })
    }

    /// The next reply that fits the request.
    pub(super) fn next(&mut self, request: &ModelRequest) -> VecDeque<Step> {
        let text = serde_json::to_string(&(&request.system_prompt, &request.messages)).unwrap_or_default();
        let has_tools = !request.tools.is_empty();
        let found = self
            .replies
            .iter_mut()
            .find(|reply| !reply.used && reply.matcher.fits(&text, has_tools));
        match found {
            Some(reply) => {
                reply.used = !reply.repeat;
                reply.steps.clone()
            }
            None => VecDeque::from([Step::Fail(Fault::new(
                "400 The script has no reply for this request",
            ))]),
        }
    }
}

impl Matcher {
    /// Returns true if the reply is for a request with this text.
    fn fits(&self, text: &str, has_tools: bool) -> bool {
        self.contains.as_ref().is_none_or(|part| text.contains(part))
            && self.not_contains.as_ref().is_none_or(|part| !text.contains(part))
            && self.tools.is_none_or(|wanted| wanted == has_tools)
    }
}

/// Compiles a reply into steps, or describes its error.
fn compile(reply: &Reply, number: usize) -> Result<VecDeque<Step>, String> {
    let mut steps = VecDeque::new();
    if let Some(before) = &reply.before {
        steps.push_back(control(before)?.ok_or("`before` must be a delay")?);
    }
    if let Some(refusal) = &reply.error {
        steps.push_back(Step::Fail(refusal.fault()));
        return Ok(steps);
    }
    steps.push_back(Step::Begin);
    let usage = Usage {
        input: reply.usage.input,
        output: reply.usage.output,
        cache_read: reply.usage.cache_read,
        cache_write: reply.usage.cache_write,
        ..Usage::default()
    };
    let mut calls = 0;
    for item in &reply.stream {
        if let Some(step) = control(item)? {
            let last = matches!(step, Step::Fail(_));
            steps.push_back(step);
            if last {
                return Ok(steps);
            }
        } else if let Some(text) = item.get("text") {
            block(Step::Text, &chunks(text)?, &mut steps);
        } else if let Some(text) = item.get("thinking") {
            let thinking_signature = item.get("signature").and_then(Value::as_str).map(str::to_owned);
            let empty = ThinkingContent {
                thinking_signature,
                ..ThinkingContent::default()
            };
            block(Step::Thinking(empty), &chunks(text)?, &mut steps);
        } else if let Some(tool) = item.get("tool") {
            calls += 1;
            call(tool, &format!("call_{number}_{calls}"), &mut steps)?;
        } else {
            return Err(format!("unknown item {item}"));
        }
    }
    steps.push_back(Step::Usage(usage));
    steps.push_back(match reply.stop.as_deref() {
        None if calls > 0 => Step::Done(StopReason::ToolUse),
        None | Some("stop") => Step::Done(StopReason::Stop),
        Some("toolUse") => Step::Done(StopReason::ToolUse),
        Some("length") => Step::Done(StopReason::Length),
        Some(other) => Step::Fail(Fault::new(format!("Provider finish_reason: {other}"))),
    });
    Ok(steps)
}

/// Items that steer instead of saying something.
fn control(item: &Value) -> Result<Option<Step>, String> {
    if let Some(delay) = item.get("delay") {
        let seconds = delay.as_f64().ok_or("a delay is a number of seconds")?;
        let time = Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())?;
        return Ok(Some(Step::Wait(time.min(MAX_SCRIPT_DELAY))));
    }
    if item.get("drop").is_some() {
        return Ok(Some(Step::Fail(Fault::new("terminated"))));
    }
    if item.get("eof").is_some() {
        return Ok(Some(Step::Fail(Fault::new("Stream ended without finish_reason"))));
    }
    if let Some(event) = item.get("error_event") {
        let refusal: Refusal = serde_json::from_value(event.clone()).map_err(|error| error.to_string())?;
        return Ok(Some(Step::Fail(Fault::new(refusal.words().1))));
    }
    if item.get("gate").is_some() || item.get("raw").is_some() {
        return Err("gates and raw bytes need the mock server".to_owned());
    }
    Ok(None)
}

/// Chunks of a block: strings, with delays between them.
fn chunks(value: &Value) -> Result<Vec<Step>, String> {
    let list = match value {
        Value::Array(list) => list.as_slice(),
        other => std::slice::from_ref(other),
    };
    let chunk = |chunk: &Value| match chunk {
        Value::String(text) => Ok(Step::Delta(text.clone())),
        other => control(other)?.ok_or_else(|| format!("unknown chunk {other}")),
    };
    list.iter().map(chunk).collect()
}

/// A block of any kind.
fn block(start: Step, chunks: &[Step], steps: &mut VecDeque<Step>) {
    steps.push_back(start);
    steps.extend(chunks.iter().cloned());
    steps.push_back(Step::End);
}

/// A tool call.
fn call(tool: &Value, id: &str, steps: &mut VecDeque<Step>) -> Result<(), String> {
    let text = |name: &str| tool.get(name).and_then(Value::as_str);
    let name = text("name").ok_or("a tool call needs a name")?.to_owned();
    let id = text("id").unwrap_or(id).to_owned();
    let chunks = match (tool.get("arg_chunks"), text("args_raw")) {
        (Some(list), _) => chunks(list)?,
        (None, Some(raw)) => vec![Step::Delta(raw.to_owned())],
        (None, None) => {
            let args = tool
                .get("args")
                .cloned()
                .unwrap_or_else(|| Value::Object(serde_json::Map::new()));
            vec![Step::Delta(args.to_string())]
        }
    };
    block(Step::Call { id, name }, &chunks, steps);
    Ok(())
}

impl Refusal {
    /// Status and words of an error.
    fn words(&self) -> (u16, String) {
        let (status, words) = match self.kind.as_deref().unwrap_or("server") {
            "rate_limit" => (429, "Rate limit reached. Please try again later."),
            "overloaded" => (529, "Overloaded"),
            "context_overflow" => (400, "prompt is too long: 213462 tokens > 200000 maximum"),
            "too_large" => (413, "Request exceeds the maximum size"),
            "auth" => (401, "invalid API key"),
            "invalid" => (400, "Invalid request."),
            _ => (500, "Internal server error"),
        };
        let words = match (&self.message, &self.body) {
            (Some(message), _) => message.clone(),
            (None, Some(body)) => body.to_string(),
            (None, None) => words.to_owned(),
        };
        (self.status.unwrap_or(status), words)
    }

    /// The error as an HTTP client would show it.
    fn fault(&self) -> Fault {
        let (status, words) = self.words();
        let header = self
            .headers
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case("retry-after"));
        let seconds = header.and_then(|(_, value)| match value {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => text.parse().ok(),
            _ => None,
        });
        let retry_after = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        Fault {
            text: format!("{status} {words}"),
            retry_after,
            status: Some(status),
        }
    }
}
