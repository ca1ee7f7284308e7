//! The record of inputs for a bug report (`--record-inputs`): what the machines of all sessions are given, as lines of JSON
//! that `agent::record` replays. A thread writes the file, so that a slow disk never delays a session; what does not
//! fit into its queue is dropped, and a replay finds the gap.

use std::fs::File;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use agent::record::Recorder;
use agent::{Effect, Input, Machine};
use auth::Secrets;

use crate::limits;

/// Pause between attempts to give the thread its last task while its queue is full.
const END_POLL: Duration = Duration::from_millis(10);

/// Where sessions write their inputs. Clones write to the same file.
#[derive(Debug, Clone)]
pub struct InputRecord {
    shared: Arc<Shared>,
    tasks: SyncSender<Task>,
}

#[derive(Debug)]
struct Shared {
    secrets: Secrets,
    sessions: AtomicU64,
    /// Bytes of the lines in the queue: their number alone does not bound its memory.
    queued: AtomicUsize,
    /// The file is full or cannot be written: sessions need not prepare further lines.
    stopped: AtomicBool,
}

#[derive(Debug)]
enum Task {
    Line(String),
    End(SyncSender<()>),
}

/// Ends the writing thread when it is dropped, after the lines in the queue are written or a timeout has passed.
#[derive(Debug)]
pub struct InputWriter {
    tasks: SyncSender<Task>,
}

impl InputRecord {
    /// Starts a thread that writes to this file. Credentials are taken out of every line.
    ///
    /// # Errors
    /// If the system has no room for another thread.
    pub fn start(file: File, secrets: Secrets) -> io::Result<(Self, InputWriter)> {
        let (tasks, queue) = sync_channel(limits::INPUT_RECORD_LINES);
        let shared = Arc::new(Shared {
            secrets,
            sessions: AtomicU64::new(0),
            queued: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
        });
        let written = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("input-record".to_owned())
            .spawn(move || write_lines(file, &queue, &written))?;
        let writer = InputWriter { tasks: tasks.clone() };
        Ok((Self { shared, tasks }, writer))
    }

    /// The record of one more session.
    pub(crate) fn session(&self) -> SessionRecord {
        let number = self.shared.sessions.fetch_add(1, Ordering::Relaxed) + 1;
        SessionRecord {
            record: self.clone(),
            recorder: Recorder::new(number),
        }
    }

    /// Queues a line, or drops it if the queue is full: a session never waits for the file.
    fn push(&self, mut line: String) {
        line.push('\n');
        let bytes = line.len();
        // Counted before it is queued, since the thread may take the line out at once.
        let before = self.shared.queued.fetch_add(bytes, Ordering::Relaxed);
        let has_room = before.saturating_add(bytes) <= limits::INPUT_RECORD_QUEUE_BYTES;
        if !has_room || self.tasks.try_send(Task::Line(line)).is_err() {
            self.shared.queued.fetch_sub(bytes, Ordering::Relaxed);
            tracing::warn!(bytes, "dropped a line of the record of inputs");
        }
    }
}

/// The inputs of one session.
#[derive(Debug)]
pub(crate) struct SessionRecord {
    record: InputRecord,
    recorder: Recorder,
}

impl SessionRecord {
    /// Gives the machine an input and records both the input and what follows from it.
    pub(crate) fn step(&mut self, machine: &mut Machine, input: Input, now: i64, out: &mut Vec<Effect>) {
        let shared = &self.record.shared;
        if shared.stopped.load(Ordering::Relaxed) {
            return machine.step(input, now, out);
        }
        // Before the step, which uses the input up.
        let pending = self.recorder.begin(&input, now);
        // There may be effects of an earlier input in `out`.
        let from = out.len();
        machine.step(input, now, out);
        let effects = out.get(from..).unwrap_or_default();
        // Messages and results of tools may contain keys (GUARANTEES.md, 20).
        let redact = |text| shared.secrets.redact(text);
        match pending.and_then(|pending| pending.finish(effects, redact)) {
            Ok(line) => self.record.push(line),
            Err(error) => tracing::warn!(%error, "cannot record an input"),
        }
    }
}

