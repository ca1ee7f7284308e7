//! The schema of a result that a program wants from a run (docs/guides/results.md). Unlike the schema of a tool's arguments it must be
//! understood completely: a result is valid only if every part of the schema was checked.

use serde_json::{Map, Value, json};
use wire::Dialect;

use super::foreign::{Conversion, Validator, convert, drop_nothings, problems};
use super::{cost, failure, patterns};
use crate::limits;

/// The argument that has the result if the schema describes no object.
const WRAPPED: &str = "result";
/// Keywords with schemas that others refer to. They move to the root of the parameters.
const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];

/// A JSON Schema (2020-12, or as its `$schema` says) for the result of a run.
#[derive(Debug)]
pub struct OutputSchema {
    schema: Value,
    validator: Validator,
    /// The schema describes an object, so the arguments of the call are the result.
    is_object: bool,
}

impl OutputSchema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// A sentence for the client: the value is no JSON Schema, it is too large, or a part of it cannot be checked.
    pub fn new(schema: Value) -> Result<Self, String> {
        if !schema.is_object() {
            return Err("outputSchema must be an object".to_owned());
        }
        let size = schema.to_string().len();
        if size > limits::OUTPUT_SCHEMA_BYTES {
            let most = limits::OUTPUT_SCHEMA_BYTES;
            return Err(format!(
                "outputSchema has {size} bytes; at most {most} are allowed"
            ));
        }
        check_references(&schema, &schema)?;
        if let Some(pattern) = patterns::first_unsupported(&schema) {
            return Err(format!(
                "outputSchema has a pattern that cannot be checked, since it looks around, refers back or is too large: {pattern}"
            ));
        }
        let validator = Validator::compile(&schema)
            .map_err(|error| format!("outputSchema is not a valid JSON Schema: {error}"))?;
        let is_object = schema.get("type").and_then(Value::as_str) == Some("object");
        Ok(Self {
            schema,
            validator,
            is_object,
        })
    }

    /// The schema of the call with which a model gives the result. It always describes an object, as providers want.
    #[must_use]
    pub fn parameters(&self) -> Value {
        if self.is_object {
            return self.schema.clone();
        }
        let mut inner = self.schema.clone();
        let mut outer = json!({"type": "object", "required": [WRAPPED], "additionalProperties": false});
        if let (Value::Object(inner), Value::Object(outer)) = (&mut inner, &mut outer) {
            for key in DEFINITIONS.into_iter().chain(["$schema"]) {
                outer.extend(inner.remove(key).map(|value| (key.to_owned(), value)));
            }
            move_references(inner);
            for key in DEFINITIONS {
                if let Some(definitions) = outer.get_mut(key) {
                    move_all(definitions);
                }
            }
        }
        if let Some(outer) = outer.as_object_mut() {
            outer.insert("properties".to_owned(), json!({WRAPPED: inner}));
        }
        outer
    }

    /// Returns the result that the arguments of a call give. Texts that hold another type that the schema wants are read as such, and
    /// optional members that are `null` go, if the result is only valid then.
    ///
    /// # Errors
    /// The text for the model: what does not fit the schema.
    pub fn result(&self, tool: &str, args: &Map<String, Value>) -> Result<Value, String> {
        let mut value = if self.is_object {
            Value::Object(args.clone())
        } else {
            match args.get(WRAPPED) {
                Some(value) if args.len() == 1 => value.clone(),
                _ => return Err(format!("{tool} has exactly one argument: {WRAPPED}")),
            }
        };
        if self.is_valid(&value)? {
            return Ok(value);
        }
        drop_nothings(&self.schema, &self.schema, &mut value, limits::SCHEMA_DEPTH);
        for _ in 0..limits::SCHEMA_PASSES {
            if self.is_valid(&value)? {
                return Ok(value);
            }
            if !convert(&self.validator, &mut value, Conversion::Texts) {
                break;
            }
        }
        Err(failure(
            tool,
            &problems(&self.schema, &self.validator, &value),
            args,
            Dialect::default(),
        ))
    }

    fn is_valid(&self, value: &Value) -> Result<bool, String> {
        if !cost::is_affordable(&self.schema, value) {
            return Err("The result is too large or too deep for its schema to be checked".to_owned());
        }
        Ok(self.validator.fault(value).is_none())
    }
}

/// Refuses references that cannot be followed before a value is known.
fn check_references(root: &Value, part: &Value) -> Result<(), String> {
    let parts: Vec<&Value> = match part {
        Value::Object(map) => {
            for key in ["$dynamicRef", "$recursiveRef"] {
                if map.contains_key(key) {
                    return Err(format!(
                        "outputSchema has {key}, which cannot be checked; use $ref"
                    ));
                }
            }
            if let Some(target) = map.get("$ref").and_then(Value::as_str) {
                let place = target.strip_prefix('#');
                if place.and_then(|place| root.pointer(place)).is_none() {
                    return Err(format!(
                        "outputSchema refers to {target}, which is no part of it; a reference is written like #/$defs/name"
                    ));
                }
            }
            let is_schema = |entry: &(&String, &Value)| !patterns::DATA.contains(&entry.0.as_str());
            map.iter().filter(is_schema).map(|(_, value)| value).collect()
        }
        Value::Array(items) => items.iter().collect(),
        _ => Vec::new(),
    };
    parts
        .into_iter()
        .try_for_each(|part| check_references(root, part))
}

