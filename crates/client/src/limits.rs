//! All numeric limits of this crate.

use std::time::Duration;

/// Longest line, in bytes.
pub(crate) const MAX_LINE: usize = 256 << 20;
/// How much of the agent's stderr is kept, in bytes.
pub(crate) const STDERR_TAIL: usize = 64 << 10;
/// Events that may wait to be taken before [`crate::Error::Lagged`].
pub(crate) const MAX_WAITING: usize = 1 << 16;
/// How long the last words of an agent are waited for once it has ended.
pub(crate) const LAST_WORDS: Duration = Duration::from_secs(1);
/// Default of [`crate::Times::start`].
pub(crate) const START: Duration = Duration::from_secs(30);
/// Default of [`crate::Times::command`].
pub(crate) const COMMAND: Duration = Duration::from_secs(30);
/// Default of [`crate::Times::slow`].
pub(crate) const SLOW: Duration = Duration::from_secs(3600);
/// Default of [`crate::Times::idle`].
pub(crate) const IDLE: Duration = Duration::from_secs(900);
/// Default of [`crate::Times::dialog`].
pub(crate) const DIALOG: Duration = Duration::from_secs(600);
/// Default of [`crate::Times::stop`].
pub(crate) const STOP: Duration = Duration::from_secs(5);
