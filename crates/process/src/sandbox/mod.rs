//! The sandbox of tools: limits the access of commands and file tools. The kernel enforces it. Off by default.
//!
//! Here: its configuration (`Sandbox`). `policy` resolves it for one call. `landlock` (files, signals), `filter`
//! (system calls) and `mounts` (a private view of the file system) apply it. `launcher` is the program that confines
//! itself and then becomes the command; `files` confines a thread that runs a file tool. `guard` runs the tools in it,
//! and `placeholders` reserve names. `hint` explains a refusal to the model. `permissions` decides which calls
//! may run at all.

mod policy;

#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
mod filter;
mod guard;
mod hint;
#[cfg(target_os = "linux")]
mod landlock;
#[cfg(target_os = "linux")]
pub mod launcher;
#[cfg(target_os = "linux")]
mod mounts;
#[cfg(target_os = "linux")]
mod placeholders;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use wire::state::SandboxMode;

use crate::reaper::SpawnSpec;
pub use guard::{Aim, Guard, check_file, file_tool};
pub use hint::Outcome;
#[cfg(target_os = "linux")]
pub(crate) use placeholders::Placeholders;
#[cfg(target_os = "linux")]
pub use placeholders::clear as clear_placeholders;
pub use policy::{Access, Policy};

/// The word on the command line that turns the program into the launcher of a confined command.
pub const SANDBOX_ARG: &str = "__sandbox";

/// Configuration of the sandbox. Paths are absolute; they need not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    /// Which paths are writable.
    pub mode: SandboxMode,
    /// Commands may use the network.
    pub network: bool,
    /// Commands may use Unix sockets of programs outside. Some of these programs run any command for their clients.
    pub unix_sockets: bool,
    /// `.git` is writable, except its hooks and its configuration.
    pub git_writable: bool,
    /// Writable paths in addition to the working directory.
    pub writable: Vec<PathBuf>,
    /// Readable paths in addition to the system's own directories; none: every path.
    pub readable: Option<Vec<PathBuf>>,
    /// Paths that are never readable.
    pub deny_read: Vec<PathBuf>,
    /// Real paths of programs that rules deny: they can be neither run nor read.
    pub denied_programs: Vec<PathBuf>,
    /// Settings, keys and sessions of the agent: closed, except files that the model is meant to read.
    pub agent_dir: PathBuf,
    /// Other closed directories of the agent.
    pub closed: Vec<PathBuf>,
    /// Trusted projects: code in them that a later start runs is read-only, if it is in a writable path.
    pub projects: Vec<PathBuf>,
    /// Code that a later start runs outside the sandbox, in other than the usual places: read-only files and directories.
    pub code: Vec<PathBuf>,
    /// The sandbox also covers the user's own commands.
    pub user_commands: bool,
    /// The program that confines itself and becomes the command (see `launcher::main`).
    pub launcher: PathBuf,
}

impl Sandbox {
    /// A sandbox in this mode that leaves everything else as strict as it can be.
    #[must_use]
    pub fn new(mode: SandboxMode, agent_dir: &Path) -> Self {
        Self {
            mode,
            network: false,
            unix_sockets: false,
            git_writable: false,
            writable: Vec::new(),
            readable: None,
            deny_read: Vec::new(),
            denied_programs: Vec::new(),
            agent_dir: agent_dir.to_path_buf(),
            closed: Vec::new(),
            projects: Vec::new(),
            code: Vec::new(),
            user_commands: false,
            launcher: PathBuf::from("/proc/self/exe"),
        }
    }

    /// Confines a command. `temp` becomes its directory for temporary files.
    pub(crate) fn confine(&self, spec: SpawnSpec, policy: &Policy, temp: &Path) -> Result<SpawnSpec, String> {
        let policy = serde_json::to_string(policy)
            .map_err(|error| format!("The sandbox cannot be described: {error}"))?;
        let mut args: Vec<OsString> = vec![SANDBOX_ARG.into(), policy.into(), spec.program];
        args.extend(spec.args);
        // Ways to programs outside are closed; who finds their addresses only loses time with them.
        let is_left_out = |name: &OsString| {
            ["TMPDIR", "SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS"]
                .iter()
                .any(|known| name == known && !(self.unix_sockets && *known != "TMPDIR"))
        };
        let mut env = spec.env;
        env.retain(|(name, _)| !is_left_out(name));
        // The usual directory for temporary files is not writable in the sandbox.
        env.push(("TMPDIR".into(), temp.into()));
        Ok(SpawnSpec {
            program: self.launcher.clone().into(),
            args,
            env,
            cwd: spec.cwd,
        })
    }
}
