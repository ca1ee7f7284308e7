//! The settings files as they lie on disk: reading them, bringing old keys up to date and looking keys up. What an untrusted
//! project must not decide is `trust`'s business, what the keys mean is `typed`'s.

use std::io;
use std::path::{Path, PathBuf};

use files::Root;
use serde_json::{Map, Value};

use crate::diagnostic::Diagnostic;
use crate::settings::keys;
use crate::settings::types::{FileState, KeyUse, SettingsFile};
use crate::settings::{jsonc, limits};
use crate::source::Scope;

/// One settings file.
#[derive(Debug, Clone)]
pub(crate) struct Layer {
    pub(crate) path: PathBuf,
    pub(crate) scope: Scope,
    pub(crate) keys: Map<String, Value>,
    /// The text of the file, to find the line of a key in.
    pub(crate) text: String,
    /// What the file looked like before anything was changed or left out.
    pub(crate) found: SettingsFile,
}

/// Reads one file. A missing file is an empty layer, a broken one too, with a complaint.
pub(crate) fn read(root: &Root, path: PathBuf, scope: Scope, notes: &mut Vec<Diagnostic>) -> Layer {
    let mut text = String::new();
    let (mut keys, state) = read_keys(root, &path, parse_json, &mut text, notes);
    let mut found = SettingsFile {
        path: path.clone(),
        scope,
        state,
        keys: keys::classify(&keys),
    };
    if scope == Scope::Project {
        found.mark("defaultProjectTrust", &KeyUse::GlobalOnly);
        // Not even a trusted project gets at the user's keys.
        found.mark("keepKeysInToolEnv", &KeyUse::GlobalOnly);
        keys.remove("keepKeysInToolEnv");
        // What a power cut may cost, and how long each turn takes, is the user's choice.
        found.mark("durability", &KeyUse::GlobalOnly);
        keys.remove("durability");
        // A project must not reach the user's network.
        found.mark("fetch.privateHosts", &KeyUse::GlobalOnly);
        if let Some(Value::Object(fetch)) = keys.get_mut("fetch") {
            fetch.remove("privateHosts");
        }
        // A run without a prompt costs money.
        found.mark("processes.wake", &KeyUse::GlobalOnly);
        if let Some(Value::Object(processes)) = keys.get_mut("processes") {
            processes.remove("wake");
        }
        // Refreshes cost money.
        found.mark("cacheWarming", &KeyUse::GlobalOnly);
        keys.remove("cacheWarming");
        // Copies of files cost disk space and time, and what can be undone is the user's choice.
        found.mark("checkpoints", &KeyUse::GlobalOnly);
        keys.remove("checkpoints");
        for key in ["permissions.allow", "sandbox.writable", "sandbox.readable"] {
            found.mark(key, &KeyUse::GlobalOnly);
        }
    }
    let mut layer = Layer {
        path,
        scope,
        keys,
        text,
        found,
    };
    layer.migrate();
    layer
}

/// Parses the text of a settings file.
type Parse = fn(&str) -> Result<Map<String, Value>, String>;

/// The keys of a file, its text, and what became of it.
pub(crate) fn read_keys(
    root: &Root,
    path: &Path,
    parse: Parse,
    text: &mut String,
    notes: &mut Vec<Diagnostic>,
) -> (Map<String, Value>, FileState) {
    match parse_file(root, path, parse, text) {
        Ok(Some(keys)) => (keys, FileState::Read),
        Ok(None) => (Map::new(), FileState::Missing),
        Err(message) => {
            notes.push(Diagnostic::fault(path, "", format!("{message}; using defaults")));
            (Map::new(), FileState::Broken(message))
        }
    }
}

fn parse_json(text: &str) -> Result<Map<String, Value>, String> {
    match jsonc::parse(text) {
        Ok(Value::Object(keys)) => Ok(keys),
        Ok(_) => Err("settings are not a JSON object".to_owned()),
        Err(error) => Err(format!("settings are not valid JSON: {error}")),
    }
}

/// Parses a file and keeps its text.
fn parse_file(
    root: &Root,
    path: &Path,
    parse: Parse,
    kept: &mut String,
) -> Result<Option<Map<String, Value>>, String> {
    let text = match root.read(path, limits::FILE_BYTES) {
        Ok(text) => text,
        Err(error) => return missing(path, &error),
    };
    kept.clone_from(&text.text);
    if text.cut {
        return Err(format!(
            "settings are longer than {} KiB",
            limits::FILE_BYTES / 1024
        ));
    }
    if text.text.trim().is_empty() {
        // A power cut may leave it so. Its rules are gone, and the user does not know.
        return Err("settings are empty (write {} if that is meant)".to_owned());
    }
    parse(&text.text).map(Some)
}

