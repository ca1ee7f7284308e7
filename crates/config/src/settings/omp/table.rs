//! The keys of `config.yml` with an equivalent in settings.json, other than approvals.

use std::path::Path;

use serde_json::{Map, Value, json};
use wire::ThinkingLevel;

use crate::diagnostic::Diagnostic;
use crate::settings::layers::at;
use crate::settings::reader::{complaint, texts, whole};
use crate::settings::types::{FoundKey, KeyUse, SettingsSource};
use crate::source::{Scope, resolve_path};

/// A key of `config.yml` with an equivalent.
pub(in crate::settings) struct Row {
    /// Its path in `config.yml`.
    pub(in crate::settings) omp: &'static str,
    /// Path of the key in settings.json.
    ours: &'static str,
    kind: Kind,
}

/// What a value is, and how it becomes one of settings.json.
#[derive(Clone, Copy)]
enum Kind {
    Flag,
    Count,
    /// A whole number; 0 is no limit, which settings.json says by leaving the key out.
    Limit,
    Number,
    Text,
    Word(&'static [&'static str]),
    /// A thinking level; `auto` has no equivalent.
    Level,
    /// Seconds, where settings.json has milliseconds. A negative number stands for the default.
    Seconds,
    /// Paths. Relative ones start at the agent directory or the project.
    Paths,
    /// A list of model patterns. Objects, which limit patterns to directories, are left out.
    Models,
    /// Lists of models by role, of which `default` has an equivalent.
    Chains,
    /// The model of a new session, with or without a thinking level.
    Model,
    /// False takes the tool of this name from the model.
    Tool(&'static str),
    /// Read by `approvals`.
    Approval,
}

const fn row(omp: &'static str, ours: &'static str, kind: Kind) -> Row {
    Row { omp, ours, kind }
}

const fn same(path: &'static str, kind: Kind) -> Row {
    row(path, path, kind)
}

const QUEUE: Kind = Kind::Word(&["all", "one-at-a-time"]);

/// All keys with an equivalent. docs/migrate/from-oh-my-pi.md lists them.
pub(in crate::settings) const ROWS: &[Row] = &[
    row("modelRoles.default", "defaultModel", Kind::Model),
    same("defaultThinkingLevel", Kind::Level),
    same("thinkingBudgets.minimal", Kind::Count),
    same("thinkingBudgets.low", Kind::Count),
    same("thinkingBudgets.medium", Kind::Count),
    same("thinkingBudgets.high", Kind::Count),
    same("enabledModels", Kind::Models),
    row("queueMode", "steeringMode", QUEUE),
    same("steeringMode", QUEUE),
    same("followUpMode", QUEUE),
    same("interruptMode", Kind::Word(&["immediate", "wait"])),
    same("images.autoResize", Kind::Flag),
    same("images.blockImages", Kind::Flag),
    same("compaction.enabled", Kind::Flag),
    same("compaction.reserveTokens", Kind::Count),
    same("compaction.keepRecentTokens", Kind::Count),
    same("branchSummary.reserveTokens", Kind::Count),
    same("retry.enabled", Kind::Flag),
    same("retry.maxRetries", Kind::Count),
    same("retry.baseDelayMs", Kind::Count),
    row("retry.maxDelayMs", "retry.provider.maxRetryDelayMs", Kind::Limit),
    row("retry.fallbackChains", "fallbackModels", Kind::Chains),
    row(
        "providers.streamFirstEventTimeoutSeconds",
        "retry.provider.timeoutMs",
        Kind::Seconds,
    ),
    row(
        "providers.streamIdleTimeoutSeconds",
        "httpIdleTimeoutMs",
        Kind::Seconds,
    ),
    same("shellPath", Kind::Text),
    same("extensions", Kind::Paths),
    row("skills.customDirectories", "skills", Kind::Paths),
    row("task.maxConcurrency", "subagents.maxParallel", Kind::Limit),
    same("todo.enabled", Kind::Flag),
    row("todo.reminders", "todo.reminders.enabled", Kind::Flag),
    row("todo.remindersMax", "todo.reminders.max", Kind::Count),
    same("tasks.todoClearDelay", Kind::Number),
    same("ttsr.enabled", Kind::Flag),
    same("ttsr.contextMode", Kind::Word(&["discard", "keep"])),
    same(
        "ttsr.interruptMode",
        Kind::Word(&["never", "prose-only", "tool-only", "always"]),
    ),
    same("ttsr.repeatMode", Kind::Word(&["once", "after-gap"])),
    same("ttsr.repeatGap", Kind::Count),
    row("bash.enabled", "defaultTools", Kind::Tool("bash")),
    row("grep.enabled", "defaultTools", Kind::Tool("grep")),
    row("glob.enabled", "defaultTools", Kind::Tool("find")),
    row("tools.approvalMode", "permissions.mode", Kind::Approval),
    row("tools.approval", "permissions", Kind::Approval),
    row("bash.patterns", "permissions", Kind::Approval),
];

