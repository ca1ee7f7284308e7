//! The session's log, with its file work off the thread that serves all sessions: a slow disk delays one session only. A job
//! takes the log along and the session waits for it, so an entry is written before it is announced, and entries keep their
//! order. What could not be written waits in the log, is tried again here, and is reported to clients.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use store::{SessionLog, StoreError};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use wire::entry::CustomMessageEntry;
use wire::state::{Durability, StorageState};
use wire::{Entry, EntryBody, Event, Message};

use crate::limits;
use crate::off_thread::off_thread;
use crate::outbox::Outbox;
use crate::strings;

/// A session's log and the job that has it.
pub(super) struct Storage {
    /// The log. While a job has it, an empty one stands in its place: nothing looks at it then, since the session waits.
    log: SessionLog,
    job: Option<JoinHandle<SessionLog>>,
    /// Logs of sessions that were left while entries of theirs waited.
    left: Vec<SessionLog>,
    trouble: Option<Trouble>,
    /// Messages that are in the log before their run has begun.
    prompt: Vec<Arc<Message>>,
}

/// Entries that are written at once: one write, and with `durability` `disk` one sync.
#[derive(Default)]
pub(super) struct Batch {
    bodies: Vec<EntryBody>,
    /// The session gets its file with them: one of them is something that the user or the model said. From then on clients
    /// learn of a message only after it was written.
    begins: bool,
}

impl Batch {
    /// A batch that begins with a message.
    pub(super) fn of(message: Arc<Message>) -> Self {
        let mut batch = Self::default();
        batch.push_message(message);
        batch
    }

    /// Adds a message.
    pub(super) fn push_message(&mut self, message: Arc<Message>) {
        self.begins |= matches!(*message, Message::User(_) | Message::Assistant(_));
        self.bodies.push(entry_of(message));
    }

    /// Adds an entry that is no message.
    pub(super) fn push(&mut self, body: EntryBody) {
        self.bodies.push(body);
    }
}

/// Why entries wait, and when writing them is tried again.
struct Trouble {
    error: String,
    pause: Duration,
    again: Instant,
    /// Entries of the present session wait, and clients know it.
    is_current: bool,
}

impl Trouble {
    /// After an attempt whose time had come, the next one comes later. Attempts in between, made by new entries, change nothing:
    /// otherwise they would put it off for good.
    fn renew(&mut self) {
        let now = Instant::now();
        if self.again <= now {
            self.pause = (self.pause * 2).min(limits::STORAGE_RETRY.1);
            self.again = now + self.pause;
        }
    }
}

impl Deref for Storage {
    type Target = SessionLog;

    fn deref(&self) -> &SessionLog {
        &self.log
    }
}

impl Storage {
    pub(super) fn new(mut log: SessionLog, durability: Durability) -> Self {
        log.set_durability(durability);
        Self {
            log,
            job: None,
            left: Vec::new(),
            trouble: None,
            prompt: Vec::new(),
        }
    }

    /// The log, for work on this thread: before the session runs, or on entries that are in memory only.
    pub(super) fn direct(&mut self) -> &mut SessionLog {
        &mut self.log
    }

    /// Another log takes the place of this one, which is kept as long as entries of it wait.
    pub(super) fn replace(&mut self, log: SessionLog) {
        let old = std::mem::replace(&mut self.log, log);
        self.leave(old);
        match &mut self.trouble {
            Some(_) if self.log.waiting() == 0 && self.left.is_empty() => self.trouble = None,
            Some(trouble) => trouble.is_current = self.log.waiting() > 0,
            None => {}
        }
    }

    /// Closes a log, once nothing of it waits.
    pub(super) fn leave(&mut self, log: SessionLog) {
        if log.waiting() > 0 {
            self.left.push(log);
        } else if log.is_on_disk() {
            // To close a file can take as long as to write it.
            drop(tokio::task::spawn_blocking(move || drop(log)));
        }
    }

    /// Notes a prompt that was appended before its run.
    pub(super) fn note_prompt(&mut self, message: Arc<Message>) {
        self.prompt.push(message);
    }

    /// Returns true once for a prompt that was appended before its run.
    pub(super) fn has_prompt(&mut self, message: &Arc<Message>) -> bool {
        // By identity: the user may send the same text twice.
        let at = self.prompt.iter().position(|prompt| Arc::ptr_eq(prompt, message));
        at.map(|at| self.prompt.remove(at)).is_some()
    }

    /// Whether another session with entries that wait can be left.
    pub(super) fn has_room(&self) -> bool {
        self.left.len() < limits::LEFT_SESSIONS
    }

    /// Whether entries of sessions that were left wait.
    pub(super) fn has_left(&self) -> bool {
        !self.left.is_empty()
    }

