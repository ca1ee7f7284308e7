//! Prompts on their way to a run: from the client or an extension that sent them to the moment when the run begins.

use std::sync::Arc;

use agent::QueueKind;
use wire::Message;
use wire::command::PromptParams;
use wire::reply::Accepted;

use crate::outbox::Responder;

use super::attachments::Attachments;
use super::run_options::{CheckedOptions, RunOptions};

/// Who receives the outcome of a message.
pub(super) enum PromptSender {
    /// A client waits for the answer.
    Client(Responder<Accepted>),
    /// An extension sent it; failures are reported like those of extensions.
    Extension,
}

impl PromptSender {
    /// Replies to a client that its message failed.
    pub(super) async fn refuse(self, error: String) {
        if let Self::Client(responder) = self {
            responder.refuse(error).await;
        }
    }
}

/// Something that is said to the model.
pub(super) struct PendingPrompt {
    pub(super) sender: PromptSender,
    pub(super) text: String,
    pub(super) attachments: Attachments,
    /// Whether skills and templates in it are expanded.
    pub(super) expand: bool,
    /// Its handling during a run.
    pub(super) behavior: Option<String>,
    /// It is queued in any case.
    pub(super) queue: Option<QueueKind>,
    /// What it says about the run that it starts.
    pub(super) options: RunOptions,
}

impl PendingPrompt {
    /// Something that a client wants to be queued.
    pub(super) fn queued(
        responder: Responder<Accepted>,
        text: String,
        attachments: Attachments,
        kind: QueueKind,
    ) -> Self {
        // For handlers of `input`, which get it as `streamingBehavior`. What happens to the message depends on `queue` alone.
        let behavior = match kind {
            QueueKind::Steering => "steer",
            QueueKind::FollowUp => "followUp",
        };
        Self {
            sender: PromptSender::Client(responder),
            text,
            attachments,
            expand: true,
            behavior: Some(behavior.to_owned()),
            queue: Some(kind),
            options: RunOptions::default(),
        }
    }

    /// A prompt of the client.
    pub(super) fn new(
        responder: Responder<Accepted>,
        mut params: PromptParams,
        attachments: Attachments,
    ) -> Self {
        let options = RunOptions::take(&mut params);
        Self {
            sender: PromptSender::Client(responder),
            text: params.message,
            attachments,
            expand: true,
            behavior: params.streaming_behavior,
            queue: None,
            options,
        }
    }

    pub(super) fn source(&self) -> &'static str {
        match self.sender {
            PromptSender::Client(_) => "rpc",
            PromptSender::Extension => "extension",
        }
    }
}

/// A run that is to begin.
pub(super) struct PendingRun {
    pub(super) sender: PromptSender,
    pub(super) text: String,
    pub(super) message: Arc<Message>,
    pub(super) options: CheckedOptions,
}
