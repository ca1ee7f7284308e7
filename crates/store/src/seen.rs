//! The part of a branch that a model still sees after compactions.

use std::sync::Arc;

use wire::Entry;

use crate::context::Context;
use crate::log::SessionLog;

/// The messages at a leaf as [`SessionLog::context`] has them, without a look at entries that the newest compaction replaced: after many
/// compactions they are most of a session. Model and thinking level are known only if the rest of the branch says them.
#[must_use]
pub fn seen_context(log: &SessionLog, leaf: Option<&str>) -> Context {
    Context::of(&log.header, &seen_branch(log, leaf))
}

/// The end of a branch that a model still sees: from the first entry that the newest compaction kept, or from this compaction if it kept
/// nothing of the branch, or from a later mark of `/clear` of oh-my-pi; all of a branch without these.
#[must_use]
pub fn seen_branch(log: &SessionLog, leaf: Option<&str>) -> Vec<Arc<Entry>> {
    let path = log.forest.seen_path_to(leaf).into_iter();
    path.filter_map(|position| log.forest.at(position).cloned())
        .collect()
}
