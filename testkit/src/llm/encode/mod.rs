//! From a reply's items to a provider's events. Here is what all protocols share; each has its own file next to
//! this one. Bytes are written by `super::body`.

mod anthropic;
mod bedrock;
mod google;
mod openai;
pub(crate) mod pyjson;
mod responses;

use serde_json::Value;

use super::api::Api;
use super::body::{Body, Step};
use super::errors;
use super::expand;
use super::fault::End;
use super::item::{ErrorEvent, Item, Part, Tool, Tools};
use super::reply::{Reply, Usage};
use crate::limits::MAX_GENERATED;

/// What an encoder has to know of the reply.
#[derive(Debug, Clone)]
pub(super) struct Context {
    /// The model to name.
    model: String,
    /// Number of the reply, for ids.
    n: u64,
    usage: Usage,
    /// Stop reason in the script's words.
    stop: String,
}

/// One provider's form of a stream.
trait Encoder {
    /// Events before the first item.
    fn begin(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// An event of any kind, known to the protocol or not.
    fn event(&self, name: &str, data: &Value) -> String {
        if name.is_empty() {
            data_frame(data)
        } else {
            named_frame(name, data)
        }
    }

    /// A keep-alive.
    fn ping(&self) -> String {
        ": ping\n\n".to_owned()
    }

    fn text(&mut self, body: &mut Body<'_>, parts: &[Part]) -> Step;

    fn thinking(&mut self, body: &mut Body<'_>, parts: &[Part], signature: &str) -> Step;

    /// Encrypted reasoning, where the protocol has it.
    fn redacted(&mut self, _body: &mut Body<'_>, _data: &str) -> Step {
        Ok(())
    }

    fn tool(&mut self, body: &mut Body<'_>, tool: &Tool) -> Step;

    fn error_event(&mut self, error: &ErrorEvent) -> String;

    /// The end marks; the last one is what ends the stream for a client.
    fn finish(&mut self) -> Vec<String>;
}

/// The content type of a stream.
pub(super) fn content_type(api: Api) -> &'static str {
    match api {
        Api::Bedrock => "application/vnd.amazon.eventstream",
        _ => "text/event-stream; charset=utf-8",
    }
}

/// Sends the whole stream of `reply`.
pub(super) fn run(api: Api, reply: &Reply, model: &str, n: u64, body: &mut Body<'_>) -> Step {
    let mut encoder = encoder(api, context(reply, model, n));
    for frame in encoder.begin() {
        body.send(&frame)?;
    }
    for item in &reply.stream {
        match item {
            Item::Eof { .. } => return Ok(()),
            Item::ErrorEvent { error_event } => {
                body.tail = true;
                return body.send(&encoder.error_event(error_event));
            }
            item => send_item(&mut *encoder, item, body)?,
        }
    }
    body.tail = true;
    let mut frames = encoder.finish();
    match reply.end {
        End::Normal => {}
        End::Missing => drop(frames.pop()),
        End::Double => frames.extend(frames.last().cloned()),
    }
    frames.iter().try_for_each(|frame| body.send(frame))
}

fn context(reply: &Reply, model: &str, n: u64) -> Context {
    let calls = reply
        .stream
        .iter()
        .any(|i| matches!(i, Item::Tool { .. } | Item::Tools { .. }));
    let stop = reply
        .stop
        .clone()
        .unwrap_or_else(|| if calls { "toolUse" } else { "stop" }.to_owned());
    let model = reply.response_model.clone().unwrap_or_else(|| model.to_owned());
    Context {
        model,
        n,
        usage: reply.usage,
        stop,
    }
}

fn encoder(api: Api, context: Context) -> Box<dyn Encoder> {
    match api {
        Api::Anthropic => Box::new(anthropic::Anthropic::new(context)),
        Api::OpenAi => Box::new(openai::OpenAi::new(context)),
        Api::Responses => Box::new(responses::Responses::new(context)),
        Api::Google => Box::new(google::Google::new(context)),
        Api::Bedrock => Box::new(bedrock::Bedrock::new(context)),
    }
}

fn send_item(encoder: &mut dyn Encoder, item: &Item, body: &mut Body<'_>) -> Step {
    match item {
        Item::Text { text } => encoder.text(body, text),
        Item::Thinking { thinking, signature } => {
            encoder.thinking(body, thinking, signature.as_deref().unwrap_or("sig-mock"))
        }
        Item::Redacted { redacted_thinking } => encoder.redacted(body, redacted_thinking),
        Item::Tool { tool } => encoder.tool(body, tool),
        Item::Tools { tools } => made_up_calls(tools).try_for_each(|tool| encoder.tool(body, &tool)),
        Item::Gate { gate } => body.gate(gate),
        Item::Delay { delay } => body.pause(*delay),
        Item::Drop { drop } => body.fail(*drop),
        Item::Raw { raw } => body.send(raw),
        Item::RawHex { raw_hex } => body.send(&expand::hex(raw_hex)),
        Item::Garbage { garbage } => body.send(&format!("data: {}\n\n", expand::noise(*garbage))),
        Item::BigLine { big_line } => body.send(&format!("data: {}\n\n", expand::fill(*big_line))),
        Item::Comment { comment, count } => {
            let line = format!(": {comment}\n\n");
            (0..(*count).min(MAX_GENERATED)).try_for_each(|_| body.send(&line))
        }
        Item::Ping { ping } => {
            let line = encoder.ping();
            (0..(*ping).min(MAX_GENERATED)).try_for_each(|_| body.send(&line))
        }
        Item::Event { event, data } => body.send(&encoder.event(event, data)),
        // `run` ends the stream at these.
        Item::Eof { .. } | Item::ErrorEvent { .. } => Ok(()),
    }
}

fn made_up_calls(tools: &Tools) -> impl Iterator<Item = Tool> + '_ {
    let args = pyjson::to_string(&tools.args);
    (0..tools.count.min(MAX_GENERATED)).map(move |i| Tool {
        id: format!("call_{i}"),
        name: tools.name.clone(),
        args_raw: Some(args.replace("{i}", &i.to_string())),
        chunks: Some(1),
        ..Tool::default()
    })
}

/// An event without a name.
fn data_frame(data: &Value) -> String {
    format!("data: {data}\n\n")
}

/// An event with a name.
fn named_frame(name: &str, data: &Value) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

/// Sends one event for every delta in `parts`, and performs the actions in between.
fn each(body: &mut Body<'_>, parts: &[Part], mut frame: impl FnMut(&str) -> String) -> Step {
    for part in parts {
        match part {
            Part::Chunk(text) => body.send(&frame(text))?,
            Part::Fill { fill } => body.send(&frame(&expand::fill(*fill)))?,
            Part::Hex { hex } => body.send(&frame(&expand::hex(hex)))?,
            Part::Deltas { deltas } => {
                for i in 0..deltas.count.min(MAX_GENERATED) {
                    let offset = i.wrapping_mul(deltas.size as u64);
                    body.send(&frame(&expand::words(offset, deltas.size)))?;
                }
            }
            Part::Gate { gate } => body.gate(gate)?,
            Part::Delay { delay } => body.pause(*delay)?,
            Part::Drop { drop } => body.fail(*drop)?,
        }
    }
    Ok(())
}

/// The deltas of a call's arguments.
fn arguments(tool: &Tool) -> Vec<Part> {
    if let Some(chunks) = &tool.arg_chunks {
        return chunks.clone();
    }
    let text = tool.args_raw.clone().unwrap_or_else(|| {
        if tool.args.is_null() {
            "{}".to_owned()
        } else {
            pyjson::to_string(&tool.args)
        }
    });
    split(&text, tool.chunks.unwrap_or(2))
        .into_iter()
        .map(Part::Chunk)
        .collect()
}

/// Splits a text into at most `n` parts of about the same number of characters.
fn split(text: &str, n: usize) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    if n <= 1 || chars.len() <= 1 {
        return vec![text.to_owned()];
    }
    chars
        .chunks(chars.len().div_ceil(n))
        .map(|c| c.iter().collect())
        .collect()
}

/// The provider's body for an error event; `usual` if the script names no kind.
fn error_body(api: Api, error: &ErrorEvent, usual: errors::ErrorKind) -> Value {
    errors::body(api, error.kind.unwrap_or(usual), None, error.message.as_deref()).1
}
