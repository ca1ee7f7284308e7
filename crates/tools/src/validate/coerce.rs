//! Converts values to the types a schema wants, where a model's intent is plain. Says nothing of what remains wrong.

use serde_json::{Map, Number, Value};
use wire::Dialect;

use super::{Budget, check, is_reference, is_type, types};

/// Which conversions are made (pi-core.md 1.6, pi-1.5-delta.md 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coercions {
    /// By type. `null` becomes the empty text where a text is wanted.
    Plain,
    /// As `Plain`, but `null` becomes the word `null`.
    NullWord,
    /// Those of pi: a type that stands alone also takes an empty text as 0, words for truth values as numbers, and numbers without their
    /// fraction as integers. A value that `const` or `enum` has in another type becomes that one.
    Pi,
}

impl Coercions {
    /// Those of built-in tools in a dialect.
    pub(crate) const fn of_built_in(dialect: Dialect) -> Self {
        match dialect {
            Dialect::Auto | Dialect::Pi | Dialect::PiDelta => Self::Pi,
            _ => Self::NullWord,
        }
    }
}

/// Converts a value and everything in it.
pub(super) fn coerce(schema: &Value, value: Value, coercions: Coercions, budget: &mut Budget) -> Value {
    let Some(schema) = schema.as_object().filter(|schema| !is_reference(schema)) else {
        return value;
    };
    // Taken out and put back, so that a value that is not followed is neither copied nor lost.
    let mut slot = Some(value);
    let done = budget.enter(|budget| slot.take().map(|value| one(schema, value, coercions, budget)));
    done.flatten().or(slot).unwrap_or_default()
}

fn one(schema: &Map<String, Value>, value: Value, coercions: Coercions, budget: &mut Budget) -> Value {
    let mut value = value;
    if coercions == Coercions::Pi {
        value = literal(schema, value);
    }
    for part in schema
        .get("allOf")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        value = coerce(part, value, coercions, budget);
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(choices) = schema.get(key).and_then(Value::as_array) {
            value = choose(choices, value, coercions, budget);
        }
    }
    let types = types(schema);
    if !types.is_empty() && !types.iter().any(|name| is_type(&value, name)) {
        let converted = types.iter().find_map(|name| match coercions {
            Coercions::Pi if stands_alone(schema) => convert_alone(&value, name),
            Coercions::Pi => convert_listed(&value, name),
            _ => convert(&value, name, coercions),
        });
        value = converted.unwrap_or(value);
    }
    match value {
        Value::Object(map) => Value::Object(object(schema, map, coercions, budget)),
        Value::Array(list) => Value::Array(array(schema, list, coercions, budget)),
        other => other,
    }
}

/// The value as it is if a choice takes it so; else the first choice that takes its conversion.
fn choose(choices: &[Value], value: Value, coercions: Coercions, budget: &mut Budget) -> Value {
    if choices
        .iter()
        .any(|choice| check::accepts(choice, &value, budget))
    {
        return value;
    }
    for choice in choices {
        let converted = coerce(choice, value.clone(), coercions, budget);
        if check::accepts(choice, &converted, budget) {
            return converted;
        }
    }
    value
}

fn object(
    schema: &Map<String, Value>,
    map: Map<String, Value>,
    coercions: Coercions,
    budget: &mut Budget,
) -> Map<String, Value> {
    let properties = schema.get("properties").and_then(Value::as_object);
    // It does not hold for members with a pattern. Patterns are not followed here.
    let rest = schema.get("additionalProperties");
    let rest = rest.filter(|_| !schema.contains_key("patternProperties"));
    map.into_iter()
        .map(|(key, value)| {
            let part = properties.and_then(|properties| properties.get(&key)).or(rest);
            let value = match part {
                Some(part) => coerce(part, value, coercions, budget),
                None => value,
            };
            (key, value)
        })
        .collect()
}

fn array(
    schema: &Map<String, Value>,
    list: Vec<Value>,
    coercions: Coercions,
    budget: &mut Budget,
) -> Vec<Value> {
    let first = schema
        .get("prefixItems")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    let items = schema.get("items");
    list.into_iter()
        .enumerate()
        .map(|(i, value)| match first.get(i).or(items) {
            Some(part) => coerce(part, value, coercions, budget),
            None => value,
        })
        .collect()
}

/// One value to one type, if that makes sense.
fn convert(value: &Value, name: &str, coercions: Coercions) -> Option<Value> {
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
            if coercions == Coercions::Plain { "" } else { "null" }.to_owned(),
        )),
        ("null", Value::String(text)) if text.is_empty() => Some(Value::Null),
        ("null", Value::Bool(false)) => Some(Value::Null),
        ("null", Value::Number(number)) if number.as_f64() == Some(0.0) => Some(Value::Null),
        ("array", single) if !single.is_null() => Some(Value::Array(vec![single.clone()])),
        _ => None,
    }
}

