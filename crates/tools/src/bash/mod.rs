//! Commands: the `bash` tool of the model and the `bash` command of the user. How processes are started and killed lives
//! in `process`.

pub(crate) mod background;
mod drive;
mod log;
mod output;
mod shell;
mod terminal;
pub(crate) mod tool;
pub(crate) mod user;

use std::path::Path;
use std::time::Duration;

use crate::client::CallClient;
pub use background::{BackgroundCommand, StartedCommand};
use process::Reaper;
use process::sandbox::Guard;
pub(crate) use shell::Shell;
pub use user::{BashRun, UserBash, UserOutput};
use wire::Dialect;

/// What commands are run with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Means<'a> {
    pub(crate) shell: &'a Shell,
    pub(crate) reaper: &'a Reaper,
    /// Where logs of long outputs go.
    pub(crate) tmp_dir: &'a Path,
    /// The sandbox they run in, if in any.
    pub(crate) guard: Option<&'a Guard>,
    /// Timeout of a call of the model that names none; none is without end.
    pub(crate) default_timeout: Option<Duration>,
    /// The dialect that the process starts with: what it shows of long outputs and of signals.
    pub(crate) dialect: Dialect,
    /// The client whose terminal runs commands, if one does.
    pub(crate) client: Option<CallClient<'a>>,
}
