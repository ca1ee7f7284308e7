//! A line of a session file to an entry, for a fraction of the work of `parse`, with or without the texts of its message. Only
//! messages in the form in which agents of the family write them are read here, and only lines that `parse` reads without mending.
//! The caller passes every other line to `parse`.

use std::str::FromStr;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use wire::message::UserContent;
use wire::{
    AssistantBlock, AssistantMessage, Entry, EntryBody, Extra, ImageContent, Message, StopReason,
    TextContent, ThinkingContent, ToolCall, ToolResultMessage, UserBlock, UserMessage,
};

use crate::limits::{MAX_LINE, USUAL_DEPTH};
use crate::parse::{Parsed, Quality};
use crate::texts::Texts;

/// Numbers of up to so many digits fit into every number type of a message.
const SAFE_DIGITS: usize = 15;
/// Most members of a message.
const MEMBERS: usize = 16;

/// Reads a line without its line feed. None for every line that is not certain to be an undamaged message of the usual form.
pub(crate) fn line(bytes: &[u8], texts: Texts) -> Option<Parsed> {
    if bytes.len() > MAX_LINE {
        return None;
    }
    let text = str::from_utf8(bytes).ok()?;
    // JSON has no control characters in strings, and agents write none between them. A loop that does not end early becomes
    // vector instructions.
    if bytes.iter().fold(false, |found, byte| found | (*byte < b' ')) {
        return None;
    }
    let mut scan = Scan {
        text,
        at: 0,
        is_whole: texts == Texts::Read,
    };
    scan.literal("{\"type\":\"message\",\"id\":")?;
    let id = scan.plain()?;
    scan.literal(",\"parentId\":")?;
    let parent_id = if scan.literal("null").is_some() {
        None
    } else {
        Some(scan.plain()?)
    };
    scan.literal(",\"timestamp\":")?;
    let timestamp = scan.plain()?;
    scan.literal(",\"message\":{\"role\":")?;
    let message = match scan.plain()? {
        "user" => scan.user()?,
        "assistant" => scan.assistant()?,
        "toolResult" => scan.tool_result()?,
        _ => return None,
    };
    scan.literal("}")?;
    if scan.at != text.len() || id.is_empty() {
        return None;
    }
    let entry = Entry {
        id: id.to_owned(),
        parent_id: parent_id.map(str::to_owned),
        timestamp: timestamp.to_owned(),
        body: EntryBody::message(Arc::new(message)),
    };
    Some(Parsed {
        entry,
        parent_known: true,
        quality: Quality::Clean,
    })
}

/// A line and how far it was read. Every method returns none for a form that it does not know.
struct Scan<'a> {
    text: &'a str,
    at: usize,
    /// Texts are read, and everything else that the state of a session does not depend on.
    is_whole: bool,
}

/// Messages, from behind their role.
impl<'a> Scan<'a> {
    fn user(&mut self) -> Option<Message> {
        let (mut content, mut timestamp) = (None, 0);
        self.members(|scan, name| {
            match name {
                "content" if scan.next() == Some(b'"') => content = Some(UserContent::Text(scan.kept()?)),
                "content" => content = Some(UserContent::Blocks(scan.user_blocks()?)),
                "timestamp" => timestamp = scan.integer()?,
                _ => return None,
            }
            Some(())
        })?;
        Some(Message::User(UserMessage {
            content: content?,
            timestamp,
            extra: Extra::default(),
        }))
    }

