//! One WebSocket of a web server: received frames become commands, events and responses become frames. A client that
//! does not answer pings, or reads too slowly, is disconnected.

use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Bytes;
use axum::extract::ws::close_code;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, sleep_until, timeout};
use tungstenite::error::ProtocolError;
use tungstenite::{Error, Message};

use crate::clients::{Over, Subscription};
use crate::frame_text::FrameText;
use crate::frames::{Incoming, Outgoing, is_full};
use crate::limits::{
    WEB_BODY_WAIT, WEB_FREE_BYTES, WEB_IDLE_WAIT, WEB_MESSAGE_BURST, WEB_MESSAGE_RATE, WEB_PING,
    WEB_PINGS_MISSED, WEB_REPLY_BYTES, WEB_SEND_WAIT,
};
use crate::memory::Reservation;
use crate::state::WebState;
use crate::stream::Pulse;

/// Frames that answer control frames, on their way from the reading half to the writing one.
type Replies = Mutex<Vec<u8>>;

/// Serves a client until it leaves or is sent away.
pub(crate) async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    state: Arc<WebState>,
    subscription: Subscription,
    pulse: Pulse,
) {
    let (reading, writing) = tokio::io::split(stream);
    let incoming = Incoming::new(reading, subscription.account());
    let (mut incoming, mut out) = (incoming, Outgoing::new(writing));
    let replies = Replies::default();
    // Whichever ends first ends the other.
    let fault = tokio::select! {
        fault = read(&mut incoming, &replies, &state, &subscription) => fault,
        () = write(&mut out, &replies, &subscription, &pulse) => None,
    };
    out.replies(taken(&replies));
    if let Some((code, reason)) = fault {
        out.close(code, reason);
    }
    // A frame that is partly written must be completed before the close frame.
    flush(&mut out).await;
}

/// Reads until the client leaves, or breaks the rules: gives the code that says which.
async fn read(
    incoming: &mut Incoming<impl AsyncRead + Unpin>,
    replies: &Replies,
    state: &WebState,
    subscription: &Subscription,
) -> Option<(u16, &'static str)> {
    let mut pace = Pace::new(Instant::now());
    loop {
        let reply = |frames: Vec<u8>| {
            lock(replies).extend(frames);
            subscription.ring();
        };
        let (line, held) = match arriving(incoming, reply).await {
            Ok((Message::Text(text), held)) => (Bytes::from(text), held),
            Ok((Message::Binary(bytes), held)) => (bytes, held),
            // Answered below us.
            Ok((Message::Ping(_), _)) if lock(replies).len() <= WEB_REPLY_BYTES => continue,
            Ok((Message::Pong(_), _)) => continue,
            Ok((Message::Close(_), _)) => {
                let farewell = incoming.farewell().await;
                lock(replies).extend(farewell);
                return None;
            }
            Ok((Message::Ping(_) | Message::Frame(_), _)) => return None,
            Err(fault) => return fault,
        };
        if !pace.allows(Instant::now()) {
            state.refuse(line, held, subscription.id()).await;
        } else if !state.deliver(line, held, subscription.id()).await {
            return None;
        }
    }
}

/// Waits for the next message. A long one must keep arriving, and must be complete after [`WEB_BODY_WAIT`].
async fn arriving(
    incoming: &mut Incoming<impl AsyncRead + Unpin>,
    mut reply: impl FnMut(Vec<u8>),
) -> Result<(Message, Reservation), Option<(u16, &'static str)>> {
    let mut last = 0;
    let mut begun = None;
    loop {
        if let Ok(next) = timeout(WEB_IDLE_WAIT, incoming.next(&mut reply)).await {
            return next.map_err(|error| fault(&error));
        }
        let unfinished = incoming.unfinished();
        if unfinished <= WEB_FREE_BYTES {
            continue;
        }
        let begun = begun.get_or_insert_with(Instant::now);
        if unfinished == last || begun.elapsed() >= WEB_BODY_WAIT {
            return Err(Some((close_code::AGAIN, "a message stays incomplete")));
        }
        last = unfinished;
    }
}

fn lock(replies: &Replies) -> std::sync::MutexGuard<'_, Vec<u8>> {
    replies.lock().unwrap_or_else(PoisonError::into_inner)
}

fn taken(replies: &Replies) -> Vec<u8> {
    std::mem::take(&mut *lock(replies))
}

/// What a client did wrong; none when it is only gone.
fn fault(error: &Error) -> Option<(u16, &'static str)> {
    match error {
        error if is_full(error) => Some((
            close_code::AGAIN,
            "the server has no memory for this message; try again later",
        )),
        Error::Capacity(_) => Some((close_code::SIZE, "a message is too long")),
        Error::Utf8(_) => Some((close_code::INVALID, "text is not UTF-8")),
        Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => None,
        Error::Protocol(_) => Some((close_code::PROTOCOL, "a frame breaks the rules")),
        _ => None,
    }
}

/// Writes until the client cannot be reached any more, or is to go.
async fn write(
    out: &mut Outgoing<impl AsyncWrite + Unpin>,
    replies: &Replies,
    subscription: &Subscription,
    pulse: &Pulse,
) {
    let mut frames: Vec<FrameText> = Vec::new();
    let (mut unanswered, mut beats) = (0, pulse.beats());
    // One clock for all the waiting: a new one for each picture would cost as much as the picture.
    let mut time_to_ask = pin!(sleep_until(Instant::now() + WEB_PING));
    loop {
        let outcome = subscription.take(&mut frames);
        out.replies(taken(replies));
        for frame in frames.drain(..) {
            out.text(frame);
        }
        let is_idle = out.is_empty();
        if !is_idle && !flush(out).await {
            return;
        }
        if let Err(over) = outcome {
            let (code, reason) = parting(over);
            return out.close(code, reason);
        }
        if time_to_ask.is_elapsed() {
            if pulse.beats() != beats {
                unanswered = 0;
            }
            if unanswered >= WEB_PINGS_MISSED {
                return;
            }
            out.ping();
            if !flush(out).await {
                return;
            }
            (unanswered, beats) = (unanswered + 1, pulse.beats());
            time_to_ask.as_mut().reset(Instant::now() + WEB_PING);
        }
        if is_idle {
            tokio::select! {
                () = subscription.rung() => {}
                () = &mut time_to_ask => {}
            }
        }
    }
}

/// Writes what waits. False when the client cannot be reached.
async fn flush(out: &mut Outgoing<impl AsyncWrite + Unpin>) -> bool {
    matches!(timeout(WEB_SEND_WAIT, out.flush()).await, Ok(Ok(())))
}

/// Why a client is sent away.
fn parting(over: Over) -> (u16, &'static str) {
    match over {
        Over::TooSlow => (close_code::AGAIN, "you read too slowly; connect again and replay"),
        Over::Ending => (close_code::AWAY, "server shutting down"),
    }
}

/// How fast messages come: so many in a row, so many per second after that.
#[derive(Debug)]
struct Pace {
    left: f64,
    at: Instant,
}

impl Pace {
    fn new(now: Instant) -> Self {
        Self {
            left: f64::from(WEB_MESSAGE_BURST),
            at: now,
        }
    }

    /// Returns true if one more message is within the rate limit.
    fn allows(&mut self, now: Instant) -> bool {
        let more = now.duration_since(self.at).as_secs_f64() * f64::from(WEB_MESSAGE_RATE);
        (self.left, self.at) = ((self.left + more).min(f64::from(WEB_MESSAGE_BURST)), now);
        let is_fine = self.left >= 1.0;
        if is_fine {
            self.left -= 1.0;
        }
        is_fine
    }
}
