//! The `read` tool (pi-core.md 5.2): a window of a text file, or an image. Reads as a stream, so that the size of the file
//! does not matter; images are sniffed and shrunk in `image`.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use tokio_util::sync::CancellationToken;
use wire::{Dialect, ToolResult};

use crate::args::Args;
use crate::binary;
use crate::image;
use crate::limits::{self, MAX_BYTES, MAX_LINES};
use crate::text::truncate::{self, Totals, TruncatedBy, Truncation};
use crate::text::{format_size, system_error};

/// The error for a directory in the place of a file (pi-core.md 5.2), with advice.
pub(crate) const DIRECTORY: &str =
    "EISDIR: illegal operation on a directory, read\nThis is a directory. Use ls to list it.";

/// What a call asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    /// First line, from 1.
    pub(crate) offset: usize,
    /// Lines at most.
    pub(crate) limit: Option<usize>,
    /// Decides whether `details.truncation` counts the empty line after the last line feed, as pi 0.74 does and 1.5.2 does not
    /// (recorded: tool-read-truncate-lines).
    pub(crate) dialect: Dialect,
}

impl Window {
    /// Reads validated arguments. An offset below 1 counts as 1. Models write a negative limit for no limit.
    pub(crate) fn of(args: &Args, dialect: Dialect) -> Self {
        Self {
            dialect,
            offset: args.count("offset", 1).unwrap_or(1),
            limit: args
                .count("limit", 0)
                .filter(|_| args.number("limit").is_some_and(|limit| limit >= 0.0)),
        }
    }
}

/// How images are treated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ImageRules {
    /// Shrink images that are too large.
    pub(crate) resize: bool,
    /// True if the model accepts images.
    pub(crate) seen: bool,
}

/// Reads a file. `shown` is the path as the model wrote it. Blocks.
pub(crate) fn read(
    path: &Path,
    shown: &str,
    window: Window,
    images: ImageRules,
    cancel: &CancellationToken,
) -> Result<ToolResult, String> {
    let (mut file, size) = open(path)?;
    let failed = |error: io::Error| system_error::text_open(&error, "read");
    let mut head = Vec::new();
    (&mut file)
        .take(limits::SNIFF_BYTES as u64)
        .read_to_end(&mut head)
        .map_err(failed)?;
    let kind = image::sniff(&head).or_else(|| image::is_bmp(&head).then_some(image::BMP));
    if let Some(mime) = kind {
        if size > limits::IMAGE_FILE_MAX {
            let (size, max) = (format_size(size), format_size(limits::IMAGE_FILE_MAX));
            return Err(format!("The image is {size}, larger than {max}: {shown}"));
        }
        let mut bytes = head;
        file.take(limits::IMAGE_FILE_MAX)
            .read_to_end(&mut bytes)
            .map_err(failed)?;
        let preference = window.dialect.into();
        return Ok(image::result(
            &bytes,
            mime,
            images.resize,
            images.seen,
            preference,
        ));
    }
    if let Some(kind) = binary::kind(&head) {
        return Ok(ToolResult::text(binary::report(kind, size, shown)));
    }
    file.rewind().map_err(failed)?;
    let scan = Scan::run(&mut file, window, cancel)?;
    text_result(scan, shown, window)
}

/// Shows a window of a text that the caller has read, in the format of a file.
pub(crate) fn read_text(text: &str, shown: &str, window: Window) -> Result<ToolResult, String> {
    let scan = Scan::run(&mut text.as_bytes(), window, &CancellationToken::new())?;
    text_result(scan, shown, window)
}

/// Opens a regular file without ever waiting for a writer.
fn open(path: &Path) -> Result<(File, u64), String> {
    let failed = |error: io::Error| system_error::text(&error, "access", path);
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)
        .map_err(failed)?;
    let meta = file.metadata().map_err(failed)?;
    if meta.is_dir() {
        return Err(DIRECTORY.to_owned());
    }
    if !meta.is_file() {
        return Err(format!("Not a regular file: {}", path.display()));
    }
    Ok((file, meta.len()))
}

/// What one pass over the file found.
#[derive(Debug, Default)]
struct Scan {
    /// Lines of the file. A line feed at the end does not begin another line; an empty file has one line.
    file_lines: u64,
    /// The beginning of the wanted lines.
    kept: Vec<u8>,
    /// Counts of all wanted lines.
    wanted: Totals,
    /// Bytes of the first wanted line.
    first_line: u64,
}

