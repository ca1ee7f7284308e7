//! The task that takes events and responses from the outboxes of all sessions, has them encoded and hands them to the writing
//! thread in batches. Order within a session is the order of its outbox.

use std::time::{Duration, Instant};

use session::{Lane, Outgoing};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::connection::Connection;
use crate::error::Error;
use crate::frames::Splitter;
use crate::limits::BATCH_BYTES;
use crate::queues::{QueueItem, SessionQueues};

use crate::sink::Sink;

/// The running task.
#[derive(Debug)]
pub struct StdoutWriter {
    task: JoinHandle<Result<(), Error>>,
}

impl StdoutWriter {
    /// Starts `run` on the current runtime.
    #[must_use]
    pub fn spawn(queue: mpsc::Receiver<Outgoing>, connection: impl Into<Connection>, sink: Sink) -> Self {
        Self {
            task: tokio::spawn(run(SessionQueues::new(queue, None), connection.into(), sink)),
        }
    }

    /// Like `spawn`, for several sessions: `joining` brings the output of sessions other than the first.
    #[must_use]
    pub fn spawn_for_many(
        first: mpsc::Receiver<Outgoing>,
        joining: mpsc::Receiver<Lane>,
        connection: Connection,
        sink: Sink,
    ) -> Self {
        Self {
            task: tokio::spawn(run(SessionQueues::new(first, Some(joining)), connection, sink)),
        }
    }

    /// Resolves when the task ended: with an error when stdout was closed or broke (the process should then end), without
    /// one when every [`Outbox`](session::Outbox) was dropped and everything was written. Not to be called again afterwards.
    ///
    /// # Errors
    /// Why writing ended early.
    pub async fn ended(&mut self) -> Result<(), Error> {
        match (&mut self.task).await {
            Ok(outcome) => outcome,
            // The task has panicked: only `close` aborts it, and takes it with it.
            Err(_) => Err(Error::Closed),
        }
    }

    /// Waits until everything in the queue was written, after the caller dropped every [`Outbox`](session::Outbox). After
    /// `limit` (usually [`CLOSE_WAIT`](crate::limits::CLOSE_WAIT)) the rest is given up.
    ///
    /// # Errors
    /// When writing failed, or the other side did not read in time.
    pub async fn close(mut self, limit: Duration) -> Result<(), Error> {
        match tokio::time::timeout(limit, self.ended()).await {
            Ok(outcome) => outcome,
            // The reader may have stopped for good; the process must end all the same.
            Err(_) => {
                // The task holds buffers and queues; the thread that writes cannot be stopped and ends with the process.
                self.task.abort();
                Err(Error::OutputStuck(limit))
            }
        }
    }
}

/// Writes everything from the queues until all their senders are gone.
///
/// A free buffer is waited for before anything is taken from the queue: while the reader is busy the queue fills, deltas
/// that wait in it are merged when their turn comes, and a full queue makes the session wait.
///
/// # Errors
/// When writing failed.
pub(crate) async fn run(
    mut queue: SessionQueues,
    mut connection: Connection,
    mut sink: Sink,
) -> Result<(), Error> {
    let mut carried = None;
    let mut splitter = Splitter::default();
    // The sink writes repeated text from where it is, so batches need not contain it.
    connection.write_repeats();
    loop {
        let item = match carried.take() {
            // The deltas before it had the last batch for themselves.
            Some(item) => Some(item),
            None => match next(&mut queue, &connection, &mut sink).await? {
                Next::Item(item) => Some(item),
                Next::Deadline => None,
                Next::End => break,
            },
        };
        let mut batch = sink.buffer().await?;
        // Read after the wait for a buffer, which may be long: deadlines are judged by when the batch is written.
        let now = Instant::now();
        // Only a deadline has no item; the lines that are due come from `tick`.
        let filled = match item {
            Some(item) => fill(item, &mut queue, &mut connection, now, &mut batch),
            None => Filled::Enough,
        };
        // A caller waits, so held-back deltas are written now instead of at their deadline.
        if matches!(filled, Filled::UpTo(_)) {
            connection.flush(now, &mut batch);
        } else {
            connection.tick(now, &mut batch);
        }
        write(batch, &mut connection, &mut splitter, &mut sink).await?;
        match filled {
            Filled::Enough => {}
            Filled::Before(item) => carried = Some(*item),
            Filled::UpTo(waiting) => {
                // Not before the bytes have left: the caller may end the process next.
                sink.flush().await?;
                // The receiver may be gone; then no caller waits.
                let _ = waiting.send(());
            }
        }
    }
    // All sessions are gone: no later event will push out the deltas and the end of a run that are held back.
    let mut batch = sink.buffer().await?;
    connection.finish(Instant::now(), &mut batch);
    write(batch, &mut connection, &mut splitter, &mut sink).await?;
    sink.flush().await
}

