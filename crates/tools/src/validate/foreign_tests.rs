//! Tables for schemas of tools that are not ours.

use serde_json::{Map, Value, json};

use super::ForeignSchema;

fn map(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn prepare(schema: Value, args: Value) -> Result<Value, String> {
    ForeignSchema::new(schema)
        .prepare("t", &map(args))
        .map(Value::Object)
}

fn field(schema: Value, value: Value) -> Result<Value, String> {
    let schema = json!({ "type": "object", "properties": { "x": schema }, "required": ["x"] });
    prepare(schema, json!({ "x": value })).map(|args| args["x"].clone())
}

#[test]
fn arguments_are_converted_to_schema_types() {
    for (schema, given, wanted) in [
        (json!({ "type": "number" }), json!("1.5"), json!(1.5)),
        (json!({ "type": "integer" }), json!(" 3 "), json!(3)),
        (json!({ "type": "boolean" }), json!("true"), json!(true)),
        (json!({ "type": "boolean" }), json!("False"), json!(false)),
        (json!({ "type": ["boolean", "number"] }), json!("1"), json!(1)),
        (json!({ "type": "array" }), json!("[1, 2]"), json!([1, 2])),
        (
            json!({ "type": "object" }),
            json!("{\"a\": 1}"),
            json!({ "a": 1 }),
        ),
        (json!({ "type": ["array", "null"] }), json!("[]"), json!([])),
        (json!({ "type": "string" }), json!("[1]"), json!("[1]")),
        (json!({ "type": "string" }), json!(7), json!("7")),
        (json!({ "type": "string" }), json!(true), json!("true")),
        (json!({ "type": "array" }), json!("one"), json!(["one"])),
        (
            json!({ "type": "array", "items": { "type": "string" } }),
            json!(7),
            json!(["7"]),
        ),
        (
            json!({ "anyOf": [{ "type": "object" }, { "type": "array" }] }),
            json!("[1]"),
            json!([1]),
        ),
        // Texts inside of texts take another pass.
        (
            json!({ "type": "array", "items": { "type": "number" } }),
            json!("[\"1\", 2]"),
            json!([1, 2]),
        ),
    ] {
        assert_eq!(field(schema.clone(), given).as_ref(), Ok(&wanted), "{schema}");
    }
}

#[test]
fn newest_pi_converts_more_arguments() {
    let schema = json!({ "type": "object", "required": ["x"], "properties": {
        "x": { "type": "integer" }, "y": { "enum": [1, "two"] } } });
    let args = map(json!({ "x": "", "y": "1" }));
    let newest = ForeignSchema::new(schema.clone()).with_dialect(wire::Dialect::PiDelta);
    let prepared = newest.prepare("t", &args).map(Value::Object);
    assert_eq!(prepared, Ok(json!({ "x": 0, "y": 1 })));
    assert!(ForeignSchema::new(schema).prepare("t", &args).is_err());
}

#[test]
fn members_with_pattern_are_not_converted() {
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } },
        "patternProperties": { "^x-": {} }, "additionalProperties": { "type": "string" } });
    let newest = ForeignSchema::new(schema).with_dialect(wire::Dialect::PiDelta);
    let prepared = newest.prepare("t", &map(json!({ "n": "", "x-a": 5 })));
    assert_eq!(prepared.map(Value::Object), Ok(json!({ "n": 0, "x-a": 5 })));
}

#[test]
fn empty_optional_arguments_are_removed() {
    let schema = json!({ "type": "object", "required": ["must"], "properties": {
        "must": { "type": ["string", "null"] },
        "text": { "type": "string" },
        "open": { "type": ["number", "null"] },
        "word": { "enum": ["null", "one"] },
        "deep": { "type": "array", "items": { "$ref": "#/$defs/part" } },
    }, "$defs": { "part": { "type": "object", "properties": { "n": { "type": "number" } } } } });
    let prepared = prepare(
        schema.clone(),
        json!({ "must": null, "text": null, "open": null, "word": "null", "deep": [{ "n": "null" }], "free": null }),
    );
    assert_eq!(
        prepared.unwrap(),
        json!({ "must": null, "open": null, "word": "null", "deep": [{}], "free": null })
    );
    let prepared = prepare(schema, json!({ "must": "null", "text": "null" }));
    assert_eq!(prepared.unwrap(), json!({ "must": "null" }));
}

