//! What comes in: commands in the order they came, and the end of input. Lines become requests in `serve`.
//!
//! Order is kept even for the control lane, so that `prompt` and `abort` in one write mean what they say. Only while a
//! command waits, for the run to end or for something to load, do urgent requests overtake what came before them.

use std::any::Any;
use std::collections::VecDeque;

use tokio::sync::{mpsc, oneshot};
use wire::command::PermissionModeParams;
use wire::hosted::Frame;
use wire::reply::OpenSession;
use wire::state::PermissionMode;
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
            // A session only keeps their place among the responses (docs/internals/decisions/11-connection-commands.md).
            Self::Reject(..) | Self::Connection(..) | Self::Manager(..) => false,
            // The run may wait for an answer of the client, and the manager gives its questions up after a short time.
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
    /// Boxed: each session has room for 32 of them from its beginning.
    request: Box<SessionRequest>,
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
            &*self.request,
            SessionRequest::Command(_, SessionCommand::CloseSession(_))
        )
    }

    /// Returns true for the command that aborts the run of its session.
    pub(crate) fn is_abort(&self) -> bool {
        matches!(
            &*self.request,
            SessionRequest::Command(_, SessionCommand::Abort(_))
        )
    }

    /// Is it nothing that anybody wants of a session: an answer to a question, a line that was no command?
    pub(crate) fn is_answer(&self) -> bool {
        !matches!(
            *self.request,
            SessionRequest::Command(..) | SessionRequest::Manager(..) | SessionRequest::Connection(..)
        )
    }

    pub(crate) fn frame(&self) -> Option<&Frame> {
        match &*self.request {
            SessionRequest::Frame(frame) => Some(frame),
            _ => None,
        }
    }

    /// Takes out a command about the sessions of the process.
    ///
    /// # Errors
    /// Gives everything else back.
    pub(crate) fn into_manager_command(self) -> Result<(Origin, ManagerCommand), Box<Self>> {
        match *self.request {
            SessionRequest::Manager(origin, command) => Ok((origin, command)),
            request => Err(Box::new(Self {
                request: Box::new(request),
                ..self
            })),
        }
    }

    pub(crate) fn into_request(self) -> SessionRequest {
        *self.request
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
    /// The end of the queue was returned, and nothing was taken from `held_back` since.
    is_end_told: bool,
}

