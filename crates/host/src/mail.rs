//! What comes in: commands in the order they came, and the end of input. Lines become mail in `serve`.
//!
//! Order is kept even for the control lane, so that `prompt` and `abort` in one write mean what they say. Only while a
//! command waits for the run to end does urgent mail overtake what came before it.

use std::any::Any;
use std::collections::VecDeque;

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
pub struct Slot(mpsc::Sender<Letter>);

/// Where the session takes mail out.
pub struct Mailbox {
    incoming: mpsc::Receiver<Letter>,
    /// Mail that came while only urgent mail was wanted.
    held_back: VecDeque<Letter>,
}

/// A slot and its mailbox, bounded.
#[must_use]
pub fn mailbox() -> (Slot, Mailbox) {
    let (sender, incoming) = mpsc::channel(limits::MAILBOX);
    (
        Slot(sender),
        Mailbox {
            incoming,
            held_back: VecDeque::new(),
        },
    )
}

impl Slot {
    /// Puts mail in from a thread that may wait. `held` is dropped when the mail is taken out. False when the session is
    /// gone.
    #[must_use]
    pub fn put(&self, mail: Mail, held: impl Any + Send) -> bool {
        self.0
            .blocking_send(Letter {
                mail,
                _held: Some(Box::new(held)),
            })
            .is_ok()
    }

    /// Puts mail in from a task. False when the session is gone.
    pub async fn send(&self, mail: Mail) -> bool {
        self.0.send(Letter { mail, _held: None }).await.is_ok()
    }
}

impl Mailbox {
    /// The next mail, in the order it came; `None` when there will be no more and nothing is held back. With `urgent_only` everything else is held
    /// back, as much of it as the mailbox holds, and comes later in its order. Cancel-safe.
    pub(crate) async fn next(&mut self, urgent_only: bool) -> Option<Mail> {
        if !urgent_only && let Some(letter) = self.held_back.pop_front() {
            return Some(letter.mail);
        }
        loop {
            if self.held_back.len() >= limits::MAILBOX {
                return std::future::pending().await;
            }
            let Some(letter) = self.incoming.recv().await else {
                return if self.held_back.is_empty() {
                    None
                } else {
                    std::future::pending().await
                };
            };
            if !urgent_only || letter.mail.is_urgent() {
                return Some(letter.mail);
            }
            self.held_back.push_back(letter);
        }
    }
}
