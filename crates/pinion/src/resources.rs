//! Checks that the system lets this process open files and start threads. Without this check a low limit (`ulimit -n`,
//! `ulimit -u`, the process limit of a container) would show as a panic or a hang somewhere later.

use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::bail;

/// Files that a session without tools has open in addition to those of the start, rounded up.
const FILES: usize = 24;
/// Threads that a session without tools has in addition to the first one: input, output, its watch, file work.
const THREADS: usize = 4;
/// Bytes of stack of a thread that does nothing.
const STACK: usize = 64 << 10;

/// Fails if fewer files or threads are possible than a session needs.
///
/// # Errors
/// Says which limit is too low and what to do.
pub(crate) fn check() -> anyhow::Result<()> {
    let mut files = Vec::with_capacity(FILES);
    for _ in 0..FILES {
        match File::open("/") {
            Ok(file) => files.push(file),
            Err(error) if is_limit(&error) => bail!(
                "Only {} more files can be opened; at least {FILES} are needed: {error}. Raise the limit, for example with: \
                 ulimit -n 1024",
                files.len()
            ),
            // Says nothing about limits.
            Err(_) => break,
        }
    }
    drop(files);
    check_threads()
}

fn is_limit(error: &io::Error) -> bool {
    [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE]
        .iter()
        .any(|limit| error.raw_os_error() == Some(limit.raw_os_error()))
}

/// Starts all threads at the same time, since the limit counts live threads.
fn check_threads() -> anyhow::Result<()> {
    let gate = Arc::new(Mutex::new(()));
    let closed = gate.lock().unwrap_or_else(PoisonError::into_inner);
    let mut threads = Vec::with_capacity(THREADS);
    let mut refused = None;
    for _ in 0..THREADS {
        let gate = Arc::clone(&gate);
        let wait = move || drop(gate.lock());
        match thread::Builder::new().stack_size(STACK).spawn(wait) {
            Ok(thread) => threads.push(thread),
            Err(error) => {
                refused = Some(error);
                break;
            }
        }
    }
    drop(closed);
    let started = threads.len();
    for thread in threads {
        let _always_ends = thread.join();
    }
    match refused {
        None => Ok(()),
        Some(error) => bail!(
            "Only {started} more threads can be started; at least {THREADS} are needed: {error}. Raise the limit on processes, \
             for example with: ulimit -u 256"
        ),
    }
}