/// Returns true if the type alone says what a value must be.
fn stands_alone(schema: &Map<String, Value>) -> bool {
    let others = ["const", "enum", "anyOf", "oneOf", "allOf"];
    schema.get("type").is_some_and(Value::is_string) && !others.iter().any(|key| schema.contains_key(*key))
}

/// One value to a type that stands alone, as in pi.
fn convert_alone(value: &Value, name: &str) -> Option<Value> {
    match name {
        "number" => as_number(value),
        "integer" => as_number(value).map(without_fraction),
        "boolean" => as_truth(value).map(Value::Bool),
        "string" => as_text(value).map(Value::String),
        "null" => is_nothing(value).then_some(Value::Null),
        "array" => Some(Value::Array(vec![value.clone()])),
        _ => None,
    }
}

/// One value to one of several types, as in pi.
fn convert_listed(value: &Value, name: &str) -> Option<Value> {
    match (name, value) {
        ("number" | "integer", Value::String(text)) if text.trim().is_empty() => None,
        ("number" | "integer", Value::String(text)) => {
            javascript_number(text).filter(|number| is_type(number, name))
        }
        ("boolean", Value::String(text)) => text.parse().ok().map(Value::Bool),
        ("null", Value::String(text)) => text.is_empty().then_some(Value::Null),
        ("array", _) => None,
        _ => convert(value, name, Coercions::Plain),
    }
}

/// The value in the type that `const` or `enum` has it in.
fn literal(schema: &Map<String, Value>, value: Value) -> Value {
    if let Some(constant) = schema.get("const") {
        return as_literal(constant, &value).unwrap_or(value);
    }
    let Some(Value::Array(members)) = schema.get("enum") else {
        return value;
    };
    if members.iter().any(|member| check::same(member, &value)) {
        return value;
    }
    let types = types(schema);
    let fits = |member: &Value| types.is_empty() || types.iter().any(|name| is_type(member, name));
    let found = members
        .iter()
        .filter(|member| fits(member))
        .find_map(|member| as_literal(member, &value));
    found.unwrap_or(value)
}

/// The literal, if the value is the same in another type.
fn as_literal(literal: &Value, value: &Value) -> Option<Value> {
    let is_same = match literal {
        Value::String(text) => as_text(value).as_ref() == Some(text),
        Value::Number(_) => as_number(value).is_some_and(|number| check::same(literal, &number)),
        Value::Bool(truth) => as_truth(value) == Some(*truth),
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    };
    is_same.then(|| literal.clone())
}

fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(plain_number(number)),
        Value::Bool(truth) => Some(truth.to_string()),
        Value::Null => Some("null".to_owned()),
        Value::Array(_) | Value::Object(_) => None,
    }
}

fn as_truth(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(truth) => Some(*truth),
        Value::Null => Some(false),
        Value::Number(number) if number.as_f64() == Some(0.0) => Some(false),
        Value::Number(number) if number.as_f64() == Some(1.0) => Some(true),
        Value::String(text) => truth(text),
        _ => None,
    }
}

fn as_number(value: &Value) -> Option<Value> {
    match value {
        Value::Number(_) => Some(value.clone()),
        Value::Bool(truth) => Some(Value::from(u8::from(*truth))),
        Value::Null => Some(Value::from(0)),
        Value::String(text) if text.eq_ignore_ascii_case("true") => Some(Value::from(1)),
        Value::String(text) if text.eq_ignore_ascii_case("false") => Some(Value::from(0)),
        Value::String(text) => javascript_number(text),
        Value::Array(_) | Value::Object(_) => None,
    }
}

/// A text as the number that JavaScript makes of it: an empty text is 0, and there are three more bases.
fn javascript_number(text: &str) -> Option<Value> {
    let text = text.trim();
    if text.is_empty() {
        return Some(Value::from(0));
    }
    let bases = [("0x", 16), ("0X", 16), ("0o", 8), ("0O", 8), ("0b", 2), ("0B", 2)];
    for (prefix, base) in bases {
        // A sign after the prefix is no number in JavaScript, but one for `from_str_radix`.
        if let Some(digits) = text
            .strip_prefix(prefix)
            .filter(|digits| !digits.starts_with('+'))
        {
            return u64::from_str_radix(digits, base).ok().map(Value::from);
        }
    }
    number(text, false)
}

fn without_fraction(number: Value) -> Value {
    let Some(fraction) = number.as_f64().filter(|number| number.fract() != 0.0) else {
        return number;
    };
    // By its text, which has no fraction now, so that a whole number is stored as one.
    let whole = fraction.trunc().to_string();
    whole.parse::<i64>().map_or(number, Value::from)
}

/// Returns true for what pi takes for null where null is wanted.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => {
            let words = ["", "0", "null", "undefined"];
            words.iter().any(|word| text.eq_ignore_ascii_case(word))
        }
        _ => false,
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
