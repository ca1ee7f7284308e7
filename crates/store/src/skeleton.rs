//! A line of a session file to an entry without the texts of its message, for a fraction of the work of `parse`. Only messages in the
//! form in which agents of the family write them are read here, and only lines that `parse` reads without mending. The caller passes
//! every other line to `parse`.

use std::sync::Arc;

use wire::message::UserContent;
use wire::{
    AssistantBlock, AssistantMessage, Entry, EntryBody, Extra, Message, StopReason, ToolCall,
    ToolResultMessage, UserMessage,
};

use crate::limits::{MAX_LINE, SKELETON_DEPTH};
use crate::parse::{Parsed, Quality};

/// Numbers of up to so many digits fit into every number type of a message.
const SAFE_DIGITS: usize = 15;
/// Most members of a message.
const MEMBERS: usize = 16;

/// Reads a line without its line feed. None for every line that is not certain to be an undamaged message of the usual form.
pub(crate) fn line(bytes: &[u8]) -> Option<Parsed> {
    if bytes.len() > MAX_LINE {
        return None;
    }
    let text = str::from_utf8(bytes).ok()?;
    // JSON has no control characters in strings, and agents write none between them. A loop that does not end early becomes
    // vector instructions.
    if bytes.iter().fold(false, |found, byte| found | (*byte < b' ')) {
        return None;
    }
    let mut scan = Scan { text, at: 0 };
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
}

/// Messages, from behind their role.
impl<'a> Scan<'a> {
    fn user(&mut self) -> Option<Message> {
        let mut has_content = false;
        self.members(|scan, name| match name {
            "content" => {
                has_content = true;
                scan.string().or_else(|| scan.array(Self::user_block))
            }
            "timestamp" => scan.integer(),
            _ => None,
        })?;
        has_content.then(|| {
            Message::User(UserMessage {
                content: UserContent::Blocks(Vec::new()),
                timestamp: 0,
                extra: Extra::default(),
            })
        })
    }

    fn assistant(&mut self) -> Option<Message> {
        let mut answer = AssistantMessage::begin("", "", "", 0);
        self.members(|scan, name| {
            match name {
                "content" => scan.array(|scan| {
                    let call = scan.assistant_block()?;
                    // A text counts as one that is there: an answer without content is asked for again.
                    let block = call.map_or_else(|| AssistantBlock::text(""), AssistantBlock::ToolCall);
                    if answer.content.is_empty() || block.as_tool_call().is_some() {
                        answer.content.push(block);
                    }
                    Some(())
                })?,
                "provider" => scan.plain()?.clone_into(&mut answer.provider),
                "model" => scan.plain()?.clone_into(&mut answer.model),
                "stopReason" => answer.stop_reason = stop_reason(scan.plain()?)?,
                "usage" => scan.usage()?,
                "timestamp" => scan.integer()?,
                "durationMs" => scan.number()?,
                "api" | "responseModel" | "responseId" | "errorMessage" | "rawStopReason"
                | "thinkingLevel" => {
                    scan.string()?;
                }
                _ => return None,
            }
            Some(())
        })?;
        Some(Message::Assistant(answer))
    }

    fn tool_result(&mut self) -> Option<Message> {
        let (mut id, mut tool, mut details, mut is_error) = (None, "", None, false);
        self.members(|scan, name| {
            match name {
                "toolCallId" => id = Some(scan.plain()?),
                "toolName" => tool = scan.plain()?,
                "content" => scan.array(Self::user_block)?,
                // Todo lists are in them.
                "details" => details = serde_json::from_str(scan.raw(|scan| scan.value(0))?).ok()?,
                "isError" => is_error = scan.boolean()?,
                "timestamp" => scan.integer()?,
                "durationMs" => scan.number()?,
                _ => return None,
            }
            Some(())
        })?;
        Some(Message::ToolResult(ToolResultMessage {
            tool_call_id: id?.to_owned(),
            tool_name: tool.to_owned(),
            content: Vec::new(),
            details,
            is_error,
            duration_ms: None,
            timestamp: 0,
            extra: Extra::default(),
        }))
    }

    fn user_block(&mut self) -> Option<()> {
        self.literal("{\"type\":\"")?;
        if self.literal("text\"").is_some() {
            return self.strings(&["text"], &["textSignature"]);
        }
        self.literal("image\"")?;
        self.strings(&["data", "mimeType"], &[])
    }

    /// Gives the call if it is one.
    fn assistant_block(&mut self) -> Option<Option<ToolCall>> {
        self.literal("{\"type\":\"")?;
        if self.literal("toolCall\"").is_some() {
            return self.tool_call().map(Some);
        }
        if self.literal("text\"").is_some() {
            self.strings(&["text"], &["textSignature"])?;
        } else {
            self.literal("thinking\"")?;
            self.strings(&["thinking"], &["thinkingSignature"])?;
        }
        Some(None)
    }

    fn tool_call(&mut self) -> Option<ToolCall> {
        let (mut call, mut has_name) = (ToolCall::default(), false);
        let mut id = None;
        self.members(|scan, name| {
            match name {
                "id" => id = Some(scan.plain()?),
                "name" => {
                    has_name = true;
                    scan.string()?;
                }
                "arguments" if scan.next() == Some(b'{') => scan.value(0)?,
                "thoughtSignature" => scan.string()?,
                _ => return None,
            }
            Some(())
        })?;
        id.filter(|_| has_name)?.clone_into(&mut call.id);
        Some(call)
    }

    fn usage(&mut self) -> Option<()> {
        self.object(|scan, name| match name {
            "input" | "output" | "cacheRead" | "cacheWrite" | "totalTokens" | "reasoning"
            | "cacheWrite1h" => scan.integer(),
            "cost" => scan.object(|scan, name| match name {
                "input" | "output" | "cacheRead" | "cacheWrite" | "total" => scan.number(),
                _ => None,
            }),
            _ => None,
        })
    }

    /// The rest of a block: the members of `needed` and perhaps some of `others`, all of them strings.
    fn strings(&mut self, needed: &[&str], others: &[&str]) -> Option<()> {
        let mut found = 0;
        self.members(|scan, name| {
            found += usize::from(needed.contains(&name));
            let is_known = needed.contains(&name) || others.contains(&name);
            if is_known { scan.string() } else { None }
        })?;
        // Each name was there once at most.
        (found == needed.len()).then_some(())
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
        if depth > SKELETON_DEPTH {
            return None;
        }
        match self.next()? {
            b'"' => self.string(),
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
        self.integer()?;
        if self.literal(".").is_some() {
            self.digits()?;
        }
        Some(())
    }

    fn integer(&mut self) -> Option<()> {
        let is_zero = self.next() == Some(b'0');
        let digits = self.digits()?;
        // A zero in front is no JSON.
        (digits == 1 || !is_zero).then_some(())
    }

    fn digits(&mut self) -> Option<usize> {
        let digits = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        self.at += digits;
        (1..=SAFE_DIGITS).contains(&digits).then_some(digits)
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

    fn string(&mut self) -> Option<()> {
        self.literal("\"")?;
        let bytes = self.text.as_bytes();
        loop {
            self.at += memchr::memchr2(b'"', b'\\', bytes.get(self.at..)?)?;
            let is_end = self.next() == Some(b'"');
            self.at += 1;
            if is_end {
                return Some(());
            }
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
