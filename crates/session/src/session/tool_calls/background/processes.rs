//! The processes in the background of one session.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::{Notify, watch};
use tools::{BackgroundCommand, TerminalSize, Toolbox};
use wire::Event;
use wire::process::{
    ProcessData, ProcessInfo, ProcessStatus, ProcessesReply, ReadProcessParams, ResizeProcessParams,
    WriteProcessParams,
};

use crate::outbox::{Outbox, Outgoing};
use crate::session::clock::now_ms;
use crate::{limits, strings};

use super::output::OutputTail;
use super::process::{Process, State};
use super::running::Running;
use super::wait;

/// The processes of a session. Clones share them; when the last one is dropped, all processes are killed.
#[derive(Clone, Default)]
pub(crate) struct Processes(Arc<Owned>);

#[derive(Default)]
struct Owned {
    known: Mutex<Known>,
    /// Rung when a process has ended by itself.
    exited: Notify,
}

#[derive(Default)]
pub(super) struct Known {
    pub(super) processes: Vec<Arc<Process>>,
    count: u64,
    /// Tells clients of starts and ends.
    outbox: Option<Outbox>,
    /// Starts that are under way.
    starting: usize,
    wakeups: Wakeups,
}

/// Whether ends of processes wake the session.
#[derive(Debug, Default)]
struct Wakeups {
    are_on: bool,
    /// Work was aborted: the ends so far wait for the next prompt or the next end.
    are_held: bool,
    /// Since the last prompt.
    count: usize,
    /// Whether clients were told that a wakeup is pending.
    is_told: bool,
}

/// Processes that have ended by themselves and that the model does not know of.
pub(crate) enum Exits {
    /// There are none, or they may not wake the session.
    None,
    /// They have woken the session this often since the last prompt, and do so no more.
    TooMany(usize),
    /// The model is to hear of them.
    Some(EndedProcesses),
}

/// Processes of whose ends the model is to hear.
pub(crate) struct EndedProcesses(Vec<Arc<Process>>);

impl EndedProcesses {
    /// Returns what the model hears. Their output counts as read then, so the text must reach the model.
    pub(crate) fn into_text(self) -> String {
        let texts = self.0.iter().map(|process| process.exit_text());
        texts.collect::<Vec<_>>().join("\n\n")
    }
}

impl Processes {
    pub(super) fn known(&self) -> MutexGuard<'_, Known> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells clients of starts and ends from now on.
    pub(crate) fn connect(&self, outbox: Outbox) {
        self.known().outbox = Some(outbox);
    }

    /// Lets ends of processes wake the session, or not.
    pub(crate) fn set_wakeups(&self, are_on: bool) {
        let mut known = self.known();
        known.wakeups.are_on = are_on;
        // The host wants the model to hear of the ends there are.
        known.wakeups.are_held = false;
    }

    /// Work was aborted, so that no end so far begins a run by itself.
    pub(crate) fn hold_wakeups(&self) {
        self.known().wakeups.are_held = true;
    }

    /// Returns true if ends of processes wake the session.
    pub(crate) fn has_wakeups(&self) -> bool {
        self.known().wakeups.are_on
    }

    /// Tells clients whether the end of a process may begin a run, if that has changed.
    pub(crate) async fn tell_pending_wakeup(&self) {
        // A block of its own, which releases the lock: sending waits for a client that does not read.
        let told = {
            let mut known = self.known();
            let is_pending = known.has_pending_wakeup();
            let was_pending = std::mem::replace(&mut known.wakeups.is_told, is_pending);
            let outbox = known.outbox.clone().filter(|_| is_pending != was_pending);
            outbox.map(|outbox| (outbox, is_pending))
        };
        if let Some((outbox, is_pending)) = told {
            outbox.inform(Outgoing::PendingWakeup(is_pending)).await;
        }
    }

    /// A prompt came: processes may wake the session again.
    pub(crate) fn allow_wakeups(&self) {
        let mut known = self.known();
        known.wakeups.count = 0;
        known.wakeups.are_held = false;
    }

    /// Waits until a process has ended by itself. Cancel-safe.
    pub(crate) async fn exited(&self) {
        self.0.exited.notified().await;
    }

