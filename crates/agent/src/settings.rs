//! Settings of the turn loop.

use serde::{Deserialize, Serialize};
use wire::RunLimits;
use wire::state::{InterruptMode, QueueMode};

use crate::retry::RetrySettings;

/// Settings of the loop. [`Change::Settings`](crate::Change::Settings) changes them at any time.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct LoopSettings {
    /// How steering messages are taken.
    pub steering_mode: QueueMode,
    /// How follow-up messages are taken.
    pub follow_up_mode: QueueMode,
    /// When steering takes effect; read when a run starts.
    pub interrupt_mode: InterruptMode,
    /// Retries.
    pub retry: RetrySettings,
    /// How often the model is asked again after an answer without text and calls.
    #[serde(default)]
    pub silent_answers: u32,
    /// Limits of the session.
    #[serde(default)]
    pub limits: RunLimits,
    /// How failed runs end.
    #[serde(default)]
    pub failures: FailureRules,
    /// When the results of several calls of an answer join the conversation.
    #[serde(default)]
    pub results: ResultOrder,
}

/// What follows a run that failed or was aborted, which depends on the dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureRules {
    /// An aborted answer ends its retries as a failure, after the run.
    #[default]
    General,
    /// Any answer that is no error ends its retries as a success, also an aborted one, as in pi 0.74.
    Pi,
    /// In addition, retries end before the compaction after an overflow, and messages that wait begin a run after a failure, as in
    /// pi 1.5 (pi-1.5-delta.md 5).
    NewestPi,
}

/// The order in which the results of the calls of an answer are stored, sent and added to the conversation, which depends on the
/// dialect. Requests always have them in the order of the calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultOrder {
    /// In the order of the calls, when all calls have ended, as in pi.
    #[default]
    Calls,
    /// Each one when its call ends, as in oh-my-pi. Calls of an answer that share an id keep their order.
    Ends,
}
