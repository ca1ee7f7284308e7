//! Going to another place of the session's tree, in the same file, with a summary of the branch that is left if wanted
//! (pi-core.md 3.7); labels.

use agent::Input;
use agent::compaction::{self, Refusal};
use tokio_util::sync::CancellationToken;
use wire::command::{LabelParams, NavigateParams};
use wire::entry::BranchSummary;
use wire::event::ChangeReason;
use wire::reply::Navigated;
use wire::{EntryBody, Message};

use crate::limits;
use crate::outbox::Responder;
use crate::strings;

use super::Session;
use super::asker::Asker;
use super::deferred::DeferredAction;
use super::summaries::{Summarised, Summarising};

/// Who waits for a branch summary, and where the session goes then.
pub(super) struct PendingNavigation {
    asker: Asker<Navigated>,
    place: Place,
    label: Option<String>,
}

/// A place of the tree.
struct Place {
    /// The entry asked for.
    target: String,
    /// The entry that the next one will follow; none for a fresh root.
    leaf: Option<String>,
    /// What the user said there, to say it differently.
    text: Option<String>,
}

impl Session {
    pub(super) async fn navigate(&mut self, responder: Responder<Navigated>, params: NavigateParams) {
        if self.conversation.log.entry(&params.target_id).is_none() {
            let error = strings::entry_not_found(&params.target_id);
            return responder.refuse(error).await;
        }
        self.drive(Input::Abort).await;
        let asker = Asker::Client(responder);
        self.defer(DeferredAction::Move(asker, params));
    }

    /// The run has ended: goes there at once, or begins the summary, unless a summary was given.
    pub(super) async fn move_now(
        &mut self,
        asker: Asker<Navigated>,
        params: NavigateParams,
        given: Option<BranchSummary>,
    ) {
        let Some(place) = self.place(&params.target_id) else {
            let error = strings::entry_not_found(&params.target_id);
            return self.reply(asker, Err(error)).await;
        };
        let label = params.label.as_deref().map(str::trim);
        let label = label.filter(|label| !label.is_empty()).map(str::to_owned);
        if self.conversation.log.leaf_id() == Some(place.target.as_str()) {
            let stays = self.label_entry(&place.target, label).await;
            let outcome = stays
                .map(|()| moved(None, None))
                .map_err(|error| error.to_string());
            return self.reply(asker, outcome).await;
        }
        self.hear();
        self.drive(Input::Move).await;
        let moving = PendingNavigation { asker, place, label };
        if given.is_some() {
            return self.arrive(moving, given).await;
        }
        let summary = if params.summarize {
            self.branch_to_summarise(&moving.place, &params)
        } else {
            None
        };
        match summary {
            Some(summary) => {
                self.summarising = Some(summary);
                self.moving = Some(moving);
            }
            None => self.arrive(moving, None).await,
        }
    }

    /// The summary is there, or not.
    pub(super) async fn summarised_branch(&mut self, outcome: Result<Box<BranchSummary>, Refusal>) {
        let Some(moving) = self.moving.take() else { return };
        let aborted = match outcome {
            Ok(summary) => return self.arrive(moving, Some(*summary)).await,
            Err(Refusal::Aborted) => Ok(Navigated {
                cancelled: true,
                editor_text: None,
                summary_entry_id: None,
            }),
            Err(refusal) => Err(refusal.to_string()),
        };
        let is_abort = aborted.is_ok();
        let stay = Input::Moved {
            messages: None,
            aborted: is_abort,
        };
        self.drive(stay).await;
        self.reply(moving.asker, aborted).await;
    }

    /// The entry that the next one would follow at a place.
    pub(super) fn leaf_at(&self, target: &str) -> Option<String> {
        self.place(target)?.leaf
    }

    /// Where an entry leads: to itself, but at something the user said to what came before it.
    fn place(&self, target: &str) -> Option<Place> {
        let entry = self.conversation.log.entry(target)?;
        let text = match &entry.body {
            EntryBody::Message(body) => match body.message.as_ref() {
                Message::User(user) => Some(user.content.text()),
                _ => None,
            },
            EntryBody::CustomMessage(body) => Some(body.content.text()),
            _ => None,
        };
        let leaf = if text.is_some() {
            entry.parent_id.clone()
        } else {
            Some(entry.id.clone())
        };
        Some(Place {
            target: entry.id.clone(),
            leaf,
            text,
        })
    }

