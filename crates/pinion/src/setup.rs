//! Puts the agent together from arguments, environment and settings.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use acp::ClientPort;
use agent::todo;
use anyhow::bail;
use auth::Secret;
use config::resources::{Package, PackageSpec, ResourceOptions};
use config::settings::{Settings, SettingsSource};
use config::trust::{ProjectAccess, Trust};
use config::{Choice, Diagnostic, ExtraPath, Generation, Scope};
use files::Boundaries;
use llm::tape::{Player, Recorder, Replaying, Tape};
use llm::{Client, ClientConfig};
use models::local::LocalSources;
use models::{Registry, RegistryError, RunCommand, Sources, StartRequest};
use process::{GuardianLaunch, Reaper};
use session::extensions::{ExtensionProcesses, Launch};
use session::mcp::McpSetup;
use session::{
    Agent, AgentByDirectory, AgentFactory, InputRecord, InputWriter, Options, SessionHome, ToolFilter,
};
use tools::pattern::fits;
use tools::{FuzzyEdit, Toolbox, ToolsConfig};

use wire::Dialect;
use wire::state::PermissionMode;

use crate::args::{Args, Mode};
use crate::environment::{Environment, complain};
use crate::logs::Logs;
use crate::modes::dialect;
use crate::{input_record, run_command, sandbox, sessions, version};

/// The agent, and warnings about its configuration.
pub(crate) struct Setup {
    pub(crate) agent: Arc<Agent>,
    /// Requests of tools to the client of `--mode acp`.
    pub(crate) client: Option<ClientPort>,
    /// True if the session directory is the default one, which holds only sessions of this working directory.
    pub(crate) own_session_dir: bool,
    /// Lines for stderr.
    pub(crate) warnings: Vec<String>,
    /// Ends with everything else.
    _logs: Logs,
    /// Writes the last inputs when everything ends.
    _inputs: Option<InputWriter>,
}

/// What the agents of all working directories share.
#[derive(Clone)]
struct Shared {
    home: PathBuf,
    registry: Arc<Registry>,
    client: Client,
    reaper: Reaper,
    extensions: Arc<ExtensionProcesses>,
    trust: Arc<Trust>,
    inputs: Option<InputRecord>,
    editor: Option<ClientPort>,
}

/// What every agent of this process is made from.
struct Workshop {
    args: Args,
    env: Environment,
    shared: Shared,
}

impl AgentFactory for Workshop {
    fn make(&self, cwd: &Path, guards: &[String]) -> Agent {
        let workshop = Self {
            args: self.args.clone(),
            env: self.env.in_directory(cwd),
            shared: self.shared.clone(),
        };
        let (mut settings, _notes) = load_settings(&workshop.args, &workshop.env, &workshop.shared.trust);
        if !guards.is_empty() {
            settings.faults.extend_from_slice(guards);
            settings.lock_down();
        }
        workshop.agent(settings)
    }
}

/// Builds the agent. Reads settings and the two files of the registry; sends no request and writes nothing.
pub(crate) fn build(args: &Args, env: &Environment) -> anyhow::Result<Setup> {
    let trust = Arc::new(Trust::new(&env.agent_dir, args.approve));
    let (settings, notes) = load_settings(args, env, &trust);
    refuse_faults(args, &settings)?;
    let (_, missing) = packages(args, &settings, env);
    let mut warnings: Vec<String> = notes.iter().chain(&missing).map(ToString::to_string).collect();
    let local = local_sources(args, env, &settings);
    let mut registry = load_registry(env, Arc::new(run_command::run), local);
    warnings.extend(
        [
            registry.models_error(),
            registry.auth_error(),
            registry.catalogue_error(),
        ]
        .into_iter()
        .flatten()
        .map(str::to_owned),
    );
    let logs = Logs::start(args, env, registry.secrets())?;
    let tape = tape(args, env, &mut registry)?;
    use_api_key(args, &start_request(args, &settings), &mut registry)?;
    let secrets = registry.secrets().clone();
    let (inputs, writer) = input_record::start(args, env, &secrets)?.unzip();
    let config = ClientConfig {
        auth_file: Some(env.auth_file()),
        tape,
        secrets: secrets.clone(),
        ..client_config(args, env, &settings)
    };
    let proxy = &config.proxy;
    for address in [&proxy.http, &proxy.https, &proxy.all].into_iter().flatten() {
        secrets.learn_url(address);
    }
    let reaper = Reaper::new(GuardianLaunch::default());
    let shared = Shared {
        home: env.cwd.clone(),
        client: Client::new(config),
        registry: Arc::new(registry),
        extensions: Arc::new(ExtensionProcesses::new(
            extension_launch(&settings, env),
            reaper.clone(),
        )),
        reaper,
        trust,
        inputs,
        editor: (args.mode == Some(Mode::Acp)).then(ClientPort::default),
    };
    let (_, own_session_dir) = sessions::session_dir(args, env, settings.session_dir.as_deref());
    let workshop = Workshop {
        args: args.clone(),
        env: env.clone(),
        shared,
    };
    Ok(Setup {
        client: workshop.shared.editor.clone(),
        agent: Arc::new(workshop.agent(settings)),
        own_session_dir,
        warnings: warnings.into_iter().map(|text| secrets.redact(text)).collect(),
        _logs: logs,
        _inputs: writer,
    })
}

