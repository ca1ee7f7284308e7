//! What a killed agent had promised, and what its session file holds.

use serde_json::Value;
use wire::{Entry, EntryBody};

/// What the agent said is safe.
#[derive(Debug, Default)]
pub(super) struct Promised {
    /// Messages of `message_end` events.
    pub(super) messages: Vec<Value>,
    /// Numbers of the session names whose command was answered.
    pub(super) names: Vec<u64>,
}

/// Reads the agent's output.
pub(super) fn promised(lines: &[Value]) -> Promised {
    let mut promised = Promised::default();
    for line in lines {
        match line.get("type").and_then(Value::as_str) {
            Some("message_end") => promised.messages.extend(line.get("message").cloned()),
            Some("response") if line.get("success") == Some(&Value::Bool(true)) => {
                let id = line.get("id").and_then(Value::as_str);
                promised
                    .names
                    .extend(id.and_then(|id| id.strip_prefix('n')?.parse::<u64>().ok()));
            }
            _ => {}
        }
    }
    promised
}

/// What a session file holds.
#[derive(Debug, Default)]
pub(super) struct Saved {
    messages: Vec<Value>,
    names: Vec<String>,
    /// Bytes behind the last LF.
    pub(super) torn: usize,
    /// Lines that cannot be read.
    pub(super) problems: Vec<String>,
}

impl Saved {
    /// Reads the bytes of a session file.
    pub(super) fn read(bytes: &[u8]) -> Self {
        let mut saved = Self::default();
        let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
        saved.torn = lines.pop().map_or(0, <[u8]>::len);
        for (index, line) in lines.into_iter().enumerate() {
            let text = std::str::from_utf8(line).unwrap_or("");
            if let Err(error) = saved.line(index, text) {
                saved
                    .problems
                    .push(format!("line {} of the session file: {error}", index + 1));
            }
        }
        saved
    }

    fn line(&mut self, index: usize, text: &str) -> Result<(), String> {
        let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let is_header = value.get("type").is_some_and(|kind| kind == "session");
        if is_header != (index == 0) {
            return Err("the header is not the first line, or is there twice".to_owned());
        }
        if is_header {
            return Ok(());
        }
        let entry = Entry::from_json(text).map_err(|error| error.to_string())?;
        match entry.body {
            EntryBody::Message(_) => self.messages.extend(value.get("message").cloned()),
            EntryBody::SessionInfo(info) => self.names.push(info.name),
            _ => {}
        }
        Ok(())
    }
}

impl Promised {
    /// Returns true if no acknowledgement was read.
    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.names.is_empty()
    }

    /// Promises that the file does not keep.
    pub(super) fn missing_in(&self, saved: &Saved) -> Vec<String> {
        let lost = self
            .messages
            .iter()
            .filter(|message| !saved.messages.contains(message));
        let mut problems: Vec<String> = lost
            .map(|message| format!("lost message: {}", head(message)))
            .collect();
        let names = self.names.iter().map(|number| format!("Name {number}"));
        problems.extend(
            names
                .filter(|name| !saved.names.contains(name))
                .map(|name| format!("lost session name: {name}")),
        );
        problems
    }
}

fn head(message: &Value) -> String {
    message.to_string().chars().take(160).collect()
}
