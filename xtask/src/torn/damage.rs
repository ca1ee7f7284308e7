//! Damaged session files: cut off, or with one wrong byte; and what must be left of them. Opening them is `check`'s work.

use serde_json::{Map, Value};

use crate::fuzz::prng::Prng;

/// A damaged file.
#[derive(Debug, Clone)]
pub(super) struct Case {
    /// The name of the damage, for the report.
    pub(super) name: String,
    /// The file.
    pub(super) bytes: Vec<u8>,
    /// Lines of the session that are whole, by their number; the header is 0.
    pub(super) whole: Vec<usize>,
    /// Events `session_damage` that must come on opening, at least and at most.
    pub(super) told: (usize, usize),
    /// True if the first append repairs the file, so that it is whole afterwards.
    pub(super) mends: bool,
    /// True if the header now names another working directory. Refusing the session is right then, since the directory
    /// is missing.
    pub(super) elsewhere: bool,
}

/// Files that end at every `step`th byte of the last `entries` lines.
pub(super) fn cuts(lines: &[String], entries: usize, step: usize) -> Vec<Case> {
    let end: usize = lines.iter().map(String::len).sum();
    let tail: usize = lines.iter().rev().take(entries).map(String::len).sum();
    (end - tail..end).step_by(step).map(|at| cut(lines, at)).collect()
}

fn cut(lines: &[String], at: usize) -> Case {
    let text = lines.concat();
    let bytes = text.as_bytes().get(..at).unwrap_or_default().to_vec();
    let mut end = 0;
    let ends: Vec<usize> = lines
        .iter()
        .map(|line| {
            end += line.len();
            end
        })
        .collect();
    // A line that only lacks its LF is whole.
    let whole = (0..lines.len()).filter(|number| ends.get(*number).is_some_and(|end| end - 1 <= at));
    let told = if ends.contains(&at) {
        (0, 0)
    } else if ends.contains(&(at + 1)) {
        // Nothing is lost but a line feed: whether that is worth an event is the agent's choice.
        (0, 1)
    } else {
        (1, 1)
    };
    Case {
        name: format!("cut at byte {at}"),
        bytes,
        whole: whole.collect(),
        told,
        mends: true,
        elsewhere: false,
    }
}

/// A file with one wrong byte, in the header or anywhere.
pub(super) fn flip(lines: &[String], in_header: bool, random: &mut Prng) -> Case {
    let text = lines.concat();
    let mut bytes = text.clone().into_bytes();
    let header = lines.first().map_or(0, String::len);
    let at = random.below(if in_header { header } else { bytes.len() });
    let mut name = String::new();
    if let Some(byte) = bytes.get_mut(at) {
        let wrong = if random.chance(50) {
            *byte ^ (1 << random.below(8))
        } else {
            byte.wrapping_add(random.byte().max(1))
        };
        name = format!("byte {at} is {wrong:#04x} instead of {:#04x}", *byte);
        *byte = wrong;
    }
    Case {
        name,
        whole: untouched(lines, at),
        told: (usize::from(is_broken(&bytes)), 1),
        elsewhere: folder(text.as_bytes()) != folder(&bytes),
        bytes,
        mends: false,
    }
}

/// Lines that a wrong byte at `at` leaves as they were. In place of a line feed it joins two lines, of which neither is whole.
fn untouched(lines: &[String], at: usize) -> Vec<usize> {
    let mut begin = 0;
    let mut whole = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let end = begin + line.len();
        // The line feed before it is part of what a line needs.
        if !(begin.saturating_sub(1)..end).contains(&at) {
            whole.push(number);
        }
        begin = end;
    }
    whole
}

/// The working directory in the header, read as leniently as can be.
fn folder(bytes: &[u8]) -> Option<String> {
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let (_, value) = line.split_once("\"cwd\":\"")?;
    let (value, _) = value.split_once('"')?;
    Some(value.to_owned())
}

/// Returns true if one of the lines is no JSON object.
fn is_broken(bytes: &[u8]) -> bool {
    let mut lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.any(|line| serde_json::from_slice::<Map<String, Value>>(line).is_err())
}
