//! Moves lines, commands and events of one client. A client that does not read makes its sessions wait, and its lines stay
//! unread, so nothing piles up.

use std::collections::VecDeque;
use std::io::Read;
use std::thread;

use serde_json::json;
use serve::queues::{QueueItem, SessionQueues};
use serve::{Line, LineReader, Sink};
use session::{Outgoing, RequestSender};
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::task::JoinSet;

use crate::connection::{Connection, replaced_file};
use crate::host::Host;
use crate::limits::{BATCH_BYTES, COMMANDS, INPUT_LINES, MAX_LINE};
use crate::old_text;
use crate::port::ClientPort;
use crate::purpose::{Command, Purpose};
use crate::rpc::{self, Failure, INTERNAL, Message};
use crate::workers::{self, Link};

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

/// Closes the port when it is dropped.
struct ClosingPort(ClientPort);

impl Drop for ClosingPort {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Serves one client of sessions on workers, until `input` ends or the gateway does. The sessions stay at their workers.
///
/// # Errors
/// When the output was closed or broke, or a thread could not be started.
pub async fn run_gateway(
    input: impl Read + Send + 'static,
    link: Link,
    sink: Sink,
    host: Host,
) -> Result<(), Error> {
    let (commands, waiting) = mpsc::channel(COMMANDS);
    let queues = workers::start(link, waiting);
    serve(input, commands, queues, sink, host).await
}

/// Serves one client: reads requests from `input` until it ends, hands commands to `slot`, and writes what the sessions say
/// to `sink`. Returns when all sessions have ended and everything was written.
///
/// # Errors
/// When the output was closed or broke, or a thread could not be started.
pub async fn run(
    input: impl Read + Send + 'static,
    slot: RequestSender,
    queues: SessionQueues,
    sink: Sink,
    host: Host,
) -> Result<(), Error> {
    let (commands, waiting) = mpsc::channel(COMMANDS);
    tokio::spawn(forward(waiting, slot));
    serve(input, commands, queues, sink, host).await
}

async fn serve(
    input: impl Read + Send + 'static,
    commands: Sender<Command>,
    mut queues: SessionQueues,
    mut sink: Sink,
    host: Host,
) -> Result<(), Error> {
    let mut lines = read(input)?;
    let mut connection = Connection::from(&host);
    // However this ends, no tool waits for the client.
    let port = ClosingPort(host.port.clone());
    let mut logouts: JoinSet<(u64, Result<(), String>)> = JoinSet::new();
    // Dropping it ends the sessions.
    let mut commands = Some(commands);
    // Commands that the channel has no place for. The loop never waits for a place: the sessions may wait for their output to
    // be taken, and only this loop takes it. Each line and each dialog adds at most one command, no line is read while a
    // command is pending, and a session bounds its dialogs.
    let mut pending = VecDeque::new();
    loop {
        let wakeup = tokio::select! {
            error = sink.failure() => return Err(error.into()),
            item = queues.next() => match item {
                Some(item) => Wakeup::Item(item),
                // Before a buffer is taken: `flush` waits until all of them are back.
                None => break,
            },
            () = port.0.posted() => Wakeup::Posted,
            line = lines.recv(), if commands.is_some() && pending.is_empty() => Wakeup::Line(line),
            () = send(commands.as_ref(), &mut pending), if !pending.is_empty() => continue,
            Some(Ok((number, outcome))) = logouts.join_next() => Wakeup::LoggedOut(number, outcome),
        };
        let mut batch = sink.buffer().await?;
        let mut flushed = None;
        match wakeup {
            Wakeup::Line(None) => commands = None,
            Wakeup::Line(Some(message)) => {
                pending.extend(connection.message(message));
                for number in connection.logouts.drain(..) {
                    let logout = host.accounts.log_out();
                    logouts.spawn(async move { (number, logout.await) });
                }
            }
            Wakeup::Posted => post(&mut connection, &port.0),
            Wakeup::LoggedOut(number, outcome) => logged_out(&mut connection, number, outcome),
            Wakeup::Item(item) => {
                let ready = (item, &mut queues);
                flushed = take_ready(ready, &port.0, &mut connection, &mut pending, &mut batch).await;
            }
        }
        while connection.out.write(&mut batch) {
            sink.write(batch).await?;
            batch = sink.buffer().await?;
        }
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

/// Ends a `logout`.
fn logged_out(connection: &mut Connection, number: u64, outcome: Result<(), String>) {
    if let Some(Purpose::LogOut(id)) = connection.commands.remove(&number) {
        let result = outcome.map(|()| json!({}));
        let result = result.map_err(|error| Failure::new(INTERNAL, error));
        connection.out.push(rpc::response(&id, result));
    }
}

enum Wakeup {
    /// The next line; none at the end of the input.
    Line(Option<Message>),
    Item(QueueItem),
    /// Tools have posted requests to the client.
    Posted,
    /// A `logout` has ended, by its number.
    LoggedOut(u64, Result<(), String>),
}

/// Sends the requests of tools.
fn post(connection: &mut Connection, port: &ClientPort) {
    let Connection {
        requests,
        sessions,
        out,
        ..
    } = connection;
    for posted in port.take() {
        requests.post(posted, sessions, out);
    }
}

type Flush = tokio::sync::oneshot::Sender<()>;

/// Takes an item of the sessions and further ones that are ready, as far as the batch has room.
async fn take_ready(
    (item, queues): (QueueItem, &mut SessionQueues),
    port: &ClientPort,
    connection: &mut Connection,
    pending: &mut VecDeque<Command>,
    batch: &mut Vec<u8>,
) -> Option<Flush> {
    let mut next = Some(item);
    while let Some(item) = next {
        // What a call has posted comes before the event of its end, however busy the machine is.
        post(connection, port);
        let (command, flush) = take(connection, item).await;
        pending.extend(command);
        connection.out.write_complete(batch);
        let is_full = batch.len() + connection.out.held_back() >= BATCH_BYTES;
        if flush.is_some() || !pending.is_empty() || is_full {
            return flush;
        }
        next = queues.try_next();
    }
    None
}

async fn take(connection: &mut Connection, item: QueueItem) -> (Option<Command>, Option<Flush>) {
    match item {
        QueueItem::Joined(_) => (None, None),
        QueueItem::Left(handle) => {
            connection.left(&handle);
            (None, None)
        }
        QueueItem::Item(_, Outgoing::Flush(waiting)) => (None, Some(waiting)),
        QueueItem::Item(handle, item) => {
            let handle = handle.as_ref();
            let old_text = match replaced_file(connection, handle, &item) {
                Some(file) => old_text::read(file).await,
                None => None,
            };
            let command = connection.outgoing(handle, &item, old_text.as_deref());
            (command, None)
        }
    }
}

/// Sends the first pending command once there is a place for it. Cancel-safe.
async fn send(commands: Option<&Sender<Command>>, pending: &mut VecDeque<Command>) {
    let place = match commands {
        Some(commands) => commands.reserve().await.ok(),
        None => None,
    };
    match (place, pending.pop_front()) {
        (Some(place), Some(command)) => place.send(command),
        // The sessions are gone or about to end: no command reaches them.
        _ => pending.clear(),
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

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::path::Path;
    use std::sync::Arc;

    use serde_json::json;
    use serve::queues::SessionQueues;
    use session::{Lane, Outgoing};
    use tokio::sync::mpsc;
    use tools::client::{Caller, Client};
    use wire::{Event, ToolResult};

    use super::take_ready;
    use crate::port::ClientPort;
    use crate::state::SessionState;
    use crate::tests::connection;

    fn write_starts() -> Event {
        let args = json!({"path": "missing.txt", "content": "x"});
        Event::ToolExecutionStart {
            tool_call_id: "c1".to_owned(),
            tool_name: "write".to_owned(),
            args: args.as_object().unwrap().clone(),
            parent_tool_call_id: None,
        }
    }

    fn command_ends() -> Event {
        Event::ToolExecutionEnd {
            tool_call_id: "c2".to_owned(),
            tool_name: "bash".to_owned(),
            result: ToolResult::default(),
            is_error: false,
            duration_ms: None,
            parent_tool_call_id: None,
        }
    }

    /// The lines that are written when the second event and the request of its call arrive while the old text of a file is read for
    /// the first event. Without them if the text was read before they could arrive.
    async fn written() -> String {
        let (mut connection, handle) = (connection(), Arc::<str>::from("s1"));
        let state = SessionState::new(Arc::clone(&handle), Path::new("/nowhere"));
        connection.names.insert(Arc::clone(&handle), "a".to_owned());
        connection.sessions.insert("a".to_owned(), state);
        let (_first, items) = mpsc::channel(1);
        let (lanes, joining) = mpsc::channel(1);
        let (events, queue) = mpsc::channel(2);
        let session = Arc::clone(&handle);
        lanes.try_send(Lane { session, queue }).unwrap();
        let mut queues = SessionQueues::new(items, Some(joining));
        let joined = queues.next().await.unwrap();
        events.try_send(Outgoing::Event(write_starts().into())).unwrap();
        let port = ClientPort::default();
        let tool = port.clone();
        let call = tokio::spawn(async move {
            let caller = Caller {
                session: "a".to_owned(),
                call: "c2".to_owned(),
            };
            let answer = tool.read(&caller, Path::new("/posted"));
            events.try_send(Outgoing::Event(command_ends().into())).unwrap();
            (answer, events)
        });
        let (mut pending, mut batch) = (VecDeque::new(), Vec::new());
        let ready = (joined, &mut queues);
        take_ready(ready, &port, &mut connection, &mut pending, &mut batch).await;
        drop(call.await.unwrap());
        String::from_utf8(batch).unwrap()
    }

    #[tokio::test]
    async fn posted_request_precedes_later_event() {
        for _ in 0..1_000 {
            let text = written().await;
            if let Some(end) = text.find("completed") {
                let request = text.find("/posted").unwrap();
                return assert!(request < end, "{text}");
            }
        }
        panic!("the text of the file was always read before the second event came");
    }
}
