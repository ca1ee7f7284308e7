//! The agent's decisions as a pure machine.
//!
//! [`Machine::step`] takes an [`Input`] (something happened) and appends [`Effect`]s (something must be done). It never
//! waits, reads no clock, draws no ids and does no IO: time arrives with each input, the caller carries out the effects in
//! order. Same inputs, same effects: inputs are all that changes a machine, `record` writes them down and replays them. What lives here: the turn loop, tool batches, queues, steering, retries, the conversion
//! of a conversation into what a model gets, and counts over a conversation. What does not: providers, tools, files, the
//! wire's dialects.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod account;
mod batch;
mod budget;
pub mod compaction;
mod conversation;
pub mod convert;
mod deferred;
mod effect;
mod ending;
mod estimate;
mod hooks;
mod input;
pub mod limits;
mod machine;
mod nested;
pub mod output;
mod phase;
mod pressure;
mod queue;
pub mod record;
mod results;
mod retry;
mod room;
mod settings;
pub mod spending;
pub mod stats;
mod stream_rules;
pub mod todo;
pub mod ttsr;
mod turn_loop;

pub use account::{AccountMember, SharedAccount, TASK_TOOL};
pub use budget::{RunBudget, SessionUse, Spent};
pub use deferred::{Condition, Deferred, Order, Readiness};
pub use effect::Effect;
pub use estimate::estimate;
pub use hooks::{HOOK_POINTS, HookPoint, HooksOutcome, Subscriptions};
pub use input::{
    Change, CompactOutcome, Fallback, Input, ModelInput, NestedCall, Prepared, ToolInput, Verdict,
};
pub use machine::Machine;
pub use nested::is_nested;
pub use output::Output;
pub use phase::Activity;
pub use pressure::failure_prefix;
pub use queue::{QueueKind, Queued, Queues};
pub use retry::RetrySettings;
pub use room::{Room, room};
pub use settings::{FailureRules, LoopSettings, ResultOrder};
pub use turn_loop::TurnLoop;
