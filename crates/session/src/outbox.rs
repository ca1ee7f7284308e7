//! What a session tells the outside, in one order: events and the answers to commands. The queue is bounded: a full one
//! makes the sender wait; that is how a reader that does not read stops a session instead of filling the memory. How items
//! become bytes is `serve`'s business.

use std::pin::Pin;
use std::sync::Arc;

use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};
use wire::connection::{HelloParams, Snapshot};
use wire::table::Respond;
use wire::ui::UiMethod;
use wire::{ConnectionCommand, Event, Reply, Response, StreamEvent, UserBlock};

use crate::answer_routes::AnswerRoutes;
use crate::event_scope::EventScope;
use crate::limits::{OUTBOX_DELTA_BYTES, OUTBOX_RESPONSE_BYTES, START_LINE_WAIT};
use crate::listener_queue::ListenerQueue;
use crate::live_state::LiveState;
use crate::reply_size::reply_bytes;
use crate::trace::Trace;
use crate::ui_capabilities::UiCapabilities;

/// Something to be written.
#[derive(Debug)]
#[non_exhaustive]
pub enum Outgoing {
    /// An event, for every client.
    Event(Arc<Event>),
    /// A response, for the client of the command.
    Response(ClientId, Response),
    /// A command of the connection: the writer carries it out and replies at this place. `replay` brings a snapshot of the
    /// session at this place.
    Connection(Origin, ConnectionCommand, Option<Box<Snapshot>>),
    /// The model has changed. Protocols that show the options of a session read them again; JSON lines have no event for it.
    OptionsChanged,
    /// Whether the end of a background process may begin a run of the idle session from here on.
    PendingWakeup(bool),
    /// Answered when everything before it was written.
    Flush(oneshot::Sender<()>),
}

/// The writer is gone: its output was closed, or the process is ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the output was closed")]
pub struct WriterGone;

/// One client of a server with several clients; a connection with one client uses the default. Numbers are never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct ClientId(pub u64);

/// Whom to answer.
#[derive(Debug, Clone)]
pub struct Origin {
    /// Who asked.
    pub client: ClientId,
    /// The command's `id`, if it had one.
    pub id: Option<Box<RawValue>>,
    /// The command's name.
    pub command: &'static str,
}

/// Sends the reply to one command. `R` is the reply that the command's row of the table names, so that nothing else can be
/// sent, and sending uses the responder up, so that nothing is sent twice.
#[must_use = "a command without a response leaves its client waiting"]
pub struct Responder<R> {
    origin: Origin,
    queue: mpsc::Sender<Outgoing>,
    convert: Convert<R>,
}

/// Makes the reply of an outcome.
type Convert<R> = Box<dyn FnOnce(Result<R, String>) -> Result<Reply, String> + Send>;

impl<R> std::fmt::Debug for Responder<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Responder")
            .field("origin", &self.origin)
            .finish_non_exhaustive()
    }
}

impl<R: Into<Reply>> Responder<R> {
    pub(crate) fn new(origin: Origin, outbox: &Outbox) -> Self {
        Self {
            origin,
            queue: outbox.queue.clone(),
            convert: Box::new(|outcome| outcome.map(R::into)),
        }
    }

    /// Who is waiting for the reply.
    pub(crate) fn origin(&self) -> &Origin {
        &self.origin
    }

    /// A responder for a command that is carried out as another one; `convert` makes the reply of the other's outcome.
    pub(crate) fn taking<S>(
        self,
        convert: impl FnOnce(Result<S, String>) -> Result<Reply, String> + Send + 'static,
    ) -> Responder<S> {
        Responder {
            origin: self.origin,
            queue: self.queue,
            convert: Box::new(convert),
        }
    }

    /// Replies that the command has begun. The reply to its end follows.
    pub(crate) async fn respond_early(&self, reply: R) {
        let response = Response {
            id: self.origin.id.clone(),
            command: Some(self.origin.command.into()),
            outcome: Ok(reply.into()),
        };
        // As in `respond`.
        let _gone = respond(&self.queue, self.origin.client, response).await;
    }

    /// Replies that the command failed.
    pub(crate) async fn refuse(self, error: impl Into<String>) {
        self.respond(Err(error.into())).await;
    }
}