#[test]
fn validation_failures_name_location_and_arguments() {
    let schema = json!({ "type": "object", "required": ["message"], "additionalProperties": false,
        "properties": { "message": { "type": "string" } } });
    assert_eq!(
        prepare(schema.clone(), json!({})).unwrap_err(),
        "Validation failed for tool \"t\":\n  - message: must have required properties message\n\nReceived arguments:\n{}"
    );
    assert_eq!(
        prepare(schema, json!({ "message": {} })).unwrap_err(),
        "Validation failed for tool \"t\":\n  - message: must be string\n\nReceived arguments:\n{\n  \"message\": {}\n}"
    );
    // A rule that only the validator knows; the value itself is not repeated.
    let schema =
        json!({ "properties": { "a": { "$ref": "#/$defs/a" } }, "$defs": { "a": { "type": "number" } } });
    let failed = prepare(schema, json!({ "a": [{}] })).unwrap_err();
    assert!(
        failed
            .starts_with("Validation failed for tool \"t\":\n  - a: want number, but got array\n\nReceived"),
        "{failed}"
    );
}

#[test]
fn unusable_schemas_accept_arguments_unchanged() {
    let args = json!({ "a": "null", "b": null });
    for schema in [
        json!({ "$ref": "http://example.com/other.json" }),
        json!({ "properties": { "a": { "$ref": "other.json" } } }),
        json!({ "type": "nonsense" }),
        json!({ "properties": { "a": { "pattern": "(" } } }),
        json!({ "$schema": "http://example.com/own", "type": "array" }),
        json!({ "$ref": "#/$defs/nowhere" }),
        json!("no schema"),
    ] {
        assert_eq!(
            prepare(schema.clone(), args.clone()).as_ref(),
            Ok(&args),
            "{schema}"
        );
    }
}

#[test]
fn hostile_schemas_are_validated_in_bounded_time() {
    let mut defs = Map::new();
    for i in 0..40 {
        let next = json!({ "$ref": format!("#/$defs/a{}", i + 1) });
        defs.insert(format!("a{i}"), json!({ "allOf": [next, next] }));
    }
    defs.insert("a40".to_owned(), json!({ "type": "array" }));
    let args = json!({});
    for schema in [
        json!({ "$defs": defs, "$ref": "#/$defs/a0" }),
        json!({ "$ref": "#" }),
        json!({ "anyOf": [{ "$ref": "#" }, { "$ref": "#" }] }),
        json!({ "$dynamicRef": "#" }),
    ] {
        assert_eq!(prepare(schema, args.clone()).as_ref(), Ok(&args));
    }
    let mut deep = json!({});
    for _ in 0..100 {
        deep = json!({ "x": deep });
    }
    let twice = json!({ "properties": { "x": { "allOf": [{ "$ref": "#" }, { "$ref": "#" }] } } });
    assert_eq!(prepare(twice, deep.clone()).as_ref(), Ok(&deep));
    let long = format!("{}b", "a".repeat(5_000));
    assert!(field(json!({ "pattern": "^(a+)+$" }), json!(long)).is_err());
}

#[test]
fn look_around_patterns_are_not_checked() {
    let schema = json!({ "properties": {
        "a": { "pattern": "^(?=x)y" },
        "b": { "pattern": "^(.)\\1$" },
        "pattern": { "type": "string", "maxLength": 3 },
        "c": { "type": "number" },
        "d": { "const": { "pattern": "(?=x)" } } } });
    let args = json!({ "a": "q", "b": "xy", "pattern": "abc", "c": 1, "d": { "pattern": "(?=x)" } });
    assert_eq!(prepare(schema.clone(), args.clone()).as_ref(), Ok(&args));
    assert!(prepare(schema.clone(), json!({ "a": "q", "c": "x" })).is_err());
    assert!(prepare(schema.clone(), json!({ "pattern": "abcd" })).is_err());
    assert!(prepare(schema, json!({ "d": { "pattern": "other" } })).is_err());
    let huge = json!({ "pattern": "(a{1000}){1000}" });
    assert_eq!(field(huge, json!("b")), Ok(json!("b")));
}
