//! Lines from the child: cut out of what it writes, understood, handed to who waits for them.

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::error::DoorError;
use crate::limits;
use crate::line::FromChild;

use super::pending::Pending;
use super::routes::Routes;
use super::{Answer, Said};

type Stream = Box<dyn AsyncRead + Send + Unpin>;

/// Starts reading both outputs. `ready` gets the protocol version of the child. `end` is cancelled at the end of the
/// output, or when the child breaks the protocol.
pub(super) fn start(
    output: Stream,
    errors: Stream,
    pending: Arc<Pending>,
    routes: Arc<Routes>,
    ready: oneshot::Sender<(u32, String)>,
    end: CancellationToken,
) {
    tokio::spawn(read_errors(errors, Arc::clone(&routes), end.clone()));
    tokio::spawn(async move {
        let mut reader = Reader {
            pending,
            routes,
            ready: Some(ready),
            window: Instant::now(),
            unasked: 0,
            odd: 0,
        };
        tokio::select! {
            () = reader.read(output) => {}
            () = end.cancelled() => {}
        }
        end.cancel();
    });
}

struct Reader {
    pending: Arc<Pending>,
    routes: Arc<Routes>,
    ready: Option<oneshot::Sender<(u32, String)>>,
    /// Start of the current counting interval.
    window: Instant,
    /// Lines of the child that answer no request.
    unasked: u32,
    /// Invalid lines so far.
    odd: u32,
}

impl Reader {
    async fn read(&mut self, mut output: Stream) {
        let mut lines = Cutter::new(limits::MAX_LINE);
        while lines.fill(&mut output).await {
            while let Some(line) = lines.next() {
                // Every line, even an invalid one, proves that the child is alive.
                self.pending.hear();
                let size = line.len();
                let understood = serde_json::from_slice(&line);
                match understood {
                    Ok(understood) => self.take(understood, size).await,
                    Err(error) => {
                        self.odd(&error).await;
                        // Output printed without a line feed joins the next line of the protocol.
                        if let Some(behind) = behind_litter(&line) {
                            self.take(behind, size).await;
                        }
                    }
                }
                if self.unasked > limits::FLOOD {
                    let within = limits::FLOOD_WINDOW.as_secs();
                    return self.pending.accuse(format!(
                        "it said more than {} things within {within} s and was ended",
                        limits::FLOOD
                    ));
                }
            }
        }
        if lines.is_over() {
            self.pending.accuse(format!(
                "it wrote a line of more than {} bytes and was ended",
                limits::MAX_LINE
            ));
        }
    }

    /// Reports an invalid line, a limited number of times.
    async fn odd(&mut self, error: &serde_json::Error) {
        self.count();
        self.odd = self.odd.saturating_add(1);
        if self.odd > limits::ODD_LINES {
            return;
        }
        let more = if self.odd == limits::ODD_LINES {
            "; further ones are not reported"
        } else {
            ""
        };
        let text = format!("An extension process wrote an invalid line: {error}{more}");
        self.say(Said::Log("warn".to_owned(), text)).await;
    }

    /// Counts a line that answers no request.
    fn count(&mut self) {
        if self.window.elapsed() > limits::FLOOD_WINDOW {
            (self.window, self.unasked) = (Instant::now(), 0);
        }
        self.unasked += 1;
    }