    /// The summary request for the branch that is left; none if that branch has no messages.
    fn branch_to_summarise(&mut self, place: &Place, params: &NavigateParams) -> Option<Summarising> {
        let old = self.conversation.log.branch(self.conversation.log.leaf_id());
        let new = place
            .leaf
            .as_deref()
            .map(|leaf| self.conversation.log.branch(Some(leaf)));
        let left = compaction::abandoned(&old, &new.unwrap_or_default());
        let window = match self.conversation.choice.model.context_window {
            0 => limits::DEFAULT_WINDOW,
            window => window,
        };
        let budget = window.saturating_sub(self.agent.settings.branch_summary.reserve_tokens);
        let plan = compaction::branch_plan(left, budget).ok()?;
        let request = compaction::branch_request(
            &plan,
            params.custom_instructions.as_deref(),
            params.replace_instructions,
        );
        let from = self.conversation.log.leaf_id().unwrap_or("root").to_owned();
        let cancel = CancellationToken::new();
        let mut summariser = self.summariser(None, cancel.clone());
        Some(Summarising::new(cancel, async move {
            let asked = summariser.ask(&request).await;
            Summarised::Branch(asked.and_then(|(text, usage)| {
                let mut summary = compaction::finish_branch(&plan, text, &from)?;
                summary.usage = Some(usage);
                Ok(Box::new(summary))
            }))
        }))
    }

    /// Goes there; when something cannot be written the session stays where it was.
    async fn arrive(&mut self, moving: PendingNavigation, summary: Option<BranchSummary>) {
        let PendingNavigation { asker, place, label } = moving;
        let before = self.conversation.log.leaf_id().map(str::to_owned);
        let there = self.go_to(&place, summary, label).await;
        let messages = match &there {
            Ok(_) => {
                self.read_todos();
                Some(self.conversation_at_leaf())
            }
            Err(_) => {
                // An entry that was read cannot have gone away, so this does not fail.
                let _back = self.conversation.log.direct().set_leaf(before.as_deref());
                None
            }
        };
        let aborted = false;
        let is_there = messages.is_some();
        self.drive(Input::Moved { messages, aborted }).await;
        if is_there {
            let summary = there.as_ref().ok().and_then(Option::as_deref);
            self.tell_moved(before.as_deref(), summary);
            self.tell_changed(ChangeReason::Tree).await;
        }
        let outcome = there
            .map(|summary| moved(place.text, summary))
            .map_err(|error| error.to_string());
        self.reply(asker, outcome).await;
    }

    async fn go_to(
        &mut self,
        place: &Place,
        summary: Option<BranchSummary>,
        label: Option<String>,
    ) -> Result<Option<String>, store::StoreError> {
        self.conversation.log.direct().set_leaf(place.leaf.as_deref())?;
        let mut summary_id = None;
        if let Some(summary) = summary {
            let entry = self
                .conversation
                .log
                .append(EntryBody::BranchSummary(summary), &self.outbox)
                .await?;
            summary_id = Some(entry.id.clone());
        }
        let labelled = summary_id.clone().unwrap_or_else(|| place.target.clone());
        self.label_entry(&labelled, label).await?;
        Ok(summary_id)
    }

    async fn label_entry(&mut self, target: &str, label: Option<String>) -> Result<(), store::StoreError> {
        match label {
            Some(_) => self.conversation.store_label(target, label, &self.outbox).await,
            None => Ok(()),
        }
    }

    pub(super) async fn set_entry_label(&mut self, params: LabelParams) -> Result<(), String> {
        let LabelParams { target_id, label } = params;
        if self.conversation.log.entry(&target_id).is_none() {
            return Err(strings::entry_not_found(&target_id));
        }
        let label = label.map(|label| label.trim().to_owned());
        let label = label.filter(|label| !label.is_empty());
        let stored = self
            .conversation
            .store_label(&target_id, label, &self.outbox)
            .await;
        stored.map_err(|error| error.to_string())
    }
}

fn moved(editor_text: Option<String>, summary_entry_id: Option<String>) -> Navigated {
    Navigated {
        cancelled: false,
        editor_text,
        summary_entry_id,
    }
}
