//! The protocol over plain HTTP, for hosts that want no WebSocket: a command by POST, whose answer is the response; everything
//! else as server-sent events.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use futures_util::{StreamExt as _, stream};
use hyper::body::Body as _;
use tokio::time::timeout;

use crate::clients::{Over, Resume, Subscription};
use crate::frame_text::FrameText;
use crate::guard::query_value;
use crate::limits::{
    WEB_ANSWER_WAIT, WEB_BODY_WAIT, WEB_FREE_BYTES, WEB_IDLE_WAIT, WEB_MESSAGE_BYTES, WEB_PING,
    WEB_READ_BYTES,
};
use crate::memory::{Account, Full, Reservation};
use crate::page::{only, plain};
use crate::server::empty;
use crate::state::{WebState, parsed};
use serve::{Inbound, Request};
use wire::Response as CommandResponse;

/// The error of a command whose response is lost: its session went away, or the response does not fit in the client's memory.
/// A command that was passed on gets no 503, since the client would send it again.
pub(crate) const MAY_HAVE_RUN: &str = "The response of the session was lost. The command may have run; read the state of the session \
                                       before you send it again";

/// `POST /api/command`: the body is a command as on the socket, the answer its response. Frames without a response get
/// 202. A response with `success: false` has status 200; only a body that is no command gets 400.
/// 503 says that the command was not passed on.
pub(crate) async fn command(state: Arc<WebState>, parts: &Parts, body: Body) -> Response {
    if parts.method != Method::POST {
        return only("POST");
    }
    // A form of another page could send anything but this.
    let is_json = parts
        .headers
        .get(header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .is_some_and(|kind| kind.split(';').next().unwrap_or_default().trim() == "application/json");
    if !is_json {
        return plain(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "The body must be application/json",
        );
    }
    let account = state.clients.account();
    let (line, mut held) = match timeout(WEB_BODY_WAIT, read(body, &account)).await {
        Ok(Ok(read)) => read,
        Ok(Err(refused)) => return refused.response(),
        Err(_) => return Refused::Late.response(),
    };
    let line = Bytes::from(line);
    let inbound = parsed(&line, &mut held).await;
    let status = match &inbound {
        Inbound::Rejected(_) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    };
    let is_frame = matches!(inbound, Inbound::Frame(..));
    let unanswered = match &inbound {
        Inbound::Request(request) => Some(lost(request)),
        _ => None,
    };
    let Some(subscription) = state.clients.join_for_answer(account) else {
        return busy();
    };
    if !state.pass(inbound, line, held, subscription.id()).await {
        return empty(StatusCode::SERVICE_UNAVAILABLE);
    }
    if is_frame {
        return empty(StatusCode::ACCEPTED);
    }
    match timeout(WEB_ANSWER_WAIT, first(&subscription)).await {
        Ok(Some(frame)) => answered(status, &frame, subscription),
        Ok(None) => match unanswered {
            Some(frame) => answered(status, &frame, subscription),
            None => busy(),
        },
        Err(_) => empty(StatusCode::GATEWAY_TIMEOUT),
    }
}

/// The response to a command whose own response is lost.
fn lost(request: &Request) -> FrameText {
    let response = CommandResponse {
        id: request.id.clone(),
        command: Some(request.name.clone().into()),
        outcome: Err(MAY_HAVE_RUN.to_owned()),
    };
    serde_json::to_string(&response).unwrap_or_default().into()
}

/// Why the body of a request is not read to its end.
enum Refused {
    TooLong,
    Late,
    /// All clients together hold too much.
    Full,
    Broken,
}

impl Refused {
    fn response(&self) -> Response {
        match self {
            Self::TooLong => plain(StatusCode::PAYLOAD_TOO_LARGE, "The command is too long"),
            Self::Late => plain(StatusCode::REQUEST_TIMEOUT, "The command does not come"),
            Self::Full => busy(),
            Self::Broken => plain(StatusCode::BAD_REQUEST, "The command is incomplete"),
        }
    }
}

/// The answer when there is no room: try again soon.
fn busy() -> Response {
    let mut response = empty(StatusCode::SERVICE_UNAVAILABLE);
    let headers = response.headers_mut();
    headers.insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Reads a body; its bytes are charged to `account` as they come. A length that cannot fit is refused before any come.
async fn read(body: Body, account: &Account) -> Result<(Vec<u8>, Reservation), Refused> {
    let claimed = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if claimed > WEB_MESSAGE_BYTES {
        return Err(Refused::TooLong);
    }
    if !account.fits(claimed) {
        return Err(Refused::Full);
    }
    let mut held = account.empty();
    // The system hands out memory as it is written to, so a long claim costs nothing.
    let mut line = Vec::with_capacity(claimed);
    let mut pieces = body.into_data_stream();
    loop {
        let piece = if line.len() > WEB_FREE_BYTES {
            let next = timeout(WEB_IDLE_WAIT, pieces.next()).await;
            next.map_err(|_| Refused::Late)?
        } else {
            pieces.next().await
        };
        let Some(piece) = piece else {
            return Ok((line, held));
        };
        let piece = piece.map_err(|_| Refused::Broken)?;
        if line.len() + piece.len() > WEB_MESSAGE_BYTES {
            return Err(Refused::TooLong);
        }
        held.grow(piece.len()).map_err(|Full| Refused::Full)?;
        line.extend_from_slice(&piece);
    }
}

/// An answer. The client stays until it is sent, and with it the memory that the answer takes.
fn answered(status: StatusCode, frame: &FrameText, subscription: Subscription) -> Response {
    let length = HeaderValue::from(frame.len());
    let pieces: Vec<Bytes> = frame.pieces().cloned().collect();
    let rest = (pieces.into_iter(), subscription);
    let pieces = stream::unfold(rest, |(mut pieces, subscription)| async move {
        Some((Ok::<_, Infallible>(pieces.next()?), (pieces, subscription)))
    });
    let mut response = json(status, Body::from_stream(pieces));
    response.headers_mut().insert(header::CONTENT_LENGTH, length);
    response
}

/// Waits for the first frame for this client. Events that the command switches on may follow it.
async fn first(subscription: &Subscription) -> Option<FrameText> {
    let mut frames = Vec::new();
    loop {
        let outcome = subscription.take(&mut frames);
        if let Some(frame) = frames.drain(..).next() {
            return Some(frame);
        }
        outcome.ok()?;
        subscription.rung().await;
    }
}

/// `GET /api/events`: events as they come, each with its number as the event's id, so that a browser's `EventSource` goes on
/// where it was by itself.
pub(crate) fn events(state: &WebState, parts: &Parts) -> Response {
    if parts.method != Method::GET {
        return only("GET");
    }
    let Some(subscription) = state.clients.join(&resume(parts)) else {
        return empty(StatusCode::SERVICE_UNAVAILABLE);
    };
    let pieces = stream::unfold(Some(subscription), |subscription| async move {
        let subscription = subscription?;
        let mut frames = Vec::new();
        loop {
            match subscription.take(&mut frames) {
                Ok(()) if frames.is_empty() => {
                    if timeout(WEB_PING, subscription.rung()).await.is_err() {
                        return Some((vec![Bytes::from_static(b": still here\n\n")], Some(subscription)));
                    }
                }
                Ok(()) => return Some((written(&frames), Some(subscription))),
                Err(Over::Ending | Over::TooSlow) if frames.is_empty() => return None,
                Err(_) => return Some((written(&frames), None)),
            }
        }
    });
    let pieces = pieces.flat_map(stream::iter);
    let body = Body::from_stream(pieces.map(Ok::<_, Infallible>));
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/event-stream"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Frames as server-sent events. Long text is not copied.
fn written(frames: &[FrameText]) -> Vec<Bytes> {
    let (mut pieces, mut out) = (Vec::new(), Vec::new());
    for frame in frames {
        if let Some(number) = number(frame.end()) {
            out.extend_from_slice(b"id: ");
            out.extend_from_slice(number);
            out.push(b'\n');
        }
        out.extend_from_slice(b"data: ");
        for piece in frame.pieces() {
            if piece.len() > WEB_READ_BYTES / 2 {
                pieces.push(std::mem::take(&mut out).into());
                pieces.push(piece.clone());
            } else {
                out.extend_from_slice(piece);
            }
        }
        out.extend_from_slice(b"\n\n");
    }
    pieces.push(out.into());
    pieces
}

/// The number of an event, which is the last thing in its frame.
fn number(end: &[u8]) -> Option<&[u8]> {
    let object = end.strip_suffix(b"}")?;
    let member = b",\"seq\":";
    let at = memchr::memmem::rfind(object, member)?;
    let number = object.get(at + member.len()..)?;
    number.iter().all(u8::is_ascii_digit).then_some(number)
}

/// Where a client wants to go on, as it says in `?after=` or `Last-Event-ID`, and `?instance=`.
pub(crate) fn resume(parts: &Parts) -> Resume {
    let header = parts.headers.get("last-event-id");
    let header = header.and_then(|value| value.to_str().ok());
    let pairs = || parts.uri.query().unwrap_or_default().split('&');
    let after = header.or_else(|| pairs().find_map(|pair| pair.strip_prefix("after=")));
    let instance = pairs().find_map(|pair| pair.strip_prefix("instance="));
    Resume {
        is_asked: after.is_some() || instance.is_some(),
        after: after.and_then(|after| after.parse().ok()),
        // At a gateway it is the id of a session, which can contain characters that a URL encodes.
        instance: instance.map(query_value),
    }
}

fn json(status: StatusCode, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::{first, resume};
    use crate::broadcaster::first_options;
    use crate::clients::Clients;
    use crate::log::{Entry, Subject, Text};
    use crate::memory::Memory;

    #[tokio::test]
    async fn response_precedes_events_that_it_switches_on() {
        let clients = Clients::new(Memory::default());
        let client = clients.join_for_answer(clients.account()).unwrap();
        clients.tell(client.id(), "response".to_owned().into());
        clients.agree(client.id(), first_options());
        let subject = Subject {
            name: "agent_start",
            session: None,
        };
        let text = Text::Line("{\"type\":\"agent_start\"".to_owned().into());
        clients.push(Entry { subject, text });
        clients.publish();
        assert_eq!(first(&client).await.unwrap().text(), "response");
    }

    #[test]
    fn encoded_instance_is_decoded() {
        let request = Request::builder().uri("/ws?after=7&instance=team%2F42+b");
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let resume = resume(&parts);
        assert_eq!(resume.after, Some(7));
        assert_eq!(resume.instance.as_deref(), Some("team/42 b"));
    }
}
