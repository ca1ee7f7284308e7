//! Many sessions in one process: each request finds its session, sessions are opened, closed and listed. The first session is the
//! session of commands without a `session` member; clients that do not know several sessions talk to it alone.
//!
//! What lives here: which sessions there are. What does not: how lines say whom they mean (`serve`), how an agent for another
//! working directory is put together (the binary passes it in).

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use wire::command::{NoParams, OpenSessionParams};
use wire::looking::{DeleteSessionParams, DeletedSession};
use wire::reply::{OpenSession, OpenSessions, OpenedSession};
use wire::table::{ManagerHandler, Respond, Responding};
use wire::{Event, Reply};

use crate::factory::Agent;
use crate::limits;
use crate::outbox::{Origin, Outbox, Outgoing, Responder};
use crate::requests::{QueuedRequest, RequestReceiver, RequestSender, SessionRequest, request_queue};
use crate::retired::Retired;
use crate::session::{Opening, Session};
use crate::strings;

mod deletion;
mod eviction;
mod room;

pub use self::eviction::Eviction;
use self::eviction::{Evicted, Open};
use self::room::{Awaited, Room};

/// Puts together the agent for sessions of a working directory: settings and resources are the directory's own, models, keys
/// and processes are shared.
pub type AgentByDirectory = Box<dyn Fn(&Path) -> Result<Arc<Agent>, String> + Send + Sync>;

/// What another session has to say, for the writer.
#[derive(Debug)]
pub struct Lane {
    /// The session's handle.
    pub session: Arc<str>,
    /// Its events and responses.
    pub queue: mpsc::Receiver<Outgoing>,
}

/// The sessions of a process.
pub struct SessionManager {
    agent_for: Arc<AgentByDirectory>,
    /// Where the first session tells things, and the manager answers.
    outbox: Outbox,
    lanes: mpsc::Sender<Lane>,
    open: HashMap<Arc<str>, Open>,
    /// Evicted sessions, by their handles.
    asleep: HashMap<Arc<str>, Evicted>,
    eviction: Eviction,
    room: Room,
    stores_empty: bool,
    first: RequestSender,
    running: JoinSet<Option<Arc<str>>>,
    made: u64,
    version: String,
}

/// How a session comes to be.
enum Start {
    /// A client asked for it.
    Asked(Responder<OpenedSession>, OpenSessionParams),
    /// It was evicted and got a command. It is gone when the token says so.
    Again(Box<Retired>, CancellationToken),
}

impl SessionManager {
    /// A manager for a first session, which it starts at once, on the `LocalSet` that it is called in (one thread carries all
    /// sessions). `outbox` is that of the first session; what other sessions have to say comes out of `lanes`.
    #[must_use]
    pub fn new(
        first: Session,
        outbox: Outbox,
        lanes: mpsc::Sender<Lane>,
        agent_for: AgentByDirectory,
    ) -> Self {
        let (slot, requests) = request_queue();
        let version = first.version().to_owned();
        let mut running = JoinSet::new();
        running.spawn_local(async move {
            first.run(requests).await;
            None
        });
        Self {
            agent_for: Arc::new(agent_for),
            outbox,
            lanes,
            open: HashMap::new(),
            asleep: HashMap::new(),
            eviction: Eviction::default(),
            room: Room::default(),
            stores_empty: false,
            first: slot,
            running,
            made: 0,
            version,
        }
    }

    /// Keeps so many sessions open, and so long.
    #[must_use]
    pub fn eviction(self, eviction: Eviction) -> Self {
        Self { eviction, ..self }
    }

    /// Writes the file of each session when it is opened, and not with its first message. Clients may ask for a session by its
    /// id after a restart even if nothing was said in it.
    #[must_use]
    pub fn storing_empty_sessions(self) -> Self {
        Self {
            stores_empty: true,
            ..self
        }
    }

