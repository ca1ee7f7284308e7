//! How a session opens on a worker: the worker fetches it, ends the run of a lost worker, and gives it to the agent. If no worker can open
//! it, its commands are refused.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow};
use serde_json::json;
use store::{SessionId, StoreError};
use tokio::sync::mpsc;

use super::{End, SessionTask, announce};
use crate::bus::{Bus, EventWriter, Follower, Lease, Until};
use crate::limits::{GATE_CALLS, OPEN_WAIT};
use crate::worker::Shared;
use crate::worker::child::{Line, Refused, handle};
use crate::worker::command::Command;
use crate::worker::file::{NotWritten, SessionFile};
use crate::worker::held::HeldLines;
use crate::worker::interrupted;
use crate::worker::queue::StoredQueue;

impl SessionTask {
    /// Opens the session, or says why this worker does not have it.
    pub(super) async fn open(
        shared: &Arc<Shared>,
        id: &SessionId,
        lease: Lease,
    ) -> Result<(Self, Follower), End> {
        let (mut events, queue, commands) = streams(&shared.bus, id).await.map_err(End::Lost)?;
        let file = tokio::select! {
            fetched = fetch(shared, id) => fetched,
            () = lease.lost() => return Err(End::Lost(anyhow!("the lease was lost"))),
        };
        let file = match file {
            Ok(file) => file,
            Err(error) => {
                let end = failed(error);
                // Without NATS nothing is known about the session: the next owner tries again.
                if let End::Lost(error) = &end
                    && !is_engine(error)
                {
                    // Commands that do not get the reason stay queued for the next owner.
                    drop(refuse(shared, id, &mut events, commands, &lease, &format!("{error:#}")).await);
                }
                lease.release().await;
                announce(&shared.bus, id, &end).await;
                return Err(end);
            }
        };
        let (ask, calls) = mpsc::channel(GATE_CALLS);
        let handle = handle(id);
        let mut task = Self {
            shared: Arc::clone(shared),
            id: id.clone(),
            lease,
            file,
            events,
            queue,
            lines: shared.agent.route(handle.as_str()),
            handle,
            held: HeldLines::default(),
            calls,
            ask,
            pending: HashMap::new(),
            ended_calls: Vec::new(),
            answer: None,
            is_unsaved: false,
        };
        if let Err(error) = task.open_in_agent().await {
            // Each worker would get the same answer, so clients get it, too. Other failures are those of this worker.
            if error.is::<Refused>() {
                let reason = error.to_string();
                // Also without NATS the session is closed below, or the gate would deny the calls of all sub-agents from then on.
                drop(refuse(shared, id, &mut task.events, commands, &task.lease, &reason).await);
            }
            return Err(task.close(failed(error)).await);
        }
        Ok((task, commands))
    }

    /// Ends the run of a lost worker, opens the session in the agent and gives it its settings and the messages that were queued.
    async fn open_in_agent(&mut self) -> Result<()> {
        let until = self.until()?;
        let store = self.shared.store.as_ref();
        let bus = &self.shared.bus;
        let (file, events) = (&mut self.file, &mut self.events);
        let was_interrupted = interrupted::settle(bus, store, &self.id, file, events, &until).await?;
        let mut open = Line::new();
        open.insert("type".to_owned(), json!("open_session"));
        open.insert("session".to_owned(), json!(self.handle.as_str()));
        open.insert("sessionPath".to_owned(), json!(self.file.path.to_string_lossy()));
        let gate = &self.shared.gate;
        gate.open(&self.id, self.lease.watch(), self.ask.clone());
        self.shared.agent.request(open, OPEN_WAIT).await?;
        for mut setting in self.queue.settings().to_vec() {
            setting.insert("session".to_owned(), json!(self.handle.as_str()));
            // The session does not go on without what protects its user.
            self.shared.agent.request(setting, OPEN_WAIT).await?;
        }
        let mut lines = self.queue.messages().to_vec();
        if was_interrupted && self.shared.resumes {
            let mut line = Line::new();
            line.insert("type".to_owned(), json!("continue"));
            lines.push(line);
        }
        for line in lines {
            // The response has no recipient. A run that was complete refuses to continue.
            self.send(line).await?;
        }
        Ok(())
    }
}

/// What the streams have of a session.
async fn streams(bus: &Bus, id: &SessionId) -> Result<(EventWriter, StoredQueue, Follower)> {
    let events = EventWriter::open(bus, id).await?;
    let queue = StoredQueue::open(bus, id).await?;
    let commands = bus.commands.follow(bus.subject("command", id), 1).await?;
    Ok((events, queue, commands))
}

/// Writes the session file and makes the working directory.
async fn fetch(shared: &Shared, id: &SessionId) -> Result<SessionFile> {
    let file = SessionFile::fetch(shared.store.as_ref(), id, &shared.sessions, &shared.cwd).await?;
    shared.workspace.prepare(id, &file.cwd).await?;
    Ok(file)
}

/// The end of a session that did not open.
fn failed(error: anyhow::Error) -> End {
    if error.is::<NotWritten>() {
        End::Unwritable(error)
    } else {
        End::Lost(error)
    }
}

/// Returns true if the store could not be reached, or another worker writes to the session.
fn is_engine(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<StoreError>();
    matches!(
        error,
        Some(StoreError::Engine { .. } | StoreError::Unconfirmed { .. } | StoreError::Stale { .. })
    )
}

/// Answers all commands of a session that cannot be opened with the reason, and asks for no other worker.
async fn refuse(
    shared: &Shared,
    id: &SessionId,
    events: &mut EventWriter,
    mut commands: Follower,
    lease: &Lease,
    reason: &str,
) -> Result<()> {
    let bus = &shared.bus;
    bus.wanted.purge(&bus.subject("wanted", id), None).await?;
    let wait = Duration::from_millis(200);
    while let Ok(message) = tokio::time::timeout(wait, commands.next()).await {
        if let Some(command) = Command::read(&message) {
            let frame = command.response(&command.error(reason));
            events
                .publish(bus, &[frame], &Until::lease(lease.watch()))
                .await?;
        }
        bus.commands.remove(message.sequence).await?;
    }
    Ok(())
}
