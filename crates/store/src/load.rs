//! The bytes of a session file to entries, with recovery (pi-core.md 2.7). One line is read by `parse`; files are opened by
//! `medium`.

use std::io;
use std::path::Path;
use std::sync::Arc;

use wire::{EntryBody, SessionHeader};

use crate::damage::{Damage, SkippedLine};
use crate::forest::{Added, Forest, Span};
use crate::header::{self, HeaderLine};
use crate::limits::{HEADER_REMAINS, LOAD_BLOCK, PROBE_LINES};
use crate::medium::Medium;
use crate::parse::{self, Line, Parsed, Quality};
use crate::repair;
use crate::texts::Texts;
use crate::usual;

/// Reads lines into a forest. Used for the whole file on opening and for what other writers appended later.
#[derive(Debug, Default)]
pub(crate) struct Loader {
    /// The first header met.
    pub(crate) header: Option<HeaderLine>,
    /// The session's name in a line of its own.
    pub(crate) title: Option<String>,
    /// Position of the last entry met.
    pub(crate) last: Option<usize>,
    /// Number of the last line read.
    pub(crate) lines: u64,
    /// Entries that were in the forest before, with their lines; only noted while the end of an open file is read.
    pub(crate) known: Vec<(usize, Span)>,
    notes_known: bool,
    /// Whether the texts of messages are read.
    pub(crate) texts: Texts,
    /// Lines that were read without texts.
    pub(crate) without_texts: u64,
    /// The first line that says something, when it is unreadable: perhaps a damaged header.
    remains: Vec<u8>,
    spoken: u64,
}

/// How a run of lines ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tail {
    /// Bytes of whole lines, a whole last line without line feed included.
    pub(crate) whole: u64,
    /// Bytes after them: a line that was begun and never finished.
    pub(crate) torn: u64,
    /// True if the last whole line has no line feed.
    pub(crate) unterminated: bool,
}

/// What a file turned out to be.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// A session with this header.
    Session(Box<HeaderLine>),
    /// A session whose header had to be made anew.
    HeaderLost(Box<SessionHeader>),
    /// Nothing in it, or only the torn beginning of a header.
    Empty,
    /// Something else.
    NotASession,
}

impl Loader {
    /// A loader for lines that follow the first `lines` lines of a session.
    pub(crate) fn resume(lines: u64) -> Self {
        Self {
            lines,
            // Not the beginning of the file: no line here can be the remains of its header.
            spoken: lines.max(2),
            notes_known: true,
            ..Self::default()
        }
    }

    /// Reads the first `size` bytes of a medium, a block at a time.
    pub(crate) fn feed_all(
        &mut self,
        medium: &dyn Medium,
        size: u64,
        forest: &mut Forest,
        damage: &mut Damage,
    ) -> io::Result<Tail> {
        let (mut at, mut block) = (0, LOAD_BLOCK);
        loop {
            let left = size - at;
            let bytes = medium.read_at(at, usize::try_from(left).unwrap_or(usize::MAX).min(block))?;
            let ends_here = bytes.len() as u64 == left;
            // Up to the last line feed; the line after it is read again with the next block.
            let whole = match memchr::memrchr(b'\n', &bytes) {
                _ if ends_here => bytes.as_slice(),
                Some(end) => bytes.get(..=end).unwrap_or_default(),
                // A line longer than the block. It is read again from its start, so doubling keeps the work linear.
                None => {
                    block *= 2;
                    continue;
                }
            };
            let tail = self.feed(whole, at, forest, damage);
            if ends_here || self.hopeless(forest) {
                return Ok(Tail {
                    whole: at + tail.whole,
                    torn: size - at - tail.whole,
                    ..tail
                });
            }
            (at, block) = (at + whole.len() as u64, LOAD_BLOCK);
        }
    }