fn write_lines(mut file: File, queue: &Receiver<Task>, shared: &Shared) {
    let mut left = limits::INPUT_RECORD_FILE_BYTES;
    for task in queue {
        let line = match task {
            Task::Line(line) => line,
            Task::End(done) => {
                // The writer may have stopped waiting at its deadline.
                let _gone = done.try_send(());
                return;
            }
        };
        shared.queued.fetch_sub(line.len(), Ordering::Relaxed);
        // The queue is emptied all the same, so that no line stays in memory.
        if shared.stopped.load(Ordering::Relaxed) {
            continue;
        }
        let room = left.checked_sub(line.len());
        let written = room.is_some() && file.write_all(line.as_bytes()).is_ok();
        left = room.unwrap_or(left);
        if !written {
            // A record with a hole cannot be replayed beyond it, so nothing is lost by stopping here.
            shared.stopped.store(true, Ordering::Relaxed);
            tracing::warn!("the record of inputs ends here: the file is full or cannot be written");
        }
    }
}

impl Drop for InputWriter {
    fn drop(&mut self) {
        let (done, ended) = sync_channel(1);
        let mut task = Task::End(done);
        let deadline = Instant::now() + limits::INPUT_RECORD_END;
        // Not `send`, which would wait without end for a disk that hangs.
        while let Err(TrySendError::Full(back)) = self.tasks.try_send(task) {
            if Instant::now() >= deadline {
                return;
            }
            task = back;
            std::thread::sleep(END_POLL);
        }
        let _late = ended.recv_timeout(deadline.saturating_duration_since(Instant::now()));
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;

    use super::*;

    fn steps(session: &mut SessionRecord, count: usize, bytes: usize) -> Vec<Effect> {
        let mut machine = Machine::default();
        let mut out = Vec::new();
        for now in (0..).take(count) {
            let text = "x".repeat(bytes);
            let message = Arc::new(wire::Message::user(text.clone(), now));
            let item = agent::Queued {
                text,
                message,
                interrupts: false,
            };
            let input = Input::Enqueue(agent::QueueKind::Steering, item);
            session.step(&mut machine, input, now, &mut out);
            machine.step(Input::ClearQueue, now, &mut Vec::new());
        }
        out
    }

    #[test]
    fn stuck_file_drops_lines_without_delay() -> io::Result<()> {
        let (reader, writer) = io::pipe()?;
        let (record, end) = InputRecord::start(File::from(OwnedFd::from(writer)), Secrets::default())?;
        // The pipe has no reader, so the thread is stuck in its first line.
        // Each line has its text twice, so half as many lines as mebibytes fill the queue.
        let count = 4 + limits::INPUT_RECORD_QUEUE_BYTES / (2 << 20);
        let effects = steps(&mut record.session(), count, 1 << 20);
        assert_eq!(effects.len(), count);
        let queued = record.shared.queued.load(Ordering::Relaxed);
        assert!(queued <= limits::INPUT_RECORD_QUEUE_BYTES, "{queued}");
        drop(reader);
        drop(end);
        assert!(record.shared.stopped.load(Ordering::Relaxed));
        Ok(())
    }

    #[test]
    fn failed_write_ends_record_but_not_session() -> io::Result<()> {
        // Opened to be read only, so that every write fails as on a full disk.
        let file = File::open(std::env::current_exe()?)?;
        let (record, end) = InputRecord::start(file, Secrets::default())?;
        let mut session = record.session();
        assert_eq!(steps(&mut session, 1, 10).len(), 1);
        drop(end);
        assert!(record.shared.stopped.load(Ordering::Relaxed));
        assert_eq!(steps(&mut session, 1, 10).len(), 1);
        Ok(())
    }
}
