//! Clients of a web server: each client's position in the log, its negotiated options, and its private frames, in the
//! order of the log. One lock, held for moments and never while a task waits.
//!
//! Not here: how frames get to a client (`socket`, `http`), and the events of the log (`broadcaster`).

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serve::connection::{EventNumbers, NegotiatedOptions};
use session::ClientId;
use tokio::sync::Notify;
use uuid::Uuid;
use wire::Event;

use crate::broadcaster::first_options;
use crate::frame_text::FrameText;
use crate::limits::{WEB_CLIENTS, WEB_LOG_BYTES, WEB_LOG_ENTRIES, WEB_READ_BYTES, WEB_UNREAD_BYTES};
use crate::log::{Entry, Gone, Log, Place, Subject, Text};
use crate::memory::{Account, Memory, Reservation};

/// Why a client is not served any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Over {
    /// It reads too slowly: what it should be told is gone, or too much waits for it.
    TooSlow,
    /// The agent ends.
    Ending,
}

/// An entry for one client alone, at its position between the entries of the log.
#[derive(Debug)]
enum Private {
    Frame(FrameText, Reservation),
    /// The client's options change from here on.
    Agree(Box<NegotiatedOptions>),
    /// Continue to read from this position.
    Back(Place),
}

impl Private {
    fn bytes(&self) -> usize {
        match self {
            Self::Frame(frame, _) => frame.len(),
            Self::Agree(_) | Self::Back(_) => 0,
        }
    }
}

#[derive(Debug)]
struct Client {
    /// The options after the client's last command. A further command builds on them.
    options: NegotiatedOptions,
    /// The options at the client's reading position, which may be older.
    reading: NegotiatedOptions,
    place: Place,
    /// The client has received everything up to here.
    written: Place,
    private: VecDeque<(Place, Private)>,
    /// Bytes of the frames in `private`.
    waiting: usize,
    /// The client's share of the memory of all clients.
    account: Account,
    /// Private frames that were taken, but perhaps not written. Their memory counts until the next `take`.
    taken: Vec<Reservation>,
    over: Option<Over>,
    bell: Arc<Notify>,
}

#[derive(Debug)]
struct State {
    log: Log,
    clients: HashMap<ClientId, Client>,
    made: u64,
    /// No new client is taken.
    is_ending: bool,
    /// Dialogs that wait for an answer.
    questions: Vec<OpenDialog>,
}

/// A dialog that waits for an answer.
#[derive(Debug)]
struct OpenDialog {
    id: String,
    /// The session that asked; none is the first.
    session: Option<Arc<str>>,
    /// The frame without its number.
    frame: FrameText,
}

/// All clients. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Clients {
    state: Arc<Mutex<State>>,
    memory: Memory,
    /// Id of what numbers the events, which is this process, or a session of a gateway. Positions in another log mean nothing here.
    instance: Arc<str>,
}

/// Where a reconnecting client wants to continue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Resume {
    /// True if the URL contained `after` or `instance`. Only such a client gets `connected`.
    pub(crate) is_asked: bool,
    /// The last event that the client has seen.
    pub(crate) after: Option<Place>,
    /// The process that sent this event; none if the client does not name it.
    pub(crate) instance: Option<String>,
}

/// The subscription of one client; dropping it removes the client.
#[derive(Debug)]
pub(crate) struct Subscription {
    clients: Clients,
    id: ClientId,
    account: Account,
    bell: Arc<Notify>,
}

impl Clients {
    /// Creates a server state without clients and events.
    pub(crate) fn new(memory: Memory) -> Self {
        Self::of_instance(memory, Uuid::new_v4().simple().to_string().into())
    }

    /// Creates a server state without clients and events, whose events have the numbers of an instance.
    pub(crate) fn of_instance(memory: Memory, instance: Arc<str>) -> Self {
        let state = State {
            log: Log::new(WEB_LOG_BYTES, WEB_LOG_ENTRIES),
            clients: HashMap::new(),
            made: 0,
            is_ending: false,
            questions: Vec::new(),
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            memory,
            instance,
        }
    }

    /// An account for a client that has not joined yet.
    pub(crate) fn account(&self) -> Account {
        self.memory.account()
    }

