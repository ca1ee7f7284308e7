//! One session of a worker: a task that has its lease, gives its commands to the agent, stores what the agent wrote, and publishes
//! events and responses. Which commands may run again lives in `command`; what happens to an interrupted run, in `takeover`.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use anyhow::{Context as _, Result, bail};
use async_nats::jetstream::message::StreamMessage;
use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};
use store::{SessionId, StoreError};
use tokio::sync::{mpsc, watch};

use super::child::{Line, Refused, handle};
use super::command::{self, Command, Fate};
use super::file::{SessionFile, leaves_file};
use super::gate::StoreRequest;
use super::held::HeldLines;
use super::interrupted;
use super::queue::StoredQueue;
use super::{Place, Shared};
use crate::answer::Answer;
use crate::bus::{Bus, EventWriter, Follower, Frame, Lease, RECORDED, RunEdge, Until};
use crate::limits::{COMMANDS_IN_FLIGHT, EVENT_BATCH, GATE_CALLS, IDLE_WAIT, OPEN_WAIT};

/// Why a worker no longer has a session.
#[derive(Debug)]
pub(crate) enum End {
    /// The worker stops, and the session has no run.
    Drained,
    /// The session had neither a run nor a command for a while.
    Idle,
    /// The lease, the agent or NATS was lost.
    Lost(anyhow::Error),
    /// The same, but the agent does not close the session, so this worker cannot take it again.
    Stuck(anyhow::Error),
}

/// The agent did not close a session that failed while it opened.
#[derive(Debug)]
struct NotClosed;

impl std::fmt::Display for NotClosed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the agent does not close the session")
    }
}

/// A command that the agent has.
struct Pending {
    key: String,
    /// The id that the client gave.
    id: Option<Value>,
    /// Gateways that wait for the response.
    gateways: Vec<String>,
    /// Sequences of the command in the queue.
    queued: Vec<u64>,
    /// Sequence of its record, if it has one.
    begun: Option<u64>,
    can_change_files: bool,
}

/// The task's state.
struct SessionTask {
    shared: Arc<Shared>,
    id: SessionId,
    /// Name of the session in the agent.
    handle: SessionId,
    lease: Lease,
    file: SessionFile,
    events: EventWriter,
    queue: StoredQueue,
    lines: mpsc::Receiver<Line>,
    held: HeldLines,
    /// Calls that wait until their answer is stored.
    calls: mpsc::Receiver<StoreRequest>,
    /// The other end, for the gate.
    ask: mpsc::Sender<StoreRequest>,
    pending: HashMap<String, Pending>,
    /// Calls of the open run that have ended.
    ended_calls: Vec<String>,
    /// The answer that streams in.
    answer: Option<Answer>,
    /// True if a command may have changed the working directory since it was last saved.
    is_unsaved: bool,
}

/// Runs a session until its end, and closes it. `place` is given back once it is open.
pub(crate) async fn run(
    shared: Arc<Shared>,
    id: SessionId,
    lease: Lease,
    place: Place,
    stop: watch::Receiver<bool>,
) -> End {
    let opened = SessionTask::open(&shared, &id, lease).await;
    drop(place);
    match opened {
        Ok((mut task, commands)) => {
            let end = match task.serve(commands, stop).await {
                Ok(end) => end,
                Err(error) => End::Lost(error),
            };
            task.close(end).await
        }
        Err(error) if error.is::<NotClosed>() => End::Stuck(error),
        Err(error) => End::Lost(error),
    }
}

