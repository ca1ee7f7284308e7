//! Going on in another session: what takes the place of the session, and who waits for it.

use std::path::PathBuf;

use serde_json::{Value, json};
use wire::command::NewSessionParams;
use wire::event::ChangeReason;
use wire::omp::ContinuedSession;
use wire::reply::{Cancelled, Commands, Forked};
use wire::{EntryBody, Message};

use crate::outbox::Responder;

/// What takes the place of the session.
pub(super) enum Change {
    /// An empty session, or a session with these entries.
    New(NewSessionParams, Vec<wire::Entry>),
    /// An empty session with its file in this directory.
    NewIn(PathBuf),
    /// The session in a file, and the directory that it works in when its own is gone; none: then it stays closed.
    Switch(PathBuf, Option<PathBuf>),
    /// A new session with what came before an entry; the text is the answer's.
    Fork {
        entry: String,
        before: Option<String>,
        text: String,
        /// The conversation stays as it is; only the file begins anew.
        keeps_messages: bool,
    },
    /// A new session with the entries up to and including this one.
    At(String),
    /// A copy of the branch that ends here.
    Clone(String),
    /// None: the same session with its extensions anew.
    Reload,
}

impl Change {
    /// A fork before something that the user said; none when it is anything else.
    pub(super) fn fork(entry: &wire::Entry) -> Option<Self> {
        let EntryBody::Message(body) = &entry.body else {
            return None;
        };
        match body.message.as_ref() {
            // Unlike with a move, messages of extensions do not count (pi-core.md 2.9 and 3.7).
            Message::User(user) => Some(Self::Fork {
                entry: entry.id.clone(),
                before: entry.parent_id.clone(),
                text: user.content.text(),
                keeps_messages: false,
            }),
            _ => None,
        }
    }

    /// Commands of the user belong to the session they were typed in.
    pub(super) fn ends_shells(&self) -> bool {
        !matches!(self, Self::Reload)
    }

    /// Another log takes the place of the session's.
    pub(super) fn leaves_file(&self) -> bool {
        !matches!(self, Self::Reload)
    }

    pub(super) fn reason(&self) -> Option<ChangeReason> {
        Some(match self {
            Self::New(..) | Self::NewIn(_) => ChangeReason::New,
            Self::Switch(..) => ChangeReason::Switch,
            Self::Fork { .. } | Self::At(_) | Self::Clone(_) => ChangeReason::Fork,
            // Without a reason `carry_out` keeps dialogs, processes and queues: the session stays.
            Self::Reload => return None,
        })
    }
}

/// Who asked for another session, with the reply of the command.
pub(super) enum ChangeAsker {
    /// A client, with a command that only says whether the session changed.
    Session(Responder<Cancelled>),
    /// A client, with `continue_session`; true if the session existed before.
    Continue(Responder<ContinuedSession>, bool),
    /// A client, with `fork` or `branch`.
    Fork(Responder<Forked>),
    /// A client, with `reload_resources`.
    Reload(Responder<Commands>),
    /// An extension, by the id of its call.
    Extension(Option<u64>),
}

/// The outcome of a change that did not fail.
pub(super) struct Changed {
    /// Text of the user message that was forked at.
    pub(super) text: Option<String>,
    /// True if an extension refused.
    pub(super) cancelled: bool,
}

/// A change without a text.
pub(super) const DONE: Changed = Changed {
    text: None,
    cancelled: false,
};

impl ChangeAsker {
    /// Returns true for the command of this name.
    pub(super) fn asked(&self, command: &str) -> bool {
        matches!(self, Self::Fork(responder) if responder.origin().command == command)
    }
}

/// The reason that extensions know a change by.
pub(super) fn word(change: &Change) -> &'static str {
    match change {
        Change::New(..) | Change::NewIn(_) => "new",
        // Extensions know a switch by this word since `session_switch` (dialects.md 10.1).
        Change::Switch(..) => "resume",
        Change::Fork { .. } | Change::At(_) | Change::Clone(_) => "fork",
        Change::Reload => "reload",
    }
}

/// The questions before a change.
pub(super) fn question(change: &Change) -> Option<(&'static str, Value)> {
    let switch = "session_before_switch";
    let fork = "session_before_fork";
    Some(match change {
        Change::New(..) | Change::NewIn(_) => (switch, json!({"type": switch, "reason": "new"})),
        Change::Switch(path, _) => (
            switch,
            json!({"type": switch, "reason": "resume", "targetSessionFile": path}),
        ),
        Change::Fork { entry, .. } => (
            fork,
            json!({"type": fork, "entryId": entry, "position": "before"}),
        ),
        Change::At(entry) | Change::Clone(entry) => {
            (fork, json!({"type": fork, "entryId": entry, "position": "at"}))
        }
        // The session stays, so that there is nothing to refuse.
        Change::Reload => return None,
    })
}