impl Scan {
    fn run(file: &mut impl io::Read, window: Window, cancel: &CancellationToken) -> Result<Self, String> {
        let start = window.offset as u64 - 1;
        let stop = window
            .limit
            .map_or(u64::MAX, |limit| start.saturating_add(limit as u64));
        let mut scan = Self::default();
        let (mut feeds, mut scanned, mut last) = (0_u64, 0_u64, None);
        let mut buffer = vec![0; limits::READ_BUFFER];
        loop {
            if cancel.is_cancelled() {
                return Err("Operation aborted".to_owned());
            }
            let got = match file.read(&mut buffer) {
                Ok(0) => break,
                Ok(got) => got,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(system_error::text_open(&error, "read")),
            };
            scanned += got as u64;
            if scanned > limits::READ_SCAN_MAX {
                let max = format_size(limits::READ_SCAN_MAX);
                return Err(format!(
                    "The file is larger than {max}. Use bash to look into it."
                ));
            }
            let bytes = buffer.get(..got).unwrap_or_default();
            let count = memchr::memchr_iter(b'\n', bytes).count() as u64;
            if feeds + count >= start && feeds < stop {
                scan.take(bytes, feeds, start, stop);
            }
            feeds += count;
            last = bytes.last().copied();
        }
        scan.file_lines = feeds + u64::from(last != Some(b'\n'));
        // The line feed that ends the last wanted line belongs to the next one.
        if scan.file_lines > stop && scan.wanted.ends_in_newline {
            scan.wanted.bytes -= 1;
            scan.wanted.newlines -= 1;
            if scan.kept.len() as u64 > scan.wanted.bytes {
                scan.kept.pop();
            }
            scan.wanted.ends_in_newline = false;
        }
        Ok(scan)
    }

    /// Takes what lies in lines `start..stop` of a piece that begins in line `line`.
    fn take(&mut self, bytes: &[u8], line: u64, start: u64, stop: u64) {
        let nth = |n: u64| match usize::try_from(n) {
            Ok(0) | Err(_) => None,
            Ok(n) => memchr::memchr_iter(b'\n', bytes).nth(n - 1).map(|at| at + 1),
        };
        let from = if line >= start {
            0
        } else {
            nth(start - line).unwrap_or(bytes.len())
        };
        let to = nth(stop - line).unwrap_or(bytes.len());
        let wanted = bytes.get(from..to).unwrap_or_default();
        if wanted.is_empty() {
            return;
        }
        if self.wanted.newlines == 0 {
            self.first_line += memchr::memchr(b'\n', wanted).unwrap_or(wanted.len()) as u64;
        }
        self.wanted.bytes += wanted.len() as u64;
        self.wanted.newlines += memchr::memchr_iter(b'\n', wanted).count() as u64;
        self.wanted.ends_in_newline = wanted.ends_with(b"\n");
        let room = (2 * MAX_BYTES).saturating_sub(self.kept.len()).min(wanted.len());
        self.kept
            .extend_from_slice(wanted.get(..room).unwrap_or_default());
    }
}

fn text_result(scan: Scan, shown: &str, window: Window) -> Result<ToolResult, String> {
    let (offset, total) = (window.offset as u64, scan.file_lines);
    if offset > total {
        return Err(format!(
            "Offset {offset} is beyond end of file ({total} lines total)"
        ));
    }
    let text = String::from_utf8_lossy(&scan.kept);
    // If all wanted lines are in memory, count the shown text: an invalid byte takes three bytes once it is replaced.
    let all = scan.kept.len() as u64 == scan.wanted.bytes;
    let totals = if all {
        Totals {
            bytes: text.len() as u64,
            ..scan.wanted
        }
    } else {
        scan.wanted
    };
    if window.limit == Some(0) {
        return Ok(ToolResult::text(format!(
            "\n\n{}",
            more_lines(total - offset + 1, offset)
        )));
    }
    let mut cut = truncate::head(&text, totals, MAX_LINES);
    if cut.truncated {
        let text = cut_text(&cut, scan.first_line, shown, offset, total);
        if window.dialect.is_newest_pi() && totals.ends_in_newline {
            cut.total_lines -= 1;
        }
        let mut result = ToolResult::text(text);
        result.details = Some(serde_json::json!({ "truncation": cut.to_value() }));
        return Ok(result);
    }
    let next = offset.saturating_add(window.limit.map_or(u64::MAX, |limit| limit as u64));
    let rest = (total + 1).saturating_sub(next);
    if rest > 0 {
        return Ok(ToolResult::text(format!(
            "{}\n\n{}",
            cut.content,
            more_lines(rest, next)
        )));
    }
    Ok(ToolResult::text(cut.content))
}