    /// Takes what the model has to hear of ended processes.
    pub(crate) fn take_exits(&self) -> Exits {
        let mut known = self.known();
        // Nothing is taken: the ends are still news if wakeups are allowed later.
        if !known.wakeups.are_on || known.wakeups.are_held {
            return Exits::None;
        }
        let ended: Vec<Arc<Process>> = known
            .processes
            .iter()
            // Taken even at the limit: the session warns once for an end, and not at every wake-up.
            .filter(|process| process.take_exit())
            .cloned()
            .collect();
        if ended.is_empty() {
            return Exits::None;
        }
        // A process that is restarted on each end would otherwise keep the model busy for ever.
        if known.wakeups.count >= limits::PROCESS_WAKEUPS {
            return Exits::TooMany(limits::PROCESS_WAKEUPS);
        }
        known.wakeups.count += 1;
        // Their texts come later: cleaning them takes a moment, and every command about processes needs the lock.
        Exits::Some(EndedProcesses(ended))
    }

    /// Returns true while a process runs or starts.
    pub(crate) fn are_running(&self) -> bool {
        let known = self.known();
        known.starting > 0 || known.processes.iter().any(|process| process.is_running())
    }

    /// Starts a command.
    ///
    /// # Errors
    /// A text for the model: there are too many processes, or the command cannot be started.
    pub(super) async fn start(
        &self,
        toolbox: &Toolbox,
        command: BackgroundCommand,
    ) -> Result<Arc<Process>, String> {
        // Held until the process is listed: several calls that start at once must not exceed the limit.
        let _starting = Starting::new(self)?;
        let (line, has_terminal) = (command.command.clone(), command.terminal.is_some());
        let started = toolbox.start_background(command).await?;
        let (running, control) = Running::new(started);
        let process = {
            let mut known = self.known();
            known.count += 1;
            let process = Arc::new(Process {
                id: format!("p{}", known.count),
                command: line,
                pid: running.pid(),
                members: running.members(),
                has_terminal,
                started_at: now_ms(),
                state: Mutex::new(State {
                    output: OutputTail::new(limits::PROCESS_OUTPUT),
                    read_by_model: 0,
                    is_awaited: false,
                    status: ProcessStatus::Running,
                    exit_code: None,
                    signal: None,
                    ended_at: None,
                    typed: String::new(),
                    is_end_told: false,
                }),
                version: watch::Sender::new(0),
                news: Notify::new(),
                control,
            });
            known.processes.push(Arc::clone(&process));
            // Only when a new one comes: ended processes stay readable as long as there is room.
            known.forget_old();
            process
        };
        // Before the first wait, at which the call may be given up: only this task reads and ends a listed process.
        // The task holds no owner: a process ends with its session.
        tokio::spawn(watch_over(Arc::downgrade(&self.0), running, Arc::clone(&process)));
        Ok(process)
    }

    /// A process by its id.
    ///
    /// # Errors
    /// A sentence that names the ids that exist.
    pub(super) fn find(&self, id: &str) -> Result<Arc<Process>, String> {
        let known = self.known();
        let found = known.processes.iter().find(|process| process.id == id);
        found.map(Arc::clone).ok_or_else(|| {
            let ids: Vec<&str> = known
                .processes
                .iter()
                .map(|process| process.id.as_str())
                .collect();
            strings::no_such_process(id, &ids)
        })
    }

    /// All processes, oldest first.
    pub(crate) fn list(&self) -> ProcessesReply {
        let known = self.known();
        ProcessesReply {
            processes: known.processes.iter().map(|process| process.info()).collect(),
            wakeups: known.wakeups.are_on,
        }
    }

    /// Output for a client. A character at the end that is not complete yet stays for the next time. With `notify`, the client hears of
    /// the output after it.
    ///
    /// # Errors
    /// When there is no such process.
    pub(crate) fn read(&self, params: &ReadProcessParams) -> Result<ProcessData, String> {
        let process = self.find(&params.process_id)?;
        let from = params.from_byte.unwrap_or(0);
        let most = params.max_bytes.and_then(|most| usize::try_from(most).ok());
        // A character of UTF-8 has up to 4 bytes, so that with fewer a reader would never come past one.
        let most = most
            .unwrap_or(limits::PROCESS_OUTPUT)
            .clamp(4, limits::PROCESS_OUTPUT);
        let mut part = {
            let mut state = process.state();
            // Together, so that no output comes between.
            state.is_awaited |= params.notify == Some(true);
            state.output.read(from, most)
        };
        // After the end nothing completes a character that was cut.
        if process.is_running() || part.bytes.len() == most {
            let cut = incomplete(&part.bytes);
            part.bytes.truncate(part.bytes.len() - cut);
            part.next -= u64::try_from(cut).unwrap_or(0);
        }
        Ok(ProcessData {
            process: process.info(),
            from_byte: part.from,
            next_byte: part.next,
            dropped_bytes: part.dropped,
            text: String::from_utf8_lossy(&part.bytes).into_owned(),
        })
    }

