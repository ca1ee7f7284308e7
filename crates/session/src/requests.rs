//! What comes in: commands in the order they came, and the end of input. Lines become requests in `serve`.
//!
//! Order is kept even for the control lane, so that `prompt` and `abort` in one write mean what they say. Only while a
//! command waits for the run to end do urgent requests overtake what came before it.

use std::any::Any;
use std::collections::VecDeque;

use tokio::sync::{mpsc, oneshot};
use wire::hosted::Frame;
use wire::reply::OpenSession;
use wire::{ConnectionCommand, Lane, ManagerCommand, Response, SessionCommand};

use crate::limits;
use crate::outbox::{ClientId, Origin, Outbox};
use crate::retired::Retired;

/// A thing for the session to deal with.
#[derive(Debug)]
#[expect(private_interfaces, reason = "only the manager puts a session away")]
pub enum SessionRequest {
    /// A command of the session.
    Command(Origin, SessionCommand),
    /// A command about the sessions of the process, for the manager.
    Manager(Origin, ManagerCommand),
    /// A command of the connection, not of the session, which only keeps its place and passes it on to the writer.
    Connection(Origin, ConnectionCommand),
    /// An answer of the host to a question of ours.
    Frame(Frame),
    /// A line that was no command; the answer is ready and only has to keep its place.
    Reject(ClientId, Response),
    /// The manager wants to know what the session is.
    Describe(oneshot::Sender<OpenSession>),
    /// The manager wants to evict the session. It ends if it returns the state that it needs to continue later.
    Retire(oneshot::Sender<Option<Box<Retired>>>),
}

impl SessionRequest {
    /// Does it overtake what waits?
    #[must_use]
    pub fn is_urgent(&self) -> bool {
        match self {
            Self::Command(_, command) => command.lane() == Lane::Control,
            Self::Reject(..) | Self::Connection(..) | Self::Manager(..) => false,
            Self::Describe(_) | Self::Frame(_) | Self::Retire(_) => true,
        }
    }

    /// Answers a request that no session takes any more.
    pub(crate) async fn turn_away(self, outbox: &Outbox, error: &str) {
        match self {
            Self::Command(origin, _) | Self::Manager(origin, _) | Self::Connection(origin, _) => {
                outbox.refuse(origin, error).await;
            }
            Self::Reject(client, response) => drop(outbox.response(client, response).await),
            // A session that is gone waits for no answers.
            Self::Describe(_) | Self::Retire(_) | Self::Frame(_) => {}
        }
    }
}

/// A request on its way, with a value that is dropped when it is taken out (its share of a memory budget).
pub(crate) struct QueuedRequest {
    request: SessionRequest,
    /// The session it is for; none means the first.
    to: Option<Box<str>>,
    _held: Option<Box<dyn Any + Send>>,
}

impl QueuedRequest {
    pub(crate) fn to(&self) -> Option<&str> {
        self.to.as_deref()
    }

    /// Returns true for the command that closes its session.
    pub(crate) fn is_closing(&self) -> bool {
        matches!(
            &self.request,
            SessionRequest::Command(_, SessionCommand::CloseSession(_))
        )
    }

    /// Is it nothing that anybody wants of a session: an answer to a question, a line that was no command?
    pub(crate) fn is_answer(&self) -> bool {
        !matches!(
            self.request,
            SessionRequest::Command(..) | SessionRequest::Manager(..) | SessionRequest::Connection(..)
        )
    }

    pub(crate) fn frame(&self) -> Option<&Frame> {
        match &self.request {
            SessionRequest::Frame(frame) => Some(frame),
            _ => None,
        }
    }

    /// Takes out a command about the sessions of the process.
    ///
    /// # Errors
    /// Gives everything else back.
    pub(crate) fn into_manager_command(self) -> Result<(Origin, ManagerCommand), Box<Self>> {
        match self.request {
            SessionRequest::Manager(origin, command) => Ok((origin, command)),
            request => Err(Box::new(Self { request, ..self })),
        }
    }

    pub(crate) fn into_request(self) -> SessionRequest {
        self.request
    }
}

