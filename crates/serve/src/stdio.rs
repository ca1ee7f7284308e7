//! File descriptors: fd 1 is moved so that no other code can write to it, reads and writes work on descriptors that another
//! process made non-blocking, and a hang-up is noticed without writing. No protocol here.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::thread;

use rustix::event::{PollFd, PollFlags, poll};
use tokio::sync::mpsc;

#[cfg(target_os = "linux")]
use crate::limits::PIPE_BYTES;
use crate::limits::WATCH_STACK;

/// Takes the protocol's stdout for us and points fd 1 at stderr, so that nothing that prints by accident, in this process
/// or in a child that inherits fd 1, reaches the protocol. To be called once, before anything else runs.
///
/// # Errors
/// When a descriptor is not open.
pub fn take_stdout() -> io::Result<File> {
    // From 3 on: 0 to 2 stay standard streams even if the parent closed one of them. Close-on-exec: a child that kept it would
    // keep the client's pipe open after the agent has ended.
    let stdout: OwnedFd = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
    rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
    Ok(File::from(stdout))
}

/// Our own handle to stdin, without the buffer and lock of the standard library's.
///
/// # Errors
/// When stdin is not open.
pub fn open_stdin() -> io::Result<Patient> {
    // Close-on-exec: a child that read from it would take commands away.
    let stdin: OwnedFd = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    Ok(Patient(File::from(stdin)))
}

/// A file whose reads and writes wait even when another process that shares it made it non-blocking.
#[derive(Debug)]
pub struct Patient(pub(crate) File);

impl Read for Patient {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => wait(&self.0, PollFlags::IN)?,
                done => return done,
            }
        }
    }
}

impl Write for Patient {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        loop {
            match self.0.write(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => wait(&self.0, PollFlags::OUT)?,
                done => return done,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        // A file has no buffer of its own.
        Ok(())
    }
}

fn wait(file: &File, flags: PollFlags) -> io::Result<()> {
    match poll(&mut [PollFd::new(&file, flags)], None) {
        // After a signal the caller tries again and comes back here.
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Enlarges the buffer of a pipe. Other files, and pipes at the system's limit, stay unchanged.
pub(crate) fn widen(file: &File) {
    #[cfg(target_os = "linux")]
    {
        // Fails for files and sockets, and beyond the limit of the user: then the size stays, which is only slower.
        let _as_it_is = rustix::pipe::fcntl_setpipe_size(file, PIPE_BYTES);
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = file;
    }
}

/// Starts a thread that sleeps until the reader of `file` is gone, and reports that once. It ends when the other end of
/// `stop` is closed.
pub(crate) fn watch_hangup(
    file: File,
    stop: io::PipeReader,
    failures: mpsc::Sender<io::Error>,
) -> io::Result<()> {
    thread::Builder::new()
        .name("stdout-watch".to_owned())
        .stack_size(WATCH_STACK)
        .spawn(move || {
            loop {
                // No flags: poll reports a hang-up and errors in any case. Readiness to write would look like one here.
                let mut fds = [
                    PollFd::new(&file, PollFlags::empty()),
                    PollFd::new(&stop, PollFlags::empty()),
                ];
                match poll(&mut fds, None) {
                    Ok(0) | Err(rustix::io::Errno::INTR) => {}
                    Ok(_) => {
                        let [file, _] = fds;
                        if !file.revents().is_empty() {
                            // The receiver may be gone; then no caller waits for the error.
                            let _ = failures.try_send(io::Error::from(io::ErrorKind::BrokenPipe));
                        }
                        return;
                    }
                    // Not a thing that can hang up.
                    Err(_) => return,
                }
            }
        })
        .map(|_| ())
}