    /// Writes to the input of a process.
    ///
    /// # Errors
    /// When there is no such process, it has ended, or it does not read.
    pub(crate) async fn write(self, params: WriteProcessParams) -> Result<(), String> {
        let process = self.find_running(&params.process_id)?;
        process.control.write(&process.id, params.data.as_bytes()).await
    }

    /// A process by its id, to write to it.
    ///
    /// # Errors
    /// When there is no such process, or it has ended.
    pub(super) fn find_running(&self, id: &str) -> Result<Arc<Process>, String> {
        let process = self.find(id)?;
        if process.is_running() {
            Ok(process)
        } else {
            Err(strings::process_ended(id))
        }
    }

    /// What rules judge about an input of the model ([`Process::judged`]); the input alone if there is no such process.
    pub(super) fn judged(&self, id: &str, input: &str) -> String {
        self.find(id)
            .map_or_else(|_| input.to_owned(), |process| process.judged(input))
    }

    /// Changes the size of the terminal of a process.
    ///
    /// # Errors
    /// When there is no such process, or it has no terminal.
    pub(crate) fn resize(&self, params: &ResizeProcessParams) -> Result<(), String> {
        let process = self.find(&params.process_id)?;
        let size = TerminalSize {
            columns: params.columns,
            rows: params.rows,
        };
        process.control.resize(&params.process_id, size)
    }

    /// Kills a process with all that it started, and waits until it is gone (bounded).
    ///
    /// # Errors
    /// When there is no such process.
    pub(crate) async fn kill(self, id: String) -> Result<ProcessInfo, String> {
        let process = self.find(&id)?;
        process.control.kill();
        // Afterwards the reply says how the process is, even if it still runs.
        let _late = tokio::time::timeout(limits::END_WAIT, wait::ended(&process)).await;
        Ok(process.info())
    }

    /// Kills all processes and forgets them, bounded in time.
    pub(crate) async fn end(&self) {
        // Forgotten before they have ended, so that no other call finds them.
        let processes = std::mem::take(&mut self.known().processes);
        // All at once, so that one bounded wait is enough for all of them.
        for process in &processes {
            process.control.kill();
        }
        let ended = async {
            for process in &processes {
                wait::ended(process).await;
            }
        };
        let _late = tokio::time::timeout(limits::END_WAIT, ended).await;
    }
}

/// Reads a process until it ends, and tells clients of its start, its output and its end.
async fn watch_over(owner: Weak<Owned>, running: Running, process: Arc<Process>) {
    let start = Event::ProcessStart {
        process: Box::new(process.info()),
    };
    let mut reading = pin!(running.read_to_end(&process));
    let mut starting = pin!(tell(&owner, start));
    // At the same time, because clients may read slowly.
    let is_start_told = tokio::select! {
        // First, so that no event of a process precedes its start.
        biased;
        _told = &mut starting => {
            tokio::select! {
                () = reading => {}
                () = tell_output(&owner, &process) => {}
            }
            true
        }
        () = &mut reading => false,
    };
    let ended = process.info();
    if let Some(owner) = owner.upgrade() {
        let owner = Processes(owner);
        if ended.status == ProcessStatus::Exited {
            owner.known().wakeups.are_held = false;
        }
        // Before the events, which may wait for a client that reads slowly.
        owner.0.exited.notify_one();
    }
    if !is_start_told {
        starting.await;
    }
    let process = Box::new(ended);
    tell(&owner, Event::ProcessEnd { process }).await;
}

/// Tells clients of output that they wait for, until it is dropped.
async fn tell_output(owner: &Weak<Owned>, process: &Process) {
    loop {
        process.news.notified().await;
        let event = Event::ProcessOutput {
            process_id: process.id.clone(),
            output_bytes: process.state().output.end(),
        };
        if !tell(owner, event).await {
            return;
        }
    }
}

/// Tells clients something. Returns false if there are none, or the session has ended.
async fn tell(owner: &Weak<Owned>, event: Event) -> bool {
    // Neither the owner nor its lock is held while a slow client is waited for: the process ends with its session.
    let outbox = owner
        .upgrade()
        .and_then(|owner| Processes(owner).known().outbox.clone());
    let Some(outbox) = outbox else {
        return false;
    };
    outbox.tell(event).await;
    true
}

