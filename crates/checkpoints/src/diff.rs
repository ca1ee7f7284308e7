//! Compares two states of a file: status, modes and a unified diff.

use std::path::Path;

use imara_diff::{Algorithm, BasicLineDiffPrinter, Diff, InternedInput, UnifiedDiffConfig};
use wire::changes::{FileChange, FileStatus};

use crate::blobs::Blobs;
use crate::limits;
use crate::state::FileState;

/// Describes a change. `left` is the number of bytes that diffs may still take.
pub(crate) fn describe(
    path: &Path,
    before: &FileState,
    after: &FileState,
    blobs: &Blobs,
    left: &mut usize,
) -> FileChange {
    let mut diff = texts(before, after, blobs).map(|(before, after)| unified(&before, &after));
    let mut truncated = false;
    if let Some(text) = &mut diff
        && text.len() > limits::DIFF_BYTES
    {
        let end = text.floor_char_boundary(limits::DIFF_BYTES);
        let end = text
            .get(..end)
            .and_then(|text| text.rfind('\n'))
            .map_or(end, |at| at + 1);
        text.truncate(end);
        truncated = true;
    }
    let diff = diff.filter(|text| text.len() <= *left && !text.is_empty());
    *left -= diff.as_ref().map_or(0, String::len);
    FileChange {
        path: path.to_string_lossy().into_owned(),
        status: status(before, after),
        old_mode: mode(before),
        new_mode: mode(after),
        truncated: truncated && diff.is_some(),
        diff,
    }
}

/// What happens to a file that goes from one state to another.
pub(crate) fn status(before: &FileState, after: &FileState) -> FileStatus {
    match (before, after) {
        (FileState::Absent, _) => FileStatus::Added,
        (_, FileState::Absent) => FileStatus::Deleted,
        _ => FileStatus::Modified,
    }
}

fn mode(state: &FileState) -> Option<String> {
    match state {
        FileState::File { mode, .. } => Some(format!("10{mode:04o}")),
        FileState::Directory { mode } => Some(format!("04{mode:04o}")),
        FileState::Link { .. } => Some("120000".to_owned()),
        FileState::Absent | FileState::Unknown { .. } => None,
    }
}

fn texts(before: &FileState, after: &FileState, blobs: &Blobs) -> Option<(String, String)> {
    let size = |state: &FileState| match state {
        FileState::File { size, .. } => *size,
        _ => 0,
    };
    if size(before) + size(after) > limits::COMPARED_BYTES {
        return None;
    }
    Some((text(before, blobs)?, text(after, blobs)?))
}

/// The content as text; none if it is binary or not known.
fn text(state: &FileState, blobs: &Blobs) -> Option<String> {
    match state {
        FileState::Absent => Some(String::new()),
        FileState::Link { target } => target.0.to_str().map(str::to_owned),
        FileState::File { content, .. } => {
            let text = String::from_utf8(blobs.get(content).ok()?).ok()?;
            (!text.contains('\0')).then_some(text)
        }
        FileState::Directory { .. } | FileState::Unknown { .. } => None,
    }
}

fn unified(before: &str, after: &str) -> String {
    let input = InternedInput::new(before, after);
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_lines(&input);
    let printer = BasicLineDiffPrinter(&input.interner);
    diff.unified_diff(&printer, UnifiedDiffConfig::default(), &input)
        .to_string()
}
