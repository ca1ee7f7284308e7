//! State that the handlers of a web server share: the clients, the way to the sessions, the guard.

use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Bytes;
use session::{ClientId, RequestSender};

use crate::clients::Clients;
use crate::guard::Guard;
use crate::memory::Reservation;
use crate::page::Page;
use crate::room::{Room, answered};
use serve::{Inbound, Manner, intake, parse_line};
use wire::{Dialect, Response};

/// The answer to commands that come while the agent ends.
const ENDING: &str = "The agent is shutting down";

/// The answer to a client that sends without end.
const TOO_MANY: &str = "Too many messages: wait a moment";

/// State of a web server.
pub(crate) struct WebState {
    pub(crate) clients: Clients,
    pub(crate) guard: Arc<Guard>,
    pub(crate) page: Arc<Page>,
    /// None once the agent ends, and where no session is.
    slot: Mutex<Option<Slot>>,
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
    pub(crate) async fn deliver(&self, line: Bytes, held: Reservation, client: ClientId) -> bool {
        self.pass(parse_line(&line), line, held, client).await
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
        // Frees the text before waiting for the session: the parsed command must not count twice.
        drop(line);
        if let Inbound::Frame(_, line) = &inbound
            && let Some(id) = answered(line)
        {
            self.clients.settle_for_all(&id);
        }
        let Some((mail, session)) = intake::mail(inbound, Manner::of(Dialect::Web), client) else {
            return true;
        };
        slot.post(mail, session, held).await
    }

    /// Rejects a command of a client that sends too much. The command reaches no session.
    pub(crate) fn refuse(&self, line: &[u8], client: ClientId) {
        self.answer(parse_line(line), TOO_MANY, client);
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
