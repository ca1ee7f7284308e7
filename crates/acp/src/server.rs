//! Moves lines, commands and events of one client. A client that does not read makes its sessions wait, and its lines stay
//! unread, so nothing piles up.

use std::io::Read;
use std::thread;

use serve::queues::{QueueItem, SessionQueues};
use serve::{Line, LineReader, Sink};
use session::{Outgoing, RequestSender};
use tokio::sync::mpsc::{self, Receiver, Sender};

use crate::connection::{Command, Connection};
use crate::limits::{COMMANDS, INPUT_LINES, MAX_LINE};
use crate::rpc::{self, Message};

/// Why a connection ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Output failed.
    #[error(transparent)]
    Output(#[from] serve::Error),
    /// The reading thread could not be started.
    #[error("could not start a thread: {0}")]
    Thread(#[source] std::io::Error),
}

/// Serves one client: reads requests from `input` until it ends, hands commands to `slot`, and writes what the sessions say
/// to `sink`. Returns when all sessions have ended and everything was written.
///
/// # Errors
/// When the output was closed or broke, or a thread could not be started.
pub async fn run(
    input: impl Read + Send + 'static,
    slot: RequestSender,
    mut queues: SessionQueues,
    mut sink: Sink,
    version: &str,
) -> Result<(), Error> {
    let mut lines = read(input)?;
    let mut connection = Connection::new(version);
    // Commands wait here and not in the loop: a manager that waits for output to be taken must not make the output wait.
    let (commands, waiting) = mpsc::channel(COMMANDS);
    tokio::spawn(forward(waiting, slot));
    // Dropping it ends the sessions.
    let mut commands = Some(commands);
    loop {
        let wakeup = tokio::select! {
            error = sink.failure() => return Err(error.into()),
            item = queues.next() => item.map_or(Wakeup::End, Wakeup::Item),
            line = next_line(commands.as_ref(), &mut lines) => Wakeup::Line(line),
        };
        let mut batch = sink.buffer().await?;
        let mut flushed = None;
        match wakeup {
            Wakeup::End => break,
            Wakeup::Line(None) => commands = None,
            Wakeup::Line(Some(message)) => {
                let command = connection.message(message);
                send(commands.as_ref(), command).await;
            }
            Wakeup::Item(item) => {
                let (command, flush) = take(&mut connection, item);
                send(commands.as_ref(), command).await;
                flushed = flush;
            }
        }
        connection.write(&mut batch);
        sink.write(batch).await?;
        if let Some(waiting) = flushed {
            sink.flush().await?;
            // The receiver may be gone; then no caller waits.
            let _ = waiting.send(());
        }
    }
    sink.flush().await?;
    Ok(())
}

enum Wakeup {
    /// All sessions have ended.
    End,
    /// The next line; none at the end of the input.
    Line(Option<Message>),
    Item(QueueItem),
}

type Flush = tokio::sync::oneshot::Sender<()>;

fn take(connection: &mut Connection, item: QueueItem) -> (Option<Command>, Option<Flush>) {
    match item {
        QueueItem::Joined(_) => (None, None),
        QueueItem::Left(handle) => {
            connection.left(&handle);
            (None, None)
        }
        QueueItem::Item(_, Outgoing::Flush(waiting)) => (None, Some(waiting)),
        QueueItem::Item(handle, item) => (connection.outgoing(handle.as_ref(), &item), None),
    }
}

/// The next line, once there is room for its command. Never resolves after the end of the input. Cancel-safe.
async fn next_line(commands: Option<&Sender<Command>>, lines: &mut Receiver<Message>) -> Option<Message> {
    let Some(commands) = commands else {
        return std::future::pending().await;
    };
    // Half of the places stay free for answers to dialogs, which do not come from a line.
    while commands.capacity() <= COMMANDS / 2 {
        let Ok(_room) = commands.reserve_many(COMMANDS / 2 + 1).await else {
            return None;
        };
    }
    lines.recv().await
}

async fn send(commands: Option<&Sender<Command>>, command: Option<Command>) {
    if let (Some(commands), Some(command)) = (commands, command) {
        // The sessions are gone; then the loop ends with their queues.
        let _gone = commands.send(command).await;
    }
}

async fn forward(mut waiting: Receiver<Command>, slot: RequestSender) {
    while let Some((command, session)) = waiting.recv().await {
        if !slot.post(command, session, ()).await {
            return;
        }
    }
}

/// Starts the thread that reads lines. A thread of its own: reads of a pipe block.
fn read(input: impl Read + Send + 'static) -> Result<Receiver<Message>, Error> {
    let (sender, lines) = mpsc::channel(INPUT_LINES);
    thread::Builder::new()
        .name("stdin".to_owned())
        .stack_size(serve::limits::IO_STACK)
        .spawn(move || {
            let mut reader = LineReader::with_limit(input, MAX_LINE);
            // An input that cannot be read any more is over.
            while let Ok(Some(line)) = reader.next_line() {
                let message = match line {
                    Line::Text(line) if line.trim_ascii().is_empty() => continue,
                    Line::Text(line) => rpc::parse(line),
                    Line::TooLong => rpc::too_long(),
                };
                if sender.blocking_send(message).is_err() {
                    return;
                }
            }
        })
        .map_err(Error::Thread)?;
    Ok(lines)
}
