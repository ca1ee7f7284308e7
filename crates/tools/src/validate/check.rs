//! The rules of JSON Schema that tools use, with the messages models have come to know. Changes nothing.

use serde_json::{Map, Value};

use super::{Budget, Fault, Problem, is_reference, is_type, type_name, types};
use crate::limits;

/// Returns true if a schema accepts a value.
pub(super) fn accepts(schema: &Value, value: &Value, budget: &mut Budget) -> bool {
    let mut problems = Vec::new();
    let only_judged = std::mem::replace(&mut budget.only_judges, true);
    check(schema, value, &mut Vec::new(), budget, &mut problems);
    budget.only_judges = only_judged;
    problems.is_empty()
}

/// Lists the errors of a value.
pub(super) fn check(
    schema: &Value,
    value: &Value,
    path: &mut Vec<String>,
    budget: &mut Budget,
    problems: &mut Vec<Problem>,
) {
    if problems.len() >= limits::SCHEMA_ERRORS {
        return;
    }
    match schema {
        Value::Bool(false) => add(
            problems,
            path,
            Fault::Rule {
                older: "schema is false".to_owned(),
                newer: "no value is allowed here".to_owned(),
            },
        ),
        Value::Object(schema) if !is_reference(schema) => {
            budget.enter(|budget| {
                Check {
                    path,
                    budget,
                    problems,
                }
                .schema(schema, value);
            });
        }
        _ => {}
    }
}

fn add(problems: &mut Vec<Problem>, path: &[String], fault: Fault) {
    let path = path.join(".");
    problems.push(Problem { path, fault });
}

struct Check<'a> {
    path: &'a mut Vec<String>,
    budget: &'a mut Budget,
    problems: &'a mut Vec<Problem>,
}

