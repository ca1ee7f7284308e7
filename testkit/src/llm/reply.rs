//! One scripted reply: the JSON form and the builder. What a reply's stream holds is in `item`, transport faults
//! in `fault`; which reply a request gets is decided in `script`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::api::Api;
use super::errors::ErrorKind;
use super::fault::{Before, Cut, CutHow, End, Framing, Pace};
use super::item::{Deltas, ErrorEvent, Item, Part, Tool, Tools};
use super::secs;

/// What the server answers to one request.
///
/// Exactly one of `error`, `page` and `stream` is used, looked for in this order. Every field may be left out in
/// JSON; unknown fields are refused, so that a typing error in a script is found at once.
///
/// ```
/// use testkit::llm::{CutHow, Reply};
/// let built = Reply::text(["Hel", "lo"]).cut(120, CutHow::Reset);
/// let read: Reply = serde_json::from_str(
///     r#"{"stream": [{"text": ["Hel", "lo"]}], "cut": {"at": 120, "how": "reset"}}"#,
/// )?;
/// assert_eq!(built, read);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Reply {
    /// Only for requests that fit.
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    pub matching: Option<Match>,
    /// The stream's items, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stream: Vec<Item>,
    /// Token counts reported at the end.
    #[serde(skip_serializing_if = "Usage::is_default")]
    pub usage: Usage,
    /// Why the model stopped: `stop`, `toolUse`, `length`, or a provider's own word. Unless given, `toolUse` if the
    /// stream has a tool call and `stop` otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<String>,
    /// The model named in the answer, instead of the one asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_model: Option<String>,
    /// A provider's error instead of a stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorReply>,
    /// Any other document instead of a stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page: Option<Page>,
    /// What happens before the response head.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Before>,
    /// Further response headers, for example `retry-after`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The reply is not used up.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub repeat: bool,
    /// [`super::ScriptedServer::unused`] does not complain about it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
    /// A client library's own retry (`x-stainless-retry-count`) takes the next reply instead of this one again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub per_try: bool,
    /// How the stream's end marks are sent.
    #[serde(skip_serializing_if = "is_default")]
    pub end: End,
    /// Cut or stall at a byte of the body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut: Option<Cut>,
    /// Send slowly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pace: Option<Pace>,
    /// Join events into writes of at least this many bytes; 0: each event is a write of its own.
    #[serde(skip_serializing_if = "is_default")]
    pub batch: usize,
    /// Pause after every event, seconds in JSON; overrides [`super::Options::chunk_delay`].
    #[serde(with = "secs::opt", skip_serializing_if = "Option::is_none")]
    pub chunk_delay: Option<Duration>,
    /// Compress the body (`Content-Encoding: gzip`), whether or not the client accepts that.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub gzip: bool,
    /// Close the connection afterwards, and say so in the head.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub close: bool,
    /// How the response states the length of its body.
    #[serde(skip_serializing_if = "is_default")]
    pub framing: Framing,
    /// For the author; not used. (`quiet` is accepted as well, it occurs in recorded scenarios.)
    #[serde(alias = "quiet", skip_serializing_if = "Option::is_none")]
    pub note: Option<Value>,
}

/// Conditions on a request; all that are given must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Match {
    /// The body contains this, when it is written as JSON with `, ` and `: ` between the tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contains: Option<String>,
    /// The body does not contain this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_contains: Option<String>,
    /// Whether the request offers tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<bool>,
    /// The protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api: Option<Api>,
}

/// Token counts. In JSON every field may be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Usage {
    /// Prompt tokens that came from no cache; 100 unless given.
    pub input: u64,
    /// Tokens of the answer; 20 unless given.
    pub output: u64,
    /// Prompt tokens read from the cache.
    pub cache_read: u64,
    /// Prompt tokens written to the cache.
    pub cache_write: u64,
    /// Tokens of reasoning, where a provider counts them apart.
    pub thinking: u64,
}

impl Default for Usage {
    fn default() -> Self {
        Self {
            input: 100,
            output: 20,
            cache_read: 0,
            cache_write: 0,
            thinking: 0,
        }
    }
}

