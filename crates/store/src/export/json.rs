//! The JSON format. The page carries the same object; it is written there by `page` with further escapes.

use std::io::{self, Write};
use std::sync::Arc;

use serde::Serialize;
use wire::{Entry, SessionHeader, ToolSpec};

use super::ExportInput;

/// Version of the object's shape.
const VERSION: u32 = 1;

/// The object. The first two fields say what it is; a file that does not begin with them is not overwritten.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    format: &'static str,
    version: u32,
    header: &'a SessionHeader,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    leaf_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_prompt: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tools: &'a [ToolSpec],
    entries: &'a [Arc<Entry>],
}

/// Writes header, entries of all branches, leaf, name, system prompt and tools as one JSON object.
///
/// # Errors
/// When `out` fails.
pub fn json(input: &ExportInput<'_>, out: &mut impl Write) -> io::Result<()> {
    let document = Document {
        format: "pinion-export",
        version: VERSION,
        header: input.header,
        name: input.name,
        leaf_id: input.leaf_id,
        system_prompt: input.system_prompt,
        tools: input.tools,
        entries: input.entries,
    };
    serde_json::to_writer(&mut *out, &document).map_err(io::Error::from)?;
    out.write_all(b"\n")
}
