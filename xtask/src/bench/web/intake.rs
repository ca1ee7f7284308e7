//! A client's input from a web server: the head of the response first, then events, as frames of a WebSocket or as
//! server-sent events. It parses only enough to find events, so that a thousand clients cost little.

/// How a client gets its events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// A WebSocket.
    Socket,
    /// `GET /api/events`.
    Stream,
}

impl Way {
    /// The request that begins it.
    pub(super) fn request(self, address: &str) -> String {
        let (path, more) = match self {
            Self::Socket => (
                "/ws",
                "connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
                 sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
            ),
            Self::Stream => ("/api/events", "accept: text/event-stream\r\n"),
        };
        format!("GET {path} HTTP/1.1\r\nhost: {address}\r\norigin: http://{address}\r\n{more}\r\n")
    }

    /// Takes the events that have come as a whole out of `bytes`, and hands them on.
    pub(super) fn drain(self, bytes: &mut Vec<u8>, mut event: impl FnMut(&str)) {
        let mut taken = 0;
        while let Some((length, text)) = bytes.get(taken..).and_then(|rest| match self {
            Self::Socket => frame(rest),
            Self::Stream => line(rest),
        }) {
            taken += length;
            if let Some(text) = text.and_then(|text| std::str::from_utf8(text).ok()) {
                event(text);
            }
        }
        bytes.drain(..taken);
    }
}

/// The status in the head of an answer, and the length of the head; none before all of it is there.
pub(super) fn head(bytes: &[u8]) -> Option<(u16, usize)> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let status = bytes.split(|byte| *byte == b' ').nth(1)?;
    Some((std::str::from_utf8(status).ok()?.parse().ok()?, end + 4))
}

/// A piece of the stream: its length, and what of it is an event.
type Piece<'a> = (usize, Option<&'a [u8]>);

/// The first frame of a server, which masks nothing; an event if it is text.
fn frame(bytes: &[u8]) -> Option<Piece<'_>> {
    const TEXT: u8 = 0x81;
    let (kind, short) = (*bytes.first()?, *bytes.get(1)?);
    let (head, length) = match short {
        126 => (4, bytes.get(2..4)),
        127 => (10, bytes.get(2..10)),
        _ => (2, bytes.get(1..2)),
    };
    let length = length?
        .iter()
        .fold(0, |length, byte| length << 8 | usize::from(*byte));
    let payload = bytes.get(head..head + length)?;
    Some((head + length, (kind == TEXT).then_some(payload)))
}

/// The first line; an event if it is data. The sizes of chunks are lines, too.
fn line(bytes: &[u8]) -> Option<Piece<'_>> {
    let length = bytes.iter().position(|byte| *byte == b'\n')?;
    Some((length + 1, bytes.get(..length)?.strip_prefix(b"data: ")))
}