    /// Delivers requests until there are no more, then waits for every session to end. Ends early, and with it all other
    /// sessions, when the first session does.
    pub async fn run(mut self, mut requests: RequestReceiver) {
        // Before the first request is taken: clients wait for `ready`.
        let version = self.version.clone();
        self.outbox.tell(Event::Ready { version }).await;
        let idle = self.eviction.idle;
        let mut look_around = Box::pin(Self::look_around(idle));
        let mut is_reading = true;
        // What waits for a place is owed an answer.
        while is_reading || !self.room.is_idle() {
            let (waits, has_place) = (!self.room.is_idle(), self.has_place());
            tokio::select! {
                () = &mut look_around => {
                    self.sweep().await;
                    // Counted from the end of the search, which waits for each session that it asks.
                    look_around.set(Self::look_around(idle));
                }
                () = self.room.changed(has_place), if waits => self.serve_waiters().await,
                queued = requests.next_queued(), if is_reading => match queued {
                    Some(queued) => self.deliver(queued).await,
                    None => {
                        is_reading = false;
                        self.room.hurry();
                    }
                },
                Some(ended) = self.running.join_next() => match ended {
                    // Another session may have its handle by now.
                    Ok(Some(handle)) => self.forget(&handle),
                    // The first session only ends by itself when it broke.
                    Ok(None) => break,
                    // Without the first session there is no connection to speak of: a defect ends the process as one.
                    Err(error) if self.first.is_closed() && error.is_panic() => {
                        std::panic::resume_unwind(error.into_panic())
                    }
                    Err(error) => self.broken(&error).await,
                },
            }
        }
        // A session ends when its queue of requests is closed.
        let Self {
            open,
            first,
            mut running,
            ..
        } = self;
        drop((open, first));
        // Bounded by the sessions: each ends within its own limits.
        while running.join_next().await.is_some() {}
    }

    async fn deliver(&mut self, queued: QueuedRequest) {
        let queued = match queued.into_manager_command() {
            Ok((origin, command)) => return command.dispatch(self, origin).await,
            Err(queued) => *queued,
        };
        if queued.is_closing() && queued.to().is_none() {
            return self.refuse(queued, strings::FIRST_STAYS.to_owned()).await;
        }
        // An answer goes to the session that asked, unless the client names another one.
        let asker = queued
            .frame()
            .and_then(|frame| self.outbox.routes().find(frame.id()));
        if let Some(handle) = queued.to().or(asker.as_ref().and_then(Option::as_deref)) {
            self.evict_asked(Some(handle));
        }
        // Before the slot is looked up: waking a session gives it a new one.
        let Some(queued) = self.awake(queued).await else {
            return;
        };
        let slot = match queued.to().or(asker.as_ref().and_then(Option::as_deref)) {
            // Also for an answer to no open question, which the first session ignores
            // (docs/internals/decisions/29-answer-routes.md).
            None => Some(self.first.clone()),
            Some(handle) => self.open.get(handle).map(|open| open.slot.clone()),
        };
        let undelivered = match slot {
            // The manager waits while this queue is full: reading stops, and nothing is lost.
            Some(slot) => slot.pass(queued).await.err().map(|queued| *queued),
            None => Some(queued),
        };
        if let Some(queued) = undelivered {
            let error = strings::no_such_session(queued.to().unwrap_or_default());
            self.refuse(queued, error).await;
        }
    }

    /// Returns the request if its session is open or unknown; `None` when it was answered or waits until its session is open.
    /// Requests that end a session that is not open, and answers to questions that are closed, do not open it.
    async fn awake(&mut self, queued: QueuedRequest) -> Option<QueuedRequest> {
        if queued.is_answer() {
            return Some(queued);
        }
        let queued = self.stop_waiting(queued).await?;
        self.wake(queued).await
    }

    fn forget(&mut self, handle: &Arc<str>) {
        // A session that has agreed to be evicted ends at once; its answer may still be unread.
        self.evict_asked(Some(handle));
        if self.open.get(handle).is_some_and(|open| open.slot.is_closed()) {
            self.open.remove(handle);
        }
    }

    async fn open(&mut self, responder: Responder<OpenedSession>, params: OpenSessionParams) {
        let handle = self.handle(params.session.clone());
        // The handle first: a request that is refused must not cost an evicted session its handle.
        match handle.and_then(|handle| self.forget_evicted().map(|()| handle)) {
            Ok(handle) => {
                self.wait_for_place(handle, Awaited::New(responder, params), None)
                    .await;
            }
            Err(error) => responder.refuse(error).await,
        }
    }

