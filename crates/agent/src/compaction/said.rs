//! What an entry says to a model. Where a branch is cut lives in `cut`, how much room it takes is estimated in
//! `crate::estimate`.

use std::sync::Arc;

use wire::said::Edits;
use wire::{Entry, Message};

use crate::estimate::weight;

/// The message that an entry stands for; none too for roles that no model gets. Times do not matter to a summary.
pub(super) fn said(edits: &Edits<'_>, entry: &Entry) -> Option<Arc<Message>> {
    edits
        .message(entry, |_| 0)
        .filter(|message| !matches!(**message, Message::Other(_)))
}

/// One message or none per entry.
pub(super) fn all_said(branch: &[Arc<Entry>]) -> Vec<Option<Arc<Message>>> {
    let edits = Edits::of(branch);
    branch.iter().map(|entry| said(&edits, entry)).collect()
}

/// The sum of [`weight`] over messages.
pub(super) fn total(said: impl Iterator<Item = Arc<Message>>) -> u64 {
    said.map(|message| weight(&message)).sum()
}
