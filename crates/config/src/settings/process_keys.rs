//! The keys of settings.json about background processes.

use super::table::{FLAG, Key, OBJECT, key};

/// Flags and limits of processes that the model starts.
pub(super) const PROCESSES: &[Key] = &[
    key(
        "processes",
        OBJECT,
        "{}",
        "Processes that the model starts in the background.",
    ),
    key(
        "processes.enabled",
        FLAG,
        "false",
        "Give the model the tool `process`, and the arguments `background` and `pty` of `bash`.",
    ),
    key(
        "processes.wake",
        FLAG,
        "false",
        "Let the end of a background process wake an idle session: a run begins in which the model hears of it. Only in the user's settings.",
    ),
];
