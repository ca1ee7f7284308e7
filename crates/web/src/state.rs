//! What the handlers of the web server share: the clients, the way to the sessions, the guard.

use std::sync::{Mutex, PoisonError};

use axum::body::Bytes;
use host::{ClientId, Slot};

use crate::clients::Clients;
use crate::guard::Guard;
use crate::memory::Reservation;
use crate::page::Page;
use serve::{Inbound, Manner, intake, parse_line};
use wire::{Dialect, Response};

/// The answer to commands that come while the agent ends.
const ENDING: &str = "The agent is shutting down";

/// The answer to a client that sends without end.
const TOO_MANY: &str = "Too many messages: wait a moment";

/// The state that the handlers share.
pub(crate) struct WebState {
    pub(crate) clients: Clients,
    pub(crate) guard: Guard,
    pub(crate) page: Page,
    /// None once the agent ends.
    slot: Mutex<Option<Slot>>,
}

impl WebState {
    pub(crate) fn new(clients: Clients, guard: Guard, page: Page, slot: Slot) -> Self {
        Self {
            clients,
            guard,
            page,
            slot: Mutex::new(Some(slot)),
        }
    }

    /// Takes no more commands and no more clients: sessions end. Who is there stays, to hear how they do.
    pub(crate) fn drain(&self) {
        self.clients.drain();
        self.slot.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Passes on what a client said; waits while the session takes nothing. `held` is returned once the session has taken it.
    /// False when the agent is gone.
    pub(crate) async fn deliver(&self, line: Bytes, held: Reservation, client: ClientId) -> bool {
        let inbound = parse_line(&line);
        // Not kept beside what was parsed while it waits.
        drop(line);
        self.pass(inbound, held, client).await
    }

    /// Passes on what was parsed already.
    pub(crate) async fn pass(&self, inbound: Inbound, held: Reservation, client: ClientId) -> bool {
        let slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(slot) = slot else {
            self.answer(inbound, ENDING, client);
            return true;
        };
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

    /// Tells a client that sends too much that this was too much; nobody else hears of it.
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

/// The question that a frame answers.
fn answered(line: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Head {
        id: String,
    }
    serde_json::from_str::<Head>(line).ok().map(|head| head.id)
}
