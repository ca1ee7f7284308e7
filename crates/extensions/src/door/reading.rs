//! Lines from the child: cut out of what it writes, understood, handed to who waits for them.

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::error::DoorError;
use crate::limits;
use crate::line::FromChild;

use super::pending::Pending;
use super::routes::Routes;
use super::{Answer, Said};

type Stream = Box<dyn AsyncRead + Send + Unpin>;

/// Starts reading both outputs. `ready` is told the version that the child speaks. `end` is cancelled when nothing more can come
/// or the child breaks the protocol.
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
}

impl Reader {
    async fn read(&mut self, mut output: Stream) {
        let mut lines = Cutter::new(limits::MAX_LINE);
        while lines.fill(&mut output).await {
            while let Some(line) = lines.next() {
                let understood = serde_json::from_slice(&line);
                match understood {
                    Ok(understood) => self.take(understood, line.len()).await,
                    Err(error) => {
                        let text = format!("A line that is none came from an extension process: {error}");
                        self.say(Said::Log("warn".to_owned(), text)).await;
                    }
                }
            }
        }
        if lines.is_over() {
            let text = format!(
                "A line of an extension process is longer than {} bytes",
                limits::MAX_LINE
            );
            self.say(Said::Log("error".to_owned(), text)).await;
        }
    }

    /// Does what a line of `size` bytes says.
    async fn take(&mut self, line: FromChild, size: usize) {
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

/// Passes standard error on, line by line, for the log.
async fn read_errors(mut errors: Stream, routes: Arc<Routes>, end: CancellationToken) {
    let mut lines = Cutter::new(limits::MAX_LINE);
    let reading = async {
        while lines.fill(&mut errors).await {
            while let Some(line) = lines.next() {
                let line = line.get(..limits::ERROR_LINE).unwrap_or(&line);
                let text = String::from_utf8_lossy(line).trim_end().to_owned();
                routes.say(None, Said::Printed(text)).await;
            }
        }
    };
    tokio::select! {
        () = reading => {}
        () = end.cancelled() => {}
    }
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
