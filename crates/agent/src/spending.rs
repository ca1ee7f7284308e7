//! What a session cost, by model: everything that is in its file, on all branches, before and after compactions. `stats` counts
//! the current context.

use std::sync::Arc;

use serde_json::Value;
use wire::state::{ModelSpending, TokenStats};
use wire::{Entry, EntryBody, Message, Usage};

/// Counts and costs of a session's entries by model, in the order of first use. Summaries, and work that tools gave to
/// models, count for the model in use at that point unless they name their own.
#[must_use]
pub fn by_model(entries: &[Arc<Entry>]) -> Vec<ModelSpending> {
    let mut spending = Spending::default();
    for entry in entries {
        spending.entry(&entry.body);
    }
    spending.models
}

/// Tokens and cost of a session's entries, of all models.
#[must_use]
pub fn total(entries: &[Arc<Entry>]) -> (TokenStats, f64) {
    let (mut tokens, mut cost) = (TokenStats::default(), 0.0);
    for spent in by_model(entries) {
        for (sum, count) in [
            (&mut tokens.input, spent.tokens.input),
            (&mut tokens.output, spent.tokens.output),
            (&mut tokens.cache_read, spent.tokens.cache_read),
            (&mut tokens.cache_write, spent.tokens.cache_write),
            (&mut tokens.total, spent.tokens.total),
            (&mut tokens.reasoning, spent.tokens.reasoning),
        ] {
            *sum = sum.saturating_add(count);
        }
        cost += spent.cost;
    }
    (tokens, cost)
}

#[derive(Default)]
struct Spending {
    models: Vec<ModelSpending>,
    provider: String,
    model: String,
}

impl Spending {
    fn entry(&mut self, body: &EntryBody) {
        match body {
            EntryBody::ModelChange(change) => {
                if let Some((provider, model)) = change.target() {
                    self.now_uses(provider, model);
                }
            }
            EntryBody::Message(entry) => match entry.message.as_ref() {
                // The mark of an abort before any answer names no model and took nothing.
                Message::Assistant(answer) if answer.model.is_empty() => {}
                Message::Assistant(answer) => {
                    self.now_uses(&answer.provider, &answer.model);
                    self.add(&answer.usage, 1);
                }
                Message::ToolResult(result) => {
                    // Requests that the tool made itself (`Batch::results`, pi-1.5-delta.md 3).
                    if let Some(usage) = result.extra.get("usage") {
                        self.add_value(usage);
                    }
                }
                _ => {}
            },
            EntryBody::Compaction(compaction) => self.add_some(compaction.usage.as_ref()),
            EntryBody::BranchSummary(summary) => self.add_some(summary.usage.as_ref()),
            // pi-1.5-delta.md 3: counts in totals, never in the context.
            EntryBody::Other(map) if body.kind() == "usage" => {
                let text = |key: &str| map.get(key).and_then(Value::as_str);
                let before = (self.provider.clone(), self.model.clone());
                if let (Some(provider), Some(model)) = (text("provider"), text("model")) {
                    self.now_uses(provider, model);
                }
                if let Some(usage) = map.get("usage") {
                    self.add_value(usage);
                }
                // Such a request does not change the model of the conversation.
                (self.provider, self.model) = before;
            }
            _ => {}
        }
    }

    fn now_uses(&mut self, provider: &str, model: &str) {
        provider.clone_into(&mut self.provider);
        model.clone_into(&mut self.model);
    }

    fn add_some(&mut self, usage: Option<&Usage>) {
        if let Some(usage) = usage {
            self.add(usage, 0);
        }
    }

    fn add_value(&mut self, usage: &Value) {
        if let Ok(usage) = serde_json::from_value::<Usage>(usage.clone()) {
            self.add(&usage, 0);
        }
    }

    fn add(&mut self, usage: &Usage, answers: usize) {
        let known = self
            .models
            .iter_mut()
            .find(|known| known.provider == self.provider && known.model == self.model);
        let spent = match known {
            Some(spent) => spent,
            None => self.models.push_mut(ModelSpending {
                provider: self.provider.clone(),
                model: self.model.clone(),
                answers: 0,
                tokens: TokenStats::default(),
                cost: 0.0,
            }),
        };
        spent.answers += answers;
        let tokens = &mut spent.tokens;
        // Saturating, since counts come from files (test `huge_token_counts_do_not_overflow`).
        let add = |sum: &mut u64, count: u64| *sum = sum.saturating_add(count);
        add(&mut tokens.input, usage.input);
        add(&mut tokens.output, usage.output);
        add(&mut tokens.cache_read, usage.cache_read);
        add(&mut tokens.cache_write, usage.cache_write);
        add(&mut tokens.reasoning, usage.reasoning.unwrap_or_default());
        // The sum of the parts, since `totalTokens` may be 0 (pi-core.md 3.2).
        for count in [usage.input, usage.output, usage.cache_read, usage.cache_write] {
            add(&mut tokens.total, count);
        }
        spent.cost += usage.cost.total;
    }
}
