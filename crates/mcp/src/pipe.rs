//! Messages over the standard streams of a program: one line each. Lines that are no messages are skipped; nothing a server
//! writes, and no way of not reading, holds the agent up. What messages mean is `rmcp`'s business.

use std::collections::{HashSet, VecDeque};
use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use process::{Line, LineReader, Output, Pipes};
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, JsonRpcError, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{Mutex as Waiting, mpsc};
use tokio_util::sync::CancellationToken;

use crate::limits;
use crate::text::line;

/// What explains the end of a connection: the last lines that the server wrote to its standard error, and why Pinion ended the
/// connection, if it did.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tail {
    lines: Arc<Mutex<VecDeque<String>>>,
    fault: Arc<OnceLock<String>>,
}

impl Tail {
    fn push(&self, text: String) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() >= limits::TAIL_LINES {
            lines.pop_front();
        }
        lines.push_back(text);
    }

    /// Records the fault for which Pinion ends the connection. The first one counts.
    fn blame(&self, fault: impl Into<String>) {
        let _later = self.fault.set(fault.into());
    }

    /// Why the connection ended, with the last thing that the server said. A recorded fault counts more than what its end looks like.
    pub(crate) fn explain(&self, why: String) -> String {
        let why = self.fault.get().cloned().unwrap_or(why);
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        match lines.back() {
            Some(last) => format!("{why}; its last words: {last}"),
            None => why,
        }
    }
}

/// The fault of a program whose input stays full for [`limits::WRITE`].
const UNREAD: &str = "it does not read its input";

type Writer = Arc<Waiting<Option<Box<dyn AsyncWrite + Send + Unpin>>>>;

/// Ids of the requests that are out. What answers none of them, or one a second time, is not passed on: before the greeting
/// is over it would be taken for a failed one.
type Open = Arc<Mutex<HashSet<RequestId>>>;

/// Returns true for a request of the server, or the response to a pending request.
fn is_wanted(open: &Open, message: &ServerJsonRpcMessage) -> bool {
    let id = match message {
        JsonRpcMessage::Response(response) => &response.id,
        JsonRpcMessage::Error(JsonRpcError { id: Some(id), .. }) => id,
        _ => return true,
    };
    open.lock().unwrap_or_else(PoisonError::into_inner).remove(id)
}

/// The way to a server that was started.
pub(crate) struct Pipe {
    writer: Writer,
    open: Open,
    inbox: mpsc::Receiver<ServerJsonRpcMessage>,
    tail: Tail,
    /// Cancelled when nothing can be written any more.
    broken: CancellationToken,
}

impl Pipe {
    /// Begins to read. `name` is for the log.
    pub(crate) fn new(name: &str, pipes: Pipes, tail: Tail) -> Self {
        let (sender, inbox) = mpsc::channel(limits::INBOX);
        let open = Open::default();
        let reader = Reader {
            name: name.to_owned(),
            lines: LineReader::new(pipes.output, limits::LINE),
            open: Arc::clone(&open),
            tail: tail.clone(),
        };
        tokio::spawn(reader.run(sender));
        tokio::spawn(log(name.to_owned(), pipes.errors, tail.clone()));
        Self {
            writer: Arc::new(Waiting::new(Some(pipes.input))),
            open,
            inbox,
            tail,
            broken: CancellationToken::new(),
        }
    }
}

impl Transport<RoleClient> for Pipe {
    type Error = io::Error;