impl Check<'_> {
    /// Adds an error in the words of pi 0.74 and of today's pi.
    fn fail(&mut self, older: impl Into<String>, newer: impl Into<String>) {
        let (older, newer) = (older.into(), newer.into());
        add(self.problems, self.path, Fault::Rule { older, newer });
    }

    fn inside(&mut self, key: String, schema: &Value, value: &Value) {
        self.path.push(key);
        check(schema, value, self.path, self.budget, self.problems);
        self.path.pop();
    }

    fn schema(&mut self, schema: &Map<String, Value>, value: &Value) {
        let types = types(schema);
        if !types.is_empty() && !types.iter().any(|name| is_type(value, name)) {
            let fault = Fault::Type {
                expected: types.iter().map(|name| (*name).to_owned()).collect(),
                found: type_name(value),
            };
            return add(self.problems, self.path, fault);
        }
        if let Some(constant) = schema.get("const").filter(|constant| !same(constant, value)) {
            self.fail("must be equal to constant", format!("expected {constant}"));
        }
        if let Some(Value::Array(allowed)) = schema.get("enum")
            && !allowed.iter().any(|one| same(one, value))
        {
            self.fail("must be equal to one of the allowed values", one_of(allowed));
        }
        match value {
            Value::Number(number) => self.number(schema, number.as_f64().unwrap_or_default()),
            Value::String(text) => self.text(schema, text),
            Value::Array(list) => self.array(schema, list),
            Value::Object(map) => self.object(schema, map),
            Value::Null | Value::Bool(_) => {}
        }
        self.combined(schema, value);
    }

    fn combined(&mut self, schema: &Map<String, Value>, value: &Value) {
        for part in schema
            .get("allOf")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            check(part, value, self.path, self.budget, self.problems);
        }
        let mut matching = |key| {
            let choices = schema.get(key)?.as_array()?;
            Some(
                choices
                    .iter()
                    .filter(|choice| accepts(choice, value, self.budget))
                    .count(),
            )
        };
        let (any, one) = (matching("anyOf"), matching("oneOf"));
        let rules = [
            (any, "anyOf", "must match a schema in anyOf"),
            (one, "oneOf", "must match exactly one schema in oneOf"),
        ];
        let not = schema
            .get("not")
            .is_some_and(|not| accepts(not, value, self.budget));
        for (count, key, older) in rules {
            match count {
                Some(0) => {
                    let choices = schema.get(key).and_then(Value::as_array);
                    let best = self.best(choices.map(Vec::as_slice).unwrap_or_default(), value);
                    add(self.problems, self.path, Fault::NoChoice { older, best });
                }
                Some(2..) if key == "oneOf" => self.fail(older, "matches more than one alternative"),
                _ => {}
            }
        }
        if not {
            self.fail("must not be valid", "must not match the schema in not");
        }
    }

    /// The errors of the choice that was probably meant: its tag is that of the value, or it knows most members of the value; among
    /// equals, its first error is deepest.
    fn best(&mut self, choices: &[Value], value: &Value) -> Vec<Problem> {
        if self.budget.only_judges {
            return Vec::new();
        }
        if let (Some((key, tags)), Value::Object(map)) = (tags(choices), value) {
            let found = map.get(key);
            let mut problems = Vec::new();
            let is_found = |tag: &Value| found.is_some_and(|found| same(tag, found));
            let choice = tags.iter().position(is_found).and_then(|at| choices.get(at));
            if let Some(choice) = choice {
                check(choice, value, self.path, self.budget, &mut problems);
            } else {
                self.path.push(key.to_owned());
                let (older, newer) = (String::new(), one_of(&tags));
                add(&mut problems, self.path, Fault::Rule { older, newer });
                self.path.pop();
            }
            return problems;
        }
        let mut best: Option<((usize, usize), Vec<Problem>)> = None;
        for choice in choices {
            let mut problems = Vec::new();
            check(choice, value, self.path, self.budget, &mut problems);
            let Some(first) = problems.first() else { continue };
            let properties = choice.get("properties").and_then(Value::as_object);
            let known = properties.zip(value.as_object()).map_or(0, |(properties, map)| {
                map.keys().filter(|key| properties.contains_key(*key)).count()
            });
            let rank = (known, first.path.len());
            if best.as_ref().is_none_or(|(other, _)| rank > *other) {
                best = Some((rank, problems));
            }
        }
        best.map(|(_, problems)| problems).unwrap_or_default()
    }

    fn number(&mut self, schema: &Map<String, Value>, number: f64) {
        let limit = |key: &str| schema.get(key).and_then(Value::as_f64);
        let shown = |key: &str| schema.get(key).map(Value::to_string).unwrap_or_default();
        if limit("minimum").is_some_and(|min| number < min) {
            self.bound(">=", &shown("minimum"));
        }
        if limit("maximum").is_some_and(|max| number > max) {
            self.bound("<=", &shown("maximum"));
        }
        if limit("exclusiveMinimum").is_some_and(|min| number <= min) {
            self.bound(">", &shown("exclusiveMinimum"));
        }
        if limit("exclusiveMaximum").is_some_and(|max| number >= max) {
            self.bound("<", &shown("exclusiveMaximum"));
        }
        if limit("multipleOf").is_some_and(|step| step > 0.0 && (number / step).fract() != 0.0) {
            let step = shown("multipleOf");
            self.fail(
                format!("must be multiple of {step}"),
                format!("expected a multiple of {step}"),
            );
        }
    }

    fn bound(&mut self, sign: &str, bound: &str) {
        self.fail(
            format!("must be {sign} {bound}"),
            format!("expected {sign} {bound}"),
        );
    }

    /// `min…` and `max…` of a count.
    fn size(&mut self, schema: &Map<String, Value>, what: &str, unit: &str, count: usize) {
        let limit = |side: &str| schema.get(&format!("{side}{what}")).and_then(Value::as_u64);
        if let Some(min) = limit("min").filter(|min| (count as u64) < *min) {
            self.fail(
                format!("must not have fewer than {min} {unit}"),
                format!("expected at least {min} {unit}"),
            );
        }
        if let Some(max) = limit("max").filter(|max| (count as u64) > *max) {
            self.fail(
                format!("must not have more than {max} {unit}"),
                format!("expected at most {max} {unit}"),
            );
        }
    }

    fn text(&mut self, schema: &Map<String, Value>, text: &str) {
        self.size(schema, "Length", "characters", text.chars().count());
        if let Some(pattern) = schema.get("pattern").and_then(Value::as_str) {
            let regex = regex::RegexBuilder::new(pattern)
                .size_limit(limits::SCHEMA_PATTERN_SIZE)
                .build();
            // A pattern that this regex library cannot parse is ignored: it must not block the tool.
            if regex.is_ok_and(|regex| !regex.is_match(text)) {
                self.fail(
                    format!("must match pattern \"{pattern}\""),
                    format!("expected to match {pattern}"),
                );
            }
        }
    }

    fn array(&mut self, schema: &Map<String, Value>, list: &[Value]) {
        self.size(schema, "Items", "items", list.len());
        if schema.get("uniqueItems") == Some(&Value::Bool(true)) {
            let mut seen = std::collections::HashSet::new();
            if !list.iter().all(|item| seen.insert(item.to_string())) {
                self.fail("must not have duplicate items", "expected unique items");
            }
        }
        let first = schema
            .get("prefixItems")
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let items = schema.get("items");
        for (i, value) in list.iter().enumerate() {
            if let Some(part) = first.get(i).or(items) {
                self.inside(i.to_string(), part, value);
            }
        }
    }

    fn object(&mut self, schema: &Map<String, Value>, map: &Map<String, Value>) {
        self.size(schema, "Properties", "properties", map.len());
        self.required(schema, map);
        let empty = Map::new();
        let properties = schema
            .get("properties")
            .and_then(Value::as_object)
            .unwrap_or(&empty);
        let rest = schema.get("additionalProperties");
        let closed = rest == Some(&Value::Bool(false)) && !schema.contains_key("patternProperties");
        let unknown = map.keys().filter(|key| closed && !properties.contains_key(*key));
        let unknown: Vec<String> = unknown.cloned().collect();
        if !unknown.is_empty() {
            add(self.problems, self.path, Fault::Unknown(unknown));
        }
        for (key, value) in map {
            match (properties.get(key), rest) {
                (Some(part), _) => self.inside(key.clone(), part, value),
                (None, Some(part @ Value::Object(_))) => self.inside(key.clone(), part, value),
                _ => {}
            }
        }
    }

    fn required(&mut self, schema: &Map<String, Value>, map: &Map<String, Value>) {
        let Some(Value::Array(required)) = schema.get("required") else {
            return;
        };
        let names = required.iter().filter_map(Value::as_str);
        let missing: Vec<String> = names
            .filter(|key| !map.contains_key(*key))
            .map(str::to_owned)
            .collect();
        if !missing.is_empty() {
            add(self.problems, self.path, Fault::Missing(missing));
        }
    }
}