/// Stops the start if settings that protect the user are unusable. With a client, the start goes on instead:
/// `get_state` reports the faults, and the agent is locked down.
fn refuse_faults(args: &Args, settings: &Settings) -> anyhow::Result<()> {
    if settings.faults.is_empty() {
        return Ok(());
    }
    let faults = settings.faults.join("\n");
    if args.mode.is_some_and(Mode::serves_clients) && args.list_models.is_none() {
        complain(&format!(
            "Settings or options cannot be used:\n{faults}\nUntil they are corrected, tool calls are asked about and tools run in \
             a read-only sandbox."
        ));
        return Ok(());
    }
    bail!("Settings or options cannot be used:\n{faults}\nCorrect them, then check with: pinion doctor")
}

/// The recording that is made or played. Who plays one needs no keys.
fn tape(args: &Args, env: &Environment, registry: &mut Registry) -> anyhow::Result<Tape> {
    match (&args.record, &args.replay) {
        (Some(_), Some(_)) => bail!("--record and --replay exclude each other"),
        (Some(path), None) => {
            let program = format!("pinion {}", version::OWN);
            let secrets = registry.secrets().clone();
            Ok(Tape::Record(Recorder::open(&env.path(path), &program, secrets)?))
        }
        (None, Some(path)) => {
            let how = Replaying {
                speed: args.replay_speed,
                strict: args.replay_strict,
            };
            let player = Player::open(&env.path(path), how)?;
            registry.set_replayed(player.providers());
            Ok(Tape::Replay(player))
        }
        (None, None) if args.replay_speed.is_some() || args.replay_strict => {
            bail!("--replay-speed and --replay-strict need --replay FILE")
        }
        (None, None) => Ok(Tape::None),
    }
}

impl Setup {
    /// Agents for sessions of other working directories: with their directory's own settings and resources, and the models,
    /// keys and processes of this one. No path means this one.
    pub(crate) fn agent_for(&self) -> AgentByDirectory {
        let home = Arc::clone(&self.agent);
        Box::new(move |dir| {
            let dir = if dir.as_os_str().is_empty() {
                &home.cwd
            } else {
                dir
            };
            Ok(home.fitting(dir))
        })
    }
}

impl Workshop {
    fn agent(self, settings: Settings) -> Agent {
        let Self { args, env, shared } = &self;
        let (session_dir, _) = sessions::session_dir(args, env, settings.session_dir.as_deref());
        let mcp = mcp_setup(args, env, &settings, &shared.registry);
        let sandbox = sandbox::of(args, &settings, env, session_dir.as_deref(), &mcp, &shared.trust);
        let options = Options {
            sandbox: sandbox.as_ref().map(sandbox::state),
            ..options(args, env, &settings)
        };
        let config = ToolsConfig {
            sandbox,
            client: shared.editor.clone().map(|port| Arc::new(port) as _),
            dialect: options.dialect,
            ..tools_config(&shared.registry, &settings, env)
        };
        let toolbox = Toolbox::new(config, shared.reaper.clone());
        let shared = shared.clone();
        Agent {
            mcp,
            version: version::OWN.to_owned(),
            agent_dir: env.agent_dir.clone(),
            cwd: env.cwd.clone(),
            home: shared.home,
            settings,
            options,
            registry: shared.registry,
            client: shared.client,
            toolbox,
            reaper: shared.reaper,
            extensions: shared.extensions,
            trust: shared.trust,
            inputs: shared.inputs,
            lender: None,
            maker: Arc::new(self),
        }
    }
}

