//! The protocol as one JSON Schema document (2020-12): every line that may come in, every line that may go out, and the lines
//! of a session file.
//!
//! Here: [`document`], and the schemas of the types whose serialisation is written by hand. Not here: the files made of it
//! (`protocol/schema.json` and its relatives), which `xtask gen` writes. Only built with the feature `schema`.

mod commands;
mod dialects;
mod entry;
mod events;
mod frames;
mod message;
mod tagged;
mod tidy;

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

pub use tagged::pascal;

use crate::entry::{Entry, SessionHeader};
use crate::event::Event;

/// Definitions by name, in the order of the document.
pub(crate) type Defs = Map<String, Value>;

/// Definitions that stand for a whole line, in the order of the document.
pub const ROOTS: [&str; 3] = ["InboundLine", "OutboundLine", "SessionLine"];

/// The whole document. The same bytes for the same types, on every machine.
///
/// # Errors
/// A sentence when two types want the same name in the document.
pub fn document() -> Result<Value, String> {
    let mut inbound = SchemaSettings::draft2020_12().for_deserialize().into_generator();
    let mut outbound = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let commands = commands::requests(&mut inbound);
    let frames = frames::frames(&mut inbound);
    let responses = commands::responses(&mut outbound);
    outbound.subschema_for::<Event>();
    outbound.subschema_for::<SessionHeader>();
    outbound.subschema_for::<Entry>();
    let mut types = outbound.take_definitions(true);
    tidy::absent_not_null(&mut types);
    let events = events::split(&mut types);
    let dialect_lines = dialects::lines(&events.defs);
    for (name, schema) in inbound.take_definitions(true) {
        add(&mut types, name, schema)?;
    }
    types.retain(|name, _| !commands.inlined.contains(name));

    let mut defs = Defs::new();
    let mut lines = |name: &str, doc: &str, members: &[&str]| {
        defs.insert(name.to_owned(), union(doc, members.iter().copied()));
    };
    let names: Vec<&str> = commands
        .defs
        .keys()
        .chain(frames.keys())
        .map(String::as_str)
        .collect();
    let doc = "A line that the agent reads: a command, or a frame that answers a question of the agent.";
    lines("InboundLine", doc, &names);
    lines(
        "OutboundLine",
        "A line that the agent writes.",
        &["Response", "Event", "DialectLine"],
    );
    lines(
        "SessionLine",
        "A line of a session file: the header first, then entries.",
        &["SessionHeader", "Entry"],
    );
    let names: Vec<&str> = responses.keys().map(String::as_str).collect();
    lines("Response", "The answer to a command.", &names);
    let names: Vec<&str> = events.lines.iter().map(String::as_str).collect();
    lines("Event", "What the agent tells on its own account.", &names);
    let names: Vec<&str> = dialect_lines.keys().map(String::as_str).collect();
    lines(
        "DialectLine",
        "A line that only clients of single dialects receive.",
        &names,
    );
    types.remove("Event");
    types.sort_keys();
    for (name, schema) in commands
        .defs
        .into_iter()
        .chain(frames)
        .chain(responses)
        .chain(events.defs)
        .chain(dialect_lines)
        .chain(types)
    {
        add(&mut defs, name, schema)?;
    }
    dialects::add_members(&mut defs);
    tidy::tidy(&mut defs);
    Ok(root(defs))
}

/// The document with these definitions.
fn root(defs: Defs) -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The protocol of a pi agent in RPC mode",
        "version": crate::protocol::PROTOCOL_VERSION,
        "description": "One JSON object per line in each direction. Fields that are not named here are ignored.",
        "anyOf": ROOTS.map(tagged::reference),
        "$defs": defs,
    })
}

fn union<'a>(doc: &str, members: impl Iterator<Item = &'a str>) -> Value {
    let members: Vec<Value> = members.map(tagged::reference).collect();
    json!({ "description": doc, "anyOf": members })
}

fn add(defs: &mut Defs, name: String, schema: Value) -> Result<(), String> {
    match defs.get(&name) {
        Some(known) if *known != schema => Err(format!("two different types are called {name}")),
        _ => {
            defs.insert(name, schema);
            Ok(())
        }
    }
}
