//! A reader's view of a JSON Schema: what its parts mean as types. Shared by the TypeScript file and the reference page.

use serde_json::{Map, Value};

/// The definitions of the document, in its order.
pub(super) fn definitions(document: &Value) -> impl Iterator<Item = (&String, &Value)> {
    document
        .get("$defs")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
}

/// A field of an object schema.
pub(super) struct Field<'a> {
    /// Its name.
    pub(super) name: &'a str,
    /// True if the member is required.
    pub(super) required: bool,
    /// Its type.
    pub(super) schema: &'a Value,
}

/// Fields of an object schema, in order.
pub(super) fn fields(schema: &Value) -> Vec<Field<'_>> {
    let required = schema.get("required").and_then(Value::as_array);
    let needs = |name: &str| required.is_some_and(|names| names.iter().any(|known| known == name));
    let all = schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    all.map(|(name, schema)| Field {
        name,
        required: needs(name),
        schema,
    })
    .collect()
}

/// The description, or nothing.
pub(super) fn description(schema: &Value) -> &str {
    text(schema, "description").unwrap_or("")
}

/// Alternatives of a union. Members that stand for names of the future are left out: they would make it impossible to tell
/// the others apart.
pub(super) fn members(schema: &Value) -> Option<Vec<&Value>> {
    let all = schema.get("anyOf").or_else(|| schema.get("oneOf"))?.as_array()?;
    let open = |member: &&Value| {
        fields(member)
            .iter()
            .any(|field| field.schema.get("not").is_some())
    };
    Some(all.iter().filter(|member| !open(member)).collect())
}

/// Values of an enumeration with their descriptions.
pub(super) fn values(schema: &Value) -> Option<Vec<(String, &str)>> {
    if let Some(names) = schema.get("enum").and_then(Value::as_array) {
        return Some(names.iter().map(|name| (name.to_string(), "")).collect());
    }
    let members = members(schema)?;
    let mut out = Vec::new();
    for member in members {
        match (member.get("const"), member.get("enum").and_then(Value::as_array)) {
            (Some(name), _) => out.push((name.to_string(), description(member))),
            (None, Some(names)) => {
                out.extend(names.iter().map(|name| (name.to_string(), description(member))))
            }
            (None, None) => return None,
        }
    }
    Some(out)
}

/// The schema as a TypeScript type, on one line.
pub(super) fn type_name(schema: &Value) -> String {
    let Some(map) = schema.as_object() else {
        return "unknown".to_owned();
    };
    if let Some(value) = map.get("const") {
        return value.to_string();
    }
    let mut parts = Vec::new();
    if map.contains_key("properties") {
        parts.push(inline_object(schema));
    }
    if let Some(name) = target(map) {
        parts.push(name.to_owned());
    }
    for part in map.get("allOf").and_then(Value::as_array).into_iter().flatten() {
        parts.push(type_name(part));
    }
    if !parts.is_empty() {
        return parts.join(" & ");
    }
    if let Some(values) = values(schema) {
        return values
            .into_iter()
            .map(|(value, _)| value)
            .collect::<Vec<_>>()
            .join(" | ");
    }
    if let Some(members) = members(schema) {
        return members.into_iter().map(member).collect::<Vec<_>>().join(" | ");
    }
    match map.get("type") {
        Some(Value::String(name)) => plain(name, map),
        Some(Value::Array(names)) => {
            let names: Vec<String> = names
                .iter()
                .filter_map(Value::as_str)
                .map(|name| plain(name, map))
                .collect();
            names.join(" | ")
        }
        _ => "unknown".to_owned(),
    }
}

fn member(schema: &Value) -> String {
    let name = type_name(schema);
    if name.contains(" & ") {
        format!("({name})")
    } else {
        name
    }
}

fn plain(name: &str, map: &Map<String, Value>) -> String {
    match name {
        "integer" => "number".to_owned(),
        "object" => "Record<string, unknown>".to_owned(),
        "array" => {
            let item = map.get("items").map_or_else(|| "unknown".to_owned(), type_name);
            if item.contains(' ') {
                format!("({item})[]")
            } else {
                format!("{item}[]")
            }
        }
        other => other.to_owned(),
    }
}

fn inline_object(schema: &Value) -> String {
    let fields = fields(schema);
    let parts: Vec<String> = fields
        .iter()
        .map(|field| format!("{}: {}", label(field), type_name(field.schema)))
        .collect();
    format!("{{ {} }}", parts.join("; "))
}

/// Name of a field, with a question mark when it may be missing.
pub(super) fn label(field: &Field<'_>) -> String {
    format!("{}{}", field.name, if field.required { "" } else { "?" })
}

/// Name of the definition that is referred to.
pub(super) fn target(map: &Map<String, Value>) -> Option<&str> {
    map.get("$ref")?.as_str()?.strip_prefix("#/$defs/")
}

fn text<'a>(schema: &'a Value, key: &str) -> Option<&'a str> {
    schema.get(key)?.as_str()
}