/// Both ends of a bounded queue of requests.
#[must_use]
pub fn request_queue() -> (RequestSender, RequestReceiver) {
    let (sender, incoming) = mpsc::channel(limits::MAILBOX);
    (
        RequestSender(sender),
        RequestReceiver {
            incoming,
            held_back: VecDeque::new(),
            is_end_told: false,
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
                request: Box::new(request),
                to,
                _held: Some(Box::new(held)),
            })
            .is_ok()
    }

    /// Has a session that works for another one go on with this mode. False if its queue is full: its owner must end it then,
    /// so that it does not go on with a looser mode.
    pub(crate) fn set_mode(&self, mode: PermissionMode) -> bool {
        let origin = Origin {
            client: ClientId::default(),
            id: None,
            command: "set_permission_mode",
        };
        let command = SessionCommand::SetPermissionMode(PermissionModeParams { mode });
        self.try_send(SessionRequest::Command(origin, command))
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
                request: Box::new(request),
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
        let request = Box::new(request);
        self.0.send(QueuedRequest { request, to, _held }).await.is_ok()
    }

    /// Queues a request from a task. False when the session is gone.
    pub async fn send(&self, request: SessionRequest) -> bool {
        let (to, held) = (None, None);
        self.0
            .send(QueuedRequest {
                request: Box::new(request),
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
        // Closed before it is emptied: a request that came later would get no response.
        self.incoming.close();
        // Requests that are held back came before those in the channel.
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
        // `held_back` is empty: only `next` fills it, and the manager calls this method alone.
        self.incoming.recv().await
    }

    /// Takes out the commands that are held back and for which `fits` returns true, in order.
    pub(crate) fn take_held_back(&mut self, fits: impl Fn(&SessionCommand) -> bool) -> Vec<SessionRequest> {
        let is_taken = |queued: &QueuedRequest| matches!(&*queued.request, SessionRequest::Command(_, command) if fits(command));
        let (taken, kept): (VecDeque<_>, VecDeque<_>) = std::mem::take(&mut self.held_back)
            .into_iter()
            .partition(is_taken);
        self.held_back = kept;
        taken.into_iter().map(QueuedRequest::into_request).collect()
    }

    /// Returns true while requests are held back that came in and were not returned.
    pub(crate) fn holds_back(&self) -> bool {
        !self.held_back.is_empty()
    }

    /// No more requests can come in.
    async fn tell_end(&mut self) -> Option<SessionRequest> {
        if self.is_end_told && self.holds_back() {
            // The session knows, and must not be woken for it again and again.
            return std::future::pending().await;
        }
        self.is_end_told = true;
        None
    }

    /// The next request, in the order it came; `None` when no more can come in. With `urgent_only` everything else is held back, as
    /// much of it as the queue holds, and comes later in its order. While requests are held back, the end is returned once for
    /// each of them: what they wait for may never happen unless the end of input stops it. Cancel-safe.
    pub(crate) async fn next(&mut self, urgent_only: bool) -> Option<SessionRequest> {
        if !urgent_only && let Some(queued) = self.held_back.pop_front() {
            self.is_end_told = false;
            return Some(*queued.request);
        }
        loop {
            if self.held_back.len() >= limits::MAILBOX {
                // No room to look further for urgent requests: the sender waits, as at every full queue. Nothing wakes a receiver that
                // does not receive when the last sender goes.
                while !self.incoming.is_closed() {
                    tokio::time::sleep(limits::END_POLL).await;
                }
                return self.tell_end().await;
            }
            let Some(queued) = self.incoming.recv().await else {
                return self.tell_end().await;
            };
            if !urgent_only || queued.request.is_urgent() {
                return Some(*queued.request);
            }
            // Nothing is awaited since the request was taken out, so a future that is dropped has lost none.
            self.held_back.push_back(queued);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use wire::command::NoParams;

    use super::*;
    use crate::outbox::{Outgoing, outbox};

    fn origin(command: &'static str) -> Origin {
        Origin {
            client: ClientId(7),
            id: None,
            command,
        }
    }

    fn abort() -> SessionRequest {
        SessionRequest::Command(origin("abort"), SessionCommand::Abort(NoParams::default()))
    }

    fn state() -> SessionRequest {
        SessionRequest::Command(origin("get_state"), SessionCommand::GetState(NoParams::default()))
    }

    fn manager() -> SessionRequest {
        SessionRequest::Manager(
            origin("list_open_sessions"),
            ManagerCommand::ListOpenSessions(NoParams::default()),
        )
    }

    fn name(request: &SessionRequest) -> &'static str {
        match request {
            SessionRequest::Command(origin, _) | SessionRequest::Manager(origin, _) => origin.command,
            other => panic!("{other:?}"),
        }
    }

    async fn next(requests: &mut RequestReceiver, urgent_only: bool) -> &'static str {
        name(&requests.next(urgent_only).await.expect("a request"))
    }

    fn is_pending<T>(future: impl Future<Output = T>) -> bool {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        std::pin::pin!(future).poll(&mut context).is_pending()
    }

    #[tokio::test]
    async fn urgent_request_keeps_its_place() {
        let (sender, mut requests) = request_queue();
        for request in [state(), abort(), manager()] {
            assert!(sender.try_send(request));
        }
        assert_eq!(next(&mut requests, false).await, "get_state");
        assert_eq!(next(&mut requests, false).await, "abort");
        assert_eq!(next(&mut requests, false).await, "list_open_sessions");
    }

    #[tokio::test]
    async fn urgent_request_overtakes_held_back_requests() {
        let (sender, mut requests) = request_queue();
        for request in [state(), manager(), abort(), state()] {
            assert!(sender.try_send(request));
        }
        assert_eq!(next(&mut requests, true).await, "abort");
        assert!(is_pending(requests.next(true)), "no other request is urgent");
        assert_eq!(next(&mut requests, false).await, "get_state");
        assert_eq!(next(&mut requests, false).await, "list_open_sessions");
        assert_eq!(next(&mut requests, false).await, "get_state");
    }

    #[tokio::test]
    async fn held_back_commands_are_taken_out_in_order() {
        let (sender, mut requests) = request_queue();
        let resume =
            || SessionRequest::Command(origin("continue"), SessionCommand::Continue(NoParams::default()));
        for request in [resume(), state(), manager(), resume(), abort()] {
            assert!(sender.try_send(request));
        }
        assert_eq!(next(&mut requests, true).await, "abort");
        let taken = requests.take_held_back(|command| matches!(command, SessionCommand::Continue(_)));
        assert_eq!(
            taken.iter().map(name).collect::<Vec<_>>(),
            ["continue", "continue"]
        );
        assert_eq!(next(&mut requests, false).await, "get_state");
        assert_eq!(next(&mut requests, false).await, "list_open_sessions");
        assert!(is_pending(requests.next(false)));
    }

    #[tokio::test]
    async fn queue_ends_after_held_back_requests() {
        let (sender, mut requests) = request_queue();
        for request in [state(), manager()] {
            assert!(sender.try_send(request));
        }
        drop(sender);
        for left in ["get_state", "list_open_sessions"] {
            assert!(requests.next(true).await.is_none() && requests.holds_back());
            assert!(is_pending(requests.next(true)), "the end was told");
            assert_eq!(next(&mut requests, false).await, left);
        }
        assert!(requests.next(false).await.is_none() && !requests.holds_back());
        assert!(requests.next(true).await.is_none());
    }

    #[tokio::test]
    async fn held_back_requests_are_bounded() {
        let (sender, mut requests) = request_queue();
        for _ in 0..limits::MAILBOX {
            assert!(sender.try_send(state()));
        }
        assert!(!sender.try_send(abort()), "the queue is full");
        assert!(is_pending(requests.next(true)));
        assert!(sender.try_send(abort()));
        assert!(is_pending(requests.next(true)), "no more requests are held back");
        assert_eq!(next(&mut requests, false).await, "get_state");
        assert_eq!(next(&mut requests, true).await, "abort");
    }

    #[tokio::test]
    async fn closed_queue_returns_held_back_requests_first() {
        let (sender, mut requests) = request_queue();
        assert!(sender.try_send(manager()));
        assert!(is_pending(requests.next(true)));
        assert!(sender.try_send(abort()));
        let left = requests.close();
        assert_eq!(
            left.iter().map(name).collect::<Vec<_>>(),
            ["list_open_sessions", "abort"]
        );
        assert!(sender.is_closed() && !sender.try_send(state()));
        assert!(!sender.send(state()).await);
    }

    #[tokio::test]
    async fn held_value_lives_until_request_is_taken() {
        let (sender, mut requests) = request_queue();
        let share = Arc::new(());
        for request in [state(), abort()] {
            assert!(sender.post(request, None, Arc::clone(&share)).await);
        }
        assert_eq!(Arc::strong_count(&share), 3);
        assert_eq!(next(&mut requests, true).await, "abort");
        assert_eq!(Arc::strong_count(&share), 2, "the other request is held back");
        assert_eq!(next(&mut requests, false).await, "get_state");
        assert_eq!(Arc::strong_count(&share), 1);
    }

    #[tokio::test]
    async fn passed_request_keeps_its_address() {
        let (sender, mut requests) = request_queue();
        let (onward, mut target) = request_queue();
        assert!(sender.post(state(), Some("s1".into()), ()).await);
        let queued = requests.next_queued().await.expect("a request");
        assert_eq!(queued.to(), Some("s1"));
        assert!(onward.pass(queued).await.is_ok());
        drop(target.close());
        let again = QueuedRequest {
            request: Box::new(abort()),
            to: Some("s2".into()),
            _held: None,
        };
        let back = onward.pass(again).await.expect_err("the session is gone");
        assert_eq!(back.to(), Some("s2"));
        assert_eq!(name(&back.into_request()), "abort");
    }

    #[test]
    fn manager_command_alone_is_taken_out() {
        let queued = |request| QueuedRequest {
            request: Box::new(request),
            to: Some("s1".into()),
            _held: None,
        };
        let (origin, _) = queued(manager())
            .into_manager_command()
            .ok()
            .expect("a manager command");
        assert_eq!(origin.command, "list_open_sessions");
        let back = queued(state()).into_manager_command().expect_err("given back");
        assert_eq!(back.to(), Some("s1"));
        assert_eq!(name(&back.into_request()), "get_state");
    }

    #[test]
    fn only_close_session_closes_its_session() {
        let queued = |request| QueuedRequest {
            request: Box::new(request),
            to: None,
            _held: None,
        };
        let close = SessionCommand::CloseSession(NoParams::default());
        let close = queued(SessionRequest::Command(origin("close_session"), close));
        assert!(close.is_closing() && !close.is_answer());
        let abort = queued(abort());
        assert!(!abort.is_closing() && !abort.is_answer());
        let (describe, _) = oneshot::channel();
        assert!(queued(SessionRequest::Describe(describe)).is_answer());
    }

    #[tokio::test]
    async fn turned_away_command_is_refused_for_its_client() {
        let (outbox, mut sent) = outbox(4);
        abort().turn_away(&outbox, "closed").await;
        let Some(Outgoing::Response(client, response)) = sent.recv().await else {
            panic!("no response");
        };
        assert_eq!(client, ClientId(7));
        assert_eq!(response.command, Some("abort".into()));
        assert_eq!(response.outcome.err().as_deref(), Some("closed"));
    }

    #[tokio::test]
    async fn turned_away_line_keeps_its_own_response() {
        let (outbox, mut sent) = outbox(4);
        let response = Response {
            id: None,
            command: Some("parse".into()),
            outcome: Err("no JSON".to_owned()),
        };
        SessionRequest::Reject(ClientId(2), response)
            .turn_away(&outbox, "closed")
            .await;
        let (describe, described) = oneshot::channel();
        SessionRequest::Describe(describe)
            .turn_away(&outbox, "closed")
            .await;
        assert!(described.await.is_err(), "a closed session is not described");
        let Ok(Outgoing::Response(client, response)) = sent.try_recv() else {
            panic!("no response");
        };
        assert_eq!(client, ClientId(2));
        assert_eq!(response.outcome.err().as_deref(), Some("no JSON"));
        assert!(sent.try_recv().is_err());
    }
}
