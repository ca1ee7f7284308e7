//! The thread that writes batches of lines. There are [`BATCHES`] reusable buffers; a writer that waits for a free one
//! waits for the reader on the other side. `writer` fills them.

use std::fs::File;
use std::io::{self, Write};
use std::thread;

use tokio::sync::mpsc;

use crate::encode::Repeats;
use crate::error::Error;
use crate::limits::{BATCH_ALONE, BATCH_KEEP, BATCHES, IO_STACK};
use crate::stdio;

/// Lines, and parts of them that are written again.
type Batch = (Vec<u8>, Repeats);

/// A writing thread and its buffers. The thread ends when this is dropped and everything handed over was written.
#[derive(Debug)]
pub struct Sink {
    full: mpsc::Sender<Batch>,
    written: mpsc::Receiver<Vec<u8>>,
    failed: mpsc::Receiver<io::Error>,
    free: Vec<Vec<u8>>,
    /// True while a submitted batch is so long that memory must not hold a second one.
    is_full: bool,
    /// Ends the watching thread when it is dropped.
    watch: Option<io::PipeWriter>,
}

impl Sink {
    /// Starts a thread that writes to a pipe, socket, terminal or file, and a thread that notices at once when the
    /// other end is closed.
    ///
    /// # Errors
    /// When a thread cannot be started or the file cannot be duplicated.
    pub fn open(file: File) -> Result<Self, Error> {
        stdio::widen(&file);
        // A descriptor of its own: the writing thread may close its one while the watcher polls.
        let watched = file.try_clone().map_err(Error::Thread)?;
        let (stop, watch) = io::pipe().map_err(Error::Thread)?;
        let (mut sink, failures) = Self::start(stdio::Patient(file))?;
        stdio::watch_hangup(watched, stop, failures).map_err(Error::Thread)?;
        sink.watch = Some(watch);
        Ok(sink)
    }

    /// Starts a thread that writes to anything. That the other end was closed is noticed at the next write.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn from_writer(output: impl Write + Send + 'static) -> Result<Self, Error> {
        Self::start(output).map(|(sink, _)| sink)
    }

    fn start(output: impl Write + Send + 'static) -> Result<(Self, mpsc::Sender<io::Error>), Error> {
        // A thread and not async writes: a pipe or file may block, and the thread of the sessions must not.
        let (full, batches) = mpsc::channel(BATCHES);
        let (back, written) = mpsc::channel(BATCHES);
        // One place for the thread, one for the watcher: neither ever waits.
        let (failures, failed) = mpsc::channel(2);
        let failure = failures.clone();
        thread::Builder::new()
            .name("stdout".to_owned())
            .stack_size(IO_STACK)
            .spawn(move || {
                if let Err(error) = write_all(output, batches, &back) {
                    // The receiver may be gone; then no caller waits for the error.
                    let _ = failure.try_send(error);
                }
            })
            .map_err(Error::Thread)?;
        let free = vec![Vec::new(); BATCHES];
        let sink = Self {
            full,
            written,
            failed,
            free,
            is_full: false,
            watch: None,
        };
        Ok((sink, failures))
    }

    /// An empty buffer; waits until one was written if need be.
    ///
    /// # Errors
    /// When writing failed.
    pub async fn buffer(&mut self) -> Result<Vec<u8>, Error> {
        // Wait until the long batch is written, or memory would hold two of them.
        if std::mem::take(&mut self.is_full) {
            self.flush().await?;
        }
        match self.free.pop() {
            Some(buffer) => Ok(buffer),
            None => self.returned().await,
        }
    }

    /// A buffer that was written; waits for it.
    async fn returned(&mut self) -> Result<Vec<u8>, Error> {
        tokio::select! {
            // A buffer that was written counts even if the next write has failed since.
            biased;
            buffer = self.written.recv() => match buffer {
                Some(buffer) => Ok(buffer),
                None => Err(self.failure().await),
            },
            Some(error) = self.failed.recv() => Err(Error::from_write(error)),
        }
    }

    /// Hands a buffer over to be written; an empty one is only put back.
    ///
    /// # Errors
    /// When writing failed.
    pub async fn write(&mut self, buffer: Vec<u8>) -> Result<(), Error> {
        self.write_repeating(buffer, Repeats::default()).await
    }

    /// Hands a buffer over to be written, with parts of it that are written again.
    ///
    /// # Errors
    /// When writing failed.
    pub(crate) async fn write_repeating(&mut self, buffer: Vec<u8>, repeats: Repeats) -> Result<(), Error> {
        if buffer.is_empty() {
            self.free.push(buffer);
            return Ok(());
        }
        self.is_full |= buffer.len() > BATCH_ALONE;
        // There are as many places as buffers, so this never waits.
        match self.full.try_send((buffer, repeats)) {
            Ok(()) => Ok(()),
            Err(_) => Err(self.failure().await),
        }
    }

    /// Waits until everything handed over was written. A caller that drops the future can call it again.
    ///
    /// # Errors
    /// When writing failed.
    pub async fn flush(&mut self) -> Result<(), Error> {
        // With all buffers in hand, none is being written.
        while self.free.len() < BATCHES {
            let buffer = self.returned().await?;
            self.free.push(buffer);
        }
        Ok(())
    }

    /// Resolves when writing failed.
    pub async fn failure(&mut self) -> Error {
        match self.failed.recv().await {
            Some(error) => Error::from_write(error),
            // The thread ended without an error to report: it panicked, or another caller has taken the error.
            None => Error::Closed,
        }
    }
}

/// Writes batches until there are no more.
fn write_all(
    mut output: impl Write,
    mut batches: mpsc::Receiver<Batch>,
    back: &mpsc::Sender<Vec<u8>>,
) -> io::Result<()> {
    while let Some((mut buffer, repeats)) = batches.blocking_recv() {
        // One call per batch: a system call for each line would cost more than everything before it.
        repeats.write(&buffer, &mut output)?;
        output.flush()?;
        buffer.clear();
        // Frees the memory of a long batch.
        buffer.shrink_to(BATCH_KEEP);
        // There are as many places as buffers; a receiver that is gone wants none back.
        let _ = back.try_send(buffer);
    }
    Ok(())
}