    fn assistant(&mut self) -> Option<Message> {
        let mut answer = AssistantMessage::begin("", "", "", 0);
        self.members(|scan, name| {
            match name {
                "content" => answer.content = scan.assistant_blocks()?,
                "provider" => answer.provider = scan.owned()?,
                "model" => answer.model = scan.owned()?,
                "stopReason" => answer.stop_reason = stop_reason(scan.plain()?)?,
                "usage" => answer.usage = scan.kept_value(Self::usage)?.unwrap_or_default(),
                "timestamp" => answer.timestamp = scan.integer()?,
                "durationMs" => answer.duration_ms = Some(scan.milliseconds()?),
                "api" => answer.api = scan.kept()?,
                "responseModel" => answer.response_model = Some(scan.kept()?),
                "responseId" => answer.response_id = Some(scan.kept()?),
                "errorMessage" => answer.error_message = Some(scan.kept()?),
                "rawStopReason" => answer.raw_stop_reason = Some(scan.kept()?),
                "thinkingLevel" => answer.thinking_level = Some(scan.kept()?),
                _ => return None,
            }
            Some(())
        })?;
        Some(Message::Assistant(answer))
    }

    fn tool_result(&mut self) -> Option<Message> {
        let mut id = None;
        let mut result = ToolResultMessage {
            tool_call_id: String::new(),
            tool_name: String::new(),
            content: Vec::new(),
            details: None,
            is_error: false,
            duration_ms: None,
            timestamp: 0,
            extra: Extra::default(),
        };
        self.members(|scan, name| {
            match name {
                "toolCallId" => id = Some(scan.owned()?),
                "toolName" => result.tool_name = scan.owned()?,
                "content" => result.content = scan.user_blocks()?,
                // Todo lists are in them, so they are never left out.
                "details" => result.details = serde_json::from_str(scan.raw(|scan| scan.value(0))?).ok()?,
                "isError" => result.is_error = scan.boolean()?,
                "timestamp" => result.timestamp = scan.integer()?,
                "durationMs" => result.duration_ms = Some(scan.milliseconds()?),
                _ => return None,
            }
            Some(())
        })?;
        result.tool_call_id = id?;
        Some(Message::ToolResult(result))
    }

    /// The blocks of a user message or a tool result; none of them without texts.
    fn user_blocks(&mut self) -> Option<Vec<UserBlock>> {
        let mut blocks = Vec::new();
        self.array(|scan| {
            scan.literal("{\"type\":\"")?;
            let block = if scan.literal("text\"").is_some() {
                UserBlock::Text(scan.text_block()?)
            } else {
                scan.literal("image\"")?;
                let [data, mime_type] = scan.strings(["data", "mimeType"])?;
                UserBlock::Image(ImageContent {
                    data: data?,
                    mime_type: mime_type?,
                    extra: Extra::default(),
                })
            };
            if scan.is_whole {
                // One in most messages, of which a large session has many.
                blocks.reserve_exact(1);
                blocks.push(block);
            }
            Some(())
        })?;
        Some(blocks)
    }

    /// The blocks of an answer; without texts its calls, and one block at least if there are any.
    fn assistant_blocks(&mut self) -> Option<Vec<AssistantBlock>> {
        let mut blocks = Vec::new();
        self.array(|scan| {
            scan.literal("{\"type\":\"")?;
            let block = if scan.literal("toolCall\"").is_some() {
                AssistantBlock::ToolCall(scan.tool_call()?)
            } else if scan.literal("text\"").is_some() {
                AssistantBlock::Text(scan.text_block()?)
            } else {
                scan.literal("thinking\"")?;
                let [thinking, thinking_signature] = scan.strings(["thinking", "thinkingSignature"])?;
                AssistantBlock::Thinking(ThinkingContent {
                    thinking: thinking?,
                    thinking_signature,
                    redacted: None,
                    extra: Extra::default(),
                })
            };
            if scan.is_whole || blocks.is_empty() || block.as_tool_call().is_some() {
                blocks.reserve_exact(1);
                blocks.push(block);
            }
            Some(())
        })?;
        Some(blocks)
    }

    fn text_block(&mut self) -> Option<TextContent> {
        let [text, text_signature] = self.strings(["text", "textSignature"])?;
        Some(TextContent {
            text: text?,
            text_signature,
            extra: Extra::default(),
        })
    }

