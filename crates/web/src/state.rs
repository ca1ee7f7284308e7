//! State that the handlers of a web server share: the clients, the way to the sessions, the guard.

use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Bytes;
use session::{ClientId, RequestSender};

use crate::clients::Clients;
use crate::guard::Guard;
use crate::limits::WEB_PARSE_BYTES;
use crate::memory::Reservation;
use crate::page::Page;
use crate::room::{Room, answered};
use serve::{Inbound, Manner, intake, parse_line};
use wire::{Dialect, Response, values};

/// The answer to commands that come while the agent ends.
const ENDING: &str = "The agent is shutting down";

/// The answer to a client that sends without end.
const TOO_MANY: &str = "Too many messages: wait a moment";

/// The answer to a message whose values take more memory than the client can hold.
const TOO_MUCH: &str = "The command has too many values for the memory of the server";

/// State of a web server.
pub(crate) struct WebState {
    pub(crate) clients: Clients,
    pub(crate) guard: Arc<Guard>,
    pub(crate) page: Arc<Page>,
    /// None once the agent ends, and where no session is.
    slot: Mutex<Option<Slot>>,
}

/// Parses a message. `held` grows by the memory that its values take, which can be many times that of the text.
pub(crate) async fn parsed(line: &Bytes, held: &mut Reservation) -> Inbound {
    let text = line.clone();
    let counted = aside(line.len(), move || {
        let is_short = text.len() <= WEB_PARSE_BYTES;
        // Lines with too many values for `parse_line` are refused there, with the limit.
        if is_short || values::has_too_many(&text) {
            return 0;
        }
        values::parsed_bytes(&text)
    });
    let bytes = counted.await.unwrap_or_default();
    if held.grow(bytes).is_err() {
        return refused(TOO_MUCH);
    }
    let text = line.clone();
    let parsed = aside(line.len(), move || parse_line(&text)).await;
    parsed.unwrap_or_else(|| refused(ENDING))
}

/// Does work for a message of this length, on another thread if it can take long. None if the program ends.
async fn aside<T: Send + 'static>(bytes: usize, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    if bytes <= WEB_PARSE_BYTES {
        return Some(work());
    }
    tokio::task::spawn_blocking(work).await.ok()
}

/// The answer to a message that is not read.
fn refused(error: &str) -> Inbound {
    Inbound::Rejected(Response {
        id: None,
        command: None,
        outcome: Err(error.to_owned()),
    })
}

/// What takes the commands of clients.
#[derive(Clone)]
pub(crate) enum Slot {
    /// The sessions of this process.
    Sessions(RequestSender),
    /// A session of a worker.
    Room(Arc<Room>),
}

impl WebState {
    pub(crate) fn new(clients: Clients, guard: Arc<Guard>, page: Arc<Page>, slot: Option<Slot>) -> Self {
        Self {
            clients,
            guard,
            page,
            slot: Mutex::new(slot),
        }
    }

    /// Accepts no more commands and clients, so that the sessions end. Connected clients stay, to get the last events.
    pub(crate) fn drain(&self) {
        self.clients.drain();
        self.slot.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Passes on what a client said; waits while the session takes nothing. `held` is returned once the session has taken it.
    /// False when the agent is gone.
    pub(crate) async fn deliver(&self, line: Bytes, mut held: Reservation, client: ClientId) -> bool {
        let inbound = parsed(&line, &mut held).await;
        self.pass(inbound, line, held, client).await
    }

    /// Sends a parsed command to its session. `line` is its text.
    pub(crate) async fn pass(
        &self,
        inbound: Inbound,
        line: Bytes,
        held: Reservation,
        client: ClientId,
    ) -> bool {
        let slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(slot) = slot else {
            self.answer(inbound, ENDING, client);
            return true;
        };
        let slot = match slot {
            Slot::Sessions(slot) => slot,
            Slot::Room(room) => return room.pass(inbound, line, client).await,
        };
        let bytes = line.len();
        // Frees the text before waiting for the session: the parsed command must not count twice.
        drop(line);
        // Frames are parsed only here.
        let read = aside(bytes, move || {
            let answered = match &inbound {
                Inbound::Frame(_, line) => answered(line),
                _ => None,
            };
            (answered, intake::mail(inbound, Manner::of(Dialect::Web), client))
        });
        let Some((answered, mail)) = read.await else {
            return true;
        };
        let Some((mail, session)) = mail else {
            return true;
        };
        if let Some(id) = answered {
            self.clients.settle_for_all(&id, session.as_deref());
        }
        slot.post(mail, session, held).await
    }

    /// Rejects a command of a client that sends too much. The command reaches no session.
    pub(crate) async fn refuse(&self, line: Bytes, mut held: Reservation, client: ClientId) {
        let inbound = parsed(&line, &mut held).await;
        self.answer(inbound, TOO_MANY, client);
    }

    /// Answers for the session.
    fn answer(&self, inbound: Inbound, error: &str, client: ClientId) {
        let (id, command) = match inbound {
            Inbound::Request(request) => (request.id, Some(request.command.name().into())),
            Inbound::Rejected(response) => (response.id, response.command),
            Inbound::Frame(..) | Inbound::Eof => return,
        };
        let outcome = Err(error.to_owned());
        let response = Response { id, command, outcome };
        if let Ok(line) = serde_json::to_string(&response) {
            self.clients.tell(client, line.into());
        }
    }
}
