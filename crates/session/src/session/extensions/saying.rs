//! What people and extensions say to the model: slash commands of extensions, prompts that extensions change or deal with,
//! what they add to a run (pi-core.md 1.11).

use std::sync::Arc;

use agent::{Input, QueueKind};
use serde_json::{Value, json};
use wire::command::PromptParams;
use wire::reply::{Accepted, Disposition};
use wire::table::Respond;
use wire::{Message, UserBlock};

use crate::outbox::Responder;
use crate::strings;

use super::super::Session;
use super::super::asker::Asker;
use super::super::attachments::Attachments;
use super::super::run_options::{CheckedOptions, RunOptions};
use super::super::session_change::ChangeAsker;
use super::custom_message::custom;
use super::{Then, failure, put};

/// Who receives the outcome of a message.
pub(in crate::session) enum Who {
    /// A client waits for the answer.
    Client(Responder<Accepted>),
    /// An extension sent it; failures are reported like those of extensions.
    Extension,
}

/// Something that is said to the model.
pub(in crate::session) struct Saying {
    pub(in crate::session) who: Who,
    pub(in crate::session) text: String,
    pub(in crate::session) enclosed: Attachments,
    /// Are skills and templates carried out in it?
    pub(in crate::session) expand: bool,
    /// Its handling during a run.
    pub(in crate::session) behavior: Option<String>,
    /// It is queued in any case.
    pub(in crate::session) queue: Option<QueueKind>,
    /// What it says about the run that it starts.
    pub(in crate::session) options: RunOptions,
}

impl Saying {
    /// Something that a client wants to be queued.
    pub(in crate::session) fn queued(
        responder: Responder<Accepted>,
        text: String,
        enclosed: Attachments,
        kind: QueueKind,
    ) -> Self {
        let behavior = match kind {
            QueueKind::Steering => "steer",
            QueueKind::FollowUp => "followUp",
        };
        Self {
            who: Who::Client(responder),
            text,
            enclosed,
            expand: true,
            behavior: Some(behavior.to_owned()),
            queue: Some(kind),
            options: RunOptions::default(),
        }
    }

    /// A prompt of the client.
    pub(in crate::session) fn new(
        responder: Responder<Accepted>,
        mut params: PromptParams,
        enclosed: Attachments,
    ) -> Self {
        let options = RunOptions::take(&mut params);
        Self {
            who: Who::Client(responder),
            text: params.message,
            enclosed,
            expand: true,
            behavior: params.streaming_behavior,
            queue: None,
            options,
        }
    }

    fn source(&self) -> &'static str {
        match self.who {
            Who::Client(_) => "rpc",
            Who::Extension => "extension",
        }
    }
}

/// A run that is to begin.
pub(in crate::session) struct Turn {
    who: Who,
    text: String,
    message: Arc<Message>,
    options: CheckedOptions,
}

impl Session {
    pub(in crate::session) async fn answer(&mut self, who: Who, outcome: Result<Accepted, String>) {
        match (who, outcome) {
            (Who::Client(responder), outcome) => responder.respond(outcome).await,
            (Who::Extension, Ok(_)) => {}
            (Who::Extension, Err(error)) => {
                self.extension_failed(failure("<runtime>", "send_user_message", error))
                    .await;
            }
        }
    }

    /// Runs a slash command of an extension, if the text is one; also during a run. Gives the responder back if it is none.
    pub(in crate::session) fn run_command(
        &mut self,
        responder: Responder<Accepted>,
        text: &str,
    ) -> Option<Responder<Accepted>> {
        let Some(command) = self.extensions.links.command(text) else {
            return Some(responder);
        };
        self.sync_state();
        let extensions = &mut self.extensions;
        extensions
            .client_requests
            .run_command(&extensions.links, responder, command, text);
        None
    }

    /// Says something; extensions may change it first, or deal with it themselves.
    pub(in crate::session) async fn say(&mut self, saying: Saying) {
        if !self.extensions.hear("input") {
            return self.said(saying).await;
        }
        let mut event = json!({"type": "input", "text": saying.text, "source": saying.source()});
        let images = saying.enclosed.images();
        if !images.is_empty() {
            put(&mut event, "images", json!(images));
        }
        if let Some(behavior) = saying.behavior.as_ref().filter(|_| !self.machine.is_idle()) {
            put(&mut event, "streamingBehavior", json!(behavior));
        }
        self.ask_extensions("input", &event, Then::Input(saying));
    }

    pub(in crate::session) async fn on_input(&mut self, mut saying: Saying, answer: Value) {
        match answer.get("action").and_then(Value::as_str) {
            Some("handled") => {
                let handled = Accepted::new(Disposition::Handled);
                return self.answer(saying.who, Ok(handled)).await;
            }
            Some("transform") => {
                if let Some(text) = answer.get("text").and_then(Value::as_str) {
                    text.clone_into(&mut saying.text);
                }
                if let Some(images) = answer.get("images").filter(|images| images.is_array()) {
                    let blocks: Vec<UserBlock> = serde_json::from_value(images.clone()).unwrap_or_default();
                    saying.enclosed.set_images(blocks);
                }
            }
            _ => {}
        }
        self.said(saying).await;
    }

