//! What a leaf's path means to a model (pi-core.md 2.5, pi-1.5-delta.md 3). How messages become a request lives in `agent`.

use std::sync::Arc;

use serde_json::{Map, Value};
use wire::entry::{Compaction, ModelChange};
use wire::said::Edits;
use wire::{CompactionSummaryMessage, Entry, EntryBody, Message, SessionHeader};

use crate::stamp::iso_to_ms;

/// The conversation at a leaf.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Context {
    /// The messages, oldest first; the summary of a compaction comes first.
    pub messages: Vec<Arc<Message>>,
    /// The thinking level last set on the path, or by the header; none means the default.
    pub thinking_level: Option<String>,
    /// Provider and model last set, or that answered last; else those of the header.
    pub model: Option<(String, String)>,
    /// True if oh-my-pi chose the model: answers of other models are then those of fallbacks and do not change it.
    pub is_model_chosen: bool,
    /// The compaction that counts: the last one on the path.
    pub compaction: Option<Arc<Entry>>,
    /// How many of the messages that compaction left: its summary and what it kept. What follows is newer.
    pub kept: usize,
}

impl Context {
    /// The conversation that the entries from a root to a leaf make.
    pub(crate) fn of(header: &SessionHeader, path: &[Arc<Entry>]) -> Self {
        let mut context = Self::at_start(header);
        let edits = Edits::of(path);
        let mut compaction = None;
        let mut start = 0;
        for (at, entry) in path.iter().enumerate() {
            match &entry.body {
                EntryBody::ThinkingLevelChange(body) => {
                    context.thinking_level.clone_from(&body.thinking_level)
                }
                EntryBody::ModelChange(body) => {
                    if let Some((provider, model)) = body.target().filter(|_| is_main_model(body)) {
                        context.model = Some((provider.to_owned(), model.to_owned()));
                        // oh-my-pi notes every choice of the user, in this form.
                        context.is_model_chosen = body.model.is_some();
                    }
                }
                EntryBody::Message(body) if !context.is_model_chosen => {
                    if let Some(answer) = body
                        .message
                        .as_assistant()
                        .filter(|answer| !answer.model.is_empty())
                    {
                        context.model = Some((answer.provider.clone(), answer.model.clone()));
                    }
                }
                EntryBody::Compaction(body) => compaction = Some((at, body)),
                // What oh-my-pi's user cleared is in the file, and no longer in the conversation.
                body if is_reset(body) => (start, compaction) = (at + 1, None),
                _ => {}
            }
        }
        match compaction
            .and_then(|(at, body)| Some((path.get(..at)?, path.get(at)?, path.get(at + 1..)?, body)))
        {
            None => extend(
                &mut context.messages,
                path.get(start..).unwrap_or_default(),
                &edits,
            ),
            Some((before, entry, after, body)) => {
                let summary = Arc::new(summary_message(entry, body));
                let first_kept = before.iter().position(|e| e.id == body.first_kept_entry_id);
                // Today's pi repeats the system prompt, which may not be among the kept messages (pi-1.5-delta.md 3).
                let system = body
                    .extra
                    .get("systemMessage")
                    .filter(|message| message.is_object());
                context
                    .messages
                    .extend(system.map(|message| Arc::new(Message::Other(message.clone()))));
                context.messages.push(summary);
                let mut add = |entries: &[Arc<Entry>]| {
                    extend(&mut context.messages, entries, &edits);
                    context.messages.len()
                };
                context.kept = add(first_kept.and_then(|from| before.get(from..)).unwrap_or_default());
                add(after);
                context.compaction = Some(Arc::clone(entry));
            }
        }
        context
    }

    /// What the header says: version 1 files of one seed have model and level there (dialects.md 12).
    fn at_start(header: &SessionHeader) -> Self {
        let said = |name: &str| {
            let text = header.extra.get(name).and_then(Value::as_str);
            text.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        Context {
            model: said("provider").zip(said("modelId")),
            thinking_level: said("thinkingLevel"),
            ..Self::default()
        }
    }
}

/// Returns true for the mark that `/clear` of oh-my-pi leaves. The newest of it and of the compactions decides where a conversation
/// begins.
pub(crate) fn is_reset(body: &EntryBody) -> bool {
    matches!(body, EntryBody::Other(_)) && body.kind() == "reset_boundary"
}

/// xcsh also notes changes of the models that it keeps for side jobs, under a role of their own (dialects.md 12).
fn is_main_model(body: &ModelChange) -> bool {
    let role = body.extra.get("role").and_then(Value::as_str);
    role.is_none_or(|role| role == "default")
}

/// Adds the messages of entries, as later edits left them.
fn extend(messages: &mut Vec<Arc<Message>>, entries: &[Arc<Entry>], edits: &Edits<'_>) {
    messages.extend(entries.iter().filter_map(|entry| edits.message(entry, time)));
}

/// Members of a compaction of oh-my-pi that the message with its summary has, too.
const OMP_MEMBERS: [&str; 3] = ["shortSummary", "tokensAfter", "method"];

fn summary_message(entry: &Entry, body: &Compaction) -> Message {
    let members = OMP_MEMBERS.iter().filter_map(|name| {
        let value = body.extra.get(name)?.clone();
        Some(((*name).to_owned(), value))
    });
    Message::CompactionSummary(CompactionSummaryMessage {
        summary: body.summary.clone(),
        tokens_before: body.tokens_before,
        timestamp: time(entry),
        extra: members.collect::<Map<String, Value>>().into(),
    })
}

fn time(entry: &Entry) -> i64 {
    iso_to_ms(&entry.timestamp).unwrap_or_default()
}
