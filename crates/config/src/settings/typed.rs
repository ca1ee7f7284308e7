//! Builds the typed view out of the layers: one line per key. Types and defaults live in `types`.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value};
use wire::ThinkingLevel;
use wire::changes::Checkpoints;
use wire::state::{Durability, InterruptMode, QueueMode};

use crate::diagnostic::Diagnostic;
use crate::resources::Kind;
use crate::resources::{Changes, PackageSource, PackageSpec, is_change};
use crate::settings::layers::Layer;
use crate::settings::reader::{self, Reader};
use crate::settings::types::{
    BranchSummarySettings, CompactionOverride, CompactionSettings, ImageSettings, LocalServerSettings,
    ProviderRetrySettings, RetrySettings, ShellSettings, StorageSettings,
};
use crate::settings::{CacheWarming, Capacity, QueueSettings, ToolOptions};
use crate::settings::{
    Settings, SettingsSource, hooks, keys, layers, limits, nudges, permissions, run_limits, sandbox,
};
use crate::source::{ExtraPath, Scope, resolve_path};
use crate::trust::{DecidedBy, ProjectAccess};

/// Reads every key that has a meaning for us; all others stay in `raw`.
pub(super) fn typed(
    reader: &mut Reader<'_>,
    source: &SettingsSource<'_>,
    project: ProjectAccess,
) -> Settings {
    reader.expect_objects(keys::expected_objects());
    let (hooks, hook_commands) = hooks::hooks(reader, source);
    let http_idle = idle_timeout(reader, "httpIdleTimeoutMs");
    let mut raw = Map::new();
    for layer in reader.layers.iter().rev() {
        layers::merge(&mut raw, &layer.keys);
    }
    Settings {
        default_provider: reader.text("defaultProvider"),
        default_model: reader.text("defaultModel"),
        default_thinking_level: reader.word("defaultThinkingLevel", "a thinking level", ThinkingLevel::parse),
        model_thinking_levels: model_levels(reader),
        thinking_budgets: budgets(reader),
        queues: QueueSettings {
            steering_mode: queue_mode(reader, "steeringMode"),
            follow_up_mode: queue_mode(reader, "followUpMode"),
            interrupt_mode: interrupt_mode(reader),
        },
        compaction: compaction(reader),
        branch_summary: branch_summary(reader),
        retry: retry(reader),
        limits: run_limits::run_limits(reader),
        shell: ShellSettings {
            path: reader.text("shellPath"),
            command_prefix: reader.text("shellCommandPrefix"),
            timeout_ms: reader.count("bashTimeoutMs").filter(|ms| *ms > 0),
            npm_command: reader
                .texts("npmCommand")
                .unwrap_or_else(|| vec!["npm".to_owned()]),
            keeps_keys: reader.flag("keepKeysInToolEnv", false),
        },
        images: images(reader),
        enabled_models: reader.texts("enabledModels"),
        fallback_models: reader.texts("fallbackModels").unwrap_or_default(),
        cache_warming: cache_warming(reader),
        tools: tools(reader),
        session_dir: reader.text("sessionDir"),
        http_proxy: reader.text("httpProxy"),
        http_idle_timeout_ms: Some(http_idle.unwrap_or(limits::HTTP_IDLE_TIMEOUT_MS)).filter(|ms| *ms > 0),
        skills: paths(reader, "skills", source),
        prompts: paths(reader, "prompts", source),
        extensions: paths(reader, "extensions", source),
        changes: changes(reader, source),
        packages: packages(reader, source),
        hooks,
        hook_commands,
        hook_timeout_ms: reader.count("hookTimeout").filter(|ms| *ms > 0),
        custom_tools: paths(reader, "customTools", source),
        extension_runtime: reader.text("extensionRuntime"),
        todo: nudges::todo(reader),
        ttsr: nudges::ttsr(reader),
        local_servers: local_servers(reader, http_idle),
        permissions: permissions::permissions(reader, source.tools),
        sandbox: sandbox::sandbox(reader),
        dialog_timeout_ms: reader.count("dialogTimeoutMs"),
        storage: storage(reader),
        capacity: capacity(reader),
        project,
        decided_by: DecidedBy::Nobody,
        default_trust: None,
        faults: Vec::new(),
        files: Vec::new(),
        raw,
    }
}

