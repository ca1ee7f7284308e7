//! The conversation of a session as it is stored: the log, the model that is asked, and how much of the log the model gets.
//! The turns themselves are the business of the machine in `agent`.

use std::path::Path;
use std::sync::Arc;

use agent::compaction::{self, Settings};
use agent::convert::{close_dangling_calls, without_retried};
use config::settings::CompactionSettings;
use llm::PromptHistory;
use store::{Context, StoreError};
use wire::changes::Checkpoints;
use wire::command::{LabelParams, NavigateParams, UserMessageTarget};
use wire::entry::{Label, SessionInfo};
use wire::state::ContextUsage;
use wire::{Entry, EntryBody, Event, Message};

use crate::outbox::{Outbox, Outgoing};
use crate::strings;

use super::checkpoints::{SessionCheckpoints, TurnCheckpoint};
use super::image_blobs;
use super::model_choice::{ModelChoice, Switch};
use super::storage::{Batch, Storage};

/// What a session says, with which model, and where it is stored.
pub(super) struct Conversation {
    pub(super) log: Storage,
    pub(super) choice: ModelChoice,
    /// Compacts by itself when the context is full.
    pub(super) auto_compaction: bool,
    /// How many messages the newest compaction left at the front of the conversation; 0 without one.
    pub(super) kept: usize,
    /// The prompts that the requests of this session were made of, for the caches of providers.
    pub(super) prompt_history: PromptHistory,
    /// What files were before turns that changed them.
    pub(super) checkpoints: SessionCheckpoints,
    /// Stored shell commands of the user that the model has not got yet.
    unsent_shells: Vec<Arc<Message>>,
}

/// A place of the session's tree.
pub(super) struct Place {
    /// The entry asked for.
    pub(super) target: String,
    /// The entry that the next one will follow; none for a fresh root.
    pub(super) leaf: Option<String>,
    /// What the user said there, to say it differently.
    pub(super) text: Option<String>,
}

impl Conversation {
    /// A conversation of which a compaction kept `kept` messages.
    pub(super) fn new(log: Storage, choice: ModelChoice, kept: usize, auto_compaction: bool) -> Self {
        Self {
            log,
            choice,
            auto_compaction,
            kept,
            prompt_history: PromptHistory::default(),
            checkpoints: SessionCheckpoints::default(),
            unsent_shells: Vec::new(),
        }
    }

    /// The checkpoint of the turn whose calls run now; none if the session has no checkpoints.
    pub(super) fn checkpoint(&mut self, kind: Checkpoints) -> Option<TurnCheckpoint> {
        self.checkpoints.turn(&self.log, kind)
    }

    /// Changes of files belong to the turn of another session from now on.
    pub(super) fn lend_checkpoint(&mut self, checkpoint: Option<TurnCheckpoint>) {
        self.checkpoints.lend(checkpoint);
    }

    /// Reads the messages at the leaf of the log. Stored shell commands of the user are among them from now on.
    pub(super) fn read_leaf(&mut self) -> Vec<Arc<Message>> {
        // Not the whole branch: after many compactions the model sees only the end of it. The model and the level, which may be
        // missing in this context, are not needed.
        self.take_up(store::seen_context(&self.log, self.log.leaf_id()))
    }

    /// The messages of a context, which takes the place of what the model has got until now.
    pub(super) fn take_up(&mut self, context: Context) -> Vec<Arc<Message>> {
        // The context has them already, since they are stored.
        self.unsent_shells.clear();
        let (messages, kept) = messages_of(context, self.log.path());
        self.kept = kept;
        messages
    }

    /// Adds a stored message that the model gets with the next prompt.
    pub(super) fn add_unsent_shell(&mut self, message: Arc<Message>) {
        self.unsent_shells.push(message);
    }

    /// Takes the stored messages that become part of the conversation now.
    pub(super) fn take_unsent_shells(&mut self) -> Vec<Arc<Message>> {
        std::mem::take(&mut self.unsent_shells)
    }

    /// Returns true if the session is at the target already.
    pub(super) fn is_at(&self, params: &NavigateParams) -> bool {
        let leaves_message = params.user_message == UserMessageTarget::Before
            && self.place(params).is_some_and(|place| place.text.is_some());
        self.log.leaf_id() == Some(params.target_id.as_str()) && !leaves_message
    }

    /// Where a target leads: to itself, but at something the user said to what came before it.
    pub(super) fn place(&self, params: &NavigateParams) -> Option<Place> {
        let entry = self.log.entry(&params.target_id)?;
        let text = match &entry.body {
            EntryBody::Message(body) => match body.message.as_ref() {
                Message::User(user) => Some(user.content.text()),
                _ => None,
            },
            // Messages of extensions count as said by the user here (pi-core.md 3.7).
            EntryBody::CustomMessage(body) => Some(body.content.text()),
            _ => None,
        };
        let text = text.filter(|_| params.user_message != UserMessageTarget::Itself);
        let leaf = if text.is_some() {
            entry.parent_id.clone()
        } else {
            Some(entry.id.clone())
        };
        Some(Place {
            target: entry.id.clone(),
            leaf,
            text,
        })
    }

    /// The branch that the session is on, and the branch that ends with `leaf`; both from their roots on.
    pub(super) fn branches(&self, leaf: Option<&str>) -> (Vec<Arc<Entry>>, Vec<Arc<Entry>>) {
        (self.log.branch(self.log.leaf_id()), self.log.branch(leaf))
    }

