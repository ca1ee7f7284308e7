//! Lines to the child. The agent never blocks on a child that does not read: lines are queued up to a bound, and beyond
//! that the child is ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use crate::error::ProcessError;
use crate::limits;
use crate::line::ToChild;

/// Takes lines; clones share the way.
#[derive(Debug, Clone)]
pub(super) struct LineWriter {
    /// Bounded by `unread`, not by its count.
    queue: mpsc::UnboundedSender<Vec<u8>>,
    unread: Arc<AtomicUsize>,
    /// Told when lines were read.
    read: Arc<Notify>,
    end: CancellationToken,
}

impl LineWriter {
    /// Starts writing. Closes the child's input at `end`, or when all senders are dropped. Cancels `end` if the child has closed it.
    pub(super) fn start(input: Box<dyn AsyncWrite + Send + Unpin>, end: CancellationToken) -> Self {
        let (queue, lines) = mpsc::unbounded_channel();
        let unread = Arc::new(AtomicUsize::new(0));
        let read = Arc::new(Notify::new());
        let done = (Arc::clone(&unread), Arc::clone(&read));
        tokio::spawn(write(input, lines, done, end.clone()));
        Self {
            queue,
            unread,
            read,
            end,
        }
    }

    /// Waits until the child has read most of what it was sent, or is gone.
    pub(super) async fn room(&self) {
        loop {
            let read = self.read.notified();
            if self.unread.load(Ordering::Relaxed) <= limits::STREAM_UNREAD {
                return;
            }
            tokio::select! {
                () = read => {}
                () = self.end.cancelled() => return,
            }
        }
    }

    /// Queues a line.
    ///
    /// # Errors
    /// When the line is longer than the child reads. The child would skip it and never answer.
    pub(super) fn send(&self, line: &ToChild<'_>) -> Result<(), ProcessError> {
        let mut bytes = serde_json::to_vec(line).map_err(|error| ProcessError::Odd(error.to_string()))?;
        if bytes.len() > limits::MAX_LINE {
            return Err(ProcessError::TooLong { size: bytes.len() });
        }
        bytes.push(b'\n');
        let size = bytes.len();
        // Counted in bytes, since one line may have megabytes.
        if self.unread.fetch_add(size, Ordering::Relaxed) + size > limits::UNREAD_BYTES {
            self.end.cancel();
            return Ok(());
        }
        // The send fails only after the child's end, which fails all pending requests.
        let _gone = self.queue.send(bytes);
        Ok(())
    }
}

async fn write(
    mut input: Box<dyn AsyncWrite + Send + Unpin>,
    mut lines: mpsc::UnboundedReceiver<Vec<u8>>,
    (unread, read): (Arc<AtomicUsize>, Arc<Notify>),
    end: CancellationToken,
) {
    let writing = async {
        while let Some(line) = lines.recv().await {
            let done = input.write_all(&line).await;
            unread.fetch_sub(line.len(), Ordering::Relaxed);
            read.notify_waiters();
            if done.is_err() || (lines.is_empty() && input.flush().await.is_err()) {
                return;
            }
        }
    };
    let broken = async {
        writing.await;
        // The pipe of a child that ended is broken, too, and its last lines are read first.
        tokio::time::sleep(limits::LAST_WORDS).await;
    };
    tokio::select! {
        // Requests that the child cannot read would wait as long as it writes anything.
        () = broken => end.cancel(),
        () = end.cancelled() => {}
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn child_that_closes_its_input_is_ended() {
        let (input, theirs) = tokio::io::duplex(64);
        let end = CancellationToken::new();
        let lines = LineWriter::start(Box::new(input), end.clone());
        drop(theirs);
        lines.send(&ToChild::Ping { id: 1 }).unwrap();
        let ended = tokio::time::timeout(Duration::from_secs(60), end.cancelled()).await;
        assert!(ended.is_ok());
    }
}
