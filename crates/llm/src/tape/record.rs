//! Recording: each exchange goes into the file while it happens, piece by piece, without credentials. Nothing is kept in
//! memory but the ends of pieces that may be cut credentials.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Instant;

use auth::Secrets;
use auth::secrets::{REPLACEMENT, is_open_header, open_url};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use reqwest::header::HeaderMap;
use reqwest::{Body, Response};
use serde::de::IgnoredAny;

use super::format::{Data, How, Line, Request, VERSION};
use super::strip::Strip;
use super::{Asked, Remark};
use crate::error::LlmError;

/// Response headers that may hold credentials.
const CLOSED_RESPONSE_HEADERS: [&str; 3] = ["set-cookie", "www-authenticate", "proxy-authenticate"];

/// A tape that is written. Clones write to the same file.
#[derive(Clone)]
pub struct Recorder(Arc<Shared>);

struct Shared {
    secrets: Secrets,
    began: Instant,
    state: Mutex<State>,
}

struct State {
    file: File,
    exchanges: u64,
    /// Why recording has stopped, until that was reported.
    broken: Option<String>,
    stopped: bool,
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Recorder(..)")
    }
}

impl Recorder {
    /// Opens a file to append to, mode 0600, and keeps others from writing to it. `secrets` are left out of it.
    ///
    /// # Errors
    /// When it cannot be written, is in use, or holds something else than a tape.
    pub fn open(path: &Path, program: &str, secrets: Secrets) -> Result<Self, LlmError> {
        let failed = |reason: String| LlmError::Tape {
            path: path.display().to_string(),
            reason,
        };
        let file = prepare(path).map_err(|error| failed(error.to_string()))?;
        let recorder = Self(Arc::new(Shared {
            secrets,
            began: Instant::now(),
            state: Mutex::new(State {
                file,
                exchanges: 0,
                broken: None,
                stopped: false,
            }),
        }));
        recorder.write(&Line::Tape {
            version: VERSION,
            program: program.to_owned(),
        });
        match recorder.trouble() {
            Some(reason) => Err(failed(reason)),
            None => Ok(recorder),
        }
    }

    /// Notes a request.
    pub(crate) fn begin(&self, asked: Asked<'_>) -> Exchange {
        let secrets = &self.0.secrets;
        for (name, value) in asked.headers {
            if let Ok(value) = value.to_str() {
                secrets.learn_header(name.as_str(), value);
            }
        }
        secrets.learn_url(asked.url);
        let exchange = {
            let mut state = self.lock();
            state.exchanges += 1;
            state.exchanges
        };
        let exchange = Exchange {
            recorder: self.clone(),
            number: exchange,
            began: Instant::now(),
            strip: Strip::new(secrets.clone()),
            over: false,
        };
        let request = Request {
            exchange: exchange.number,
            at: millis(self.0.began),
            api: asked.api.to_owned(),
            provider: asked.provider.to_owned(),
            model: asked.model.to_owned(),
            method: "POST".to_owned(),
            url: secrets.redact(open_url(asked.url)),
            headers: headers(asked.headers, secrets, |name| !is_open_header(name)),
            body: serde_json::Value::Null,
        };
        let body = secrets.redact_bytes(asked.body);
        self.write_with_body(&Line::Request(request), body.as_deref().unwrap_or(asked.body));
        exchange
    }

    /// What went wrong, if it was not told yet.
    fn trouble(&self) -> Option<String> {
        self.lock().broken.take()
    }

    fn write(&self, line: &Line) {
        let text = serde_json::to_vec(line);
        self.append(text.map_err(io::Error::from));
    }

    /// The body is JSON that we wrote ourselves: it is copied, not taken apart.
    fn write_with_body(&self, line: &Line, body: &[u8]) {
        let text = serde_json::to_vec(line).map(|mut text| {
            let whole = serde_json::from_slice::<IgnoredAny>(body).is_ok() && !body.contains(&b'\n');
            if whole && text.pop() == Some(b'}') {
                text.extend_from_slice(b",\"body\":");
                text.extend_from_slice(body);
                text.push(b'}');
            }
            text
        });
        self.append(text.map_err(io::Error::from));
    }

