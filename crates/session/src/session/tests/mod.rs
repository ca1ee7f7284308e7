//! The components of a session, each without a session around it.

mod attachments;
mod cache_warming;
mod compaction;
mod conversation;
mod deferred;
mod driver;
mod export;
mod extension_parts;
mod factory;
mod fallbacks;
mod file_search;
mod model_choice;
mod outline;
mod prompts;
mod queue;
mod remote_shells;
mod run_limits;
mod running_turn;
mod session_change;
mod session_core;
mod session_file;
mod session_list;
mod stage;
mod storage;
mod subagents;
mod summaries;
mod todos;
mod trust;
mod user_shells;
mod view;

use std::path::Path;
use std::sync::Arc;

use models::Start;
use serde_json::{Value, json};
use store::SessionLog;
use tokio::sync::mpsc;
use wire::state::Durability;
use wire::{Message, Model, ThinkingLevel};

use super::conversation::Conversation;
use super::model_choice::ModelChoice;
use super::storage::Storage;
use crate::outbox::Outgoing;

/// A model that can reason, or not.
fn model(id: &str, reasoning: bool) -> Model {
    let model = json!({
        "id": id,
        "name": id,
        "api": "openai-completions",
        "provider": "test",
        "reasoning": reasoning,
        "contextWindow": 1000,
        "maxTokens": 100,
    });
    serde_json::from_value(model).unwrap()
}

fn choice(model: Model, thinking: ThinkingLevel) -> ModelChoice {
    ModelChoice::new(Start {
        model,
        thinking,
        scope: Vec::new(),
        warnings: Vec::new(),
    })
}

/// A log in memory, or in a file.
fn log(path: Option<&Path>) -> SessionLog {
    let header = store::new_header("/", None);
    SessionLog::create(path.map(Path::to_path_buf), header).unwrap()
}

fn conversation(path: Option<&Path>) -> Conversation {
    let log = Storage::new(log(path), Durability::default());
    let choice = choice(model("a", true), ThinkingLevel::Medium);
    Conversation::new(log, choice, 0, true)
}

fn user(text: &str) -> Arc<Message> {
    Arc::new(Message::user(text, 1))
}

/// The events that were sent, as JSON.
fn events(sent: &mut mpsc::Receiver<Outgoing>) -> Vec<Value> {
    let mut events = Vec::new();
    while let Ok(outgoing) = sent.try_recv() {
        if let Outgoing::Event(event) = outgoing {
            events.push(serde_json::to_value(&*event).unwrap());
        }
    }
    events
}

/// The types of the entries of a log.
fn kinds(log: &SessionLog) -> Vec<&str> {
    log.entries().iter().map(|entry| entry.body.kind()).collect()
}
