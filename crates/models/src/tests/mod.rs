//! Tests of the registry. Here: the workshop that builds one from texts.

mod catalogue;
mod choosing;
mod credentials;
mod goldens;
mod keys;
mod local;
mod models_json;
mod providers;
mod registered;
mod snapshot;
mod text;

use std::collections::HashMap;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::local::LocalSources;
use crate::{Registry, Sources};

/// Variables of a made-up environment.
pub(super) type Vars<'a> = &'a [(&'a str, &'a str)];

/// A registry in a folder of its own.
pub(super) struct Shop {
    pub(super) registry: Registry,
    /// What the registry was made from.
    pub(super) sources: Sources,
    pub(super) folder: tempfile::TempDir,
    /// How many commands were run.
    pub(super) commands: Arc<AtomicUsize>,
}

impl Shop {
    pub(super) fn commands(&self) -> usize {
        self.commands.load(Ordering::SeqCst)
    }
}

/// `models` and `auth` are file texts, empty for no file. The command `fail` gives nothing, any other its own text.
pub(super) fn shop(models: &str, auth: &str, env: Vars<'_>) -> Shop {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("models.json", models), ("auth.json", auth)] {
        if !text.is_empty() {
            fs::write(folder.path().join(name), text).unwrap();
        }
    }
    let env: HashMap<String, String> = env
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect();
    let commands = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&commands);
    let sources = Sources {
        agent_dir: folder.path().to_owned(),
        env: Arc::new(move |name| env.get(name).cloned()),
        run: Arc::new(move |command| {
            counter.fetch_add(1, Ordering::SeqCst);
            (command != "fail").then(|| command.to_owned())
        }),
        local: LocalSources::default(),
        is_omp: false,
    };
    Shop {
        registry: Registry::new(sources.clone()),
        sources,
        folder,
        commands,
    }
}

/// `provider/id` of each.
pub(super) fn names(models: &[&wire::Model]) -> Vec<String> {
    models
        .iter()
        .map(|model| format!("{}/{}", model.provider, model.id))
        .collect()
}

/// The providers of the recorded transcripts.
pub(super) const MOCKS: &str = r#"{"providers": {
  "mock-anthropic": {"baseUrl": "http://mock/anthropic", "api": "anthropic-messages", "apiKey": "mock-key", "models": [
    {"id": "claude-mock", "name": "Claude Mock", "reasoning": true, "input": ["text", "image"], "contextWindow": 200000,
     "maxTokens": 32000, "cost": {"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75}},
    {"id": "claude-plain", "name": "Claude Plain", "reasoning": false, "input": ["text"], "contextWindow": 100000,
     "maxTokens": 4096, "cost": {"input": 1, "output": 2, "cacheRead": 0.1, "cacheWrite": 0.5}}]},
  "mock-openai": {"baseUrl": "http://mock/openai/v1", "api": "openai-completions", "apiKey": "mock-key", "models": [
    {"id": "gpt-mock", "name": "GPT Mock", "reasoning": true, "input": ["text", "image"]}]},
  "mock-responses": {"baseUrl": "http://mock/responses/v1", "api": "openai-responses", "apiKey": "mock-key", "models": [
    {"id": "resp-mock", "name": "Responses Mock", "reasoning": true, "thinkingLevelMap": {"xhigh": "xhigh"}}]},
  "mock-google": {"baseUrl": "http://mock/google/v1beta", "api": "google-generative-ai", "apiKey": "mock-key", "models": [
    {"id": "gemini-mock", "name": "Gemini Mock", "reasoning": true, "contextWindow": 1e6, "maxTokens": 65536.0}]}
}}"#;
