//! The agent's memory: session files in pi's own format (pi-core.md 2).
//!
//! What lives here: locations of session files, opening one with recovery of damage, appending so that an acknowledged
//! entry is on disk, migration of old versions, the tree of entries, the context of a leaf, forks and the listing of
//! sessions. What does not: when a session is first written (the caller says so with [`SessionLog::ensure_on_disk`]),
//! the content of a model request (`agent`), tokio. Exports are in `export`. All calls are plain and synchronous.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod append;
mod cache;
mod context;
mod damage;
mod deferred;
mod discard;
mod error;
mod forest;
mod fork;
mod glance;
mod header;
pub mod limits;
mod lines;
mod list;
mod load;
mod lock;
mod log;
mod log_file;
mod medium;
mod migrate;
mod open;
mod parse;
pub mod paths;
mod repair;
mod scan;
mod seen;
mod session_directory;
mod session_store;
mod snapshot;
mod stamp;
#[cfg(test)]
mod tests;
mod texts;
mod tree;
mod usual;
mod waiting;

pub use context::Context;
pub use damage::{Damage, SkipReason, SkippedLine};
pub use deferred::{lacks_texts, load_texts, open_deferred};
pub use discard::{TRASH, discard};
pub use error::{Result, StoreError};
pub use fork::ForkScope;
pub use header::new_header;
pub use list::{
    FoundSession, Listing, check_session, find_by_id_prefix, list, list_all, most_recent, working_directory,
};
pub use log::SessionLog;
pub use medium::{FileMedium, Medium, Presence};
pub use open::{is_locked, lock_again, unlock};
pub use scan::{SessionSummary, summarize};
pub use seen::{seen_branch, seen_context};
pub use session_directory::SessionDirectory;
pub use session_store::{SessionId, SessionStore, StoreFuture, Watch, check_lines};
pub use snapshot::open_read_only;
pub use stamp::{iso_to_ms, ms_to_iso, now_iso};
pub use tree::{Tree, TreeNode};
pub use wire::state::Durability;
