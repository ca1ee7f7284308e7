//! Exit codes of the program. The reference page `exit-codes` is generated from these constants and their comments.

/// Success. With `--mode rpc` also: the client closed stdin. With `--mode web` also: SIGTERM ended the server in order.
pub(crate) const SUCCESS: u8 = 0;
/// Failure: settings are unreadable, a named model, provider, key or server cannot be used, the run or the subcommand
/// failed, the client closed stdout, stdout could not be written (a full disk), or `doctor` found no usable model. The reason
/// is on stderr.
pub(crate) const FAILURE: u8 = 1;
/// The command line is wrong: an unknown option or command, or a value that an option does not take. Nothing was started.
pub(crate) const USAGE: u8 = 2;
/// With `--output-schema`: the prompt was accepted, but its run gave no result that fits the schema. The reason is on stderr.
pub(crate) const NO_RESULT: u8 = 3;
/// With `-p` and `--mode json`: the run ended because it reached a limit, such as `--max-turns`. The limit is on stderr.
pub(crate) const LIMIT: u8 = 4;
/// SIGHUP (128 + 1): the terminal was closed. Child processes were ended and all output was written.
pub(crate) const HANGUP: u8 = 129;
/// SIGINT (128 + 2): Ctrl-C during a login or in the web server. Other modes leave SIGINT to the system: the process ends by
/// the signal, which shells report as 130, too.
pub(crate) const INTERRUPTED: u8 = 130;
/// SIGTERM (128 + 15): child processes were ended and all output was written.
pub(crate) const TERMINATED: u8 = 143;
