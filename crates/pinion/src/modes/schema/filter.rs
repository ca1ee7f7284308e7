//! The schema without what a dialect does not have. How it is printed is decided in the module above.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use wire::Dialect;
use wire::protocol::{Belongs, dialects_of, family_commands, family_events};

const UPDATE: &str = "MessageUpdateEvent";
const CUMULATIVE: &str = "MessageUpdateCumulativeEvent";

/// Names of the definitions.
pub(super) fn names(document: &Value) -> BTreeSet<&str> {
    let defs = document.get("$defs").and_then(Value::as_object);
    defs.into_iter()
        .flatten()
        .map(|(name, _)| name.as_str())
        .collect()
}

/// The document with the lines of one dialect, and the types that they need.
pub(super) fn only(document: &Value, dialect: Dialect) -> Value {
    let mut out = document.clone();
    let Some(defs) = out.get_mut("$defs").and_then(Value::as_object_mut) else {
        return out;
    };
    let lines = ["InboundLine", "Response", "Event"].map(|union| members(defs, union));
    let mut gone: BTreeSet<String> = lines
        .into_iter()
        .flatten()
        .filter(|name| !defs.get(name).is_some_and(|schema| is_of(name, schema, dialect)))
        .collect();
    if dialect.is_silent() {
        gone.extend(members(defs, "Response"));
        gone.insert("Response".to_owned());
    }
    defs.retain(|name, _| !gone.contains(name));
    for schema in defs.values_mut() {
        drop_members(schema, &gone);
    }
    let needed = reachable(defs);
    defs.retain(|name, _| needed.contains(name));
    out
}

/// Returns true if the dialect has this line.
fn is_of(name: &str, schema: &Value, dialect: Dialect) -> bool {
    let has = |rows: &[Belongs], pointer: &str| {
        let name = schema.pointer(pointer).and_then(Value::as_str);
        let set = name.and_then(|name| dialects_of(rows, name));
        set.is_some_and(|set| set.has(dialect))
    };
    match name {
        UPDATE => dialect.has_delta_updates(),
        CUMULATIVE => !dialect.has_delta_updates(),
        "ErrorResponse" | "ParseErrorResponse" => true,
        _ if name.ends_with("Command") => has(&family_commands(), "/properties/type/const"),
        _ if name.ends_with("Response") => has(&family_commands(), "/properties/command/const"),
        _ => has(&family_events(), "/properties/type/const"),
    }
}

fn members(defs: &Map<String, Value>, union: &str) -> Vec<String> {
    let members = defs
        .get(union)
        .and_then(|schema| schema.get("anyOf"))
        .and_then(Value::as_array);
    let names = members.into_iter().flatten().filter_map(target);
    names.map(str::to_owned).collect()
}

fn target(schema: &Value) -> Option<&str> {
    schema.get("$ref")?.as_str()?.strip_prefix("#/$defs/")
}

fn drop_members(schema: &mut Value, gone: &BTreeSet<String>) {
    if let Some(members) = schema.get_mut("anyOf").and_then(Value::as_array_mut) {
        members.retain(|member| target(member).is_none_or(|name| !gone.contains(name)));
    }
}

/// Names of what the lines need, themselves included.
fn reachable(defs: &Map<String, Value>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![
        "InboundLine".to_owned(),
        "OutboundLine".to_owned(),
        "SessionLine".to_owned(),
    ];
    while let Some(name) = open.pop() {
        let Some(schema) = defs.get(&name) else { continue };
        if found.insert(name) {
            references(schema, &mut open);
        }
    }
    found
}

fn references(schema: &Value, out: &mut Vec<String>) {
    match schema {
        Value::Array(items) => items.iter().for_each(|item| references(item, out)),
        Value::Object(map) => {
            out.extend(target(schema).map(str::to_owned));
            map.values().for_each(|value| references(value, out));
        }
        _ => {}
    }
}
