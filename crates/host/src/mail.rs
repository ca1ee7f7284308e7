//! What comes in: commands in their lanes, and the end of input. Lines become mail in `serve`.

use std::any::Any;

use tokio::sync::mpsc;
use wire::{Command, Lane, Response};

use crate::limits;
use crate::outbox::Origin;

/// A thing for the session to deal with.
#[derive(Debug)]
pub enum Mail {
    /// A command.
    Command(Origin, Command),
    /// A line that was no command; the answer is ready and only has to keep its place.
    Reject(Response),
}

impl Mail {
    /// Does it overtake what waits?
    #[must_use]
    pub fn is_urgent(&self) -> bool {
        matches!(self, Self::Command(_, command) if command.lane() == Lane::Control)
    }
}

/// Mail on its way, with whatever its sender wants to be dropped when it is taken out (its share of a memory budget).
struct Letter {
    mail: Mail,
    _held: Option<Box<dyn Any + Send>>,
}

/// Where mail is put in. When all clones are dropped the session ends.
#[derive(Clone)]
pub struct Slot {
    urgent: mpsc::Sender<Letter>,
    ordered: mpsc::Sender<Letter>,
}

/// Where the session takes mail out.
pub struct Mailbox {
    pub(crate) urgent: Urgent,
    pub(crate) ordered: Ordered,
}

/// The control lane.
pub(crate) struct Urgent(mpsc::Receiver<Letter>);

/// Everything else, in arrival order.
pub(crate) struct Ordered(mpsc::Receiver<Letter>);

/// A slot and its mailbox, both bounded.
#[must_use]
pub fn mailbox() -> (Slot, Mailbox) {
    let (urgent, urgent_out) = mpsc::channel(limits::CONTROL);
    let (ordered, ordered_out) = mpsc::channel(limits::MAILBOX);
    (Slot { urgent, ordered }, Mailbox { urgent: Urgent(urgent_out), ordered: Ordered(ordered_out) })
}

impl Slot {
    /// Puts mail in from a thread that may wait. `held` is dropped when the mail is taken out. False when the session is
    /// gone.
    #[must_use]
    pub fn put(&self, mail: Mail, held: impl Any + Send) -> bool {
        let lane = self.lane(&mail);
        lane.blocking_send(Letter { mail, _held: Some(Box::new(held)) }).is_ok()
    }

    /// Puts mail in from a task. False when the session is gone.
    pub async fn send(&self, mail: Mail) -> bool {
        let lane = self.lane(&mail);
        lane.send(Letter { mail, _held: None }).await.is_ok()
    }

    fn lane(&self, mail: &Mail) -> &mpsc::Sender<Letter> {
        if mail.is_urgent() { &self.urgent } else { &self.ordered }
    }
}

impl Urgent {
    /// The next one. Never ends: the end of input is the end of the other lane.
    pub(crate) async fn next(&mut self) -> Mail {
        match self.0.recv().await {
            Some(letter) => letter.mail,
            None => std::future::pending().await,
        }
    }
}

impl Ordered {
    /// The next one; `None` when there will be no more.
    pub(crate) async fn next(&mut self) -> Option<Mail> {
        self.0.recv().await.map(|letter| letter.mail)
    }
}
