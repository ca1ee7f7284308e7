//! All numeric limits of this crate.

use std::time::Duration;

/// Longest line, in bytes.
pub(crate) const MAX_LINE: usize = 256 << 20;
/// Containers inside each other in an answer up to which it is read by recursion.
pub(crate) const SHALLOW: usize = 100;
/// Containers inside each other in an answer that is read as any type. That takes recursion, about 3 KiB of stack for each of
/// them in a build without optimisation, and threads have 2 MiB. `Session::tree` and `Session::call_raw` have no such limit.
pub(crate) const DEEPEST: usize = 250;
/// Bytes at both ends of a line in which the id of an answer is looked for that cannot be read.
pub(crate) const ENDS: usize = 4 << 10;
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