impl Kind {
    /// What the value should be, for complaints.
    fn wanted(self) -> &'static str {
        match self {
            Self::Flag | Self::Tool(_) => "true or false",
            Self::Count | Self::Limit => "a whole number that is not negative",
            Self::Number | Self::Seconds => "a number",
            Self::Text => "a text",
            Self::Word(_) => "one of the words that oh-my-pi knows",
            Self::Level => "a thinking level",
            Self::Paths => "a list of texts",
            Self::Models => "a list",
            Self::Chains => "lists of models by role",
            Self::Model => "a model or a list of models",
            Self::Approval => "an approval",
        }
    }
}

/// The keys as settings.json has them.
pub(super) fn convert(
    config: &Map<String, Value>,
    path: &Path,
    scope: Scope,
    source: &SettingsSource<'_>,
    notes: &mut Vec<Diagnostic>,
) -> Map<String, Value> {
    let mut keys = Map::new();
    let mut tools = Vec::new();
    for row in ROWS {
        let Some(value) = at(config, row.omp) else {
            continue;
        };
        let is_right = match row.kind {
            Kind::Approval => true,
            Kind::Model => put_model(&mut keys, value).is_some(),
            Kind::Tool(name) => {
                if value.as_bool() == Some(false) {
                    tools.push(format!("-{name}"));
                }
                value.is_boolean()
            }
            kind => {
                let converted = value_of(kind, value, scope, source);
                let is_right = converted.is_some();
                // Null counts as absent.
                put(&mut keys, row.ours, converted.unwrap_or_default());
                is_right
            }
        };
        if !is_right {
            let message = format!("\"{}\" should be {}; ignored", row.omp, row.kind.wanted());
            let mut note = complaint(path, row.ours, message);
            note.fault = note.fault.map(|_| row.omp.to_owned());
            notes.push(note);
        }
    }
    if !tools.is_empty() {
        put(&mut keys, "defaultTools", Value::from(tools));
    }
    if at(config, "retry.modelFallback").and_then(Value::as_bool) == Some(false) {
        keys.remove("fallbackModels");
    }
    keys
}

/// The value for settings.json, null if there is nothing to say; `None` if the value is of the wrong type.
fn value_of(kind: Kind, value: &Value, scope: Scope, source: &SettingsSource<'_>) -> Option<Value> {
    match kind {
        Kind::Flag | Kind::Tool(_) => value.as_bool().map(Value::from),
        Kind::Count => bounded(value).map(Value::from),
        Kind::Limit => bounded(value).map(|limit| match limit {
            0 => Value::Null,
            limit => limit.into(),
        }),
        Kind::Number => value.is_number().then(|| value.clone()),
        Kind::Text => value.as_str().map(Value::from),
        Kind::Word(words) => value
            .as_str()
            .filter(|word| words.contains(word))
            .map(Value::from),
        Kind::Level => match value.as_str()? {
            "auto" => Some(Value::Null),
            word => ThinkingLevel::parse(word).map(|level| level.as_str().into()),
        },
        Kind::Seconds => value.as_f64().map(milliseconds),
        Kind::Paths => {
            let base = match scope {
                Scope::Project => source.cwd,
                Scope::User | Scope::Temporary => source.agent_dir,
            };
            let absolute = |text: &String| {
                let path = resolve_path(text, base, source.home);
                path.to_string_lossy().into_owned()
            };
            let paths: Vec<String> = texts(value)?.iter().map(absolute).collect();
            Some(Value::from(paths))
        }
        Kind::Models => {
            let patterns = value.as_array()?.iter().filter(|pattern| pattern.is_string());
            let patterns: Vec<Value> = patterns.cloned().collect();
            // An empty list stands for all models.
            Some(match patterns.is_empty() {
                true => Value::Null,
                false => Value::Array(patterns),
            })
        }
        Kind::Chains => match value.as_object()?.get("default") {
            None | Some(Value::Null) => Some(Value::Null),
            Some(chain) => {
                let names = texts(chain)?.into_iter().filter(|name| is_model(name));
                let names: Vec<String> = names.map(|name| without_level(&name).0.to_owned()).collect();
                Some(Value::from(names))
            }
        },
        Kind::Model | Kind::Approval => None,
    }
}

