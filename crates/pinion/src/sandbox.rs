//! The sandbox of tools, put together from arguments and settings. What it does is in the tools' crate.

use std::path::{Path, PathBuf};

use host::settings::Settings;
use tools::Sandbox;
use wire::state::SandboxState;

use crate::args::Args;
use crate::environment::Environment;

/// The sandbox that tools run in, if they run in one.
pub(crate) fn of(
    args: &Args,
    settings: &Settings,
    env: &Environment,
    session_dir: Option<&Path>,
) -> Option<Sandbox> {
    let said = &settings.sandbox;
    let mode = said.mode(args.sandbox);
    if mode.is_off() {
        return None;
    }
    let paths = |texts: &[String]| texts.iter().map(|text| env.path(text)).collect::<Vec<PathBuf>>();
    Some(Sandbox {
        network: (said.network || args.sandbox_network) && !said.project_has_no_network,
        unix_sockets: said.unix_sockets,
        git_writable: said.git_writable,
        writable: paths(&said.writable),
        readable: said.readable.as_deref().map(paths),
        deny_read: paths(&said.deny_read),
        // Sessions that lie among the user's own files are not worth closing these.
        closed: session_dir
            .filter(|dir| !env.cwd.starts_with(dir))
            .map(Path::to_path_buf)
            .into_iter()
            .collect(),
        user_commands: said.user_bash,
        ..Sandbox::new(mode, &env.agent_dir)
    })
}

/// What clients are told of it.
pub(crate) fn state(sandbox: &Sandbox) -> SandboxState {
    SandboxState {
        mode: sandbox.mode,
        network: sandbox.network,
    }
}
