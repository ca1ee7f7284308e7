//! One session of a worker: a task that has its lease, gives its commands to the agent, stores what the agent wrote, and publishes
//! events and responses. Which commands may run again lives in `command`; what happens to an interrupted run, in `takeover`.

mod open;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use anyhow::{Context as _, Result, bail};
use async_nats::jetstream::message::StreamMessage;
use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};
use store::SessionId;
use tokio::sync::{mpsc, watch};

use super::agent_line::AgentLine;
use super::child::{Line, handle};
use super::command::{self, Command, Fate};
use super::file::{SessionFile, leaves_file};
use super::gate::StoreRequest;
use super::held::HeldLines;
use super::queue::StoredQueue;
use super::{Place, Shared};
use crate::answer::Answer;
use crate::bus::{Bus, EventWriter, Follower, Frame, Lease, RECORDED, RunEdge, Until};
use crate::limits::{CLOSE_WAIT, COMMANDS_IN_FLIGHT, EVENT_BATCH, IDLE_WAIT};

/// Why a worker no longer has a session.
#[derive(Debug)]
pub(crate) enum End {
    /// The worker stops, and the session has no run.
    Drained,
    /// The session had neither a run nor a command for a while.
    Idle,
    /// The lease, the agent or NATS was lost.
    Lost(anyhow::Error),
    /// This worker cannot write the session file. Another worker may have room.
    Unwritable(anyhow::Error),
    /// The agent does not close the session, so this worker cannot take it again before [`close_at_last`].
    Stuck(anyhow::Error, SessionFile),
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
    lines: mpsc::Receiver<AgentLine>,
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
            let end = task.serve(commands, stop).await.unwrap_or_else(End::Lost);
            task.close(end).await
        }
        Err(end) => end,
    }
}

/// Closes a session that ended as [`End::Stuck`], as soon as the agent lets it go. Its entries that are not in the store are lost, since
/// another worker may have continued the session.
pub(crate) async fn close_at_last(shared: Arc<Shared>, id: SessionId, file: SessionFile) -> SessionId {
    shared.agent.close_at_last(handle(&id).as_str()).await;
    shared.gate.forget(&id);
    file.remove().await;
    id
}

impl SessionTask {
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
    async fn deliver(&mut self, batch: Vec<AgentLine>) -> Result<()> {
        let (mut frames, mut answered) = (Vec::new(), Vec::new());
        for line in batch {
            match line.kind() {
                "response" => {
                    self.response(line, &mut frames, &mut answered)?;
                    continue;
                }
                // The session only leaves this worker.
                "session_closed" => continue,
                // Clients must not see what only a file of this worker has.
                "session_changed" if leaves_file(&self.id, &line) => {
                    bail!("an extension changed to another session, which is in another file")
                }
                "queue_update" => {
                    let update = line.object().context("the agent sent a damaged queue_update")?;
                    self.queue.update(&update);
                }
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

    fn event(&mut self, mut line: AgentLine) -> Result<Frame> {
        line.remove("session");
        // The agent knows the command by an id of this worker.
        let own = command::shell_of(&line).and_then(|id| self.pending.get(&id)?.id.clone());
        if let Some(own) = own {
            line.set("id", &own)?;
        }
        let edge = match line.kind() {
            "agent_start" => Some(RunEdge::Begins),
            "agent_settled" => Some(RunEdge::Ends),
            _ => None,
        };
        if line.kind() == "tool_execution_end" {
            self.ended_calls.extend(line.get::<String>("toolCallId"));
        }
        self.follow_answer(&line);
        if line.contains("assistantMessageEvent")
            && let Some(whole) = self.answer.as_mut().and_then(Answer::whole)
        {
            line.set("message", whole)?;
        }
        let seq = self.events.number();
        line.set("seq", &seq)?;
        let line = line.text()?;
        Ok(Frame::Event { seq, edge, line })
    }

    fn follow_answer(&mut self, line: &AgentLine) {
        if !matches!(line.kind(), "message_start" | "message_update" | "message_end") {
            return;
        }
        if line.kind() != "message_end"
            && let Some(event) = line.object()
        {
            Answer::follow(&mut self.answer, &event);
        } else if line.kind() != "message_update" {
            // A message that is nested too deeply to be read has no answer to follow.
            self.answer = None;
        }
    }

    fn response(
        &mut self,
        mut line: AgentLine,
        frames: &mut Vec<Frame>,
        answered: &mut Vec<(Pending, String)>,
    ) -> Result<()> {
        let id: String = line.get("id").unwrap_or_default();
        let Some(pending) = self.pending.remove(&id) else {
            return Ok(());
        };
        let is_success = line.get("success") == Some(true);
        self.queue.answered(&pending.key, is_success);
        line.remove("session");
        match &pending.id {
            Some(id) => line.set("id", id)?,
            None => line.remove("id"),
        }
        // The agent numbers its own events; clients have the numbers of this session.
        if line.get::<String>("command").as_deref() == Some("replay")
            && let Some(mut data) = line.inner("data")
        {
            data.set("lastSeq", &self.events.last_number())?;
            data.set("instanceId", &self.id.as_str())?;
            line.set("data", &data)?;
        }
        let text = line.text()?;
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
        let is_lost = !matches!(end, End::Drained | End::Idle);
        self.shared.gate.close(&self.id);
        let (agent, handle) = (Arc::clone(&self.shared.agent), self.handle.clone());
        let closing = agent.close(handle.as_str(), CLOSE_WAIT);
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
        // A session that the agent does not close stays wanted: commands may have come in the meantime.
        if let End::Idle = end
            && !is_stuck
        {
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
                End::Lost(reason) | End::Unwritable(reason) | End::Stuck(reason, _) => reason,
                End::Drained | End::Idle => anyhow::anyhow!("the session ended"),
            };
            end = End::Stuck(reason, self.file);
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
    async fn leave(&mut self, rest: Vec<AgentLine>) -> Result<()> {
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

/// Asks for another worker after a session has left this one.
async fn announce(bus: &Bus, id: &SessionId, end: &End) {
    match end {
        // Without it another worker finds the session with its next look.
        End::Drained | End::Unwritable(_) => drop(bus.announce(id).await),
        // A command may have come after the last look.
        End::Idle => {
            if let Ok(Some(_)) = bus.commands.last(&bus.subject("command", id)).await {
                drop(bus.want(id).await);
            }
        }
        End::Lost(_) | End::Stuck(..) => {}
    }
}
