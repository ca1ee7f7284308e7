//! What the processes of extensions know of the session: sent whole when they are loaded, later only what changed, right before
//! a line that may need it.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};

use serde_json::{Map, Value};

/// The state as it was sent.
#[derive(Debug)]
pub(crate) struct SentState {
    /// The hash of each member. The members themselves, with all tools and the system prompt, would take 20 KB in each session.
    members: HashMap<String, u64>,
    hasher: RandomState,
    /// Tools, commands or the system prompt may have changed.
    is_stale: bool,
}

impl Default for SentState {
    fn default() -> Self {
        Self {
            members: HashMap::new(),
            hasher: RandomState::new(),
            is_stale: true,
        }
    }
}

impl SentState {
    /// The processes know nothing any more.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Members that are costly to compute may have changed.
    pub(crate) fn mark_stale(&mut self) {
        self.is_stale = true;
    }

    /// Returns true once if members that are costly to compute may have changed.
    pub(crate) fn take_stale(&mut self) -> bool {
        std::mem::take(&mut self.is_stale)
    }

    /// An extension calls a method. Its process goes on at once with the value that it has asked for. The session may choose another
    /// one, or refuse it, so the member is sent again even if it has not changed.
    pub(crate) fn forget_assumed(&mut self, method: &str) {
        match method {
            "setActiveTools" => self.forget_member("activeTools"),
            "setThinkingLevel" => self.forget_member("thinkingLevel"),
            "setSessionName" => self.forget_member("sessionName"),
            _ => {}
        }
    }

    /// The processes may have another value of a member than the one sent.
    pub(crate) fn forget_member(&mut self, name: &str) {
        self.members.remove(name);
    }

    /// Takes members, and returns the members that differ from the last ones sent.
    pub(crate) fn update(&mut self, members: Map<String, Value>) -> Map<String, Value> {
        let mut changed = Map::new();
        for (name, value) in members {
            let hash = self.hasher.hash_one(&value);
            if self.members.get(&name) != Some(&hash) {
                self.members.insert(name.clone(), hash);
                changed.insert(name, value);
            }
        }
        changed
    }

    /// Takes the whole state.
    pub(crate) fn replace(&mut self, members: &Map<String, Value>) {
        let hashed = members
            .iter()
            // The whole state was computed just now, the costly members included.
            .map(|(name, value)| (name.clone(), self.hasher.hash_one(value)));
        self.members = hashed.collect();
        self.is_stale = false;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::SentState;

    fn members(value: Value) -> Map<String, Value> {
        super::super::members(value)
    }

    #[test]
    fn sent_state_returns_changed_members_only() {
        let mut state = SentState::default();
        assert!(state.take_stale() && !state.take_stale());
        state.replace(&members(json!({"cwd": "/a", "isIdle": true, "tools": []})));
        let changed = state.update(members(json!({"cwd": "/a", "isIdle": false})));
        assert_eq!(changed, members(json!({"isIdle": false})));
        assert!(
            state
                .update(members(json!({"isIdle": false, "tools": []})))
                .is_empty()
        );
        state.forget();
        assert!(state.take_stale());
        assert_eq!(
            state.update(members(json!({"cwd": "/a"}))),
            members(json!({"cwd": "/a"}))
        );
    }

    #[test]
    fn members_that_extensions_set_are_sent_again() {
        let whole = members(json!({
            "activeTools": ["read"],
            "thinkingLevel": "high",
            "sessionName": null,
            "cwd": "/a",
        }));
        let mut state = SentState::default();
        state.replace(&whole);
        for (method, member) in [
            ("setActiveTools", Some("activeTools")),
            ("setThinkingLevel", Some("thinkingLevel")),
            ("setSessionName", Some("sessionName")),
            ("setLabel", None),
        ] {
            state.forget_assumed(method);
            let sent = state.update(whole.clone());
            assert_eq!(sent.keys().next().map(String::as_str), member, "{method}");
            assert!(
                sent.len() <= 1 && state.update(whole.clone()).is_empty(),
                "{method}"
            );
        }
    }
}
