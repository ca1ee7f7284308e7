//! A bounded log of events that all clients of a web server share; each reads at its own pace. A client is a position
//! in the log, so a thousand clients need little more memory than one. A slow client gets consecutive deltas merged. A
//! client whose position was evicted needs a snapshot.
//!
//! Not here: the clients and their options (`clients`), how events become text (`broadcaster`).

use std::collections::VecDeque;
use std::sync::Arc;

use crate::frame_text::{FrameText, OpenObject};
use crate::limits::WEB_UNREAD_BYTES;

/// A position in the log: the number of the last entry that a client got.
pub(crate) type Place = u64;

/// Entries that are looked through for text that a new one shares.
const SHARING: usize = 64;

/// A client's place is older than the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gone;

/// What an entry is about: clients may not want all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Subject {
    /// The event's name.
    pub(crate) name: &'static str,
    /// The session; none is the first.
    pub(crate) session: Option<Arc<str>>,
}

/// A line for all clients.
#[derive(Debug)]
pub(crate) struct Entry {
    /// What it is about.
    pub(crate) subject: Subject,
    /// What it says.
    pub(crate) text: Text,
}

/// What an entry says: an object without its closing brace.
#[derive(Debug)]
pub(crate) enum Text {
    /// As it is.
    Line(OpenObject),
    /// A delta, which later deltas may be merged into.
    Delta(Delta),
}

/// A delta: deltas of one block differ in nothing but `text`, and in `after` (usage).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Delta {
    /// Everything up to and with the quote before the text.
    pub(crate) before: String,
    /// The new text, escaped as in a JSON string.
    pub(crate) text: String,
    /// Everything from the quote after the text on.
    pub(crate) after: String,
}

impl Delta {
    fn join(&mut self, next: &Self) {
        self.text.push_str(&next.text);
        self.after.clone_from(&next.after);
    }
}

impl Entry {
    /// The text becomes the frame, and is not kept twice: of a delta, only the places are kept where it can be taken apart.
    fn published(self, place: Place) -> Published {
        let session = self.subject.session.as_deref();
        let (object, delta) = match self.text {
            Text::Line(line) => (line, None),
            Text::Delta(delta) => {
                let places = DeltaPlaces {
                    text: delta.before.len(),
                    after: delta.before.len() + delta.text.len(),
                    end: delta.before.len() + delta.text.len() + delta.after.len(),
                };
                (object(&[&delta.before, &delta.text, &delta.after]), Some(places))
            }
        };
        let frame = finish(object, session, place);
        Published {
            cost: frame.cost(),
            frame,
            subject: self.subject,
            delta,
        }
    }
}

/// Where the parts of a delta begin in its frame, which has one piece.
#[derive(Debug, Clone, Copy)]
struct DeltaPlaces {
    text: usize,
    after: usize,
    /// Behind the last part.
    end: usize,
}

/// An entry that clients may read, with its frame, which they share.
#[derive(Debug)]
struct Published {
    subject: Subject,
    frame: FrameText,
    /// Bytes of memory that are free when this entry goes. Of text that several entries share, they are those of the newest.
    cost: usize,
    delta: Option<DeltaPlaces>,
}

/// A delta as bytes of its frame.
#[derive(Debug, Clone, Copy)]
struct DeltaParts<'a> {
    before: &'a [u8],
    text: &'a [u8],
    after: &'a [u8],
}

impl Published {
    fn delta(&self) -> Option<DeltaParts<'_>> {
        let DeltaPlaces { text, after, end } = self.delta?;
        let whole = self.frame.end();
        Some(DeltaParts {
            before: whole.get(..text)?,
            text: whole.get(text..after)?,
            after: whole.get(after..end)?,
        })
    }
}

/// The newest entries. Their numbers are consecutive.
#[derive(Debug)]
pub(crate) struct Log {
    published: VecDeque<Published>,
    /// Bytes of memory that the published frames take.
    bytes: usize,
    /// Number of the newest entry that is published.
    last: Place,
    /// Unpublished entries: later deltas may still be merged into them.
    fresh: Vec<Entry>,
    most_bytes: usize,
    most_entries: usize,
}

impl Log {
    /// An empty log that keeps so much.
    pub(crate) fn new(most_bytes: usize, most_entries: usize) -> Self {
        Self {
            published: VecDeque::new(),
            bytes: 0,
            last: 0,
            fresh: Vec::new(),
            most_bytes,
            most_entries,
        }
    }

    /// Begins after an entry that another process numbered. Only for a log without entries.
    pub(crate) fn begin_after(&mut self, place: Place) {
        if self.published.is_empty() && self.fresh.is_empty() {
            self.last = place;
        }
    }

    /// Number of the newest entry that may be read; 0 before the first.
    pub(crate) fn last(&self) -> Place {
        self.last
    }

    /// Bytes of memory that all entries take that may be read.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes of memory that the entries after this place take, as far as they are here.
    pub(crate) fn bytes_after(&self, place: Place) -> usize {
        // Numbers have no gaps, so a position gives an index.
        let count = usize::try_from(self.last.saturating_sub(place)).unwrap_or(usize::MAX);
        let newest = self.published.iter().rev().take(count);
        newest.map(|one| one.cost).sum()
    }

    /// How many entries came after this place; none when not all of them are here any more, or the place was never reached.
    pub(crate) fn count_after(&self, place: Place) -> Option<usize> {
        let count = usize::try_from(self.last.checked_sub(place)?).ok()?;
        (count <= self.published.len()).then_some(count)
    }

