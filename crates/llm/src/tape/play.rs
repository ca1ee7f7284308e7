//! Replay: each request gets the recorded response for the same conversation, else the next one of its kind.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use http::{HeaderName, HeaderValue, StatusCode};
use reqwest::{Body, Response};
use serde_json::Value;
use tokio::time::{Instant, sleep, sleep_until};

use super::compare::{difference, fingerprint};
use super::format::{How, Line, what};
use super::index::{self, Entry, Place};
use super::{Asked, Remark, fault};
use crate::answer::Fault;
use crate::error::LlmError;
use crate::http::Failure;
use crate::limits::{MAX_TAPE_WAIT, TAPE_HOLD};

/// How a tape is played.
#[derive(Debug, Clone, Copy, Default)]
pub struct Replaying {
    /// How many times faster than it was; none for at once.
    pub speed: Option<f64>,
    /// A conversation that differs from the recorded one fails the request.
    pub strict: bool,
}

/// A tape that answers. Clones share what has been played.
#[derive(Clone)]
pub struct Player(Arc<Shared>);

struct Shared {
    file: File,
    entries: Vec<Entry>,
    played: Mutex<Vec<bool>>,
    how: Replaying,
}

impl fmt::Debug for Player {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Player({} exchanges)", self.0.entries.len())
    }
}

impl Player {
    /// Reads where everything is.
    ///
    /// # Errors
    /// When the file cannot be read or is no tape.
    pub fn open(path: &Path, how: Replaying) -> Result<Self, LlmError> {
        let failed = |error: io::Error| LlmError::Tape {
            path: path.display().to_string(),
            reason: error.to_string(),
        };
        let file = files::Root::user().open(path).map_err(failed)?;
        let entries = index::read(&file).map_err(failed)?;
        let played = Mutex::new(vec![false; entries.len()]);
        Ok(Self(Arc::new(Shared {
            file,
            entries,
            played,
            how,
        })))
    }

    /// Ids of the providers that were asked.
    #[must_use]
    pub fn providers(&self) -> Vec<String> {
        let mut ids: Vec<String> = self
            .0
            .entries
            .iter()
            .map(|entry| entry.provider.clone())
            .collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// The answer to a request.
    pub(crate) async fn answer(&self, asked: Asked<'_>) -> Result<Response, Failure> {
        let never = |text: String| Failure {
            fault: fault(&text),
            again: false,
        };
        let body: Value = serde_json::from_slice(asked.body).unwrap_or(Value::Null);
        let Some((entry, same)) = self.choose(asked, fingerprint(&body)) else {
            return Err(never(format!(
                "the recording holds no further answer for {} ({})",
                asked.model, asked.api
            )));
        };
        let mut remark = None;
        if !same {
            let place = self.differs(entry, &body);
            let text = format!("the conversation differs from the recorded one at {place}");
            if self.0.how.strict {
                return Err(never(text));
            }
            remark = Some(Remark(format!("Replay: {text}")));
        }
        let mut tape = Tape {
            shared: Arc::clone(&self.0),
            lines: entry.lines.clone().into_iter(),
            began: Instant::now(),
        };
        match tape.next().await {
            Some(Line::Response { status, headers, .. }) => Ok(response(status, headers, remark, tape)),
            Some(Line::End {
                how: How::Failed,
                error,
                ..
            }) => Err(Failure {
                fault: Fault::new(error.unwrap_or_default()),
                again: true,
            }),
            Some(Line::Chunk { .. } | Line::Request(_) | Line::Tape { .. }) => {
                Err(never("the recording is damaged".into()))
            }
            // No response was recorded, because the run was aborted first. The replay repeats that abort or times out.
            Some(Line::End { .. }) | None => {
                sleep(TAPE_HOLD).await;
                Err(Failure {
                    fault: Fault::new("Request timed out: no response was recorded"),
                    again: true,
                })
            }
        }
    }

    /// The exchange to play, and whether its request said the same.
    fn choose(&self, asked: Asked<'_>, wanted: u64) -> Option<(&Entry, bool)> {
        let mut played = self.0.played.lock().unwrap_or_else(PoisonError::into_inner);
        let kind = what(asked.url);
        let free = |(at, entry): &(usize, &Entry)| {
            entry.api == asked.api && entry.what == kind && !played.get(*at).is_none_or(|played| *played)
        };
        let mut left = self.0.entries.iter().enumerate().filter(free);
        let first = left.next()?;
        let is_same = |(_, entry): &(usize, &Entry)| entry.fingerprint == wanted;
        let (at, entry) = if is_same(&first) {
            first
        } else {
            left.find(is_same).unwrap_or(first)
        };
        if let Some(played) = played.get_mut(at) {
            *played = true;
        }
        Some((entry, entry.fingerprint == wanted))
    }

    fn differs(&self, entry: &Entry, body: &Value) -> String {
        match self.0.line(entry.request) {
            Some(Line::Request(request)) => difference(&request.body, body).unwrap_or_default(),
            _ => String::new(),
        }
    }
}

impl Shared {
    fn line(&self, (offset, length): Place) -> Option<Line> {
        let mut text = vec![0; length];
        self.file.read_exact_at(&mut text, offset).ok()?;
        serde_json::from_slice(&text).ok()
    }
}

/// The lines of one exchange, each in its time.
struct Tape {
    shared: Arc<Shared>,
    lines: std::vec::IntoIter<Place>,
    began: Instant,
}

impl Tape {
    async fn next(&mut self) -> Option<Line> {
        let line = self.shared.line(self.lines.next()?)?;
        match (self.shared.how.speed, &line) {
            (
                Some(speed),
                Line::Response { at, .. }
                | Line::Chunk { at, .. }
                | Line::End {
                    at, how: How::Failed, ..
                },
            ) => {
                let wait = Duration::from_millis(*at).min(MAX_TAPE_WAIT).div_f64(speed);
                sleep_until(self.began + wait).await;
            }
            // Pieces come one by one, as from a network.
            _ => tokio::task::yield_now().await,
        }
        Some(line)
    }

    /// The next piece of the body.
    async fn piece(mut self) -> Option<(io::Result<Bytes>, Self)> {
        match self.next().await {
            Some(Line::Chunk { data, .. }) => {
                let bytes = data.bytes().ok_or_else(|| io::Error::other("damaged recording"));
                Some((bytes.map(Bytes::from), self))
            }
            Some(Line::End {
                how: How::Complete, ..
            }) => None,
            Some(Line::End { how: How::Left, .. }) | None => {
                // Who aborted then aborts now; for all others it breaks off.
                sleep(TAPE_HOLD).await;
                Some((Err(io::Error::other("end of the recording")), self))
            }
            Some(_) => Some((Err(io::Error::other("the recorded connection failed")), self)),
        }
    }
}

fn pieces(tape: Tape) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    stream::unfold(Some(tape), |tape| async move {
        let (piece, tape) = tape?.piece().await?;
        // Nothing comes after a failure.
        let tape = piece.is_ok().then_some(tape);
        Some((piece, tape))
    })
    .fuse()
}

fn response(status: u16, headers: Vec<(String, String)>, remark: Option<Remark>, tape: Tape) -> Response {
    let mut head = http::Response::new(());
    *head.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
    for (name, value) in headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            head.headers_mut().append(name, value);
        }
    }
    if let Some(remark) = remark {
        head.extensions_mut().insert(remark);
    }
    head.map(|()| Body::wrap_stream(pieces(tape))).into()
}
