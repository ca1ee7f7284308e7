//! What extensions request of the session, parsed: to show or ask something, to say something, to change a setting, to run
//! something. The session carries a request out; its answer goes back to the extension under the id of the request.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use wire::Message;
use wire::command::{LabelParams, NavigateParams, SessionNameParams, SetModelParams, ThinkingParams};
use wire::message::UserContent;
use wire::ui::SelectOption;

use super::super::attachments::Attachments;
use super::super::dialogs::{Answer, Dialog, Show};
use super::built_in_calls::BuiltInCall;
use super::custom_message::custom;

/// A request of an extension.
pub(crate) enum ExtensionRequest {
    /// Ask the user.
    Ask(Dialog),
    /// Show something to the user.
    Show(Show),
    /// Add a message to the conversation, the queue, or the next prompt.
    SendMessage(CustomMessage),
    /// Send a prompt, as a user does.
    SendPrompt(Box<ExtensionPrompt>),
    /// Append data to the session file.
    AppendEntry {
        custom_type: String,
        data: Option<Value>,
    },
    SetSessionName(SessionNameParams),
    SetLabel(LabelParams),
    /// Make these tools the active ones.
    SetActiveTools(Vec<String>),
    SetModel(SetModelParams),
    SetThinkingLevel(ThinkingParams),
    Abort,
    /// End the agent.
    Shutdown,
    /// The registration itself arrives with the next `changed`.
    RegisterProvider,
    /// Show output of a shell command of the user that the extension runs. The number is that of the command's `user_bash`.
    ShellOutput {
        number: u64,
        text: String,
    },
    /// Run a built-in tool, without hooks and permissions.
    RunBuiltIn(BuiltInCall),
    /// Call a tool as the model does.
    CallTool(Value),
    /// Compact the conversation, with instructions for the summary.
    Compact(Option<String>),
    WaitForIdle,
    NavigateTree(NavigateParams),
    /// Replace the session by another one.
    ChangeSession(SessionChange, Value),
    /// Ask a model.
    StreamModel(Value),
    /// Name the key of a provider.
    Key(Value),
    /// Open a session of its own, with these parameters.
    OpenSession(Value),
    /// Send a command or a frame to a session of its own, or end it.
    Subsession(SubsessionMethod, Value),
}

/// How another session takes the place of this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionChange {
    New,
    Switch,
    Fork,
    Reload,
}

/// What an extension does with a session of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SubsessionMethod {
    Command,
    Frame,
    Dispose,
}

/// A message of an extension, and when it joins the conversation.
pub(crate) struct CustomMessage {
    pub(crate) message: Arc<Message>,
    pub(crate) delivery: Delivery,
    /// True if it begins a run where none is under way. False if it also causes no further request in the run that is.
    pub(crate) triggers_turn: Option<bool>,
}

/// A prompt as a user sends it, by default without skills and templates.
pub(crate) struct ExtensionPrompt {
    pub(crate) text: String,
    pub(crate) attachments: Attachments,
    /// Skills and templates in the text are expanded.
    pub(crate) expand: bool,
    /// What happens to the prompt while a run is under way.
    pub(crate) behavior: Option<String>,
}

/// When a message of an extension joins the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// Into the run that is under way.
    Steering,
    /// After the run that is under way.
    FollowUp,
    /// With the next prompt.
    NextTurn,
}

impl ExtensionRequest {
    /// Returns true for what must not begin without the texts of the messages (docs/internals/decisions/39-texts-on-demand.md).
    pub(crate) fn needs_texts(&self) -> bool {
        matches!(
            self,
            Self::SendMessage(_) | Self::SendPrompt(_) | Self::Compact(_) | Self::NavigateTree(_)
        )
    }

