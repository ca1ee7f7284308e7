//! What others in this crate ask with: a handle that can be given away, the questions, what can be shown, and the answers.
//! How it all reaches the client is the module's above.

use std::fmt;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use wire::ui::{NotifyType, SelectOption, UiMethod, UiRequest, WidgetPlacement};

use crate::limits;
use crate::strings;

/// A question to the person in front of the client. `timeout` is in milliseconds: 0 waits without end, none as long as the
/// settings say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dialog {
    /// One of several; answered with [`Answer::Value`].
    Select {
        /// The question.
        title: String,
        /// What there is to choose from.
        options: Vec<SelectOption>,
        /// See the type's page.
        timeout: Option<u64>,
    },
    /// Whether a tool call may run; answered with [`Answer::Value`], or [`Answer::Denied`] when the user gives a reason. On the
    /// wire it is a `select`.
    Permission {
        /// Id of the tool call.
        call_id: String,
        /// The question.
        title: String,
        /// The options that allow it.
        allow: Vec<String>,
        /// The option that denies it.
        deny: String,
        /// See the type's page.
        timeout: Option<u64>,
    },
    /// Yes or no; answered with [`Answer::Confirmed`].
    Confirm {
        /// The question, in short.
        title: String,
        /// In full.
        message: String,
        /// See the type's page.
        timeout: Option<u64>,
    },
    /// A line of text; answered with [`Answer::Value`].
    Input {
        /// The question.
        title: String,
        /// Shown while nothing is typed.
        placeholder: Option<String>,
        /// See the type's page.
        timeout: Option<u64>,
    },
    /// A longer text; answered with [`Answer::Value`]. It may take six times as long as the other questions.
    Editor {
        /// The question.
        title: String,
        /// The text to begin with.
        prefill: Option<String>,
    },
}

impl Dialog {
    /// Its method on the wire.
    #[must_use]
    pub const fn method(&self) -> UiMethod {
        match self {
            Self::Select { .. } | Self::Permission { .. } => UiMethod::Select,
            Self::Confirm { .. } => UiMethod::Confirm,
            Self::Input { .. } => UiMethod::Input,
            Self::Editor { .. } => UiMethod::Editor,
        }
    }

    /// The time limit that the asker wants.
    pub(super) const fn timeout(&self) -> Option<u64> {
        match self {
            Self::Select { timeout, .. }
            | Self::Permission { timeout, .. }
            | Self::Confirm { timeout, .. }
            | Self::Input { timeout, .. } => *timeout,
            // The frame of an editor has no timeout (dialects.md 10.4).
            Self::Editor { .. } => None,
        }
    }

    /// The frame that asks.
    pub(super) fn into_request(self, id: String) -> UiRequest {
        let frame = UiRequest::new(id, self.method());
        match self {
            Self::Select {
                title,
                options,
                timeout,
            } => UiRequest {
                title: Some(title),
                options: Some(options),
                timeout,
                ..frame
            },
            Self::Permission {
                title,
                mut allow,
                deny,
                timeout,
                ..
            } => {
                allow.push(deny);
                UiRequest {
                    title: Some(title),
                    options: Some(allow.into_iter().map(SelectOption::from).collect()),
                    timeout,
                    ..frame
                }
            }
            Self::Confirm {
                title,
                message,
                timeout,
            } => UiRequest {
                title: Some(title),
                message: Some(message),
                timeout,
                ..frame
            },
            Self::Input {
                title,
                placeholder,
                timeout,
            } => UiRequest {
                title: Some(title),
                placeholder,
                timeout,
                ..frame
            },
            Self::Editor { title, prefill } => UiRequest {
                title: Some(title),
                prefill,
                ..frame
            },
        }
    }
}

/// Something to show; nothing comes back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Show {
    /// A message.
    Notify {
        /// Its text.
        message: String,
        /// How it is meant; left to the client when none.
        kind: Option<NotifyType>,
    },
    /// A text in the status line; none takes it away.
    Status {
        /// Which.
        key: String,
        /// The text.
        text: Option<String>,
    },
    /// Lines next to the editor; `None` removes them.
    Widget {
        /// Which.
        key: String,
        /// The lines.
        lines: Option<Vec<String>>,
        /// Where.
        placement: Option<WidgetPlacement>,
    },
    /// The title of the window.
    Title(String),
    /// The text in the editor.
    EditorText(String),
    /// A page.
    OpenUrl {
        /// The page.
        url: String,
        /// A shorter way to it.
        launch_url: Option<String>,
        /// What to do there.
        instructions: Option<String>,
    },
}

impl Show {
    /// The frame that says it.
    pub(super) fn into_request(self, id: String) -> UiRequest {
        let frame = |method| UiRequest::new(id, method);
        match self {
            Self::Notify { message, kind } => UiRequest {
                message: Some(message),
                notify_type: kind,
                ..frame(UiMethod::Notify)
            },
            Self::Status { key, text } => UiRequest {
                status_key: Some(key),
                status_text: text,
                ..frame(UiMethod::SetStatus)
            },
            Self::Widget {
                key,
                lines,
                placement,
            } => UiRequest {
                widget_key: Some(key),
                widget_lines: lines,
                widget_placement: placement,
                ..frame(UiMethod::SetWidget)
            },
            Self::Title(title) => UiRequest {
                title: Some(title),
                ..frame(UiMethod::SetTitle)
            },
            Self::EditorText(text) => UiRequest {
                text: Some(text),
                ..frame(UiMethod::SetEditorText)
            },
            Self::OpenUrl {
                url,
                launch_url,
                instructions,
            } => UiRequest {
                url: Some(url),
                launch_url,
                instructions,
                ..frame(UiMethod::OpenUrl)
            },
        }
    }
}

