//! What must hold for any branch: plans are valid, tool calls stay with their results, nothing is lost or told twice.

use std::collections::HashSet;
use std::sync::Arc;

use pinion_agent::compaction::{Plan, Refusal, finish, plan, requests};
use pinion_agent::stats::estimate;
use proptest::prelude::*;
use serde_json::json;
use wire::{Entry, EntryBody, Message};

use crate::common::{Branch, answer, call, keep, name, names, result, user};

/// One thing that happens to a session.
#[derive(Debug, Clone)]
enum Step {
    User(usize),
    Says(usize),
    /// An answer with that many calls, the size of their results, and the text between them.
    Tools(usize, usize, Option<usize>),
    Setting,
    Note(usize),
    Bash(usize, bool),
    Failed,
    BranchSummary(usize),
    Compact(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let size = 1..60_usize;
    prop_oneof![
        3 => size.clone().prop_map(Step::User),
        3 => size.clone().prop_map(Step::Says),
        3 => (1..4_usize, size.clone(), proptest::option::of(1..30_usize)).prop_map(|(n, s, b)| Step::Tools(n, s, b)),
        2 => Just(Step::Setting),
        1 => size.clone().prop_map(Step::Note),
        1 => (size.clone(), any::<bool>()).prop_map(|(size, hidden)| Step::Bash(size, hidden)),
        1 => Just(Step::Failed),
        1 => size.prop_map(Step::BranchSummary),
        2 => (0..120_u64).prop_map(Step::Compact),
    ]
}

/// A session that is compacted now and then, and what its summaries were made of.
#[derive(Default)]
struct World {
    branch: Branch,
    calls: usize,
    summarised: Vec<String>,
    summary: Option<String>,
}

impl World {
    /// A text of that many tokens that begins with a word of its own.
    fn text(&self, size: usize) -> String {
        format!("m{} {}", self.branch.0.len(), "abc ".repeat(size))
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::User(size) => drop(self.branch.push(user(&self.text(size)))),
            Step::Says(size) => self.say(size, "stop"),
            Step::Failed => self.say(3, "error"),
            Step::Tools(count, size, between) => self.tools(count, size, between),
            Step::Setting => {
                self.branch
                    .push(json!({"type": "label", "targetId": "e0", "label": "x"}));
            }
            Step::Note(size) => self.note(size),
            Step::Bash(size, hidden) => {
                let text = self.text(size);
                self.branch.push(
                    json!({"type": "message", "message": {"role": "bashExecution", "command": text,
                    "output": "", "excludeFromContext": hidden}}),
                );
            }
            Step::BranchSummary(size) => {
                let text = self.text(size);
                self.branch
                    .push(json!({"type": "branch_summary", "fromId": "x", "summary": text}));
            }
            Step::Compact(budget) => self.compact(budget),
        }
    }

    fn say(&mut self, size: usize, stop: &str) {
        let content = json!([{"type": "text", "text": self.text(size)}]);
        self.branch.push(answer(&content, stop, 0));
    }

    fn note(&mut self, size: usize) {
        let text = self.text(size);
        self.branch
            .push(json!({"type": "custom_message", "customType": "x", "content": text}));
    }

    fn tools(&mut self, count: usize, size: usize, between: Option<usize>) {
        let first = self.calls;
        self.calls += count;
        let calls: Vec<_> = (first..self.calls)
            .map(|n| call(n, "read", json!({"path": format!("f{n}")})))
            .collect();
        self.branch.push(answer(&json!(calls), "toolUse", 0));
        for n in first..self.calls {
            if let Some(size) = between {
                self.note(size);
            }
            self.branch.push(result(n, &self.text(size)));
        }
    }

    fn compact(&mut self, budget: u64) {
        match plan(&self.branch.0, keep(budget)) {
            Ok(plan) => self.carry_out(&plan, budget),
            Err(Refusal::AlreadyCompacted) => {
                let last = self.branch.0.last().unwrap();
                assert!(matches!(last.body, EntryBody::Compaction(_)));
            }
            Err(refusal) => assert_eq!(refusal, Refusal::NothingToCompact),
        }
    }

