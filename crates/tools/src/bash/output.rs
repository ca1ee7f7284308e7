//! Collects a command's output: counts all of it, keeps the end, logs the whole once it is long (pi-core.md 5.4).

use std::borrow::Cow;
use std::io::{Read as _, Seek as _};
use std::path::{Path, PathBuf};

use wire::Dialect;

use super::log::Log;
use crate::limits::{self, MAX_BYTES, MAX_LINES};
use crate::text::truncate::{Totals, Truncation, tail};

/// The output so far.
#[derive(Debug)]
pub(crate) struct Collector {
    tmp_dir: PathBuf,
    tail: Vec<u8>,
    /// True once the tail has lost its beginning.
    trimmed: bool,
    totals: Totals,
    /// Bytes of the last line and of the one before it.
    line_bytes: (u64, u64),
    log: Option<Log>,
    log_failed: bool,
    last_feed: LastFeed,
}

/// What the last line feed of a cut output is. pi changed it after 0.74 (pi-1.5-delta.md 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastFeed {
    /// It begins an empty line, which is shown and counted.
    BeginsLine,
    /// It ends the last line, and is not shown.
    EndsLine,
}

impl From<Dialect> for LastFeed {
    fn from(dialect: Dialect) -> Self {
        match dialect.is_newest_pi() {
            true => Self::EndsLine,
            false => Self::BeginsLine,
        }
    }
}

impl Collector {
    /// Nothing yet; a log would go to `tmp_dir`.
    pub(crate) fn new(tmp_dir: &Path, last_feed: LastFeed) -> Self {
        Self {
            last_feed,
            tmp_dir: tmp_dir.to_path_buf(),
            tail: Vec::new(),
            trimmed: false,
            totals: Totals::default(),
            line_bytes: (0, 0),
            log: None,
            log_failed: false,
        }
    }

