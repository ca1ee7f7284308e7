//! The JSON format. The page carries the same object; it is written there by `page` with further escapes.

use std::io::{self, Write};

use serde::Serialize;
use wire::{SessionHeader, ToolSpec};

use crate::ExportInput;

/// Version of the object's shape.
const VERSION: u32 = 1;

/// The object but for its entries. The first two fields say what it is; a file that does not begin with them is not overwritten.
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
}

/// Writes header, leaf, name, system prompt, tools and entries of all branches as one JSON object. Every entry is on a line of
/// its own, so that line tools can look at it.
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
    };
    let head = serde_json::to_string(&document)?;
    out.write_all(head.strip_suffix('}').unwrap_or(&head).as_bytes())?;
    out.write_all(b",\"entries\":[")?;
    for (at, entry) in input.entries.iter().enumerate() {
        out.write_all(if at == 0 { b"\n" } else { b",\n" })?;
        serde_json::to_writer(&mut *out, entry)?;
    }
    out.write_all(b"\n]}\n")
}
