//! Many sessions in one process: mail finds its session, sessions are opened, closed and listed. The first session is the
//! one that commands without a `session` member mean; clients that know nothing of this talk to it alone.
//!
//! What lives here: which sessions there are. What does not: how lines say whom they mean (`serve`), how an agent for another
//! working directory is put together (the binary passes it in).

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use wire::command::OpenSessionParams;
use wire::reply::{OpenSession, OpenSessions, OpenedSession};
use wire::{Command, Event, Reply};

use crate::agent::Agent;
use crate::limits;
use crate::mail::{Letter, Mail, Mailbox, Slot, mailbox};
use crate::outbox::{Origin, Outbox, Outgoing};
use crate::session::{Opening, Session};
use crate::strings;

/// Puts together the agent for sessions of a working directory: settings and resources are the directory's own, models, keys
/// and processes are shared.
pub type AgentFor = Box<dyn Fn(&Path) -> Result<Arc<Agent>, String> + Send + Sync>;

/// What another session has to say, for the writer.
#[derive(Debug)]
pub struct Lane {
    /// The session's handle.
    pub session: Arc<str>,
    /// Its events and responses.
    pub queue: mpsc::Receiver<Outgoing>,
}

/// The sessions of a process.
pub struct Hub {
    agent_for: Arc<AgentFor>,
    /// Where the first session tells things, and the hub answers.
    outbox: Outbox,
    lanes: mpsc::Sender<Lane>,
    open: HashMap<Arc<str>, Slot>,
    first: Slot,
    running: JoinSet<Option<Arc<str>>>,
    made: u64,
    version: String,
}

impl Hub {
    /// A hub for a first session, which it starts at once, on the `LocalSet` that it is called in (one thread carries all
    /// sessions). `outbox` is that of the first session; what other sessions have to say comes out of `lanes`.
    #[must_use]
    pub fn new(first: Session, outbox: Outbox, lanes: mpsc::Sender<Lane>, agent_for: AgentFor) -> Self {
        let (slot, mailbox) = mailbox();
        let version = first.version().to_owned();
        let mut running = JoinSet::new();
        running.spawn_local(async move {
            first.run(mailbox).await;
            None
        });
        Self {
            agent_for: Arc::new(agent_for),
            outbox,
            lanes,
            open: HashMap::new(),
            first: slot,
            running,
            made: 0,
            version,
        }
    }