    /// Does what a line of `size` bytes says.
    async fn take(&mut self, line: FromChild, size: usize) {
        // Answers do not count, since each needs a request of the agent.
        if matches!(
            line,
            FromChild::Call { .. }
                | FromChild::Changed { .. }
                | FromChild::Failure { .. }
                | FromChild::Log { .. }
        ) {
            self.count();
        }
        match line {
            FromChild::Ready { protocol, runtime } => {
                if let Some(ready) = self.ready.take() {
                    let _nobody = ready.send((protocol, runtime));
                }
            }
            FromChild::Result { id, value, errors } => self.pending.settle(id, Ok(Answer { value, errors })),
            FromChild::Error { id, message } => self.pending.settle(id, Err(DoorError::Failed(message))),
            FromChild::Update { id, value } => self.pending.update(id, value, size),
            FromChild::Pong { id } => self.pending.settle(id, Ok(Answer::default())),
            FromChild::Call {
                session,
                id,
                method,
                params,
            } => {
                let call = Said::Call { id, method, params };
                self.routes.say(Some(&session), call).await;
            }
            FromChild::Cancel { id } => self.routes.withdraw(id).await,
            FromChild::Changed { session, registered } => {
                self.routes.say(Some(&session), Said::Changed(registered)).await;
            }
            FromChild::Failure { session, failure } => {
                self.routes.say(session.as_deref(), Said::Failed(failure)).await;
            }
            FromChild::Log { level, message } => self.say(Said::Log(level, message)).await,
            FromChild::Unknown => {}
        }
    }

    async fn say(&self, said: Said) {
        self.routes.say(None, said).await;
    }
}

/// Finds a line after text that was printed without a line feed. Printed text must not hide an answer.
fn behind_litter(line: &[u8]) -> Option<FromChild> {
    let starts = memchr::memmem::find_iter(line, br#"{"type":"#);
    let mut read = starts.take(limits::LITTER).filter_map(|start| {
        let rest = line.get(start..)?;
        serde_json::from_slice(rest).ok()
    });
    read.next()
}

/// Copies standard error to the log, line by line. Its content never counts as a fault.
async fn read_errors(mut errors: Stream, routes: Arc<Routes>, end: CancellationToken) {
    let mut lines = Cutter::new(limits::ERROR_LINE);
    let reading = async {
        let mut within = false;
        loop {
            let more = lines.fill(&mut errors).await;
            while let Some(line) = lines.next() {
                if !std::mem::take(&mut within) {
                    print(&routes, &line).await;
                }
            }
            // The rest of a long line is dropped.
            if lines.is_over() {
                let line = lines.clear();
                if !std::mem::replace(&mut within, true) {
                    print(&routes, &line).await;
                }
            }
            if !more {
                break;
            }
        }
    };
    tokio::select! {
        () = reading => {}
        () = end.cancelled() => {}
    }
}

async fn print(routes: &Routes, line: &[u8]) {
    let line = line.get(..limits::ERROR_LINE).unwrap_or(line);
    let text = String::from_utf8_lossy(line).trim_end().to_owned();
    routes.say(None, Said::Printed(text)).await;
}

/// Cuts a stream into lines.
struct Cutter {
    buffer: Vec<u8>,
    /// Bytes at the beginning that hold no line feed.
    searched: usize,
    limit: usize,
}

impl Cutter {
    fn new(limit: usize) -> Self {
        Self {
            buffer: Vec::new(),
            searched: 0,
            limit,
        }
    }

    /// Reads more. False at the end, on an error, and when a line is too long.
    async fn fill(&mut self, stream: &mut Stream) -> bool {
        if self.is_over() {
            return false;
        }
        self.buffer.reserve(limits::READ_CHUNK);
        matches!(stream.read_buf(&mut self.buffer).await, Ok(read) if read > 0)
    }

    fn is_over(&self) -> bool {
        self.searched > self.limit
    }

    /// Takes the bytes so far of a line that is too long.
    fn clear(&mut self) -> Vec<u8> {
        self.searched = 0;
        std::mem::take(&mut self.buffer)
    }

    /// The next whole line, without its end. Empty ones are skipped.
    fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            let rest = self.buffer.get(self.searched..).unwrap_or_default();
            let Some(at) = memchr::memchr(b'\n', rest) else {
                self.searched = self.buffer.len();
                return None;
            };
            let mut line: Vec<u8> = self.buffer.drain(..=self.searched + at).collect();
            self.searched = 0;
            line.pop();
            if !line.is_empty() {
                return Some(line);
            }
        }
    }
}
