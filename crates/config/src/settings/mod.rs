//! settings.json, global and of the project (pi-core.md 8.1, pi-1.5-delta.md 6). What a client sets over RPC
//! belongs to its session and is never written here; `pinion install` changes the list of packages (`edit`).
//!
//! What lives here: the typed view of every key that means something without a terminal, and `config.yml` of oh-my-pi for its clients
//! (`omp`). Unknown keys are kept in [`Settings::raw`]. What does not: models.json and auth.json (`llm`), and resources found through
//! settings (`resources`).

pub mod edit;
pub mod foreign;
mod hooks;
pub mod jsonc;
mod keys;
mod layers;
pub mod limits;
mod nudges;
mod omp;
mod permissions;
mod process_keys;
mod protection;
mod reader;
mod run_limits;
mod sandbox;
pub mod table;
#[cfg(test)]
mod tests;
mod todo_keys;
mod trust;
mod typed;
mod types;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use ::permissions::PermissionSettings;
use files::{Boundaries, Root};
use serde_json::{Map, Value};
use wire::ThinkingLevel;
use wire::state::{PermissionMode, SandboxMode};

use crate::diagnostic::Diagnostic;
use crate::resources::{Changes, PackageSpec};
use crate::source::{ExtraPath, Scope};
use crate::trust::{DecidedBy, ProjectAccess, ProjectTrust};
pub use hooks::HookCommand;
pub(crate) use keys::distance;
pub use keys::{classify, meaning};
use layers::Layer;
pub use nudges::{TodoOptions, TtsrOptions};
use reader::Reader;
pub use sandbox::SandboxSettings;
pub use trust::TRUSTED_ONLY;
pub use types::{
    BranchSummarySettings, CompactionOverride, CompactionSettings, FileState, FoundKey, ImageSettings,
    KeyUse, LocalServerSettings, ProviderRetrySettings, RetrySettings, SettingsFile, SettingsSource,
    ShellSettings, StorageSettings,
};
pub use types::{CacheWarming, Capacity, QueueSettings, ToolOptions};

/// The settings in force.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `defaultProvider`.
    pub default_provider: Option<String>,
    /// `defaultModel`.
    pub default_model: Option<String>,
    /// `defaultThinkingLevel`; unset means medium.
    pub default_thinking_level: Option<ThinkingLevel>,
    /// `modelThinkingLevels`: level by model, as `provider/id`.
    pub model_thinking_levels: BTreeMap<String, ThinkingLevel>,
    /// `thinkingBudgets`: tokens by level, where they differ from the provider's defaults.
    pub thinking_budgets: BTreeMap<ThinkingLevel, u64>,
    /// How queued messages are delivered.
    pub queues: QueueSettings,
    /// `compaction`.
    pub compaction: CompactionSettings,
    /// `branchSummary`.
    pub branch_summary: BranchSummarySettings,
    /// `retry`.
    pub retry: RetrySettings,
    /// `limits`.
    pub limits: wire::RunLimits,
    /// How commands run.
    pub shell: ShellSettings,
    /// `images`.
    pub images: ImageSettings,
    /// `enabledModels`: like `--models`.
    pub enabled_models: Option<Vec<String>>,
    /// `fallbackModels`: models that a run falls back to, as `provider/id`.
    pub fallback_models: Vec<String>,
    /// `cacheWarming`.
    pub cache_warming: CacheWarming,
    /// `defaultTools` and `fetch`.
    pub tools: ToolOptions,
    /// `sessionDir` as written; `~` and relative paths are the caller's.
    pub session_dir: Option<String>,
    /// `httpProxy`.
    pub http_proxy: Option<String>,
    /// `httpIdleTimeoutMs`; `None` when switched off.
    pub http_idle_timeout_ms: Option<u64>,
    /// `skills`: absolute paths, the project's first.
    pub skills: Vec<ExtraPath>,
    /// `prompts`, likewise.
    pub prompts: Vec<ExtraPath>,
    /// `extensions`, likewise.
    pub extensions: Vec<ExtraPath>,
    /// Files that these lists take out of those found (`!x`, `-x`, `+x`).
    pub changes: Vec<Changes>,
    /// `packages`, the project's first.
    pub packages: Vec<PackageSpec>,
    /// Paths in `hooks`: hooks of the older generations, and hook executables.
    pub hooks: Vec<ExtraPath>,
    /// Commands in `hooks`.
    pub hook_commands: Vec<HookCommand>,
    /// `hookTimeout`: how long a hook may take, in milliseconds.
    pub hook_timeout_ms: Option<u64>,
    /// `customTools`: tool files of the older generations.
    pub custom_tools: Vec<ExtraPath>,
    /// `extensionRuntime`: Node or Bun, when the one on `PATH` is not meant.
    pub extension_runtime: Option<String>,
    /// `todo` and `tasks.todoClearDelay`.
    pub todo: TodoOptions,
    /// `ttsr`.
    pub ttsr: TtsrOptions,
    /// `localServers`.
    pub local_servers: LocalServerSettings,
    /// `permissions`, of the user and of the project.
    pub permissions: PermissionSettings,
    /// `sandbox`, of the user and of the project.
    pub sandbox: SandboxSettings,
    /// `dialogTimeoutMs`: how long a question to the user waits that does not say; 0 is without end.
    pub dialog_timeout_ms: Option<u64>,
    /// `checkpoints` and `durability`.
    pub storage: StorageSettings,
    /// How much a process with many sessions and clients may hold.
    pub capacity: Capacity,
    /// What the project may decide.
    pub project: ProjectAccess,
    /// Who says so.
    pub decided_by: DecidedBy,
    /// `defaultProjectTrust`, which only the user's own file can set.
    pub default_trust: Option<ProjectTrust>,
    /// Files and values that protect the user and could not be used, as `FILE:LINE:COLUMN: message`. The settings in force
    /// are less strict than the user wants them.
    pub faults: Vec<String>,
    /// The files that were looked at, the user's first.
    pub files: Vec<SettingsFile>,
    /// Both files merged, with every key, also those unknown to us.
    pub raw: Map<String, Value>,
}

