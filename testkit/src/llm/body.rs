//! Writing one response body: compression, batching, pacing, cutting, chunk framing, gates and pauses, and
//! noticing that the client has gone. `encode` and `conn` make the content.

use std::io::Write;
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use super::expand::{self, Piece};
use super::fault::{Cut, CutHow, Framing, Pace};
use super::reply::Reply;
use super::shared::Shared;
use crate::limits::POLL;

/// Why a body was not written to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The client closed the connection or no longer reads.
    ClientGone,
    /// The script wants the connection to fail now.
    Dropped(CutHow),
    /// The server is being dropped.
    Shutdown,
}

/// Result of writing something.
pub(crate) type Step = Result<(), Stop>;

/// One response body being written.
pub(crate) struct Body<'a> {
    shared: &'a Shared,
    stream: &'a TcpStream,
    gzip: Option<GzEncoder<Vec<u8>>>,
    pending: Vec<u8>,
    batch: usize,
    cut: Option<Cut>,
    pace: Option<Pace>,
    delay: Duration,
    chunked: bool,
    sent: u64,
    /// All content is out; a client that leaves now has not missed anything.
    pub(crate) tail: bool,
}

impl<'a> Body<'a> {
    /// A streamed body for `reply`.
    pub(crate) fn stream(shared: &'a Shared, stream: &'a TcpStream, reply: &Reply) -> Self {
        Self {
            gzip: reply
                .gzip
                .then(|| GzEncoder::new(Vec::new(), Compression::best())),
            chunked: reply.framing == Framing::Chunked,
            ..Self::plain(shared, stream, reply)
        }
    }

    /// A body of known length for `reply`.
    pub(crate) fn plain(shared: &'a Shared, stream: &'a TcpStream, reply: &Reply) -> Self {
        Self {
            shared,
            stream,
            gzip: None,
            pending: Vec::new(),
            batch: reply.batch,
            cut: reply.cut,
            pace: reply.pace,
            delay: reply.chunk_delay.unwrap_or(shared.options.chunk_delay),
            chunked: false,
            sent: 0,
            tail: false,
        }
    }

    /// Body bytes written so far.
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    /// Writes the head, and fails at once if the script cuts at byte 0.
    pub(crate) fn head(&mut self, head: &str) -> Step {
        self.socket(head.as_bytes())?;
        match self.cut {
            Some(Cut { at: 0, how }) => self.fail(how),
            _ => Ok(()),
        }
    }

    /// Sends an event and makes the pause the script wants after each.
    pub(crate) fn send(&mut self, frame: &str) -> Step {
        self.send_now(frame)?;
        if self.delay.is_zero() {
            Ok(())
        } else {
            self.pause(self.delay)
        }
    }

    /// Sends an event, its marks replaced by what they stand for.
    pub(crate) fn send_now(&mut self, frame: &str) -> Step {
        let mut buffer = Vec::with_capacity(frame.len());
        for piece in expand::pieces(frame) {
            match piece {
                Piece::Text(text) => buffer.extend_from_slice(text.as_bytes()),
                Piece::Bytes(bytes) => buffer.extend_from_slice(&bytes),
                Piece::Fill(n) => self.blocks(&mut buffer, expand::fill_blocks(n))?,
                Piece::Noise(n) => self.blocks(&mut buffer, expand::noise_blocks(n))?,
            }
        }
        self.bytes(&buffer)?;
        if self.batch == 0 {
            self.flush_gzip()
        } else {
            Ok(())
        }
    }

    /// Waits at a gate.
    pub(crate) fn gate(&mut self, name: &str) -> Step {
        self.settle()?;
        self.shared.gates.reach(name);
        while !self.shared.gates.wait_open(name, POLL) {
            self.still_wanted()?;
        }
        Ok(())
    }

    /// Waits for some time.
    pub(crate) fn pause(&mut self, time: Duration) -> Step {
        self.settle()?;
        self.sleep(time)
    }

    /// Lets the connection fail here.
    pub(crate) fn fail(&mut self, how: CutHow) -> Step {
        self.settle()?;
        if how != CutHow::Stall {
            return Err(Stop::Dropped(how));
        }
        loop {
            thread::sleep(POLL);
            self.still_wanted()?;
        }
    }

    /// Writes a whole document.
    pub(crate) fn document(&mut self, data: &[u8]) -> Step {
        self.wire(data)
    }