    /// One line, one write. After a failure nothing more is written: a tape with holes would play nonsense.
    fn append(&self, text: io::Result<Vec<u8>>) {
        let mut state = self.lock();
        if state.stopped {
            return;
        }
        let written = text.and_then(|mut text| {
            text.push(b'\n');
            state.file.write_all(&text)
        });
        if let Err(error) = written {
            state.stopped = true;
            state.broken = Some(error.to_string());
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Opens the file for appending and closes it to other users, even if it existed with another mode.
fn prepare(path: &Path) -> io::Result<File> {
    let mut file = OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    file.try_lock()
        .map_err(|_| io::Error::other("another process records into it"))?;
    let length = file.metadata()?.len();
    if length > 0 {
        let mut start = Vec::new();
        let begins = b"{\"type\":\"tape\"";
        file.seek(SeekFrom::Start(0))?;
        (&mut file).take(begins.len() as u64).read_to_end(&mut start)?;
        if start != begins {
            return Err(io::Error::other("it holds something else than a recording"));
        }
        let mut last = [0];
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            file.write_all(b"\n")?;
        }
    }
    file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    Ok(file)
}

/// Headers as they go into the file.
fn headers(map: &HeaderMap, secrets: &Secrets, closed: impl Fn(&str) -> bool) -> Vec<(String, String)> {
    let shown = map.iter().map(|(name, value)| {
        let value = match value.to_str() {
            Ok(value) if !closed(name.as_str()) => secrets.redact(value.to_owned()),
            _ => REPLACEMENT.to_owned(),
        };
        (name.as_str().to_owned(), value)
    });
    shown.collect()
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// A request in progress. Dropping it records that its reader stopped.
pub(crate) struct Exchange {
    recorder: Recorder,
    number: u64,
    began: Instant,
    strip: Strip,
    over: bool,
}

impl Exchange {
    /// No response came.
    pub(crate) fn failed(mut self, why: &str) {
        let why = self.recorder.0.secrets.redact(why.to_owned());
        self.end(How::Failed, Some(why));
    }

    /// Returns the response; its body is recorded while it is read.
    pub(crate) fn keep(self, response: Response) -> Response {
        let recorder = self.recorder.clone();
        let kept = headers(response.headers(), &recorder.0.secrets, |name| {
            CLOSED_RESPONSE_HEADERS.contains(&name)
        });
        recorder.write(&Line::Response {
            exchange: self.number,
            at: millis(self.began),
            status: response.status().as_u16(),
            headers: kept,
        });
        let mut same = http::Response::new(());
        *same.status_mut() = response.status();
        *same.headers_mut() = response.headers().clone();
        if let Some(trouble) = recorder.trouble() {
            let text = format!("The recording ends here, it could not be written: {trouble}");
            same.extensions_mut().insert(Remark(text));
        }
        let body = Taping {
            body: Box::pin(response.bytes_stream()),
            exchange: self,
        };
        same.map(|()| Body::wrap_stream(body)).into()
    }

    fn chunk(&mut self, piece: &[u8]) {
        let at = millis(self.began);
        let pieces = self.strip.push(piece, at);
        self.put(pieces);
    }

    fn put(&self, pieces: Vec<(u64, Vec<u8>)>) {
        for (at, bytes) in pieces {
            self.recorder.write(&Line::Chunk {
                exchange: self.number,
                at,
                data: Data::new(bytes),
            });
        }
    }

    fn end(&mut self, how: How, error: Option<String>) {
        if std::mem::replace(&mut self.over, true) {
            return;
        }
        let rest = self.strip.finish();
        self.put(rest);
        self.recorder.write(&Line::End {
            exchange: self.number,
            at: millis(self.began),
            how,
            error,
        });
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.end(How::Left, None);
    }
}

/// A body that is recorded while it is read.
struct Taping {
    body: Pin<Box<dyn Stream<Item = reqwest::Result<Bytes>> + Send>>,
    exchange: Exchange,
}

impl Stream for Taping {
    type Item = reqwest::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let piece = ready!(self.body.poll_next_unpin(context));
        match &piece {
            Some(Ok(piece)) => self.exchange.chunk(piece),
            // The text may name the address; that it broke off is all that counts.
            Some(Err(_)) => self.exchange.end(How::Failed, Some("terminated".to_owned())),
            None => self.exchange.end(How::Complete, None),
        }
        Poll::Ready(piece)
    }
}
