//! Tests of the frames of a socket: what comes out is what went in, wherever the connection cuts it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use axum::body::Bytes;
use tokio::io::{AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tungstenite::{Error, Message};

use crate::frames::{Incoming, Outgoing};
use crate::memory::Memory;

/// Takes so many bytes at a time, and nothing every other time.
struct Narrow<'a> {
    width: usize,
    is_open: bool,
    taken: &'a mut Vec<u8>,
}

impl AsyncWrite for Narrow<'_> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.is_open = !self.is_open;
        if !self.is_open {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let length = bytes.len().min(self.width);
        self.taken.extend(&bytes[..length]);
        Poll::Ready(Ok(length))
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// What a client understands of these bytes.
fn understood(bytes: Vec<u8>) -> Vec<Message> {
    use tungstenite::protocol::{Role, WebSocket};
    let mut client = WebSocket::from_raw_socket(Duplex(io::Cursor::new(bytes)), Role::Client, None);
    let mut messages = Vec::new();
    while let Ok(message) = client.read() {
        messages.push(message);
    }
    messages
}

/// Reads from a buffer and discards written bytes.
struct Duplex(io::Cursor<Vec<u8>>);

impl io::Read for Duplex {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        io::Read::read(&mut self.0, bytes)
    }
}

impl io::Write for Duplex {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn frames_of_every_length_pass_any_connection() {
    for width in [1, 3, 1_000, 1_000_000] {
        let lengths = [0, 1, 125, 126, 127, 65_535, 65_536, 70_000];
        let texts: Vec<String> = lengths
            .into_iter()
            .filter(|length| *length <= width * 1_000)
            .map(|length| "x".repeat(length))
            .collect();
        let mut taken = Vec::new();
        let narrow = Narrow {
            width,
            is_open: false,
            taken: &mut taken,
        };
        let mut out = Outgoing::new(narrow);
        for text in &texts {
            out.text(text.clone());
        }
        // More of them than are written at once.
        for _ in 0..100 {
            out.text("y".to_owned());
        }
        out.ping();
        out.close(1001, "bye");
        out.flush().await.unwrap();
        assert!(out.is_empty());
        drop(out);
        let messages = understood(taken);
        let expected = texts.iter().cloned().chain(vec!["y".to_owned(); 100]);
        let came: Vec<String> = messages
            .iter()
            .take(texts.len() + 100)
            .map(|message| message.to_string())
            .collect();
        assert!(came == expected.collect::<Vec<_>>(), "width {width}");
        assert!(matches!(messages[texts.len() + 100], Message::Ping(_)));
        assert!(matches!(&messages[texts.len() + 101], Message::Close(Some(frame)) if frame.reason == "bye"));
    }
}

#[tokio::test]
async fn partly_written_frame_is_finished_before_next() {
    let (ours, mut theirs) = tokio::io::duplex(64);
    let mut out = Outgoing::new(ours);
    out.text("x".repeat(1_000));
    let begun = tokio::time::timeout(std::time::Duration::from_millis(20), out.flush()).await;
    assert!(begun.is_err(), "nobody reads");
    out.close(1001, "bye");
    let reading = tokio::spawn(async move {
        let mut all = Vec::new();
        theirs.read_to_end(&mut all).await.unwrap();
        all
    });
    out.flush().await.unwrap();
    drop(out);
    let messages = understood(reading.await.unwrap());
    assert_eq!(messages[0].to_string(), "x".repeat(1_000));
    assert!(matches!(&messages[1], Message::Close(Some(frame)) if frame.reason == "bye"));
}

/// A frame of a client; its mask is zero.
fn masked(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[0x80 | kind, 0x80 | body.len() as u8, 0, 0, 0, 0], body].concat()
}

#[tokio::test]
async fn pings_and_closes_are_answered() {
    let (ours, mut theirs) = tokio::io::duplex(1_000);
    let mut incoming = Incoming::new(ours, &Memory::default().account());
    let mut replies = Vec::new();
    theirs.write_all(&masked(9, b"are you there")).await.unwrap();
    theirs.write_all(&masked(1, b"{}")).await.unwrap();
    theirs
        .write_all(&masked(8, &1000u16.to_be_bytes()))
        .await
        .unwrap();
    let mut next = async || {
        incoming
            .next(|frames| replies.extend(frames))
            .await
            .map(|(message, _)| message)
    };
    assert!(matches!(next().await, Ok(Message::Ping(_))));
    assert_eq!(next().await.unwrap().into_data(), Bytes::from("{}"));
    assert!(matches!(next().await, Ok(Message::Close(Some(_)))));
    replies.extend(incoming.farewell().await);
    assert_eq!(&replies[..2], [0x8a, 13]);
    assert_eq!(&replies[2..15], b"are you there");
    assert_eq!(&replies[15..], [0x88, 2, 3, 232]);

    let (ours, mut theirs) = tokio::io::duplex(1_000);
    let mut incoming = Incoming::new(ours, &Memory::default().account());
    theirs.write_all(&[0x81, 1, b'x']).await.unwrap();
    assert!(
        matches!(incoming.next(drop).await, Err(Error::Protocol(_))),
        "no mask"
    );
}

#[tokio::test]
async fn flood_of_short_frames_lets_other_tasks_run() {
    let turns = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&turns);
    let other = tokio::spawn(async move {
        loop {
            counted.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    });
    let pong = [0x8a, 0x80, 0, 0, 0, 0];
    let empty_fragment = [0x00, 0x80, 0, 0, 0, 0];
    let fragments = [&[0x01, 0x80, 0, 0, 0, 0][..], &empty_fragment.repeat(10_000)].concat();
    // All bytes are there at once, so nothing else makes the reader wait.
    for flood in [pong.repeat(10_000), fragments] {
        let before = turns.load(Ordering::Relaxed);
        let mut incoming = Incoming::new(&flood[..], &Memory::default().account());
        while incoming.next(|_| ()).await.is_ok() {}
        let others = turns.load(Ordering::Relaxed) - before;
        assert!(others > 100, "{others}");
    }
    other.abort();
}
