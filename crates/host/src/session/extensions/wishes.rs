//! What extensions want of the session: to show and ask something, to say something, to change a setting. Taken in the order in
//! which they said it; what would begin a run waits until whatever led to it has been dealt with.

use std::sync::Arc;

use door::Said;
use pinion_core::{Change, Input, QueueKind, Queued};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use wire::command::{LabelParams, SessionNameParams, SetModelParams, ThinkingParams};
use wire::message::UserContent;
use wire::{Event, Message};

use super::super::Session;
use super::super::compacting::Asker;
use super::super::dialogs::{Answer, Dialog, Show};
use super::super::enclosing::Enclosed;
use super::super::prompting::Later;
use super::saying::custom;
use super::{Saying, Who, failure};

impl Session {
    pub(super) async fn on_said(&mut self, place: usize, said: Said) {
        match said {
            Said::Call { id, method, params } => {
                let outcome = self.on_wish(place, id, &method, params).await;
                self.answer_wish(id, &method, outcome).await;
            }
            Said::Withdrawn(id) => {
                if let Some(task) = self.extensions.dialogs.remove(&id) {
                    task.abort();
                }
                self.withdraw_nested(id).await;
                self.extensions.asked_models.remove(&id);
            }
            Said::Changed(registered) => self.on_changed(place, *registered).await,
            Said::Failed(failed) => self.extension_failed(failed).await,
            Said::Gone(reason) => self.on_gone(place, &reason).await,
            _ => {}
        }
    }

    async fn answer_wish(&mut self, id: Option<u64>, method: &str, outcome: Result<Option<Value>, String>) {
        match (id, outcome, &self.extensions.door) {
            (Some(id), Ok(Some(value)), Some(door)) => {
                // What is no JSON cannot be answered.
                let _sent = door.answer(id, &value);
            }
            (Some(id), Err(error), Some(door)) => door.refuse(id, &error),
            (None, Err(error), _) => self.extension_failed(failure("<runtime>", method, error)).await,
            _ => {}
        }
    }

    /// Does what an extension wants. Gives the answer, or nothing when it comes later.
    async fn on_wish(
        &mut self,
        place: usize,
        id: Option<u64>,
        method: &str,
        params: Value,
    ) -> Result<Option<Value>, String> {
        if let Some(what) = method.strip_prefix("ui.") {
            return match dialog(what, &params) {
                Some(dialog) => Ok(self.ask_for(id, dialog?).await),
                None => self.show_for(what, &params).await.map(|()| Some(Value::Null)),
            };
        }
        if method.starts_with("session.") {
            return self.subordinate((place, id), method, params).await;
        }
        match method {
            "sendMessage" => self.send_message(&params).await?,
            "sendUserMessage" => self.send_user_message(params).await?,
            "appendEntry" => {
                let custom_type = text(&params, "customType").unwrap_or_default();
                self.append_custom(custom_type, params.get("data").cloned())
                    .await?;
            }
            "setSessionName" => {
                let params: SessionNameParams = read(params)?;
                self.set_session_name(&params).await?;
            }
            "setLabel" => {
                let target_id = text(&params, "entryId").unwrap_or_default();
                let label = text(&params, "label");
                self.set_entry_label(LabelParams { target_id, label }).await?;
            }
            "setActiveTools" => self.set_active_tools(&params),
            "setModel" => {
                let params: SetModelParams = read(params)?;
                self.set_model(Asker::Extension(id), params).await;
                return Ok(None);
            }
            "setThinkingLevel" => {
                let params: ThinkingParams = read(params)?;
                self.set_thinking_level(&params).await?;
            }
            "abort" => self.drive(Input::Abort).await,
            "shutdown" => self.extensions.shutdown = true,
            // Said with `changed`, too.
            "registerProvider" | "unregisterProvider" => {}
            other => return self.begin_wish(id, other, params).await.map(|()| None),
        }
        Ok(Some(Value::Null))
    }

