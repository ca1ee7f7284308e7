//! Output of an agent: reads its pipes, cuts lines, keeps a bounded number of them, waits for more. `agent` and `steps`
//! decide what to wait for.

use std::collections::{HashMap, VecDeque};
use std::io::{ErrorKind, Read};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::limits::{CONTEXT_CHARS, CONTEXT_LINES, KEPT_STDERR, READ_PIECE};

/// One line of output.
#[derive(Debug, Clone)]
pub struct Line {
    /// Position among all lines, counted from 0.
    pub n: u64,
    /// When it was read, counted from the start of the agent.
    pub at: Duration,
    /// Size without the line end, bytes.
    pub bytes: usize,
    /// The JSON value; `{"$raw": text}` if the line is no JSON, `{"$overlong": bytes}` if it was too long to keep.
    pub value: Arc<Value>,
    /// The line was JSON.
    pub json: bool,
}

/// Why waiting found no line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missed {
    /// The time is over.
    Late,
    /// The output has ended.
    Ended,
}

/// Everything that was printed, shared between the reading threads and the test.
#[derive(Debug)]
pub(super) struct Output {
    started: Instant,
    max_line: usize,
    kept_output: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    lines: VecDeque<Line>,
    /// Where the first response with an `id` stands.
    responses: HashMap<String, u64>,
    kept: usize,
    total: u64,
    bytes: u64,
    paused: bool,
    closed: bool,
    ended: bool,
    cursor: u64,
    stderr: VecDeque<u8>,
    stderr_ended: bool,
}

impl Output {
    pub(super) fn new(max_line: usize, kept_output: usize, paused: bool) -> Self {
        let state = State {
            paused,
            ..State::default()
        };
        let (state, changed) = (Mutex::new(state), Condvar::new());
        Self {
            started: Instant::now(),
            max_line,
            kept_output,
            state,
            changed,
        }
    }

    /// Reads stdout until its end.
    pub(super) fn read_stdout(&self, mut pipe: impl Read) {
        let mut cutter = Cutter::new(self.max_line);
        let mut buffer = vec![0_u8; READ_PIECE];
        loop {
            if !self.wait_unpaused() {
                break;
            }
            let n = match pipe.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => n,
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            let piece = buffer.get(..n).unwrap_or_default();
            self.store(cutter.feed(piece), n);
        }
        let rest = cutter.rest();
        self.store(rest.into_iter().collect(), 0);
        self.lock().ended = true;
        self.changed.notify_all();
    }

