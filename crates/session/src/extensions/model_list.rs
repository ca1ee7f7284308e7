//! What extensions declare, read without a session: models for `--list-models`, options and tools for the check of a command
//! line.

use std::sync::Arc;

use config::extensions::{Key, find};
use extensions::line::{Opened, Registered as Extension, Source};
use models::{Registrations, Registry};
use serde_json::{Value, json};

use crate::factory::Agent;
use crate::limits;

use super::era;

/// An option that an extension declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredFlag {
    /// The name without dashes.
    pub name: String,
    /// False for a switch.
    pub takes_value: bool,
}

/// What the extensions of a session declare.
#[derive(Debug, Clone, Default)]
pub struct Declared {
    /// Options for the command line.
    pub flags: Vec<DeclaredFlag>,
    /// Names of tools.
    pub tools: Vec<String>,
    /// Extensions that could not be loaded, one sentence each.
    pub problems: Vec<String>,
}

/// Returns true if a session of this agent has extensions.
#[must_use]
pub fn has_extensions(agent: &Agent) -> bool {
    !find(&agent.places(&agent.cwd)).is_empty()
}

/// Loads the extensions that a session of this agent would have, and returns what they declare. Their processes stay for the
/// session.
pub async fn declared(agent: &Agent) -> Declared {
    let (all, mut problems) = load(agent).await;
    problems.extend(all.iter().filter_map(|extension| extension.error.clone()));
    let flags = all.iter().flat_map(|extension| &extension.flags);
    let tools = all.iter().flat_map(|extension| &extension.tools);
    Declared {
        flags: flags
            .map(|flag| DeclaredFlag {
                name: flag.name.clone(),
                takes_value: flag.kind != "boolean",
            })
            .collect(),
        tools: tools.map(|tool| tool.name.clone()).collect(),
        problems,
    }
}

/// Returns the registry with the models of the extensions that a session of this agent would have, and the errors on the
/// way. The processes of the extensions end with the agent.
pub async fn with_extension_models(agent: &Agent) -> (Arc<Registry>, Vec<String>) {
    let (all, mut problems) = load(agent).await;
    let (registry, more) = registered(&agent.registry, &all);
    problems.extend(more);
    (registry, problems)
}

async fn load(agent: &Agent) -> (Vec<Extension>, Vec<String>) {
    let mut keys: Vec<(Key, Vec<Source>)> = Vec::new();
    let (mut all, mut problems) = (Vec::new(), Vec::new());
    for found in find(&agent.places(&agent.cwd)) {
        match found.runs {
            Ok(key) => match keys.iter_mut().find(|(known, _)| *known == key) {
                Some((_, sources)) => sources.push(found.source),
                None => keys.push((key, vec![found.source])),
            },
            Err(error) => problems.push(error),
        }
    }
    // One deadline for all, as in a session: each process more must not make the command longer.
    let deadline = tokio::time::Instant::now() + limits::OPEN_WAIT;
    for (key, sources) in &keys {
        match tokio::time::timeout_at(deadline, opened(agent, key, sources)).await {
            Ok(Ok(opened)) => all.extend(opened.extensions),
            Ok(Err(error)) => problems.push(error),
            Err(_) => {
                let seconds = limits::OPEN_WAIT.as_secs();
                problems.push(format!("The extensions did not load within {seconds} seconds"));
            }
        }
    }
    (all, problems)
}

async fn opened(agent: &Agent, key: &Key, sources: &[Source]) -> Result<Opened, String> {
    let shared = &agent.extensions;
    let path = shared.models_file(None);
    shared
        .write_models(Arc::clone(&agent.registry), path.clone())
        .await;
    let process = shared.process(key).await.map_err(|error| error.to_string())?;
    let session = "models";
    // Their requests are not served here, but they must not delay the answer.
    let mut said = process.attach(session);
    let hearing = tokio::spawn(async move { while said.recv().await.is_some() {} });
    let state = json!({"cwd": agent.cwd.to_string_lossy(), "model": null, "isIdle": true, "hasUI": false, "mode": "print",
        "settings": agent.settings.raw, "modelsFile": path.to_string_lossy()});
    let flags = agent.options.extensions.flags();
    let asking = process.open_session(session, sources, &flags, &state, era(agent));
    let answer = match asking {
        Ok(asking) => asking.await,
        Err(error) => Err(error),
    };
    let _closed = process.close_session(session, "quit").await;
    hearing.abort();
    match answer.map_err(|error| error.to_string())?.value {
        Value::Null => Ok(Opened::default()),
        value => serde_json::from_value(value).map_err(|error| error.to_string()),
    }
}

/// The models that extensions registered, over the known ones.
fn registered(registry: &Arc<Registry>, all: &[Extension]) -> (Arc<Registry>, Vec<String>) {
    let (mut registrations, mut problems) = (Registrations::default(), Vec::new());
    for extension in all {
        problems.extend(extension.error.clone());
        for provider in extension.providers.iter().take(limits::REGISTRATIONS) {
            if let Err(error) = registrations.add(&provider.name, &provider.config) {
                problems.push(error);
            }
        }
    }
    let providers = registrations.into_providers();
    if providers.is_empty() {
        return (Arc::clone(registry), problems);
    }
    (Arc::new(registry.with_registered(providers)), problems)
}
