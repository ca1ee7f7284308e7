//! The sandbox of tools: what commands and file tools may reach, whatever they try. Off unless somebody asks for it.
//!
//! Here: what is wanted (`Sandbox`). What it comes to for one call is `policy`; how the kernel is told is `landlock` (files,
//! signals), `filter` (system calls) and `mounts` (a view of the file system of one's own); `launcher` is the program that
//! confines itself and then becomes the command, `files` does the same for a thread that carries out a file tool; `guard`
//! puts the tools into it, and `placeholders` keep names free. `hint` tells the model what happened. Which calls may run at all is decided elsewhere (`permissions`).

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
pub(crate) use guard::{Aim, Guard, file_tool};
#[cfg(target_os = "linux")]
pub(crate) use placeholders::Placeholders;
#[cfg(target_os = "linux")]
pub use placeholders::clear as clear_placeholders;
pub(crate) use policy::{Access, Policy};

/// The word on the command line that turns the program into the launcher of a confined command.
pub const SANDBOX_ARG: &str = "__sandbox";

/// What is wanted of the sandbox. Paths are absolute; they need not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    /// What may be written.
    pub mode: SandboxMode,
    /// May commands use the network?
    pub network: bool,
    /// May commands talk over Unix sockets with programs outside? Some of these programs run whatever they are told.
    pub unix_sockets: bool,
    /// May `.git` be written? Its hooks and its configuration may not even then.
    pub git_writable: bool,
    /// What may be written besides the working directory.
    pub writable: Vec<PathBuf>,
    /// All that may be read besides the system's own directories; none: everything.
    pub readable: Option<Vec<PathBuf>>,
    /// What must not be read, wherever it lies.
    pub deny_read: Vec<PathBuf>,
    /// Settings, keys and sessions of the agent: closed but for what the model is meant to read.
    pub agent_dir: PathBuf,
    /// Other directories of the agent's own that are closed.
    pub closed: Vec<PathBuf>,
    /// Trusted projects: what they run at a later start is only read, if it lies where may be written.
    pub projects: Vec<PathBuf>,
    /// What runs outside at a later start, besides the usual places: files and directories that are only read.
    pub code: Vec<PathBuf>,
    /// Does it hold for the user's own commands, too?
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
            agent_dir: agent_dir.to_path_buf(),
            closed: Vec::new(),
            projects: Vec::new(),
            code: Vec::new(),
            user_commands: false,
            launcher: PathBuf::from("/proc/self/exe"),
        }
    }

    /// The same command, confined. `temp` becomes its directory for temporary files.
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
        env.push(("TMPDIR".into(), temp.into()));
        Ok(SpawnSpec {
            program: self.launcher.clone().into(),
            args,
            env,
            cwd: spec.cwd,
        })
    }
}