/// What the command line asked for, and what the settings say where it says nothing.
fn options(args: &Args, env: &Environment, settings: &Settings) -> Options {
    let (session_dir, own) = sessions::session_dir(args, env, settings.session_dir.as_deref());
    Options {
        start: start_request(args, settings),
        tools: active_tools(args, settings),
        sessions: match (session_dir, own) {
            (None, _) => SessionHome::Memory,
            (Some(_), true) => SessionHome::ByDirectory,
            (Some(dir), false) => SessionHome::One(dir),
        },
        tool_filter: ToolFilter {
            named: named_tools(args, settings),
            excluded: args.exclude_tools.clone(),
            only: args.tools.clone().or_else(|| args.no_tools.then(Vec::new)),
        },
        resources: resource_options(args, settings, env),
        cache_retention: env.cache_retention(),
        // A locked-down agent is not loosened by the command line.
        permission_mode: args
            .permission_mode
            .filter(|mode| settings.faults.is_empty() || *mode == PermissionMode::ReadOnly),
        is_attended: args.mode.is_some_and(Mode::serves_clients),
        sandbox: None,
        durability: args.storage.durability,
        limits: args.run.limits,
        dialect: dialect::of(args, env).0,
        offline: args.offline || env.is_offline(),
        checkpoints: args.storage.checkpoints,
        extensions: extension_choice(args, env),
    }
}

/// What the command line says about extensions.
pub(crate) fn extension_choice(args: &Args, env: &Environment) -> Choice {
    let paths = |paths: &[String]| paths.iter().map(|path| env.path(path)).collect();
    let dialect = dialect::of(args, env).0;
    let given = args.extensions.iter();
    let own = given.filter(|text| !PackageSpec::is_installed(text));
    Choice {
        paths: own.map(|path| env.path(path)).collect(),
        hooks: paths(&args.hooks),
        tools: paths(&args.custom_tools),
        only_named: args.no_extensions,
        no_hooks: args.no_hooks,
        generation: match dialect {
            Dialect::Hooks => Generation::Hooks,
            Dialect::Omp | Dialect::OmpNow | Dialect::Xcsh => Generation::Omp,
            _ => Generation::Pi,
        },
        has_ui: !matches!(dialect, Dialect::Hooks | Dialect::Omp),
        flags: args.extension_flags.clone(),
    }
}

/// Returns the parts of the MCP setup that command line, environment and settings decide.
pub(crate) fn mcp_setup(
    args: &Args,
    env: &Environment,
    settings: &Settings,
    registry: &Registry,
) -> McpSetup {
    let lookup = env.lookup();
    McpSetup {
        off: args.no_mcp,
        files: args.mcp_config.iter().map(|path| env.path(path)).collect(),
        expand: mcp::Expander {
            lookup: Arc::new(move |name: &str| lookup(name)),
            run: Arc::new(run_command::run),
            home: env.home.clone(),
        },
        env: env.for_tools(&hidden_variables(registry, settings)),
        tmp_dir: env.tmp_dir.clone(),
        boundaries: boundaries(args, settings, env),
    }
}

/// Variables with keys, which children do not get unless the user wants it.
pub(crate) fn hidden_variables(registry: &Registry, settings: &Settings) -> Vec<String> {
    if settings.keep_keys_in_tool_env {
        Vec::new()
    } else {
        registry.key_variables()
    }
}

