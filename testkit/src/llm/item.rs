//! The things a streamed reply consists of, and their JSON form (portable with the conformance kit's mock).
//! How they look on the wire is `encode`'s business.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::errors::ErrorKind;
use super::fault::CutHow;
use super::secs;

/// One item of [`super::Reply::stream`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "unknown stream item; expected an object with one of: text, thinking, redacted_thinking, tool, tools, \
                 gate, delay, drop, error_event, eof, raw, raw_hex, garbage, big_line, comment, ping, event"
)]
pub enum Item {
    /// A text block; each part is one delta.
    Text {
        /// The deltas.
        #[serde(with = "one_or_many")]
        text: Vec<Part>,
    },
    /// A block of reasoning; providers that sign it get `signature` (default `sig-mock`, empty for none).
    Thinking {
        /// The deltas.
        #[serde(with = "one_or_many")]
        thinking: Vec<Part>,
        /// The signature.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    /// A block of encrypted reasoning (Anthropic only, ignored elsewhere).
    Redacted {
        /// The opaque data.
        redacted_thinking: String,
    },
    /// One tool call.
    Tool {
        /// The call.
        tool: Tool,
    },
    /// Many tool calls, made up while sending.
    Tools {
        /// Their description.
        tools: Tools,
    },
    /// Wait until the test releases this gate.
    Gate {
        /// The gate's name.
        gate: String,
    },
    /// Wait this long.
    Delay {
        /// Seconds in JSON.
        #[serde(with = "secs")]
        delay: Duration,
    },
    /// Fail the connection here.
    Drop {
        /// In which way.
        drop: CutHow,
    },
    /// The provider's error in the middle of the stream; nothing follows.
    ErrorEvent {
        /// The error.
        error_event: ErrorEvent,
    },
    /// End of the body without any end mark; nothing follows.
    Eof {
        /// Any value.
        eof: Value,
    },
    /// Text sent as it is (end of line included by the author).
    Raw {
        /// The text.
        raw: String,
    },
    /// Bytes sent as they are, written in hexadecimal.
    RawHex {
        /// Pairs of hexadecimal digits.
        raw_hex: String,
    },
    /// An event whose data are this many bytes of noise, the same in every run and not valid UTF-8.
    Garbage {
        /// Number of bytes.
        garbage: u64,
    },
    /// One `data:` line of this many filler bytes (no JSON), made up while sending.
    BigLine {
        /// Number of bytes.
        big_line: u64,
    },
    /// SSE comment lines (`: text`).
    Comment {
        /// The comment.
        comment: String,
        /// How many; 1 unless given.
        #[serde(default = "one")]
        count: u64,
    },
    /// Keep-alives as the provider sends them (`event: ping`, or a comment).
    Ping {
        /// How many.
        ping: u64,
    },
    /// An event of any type, known to the provider's protocol or not.
    Event {
        /// The event's name; an empty one is left out.
        event: String,
        /// The data.
        data: Value,
    },
}

/// A piece of a text, reasoning or argument stream: a delta, or something that happens between two deltas.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "unknown part; expected a string or an object with one of: gate, delay, drop, fill, hex, deltas"
)]
pub enum Part {
    /// One delta.
    Chunk(String),
    /// Wait until the test releases this gate.
    Gate {
        /// The gate's name.
        gate: String,
    },
    /// Wait this long.
    Delay {
        /// Seconds in JSON.
        #[serde(with = "secs")]
        delay: Duration,
    },
    /// Fail the connection here.
    Drop {
        /// In which way.
        drop: CutHow,
    },
    /// One delta of this many filler bytes, made up while sending.
    Fill {
        /// Number of bytes.
        fill: u64,
    },
    /// One delta with raw bytes in its text, to break UTF-8 inside otherwise good JSON.
    Hex {
        /// Pairs of hexadecimal digits.
        hex: String,
    },
    /// A run of deltas of equal size.
    Deltas {
        /// Their number and size.
        deltas: Deltas,
    },
}

/// `count` deltas of `size` bytes of plain words each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Deltas {
    /// Number of deltas.
    pub count: u64,
    /// Size of a delta, bytes.
    pub size: usize,
}

/// A tool call. The arguments' text comes from `arg_chunks`, else `args_raw`, else `args`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tool {
    /// The call's id.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments; written like Python's `json.dumps` does, so that recorded texts match.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub args: Value,
    /// The arguments' text, which need not be JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args_raw: Option<String>,
    /// The deltas of the arguments' text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arg_chunks: Option<Vec<Part>>,
    /// Into how many deltas `args` or `args_raw` is split; 2 unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunks: Option<usize>,
    /// Leaves out the mark that ends the block.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unfinished: bool,
    /// Id of the output item (OpenAI Responses).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item_id: Option<String>,
    /// Signature of the part (Google).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thought_signature: Option<String>,
    /// Sends the id, which this provider does not by default (Google).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub send_id: bool,
}

/// `count` calls of one tool, with ids `call_0`, `call_1`, ...; `{i}` in the arguments becomes the number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tools {
    /// Number of calls.
    pub count: u64,
    /// The tool's name.
    pub name: String,
    /// The arguments.
    #[serde(default)]
    pub args: Value,
}

/// An error inside a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ErrorEvent {
    /// Which error; the usual one of the provider unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<ErrorKind>,
    /// Replaces the provider's text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// `failed`: as `response.failed` instead of `error` (OpenAI Responses).
    #[serde(rename = "as", skip_serializing_if = "Option::is_none")]
    pub form: Option<String>,
}

impl From<&str> for Part {
    fn from(s: &str) -> Self {
        Self::Chunk(s.to_owned())
    }
}

impl From<String> for Part {
    fn from(s: String) -> Self {
        Self::Chunk(s)
    }
}

fn one() -> u64 {
    1
}

/// Lists that may be written as a single value, as scripts like to do.
mod one_or_many {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Part;

    #[derive(Deserialize)]
    #[serde(
        untagged,
        expecting = "a part or a list of parts (string, gate, delay, drop, fill, hex, deltas)"
    )]
    enum Form {
        One(Part),
        Many(Vec<Part>),
    }

    pub(super) fn serialize<S: Serializer>(parts: &[Part], s: S) -> Result<S::Ok, S::Error> {
        parts.serialize(s)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<Part>, D::Error> {
        Ok(match Form::deserialize(d)? {
            Form::One(p) => vec![p],
            Form::Many(v) => v,
        })
    }
}
