//! The settings files as they lie on disk: reading them, bringing old keys up to date, leaving out what an untrusted
//! project must not decide, and looking keys up. What the keys mean is `mod`'s business.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::resources::text_file::read_if_there;
use crate::resources::{Diagnostic, Scope};
use crate::settings::{jsonc, limits};

/// Keys of a project's file that can run code, send data elsewhere or write elsewhere (DESIGN.md, safety defaults).
const TRUSTED_ONLY: [&str; 13] = [
    "shellPath",
    "shellCommandPrefix",
    "npmCommand",
    "packages",
    "extensions",
    "hooks",
    "customTools",
    "mcp",
    "mcpServers",
    "codemode",
    "selfUpdateCommand",
    "httpProxy",
    "sessionDir",
];

/// One settings file.
#[derive(Debug, Clone)]
pub(crate) struct Layer {
    pub(crate) path: PathBuf,
    pub(crate) scope: Scope,
    pub(crate) keys: Map<String, Value>,
}

/// Reads one file. A missing file is an empty layer, a broken one too, with a complaint.
pub(crate) fn read(path: PathBuf, scope: Scope, notes: &mut Vec<Diagnostic>) -> Layer {
    let keys = match parse_file(&path) {
        Ok(keys) => keys,
        Err(message) => {
            notes.push(Diagnostic::new(&path, format!("{message}; using defaults")));
            Map::new()
        }
    };
    let mut layer = Layer { path, scope, keys };
    layer.migrate();
    layer
}

fn parse_file(path: &Path) -> Result<Map<String, Value>, String> {
    let Some(text) =
        read_if_there(path, limits::FILE_BYTES).map_err(|e| format!("could not read settings: {e}"))?
    else {
        return Ok(Map::new());
    };
    if text.cut {
        return Err(format!(
            "settings are longer than {} KiB",
            limits::FILE_BYTES / 1024
        ));
    }
    match jsonc::parse(&text.text) {
        Ok(Value::Object(keys)) => Ok(keys),
        Ok(_) => Err("settings are not a JSON object".to_owned()),
        Err(error) => Err(format!("settings are not valid JSON: {error}")),
    }
}

impl Layer {
    /// The value at a dotted path; null counts as absent.
    pub(crate) fn get(&self, path: &str) -> Option<&Value> {
        let mut parts = path.split('.');
        let first = self.keys.get(parts.next()?)?;
        parts
            .try_fold(first, |value, part| value.get(part))
            .filter(|value| !value.is_null())
    }

    /// Takes out what only a trusted project may set.
    pub(crate) fn leave_out_untrusted(&mut self, notes: &mut Vec<Diagnostic>) {
        for key in TRUSTED_ONLY {
            if self.keys.remove(key).is_some() {
                let message = format!("\"{key}\" is left out: the project is not trusted (see --approve)");
                notes.push(Diagnostic::new(&self.path, message));
            }
        }
    }

    /// Old names of today's keys, in memory only (pi-core.md 8.1, last paragraph).
    fn migrate(&mut self) {
        if let Some(mode) = self.keys.remove("queueMode") {
            self.keys.entry("steeringMode").or_insert(mode);
        }
        if let Some(Value::Object(skills)) = self.keys.get("skills") {
            let directories = skills
                .get("customDirectories")
                .cloned()
                .unwrap_or(Value::Array(Vec::new()));
            self.keys.insert("skills".to_owned(), directories);
        }
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
