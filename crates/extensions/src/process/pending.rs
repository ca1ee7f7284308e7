//! Who waits for which answer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::{Notify, mpsc, oneshot};

use crate::error::ProcessError;

use super::message::Answer;
use super::updates::{UpdateSender, Updates, updates_channel};

type Waiting = oneshot::Receiver<Result<Answer, ProcessError>>;

/// Pending requests of one process, by id.
#[derive(Debug, Default)]
pub(super) struct Pending {
    book: Mutex<PendingState>,
    /// Told with every question.
    entered: Notify,
}

#[derive(Debug, Default)]
struct PendingState {
    last: u64,
    asked: HashMap<u64, Request>,
    /// Why nothing will be answered any more.
    closed: Option<String>,
    /// Whose questions were open then.
    suspects: Vec<String>,
    /// What broke the protocol, if something did.
    fault: Option<String>,
    /// Grows with every line that comes, and when it has been handed on.
    heard: u64,
    /// True while a line is handed on. The reader may wait for a session that is behind, and hears nothing meanwhile.
    is_handing_on: bool,
}

#[derive(Debug)]
struct Request {
    answer: oneshot::Sender<Result<Answer, ProcessError>>,
    updates: Option<UpdateReceiver>,
    /// Extensions that are at fault when the child ends over this.
    whose: Option<Arc<[String]>>,
}

/// Where the updates of a call go.
#[derive(Debug)]
enum UpdateReceiver {
    /// Later news hold the earlier: when it is behind, they are dropped.
    Latest(mpsc::Sender<Value>),
    /// Each of them counts.
    All(UpdateSender),
}

impl Pending {
    /// Enters a question. When nothing will be answered any more, that is the answer.
    pub(super) fn enter(&self, updates: Option<mpsc::Sender<Value>>) -> (u64, Waiting) {
        self.enter_with(updates.map(UpdateReceiver::Latest))
    }

    /// Enters a request of which every update counts.
    pub(super) fn enter_stream(&self) -> (u64, Waiting, Updates) {
        let (sender, updates) = updates_channel();
        let (id, waiting) = self.enter_with(Some(UpdateReceiver::All(sender)));
        (id, waiting, updates)
    }

    fn enter_with(&self, updates: Option<UpdateReceiver>) -> (u64, Waiting) {
        let (answer, waiting) = oneshot::channel();
        let mut book = self.book();
        book.last += 1;
        let id = book.last;
        // Without this answer, a request after the child's end would wait for its time limit.
        match &book.closed {
            Some(reason) => {
                let _nobody = answer.send(Err(ProcessError::Gone(reason.clone())));
            }
            None => {
                book.asked.insert(
                    id,
                    Request {
                        answer,
                        updates,
                        whose: None,
                    },
                );
                self.entered.notify_one();
            }
        }
        (id, waiting)
    }

    /// Delivers an answer. Drops answers without a waiting caller.
    pub(super) fn settle(&self, id: u64, outcome: Result<Answer, ProcessError>) {
        if let Some(asked) = self.book().asked.remove(&id) {
            let _nobody = asked.answer.send(outcome);
        }
    }

    /// Hands news on; `size` is that of their line. A stream that says more than is taken fails.
    pub(super) fn update(&self, id: u64, value: Value, size: usize) {
        let mut book = self.book();
        let fits = match book.asked.get(&id).and_then(|asked| asked.updates.as_ref()) {
            Some(UpdateReceiver::Latest(updates)) => {
                // A reader that is behind misses this update; a later one replaces it.
                let _behind = updates.try_send(value);
                true
            }
            Some(UpdateReceiver::All(sender)) => sender.push(value, size),
            None => true,
        };
        if !fits && let Some(asked) = book.asked.remove(&id) {
            let error = ProcessError::Odd("its updates exceed the limit".to_owned());
            let _nobody = asked.answer.send(Err(error));
        }
    }

    /// Says which extensions a question is about.
    pub(super) fn blame(&self, id: u64, whose: &Arc<[String]>) {
        if let Some(asked) = self.book().asked.get_mut(&id) {
            asked.whose = Some(Arc::clone(whose));
        }
    }

    /// Whose questions were open when nothing was answered any more.
    pub(super) fn suspects(&self) -> Vec<String> {
        self.book().suspects.clone()
    }

    /// The child broke the protocol: why it is about to be ended.
    pub(super) fn accuse(&self, fault: String) {
        self.book().fault.get_or_insert(fault);
    }

    /// What [`accuse`](Self::accuse) was told.
    pub(super) fn fault(&self) -> Option<String> {
        self.book().fault.clone()
    }

    /// A line came, and is about to be handed on.
    pub(super) fn hear(&self) {
        let mut book = self.book();
        book.heard += 1;
        book.is_handing_on = true;
    }

    /// The line was handed on. Counts as a sign of life, since answers of the child may have waited behind it.
    pub(super) fn handed_on(&self) {
        let mut book = self.book();
        book.heard += 1;
        book.is_handing_on = false;
    }

    /// How many signs of life there were.
    pub(super) fn heard(&self) -> u64 {
        self.book().heard
    }

    /// Returns true if there was no sign of life after this many, although the reader could have heard one.
    pub(super) fn is_silent_since(&self, heard: u64) -> bool {
        let book = self.book();
        book.heard == heard && !book.is_handing_on
    }

    /// Removes a request that was cancelled. Returns false if it was answered already.
    pub(super) fn forget(&self, id: u64) -> bool {
        self.book().asked.remove(&id).is_some()
    }

    /// Resolves when a request is pending.
    pub(super) async fn something_is_awaited(&self) {
        while !self.is_awaited() {
            self.entered.notified().await;
        }
    }

    /// Returns true if a request is pending.
    pub(super) fn is_awaited(&self) -> bool {
        !self.book().asked.is_empty()
    }

    /// Nothing will be answered any more.
    pub(super) fn close(&self, reason: &str) {
        let mut book = self.book();
        book.closed = Some(reason.to_owned());
        let mut asked: Vec<(u64, Request)> = book.asked.drain().collect();
        // In the order of the requests, so that the list of suspects does not depend on the hash map.
        asked.sort_unstable_by_key(|(id, _)| *id);
        for path in asked
            .iter()
            .filter_map(|(_, asked)| asked.whose.as_deref())
            .flatten()
        {
            if !book.suspects.contains(path) {
                book.suspects.push(path.clone());
            }
        }
        drop(book);
        for (_, asked) in asked {
            let _nobody = asked.answer.send(Err(ProcessError::Gone(reason.to_owned())));
        }
    }

    /// A table has no broken state, so a poisoned lock is as good as any.
    fn book(&self) -> MutexGuard<'_, PendingState> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
