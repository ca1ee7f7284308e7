//! The sandbox of tools, put together from arguments and settings. What it does is in the tools' crate.

use std::path::{Path, PathBuf};

use config::resources::Kind;
use config::settings::Settings;
use config::trust::Trust;
use host::mcp::McpSetup;
use tools::Sandbox;
use wire::state::{SandboxMode, SandboxState};

use crate::args::Args;
use crate::environment::{Environment, complain};
use crate::setup;

/// The sandbox that tools run in, if they run in one.
pub(crate) fn of(
    args: &Args,
    settings: &Settings,
    env: &Environment,
    session_dir: Option<&Path>,
    mcp: &McpSetup,
    trust: &Trust,
) -> Option<Sandbox> {
    #[cfg(target_os = "linux")]
    tools::sandbox::clear_placeholders(&env.cwd);
    let said = &settings.sandbox;
    let mode = said.mode(args.sandbox);
    if mode.is_off() {
        return None;
    }
    let paths = |texts: &[String]| texts.iter().map(|text| env.path(text)).collect::<Vec<PathBuf>>();
    let writable = paths(&said.writable);
    if mode == SandboxMode::WorkspaceWrite {
        let dirs = std::iter::once(&env.cwd).chain(&writable);
        if let Err(error) = trust.note_sandboxed(dirs.map(PathBuf::as_path)) {
            complain(&format!(
                "Warning: the directories of the sandbox could not be stored: {error}"
            ));
        }
    }
    let decisions = trust.file().all().unwrap_or_default().into_iter();
    Some(Sandbox {
        network: (said.network || args.sandbox_network) && !said.project_has_no_network,
        unix_sockets: said.unix_sockets,
        git_writable: said.git_writable,
        writable,
        projects: decisions
            .filter(|stored| stored.trusted)
            .map(|stored| stored.path)
            .collect(),
        readable: said.readable.as_deref().map(paths),
        deny_read: paths(&said.deny_read),
        // Sessions that lie among the user's own files are not worth closing these.
        closed: session_dir
            .filter(|dir| !env.cwd.starts_with(dir))
            .map(Path::to_path_buf)
            .into_iter()
            .collect(),
        code: code(args, settings, env, mcp),
        user_commands: said.user_bash,
        ..Sandbox::new(mode, &env.agent_dir)
    })
}

/// What settings, the command line and MCP servers run, besides what lies in the usual places. Programs and files that a command
/// line names count, directories do not: these are what a server works on.
fn code(args: &Args, settings: &Settings, env: &Environment, mcp: &McpSetup) -> Vec<PathBuf> {
    let lists = [&settings.extensions, &settings.hooks, &settings.custom_tools];
    let mut found: Vec<PathBuf> = lists
        .into_iter()
        .flatten()
        .map(|extra| extra.path.clone())
        .collect();
    let flags = [
        &args.extensions,
        &args.hooks,
        &args.custom_tools,
        &args.mcp_config,
    ];
    found.extend(flags.into_iter().flatten().map(|path| env.path(path)));
    for package in setup::packages(args, settings, env).0 {
        found.extend(package.paths(Kind::Extensions));
        found.extend([package.root.join("package.json"), package.root]);
    }
    let file = |text: &str| Some(env.path(text)).filter(|path| path.is_file());
    for hook in &settings.hook_commands {
        found.push(hook.program.clone());
        found.extend(hook.args.iter().filter_map(|arg| file(arg)));
    }
    let (servers, _) = host::mcp::configured(mcp, settings, &env.agent_dir, &env.cwd);
    for (server, _) in servers {
        if let mcp::config::Reach::Stdio(program) = &server.reach {
            let words = std::iter::once(&program.command).chain(&program.args);
            found.extend(words.filter_map(|word| file(word)));
        }
    }
    let programs = [&settings.shell_path, &settings.extension_runtime];
    found.extend(programs.into_iter().flatten().filter_map(|path| file(path)));
    found
}

/// What clients are told of it.
pub(crate) fn state(sandbox: &Sandbox) -> SandboxState {
    SandboxState {
        mode: sandbox.mode,
        network: sandbox.network,
    }
}