fn capacity(reader: &mut Reader<'_>) -> Capacity {
    Capacity {
        max_open_sessions: reader.count("maxOpenSessions"),
        web_memory_mib: reader.count("webMemoryMib").filter(|mib| *mib > 0),
        session_idle_ms: reader.count("sessionIdleMs"),
    }
}

fn tools(reader: &mut Reader<'_>) -> ToolOptions {
    ToolOptions {
        default: default_tools(reader),
        fetch: reader.flag("fetch.enabled", false),
        fetch_private_hosts: reader.texts("fetch.privateHosts").unwrap_or_default(),
        processes: reader.flag("processes.enabled", false),
        process_wakeups: reader.flag("processes.wake", false),
        subagents: reader.flag("subagents.enabled", false),
        parallel_subagents: reader
            .small("subagents.maxParallel")
            .unwrap_or(limits::PARALLEL_SUBAGENTS),
        mcp: has_mcp(reader),
    }
}

/// What `extensions` says of `builtin:mcp`, the project before the user (pi 1.5.2).
fn has_mcp(reader: &Reader<'_>) -> bool {
    // The extension is in no directory.
    let base = Path::new("/");
    let of_layer = |layer: &Layer| {
        let list = layer.get("extensions")?.as_array()?;
        let texts: Vec<String> = list.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        Changes::of(Kind::Extensions, layer.scope, base, &texts)?.verdict(&base.join("builtin:mcp"))
    };
    reader.layers.iter().find_map(of_layer).unwrap_or(true)
}

/// `defaultTools` of both files. A list of the project with plain names replaces that of the user; one with only `+name` and `-name`
/// changes it (pi 1.5.2). Changes to an empty list of the user start from no tools.
fn default_tools(reader: &mut Reader<'_>) -> Option<Vec<String>> {
    let lists = reader.each("defaultTools", reader::TEXTS, reader::texts);
    lists.into_iter().flatten().rev().reduce(|mut under, over| {
        if !over.iter().all(|item| item.starts_with(['+', '-'])) {
            return over;
        }
        if under.is_empty() {
            under.push("-*".to_owned());
        }
        under.extend(over);
        under
    })
}

fn cache_warming(reader: &mut Reader<'_>) -> CacheWarming {
    let parsed = reader.word("cacheWarming", "off, streaming or idle", |word| match word {
        "off" => Some(CacheWarming::Off),
        "streaming" => Some(CacheWarming::Streaming),
        "idle" => Some(CacheWarming::Idle),
        _ => None,
    });
    parsed.unwrap_or_default()
}

fn storage(reader: &mut Reader<'_>) -> StorageSettings {
    StorageSettings {
        checkpoints: checkpoints(reader),
        durability: durability(reader),
    }
}

fn checkpoints(reader: &mut Reader<'_>) -> Checkpoints {
    let parsed = reader.word("checkpoints", "off, files or worktree", Checkpoints::parse);
    parsed.unwrap_or_default()
}

fn durability(reader: &mut Reader<'_>) -> Durability {
    let parsed = reader.word("durability", "process or disk", Durability::parse);
    parsed.unwrap_or_default()
}

fn queue_mode(reader: &mut Reader<'_>, key: &str) -> QueueMode {
    let parsed = reader.word(key, "all or one-at-a-time", |word| match word {
        "all" => Some(QueueMode::All),
        "one-at-a-time" => Some(QueueMode::OneAtATime),
        _ => None,
    });
    parsed.unwrap_or_default()
}

fn interrupt_mode(reader: &mut Reader<'_>) -> InterruptMode {
    let parsed = reader.word("interruptMode", "immediate or wait", |word| match word {
        "immediate" => Some(InterruptMode::Immediate),
        "wait" => Some(InterruptMode::Wait),
        _ => None,
    });
    parsed.unwrap_or_default()
}