impl<R: Into<Reply>> Respond<R> for Responder<R> {
    async fn respond(self, outcome: Result<R, String>) {
        let response = Response {
            id: self.origin.id,
            command: Some(self.origin.command.into()),
            outcome: (self.convert)(outcome),
        };
        // A writer that is gone has no client either.
        let _gone = respond(&self.queue, self.origin.client, response).await;
    }
}

/// A handle to the queue; clones share it. The writer ends when all are dropped.
#[derive(Debug, Clone)]
pub struct Outbox {
    queue: mpsc::Sender<Outgoing>,
    scope: EventScope,
    trace: Trace,
    /// The events that are still in force, for clients that join later.
    standing: LiveState,
    /// Events that extensions and hooks listen to, until the session passes them on.
    listeners: ListenerQueue,
    /// The dialogs that a client can show; shared by all sessions of a connection.
    rendered: UiCapabilities,
    /// The questions to the client that are open; shared by all sessions of a connection.
    routes: AnswerRoutes,
}

/// Makes a queue for `capacity` items (usually [`OUTBOX`](crate::limits::OUTBOX)).
#[must_use]
pub fn outbox(capacity: usize) -> (Outbox, mpsc::Receiver<Outgoing>) {
    // tokio panics on a channel without room.
    let (queue, receiver) = mpsc::channel(capacity.max(1));
    (
        Outbox {
            queue,
            scope: EventScope::All,
            trace: Trace::default(),
            standing: LiveState::default(),
            listeners: ListenerQueue::default(),
            rendered: UiCapabilities::default(),
            routes: AnswerRoutes::default(),
        },
        receiver,
    )
}

impl Outbox {
    /// Sends an event; waits while the queue is full.
    ///
    /// # Errors
    /// When the writer is gone.
    pub async fn event(&self, event: Arc<Event>) -> Result<(), WriterGone> {
        // Events without text are bounded by the number of places alone.
        let most = OUTBOX_DELTA_BYTES / text_bytes(&event).max(1);
        send_among(&self.queue, Outgoing::Event(event), most).await
    }

    /// Sends a response; waits while the queue is full.
    ///
    /// # Errors
    /// When the writer is gone.
    pub async fn response(&self, client: ClientId, response: Response) -> Result<(), WriterGone> {
        respond(&self.queue, client, response).await
    }

    /// Waits until everything sent before was written.
    ///
    /// # Errors
    /// When the writer is gone.
    pub async fn flush(&self) -> Result<(), WriterGone> {
        let (done, wait) = oneshot::channel();
        self.send(Outgoing::Flush(done)).await?;
        // A writer that ends before it has written everything drops its end.
        wait.await.map_err(|_| WriterGone)
    }

    /// For an output without a client that answers: every dialog returns its default at once.
    pub fn render_nothing(&self) {
        self.rendered.nothing();
    }

    /// For an output with several clients: a dialog that one of them cannot show may be shown by another.
    pub fn render_all(&self) {
        self.rendered.shared();
    }

    /// Returns true if clients still read after the input has ended. With many clients the input ends because the agent does.
    pub(crate) fn is_heard_to_the_end(&self) -> bool {
        self.rendered.is_shared()
    }

    /// Returns true if a client can show a frame of this method.
    pub(crate) fn renders(&self, method: UiMethod) -> bool {
        // After the end of the input a client may still look, but it cannot answer.
        (self.scope.is_all() || method.only_shows()) && self.rendered.has(method)
    }

    /// The client says what it renders, for this session and all others of the connection.
    pub(crate) fn apply_hello(&self, hello: &HelloParams) {
        self.rendered.apply_hello(hello);
    }

    /// A queue for another session of the same connection.
    pub(crate) fn for_another(&self, handle: &Arc<str>, capacity: usize) -> (Self, mpsc::Receiver<Outgoing>) {
        // What clients can show and which questions are open concerns the connection; all else is the session's own.
        let (other, receiver) = outbox(capacity);
        let other = Self {
            rendered: self.rendered.clone(),
            routes: self.routes.of_session(handle),
            ..other
        };
        (other, receiver)
    }

    /// Returns true for the queue of another session than the first one of the connection.
    pub(crate) fn is_of_another(&self) -> bool {
        self.routes.is_of_another()
    }