impl Settings {
    /// Reads the files. Broken values are reported and replaced by their defaults; [`Self::faults`] lists the
    /// values that the caller must not ignore.
    #[must_use]
    pub fn load(source: &SettingsSource<'_>) -> (Self, Vec<Diagnostic>) {
        let mut notes = Vec::new();
        let mut global = layers::read(
            &Root::user(),
            source.agent_dir.join("settings.json"),
            Scope::User,
            &mut notes,
        );
        let (mut configs, mut files) = (Vec::new(), Vec::new());
        if let Some(config) = omp::user(source, &mut notes) {
            omp::lay_under(&mut global, &config);
            files.push(config.found.clone());
            configs.push(config);
        }
        notes.extend(unread(source));
        let default = default_trust(&global, &mut notes);
        let decision = source.trust.decide(source.cwd, default, &mut notes);
        let project = decision.access;
        let mut stack = Vec::new();
        files.push(global.found.clone());
        let file = source.cwd.join(".pi").join("settings.json");
        // In the home directory both files may be one and the same.
        let file = (file != global.path).then_some(file);
        if project == ProjectAccess::None {
            files.extend(omp::not_read(source));
            files.extend(file.map(SettingsFile::not_read));
        } else {
            let (layer, config) = of_project(file, project, &global, source, &mut notes);
            files.extend(config.iter().chain(&layer).map(|layer| layer.found.clone()));
            stack.extend(layer);
            configs.extend(config);
        }
        stack.push(global);
        let mut reader = Reader {
            layers: &stack,
            notes,
        };
        let mut settings = typed::typed(&mut reader, source, project);
        settings.files = files;
        settings.decided_by = decision.by;
        settings.default_trust = default;
        let mut notes = reader.notes;
        for layer in &stack {
            notes.extend(misspelled(layer, project));
        }
        let read = stack.iter().chain(&configs);
        let located = |note: &Diagnostic| read.clone().find_map(|layer| layer.locate(note));
        settings.faults = notes.iter().filter_map(located).collect();
        (settings, notes)
    }

