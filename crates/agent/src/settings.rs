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
}