    /// The log of a file that was left while entries of it waited: it is still locked, and the file is not complete.
    pub(super) async fn take_left(&mut self, path: &Path) -> Option<SessionLog> {
        if self.left.is_empty() {
            return None;
        }
        let files = self.left.iter().map(|log| log.path().map(Path::to_path_buf));
        let (files, wanted) = (files.collect::<Vec<_>>(), path.to_path_buf());
        let find = move || {
            let is_it = |file: &Option<PathBuf>| file.as_ref().is_some_and(|file| same_file(file, &wanted));
            files.iter().position(is_it)
        };
        let place = off_thread(find).await?;
        // Always so, since `self` stays borrowed meanwhile. `swap_remove` panics for a place that does not exist.
        (place < self.left.len()).then(|| self.left.swap_remove(place))
    }

    /// Does file work on a blocking thread. When the caller gives up waiting, the work goes on, and [`Storage::settle`]
    /// waits for it.
    pub(super) async fn run<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut SessionLog) -> T + Send + 'static,
    ) -> T {
        // A caller that gave up waiting (a timeout, an end) has left a job that still has the log.
        self.settle().await;
        let stand_in = self.log.detached();
        let mut log = std::mem::replace(&mut self.log, stand_in);
        let (answer, outcome) = oneshot::channel();
        self.job = Some(tokio::task::spawn_blocking(move || {
            // The receiver is gone when the session was given up.
            drop(answer.send(work(&mut log)));
            log
        }));
        self.settle().await;
        match outcome.await {
            Ok(done) => done,
            // The process ends.
            Err(_) => std::future::pending().await,
        }
    }

    /// Waits for a job that was left alone.
    pub(super) async fn settle(&mut self) {
        let Some(job) = &mut self.job else { return };
        match job.await {
            Ok(log) => self.log = log,
            // A defect there is one of the session.
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            // The process ends.
            Err(_) => {}
        }
        self.job = None;
    }

    /// Adds entries to the session. Returns false if they are not in the file now: then they wait here, and clients learn of it.
    pub(super) async fn keep(&mut self, batch: Batch, outbox: &Outbox) -> bool {
        let kept = self.write(batch).await;
        self.note(kept, outbox).await
    }

    /// Adds an entry that is no message.
    pub(super) async fn record(&mut self, body: EntryBody, outbox: &Outbox) {
        let mut batch = Batch::default();
        batch.push(body);
        self.keep(batch, outbox).await;
    }

    /// Adds a message. Returns false if it waits to be written.
    pub(super) async fn persist(&mut self, message: Arc<Message>, outbox: &Outbox) -> bool {
        self.keep(Batch::of(message), outbox).await
    }

    /// Adds entries that stay in the session even if they cannot be written now.
    ///
    /// # Errors
    /// As [`SessionLog::keep`].
    async fn write(&mut self, batch: Batch) -> Result<(), StoreError> {
        let Batch { bodies, begins } = batch;
        let needs_file = self.is_on_disk() || self.waiting() > 0 || (begins && self.path().is_some());
        // A session without messages leaves no file (docs/internals/decisions/05-file-with-first-prompt.md).
        if !needs_file {
            return self.log.keep(bodies);
        }
        let keep = move |log: &mut SessionLog| {
            let kept = log.keep(bodies);
            let there = if begins {
                log.ensure_on_disk()
            } else if log.is_on_disk() {
                Ok(())
            } else {
                log.flush()
            };
            // Both are done in any case: entries that were kept in memory wait for the next attempt.
            kept.and(there)
        };
        self.run(keep).await
    }

    /// Appends an entry that counts only if it is stored.
    ///
    /// # Errors
    /// Why it could not be stored; the session is as before.
    pub(super) async fn append(
        &mut self,
        body: EntryBody,
        outbox: &Outbox,
    ) -> Result<Arc<Entry>, StoreError> {
        let mut added = self.append_batch(vec![body]).await?;
        if self.trouble.is_some() {
            // Entries that waited were written before this one.
            self.note(Ok(()), outbox).await;
        }
        added
            .pop()
            .ok_or_else(|| StoreError::NoEntry { id: String::new() })
    }

    /// Appends entries, or none of them.
    ///
    /// # Errors
    /// As [`SessionLog::append_batch`].
    async fn append_batch(&mut self, bodies: Vec<EntryBody>) -> Result<Vec<Arc<Entry>>, StoreError> {
        if self.is_on_disk() || self.waiting() > 0 {
            let append = move |log: &mut SessionLog| {
                // Entries that wait come first: an entry in the file must not follow a parent that is not there.
                log.flush()?;
                // An entry that counts only if it is stored must not wait: the caller tells its client that it failed.
                log.append_batch(bodies)
            };
            self.run(append).await
        } else {
            // Nothing of this session is on a disk yet, so that no thread has to wait for one.
            self.log.append_batch(bodies)
        }
    }

    /// Tries once more to write the entries that wait. Returns true if none waits any more.
    pub(super) async fn flush(&mut self, outbox: &Outbox) -> bool {
        let (flushed, done) = self.flush_all().await;
        // The files of sessions that were left: clients were told that entries of them wait.
        for path in done {
            tell(outbox, path.to_string_lossy().into_owned(), 0, None).await;
        }
        self.note(flushed, outbox).await
    }

    /// Makes the last attempt before the session ends.
    pub(super) async fn finish(&mut self, outbox: &Outbox) {
        if self.job.is_some() || self.waiting() > 0 || self.has_left() {
            let last = async {
                self.settle().await;
                self.flush(outbox).await
            };
            // A disk that hangs must not keep the session from ending.
            let _late = tokio::time::timeout(limits::END_WAIT, last).await;
        }
    }

    /// Writes the entries that wait; returns the files of sessions that were left and are complete now.
    async fn flush_all(&mut self) -> (Result<(), StoreError>, Vec<PathBuf>) {
        if self.waiting() == 0 && self.left.is_empty() {
            return (Ok(()), Vec::new());
        }
        // The job has them meanwhile, as it has the log.
        let mut left = std::mem::take(&mut self.left);
        let flush = move |log: &mut SessionLog| {
            let mut done = Vec::new();
            left.retain_mut(|left| {
                let is_done = left.flush().is_ok();
                done.extend(left.path().filter(|_| is_done).map(Path::to_path_buf));
                !is_done
            });
            (log.flush(), done, left)
        };
        let (flushed, done, left) = self.run(flush).await;
        self.left = left;
        (flushed, done)
    }

    /// Resolves when writing is to be tried again.
    pub(super) fn retry_due(&self) -> impl Future<Output = ()> + use<> {
        // The future borrows nothing: the session waits for it while the other branches of its `select!` change the log.
        let again = self.trouble.as_ref().map(|trouble| trouble.again);
        async move {
            match again {
                Some(again) => tokio::time::sleep_until(again).await,
                None => std::future::pending().await,
            }
        }
    }

    /// Notes a failed attempt. Returns true if it is the first one.
    fn fail(&mut self, error: String) -> bool {
        let Some(trouble) = &mut self.trouble else {
            let pause = limits::STORAGE_RETRY.0;
            self.trouble = Some(Trouble {
                error,
                pause,
                again: Instant::now() + pause,
                is_current: true,
            });
            return true;
        };
        trouble.error = error;
        trouble.renew();
        !std::mem::replace(&mut trouble.is_current, true)
    }

    /// Nothing of the present session waits. Returns true if that is news.
    fn recover(&mut self) -> bool {
        let known = self.trouble.take();
        let was_current = known.as_ref().is_some_and(|trouble| trouble.is_current);
        if let Some(mut trouble) = known
            && !self.left.is_empty()
        {
            // Files of sessions that were left are still incomplete, but clients of this one need not hear of it again.
            trouble.is_current = false;
            trouble.renew();
            self.trouble = Some(trouble);
        }
        was_current
    }

    /// Notes the outcome of an attempt, and tells clients when the state changed. Returns true if no entry waits.
    async fn note(&mut self, outcome: Result<(), StoreError>, outbox: &Outbox) -> bool {
        let pending = self.waiting();
        let Err(error) = outcome else {
            if pending == 0 && self.recover() {
                tell(outbox, self.file_text().unwrap_or_default(), 0, None).await;
            }
            return pending == 0;
        };
        let error = error.to_string();
        if pending == 0 {
            // It can never be written.
            outbox.notice("error", strings::not_written(&error)).await;
        } else if self.fail(error.clone()) {
            outbox.notice("error", strings::written_later(&error)).await;
            let path = self.file_text().unwrap_or_default();
            tell(outbox, path, pending, Some(error)).await;
        }
        false
    }

    /// Why the last attempt to write this session failed.
    pub(super) fn error(&self) -> Option<&str> {
        // Trouble with a session that was left says nothing about this one.
        let trouble = self.trouble.as_ref().filter(|trouble| trouble.is_current);
        trouble.map(|trouble| trouble.error.as_str())
    }

    /// The state of the session file for clients; `None` if every entry is in a file that survives as usual.
    pub(super) fn state(&self) -> Option<StorageState> {
        let (durability, pending) = (self.durability(), self.waiting());
        let is_stored = self.path().is_some();
        (pending > 0 || (is_stored && !durability.is_process())).then(|| StorageState {
            durability,
            pending,
            error: self.error().map(str::to_owned),
        })
    }

    /// The session file as text; `None` without persistence.
    pub(super) fn file_text(&self) -> Option<String> {
        self.path().map(|path| path.to_string_lossy().into_owned())
    }
}

async fn tell(outbox: &Outbox, path: String, pending: usize, error: Option<String>) {
    outbox.tell(Event::StorageStatus { path, pending, error }).await;
}

/// The entry of a message. Messages that no person and no model said have a kind of their own.
pub(super) fn entry_of(message: Arc<Message>) -> EntryBody {
    match message.as_ref() {
        Message::Custom(custom) => EntryBody::CustomMessage(CustomMessageEntry {
            custom_type: custom.custom_type.clone(),
            content: custom.content.clone(),
            display: custom.display,
            details: custom.details.clone(),
            extra: wire::Extra::default(),
        }),
        _ => EntryBody::message(message),
    }
}

/// Whether two paths lead to the same file.
pub(super) fn same_file(a: &Path, b: &Path) -> bool {
    // First the paths as they are: a file that does not exist yet cannot be resolved.
    a == b
        || a.canonicalize()
            .is_ok_and(|a| b.canonicalize().is_ok_and(|b| a == b))
}