    /// Takes an entry, to be read once it is published.
    pub(crate) fn push(&mut self, entry: Entry) {
        if let Text::Delta(delta) = &entry.text {
            // Only the latest entry of the session: merging with an earlier one would move text past another event.
            let before = self
                .fresh
                .iter_mut()
                .rev()
                .find(|before| before.subject.session == entry.subject.session);
            if let Some(Entry {
                text: Text::Delta(before),
                ..
            }) = before
                && before.before == delta.before
            {
                before.join(delta);
                return;
            }
        }
        self.fresh.push(entry);
    }

    /// Publishes the collected entries. Evicts the oldest entries above the limit of their number. Above the limit of
    /// bytes, entries stay until all clients have read them (`read`), or until a second, higher limit.
    pub(crate) fn publish(&mut self, read: impl FnOnce() -> Option<Place>) {
        for entry in std::mem::take(&mut self.fresh) {
            self.last += 1;
            let published = entry.published(self.last);
            self.pass_on(&published.frame);
            self.bytes += published.cost;
            self.published.push_back(published);
        }
        if self.bytes <= self.most_bytes && self.published.len() <= self.most_entries {
            return;
        }
        // Called only above the limits: finding the slowest client costs a walk over all.
        let read = read().unwrap_or(self.last);
        while self.published.len() > self.most_entries || self.bytes > self.most_bytes {
            let oldest = self.last - self.published.len() as Place + 1;
            // Above the lower limit of bytes unread entries stay; above the higher one they are evicted, too.
            let is_unread = oldest > read && self.bytes <= self.most_bytes.max(WEB_UNREAD_BYTES);
            if is_unread && self.published.len() <= self.most_entries {
                break;
            }
            let Some(oldest) = self.published.pop_front() else {
                break;
            };
            self.bytes -= oldest.cost;
        }
    }

    /// A new frame takes over the cost of the text that it shares with an earlier one: several events repeat a long answer.
    fn pass_on(&mut self, frame: &FrameText) {
        for piece in frame.shared() {
            let mut earlier = self.published.iter_mut().rev().take(SHARING);
            if let Some(holder) = earlier.find(|entry| entry.frame.has(piece)) {
                holder.cost -= piece.len();
                self.bytes -= piece.len();
            }
        }
    }

    /// Appends the frames of what `wanted` wants of the entries after `place`, up to `until` and about `most` bytes; deltas of one
    /// block that follow each other become one frame, with the number of the last. Gives the new place.
    ///
    /// # Errors
    /// When entries are gone that should have come.
    pub(crate) fn read(
        &self,
        place: Place,
        until: Place,
        most: usize,
        wanted: impl Fn(&Subject) -> bool,
        frames: &mut Vec<FrameText>,
    ) -> Result<Place, Gone> {
        let count = self.count_after(place).ok_or(Gone)?;
        let (mut place, mut bytes) = (place, 0);
        let mut joined = Joined::default();
        for entry in self.published.iter().skip(self.published.len() - count) {
            if place >= until || bytes >= most {
                break;
            }
            place += 1;
            if !wanted(&entry.subject) {
                continue;
            }
            bytes += entry.frame.len();
            match entry.delta() {
                None => {
                    joined.close(frames);
                    frames.push(entry.frame.clone());
                }
                Some(delta) => joined.take(entry, delta, place, frames),
            }
        }
        joined.close(frames);
        Ok(place)
    }
}

/// Consecutive deltas that are merged for one reader. A single delta uses its existing frame.
#[derive(Default)]
struct Joined<'a> {
    first: Option<(&'a Published, DeltaParts<'a>)>,
    /// The text of all, what follows it, and the place of the last.
    all: Option<(Vec<u8>, &'a [u8], Place)>,
}

impl<'a> Joined<'a> {
    fn take(
        &mut self,
        entry: &'a Published,
        delta: DeltaParts<'a>,
        place: Place,
        frames: &mut Vec<FrameText>,
    ) {
        if let Some((first, begin)) = self.first
            && first.subject.session == entry.subject.session
            && begin.before == delta.before
        {
            let (text, after, last) = self
                .all
                .get_or_insert_with(|| ([begin.before, begin.text].concat(), begin.after, place));
            text.extend_from_slice(delta.text);
            (*after, *last) = (delta.after, place);
            return;
        }
        self.close(frames);
        self.first = Some((entry, delta));
    }

    fn close(&mut self, frames: &mut Vec<FrameText>) {
        let Some((entry, _)) = self.first.take() else {
            return;
        };
        frames.push(match self.all.take() {
            None => entry.frame.clone(),
            Some((text, after, place)) => {
                let mut object = OpenObject::of_pieces(Vec::new(), text);
                object.add(after);
                finish(object, entry.subject.session.as_deref(), place)
            }
        });
    }
}

/// An object of these parts, with room for its session and number.
fn object(parts: &[&str]) -> OpenObject {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let mut object = String::with_capacity(length + 64);
    for part in parts {
        object.push_str(part);
    }
    object.into()
}

/// Adds the session and the number to an object, and closes it.
fn finish(mut object: OpenObject, session: Option<&str>, place: Place) -> FrameText {
    object.add_session(session);
    object.add_number("seq", place);
    object.close()
}