    /// The use of the context window by these messages; `None` if the window is unknown.
    pub(super) fn context_usage(&self, messages: &[Arc<Message>]) -> Option<ContextUsage> {
        agent::stats::context_usage(messages, self.choice.model.context_window, self.kept)
    }

    /// The settings of compactions, fitted to the model's window.
    pub(super) fn compaction_settings(&self, settings: &CompactionSettings) -> Settings {
        let model = &self.choice.model;
        let (reserve_tokens, keep_recent_tokens) = settings.tokens_for(&model.provider, &model.id);
        Settings::for_window(
            model.context_window,
            reserve_tokens,
            config::settings::limits::RESERVE_TOKENS,
            keep_recent_tokens,
        )
    }

    /// Returns true if these messages leave too little room for an answer and the session compacts by itself. Only answers
    /// newer than the last compaction count.
    pub(super) fn is_full(&self, messages: &[Arc<Message>], settings: &CompactionSettings) -> bool {
        if !self.auto_compaction {
            return false;
        }
        let usage = self.context_usage(messages);
        let tokens = usage.and_then(|usage| usage.tokens);
        let window = self.choice.model.context_window;
        let reserve = self.compaction_settings(settings).reserve_tokens;
        // Right after a compaction the size is unknown, and the context counts as not full (pi-core.md 3.8).
        tokens.is_some_and(|tokens| compaction::should_compact(tokens, window, reserve))
    }

    /// Stores what a switch of the model changed, and tells clients of another thinking level.
    pub(super) async fn store_switch(&mut self, switch: &Switch, outbox: &Outbox) {
        // Stored before the event: a client that reads the entries after it must find them.
        for entry in self.choice.entries_of(switch) {
            self.log.record(entry, outbox).await;
        }
        // The model that was selected may be the same one, which changes no option.
        if (switch.previous_model.as_ref()).is_some_and(|previous| *previous != self.choice.model) {
            outbox.inform(Outgoing::OptionsChanged).await;
        }
        // Callers respond afterwards: the event precedes the response (behaviour.md 4.1).
        if switch.previous_level.is_some() {
            let level = self.choice.thinking;
            outbox.tell(Event::ThinkingLevelChanged { level }).await;
        }
    }

    /// Stores the first entries of a session: its model, unless it has messages, and its thinking level.
    pub(super) async fn store_start(&mut self, has_messages: bool, outbox: &Outbox) {
        let mut batch = Batch::default();
        for entry in self.choice.first_entries(has_messages) {
            batch.push(entry);
        }
        self.log.keep(batch, outbox).await;
    }

    /// Stores the name of the session, trimmed, and returns it.
    ///
    /// # Errors
    /// When the name is empty or cannot be stored.
    pub(super) async fn store_name(&mut self, name: &str, outbox: &Outbox) -> Result<String, String> {
        let name = one_line(name);
        if name.is_empty() {
            return Err(strings::EMPTY_NAME.to_owned());
        }
        let entry = EntryBody::SessionInfo(SessionInfo {
            name: name.clone(),
            extra: wire::Extra::default(),
        });
        let stored = self.log.append(entry, outbox).await;
        stored.map(|_| name).map_err(|error| error.to_string())
    }

    /// Stores the label of an entry; without one it removes the label.
    ///
    /// # Errors
    /// When it cannot be stored.
    pub(super) async fn store_label(
        &mut self,
        target: &str,
        label: Option<String>,
        outbox: &Outbox,
    ) -> Result<(), StoreError> {
        let label = EntryBody::Label(Label {
            target_id: target.to_owned(),
            label,
            extra: wire::Extra::default(),
        });
        self.log.append(label, outbox).await.map(drop)
    }

    /// Stores what a client or an extension calls an entry; a blank label removes it.
    ///
    /// # Errors
    /// When there is no such entry, or it cannot be stored.
    pub(super) async fn set_label(&mut self, params: LabelParams, outbox: &Outbox) -> Result<(), String> {
        let LabelParams { target_id, label } = params;
        if self.log.entry(&target_id).is_none() {
            return Err(strings::entry_not_found(&target_id));
        }
        let label = label.map(|label| label.trim().to_owned());
        let label = label.filter(|label| !label.is_empty());
        let stored = self.store_label(&target_id, label, outbox).await;
        stored.map_err(|error| error.to_string())
    }
}

/// The messages of a context, with every call answered and the images that its file refers to, and how many of them a compaction left.
pub(super) fn messages_of(context: Context, session_file: Option<&Path>) -> (Vec<Arc<Message>>, usize) {
    let is_compacted = context.compaction.is_some();
    let Context {
        messages: mut kept,
        kept: count,
        ..
    } = context;
    // Each part by itself, so that results that stand for missing ones do not move the border between them.
    let newer = kept.split_off(count.min(kept.len()));
    let mut messages = close_dangling_calls(kept);
    let count = messages.len();
    messages.extend(close_dangling_calls(newer));
    // Over both parts at once: the kept part may end with a failed answer whose repetition is the first newer message.
    let (mut messages, count) = without_retried(messages, count);
    image_blobs::restore(&mut messages, session_file);
    (messages, if is_compacted { count } else { 0 })
}

/// A name without line feeds, which lists of sessions cannot show (recorded from pi 1.5.2).
fn one_line(name: &str) -> String {
    let lines = name.split(['\r', '\n']).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(" ").trim().to_owned()
}