impl Usage {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// An HTTP error. With `body` or `raw_body` that is sent (status 500 unless given), else the provider's own words
/// for `kind`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ErrorReply {
    /// Which error; `server` unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<ErrorKind>,
    /// Replaces the usual status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Replaces the provider's text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Response headers; numbers and strings alike.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Value>,
    /// A JSON body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// A body of any text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_body: Option<String>,
}

/// A document that is not what the client asked for, such as a proxy's HTML page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Page {
    /// HTTP status.
    pub status: u16,
    /// Its type; `text/html` unless given.
    #[serde(default = "html")]
    pub content_type: String,
    /// The text.
    pub body: String,
}

fn html() -> String {
    "text/html; charset=utf-8".to_owned()
}

fn is_default<T: Default + PartialEq>(v: &T) -> bool {
    *v == T::default()
}

impl Reply {
    /// An empty stream: begin and end, no content. The start of most builders.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A text answer, one delta for each part.
    #[must_use]
    pub fn text<P: Into<Part>>(parts: impl IntoIterator<Item = P>) -> Self {
        Self::new().then_text(parts)
    }

    /// One tool call.
    #[must_use]
    pub fn tool(id: impl Into<String>, name: impl Into<String>, args: Value) -> Self {
        Self::new().then_tool(id, name, args)
    }

    /// A provider's error.
    #[must_use]
    pub fn error(kind: ErrorKind) -> Self {
        let error = ErrorReply {
            kind: Some(kind),
            ..ErrorReply::default()
        };
        Self {
            error: Some(error),
            ..Self::new()
        }
    }

    /// An HTML page with a status, as proxies and captive portals send it.
    #[must_use]
    pub fn html(status: u16) -> Self {
        let body = format!(
            "<html>\r\n<head><title>{status}</title></head>\r\n<body>\r\n<center><h1>{status}</h1></center>\r\n\
             <hr><center>nginx</center>\r\n</body>\r\n</html>\r\n"
        );
        Self {
            page: Some(Page {
                status,
                content_type: html(),
                body,
            }),
            ..Self::new()
        }
    }

    /// For benchmarks: a text answer of `count` deltas of `size` bytes.
    #[must_use]
    pub fn text_deltas(count: u64, size: usize) -> Self {
        Self::new().item(Item::Text {
            text: vec![Part::Deltas {
                deltas: Deltas { count, size },
            }],
        })
    }

    /// For benchmarks: a call of the tool `write` for `path`, whose content arrives in `count` deltas of `size` bytes.
    #[must_use]
    pub fn write_deltas(path: &str, count: u64, size: usize) -> Self {
        let path = Value::from(path);
        let chunks = vec![
            Part::Chunk(format!("{{\"path\": {path}, \"content\": \"")),
            Part::Deltas {
                deltas: Deltas { count, size },
            },
            Part::Chunk("\"}".to_owned()),
        ];
        let tool = Tool {
            id: "call_write".into(),
            name: "write".into(),
            arg_chunks: Some(chunks),
            ..Tool::default()
        };
        Self::new().item(Item::Tool { tool })
    }

    /// `count` tool calls in one answer.
    #[must_use]
    pub fn many_tools(count: u64, name: impl Into<String>, args: Value) -> Self {
        Self::new().item(Item::Tools {
            tools: Tools {
                count,
                name: name.into(),
                args,
            },
        })
    }

    /// A small compressed body that grows to about `bytes` when it is unpacked (roughly 1:1000), made up while sending.
    #[must_use]
    pub fn gzip_bomb(bytes: u64) -> Self {
        Self {
            gzip: true,
            ..Self::new().item(Item::BigLine { big_line: bytes })
        }
    }

    /// Adds any item.
    #[must_use]
    pub fn item(mut self, item: Item) -> Self {
        self.stream.push(item);
        self
    }

    /// Adds a text block.
    #[must_use]
    pub fn then_text<P: Into<Part>>(self, parts: impl IntoIterator<Item = P>) -> Self {
        self.item(Item::Text {
            text: parts.into_iter().map(Into::into).collect(),
        })
    }

    /// Adds a block of reasoning with its signature.
    #[must_use]
    pub fn thinking<P: Into<Part>>(
        self,
        parts: impl IntoIterator<Item = P>,
        signature: impl Into<String>,
    ) -> Self {
        let thinking = parts.into_iter().map(Into::into).collect();
        self.item(Item::Thinking {
            thinking,
            signature: Some(signature.into()),
        })
    }

