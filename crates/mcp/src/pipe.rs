//! Messages over the standard streams of a program: one line each. Lines that are no messages are skipped; nothing a server
//! writes, and no way of not reading, holds the agent up. What messages mean is `rmcp`'s business.

use std::collections::{HashSet, VecDeque};
use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use process::{Line, LineReader, Output, Pipes};
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, JsonRpcError, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{Mutex as Waiting, mpsc};

use crate::limits;
use crate::text::line;

/// The last lines that a server wrote to its standard error.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tail(Arc<Mutex<VecDeque<String>>>);

impl Tail {
    fn push(&self, text: String) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() >= limits::TAIL_LINES {
            lines.pop_front();
        }
        lines.push_back(text);
    }

    /// The last of them.
    pub(crate) fn last(&self) -> Option<String> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .back()
            .cloned()
    }
}

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
        };
        tokio::spawn(reader.run(sender));
        tokio::spawn(log(name.to_owned(), pipes.errors, tail));
        Self {
            writer: Arc::new(Waiting::new(Some(pipes.input))),
            open,
            inbox,
        }
    }
}

impl Transport<RoleClient> for Pipe {
    type Error = io::Error;

    fn send(
        &mut self,
        item: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let writer = Arc::clone(&self.writer);
        // Entered before the write, since the response may arrive before the write returns.
        if let JsonRpcMessage::Request(request) = &item {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.insert(request.id.clone());
        }
        async move {
            let mut text = serde_json::to_vec(&item)?;
            text.push(b'\n');
            let write = async {
                let mut writer = writer.lock().await;
                let Some(input) = writer.as_mut() else {
                    return Err(io::ErrorKind::BrokenPipe.into());
                };
                let written = match input.write_all(&text).await {
                    Ok(()) => input.flush().await,
                    Err(error) => Err(error),
                };
                // A failed write may end within a message, so nothing can follow it.
                if written.is_err() {
                    *writer = None;
                }
                written
            };
            match tokio::time::timeout(limits::WRITE, write).await {
                Ok(done) => done,
                Err(_) => {
                    // Half a message may have been written: nothing can follow it.
                    *writer.lock().await = None;
                    Err(io::Error::new(
                        io::ErrorKind::TimedOut,
                        "it does not read its input",
                    ))
                }
            }
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        self.inbox.recv().await
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
                    return;
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
                return;
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
                        return;
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