/// How the process of extensions is started, should there be any.
fn extension_launch(settings: &Settings, env: &Environment) -> Launch {
    let program = std::env::current_exe().ok();
    let number = |name: &str| env.get(name).and_then(|number| number.parse::<u64>().ok());
    Launch {
        env: env.for_tools(&[]),
        path: env.get("PATH").unwrap_or_default().into(),
        runtime: settings.extension_runtime.as_deref().map(|path| env.path(path)),
        main: env.get("PINION_EXTENSION_HOST").map(|path| env.path(path)),
        program: program.map(|path| path.to_string_lossy().into_owned()),
        agent_dir: env.agent_dir.clone(),
        cwd: env.cwd.clone(),
        version: version::OWN.to_owned(),
        memory: number("PINION_EXTENSION_MEMORY").map(|megabytes| megabytes << 20),
        silence: number("PINION_EXTENSION_SILENCE").map(Duration::from_secs),
        print: Arc::new(complain),
    }
}

/// Loads the settings of this directory, and describes errors in them.
pub(crate) fn load_settings(args: &Args, env: &Environment, trust: &Trust) -> (Settings, Vec<Diagnostic>) {
    let (mut settings, notes) = Settings::load(&SettingsSource {
        agent_dir: &env.agent_dir,
        cwd: &env.cwd,
        home: env.home.as_deref(),
        trust,
    });
    let (_, missing) = packages(args, &settings, env);
    let named = missing.iter().filter(|note| note.fault.is_some());
    settings.faults.extend(named.map(ToString::to_string));
    if !settings.faults.is_empty() {
        settings.lock_down();
    }
    // A client of xcsh needs todos, so its dialect overrides the user's files (dialects.md 10.5).
    if args.mode == Some(Mode::Rpc) && dialect::of(args, env).0 == Dialect::Xcsh {
        settings.todo.reset_as_xcsh();
    }
    (settings, notes)
}

/// Models and keys. `run` carries out `!command` values when a key is asked for.
pub(crate) fn load_registry(env: &Environment, run: RunCommand, local: LocalSources) -> Registry {
    Registry::new(Sources {
        agent_dir: env.agent_dir.clone(),
        env: env.lookup(),
        run,
        local,
    })
}

/// Where models on the user's own machines are looked for.
pub(crate) fn local_sources(args: &Args, env: &Environment, settings: &Settings) -> LocalSources {
    let servers = &settings.local_servers;
    LocalSources {
        only_named: !servers.enabled || args.offline || env.is_offline(),
        servers: servers.servers.clone().into_iter().collect(),
        // A replay must not contact servers.
        probe: (args.replay.is_none()).then(|| models::local::prober(client_config(args, env, settings))),
    }
}

/// How models and lists of models are reached.
pub(crate) fn client_config(args: &Args, env: &Environment, settings: &Settings) -> ClientConfig {
    ClientConfig {
        proxy: env.proxy(settings.http_proxy.as_deref()),
        script: args.script.as_deref().map(|script| env.path(script)),
        ..ClientConfig::default()
    }
}

/// Gives the key of `--api-key` to the provider of the chosen model.
pub(crate) fn use_api_key(args: &Args, start: &StartRequest, registry: &mut Registry) -> anyhow::Result<()> {
    let Some(key) = &args.api_key else {
        return Ok(());
    };
    // A local server may want the key before it says what it has.
    if let Some(provider) = args.provider.as_deref().filter(|id| registry.is_local(id)) {
        registry.set_runtime_key(provider, Secret::new(key));
    }
    let chosen = match models::start(registry, start) {
        // An extension may bring it.
        Err(RegistryError::UnknownProvider(_) | RegistryError::ModelNotFound { .. }) => {
            let model = args.model.as_deref().unwrap_or_default();
            let named = model.split_once('/').map(|(provider, _)| provider);
            if let Some(provider) = args.provider.as_deref().or(named) {
                registry.set_runtime_key(provider, Secret::new(key));
            }
            return Ok(());
        }
        chosen => chosen?,
    };
    if args.model.is_none() && args.provider.is_none() && chosen.scope.is_empty() {
        bail!("--api-key needs a model: use --model, or --provider and --model");
    }
    registry.set_runtime_key(&chosen.model.provider, Secret::new(key));
    Ok(())
}

