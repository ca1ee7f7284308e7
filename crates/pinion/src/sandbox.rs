//! The sandbox of tools, put together from arguments and settings. What it does is in the tools' crate.

use std::path::{Path, PathBuf};

use config::resources::Kind;
use config::settings::Settings;
use config::trust::Trust;
use process::Sandbox;
use session::mcp::McpSetup;
use wire::state::{SandboxMode, SandboxState};

use crate::args::Args;
use crate::environment::{Environment, complain};
use crate::session_options;

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
    process::sandbox::clear_placeholders(&env.cwd);
    let said = &settings.sandbox;
    let mode = said.mode(args.sandbox.mode);
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
        network: (said.network || args.sandbox.network) && !said.project_has_no_network,
        unix_sockets: said.unix_sockets,
        git_writable: said.git_writable,
        writable,
        projects: decisions
            .filter(|stored| stored.trusted)
            .map(|stored| stored.path)
            .collect(),
        readable: said.readable.as_deref().map(paths),
        deny_read: paths(&said.deny_read),
        denied_programs: denied_programs(settings, env),
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

/// Directories of programs that scripts use even if `PATH` does not contain them.
const SYSTEM_PROGRAMS: [&str; 6] = [
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
];
/// Files that hold many programs, told apart by the name they are called with: to take one away would take all.
const MULTI_CALL: [&str; 5] = ["busybox", "coreutils", "systemctl", "toolbox", "toybox"];

/// Real paths of the programs that permission rules deny, wherever `PATH` or the system's directories have them. The shell of
/// the bash tool is never among them: every command needs it.
fn denied_programs(settings: &Settings, env: &Environment) -> Vec<PathBuf> {
    let bases = permissions::Bases {
        cwd: &env.cwd,
        home: env.home.as_deref(),
        real_path: process::real_path,
    };
    let names = permissions::denied_programs(&settings.permissions, bases);
    let path = env.get("PATH").unwrap_or_default();
    let dirs: Vec<PathBuf> = std::env::split_paths(path)
        .filter(|dir| dir.is_absolute())
        .chain(SYSTEM_PROGRAMS.iter().map(PathBuf::from))
        .collect();
    let shells = settings.shell.path.iter().map(|path| env.path(path));
    let shells: Vec<PathBuf> = shells
        .chain(dirs.iter().map(|dir| dir.join("bash")))
        .filter_map(|shell| shell.canonicalize().ok())
        .collect();
    let mut found = Vec::new();
    for name in &names {
        for dir in &dirs {
            // A path that is absolute takes the place of the directory.
            let Ok(file) = dir.join(name).canonicalize() else {
                continue;
            };
            let is_shared = file
                .file_name()
                .is_some_and(|file| file != name.as_str() && MULTI_CALL.iter().any(|known| file == *known));
            if file.is_file() && !is_shared && !shells.contains(&file) && !found.contains(&file) {
                found.push(file);
            }
        }
    }
    found
}

/// Returns paths of code outside the usual places that settings, the command line and MCP servers run. Programs and
/// files that a command line names count. Directories do not: a server works on these.
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
    for package in session_options::packages(args, settings, env).0 {
        found.extend(package.paths(Kind::Extensions));
        found.extend([package.root.join("package.json"), package.root]);
    }
    let file = |text: &str| Some(env.path(text)).filter(|path| path.is_file());
    for hook in &settings.hook_commands {
        found.push(hook.program.clone());
        found.extend(hook.args.iter().filter_map(|arg| file(arg)));
    }
    let (servers, _) = session::mcp::configured(mcp, settings, &env.agent_dir, &env.cwd);
    for (server, _) in servers {
        if let mcp::config::Reach::Stdio(program) = &server.reach {
            let words = std::iter::once(&program.command).chain(&program.args);
            found.extend(words.filter_map(|word| file(word)));
        }
    }
    let programs = [&settings.shell.path, &settings.extension_runtime];
    found.extend(programs.into_iter().flatten().filter_map(|path| file(path)));
    found
}

/// Describes the sandbox for `get_state`.
pub(crate) fn state(sandbox: &Sandbox) -> SandboxState {
    SandboxState {
        mode: sandbox.mode,
        network: sandbox.network,
    }
}