impl Known {
    /// Returns true if a process runs whose end would wake the session, or has ended and is about to. Ends that an abort holds back, and
    /// those beyond the limit, begin no run by themselves.
    fn has_pending_wakeup(&self) -> bool {
        let wakeups = &self.wakeups;
        let may_wake = |process: &Arc<Process>| match wakeups.are_held {
            // Its end releases the others (`watch_over`).
            true => process.is_running(),
            false => process.may_wake(),
        };
        wakeups.are_on
            && wakeups.count < limits::PROCESS_WAKEUPS
            && (self.starting > 0 || self.processes.iter().any(may_wake))
    }

    /// Ended processes make room for new ones; the oldest go first.
    fn forget_old(&mut self) {
        let ended = self
            .processes
            .iter()
            .filter(|process| !process.is_running())
            .count();
        let mut over = ended.saturating_sub(limits::ENDED_PROCESSES);
        self.processes.retain(|process| {
            let goes = over > 0 && !process.is_running();
            over -= usize::from(goes);
            !goes
        });
    }
}

/// A start that is under way. It takes the place of a process.
struct Starting(Processes);

impl Starting {
    fn new(processes: &Processes) -> Result<Self, String> {
        let mut known = processes.known();
        let running = known
            .processes
            .iter()
            .filter(|process| process.is_running())
            .count();
        if running + known.starting >= limits::PROCESSES {
            return Err(strings::too_many_processes(limits::PROCESSES));
        }
        // Under the lock of the count: of two calls at the same time only one gets the last place.
        known.starting += 1;
        Ok(Self(processes.clone()))
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        self.0.known().starting -= 1;
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        let known = self.known.get_mut().unwrap_or_else(PoisonError::into_inner);
        for process in &known.processes {
            process.control.kill();
        }
    }
}

/// Bytes at the end that begin a character of UTF-8 but do not complete it.
fn incomplete(bytes: &[u8]) -> usize {
    // A character has at most four bytes, so that an incomplete one has at most three.
    let tail = bytes.get(bytes.len().saturating_sub(3)..).unwrap_or_default();
    for (back, byte) in tail.iter().rev().enumerate() {
        let length = match byte {
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            0x80..=0xbf => continue,
            // ASCII, or a byte that begins no character (RFC 3629): nothing that comes later completes it.
            _ => return 0,
        };
        return if back + 1 < length { back + 1 } else { 0 };
    }
    0
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use process::Reaper;
    use tools::ToolsConfig;

    use super::*;
    use crate::outbox::{Outgoing, outbox};

    /// The call that starts a process may be given up while clients do not read.
    #[tokio::test]
    async fn process_ends_while_clients_do_not_read() {
        let (outbox, mut sent) = outbox(1);
        let filler = Event::ProcessOutput {
            process_id: "other".to_owned(),
            output_bytes: 0,
        };
        outbox.tell(filler).await;
        let processes = Processes::default();
        processes.connect(outbox);
        let toolbox = Toolbox::new(ToolsConfig::default(), Reaper::direct());
        let command = BackgroundCommand {
            command: "true".to_owned(),
            cwd: "/".into(),
            env: Vec::new(),
            terminal: None,
        };
        let ended = async {
            let process = processes.start(&toolbox, command).await.unwrap();
            wait::ended(&process).await;
        };
        let bound = Duration::from_secs(20);
        tokio::time::timeout(bound, ended)
            .await
            .expect("the process is read and ends");
        let mut told = Vec::new();
        while told.len() < 3 {
            match tokio::time::timeout(bound, sent.recv()).await.unwrap() {
                Some(Outgoing::Event(event)) => told.push(event),
                other => panic!("{other:?}"),
            }
        }
        assert!(matches!(*told[1], Event::ProcessStart { .. }), "{told:?}");
        assert!(matches!(*told[2], Event::ProcessEnd { .. }), "{told:?}");
    }

    #[test]
    fn incomplete_characters_are_found() {
        for (bytes, count) in [
            (&b"abc"[..], 0),
            ("é".as_bytes(), 0),
            (&"é".as_bytes()[..1], 1),
            (&"€".as_bytes()[..2], 2),
            (&"🙂".as_bytes()[..3], 3),
            ("🙂".as_bytes(), 0),
            (&[0x80, 0x80, 0x80], 0),
            (&[b'a', 0xff], 0),
            (b"", 0),
        ] {
            assert_eq!(incomplete(bytes), count, "{bytes:?}");
        }
    }
}