    /// A queue for a session that an extension opens. The extension gives its answers to the session itself.
    pub(crate) fn for_subordinate(&self, capacity: usize) -> (Self, mpsc::Receiver<Outgoing>) {
        let (other, receiver) = outbox(capacity);
        let rendered = self.rendered.clone();
        (Self { rendered, ..other }, receiver)
    }

    /// The questions to the client that are open.
    pub(crate) fn routes(&self) -> &AnswerRoutes {
        &self.routes
    }

    /// Resolves when the writer is gone.
    pub async fn closed(&self) {
        self.queue.closed().await;
    }

    /// Returns this queue for a session whose input has ended: it still sends responses, and the events of `scope`.
    pub(crate) fn at_end_of_input(&self, scope: EventScope) -> Self {
        Self {
            scope,
            ..self.clone()
        }
    }

    /// The same queue for a session whose events are traced, too.
    pub(crate) fn traced(&self, session_id: &str) -> Self {
        Self {
            trace: Trace::new(session_id),
            ..self.clone()
        }
    }

    /// The spans of the session.
    pub(crate) fn trace(&self) -> &Trace {
        &self.trace
    }

    /// The same queue for a task of the session, which waits while listeners have too many events.
    pub(crate) fn for_task(&self) -> Self {
        Self {
            listeners: self.listeners.for_task(),
            ..self.clone()
        }
    }

    /// Returns the events that are still in force.
    pub(crate) fn standing(&self) -> &LiveState {
        &self.standing
    }

    /// Returns the events that extensions and hooks have not received yet.
    pub(crate) fn listeners(&self) -> &ListenerQueue {
        &self.listeners
    }

    /// Sends an event to clients, and to the extensions and hooks that listen to it.
    pub(crate) async fn tell(&self, event: Event) {
        let event = Arc::new(event);
        // Before the wait for a client that does not read.
        self.listeners.push(&event).await;
        self.tell_clients(event).await;
    }

    /// Sends clients an event that its listeners have received before: an event of a run (`Driver::tell`). A writer that is gone is no
    /// error: the process is about to end then.
    pub(crate) async fn tell_clients(&self, event: Arc<Event>) {
        // Deltas are the most frequent events by far, and neither logs nor the live state depend on them.
        let is_delta = matches!(*event, Event::MessageUpdate { .. });
        if !is_delta {
            // Traced even if no client listens: logs are not for clients.
            self.trace.saw(&event);
        }
        if !self.scope.includes(&event) {
            return;
        }
        if !is_delta {
            self.standing.saw(&event);
        }
        let _gone = self.event(event).await;
    }

    /// Sends something that is no event, and that only a client that still reads needs.
    pub(crate) async fn inform(&self, item: Outgoing) {
        if self.scope.is_all() {
            let _gone = self.send(item).await;
        }
    }

    /// Sends a message for people. No client depends on it.
    pub(crate) async fn notice(&self, level: &str, message: String) {
        let level = level.to_owned();
        self.tell(Event::Notice { level, message }).await;
    }

    /// Passes a command of the connection on.
    pub(crate) async fn ask_connection(
        &self,
        origin: Origin,
        command: ConnectionCommand,
        snapshot: Option<Box<Snapshot>>,
    ) {
        // Without a writer there is no connection that could reply.
        let _gone = self.send(Outgoing::Connection(origin, command, snapshot)).await;
    }

    /// Replies with an error to a command that is not carried out.
    pub(crate) async fn refuse(&self, origin: Origin, error: impl Into<String>) {
        Responder::<()>::new(origin, self).refuse(error).await;
    }

    async fn send(&self, item: Outgoing) -> Result<(), WriterGone> {
        self.queue.send(item).await.map_err(|_| WriterGone)
    }
}

impl tools::StartLine for Outbox {
    /// Calls begin after their line was sent, so a flush that begins now includes it. A client that has stopped reading must not
    /// keep a call from running for ever.
    fn written(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async {
            let _written_or_gone = tokio::time::timeout(START_LINE_WAIT, self.flush()).await;
        })
    }
}