/// What came of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Something was chosen or typed.
    Value(String),
    /// Yes or no.
    Confirmed(bool),
    /// The call of a [`Dialog::Permission`] must not run, for this reason.
    Denied(String),
    /// Nothing. The default counts: no value, not confirmed.
    None(NoAnswer),
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoAnswer {
    /// The person does not want to, or the client sent an answer that is none.
    Cancelled,
    /// The timeout passed.
    TimedOut,
    /// The asker does not want to know any more.
    Withdrawn,
    /// The client does not render such questions, or there is none.
    NotRendered,
    /// Too many questions wait already.
    TooMany,
    /// The session went on in another file.
    SessionChanged,
    /// The client is gone, or the session has ended.
    Gone,
}

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cancelled => "the question was cancelled",
            Self::TimedOut => "no answer came in time",
            Self::Withdrawn => "the question was withdrawn",
            Self::NotRendered => "no client can show the question",
            Self::TooMany => "too many questions wait for an answer already",
            Self::SessionChanged => "the session was changed",
            Self::Gone => strings::UI_GONE,
        })
    }
}

impl Answer {
    /// The chosen or typed value.
    #[must_use]
    pub fn value(self) -> Option<String> {
        match self {
            Self::Value(value) => Some(value),
            Self::Confirmed(_) | Self::Denied(_) | Self::None(_) => None,
        }
    }

    /// Was it confirmed?
    #[must_use]
    pub fn is_confirmed(&self) -> bool {
        matches!(self, Self::Confirmed(true))
    }
}

/// What goes to the session.
#[derive(Debug)]
pub(crate) enum Wish {
    Ask(Dialog, oneshot::Sender<Answer>),
    Show(Show),
}

/// Asks the client of a session. Clones ask the same one.
#[derive(Debug, Clone)]
pub struct Ui {
    wishes: mpsc::Sender<Box<Wish>>,
    subagent: Option<Arc<AskingSubagent>>,
}

/// The sub-agent that questions come from.
#[derive(Debug)]
struct AskingSubagent {
    name: String,
    /// Id of the call of `task`, which the client knows; the calls of the sub-agent it does not.
    call_id: String,
}

impl AskingSubagent {
    fn mark(&self, mut dialog: Dialog) -> Dialog {
        if let Dialog::Permission { call_id, .. } = &mut dialog {
            self.call_id.clone_into(call_id);
        }
        // With every question, the user sees which sub-agent asks (docs/guides/sub-agents.md).
        match &mut dialog {
            Dialog::Select { title, .. }
            | Dialog::Permission { title, .. }
            | Dialog::Confirm { title, .. }
            | Dialog::Input { title, .. }
            | Dialog::Editor { title, .. } => *title = format!("Sub-agent {}: {title}", self.name),
        }
        dialog
    }
}

impl Ui {
    /// A handle, and the queue of its session.
    pub(super) fn new() -> (Self, mpsc::Receiver<Box<Wish>>) {
        let (sender, wishes) = mpsc::channel(limits::UI_WISHES);
        let ui = Self {
            wishes: sender,
            subagent: None,
        };
        (ui, wishes)
    }

    /// The same client, asked by a sub-agent of this name that works for the call of `task` with this id.
    pub(crate) fn for_subagent(&self, name: &str, call_id: &str) -> Self {
        let subagent = AskingSubagent {
            name: name.to_owned(),
            call_id: call_id.to_owned(),
        };
        Self {
            wishes: self.wishes.clone(),
            subagent: Some(Arc::new(subagent)),
        }
    }

    /// Asks, and waits for an answer or for the reason why there is none. The question is withdrawn when `cancel` is, or when
    /// this future is dropped.
    pub async fn ask(&self, dialog: Dialog, cancel: &CancellationToken) -> Answer {
        let asking = async {
            let (answer, wait) = oneshot::channel();
            let dialog = match &self.subagent {
                Some(subagent) => subagent.mark(dialog),
                None => dialog,
            };
            if self
                .wishes
                .send(Box::new(Wish::Ask(dialog, answer)))
                .await
                .is_err()
            {
                return Answer::None(NoAnswer::Gone);
            }
            // The dialogs are dropped with the session.
            wait.await.unwrap_or(Answer::None(NoAnswer::Gone))
        };
        tokio::select! {
                    biased;
        // First: an answer that comes with the abort must not let the call run.
                    () = cancel.cancelled() => Answer::None(NoAnswer::Withdrawn),
                    answer = asking => answer,
                }
    }

    /// Shows something, if the client renders it and the session is still there.
    pub async fn show(&self, show: Show) {
        // Nothing is owed for it, so that a session that has ended is no error.
        let _gone = self.wishes.send(Box::new(Wish::Show(show))).await;
    }
}
