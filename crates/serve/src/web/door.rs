//! What the handlers of a web door share: the clients, the way to the sessions, the guard.

use std::sync::Arc;

use host::{ClientId, Slot};
use tokio::sync::Semaphore;

use super::clients::Clients;
use super::guard::Guard;
use super::page::Page;
use crate::intake;
use crate::limits::WEB_INPUT_BYTES;
use crate::manner::Manner;
use crate::parse::{Inbound, parse_line};
use wire::Dialect;

/// See the module's page.
pub(crate) struct Door {
    pub(crate) clients: Clients,
    pub(crate) guard: Guard,
    pub(crate) page: Page,
    slot: Slot,
    /// Bytes of messages that may wait for sessions.
    room: Arc<Semaphore>,
}

impl Door {
    pub(crate) fn new(clients: Clients, guard: Guard, page: Page, slot: Slot) -> Self {
        Self {
            clients,
            guard,
            page,
            slot,
            room: Arc::new(Semaphore::new(WEB_INPUT_BYTES)),
        }
    }

    /// Passes on what a client said; waits while the session takes nothing. False when the agent ends.
    pub(crate) async fn deliver(&self, line: &[u8], client: ClientId) -> bool {
        self.pass(parse_line(line), line.len(), client).await
    }

    /// The same for what was looked at already.
    pub(crate) async fn pass(&self, inbound: Inbound, bytes: usize, client: ClientId) -> bool {
        if let Inbound::Frame(_, line) = &inbound
            && let Some(id) = answered(line)
        {
            self.clients.settle_for_all(&id);
        }
        let Some((mail, session)) = intake::mail(inbound, Manner::of(Dialect::Web), client) else {
            return true;
        };
        let share = u32::try_from(bytes.clamp(1, WEB_INPUT_BYTES)).unwrap_or(u32::MAX);
        let held = Arc::clone(&self.room).acquire_many_owned(share).await;
        held.is_ok() && self.slot.post(mail, session, held.ok()).await
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