    /// Reads a request.
    ///
    /// # Errors
    /// A message for the extension if there is no such method, or the parameters are invalid.
    pub(crate) fn parse(method: &str, params: Value) -> Result<Self, String> {
        if let Some(what) = method.strip_prefix("ui.") {
            return Self::parse_ui(what, &params);
        }
        Ok(match method {
            "sendMessage" => Self::SendMessage(CustomMessage::parse(&params)?),
            "sendUserMessage" => Self::SendPrompt(Box::new(ExtensionPrompt::parse(&params)?)),
            "appendEntry" => Self::AppendEntry {
                custom_type: text(&params, "customType").unwrap_or_default(),
                data: params.get("data").cloned(),
            },
            "setSessionName" => Self::SetSessionName(read(params)?),
            "setLabel" => Self::SetLabel(LabelParams {
                // The extension protocol has another name for it than the command of clients.
                target_id: text(&params, "entryId").unwrap_or_default(),
                label: text(&params, "label"),
            }),
            "setActiveTools" => {
                let names = params.get("names").and_then(Value::as_array);
                let names = names.into_iter().flatten().filter_map(Value::as_str);
                Self::SetActiveTools(names.map(str::to_owned).collect())
            }
            "setModel" => Self::SetModel(read(params)?),
            "setThinkingLevel" => Self::SetThinkingLevel(read(params)?),
            "abort" => Self::Abort,
            "shutdown" => Self::Shutdown,
            "registerProvider" | "unregisterProvider" => Self::RegisterProvider,
            "bash.output" => Self::ShellOutput {
                number: member(&params, "outputId")?.ok_or("bash.output needs the outputId of an event")?,
                text: text(&params, "text").unwrap_or_default(),
            },
            "tool.builtin" => Self::RunBuiltIn(read(params)?),
            "tool.execute" => Self::CallTool(params),
            "compact" => Self::Compact(text(&params, "customInstructions")),
            "waitForIdle" => Self::WaitForIdle,
            "navigateTree" => Self::NavigateTree(read(params)?),
            "newSession" => Self::ChangeSession(SessionChange::New, params),
            "switchSession" => Self::ChangeSession(SessionChange::Switch, params),
            "fork" => Self::ChangeSession(SessionChange::Fork, params),
            "reload" => Self::ChangeSession(SessionChange::Reload, params),
            "llm.stream" => Self::StreamModel(params),
            "llm.key" => Self::Key(params),
            "session.create" => Self::OpenSession(params),
            "session.command" => Self::Subsession(SubsessionMethod::Command, params),
            "session.frame" => Self::Subsession(SubsessionMethod::Frame, params),
            "session.dispose" => Self::Subsession(SubsessionMethod::Dispose, params),
            other => return Err(format!("{other} is not available here")),
        })
    }

    fn parse_ui(what: &str, params: &Value) -> Result<Self, String> {
        let title = || text(params, "title").unwrap_or_default();
        let timeout = params.get("timeout").and_then(Value::as_u64);
        Ok(match what {
            "select" => Self::Ask(Dialog::Select {
                title: title(),
                options: options(params)?,
                timeout,
            }),
            "confirm" => Self::Ask(Dialog::Confirm {
                title: title(),
                message: text(params, "message").unwrap_or_default(),
                timeout,
            }),
            "input" => Self::Ask(Dialog::Input {
                title: title(),
                placeholder: text(params, "placeholder"),
                timeout,
            }),
            "editor" => Self::Ask(Dialog::Editor {
                title: title(),
                prefill: text(params, "prefill"),
            }),
            "notify" => Self::Show(Show::Notify {
                message: text(params, "message").unwrap_or_default(),
                kind: member(params, "notifyType")?,
            }),
            "setStatus" => Self::Show(Show::Status {
                key: text(params, "statusKey").unwrap_or_default(),
                text: text(params, "statusText"),
            }),
            "setWidget" => Self::Show(Show::Widget {
                key: text(params, "widgetKey").unwrap_or_default(),
                lines: member(params, "widgetLines")?,
                placement: member(params, "widgetPlacement")?,
            }),
            "setTitle" => Self::Show(Show::Title(title())),
            "setEditorText" => Self::Show(Show::EditorText(text(params, "text").unwrap_or_default())),
            "openUrl" => Self::Show(Show::OpenUrl {
                url: text(params, "url").unwrap_or_default(),
                launch_url: text(params, "launchUrl"),
                instructions: text(params, "instructions"),
            }),
            other => return Err(format!("ui.{other} is not available here")),
        })
    }
}

impl CustomMessage {
    fn parse(params: &Value) -> Result<Self, String> {
        let message = Arc::new(custom(params.get("message").unwrap_or(&Value::Null))?);
        let options = params.get("options").unwrap_or(&Value::Null);
        let delivery = match options.get("deliverAs").and_then(Value::as_str) {
            Some("nextTurn") => Delivery::NextTurn,
            Some("followUp") => Delivery::FollowUp,
            // As in pi, it joins the run that is active unless the extension says otherwise (pi-core.md 1.11).
            _ => Delivery::Steering,
        };
        Ok(Self {
            message,
            delivery,
            triggers_turn: options.get("triggerTurn").and_then(Value::as_bool),
        })
    }
}

impl ExtensionPrompt {
    fn parse(params: &Value) -> Result<Self, String> {
        let options = params.get("options").unwrap_or(&Value::Null);
        let content = member::<UserContent>(params, "content")?.ok_or("a message needs content")?;
        let mut attachments = Attachments::default();
        attachments.set_images(content.to_blocks());
        Ok(Self {
            text: content.text(),
            attachments,
            expand: options.get("expandPromptTemplates") == Some(&json!(true)),
            behavior: text(options, "deliverAs"),
        })
    }
}

