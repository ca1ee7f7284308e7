//! The schema without what a dialect does not have. How it is printed is decided in the module above.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use wire::Dialect;
use wire::protocol::{Belongs, FRAMES, dialects_of, family_commands, is_written};

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

/// The document with the lines that clients of one dialect write and receive, and the types that they need: the commands of
/// the dialect, and the responses to all commands. Pinion accepts every command in every dialect.
pub(super) fn only(document: &Value, dialect: Dialect) -> Value {
    let mut out = document.clone();
    let Some(defs) = out.get_mut("$defs").and_then(Value::as_object_mut) else {
        return out;
    };
    let lines = ["InboundLine", "Event", "DialectLine"].map(|union| members(defs, union));
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
        drop_properties(schema, dialect);
    }
    if members(defs, "DialectLine").is_empty() {
        defs.shift_remove("DialectLine");
        let gone = BTreeSet::from(["DialectLine".to_owned()]);
        defs.get_mut("OutboundLine")
            .into_iter()
            .for_each(|union| drop_members(union, &gone));
    }
    change_forms(defs, dialect);
    let needed = reachable(defs);
    defs.retain(|name, _| needed.contains(name));
    out
}

/// Returns true if clients of the dialect write or receive this line.
fn is_of(name: &str, schema: &Value, dialect: Dialect) -> bool {
    let kind = schema.pointer("/properties/type/const").and_then(Value::as_str);
    let kind = kind.unwrap_or_default();
    let has = |rows: &[Belongs]| dialects_of(rows, kind).is_some_and(|set| set.has(dialect));
    match name {
        // A WebSocket has linear updates from the start, stdio cumulative ones.
        UPDATE => dialect.has_delta_updates() || dialect == Dialect::Web,
        CUMULATIVE => !dialect.has_delta_updates(),
        _ if name.ends_with("Command") => has(&family_commands()),
        _ if name.ends_with("Frame") => has(&FRAMES),
        _ => is_written(dialect, kind),
    }
}

/// Removes the members of an object that other dialects have. `wire::schema` marks them.
fn drop_properties(schema: &mut Value, dialect: Dialect) {
    let Some(fields) = schema.get_mut("properties").and_then(Value::as_object_mut) else {
        return;
    };
    fields.retain(|_, field| {
        let marked = field.get("x-dialects").and_then(Value::as_array);
        marked.is_none_or(|names| names.iter().any(|name| name == dialect.as_str()))
    });
}

/// Members whose form depends on the dialect.
fn change_forms(defs: &mut Map<String, Value>, dialect: Dialect) {
    if dialect == Dialect::OmpNow {
        rename(defs, "ThinkingLevelChangedEvent", "level", "thinkingLevel");
    }
    let mut set = |line: &str, member: &str, schema: Value| {
        let fields = defs.get_mut(line).and_then(|line| line.get_mut("properties"));
        if let Some(field) = fields.and_then(|fields| fields.get_mut(member)) {
            *field = schema;
        }
    };
    if dialect.tool_errors_are_text() {
        let text = json!({ "type": "string", "description": "The error text of a failed call." });
        let result =
            json!({ "anyOf": [{ "$ref": "#/$defs/ToolResult" }, text], "description": "The result." });
        set("ToolExecutionEndEvent", "result", result);
    }
    let role = dialect.custom_role();
    if role != "custom" {
        // Entries of the session file keep their role in all dialects.
        set(
            "CustomMessage",
            "role",
            json!({ "type": "string", "enum": [role, "custom"] }),
        );
    }
}

/// A member that lines of the dialect have in place of another one.
fn rename(defs: &mut Map<String, Value>, line: &str, old: &str, new: &str) {
    let Some(line) = defs.get_mut(line) else { return };
    if let Some(fields) = line.get_mut("properties").and_then(Value::as_object_mut) {
        fields.shift_remove(old);
    }
    let required = line.get_mut("required").and_then(Value::as_array_mut);
    for name in required.into_iter().flatten().filter(|name| *name == old) {
        *name = new.into();
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
