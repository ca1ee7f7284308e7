//! What a listing remembers from one time to the next: one file that may be deleted at any time and is never trusted beyond
//! what the session files themselves confirm. Nothing here is an error of a listing: what fails is as if it were not there.

use std::collections::HashMap;
use std::fs::{self, File, Metadata};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::limits::{CACHE_BYTES, CACHE_LITTER, CACHE_PRINT, CACHE_ROW, CACHE_SETTLED};
use crate::medium::{create_new, open_to_read};
use crate::paths::{ensure_private_dir, fnv1a};
use crate::scan::{Scanned, SessionSummary, changed_ns};

/// First words of the file. The number changes whenever a listing comes to say something else about the same session.
const MAGIC: &str = "pinion session list 1 ";

/// By which a session file is known again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    size: u64,
    /// Unix time in nanoseconds.
    changed: u64,
    inode: u64,
    device: u64,
}

impl Stamp {
    fn of(found: &Metadata) -> Self {
        #[cfg(unix)]
        let (inode, device) = {
            use std::os::unix::fs::MetadataExt;
            (found.ino(), found.dev())
        };
        #[cfg(not(unix))]
        let (inode, device) = (0, 0);
        Self {
            size: found.len(),
            changed: changed_ns(found),
            inode,
            device,
        }
    }
}

/// One session as a scan of all of its lines found it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Row {
    path: String,
    stamp: Stamp,
    /// Hash of the beginning and the end of the scanned part.
    print: u64,
    id: String,
    cwd: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent: Option<String>,
    created: i64,
    modified: i64,
    messages: u64,
    first: String,
}

impl Row {
    /// None when the file must not be remembered: it ends in the middle of a line, or changed while or just before it was
    /// read, or its name is not Unicode, or it says too much.
    pub(crate) fn new(path: &Path, file: &File, found: &Metadata, scanned: &Scanned) -> Option<Self> {
        let stamp = Stamp::of(found);
        let settled = SystemTime::now()
            .duration_since(found.modified().ok()?)
            .is_ok_and(|age| age >= CACHE_SETTLED);
        let summary = scanned.summary.clone();
        if scanned.end != stamp.size || !settled || summary.first_message.len() > CACHE_ROW / 2 {
            return None;
        }
        Some(Self {
            path: path.to_str()?.to_owned(),
            stamp,
            print: print(file, stamp.size).ok()?,
            id: summary.id,
            cwd: summary.cwd,
            name: summary.name,
            parent: summary.parent_session_path,
            created: summary.created,
            modified: summary.modified,
            messages: summary.message_count,
            first: summary.first_message,
        })
    }

    fn scanned(&self) -> Scanned {
        Scanned {
            summary: SessionSummary {
                path: PathBuf::from(&self.path),
                id: self.id.clone(),
                cwd: self.cwd.clone(),
                name: self.name.clone(),
                parent_session_path: self.parent.clone(),
                created: self.created,
                modified: self.modified,
                message_count: self.messages,
                first_message: self.first.clone(),
                all_messages_text: None,
            },
            end: self.stamp.size,
        }
    }

    /// All there is to say about the file, when it is just as it was.
    pub(crate) fn unchanged(&self, found: &Metadata) -> Option<Scanned> {
        (self.stamp == Stamp::of(found)).then(|| self.scanned())
    }

    /// Returns the result for the first part of the file, if the file has only grown.
    pub(crate) fn grown(&self, file: &File, found: &Metadata) -> Option<Scanned> {
        let now = Stamp::of(found);
        let longer = Stamp {
            size: self.stamp.size,
            changed: self.stamp.changed,
            ..now
        };
        (longer == self.stamp
            && now.size > self.stamp.size
            && print(file, self.stamp.size).ok()? == self.print)
            .then(|| self.scanned())
    }
}