/// Queues an item once fewer than `most` others are queued. A number of items bounds their bytes only if they are short, so a long
/// one waits for more places than it takes.
async fn send_among(queue: &mpsc::Sender<Outgoing>, item: Outgoing, most: usize) -> Result<(), WriterGone> {
    // With so many places free, fewer than `most` items are queued.
    let places = queue.max_capacity().saturating_sub(most.saturating_sub(1)).max(1);
    if places == 1 {
        return queue.send(item).await.map_err(|_| WriterGone);
    }
    let mut free = queue.reserve_many(places).await.map_err(|_| WriterGone)?;
    // The places that are not used return to the queue when `free` is dropped.
    if let Some(place) = free.next() {
        place.send(item);
    }
    Ok(())
}

/// Queues a response. Behind others it is measured first: a client that asks on and on without reading must not fill the memory
/// with trees and texts.
async fn respond(
    queue: &mpsc::Sender<Outgoing>,
    client: ClientId,
    response: Response,
) -> Result<(), WriterGone> {
    // An empty queue takes a response of any length. Measuring it would cost as much as writing it.
    let is_next = queue.capacity() == queue.max_capacity();
    let most = match &response.outcome {
        Ok(reply) if !is_next => OUTBOX_RESPONSE_BYTES / reply_bytes(reply).max(1),
        // The next response has room in any case, and errors are short.
        Ok(_) | Err(_) => usize::MAX,
    };
    send_among(queue, Outgoing::Response(client, response), most).await
}

/// Bytes of text in an event that others of its kind follow while something goes on; 0 for all other events.
fn text_bytes(event: &Event) -> usize {
    match event {
        Event::MessageUpdate {
            assistant_message_event,
            ..
        } => streamed_bytes(assistant_message_event),
        Event::BashExecutionUpdate { delta, .. } => delta.len(),
        Event::ToolExecutionUpdate { partial_result, .. } => {
            let texts = partial_result.content.iter().filter_map(UserBlock::as_text);
            texts.map(str::len).sum()
        }
        _ => 0,
    }
}

/// Bytes of text in an update of an answer.
fn streamed_bytes(event: &StreamEvent) -> usize {
    match event {
        StreamEvent::TextDelta { delta, .. }
        | StreamEvent::ThinkingDelta { delta, .. }
        | StreamEvent::ToolcallDelta { delta, .. } => delta.len(),
        StreamEvent::TextEnd { content, .. } | StreamEvent::ThinkingEnd { content, .. } => content.len(),
        StreamEvent::TextStart { .. }
        | StreamEvent::ThinkingStart { .. }
        | StreamEvent::ToolcallStart { .. }
        | StreamEvent::ToolcallEnd { .. } => 0,
    }
}

#[cfg(test)]
mod tests {
    use wire::reply::Cancelled;

    use super::*;

    fn origin(client: u64) -> Origin {
        Origin {
            client: ClientId(client),
            id: Some(RawValue::from_string("\"x\"".to_owned()).unwrap()),
            command: "reset",
        }
    }

