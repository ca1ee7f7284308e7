//! Arguments of extension, MCP and client tools against their JSON Schema, with the `boon` crate. Where `check` knows the
//! rule, its wording is used in the failure text. `cost` bounds the work before it starts.

use std::fmt;
use std::sync::OnceLock;

use boon::{
    CompileError, Compiler, ErrorKind, SchemaIndex, Schemas, Type, Types, UrlLoader, ValidationError,
};
use serde_json::{Map, Value};
use wire::Dialect;

use super::{Budget, Coercions, Fault, Problem, check, coerce, cost, failure, patterns};
use crate::limits;

/// Location under which the schema is compiled. Never fetched: [`NoLoader`] refuses every load.
const LOCATION: &str = "tool:///schema";

/// The schema of a foreign tool's arguments. Compiled when it is used first.
#[derive(Debug)]
pub struct ForeignSchema {
    schema: Value,
    /// None when it cannot be used: it is no schema, or it refers to something outside of itself.
    validator: OnceLock<Option<Validator>>,
    /// The words of failures.
    dialect: Dialect,
}

/// A compiled schema.
pub(super) struct Validator {
    schemas: Schemas,
    root: SchemaIndex,
}

impl fmt::Debug for Validator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Validator").finish_non_exhaustive()
    }
}

impl Validator {
    /// Compiles a schema.
    ///
    /// # Errors
    /// The reason: it is no JSON Schema or refers to another document.
    pub(super) fn compile(schema: &Value) -> Result<Self, String> {
        let mut compiler = Compiler::new();
        // The default loader reads `file:` URLs, and a schema comes from an MCP server or an extension.
        compiler.use_loader(Box::new(NoLoader));
        compiler
            .add_resource(LOCATION, patterns::supported(schema))
            .map_err(|error| compile_failure(&error))?;
        let mut schemas = Schemas::new();
        let root = compiler
            .compile(LOCATION, &mut schemas)
            .map_err(|error| compile_failure(&error))?;
        Ok(Self { schemas, root })
    }

    /// Returns the error of a value; none if it is valid.
    pub(super) fn fault<'a>(&'a self, value: &'a Value) -> Option<ValidationError<'a, 'a>> {
        self.schemas.validate(value, self.root).err()
    }
}

/// Names the first rule that a schema breaks.
fn compile_failure(error: &CompileError) -> String {
    let mut problems = Vec::new();
    if let CompileError::ValidationError { src, .. } = error {
        collect_problems(src, limits::SCHEMA_DEPTH, &mut problems);
    }
    match problems.into_iter().next() {
        Some(problem) => {
            let lines = problem.lines(Dialect::default()).into_iter();
            let lines = lines.map(|(path, message)| format!("{path}: {message}"));
            lines.collect::<Vec<_>>().join("; ")
        }
        None => error.to_string().replace(LOCATION, ""),
    }
}

/// Refuses references to other documents.
struct NoLoader;

impl UrlLoader for NoLoader {
    fn load(&self, url: &str) -> Result<Value, Box<dyn std::error::Error>> {
        Err(format!("{url} is outside of the schema").into())
    }
}

/// The object that the arguments became, or `args` if they are none.
fn object_or(value: Value, args: &Map<String, Value>) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => args.clone(),
    }
}

impl ForeignSchema {
    /// Compiles any JSON value; an unusable schema accepts everything.
    #[must_use]
    pub fn new(schema: Value) -> Self {
        Self {
            schema,
            validator: OnceLock::new(),
            dialect: Dialect::default(),
        }
    }

    /// The same schema with failures in the words of a dialect.
    #[must_use]
    pub fn with_dialect(self, dialect: Dialect) -> Self {
        Self { dialect, ..self }
    }

    /// The schema as it was given.
    #[must_use]
    pub fn schema(&self) -> &Value {
        &self.schema
    }

    /// Brings a model's arguments into the schema's types and checks them: optional fields that are `null`, or the word
    /// `null`, go; texts that hold a number, a truth value, an array or an object where one is wanted are read as such; a
    /// number or a truth value becomes a text, and a single value a list, where that is wanted (recorded from pi 1.5.2). Values
    /// that are still wrong get the conversions of today's pi in its dialect. A schema that cannot be used, or would take too long for these
    /// arguments, lets them pass as they are.
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
            if validator.fault(&value).is_none() {
                return Ok(object_or(value, args));
            }
            if !convert(validator, &mut value, Conversion::Any) {
                break;
            }
        }
        if self.dialect.is_newest_pi() {
            let budget = &mut Budget::default();
            value = coerce::coerce(&self.schema, value, Coercions::Pi, budget);
            if !cost::is_affordable(&self.schema, &value) {
                return Ok(args.clone());
            }
            if validator.fault(&value).is_none() {
                return Ok(object_or(value, args));
            }
        }
        let problems = problems(&self.schema, validator, &value);
        Err(failure(tool, &problems, args, self.dialect))
    }

    fn validator(&self) -> Option<&Validator> {
        self.validator
            .get_or_init(|| Validator::compile(&self.schema).ok())
            .as_ref()
    }
}