    /// Locks the agent down: every tool call is asked about unless the settings deny it, and tools run in a read-only sandbox
    /// without network.
    pub fn lock_down(&mut self) {
        let user = &mut self.permissions.user;
        user.mode = Some(user.mode().max(PermissionMode::Ask));
        self.sandbox.user_mode = SandboxMode::ReadOnly;
        // The mode of the project is a minimum: the command line cannot loosen it.
        self.sandbox.project_mode = SandboxMode::ReadOnly;
        self.sandbox.network = false;
        self.sandbox.project_has_no_network = true;
    }

    /// How long a question to the user waits that does not say; none is without end.
    #[must_use]
    pub fn dialog_wait(&self) -> Option<Duration> {
        match self.dialog_timeout_ms {
            None => Some(limits::DIALOG_WAIT),
            Some(ms) => (ms > 0).then(|| Duration::from_millis(ms)),
        }
    }

    /// The thinking level that `modelThinkingLevels` gives a model.
    #[must_use]
    pub fn model_thinking_level(&self, provider: &str, id: &str) -> Option<ThinkingLevel> {
        self.model_thinking_levels
            .get(&format!("{provider}/{id}"))
            .copied()
    }
}

/// The settings of the project, as far as they count, with those of its `config.yml` below them, which also come by themselves. Without
/// a `file` of its own, the project has those of its `config.yml` only.
fn of_project(
    file: Option<PathBuf>,
    project: ProjectAccess,
    global: &Layer,
    source: &SettingsSource<'_>,
    notes: &mut Vec<Diagnostic>,
) -> (Option<Layer>, Option<Layer>) {
    let root = Boundaries::new(source.agent_dir, source.home).project(source.cwd);
    let mut layer = file.map(|file| layers::read(&root, file, Scope::Project, notes));
    let mut config = omp::project(&root, source, notes);
    if project == ProjectAccess::Data {
        if let Some(layer) = &mut layer {
            trust::restrict(layer, global, source, notes);
        }
        if let Some(config) = &mut config {
            trust::restrict(config, global, source, notes);
            omp::mark_untrusted(&mut config.found);
        }
    }
    match (&mut layer, &config) {
        (Some(layer), Some(config)) => omp::lay_under(layer, config),
        (None, Some(_)) => layer = config.take(),
        _ => {}
    }
    (layer, config)
}

/// Complains about files of oh-my-pi, which the user may believe to count for other clients, too, if there are none of ours.
fn unread(source: &SettingsSource<'_>) -> impl Iterator<Item = Diagnostic> {
    const FILES: [(&str, &str); 4] = [
        ("config.yml", "settings.json"),
        ("config.yaml", "settings.json"),
        ("models.yml", "models.json"),
        ("models.yaml", "models.json"),
    ];
    let agent_dir = source.agent_dir;
    let files = FILES.into_iter().filter(move |_| !source.is_omp);
    let found =
        files.filter(move |(name, ours)| agent_dir.join(name).is_file() && !agent_dir.join(ours).exists());
    found.map(move |(name, ours)| {
        let message = format!(
            "this file of oh-my-pi is read for its clients only (--rpc-dialect omp-now). Write what it says to {ours}"
        );
        Diagnostic::new(&agent_dir.join(name), message)
    })
}

/// Complains about misspelled keys that were meant to protect the user.
fn misspelled(layer: &Layer, project: ProjectAccess) -> Vec<Diagnostic> {
    let is_untrusted = layer.scope == Scope::Project && project == ProjectAccess::Data;
    let found = protection::misspelled(&layer.keys).into_iter();
    // Spelled right, the key of an untrusted project would be left out.
    let found = found.filter(|found| !(is_untrusted && TRUSTED_ONLY.contains(&found.top)));
    found
        .map(|found| {
            let meant = found.meant.map(|meant| format!(" (did you mean \"{meant}\"?)"));
            let message = format!("\"{}\" is not a setting{}", found.key, meant.unwrap_or_default());
            Diagnostic::fault(&layer.path, &found.key, message)
        })
        .collect()
}

fn default_trust(global: &Layer, notes: &mut Vec<Diagnostic>) -> Option<ProjectTrust> {
    let mut reader = Reader {
        layers: std::slice::from_ref(global),
        notes: Vec::new(),
    };
    let default = reader.word("defaultProjectTrust", "ask, always or never", ProjectTrust::parse);
    notes.append(&mut reader.notes);
    default
}