    fn tool_call(&mut self) -> Option<ToolCall> {
        let (mut call, mut id, mut tool) = (ToolCall::default(), None, None);
        self.members(|scan, name| {
            match name {
                "id" => id = Some(scan.owned()?),
                "name" => tool = Some(scan.kept()?),
                "arguments" if scan.next() == Some(b'{') => {
                    call.arguments = scan.kept_value(|scan| scan.value(0))?.unwrap_or_default();
                }
                "thoughtSignature" => call.thought_signature = Some(scan.kept()?),
                _ => return None,
            }
            Some(())
        })?;
        (call.id, call.name) = (id?, tool?);
        Some(call)
    }

    fn usage(&mut self) -> Option<()> {
        self.object(|scan, name| match name {
            "input" | "output" | "cacheRead" | "cacheWrite" | "totalTokens" | "reasoning"
            | "cacheWrite1h" => scan.digits_of_integer().map(drop),
            "cost" => scan.object(|scan, name| match name {
                "input" | "output" | "cacheRead" | "cacheWrite" | "total" => scan.number(),
                _ => None,
            }),
            _ => None,
        })
    }

    /// The rest of a block whose members are strings of these names.
    fn strings<const N: usize>(&mut self, names: [&str; N]) -> Option<[Option<String>; N]> {
        let mut found = [const { None }; N];
        self.members(|scan, name| {
            let at = names.iter().position(|known| *known == name)?;
            *found.get_mut(at)? = Some(scan.kept()?);
            Some(())
        })?;
        Some(found)
    }
}

/// Values that are kept.
impl Scan<'_> {
    /// A string without escapes.
    fn owned(&mut self) -> Option<String> {
        self.plain().map(str::to_owned)
    }

    /// A string; empty if texts are left out.
    fn kept(&mut self) -> Option<String> {
        let start = self.at;
        let has_escapes = self.string()?;
        if !self.is_whole {
            return Some(String::new());
        }
        let raw = self.text.get(start..self.at)?;
        if has_escapes {
            return serde_json::from_str(raw).ok();
        }
        raw.strip_prefix('"')?.strip_suffix('"').map(str::to_owned)
    }

    /// What `read` reads; none if texts are left out.
    fn kept_value<T: DeserializeOwned>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Option<()>,
    ) -> Option<Option<T>> {
        let raw = self.raw(read)?;
        if !self.is_whole {
            return Some(None);
        }
        serde_json::from_str(raw).ok().map(Some)
    }

    fn integer(&mut self) -> Option<i64> {
        self.digits_of_integer()
            .and_then(|digits| i64::from_str(digits).ok())
    }

    fn milliseconds(&mut self) -> Option<u64> {
        self.digits_of_integer()
            .and_then(|digits| u64::from_str(digits).ok())
    }
}

/// JSON.
impl<'a> Scan<'a> {
    fn next(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn literal(&mut self, text: &str) -> Option<()> {
        self.rest().starts_with(text).then(|| self.at += text.len())
    }

    /// The text that `read` reads.
    fn raw(&mut self, read: impl FnOnce(&mut Self) -> Option<()>) -> Option<&'a str> {
        let start = self.at;
        read(self)?;
        self.text.get(start..self.at)
    }

