//! The bytes of one connection of a web server, with facts that the layers above cannot see: received bytes, a stalled
//! writer, and a close that lets the client read the last bytes.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Sleep, sleep, timeout};

use crate::limits::{WEB_LINGER, WEB_SEND_WAIT};

/// Counts what came from a connection: a client that is in the middle of a long message answers no pings, but is there.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pulse(Arc<AtomicU64>);

impl Pulse {
    /// Another number than before means that something came.
    pub(crate) fn beats(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A connection that records activity, bounds stalled writes and closes gracefully.
pub(crate) struct Stream<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> {
    /// None once it is dropped.
    inner: Option<S>,
    pulse: Pulse,
    /// True after the end of the input.
    is_over: bool,
    /// When a write that makes no progress is given up.
    stuck: Option<Pin<Box<Sleep>>>,
    place: Option<OwnedSemaphorePermit>,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Stream<S> {
    /// Around `inner`. `place` is free again when the connection has ended.
    pub(crate) fn new(inner: S, place: Option<OwnedSemaphorePermit>) -> Self {
        Self {
            inner: Some(inner),
            pulse: Pulse::default(),
            is_over: false,
            stuck: None,
            place,
        }
    }

    pub(crate) fn pulse(&self) -> Pulse {
        self.pulse.clone()
    }

    fn inner(&mut self) -> io::Result<Pin<&mut S>> {
        let inner = self.inner.as_mut().map(Pin::new);
        inner.ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// A write that waits too long is an error: a reader that takes nothing for good must not keep its place.
    fn watched<T>(&mut self, context: &mut Context<'_>, outcome: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.stuck = None;
            return outcome;
        }
        let stuck = self.stuck.get_or_insert_with(|| Box::pin(sleep(WEB_SEND_WAIT)));
        ready!(stuck.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> AsyncRead for Stream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(self.inner()?.poll_read(context, buffer))?;
        if buffer.filled().len() > before {
            self.pulse.0.fetch_add(1, Ordering::Relaxed);
        } else if buffer.remaining() > 0 {
            self.is_over = true;
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> AsyncWrite for Stream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = self.inner()?.poll_write(context, bytes);
        self.watched(context, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = self.inner()?.poll_write_vectored(context, pieces);
        self.watched(context, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.as_ref().is_some_and(AsyncWrite::is_write_vectored)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner()?.poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner()?.poll_shutdown(context)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Drop for Stream<S> {
    /// Closing while unread bytes are there makes the system throw away what the other side has not read yet, and with it the
    /// reason why it is sent away. So the rest is read for a moment.
    fn drop(&mut self) {
        let (Some(inner), false) = (self.inner.take(), self.is_over) else {
            return;
        };
        let place = self.place.take();
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                let _gone = timeout(WEB_LINGER, linger(inner)).await;
                drop(place);
            });
        }
    }
}

/// Says that nothing more comes, and reads until the other side does so, too.
async fn linger(mut inner: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<()> {
    inner.shutdown().await?;
    let mut waste = [0; 1024];
    while inner.read(&mut waste).await? > 0 {}
    Ok(())
}