/// A number that tells the first `size` bytes of a session from those of another one. Leaves the file at its beginning.
fn print(mut file: &File, size: u64) -> io::Result<u64> {
    let mut bytes = Vec::with_capacity(2 * CACHE_PRINT);
    for from in [0, size.saturating_sub(CACHE_PRINT as u64)] {
        file.seek(SeekFrom::Start(from))?;
        file.take((size - from).min(CACHE_PRINT as u64))
            .read_to_end(&mut bytes)?;
    }
    file.rewind()?;
    Ok(fnv1a(&bytes))
}

/// A checksum of a large text, eight bytes a step. Each step can be undone, so no single damaged place goes unnoticed.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.chunks(8).fold(bytes.len() as u64, |sum, chunk| {
        let word = chunk
            .iter()
            .rev()
            .fold(0, |word, byte| word << 8 | u64::from(*byte));
        (sum.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    })
}

/// The rows of a cache file by path.
#[derive(Debug, Default)]
pub(crate) struct Cache(HashMap<PathBuf, Row>);

impl Cache {
    /// Reads a cache. Returns an empty one if it is missing, damaged, too large or of another version.
    pub(crate) fn load(path: &Path) -> Self {
        read(path).unwrap_or_default()
    }

    /// The cached row of a session file.
    pub(crate) fn row(&self, path: &Path) -> Option<&Row> {
        self.0.get(path)
    }

    /// Adds new rows, removes rows of deleted files (`gone`), and writes the file if that changes it.
    pub(crate) fn update(mut self, path: &Path, new: Vec<Row>, gone: impl Fn(&Path) -> bool) {
        let before = self.0.len();
        self.0.retain(|path, _| !gone(path));
        if new.is_empty() && self.0.len() == before {
            return;
        }
        self.0
            .extend(new.into_iter().map(|row| (PathBuf::from(&row.path), row)));
        // Without it the next listing takes longer; that is all.
        drop(write(path, &self.bytes()));
    }

    fn bytes(&self) -> Vec<u8> {
        let mut rows: Vec<&Row> = self.0.values().collect();
        rows.sort_unstable_by_key(|row| std::cmp::Reverse(row.stamp.changed));
        let mut body = Vec::new();
        for line in rows.iter().filter_map(|row| serde_json::to_vec(row).ok()) {
            if line.len() <= CACHE_ROW && body.len() + line.len() < CACHE_BYTES {
                body.extend_from_slice(&line);
                body.push(b'\n');
            }
        }
        let head = format!("{MAGIC}{:016x}\n", checksum(&body));
        [head.as_bytes(), &body].concat()
    }
}

fn read(path: &Path) -> Option<Cache> {
    let (file, found) = open_to_read(path).ok()?;
    let most = (CACHE_BYTES + CACHE_PRINT) as u64;
    let mut text = String::with_capacity(usize::try_from(found.len().min(most)).ok()?);
    file.take(most).read_to_string(&mut text).ok()?;
    let (sum, body) = text.strip_prefix(MAGIC)?.split_once('\n')?;
    if u64::from_str_radix(sum, 16).ok()? != checksum(body.as_bytes()) {
        return None;
    }
    let rows = serde_json::Deserializer::from_str(body).into_iter::<Row>();
    let rows = rows.map(|row| row.map(|row| (PathBuf::from(&row.path), row)));
    rows.collect::<Result<_, _>>().ok().map(Cache)
}

/// Puts the file in place of the old one, whole. Of two processes at once one does and the other leaves it.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let dir = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    ensure_private_dir(dir).map_err(io::Error::other)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = path.with_file_name(format!(".{name}.new"));
    let age = |found: &Metadata| found.modified().ok().and_then(|time| time.elapsed().ok());
    if fs::symlink_metadata(&temporary).is_ok_and(|found| age(&found).is_some_and(|age| age > CACHE_LITTER)) {
        fs::remove_file(&temporary)?;
    }
    let mut file = create_new(&temporary)?;
    let written = file.write_all(bytes).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        drop(fs::remove_file(&temporary));
    }
    written
}