/// Lets references below a schema lead to where its parts have moved.
fn move_references(schema: &mut Map<String, Value>) {
    if let Some(Value::String(target)) = schema.get_mut("$ref") {
        let is_defined = DEFINITIONS
            .iter()
            .any(|key| target.starts_with(&format!("#/{key}/")));
        if let Some(place) = target.strip_prefix('#').filter(|_| !is_defined) {
            *target = format!("#/properties/{WRAPPED}{place}");
        }
    }
    for (key, value) in schema.iter_mut() {
        if !patterns::DATA.contains(&key.as_str()) {
            move_all(value);
        }
    }
}

fn move_all(value: &mut Value) {
    match value {
        Value::Object(map) => move_references(map),
        Value::Array(items) => items.iter_mut().for_each(move_all),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(schema: Value) -> OutputSchema {
        OutputSchema::new(schema).unwrap()
    }

    fn args(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn object_schema_is_the_parameters() {
        let written = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        let output = schema(written.clone());
        assert_eq!(output.parameters(), written);
        assert_eq!(output.result("t", &args(json!({"n": 1}))), Ok(json!({"n": 1})));
        let error = output.result("t", &args(json!({"n": "one"}))).unwrap_err();
        assert!(error.contains("n: must be integer"), "{error}");
    }

    #[test]
    fn other_schemas_are_wrapped_with_their_references() {
        let output = schema(json!({
            "$defs": {"leaf": {"type": "integer"}, "list": {"type": "array", "items": {"$ref": "#"}}},
            "anyOf": [{"$ref": "#/$defs/leaf"}, {"$ref": "#/$defs/list"}, {"const": {"$ref": "#"}}],
        }));
        let parameters = output.parameters();
        assert_eq!(
            parameters["$defs"]["list"]["items"]["$ref"],
            "#/properties/result"
        );
        let inner = &parameters["properties"]["result"];
        assert_eq!(inner["anyOf"][0]["$ref"], "#/$defs/leaf");
        assert_eq!(inner["anyOf"][2]["const"]["$ref"], "#");
        let nested = json!({"result": [1, [2, []]]});
        assert_eq!(output.result("t", &args(nested)), Ok(json!([1, [2, []]])));
        assert!(output.result("t", &args(json!({"result": [1, ["x"]]}))).is_err());
        assert!(output.result("t", &args(json!({"value": 1}))).is_err());
        // What the model is shown means the same.
        let shown = OutputSchema::new(parameters).unwrap();
        assert!(shown.result("t", &args(json!({"result": [1, [2]]}))).is_ok());
        assert!(shown.result("t", &args(json!({"result": [true]}))).is_err());
    }

    #[test]
    fn texts_are_read_only_if_needed() {
        let output = schema(json!({"type": "object", "properties": {
            "n": {"type": "integer"}, "any": {}, "list": {"type": "array"}, "gone": {"type": "string"},
        }}));
        let given = json!({"n": "5", "any": "6", "list": "[1]", "gone": null});
        let result = output.result("t", &args(given)).unwrap();
        assert_eq!(result, json!({"n": 5, "any": "6", "list": [1]}));
    }

    #[test]
    fn schemas_that_cannot_be_checked_are_refused() {
        for (written, reason) in [
            (json!(true), "must be an object"),
            (json!({"type": "strnig"}), "not a valid JSON Schema"),
            (
                json!({"$ref": "https://example.com/schema"}),
                "refers to https://example.com/schema",
            ),
            (json!({"$ref": "#/$defs/missing"}), "refers to #/$defs/missing"),
            (json!({"$dynamicRef": "#node"}), "$dynamicRef"),
            (
                json!({"properties": {"a": {"pattern": "^(?=x)"}}}),
                "cannot be checked",
            ),
            (json!({"patternProperties": {"(a)\\1": {}}}), "cannot be checked"),
            (
                json!({"description": "x".repeat(limits::OUTPUT_SCHEMA_BYTES)}),
                "at most",
            ),
        ] {
            let error = OutputSchema::new(written).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
        // Data that looks like a reference is data.
        schema(json!({"const": {"$ref": "#/nowhere"}}));
    }

    #[test]
    fn endless_schema_refuses_results() {
        let output = schema(json!({"allOf": [{"$ref": "#"}, {"$ref": "#"}]}));
        let error = output.result("t", &args(json!({"result": 1}))).unwrap_err();
        assert!(error.contains("too large or too deep"), "{error}");
    }
}