    /// Adds a block of encrypted reasoning.
    #[must_use]
    pub fn redacted(self, data: impl Into<String>) -> Self {
        self.item(Item::Redacted {
            redacted_thinking: data.into(),
        })
    }

    /// Adds a tool call.
    #[must_use]
    pub fn then_tool(self, id: impl Into<String>, name: impl Into<String>, args: Value) -> Self {
        self.item(Item::Tool {
            tool: Tool {
                id: id.into(),
                name: name.into(),
                args,
                ..Tool::default()
            },
        })
    }

    /// Adds a tool call whose arguments arrive in these pieces, JSON or not.
    #[must_use]
    pub fn tool_chunks<P: Into<Part>>(
        self,
        id: impl Into<String>,
        name: impl Into<String>,
        chunks: impl IntoIterator<Item = P>,
    ) -> Self {
        let arg_chunks = Some(chunks.into_iter().map(Into::into).collect());
        self.item(Item::Tool {
            tool: Tool {
                id: id.into(),
                name: name.into(),
                arg_chunks,
                ..Tool::default()
            },
        })
    }

    /// Adds a gate: the stream waits here until the test releases it.
    #[must_use]
    pub fn gate(self, name: impl Into<String>) -> Self {
        self.item(Item::Gate { gate: name.into() })
    }

    /// Adds a pause.
    #[must_use]
    pub fn delay(self, delay: Duration) -> Self {
        self.item(Item::Delay { delay })
    }

    /// Adds text that is sent as it is.
    #[must_use]
    pub fn raw(self, raw: impl Into<String>) -> Self {
        self.item(Item::Raw { raw: raw.into() })
    }

    /// Adds bytes that are sent as they are.
    #[must_use]
    pub fn raw_bytes(self, bytes: &[u8]) -> Self {
        self.item(Item::RawHex {
            raw_hex: bytes.iter().map(|b| format!("{b:02x}")).collect(),
        })
    }

    /// Adds the provider's error event and ends the stream.
    #[must_use]
    pub fn error_event(self, kind: ErrorKind) -> Self {
        self.item(Item::ErrorEvent {
            error_event: ErrorEvent {
                kind: Some(kind),
                ..ErrorEvent::default()
            },
        })
    }

    /// Adds a cut of the connection at this place of the stream.
    #[must_use]
    pub fn drop_here(self, drop: CutHow) -> Self {
        self.item(Item::Drop { drop })
    }

    /// Cuts or stalls the connection after `at` bytes of the body.
    #[must_use]
    pub fn cut(mut self, at: u64, how: CutHow) -> Self {
        self.cut = Some(Cut { at, how });
        self
    }

    /// Sends `bytes` at a time with pauses.
    #[must_use]
    pub fn pace(mut self, bytes: usize, every: Duration) -> Self {
        self.pace = Some(Pace { bytes, every });
        self
    }

    /// Joins events into writes of at least `bytes`.
    #[must_use]
    pub fn batch(mut self, bytes: usize) -> Self {
        self.batch = bytes;
        self
    }

    /// Pauses after every event.
    #[must_use]
    pub fn chunk_delay(mut self, delay: Duration) -> Self {
        self.chunk_delay = Some(delay);
        self
    }

    /// Sets the stop reason.
    #[must_use]
    pub fn stop(mut self, reason: impl Into<String>) -> Self {
        self.stop = Some(reason.into());
        self
    }

    /// Sets the token counts.
    #[must_use]
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    /// Sets how the stream ends.
    #[must_use]
    pub fn end(mut self, end: End) -> Self {
        self.end = end;
        self
    }

    /// Adds a response header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// Sets what happens before the response head.
    #[must_use]
    pub fn before(mut self, before: Before) -> Self {
        self.before = Some(before);
        self
    }

    /// Only for requests whose body contains `text`.
    #[must_use]
    pub fn when_contains(mut self, text: impl Into<String>) -> Self {
        self.matching.get_or_insert_default().contains = Some(text.into());
        self
    }

    /// The reply may be used any number of times.
    #[must_use]
    pub fn repeat(mut self) -> Self {
        self.repeat = true;
        self
    }

    /// Closes the connection afterwards.
    #[must_use]
    pub fn close(mut self) -> Self {
        self.close = true;
        self
    }
}
