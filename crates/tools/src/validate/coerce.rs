//! Converts values to the types a schema wants, where a model's intent is plain. Says nothing of what remains wrong.

use serde_json::{Map, Number, Value};

use super::{Budget, check, is_reference, is_type, types};

/// What `null` becomes where a text is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NullText {
    /// The empty text: tools of hosts and extensions.
    Empty,
    /// The word `null`: built-in tools.
    Word,
}

/// Converts a value and everything in it.
pub(super) fn coerce(schema: &Value, value: Value, null: NullText, budget: &mut Budget) -> Value {
    let Some(schema) = schema.as_object().filter(|schema| !is_reference(schema)) else {
        return value;
    };
    // Taken out and put back, so that a value that is not followed is neither copied nor lost.
    let mut slot = Some(value);
    let done = budget.enter(|budget| slot.take().map(|value| one(schema, value, null, budget)));
    done.flatten().or(slot).unwrap_or_default()
}

fn one(schema: &Map<String, Value>, value: Value, null: NullText, budget: &mut Budget) -> Value {
    let mut value = value;
    for part in schema
        .get("allOf")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        value = coerce(part, value, null, budget);
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(choices) = schema.get(key).and_then(Value::as_array) {
            value = choose(choices, value, null, budget);
        }
    }
    let types = types(schema);
    if !types.is_empty() && !types.iter().any(|name| is_type(&value, name)) {
        let converted = types.iter().find_map(|name| convert(&value, name, null));
        value = converted.unwrap_or(value);
    }
    match value {
        Value::Object(map) => Value::Object(object(schema, map, null, budget)),
        Value::Array(list) => Value::Array(array(schema, list, null, budget)),
        other => other,
    }
}

/// The value as it is if a choice takes it so; else the first choice that takes its conversion.
fn choose(choices: &[Value], value: Value, null: NullText, budget: &mut Budget) -> Value {
    if choices
        .iter()
        .any(|choice| check::accepts(choice, &value, budget))
    {
        return value;
    }
    for choice in choices {
        let converted = coerce(choice, value.clone(), null, budget);
        if check::accepts(choice, &converted, budget) {
            return converted;
        }
    }
    value
}

fn object(
    schema: &Map<String, Value>,
    map: Map<String, Value>,
    null: NullText,
    budget: &mut Budget,
) -> Map<String, Value> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let rest = schema.get("additionalProperties");
    map.into_iter()
        .map(|(key, value)| {
            let part = properties.and_then(|properties| properties.get(&key)).or(rest);
            let value = match part {
                Some(part) => coerce(part, value, null, budget),
                None => value,
            };
            (key, value)
        })
        .collect()
}

fn array(schema: &Map<String, Value>, list: Vec<Value>, null: NullText, budget: &mut Budget) -> Vec<Value> {
    let first = schema
        .get("prefixItems")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    let items = schema.get("items");
    list.into_iter()
        .enumerate()
        .map(|(i, value)| match first.get(i).or(items) {
            Some(part) => coerce(part, value, null, budget),
            None => value,
        })
        .collect()
}

/// One value to one type, if that makes sense.
fn convert(value: &Value, name: &str, null: NullText) -> Option<Value> {
    match (name, value) {
        ("number" | "integer", Value::String(text)) => number(text, name == "integer"),
        ("number" | "integer", Value::Bool(bool)) => Some(Value::from(u8::from(*bool))),
        ("number" | "integer", Value::Null) => Some(Value::from(0)),
        ("boolean", Value::String(text)) => truth(text).map(Value::Bool),
        ("boolean", Value::Number(number)) => match number.as_f64() {
            Some(1.0) => Some(Value::Bool(true)),
            Some(0.0) => Some(Value::Bool(false)),
            _ => None,
        },
        ("boolean", Value::Null) => Some(Value::Bool(false)),
        ("string", Value::Number(number)) => Some(Value::String(plain_number(number))),
        ("string", Value::Bool(bool)) => Some(Value::String(bool.to_string())),
        ("string", Value::Null) => Some(Value::String(
            if null == NullText::Word { "null" } else { "" }.to_owned(),
        )),
        ("null", Value::String(text)) if text.is_empty() => Some(Value::Null),
        ("null", Value::Bool(false)) => Some(Value::Null),
        ("null", Value::Number(number)) if number.as_f64() == Some(0.0) => Some(Value::Null),
        ("array", single) if !single.is_null() => Some(Value::Array(vec![single.clone()])),
        _ => None,
    }
}

/// A truth value written as text, also as Python writes it: models do so, and both versions of pi accept it.
pub(super) fn truth(text: &str) -> Option<bool> {
    match text.trim() {
        "1" => Some(true),
        "0" => Some(false),
        word if word.eq_ignore_ascii_case("true") => Some(true),
        word if word.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

/// A number as JavaScript writes it: no fraction where there is none.
pub(super) fn plain_number(number: &Number) -> String {
    let text = number.to_string();
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// A number written as text.
fn number(text: &str, whole: bool) -> Option<Value> {
    let text = text.trim();
    if let Ok(number) = text.parse::<i64>() {
        return Some(Value::from(number));
    }
    // Rust also reads "inf" and "nan", JSON has neither.
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite())?;
    if whole && number.fract() != 0.0 {
        return None;
    }
    Number::from_f64(number).map(Value::Number)
}
