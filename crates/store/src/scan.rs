//! One session file to its line in a listing (pi-core.md 2.8), without building its entries. Directories are read in `list`,
//! lines that need no parsing are recognised in `glance`, earlier results are kept in `cache`.

use std::fs::{File, Metadata};
use std::io::{Read, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use wire::partial_json::PartialJson;

use crate::error::{Result, StoreError};
use crate::glance::{Glance, Speaker, glance};
use crate::header::{self, HeaderLine};
use crate::limits::{ALL_TEXT, HEADER_LINE, PROBE_LINES};
use crate::lines::{Line, each_line};
use crate::medium::open_to_read;
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
    title: Option<Value>,
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

/// Scans one session file; none when it is not a session. Takes no lock and changes nothing. A damaged line in the middle may
/// be counted as the message that it looks like.
///
/// # Errors
/// [`StoreError::Missing`], [`StoreError::NotAFile`] or [`StoreError::Io`].
pub fn summarize(path: &Path, with_texts: bool) -> Result<Option<SessionSummary>> {
    let (file, found) = open_to_read(path)?;
    let scanned = scan(&file, path, None, with_texts, &mut Vec::new())?;
    Ok(scanned.map(|scanned| scanned.finish(changed(&found))))
}

/// What a scan found in the whole lines of a file, so that it can be gone on with once more lines are there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scanned {
    /// The summary; `modified` is 0 and `first_message` empty as long as there is no message.
    pub(crate) summary: SessionSummary,
    /// Bytes up to the end of the last line that ended.
    pub(crate) end: u64,
}

impl Scanned {
    /// Fills what files without messages do not say. `changed` is the file's own time in Unix milliseconds.
    pub(crate) fn finish(self, changed: i64) -> SessionSummary {
        let mut summary = self.summary;
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
    }
}

/// Scans an open file, from where the scan `before` ended if there was one.
pub(crate) fn scan(
    mut file: &File,
    path: &Path,
    before: Option<Scanned>,
    with_texts: bool,
    buffer: &mut Vec<u8>,
) -> Result<Option<Scanned>> {
    let failed = |e| StoreError::io("cannot read", path, e);
    let start = before.as_ref().map_or(0, |before| before.end);
    if start > 0 {
        file.seek(SeekFrom::Start(start)).map_err(failed)?;
    }
    let mut scan = Scan {
        path,
        with_texts,
        head: Head::default(),
        summary: before.map(|before| before.summary),
    };
    let read = each_line(file, buffer, |line| scan.line(line)).map_err(failed)?;
    Ok(scan.summary.map(|summary| Scanned {
        summary,
        end: start + read,
    }))
}

/// Reads only the header; none when it is not a session.
pub(crate) fn header_of(path: &Path, buffer: &mut Vec<u8>) -> Result<Option<HeaderLine>> {
    let (file, _) = open_to_read(path)?;
    let mut head = Head::default();
    let mut found = None;
    each_line(file.take(HEADER_LINE as u64), buffer, |line| {
        let (Line::Whole(line) | Line::Cut(line, _)) = line;
        found = head.line(line, path);
        if found.is_some() || head.is_over() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })
    .map_err(|e| StoreError::io("cannot read", path, e))?;
    Ok(found)
}

/// Unix time in milliseconds of the last change of a file.
pub(crate) fn changed(found: &Metadata) -> i64 {
    i64::try_from(changed_ns(found) / 1_000_000).unwrap_or(i64::MAX)
}

