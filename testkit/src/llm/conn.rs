//! One connection of the server: request after request until one side closes it. `script` chooses replies, `body`
//! writes bodies.

use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;
use serde_json::{Value, json};

use super::api::Api;
use super::body::{self, Body, Step, Stop};
use super::encode;
use super::errors::{self, ErrorKind};
use super::fault::{Before, CutHow, Framing};
use super::http::{self, NoRequest, RawRequest, Requests};
use super::record::{Outcome, Request};
use super::reply::{ErrorReply, Reply};
use super::script::Picked;
use super::shared::Shared;
use crate::limits::CONNECTION_IDLE;

/// What becomes of the connection after an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    Keep,
    Close,
    Reset,
}

/// Serves one connection to its end.
pub(crate) fn serve(shared: &Shared, stream: Arc<TcpStream>, id: u64) {
    // A socket that refuses these options still serves.
    let _ = stream.set_nodelay(true);
    let _ = stream.set_read_timeout(Some(CONNECTION_IDLE));
    let _ = stream.set_write_timeout(Some(CONNECTION_IDLE));
    let mut requests = Requests::new(Arc::clone(&stream));
    let then = loop {
        match requests.next() {
            Ok(raw) => {
                let then = answer(shared, &stream, raw, id);
                if then != Then::Keep {
                    break then;
                }
            }
            Err(NoRequest::Closed) => break Then::Close,
            Err(NoRequest::Bad(why)) => break refuse(shared, &stream, 400, why),
            Err(NoRequest::TooLarge) => break refuse(shared, &stream, 413, "body too large"),
        }
    };
    // A reset goes out when the last handle is closed, so the server's own must be gone before ours.
    shared.forget(id);
    if then == Then::Reset {
        let _ = set_socket_linger(&*stream, Some(Duration::ZERO));
    } else {
        let _ = stream.shutdown(Shutdown::Both);
    }
}

/// Answers one request and notes how that ended.
fn answer(shared: &Shared, stream: &TcpStream, raw: RawRequest, connection: u64) -> Then {
    let close = raw.close;
    if let Some(gate) = raw.path.strip_prefix("/__gate/") {
        shared.gates.release(gate);
        let fine = document(shared, stream, &Reply::new(), 200, JSON, b"{\"ok\": true}", close);
        return if fine.1.is_err() || close {
            Then::Close
        } else {
            Then::Keep
        };
    }
    let (request, picked) = shared.receive(raw, connection);
    let (picked, n) = match picked {
        Picked::Reply(reply, n) => (Some(reply), n),
        Picked::Rule(rule, n) => (Some(Arc::new(rule(&request))), n),
        Picked::Nothing => (None, 0),
    };
    let mut outcome = Outcome::Completed;
    let (sent, result) = match (request.api, picked) {
        (Some(api), Some(reply)) => {
            let job = Job {
                shared,
                stream,
                request: &request,
                api,
                reply: &reply,
                n,
                close,
            };
            job.run(&mut outcome)
        }
        (None, _) => {
            outcome = Outcome::UnknownPath;
            let text = format!("testkit: no protocol is spoken at {}", request.path);
            let body = json!({"error": {"message": text}}).to_string();
            document(shared, stream, &Reply::new(), 404, JSON, body.as_bytes(), close)
        }
        (Some(api), None) => {
            outcome = Outcome::Unscripted;
            let text = Some("testkit: script exhausted");
            let (_, body) = errors::body(api, ErrorKind::Invalid, Some(400), text);
            document(
                shared,
                stream,
                &Reply::new(),
                400,
                JSON,
                body.to_string().as_bytes(),
                close,
            )
        }
    };
    let then = match result {
        Ok(Then::Keep) if close => Then::Close,
        Ok(then) => then,
        Err(stop) => {
            let (how, then) = stopped(stop);
            outcome = how;
            then
        }
    };
    shared.ended(request.n, outcome, sent);
    then
}

/// What an answer that was not sent to its end means for the record and for the connection.
fn stopped(stop: Stop) -> (Outcome, Then) {
    match stop {
        Stop::Dropped(CutHow::Reset) => (Outcome::Dropped, Then::Reset),
        Stop::Dropped(_) => (Outcome::Dropped, Then::Close),
        Stop::ClientGone => (Outcome::ClientClosed, Then::Close),
        Stop::Shutdown => (Outcome::Stopped, Then::Close),
    }
}

const JSON: &str = "application/json";

/// Everything that answering a request with a reply needs.
struct Job<'a> {
    shared: &'a Shared,
    stream: &'a TcpStream,
    request: &'a Request,
    api: Api,
    reply: &'a Reply,
    n: u64,
    close: bool,
}