/// Hands a batch over to be written.
async fn write(
    mut batch: Vec<u8>,
    connection: &mut Connection,
    splitter: &mut Splitter,
    sink: &mut Sink,
) -> Result<(), Error> {
    let mut repeats = connection.take_repeats();
    if connection.sends_chunks() {
        // A chunk is a part of the complete line.
        std::mem::take(&mut repeats).expand(&mut batch);
        splitter.apply(&mut batch);
    }
    sink.write_repeating(batch, repeats).await
}

#[expect(
    clippy::large_enum_variant,
    reason = "one at a time, and a box for each event would cost more"
)]
enum Next {
    Item(QueueItem),
    /// Deltas that were held back are due, or a heartbeat.
    Deadline,
    End,
}

async fn next(queue: &mut SessionQueues, connection: &Connection, sink: &mut Sink) -> Result<Next, Error> {
    let deadline = connection.next_deadline();
    let timer = async {
        match deadline {
            Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        // Failures first: after one, no item can be written.
        biased;
        error = sink.failure() => Err(error),
        item = queue.next() => Ok(item.map_or(Next::End, Next::Item)),
        () = timer => Ok(Next::Deadline),
    }
}

/// Why a batch goes no further.
enum Filled {
    /// It is large enough, or there is nothing more.
    Enough,
    /// This begins the next one.
    Before(Box<QueueItem>),
    /// A caller waits until everything up to here was written.
    UpTo(oneshot::Sender<()>),
}

/// Encodes `item` and what else is in the queue, up to the size of a batch or a request to flush.
fn fill(
    item: QueueItem,
    queue: &mut SessionQueues,
    connection: &mut Connection,
    now: Instant,
    batch: &mut Vec<u8>,
) -> Filled {
    let mut next = Some(item);
    while let Some(item) = next {
        match item {
            QueueItem::Joined(session) => connection.join(&session),
            QueueItem::Left(session) => connection.leave(&session, now, batch),
            QueueItem::Item(session, item) => {
                let from = session.as_ref();
                match item {
                    Outgoing::Event(event) => {
                        if connection.clears_the_way(from, &event, now, batch) {
                            return Filled::Before(Box::new(QueueItem::Item(
                                session,
                                Outgoing::Event(event),
                            )));
                        }
                        connection.event(from, &event, now, batch);
                    }
                    Outgoing::Response(_, response) => connection.response(from, &response, now, batch),
                    Outgoing::Connection(origin, command, snapshot) => {
                        connection.answer(from, origin, command, snapshot, now, batch);
                    }
                    Outgoing::PendingWakeup(is_pending) => {
                        connection.pending_wakeup(from, is_pending, now, batch);
                    }
                    Outgoing::Flush(waiting) => return Filled::UpTo(waiting),
                    // JSON lines have no event for changed options.
                    _ => {}
                }
            }
        }
        // Held-back deltas count, since this batch contains them in the end.
        if batch.len() + connection.held_back() >= BATCH_BYTES {
            return Filled::Enough;
        }
        next = queue.try_next();
    }
    Filled::Enough
}