fn compaction(reader: &mut Reader<'_>) -> CompactionSettings {
    let default = CompactionSettings::default();
    CompactionSettings {
        enabled: reader.flag("compaction.enabled", default.enabled),
        reserve_tokens: reader.count("compaction.reserveTokens"),
        keep_recent_tokens: reader
            .count("compaction.keepRecentTokens")
            .unwrap_or(default.keep_recent_tokens),
        model_overrides: compaction_overrides(reader),
    }
}

/// Both files may say something about one model: each number counts by itself.
fn compaction_overrides(reader: &mut Reader<'_>) -> BTreeMap<String, CompactionOverride> {
    let given = reader.members(
        "compaction.modelOverrides",
        "an object with whole numbers that are not negative",
        |value| {
            let object = value.as_object()?;
            let number = |name: &str| match object.get(name) {
                None | Some(Value::Null) => Some(None),
                Some(value) => reader::whole(value).map(Some),
            };
            Some(CompactionOverride {
                reserve_tokens: number("reserveTokens")?,
                keep_recent_tokens: number("keepRecentTokens")?,
            })
        },
    );
    let mut out: BTreeMap<String, CompactionOverride> = BTreeMap::new();
    for (model, over) in given {
        let known = out.entry(model).or_default();
        known.reserve_tokens = over.reserve_tokens.or(known.reserve_tokens);
        known.keep_recent_tokens = over.keep_recent_tokens.or(known.keep_recent_tokens);
    }
    out
}

fn branch_summary(reader: &mut Reader<'_>) -> BranchSummarySettings {
    let default = BranchSummarySettings::default();
    BranchSummarySettings {
        reserve_tokens: reader
            .count("branchSummary.reserveTokens")
            .unwrap_or(default.reserve_tokens),
        skip_prompt: reader.flag("branchSummary.skipPrompt", default.skip_prompt),
    }
}

fn retry(reader: &mut Reader<'_>) -> RetrySettings {
    let default = RetrySettings::default();
    RetrySettings {
        enabled: reader.flag("retry.enabled", default.enabled),
        max_retries: reader.small("retry.maxRetries").unwrap_or(default.max_retries),
        base_delay_ms: reader.count("retry.baseDelayMs").unwrap_or(default.base_delay_ms),
        max_agent_delay_ms: reader.count("retry.maxAgentDelayMs"),
        provider: ProviderRetrySettings {
            timeout_ms: reader.count("retry.provider.timeoutMs").filter(|ms| *ms > 0),
            max_retries: reader.small("retry.provider.maxRetries"),
            max_retry_delay_ms: reader
                .count("retry.provider.maxRetryDelayMs")
                .unwrap_or(default.provider.max_retry_delay_ms),
        },
    }
}

fn images(reader: &mut Reader<'_>) -> ImageSettings {
    let default = ImageSettings::default();
    ImageSettings {
        auto_resize: reader.flag("images.autoResize", default.auto_resize),
        block_images: reader.flag("images.blockImages", default.block_images),
    }
}

fn local_servers(reader: &mut Reader<'_>, http_idle: Option<u64>) -> LocalServerSettings {
    let given = reader.members(
        "localServers.servers",
        "an address such as http://host:8000",
        |value| {
            let url = value.as_str()?;
            let host = url
                .strip_prefix("http://")
                .or_else(|| url.strip_prefix("https://"))?;
            (!host.is_empty()).then(|| url.to_owned())
        },
    );
    // A value that is the default as well is no wish for another limit.
    let changed = http_idle.filter(|ms| *ms != limits::HTTP_IDLE_TIMEOUT_MS);
    let idle = idle_timeout(reader, "localServers.idleTimeoutMs").or(changed);
    LocalServerSettings {
        idle_timeout_ms: Some(idle.unwrap_or(limits::LOCAL_IDLE_TIMEOUT_MS)).filter(|ms| *ms > 0),
        enabled: reader.flag("localServers.enabled", LocalServerSettings::default().enabled),
        servers: given.into_iter().collect(),
    }
}

/// 0 and `"disabled"` switch the timeout off.
fn idle_timeout(reader: &mut Reader<'_>, key: &str) -> Option<u64> {
    reader.get(key, "milliseconds, 0 or \"disabled\"", |value| match value {
        Value::String(word) if word == "disabled" => Some(0),
        other => reader::whole(other),
    })
}

