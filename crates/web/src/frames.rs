//! The frames of a WebSocket: bytes become messages, texts become bytes. All clients share the text of an event: it is
//! written without a copy for each client.
//!
//! Not here: the meaning of messages, and when frames are sent (`socket`).

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, IoSlice, Read, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, BufReader, ReadBuf};
use tungstenite::protocol::{Role, WebSocketConfig, WebSocketContext};
use tungstenite::{Error, Message};

use crate::frame_text::FrameText;
use crate::limits::{WEB_FRAMES_AT_ONCE, WEB_MESSAGE_BYTES, WEB_SOCKET_BUFFER};
use crate::memory::{Account, Full, Reservation};

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
    from: BufReader<R>,
    context: WebSocketContext,
    /// Frames that answer control frames.
    replies: Vec<u8>,
    /// Where the frame ends that is being read.
    frame: FrameEnd,
    /// Reads that are left before other clients get their turn.
    turn: u32,
    /// The bytes of the message that is not complete.
    held: Reservation,
}

/// The error of a client whose message does not fit into the memory of the server.
fn full() -> io::Error {
    io::ErrorKind::OutOfMemory.into()
}

/// Returns true for the error that says that a message does not fit into the memory of the server.
pub(crate) fn is_full(error: &Error) -> bool {
    matches!(error, Error::Io(error) if error.kind() == io::ErrorKind::OutOfMemory)
}

impl<R: AsyncRead + Unpin> Incoming<R> {
    /// Nothing was read yet. Messages are charged to `account` while they arrive.
    pub(crate) fn new(from: R, account: &Account) -> Self {
        Self {
            from: BufReader::with_capacity(WEB_SOCKET_BUFFER, from),
            context: context(),
            replies: Vec::new(),
            frame: FrameEnd::default(),
            turn: WEB_FRAMES_AT_ONCE,
            held: account.empty(),
        }
    }

    /// Bytes of the message that is not complete.
    pub(crate) fn unfinished(&self) -> usize {
        self.held.bytes()
    }

    /// The next message, with the memory that it takes. Calls `reply` with frames that answer pings and the like. Cancel-safe.
    ///
    /// # Errors
    /// When the client breaks the rules, the connection does, or the message does not fit into memory ([`is_full`]).
    pub(crate) async fn next(
        &mut self,
        mut reply: impl FnMut(Vec<u8>),
    ) -> Result<(Message, Reservation), Error> {
        let message = poll_fn(|context| {
            let read = self.step(context, |protocol, wire| protocol.read(wire));
            if !self.replies.is_empty() {
                reply(std::mem::take(&mut self.replies));
            }
            match read {
                Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
                read => Poll::Ready(read),
            }
        })
        .await?;
        let held = match &message {
            // Between the parts of a message they are none of it.
            Message::Ping(payload) | Message::Pong(payload) => {
                self.held.shrink(CONTROL_HEAD + payload.len());
                self.held.empty()
            }
            Message::Text(_) | Message::Binary(_) => {
                if message.len() > WEB_SOCKET_BUFFER {
                    // It would keep the buffer of the message until the next large one. Nothing is read beyond the end of a
                    // frame, so it holds nothing else.
                    self.context = context();
                }
                self.held.take()
            }
            Message::Close(_) | Message::Frame(_) => self.held.empty(),
        };
        Ok((message, held))
    }

    /// The frame that answers a close, which was the last message.
    pub(crate) async fn farewell(&mut self) -> Vec<u8> {
        poll_fn(|context| {
            // An error here means that the connection is closed, which is the goal.
            let _closed = self.step(context, |protocol, wire| protocol.flush(wire));
            Poll::Ready(std::mem::take(&mut self.replies))
        })
        .await
    }

    fn step<T>(
        &mut self,
        context: &mut Context<'_>,
        step: impl FnOnce(&mut WebSocketContext, &mut Wire<'_, '_, BufReader<R>>) -> T,
    ) -> T {
        let mut wire = Wire {
            from: &mut self.from,
            context,
            replies: &mut self.replies,
            frame: &mut self.frame,
            turn: &mut self.turn,
            held: &mut self.held,
        };
        step(&mut self.context, &mut wire)
    }
}

fn context() -> WebSocketContext {
    let config = WebSocketConfig::default()
        .read_buffer_size(WEB_SOCKET_BUFFER)
        .max_message_size(Some(WEB_MESSAGE_BYTES))
        .max_frame_size(Some(WEB_MESSAGE_BYTES));
    WebSocketContext::new(Role::Server, Some(config))
}

/// Bytes of the head of a control frame of a client: two, and a mask.
const CONTROL_HEAD: usize = 6;

/// How much of a frame is still to come (RFC 6455, 5.2). Only the length matters here; the protocol checks the rest.
#[derive(Debug, Default)]
struct FrameEnd {
    head: [u8; 14],
    /// Bytes of the head that came; 0 between frames.
    seen: usize,
    /// Bytes of the payload that are to come.
    left: u64,
}

impl FrameEnd {
    /// Bytes that may be read before something has to be decided.
    fn wanted(&self) -> usize {
        match self.left {
            0 => self.head_length() - self.seen,
            left => usize::try_from(left).unwrap_or(usize::MAX),
        }
    }