    /// Takes the next bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.count(bytes);
        self.tail.extend_from_slice(bytes);
        match &mut self.log {
            Some(log) => log.push(bytes),
            None if !self.log_failed && !self.totals.fits(MAX_LINES) => self.open_log(),
            None => {}
        }
        if self.tail.len() > limits::TAIL_TRIM {
            self.tail.drain(..self.tail.len() - limits::TAIL_KEEP);
            self.trimmed = true;
        }
    }

    /// Begins the log. Nothing has been trimmed by then, so the tail is everything.
    fn open_log(&mut self) {
        match Log::create(&self.tmp_dir) {
            Ok(mut log) => {
                log.push(&self.tail);
                self.log = Some(log);
            }
            Err(_) => self.log_failed = true,
        }
    }

    fn count(&mut self, bytes: &[u8]) {
        let newlines = memchr::memchr_iter(b'\n', bytes).count() as u64;
        self.totals.bytes += bytes.len() as u64;
        self.totals.newlines += newlines;
        self.totals.ends_in_newline = bytes.last() == Some(&b'\n');
        let Some(last) = memchr::memrchr(b'\n', bytes) else {
            self.line_bytes.0 += bytes.len() as u64;
            return;
        };
        let (head, rest) = bytes.split_at_checked(last).unwrap_or_default();
        let before = match memchr::memrchr(b'\n', head) {
            Some(first) => (last - first - 1) as u64,
            None => self.line_bytes.0 + last as u64,
        };
        self.line_bytes = (rest.len() as u64 - 1, before);
    }

    /// Writes the log if it is due, or in any case.
    pub(crate) async fn flush(&mut self, all: bool) {
        // Broken bytes take more room once they are replaced, so that less than the limit can be too much.
        if all && self.log.is_none() && !self.log_failed && self.snapshot(true).truncated {
            self.open_log();
        }
        if let Some(log) = self.log.as_mut().filter(|log| all || log.is_due()) {
            log.flush().await;
        }
    }

    /// The end of the output, cut to the limits. A character whose rest is still to come is left out unless `done`.
    pub(crate) fn snapshot(&self, done: bool) -> Truncation {
        // Decoding never makes bytes fewer, so this much is enough for the limit and to see that it is passed.
        let from = if self.totals.fits(MAX_LINES) {
            0
        } else {
            self.tail.len().saturating_sub(MAX_BYTES + 8)
        };
        let bytes = self.tail.get(from..).unwrap_or_default();
        let bytes = if from > 0 || self.trimmed {
            whole_from(bytes)
        } else {
            bytes
        };
        let text = String::from_utf8_lossy(if done { bytes } else { whole_to(bytes) });
        // As in pi, whose decoder drops a byte order mark at the beginning.
        let is_whole = from == 0 && !self.trimmed;
        let text = match text.strip_prefix('\u{feff}').filter(|_| is_whole) {
            Some(rest) => Cow::Owned(rest.to_owned()),
            None => text,
        };
        // If all of it is in memory, count the shown text: an invalid byte takes three bytes once it is replaced.
        let totals = if is_whole { Totals::of(&text) } else { self.totals };
        match text.strip_suffix('\n') {
            Some(lines) if self.last_feed == LastFeed::EndsLine && !totals.fits(MAX_LINES) => {
                let totals = Totals {
                    newlines: totals.newlines.saturating_sub(1),
                    ends_in_newline: false,
                    ..totals
                };
                tail(lines, totals, MAX_LINES)
            }
            _ => tail(&text, totals, MAX_LINES),
        }
    }

    /// Where the whole output is, if it was logged. A log that lacks bytes, after an error or beyond its limit, does not count.
    pub(crate) fn path(&self) -> Option<String> {
        let whole = self.log.as_ref().filter(|log| log.length() == self.totals.bytes);
        whole.map(|log| log.path().to_string_lossy().into_owned())
    }

    /// The notice under a cut output (pi-core.md 5.4).
    pub(crate) fn notice(&self, cut: &Truncation) -> String {
        let place = match self.path() {
            Some(path) => format!("Full output: {path}"),
            None => "The full output could not be saved".to_owned(),
        };
        // The record counts the empty line after the last line feed, as pi 0.74 does; the notice does not.
        let is_counted = self.totals.ends_in_newline && self.last_feed == LastFeed::BeginsLine;
        let empty = u64::from(is_counted);
        let last = cut.total_lines.saturating_sub(empty);
        if cut.last_line_partial {
            let line = last;
            let bytes = match self.totals.ends_in_newline {
                true => self.line_bytes.1,
                false => self.line_bytes.0,
            };
            let (shown, full) = (
                crate::text::format_size(cut.output_bytes),
                crate::text::format_size(bytes),
            );
            return format!("[Showing last {shown} of line {line} (line is {full}). {place}]");
        }
        let first = last + 1 - cut.output_lines.saturating_sub(empty).min(last);
        let limit = match cut.truncated_by {
            Some(crate::text::truncate::TruncatedBy::Bytes) => {
                format!(" ({} limit)", crate::text::format_size(MAX_BYTES as u64))
            }
            _ => String::new(),
        };
        format!("[Showing lines {first}-{last} of {last}{limit}. {place}]")
    }
}

/// The whole output, or its beginning and its end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Whole {
    /// The text. A notice stands where bytes were left out.
    pub(crate) text: String,
    /// True if bytes were left out.
    pub(crate) truncated: bool,
}

impl Collector {
    /// The whole output once it has ended, or `max` bytes of it: half from the beginning, half from the end. Without a
    /// complete log, the end that is in memory.
    pub(crate) async fn whole(&self, max: u64) -> Whole {
        let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let is_in_memory = !self.trimmed && self.totals.bytes <= max;
        let path = self.log.as_ref().filter(|_| !is_in_memory);
        if let Some(path) = path.map(|log| log.path().to_path_buf())
            && let Ok(Ok((head, tail, size))) = tokio::task::spawn_blocking(move || ends(&path, max)).await
            && size == self.totals.bytes
        {
            let omitted = size.saturating_sub(max);
            let text = match omitted {
                0 => lossy(&head),
                _ => format!(
                    "{}\n\n[... {omitted} bytes omitted ...]\n\n{}",
                    lossy(whole_to(&head)),
                    lossy(whole_from(&tail))
                ),
            };
            let truncated = omitted > 0;
            return Whole { text, truncated };
        }
        let kept = if self.trimmed {
            whole_from(&self.tail)
        } else {
            &self.tail
        };
        Whole {
            text: lossy(kept),
            truncated: self.trimmed,
        }
    }
}