    /// Opens a session in a task: reading a long one takes a moment, and the other sessions should not wait. Its queue is there
    /// at once, so commands that come right behind keep their place.
    fn begin(&mut self, handle: Arc<str>, how: Start) {
        let (slot, mut requests) = request_queue();
        let gone = CancellationToken::new();
        self.open
            .insert(Arc::clone(&handle), Open::new(slot, gone.clone()));
        let (agent_for, lanes, answers) = (
            Arc::clone(&self.agent_for),
            self.lanes.clone(),
            self.outbox.clone(),
        );
        let stores_empty = self.stores_empty;
        let opening = async move {
            let outcome = match how {
                Start::Asked(responder, params) => {
                    match opened(agent_for, lanes, &answers, &handle, params, stores_empty).await {
                        Ok((session, opened)) => {
                            responder.respond(Ok(opened)).await;
                            Ok(session)
                        }
                        Err(error) => {
                            responder.refuse(error).await;
                            // For the commands that came right behind: they wait in the queue of a session that never was.
                            Err(strings::no_such_session(&handle))
                        }
                    }
                }
                Start::Again(retired, before) => {
                    // The file is locked until the evicted session is gone.
                    eviction::ended(&before).await;
                    again(agent_for, lanes, &answers, &handle, *retired).await
                }
            };
            let running = match outcome {
                Ok(session) => Some(session.run(requests)),
                Err(error) => {
                    for request in requests.close() {
                        request.turn_away(&answers, &error).await;
                    }
                    None
                }
            };
            (running, handle)
        };
        // A future of its own: the task would keep its 43 KB while the session is open.
        let opening = Box::pin(opening);
        self.running.spawn_local(async move {
            // However the session ends, the token says that it is over.
            let _gone = gone.drop_guard();
            let (running, handle) = opening.await;
            if let Some(running) = running {
                running.await;
            }
            Some(handle)
        });
    }

    /// The handle that was asked for, or one of ours.
    fn handle(&mut self, asked: Option<String>) -> Result<Arc<str>, String> {
        if let Some(asked) = asked {
            let fits = (1..=limits::HANDLE).contains(&asked.len());
            // A session that takes no more requests may still be ending, but its client knows that the handle is free.
            let is_open = self
                .open
                .get(asked.as_str())
                .is_some_and(|open| !open.slot.is_closed())
                || self.asleep.contains_key(asked.as_str())
                || self.room.awaits(&asked);
            return match is_open {
                _ if !fits => Err(strings::bad_handle(limits::HANDLE)),
                true => Err(strings::handle_taken(&asked)),
                false => Ok(asked.into()),
            };
        }
        loop {
            self.made += 1;
            let handle: Arc<str> = format!("s{}", self.made).into();
            // A client may have chosen such a handle itself.
            let is_taken = self.open.contains_key(&handle)
                || self.asleep.contains_key(&handle)
                || self.room.awaits(&handle);
            if !is_taken {
                return Ok(handle);
            }
        }
    }

    fn list(&mut self, responder: Responder<OpenSessions>) {
        // In a task: sessions answer in their own time, and the manager must go on delivering.
        let described = self.described();
        tokio::spawn(async move {
            let listed = described.await;
            // No list at all: one without a session would say that the session has ended.
            let outcome = listed
                .map(|sessions| OpenSessions { sessions })
                .ok_or_else(|| strings::NO_ANSWER.to_owned());
            responder.respond(outcome).await;
        });
    }

