//! Skills and prompt templates that extensions bring (`resources_discover`): asked for when they are loaded, before anything that
//! depends on them goes on.

use std::path::Path;

use config::{ExtraPath, Scope, resolve_path};
use serde_json::{Value, json};

use super::super::Session;
use super::Then;

impl Session {
    /// Asks extensions, which know that the session has begun, what they bring.
    pub(super) fn discover(&mut self) {
        let name = "resources_discover";
        if !self.extensions.hear(name) {
            return self.extensions_are_open();
        }
        // One that is there only now is to be asked, too.
        self.extensions.give_up(|then| matches!(then, Then::Resources));
        let start = self.extensions.state.start();
        let is_reload =
            start.get("reason").and_then(Value::as_str) == Some("reload") || self.extensions.has_restarted();
        let event = json!({
            "type": name,
            "cwd": self.cwd.to_string_lossy(),
            "reason": if is_reload { "reload" } else { "startup" },
        });
        self.ask_extensions(name, &event, Then::Resources);
    }

    pub(super) async fn on_discovered(&mut self, answer: &Value) {
        let skills = self.paths(answer, "skillPaths");
        let prompts = self.paths(answer, "promptPaths");
        if !skills.is_empty() || !prompts.is_empty() {
            self.resources = self.agent.load_more_resources(&self.cwd, skills, prompts);
            self.system_prompt = None;
            self.extensions.state.mark_stale();
        }
        self.extensions_are_open();
    }

    /// Relative ones lie beside the extension that names them.
    fn paths(&self, answer: &Value, member: &str) -> Vec<ExtraPath> {
        let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let home = self.agent.options.resources.home.as_deref();
        let named = answer.get(member).and_then(Value::as_array).into_iter().flatten();
        let named = named.filter_map(|named| {
            let base = text(named, "extensionPath")?;
            let base = Path::new(&base).parent().unwrap_or(&self.cwd).to_path_buf();
            Some(ExtraPath {
                path: resolve_path(&text(named, "path")?, &base, home),
                scope: Scope::Temporary,
            })
        });
        named.collect()
    }
}
