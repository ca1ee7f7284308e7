//! Messages that extensions put others in the place of when they end (`message_end`): what is stored, told and sent to the
//! model is the other one. An answer is shown to them before the machine has it, so that the calls it makes are those of the
//! other one; everything else right before it is written down.

use std::sync::Arc;

use door::line::Failure;
use pinion_core::{Change, Input, ModelInput};
use serde_json::{Value, json};
use wire::Message;

use super::super::Session;
use super::{Then, failure};

impl Session {
    /// Shows extensions an answer that is complete; gives it back when nobody wants to see it, or when it never began: such
    /// a one is shown when it is written down.
    pub(in crate::session) fn review_answer(&mut self, input: Input) -> Option<Input> {
        let Input::Model(ModelInput::Finished(answer, _)) = &input else {
            return Some(input);
        };
        if !self.extensions.hear("message_end") || !self.machine.has_begun_answering() {
            return Some(input);
        }
        if self.extensions.is_telling() || !self.agenda.is_empty() {
            // What was told of it before comes first.
            self.agenda.inputs.push_back(input);
            return None;
        }
        let message: Message = answer.clone().into();
        let event = json!({"type": "message_end", "message": message});
        self.ask_extensions("message_end", &event, Then::Answer(input));
        None
    }

    pub(super) async fn on_answer_seen(&mut self, mut input: Input, answer: Value) {
        if let Input::Model(ModelInput::Finished(old, _)) = &mut input {
            match replacement(&old.clone().into(), answer) {
                Ok(Some(Message::Assistant(new))) => *old = new,
                Ok(_) => {}
                Err(failure) => self.extension_failed(failure).await,
            }
            self.extensions.ended = true;
        }
        self.step(input);
        self.carry_on().await;
    }

    /// Shows extensions a message that is about to be written down; gives it back when nobody wants to see it, or when they
    /// have seen it.
    pub(in crate::session) fn show_ending(&mut self, message: Arc<Message>) -> Option<Arc<Message>> {
        if self.extensions.ended || !self.extensions.hear("message_end") {
            return Some(message);
        }
        let event = json!({"type": "message_end", "message": message});
        self.extensions.ended = true;
        self.ask_extensions("message_end", &event, Then::Persist(message));
        None
    }

    pub(super) async fn on_ending_seen(&mut self, old: Arc<Message>, answer: Value) {
        let mut message = old;
        match replacement(&message, answer) {
            Ok(Some(new)) => {
                let new = Arc::new(new);
                if let Some(at) = self.machine.position(&message) {
                    let message = Arc::clone(&new);
                    self.step(Change::Replace { at, message }.into());
                }
                for effect in &mut self.agenda.effects {
                    effect.replace(&message, &new);
                }
                message = new;
            }
            Ok(None) => {}
            Err(failure) => self.extension_failed(failure).await,
        }
        self.persist(message).await;
        self.carry_on().await;
    }
}

/// What takes the place of a message; none when it stays.
fn replacement(old: &Message, mut answer: Value) -> Result<Option<Message>, Failure> {
    let Some(new) = answer.get_mut("message").map(Value::take) else {
        return Ok(None);
    };
    let refused = |why: String| failure("<runtime>", "message_end", why);
    let new: Message = serde_json::from_value(new).map_err(|error| refused(error.to_string()))?;
    if std::mem::discriminant(&new) != std::mem::discriminant(old) {
        return Err(refused("a message must keep its role".to_owned()));
    }
    Ok(Some(new))
}