    /// Begins what takes its time; whoever ends it answers.
    async fn begin_wish(&mut self, id: Option<u64>, method: &str, params: Value) -> Result<(), String> {
        match method {
            "tool.builtin" => self.run_builtin(id, params)?,
            "tool.execute" => {
                self.nest(id, &params)?;
                self.carry_on().await;
            }
            "compact" => {
                self.room_for(self.later.len())?;
                let instructions = text(&params, "customInstructions");
                self.drive(Input::Abort).await;
                self.later.push_back(Later::CompactFor(id, instructions));
            }
            "waitForIdle" => {
                self.room_for(self.later.len())?;
                self.later.push_back(Later::Idle(id));
            }
            "navigateTree" => self.navigate_for(id, params).await?,
            "newSession" | "switchSession" | "fork" | "reload" => {
                self.change_for(id, method, &params).await?
            }
            "llm.stream" => self.ask_for_extension(id, &params)?,
            "llm.key" => self.key_for_extension(id, &params)?,
            other => return Err(format!("{other} is not available here")),
        }
        Ok(())
    }

    /// Answers a call of an extension that had to wait.
    pub(in crate::session) fn answer_later(&mut self, id: Option<u64>, outcome: Result<Value, String>) {
        let extended = &self.extensions;
        // Whoever wanted another session and did not get it has been left already.
        let (Some(id), Some(door)) = (id, extended.door.as_ref().or(extended.left.as_ref())) else {
            return;
        };
        match outcome {
            Ok(value) => drop(door.answer(id, &value)),
            Err(error) => door.refuse(id, &error),
        }
    }

    /// Asks the user; the answer goes straight to who asked.
    async fn ask_for(&mut self, id: Option<u64>, dialog: Dialog) -> Option<Value> {
        let answer = self.dialogs.ask_now(dialog, &self.outbox).await;
        let (Some(id), Some(door)) = (id, self.extensions.door.clone()) else {
            return Some(Value::Null);
        };
        // Dropping it withdraws the question.
        let task = tokio::spawn(async move {
            let value = understood(answer).await;
            let _sent = door.answer(id, &value);
        });
        self.extensions.keep_task(id, task.abort_handle());
        None
    }

    async fn show_for(&mut self, what: &str, params: &Value) -> Result<(), String> {
        let show = match what {
            "notify" => Show::Notify {
                message: text(params, "message").unwrap_or_default(),
                kind: member(params, "notifyType")?,
            },
            "setStatus" => Show::Status {
                key: text(params, "statusKey").unwrap_or_default(),
                text: text(params, "statusText"),
            },
            "setWidget" => Show::Widget {
                key: text(params, "widgetKey").unwrap_or_default(),
                lines: member(params, "widgetLines")?,
                placement: member(params, "widgetPlacement")?,
            },
            "setTitle" => Show::Title(text(params, "title").unwrap_or_default()),
            "setEditorText" => Show::EditorText(text(params, "text").unwrap_or_default()),
            "openUrl" => Show::OpenUrl {
                url: text(params, "url").unwrap_or_default(),
                launch_url: text(params, "launchUrl"),
                instructions: text(params, "instructions"),
            },
            other => return Err(format!("ui.{other} is not available here")),
        };
        self.dialogs.show_now(show, &self.outbox).await;
        Ok(())
    }

    /// A message of an extension: into the run that is under way, with the next prompt, as the beginning of a run, or just into
    /// the conversation (pi-core.md 1.11).
    async fn send_message(&mut self, params: &Value) -> Result<(), String> {
        let message = Arc::new(custom(params.get("message").unwrap_or(&Value::Null))?);
        let options = params.get("options").unwrap_or(&Value::Null);
        let how = text(options, "deliverAs");
        let triggers = options.get("triggerTurn") == Some(&json!(true));
        let begins = self.later.iter().any(|later| matches!(later, Later::Turn(_)));
        if how.as_deref() == Some("nextTurn") {
            self.room_for(self.extensions.next_turn.len())?;
            self.extensions.next_turn.push(message);
        } else if !self.machine.is_idle() || (triggers && begins) {
            let kind = match how.as_deref() {
                Some("followUp") => QueueKind::FollowUp,
                _ => QueueKind::Steering,
            };
            self.enqueue_message(kind, String::new(), message).await?;
        } else if triggers {
            self.room_for(self.later.len())?;
            self.extensions.answer_first();
            self.later.push_back(Later::Turn(vec![message]));
        } else {
            self.add_message(message).await;
        }
        Ok(())
    }

