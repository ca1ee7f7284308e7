//! The connection of a session to one process with extensions: what it loads and how far it has come.

use std::collections::HashSet;

use config::extensions::Key;
use extensions::ProcessMessage;
use extensions::line::{Opened, Registered, Source};
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// A process of a session's extensions.
pub(super) struct Link {
    pub(super) key: Key,
    /// The extensions that it loads, in order.
    pub(super) sources: Vec<Source>,
    /// Paths of the extensions that it was requested to load.
    pub(super) requested: HashSet<String>,
    /// Its messages about the session.
    pub(super) messages: Option<mpsc::Receiver<ProcessMessage>>,
    pub(super) progress: Progress,
    /// The `session_start` event for it.
    pub(super) start: Value,
    /// Number of entries that it was sent because no file has them.
    pub(super) entries: usize,
    /// One of its extensions checked calls when the process was last loaded.
    pub(super) guards: bool,
}

/// How far a process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// It is being started, or loads its extensions.
    Loading,
    /// It has loaded; trust in the project is not decided yet.
    Loaded,
    /// Its extensions handle `session_start`.
    Starting,
    /// Its extensions have handled `session_start`.
    Ready,
    /// It cannot be started.
    Unavailable,
}

impl Link {
    pub(super) fn new(key: Key, start: Value) -> Self {
        Self {
            key,
            sources: Vec::new(),
            requested: HashSet::new(),
            messages: None,
            progress: Progress::Loading,
            start,
            entries: 0,
            guards: false,
        }
    }

    /// The extensions that it was not requested to load yet.
    pub(super) fn unrequested(&self) -> Vec<Source> {
        let sources = self.sources.iter();
        let unrequested = sources.filter(|source| !self.requested.contains(&source.path));
        unrequested.cloned().collect()
    }

    /// The paths of the extensions that it loads.
    pub(super) fn paths(&self) -> Vec<String> {
        self.sources.iter().map(|source| source.path.clone()).collect()
    }

    /// Returns true if an extension with this key belongs to the process. The command of a program may change with its file.
    pub(super) fn runs(&self, key: &Key) -> bool {
        match (&self.key, key) {
            (Key::Program(one), Key::Program(other)) => one.path == other.path,
            (one, other) => one == other,
        }
    }

    /// Returns true if the process was started again after its end.
    pub(super) fn is_restarted(&self) -> bool {
        self.start.get("reason") == Some(&json!("reload"))
    }

    /// The registrations in its answer to `open`. A program is one extension.
    pub(super) fn opened(&self, opened: Opened) -> Vec<Registered> {
        if self.key == Key::TypeScript {
            return opened.extensions;
        }
        let registered = opened.extensions.into_iter().next().unwrap_or_default();
        vec![self.completed(registered)]
    }

    /// A registration with what a program need not say itself. It is known by the path of its file and not by a path that it
    /// sends.
    pub(super) fn completed(&self, mut registered: Registered) -> Registered {
        if let Key::Program(program) = &self.key {
            registered.path = program.path.to_string_lossy().into_owned();
            // Then `extension.json` may name them (docs/reference/extension-protocol.md).
            if registered.events.is_empty() {
                registered.events.clone_from(&program.events);
            }
        }
        registered
    }
}
