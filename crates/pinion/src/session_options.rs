//! What command line, settings and environment ask of a session: its model, its tools, its resources and extensions. Everything here
//! reads its arguments only; `setup` builds the agent from the answers.

use std::path::{Path, PathBuf};

use agent::todo;
use config::resources::{Package, PackageSpec, ResourceOptions, TemplateOptions};
use config::settings::Settings;
use config::trust::Texts;
use config::{Choice, Diagnostic, ExtraPath, Generation, Scope};
use files::Boundaries;
use models::StartRequest;
use session::{Options, PromptCaching, SessionHome, ToolFilter};
use tools::Toolbox;
use tools::pattern::fits;
use wire::Dialect;
use wire::state::PermissionMode;

use crate::args::{Args, Mode};
use crate::environment::Environment;
use crate::modes::dialect;
use crate::sessions;

/// What the command line asked for, and what the settings say where it says nothing.
pub(crate) fn options(args: &Args, env: &Environment, settings: &Settings) -> Options {
    let (session_dir, own) = sessions::session_dir(args, env, settings.session_dir.as_deref());
    Options {
        start: start_request(args, env, settings),
        tools: active_tools(args, settings),
        sessions: match (session_dir, own) {
            (None, _) => SessionHome::Memory,
            (Some(_), true) => SessionHome::ByDirectory,
            (Some(dir), false) => SessionHome::One(dir),
        },
        tool_filter: ToolFilter {
            named: named_tools(args, settings),
            excluded: excluded_tools(args),
            restored: restored_tools(args),
            only: Vec::from_iter(
                tools_flag(args)
                    .0
                    .map(<[_]>::to_vec)
                    .or_else(|| args.no_tools.then(Vec::new)),
            ),
        },
        resources: resource_options(args, settings, env),
        prompt_caching: PromptCaching {
            retention: env.cache_retention(),
            session_id: args.provider_session_id.clone().filter(|id| !id.is_empty()),
        },
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
    let paths = |paths: &[String]| paths.iter().map(|path| resource_path(path, env)).collect();
    let dialect = dialect::of(args, env).0;
    let given = args.extensions.iter();
    let own =
        given.filter(|text| !PackageSpec::is_installed(text) && !PI_EXTENSIONS.contains(&text.as_str()));
    Choice {
        paths: own.map(|path| resource_path(path, env)).collect(),
        hooks: paths(&args.hooks),
        tools: paths(&args.custom_tools),
        only_named: args.no_extensions,
        no_hooks: args.no_hooks,
        generation: match dialect {
            Dialect::Hooks => Generation::Hooks,
            Dialect::Omp | Dialect::OmpNow | Dialect::Xcsh => Generation::Omp,
            _ => Generation::Pi,
        },
        has_ui: !args.foreign.no_ui && !dialect.has_hooks(),
        is_subagent: false,
        flags: args.extension_flags.clone(),
    }
}

/// The extensions of pi itself, which `-e` and the setting `extensions` may name. Of these, Pinion has MCP.
const PI_EXTENSIONS: [&str; 4] = [
    MCP_EXTENSION,
    "builtin:llama.cpp",
    "builtin:codemode",
    "builtin:tool-search",
];
const MCP_EXTENSION: &str = "builtin:mcp";

/// Warnings about extensions of pi that `-e` names and Pinion does not have.
pub(crate) fn missing_pi_extensions(args: &Args) -> impl Iterator<Item = String> {
    let named = args.extensions.iter().map(String::as_str);
    named
        .filter(|name| PI_EXTENSIONS.contains(name) && *name != MCP_EXTENSION)
        .map(|name| format!("-e {name}: Pinion does not have this extension of pi"))
}

/// Returns true if no MCP server starts. `is_enabled` is what the settings say. `--no-extensions` of today's pi covers them.
pub(crate) fn leaves_out_mcp(args: &Args, is_enabled: bool, dialect: Dialect) -> bool {
    let is_named = args.extensions.iter().any(|text| text == MCP_EXTENSION);
    let by_flag = args.no_extensions && args.mcp_config.is_empty() && dialect.is_newest_pi();
    args.no_mcp || ((!is_enabled || by_flag) && !is_named)
}

/// What decides on the model of a new session.
pub(crate) fn start_request(args: &Args, env: &Environment, settings: &Settings) -> StartRequest {
    let models = if args.models.is_empty() {
        settings.enabled_models.clone().unwrap_or_default()
    } else {
        args.models.clone()
    };
    StartRequest {
        provider: args.provider.clone(),
        model: args.model.clone(),
        models,
        newest_patterns: dialect::of(args, env).0.is_newest_pi(),
        thinking: args.thinking,
        default_provider: settings.default_provider.clone(),
        default_model: settings.default_model.clone(),
        default_thinking: settings.default_thinking_level,
        model_thinking: settings.model_thinking_levels.clone(),
        ..StartRequest::default()
    }
}

/// What `--tools` says: the list, or changes to the tools of the settings (`+name` and `-name` alone; pi-1.5-delta.md 6).
pub(crate) fn tools_flag(args: &Args) -> (Option<&[String]>, &[String]) {
    match args.tools.as_deref() {
        Some(list) if !list.is_empty() && list.iter().all(|item| item.starts_with(['+', '-'])) => {
            (None, list)
        }
        list => (list, &[]),
    }
}

/// Changes to the tools of a stored session, unless the command line names the tools.
fn restored_tools(args: &Args) -> Option<Vec<String>> {
    let (named, changes) = tools_flag(args);
    let is_default = named.is_none() && !args.no_tools && !args.no_builtin_tools;
    is_default.then(|| changes.to_vec())
}

/// Patterns of tools that nothing activates: those of `--exclude-tools`, and what `--tools -name` takes away. Extensions, clients
/// and MCP servers bring tools that the list of active ones does not know, so they have to be kept out by name, too.
fn excluded_tools(args: &Args) -> Vec<String> {
    let removed = tools_flag(args)
        .1
        .iter()
        .filter_map(|item| item.strip_prefix('-'));
    let removed = removed.map(str::to_owned);
    args.exclude_tools.iter().cloned().chain(removed).collect()
}

/// Names of the tools the model may call (pi-core.md 5.8): `--tools` is an allow-list that also activates; otherwise the
/// defaults, changed by the setting `defaultTools`. Unknown names are ignored; `*` stands for any part of a name
/// (pi-1.5-delta.md 6).
pub(crate) fn active_tools(args: &Args, settings: &Settings) -> Vec<String> {
    let infos = Toolbox::infos();
    let all = infos.iter().map(|info| info.spec.name.as_str());
    let (named, changes) = tools_flag(args);
    let wanted = |name: &str, by_default: bool| match (named, &settings.tools.default) {
        (Some(list), _) => list.iter().any(|item| means(item, name)),
        (None, _) if args.no_tools || args.no_builtin_tools => false,
        (None, Some(list)) => chosen(list, name, by_default),
        (None, None) => by_default,
    };
    // Not `chosen` with both lists: a list without plain names changes what it finds, one with them replaces it.
    let changed = |name: &str, by_default: bool| match changes {
        [] => wanted(name, by_default),
        changes => chosen(changes, name, wanted(name, by_default)),
    };
    let optional = [
        (todo::TOOL, settings.todo.enabled),
        (fetch::TOOL, settings.tools.fetch),
        (agent::TASK_TOOL, settings.tools.subagents),
        (session::PROCESS_TOOL, settings.tools.processes),
    ];
    let active = all
        .zip(infos.iter().map(|info| info.active_by_default))
        .chain(optional)
        .filter(|(name, by_default)| changed(name, *by_default))
        .map(|(name, _)| name.to_owned())
        .filter(|name| !args.exclude_tools.iter().any(|item| fits(item, name)));
    let mut active = Vec::from_iter(active);
    // As the user named them: first the names, then what patterns match.
    let named = named.unwrap_or_default();
    active.sort_by_key(|name| {
        let place = named.iter().position(|item| item == name);
        place.unwrap_or(named.len())
    });
    active
}

/// Patterns of explicitly named tools: these activate hidden tools of a host (dialects.md 7).
fn named_tools(args: &Args, settings: &Settings) -> Vec<String> {
    let (named, changes) = tools_flag(args);
    let wanted = named.or(settings.tools.default.as_deref());
    let wanted = wanted.into_iter().flatten().chain(changes);
    let names = wanted.filter(|item| !item.starts_with('-'));
    names
        .map(|item| item.trim_start_matches('+').to_owned())
        .collect()
}

/// `defaultTools`: a list of names, or changes to the defaults (`+name`, `-name`). Changes count in their order, after the names; an
/// empty list has no tools (pi 1.5.2).
fn chosen(list: &[String], name: &str, by_default: bool) -> bool {
    let is_edit = !list.is_empty() && list.iter().all(|item| item.starts_with(['+', '-']));
    let mut is_on = if is_edit {
        by_default
    } else {
        list.iter().any(|item| means(item, name))
    };
    for item in list {
        match (item.strip_prefix('+'), item.strip_prefix('-')) {
            (Some(added), _) => is_on |= means(added, name),
            (_, Some(removed)) => is_on &= !fits(removed, name),
            _ => {}
        }
    }
    is_on
}

/// Tools that a user must name. Todos, sub-agents and background processes change how a model works; `fetch` reaches the network.
pub(crate) const OPTIONAL_TOOLS: [&str; 4] =
    [todo::TOOL, fetch::TOOL, agent::TASK_TOOL, session::PROCESS_TOOL];

/// The names of all tools of this program, active or not.
pub(crate) fn built_in_tools() -> impl Iterator<Item = &'static str> {
    let infos = Toolbox::infos().iter();
    infos.map(|info| info.spec.name.as_str()).chain(OPTIONAL_TOOLS)
}

