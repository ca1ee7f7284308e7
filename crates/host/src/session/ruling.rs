//! Rules that watch answers: given to the machine before the first request of a branch (dialects.md 8). Finding them is
//! `resources`' business, matching them `core`'s.

use pinion_core::Change;
use wire::EntryBody;

use super::Session;

impl Session {
    /// Tells the client once what of its files is not in the system prompt.
    pub(super) async fn tell_what_is_left_out(&mut self) {
        for note in self.resources.take_left_out() {
            self.notice("warning", note.to_string()).await;
        }
    }

    /// Makes sure that the machine watches for the rules there are. What is wrong with them is told once.
    pub(super) async fn watch_rules(&mut self) {
        let settings = self.agent.settings.ttsr;
        if self.machine.has_rules() || !settings.enabled {
            return;
        }
        let is_new = !self.resources.has_read_rules();
        let rules = self.resources.rules();
        let branch = self.log.branch(self.log.leaf_id());
        let told = branch.iter().flat_map(|entry| match &entry.body {
            EntryBody::TtsrInjection(body) => body.injected_rules.clone(),
            _ => Vec::new(),
        });
        let change = Change::Rules {
            rules,
            settings: settings.rules,
            told: told.collect(),
        };
        self.step(change.into());
        if is_new {
            for problem in self.resources.rule_problems() {
                self.notice("warning", problem.to_string()).await;
            }
        }
    }
}