    /// A message that no run produced joins the conversation.
    pub(super) async fn add_message(&mut self, message: Arc<Message>) {
        self.step(Change::Add(Arc::clone(&message)).into());
        self.emit(Event::MessageStart {
            message: Arc::clone(&message),
        })
        .await;
        self.persist(Arc::clone(&message)).await;
        self.emit(Event::MessageEnd { message }).await;
    }

    /// Something that a user might have said, without skills and templates.
    async fn send_user_message(&mut self, params: Value) -> Result<(), String> {
        let options = params.get("options").unwrap_or(&Value::Null);
        let content = member::<UserContent>(&params, "content")?.ok_or("a message needs content")?;
        let mut enclosed = Enclosed::default();
        enclosed.set_images(content.to_blocks());
        let saying = Saying {
            who: Who::Extension,
            text: content.text(),
            enclosed,
            expand: options.get("expandPromptTemplates") == Some(&json!(true)),
            behavior: text(options, "deliverAs"),
            queue: None,
        };
        if self.machine.is_idle() {
            self.room_for(self.later.len())?;
            self.extensions.answer_first();
            self.later.push_back(Later::Say(Box::new(saying)));
        } else {
            self.say(saying).await;
        }
        Ok(())
    }

    /// Is there room for one more of what waits?
    fn room_for(&self, waiting: usize) -> Result<(), String> {
        if waiting >= crate::limits::QUEUED {
            return Err(crate::strings::queue_full(crate::limits::QUEUED));
        }
        Ok(())
    }

    /// Unknown names are ignored, as in pi.
    fn set_active_tools(&mut self, params: &Value) {
        let names = params
            .get("names")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        self.choose_tools(names.filter_map(Value::as_str).map(str::to_owned));
    }

    /// A message of an extension waits in a queue. It is not shown there (behaviour.md 2).
    pub(super) async fn enqueue_message(
        &mut self,
        kind: QueueKind,
        text: String,
        message: Arc<Message>,
    ) -> Result<wire::reply::Accepted, String> {
        self.room_for(self.machine.queued())?;
        let queued = Queued {
            text,
            message,
            interrupts: false,
        };
        self.drive(Input::Enqueue(kind, queued)).await;
        Ok(super::super::prompting::started())
    }

    /// Tells an event that no run produced; extensions hear of it, nobody waits for them.
    pub(in crate::session) async fn emit(&mut self, event: Event) {
        let name = event.name();
        if self.extensions.hear(name) {
            let told = serde_json::to_value(&event).unwrap_or_default();
            self.tell_only(name, &told);
        }
        self.outbox.tell(event).await;
    }
}

/// The question that a method asks; none when it asks nothing.
fn dialog(what: &str, params: &Value) -> Option<Result<Dialog, String>> {
    let title = text(params, "title").unwrap_or_default();
    let timeout = params.get("timeout").and_then(Value::as_u64);
    Some(Ok(match what {
        "select" => Dialog::Select {
            title,
            options: match member(params, "options") {
                Ok(options) => options.unwrap_or_default(),
                Err(error) => return Some(Err(error)),
            },
            timeout,
        },
        "confirm" => Dialog::Confirm {
            title,
            message: text(params, "message").unwrap_or_default(),
            timeout,
        },
        "input" => Dialog::Input {
            title,
            placeholder: text(params, "placeholder"),
            timeout,
        },
        "editor" => Dialog::Editor {
            title,
            prefill: text(params, "prefill"),
        },
        _ => return None,
    }))
}

async fn understood(answer: oneshot::Receiver<Answer>) -> Value {
    match answer.await {
        Ok(Answer::Value(value)) => Value::String(value),
        Ok(Answer::Confirmed(confirmed)) => Value::Bool(confirmed),
        Ok(Answer::Denied(_) | Answer::None(_)) | Err(_) => Value::Null,
    }
}

pub(super) fn text(params: &Value, name: &str) -> Option<String> {
    params.get(name).and_then(Value::as_str).map(str::to_owned)
}

/// A member, if it is there.
pub(super) fn member<T: DeserializeOwned>(params: &Value, name: &str) -> Result<Option<T>, String> {
    match params.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => read(value.clone()).map(Some),
    }
}

pub(super) fn read<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_json::from_value(value).map_err(|error| error.to_string())
}
