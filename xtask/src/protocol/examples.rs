//! Example lines: `protocol/examples/*.jsonl` (real lines, as they travel) and the code fences of Markdown pages.
//!
//! Files whose name starts with `session` hold lines of a session file; all others mix commands and what the agent writes.
//! Whether they fit the schema is tested in `xtask/tests`.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use wire::protocol::{FRAMES, dialects_of};
use wire::table::TABLE;

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A command.
    Inbound,
    /// A response or an event.
    Outbound,
    /// A line of a session file.
    Session,
}

impl Kind {
    /// Kind of a protocol line: inbound when the command table knows its type, or it is a frame of the host.
    #[must_use]
    pub fn of(line: &Value) -> Self {
        let name = kind_of(line);
        if TABLE.iter().any(|spec| spec.name == name) || dialects_of(&FRAMES, name).is_some() {
            Self::Inbound
        } else {
            Self::Outbound
        }
    }

    /// The definition in the schema.
    #[must_use]
    pub fn definition(self) -> &'static str {
        let [inbound, outbound, session] = wire::schema::ROOTS;
        match self {
            Self::Inbound => inbound,
            Self::Outbound => outbound,
            Self::Session => session,
        }
    }
}

/// One example.
#[derive(Debug, Clone)]
pub struct Example {
    /// Where it stands, for messages.
    pub place: String,
    /// What it is.
    pub kind: Kind,
    /// The line.
    pub text: String,
    /// The line, parsed.
    pub value: Value,
}

/// All examples: recorded ones first, then the others in the order of file names and lines.
#[derive(Debug, Clone, Default)]
pub struct Examples(pub Vec<Example>);

impl Examples {
    /// Reads all `*.jsonl` files of a folder. Recorded examples come before those written by hand.
    ///
    /// # Errors
    /// When a file cannot be read or a line is not JSON.
    pub fn load(folder: &Path) -> Result<Self> {
        let list = fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
        let mut paths: Vec<_> = list.filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.sort_by_key(|path| (!path.ends_with("recorded.jsonl"), path.clone()));
        let mut examples = Vec::new();
        for path in paths
            .iter()
            .filter(|path| path.extension().is_some_and(|ext| ext == "jsonl"))
        {
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let text = fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
            for (index, line) in text.lines().enumerate() {
                let place = format!("{name}:{}", index + 1);
                let value: Value =
                    serde_json::from_str(line).with_context(|| format!("{place} is not JSON"))?;
                let kind = if name.starts_with("session") {
                    Kind::Session
                } else {
                    Kind::of(&value)
                };
                examples.push(Example {
                    place,
                    kind,
                    text: line.to_owned(),
                    value,
                });
            }
        }
        Ok(Self(examples))
    }

    /// The first command of this name, and the first successful response with its id.
    #[must_use]
    pub fn command(&self, name: &str) -> Option<(&Example, Option<&Example>)> {
        let command = self
            .0
            .iter()
            .find(|line| line.kind == Kind::Inbound && kind_of(&line.value) == name)?;
        let answers = |line: &Example, success: bool| {
            line.kind == Kind::Outbound
                && kind_of(&line.value) == "response"
                && line.value.get("command").and_then(Value::as_str) == Some(name)
                && line.value.get("success") == Some(&Value::Bool(success))
                && line.value.get("id") == command.value.get("id")
        };
        let response = |success: bool| self.0.iter().find(|line| answers(line, success));
        // A command about something that Pinion lacks always fails.
        Some((command, response(true).or_else(|| response(false))))
    }

    /// The first frame of this type.
    #[must_use]
    pub fn frame(&self, name: &str) -> Option<&Example> {
        let mut inbound = self.0.iter().filter(|line| line.kind == Kind::Inbound);
        inbound.find(|line| kind_of(&line.value) == name)
    }

    /// The first event of a type that has, or lacks, the field.
    #[must_use]
    pub fn event(&self, name: &str, cumulative: bool) -> Option<&Example> {
        let fits = |line: &&Example| {
            line.kind == Kind::Outbound
                && kind_of(&line.value) == name
                && (name != "message_update" || line.value.get("message").is_some() == cumulative)
        };
        self.0.iter().find(fits)
    }
}

pub(super) fn kind_of(line: &Value) -> &str {
    line.get("type").and_then(Value::as_str).unwrap_or("")
}

/// Protocol lines in the `json` and `jsonl` fences of a Markdown page. A fence holds either such lines only, or one JSON text without a
/// `type`, which is passed over.
///
/// # Errors
/// When a fence is neither.
pub fn fenced_lines(name: &str, page: &str) -> Result<Vec<Example>> {
    let mut examples = Vec::new();
    let mut fence: Option<(usize, Vec<&str>)> = None;
    for (index, line) in page.lines().enumerate() {
        match (&mut fence, line.trim_end()) {
            (None, "```json" | "```jsonl") => fence = Some((index + 2, Vec::new())),
            (None, _) => {}
            (Some((first, lines)), "```") => {
                examples.extend(of_fence(name, *first, lines)?);
                fence = None;
            }
            (Some((_, lines)), _) => lines.push(line),
        }
    }
    Ok(examples)
}

fn of_fence(name: &str, first: usize, lines: &[&str]) -> Result<Vec<Example>> {
    if let Ok(whole) = serde_json::from_str::<Value>(&lines.join("\n"))
        && whole.get("type").is_none()
    {
        return Ok(Vec::new());
    }
    let mut examples = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let place = format!("{name}:{}", first + index);
        match serde_json::from_str::<Value>(line) {
            Ok(value) if value.get("type").is_some() => {
                examples.push(Example {
                    place,
                    kind: Kind::of(&value),
                    text: (*line).to_owned(),
                    value,
                });
            }
            _ => bail!("{place}: neither a line of the protocol nor part of one JSON text"),
        }
    }
    Ok(examples)
}
