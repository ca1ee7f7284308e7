//! Puts the agent together from arguments, environment and settings.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use acp::ClientPort;
use anyhow::bail;
use auth::Secret;
use auth::login::Endpoints;
use config::Diagnostic;
use config::settings::{Settings, SettingsSource};
use config::trust::Trust;
use llm::tape::{Player, Recorder, Replaying, Tape};
use llm::{Client, ClientConfig};
use models::local::LocalSources;
use models::{Registry, RegistryError, RunCommand, Sources, StartRequest};
use process::{GuardianLaunch, Reaper};
use session::extensions::{ExtensionProcesses, Launch};
use session::mcp::McpSetup;
use session::{Agent, AgentByDirectory, AgentFactory, InputRecord, InputWriter, Options};
use tools::{FuzzyEdit, Toolbox, ToolsConfig};
use wire::Dialect;

use crate::args::{Args, Mode};
use crate::environment::{Environment, complain};
use crate::logs::Logs;
use crate::modes::dialect;
use crate::session_options::{
    boundaries, built_in_tools, leaves_out_mcp, missing_pi_extensions, options, packages, start_request,
};
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
    mcp_logins: mcp::Logins,
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
    warnings.extend(missing_pi_extensions(args));
    let local = local_sources(args, env, &settings);
    let mut registry = load_registry(args, env, Arc::new(run_command::run), local);
    warnings.extend(
        [
            registry.models_file().error(),
            registry.auth().error(),
            registry.catalogue_error(),
        ]
        .into_iter()
        .flatten()
        .map(str::to_owned),
    );
    let logs = Logs::start(args, env, registry.secrets())?;
    let tape = tape(args, env, &mut registry)?;
    use_api_key(args, &start_request(args, env, &settings), &mut registry)?;
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
        mcp_logins: session::mcp::logins(&env.agent_dir),
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
        let mcp = McpSetup {
            logins: shared.mcp_logins.clone(),
            ..mcp_setup(args, env, &settings, &shared.registry)
        };
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

/// Returns the parts of the MCP setup that command line, environment and settings decide.
pub(crate) fn mcp_setup(
    args: &Args,
    env: &Environment,
    settings: &Settings,
    registry: &Registry,
) -> McpSetup {
    let lookup = env.lookup();
    McpSetup {
        off: leaves_out_mcp(args, settings.tools.mcp, dialect::of(args, env).0),
        files: args.mcp_config.iter().map(|path| env.path(path)).collect(),
        is_omp: dialect::of(args, env).0.is_newest_omp(),
        expand: mcp::Expander {
            lookup: Arc::new(move |name: &str| lookup(name)),
            run: Arc::new(run_command::run),
            home: env.home.clone(),
        },
        env: env.for_tools(&hidden_variables(registry, settings)),
        tmp_dir: env.tmp_dir.clone(),
        boundaries: boundaries(args, settings, env),
        logins: session::mcp::logins(&env.agent_dir),
    }
}

/// Variables with keys, which children do not get unless the user wants it.
pub(crate) fn hidden_variables(registry: &Registry, settings: &Settings) -> Vec<String> {
    if settings.shell.keeps_keys {
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
    let tools: Vec<&str> = built_in_tools().collect();
    let (mut settings, notes) = Settings::load(&SettingsSource {
        agent_dir: &env.agent_dir,
        cwd: &env.cwd,
        home: env.home.as_deref(),
        trust,
        tools: &tools,
        is_omp: dialect::of(args, env).0.is_newest_omp(),
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
pub(crate) fn load_registry(
    args: &Args,
    env: &Environment,
    run: RunCommand,
    local: LocalSources,
) -> Registry {
    let mut registry = Registry::new(Sources {
        agent_dir: env.agent_dir.clone(),
        env: env.lookup(),
        run,
        local,
        is_omp: dialect::of(args, env).0.is_newest_omp(),
    });
    if dialect::of(args, env).0.is_newest_pi() {
        registry.use_newest_order();
    }
    registry
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
        endpoints: endpoints(env),
        ..ClientConfig::default()
    }
}

/// Where logins happen. The variables are those of pi.
pub(crate) fn endpoints(env: &Environment) -> Endpoints {
    let mut endpoints = Endpoints::default();
    if let Some(host) = env.get("PI_OAUTH_CALLBACK_HOST") {
        host.clone_into(&mut endpoints.callback_host);
    }
    let kimi = env
        .get("KIMI_CODE_OAUTH_HOST")
        .or_else(|| env.get("KIMI_OAUTH_HOST"));
    if let Some(address) = kimi {
        address.clone_into(&mut endpoints.kimi);
    }
    endpoints
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

fn tools_config(registry: &Registry, settings: &Settings, env: &Environment) -> ToolsConfig {
    let hidden = hidden_variables(registry, settings);
    ToolsConfig {
        tmp_dir: env.tmp_dir.clone(),
        home: env.home.clone(),
        shell_path: settings.shell.path.as_deref().map(|path| env.path(path)),
        shell_command_prefix: settings.shell.command_prefix.clone(),
        bash_timeout: settings.shell.timeout_ms.map(Duration::from_millis),
        bin_dir: Some(env.agent_dir.join("bin")),
        env: env.for_commands(&hidden),
        auto_resize_images: settings.images.auto_resize,
        fuzzy_edit: FuzzyEdit::KeepRest,
        sandbox: None,
        client: None,
        dialect: Dialect::default(),
    }
}
