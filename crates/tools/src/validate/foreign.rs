//! Arguments of tools that are not ours: any JSON Schema, carried out by the `jsonschema` crate (dialects.md 7). What is wrong
//! is said in the words of `check` where it knows the rule. How much a schema may cost is bounded in `cost`.

use std::sync::OnceLock;

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{JsonType, PatternOptions, ValidationError, Validator};
use serde_json::{Map, Value};

use super::{Budget, Problem, check, cost, failure};
use crate::limits;

/// The schema of a foreign tool's arguments. Compiled when it is used first.
#[derive(Debug)]
pub struct ForeignSchema {
    schema: Value,
    /// None when it cannot be used: it is no schema, or it refers to something outside of itself.
    validator: OnceLock<Option<Validator>>,
}

impl ForeignSchema {
    /// Takes any JSON value; one that is no usable schema accepts everything.
    #[must_use]
    pub fn new(schema: Value) -> Self {
        Self {
            schema,
            validator: OnceLock::new(),
        }
    }

    /// The schema as it was given.
    #[must_use]
    pub fn schema(&self) -> &Value {
        &self.schema
    }

    /// Brings a model's arguments into the schema's types and checks them: optional fields that are `null`, or the word
    /// `null`, go; texts that hold a number, a truth value, an array or an object where one is wanted are read as such. A
    /// schema that cannot be used, or would take too long for these arguments, lets them pass as they are.
    ///
    /// # Errors
    /// The whole failure text for the model.
    pub fn prepare(&self, tool: &str, args: &Map<String, Value>) -> Result<Map<String, Value>, String> {
        let Some(validator) = self.validator() else {
            return Ok(args.clone());
        };
        let mut value = Value::Object(args.clone());
        drop_nothings(&self.schema, &self.schema, &mut value, limits::SCHEMA_DEPTH);
        for _ in 0..limits::SCHEMA_PASSES {
            if !cost::is_affordable(&self.schema, &value) {
                return Ok(args.clone());
            }
            if validator.is_valid(&value) {
                return match value {
                    Value::Object(map) => Ok(map),
                    _ => Ok(args.clone()),
                };
            }
            if !read_texts(validator, &mut value) {
                break;
            }
        }
        Err(failure(tool, &self.problems(validator, &value), args))
    }

    fn validator(&self) -> Option<&Validator> {
        let compile = || {
            let patterns = PatternOptions::fancy_regex()
                .backtrack_limit(limits::SCHEMA_BACKTRACKS)
                .size_limit(limits::SCHEMA_PATTERN_SIZE);
            let options = jsonschema::options().with_pattern_options(patterns);
            options.build(&self.schema).ok()
        };
        self.validator.get_or_init(compile).as_ref()
    }

    fn problems(&self, validator: &Validator, value: &Value) -> Vec<Problem> {
        let mut problems = Vec::new();
        check::check(
            &self.schema,
            value,
            &mut Vec::new(),
            &mut Budget::default(),
            &mut problems,
        );
        if problems.is_empty() {
            let errors = validator.iter_errors(value).take(limits::SCHEMA_ERRORS);
            problems.extend(errors.map(|error| problem(&error)));
        }
        problems
    }
}

fn problem(error: &ValidationError<'_>) -> Problem {
    let pointer = error.instance_path().to_string();
    let path = pointer.trim_start_matches('/').replace('/', ".");
    Problem {
        path: if path.is_empty() { "root".to_owned() } else { path },
        // Masked: the value is shown below the problems, once.
        message: error.masked().to_string(),
    }
}

/// Removes optional fields that say `null`, as a value or as a word, unless their schema asks for just that.
fn drop_nothings(root: &Value, schema: &Value, value: &mut Value, depth: usize) {
    let Some(schema) = cost::follow(root, schema)
        .and_then(Value::as_object)
        .filter(|_| depth > 0)
    else {
        return;
    };
    match value {
        Value::Object(map) => {
            let Some(fields) = schema.get("properties").and_then(Value::as_object) else {
                return;
            };
            let required = schema.get("required").and_then(Value::as_array);
            let is_required = |key: &str| required.is_some_and(|keys| keys.iter().any(|one| one == key));
            map.retain(|key, value| {
                let Some(field) = fields.get(key).filter(|_| is_nothing(value)) else {
                    return true;
                };
                is_required(key) || wants(root, field, value)
            });
            for (key, value) in map.iter_mut() {
                if let Some(field) = fields.get(key) {
                    drop_nothings(root, field, value, depth - 1);
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = schema.get("items") else { return };
            for item in items {
                drop_nothings(root, schema, item, depth - 1);
            }
        }
        _ => {}
    }
}

fn is_nothing(value: &Value) -> bool {
    value.is_null() || value == "null"
}

/// Does a field's schema ask for this nothing by name?
fn wants(root: &Value, schema: &Value, value: &Value) -> bool {
    let Some(schema) = cost::follow(root, schema).and_then(Value::as_object) else {
        return false;
    };
    let listed = |key: &str| schema.get(key).and_then(Value::as_array);
    schema.get("const") == Some(value)
        || listed("enum").is_some_and(|values| values.contains(value))
        || value.is_null() && super::types(schema).contains(&"null")
        || ["anyOf", "oneOf"].iter().any(|key| {
            let mut choices = listed(key).into_iter().flatten();
            choices.any(|choice| choice != &Value::Object(schema.clone()) && names(choice, value))
        })
}

/// The same for one choice, which is not looked into any further.
fn names(schema: &Value, value: &Value) -> bool {
    let Some(schema) = schema.as_object() else {
        return false;
    };
    let listed = schema.get("enum").and_then(Value::as_array);
    schema.get("const") == Some(value)
        || listed.is_some_and(|values| values.contains(value))
        || value.is_null() && super::types(schema).contains(&"null")
}

/// Reads texts where the validator wants something else. False when there was nothing to read.
fn read_texts(validator: &Validator, value: &mut Value) -> bool {
    let mut found = Vec::new();
    for error in validator.iter_errors(value).take(limits::SCHEMA_ERRORS) {
        readable(&error, limits::SCHEMA_DEPTH, &mut found);
    }
    let mut changed = false;
    for (pointer, read) in found {
        // Two choices may ask for the same text; the first wins.
        if let Some(place) = value.pointer_mut(&pointer).filter(|place| place.is_string()) {
            *place = read;
            changed = true;
        }
    }
    changed
}

fn readable(error: &ValidationError<'_>, depth: usize, found: &mut Vec<(String, Value)>) {
    match error.kind() {
        ValidationErrorKind::Type { kind } => {
            if let Some(read) = error.instance().as_str().and_then(|text| read_as(text, kind)) {
                found.push((error.instance_path().to_string(), read));
            }
        }
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context }
            if depth > 0 =>
        {
            for error in context.iter().flatten() {
                readable(error, depth - 1, found);
            }
        }
        _ => {}
    }
}

fn read_as(text: &str, wanted: &TypeKind) -> Option<Value> {
    let read: Value = serde_json::from_str(text.trim()).ok()?;
    let fits = |kind: JsonType| match kind {
        JsonType::Null => read.is_null(),
        JsonType::Boolean => read.is_boolean(),
        JsonType::Number => read.is_number(),
        JsonType::Integer => super::is_type(&read, "integer"),
        JsonType::Array => read.is_array(),
        JsonType::Object => read.is_object(),
        JsonType::String => false,
    };
    let fits = match wanted {
        TypeKind::Single(kind) => fits(*kind),
        TypeKind::Multiple(kinds) => kinds.iter().any(fits),
    };
    fits.then_some(read)
}