/// What does not fit the schema.
pub(super) fn problems(schema: &Value, validator: &Validator, value: &Value) -> Vec<Problem> {
    let mut problems = Vec::new();
    check::check(
        schema,
        value,
        &mut Vec::new(),
        &mut Budget::default(),
        &mut problems,
    );
    if problems.is_empty()
        && let Some(error) = validator.fault(value)
    {
        collect_problems(&error, limits::SCHEMA_DEPTH, &mut problems);
    }
    problems
}

/// Adds the innermost errors below `error`, at most [`limits::SCHEMA_ERRORS`].
fn collect_problems(error: &ValidationError<'_, '_>, depth: usize, problems: &mut Vec<Problem>) {
    if !error.causes.is_empty() && depth > 0 {
        for cause in &error.causes {
            collect_problems(cause, depth - 1, problems);
        }
    } else if problems.len() < limits::SCHEMA_ERRORS {
        let pointer = error.instance_location.to_string();
        let path = pointer.trim_start_matches('/').replace('/', ".");
        let fault = Fault::Other(error.kind.to_string());
        problems.push(Problem { path, fault });
    }
}

/// Removes optional fields that say `null`, as a value or as a word, unless their schema asks for just that.
pub(super) fn drop_nothings(root: &Value, schema: &Value, value: &mut Value, depth: usize) {
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

/// Returns true if a field's schema names this empty value.
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

/// Returns true if one alternative names this empty value. Does not look into nested alternatives.
fn names(schema: &Value, value: &Value) -> bool {
    let Some(schema) = schema.as_object() else {
        return false;
    };
    let listed = schema.get("enum").and_then(Value::as_array);
    schema.get("const") == Some(value)
        || listed.is_some_and(|values| values.contains(value))
        || value.is_null() && super::types(schema).contains(&"null")
}

/// Which values are brought into the types of a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Conversion {
    /// Texts that hold a value of another type.
    Texts,
    /// Also numbers and truth values where a text is wanted, and single values where a list is wanted.
    Any,
}

/// Converts values where the schema wants another type. False when there was none to convert.
pub(super) fn convert(validator: &Validator, value: &mut Value, conversion: Conversion) -> bool {
    let mut found = Vec::new();
    if let Some(error) = validator.fault(value) {
        convertible(&error, value, conversion, limits::SCHEMA_DEPTH, &mut found);
    }
    let mut changed = false;
    for (pointer, converted) in found {
        if let Some(place) = value.pointer_mut(&pointer) {
            *place = converted;
            changed = true;
        }
    }
    changed
}

fn convertible(
    error: &ValidationError<'_, '_>,
    root: &Value,
    conversion: Conversion,
    depth: usize,
    found: &mut Vec<(String, Value)>,
) {
    if found.len() >= limits::SCHEMA_ERRORS {
        return;
    }
    if let ErrorKind::Type { want, .. } = &error.kind {
        let pointer = error.instance_location.to_string();
        // Two choices may ask for the same value; the first wins.
        let is_new = found.iter().all(|(known, _)| *known != pointer);
        let value = root.pointer(&pointer).filter(|_| is_new);
        if let Some(converted) = value.and_then(|value| as_type(value, *want, conversion)) {
            found.push((pointer, converted));
        }
    }
    if depth > 0 {
        for cause in &error.causes {
            convertible(cause, root, conversion, depth - 1, found);
        }
    }
}

fn as_type(value: &Value, wanted: Types, conversion: Conversion) -> Option<Value> {
    let wants = |kind| wanted.iter().any(|one| one == kind);
    let read = value.as_str().and_then(|text| read_as(text, wanted));
    if read.is_some() || conversion == Conversion::Texts {
        return read;
    }
    match value {
        Value::Number(number) if wants(Type::String) => Some(Value::String(coerce::plain_number(number))),
        Value::Bool(bool) if wants(Type::String) => Some(Value::String(bool.to_string())),
        Value::Null | Value::Array(_) => None,
        single => wants(Type::Array).then(|| Value::Array(vec![single.clone()])),
    }
}

fn read_as(text: &str, wanted: Types) -> Option<Value> {
    let fits = |read: &Value, kind: Type| match kind {
        Type::Null => read.is_null(),
        Type::Boolean => read.is_boolean(),
        Type::Number => read.is_number(),
        Type::Integer => super::is_type(read, "integer"),
        Type::Array => read.is_array(),
        Type::Object => read.is_object(),
        Type::String => false,
    };
    let read: Option<Value> = serde_json::from_str(text.trim()).ok();
    let read = read.filter(|read| wanted.iter().any(|kind| fits(read, kind)));
    read.or_else(|| {
        let wants_truth = wanted.iter().any(|kind| kind == Type::Boolean);
        coerce::truth(text).filter(|_| wants_truth).map(Value::Bool)
    })
}
