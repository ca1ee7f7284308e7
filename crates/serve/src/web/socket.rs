//! One WebSocket of a web door: frames in become mail, what the client is to be told becomes frames out. A client that does
//! not answer pings is gone; one that reads too slowly is sent away.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, close_code};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::time::{Instant, timeout, timeout_at};
use tungstenite::error::ProtocolError;

use super::clients::{Over, Seat};
use super::door::Door;
use super::stream::Pulse;
use crate::limits::{WEB_MESSAGE_BURST, WEB_MESSAGE_RATE, WEB_PING, WEB_PINGS_MISSED, WEB_SEND_WAIT};

/// Serves a client until it leaves or is sent away.
pub(crate) async fn serve(socket: WebSocket, door: Arc<Door>, seat: Seat, pulse: Pulse) {
    let (mut out, incoming) = socket.split();
    // Whichever ends first ends the other: dropping the halves closes the connection.
    let fault = tokio::select! {
        fault = read(incoming, &door, &seat) => fault,
        () = write(&mut out, &seat, &pulse) => None,
    };
    if let Some((code, reason)) = fault {
        say_goodbye(&mut out, code, reason).await;
    }
}

/// Reads until the client leaves, or breaks the rules: gives the code that says which.
async fn read(mut incoming: SplitStream<WebSocket>, door: &Door, seat: &Seat) -> Option<(u16, &'static str)> {
    let mut pace = Pace::new(Instant::now());
    while let Some(message) = incoming.next().await {
        let line = match message {
            Ok(Message::Text(text)) => Bytes::from(text),
            Ok(Message::Binary(bytes)) => bytes,
            // Answered below us.
            Ok(Message::Ping(_) | Message::Pong(_)) => continue,
            Ok(Message::Close(_)) => return None,
            Err(error) => return fault(error),
        };
        if !pace.allows(Instant::now()) {
            door.refuse(&line, seat.id());
        } else if !door.deliver(&line, seat.id()).await {
            return None;
        }
    }
    None
}

/// What a client did wrong; none when it is only gone.
fn fault(error: axum::Error) -> Option<(u16, &'static str)> {
    use tungstenite::Error;
    match error.into_inner().downcast_ref::<Error>()? {
        Error::Capacity(_) => Some((close_code::SIZE, "a message is too long")),
        Error::Utf8(_) => Some((close_code::INVALID, "text is not UTF-8")),
        Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => None,
        Error::Protocol(_) => Some((close_code::PROTOCOL, "a frame breaks the rules")),
        _ => None,
    }
}

/// Writes until the client cannot be reached any more, or is to go.
async fn write(out: &mut SplitSink<WebSocket, Message>, seat: &Seat, pulse: &Pulse) {
    let mut frames: Vec<Utf8Bytes> = Vec::new();
    let (mut unanswered, mut beats) = (0, pulse.beats());
    let mut due = Instant::now() + WEB_PING;
    loop {
        let outcome = seat.take(&mut frames);
        let is_idle = frames.is_empty();
        if !send_all(out, &mut frames).await {
            return;
        }
        if let Err(over) = outcome {
            return part(out, over).await;
        }
        if Instant::now() >= due {
            if pulse.beats() != beats {
                unanswered = 0;
            }
            if unanswered >= WEB_PINGS_MISSED || !send(out, Message::Ping(Bytes::new())).await {
                return;
            }
            (unanswered, beats, due) = (unanswered + 1, pulse.beats(), Instant::now() + WEB_PING);
        }
        if is_idle {
            let _time_to_ask = timeout_at(due, seat.rung()).await;
        }
    }
}

/// Sends frames as one piece. False when the client cannot be reached.
async fn send_all(out: &mut SplitSink<WebSocket, Message>, frames: &mut Vec<Utf8Bytes>) -> bool {
    if frames.is_empty() {
        return true;
    }
    let sending = async {
        for frame in frames.drain(..) {
            out.feed(Message::Text(frame)).await?;
        }
        out.flush().await
    };
    matches!(timeout(WEB_SEND_WAIT, sending).await, Ok(Ok(())))
}

async fn send(out: &mut SplitSink<WebSocket, Message>, message: Message) -> bool {
    matches!(timeout(WEB_SEND_WAIT, out.send(message)).await, Ok(Ok(())))
}

/// Says why, and goes.
async fn part(out: &mut SplitSink<WebSocket, Message>, over: Over) {
    let (code, reason) = match over {
        Over::TooSlow => (close_code::AGAIN, "you read too slowly; connect again and replay"),
        Over::Ending => (close_code::AWAY, "server shutting down"),
    };
    say_goodbye(out, code, reason).await;
}

async fn say_goodbye(out: &mut SplitSink<WebSocket, Message>, code: u16, reason: &'static str) {
    let reason = reason.into();
    send(out, Message::Close(Some(CloseFrame { code, reason }))).await;
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

    /// May one more come now?
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