/// A whole number, no larger than any key takes.
fn bounded(value: &Value) -> Option<u64> {
    whole(value).map(|count| count.min(u64::from(u32::MAX)))
}

fn milliseconds(seconds: f64) -> Value {
    if seconds < 0.0 {
        return Value::Null;
    }
    let ms = (seconds.min(f64::from(u32::MAX)) * 1000.0).round();
    format!("{ms:.0}").parse::<u64>().map_or(Value::Null, Value::from)
}

/// Returns true for `provider/id`. Fallbacks may also be patterns, which have no equivalent.
fn is_model(name: &str) -> bool {
    name.contains('/') && !name.contains('*')
}

/// A model without the thinking level at its end, and the level.
fn without_level(name: &str) -> (&str, Option<ThinkingLevel>) {
    let split = name
        .rsplit_once(':')
        .and_then(|(model, word)| Some((model, ThinkingLevel::parse(word)?)));
    match split {
        Some((model, level)) => (model, Some(level)),
        None => (name, None),
    }
}

/// Sets the default model to the first model of the role. A role in place of a model has no equivalent. Returns `None` if
/// the value is of the wrong type.
fn put_model(keys: &mut Map<String, Value>, value: &Value) -> Option<()> {
    let text = match value {
        Value::Array(items) => items.first()?.as_str()?,
        _ => value.as_str()?,
    };
    let name = text.split(',').next().unwrap_or_default().trim();
    if name.is_empty() || name.starts_with('@') || name.starts_with("pi/") {
        return Some(());
    }
    let (model, level) = without_level(name);
    if let Some((provider, id)) = model.split_once('/') {
        put(keys, "defaultProvider", provider.into());
        put(keys, "defaultModel", id.into());
        if let Some(level) = level {
            put(keys, "modelThinkingLevels", json!({model: level.as_str()}));
        }
    } else {
        put(keys, "defaultModel", model.into());
    }
    Some(())
}

/// Sets the value at a dotted path, unless it is null.
fn put(keys: &mut Map<String, Value>, path: &str, value: Value) {
    match path.split_once('.') {
        _ if value.is_null() => {}
        None => {
            keys.insert(path.to_owned(), value);
        }
        Some((top, rest)) => {
            let inner = keys.entry(top).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(inner) = inner {
                put(inner, rest, value);
            }
        }
    }
}

/// The keys of the file with their use, in its order. Keys without an equivalent are reported as such.
pub(super) fn classify(config: &Map<String, Value>) -> Vec<FoundKey> {
    let mut found = Vec::new();
    for (top, value) in config {
        let prefix = format!("{top}.");
        match value {
            Value::Object(members) if ROWS.iter().any(|row| row.omp.starts_with(&prefix)) => {
                found.extend(members.keys().map(|name| format!("{prefix}{name}")));
            }
            _ => found.push(top.clone()),
        }
    }
    let found = found.into_iter();
    found
        .map(|key| FoundKey {
            usage: match ROWS.iter().find(|row| row.omp == key) {
                None => KeyUse::NoMeaning,
                Some(row) if row.ours == key => KeyUse::Used,
                Some(row) => KeyUse::Renamed(row.ours),
            },
            key,
        })
        .collect()
}