fn budgets(reader: &mut Reader<'_>) -> BTreeMap<ThinkingLevel, u64> {
    let levels = ThinkingLevel::ALL
        .into_iter()
        .filter(|level| *level != ThinkingLevel::Off);
    levels
        .filter_map(|level| {
            Some((
                level,
                reader.count(&format!("thinkingBudgets.{}", level.as_str()))?,
            ))
        })
        .collect()
}

fn model_levels(reader: &mut Reader<'_>) -> BTreeMap<String, ThinkingLevel> {
    let level = |value: &Value| ThinkingLevel::parse(value.as_str()?);
    reader
        .members("modelThinkingLevels", "a thinking level", level)
        .into_iter()
        .collect()
}

/// Plain paths of a resource list, of both files, each relative to its file's directory.
fn paths(reader: &mut Reader<'_>, key: &str, source: &SettingsSource<'_>) -> Vec<ExtraPath> {
    let mut out = Vec::new();
    for layer in reader.layers {
        let mut one = Reader {
            layers: std::slice::from_ref(layer),
            notes: Vec::new(),
        };
        let listed = one.texts(key).unwrap_or_default();
        reader.notes.append(&mut one.notes);
        let base = layer.path.parent().unwrap_or(source.agent_dir);
        for text in listed.iter().filter(|text| !is_change(text)) {
            out.push(ExtraPath {
                path: resolve_path(text, base, source.home),
                scope: layer.scope,
            });
        }
    }
    out
}

/// What the lists of both files take out, each relative to its file's directory.
fn changes(reader: &Reader<'_>, source: &SettingsSource<'_>) -> Vec<Changes> {
    let layers = reader.layers.iter();
    let of_layer = |layer: &Layer| {
        let base = layer.path.parent().unwrap_or(source.agent_dir).to_path_buf();
        let of_kind = |kind: Kind| {
            let list = layer.get(kind.word())?.as_array()?;
            let texts: Vec<String> = list.iter().filter_map(Value::as_str).map(str::to_owned).collect();
            Changes::of(kind, layer.scope, &base, &texts)
        };
        Kind::ALL.into_iter().filter_map(of_kind).collect::<Vec<_>>()
    };
    layers.flat_map(of_layer).collect()
}

/// The packages of both files. A package that both name counts as the project names it; with `autoload: false`, the entry of the
/// project only changes that of the user (pi 1.5.2).
fn packages(reader: &mut Reader<'_>, source: &SettingsSource<'_>) -> Vec<PackageSpec> {
    let mut out: Vec<PackageSpec> = Vec::new();
    for layer in reader.layers {
        let Some(value) = layer.get("packages") else {
            continue;
        };
        let base = layer.path.parent().unwrap_or(source.agent_dir);
        let entries = value.as_array().map(Vec::as_slice);
        let read = entries.map(|entries| {
            let read = entries
                .iter()
                .map(|entry| PackageSpec::parse(entry, layer.scope, base));
            read.collect::<Vec<_>>()
        });
        let read = read.unwrap_or_else(|| vec![None]);
        if read.contains(&None) {
            let message = "\"packages\" should be a list of sources, or objects with a \"source\" and lists; what is not is ignored";
            reader.notes.push(Diagnostic::new(&layer.path, message));
        }
        for spec in read.into_iter().flatten() {
            let id = identity(&spec, source);
            match out.iter_mut().find(|known| identity(known, source) == id) {
                None => out.push(spec),
                Some(known) if !known.autoload && known.scope != spec.scope && spec.scope == Scope::User => {
                    let over = std::mem::take(&mut known.only);
                    *known = PackageSpec { over, ..spec };
                }
                Some(_) => {}
            }
        }
    }
    out
}

/// Names the package without version, branch or tag. A relative path starts at the directory of its file.
fn identity(spec: &PackageSpec, source: &SettingsSource<'_>) -> String {
    match PackageSource::parse(&spec.source) {
        Ok(parsed) => parsed.identity(&spec.base, source.home),
        Err(_) => spec.source.clone(),
    }
}
