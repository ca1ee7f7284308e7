//! Puts the agent together from arguments, environment and settings.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::bail;
use host::resources::{ExtraPath, ResourceOptions, Scope};
use host::settings::{ProjectAccess, Settings, SettingsSource};
use host::{Agent, Options};
use llm::registry::{Registry, Secret, Sources, StartRequest};
use llm::{Client, ClientConfig};
use tools::{FuzzyEdit, GuardianLaunch, Reaper, Toolbox, ToolsConfig};

use crate::args::Args;
use crate::environment::Environment;
use crate::{run_command, sessions, version};

/// The agent and what was odd while it was put together.
pub(crate) struct Setup {
    pub(crate) agent: Arc<Agent>,
    /// Is the session directory the default one, which holds this working directory's sessions alone?
    pub(crate) own_session_dir: bool,
    /// Lines for stderr.
    pub(crate) warnings: Vec<String>,
}

/// Puts the agent together. Reads settings and the two files of the registry; asks nobody and writes nothing.
pub(crate) fn build(args: &Args, env: &Environment) -> anyhow::Result<Setup> {
    let source = SettingsSource {
        agent_dir: &env.agent_dir,
        cwd: &env.cwd,
        home: env.home.as_deref(),
        approved: args.approve,
    };
    let (settings, notes) = Settings::load(&source);
    let mut warnings: Vec<String> = notes.iter().map(ToString::to_string).collect();
    let mut registry = Registry::new(Sources {
        agent_dir: env.agent_dir.clone(),
        env: env.lookup(),
        run: Arc::new(run_command::run),
    });
    warnings.extend(
        [registry.models_error(), registry.auth_error()]
            .into_iter()
            .flatten()
            .map(str::to_owned),
    );
    let start = start_request(args, &settings);
    if let Some(key) = &args.api_key {
        let chosen = llm::registry::start(&registry, &start)?;
        if args.model.is_none() && chosen.scope.is_empty() {
            bail!("--api-key needs a model: use --model, or --provider and --model");
        }
        registry.set_runtime_key(&chosen.model.provider, Secret::new(key));
    }
    let (session_dir, own_session_dir) = sessions::session_dir(args, env, settings.session_dir.as_deref());
    let reaper = Reaper::new(GuardianLaunch::default());
    let toolbox = Toolbox::new(tools_config(&registry, &settings, env), reaper.clone());
    let client = Client::new(ClientConfig {
        proxy: env.proxy(),
        script: args.script.as_deref().map(|script| env.path(script)),
        ..ClientConfig::default()
    });
    let options = Options {
        start,
        tools: active_tools(args, &settings),
        session_dir,
        resources: resource_options(args, &settings, env),
        cache_retention: env.cache_retention(),
    };
    let agent = Agent {
        version: version::OWN.to_owned(),
        agent_dir: env.agent_dir.clone(),
        cwd: env.cwd.clone(),
        settings,
        options,
        registry: Arc::new(registry),
        client,
        toolbox,
        reaper,
    };
    Ok(Setup {
        agent: Arc::new(agent),
        own_session_dir,
        warnings,
    })
}

fn start_request(args: &Args, settings: &Settings) -> StartRequest {
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
        ..StartRequest::default()
    }
}

fn tools_config(registry: &Registry, settings: &Settings, env: &Environment) -> ToolsConfig {
    ToolsConfig {
        tmp_dir: env.tmp_dir.clone(),
        home: env.home.clone(),
        shell_path: settings.shell_path.as_deref().map(|path| env.path(path)),
        shell_command_prefix: settings.shell_command_prefix.clone(),
        bin_dir: Some(env.agent_dir.join("bin")),
        env: env.for_tools(&registry.key_variables()),
        auto_resize_images: settings.images.auto_resize,
        fuzzy_edit: FuzzyEdit::KeepRest,
    }
}

/// Names of the tools the model may call (pi-core.md 5.8): `--tools` is an allow-list that also activates; otherwise the
/// defaults, changed by the setting `defaultTools`. Names nobody knows are ignored.
fn active_tools(args: &Args, settings: &Settings) -> Vec<String> {
    let infos = Toolbox::infos();
    let all = infos.iter().map(|info| info.spec.name.as_str());
    let wanted = |name: &str, by_default: bool| match (&args.tools, &settings.default_tools) {
        (Some(list), _) => list.iter().any(|item| item == name),
        (None, _) if args.no_tools || args.no_builtin_tools => false,
        (None, Some(list)) => chosen(list, name, by_default),
        (None, None) => by_default,
    };
    all.zip(infos)
        .filter(|(name, info)| wanted(name, info.active_by_default))
        .map(|(name, _)| name.to_owned())
        .filter(|name| !args.exclude_tools.contains(name))
        .collect()
}

/// `defaultTools`: a list of names, or changes to the defaults (`+name`, `-name`).
fn chosen(list: &[String], name: &str, by_default: bool) -> bool {
    let is_edit = list.iter().all(|item| item.starts_with(['+', '-']));
    let named = |sign: &str| list.iter().any(|item| item.strip_prefix(sign) == Some(name));
    if is_edit {
        (by_default || named("+")) && !named("-")
    } else {
        list.iter().any(|item| item == name) || named("+")
    }
}

fn resource_options(args: &Args, settings: &Settings, env: &Environment) -> ResourceOptions {
    let extra = |from_settings: &[ExtraPath], from_flags: &[String]| {
        let flags = from_flags.iter().map(|path| flag_path(env.path(path)));
        from_settings
            .iter()
            .cloned()
            .chain(flags)
            .collect::<Vec<ExtraPath>>()
    };
    ResourceOptions {
        project: settings.project != ProjectAccess::None,
        context_files: !args.no_context_files,
        skills: !args.no_skills,
        templates: !args.no_prompt_templates,
        skill_paths: extra(&settings.skills, &args.skills),
        template_paths: extra(&settings.prompts, &args.prompt_templates),
        system_prompt: args.system_prompt.clone(),
        append_system_prompt: args.append_system_prompt.clone(),
        ..ResourceOptions::new(&env.agent_dir, &env.cwd, env.home.as_deref())
    }
}

fn flag_path(path: PathBuf) -> ExtraPath {
    ExtraPath {
        path,
        scope: Scope::Temporary,
    }
}