impl SessionTask {
    async fn open(shared: &Arc<Shared>, id: &SessionId, lease: Lease) -> Result<(Self, Follower)> {
        let bus = &shared.bus;
        let events = EventWriter::open(bus, id).await?;
        let queue = StoredQueue::open(bus, id).await?;
        let commands = bus.commands.follow(bus.subject("command", id), 1).await?;
        let fetched = async {
            let store = shared.store.as_ref();
            let file = SessionFile::fetch(store, id, &shared.sessions, &shared.cwd).await?;
            shared.workspace.prepare(id, &file.cwd).await?;
            Ok::<_, anyhow::Error>(file)
        };
        let fetched = tokio::select! {
            fetched = fetched => fetched,
            () = lease.lost() => bail!("the lease was lost"),
        };
        let file = match fetched {
            Ok(file) => file,
            Err(error) => {
                // Without NATS nothing is known about the session: the next owner tries again.
                if !is_engine(&error) {
                    let mut events = events;
                    // Commands that do not get the reason stay queued for the next owner.
                    drop(refuse(shared, id, &mut events, commands, &lease, &format!("{error:#}")).await);
                }
                lease.release().await;
                return Err(error);
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
        let opened = task.open_in_agent().await;
        if let Err(error) = opened {
            // Each worker would get the same answer, so clients get it, too. Other failures are those of this worker.
            if error.is::<Refused>() {
                let reason = error.to_string();
                // Also without NATS the session is closed below, or the gate would deny the calls of all sub-agents from then on.
                drop(refuse(shared, id, &mut task.events, commands, &task.lease, &reason).await);
            }
            return match task.close(End::Lost(error)).await {
                End::Lost(error) => Err(error),
                End::Stuck(error) => Err(error.context(NotClosed)),
                End::Drained | End::Idle => bail!("the session did not open"),
            };
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

    async fn serve(&mut self, commands: Follower, mut stop: watch::Receiver<bool>) -> Result<End> {
        let mut idle_since = Instant::now();
        // One request to NATS goes on while lines of the agent come: made anew after each line, it has no answer while lines are fast.
        let commands = stream::unfold(commands, |mut commands| async move {
            let message = commands.next().await;
            Some((message, commands))
        });
        tokio::pin!(commands);
        loop {
            let is_draining = *stop.borrow();
            // The agent does not close a session whose entries wait for a full disk.
            let is_idle = self.pending.is_empty() && self.events.run.is_none() && !self.held.is_waiting();
            if is_draining && is_idle {
                return Ok(End::Drained);
            }
            if !is_idle {
                idle_since = Instant::now();
            }
            let has_room = !is_draining && self.pending.len() < COMMANDS_IN_FLIGHT;
            tokio::select! {
                // In any order: with lines first, an abort would wait until a fast answer ends.
                () = self.lease.lost() => bail!("the lease was lost"),
                changed = stop.changed(), if !is_draining => changed.context("the worker ended")?,
                Some(call) = self.calls.recv() => {
                    self.until()?;
                    self.file.sync(self.shared.store.as_ref(), &self.id).await?;
                    // Without a reply the call is denied: the message with the call is not in the file.
                    if !self.held.is_waiting() {
                        // Fails when the call was denied meanwhile.
                        let _denied = call.send(());
                    }
                }
                line = self.lines.recv() => {
                    let mut batch = vec![line.context("the agent ended")?];
                    while batch.len() < EVENT_BATCH && let Ok(line) = self.lines.try_recv() {
                        batch.push(line);
                    }
                    for ready in self.held.pass(batch)? {
                        self.deliver(ready).await?;
                    }
                }
                Some(message) = commands.next(), if has_room => {
                    idle_since = Instant::now();
                    self.begin(&message).await?;
                }
                () = tokio::time::sleep_until((idle_since + IDLE_WAIT).into()), if is_idle => return Ok(End::Idle),
            }
        }
    }

    /// The time in which the session may be used.
    fn until(&self) -> Result<Until> {
        if self.lease.state().is_lost {
            bail!("the lease was lost");
        }
        Ok(Until::lease(self.lease.watch()))
    }

    /// Publishes lines of the agent: first what it wrote to the file, then responses as records, then all in their order.
    async fn deliver(&mut self, batch: Vec<Line>) -> Result<()> {
        let (mut frames, mut answered) = (Vec::new(), Vec::new());
        for line in batch {
            match line.get("type").and_then(Value::as_str) {
                Some("response") => {
                    self.response(line, &mut frames, &mut answered)?;
                    continue;
                }
                // The session only leaves this worker.
                Some("session_closed") => continue,
                // Clients must not see what only a file of this worker has.
                Some("session_changed") if leaves_file(&self.id, &line) => {
                    bail!("an extension changed to another session, which is in another file")
                }
                Some("queue_update") => self.queue.update(&line),
                _ => {}
            }
            frames.push(self.event(line)?);
        }
        let has_settled = |frame: &Frame| {
            matches!(
                frame,
                Frame::Event {
                    edge: Some(RunEdge::Ends),
                    ..
                }
            )
        };
        if frames.iter().any(has_settled) {
            self.save().await?;
        }
        self.until()?;
        self.file.sync(self.shared.store.as_ref(), &self.id).await?;
        let bus = &self.shared.bus;
        let until = self.until()?;
        self.queue.store(bus, &self.id, &until).await?;
        for (pending, text) in &answered {
            if let Some(begun) = pending.begun {
                bus.answer(&self.id, &pending.key, text, begun, &self.until()?)
                    .await?;
            }
        }
        let until = self.until()?;
        self.events.publish(bus, &frames, &until).await?;
        if self.events.run.is_none()
            && let Some(last) = self
                .shared
                .gate
                .settle(&self.id, &std::mem::take(&mut self.ended_calls))
        {
            // A note that stays makes a later call of the same id look begun, which is the safe side.
            drop(bus.forget_calls(&self.id, Some(last)).await);
        }
        for queued in answered.iter().flat_map(|(pending, _)| &pending.queued) {
            bus.commands.remove(*queued).await?;
        }
        Ok(())
    }

    /// Saves the working directory for other workers.
    async fn save(&mut self) -> Result<()> {
        tokio::select! {
            saved = self.shared.workspace.save(&self.id, &self.file.cwd) => saved?,
            () = self.lease.lost() => bail!("the lease was lost"),
        }
        // Such a command without a response may change the directory after this.
        self.is_unsaved = self.pending.values().any(|pending| pending.can_change_files);
        Ok(())
    }

    fn event(&mut self, mut line: Line) -> Result<Frame> {
        line.shift_remove("session");
        // The agent knows the command by an id of this worker.
        let own = command::shell_of(&line).and_then(|id| self.pending.get(id)?.id.clone());
        if let Some(own) = own {
            line.insert("id".to_owned(), own);
        }
        let edge = match line.get("type").and_then(Value::as_str) {
            Some("agent_start") => Some(RunEdge::Begins),
            Some("agent_settled") => Some(RunEdge::Ends),
            _ => None,
        };
        if line.get("type").and_then(Value::as_str) == Some("tool_execution_end") {
            let call = line.get("toolCallId").and_then(Value::as_str);
            self.ended_calls.extend(call.map(str::to_owned));
        }
        Answer::follow(&mut self.answer, &line);
        if line.contains_key("assistantMessageEvent")
            && let Some(whole) = self.answer.as_mut().and_then(Answer::whole)
        {
            line.insert("message".to_owned(), whole.clone());
        }
        let seq = self.events.number();
        line.insert("seq".to_owned(), json!(seq));
        let line = serde_json::to_string(&line)?;
        Ok(Frame::Event { seq, edge, line })
    }

    fn response(
        &mut self,
        mut line: Line,
        frames: &mut Vec<Frame>,
        answered: &mut Vec<(Pending, String)>,
    ) -> Result<()> {
        let id = line.get("id").and_then(Value::as_str).unwrap_or_default();
        let Some(pending) = self.pending.remove(id) else {
            return Ok(());
        };
        let is_success = line.get("success") == Some(&Value::Bool(true));
        self.queue.answered(&pending.key, is_success);
        line.shift_remove("session");
        match &pending.id {
            Some(id) => drop(line.insert("id".to_owned(), id.clone())),
            None => drop(line.shift_remove("id")),
        }
        // The agent numbers its own events; clients have the numbers of this session.
        if line.get("command").and_then(Value::as_str) == Some("replay")
            && let Some(Value::Object(data)) = line.get_mut("data")
        {
            data.insert("lastSeq".to_owned(), json!(self.events.last_number()));
            data.insert("instanceId".to_owned(), json!(self.id.as_str()));
        }
        let text = serde_json::to_string(&line)?;
        for gateway in &pending.gateways {
            frames.push(Frame::Response {
                gateway: gateway.clone(),
                key: pending.key.clone(),
                line: text.clone(),
            });
        }
        answered.push((pending, text));
        Ok(())
    }

    /// Gives the next command of the queue to the agent, or answers it.
    async fn begin(&mut self, message: &StreamMessage) -> Result<()> {
        let Some(command) = Command::read(message) else {
            // No gateway sends such a message.
            self.shared.bus.commands.remove(message.sequence).await?;
            return Ok(());
        };
        if let Some(same) = self
            .pending
            .values_mut()
            .find(|pending| pending.key == command.key)
        {
            same.gateways.push(command.gateway);
            same.queued.push(message.sequence);
            return Ok(());
        }
        if let Some(reason) = command::refusal(command.kind()) {
            return self.answer(&command, &command.error(reason)).await;
        }
        if command::is_frame(command.kind()) {
            self.is_unsaved = true;
            self.send(command.line).await?;
            return Ok(self.shared.bus.commands.remove(message.sequence).await?);
        }
        let mut begun = None;
        if RECORDED(command.kind()) {
            let noted = self
                .shared
                .bus
                .begin(&self.id, &command.key, &self.until()?)
                .await?;
            let age = SystemTime::now().duration_since(command.stored);
            match command::fate(noted, command.kind(), age.unwrap_or_default()) {
                Fate::Run(sequence) => begun = Some(sequence),
                Fate::Answer(response) => return self.answer(&command, &response).await,
                Fate::Unknown(sequence) => {
                    return self.fail(&command, sequence, command::MAY_HAVE_RUN).await;
                }
            }
        }
        if let (Some(sequence), Some(reason)) = (begun, self.queue.refusal(&command.line)) {
            return self.fail(&command, sequence, &reason).await;
        }
        let can_change_files = command::can_change_files(command.kind());
        self.is_unsaved |= can_change_files;
        let id = self.shared.agent.id(self.handle.as_str());
        let mut line = command.line;
        self.queue.sent(&command.key, &line);
        let pending = Pending {
            key: command.key,
            id: line.insert("id".to_owned(), json!(id)),
            gateways: vec![command.gateway],
            queued: vec![message.sequence],
            begun,
            can_change_files,
        };
        self.pending.insert(id, pending);
        self.send(line).await
    }

    async fn send(&self, mut line: Line) -> Result<()> {
        self.until()?;
        line.insert("session".to_owned(), json!(self.handle.as_str()));
        self.shared.agent.send(&line).await
    }

    /// Answers a command that was begun with an error, which its record keeps.
    async fn fail(&mut self, command: &Command, begun: u64, reason: &str) -> Result<()> {
        let error = command.error(reason);
        let until = self.until()?;
        let bus = &self.shared.bus;
        bus.answer(&self.id, &command.key, &error, begun, &until).await?;
        self.answer(command, &error).await
    }

    /// Publishes a response that the agent did not give.
    async fn answer(&mut self, command: &Command, response: &str) -> Result<()> {
        let until = self.until()?;
        let frame = command.response(response);
        self.events.publish(&self.shared.bus, &[frame], &until).await?;
        Ok(self.shared.bus.commands.remove(command.sequence).await?)
    }

    /// Closes the session in the agent. If the worker still has the lease, stores and publishes the rest, and gives it up.
    async fn close(mut self, mut end: End) -> End {
        let is_lost = matches!(end, End::Lost(_));
        self.shared.gate.close(&self.id);
        let (agent, handle) = (Arc::clone(&self.shared.agent), self.handle.clone());
        let closing = agent.close(handle.as_str());
        tokio::pin!(closing);
        let mut rest = Vec::new();
        let is_stuck = loop {
            tokio::select! {
                is_closed = &mut closing => break !is_closed,
                Some(line) = self.lines.recv() => if !is_lost { rest.push(line) },
            }
        };
        while let Ok(line) = self.lines.try_recv() {
            rest.push(line);
        }
        agent.unroute(handle.as_str());
        if is_stuck {
            self.shared.gate.give_up(&self.id);
        } else {
            self.shared.gate.forget(&self.id);
        }
        if !is_lost && let Err(error) = self.leave(rest).await {
            end = End::Lost(error);
        }
        if let End::Idle = end {
            drop(
                self.shared
                    .bus
                    .wanted
                    .purge(&self.shared.bus.subject("wanted", &self.id), None)
                    .await,
            );
        }
        if is_stuck {
            // It may run on, so its calls stay denied, and its lines have no reader. Another worker goes on with the stored session.
            let reason = match end {
                End::Lost(reason) | End::Stuck(reason) => reason,
                End::Drained | End::Idle => anyhow::anyhow!("the session ended"),
            };
            end = End::Stuck(reason);
        } else {
            self.file.remove().await;
        }
        if !self.lease.state().is_lost {
            self.lease.release().await;
        }
        announce(&self.shared.bus, &self.id, &end).await;
        end
    }

    /// Stores and publishes the rest. Saves the working directory if commands came after the last run.
    async fn leave(&mut self, rest: Vec<Line>) -> Result<()> {
        let ready = self.held.pass(rest)?;
        if self.held.is_waiting() {
            bail!("the session file could not be written");
        }
        for ready in ready {
            self.deliver(ready).await?;
        }
        if self.is_unsaved {
            self.save().await?;
        }
        Ok(())
    }
}

/// Asks for another worker after a session has left this one in good order.
async fn announce(bus: &Bus, id: &SessionId, end: &End) {
    match end {
        // Without it another worker finds the session with its next look.
        End::Drained => drop(bus.announce(id).await),
        // A command may have come after the last look.
        End::Idle => {
            if let Ok(Some(_)) = bus.commands.last(&bus.subject("command", id)).await {
                drop(bus.want(id).await);
            }
        }
        End::Lost(_) | End::Stuck(_) => {}
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
    let wait = std::time::Duration::from_millis(200);
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
