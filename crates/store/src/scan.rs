//! One session file to its line in a listing (pi-core.md 2.8), without building its entries. Directories are read in `list`.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::error::{Result, StoreError};
use crate::header::{self, HeaderLine};
use crate::limits::{ALL_TEXT, HEADER_LINE, MAX_LINE, PROBE_LINES, SCAN_CHUNK};
use crate::medium::open_regular;
use crate::stamp::iso_to_ms;

/// What a listing says about a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSummary {
    /// The session file.
    pub path: PathBuf,
    /// Session id.
    pub id: String,
    /// Working directory of the session; empty in files that do not say.
    pub cwd: String,
    /// Name the user gave it.
    pub name: Option<String>,
    /// Session it came from, as the header says.
    pub parent_session_path: Option<String>,
    /// Unix time in milliseconds at which it was begun; 0 when the header does not say.
    pub created: i64,
    /// Unix time in milliseconds of the newest user or assistant message, else `created`, else the file's own time.
    pub modified: i64,
    /// Number of messages of all roles on all branches.
    pub message_count: u64,
    /// Text of the first user message, or `(no messages)`.
    pub first_message: String,
    /// All user and assistant text, joined by blanks, when asked for; cut at [`ALL_TEXT`] bytes.
    pub all_messages_text: Option<String>,
}

/// A line as far as a listing needs it; contents stay unparsed.
#[derive(Deserialize)]
struct ScanLine<'a> {
    r#type: Option<String>,
    name: Option<Value>,
    timestamp: Option<Value>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ScanMessage<'a> {
    role: Option<String>,
    timestamp: Option<Value>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

/// Scans one session file; none when it is not a session. Takes no lock and changes nothing.
///
/// # Errors
/// [`StoreError::Missing`], [`StoreError::NotAFile`] or [`StoreError::Io`].
pub fn summarize(path: &Path, with_texts: bool) -> Result<Option<SessionSummary>> {
    let (file, _) = open_regular(path)?;
    let failed = |e| StoreError::io("cannot read", path, e);
    let changed = mtime(&file).map_err(failed)?;
    let mut scan = Scan {
        path,
        with_texts,
        head: Head::default(),
        summary: None,
        name_set: false,
    };
    each_line(file, |line| scan.line(line)).map_err(failed)?;
    Ok(scan.summary.map(|mut summary| {
        if summary.modified == 0 {
            summary.modified = if summary.created == 0 {
                changed
            } else {
                summary.created
            };
        }
        if summary.first_message.is_empty() {
            "(no messages)".clone_into(&mut summary.first_message);
        }
        summary
    }))
}

/// Reads only the header; none when it is not a session.
pub(crate) fn header_of(path: &Path) -> Result<Option<(HeaderLine, i64)>> {
    let (file, _) = open_regular(path)?;
    let failed = |e| StoreError::io("cannot read", path, e);
    let changed = mtime(&file).map_err(failed)?;
    let mut head = Head::default();
    let mut found = None;
    each_line(file.take(HEADER_LINE as u64), |line| {
        found = head.line(line, path);
        if found.is_some() || head.is_over() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })
    .map_err(failed)?;
    Ok(found.map(|header| (header, changed)))
}

