//! Section: where sessions are kept, how many, how large, the newest. Names and sizes only; no session is opened.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::report::Section;
use super::{Patient, keys};
use crate::sessions::session_dir;

/// What a directory holds.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) count: usize,
    pub(super) bytes: u64,
    pub(super) newest: Option<(SystemTime, PathBuf)>,
}

impl Tally {
    /// The session files directly in a directory.
    pub(super) fn of(dir: &Path) -> Self {
        let mut tally = Self::default();
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let path = entry.path();
            let Ok(meta) = entry.metadata() else { continue };
            if !meta.is_file() || path.extension().is_none_or(|ending| ending != "jsonl") {
                continue;
            }
            tally.count += 1;
            tally.bytes = tally.bytes.saturating_add(meta.len());
            let changed = meta.modified().unwrap_or(UNIX_EPOCH);
            if tally.newest.as_ref().is_none_or(|(newest, _)| changed > *newest) {
                tally.newest = Some((changed, path));
            }
        }
        tally
    }

    fn add(&mut self, other: Self) {
        self.count += other.count;
        self.bytes = self.bytes.saturating_add(other.bytes);
        let newer =
            |(time, _): &(SystemTime, PathBuf)| self.newest.as_ref().is_none_or(|(old, _)| time > old);
        if other.newest.as_ref().is_some_and(newer) {
            self.newest = other.newest;
        }
    }
}

pub(super) fn section(patient: &Patient<'_>) -> Section {
    let mut section = Section::new("sessions", "Sessions");
    let setting = patient.settings.session_dir.as_deref();
    let (dir, own) = session_dir(patient.args, patient.env, setting);
    let Some(dir) = dir else {
        section.row("directory", "none: --no-session keeps them in memory");
        section.data = json!({ "dir": null });
        return section;
    };
    let by = chosen_by(patient, own);
    section.row("directory", format!("{} ({by})", patient.short(&dir)));
    let here = Tally::of(&dir);
    section.row(if own { "of this directory" } else { "in it" }, in_words(&here));
    if let Some((_, newest)) = &here.newest {
        section.row("newest", patient.short(newest));
    }
    let mut data = json!({"dir": dir, "chosenBy": by, "here": data(&here)});
    if own {
        let root = store::paths::sessions_root(&patient.env.agent_dir);
        let mut all = Tally::default();
        for entry in fs::read_dir(root).into_iter().flatten().flatten() {
            all.add(Tally::of(&entry.path()));
        }
        section.row("of all directories", in_words(&all));
        if let Some(object) = data.as_object_mut() {
            object.insert("all".to_owned(), self::data(&all));
        }
    }
    section.data = data;
    section
}

fn chosen_by(patient: &Patient<'_>, own: bool) -> &'static str {
    if own {
        "default"
    } else if patient.args.session_dir.is_some() {
        "--session-dir"
    } else if patient.env.get("PI_CODING_AGENT_SESSION_DIR").is_some() {
        "PI_CODING_AGENT_SESSION_DIR"
    } else {
        "sessionDir in the settings"
    }
}

fn in_words(tally: &Tally) -> String {
    let Some((changed, _)) = &tally.newest else {
        return "no sessions yet".to_owned();
    };
    let count = keys::counted(tally.count, "session", "sessions");
    format!("{count}, {}, last used {}", size(tally.bytes), day(*changed))
}

fn data(tally: &Tally) -> Value {
    let newest = tally.newest.as_ref();
    json!({
        "count": tally.count,
        "bytes": tally.bytes,
        "newest": newest.map(|(_, path)| path),
        "changed": newest.and_then(|(time, _)| Timestamp::try_from(*time).ok()).map(|time| time.to_string()),
    })
}

fn day(time: SystemTime) -> String {
    Timestamp::try_from(time)
        .map(|time| {
            time.to_zoned(TimeZone::system())
                .strftime("%Y-%m-%d %H:%M")
                .to_string()
        })
        .unwrap_or_else(|_| "at an unknown time".to_owned())
}

/// `512 bytes`, `1.5 KB`, `20.0 MB`.
pub(super) fn size(bytes: u64) -> String {
    let tenths = |unit: u64| {
        let tenths = bytes.saturating_mul(10) / unit;
        format!("{}.{}", tenths / 10, tenths % 10)
    };
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{} KB", tenths(1_000)),
        1_000_000..1_000_000_000 => format!("{} MB", tenths(1_000_000)),
        _ => format!("{} GB", tenths(1_000_000_000)),
    }
}
