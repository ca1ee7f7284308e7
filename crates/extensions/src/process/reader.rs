//! Lines from the child: cut out of what it writes, understood, handed to who waits for them.

use std::sync::Arc;

use ::process::{Line, LineReader, Output};
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wire::limits::MAX_VALUES;

use crate::error::ProcessError;
use crate::limits;
use crate::line::FromChild;

use super::message::{Answer, ProcessMessage};
use super::pending::Pending;
use super::routes::Routes;

/// Starts reading both outputs. `ready` gets the protocol version of the child. `end` is cancelled at the end of the
/// output, or when the child breaks the protocol.
pub(super) fn start(
    output: Output,
    errors: Output,
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
    async fn read(&mut self, output: Output) {
        let mut lines = LineReader::new(output, limits::MAX_LINE);
        while let Ok(Some(line)) = lines.next().await {
            let line = match line {
                Line::Whole(line) if line.is_empty() => continue,
                Line::Whole(line) => line,
                Line::TooLong(_) => {
                    return self.pending.accuse(format!(
                        "it wrote a line of more than {} bytes and was ended",
                        limits::MAX_LINE
                    ));
                }
            };
            // Every line, even an invalid one, proves that the child is alive.
            self.pending.hear();
            let size = line.len();
            if wire::values::has_too_many(&line) {
                return self.pending.accuse(format!(
                    "it wrote a line of more than {MAX_VALUES} values and was ended"
                ));
            }
            match serde_json::from_slice(&line) {
                Ok(understood) => self.take(understood, size).await,
                Err(error) => {
                    self.odd(&error).await;
                    // Output printed without a line feed joins the next line of the protocol.
                    if let Some(behind) = behind_litter(&line) {
                        self.take(behind, size).await;
                    }
                }
            }
            self.pending.handed_on();
            if self.unasked > limits::FLOOD {
                let within = limits::FLOOD_WINDOW.as_secs();
                return self.pending.accuse(format!(
                    "it said more than {} things within {within} s and was ended",
                    limits::FLOOD
                ));
            }
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
        self.say(ProcessMessage::Log("warn".to_owned(), text)).await;
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
            FromChild::Error { id, message } => self.pending.settle(id, Err(ProcessError::Failed(message))),
            FromChild::Update { id, value } => self.pending.update(id, value, size),
            FromChild::Pong { id } => self.pending.settle(id, Ok(Answer::default())),
            FromChild::Call {
                session,
                id,
                method,
                params,
            } => {
                let call = ProcessMessage::Call { id, method, params };
                self.routes.say(Some(&session), call).await;
            }
            FromChild::Cancel { id } => self.routes.withdraw(id).await,
            FromChild::Changed { session, registered } => {
                self.routes
                    .say(Some(&session), ProcessMessage::Changed(registered))
                    .await;
            }
            FromChild::Failure { session, failure } => {
                self.routes
                    .say(session.as_deref(), ProcessMessage::Failed(failure))
                    .await;
            }
            FromChild::Log { level, message } => self.say(ProcessMessage::Log(level, message)).await,
            FromChild::Unknown => {}
        }
    }

    async fn say(&self, said: ProcessMessage) {
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

/// Copies standard error to the log, line by line. Its content never counts as a fault. The rest of a long line is dropped.
async fn read_errors(errors: Output, routes: Arc<Routes>, end: CancellationToken) {
    let mut lines = LineReader::new(errors, limits::ERROR_LINE);
    let reading = async {
        while let Ok(Some(Line::Whole(line) | Line::TooLong(line))) = lines.next().await {
            if !line.is_empty() {
                print(&routes, &line).await;
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
    routes.say(None, ProcessMessage::Printed(text)).await;
}