    fn outcome(sent: &mut mpsc::Receiver<Outgoing>) -> (ClientId, Result<(), String>) {
        match sent.try_recv() {
            Ok(Outgoing::Response(client, response)) => (client, response.outcome.map(drop)),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn response_names_command_and_id_of_origin() {
        let (outbox, mut sent) = outbox(4);
        Responder::<()>::new(origin(3), &outbox).respond(Ok(())).await;
        let Ok(Outgoing::Response(client, response)) = sent.try_recv() else {
            panic!("no response");
        };
        assert_eq!((client, response.command), (ClientId(3), Some("reset".into())));
        assert_eq!(response.id.unwrap().get(), "\"x\"");
    }

    #[tokio::test]
    async fn unread_deltas_are_bounded_in_bytes() {
        for (bytes, most) in [(100, 1024), (16 << 10, 64), (256 << 10, 4), (4 << 20, 1)] {
            let text = "x".repeat(bytes);
            let updates = [
                Event::MessageUpdate {
                    usage: wire::Usage::default(),
                    assistant_message_event: StreamEvent::TextDelta {
                        content_index: 0,
                        delta: text.clone(),
                    },
                },
                Event::BashExecutionUpdate {
                    id: None,
                    command_id: None,
                    bash_id: None,
                    delta: text.clone(),
                },
                Event::ToolExecutionUpdate {
                    tool_call_id: "c".to_owned(),
                    tool_name: "bash".to_owned(),
                    args: serde_json::Map::new(),
                    partial_result: wire::ToolResult::text(text),
                    parent_tool_call_id: None,
                },
            ];
            for update in updates.map(Arc::new) {
                let (outbox, mut sent) = outbox(crate::limits::OUTBOX);
                let mut queued = 0;
                loop {
                    tokio::select! {
                        biased;
                        outcome = outbox.event(Arc::clone(&update)) => outcome.unwrap(),
                        () = std::future::ready(()) => break,
                    }
                    queued += 1;
                }
                assert_eq!(queued, most, "{bytes} {update:?}");
                // A reader that goes on lets the next one in.
                while sent.try_recv().is_ok() {}
                outbox.event(update).await.unwrap();
            }
        }
    }

    #[tokio::test]
    async fn unread_responses_are_bounded_in_bytes() {
        for (bytes, most) in [(100, 1024), (1 << 20, 8), (20 << 20, 2)] {
            let (outbox, mut sent) = outbox(crate::limits::OUTBOX);
            let text = "x".repeat(bytes);
            let reply = || wire::reply::LastText {
                text: Some(text.clone()),
            };
            let mut queued = 0;
            loop {
                tokio::select! {
                    biased;
                    () = Responder::new(origin(1), &outbox).respond(Ok(reply())) => queued += 1,
                    () = std::future::ready(()) => break,
                }
            }
            assert!((most / 2..=most).contains(&queued), "{bytes}: {queued}");
            // A response that failed is short.
            if queued < 1024 {
                outbox.refuse(origin(1), "no").await;
            }
            while sent.try_recv().is_ok() {}
            outbox.refuse(origin(1), "no").await;
        }
    }

    #[tokio::test]
    async fn converted_outcome_may_become_an_error() {
        let (outbox, mut sent) = outbox(4);
        let responder = Responder::<Cancelled>::new(origin(1), &outbox);
        let other: Responder<()> = responder.taking(|done| match done {
            Ok(()) => Err("not that".to_owned()),
            Err(error) => Err(format!("failed: {error}")),
        });
        other.respond(Ok(())).await;
        assert_eq!(outcome(&mut sent).1, Err("not that".to_owned()));
    }

    #[tokio::test]
    async fn lost_client_gets_responses_without_events() {
        let (outbox, mut sent) = outbox(4);
        let lost = outbox.at_end_of_input(EventScope::Extensions);
        lost.tell(Event::TurnStart).await;
        lost.inform(Outgoing::OptionsChanged).await;
        lost.refuse(origin(2), "gone").await;
        assert_eq!(outcome(&mut sent), (ClientId(2), Err("gone".to_owned())));
        assert!(!lost.renders(UiMethod::Select) && outbox.renders(UiMethod::Select));
        assert!(lost.renders(UiMethod::Notify));
    }

    #[tokio::test]
    async fn lost_newest_omp_client_gets_turns() {
        let (outbox, mut sent) = outbox(4);
        let lost = outbox.at_end_of_input(EventScope::Messages);
        lost.tell(Event::AgentStart).await;
        lost.tell(Event::TurnStart).await;
        lost.tell(Event::AgentSettled { aborted: true }).await;
        assert!(matches!(sent.try_recv(), Ok(Outgoing::Event(event)) if *event == Event::TurnStart));
        assert!(sent.try_recv().is_err());
    }

    #[tokio::test]
    async fn gone_writer_is_an_error_for_senders_only() {
        let (outbox, sent) = outbox(4);
        drop(sent);
        assert_eq!(outbox.event(Arc::new(Event::AgentStart)).await, Err(WriterGone));
        assert_eq!(outbox.flush().await, Err(WriterGone));
        outbox.tell(Event::AgentStart).await;
        outbox.closed().await;
    }

    #[tokio::test]
    async fn flush_without_answer_is_an_error() {
        let (outbox, mut sent) = outbox(4);
        let writer = async {
            match sent.recv().await {
                Some(Outgoing::Flush(done)) => drop(done),
                other => panic!("{other:?}"),
            }
        };
        let (flushed, ()) = tokio::join!(outbox.flush(), writer);
        assert_eq!(flushed, Err(WriterGone), "the writer ended before it wrote");
    }
}
