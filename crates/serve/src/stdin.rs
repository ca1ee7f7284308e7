//! The thread that reads commands: lines, parsed, into two bounded lanes. Who carries them out, and in which order, is
//! decided behind the lanes.

use std::io::Read;
use std::sync::Arc;
use std::thread;

use host::{Mail, Origin, Slot};
use wire::hosted::Frame;

use crate::budget::{Budget, Held};
use crate::codec::{Line, LineReader};
use crate::error::Error;
use crate::intake;
use crate::limits::{INPUT_QUEUE_BYTES, IO_STACK, MAX_LINE};
use crate::manner::Spoken;
use crate::parse::{Inbound, parse_line, session_of, too_long};

/// What the reader accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StdinOptions {
    /// Longest line, in bytes.
    pub max_line: usize,
    /// Bytes of lines that may wait in both lanes together.
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
    slot: Slot,
    spoken: Spoken,
    options: StdinOptions,
) -> Result<(), Error> {
    spawn_with(input, options, move |inbound, held| {
        let manner = spoken.hear(&inbound);
        let (mail, session) = match inbound {
            Inbound::Request(request) => {
                let origin = Origin {
                    id: request.id,
                    command: request.command.name(),
                };
                let mail = if request.command.is_of_connection() {
                    Mail::Connection(origin, request.command)
                } else {
                    Mail::Command(origin, intake::command(request.command, manner.dialect))
                };
                (mail, request.session)
            }
            Inbound::Rejected(response) => (Mail::Reject(intake::refusal(response, manner)), None),
            Inbound::Frame(name, line) => match Frame::parse(name, &line) {
                Some(frame) => (Mail::Frame(frame), session_of(&line)),
                // Answers to questions that nobody can have asked are ignored (dialects.md 2).
                None => return true,
            },
            // Dropping the slot is what ends the session.
            Inbound::Eof => return false,
        };
        slot.put(mail, session, held)
    })
}

/// The same with any receiver. `deliver` takes what came with its share of the bytes that may wait, and may block; false
/// ends the thread.
pub(crate) fn spawn_with(
    input: impl Read + Send + 'static,
    options: StdinOptions,
    deliver: impl Fn(Inbound, Held) -> bool + Send + 'static,
) -> Result<(), Error> {
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
            Line::TooLong => (too_long(max_line), 0),
        };
        if !deliver(inbound, budget.hold(bytes)) {
            return;
        }
    }
    deliver(Inbound::Eof, budget.hold(0));
}
