//! Compaction and branch summaries: the messages to summarise, the request to the model, the use of its answer
//! (pi-core.md 3, pi-1.5-delta.md 4).
//!
//! What lives here: pure functions over the entries of a branch, root first, leaf last. They say when a branch should be
//! compacted ([`pressure`], [`should_compact`]), where it is cut ([`plan`]), what to ask ([`requests`]) and what to store
//! ([`finish`]). What does not: sending the requests, writing the entry, events, settings files, hooks.
//!
//! A compaction entry on the branch never takes part itself: its summary travels on as the previous summary.

mod branch;
mod cut;
mod files;
mod finish;
mod limits;
mod plan;
mod refusal;
mod request;
mod said;
mod serialise;
mod trigger;
mod wording;

pub use branch::{BranchPlan, abandoned, branch_plan, branch_request, finish_branch};
pub use cut::Keep;
pub use files::FileLists;
pub use finish::{Finished, answer_text, estimated_tokens_after, finish};
pub use plan::{Plan, Settings, plan};
pub use refusal::Refusal;
pub use request::{SummaryKind, SummaryRequest, requests, short_request};
pub use trigger::{Moment, answer_under_test, context_tokens, pressure, should_compact};
