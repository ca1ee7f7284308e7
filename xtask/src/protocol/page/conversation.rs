//! The page with a complete conversation: the lines that `xtask examples` recorded, each with the explanation of its command or
//! event from the schema.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Value;
use wire::table::TABLE;

use super::super::examples::{Example, Examples, Kind, kind_of};
use super::super::view::description;
use super::{NOTE, event_type, references};

/// File of the recording, below `protocol/examples`.
pub(crate) const FILE: &str = "conversation.jsonl";

const INTRO: &str = "\
The lines below are a recording of `pinion --mode rpc --rpc-dialect pi-delta --permission-mode ask` with a scripted model. They are
complete and in order; ids, paths and times were replaced by fixed ones. The client asks for the state, sends a prompt, confirms a
tool call, and closes stdin after the last line.
";

/// The page.
pub(super) fn render(document: &Value, examples: &Examples) -> String {
    let mut out = format!("# Example conversation\n\n{NOTE}\n\n{INTRO}\n");
    let mut told = BTreeSet::new();
    let lines = examples.0.iter().filter(|line| line.place.starts_with(FILE));
    for line in lines {
        let kind = kind_of(&line.value);
        let (who, text) = match line.kind {
            Kind::Inbound => ("The client sends", command_doc(document, kind)),
            _ if kind == "response" => ("Pinion responds", String::new()),
            _ => ("Pinion sends", event_doc(document, kind)),
        };
        let first = told.insert((who, kind.to_owned()));
        let _infallible = writeln!(out, "**{who}** {}{}\n", link(line, kind), sentence(first, &text));
        let _infallible = writeln!(out, "```jsonl\n{}\n```\n", line.text);
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

fn sentence(first: bool, text: &str) -> String {
    if first && !text.is_empty() {
        format!(": {text}")
    } else {
        String::new()
    }
}

/// The name of a line, linked to its section.
fn link(line: &Example, kind: &str) -> String {
    let command = line.value.get("command").and_then(Value::as_str);
    match (line.kind, command) {
        (Kind::Outbound, Some(name)) => format!("to `{name}`:"),
        (Kind::Outbound, None) => format!("[{kind}](events.md#{kind})"),
        _ => {
            let group = TABLE.iter().find(|spec| spec.name == kind);
            let page = group.map_or("dialogs", |spec| spec.group.name());
            format!("[{kind}]({page}.md#{kind})")
        }
    }
}

fn command_doc(document: &Value, kind: &str) -> String {
    let spec = TABLE.iter().find(|spec| spec.name == kind);
    spec.map_or_else(|| frame_doc(document, kind), |spec| spec.doc.trim().to_owned())
}

fn frame_doc(document: &Value, kind: &str) -> String {
    of_union(document, "InboundLine", kind)
}

fn event_doc(document: &Value, kind: &str) -> String {
    of_union(document, "Event", kind)
}

fn of_union(document: &Value, union: &str, kind: &str) -> String {
    let names = references(document, union);
    let name = names.into_iter().find(|name| event_type(document, name) == kind);
    let schema = name.and_then(|name| super::definition(document, name));
    schema.map(description).unwrap_or_default().to_owned()
}