    fn head_length(&self) -> usize {
        if self.seen < 2 {
            return 2;
        }
        let [_, second, ..] = self.head;
        let more = match second & 0x7f {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        2 + more + if second & 0x80 == 0 { 0 } else { 4 }
    }

    /// Handles bytes that were read, at most as many as requested. Returns the length of the payload when the head is
    /// complete.
    fn saw(&mut self, bytes: &[u8]) -> Option<u64> {
        if self.left > 0 {
            self.left = self.left.saturating_sub(bytes.len() as u64);
            return None;
        }
        let room = self.head.get_mut(self.seen..).unwrap_or_default();
        for (to, from) in room.iter_mut().zip(bytes) {
            *to = *from;
        }
        self.seen += bytes.len();
        if self.seen < self.head_length() {
            return None;
        }
        let [_, second, long @ ..] = self.head;
        let [a, b, c, d, e, f, g, h, ..] = long;
        let length = match second & 0x7f {
            126 => u64::from(u16::from_be_bytes([a, b])),
            127 => u64::from_be_bytes([a, b, c, d, e, f, g, h]),
            short => u64::from(short),
        };
        (self.seen, self.left) = (0, length);
        Some(length)
    }
}

/// The connection as the protocol sees it: it reads from there, and what it writes waits until other frames are through.
struct Wire<'a, 'b, R> {
    from: &'a mut R,
    context: &'a mut Context<'b>,
    replies: &'a mut Vec<u8>,
    frame: &'a mut FrameEnd,
    turn: &'a mut u32,
    held: &'a mut Reservation,
}

impl<R> Wire<'_, '_, R> {
    /// Ends the client's turn after a number of reads: frames of a few bytes, such as pongs, come out of the buffer of the
    /// connection by the ten thousand without waiting for anything, and each costs as much as a long one.
    fn is_turn_over(&mut self) -> bool {
        match self.turn.checked_sub(1) {
            Some(left) => {
                *self.turn = left;
                false
            }
            None => {
                *self.turn = WEB_FRAMES_AT_ONCE;
                self.context.waker().wake_by_ref();
                true
            }
        }
    }

    /// Charges bytes that came. A frame whose length says already that it does not fit is refused at once.
    fn charge(&mut self, bytes: &[u8]) -> Result<(), Full> {
        self.held.grow(bytes.len())?;
        let length = self.frame.saw(bytes).unwrap_or_default();
        // Longer ones break a rule of the protocol, which says so itself.
        match usize::try_from(length) {
            Ok(length) if length <= WEB_MESSAGE_BYTES && !self.held.could_grow(length) => Err(Full),
            _ => Ok(()),
        }
    }
}

impl<R: AsyncRead + Unpin> Read for Wire<'_, '_, R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.is_turn_over() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        // Never beyond the end of the frame, so that `next` can free the message's buffer.
        let wanted = self.frame.wanted().min(bytes.len());
        let mut buffer = ReadBuf::new(bytes.get_mut(..wanted).unwrap_or_default());
        match Pin::new(&mut *self.from).poll_read(self.context, &mut buffer) {
            Poll::Ready(read) => {
                read?;
                self.charge(buffer.filled()).map_err(|Full| full())?;
                Ok(buffer.filled().len())
            }
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
    payload: FrameText,
}

impl Frame {
    fn new(kind: u8, payload: FrameText) -> Self {
        let bytes = payload.len();
        let length = (bytes as u64).to_be_bytes();
        let (short, long) = match bytes {
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
            payload: Bytes::from(bytes).into(),
        }
    }

    fn len(&self) -> usize {
        self.head_length + self.payload.len()
    }

    /// Its bytes after the first `skip`.
    fn pieces(&self, skip: usize) -> impl Iterator<Item = &[u8]> {
        let head = self.head.get(skip..self.head_length).unwrap_or_default();
        let rest = self.payload.after(skip.saturating_sub(self.head_length));
        std::iter::once(head).chain(rest)
    }
}

/// Frames that wait to be written to a client.
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
    pub(crate) fn text(&mut self, text: impl Into<FrameText>) {
        self.frames.push_back(Frame::new(TEXT, text.into()));
    }

    /// A ping comes next.
    pub(crate) fn ping(&mut self) {
        self.frames.push_back(Frame::new(PING, Bytes::new().into()));
    }

    /// The end comes next: a code of RFC 6455 and a reason of less than 120 bytes.
    pub(crate) fn close(&mut self, code: u16, reason: &str) {
        let payload = [&code.to_be_bytes(), reason.as_bytes()].concat();
        self.frames
            .push_back(Frame::new(CLOSE, Bytes::from(payload).into()));
    }

    /// Frames come next that are bytes already.
    pub(crate) fn replies(&mut self, frames: Vec<u8>) {
        if !frames.is_empty() {
            self.frames.push_back(Frame::made(frames));
        }
    }

    /// Returns true if no frame waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Writes all waiting frames. Cancel-safe: the rest still waits, to the byte.
    ///
    /// # Errors
    /// When the connection takes nothing any more.
    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        poll_fn(|context| {
            while !self.frames.is_empty() {
                ready!(self.write(context))?;
            }
            // Frees the memory of a burst, which the connection would otherwise keep.
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