    /// Queues it during a run, else begins one.
    async fn said(&mut self, saying: Saying) {
        let text = if saying.expand {
            self.expand(&saying.text).await
        } else {
            saying.text
        };
        if let Some(kind) = saying.queue {
            let outcome = self.push(kind, text, saying.enclosed, false).await;
            return self.answer(saying.who, outcome).await;
        }
        if !self.machine.is_idle() {
            let outcome = match saying.behavior.as_deref() {
                _ if !saying.options.is_empty() => Err(strings::LIMITS_OF_QUEUED.to_owned()),
                None => Err(strings::BUSY.to_owned()),
                Some("followUp" | "follow_up") => {
                    self.push(QueueKind::FollowUp, text, saying.enclosed, false).await
                }
                Some(_) => self.push(QueueKind::Steering, text, saying.enclosed, false).await,
            };
            return self.answer(saying.who, outcome).await;
        }
        let model = &self.conversation.choice.model;
        let checked = self
            .check_model()
            .and_then(|()| saying.options.check(model, &self.agent.registry, &self.tools));
        let options = match checked {
            Ok(options) => options,
            Err(error) => return self.answer(saying.who, Err(error)).await,
        };
        let images = saying.enclosed.images();
        let turn = Turn {
            who: saying.who,
            message: Arc::new(saying.enclosed.message(text.clone())),
            text,
            options,
        };
        self.extensions.run.prompt = None;
        if !self.extensions.hear("before_agent_start") {
            return self.begin_turn(turn, Value::Null).await;
        }
        let system_prompt = self.system_prompt();
        let mut event =
            json!({"type": "before_agent_start", "prompt": turn.text, "systemPrompt": system_prompt});
        put(&mut event, "systemPromptOptions", self.prompt_options());
        if !images.is_empty() {
            put(&mut event, "images", json!(images));
        }
        self.ask_extensions("before_agent_start", &event, Then::Begin(turn));
    }

    /// Begins a run, with what extensions add to it.
    pub(in crate::session) async fn begin_turn(&mut self, turn: Turn, answer: Value) {
        if !self.machine.is_idle() && !turn.options.is_empty() {
            let refusal = Err(strings::LIMITS_OF_QUEUED.to_owned());
            return self.answer(turn.who, refusal).await;
        }
        if !self.machine.is_idle() {
            // An extension began one meanwhile.
            let queued = self
                .enqueue_message(QueueKind::Steering, turn.text, turn.message)
                .await;
            return self.answer(turn.who, queued).await;
        }
        self.hear();
        let mut messages: Vec<Arc<Message>> = self.system_message().into_iter().collect();
        messages.push(turn.message);
        if answer.is_null() && self.extensions.next_turn.is_empty() {
            self.store_prompt(&messages).await;
        }
        self.answer(turn.who, Ok(Accepted::new(Disposition::Started)))
            .await;
        messages.append(&mut self.extensions.next_turn);
        for added in answer
            .get("messages")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            match custom(added) {
                Ok(message) => messages.push(Arc::new(message)),
                Err(error) => {
                    self.extension_failed(failure("<runtime>", "before_agent_start", error))
                        .await;
                }
            }
        }
        let prompt = answer.get("systemPrompt").and_then(Value::as_str);
        self.extensions.run.prompt = prompt.map(str::to_owned);
        let full = self.context_is_full();
        let CheckedOptions {
            limits,
            fallbacks,
            output,
        } = turn.options;
        let has_fallback = self.conversation.choice.fallbacks.begin_prompt(fallbacks);
        self.change_settings(|settings| settings.has_fallback = has_fallback);
        let wants_result = output.is_some();
        self.tools.set_output(output);
        self.drive(Input::Prompt {
            messages,
            full,
            limits,
            wants_result,
        })
        .await;
    }

    /// Messages that have not begun do not begin any more.
    pub(in crate::session) async fn withdraw_sayings(&mut self) {
        for then in self
            .extensions
            .questions
            .give_up(|then| matches!(then, Then::Input(_) | Then::Begin(_)))
        {
            self.refuse(then).await;
        }
    }

    /// Fails the requests that will not be answered.
    pub(in crate::session) async fn refuse(&mut self, then: Then) {
        match then {
            Then::Input(saying) => self.answer(saying.who, Err(strings::ABORTED.to_owned())).await,
            Then::Begin(turn) => self.answer(turn.who, Err(strings::ABORTED.to_owned())).await,
            Then::Change(asker, _) | Then::Leave(asker, _) => match asker {
                ChangeAsker::Session(responder) => responder.refuse(strings::ABORTED).await,
                ChangeAsker::Continue(responder, _) => responder.refuse(strings::ABORTED).await,
                ChangeAsker::Fork(responder) => responder.refuse(strings::ABORTED).await,
                ChangeAsker::Reload(responder) => responder.refuse(strings::ABORTED).await,
                ChangeAsker::Extension(_) => {}
            },
            Then::Move(Asker::Client(responder), _) => responder.refuse(strings::ABORTED).await,
            _ => {}
        }
    }
}

impl super::Extensions {
    /// The next run has the session's own system prompt.
    pub(in crate::session) fn forget_prompt(&mut self) {
        self.run.prompt = None;
    }

    /// The system prompt of the run that is under way, if it is another one than the session's.
    pub(in crate::session) fn prompt(&self) -> Option<&str> {
        self.run.prompt.as_deref()
    }
}
