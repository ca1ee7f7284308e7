//! Output of an agent, read as it comes. It counts lines and keeps only the heads of lines that a caller may wait for.
//! Updates of a message or a tool are counted and dropped, so that reading costs little compared with the agent's own
//! work.

use std::io::{BufRead, BufReader, Read};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use std::sync::Arc;

use super::limits::LINE_HEAD;

/// Bytes read at once.
const PIECE: usize = 256 << 10;

/// The beginning of an output line.
#[derive(Debug)]
pub(super) struct Head {
    /// At most [`LINE_HEAD`] bytes of it.
    pub(super) text: String,
    /// When it was complete.
    pub(super) at: Instant,
}

impl Head {
    /// The first `type` in it, which is the line's own in every agent that writes it in front.
    pub(super) fn kind(&self) -> &str {
        kind(&self.text)
    }

    /// The session that it names.
    pub(super) fn session(&self) -> Option<&str> {
        field(&self.text, "\"session\":")
    }

    /// What an update adds to a text.
    pub(super) fn delta(&self) -> Option<&str> {
        field(&self.text, "\"delta\":")
    }

    /// Returns true for the answer to the command with this id.
    pub(super) fn answers(&self, id: &str) -> bool {
        self.kind() == "response" && field(&self.text, "\"id\":") == Some(id)
    }
}

fn kind(text: &str) -> &str {
    field(text, "\"type\":").unwrap_or_default()
}

/// The first text that follows `key`, with or without a space between them.
fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(key)?;
    let (value, _) = rest.trim_start().strip_prefix('"')?.split_once('"')?;
    Some(value)
}

/// Counts of the reading thread.
#[derive(Debug, Default)]
pub(super) struct Counts {
    bytes: AtomicU64,
    paused: AtomicBool,
}

impl Counts {
    /// Bytes read in all.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Stops reading after the piece that is being waited for, or goes on.
    pub(super) fn pause(&self, paused: bool) {
        self.paused.store(paused, Ordering::Relaxed);
    }

    fn wait(&self) {
        while self.paused.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Reads `pipe` in a thread of its own until it ends. Updates with `mark` in their heads are kept.
pub(super) fn read(
    pipe: impl Read + Send + 'static,
    mark: Option<&'static str>,
) -> (Arc<Counts>, Receiver<Head>) {
    let counts = Arc::new(Counts::default());
    let (sender, heads) = channel();
    let own = Arc::clone(&counts);
    thread::spawn(move || lines(&mut BufReader::with_capacity(PIECE, pipe), &own, &sender, mark));
    (counts, heads)
}

fn lines(pipe: &mut impl BufRead, counts: &Counts, heads: &Sender<Head>, mark: Option<&str>) {
    let mut head = Vec::new();
    loop {
        counts.wait();
        head.clear();
        let Ok(read) = pipe.by_ref().take(LINE_HEAD).read_until(b'\n', &mut head) else {
            return;
        };
        let rest = match head.last() {
            None => return,
            Some(b'\n') => Ok(0),
            Some(_) => pipe.skip_until(b'\n'),
        };
        let whole = read + rest.unwrap_or(0);
        counts.bytes.fetch_add(whole as u64, Ordering::Relaxed);
        let text = String::from_utf8_lossy(&head);
        if matches!(kind(&text), "message_update" | "tool_execution_update")
            && !mark.is_some_and(|mark| text.contains(mark))
        {
            continue;
        }
        let head = Head {
            text: text.into_owned(),
            at: Instant::now(),
        };
        if heads.send(head).is_err() {
            return;
        }
    }
}