/// The first and last bytes of a file, `max` together, and its size.
fn ends(path: &Path, max: u64) -> std::io::Result<(Vec<u8>, Vec<u8>, u64)> {
    let mut file = std::fs::File::open(path)?;
    let size = file.metadata()?.len();
    let mut head = Vec::new();
    if size <= max {
        file.take(max).read_to_end(&mut head)?;
        return Ok((head, Vec::new(), size));
    }
    let mut tail = Vec::new();
    file.by_ref().take(max / 2).read_to_end(&mut head)?;
    let rest = max - max / 2;
    file.seek(std::io::SeekFrom::Start(size - rest))?;
    file.take(rest).read_to_end(&mut tail)?;
    Ok((head, tail, size))
}

/// Without the rest of a character whose beginning was cut off.
fn whole_from(bytes: &[u8]) -> &[u8] {
    let skip = bytes
        .iter()
        .take(3)
        .take_while(|byte| (**byte & 0xc0) == 0x80)
        .count();
    bytes.get(skip..).unwrap_or_default()
}

/// Without the beginning of a character whose end has not come.
fn whole_to(bytes: &[u8]) -> &[u8] {
    let open = bytes.utf8_chunks().last().map_or(0, |chunk| {
        let invalid = chunk.invalid();
        let cut = std::str::from_utf8(invalid).is_err_and(|error| error.error_len().is_none());
        if cut { invalid.len() } else { 0 }
    });
    bytes.get(..bytes.len() - open).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn collect(parts: &[&[u8]]) -> (Collector, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        let mut collector = Collector::new(dir.path(), LastFeed::BeginsLine);
        for part in parts {
            collector.push(part);
            collector.flush(false).await;
        }
        collector.flush(true).await;
        (collector, dir)
    }

    #[tokio::test]
    async fn short_bash_output_has_no_log() {
        let (c, dir) = collect(&[b"a\xff", b"\xe2\x82"]).await;
        assert_eq!(c.snapshot(false).content, "a\u{fffd}");
        assert_eq!(c.snapshot(true).content, "a\u{fffd}\u{fffd}");
        assert_eq!(
            (c.path(), std::fs::read_dir(dir.path()).unwrap().count()),
            (None, 0)
        );
    }

    #[tokio::test]
    async fn byte_order_mark_is_dropped_at_the_beginning() {
        let (c, _dir) = collect(&[b"\xef\xbb", b"\xbfa\n\xef\xbb\xbfb"]).await;
        assert_eq!(c.snapshot(true).content, "a\n\u{feff}b");
    }

    #[tokio::test]
    async fn whole_output_is_cut_in_the_middle() {
        let text = "\u{e9}".repeat(100_000);
        let (c, _dir) = collect(&[text.as_bytes()]).await;
        let whole = c.whole(200_000).await;
        assert_eq!((whole.text == text, whole.truncated), (true, false));
        let whole = c.whole(101).await;
        let half = "\u{e9}".repeat(25);
        let expected = format!("{half}\n\n[... 199899 bytes omitted ...]\n\n{half}");
        assert_eq!((whole.text, whole.truncated), (expected, true));
        let (c, _dir) = collect(&[b"a\xff"]).await;
        assert_eq!(c.whole(100).await.text, "a\u{fffd}");
    }

    #[tokio::test]
    async fn long_bash_output_is_logged_whole() {
        let text: String = (1..=60_000).map(|i| format!("line {i} \u{e9}\n")).collect();
        for size in [7, 4096, 1 << 20] {
            let parts: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
            let (c, _dir) = collect(&parts).await;
            let cut = c.snapshot(true);
            assert!(text.ends_with(&cut.content) && cut.content.starts_with("line 5"));
            assert_eq!((cut.total_lines, cut.total_bytes), (60_001, text.len() as u64));
            let path = c.path().unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
            let limit = if cut.truncated_by == Some(crate::text::truncate::TruncatedBy::Bytes) {
                " (50.0KB limit)"
            } else {
                ""
            };
            let first = 60_002 - cut.output_lines;
            let notice = format!("[Showing lines {first}-60000 of 60000{limit}. Full output: {path}]");
            assert_eq!(c.notice(&cut), notice);
        }
    }

    /// As in the recorded sessions bash-big-output and tool-bash-truncate-bytes of pi 1.5.2.
    #[tokio::test]
    async fn last_line_feed_ends_line_for_newest_pi() {
        let dir = tempfile::tempdir().unwrap();
        let mut c = Collector::new(dir.path(), LastFeed::from(Dialect::PiDelta));
        c.push(b"short\n");
        assert_eq!(c.snapshot(true).content, "short\n");
        let numbers: String = (1..=3000).map(|i| format!("{i}\n")).collect();
        let mut c = Collector::new(dir.path(), LastFeed::from(Dialect::PiDelta));
        c.push(numbers.as_bytes());
        let cut = c.snapshot(true);
        assert!(cut.content.starts_with("1001\n") && cut.content.ends_with("\n3000"));
        assert_eq!((cut.total_lines, cut.output_lines), (3000, 2000));
        assert!(c.notice(&cut).starts_with("[Showing lines 1001-3000 of 3000. "));
        let lines: String = (1..=400).map(|i| format!("{i} {}\n", "x".repeat(300))).collect();
        let mut c = Collector::new(dir.path(), LastFeed::from(Dialect::PiDelta));
        c.push(lines.as_bytes());
        let cut = c.snapshot(true);
        assert_eq!((cut.total_lines, cut.total_bytes), (400, 121_892));
        assert_eq!((cut.output_lines, cut.output_bytes), (167, 50_934));
    }

    #[tokio::test]
    async fn huge_last_line_is_cut_with_notice() {
        for (end, line) in [("", 2), ("\n", 2)] {
            let text = format!("first\n{}{end}", "q".repeat(200_000));
            let parts: Vec<&[u8]> = text.as_bytes().chunks(999).collect();
            let (c, _dir) = collect(&parts).await;
            let notice = c.notice(&c.snapshot(true));
            assert!(
                notice.starts_with(&format!(
                    "[Showing last 50.0KB of line {line} (line is 195.3KB). Full"
                )),
                "{notice}"
            );
        }
    }

    #[tokio::test]
    async fn binary_output_growing_by_decoding_is_logged() {
        let raw = [0xff_u8; 30_000];
        let (c, _dir) = collect(&[&raw]).await;
        assert!(c.snapshot(true).truncated);
        assert_eq!(std::fs::read(c.path().unwrap()).unwrap(), raw);
    }

    #[tokio::test]
    async fn log_that_lacks_bytes_is_not_named() {
        let (mut c, _dir) = collect(&[&b"x\n".repeat(3000)]).await;
        assert!(c.path().is_some());
        // Counted, but not in the log.
        c.count(b"y\n");
        let notice = c.notice(&c.snapshot(true));
        assert!(
            notice.ends_with("The full output could not be saved]"),
            "{notice}"
        );
    }

    #[tokio::test]
    async fn output_without_log_directory_is_reported() {
        let mut c = Collector::new(Path::new("/no/such/dir"), LastFeed::BeginsLine);
        c.push(&b"x\n".repeat(3000));
        let notice = c.notice(&c.snapshot(true));
        assert_eq!(
            notice,
            "[Showing lines 1002-3000 of 3000. The full output could not be saved]"
        );
    }
}
