//! The state of a message thread: the conversation that Anthropic keeps for a session, and the answer that the next request may continue.
//! `anthropic::threads` decides which part of a request to send.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sha2::{Digest as _, Sha256};
use wire::AssistantMessage;

/// The thread of a session. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct MessageThread(Arc<Mutex<State>>);

/// Where a thread is.
#[derive(Debug, Default)]
pub(crate) enum State {
    /// The next request begins a thread.
    #[default]
    Unknown,
    /// A request of a thread is being answered.
    Asked(Prefix),
    /// The next request may continue this answer.
    Answered(Prefix, Reply),
    /// The provider cannot keep threads for this session.
    Off,
}

/// The beginning of a conversation with the settings that belong to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Prefix {
    pub(crate) turns: usize,
    pub(crate) digest: [u8; 32],
}

/// An answer that the provider has kept.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) id: String,
    /// Of its content: an extension may have replaced it.
    digest: [u8; 32],
}

impl MessageThread {
    /// No thread: each request is sent whole.
    pub(crate) fn off() -> Self {
        Self(Arc::new(Mutex::new(State::Off)))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is one assignment.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the state for a request; none if threads are off. An answer can be continued once, and a request that fails leaves
    /// nothing to continue.
    pub(crate) fn take(&self) -> Option<State> {
        let mut state = self.state();
        (!matches!(*state, State::Off)).then(|| std::mem::take(&mut *state))
    }

    pub(crate) fn set(&self, state: State) {
        *self.state() = state;
    }

    /// Notes a complete answer.
    pub(crate) fn answered(&self, answer: &AssistantMessage) {
        let mut state = self.state();
        if let State::Asked(prefix) = *state {
            *state = match Reply::of(answer) {
                Some(reply) => State::Answered(prefix, reply),
                None => State::Unknown,
            };
        }
    }
}

impl Reply {
    /// None for an answer that the provider does not keep.
    pub(crate) fn of(answer: &AssistantMessage) -> Option<Self> {
        let content = serde_json::to_vec(&answer.content).ok()?;
        // The provider does not keep answers of another model than the requested one.
        let id = answer
            .response_id
            .clone()
            .filter(|_| answer.response_model.is_none())?;
        Some(Self {
            id,
            digest: Sha256::digest(content).into(),
        })
    }
}
