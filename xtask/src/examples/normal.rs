//! Makes two recordings of the same session the same: paths, ids, times, the port of the scripted model and the random parameters
//! of a login are replaced by fixed ones, equal by equal. Nothing else of a line is touched.

use std::collections::BTreeMap;

use anyhow::Result;
use regex::{Captures, Regex};
use serde_json::{Value, json};
use testkit::workspace::Workspace;

/// Milliseconds that stand for every time.
const TIME: i64 = 1_767_225_600_000;
/// Members that are times.
const TIMES: [&str; 1] = ["timestamp"];
/// Members that are durations in milliseconds.
const DURATIONS: [&str; 2] = ["durationMs", "silentMs"];
/// The member that is a duration in seconds, with one decimal: a busy machine changes it as well.
const SECONDS: &str = "wall_time_seconds";

/// The replacements so far.
pub(super) struct Normal {
    /// Fixed texts and what they become, longest first.
    texts: Vec<(String, &'static str)>,
    patterns: Patterns,
    ids: BTreeMap<String, String>,
    sessions: BTreeMap<String, String>,
}

struct Patterns {
    session: Regex,
    entry: Regex,
    time: Regex,
    /// Random parameters of a login page.
    random: Regex,
}

impl Normal {
    /// For the recordings of this workspace and model server.
    pub(super) fn new(workspace: &Workspace, url: &str) -> Result<Self> {
        let cwd = workspace.cwd().to_string_lossy().into_owned();
        let dashes = format!("--{}--", cwd.trim_start_matches('/').replace('/', "-"));
        let texts = vec![
            (dashes, "--home-user-project--"),
            (
                workspace.agent_dir().to_string_lossy().into_owned(),
                "/home/user/.pi/agent",
            ),
            (cwd, "/home/user/project"),
            (workspace.tmp().to_string_lossy().into_owned(), "/tmp"),
            (workspace.home().to_string_lossy().into_owned(), "/home/user"),
            (url.to_owned(), "https://llm.example"),
        ];
        Ok(Self {
            texts,
            patterns: Patterns {
                session: Regex::new("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")?,
                entry: Regex::new("^[0-9a-f]{8}$")?,
                time: Regex::new(r"\d{4}-\d\d-\d\dT\d\d([:-])\d\d[:-]\d\d([.-])\d{3}Z")?,
                random: Regex::new(r"\b(state|code_challenge)=[\w-]+")?,
            },
            ids: BTreeMap::new(),
            sessions: BTreeMap::new(),
        })
    }

    /// The line with everything replaced.
    pub(super) fn line(&mut self, mut line: Value) -> Value {
        self.walk("", &mut line);
        line
    }

    fn walk(&mut self, key: &str, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Number(_) if TIMES.contains(&key) => *value = json!(TIME),
            Value::Number(_) if DURATIONS.contains(&key) => *value = json!(3),
            Value::Number(_) if key == SECONDS => *value = json!(0.3),
            Value::Array(items) => items.iter_mut().for_each(|item| self.walk(key, item)),
            Value::Object(map) => map.iter_mut().for_each(|(key, item)| self.walk(key, item)),
            _ => {}
        }
    }

    fn text(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for (from, to) in &self.texts {
            text = text.replace(from, to);
        }
        if self.patterns.entry.is_match(&text) {
            let next = self.ids.len() + 1;
            let id = self.ids.entry(text).or_insert_with(|| format!("a0b1c{next:03x}"));
            return id.clone();
        }
        let times = self.patterns.time.replace_all(&text, |found: &Captures<'_>| {
            match found.get(1).map(|colon| colon.as_str()) {
                Some("-") => "2026-01-01T00-00-00-000Z",
                _ => "2026-01-01T00:00:00.000Z",
            }
        });
        let times = self.patterns.random.replace_all(&times, "$1=random");
        let sessions = &mut self.sessions;
        let text = self.patterns.session.replace_all(&times, |found: &Captures<'_>| {
            let next = sessions.len() + 1;
            let id = found.get(0).map(|id| id.as_str().to_owned()).unwrap_or_default();
            let known = sessions
                .entry(id)
                .or_insert_with(|| format!("019b7a2c-5000-7000-8000-{next:012x}"));
            known.clone()
        });
        text.into_owned()
    }
}