/// What decides on the model of a new session.
pub(crate) fn start_request(args: &Args, settings: &Settings) -> StartRequest {
    let models = if args.models.is_empty() {
        settings.enabled_models.clone().unwrap_or_default()
    } else {
        args.models.clone()
    };
    StartRequest {
        provider: args.provider.clone(),
        model: args.model.clone(),
        models,
        thinking: args.thinking,
        default_provider: settings.default_provider.clone(),
        default_model: settings.default_model.clone(),
        default_thinking: settings.default_thinking_level,
        model_thinking: settings.model_thinking_levels.clone(),
        ..StartRequest::default()
    }
}

fn tools_config(registry: &Registry, settings: &Settings, env: &Environment) -> ToolsConfig {
    let hidden = hidden_variables(registry, settings);
    ToolsConfig {
        tmp_dir: env.tmp_dir.clone(),
        home: env.home.clone(),
        shell_path: settings.shell.path.as_deref().map(|path| env.path(path)),
        shell_command_prefix: settings.shell.command_prefix.clone(),
        bash_timeout: settings.shell.timeout_ms.map(Duration::from_millis),
        bin_dir: Some(env.agent_dir.join("bin")),
        env: env.for_tools(&hidden),
        auto_resize_images: settings.images.auto_resize,
        fuzzy_edit: FuzzyEdit::KeepRest,
        sandbox: None,
        client: None,
        dialect: Dialect::default(),
    }
}

/// Names of the tools the model may call (pi-core.md 5.8): `--tools` is an allow-list that also activates; otherwise the
/// defaults, changed by the setting `defaultTools`. Unknown names are ignored; `*` stands for any part of a name
/// (pi-1.5-delta.md 6).
pub(crate) fn active_tools(args: &Args, settings: &Settings) -> Vec<String> {
    let infos = Toolbox::infos();
    let all = infos.iter().map(|info| info.spec.name.as_str());
    let wanted = |name: &str, by_default: bool| match (&args.tools, &settings.tools.default) {
        (Some(list), _) => list.iter().any(|item| means(item, name)),
        (None, _) if args.no_tools || args.no_builtin_tools => false,
        (None, Some(list)) => chosen(list, name, by_default),
        (None, None) => by_default,
    };
    let optional = [
        (todo::TOOL, settings.todo.enabled),
        (fetch::TOOL, settings.tools.fetch),
        (agent::TASK_TOOL, settings.tools.subagents),
        (session::PROCESS_TOOL, settings.tools.processes),
    ];
    all.zip(infos.iter().map(|info| info.active_by_default))
        .chain(optional)
        .filter(|(name, by_default)| wanted(name, *by_default))
        .map(|(name, _)| name.to_owned())
        .filter(|name| !args.exclude_tools.iter().any(|item| fits(item, name)))
        .collect()
}

/// Patterns of explicitly named tools: these activate hidden tools of a host (dialects.md 7).
fn named_tools(args: &Args, settings: &Settings) -> Vec<String> {
    let wanted = args.tools.as_ref().or(settings.tools.default.as_ref());
    let names = wanted.into_iter().flatten().filter(|item| !item.starts_with('-'));
    names
        .map(|item| item.trim_start_matches('+').to_owned())
        .collect()
}

/// `defaultTools`: a list of names, or changes to the defaults (`+name`, `-name`).
fn chosen(list: &[String], name: &str, by_default: bool) -> bool {
    let is_edit = list.iter().all(|item| item.starts_with(['+', '-']));
    let signed = |sign: &'static str| list.iter().filter_map(move |item| item.strip_prefix(sign));
    let added = signed("+").any(|item| means(item, name));
    let removed = signed("-").any(|item| fits(item, name));
    if is_edit {
        (by_default || added) && !removed
    } else {
        (list.iter().any(|item| means(item, name)) || added) && !removed
    }
}

/// Tools that a user must name. Todos, sub-agents and background processes change how a model works; `fetch` reaches the network.
pub(crate) const OPTIONAL_TOOLS: [&str; 4] =
    [todo::TOOL, fetch::TOOL, agent::TASK_TOOL, session::PROCESS_TOOL];

/// Returns true if a pattern that activates tools matches this name. A pattern for all tools does not match optional tools.
fn means(pattern: &str, name: &str) -> bool {
    fits(pattern, name) && !(OPTIONAL_TOOLS.contains(&name) && pattern.starts_with('*'))
}

