//! The models that extensions bring, for a list that is made without a session (`--list-models`).

use std::sync::Arc;

use door::line::{Opened, Source};
use llm::registry::{Registered, Registry};
use serde_json::json;

use crate::agent::Agent;
use crate::limits;

use super::{era, find};

/// The registry with the models of the extensions that a session of this agent would have, and what was wrong on the way. The
/// process is started for it, if there are any, and ends with the agent.
pub async fn with_extension_models(agent: &Agent) -> (Arc<Registry>, Vec<String>) {
    let sources: Vec<Source> = find(agent, &agent.cwd)
        .into_iter()
        .map(|found| found.source)
        .collect();
    if sources.is_empty() {
        return (Arc::clone(&agent.registry), Vec::new());
    }
    match tokio::time::timeout(limits::OPEN_WAIT, opened(agent, &sources)).await {
        Ok(Ok(opened)) => registered(&agent.registry, &opened),
        Ok(Err(error)) => (Arc::clone(&agent.registry), vec![error]),
        Err(_) => {
            let error = "The extensions take too long to load; their models are not in the list".to_owned();
            (Arc::clone(&agent.registry), vec![error])
        }
    }
}

async fn opened(agent: &Agent, sources: &[Source]) -> Result<Opened, String> {
    let shared = &agent.extensions;
    let path = shared.models_file(None);
    shared
        .write_models(Arc::clone(&agent.registry), path.clone())
        .await;
    let door = shared.door().await.map_err(|error| error.to_string())?;
    let session = "models";
    // What they say and want is nobody's business here, but it must not stand in the way of the answer.
    let mut said = door.attach(session);
    let hearing = tokio::spawn(async move { while said.recv().await.is_some() {} });
    let state = json!({"cwd": agent.cwd.to_string_lossy(), "model": null, "isIdle": true, "hasUI": false, "mode": "print",
        "settings": agent.settings.raw, "modelsFile": path.to_string_lossy()});
    let flags = agent.options.extensions.flags();
    let asking = door.open_session(session, sources, &flags, &state, era(agent));
    let answer = match asking {
        Ok(asking) => asking.await,
        Err(error) => Err(error),
    };
    let _closed = door.close_session(session, "quit").await;
    hearing.abort();
    let value = answer.map_err(|error| error.to_string())?.value;
    serde_json::from_value(value).map_err(|error| error.to_string())
}

fn registered(registry: &Registry, opened: &Opened) -> (Arc<Registry>, Vec<String>) {
    let (mut providers, mut problems): (Vec<Registered>, Vec<String>) = (Vec::new(), Vec::new());
    for extension in &opened.extensions {
        problems.extend(extension.error.clone());
        for provider in extension.providers.iter().take(limits::REGISTRATIONS) {
            match Registered::parse(&provider.name, &provider.config) {
                Ok(parsed) => {
                    providers.retain(|known| known.id() != parsed.id());
                    providers.push(parsed);
                }
                Err(error) => problems.push(error),
            }
        }
    }
    (Arc::new(registry.with_registered(providers)), problems)
}
