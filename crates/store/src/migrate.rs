//! Migrates old session versions to version 3 (pi-core.md 2.6). It works on JSON values, so that unknown members stay.
//! The medium replaces the file.

use std::collections::HashSet;

use serde_json::{Map, Value};
use wire::entry::SESSION_VERSION;

use crate::header;
use crate::limits::PROBE_LINES;
use crate::repair;
use crate::stamp;

/// A line of the old file.
struct Row<'a> {
    raw: &'a [u8],
    /// Its object; none for lines that cannot be read, which are kept as they are.
    map: Option<Map<String, Value>>,
    /// True if the object was changed. Otherwise the line is kept byte for byte.
    changed: bool,
}

/// Returns true if the header of a file names the current version, or a later one.
pub(crate) fn is_current(head: &[u8]) -> bool {
    let mut lines = head.split(|b| *b == b'\n').take(PROBE_LINES);
    lines.find_map(object).is_some_and(|first| {
        header::from_map(&first).is_some() && header::version_of(&first) >= SESSION_VERSION
    })
}

/// The content of a version 1 or 2 file as version 3, with the version it had. None for other files.
pub(crate) fn to_current(content: &[u8]) -> Option<(u32, Vec<u8>)> {
    let mut lines = content.split(|b| *b == b'\n').take(PROBE_LINES);
    let (raw, first) = lines.find_map(|raw| Some((raw, object(raw)?)))?;
    header::from_map(&first)?;
    let version = header::version_of(&first);
    // A wrong byte can hide the version of a header. Such a file is not an old one: it is read as it is, and reported as damaged.
    if version >= SESSION_VERSION || str::from_utf8(raw).is_err() {
        return None;
    }
    let mut rows: Vec<Row<'_>> = content
        .split(|b| *b == b'\n')
        .map(|raw| Row {
            raw,
            map: object(raw),
            changed: version < 2,
        })
        .collect();
    if version < 2 {
        add_ids(&mut rows);
        resolve_kept_indexes(&mut rows);
    }
    for row in &mut rows {
        let Some(map) = row.map.as_mut() else { continue };
        if is_header(map) {
            map.insert("version".to_owned(), SESSION_VERSION.into());
            row.changed = true;
        }
        row.changed |= rename_role(map);
    }
    Some((version, join(&rows)))
}

fn object(raw: &[u8]) -> Option<Map<String, Value>> {
    let text = String::from_utf8_lossy(raw);
    let mended = repair::replace_lone_surrogates(&text);
    serde_json::from_str(mended.as_deref().unwrap_or(&text)).ok()
}

fn is_header(map: &Map<String, Value>) -> bool {
    map.get("type").and_then(Value::as_str) == Some("session")
}

fn id_of(map: &Map<String, Value>) -> Option<&str> {
    map.get("id").and_then(Value::as_str).filter(|id| !id.is_empty())
}

/// Gives every entry an id and the entry before it as parent.
fn add_ids(rows: &mut [Row<'_>]) {
    let mut taken: HashSet<String> = rows
        .iter()
        .filter_map(|row| row.map.as_ref().and_then(id_of).map(str::to_owned))
        .collect();
    let mut parent: Option<String> = None;
    for map in rows
        .iter_mut()
        .filter_map(|row| row.map.as_mut())
        .filter(|map| !is_header(map))
    {
        let id = match id_of(map) {
            Some(id) => id.to_owned(),
            None => stamp::entry_id(|id| taken.contains(id)),
        };
        taken.insert(id.clone());
        map.insert("id".to_owned(), id.clone().into());
        map.entry("parentId").or_insert_with(|| parent.into());
        parent = Some(id);
    }
}

/// `firstKeptEntryIndex` counts all readable lines, the header as 0; version 2 names the entry instead.
fn resolve_kept_indexes(rows: &mut [Row<'_>]) {
    let ids: Vec<Option<String>> = rows
        .iter()
        .filter_map(|row| row.map.as_ref())
        .map(|map| {
            if is_header(map) {
                None
            } else {
                id_of(map).map(str::to_owned)
            }
        })
        .collect();
    let compactions = rows
        .iter_mut()
        .filter_map(|row| row.map.as_mut())
        .filter(|map| map.get("type").and_then(Value::as_str) == Some("compaction"));
    for map in compactions {
        let Some(index) = map
            .shift_remove("firstKeptEntryIndex")
            .as_ref()
            .and_then(Value::as_u64)
        else {
            continue;
        };
        // Index 0 is the header: everything is kept, so the first entry.
        let from = usize::try_from(index).unwrap_or(usize::MAX).max(1);
        if let Some(Some(id)) = ids.get(from) {
            map.insert("firstKeptEntryId".to_owned(), id.clone().into());
        }
    }
}

fn rename_role(map: &mut Map<String, Value>) -> bool {
    let role = map.get_mut("message").and_then(|message| message.get_mut("role"));
    role.filter(|role| *role == "hookMessage")
        .map(|role| *role = "custom".into())
        .is_some()
}

fn join(rows: &[Row<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    let last = rows.len().saturating_sub(1);
    for (n, row) in rows.iter().enumerate() {
        // Writing a map of JSON values into memory cannot fail; if it did, the old line is as good.
        let anew = row.map.as_ref().filter(|_| row.changed);
        let anew = anew.and_then(|map| serde_json::to_vec(map).ok());
        out.extend_from_slice(anew.as_deref().unwrap_or(row.raw));
        // What follows the last line feed is a torn line and stays one, unless it is whole.
        if n < last || row.map.is_some() {
            out.push(b'\n');
        }
    }
    out
}