/// The answer of the user as extensions know it: null without one.
pub(crate) async fn dialog_answer(answer: oneshot::Receiver<Answer>) -> Value {
    match answer.await {
        Ok(Answer::Value(value)) => Value::String(value),
        Ok(Answer::Confirmed(confirmed)) => Value::Bool(confirmed),
        // Only permission dialogs are denied with a reason, and no method of an extension opens one.
        Ok(Answer::Denied(_) | Answer::None(_)) | Err(_) => Value::Null,
    }
}

pub(super) fn text(params: &Value, name: &str) -> Option<String> {
    params.get(name).and_then(Value::as_str).map(str::to_owned)
}

/// The options of a selection, with their descriptions.
fn options(params: &Value) -> Result<Vec<SelectOption>, String> {
    let mut options: Vec<SelectOption> = member(params, "options")?.unwrap_or_default();
    let details = params.get("optionDetails").and_then(Value::as_array);
    for (option, detail) in options.iter_mut().zip(details.into_iter().flatten()) {
        // oh-my-pi leaves out blank ones, too.
        let description = text(detail, "description").map(|text| text.trim().to_owned());
        option.description = description.filter(|text| !text.is_empty());
    }
    Ok(options)
}

/// An optional member of the parameters.
pub(super) fn member<T: DeserializeOwned>(params: &Value, name: &str) -> Result<Option<T>, String> {
    match params.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => read(value.clone()).map(Some),
    }
}

pub(super) fn read<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_json::from_value(value).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Delivery, ExtensionRequest, SessionChange, SubsessionMethod};
    use super::{Dialog, SelectOption, Show};

    fn parse(method: &str, params: Value) -> Result<ExtensionRequest, String> {
        ExtensionRequest::parse(method, params)
    }

    #[test]
    fn message_options_choose_delivery() {
        let delivered = |options: Value| {
            let params = json!({"message": {"customType": "x", "content": "y"}, "options": options});
            match parse("sendMessage", params) {
                Ok(ExtensionRequest::SendMessage(sent)) => (sent.delivery, sent.triggers_turn),
                _ => panic!("another request"),
            }
        };
        assert_eq!(delivered(json!(null)), (Delivery::Steering, None));
        assert_eq!(
            delivered(json!({"triggerTurn": false})),
            (Delivery::Steering, Some(false))
        );
        assert_eq!(
            delivered(json!({"deliverAs": "followUp", "triggerTurn": true})),
            (Delivery::FollowUp, Some(true))
        );
        assert_eq!(
            delivered(json!({"deliverAs": "nextTurn"})),
            (Delivery::NextTurn, None)
        );
    }

    #[test]
    fn user_message_becomes_prompt_without_templates() {
        let params = json!({"content": "/skill", "options": {"deliverAs": "steer"}});
        let Ok(ExtensionRequest::SendPrompt(prompt)) = parse("sendUserMessage", params) else {
            panic!("another request");
        };
        assert_eq!((prompt.text.as_str(), prompt.expand), ("/skill", false));
        assert_eq!(prompt.behavior.as_deref(), Some("steer"));
        let Err(error) = parse("sendUserMessage", json!({})) else {
            panic!("a prompt without content");
        };
        assert_eq!(error, "a message needs content");
    }

    #[test]
    fn ui_methods_ask_or_show() {
        let select = parse("ui.select", json!({"title": "t", "options": ["a"], "timeout": 5}));
        assert!(matches!(
            select,
            Ok(ExtensionRequest::Ask(Dialog::Select { title, options, timeout: Some(5) }))
                if title == "t" && options == [SelectOption::from("a".to_owned())]
        ));
        let details = json!([{"description": " first "}, {}, {"description": " "}]);
        let select = json!({"title": "t", "options": ["a", "b", "c"], "optionDetails": details});
        let Ok(ExtensionRequest::Ask(Dialog::Select { options, .. })) = parse("ui.select", select) else {
            panic!("another request");
        };
        let described: Vec<_> = options
            .iter()
            .map(|option| option.description.as_deref())
            .collect();
        assert_eq!(described, [Some("first"), None, None]);
        assert!(matches!(
            parse("ui.setTitle", json!({"title": "t"})),
            Ok(ExtensionRequest::Show(Show::Title(title))) if title == "t"
        ));
        assert!(parse("ui.select", json!({"options": 5})).is_err());
    }

    #[test]
    fn unknown_methods_are_refused_by_name() {
        for method in ["ui.dance", "session.sing", "dance"] {
            let Err(error) = parse(method, json!({})) else {
                panic!("{method} is known");
            };
            assert_eq!(error, format!("{method} is not available here"));
        }
        assert!(matches!(
            parse("reload", json!({})),
            Ok(ExtensionRequest::ChangeSession(SessionChange::Reload, _))
        ));
        assert!(matches!(
            parse("session.frame", json!({})),
            Ok(ExtensionRequest::Subsession(SubsessionMethod::Frame, _))
        ));
    }
}