/// The member that tells choices apart, and its value in each: a `const` that no other choice has.
fn tags(choices: &[Value]) -> Option<(&str, Vec<Value>)> {
    let tag = |choice: &Value, key: &str| {
        let tag = choice.get("properties")?.get(key)?.get("const")?;
        (!tag.is_object() && !tag.is_array()).then(|| tag.clone())
    };
    let first = choices.first()?.get("properties")?.as_object()?;
    first.keys().find_map(|key| {
        let tags: Option<Vec<Value>> = choices.iter().map(|choice| tag(choice, key)).collect();
        let tags = tags?;
        let is_new = |(at, tag): (usize, &Value)| !tags.iter().take(at).any(|other| same(other, tag));
        let are_distinct = tags.iter().enumerate().all(is_new);
        are_distinct.then_some((key.as_str(), tags))
    })
}

/// Names the allowed values; of many, the first ones.
fn one_of(allowed: &[Value]) -> String {
    let shown: Vec<String> = allowed
        .iter()
        .take(limits::SCHEMA_VALUES_SHOWN)
        .map(Value::to_string)
        .collect();
    let shown = shown.join(",");
    match allowed.len().saturating_sub(limits::SCHEMA_VALUES_SHOWN) {
        0 => format!("expected one of [{shown}]"),
        more => format!("expected one of [{shown}, ... and {more} more]"),
    }
}

/// Equal as JSON values: `1` and `1.0` are the same number.
pub(super) fn same(a: &Value, b: &Value) -> bool {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => a.total_cmp(&b).is_eq(),
        _ => a == b,
    }
}
