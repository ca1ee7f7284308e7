//! Events that extensions receive without an answer: compactions, another model or thinking level, dialogs.

use std::sync::Arc;

use agent::CompactOutcome;
use serde_json::{Value, json};
use wire::entry::Compaction;
use wire::event::CompactionReason;
use wire::ui::{UiMethod, UiRequest};
use wire::{Entry, EntryBody};

use super::json::put;

/// The dialogs that extensions were told about.
#[derive(Debug, Default)]
pub(crate) struct DialogNotices {
    /// The event of the dialog that is open.
    open: Option<Value>,
}

impl DialogNotices {
    /// Takes the oldest open dialog. Returns the event to tell extensions, if a wait for the user has begun or ended. Dialogs
    /// that are opened meanwhile belong to the same wait.
    pub(crate) fn update(&mut self, oldest: Option<&UiRequest>) -> Option<(&'static str, Value)> {
        match (oldest, self.open.take()) {
            (Some(request), None) => {
                let event = prompt(request);
                self.open = Some(event.clone());
                Some(("ui_prompt_start", event))
            }
            (None, Some(event)) => Some(("ui_prompt_end", event)),
            // Put back: the wait goes on, or there was none.
            (_, open) => {
                self.open = open;
                None
            }
        }
    }
}

/// A compaction that has ended.
pub(crate) struct CompactionNotice<'a> {
    pub(crate) outcome: &'a CompactOutcome,
    pub(crate) reason: CompactionReason,
    /// The run that overflowed is tried again.
    pub(crate) will_retry: bool,
    /// The newest entry of the session.
    pub(crate) entry: Option<&'a Arc<Entry>>,
}

impl CompactionNotice<'_> {
    pub(crate) fn name(&self) -> &'static str {
        match self.outcome {
            CompactOutcome::Done { .. } => "session_compact",
            CompactOutcome::Failed(_) | CompactOutcome::Aborted => "session_compact_failed",
        }
    }

    pub(crate) fn event(&self) -> Value {
        let reason = self.reason;
        let (aborted, error) = match self.outcome {
            CompactOutcome::Done { .. } => {
                let is_extensions = self.entry.is_some_and(|entry| {
                    matches!(
                        &entry.body,
                        EntryBody::Compaction(Compaction {
                            from_hook: Some(true),
                            ..
                        })
                    )
                });
                return json!({
                    "compactionEntry": self.entry,
                    "fromExtension": is_extensions,
                    "reason": reason,
                    "willRetry": self.will_retry,
                });
            }
            CompactOutcome::Failed(error) => (false, Some(error)),
            CompactOutcome::Aborted => (true, None),
        };
        // No retry follows a compaction that failed, even if one was intended (`agent::pressure`).
        let mut event =
            json!({"reason": reason, "aborted": aborted, "willRetry": false, "fromExtension": false});
        if let Some(error) = error {
            let error = format!("{}{error}", agent::failure_prefix(reason));
            put(&mut event, "errorMessage", json!(error));
        }
        event
    }
}

fn prompt(request: &UiRequest) -> Value {
    let kind = match request.method {
        UiMethod::Select => "select",
        UiMethod::Confirm => "confirm",
        UiMethod::Editor => "editor",
        _ => "input",
    };
    let mut event = json!({"reason": "ui_prompt", "kind": kind});
    if let Some(title) = request.title.as_ref().filter(|title| !title.is_empty()) {
        put(&mut event, "title", json!(title));
    }
    event
}

#[cfg(test)]
mod tests {
    use agent::CompactOutcome;
    use serde_json::json;
    use wire::event::CompactionReason;
    use wire::ui::{UiMethod, UiRequest};

    use super::{CompactionNotice, DialogNotices};

    #[test]
    fn overlapping_dialogs_are_one_wait() {
        let mut notices = DialogNotices::default();
        assert_eq!(notices.update(None), None);
        let first = UiRequest::new("1".to_owned(), UiMethod::Confirm);
        let second = UiRequest::new("2".to_owned(), UiMethod::Select);
        let began = json!({"reason": "ui_prompt", "kind": "confirm"});
        assert_eq!(
            notices.update(Some(&first)),
            Some(("ui_prompt_start", began.clone()))
        );
        assert_eq!(notices.update(Some(&first)), None);
        assert_eq!(notices.update(Some(&second)), None);
        assert_eq!(notices.update(None), Some(("ui_prompt_end", began)));
        assert_eq!(notices.update(None), None);
    }

    #[test]
    fn failed_compaction_names_its_error() {
        let outcome = CompactOutcome::Failed("too long".to_owned());
        let notice = CompactionNotice {
            outcome: &outcome,
            reason: CompactionReason::Manual,
            will_retry: true,
            entry: None,
        };
        assert_eq!(notice.name(), "session_compact_failed");
        assert_eq!(
            notice.event(),
            json!({"reason": "manual", "aborted": false, "willRetry": false, "fromExtension": false,
                "errorMessage": "Compaction failed: too long"})
        );
    }
}