    /// Lists all sessions, evicted ones too. A session that has ended is left out. `None` when one does not answer in time, or takes no
    /// question because its queue is full.
    fn described(&mut self) -> impl Future<Output = Option<Vec<OpenSession>>> + Send + use<> {
        // A session that ends as evicted would answer no more, and is not in the list of evicted ones yet.
        self.evict_asked(None);
        let mut slots: Vec<(Option<Arc<str>>, RequestSender)> = vec![(None, self.first.clone())];
        slots.extend(
            self.open
                .iter()
                .map(|(handle, open)| (Some(Arc::clone(handle)), open.slot.clone())),
        );
        let asleep = self.asleep.iter().map(|(handle, asleep)| OpenSession {
            session: Some(handle.to_string()),
            evicted: true,
            ..asleep.retired.described.clone()
        });
        let asleep: Vec<OpenSession> = asleep.collect();
        let all = async move {
            let mut asked = Vec::new();
            for (handle, slot) in slots {
                let (answer, wait) = oneshot::channel();
                // Without waiting for room: a session whose queue is full would hold up the list of all others.
                if slot.try_send(SessionRequest::Describe(answer)) {
                    asked.push((handle, wait));
                } else if !slot.is_closed() {
                    return None;
                }
            }
            let mut sessions = asleep;
            // The questions are all out, so that this takes as long as the slowest session and no longer.
            for (handle, wait) in asked {
                if let Ok(described) = wait.await {
                    let session = handle.map(|handle| handle.to_string());
                    sessions.push(OpenSession { session, ..described });
                }
            }
            // A map has no order. The first session has no handle, so it comes first.
            sessions.sort_by(|a, b| a.session.cmp(&b.session));
            Some(sessions)
        };
        async {
            let described = tokio::time::timeout(limits::DESCRIBE_WAIT, all).await;
            described.ok().flatten()
        }
    }

    /// A session's task panicked: a defect, but one of that session alone.
    async fn broken(&mut self, error: &tokio::task::JoinError) {
        // The slot shows which session it was: its receiver is gone.
        let gone: Vec<Arc<str>> = self
            .open
            .iter()
            .filter(|(_, open)| open.slot.is_closed())
            .map(|(handle, _)| Arc::clone(handle))
            .collect();
        for handle in gone {
            self.open.remove(&handle);
            let message = format!("Session {handle} broke and was closed: {error}");
            let level = "error".to_owned();
            self.outbox.tell(Event::Notice { level, message }).await;
        }
    }
}

impl Responding for SessionManager {
    type Origin = Origin;
    type Responder<R: Into<Reply>> = Responder<R>;

    fn responder<R: Into<Reply>>(&mut self, origin: Origin) -> Responder<R> {
        Responder::new(origin, &self.outbox)
    }
}

impl ManagerHandler for SessionManager {
    async fn open_session(&mut self, params: OpenSessionParams, responder: Responder<OpenedSession>) {
        self.open(responder, params).await;
    }

    async fn delete_session(&mut self, params: DeleteSessionParams, responder: Responder<DeletedSession>) {
        self.delete(responder, params);
    }

    async fn list_open_sessions(&mut self, _: NoParams, responder: Responder<OpenSessions>) {
        self.list(responder);
    }
}

/// A session that is ready to run, known to the writer.
async fn opened(
    agent_for: Arc<AgentByDirectory>,
    lanes: mpsc::Sender<Lane>,
    first: &Outbox,
    handle: &Arc<str>,
    params: OpenSessionParams,
    stores_empty: bool,
) -> Result<(Session, OpenedSession), String> {
    let making = move |outbox| {
        let mut session = start(&agent_for, outbox, &params)?;
        if stores_empty {
            session.store_empty();
        }
        if let Some(durability) = params.durability {
            session.set_durability(durability);
        }
        Ok(session)
    };
    let session = joined(lanes, first, handle, making).await?;
    let opened = OpenedSession {
        session: handle.to_string(),
        session_id: session.header().id.clone(),
        session_file: session.describe().session_file,
        cwd: session.cwd().to_string_lossy().into_owned(),
    };
    Ok((session, opened))
}

/// Opens an evicted session as it was.
async fn again(
    agent_for: Arc<AgentByDirectory>,
    lanes: mpsc::Sender<Lane>,
    first: &Outbox,
    handle: &Arc<str>,
    retired: Retired,
) -> Result<Session, String> {
    let name = Arc::clone(handle);
    let making = move |outbox| {
        let opened = match &retired.file {
            // Opening a file that is missing would begin an empty session in its place.
            Some(file) if !file.exists() => Err("the file is gone".to_owned()),
            Some(file) => agent_for(&retired.cwd).map(|agent| (agent, Opening::Stored(file.clone()))),
            None => {
                // It had no messages and so left no file, but clients know its id.
                let id = Some(retired.described.session_id.clone());
                agent_for(&retired.cwd).map(|agent| (agent, Opening::New { id }))
            }
        };
        let session = opened.and_then(|(agent, opening)| {
            let selected = retired.choices.selected.clone();
            Session::start_again(agent, outbox, &opening, selected).map_err(|error| error.to_string())
        });
        match session {
            Ok(mut session) => {
                session.restore_choices(retired);
                Ok(session)
            }
            Err(error) => Err(retired.lost(&name, &error)),
        }
    };
    joined(lanes, first, handle, making).await
}

