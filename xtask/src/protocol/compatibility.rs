//! `COMPATIBILITY.md`: which command and which event belongs to which dialect, and what of it this agent has. All of it comes
//! from the tables of `wire::protocol`, the command table and the schema; nothing is written by hand but the introduction.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Value;
use wire::Dialect;
use wire::protocol::{Belongs, COMMANDS, EVENTS, dialects_of};
use wire::table::TABLE;

const INTRO: &str = "\
# Compatibility, dialect by dialect

This page is made by `cargo run -p xtask -- gen` from the tables in `crates/wire/src/protocol.rs`. Edit those, not this page.

The agent finds out which dialect a client speaks, or is told with `--rpc-dialect NAME` or the command `hello`. Without a
decision (`auto`) it understands every command below and writes lines that all known clients tolerate. `pinion schema
--dialect NAME` prints the JSON Schema of one dialect, with `--ts` its TypeScript types. What the commands and events hold is
said in [PROTOCOL.md](PROTOCOL.md).

";

/// The whole page.
pub(super) fn render(document: &Value) -> String {
    let commands: BTreeSet<&str> = TABLE.iter().map(|spec| spec.name).collect();
    let events = sent(document);
    let mut out = INTRO.to_owned();
    let mut line = |text: &str| {
        let _infallible = writeln!(out, "{text}");
    };
    for dialect in Dialect::spoken() {
        line(&format!("- `{}`: {}.", dialect.as_str(), dialect.doc()));
    }
    line(
        "\n## What is missing\n\nCommands and events of a dialect that this agent does not have yet, or will not have.\n",
    );
    line("| dialect | commands | events |\n| --- | --- | --- |");
    for dialect in Dialect::spoken() {
        line(&format!(
            "| `{}` | {} | {} |",
            dialect.as_str(),
            missing(COMMANDS, dialect, &commands),
            missing(EVENTS, dialect, &events)
        ));
    }
    line("\n## Commands\n");
    table(&mut line, COMMANDS, &commands, TABLE.iter().map(|spec| spec.name));
    line("\n## Events\n\nA dialect that has an older name for an event gets it under that name.\n");
    table(&mut line, EVENTS, &events, wire::EVENT_NAMES.iter().copied());
    out
}

/// Names of the events that the agent sends, older names for them included.
fn sent(document: &Value) -> BTreeSet<&str> {
    let defs = document.get("$defs").and_then(Value::as_object);
    let mut names: BTreeSet<&str> = defs
        .into_iter()
        .flatten()
        .filter(|(name, _)| name.ends_with("Event"))
        .filter_map(|(_, schema)| schema.pointer("/properties/type/const")?.as_str())
        .collect();
    let older = EVENTS.iter().map(|(name, _)| *name);
    let older: Vec<&str> = older
        .filter(|name| names.contains(wire::canonical_event(name)))
        .collect();
    names.extend(older);
    names
}

fn missing(rows: &[Belongs], dialect: Dialect, here: &BTreeSet<&str>) -> String {
    let names = rows
        .iter()
        .filter(|(name, set)| set.has(dialect) && !here.contains(name));
    let names: Vec<String> = names.map(|(name, _)| format!("`{name}`")).collect();
    if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    }
}

/// One row per name: those of the family first, then our own.
fn table<'a>(
    line: &mut impl FnMut(&str),
    rows: &[Belongs],
    here: &BTreeSet<&str>,
    own: impl Iterator<Item = &'a str>,
) {
    let names: Vec<&str> = Dialect::spoken().map(Dialect::as_str).collect();
    line(&format!("| name | here | {} |", names.join(" | ")));
    line(&format!("| --- | --- |{}", " --- |".repeat(names.len())));
    let mark = |is: bool| if is { "yes" } else { "" };
    for (name, set) in rows {
        let cells: Vec<&str> = Dialect::spoken().map(|dialect| mark(set.has(dialect))).collect();
        let here = if here.contains(name) { "yes" } else { "no" };
        line(&format!("| `{name}` | {here} | {} |", cells.join(" | ")));
    }
    for name in own.filter(|name| dialects_of(rows, name).is_none()) {
        let cells = vec!["own"; names.len()];
        line(&format!("| `{name}` | yes | {} |", cells.join(" | ")));
    }
}