    fn send(
        &mut self,
        item: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let (writer, tail, broken) = (Arc::clone(&self.writer), self.tail.clone(), self.broken.clone());
        // Entered before the write, since the response may arrive before the write returns.
        if let JsonRpcMessage::Request(request) = &item {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.insert(request.id.clone());
        }
        async move {
            let mut text = serde_json::to_vec(&item)?;
            text.push(b'\n');
            // Held until the writer is taken away after a failure: nothing may follow a part of a message.
            let mut writer = writer.lock().await;
            let Some(input) = writer.as_mut() else {
                return Err(io::ErrorKind::BrokenPipe.into());
            };
            let write = async {
                input.write_all(&text).await?;
                input.flush().await
            };
            let written = match tokio::time::timeout(limits::WRITE, write).await {
                Ok(written) => written,
                Err(_) => {
                    tail.blame(UNREAD);
                    Err(io::Error::new(io::ErrorKind::TimedOut, UNREAD))
                }
            };
            if written.is_err() {
                *writer = None;
                // The program may run on without its input. Only a new connection can be used then.
                broken.cancel();
            }
            written
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        tokio::select! {
            message = self.inbox.recv() => message,
            () = self.broken.cancelled() => None,
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.inbox.close();
        *self.writer.lock().await = None;
        Ok(())
    }
}

/// Reads messages until the output ends, or is of no use.
struct Reader {
    name: String,
    lines: LineReader,
    open: Open,
    tail: Tail,
}

impl Reader {
    async fn run(mut self, sender: mpsc::Sender<ServerJsonRpcMessage>) {
        let mut garbage = 0;
        loop {
            let next = tokio::select! {
                next = self.lines.next() => next,
                () = sender.closed() => return self.drain().await,
            };
            let bytes = match next {
                Ok(Some(Line::Whole(bytes))) => bytes,
                Ok(None) | Err(_) => return,
                Ok(Some(Line::TooLong(_))) => {
                    tracing::warn!(server = self.name, "an MCP server sent a line that is too long");
                    let most = limits::LINE >> 20;
                    return self.tail.blame(format!("it sent a line of more than {most} MiB"));
                }
            };
            if bytes.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            if wire::values::has_too_many(&bytes) {
                tracing::warn!(
                    server = self.name,
                    "an MCP server sent a line with too many values"
                );
                return self.tail.blame("it sent a line with too many JSON values");
            }
            match parse(bytes).await {
                Ok(message) => {
                    // Only consecutive garbage counts, so that a server that prints a line now and then is not ended.
                    garbage = 0;
                    if !is_wanted(&self.open, &message) {
                        tracing::debug!(server = self.name, "a response without a request");
                        continue;
                    }
                    if sender.send(message).await.is_err() {
                        return;
                    }
                }
                Err(start) => {
                    garbage += 1;
                    if garbage <= limits::TAIL_LINES {
                        tracing::debug!(server = self.name, "no message: {start}");
                    }
                    if garbage >= limits::GARBAGE {
                        tracing::warn!(server = self.name, "an MCP server sends no messages");
                        return self
                            .tail
                            .blame(format!("it sent {garbage} lines that are no messages"));
                    }
                }
            }
        }
    }
}

impl Reader {
    /// Reads and discards the output, so that a server that is ending does not fail on its last write.
    async fn drain(mut self) {
        let reading = async { while let Ok(Some(Line::Whole(_))) = self.lines.next().await {} };
        let _late = tokio::time::timeout(2 * limits::STOP, reading).await;
    }
}

/// Parses a message; long ones on a blocking thread.
///
/// # Errors
/// The start of the text, which is no message.
pub(crate) async fn parse(bytes: Vec<u8>) -> Result<ServerJsonRpcMessage, String> {
    const LONG: usize = 256 << 10;
    let read = |bytes: &[u8]| {
        serde_json::from_slice(bytes).map_err(|_| {
            let start = bytes.get(..bytes.len().min(limits::LOG_LINE)).unwrap_or_default();
            line(&String::from_utf8_lossy(start), limits::LOG_LINE)
        })
    };
    // A long parse would delay all sessions, which share one thread.
    if bytes.len() < LONG {
        return read(&bytes);
    }
    let reading = tokio::task::spawn_blocking(move || read(&bytes)).await;
    reading.unwrap_or_else(|error| Err(error.to_string()))
}

/// Writes what a server says to people into the log.
async fn log(name: String, errors: Output, tail: Tail) {
    let mut lines = LineReader::new(errors, limits::LINE);
    let mut left = limits::LOG_LINES;
    while let Ok(Some(next)) = lines.next().await {
        let Line::Whole(bytes) = next else { return };
        let start = bytes
            .get(..bytes.len().min(4 * limits::LOG_LINE))
            .unwrap_or_default();
        let text = line(&String::from_utf8_lossy(start), limits::LOG_LINE);
        if !text.is_empty() {
            if left > 0 {
                tracing::info!(server = name, "MCP server says: {text}");
            }
            left = left.saturating_sub(1);
            tail.push(text);
        }
    }
}