    /// Reads stderr until its end.
    pub(super) fn read_stderr(&self, mut pipe: impl Read) {
        let mut buffer = vec![0_u8; READ_PIECE];
        loop {
            match pipe.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => {
                    let mut state = self.lock();
                    state.stderr.extend(buffer.get(..n).unwrap_or_default());
                    let over = state.stderr.len().saturating_sub(KEPT_STDERR);
                    state.stderr.drain(..over);
                    self.changed.notify_all();
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        self.lock().stderr_ended = true;
    }

    /// Stops or goes on reading stdout.
    pub(super) fn set_paused(&self, paused: bool) {
        self.lock().paused = paused;
        self.changed.notify_all();
    }

    /// Lets the reading thread end even if it is paused.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    /// The lines that are still kept.
    pub(super) fn lines(&self) -> Vec<Line> {
        self.lock().lines.iter().cloned().collect()
    }

    /// Number of lines and bytes read in all.
    pub(super) fn totals(&self) -> (u64, u64) {
        let state = self.lock();
        (state.total, state.bytes)
    }

    pub(super) fn stderr(&self) -> String {
        let mut state = self.lock();
        String::from_utf8_lossy(state.stderr.make_contiguous()).into_owned()
    }

    /// True once stderr has been read to its end.
    pub(super) fn stderr_ended(&self) -> bool {
        self.lock().stderr_ended
    }

    /// True once stdout has been read to its end.
    pub(super) fn ended(&self) -> bool {
        self.lock().ended
    }

    /// Moves the place from which [`Self::wait`] looks behind everything read so far.
    pub(super) fn skip(&self) {
        let mut state = self.lock();
        state.cursor = state.total;
    }

    /// Waits for the `count`th line that `fits`. With `from_start` all kept lines are looked at and the place stays
    /// where it is; otherwise the place moves behind the line found.
    pub(super) fn wait(
        &self,
        timeout: Duration,
        from_start: bool,
        count: u64,
        mut fits: impl FnMut(&Value) -> bool,
    ) -> Result<Line, Missed> {
        let end = Instant::now() + timeout;
        let mut state = self.lock();
        let mut next = if from_start { 0 } else { state.cursor };
        let mut found = 0;
        loop {
            while let Some(line) = state.from(next) {
                next = line.n + 1;
                // The test's function may be slow or ask for the output itself, so it runs without the lock.
                drop(state);
                found += u64::from(fits(&line.value));
                state = self.lock();
                if found >= count.max(1) {
                    if !from_start {
                        state.cursor = state.cursor.max(next);
                    }
                    return Ok(line);
                }
            }
            if state.ended {
                return Err(Missed::Ended);
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Missed::Late);
            }
            state = self
                .changed
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Waits for the first response with this `id`; the place for [`Self::wait`] stays.
    pub(super) fn wait_response(&self, timeout: Duration, id: &str) -> Result<Line, Missed> {
        let is_missing = |state: &mut State| !state.responses.contains_key(id) && !state.ended;
        let (state, waited) = self
            .changed
            .wait_timeout_while(self.lock(), timeout, is_missing)
            .unwrap_or_else(PoisonError::into_inner);
        let line = state
            .responses
            .get(id)
            .and_then(|n| state.from(*n).filter(|line| line.n == *n));
        line.ok_or(if waited.timed_out() {
            Missed::Late
        } else {
            Missed::Ended
        })
    }

    /// Waits until nothing was printed for `quiet`, or the output ended; false if that took longer than `timeout`.
    pub(super) fn wait_quiet(&self, quiet: Duration, timeout: Duration) -> bool {
        let end = Instant::now() + timeout;
        let mut state = self.lock();
        let mut seen = (state.bytes, Instant::now());
        loop {
            let now = Instant::now();
            if state.bytes != seen.0 {
                seen = (state.bytes, now);
            }
            let calm = (seen.1 + quiet).saturating_duration_since(now);
            if state.ended || calm.is_zero() {
                return true;
            }
            if now >= end {
                return false;
            }
            let left = calm.min(end - now);
            state = self
                .changed
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// The last lines and the end of stderr, for error messages.
    pub(super) fn context(&self) -> String {
        let state = self.lock();
        let skip = state.lines.len().saturating_sub(CONTEXT_LINES);
        let shown = state.lines.iter().skip(skip).map(|l| {
            let text: String = l.value.to_string().chars().take(CONTEXT_CHARS).collect();
            format!("\n  {text}")
        });
        let mut out = format!(
            "; {} lines so far, the last:{}",
            state.total,
            shown.collect::<String>()
        );
        if !state.stderr.is_empty() {
            let skip = state.stderr.len().saturating_sub(CONTEXT_CHARS * 8);
            let tail: Vec<u8> = state.stderr.iter().skip(skip).copied().collect();
            out.push_str("\n  stderr: ");
            out.push_str(&String::from_utf8_lossy(&tail));
        }
        out
    }

    fn wait_unpaused(&self) -> bool {
        let state = self.lock();
        let waited = self.changed.wait_while(state, |s| s.paused && !s.closed);
        !waited.unwrap_or_else(PoisonError::into_inner).closed
    }

    fn store(&self, lines: Vec<Cut>, read: usize) {
        let at = self.started.elapsed();
        let parsed: Vec<_> = lines.into_iter().map(parse).collect();
        let mut state = self.lock();
        state.bytes += read as u64;
        for (value, json, bytes) in parsed {
            let line = Line {
                n: state.total,
                at,
                bytes,
                value: Arc::new(value),
                json,
            };
            let value = &line.value;
            if let (Some("response"), Some(id)) = (value["type"].as_str(), value["id"].as_str()) {
                state.responses.entry(id.to_owned()).or_insert(line.n);
            }
            state.total += 1;
            state.kept += bytes;
            state.lines.push_back(line);
        }
        while state.kept > self.kept_output && state.lines.len() > 1 {
            let gone = state.lines.pop_front().map_or(0, |l| l.bytes);
            state.kept = state.kept.saturating_sub(gone);
        }
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The first kept line whose number is at least `n`.
    fn from(&self, n: u64) -> Option<Line> {
        let first = self.lines.front()?.n;
        self.lines
            .get(usize::try_from(n.saturating_sub(first)).ok()?)
            .cloned()
    }
}

/// A line as cut from the stream: its text, or only its size if it was too long.
enum Cut {
    Text(Vec<u8>),
    Overlong(usize),
}

fn parse(cut: Cut) -> (Value, bool, usize) {
    match cut {
        Cut::Overlong(n) => (json!({"$overlong": n}), false, n),
        Cut::Text(text) => match serde_json::from_slice(&text) {
            Ok(value) => (value, true, text.len()),
            Err(_) => (json!({"$raw": String::from_utf8_lossy(&text)}), false, text.len()),
        },
    }
}

/// Cuts a byte stream at LF (only there, as the protocol wants it); a CR in front of it is dropped.
struct Cutter {
    line: Vec<u8>,
    size: usize,
    max: usize,
}

impl Cutter {
    fn new(max: usize) -> Self {
        Self {
            line: Vec::new(),
            size: 0,
            max,
        }
    }

    fn feed(&mut self, mut piece: &[u8]) -> Vec<Cut> {
        let mut lines = Vec::new();
        while let Some(at) = memchr::memchr(b'\n', piece) {
            let (text, rest) = piece.split_at(at);
            self.add(text);
            lines.push(self.take());
            piece = rest.get(1..).unwrap_or_default();
        }
        self.add(piece);
        lines
    }

    fn add(&mut self, text: &[u8]) {
        self.size += text.len();
        if self.size <= self.max {
            self.line.extend_from_slice(text);
        }
    }

    /// What stands at the end without a line end.
    fn rest(mut self) -> Option<Cut> {
        (self.size > 0).then(|| self.take())
    }

    fn take(&mut self) -> Cut {
        let mut line = std::mem::take(&mut self.line);
        let size = std::mem::take(&mut self.size);
        if size > self.max {
            return Cut::Overlong(size);
        }
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        Cut::Text(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_lines_split_at_lf_only() {
        let text = "{\"a\":\"\u{2028}\"}\r\n\nlast".as_bytes();
        for at in 0..text.len() {
            let out = Output::new(100, 1000, false);
            let (a, b) = text.split_at(at);
            out.read_stdout(a.chain(b));
            let lines = out.lines();
            assert_eq!(lines.len(), 3, "cut at {at}");
            assert_eq!(lines[0].value["a"], "\u{2028}");
            assert_eq!(lines[2].value["$raw"], "last");
            assert!(out.ended());
        }
    }

    #[test]
    fn driver_output_is_bounded() {
        let out = Output::new(10, 30, false);
        let text = format!("{}\n{}", "x".repeat(50), "\"12345678\"\n".repeat(20));
        out.read_stdout(text.as_bytes());
        let lines = out.lines();
        assert_eq!(lines.len(), 3);
        assert_eq!(lines[0].n, 18);
        assert_eq!(out.totals(), (21, text.len() as u64));

        let out = Output::new(10, 1000, false);
        out.read_stdout(text.as_bytes());
        assert_eq!(out.lines()[0].value["$overlong"], 50);
    }
}
