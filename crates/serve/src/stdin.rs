//! The thread that reads commands: lines, parsed, in their order. Which of them overtakes others is decided where they are
//! carried out.

use std::io::Read;
use std::sync::Arc;
use std::thread;

use session::{ClientId, RequestSender};

use crate::budget::{Budget, Held};
use crate::codec::{Line, LineReader};
use crate::error::Error;
use crate::intake;
use crate::limits::{INPUT_QUEUE_BYTES, IO_STACK, MAX_LINE};
use crate::manner::Spoken;
use crate::parse::{Inbound, parse_line, too_long};

/// What the reader accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StdinOptions {
    /// Longest line, in bytes.
    pub max_line: usize,
    /// Bytes of lines that may wait.
    pub queue_bytes: usize,
}

impl Default for StdinOptions {
    fn default() -> Self {
        Self {
            max_line: MAX_LINE,
            queue_bytes: INPUT_QUEUE_BYTES,
        }
    }
}

/// Starts the thread that reads commands into a session's slot, and listens for their dialect. It ends at the end of the input, when reading fails (which
/// counts as the end), or when the session is gone and another line comes.
///
/// # Errors
/// When the thread cannot be started.
pub fn spawn(
    input: impl Read + Send + 'static,
    slot: RequestSender,
    spoken: Spoken,
    options: StdinOptions,
) -> Result<(), Error> {
    spawn_with(input, options, move |inbound, held| {
        // Before the line is acted on: its response is to be in the dialect that the line has shown.
        let manner = spoken.hear(&inbound);
        if matches!(inbound, Inbound::Eof) {
            // Dropping the slot is what ends the session.
            return false;
        }
        let Some((mail, session)) = intake::mail(inbound, manner, ClientId::default()) else {
            return true;
        };
        slot.put(mail, session, held)
    })
}

/// Like `spawn`, with any receiver. `deliver` takes a line with its share of the byte budget, and may block. It returns
/// false to end the thread.
pub(crate) fn spawn_with(
    input: impl Read + Send + 'static,
    options: StdinOptions,
    deliver: impl Fn(Inbound, Held) -> bool + Send + 'static,
) -> Result<(), Error> {
    // A thread of its own: reads of a pipe block, and asynchronous reads of a terminal or file are a thread as well.
    let budget = Budget::new(options.queue_bytes);
    thread::Builder::new()
        .name("stdin".to_owned())
        .stack_size(IO_STACK)
        .spawn(move || read(input, options.max_line, &budget, deliver))
        .map_err(Error::Thread)?;
    Ok(())
}

fn read(input: impl Read, max_line: usize, budget: &Arc<Budget>, deliver: impl Fn(Inbound, Held) -> bool) {
    let mut lines = LineReader::with_limit(input, max_line);
    // An input that cannot be read any more is over.
    while let Ok(Some(line)) = lines.next_line() {
        let (inbound, bytes) = match line {
            Line::Text(line) => (parse_line(line), line.len()),
            // Nothing of the line is kept.
            Line::TooLong => (too_long(max_line), 0),
        };
        if !deliver(inbound, budget.hold(bytes)) {
            return;
        }
    }
    deliver(Inbound::Eof, budget.hold(0));
}
