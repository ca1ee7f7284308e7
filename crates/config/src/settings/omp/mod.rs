//! `config.yml` of oh-my-pi 18.3.4 as settings, for clients of its dialect (docs/migrate/from-oh-my-pi.md). Its keys count where the
//! settings.json of the same scope does not give them; of the permissions, the stricter count.
//!
//! What the keys mean is in `table` and `approvals`. What an untrusted project must not decide is in `trust`, as for settings.json.

mod approvals;
mod table;

use std::io;
use std::path::{Path, PathBuf};

use files::Root;
use serde_json::{Map, Value};

use crate::diagnostic::Diagnostic;
use crate::settings::layers::{self, Layer};
use crate::settings::trust::TRUSTED_ONLY;
use crate::settings::types::{KeyUse, SettingsFile, SettingsSource};
use crate::source::Scope;
#[cfg(test)]
pub(super) use table::ROWS;

/// The directory of a project with files of oh-my-pi.
const PROJECT_DIR: &str = ".omp";

/// The user's `config.yml`, with its keys under the names that settings.json has.
pub(super) fn user(source: &SettingsSource<'_>, notes: &mut Vec<Diagnostic>) -> Option<Layer> {
    let names = ["config.yml", "config.yaml"];
    let mut paths = names.iter().map(|name| source.agent_dir.join(name));
    let path = paths.find(|path| source.is_omp && is_there(path))?;
    Some(read(&Root::user(), &path, Scope::User, source, notes))
}

/// The project's `config.yml`, likewise.
pub(super) fn project(
    root: &Root,
    source: &SettingsSource<'_>,
    notes: &mut Vec<Diagnostic>,
) -> Option<Layer> {
    let path = project_path(source)?;
    Some(read(root, &path, Scope::Project, source, notes))
}

/// The project's `config.yml`, which must not be read.
pub(super) fn not_read(source: &SettingsSource<'_>) -> Option<SettingsFile> {
    project_path(source).map(SettingsFile::not_read)
}

fn project_path(source: &SettingsSource<'_>) -> Option<PathBuf> {
    let dir = source.cwd.join(PROJECT_DIR);
    let path = dir.join("config.yml");
    // The file in the agent directory is the user's.
    (source.is_omp && dir != source.agent_dir && is_there(&path)).then_some(path)
}

/// Returns true unless nothing has this name. A link without a target, or a directory that cannot be searched, is reported when the
/// file is read: it may hold rules.
fn is_there(path: &Path) -> bool {
    match path.symlink_metadata() {
        Ok(_) => true,
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => files::dangling_link(path).is_some(),
            _ => true,
        },
    }
}

fn read(
    root: &Root,
    path: &Path,
    scope: Scope,
    source: &SettingsSource<'_>,
    notes: &mut Vec<Diagnostic>,
) -> Layer {
    let mut text = String::new();
    let (config, state) = layers::read_keys(root, path, parse, &mut text, notes);
    let found = SettingsFile {
        path: path.to_path_buf(),
        scope,
        state,
        keys: table::classify(&config),
    };
    let mut keys = table::convert(&config, path, scope, source, notes);
    if let Some(permissions) = approvals::permissions(&config, path, scope, source.tools, notes) {
        keys.insert("permissions".to_owned(), permissions);
    }
    Layer {
        path: path.to_path_buf(),
        scope,
        keys,
        text,
        found,
    }
}

/// Parses the file. The parser bounds depth, aliases and nodes. As in oh-my-pi, `on` and `yes` are texts, and a file without values
/// has no keys.
fn parse(text: &str) -> Result<Map<String, Value>, String> {
    let options = serde_saphyr::options! { strict_booleans: true };
    match serde_saphyr::from_str_with_options::<Value>(text, options) {
        Ok(Value::Object(keys)) => Ok(keys),
        Ok(Value::Null) => Ok(Map::new()),
        Ok(_) => Err("settings are not a YAML mapping".to_owned()),
        Err(error) => {
            let reason = error.to_string();
            let reason = reason.lines().next().unwrap_or_default();
            Err(format!("settings are not valid YAML: {reason}"))
        }
    }
}

/// Lays the keys of `config.yml` under those of the settings.json of the same scope.
pub(super) fn lay_under(layer: &mut Layer, config: &Layer) {
    let mut keys = config.keys.clone();
    if let Some(permissions) = keys.remove("permissions") {
        let own = layer.keys.remove("permissions").filter(|own| !own.is_null());
        let joined = approvals::join(own, permissions);
        layer.keys.insert("permissions".to_owned(), joined);
    }
    // A model of one file must not get the provider of the other.
    let model = ["defaultProvider", "defaultModel"];
    if model.iter().any(|key| layer.get(key).is_some()) {
        keys.retain(|key, _| !model.contains(&key.as_str()));
    }
    // Changes of both files to the default tools count, those of settings.json last.
    let is_change = |item: &Value| item.as_str().is_some_and(|item| item.starts_with(['+', '-']));
    if let Some(Value::Array(own)) = layer.keys.get_mut("defaultTools")
        && !own.is_empty()
        && own.iter().all(is_change)
        && let Some(Value::Array(mut changes)) = keys.remove("defaultTools")
    {
        changes.append(own);
        *own = changes;
    }
    fill(&mut layer.keys, keys);
}

/// Adds the values that are absent, at every depth.
fn fill(own: &mut Map<String, Value>, under: Map<String, Value>) {
    for (key, value) in under {
        match (own.get_mut(&key), value) {
            (Some(Value::Object(own)), Value::Object(under)) => fill(own, under),
            (None | Some(Value::Null), value) => {
                own.insert(key, value);
            }
            (Some(_), _) => {}
        }
    }
}

/// Notes which keys an untrusted project does not decide. `trust` names them as settings.json does.
pub(super) fn mark_untrusted(found: &mut SettingsFile) {
    for key in &mut found.keys {
        let name = match &key.usage {
            KeyUse::Used => key.key.as_str(),
            KeyUse::Renamed(name) => *name,
            _ => continue,
        };
        let top = name.split('.').next().unwrap_or_default();
        if TRUSTED_ONLY.contains(&top) {
            key.usage = KeyUse::Untrusted;
        }
    }
}