/// The value at a dotted path; null counts as absent.
pub(crate) fn at<'a>(keys: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    let mut parts = path.split('.');
    let first = keys.get(parts.next()?)?;
    parts
        .try_fold(first, |value, part| value.get(part))
        .filter(|value| !value.is_null())
}

/// There are no settings only if nothing has their name. Anything else that cannot be read may hold rules.
fn missing(path: &Path, error: &io::Error) -> Result<Option<Map<String, Value>>, String> {
    match (error.kind(), files::dangling_link(path)) {
        (io::ErrorKind::NotFound, Some(link)) if link == path => {
            Err("settings are a link that leads nowhere".to_owned())
        }
        (io::ErrorKind::NotFound, Some(link)) => Err(format!(
            "settings are behind a link that leads nowhere: {}",
            link.display()
        )),
        (io::ErrorKind::NotFound | io::ErrorKind::NotADirectory, None) => Ok(None),
        (io::ErrorKind::IsADirectory, _) => Err("settings are a directory".to_owned()),
        _ => Err(format!("could not read settings: {error}")),
    }
}

impl Layer {
    /// The value at a dotted path; null counts as absent.
    pub(crate) fn get(&self, path: &str) -> Option<&Value> {
        at(&self.keys, path)
    }

    /// A fault with line and column, as compilers print it; of a YAML file without, since only its parser knows them. Returns `None` for
    /// other complaints and other files.
    pub(crate) fn locate(&self, note: &Diagnostic) -> Option<String> {
        let key = note.fault.as_deref().filter(|_| note.path == self.path)?;
        let is_yaml = self.path.extension().is_some_and(|ext| ext != "json");
        let place = if is_yaml {
            None
        } else if key.is_empty() {
            jsonc::parse(&self.text)
                .err()
                .map_or(Some((1, 1)), |error| Some((error.line(), error.column())))
        } else {
            jsonc::locate(&self.text, key)
        };
        let path = note.path.display();
        // The value used instead does not matter where it stops the start.
        let message = note.message.split("; ").next().unwrap_or_default();
        Some(match place {
            Some((line, column)) => format!("{path}:{line}:{column}: {message}"),
            None => format!("{path}: {message}"),
        })
    }

    /// Old names of today's keys, in memory only (pi-core.md 8.1, last paragraph).
    fn migrate(&mut self) {
        self.rename_top();
        let Some(Value::Object(retry)) = self.keys.get_mut("retry") else {
            return;
        };
        if let Some(delay) = retry.remove("maxDelayMs")
            && let Value::Object(provider) = retry
                .entry("provider")
                .or_insert_with(|| Value::Object(Map::new()))
        {
            provider.entry("maxRetryDelayMs").or_insert(delay);
        }
    }

    fn rename_top(&mut self) {
        if let Some(mode) = self.keys.remove("queueMode") {
            self.keys.entry("steeringMode").or_insert(mode);
        }
        if let Some(Value::Bool(websockets)) = self.keys.get("websockets") {
            let transport = if *websockets { "websocket" } else { "sse" };
            self.keys.remove("websockets");
            self.keys.entry("transport").or_insert_with(|| transport.into());
        }
        if let Some(Value::Object(skills)) = self.keys.get_mut("skills") {
            let commands = skills.remove("enableSkillCommands");
            let directories = skills
                .remove("customDirectories")
                .unwrap_or(Value::Array(Vec::new()));
            self.keys.insert("skills".to_owned(), directories);
            if let Some(commands) = commands {
                self.keys.entry("enableSkillCommands").or_insert(commands);
            }
        }
    }
}

/// Lays `over` on `under`: objects are merged at every depth, everything else is replaced.
pub(crate) fn merge(under: &mut Map<String, Value>, over: &Map<String, Value>) {
    for (key, value) in over {
        match (under.get_mut(key), value) {
            (Some(Value::Object(old)), Value::Object(new)) => merge(old, new),
            (_, new) => {
                under.insert(key.clone(), new.clone());
            }
        }
    }
}