/// Unix time in milliseconds of the last change of a file.
fn mtime(file: &File) -> io::Result<i64> {
    let since = file
        .metadata()?
        .modified()?
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    Ok(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Looks for the header at the beginning of a file, over damaged lines.
#[derive(Default)]
struct Head {
    lines: usize,
    foreign: bool,
}

impl Head {
    fn line(&mut self, line: &[u8], path: &Path) -> Option<HeaderLine> {
        let line = line.trim_ascii();
        if line.is_empty() {
            return None;
        }
        self.lines += 1;
        let map = serde_json::from_slice::<Map<String, Value>>(line).ok();
        if let Some(header) = map.as_ref().and_then(header::from_map) {
            return Some(header);
        }
        if self.lines == 1 && header::looks_like_header(line) {
            return Some(HeaderLine {
                header: header::rebuild(line, Some(path), ""),
                title: None,
            });
        }
        self.foreign |= map.is_some();
        None
    }

    fn is_over(&self) -> bool {
        self.foreign || self.lines >= PROBE_LINES
    }
}

struct Scan<'a> {
    path: &'a Path,
    with_texts: bool,
    head: Head,
    summary: Option<SessionSummary>,
    name_set: bool,
}

impl Scan<'_> {
    fn line(&mut self, line: &[u8]) -> ControlFlow<()> {
        let Some(summary) = &mut self.summary else {
            self.summary = self
                .head
                .line(line, self.path)
                .map(|head| begin(self.path, head, self.with_texts));
            let over = self.summary.is_none() && self.head.is_over();
            return if over {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            };
        };
        let text = String::from_utf8_lossy(line);
        let Ok(line) = serde_json::from_str::<ScanLine<'_>>(text.trim()) else {
            return ControlFlow::Continue(());
        };
        match (line.r#type.as_deref(), line.message) {
            (Some("session_info"), _) => {
                let name = line
                    .name
                    .as_ref()
                    .and_then(Value::as_str)
                    .map(str::trim)
                    .unwrap_or_default();
                summary.name = (!name.is_empty()).then(|| name.to_owned());
                self.name_set = true;
            }
            (Some("message"), Some(raw)) => message(summary, raw, line.timestamp.as_ref()),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

fn begin(path: &Path, head: HeaderLine, with_texts: bool) -> SessionSummary {
    let HeaderLine { header, title } = head;
    SessionSummary {
        path: path.to_path_buf(),
        created: iso_to_ms(&header.timestamp).unwrap_or_default(),
        id: header.id,
        cwd: header.cwd,
        name: title,
        parent_session_path: header.parent_session,
        modified: 0,
        message_count: 0,
        first_message: String::new(),
        all_messages_text: with_texts.then(String::new),
    }
}

fn message(summary: &mut SessionSummary, raw: &RawValue, entry_time: Option<&Value>) {
    summary.message_count += 1;
    let Ok(message) = serde_json::from_str::<ScanMessage<'_>>(raw.get()) else {
        return;
    };
    let role = message.role.as_deref().unwrap_or_default();
    if !matches!(role, "user" | "assistant") {
        return;
    }
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a time in milliseconds; a fraction is of no use"
    )]
    let own = message
        .timestamp
        .as_ref()
        .and_then(Value::as_f64)
        .map(|ms| ms as i64);
    let time = own.or_else(|| entry_time.and_then(Value::as_str).and_then(iso_to_ms));
    summary.modified = summary.modified.max(time.unwrap_or_default());
    let wants_first = role == "user" && summary.first_message.is_empty();
    let wants_all = summary
        .all_messages_text
        .as_ref()
        .is_some_and(|all| all.len() < ALL_TEXT);
    if !wants_first && !wants_all {
        return;
    }
    let text = message
        .content
        .map(|content| text_of(content.get()))
        .unwrap_or_default();
    if let Some(all) = summary
        .all_messages_text
        .as_mut()
        .filter(|_| !text.is_empty() && wants_all)
    {
        if !all.is_empty() {
            all.push(' ');
        }
        all.push_str(&text);
        all.truncate(all.floor_char_boundary(ALL_TEXT));
    }
    if wants_first {
        summary.first_message = text;
    }
}

/// The text of a message's content, text blocks joined by blanks.
fn text_of(content: &str) -> String {
    let mended = crate::repair::replace_lone_surrogates(content);
    match serde_json::from_str(mended.as_deref().unwrap_or(content)) {
        Ok(Value::String(text)) => text,
        Ok(Value::Array(blocks)) => {
            let texts = blocks
                .iter()
                .filter(|b| b.get("type").is_some_and(|kind| kind == "text"));
            let texts: Vec<&str> = texts
                .filter_map(|b| b.get("text").and_then(Value::as_str))
                .collect();
            texts.join(" ")
        }
        _ => String::new(),
    }
}

/// Calls `each` for every line, the last one included even without line feed; lines longer than [`MAX_LINE`] are left out.
fn each_line(file: impl Read, mut each: impl FnMut(&[u8]) -> ControlFlow<()>) -> io::Result<()> {
    let mut reader = BufReader::with_capacity(SCAN_CHUNK, file);
    let mut line = Vec::new();
    let mut too_long = false;
    loop {
        line.clear();
        let read = reader
            .by_ref()
            .take(MAX_LINE as u64 + 1)
            .read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(());
        }
        let ended = line.last() == Some(&b'\n');
        let whole = (ended || read <= MAX_LINE) && !too_long;
        too_long = !ended;
        if whole && each(&line).is_break() {
            return Ok(());
        }
    }
}
