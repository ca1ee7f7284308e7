//! What the client has set, and the requests to it. Clones share it, since each of its tools holds one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wire::Event;
use wire::hosted::{Frame, HostUriScheme};

use crate::answer_routes::AnswerRoutes;

use super::definitions::ClientDefinition;
use super::requests::{Answer, Requests, Withdrawn};

/// What the client has set and what it was asked. Clones share it: each tool holds one.
#[derive(Clone, Default)]
pub(crate) struct ClientTools {
    shared: Arc<Mutex<Shared>>,
    pub(super) routes: AnswerRoutes,
}

#[derive(Default)]
pub(super) struct Shared {
    pub(super) tools: Vec<Arc<ClientDefinition>>,
    pub(super) schemes: Vec<HostUriScheme>,
    requests: Requests,
}

impl ClientTools {
    /// Client tools whose answers find back by these routes.
    pub(crate) fn new(routes: AnswerRoutes) -> Self {
        let shared = Arc::default();
        Self { shared, routes }
    }

    /// Returns true if the client has set tools or schemes, or a request waits for it.
    pub(crate) fn are_in_use(&self) -> bool {
        let shared = self.lock();
        !shared.tools.is_empty() || !shared.schemes.is_empty() || shared.requests.are_open()
    }

    /// The definition that the client has set last for a name.
    pub(super) fn definition(&self, name: &str) -> Option<Arc<ClientDefinition>> {
        let shared = self.lock();
        shared.tools.iter().find(|tool| tool.name == name).cloned()
    }

    /// The scheme of a URI, if the client serves it.
    pub(super) fn scheme_of(&self, uri: &str) -> Option<HostUriScheme> {
        // Schemes are stored in lower case. In a URI their case has no meaning (RFC 3986, 3.1).
        let name = uri.split_once("://")?.0.to_ascii_lowercase();
        let shared = self.lock();
        shared
            .schemes
            .iter()
            .find(|scheme| scheme.scheme == name)
            .cloned()
    }

    /// The state stays valid if a holder of the lock panics: every change is one assignment.
    pub(super) fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientTools {
    /// Makes a request; the session sends the event. Without a connection the answer is dropped at once.
    pub(super) fn request(&self, slot: usize, answer: Answer, event: impl FnOnce(String) -> Event) {
        let id = Requests::new_id();
        // Before the event is sent: the answer may come at once.
        let route = self.routes.open(&id);
        self.lock().requests.open((id, route), slot, answer, event);
    }

    /// Takes the events that have to be sent, in order.
    pub(crate) fn take_outgoing(&self) -> Vec<Event> {
        self.lock().requests.take_outgoing()
    }

    /// Returns true if a request waits for its answer.
    pub(crate) fn are_asked(&self) -> bool {
        self.lock().requests.are_open()
    }

    /// Returns true if the connection has ended.
    pub(super) fn is_gone(&self) -> bool {
        self.lock().requests.is_gone()
    }

    /// The connection has ended: requests from now on fail.
    pub(crate) fn lose_client(&self) {
        self.lock().requests.lose_client();
    }

    /// Withdraws the requests of some calls, which then end. Answers that come later find no request.
    pub(crate) fn withdraw(&self, which: impl Fn(usize) -> bool) -> Vec<Withdrawn> {
        self.lock().requests.withdraw(which)
    }

    /// Gives an answer to the request it is for. Returns the call that goes on with it; an answer to a request that is not open
    /// (any more) is ignored.
    ///
    /// # Errors
    /// The defect of the frame, for the client. The request stays open.
    pub(crate) fn answer(&self, frame: Frame) -> Result<Option<usize>, String> {
        self.lock().requests.answer(frame)
    }
}