/// The rules of the settings that forbid or ask, and name a tool that this program does not have: one of an extension, a client
/// or an MCP server, or none at all.
pub(crate) fn rules_for_other_tools(settings: &Settings) -> impl Iterator<Item = &str> {
    let layers = [&settings.permissions.user, &settings.permissions.project];
    let rules = layers
        .into_iter()
        .flat_map(|layer| layer.deny.iter().chain(&layer.ask));
    rules.map(String::as_str).filter(|rule| {
        let name = permissions::tool_of(rule);
        !built_in_tools().any(|tool| fits(&name, tool))
    })
}

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
        let flags = from_flags.iter().map(|path| flag_path(resource_path(path, env)));
        from_settings
            .iter()
            .cloned()
            .chain(flags)
            .collect::<Vec<ExtraPath>>()
    };
    let prompt = |text: &str| prompt_source(text, &env.started_in, &env.cwd);
    let dialect = dialect::of(args, env).0;
    ResourceOptions {
        changes: settings.changes.clone(),
        packages: packages(args, settings, env).0,
        project: Texts::from(dialect).count(settings.project),
        context_files: !args.no_context_files,
        skills: !args.no_skills,
        templates: TemplateOptions::new(!args.no_prompt_templates, dialect),
        rules: !args.foreign.no_rules,
        skill_paths: extra(&settings.skills, &args.skills),
        template_paths: extra(&settings.prompts, &args.prompt_templates),
        system_prompt: args.system_prompt.as_deref().map(prompt),
        append_system_prompt: args
            .append_system_prompt
            .iter()
            .map(|text| prompt(text))
            .collect(),
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

/// A file or directory of a flag, without `.` and `..`: clients see the path in `sourceInfo`.
fn resource_path(text: &str, env: &Environment) -> PathBuf {
    config::resolve_path(text, &env.started_in, env.home.as_deref())
}

/// A text or file of `--system-prompt` and `--append-system-prompt`. A file is relative to where the process was started, also in
/// sessions of other directories.
fn prompt_source(text: &str, started_in: &Path, cwd: &Path) -> String {
    let may_be_file = started_in != cwd && !text.is_empty() && !text.contains(['\n', '\0']);
    let file = may_be_file
        .then(|| started_in.join(text))
        .filter(|file| file.is_file());
    file.map_or_else(|| text.to_owned(), |file| file.display().to_string())
}

fn flag_path(path: PathBuf) -> ExtraPath {
    ExtraPath {
        path,
        scope: Scope::Temporary,
    }
}

#[cfg(test)]
mod tests {
    use wire::Dialect;

    use super::{chosen, excluded_tools, leaves_out_mcp, missing_pi_extensions, prompt_source, tools_flag};
    use crate::args::Args;

    #[test]
    fn mcp_is_left_out_by_setting_and_flags() {
        let off = |change: fn(&mut Args), is_enabled, dialect| {
            let mut args = Args::default();
            change(&mut args);
            leaves_out_mcp(&args, is_enabled, dialect)
        };
        let (old, new) = (Dialect::default(), Dialect::PiDelta);
        assert!(!off(|_| {}, true, new) && off(|_| {}, false, old));
        assert!(off(|args| args.no_mcp = true, true, old));
        assert!(off(|args| args.no_extensions = true, true, new));
        assert!(!off(|args| args.no_extensions = true, true, old));
        let named: fn(&mut Args) = |args| {
            args.no_extensions = true;
            args.extensions.push("builtin:mcp".to_owned());
        };
        assert!(!off(named, true, new) && !off(named, false, new));
    }

    #[test]
    fn extensions_of_pi_that_are_missing_are_named() {
        let mut args = Args::default();
        for name in ["builtin:mcp", "builtin:codemode", "own.ts"] {
            args.extensions.push(name.to_owned());
        }
        let warnings: Vec<String> = missing_pi_extensions(&args).collect();
        assert_eq!(
            warnings,
            ["-e builtin:codemode: Pinion does not have this extension of pi"]
        );
    }

    #[test]
    fn prompt_files_are_relative_to_start_directory() {
        let (start, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let file = start.path().join("notes.md");
        std::fs::write(&file, "x").unwrap();
        let source = |text: &str, cwd| prompt_source(text, start.path(), cwd);
        assert_eq!(source("notes.md", other.path()), file.display().to_string());
        assert_eq!(source("be brief", other.path()), "be brief");
        assert_eq!(source("two\nlines", other.path()), "two\nlines");
        assert_eq!(source("notes.md", start.path()), "notes.md");
    }

    #[test]
    fn removed_tools_are_excluded_by_name() {
        let excluded = |tools: &[&str]| {
            let args = Args {
                tools: Some(tools.iter().map(ToString::to_string).collect()),
                exclude_tools: vec!["write".to_owned()],
                ..Args::default()
            };
            (tools_flag(&args).0.is_some(), excluded_tools(&args).join(","))
        };
        assert_eq!(
            excluded(&["+grep", "-deploy"]),
            (false, "write,deploy".to_owned())
        );
        assert_eq!(excluded(&["read", "grep"]), (true, "write".to_owned()));
        assert_eq!(
            excluded(&[]),
            (true, "write".to_owned()),
            "an empty list allows none"
        );
    }

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
        assert_eq!(on(&[]), "", "an empty list has no tools");
        assert_eq!(on(&["-bash", "+bash", "+grep", "-grep"]), "read,bash");
        assert!(!chosen(&list(&["*"]), "todo_write", false) && !chosen(&list(&["+*"]), "todo_write", false));
        assert!(chosen(&list(&["+todo*"]), "todo_write", false));
        assert!(!chosen(&list(&["-*"]), "todo_write", true));
    }
}
