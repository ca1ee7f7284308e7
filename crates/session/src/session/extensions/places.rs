//! Going to another place of the session's tree: extensions may refuse it, change the summary of the branch that is left, or bring
//! the summary themselves (`session_before_tree`), and hear of it (`session_tree`).

use std::sync::Arc;

use agent::compaction::abandoned;
use serde_json::{Value, json};
use wire::command::NavigateParams;
use wire::entry::BranchSummary;
use wire::reply::Navigated;

use super::super::Session;
use super::super::asker::Asker;
use super::{Then, cancels, put};

impl Session {
    /// Asks whether another place of the tree may be gone to; then it is.
    pub(in crate::session) async fn move_if_allowed(
        &mut self,
        asker: Asker<Navigated>,
        params: NavigateParams,
    ) {
        let name = "session_before_tree";
        let stays = self.conversation.log.leaf_id() == Some(params.target_id.as_str());
        if stays || !self.extensions.hear(name) {
            return self.move_now(asker, params, None).await;
        }
        let old = self.conversation.log.branch(self.conversation.log.leaf_id());
        let leaf = self.leaf_at(&params.target_id);
        let new = leaf
            .as_deref()
            .map(|leaf| self.conversation.log.branch(Some(leaf)))
            .unwrap_or_default();
        let common = old
            .iter()
            .zip(&new)
            .take_while(|(old, new)| old.id == new.id)
            .last();
        let mut preparation = json!({
            "targetId": params.target_id,
            "oldLeafId": self.conversation.log.leaf_id(),
            "commonAncestorId": common.map(|(entry, _)| &entry.id),
            "entriesToSummarize": abandoned(&old, &new),
            "userWantsSummary": params.summarize,
        });
        if let Some(instructions) = &params.custom_instructions {
            put(&mut preparation, "customInstructions", json!(instructions));
            put(
                &mut preparation,
                "replaceInstructions",
                json!(params.replace_instructions),
            );
        }
        if let Some(label) = &params.label {
            put(&mut preparation, "label", json!(label));
        }
        let event = json!({"type": name, "preparation": preparation});
        self.ask_extensions(name, &event, Then::Move(asker, params));
    }

    pub(in crate::session) async fn on_move(
        &mut self,
        asker: Asker<Navigated>,
        mut params: NavigateParams,
        answer: Value,
    ) {
        if cancels(&answer) {
            let stays = Navigated {
                cancelled: true,
                editor_text: None,
                summary_entry_id: None,
            };
            return self.reply(asker, Ok(stays)).await;
        }
        let text = |name: &str| answer.get(name).and_then(Value::as_str).map(str::to_owned);
        if let Some(instructions) = text("customInstructions") {
            params.custom_instructions = Some(instructions);
        }
        if let Some(replace) = answer.get("replaceInstructions").and_then(Value::as_bool) {
            params.replace_instructions = replace;
        }
        if let Some(label) = text("label") {
            params.label = Some(label);
        }
        let given = answer.get("summary").filter(|_| params.summarize);
        let given = given.and_then(|given| self.given_summary(given));
        self.move_now(asker, params, given).await;
    }

    /// A summary that an extension made; none when it says nothing.
    fn given_summary(&self, given: &Value) -> Option<BranchSummary> {
        let summary = given.get("summary").and_then(Value::as_str)?.to_owned();
        let member = |name: &str| given.get(name).filter(|value| !value.is_null()).cloned();
        Some(BranchSummary {
            from_id: self.conversation.log.leaf_id().unwrap_or("root").to_owned(),
            summary,
            details: member("details"),
            from_hook: Some(true),
            usage: member("usage").and_then(|usage| serde_json::from_value(usage).ok()),
            extra: wire::Extra::default(),
        })
    }

    /// ExtensionProcesses hear that the session is at another place.
    pub(in crate::session) fn tell_moved(&mut self, old: Option<&str>, summary: Option<&str>) {
        let name = "session_tree";
        if !self.extensions.hear(name) {
            return;
        }
        let mut event = json!({"type": name, "newLeafId": self.conversation.log.leaf_id(), "oldLeafId": old});
        if let Some(entry) = summary
            .and_then(|id| self.conversation.log.entry(id))
            .map(Arc::clone)
        {
            let by_extension =
                matches!(&entry.body, wire::EntryBody::BranchSummary(body) if body.from_hook == Some(true));
            put(&mut event, "summaryEntry", json!(entry));
            put(&mut event, "fromExtension", json!(by_extension));
        }
        self.tell_only(name, &event);
    }
}
