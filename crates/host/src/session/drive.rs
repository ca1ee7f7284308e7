//! Carrying out what the machine wants: on disk first, then told; requests, tools and timers started and stopped.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pinion_core::{Effect, Input, ToolInput};
use wire::entry::CustomMessageEntry;
use wire::{EntryBody, Message};

use super::Session;

/// Unix time in milliseconds.
pub(super) fn now_ms() -> i64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX)
}

impl Session {
    /// Gives the machine an input and carries out what follows from it: at once, unless an event waits for extensions.
    pub(super) async fn drive(&mut self, input: Input) {
        if matches!(input, Input::Abort) {
            self.stop_waiting().await;
        }
        if let Some(input) = self.review(input) {
            self.step(input);
        }
        self.carry_on().await;
    }

    /// Gives the machine an input. What follows from it comes after what is still to be done.
    pub(super) fn step(&mut self, input: Input) {
        let input = match input {
            // No answer has this call, so the machine does not know it.
            Input::Tool(slot, news) if Self::is_nested(slot) => return self.on_nested(slot, news),
            input => input,
        };
        let mut effects = Vec::new();
        self.machine.step(input, &mut effects);
        self.agenda.effects.extend(effects);
    }

    /// Does what is to be done, until there is no more or an event waits for extensions.
    pub(super) async fn carry_on(&mut self) {
        while !self.extensions.is_telling() {
            if let Some(effect) = self.agenda.effects.pop_front() {
                let mut inputs = VecDeque::new();
                self.perform(effect, &mut inputs).await;
                self.agenda.inputs.extend(inputs);
            } else if let Some(input) = self.agenda.inputs.pop_front() {
                if let Some(input) = self.review(input) {
                    self.step(input);
                }
            } else {
                break;
            }
        }
    }

    async fn perform(&mut self, effect: Effect, inputs: &mut VecDeque<Input>) {
        match effect {
            Effect::Emit(event) => {
                if matches!(event, wire::Event::TurnEnd { .. }) {
                    self.end_all_nested().await;
                }
                if let Some(event) = self.tell_extensions(event) {
                    self.outbox.tell(event).await;
                }
            }
            Effect::Persist(message) => {
                if let Some(message) = self.show_ending(message) {
                    self.persist_group(message).await;
                }
            }
            Effect::Record(body) => self.record(body).await,
            Effect::CallModel => {
                self.extensions.cross_boundary();
                self.tell_what_is_left_out().await;
                self.watch_rules().await;
                self.ask_model();
            }
            Effect::CancelModel => {
                if let Some(answering) = &self.answering {
                    answering.cancel();
                }
            }
            Effect::PrepareTool(slot, call) => {
                if slot == 0 {
                    self.calls.reset();
                }
                if let Some(outcome) = self.prepare(slot, &call) {
                    inputs.push_back(Input::Tool(slot, ToolInput::Prepared(outcome)));
                }
            }
            Effect::RunTool(slot) => self.run_call(slot, inputs).await,
            Effect::CancelTools => self.cancel_calls(inputs).await,
            Effect::StartRetryTimer(ms) => {
                self.retry_timer = Some(Box::pin(tokio::time::sleep(Duration::from_millis(ms))));
            }
            Effect::CancelRetryTimer => self.retry_timer = None,
            Effect::CheckContext => inputs.push_back(Input::Context(self.context_is_full())),
            Effect::Compact(reason) => self.begin_compaction(reason),
            Effect::CancelCompaction => {
                self.stop_asking_to_compact();
                if let Some(summarising) = &self.summarising {
                    summarising.cancel();
                }
            }
            Effect::Idle => {
                self.extensions.rest();
                self.run_model = None;
                self.retry_timer = None;
                self.calls.reset();
            }
        }
    }

    /// Appends a message to the session file. The file comes into being with the first thing the user says
    /// (pi-1.5-delta.md 3); from then on nothing is told before it is on disk. Returns false if it waits to be written.
    pub(super) async fn persist(&mut self, message: Arc<Message>) -> bool {
        let begins = begins(&message);
        self.keep(vec![body_of(message)], begins).await
    }

    /// Appends a prompt before it is acknowledged. Its run does not append it again. A prompt that extensions may change, or
    /// before which the conversation is compacted, is appended when its run begins.
    pub(super) async fn store_prompt(&mut self, message: &Arc<Message>) {
        if !self.context_is_full() && !self.extensions.hear("message_end") {
            self.persist(Arc::clone(message)).await;
            self.log.note_prompt(Arc::clone(message));
        }
    }

    /// Appends a message together with the entries that follow it with nothing but events in between: one write, and with
    /// `durability` `disk` one sync. What extensions may still change, or add entries to, is written when it is its turn.
    async fn persist_group(&mut self, message: Arc<Message>) {
        if self.log.has_prompt(&message) {
            return;
        }
        let effects = &self.agenda.effects;
        let is_plain = |effect: &&Effect| match effect {
            Effect::Persist(_) => !self.extensions.hear("message_end"),
            Effect::Record(_) => true,
            Effect::Emit(event) => !self.extensions.hear(event.name()),
            _ => false,
        };
        let end = effects.iter().take_while(is_plain).count();
        let mut begins_with = begins(&message);
        let mut bodies = vec![body_of(message)];
        let mut events = Vec::new();
        for effect in self.agenda.effects.drain(..end) {
            match effect {
                Effect::Persist(message) => {
                    begins_with |= begins(&message);
                    bodies.push(body_of(message));
                }
                Effect::Record(body) => bodies.push(body),
                event => events.push(event),
            }
        }
        for event in events.into_iter().rev() {
            self.agenda.effects.push_front(event);
        }
        self.keep(bodies, begins_with).await;
    }

    /// Appends an entry that is no message.
    pub(super) async fn record(&mut self, body: EntryBody) {
        self.keep(vec![body], false).await;
    }
}

/// Does a session get its file with this message?
fn begins(message: &Message) -> bool {
    matches!(message, Message::User(_) | Message::Assistant(_))
}

/// The entry of a message. Messages that no person and no model said have a kind of their own.
fn body_of(message: Arc<Message>) -> EntryBody {
    match message.as_ref() {
        Message::Custom(custom) => EntryBody::CustomMessage(CustomMessageEntry {
            custom_type: custom.custom_type.clone(),
            content: custom.content.clone(),
            display: custom.display,
            details: custom.details.clone(),
            extra: wire::Extra::default(),
        }),
        _ => EntryBody::message(message),
    }
}
