//! The frames of a WebSocket: bytes become messages, texts become bytes. What is said to a thousand clients is written from
//! the one text that they share: nothing of it is copied for each, and nothing stays with a client that has it.
//!
//! Not here: what messages mean, and when there is something to say (`socket`).

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, IoSlice, Read, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tungstenite::protocol::{Role, WebSocketConfig, WebSocketContext};
use tungstenite::{Error, Message};

use crate::limits::{WEB_MESSAGE_BYTES, WEB_SOCKET_BUFFER};

/// Frames of a text, of a close and of a ping, whole and without a mask.
const TEXT: u8 = 0x81;
const CLOSE: u8 = 0x88;
const PING: u8 = 0x89;

/// Pieces that the system is handed at once.
const AT_ONCE: usize = 32;

/// Places that are kept for frames while none waits.
const KEPT: usize = 16;

/// What a client says.
pub(crate) struct Incoming<R> {
    from: R,
    context: WebSocketContext,
    /// Frames that answer control frames.
    replies: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Incoming<R> {
    /// Nothing was read yet.
    pub(crate) fn new(from: R) -> Self {
        let config = WebSocketConfig::default()
            .read_buffer_size(WEB_SOCKET_BUFFER)
            .max_message_size(Some(WEB_MESSAGE_BYTES))
            .max_frame_size(Some(WEB_MESSAGE_BYTES));
        Self {
            from,
            context: WebSocketContext::new(Role::Server, Some(config)),
            replies: Vec::new(),
        }
    }

    /// The next message. Calls `reply` with frames that answer pings and the like. Cancel-safe.
    ///
    /// # Errors
    /// When the client breaks the rules, or the connection does.
    pub(crate) async fn next(&mut self, mut reply: impl FnMut(Vec<u8>)) -> Result<Message, Error> {
        poll_fn(|context| {
            let read = self.step(context, |protocol, wire| protocol.read(wire));
            if !self.replies.is_empty() {
                reply(std::mem::take(&mut self.replies));
            }
            match read {
                Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
                read => Poll::Ready(read),
            }
        })
        .await
    }

    /// The frame that answers a close, which was the last message.
    pub(crate) async fn farewell(&mut self) -> Vec<u8> {
        poll_fn(|context| {
            // It says that the connection is closed now, which is what is wanted.
            let _closed = self.step(context, |protocol, wire| protocol.flush(wire));
            Poll::Ready(std::mem::take(&mut self.replies))
        })
        .await
    }

    fn step<T>(
        &mut self,
        context: &mut Context<'_>,
        step: impl FnOnce(&mut WebSocketContext, &mut Wire<'_, '_, R>) -> T,
    ) -> T {
        let mut wire = Wire {
            from: &mut self.from,
            context,
            replies: &mut self.replies,
        };
        step(&mut self.context, &mut wire)
    }
}

/// The connection as the protocol sees it: it reads from there, and what it writes waits until other frames are through.
struct Wire<'a, 'b, R> {
    from: &'a mut R,
    context: &'a mut Context<'b>,
    replies: &'a mut Vec<u8>,
}

impl<R: AsyncRead + Unpin> Read for Wire<'_, '_, R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut buffer = ReadBuf::new(bytes);
        match Pin::new(&mut *self.from).poll_read(self.context, &mut buffer) {
            Poll::Ready(read) => read.map(|()| buffer.filled().len()),
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}

impl<R> Write for Wire<'_, '_, R> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.replies.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A frame that waits.
struct Frame {
    head: [u8; 10],
    head_length: usize,
    payload: Bytes,
}

impl Frame {
    fn new(kind: u8, payload: Bytes) -> Self {
        let length = (payload.len() as u64).to_be_bytes();
        let (short, long) = match payload.len() {
            0..=125 => (length.get(7).copied().unwrap_or_default(), 0),
            126..=0xffff => (126, 2),
            _ => (127, 8),
        };
        let long = length.get(8 - long..).unwrap_or_default();
        let mut head = [0; 10];
        let bytes = [kind, short].into_iter().chain(long.iter().copied());
        for (to, from) in head.iter_mut().zip(bytes) {
            *to = from;
        }
        Self {
            head,
            head_length: 2 + long.len(),
            payload,
        }
    }

    /// Frames that are bytes already.
    fn made(bytes: Vec<u8>) -> Self {
        Self {
            head: [0; 10],
            head_length: 0,
            payload: bytes.into(),
        }
    }

    fn len(&self) -> usize {
        self.head_length + self.payload.len()
    }

    /// Its bytes after the first `skip`.
    fn pieces(&self, skip: usize) -> [&[u8]; 2] {
        let head = self.head.get(skip..self.head_length).unwrap_or_default();
        let skip = skip.saturating_sub(self.head_length);
        [head, self.payload.get(skip..).unwrap_or_default()]
    }
}

/// What a client is told.
pub(crate) struct Outgoing<W> {
    to: W,
    frames: VecDeque<Frame>,
    /// How much of the first frame is through.
    done: usize,
}

impl<W: AsyncWrite + Unpin> Outgoing<W> {
    /// Nothing was said yet.
    pub(crate) fn new(to: W) -> Self {
        Self {
            to,
            frames: VecDeque::new(),
            done: 0,
        }
    }

    /// A text comes next.
    pub(crate) fn text(&mut self, text: impl Into<Bytes>) {
        self.frames.push_back(Frame::new(TEXT, text.into()));
    }

    /// A ping comes next.
    pub(crate) fn ping(&mut self) {
        self.frames.push_back(Frame::new(PING, Bytes::new()));
    }

    /// The end comes next: a code of RFC 6455 and a reason of less than 120 bytes.
    pub(crate) fn close(&mut self, code: u16, reason: &str) {
        let payload = [&code.to_be_bytes(), reason.as_bytes()].concat();
        self.frames.push_back(Frame::new(CLOSE, payload.into()));
    }

    /// Frames come next that are bytes already.
    pub(crate) fn replies(&mut self, frames: Vec<u8>) {
        if !frames.is_empty() {
            self.frames.push_back(Frame::made(frames));
        }
    }

    /// Does nothing wait?
    pub(crate) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Writes everything that waits. Cancel-safe: what is not through yet still waits, to the byte.
    ///
    /// # Errors
    /// When the connection takes nothing any more.
    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        poll_fn(|context| {
            while !self.frames.is_empty() {
                ready!(self.write(context))?;
            }
            if self.frames.capacity() > KEPT {
                self.frames = VecDeque::new();
            }
            Pin::new(&mut self.to).poll_flush(context)
        })
        .await
    }

    /// Writes as much as the system takes at once.
    fn write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut slices = [IoSlice::new(&[]); AT_ONCE];
        let first = self.frames.iter().take(1).map(|frame| frame.pieces(self.done));
        let others = self.frames.iter().skip(1).map(|frame| frame.pieces(0));
        let pieces = first.chain(others).flatten().filter(|piece| !piece.is_empty());
        let mut count = 0;
        for (slice, piece) in slices.iter_mut().zip(pieces) {
            *slice = IoSlice::new(piece);
            count += 1;
        }
        let slices = slices.get(..count).unwrap_or_default();
        let written = ready!(Pin::new(&mut self.to).poll_write_vectored(context, slices))?;
        if written == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        self.done += written;
        while let Some(frame) = self.frames.front()
            && self.done >= frame.len()
        {
            self.done -= frame.len();
            self.frames.pop_front();
        }
        Poll::Ready(Ok(()))
    }
}