    /// Reads `bytes`, which begin at `base` in the file and at the start of a line.
    pub(crate) fn feed(&mut self, bytes: &[u8], base: u64, forest: &mut Forest, damage: &mut Damage) -> Tail {
        let mut offset = 0usize;
        let mut rest = bytes;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let Some((line, after)) = rest.split_at_checked(end) else {
                break;
            };
            self.lines += 1;
            self.line(line, base + offset as u64, forest, damage);
            rest = after.get(1..).unwrap_or_default();
            offset += end + 1;
            if self.hopeless(forest) {
                return Tail {
                    whole: offset as u64,
                    torn: rest.len() as u64,
                    unterminated: false,
                };
            }
        }
        self.tail(rest, offset as u64, base, forest, damage)
    }

    /// After so many lines without header or entry it cannot be a session; a large foreign file is not read to its end.
    fn hopeless(&self, forest: &Forest) -> bool {
        self.header.is_none() && self.spoken >= PROBE_LINES as u64 && forest.entries().is_empty()
    }

    fn tail(
        &mut self,
        rest: &[u8],
        offset: u64,
        base: u64,
        forest: &mut Forest,
        damage: &mut Damage,
    ) -> Tail {
        let torn = Tail {
            whole: offset,
            torn: rest.len() as u64,
            unterminated: false,
        };
        if rest.is_empty() {
            return torn;
        }
        // Either whole and only not ended, or whole with rubbish in place of its line feed.
        let whole = match parse::line(rest) {
            Line::Bad(_) => {
                repair::first(rest).is_some_and(|first| is_true_entry(&parse::line(first.get().as_bytes())))
            }
            Line::Blank => false,
            Line::Header(_) | Line::Title(_) | Line::Entry(_) => true,
        };
        if whole {
            self.lines += 1;
            self.line(rest, base + offset, forest, damage);
            return Tail {
                whole: offset + rest.len() as u64,
                torn: 0,
                unterminated: true,
            };
        }
        // A header that was cut off while it was written: the file is still ours.
        if self.spoken == 0 {
            self.remains = rest.iter().copied().take(HEADER_REMAINS).collect();
        }
        torn
    }

    fn line(&mut self, line: &[u8], offset: u64, forest: &mut Forest, damage: &mut Damage) {
        let usual = usual::line(line, self.texts);
        self.without_texts += u64::from(usual.is_some() && self.texts == Texts::Deferred);
        let parsed = usual.map_or_else(|| parse::line(line), |entry| Line::Entry(Box::new(entry)));
        if matches!(parsed, Line::Blank) {
            return;
        }
        self.spoken += 1;
        if self.spoken == 1 && could_be_remains(&parsed) {
            self.remains = line.iter().copied().take(HEADER_REMAINS).collect();
        }
        let reason = match parsed {
            Line::Bad(reason) => reason,
            good => {
                return self.take(
                    good,
                    Span {
                        offset,
                        len: line.len(),
                    },
                    forest,
                    damage,
                );
            }
        };
        damage.skip(SkippedLine {
            line: self.lines,
            offset,
            bytes: line.len() as u64,
            reason,
        });
        for part in repair::parts(line) {
            let found = parse::line(part.get().as_bytes());
            if is_true_entry(&found) {
                damage.salvaged += 1;
                // Not a line of its own in the file: a span of zero says that its text must be made anew.
                self.take(found, Span { offset, len: 0 }, forest, damage);
            } else if let Line::Header(_) = found {
                self.take(found, Span { offset, len: 0 }, forest, damage);
            }
        }
    }

    fn take(&mut self, line: Line, span: Span, forest: &mut Forest, damage: &mut Damage) {
        match line {
            // The first one counts: entries before a second one belong to it, too.
            Line::Header(_) if self.header.is_some() => damage.duplicate_headers += 1,
            Line::Header(header) => {
                damage.mended += u64::from(header.mended);
                self.header = Some(*header);
            }
            Line::Title(title) => self.title = Some(title),
            Line::Entry(parsed) => self.entry(*parsed, span, forest, damage),
            Line::Blank | Line::Bad(_) => {}
        }
    }

    fn entry(&mut self, parsed: Parsed, span: Span, forest: &mut Forest, damage: &mut Damage) {
        let Parsed {
            entry,
            parent_known,
            quality,
        } = parsed;
        let position = match forest.add(Arc::new(entry), span) {
            Added::Known(position) => {
                damage.duplicate_entries += 1;
                if self.notes_known {
                    self.known.push((position, span));
                }
                position
            }
            Added::New(position) => {
                damage.mended += u64::from(quality == Quality::Mended);
                damage.opaque += u64::from(quality == Quality::Opaque);
                damage.orphans += u64::from(!parent_known || forest.is_orphan(position));
                position
            }
        };
        self.last = Some(position);
    }

    /// Decides what the whole file is, after everything was fed.
    pub(crate) fn verdict(self, forest: &Forest, tail: Tail, path: Option<&Path>) -> Verdict {
        if let Some(mut header) = self.header {
            header.title = header.title.or(self.title);
            return Verdict::Session(Box::new(header));
        }
        let first = forest
            .entries()
            .iter()
            .find(|e| !matches!(e.body, EntryBody::Other(_)));
        match first {
            Some(entry) if header::looks_like_header(&self.remains) => {
                Verdict::HeaderLost(Box::new(header::rebuild(&self.remains, path, &entry.timestamp)))
            }
            None if self.spoken == 0
                && (tail.torn == 0 || self.remains.starts_with(b"{\"type\":\"session\"")) =>
            {
                Verdict::Empty
            }
            _ => Verdict::NotASession,
        }
    }
}

/// Length of the lines at the start of a file that hold nothing but a damaged header.
pub(crate) fn header_remains(content: &[u8]) -> usize {
    let mut len = 0;
    for line in content.split_inclusive(|b| *b == b'\n') {
        match parse::line(line) {
            Line::Blank | Line::Title(_) => len += line.len(),
            // Entries glued to it are worth more than a tidy file.
            _ if repair::parts(line)
                .iter()
                .any(|p| matches!(parse::line(p.get().as_bytes()), Line::Entry(_))) =>
            {
                return len;
            }
            _ => return len + line.len(),
        }
    }
    len
}

/// Returns true if the line is certainly an entry. A damaged line may contain objects that look like entries; real ones
/// have parent and time.
fn is_true_entry(line: &Line) -> bool {
    matches!(line, Line::Entry(parsed) if parsed.parent_known && !parsed.entry.timestamp.is_empty())
}

fn could_be_remains(line: &Line) -> bool {
    match line {
        Line::Bad(_) => true,
        Line::Entry(parsed) => matches!(parsed.entry.body, EntryBody::Other(_)),
        Line::Header(_) | Line::Title(_) | Line::Blank => false,
    }
}