/// What separates a project from the user's own files. What tools may not read in the sandbox, no link of the project brings to
/// the model.
pub(crate) fn boundaries(args: &Args, settings: &Settings, env: &Environment) -> Boundaries {
    let denied = settings.sandbox.deny_read.iter().map(|path| env.path(path));
    let (sessions, _) = sessions::session_dir(args, env, settings.session_dir.as_deref());
    Boundaries::new(&env.agent_dir, env.home.as_deref()).deny(denied.chain(sessions))
}

/// What the system prompt is made of.
pub(crate) fn resource_options(args: &Args, settings: &Settings, env: &Environment) -> ResourceOptions {
    let extra = |from_settings: &[ExtraPath], from_flags: &[String]| {
        let flags = from_flags.iter().map(|path| flag_path(env.path(path)));
        from_settings
            .iter()
            .cloned()
            .chain(flags)
            .collect::<Vec<ExtraPath>>()
    };
    ResourceOptions {
        changes: settings.changes.clone(),
        packages: packages(args, settings, env).0,
        project: settings.project != ProjectAccess::None,
        context_files: !args.no_context_files,
        skills: !args.no_skills,
        templates: !args.no_prompt_templates,
        rules: !args.no_rules,
        skill_paths: extra(&settings.skills, &args.skills),
        template_paths: extra(&settings.prompts, &args.prompt_templates),
        system_prompt: args.system_prompt.clone(),
        append_system_prompt: args.append_system_prompt.clone(),
        boundaries: boundaries(args, settings, env),
        ..ResourceOptions::new(&env.agent_dir, &env.cwd, env.home.as_deref())
    }
}

/// Returns the installed packages, those of the command line first, and describes errors of the others. An error of a package
/// that the command line names is a fault.
pub(crate) fn packages(
    args: &Args,
    settings: &Settings,
    env: &Environment,
) -> (Vec<Package>, Vec<Diagnostic>) {
    let flags = args.extensions.iter();
    let flags = flags.filter_map(|text| {
        let path = env.path(text);
        let spec = PackageSpec::of_flag(text, &path)?;
        Some(PackageSpec {
            // Relative to where the process was started.
            base: env.started_in.clone(),
            ..spec
        })
    });
    let flags = flags.map(|spec| (spec, true));
    let specs = flags.chain(settings.packages.iter().cloned().map(|spec| (spec, false)));
    let (mut packages, mut notes) = (Vec::new(), Vec::new());
    for (spec, is_named) in specs {
        match spec.find(&env.agent_dir, &env.cwd, env.home.as_deref()) {
            Ok(package) => packages.push(package),
            Err(problem) if is_named => notes.push(Diagnostic::fault(&problem.path, "", problem.message)),
            Err(problem) => notes.push(problem),
        }
    }
    (packages, notes)
}

fn flag_path(path: PathBuf) -> ExtraPath {
    ExtraPath {
        path,
        scope: Scope::Temporary,
    }
}

#[cfg(test)]
mod tests {
    use super::chosen;

    #[test]
    fn default_tools_are_a_list_or_changes() {
        let list = |items: &[&str]| items.iter().map(ToString::to_string).collect::<Vec<_>>();
        let on = |items: &[&str]| {
            let tools = [("read", true), ("bash", true), ("grep", false)];
            let on = tools
                .into_iter()
                .filter(|(name, default)| chosen(&list(items), name, *default));
            on.map(|(name, _)| name).collect::<Vec<_>>().join(",")
        };
        assert_eq!(on(&["read", "grep"]), "read,grep");
        assert_eq!(on(&["+grep"]), "read,bash,grep");
        assert_eq!(on(&["-bash", "+gr*"]), "read,grep");
        assert_eq!(on(&["-*"]), "");
        assert_eq!(on(&["*", "-bash"]), "read,grep");
        assert!(!chosen(&list(&["*"]), "todo_write", false) && !chosen(&list(&["+*"]), "todo_write", false));
        assert!(chosen(&list(&["+todo*"]), "todo_write", false));
        assert!(!chosen(&list(&["-*"]), "todo_write", true));
    }
}