fn more_lines(rest: u64, next: u64) -> String {
    format!("[{rest} more lines in file. Use offset={next} to continue.]")
}

fn cut_text(cut: &Truncation, first_line: u64, shown: &str, offset: u64, total: u64) -> String {
    let limit = format_size(MAX_BYTES as u64);
    if cut.first_line_exceeds_limit {
        let size = format_size(first_line);
        return format!(
            "[Line {offset} is {size}, exceeds {limit} limit. Use bash: sed -n '{offset}p' {shown} | head -c {MAX_BYTES}]"
        );
    }
    let last = offset + cut.output_lines - 1;
    let by = if cut.truncated_by == Some(TruncatedBy::Bytes) {
        format!(" ({limit} limit)")
    } else {
        String::new()
    };
    let next = last + 1;
    format!(
        "{}\n\n[Showing lines {offset}-{last} of {total}{by}. Use offset={next} to continue.]",
        cut.content
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(content: &[u8], offset: usize, limit: Option<usize>) -> Result<ToolResult, String> {
        run_in(Dialect::Auto, content, offset, limit)
    }

    fn run_in(
        dialect: Dialect,
        content: &[u8],
        offset: usize,
        limit: Option<usize>,
    ) -> Result<ToolResult, String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, content).unwrap();
        let images = ImageRules {
            resize: true,
            seen: true,
        };
        read(
            &path,
            "f",
            Window {
                offset,
                limit,
                dialect,
            },
            images,
            &CancellationToken::new(),
        )
    }

    #[test]
    fn negative_limit_is_no_limit() {
        for (limit, expected) in [(-1, None), (0, Some(0)), (3, Some(3))] {
            let args = serde_json::Map::from_iter([("limit".to_owned(), serde_json::json!(limit))]);
            assert_eq!(Window::of(&Args::new(args), Dialect::Auto).limit, expected);
        }
    }

    fn lines(n: usize) -> String {
        (1..=n).map(|i| format!("line {i}\n")).collect()
    }

    #[test]
    fn read_windows_match_recording() {
        // tool-read-offset-limit and tool-read-errors, with the true counts of lines
        let ten = lines(10);
        for (offset, limit, text) in [
            (
                1,
                Some(3),
                "line 1\nline 2\nline 3\n\n[7 more lines in file. Use offset=4 to continue.]",
            ),
            (
                4,
                Some(3),
                "line 4\nline 5\nline 6\n\n[4 more lines in file. Use offset=7 to continue.]",
            ),
            (9, None, "line 9\nline 10\n"),
            (10, Some(100), "line 10\n"),
            (
                1,
                Some(1),
                "line 1\n\n[9 more lines in file. Use offset=2 to continue.]",
            ),
            (10, Some(1), "line 10\n"),
            (
                1,
                Some(0),
                "\n\n[10 more lines in file. Use offset=1 to continue.]",
            ),
        ] {
            let result = run(ten.as_bytes(), offset, limit).unwrap();
            assert_eq!(
                (result.joined_text().as_str(), &result.details),
                (text, &None),
                "{offset} {limit:?}"
            );
        }
        assert_eq!(run(b"", 1, None).unwrap().joined_text(), "");
        assert_eq!(
            run(ten.as_bytes(), 11, None).unwrap_err(),
            "Offset 11 is beyond end of file (10 lines total)"
        );
        assert_eq!(run(b"a\xffb", 1, None).unwrap().joined_text(), "a\u{fffd}b");
    }

    #[test]
    fn truncation_of_newest_pi_counts_true_lines() {
        for (dialect, lines_counted) in [(Dialect::PiDelta, 3000), (Dialect::Auto, 3001)] {
            let result = run_in(dialect, lines(3000).as_bytes(), 1, None).unwrap();
            assert_eq!(result.details.unwrap()["truncation"]["totalLines"], lines_counted);
        }
        let unended = run_in(Dialect::PiDelta, lines(3000).trim_end().as_bytes(), 1, None).unwrap();
        assert_eq!(unended.details.unwrap()["truncation"]["totalLines"], 3000);
    }

    #[test]
    fn read_truncation_matches_recording() {
        // tool-read-truncate-lines; the details count lines as pi does
        let text = lines(3000);
        for limit in [None, Some(2500)] {
            let result = run(text.as_bytes(), 1, limit).unwrap();
            let shown = result.joined_text();
            assert!(
                shown.ends_with("line 2000\n\n[Showing lines 1-2000 of 3000. Use offset=2001 to continue.]")
            );
            assert_eq!(shown.len(), 18_954);
            let record = &result.details.unwrap()["truncation"];
            let (total, bytes) = if limit.is_some() {
                (2500, 23_892)
            } else {
                (3001, 28_893)
            };
            assert_eq!(
                (&record["totalLines"], &record["totalBytes"]),
                (&total.into(), &bytes.into())
            );
        }
        assert_eq!(
            run(text.as_bytes(), 2001, None).unwrap().joined_text().len(),
            10_000
        );
        assert_eq!(run(lines(2000).as_bytes(), 1, None).unwrap().details, None);
        let wide = format!("{}\n", "x".repeat(999)).repeat(100);
        let shown = run(wide.as_bytes(), 1, None).unwrap().joined_text();
        assert!(
            shown.ends_with("x\n\n[Showing lines 1-51 of 100 (50.0KB limit). Use offset=52 to continue.]")
        );
        let huge = format!("a\n{}\n", "x".repeat(300_000));
        assert_eq!(
            run(huge.as_bytes(), 2, None).unwrap().joined_text(),
            "[Line 2 is 293.0KB, exceeds 50.0KB limit. Use bash: sed -n '2p' f | head -c 51200]"
        );
    }

    #[test]
    fn empty_lines_count_in_windows() {
        for (offset, limit, text) in [
            (
                1,
                Some(2),
                "\n\n\n[2 more lines in file. Use offset=3 to continue.]",
            ),
            (3, Some(2), "\nx\n"),
            (
                2,
                Some(1),
                "\n\n[2 more lines in file. Use offset=3 to continue.]",
            ),
        ] {
            let shown = run(b"\n\n\nx\n", offset, limit).unwrap().joined_text();
            assert_eq!(shown, text, "{offset} {limit:?}");
        }
    }

    #[test]
    fn binary_files_are_reported_not_shown() {
        let zip = [b"PK\x03\x04".as_slice(), &[0; 2044]].concat();
        assert_eq!(
            run(&zip, 1, None).unwrap().joined_text(),
            "[Binary file: ZIP archive, 2.0KB. read shows text and images only. Use bash to look into it: file f; xxd f | head]"
        );
        let latin = "caf\u{e9} "
            .repeat(50)
            .chars()
            .map(|c| c as u8)
            .collect::<Vec<u8>>();
        assert!(
            run(&latin, 1, None)
                .unwrap()
                .joined_text()
                .starts_with("caf\u{fffd} ")
        );
    }

    #[test]
    fn read_shows_long_files_in_any_window() {
        let text = lines(100_000);
        let all: Vec<&str> = text.split('\n').collect();
        for offset in [1, 2, 31_999, 32_000, 99_999, 100_000] {
            for limit in [1, 7, 1000] {
                let shown = run(text.as_bytes(), offset, Some(limit)).unwrap().joined_text();
                let end = (offset - 1 + limit).min(all.len());
                let expected = all[offset - 1..end].join("\n");
                let body = shown.split("\n\n[").next().unwrap().trim_end();
                assert_eq!(body, expected.trim_end(), "{offset} {limit}");
            }
        }
    }

    #[test]
    fn hostile_files_fail_read_immediately() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("fifo");
        assert!(
            std::process::Command::new("mkfifo")
                .arg(&fifo)
                .status()
                .unwrap()
                .success()
        );
        let window = Window {
            offset: 1,
            limit: None,
            dialect: Dialect::Auto,
        };
        let images = ImageRules {
            resize: true,
            seen: true,
        };
        let run = |path: &Path| read(path, "x", window, images, &CancellationToken::new()).unwrap_err();
        assert_eq!(run(&fifo), format!("Not a regular file: {}", fifo.display()));
        assert_eq!(run(Path::new("/dev/zero")), "Not a regular file: /dev/zero");
        assert_eq!(run(dir.path()), DIRECTORY);
        let missing = dir.path().join("none");
        let text = format!(
            "ENOENT: no such file or directory, access '{}'",
            missing.display()
        );
        assert_eq!(run(&missing), text);
        let cancel = CancellationToken::new();
        cancel.cancel();
        let aborted = read(Path::new("/proc/self/status"), "x", window, images, &cancel);
        assert_eq!(aborted.unwrap_err(), "Operation aborted");
    }
}