/// Makes a session in a task and has the writer know it.
async fn joined(
    lanes: mpsc::Sender<Lane>,
    first: &Outbox,
    handle: &Arc<str>,
    making: impl FnOnce(Outbox) -> Result<Session, String> + Send + 'static,
) -> Result<Session, String> {
    let (outbox, queue) = first.for_another(handle, limits::OUTBOX);
    let starting = tokio::task::spawn_blocking(move || making(outbox));
    let session = starting.await.map_err(|error| error.to_string())??;
    let session_of = Arc::clone(handle);
    let lane = Lane {
        session: session_of,
        queue,
    };
    // Before the session runs, so that the connection knows it when its first event comes.
    let joined = lanes.send(lane).await;
    // The writer takes no more sessions once the process ends.
    joined.map_err(|_| strings::ENDING.to_owned())?;
    Ok(session)
}

/// Opens a session for the working directory asked for, else the one its file names, else that of the first session.
fn start(
    agent_for: &AgentByDirectory,
    outbox: Outbox,
    params: &OpenSessionParams,
) -> Result<Session, String> {
    // No path stands for the agent of the first session.
    let home = agent_for(Path::new(""))?;
    let given = params.cwd.as_ref().map(|cwd| home.cwd.join(cwd));
    if let Some(dir) = given.as_ref().filter(|dir| !dir.is_dir()) {
        return Err(strings::no_such_directory(dir));
    }
    let named = |path: &Option<String>| {
        let path = path.as_ref().filter(|path| !path.is_empty());
        path.map(|path| home.cwd.join(path))
    };
    let opening = match (named(&params.session_path), named(&params.fork_path)) {
        (Some(_), Some(_)) => return Err(strings::OPEN_OR_FORK.to_owned()),
        (Some(path), None) => Opening::Stored(path),
        (None, Some(source)) => Opening::Fork { source, id: None },
        (None, None) => Opening::New { id: None },
    };
    let path = match &opening {
        Opening::Stored(path) | Opening::Fork { source: path, .. } => Some(path.as_path()),
        _ => None,
    };
    let stored = path.and_then(store::working_directory);
    // A stored directory that is gone gives way to that of the first session, as in `Opening::Stored`.
    let wanted = given.or(stored.map(PathBuf::from)).filter(|dir| dir.is_dir());
    let agent = match wanted {
        Some(dir) if dir != home.cwd => agent_for(&dir)?,
        _ => home,
    };
    Session::start(agent, outbox, &opening).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outbox::outbox;

    fn manager(first: RequestSender) -> SessionManager {
        let no_agent: AgentByDirectory = Box::new(|_| Err("no agent".to_owned()));
        SessionManager {
            agent_for: Arc::new(no_agent),
            outbox: outbox(1).0,
            lanes: mpsc::channel(1).0,
            open: HashMap::new(),
            asleep: HashMap::new(),
            eviction: Eviction::default(),
            room: Room::default(),
            stores_empty: false,
            first,
            running: JoinSet::new(),
            made: 0,
            version: String::new(),
        }
    }

    #[tokio::test]
    async fn session_with_full_queue_is_not_left_out() {
        let (slot, mut requests) = request_queue();
        let mut manager = manager(slot.clone());
        while slot.try_send(SessionRequest::Describe(oneshot::channel().0)) {}
        assert!(manager.described().await.is_none(), "the list would lack it");
        drop(requests.close());
        let described = manager.described().await;
        assert_eq!(described.map(|sessions| sessions.len()), Some(0), "it has ended");
    }
}