/// Unix time in nanoseconds of the last change of a file; 0 where the system does not tell.
pub(crate) fn changed_ns(found: &Metadata) -> u64 {
    let since = found
        .modified()
        .ok()
        .and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    since.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

/// Looks for the header at the beginning of a file, over damaged lines.
#[derive(Default)]
struct Head {
    lines: usize,
    foreign: bool,
    /// What oh-my-pi says in a line before the header.
    title: Option<String>,
}

/// oh-my-pi's name of the session.
fn title_line(map: &Map<String, Value>) -> Option<String> {
    let is_title = map.get("type").is_some_and(|kind| kind == "title") && !map.contains_key("id");
    let title = map.get("title")?.as_str()?;
    is_title.then(|| title.to_owned())
}

impl Head {
    fn line(&mut self, line: &[u8], path: &Path) -> Option<HeaderLine> {
        let line = line.trim_ascii();
        if line.is_empty() {
            return None;
        }
        self.lines += 1;
        let map = serde_json::from_slice::<Map<String, Value>>(line).ok();
        if let Some(mut header) = map.as_ref().and_then(header::from_map) {
            header.title = header.title.or(self.title.take());
            return Some(header);
        }
        if let Some(title) = map.as_ref().and_then(title_line) {
            self.title = Some(title);
            return None;
        }
        // A damaged header still makes a session, as for `load`; without it the session would vanish from listings.
        if self.lines == 1 && header::looks_like_header(line) {
            return Some(HeaderLine {
                header: header::rebuild(line, Some(path), ""),
                title: None,
                mended: true,
            });
        }
        // JSON, but neither header nor title: some other file of lines.
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
}

impl Scan<'_> {
    fn line(&mut self, line: Line<'_>) -> ControlFlow<()> {
        let (Line::Whole(head) | Line::Cut(head, _)) = line;
        let Some(summary) = &mut self.summary else {
            self.summary = self
                .head
                .line(head, self.path)
                .map(|head| begin(self.path, head, self.with_texts));
            let over = self.summary.is_none() && self.head.is_over();
            return if over {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            };
        };
        // Of a very long line only both ends are kept. Type and role are at its beginning, the time is at its end.
        let joined = match line {
            Line::Whole(_) => Vec::new(),
            Line::Cut(head, tail) => [head, tail].concat(),
        };
        let seen = if joined.is_empty() { head } else { &joined };
        match glance(seen) {
            Glance::Nothing => {}
            // Most lines end here, unparsed; a listing reads every session of a project.
            Glance::Message(speaker, time) if !wants_text(summary, speaker) => {
                summary.message_count += 1;
                summary.modified = summary.modified.max(time);
            }
            Glance::Message(..) | Glance::Unsure if joined.is_empty() => parsed(summary, head),
            Glance::Message(_, time) => {
                parsed(summary, &completed(head));
                summary.modified = summary.modified.max(time);
            }
            Glance::Unsure => parsed(summary, &completed(head)),
        }
        ControlFlow::Continue(())
    }
}

/// The beginning of a line as a whole object: its text ends early, and what follows is missing.
fn completed(head: &[u8]) -> Vec<u8> {
    let mut partial = PartialJson::new();
    partial.push(&String::from_utf8_lossy(head));
    [partial.stable().as_bytes(), partial.closer().as_bytes()].concat()
}

/// Returns true while the summary still needs the text of a message by this speaker.
fn wants_text(summary: &SessionSummary, speaker: Speaker) -> bool {
    let wants_all = summary
        .all_messages_text
        .as_ref()
        .is_some_and(|all| all.len() < ALL_TEXT);
    match speaker {
        Speaker::User => wants_all || summary.first_message.is_empty(),
        Speaker::Assistant => wants_all,
        Speaker::Other => false,
    }
}

/// Takes what a line says after parsing it.
fn parsed(summary: &mut SessionSummary, line: &[u8]) {
    let text = String::from_utf8_lossy(line);
    let Ok(line) = serde_json::from_str::<ScanLine<'_>>(text.trim()) else {
        return;
    };
    match (line.r#type.as_deref(), line.message) {
        // The newest name counts. An empty one takes the name back.
        (Some("session_info"), _) => {
            let name = line.name.as_ref().and_then(Value::as_str);
            let name = name.map(str::trim).filter(|name| !name.is_empty());
            summary.name = name.map(str::to_owned);
        }
        (Some("title_change"), _) => {
            let title = line.title.as_ref().and_then(Value::as_str).map(str::trim);
            if let Some(title) = title {
                summary.name = (!title.is_empty()).then(|| title.to_owned());
            }
        }
        (Some("message"), Some(raw)) => message(summary, raw, line.timestamp.as_ref()),
        _ => {}
    }
}

fn begin(path: &Path, head: HeaderLine, with_texts: bool) -> SessionSummary {
    let HeaderLine { header, title, .. } = head;
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
    let speaker = match message.role.as_deref() {
        Some("user") => Speaker::User,
        Some("assistant") => Speaker::Assistant,
        _ => return,
    };
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
    if !wants_text(summary, speaker) {
        return;
    }
    let text = message
        .content
        .map(|content| text_of(content.get()))
        .unwrap_or_default();
    if let Some(all) = summary
        .all_messages_text
        .as_mut()
        .filter(|all| !text.is_empty() && all.len() < ALL_TEXT)
    {
        if !all.is_empty() {
            all.push(' ');
        }
        all.push_str(&text);
        all.truncate(all.floor_char_boundary(ALL_TEXT));
    }
    if speaker == Speaker::User && summary.first_message.is_empty() {
        summary.first_message = text;
    }
}

/// The text of a message's content, text blocks joined by blanks.
fn text_of(content: &str) -> String {
    // JavaScript writes halves of surrogate pairs; without this the whole text would be missing from the listing.
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