    fn object(&mut self, each: impl FnMut(&mut Self, &'a str) -> Option<()>) -> Option<()> {
        self.literal("{")?;
        if self.literal("}").is_some() {
            return Some(());
        }
        self.members_from(true, each)
    }

    /// The members that follow the first one of an object, to its brace.
    fn members(&mut self, each: impl FnMut(&mut Self, &'a str) -> Option<()>) -> Option<()> {
        self.members_from(false, each)
    }

    /// A member that an object has twice is damage.
    fn members_from(
        &mut self,
        mut is_first: bool,
        mut each: impl FnMut(&mut Self, &'a str) -> Option<()>,
    ) -> Option<()> {
        let mut seen = [""; MEMBERS];
        for at in 0..MEMBERS {
            if !is_first {
                if self.literal("}").is_some() {
                    return Some(());
                }
                self.literal(",")?;
            }
            is_first = false;
            let name = self.plain()?;
            if seen.contains(&name) {
                return None;
            }
            *seen.get_mut(at)? = name;
            self.literal(":")?;
            each(self, name)?;
        }
        None
    }

    fn array(&mut self, mut each: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.literal("[")?;
        if self.literal("]").is_some() {
            return Some(());
        }
        loop {
            each(self)?;
            if self.literal("]").is_some() {
                return Some(());
            }
            self.literal(",")?;
        }
    }

    /// Any value, without white space.
    fn value(&mut self, depth: usize) -> Option<()> {
        if depth > USUAL_DEPTH {
            return None;
        }
        match self.next()? {
            b'"' => self.string().map(drop),
            b'{' => {
                self.at += 1;
                if self.literal("}").is_some() {
                    return Some(());
                }
                loop {
                    self.string()?;
                    self.literal(":")?;
                    self.value(depth + 1)?;
                    if self.literal("}").is_some() {
                        return Some(());
                    }
                    self.literal(",")?;
                }
            }
            b'[' => self.array(|scan| scan.value(depth + 1)),
            b't' => self.literal("true"),
            b'f' => self.literal("false"),
            b'n' => self.literal("null"),
            _ => self.number(),
        }
    }

    fn boolean(&mut self) -> Option<bool> {
        match self.literal("true") {
            Some(()) => Some(true),
            None => self.literal("false").map(|()| false),
        }
    }

    /// A number of at most [`SAFE_DIGITS`] digits on each side of its point, not negative and without exponent.
    fn number(&mut self) -> Option<()> {
        self.digits_of_integer()?;
        if self.literal(".").is_some() {
            self.digits()?;
        }
        Some(())
    }

    fn digits_of_integer(&mut self) -> Option<&'a str> {
        let digits = self.digits()?;
        // A zero in front is no JSON.
        (digits.len() == 1 || !digits.starts_with('0')).then_some(digits)
    }

    fn digits(&mut self) -> Option<&'a str> {
        let rest = self.rest();
        let count = rest.bytes().take_while(u8::is_ascii_digit).count();
        self.at += count;
        rest.get(..count).filter(|_| (1..=SAFE_DIGITS).contains(&count))
    }

    /// A string without escapes.
    fn plain(&mut self) -> Option<&'a str> {
        self.literal("\"")?;
        let rest = self.rest();
        let end = memchr::memchr2(b'"', b'\\', rest.as_bytes())?;
        let (text, after) = rest.split_at_checked(end)?;
        self.at += end + 1;
        after.starts_with('"').then_some(text)
    }

    /// Any string; returns true if it has escapes.
    fn string(&mut self) -> Option<bool> {
        self.literal("\"")?;
        let (bytes, mut has_escapes) = (self.text.as_bytes(), false);
        loop {
            self.at += memchr::memchr2(b'"', b'\\', bytes.get(self.at..)?)?;
            let is_end = self.next() == Some(b'"');
            self.at += 1;
            if is_end {
                return Some(has_escapes);
            }
            has_escapes = true;
            let escape = self.next()?;
            self.at += 1;
            match escape {
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {}
                b'u' => self.unicode()?,
                _ => return None,
            }
        }
    }

    /// The digits of an escape, and the second escape of a pair. A lone surrogate is damage.
    fn unicode(&mut self) -> Option<()> {
        match self.hex()? {
            0xD800..=0xDBFF => {
                self.literal("\\u")?;
                (0xDC00..=0xDFFF).contains(&self.hex()?).then_some(())
            }
            0xDC00..=0xDFFF => None,
            _ => Some(()),
        }
    }

    fn hex(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4)?;
        self.at += 4;
        // `from_str_radix` would take a sign.
        let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        u32::from_str_radix(digits, 16).ok().filter(|_| is_hex)
    }
}

fn stop_reason(word: &str) -> Option<StopReason> {
    Some(match word {
        "stop" => StopReason::Stop,
        "length" => StopReason::Length,
        "toolUse" => StopReason::ToolUse,
        "error" => StopReason::Error,
        "aborted" => StopReason::Aborted,
        _ => return None,
    })
}