    fn carry_out(&mut self, plan: &Plan, budget: u64) {
        let entries = &self.branch.0;
        let at = entries
            .iter()
            .position(|entry| entry.id == plan.first_kept_entry_id)
            .unwrap();
        assert!(!matches!(entries[at].body, EntryBody::Compaction(_)));
        check_pairs(&entries[..at], &entries[at..]);

        // Summaries cover the branch from its beginning, in order, without gap and without repeats.
        self.summarised.extend(names(&plan.history));
        self.summarised.extend(names(&plan.turn_prefix));
        assert_eq!(self.summarised, said(&entries[..at]));
        assert!(
            plan.turn_prefix
                .first()
                .is_none_or(|m| !matches!(**m, Message::Assistant(_) | Message::ToolResult(_)))
        );

        let asked = requests(plan, None);
        let answers: Vec<_> = (0..asked.len())
            .map(|n| format!("S{}-{n}", entries.len()))
            .collect();
        let done = finish(plan, answers.clone()).unwrap();
        assert!(answers.iter().all(|answer| done.entry.summary.contains(answer)));
        if let Some(previous) = &self.summary {
            let told = asked.iter().any(|request| request.user_text.contains(previous));
            assert!(told || done.entry.summary.contains(previous), "summary lost");
        }
        check_budget(plan, &entries[at..], budget);
        let mut body = serde_json::to_value(&done.entry).unwrap();
        body["type"] = json!("compaction");
        self.branch.push(body);
        self.summary = Some(answers[0].clone());
    }
}

/// What entries say, by name, leaving out none that a model or a summary may see.
fn said(entries: &[Arc<Entry>]) -> Vec<String> {
    let name_of = |entry: &Entry| match &entry.body {
        EntryBody::Message(body) => Some(name(&body.message)),
        EntryBody::CustomMessage(body) => body.content.text().split(' ').next().map(str::to_owned),
        EntryBody::BranchSummary(body) => body.summary.split(' ').next().map(str::to_owned),
        _ => None,
    };
    entries.iter().filter_map(|entry| name_of(entry)).collect()
}

/// No result is kept without its call.
fn check_pairs(summarised: &[Arc<Entry>], kept: &[Arc<Entry>]) {
    let mut asked = HashSet::new();
    for entry in summarised {
        if let EntryBody::Message(body) = &entry.body {
            let calls = body
                .message
                .as_assistant()
                .into_iter()
                .flat_map(|a| a.tool_calls());
            asked.extend(calls.map(|call| call.id.clone()));
        }
    }
    for entry in kept {
        if let EntryBody::Message(body) = &entry.body
            && let Message::ToolResult(result) = &*body.message
        {
            assert!(
                !asked.contains(&result.tool_call_id),
                "{} lost its call",
                entry.id
            );
        }
    }
}

/// Without the first message less than the budget is kept, except when a huge tool result ends the branch: then all that is
/// kept belongs to one answer's calls.
fn check_budget(plan: &Plan, kept: &[Arc<Entry>], budget: u64) {
    let messages: Vec<_> = kept
        .iter()
        .filter_map(|entry| match &entry.body {
            EntryBody::Message(body) => Some(&*body.message),
            _ => None,
        })
        .collect();
    let first = kept
        .iter()
        .find_map(|entry| match &entry.body {
            EntryBody::Message(body) => Some(estimate(&body.message)),
            EntryBody::CustomMessage(body) => Some(tokens(&body.content.text())),
            EntryBody::BranchSummary(body) => Some(tokens(&body.summary)),
            _ => None,
        })
        .unwrap();
    let one_batch = messages.split_first().is_some_and(|(first, rest)| {
        first
            .as_assistant()
            .is_some_and(|answer| answer.tool_calls().count() > 0)
            && rest
                .iter()
                .all(|message| matches!(message, Message::ToolResult(_)))
    });
    assert!(one_batch || plan.kept_tokens.saturating_sub(first) < budget.max(1));
}

fn tokens(text: &str) -> u64 {
    text.len().div_ceil(4) as u64
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sessions_are_compacted_without_loss(steps in prop::collection::vec(step(), 1..60)) {
        let mut world = World::default();
        for step in &steps {
            world.take(step);
        }
    }

    #[test]
    fn any_compaction_entry_can_be_read(
        steps in prop::collection::vec(step(), 1..20),
        first_kept in 0..40_usize,
        later in prop::collection::vec(step(), 0..20),
        budget in 0..200_u64,
    ) {
        let mut world = World::default();
        for step in steps.iter().filter(|step| !matches!(step, Step::Compact(_))) {
            world.take(step);
        }
        world.branch = world.branch.compaction("S", &format!("e{first_kept}"));
        for step in later.iter().filter(|step| !matches!(step, Step::Compact(_))) {
            world.take(step);
        }
        if let Ok(plan) = plan(&world.branch.0, keep(budget)) {
            let entries = &world.branch.0;
            let at = entries.iter().position(|e| e.id == plan.first_kept_entry_id).unwrap();
            let told = [names(&plan.history), names(&plan.turn_prefix)].concat();
            let all = said(&entries[..at]);
            prop_assert!(all.ends_with(&told));
            prop_assert_eq!(plan.previous_summary.as_deref(), Some("S"));
        }
    }
}
