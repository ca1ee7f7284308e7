//! One WebSocket of a web door: frames in become mail, what the client is to be told becomes frames out. A client that does
//! not answer pings is gone; one that reads too slowly is sent away.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, close_code};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::time::{Instant, timeout};

use super::clients::{Over, Seat};
use super::door::Door;
use crate::limits::{WEB_PING, WEB_PINGS_MISSED, WEB_SEND_WAIT};

/// Serves a client until it leaves or is sent away.
pub(crate) async fn serve(socket: WebSocket, door: Arc<Door>, seat: Seat) {
    let (out, incoming) = socket.split();
    let (heard, silence) = tokio::sync::watch::channel(Instant::now());
    let reading = read(incoming, &door, &seat, heard);
    let writing = write(out, &seat, silence);
    // Whichever ends first ends the other: dropping the halves closes the connection.
    tokio::select! {
        () = reading => {}
        () = writing => {}
    }
}

/// Reads until the client leaves.
async fn read(
    mut incoming: SplitStream<WebSocket>,
    door: &Door,
    seat: &Seat,
    heard: tokio::sync::watch::Sender<Instant>,
) {
    while let Some(Ok(message)) = incoming.next().await {
        heard.send_replace(Instant::now());
        let line = match message {
            Message::Text(text) => Bytes::from(text),
            Message::Binary(bytes) => bytes,
            // Answered below us.
            Message::Ping(_) | Message::Pong(_) => continue,
            Message::Close(_) => return,
        };
        if !door.deliver(&line, seat.id()).await {
            return;
        }
    }
}

/// Writes until the client cannot be reached any more, or is to go.
async fn write(
    mut out: SplitSink<WebSocket, Message>,
    seat: &Seat,
    heard: tokio::sync::watch::Receiver<Instant>,
) {
    let mut frames: Vec<Utf8Bytes> = Vec::new();
    let mut asked = 0;
    loop {
        let outcome = seat.take(&mut frames);
        let is_idle = frames.is_empty();
        if !send_all(&mut out, &mut frames).await {
            return;
        }
        if let Err(over) = outcome {
            return part(&mut out, over).await;
        }
        if !is_idle {
            continue;
        }
        let silent = heard.borrow().elapsed();
        if silent < WEB_PING {
            asked = 0;
        }
        let wait = WEB_PING.saturating_sub(silent).max(Duration::from_secs(1));
        let wait = if asked > 0 { WEB_PING } else { wait };
        if timeout(wait, seat.rung()).await.is_ok() || heard.borrow().elapsed() < WEB_PING {
            continue;
        }
        if asked >= WEB_PINGS_MISSED {
            return;
        }
        asked += 1;
        if !send(&mut out, Message::Ping(Bytes::new())).await {
            return;
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
    let reason = reason.into();
    send(out, Message::Close(Some(CloseFrame { code, reason }))).await;
}