/// Where requests are queued. When all clones are dropped the session ends.
#[derive(Clone)]
pub struct RequestSender(mpsc::Sender<QueuedRequest>);

/// Where the session takes requests.
pub struct RequestReceiver {
    incoming: mpsc::Receiver<QueuedRequest>,
    /// Requests that came while only urgent ones were wanted.
    held_back: VecDeque<QueuedRequest>,
}

/// A slot and its request_queue, bounded.
#[must_use]
pub fn request_queue() -> (RequestSender, RequestReceiver) {
    let (sender, incoming) = mpsc::channel(limits::MAILBOX);
    (
        RequestSender(sender),
        RequestReceiver {
            incoming,
            held_back: VecDeque::new(),
        },
    )
}

impl RequestSender {
    /// Queues a request from a thread that may wait, for a session or for the first one. `held` is dropped when the request is taken
    /// out. False when the session is gone.
    #[must_use]
    pub fn put(&self, request: SessionRequest, to: Option<Box<str>>, held: impl Any + Send) -> bool {
        self.0
            .blocking_send(QueuedRequest {
                request,
                to,
                _held: Some(Box::new(held)),
            })
            .is_ok()
    }

    /// Passes on what came through another slot.
    ///
    /// # Errors
    /// Gives it back when the session is gone.
    pub(crate) async fn pass(&self, queued: QueuedRequest) -> Result<(), Box<QueuedRequest>> {
        self.0.send(queued).await.map_err(|error| Box::new(error.0))
    }

    /// Queues a request if there is room at once.
    pub(crate) fn try_send(&self, request: SessionRequest) -> bool {
        let (to, held) = (None, None);
        self.0
            .try_send(QueuedRequest {
                request,
                to,
                _held: held,
            })
            .is_ok()
    }

    /// Returns true if the session is gone.
    pub(crate) fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    /// Queues a request from a task, for a session or for the first one; waits while there is no room. `held` is dropped when the
    /// request is taken out. False when the session is gone.
    pub async fn post(&self, request: SessionRequest, to: Option<Box<str>>, held: impl Any + Send) -> bool {
        let _held: Option<Box<dyn Any + Send>> = Some(Box::new(held));
        self.0.send(QueuedRequest { request, to, _held }).await.is_ok()
    }

    /// Queues a request from a task. False when the session is gone.
    pub async fn send(&self, request: SessionRequest) -> bool {
        let (to, held) = (None, None);
        self.0
            .send(QueuedRequest {
                request,
                to,
                _held: held,
            })
            .await
            .is_ok()
    }
}

impl RequestReceiver {
    /// Takes no more requests, and returns the remaining ones.
    pub(crate) fn close(&mut self) -> Vec<SessionRequest> {
        self.incoming.close();
        let mut left: Vec<SessionRequest> = self
            .held_back
            .drain(..)
            .map(QueuedRequest::into_request)
            .collect();
        while let Ok(queued) = self.incoming.try_recv() {
            left.push(queued.into_request());
        }
        left
    }

    /// The next request with its address, to be passed on. Cancel-safe.
    pub(crate) async fn next_queued(&mut self) -> Option<QueuedRequest> {
        self.incoming.recv().await
    }

    /// The next request, in the order it came; `None` when there will be no more and nothing is held back. With `urgent_only` everything else is held
    /// back, as much of it as the requests holds, and comes later in its order. Cancel-safe.
    pub(crate) async fn next(&mut self, urgent_only: bool) -> Option<SessionRequest> {
        if !urgent_only && let Some(queued) = self.held_back.pop_front() {
            return Some(queued.request);
        }
        loop {
            if self.held_back.len() >= limits::MAILBOX {
                // No room to look further for urgent requests: the sender waits, as at every full queue.
                return std::future::pending().await;
            }
            let Some(queued) = self.incoming.recv().await else {
                return if self.held_back.is_empty() {
                    None
                } else {
                    std::future::pending().await
                };
            };
            if !urgent_only || queued.request.is_urgent() {
                return Some(queued.request);
            }
            self.held_back.push_back(queued);
        }
    }
}