    /// Delivers mail until there is no more, then waits for every session to end. Ends early, and with it all other
    /// sessions, when the first session does.
    pub async fn run(mut self, mut mailbox: Mailbox) {
        let version = self.version.clone();
        self.outbox.tell(Event::Ready { version }).await;
        loop {
            tokio::select! {
                letter = mailbox.letter() => match letter {
                    Some(letter) => self.deliver(letter).await,
                    None => break,
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
        // Closing a mailbox is what ends its session.
        let Self {
            open,
            first,
            mut running,
            ..
        } = self;
        drop((open, first));
        while running.join_next().await.is_some() {}
    }

    async fn deliver(&mut self, letter: Letter) {
        if let (None, Some(frame)) = (letter.to(), letter.frame()) {
            // Its id says whose question it answers; ids are never used twice, and others do not know it.
            for slot in self.open.values() {
                slot.send(Mail::Frame(frame.clone())).await;
            }
        }
        let slot = match letter.to() {
            None => Some(self.first.clone()),
            Some(handle) => self.open.get(handle).cloned(),
        };
        match letter.command() {
            Some(Command::OpenSession(_)) => return self.open_session(letter).await,
            Some(Command::ListOpenSessions(_)) => return self.list(letter).await,
            Some(Command::CloseSession(_)) if letter.to().is_none() => {
                return self.refuse(letter, strings::FIRST_STAYS.to_owned()).await;
            }
            _ => {}
        }
        let undelivered = match slot {
            // A full mailbox makes everybody wait: reading stops, nothing is lost.
            Some(slot) => slot.pass(letter).await.err().map(|letter| *letter),
            None => Some(letter),
        };
        if let Some(letter) = undelivered {
            let error = strings::no_such_session(letter.to().unwrap_or_default());
            self.refuse(letter, error).await;
        }
    }

    fn forget(&mut self, handle: &Arc<str>) {
        if self.open.get(handle).is_some_and(Slot::is_closed) {
            self.open.remove(handle);
        }
    }

    async fn refuse(&self, letter: Letter, error: String) {
        turn_away(&self.outbox, letter.into_mail(), &error).await;
    }

    async fn open_session(&mut self, letter: Letter) {
        let Mail::Command(origin, Command::OpenSession(params)) = letter.into_mail() else {
            return;
        };
        let handle = if self.open.len() < limits::OPEN_SESSIONS {
            self.handle(params.session.clone())
        } else {
            Err(strings::too_many_sessions(limits::OPEN_SESSIONS))
        };
        match handle {
            Ok(handle) => self.begin(handle, origin, params),
            Err(error) => self.outbox.respond(origin, Err(error)).await,
        }
    }

    /// Opens a session beside the hub: reading a long one takes a moment that the others should not wait for. Its mailbox is
    /// there at once, so commands that come right behind keep their place.
    fn begin(&mut self, handle: Arc<str>, origin: Origin, params: OpenSessionParams) {
        let (slot, mut mailbox) = mailbox();
        self.open.insert(Arc::clone(&handle), slot);
        let (agent_for, lanes, answers) = (
            Arc::clone(&self.agent_for),
            self.lanes.clone(),
            self.outbox.clone(),
        );
        self.running.spawn_local(async move {
            match opened(agent_for, lanes, &answers, &handle, params).await {
                Ok((session, opened)) => {
                    let reply = Reply::OpenedSession(Box::new(opened));
                    answers.respond(origin, Ok(reply)).await;
                    session.run(mailbox).await;
                }
                Err(error) => {
                    let left = mailbox.close();
                    answers.respond(origin, Err(error)).await;
                    for mail in left {
                        turn_away(&answers, mail, &strings::no_such_session(&handle)).await;
                    }
                }
            }
            Some(handle)
        });
    }

    /// The handle that was asked for, or one of ours.
    fn handle(&mut self, asked: Option<String>) -> Result<Arc<str>, String> {
        if let Some(asked) = asked {
            let fits = (1..=limits::HANDLE).contains(&asked.len());
            let is_open = self
                .open
                .get(asked.as_str())
                .is_some_and(|slot| !slot.is_closed());
            return match is_open {
                _ if !fits => Err(strings::bad_handle(limits::HANDLE)),
                true => Err(strings::handle_taken(&asked)),
                false => Ok(asked.into()),
            };
        }
        loop {
            self.made += 1;
            let handle: Arc<str> = format!("s{}", self.made).into();
            if !self.open.contains_key(&handle) {
                return Ok(handle);
            }
        }
    }

    /// Asks every session what it is; one that has ended is left out, one that does not say in time makes it an error.
    async fn list(&mut self, letter: Letter) {
        let Mail::Command(origin, _) = letter.into_mail() else {
            return;
        };
        let mut slots: Vec<(Option<Arc<str>>, Slot)> = vec![(None, self.first.clone())];
        slots.extend(
            self.open
                .iter()
                .map(|(handle, slot)| (Some(Arc::clone(handle)), slot.clone())),
        );
        let outbox = self.outbox.clone();
        tokio::spawn(async move {
            let mut asked = Vec::new();
            for (handle, slot) in slots {
                let (answer, wait) = oneshot::channel();
                if slot.try_send(Mail::Describe(answer)) {
                    asked.push((handle, wait));
                }
            }
            let all = async {
                let mut sessions = Vec::new();
                for (handle, wait) in asked {
                    if let Ok(described) = wait.await {
                        let session = handle.map(|handle| handle.to_string());
                        sessions.push(OpenSession { session, ..described });
                    }
                }
                sessions.sort_by(|a, b| a.session.cmp(&b.session));
                sessions
            };
            let listed = tokio::time::timeout(limits::DESCRIBE_WAIT, all).await;
            let outcome = listed
                .map(|sessions| Reply::OpenSessions(OpenSessions { sessions }))
                .map_err(|_| strings::NO_ANSWER.to_owned());
            outbox.respond(origin, outcome).await;
        });
    }

    /// A session's task panicked: a defect, but one of that session alone.
    async fn broken(&mut self, error: &tokio::task::JoinError) {
        // Which one it was shows in its slot: nobody takes its mail any more.
        let gone: Vec<Arc<str>> = self
            .open
            .iter()
            .filter(|(_, slot)| slot.is_closed())
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

/// Answers mail that nobody will take.
pub(crate) async fn turn_away(outbox: &Outbox, mail: Mail, error: &str) {
    match mail {
        Mail::Command(origin, _) | Mail::Connection(origin, _) => {
            outbox.respond(origin, Err(error.to_owned())).await;
        }
        Mail::Reject(client, response) => drop(outbox.response(client, response).await),
        // Answers to a session that is gone interest nobody.
        Mail::Describe(_) | Mail::Frame(_) => {}
    }
}

/// A session that is ready to run, known to the writer.
async fn opened(
    agent_for: Arc<AgentFor>,
    lanes: mpsc::Sender<Lane>,
    first: &Outbox,
    handle: &Arc<str>,
    params: OpenSessionParams,
) -> Result<(Session, OpenedSession), String> {
    let (outbox, queue) = first.for_another(limits::OUTBOX);
    let starting =
        tokio::task::spawn_blocking(move || start(&agent_for, outbox, params.session_path, params.cwd));
    let session = starting.await.map_err(|error| error.to_string())??;
    let opened = OpenedSession {
        session: handle.to_string(),
        session_id: session.header().id.clone(),
        session_file: session.file_text(),
        cwd: session.cwd().to_string_lossy().into_owned(),
    };
    let lane = Lane {
        session: Arc::clone(handle),
        queue,
    };
    let joined = lanes.send(lane).await;
    joined.map_err(|_| strings::ENDING.to_owned())?;
    Ok((session, opened))
}

/// Opens a session for the working directory asked for, else the one its file names, else that of the first session.
fn start(
    agent_for: &AgentFor,
    outbox: Outbox,
    path: Option<String>,
    cwd: Option<String>,
) -> Result<Session, String> {
    let home = agent_for(Path::new(""))?;
    let given = cwd.map(|cwd| home.cwd.join(cwd));
    if let Some(dir) = given.as_ref().filter(|dir| !dir.is_dir()) {
        return Err(strings::no_such_directory(dir));
    }
    let path = path
        .filter(|path| !path.is_empty())
        .map(|path| home.cwd.join(path));
    let stored = path.as_deref().and_then(store::working_directory);
    let wanted = given.or(stored.map(PathBuf::from)).filter(|dir| dir.is_dir());
    let agent = match wanted {
        Some(dir) if dir != home.cwd => agent_for(&dir)?,
        _ => home,
    };
    let opening = path.map_or(Opening::New { id: None }, Opening::File);
    Session::start(agent, outbox, &opening).map_err(|error| error.to_string())
}
