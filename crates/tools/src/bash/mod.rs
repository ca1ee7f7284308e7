//! Commands: the `bash` tool of the model and the `bash` command of the user. How processes are started and killed lives
//! in `reaper`.

mod drive;
mod log;
mod output;
mod shell;
pub(crate) mod tool;
pub(crate) mod user;

pub(crate) use shell::Shell;
pub use user::{BashRun, UserBash};
