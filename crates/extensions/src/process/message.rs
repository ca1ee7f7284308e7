//! What a child sends: answers to requests, and messages of its own accord.

use serde_json::Value;

use crate::line::{Failure, Registered};

/// What a child says that was not asked for.
#[derive(Debug)]
#[non_exhaustive]
pub enum ProcessMessage {
    /// A request of the child. If it has an id, the agent must call [`ExtensionProcess::answer`](crate::ExtensionProcess::answer) or [`ExtensionProcess::refuse`](crate::ExtensionProcess::refuse).
    Call {
        /// To answer to.
        id: Option<u64>,
        /// What.
        method: String,
        /// With what.
        params: Value,
    },
    /// It does not wait for the answer to a call of its own any more.
    Withdrawn(u64),
    /// What an extension registered, anew.
    Changed(Box<Registered>),
    /// An error outside any request, such as a rejected promise without a handler.
    Failed(Failure),
    /// A line for the log: its level and text.
    Log(String, String),
    /// A line that was printed, with its end taken off.
    Printed(String),
    /// It is gone, and why. The last thing it says.
    Gone(String),
}

/// What came of an event or a call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// The value; null if no listener returned one.
    pub value: Value,
    /// Extensions that failed on the way, although there is an answer.
    pub errors: Vec<Failure>,
}
