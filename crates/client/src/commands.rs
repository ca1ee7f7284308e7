//! Commands with parameters of their own. All others are in `generated`, as the protocol has them.

use serde_json::json;
use wire::changes::{Changes, ChangesParams, RewindParams, Rewound, UnrewindParams};
use wire::command::{BashParams, MessageParams, SetModelParams};
use wire::event::CompactionResult;
use wire::reply::{
    Accepted, Cancelled, CycledModel, CycledThinking, Exported, ForkMessages, Forked, LastText, Messages,
    Models, Queues, Sessions,
};
use wire::state::{BashResult, QueueMode, SessionState, SessionStats};
use wire::{Model, ThinkingLevel};

use crate::error::Result;
use crate::session::Session;

macro_rules! commands {
    ($( $(#[doc = $doc:literal])+ $name:ident($($arg:ident: $type:ty),*) = $command:literal, $params:expr => $reply:ty; )+) => {
        impl Session {
            $(
                $(#[doc = $doc])+
                ///
                /// # Errors
                /// Those of [`Session::call`].
                pub async fn $name(&self, $($arg: $type),*) -> Result<$reply> {
                    self.call($command, &$params).await
                }
            )+
        }
    };
}

commands! {
    /// The session's state.
    state() = "get_state", json!({}) => SessionState;
    /// The conversation.
    messages() = "get_messages", json!({}) => Messages;
    /// Counts, tokens and cost.
    stats() = "get_session_stats", json!({}) => SessionStats;
    /// Text of the newest answer.
    last_text() = "get_last_assistant_text", json!({}) => LastText;
    /// Queues a message that the model gets after the current turn.
    steer(message: &str) = "steer", text(message) => Accepted;
    /// Queues a message that the model gets when it would stop.
    follow_up(message: &str) = "follow_up", text(message) => Accepted;
    /// Ends the run, a retry wait or a compaction, and waits until all is quiet.
    abort() = "abort", json!({}) => ();
    /// Empties both queues and returns their content.
    clear_queue() = "clear_queue", json!({}) => Queues;
    /// Chooses the model.
    set_model(provider: &str, model: &str) = "set_model", SetModelParams {
        provider: Some(provider.to_owned()),
        model_id: Some(model.to_owned()),
    } => Model;
    /// Goes on to the next model.
    cycle_model() = "cycle_model", json!({}) => Option<CycledModel>;
    /// Models with credentials.
    available_models() = "get_available_models", json!({}) => Models;
    /// Sets the thinking level, clamped to what the model offers.
    set_thinking_level(level: ThinkingLevel) = "set_thinking_level", json!({ "level": level }) => ();
    /// Goes on to the next thinking level.
    cycle_thinking_level() = "cycle_thinking_level", json!({}) => Option<CycledThinking>;
    /// How many steering messages are taken at once.
    set_steering_mode(mode: QueueMode) = "set_steering_mode", json!({ "mode": mode }) => ();
    /// How many follow-up messages are taken at once.
    set_follow_up_mode(mode: QueueMode) = "set_follow_up_mode", json!({ "mode": mode }) => ();
    /// Switches automatic compaction.
    set_auto_compaction(enabled: bool) = "set_auto_compaction", json!({ "enabled": enabled }) => ();
    /// Switches automatic retries.
    set_auto_retry(enabled: bool) = "set_auto_retry", json!({ "enabled": enabled }) => ();
    /// Puts a summary in the place of the older part of the conversation.
    compact(instructions: Option<&str>) = "compact", json!({ "customInstructions": instructions }) => CompactionResult;
    /// Runs a shell command on the user's behalf.
    bash(command: &str) = "bash", BashParams {
        command: command.to_owned(),
        exclude_from_context: None,
    } => BashResult;
    /// Kills every running `bash` command.
    abort_bash() = "abort_bash", json!({}) => ();
    /// Ends the run and starts an empty session.
    new_session() = "new_session", json!({}) => Cancelled;
    /// Goes on in another session file.
    switch_session(path: &str) = "switch_session", json!({ "sessionPath": path }) => Cancelled;
    /// Goes on in a new session that holds what came before a user message.
    fork(entry: &str) = "fork", json!({ "entryId": entry }) => Forked;
    /// Compares the files before and after the changes of a turn, a run or the session.
    changes(params: ChangesParams) = "get_changes", params => Changes;
    /// Restores files, the conversation or both as they were when an entry was the last one.
    rewind(params: RewindParams) = "rewind", params => Rewound;
    /// Takes the newest rewind back; with `force` also where others have changed files since.
    unrewind(force: bool) = "unrewind", UnrewindParams { force } => Rewound;
    /// User messages that `fork` takes.
    fork_messages() = "get_fork_messages", json!({}) => ForkMessages;
    /// Sessions on disk, newest first.
    list_sessions() = "list_sessions", json!({}) => Sessions;
    /// Names the session.
    set_name(name: &str) = "set_session_name", json!({ "name": name }) => ();
    /// Writes the session as one page.
    export_html(path: Option<&str>) = "export_html", json!({ "outputPath": path }) => Exported;
}

fn text(message: &str) -> MessageParams {
    MessageParams {
        message: message.to_owned(),
        images: Vec::new(),
    }
}