impl Job<'_> {
    fn run(&self, outcome: &mut Outcome) -> (u64, Result<Then, Stop>) {
        if let Some(before) = &self.reply.before
            && let Err(stop) = self.before(before)
        {
            return (0, Err(stop));
        }
        if let Some(error) = &self.reply.error {
            let (status, text) = self.error_text(error);
            *outcome = Outcome::Http(status);
            return document(
                self.shared,
                self.stream,
                self.reply,
                status,
                JSON,
                text.as_bytes(),
                self.close,
            );
        }
        if let Some(page) = &self.reply.page {
            *outcome = Outcome::Http(page.status);
            let (kind, text) = (page.content_type.as_str(), page.body.as_bytes());
            return document(
                self.shared,
                self.stream,
                self.reply,
                page.status,
                kind,
                text,
                self.close,
            );
        }
        let mut body = Body::stream(self.shared, self.stream, self.reply);
        match self.stream(&mut body) {
            Ok(()) if self.reply.close || self.reply.framing == Framing::Eof => {
                (body.sent(), Ok(Then::Close))
            }
            Ok(()) => (body.sent(), Ok(Then::Keep)),
            // Nothing was missed by a client that hangs up after the last content.
            Err(Stop::ClientGone) if body.tail => (body.sent(), Ok(Then::Close)),
            Err(stop) => (body.sent(), Err(stop)),
        }
    }

    fn before(&self, before: &Before) -> Step {
        let mut body = Body::plain(self.shared, self.stream, self.reply);
        if let Some(gate) = &before.gate {
            body.gate(gate)?;
        }
        if let Some(delay) = before.delay {
            body.pause(delay)?;
        }
        before.drop.map_or(Ok(()), |how| body.fail(how))
    }

    fn stream(&self, body: &mut Body<'_>) -> Step {
        let mut headers = vec![
            ("content-type", encode::content_type(self.api)),
            ("cache-control", "no-cache"),
            ("request-id", "req_mock"),
        ];
        if self.reply.framing == Framing::Chunked {
            headers.push(("transfer-encoding", "chunked"));
        }
        if self.reply.gzip {
            headers.push(("content-encoding", "gzip"));
        }
        if self.close || self.reply.close || self.reply.framing == Framing::Eof {
            headers.push(("connection", "close"));
        }
        headers.extend(self.reply.headers.iter().map(|(n, v)| (n.as_str(), v.as_str())));
        body.head(&http::head(200, headers))?;
        encode::run(self.api, self.reply, &self.request.model, self.n, body)?;
        body.finish()
    }

    fn error_text(&self, error: &ErrorReply) -> (u16, String) {
        if let Some(text) = &error.raw_body {
            return (error.status.unwrap_or(500), text.clone());
        }
        if let Some(body) = &error.body {
            return (error.status.unwrap_or(500), body.to_string());
        }
        let kind = error.kind.unwrap_or(ErrorKind::Server);
        let (status, body) = errors::body(self.api, kind, error.status, error.message.as_deref());
        (status, body.to_string())
    }
}

/// Sends a document of known length, with the reply's headers and faults.
fn document(
    shared: &Shared,
    stream: &TcpStream,
    reply: &Reply,
    status: u16,
    kind: &str,
    text: &[u8],
    close: bool,
) -> (u64, Result<Then, Stop>) {
    let packed = if reply.gzip {
        body::gzip(text)
    } else {
        text.to_vec()
    };
    let length = packed.len().to_string();
    let extra: Vec<(String, String)> = error_headers(reply);
    let mut headers = vec![("content-type", kind), ("content-length", length.as_str())];
    if reply.gzip {
        headers.push(("content-encoding", "gzip"));
    }
    if close || reply.close {
        headers.push(("connection", "close"));
    }
    headers.extend(reply.headers.iter().map(|(n, v)| (n.as_str(), v.as_str())));
    headers.extend(extra.iter().map(|(n, v)| (n.as_str(), v.as_str())));
    let mut body = Body::plain(shared, stream, reply);
    let done = body
        .head(&http::head(status, headers))
        .and_then(|()| body.document(&packed));
    let then = if reply.close { Then::Close } else { Then::Keep };
    (body.sent(), done.map(|()| then))
}

fn error_headers(reply: &Reply) -> Vec<(String, String)> {
    let text = |v: &Value| v.as_str().map_or_else(|| v.to_string(), str::to_owned);
    let headers = reply.error.iter().flat_map(|e| &e.headers);
    headers.map(|(n, v)| (n.clone(), text(v))).collect()
}

/// Answers an invalid request.
fn refuse(shared: &Shared, stream: &TcpStream, status: u16, why: &str) -> Then {
    let body = json!({"error": {"message": why}}).to_string();
    let _ = document(shared, stream, &Reply::new(), status, JSON, body.as_bytes(), true);
    Then::Close
}