    /// Ends the body.
    pub(crate) fn finish(&mut self) -> Step {
        if let Some(gzip) = self.gzip.take() {
            let rest = gzip.finish().map_err(|_| Stop::ClientGone)?;
            self.batched(&rest)?;
        }
        self.flush()?;
        if self.chunked {
            self.socket(b"0\r\n\r\n")
        } else {
            Ok(())
        }
    }

    fn blocks(&mut self, buffer: &mut Vec<u8>, blocks: impl Iterator<Item = Vec<u8>>) -> Step {
        self.bytes(&std::mem::take(buffer))?;
        for block in blocks {
            self.bytes(&block)?;
        }
        Ok(())
    }

    /// Content bytes, before compression.
    fn bytes(&mut self, data: &[u8]) -> Step {
        match &mut self.gzip {
            None => self.batched(data),
            Some(gzip) => {
                // Writing into memory cannot fail.
                let _ = gzip.write_all(data);
                let out = std::mem::take(gzip.get_mut());
                self.batched(&out)
            }
        }
    }

    /// Lets everything out that was sent so far, before a wait.
    fn settle(&mut self) -> Step {
        if self.batch > 0 {
            self.flush_gzip()?;
        }
        self.flush()
    }

    /// Flushes the compressor, so that the client can see the event.
    fn flush_gzip(&mut self) -> Step {
        let Some(gzip) = &mut self.gzip else { return Ok(()) };
        let _ = gzip.flush();
        let out = std::mem::take(gzip.get_mut());
        self.batched(&out)
    }

    fn batched(&mut self, data: &[u8]) -> Step {
        if self.batch == 0 {
            return self.wire(data);
        }
        self.pending.extend_from_slice(data);
        if self.pending.len() >= self.batch {
            self.flush()
        } else {
            Ok(())
        }
    }

    fn flush(&mut self) -> Step {
        let data = std::mem::take(&mut self.pending);
        self.wire(&data)
    }

    fn wire(&mut self, data: &[u8]) -> Step {
        let Some(pace) = self.pace else {
            return self.chunk(data);
        };
        for piece in data.chunks(pace.bytes.max(1)) {
            self.chunk(piece)?;
            self.sleep(pace.every)?;
        }
        Ok(())
    }

    fn sleep(&self, time: Duration) -> Step {
        let end = Instant::now() + time;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            thread::sleep(left.min(POLL));
            self.still_wanted()?;
        }
    }

    /// One chunk of the body, or as much of it as the cut allows.
    fn chunk(&mut self, data: &[u8]) -> Step {
        if data.is_empty() {
            return Ok(());
        }
        if self.batch == 0 {
            self.still_wanted()?;
        }
        let len = data.len() as u64;
        let cut = self.cut.filter(|c| self.sent + len >= c.at);
        let room = cut.map_or(len, |c| c.at.saturating_sub(self.sent));
        let (part, _) = data
            .split_at_checked(usize::try_from(room).unwrap_or(0))
            .unwrap_or((data, &[]));
        if self.chunked {
            let mut framed = format!("{len:x}\r\n").into_bytes();
            framed.extend_from_slice(part);
            framed.extend_from_slice(if cut.is_some() { b"" } else { b"\r\n" });
            self.socket(&framed)?;
        } else {
            self.socket(part)?;
        }
        self.sent += part.len() as u64;
        match cut {
            Some(cut) => {
                self.pending.clear();
                self.fail(cut.how)
            }
            None => Ok(()),
        }
    }

    fn socket(&self, data: &[u8]) -> Step {
        let mut out = self.stream;
        out.write_all(data).map_err(|_| {
            if self.shared.stopping() {
                Stop::Shutdown
            } else {
                Stop::ClientGone
            }
        })
    }

    /// Looks whether anybody still waits for this body.
    fn still_wanted(&self) -> Step {
        if self.shared.stopping() {
            return Err(Stop::Shutdown);
        }
        let mut byte = [0_u8; 1];
        match recv(
            self.stream,
            byte.as_mut_slice(),
            RecvFlags::PEEK | RecvFlags::DONTWAIT,
        ) {
            Ok((0, _)) => Err(Stop::ClientGone),
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => Ok(()),
            Err(_) => Err(Stop::ClientGone),
        }
    }
}

/// `data`, compressed.
pub(crate) fn gzip(data: &[u8]) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::best());
    // Writing into memory cannot fail.
    let _ = out.write_all(data);
    out.finish().unwrap_or_default()
}
