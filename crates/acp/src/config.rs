//! Configuration options of a session: permission mode, model and thinking level. Older clients get the permission mode as a
//! session mode, too.

use serde_json::{Value, json};
use wire::ThinkingLevel;
use wire::model::Model;
use wire::state::{PermissionMode, SessionState as State};

/// Ids of the options.
pub(crate) const MODE: &str = "mode";
pub(crate) const MODEL: &str = "model";
pub(crate) const LEVEL: &str = "thought_level";

/// What the options of a session are now.
#[derive(Debug, Default)]
pub(crate) struct Config {
    pub(crate) mode: PermissionMode,
    model: Option<Choice>,
    level: ThinkingLevel,
    pub(crate) levels: Vec<ThinkingLevel>,
    models: Vec<Choice>,
    /// The fallback model that answers until the session settles.
    pub(crate) fallback: Option<String>,
    /// The list that the client got last.
    pub(crate) told: Value,
    /// The mode that the client knows.
    pub(crate) told_mode: PermissionMode,
}

/// A model that can be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Choice {
    /// Provider and id with a slash.
    value: String,
    name: String,
}

impl Choice {
    fn of(model: &Model) -> Self {
        Self {
            value: format!("{}/{}", model.provider, model.id),
            name: format!("{} ({})", model.name, model.provider),
        }
    }
}

impl Config {
    pub(crate) fn read_state(&mut self, state: &State) {
        self.mode = state.permission_mode;
        self.level = state.thinking_level;
        self.model = state.model.as_ref().map(Choice::of);
    }

    pub(crate) fn read_models(&mut self, models: &[Model]) {
        self.models = models.iter().map(Choice::of).collect();
    }

    /// Returns true until the models were read.
    pub(crate) fn has_no_models(&self) -> bool {
        self.models.is_empty()
    }

    /// The complete list of options.
    pub(crate) fn options(&self) -> Value {
        let mut options = vec![select(MODE, "Permissions", self.mode.as_str(), modes("value"))];
        if let Some(model) = &self.model {
            let mut models = self.models.clone();
            if !models.contains(model) {
                models.insert(0, model.clone());
            }
            let current = self.fallback.as_ref().unwrap_or(&model.value);
            if !models.iter().any(|model| model.value == *current) {
                let (value, name) = (current.clone(), current.clone());
                models.insert(0, Choice { value, name });
            }
            let models = models.iter();
            let models = models.map(|model| json!({"value": model.value, "name": model.name}));
            options.push(select(MODEL, "Model", current, models.collect()));
        }
        let mut levels = self.levels.clone();
        if !levels.contains(&self.level) {
            levels.push(self.level);
        }
        let levels = levels.iter().map(|level| level.as_str());
        let levels = levels.map(|level| json!({"value": level, "name": level}));
        options.push(select(LEVEL, "Thinking", self.level.as_str(), levels.collect()));
        options.into()
    }

    /// The permission modes as session modes.
    pub(crate) fn modes(&self) -> Value {
        json!({"currentModeId": self.mode.as_str(), "availableModes": modes("id")})
    }
}

fn select(id: &str, name: &str, value: &str, options: Vec<Value>) -> Value {
    json!({
        "id": id,
        "name": name,
        // acplint 0.1 reads this member in place of the name.
        "label": name,
        "category": id,
        "type": "select",
        "currentValue": value,
        "options": options,
    })
}

/// The permission modes; `id` is the name of the member with the word.
fn modes(id: &str) -> Vec<Value> {
    let modes = PermissionMode::ALL.into_iter().map(|mode| {
        let (name, description) = match mode {
            PermissionMode::Off => ("Off", "All calls run; permission rules are ignored"),
            PermissionMode::Auto => (
                "Auto",
                "All calls run, except calls that a rule denies or asks about",
            ),
            PermissionMode::Ask => (
                "Ask",
                "Calls that only read or that a rule allows run; the others are asked about",
            ),
            PermissionMode::ReadOnly => (
                "Read only",
                "Calls that only read and commands that a rule allows run; the others are denied",
            ),
        };
        json!({id: mode.as_str(), "name": name, "description": description})
    });
    modes.collect()
}