    /// Bytes that clients hold of the memory of all.
    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        self.memory.held()
    }

    /// Returns the id of this process.
    pub(crate) fn instance(&self) -> &Arc<str> {
        &self.instance
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of clients.
    pub(crate) fn count(&self) -> usize {
        self.state().clients.len()
    }

    /// Adds a client that gets all later events. It first gets all open dialogs, or, if the log still has its old
    /// position, all events since then. If it asked to resume, `connected` tells it which. None if there are too many
    /// clients, or the agent ends.
    pub(crate) fn join(&self, resume: &Resume) -> Option<Subscription> {
        let is_ours = resume.instance.as_ref().is_none_or(|id| **id == *self.instance);
        self.subscribe(
            first_options(),
            resume.after.filter(|_| is_ours),
            resume.is_asked,
            self.account(),
        )
    }

    /// Adds a client that gets only responses, and has this account.
    pub(crate) fn join_for_answer(&self, account: Account) -> Option<Subscription> {
        let last = self.last();
        self.subscribe(first_options().without_events(), Some(last), false, account)
    }

    fn subscribe(
        &self,
        options: NegotiatedOptions,
        after: Option<Place>,
        is_told: bool,
        account: Account,
    ) -> Option<Subscription> {
        let mut state = self.state();
        if state.is_ending || state.clients.len() >= WEB_CLIENTS {
            return None;
        }
        state.made += 1;
        let id = ClientId(state.made);
        let last = state.log.last();
        let place = after.filter(|place| state.log.count_after(*place).is_some());
        let at = place.unwrap_or(last);
        let mut private = VecDeque::new();
        // Both are short, and questions are shared.
        let frame = |frame| Private::Frame(frame, account.empty());
        if is_told {
            private.push_back((at, frame(self.greeting(place.is_some(), at))));
        }
        if place.is_none() {
            let questions = state.questions.iter();
            private.extend(questions.map(|open| (last, frame(open.frame.clone()))));
        }
        let waiting = private.iter().map(|(_, private)| private.bytes()).sum();
        let bell = Arc::new(Notify::new());
        bell.notify_one();
        let client = Client {
            reading: options.clone(),
            options,
            place: at,
            written: at,
            private,
            waiting,
            account: account.clone(),
            taken: Vec::new(),
            over: None,
            bell: Arc::clone(&bell),
        };
        state.clients.insert(id, client);
        Some(Subscription {
            clients: self.clone(),
            id,
            account,
            bell,
        })
    }

    /// Returns the first frame of a client that asked to resume.
    fn greeting(&self, is_complete: bool, place: Place) -> FrameText {
        let event = Event::Connected {
            instance_id: self.instance.to_string(),
            is_complete,
            last_seq: place,
        };
        serde_json::to_string(&event).unwrap_or_default().into()
    }

    /// Begins the log after an entry that another process numbered.
    pub(crate) fn begin_after(&self, place: Place) {
        self.state().log.begin_after(place);
    }

    /// Sends a frame without a number to each client that gets events about the subject.
    pub(crate) fn tell_all(&self, subject: &Subject, frame: &FrameText) {
        let ids: Vec<ClientId> = {
            let state = self.state();
            let clients = state.clients.iter();
            let wanting = clients.filter(|(_, client)| is_wanted(&client.options, subject));
            wanting.map(|(id, _)| *id).collect()
        };
        for id in ids {
            self.tell(id, frame.clone());
        }
    }

    /// Appends an entry for all clients; they can read it after `publish`.
    pub(crate) fn push(&self, entry: Entry) {
        self.state().log.push(entry);
    }

    /// Lets all clients read the entries so far.
    pub(crate) fn publish(&self) {
        let mut state = self.state();
        state.publish();
        state.ring();
    }

    /// Returns the latest options of a client. None after it has left.
    pub(crate) fn options(&self, id: ClientId) -> Option<NegotiatedOptions> {
        self.state().clients.get(&id).map(|client| client.options.clone())
    }

    /// Sends a frame to one client, at the current position of the log; does nothing after it has left. A client with
    /// too many unread bytes is disconnected.
    pub(crate) fn tell(&self, id: ClientId, frame: FrameText) {
        let mut state = self.state();
        state.publish();
        let State { log, clients, .. } = &mut *state;
        if let Some(client) = clients.get_mut(&id) {
            client.tell(log, frame);
        }
        state.ring();
    }

    /// Changes the events that a client gets from the current position on.
    pub(crate) fn agree(&self, id: ClientId, options: NegotiatedOptions) {
        if let Some(client) = self.state().clients.get_mut(&id) {
            // The next command builds on `options` at once; `reading` changes when the client reads up to here.
            client.options = options.clone();
        }
        self.private(id, Private::Agree(Box::new(options)));
    }

    /// Moves a client back to an older position.
    pub(crate) fn send_back(&self, id: ClientId, place: Place) {
        self.private(id, Private::Back(place));
    }

    fn private(&self, id: ClientId, what: Private) {
        let mut state = self.state();
        state.publish();
        let last = state.log.last();
        if let Some(client) = state.clients.get_mut(&id) {
            client.private.push_back((last, what));
        }
        state.ring();
    }

    /// Returns true while dialogs are open.
    pub(crate) fn has_questions(&self) -> bool {
        !self.state().questions.is_empty()
    }

    /// Replaces the open dialogs of the only session. Returns the frames of unknown ones, and the ids of closed ones.
    pub(crate) fn ask_instead(&self, dialogs: Vec<(String, FrameText)>) -> (Vec<FrameText>, Vec<String>) {
        let questions = &mut self.state().questions;
        let open = |(id, frame)| OpenDialog {
            id,
            session: None,
            frame,
        };
        let known = std::mem::replace(questions, dialogs.into_iter().map(open).collect());
        let has = |dialogs: &[OpenDialog], id: &str| dialogs.iter().any(|open| open.id == id);
        let new = questions.iter().filter(|open| !has(&known, &open.id));
        let new = new.map(|open| open.frame.clone()).collect();
        let over = known.iter().filter(|open| !has(questions, &open.id));
        (new, over.map(|open| open.id.clone()).collect())
    }

    /// Stores an open dialog of a session, so that clients that connect later get it too.
    pub(crate) fn asked(&self, id: &str, session: Option<Arc<str>>, frame: FrameText) {
        let id = id.to_owned();
        self.state().questions.push(OpenDialog { id, session, frame });
    }

    /// Removes a dialog that is over. Returns false if it was not open.
    pub(crate) fn settled(&self, id: &str) -> bool {
        self.remove_dialog(|open| open.id == id).is_some()
    }

    /// Removes the dialog that is over; ids are unique.
    fn remove_dialog(&self, is_over: impl Fn(&OpenDialog) -> bool) -> Option<OpenDialog> {
        let questions = &mut self.state().questions;
        let at = questions.iter().position(is_over)?;
        Some(questions.remove(at))
    }

    /// Forgets the dialogs of a session that has ended. Its end withdraws none of them; clients know it from `session_closed`.
    pub(crate) fn forget_dialogs(&self, session: &str) {
        let questions = &mut self.state().questions;
        questions.retain(|open| open.session.as_deref() != Some(session));
    }

    /// Withdraws a dialog from all other clients after one client answered it. An answer that names no session goes to the
    /// session that asked (docs/internals/decisions/29-answer-routes.md). An answer to another session than that of the
    /// dialog does not reach it, and must not take the dialog from clients that can answer.
    pub(crate) fn settle_for_all(&self, id: &str, session: Option<&str>) {
        let is_answered = |open: &OpenDialog| {
            open.id == id && session.is_none_or(|session| open.session.as_deref() == Some(session))
        };
        let Some(dialog) = self.remove_dialog(is_answered) else {
            return;
        };
        let target = serde_json::Value::from(id);
        let cancel = format!(
            "{{\"type\":\"extension_ui_request\",\"id\":{target},\"method\":\"cancel\",\"targetId\":{target}"
        );
        self.push(Entry {
            subject: Subject {
                name: "extension_ui_request",
                session: dialog.session,
            },
            text: Text::Line(cancel.into()),
        });
        self.publish();
    }

    /// Returns true once no new client is accepted.
    pub(crate) fn is_ending(&self) -> bool {
        self.state().is_ending
    }

    /// Waits until all clients have left.
    pub(crate) async fn all_left(&self) {
        while self.count() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Accepts no more clients.
    pub(crate) fn drain(&self) {
        self.state().is_ending = true;
    }

    /// Disconnects all clients after they have read their unread frames.
    pub(crate) fn end(&self) {
        let mut state = self.state();
        state.is_ending = true;
        for client in state.clients.values_mut() {
            client.over = Some(Over::Ending);
            client.bell.notify_one();
        }
    }
}

impl EventNumbers for Clients {
    fn last(&self) -> Place {
        self.state().log.last()
    }

    fn count_after(&self, place: Place) -> Option<usize> {
        self.state().log.count_after(place)
    }
}

impl State {
    fn publish(&mut self) {
        let Self { log, clients, .. } = self;
        // Events that a client has not read stay in the log, but not in addition to a long response.
        let keeps_events = |client: &&Client| client.over.is_none() && !client.has_long_response();
        let reading = || clients.values().filter(keeps_events);
        log.publish(|| reading().map(|client| client.written).min());
        for client in clients.values_mut() {
            let is_counted = client.waiting > 0 && !client.has_long_response();
            if is_counted && client.unread(log) > WEB_UNREAD_BYTES {
                client.expel();
            }
        }
    }

    fn ring(&self) {
        for client in self.clients.values() {
            client.bell.notify_one();
        }
    }
}

impl Subscription {
    /// The id under which responses come.
    pub(crate) fn id(&self) -> ClientId {
        self.id
    }

    /// Waits until there may be something to take. Cancel-safe.
    pub(crate) async fn rung(&self) {
        self.bell.notified().await;
    }

    /// Wakes the task of this client.
    pub(crate) fn ring(&self) {
        self.bell.notify_one();
    }

    /// The client's share of the memory of all clients.
    pub(crate) fn account(&self) -> &Account {
        &self.account
    }

    /// Takes the next frames, bounded; empty if there are none. The frames of the previous call count as written.
    ///
    /// # Errors
    /// When the client must be disconnected. Frames from before that are returned first.
    pub(crate) fn take(&self, frames: &mut Vec<FrameText>) -> Result<(), Over> {
        let mut state = self.clients.state();
        let State { log, clients, .. } = &mut *state;
        let Some(client) = clients.get_mut(&self.id) else {
            return Err(Over::Ending);
        };
        if client.over == Some(Over::TooSlow) {
            return Err(Over::TooSlow);
        }
        let outcome = client.take(log, frames);
        match (outcome, client.over) {
            (Err(Gone), _) => Err(Over::TooSlow),
            (Ok(()), Some(over)) if frames.is_empty() => Err(over),
            (Ok(()), _) => Ok(()),
        }
    }
}

impl Client {
    /// Bytes that the client has not read.
    fn unread(&self, log: &Log) -> usize {
        // Usually the whole log is below the limit, and counting from the client's position can be skipped.
        match self.waiting + log.bytes() {
            few if few <= WEB_UNREAD_BYTES => few,
            _ => self.waiting + log.bytes_after(self.written),
        }
    }

    /// Returns true while a response waits that alone is over the limit. `tell` takes it only if nothing else waits.
    fn has_long_response(&self) -> bool {
        self.waiting > WEB_UNREAD_BYTES
    }

    /// Queues a frame for this client alone. If no other frame is queued, it may have any length that memory allows.
    fn tell(&mut self, log: &Log, frame: FrameText) {
        if self.over.is_some() {
            return;
        }
        let is_alone = self.waiting == 0 && self.taken.is_empty();
        let reservation = if is_alone {
            self.account.reserve_whole(frame.len())
        } else {
            self.account.reserve(frame.len())
        };
        let Ok(reservation) = reservation else {
            return self.expel();
        };
        self.waiting += frame.len();
        self.private
            .push_back((log.last(), Private::Frame(frame, reservation)));
        if !is_alone && self.unread(log) > WEB_UNREAD_BYTES {
            self.expel();
        }
    }

    /// Disconnects the client and frees its queue.
    fn expel(&mut self) {
        // The first reason counts.
        if self.over.is_none() {
            self.over = Some(Over::TooSlow);
            self.private = VecDeque::new();
            self.waiting = 0;
            self.bell.notify_one();
        }
    }

    fn take(&mut self, log: &Log, frames: &mut Vec<FrameText>) -> Result<(), Gone> {
        let mut bytes = 0;
        self.taken.clear();
        self.written = self.place;
        // Bounded, so that a client's backlog holds the lock only briefly.
        while bytes < WEB_READ_BYTES {
            let until = self.private.front().map_or(log.last(), |(place, _)| *place);
            if self.place < until {
                let from = frames.len();
                let options = &self.reading;
                let wanted = |subject: &Subject| is_wanted(options, subject);
                self.place = log.read(self.place, until, WEB_READ_BYTES, wanted, frames)?;
                bytes += frames.iter().skip(from).map(FrameText::len).sum::<usize>();
                continue;
            }
            match self.private.pop_front() {
                None => break,
                Some((_, Private::Frame(frame, reservation))) => {
                    self.taken.push(reservation);
                    self.waiting = self.waiting.saturating_sub(frame.len());
                    bytes += frame.len();
                    frames.push(frame);
                }
                Some((_, Private::Agree(options))) => self.reading = *options,
                Some((_, Private::Back(place))) => (self.place, self.written) = (place, place),
            }
        }
        Ok(())
    }
}

/// Returns true if a client with these options gets events about the subject.
fn is_wanted(options: &NegotiatedOptions, subject: &Subject) -> bool {
    options.wants(subject.name) && options.wants_session(subject.session.as_deref())
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.clients.state().clients.remove(&self.id);
    }
}
