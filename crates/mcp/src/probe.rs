//! Finds out whether a server speaks the revision of July 2026, which has no handshake: `server/discover` asks it. An older server
//! answers with an error, and `initialize` follows on the same connection. Some answer nothing; the wait for them is bounded here,
//! since `rmcp` would wait for ten seconds.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, JsonRpcError, JsonRpcMessage, ProtocolVersion,
    RequestId, ServerJsonRpcMessage,
};
use rmcp::service::ClientLifecycleMode;
use rmcp::transport::Transport;
use tokio::time::{Instant, timeout_at};

use crate::limits;

/// The newest revision that begins with `initialize`.
pub(crate) const LEGACY: ProtocolVersion = ProtocolVersion::V_2025_11_25;

/// Revisions without a handshake.
fn modern() -> Vec<ProtocolVersion> {
    vec![ProtocolVersion::V_2026_07_28]
}

/// What happened while a server was asked. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Probe(Arc<Seen>);

#[derive(Debug, Default)]
struct Seen {
    /// `server/discover` was sent.
    is_asked: AtomicBool,
    /// `initialize` was sent.
    is_greeted: AtomicBool,
    /// The server answered `server/discover` after the wait for it was over, or may do so.
    is_late: AtomicBool,
}

impl Probe {
    /// How a connection begins that knows nothing of the server.
    pub(crate) fn first() -> ClientLifecycleMode {
        ClientLifecycleMode::Auto {
            preferred_versions: modern(),
            legacy_version: Some(LEGACY),
        }
    }

    /// How another connection begins after the first one has failed; none if that would fail likewise.
    pub(crate) fn second(&self) -> Option<ClientLifecycleMode> {
        let is = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        match (is(&self.0.is_greeted), is(&self.0.is_late)) {
            // A new server that was slow to start knows no handshake.
            (true, true) => Some(ClientLifecycleMode::Discover {
                preferred_versions: modern(),
            }),
            (true, false) => None,
            // An old server may end because of a request that it does not know.
            (false, _) => is(&self.0.is_asked).then_some(ClientLifecycleMode::Initialize),
        }
    }

    /// Returns true if the wait for the answer to `server/discover` is limited. A server that answered late before gets the time that
    /// `rmcp` gives it.
    pub(crate) fn is_limited(&self) -> bool {
        !self.0.is_late.load(Ordering::Relaxed)
    }

    /// Notes that `server/discover` was not answered in time.
    pub(crate) fn note_silence(&self) {
        self.0.is_late.store(true, Ordering::Relaxed);
    }
}

/// The error in place of an answer to `server/discover` that did not come.
pub(crate) fn no_answer(id: Option<RequestId>) -> ServerJsonRpcMessage {
    JsonRpcMessage::error(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "no answer", None), id)
}

/// A way to a server on which `server/discover` is answered in time: by an error, if the server says nothing.
pub(crate) struct Probing<T> {
    inner: T,
    probe: Probe,
    /// The request that is not answered yet, and when the wait is over.
    asked: Option<(RequestId, Instant)>,
    /// The request whose answer does not count any more.
    given_up: Option<RequestId>,
}

impl<T> Probing<T> {
    /// Nothing was asked on this way.
    pub(crate) fn new(inner: T, probe: &Probe) -> Self {
        Self {
            inner,
            probe: probe.clone(),
            asked: None,
            given_up: None,
        }
    }

    fn note(&mut self, item: &ClientJsonRpcMessage) {
        let JsonRpcMessage::Request(request) = item else {
            return;
        };
        match &request.request {
            ClientRequest::DiscoverRequest(_) => {
                self.probe.0.is_asked.store(true, Ordering::Relaxed);
                if self.probe.is_limited() {
                    self.asked = Some((request.id.clone(), Instant::now() + limits::PROBE));
                }
            }
            ClientRequest::InitializeRequest(_) => {
                self.probe.0.is_greeted.store(true, Ordering::Relaxed);
                self.give_up();
            }
            _ => {}
        }
    }

    /// Does not wait for an answer any more.
    fn give_up(&mut self) -> Option<RequestId> {
        let (id, _) = self.asked.take()?;
        self.given_up = Some(id.clone());
        Some(id)
    }

    /// Returns true for an answer that comes too late.
    fn is_late(&mut self, message: &ServerJsonRpcMessage) -> bool {
        let (id, is_error) = match message {
            JsonRpcMessage::Response(response) => (Some(&response.id), false),
            JsonRpcMessage::Error(JsonRpcError { id, .. }) => (id.as_ref(), true),
            _ => return false,
        };
        if id.is_some() && id == self.given_up.as_ref() {
            self.probe.0.is_late.fetch_or(!is_error, Ordering::Relaxed);
            self.given_up = None;
            return true;
        }
        // An error without an id answers the request that is open.
        self.asked.take_if(|(asked, _)| id.is_none_or(|id| id == asked));
        false
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Probing<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        self.note(&item);
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let message = match &self.asked {
                None => self.inner.receive().await?,
                Some((_, until)) => match timeout_at(*until, self.inner.receive()).await {
                    Ok(message) => message?,
                    Err(_) => return Some(no_answer(self.give_up())),
                },
            };
            if !self.is_late(&message) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        self.inner.close().await
    }
}
