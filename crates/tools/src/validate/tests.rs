//! Tables of conversions and messages.

use serde_json::{Value, json};

use super::*;

fn map(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn property(schema: Value, value: Value) -> Result<Value, String> {
    let schema = json!({ "type": "object", "properties": { "x": schema } });
    validate("t", &schema, &map(json!({ "x": value }))).map(|args| args["x"].clone())
}

/// Recorded from pi 1.5.2.
#[test]
fn newest_pi_words_argument_errors_differently() {
    let schema = json!({"type": "object", "required": ["path", "edits"], "properties": {
        "path": {"type": "string"},
        "limit": {"type": "number"},
        "edits": {"type": "array", "items": {"type": "object", "required": ["oldText", "newText"]}},
    }});
    let lines = |args: Value| {
        let error =
            validate_with("edit", &schema, &map(args), Coercions::NullWord, Dialect::PiDelta).unwrap_err();
        let (head, _) = error.split_once("\n\nReceived arguments:\n").unwrap();
        head.strip_prefix("Validation failed for tool \"edit\":\n")
            .unwrap()
            .to_owned()
    };
    assert_eq!(lines(json!({})), "  - path: missing\n  - edits: missing");
    assert_eq!(
        lines(json!({"path": ["a"], "edits": [], "limit": "many"})),
        "  - path: expected string, got array\n  - limit: expected number, got string"
    );
    assert_eq!(
        lines(json!({"path": "a", "edits": [{}, 7]})),
        "  - edits.0.oldText: missing\n  - edits.0.newText: missing\n  - edits.1: expected object, got integer"
    );
}

/// As pi-schema 1.5.2 says them.
#[test]
fn newest_pi_words_rules_differently() {
    let many: Vec<u32> = (0..22).collect();
    let listed: Vec<String> = (0..20).map(|number: u32| number.to_string()).collect();
    let cut_off = format!("x: expected one of [{}, ... and 2 more]", listed.join(","));
    let choices = json!({"anyOf": [
        {"type": "number"},
        {"type": "object", "required": ["a"], "properties": {"a": {}, "b": {"type": "string"}}},
    ]});
    for (schema, given, message) in [
        (
            json!({"enum": ["a", 1]}),
            json!("c"),
            "x: expected one of [\"a\",1]",
        ),
        (json!({"enum": many}), json!("c"), cut_off.as_str()),
        (json!({"const": "k"}), json!(2), "x: expected \"k\""),
        (json!({"minimum": 3}), json!(2), "x: expected >= 3"),
        (json!({"exclusiveMaximum": 2}), json!(2), "x: expected < 2"),
        (json!({"multipleOf": 2}), json!(3), "x: expected a multiple of 2"),
        (
            json!({"minLength": 2}),
            json!("a"),
            "x: expected at least 2 characters",
        ),
        (
            json!({"maxItems": 1}),
            json!([1, 2]),
            "x: expected at most 1 items",
        ),
        (json!({"pattern": "^a"}), json!("b"), "x: expected to match ^a"),
        (
            json!({"uniqueItems": true}),
            json!([1, 1]),
            "x: expected unique items",
        ),
        (
            json!({"additionalProperties": false}),
            json!({"a": 1, "b": 2}),
            "x.a: unknown field\n  - x.b: unknown field",
        ),
        (choices, json!({"b": "c"}), "x.a: missing"),
        (
            json!({"oneOf": [{"type": "number"}, {"minimum": 0}]}),
            json!(1),
            "x: matches more than one alternative",
        ),
        (json!({"anyOf": []}), json!(1), "x: matches no alternative"),
        (
            json!({"not": {"type": "number"}}),
            json!(1),
            "x: must not match the schema in not",
        ),
        (json!(false), json!(1), "x: no value is allowed here"),
    ] {
        let schema = json!({"type": "object", "properties": {"x": schema}});
        let args = map(json!({"x": given}));
        let failed = validate_with("t", &schema, &args, Coercions::Plain, Dialect::PiDelta).unwrap_err();
        assert!(
            failed.contains(&format!(":\n  - {message}\n\nReceived")),
            "{message}: {failed}"
        );
    }
}

/// As pi-schema 1.5.2 and, for schemas of pi's own tools, `typebox` 1.1 convert them.
#[test]
fn pi_converts_more_arguments() {
    for (schema, given, wanted) in [
        (json!({"type": "number"}), json!(""), json!(0)),
        (json!({"type": "number"}), json!("True"), json!(1)),
        (json!({"type": "number"}), json!("0x10"), json!(16)),
        (json!({"type": "integer"}), json!("3.5"), json!(3)),
        (json!({"type": "integer"}), json!(-3.5), json!(-3)),
        (json!({"type": "integer"}), json!("false"), json!(0)),
        (json!({"type": "boolean"}), json!("1"), json!(true)),
        (json!({"type": "null"}), json!("undefined"), json!(null)),
        (json!({"type": "string"}), json!(null), json!("null")),
        (json!({"type": ["number", "null"]}), json!(""), json!(null)),
        (json!({"type": ["string", "null"]}), json!(5), json!("5")),
        (json!({"const": 1}), json!("1"), json!(1)),
        (json!({"const": "1"}), json!(1), json!("1")),
        (json!({"const": true}), json!("true"), json!(true)),
        (json!({"enum": ["a", 2]}), json!("2"), json!(2)),
        (
            json!({"type": "string", "enum": [2, "2"]}),
            json!(2.0),
            json!("2"),
        ),
        (json!({"enum": ["2", 2]}), json!(2), json!(2)),
        (
            json!({"anyOf": [{"const": 1}, {"const": 2}]}),
            json!("2"),
            json!(2),
        ),
        (
            json!({"type": "array", "items": {"type": "number"}}),
            json!(""),
            json!([0]),
        ),
    ] {
        let of_all = json!({"type": "object", "properties": {"x": schema}, "required": ["x"]});
        let args = map(json!({"x": given}));
        let own = validate_with("t", &of_all, &args, Coercions::Pi, Dialect::Pi);
        assert_eq!(own.map(|args| args["x"].clone()), Ok(wanted), "{of_all} {args:?}");
    }
    for (schema, given) in [
        (json!({"type": "integer", "enum": [1, 2]}), json!("1.5")),
        (json!({"type": ["integer", "null"]}), json!("1.5")),
        (json!({"type": ["array", "null"]}), json!("a")),
        (json!({"const": 1}), json!("1.5")),
        (json!({"type": "number"}), json!("0x+1")),
    ] {
        let schema = json!({"type": "object", "properties": {"x": schema}});
        let args = map(json!({"x": given}));
        validate_with("t", &schema, &args, Coercions::Pi, Dialect::PiDelta).unwrap_err();
    }
}

#[test]
fn newest_pi_names_tags_of_choices() {
    let choice = |tag: Value| {
        json!({"type": "object", "required": ["k", "n"], "properties": {
        "k": {"const": tag}, "n": {"type": "number"}}})
    };
    let schema =
        json!({"type": "object", "properties": {"x": {"anyOf": [choice(json!("a")), choice(json!(2))]}}});
    for (given, message) in [
        (json!({"k": "b", "n": 1}), "x.k: expected one of [\"a\",2]"),
        (json!({"n": 1}), "x.k: expected one of [\"a\",2]"),
        (json!({"k": "a"}), "x.n: missing"),
        (json!({"k": 2, "n": []}), "x.n: expected number, got array"),
        (json!("a"), "x: expected object, got string"),
    ] {
        let args = map(json!({"x": given}));
        let failed = validate_with("t", &schema, &args, Coercions::Pi, Dialect::PiDelta).unwrap_err();
        assert!(
            failed.contains(&format!(":\n  - {message}\n\nReceived")),
            "{message}: {failed}"
        );
    }
}

#[test]
fn failure_lists_limited_number_of_errors() {
    let schema = json!({"type": "object", "additionalProperties": false});
    let args: serde_json::Map<_, _> = (0..150).map(|key: u32| (key.to_string(), json!(1))).collect();
    let failed = validate_with("t", &schema, &args, Coercions::Plain, Dialect::PiDelta).unwrap_err();
    assert_eq!(
        failed.matches("unknown field").count(),
        crate::limits::SCHEMA_ERRORS
    );
}

#[test]
fn validation_texts_match_recording() {
    // tool-invalid-args, tool-write-errors
    let schema =
        json!({ "type": "object", "required": ["path"], "properties": { "path": { "type": "string" } } });
    let failed = validate("read", &schema, &Map::new()).unwrap_err();
    assert_eq!(
        failed,
        "Validation failed for tool \"read\":\n  - path: must have required properties path\n\nReceived arguments:\n{}"
    );
    let schema = json!({ "type": "object", "required": ["command"], "properties": { "command": { "type": "string" } } });
    let failed = validate("bash", &schema, &map(json!({ "command": ["ls"] }))).unwrap_err();
    assert_eq!(
        failed,
        "Validation failed for tool \"bash\":\n  - command: must be string\n\nReceived arguments:\n{\n  \"command\": [\n    \"ls\"\n  ]\n}"
    );
}

#[test]
fn arguments_are_converted_to_schema_types() {
    for (schema, given, wanted) in [
        (json!({ "type": "number" }), json!("1"), json!(1)),
        (json!({ "type": "number" }), json!(" 2.5 "), json!(2.5)),
        (json!({ "type": "number" }), json!(true), json!(1)),
        (json!({ "type": "number" }), json!(null), json!(0)),
        (json!({ "type": "integer" }), json!("3"), json!(3)),
        (json!({ "type": "boolean" }), json!("true"), json!(true)),
        (json!({ "type": "boolean" }), json!("True"), json!(true)),
        (json!({ "type": "boolean" }), json!("FALSE"), json!(false)),
        (json!({ "type": "boolean" }), json!("1"), json!(true)),
        (json!({ "type": "boolean" }), json!(0), json!(false)),
        (json!({ "type": "boolean" }), json!(null), json!(false)),
        (json!({ "type": "string" }), json!(42), json!("42")),
        (json!({ "type": "string" }), json!(42.0), json!("42")),
        (json!({ "type": "string" }), json!(true), json!("true")),
        (json!({ "type": "string" }), json!(null), json!("")),
        (json!({ "type": "null" }), json!(""), json!(null)),
        (
            json!({ "type": "array", "items": { "type": "string" } }),
            json!("one"),
            json!(["one"]),
        ),
        (
            json!({ "type": "array", "items": { "type": "number" } }),
            json!(["1", 2]),
            json!([1, 2]),
        ),
        (json!({ "type": ["number", "null"] }), json!("7"), json!(7)),
        (json!({ "type": ["string", "null"] }), json!(null), json!(null)),
        (
            json!({ "anyOf": [{ "type": "number" }, { "type": "string" }] }),
            json!("7"),
            json!("7"),
        ),
        (
            json!({ "anyOf": [{ "type": "number" }, { "type": "null" }] }),
            json!("7"),
            json!(7),
        ),
        (
            json!({ "allOf": [{ "type": "number" }, { "minimum": 3 }] }),
            json!("7"),
            json!(7),
        ),
        (
            json!({ "type": "object", "additionalProperties": { "type": "number" } }),
            json!({ "a": "1" }),
            json!({ "a": 1 }),
        ),
        (
            json!({ "$ref": "#/x" }),
            json!({ "anything": [] }),
            json!({ "anything": [] }),
        ),
        (json!(true), json!(1), json!(1)),
    ] {
        assert_eq!(
            property(schema.clone(), given.clone()),
            Ok(wanted),
            "{schema} {given}"
        );
    }
    let word = validate_with(
        "write",
        &json!({ "properties": { "path": { "type": "string" } } }),
        &map(json!({ "path": null })),
        Coercions::NullWord,
        Dialect::default(),
    );
    assert_eq!(word.unwrap()["path"], "null");
}

#[test]
fn validation_messages_match_recording() {
    for (schema, given, message) in [
        (json!({ "type": "number" }), json!("x"), "x: must be number"),
        (json!({ "type": "number" }), json!("inf"), "x: must be number"),
        (json!({ "type": "integer" }), json!(1.5), "x: must be integer"),
        (
            json!({ "type": ["number", "boolean"] }),
            json!("x"),
            "x: must be either number or boolean",
        ),
        (
            json!({ "enum": ["a", "b"] }),
            json!("c"),
            "x: must be equal to one of the allowed values",
        ),
        (json!({ "const": 1 }), json!(2), "x: must be equal to constant"),
        (json!({ "minimum": 3 }), json!(2), "x: must be >= 3"),
        (json!({ "maximum": 1.5 }), json!(2), "x: must be <= 1.5"),
        (json!({ "exclusiveMinimum": 2 }), json!(2), "x: must be > 2"),
        (json!({ "exclusiveMaximum": 2 }), json!(2), "x: must be < 2"),
        (json!({ "multipleOf": 2 }), json!(3), "x: must be multiple of 2"),
        (
            json!({ "minLength": 2 }),
            json!("\u{1f600}"),
            "x: must not have fewer than 2 characters",
        ),
        (
            json!({ "maxLength": 1 }),
            json!("ab"),
            "x: must not have more than 1 characters",
        ),
        (
            json!({ "pattern": "^a" }),
            json!("b"),
            "x: must match pattern \"^a\"",
        ),
        (
            json!({ "maxItems": 1 }),
            json!([1, 2]),
            "x: must not have more than 1 items",
        ),
        (
            json!({ "uniqueItems": true }),
            json!([1, 1]),
            "x: must not have duplicate items",
        ),
        (
            json!({ "items": { "type": "number" } }),
            json!([1, "b"]),
            "x.1: must be number",
        ),
        (
            json!({ "additionalProperties": false }),
            json!({ "a": 1 }),
            "x: must not have additional properties",
        ),
        (
            json!({ "required": ["a", "b"] }),
            json!({}),
            "x.a: must have required properties a, b",
        ),
        (
            json!({ "anyOf": [{ "type": "number" }, { "type": "null" }] }),
            json!("q"),
            "x: must match a schema in anyOf",
        ),
        (
            json!({ "oneOf": [{ "type": "number" }, { "minimum": 0 }] }),
            json!(1),
            "x: must match exactly one schema in oneOf",
        ),
        (
            json!({ "not": { "type": "number" } }),
            json!(1),
            "x: must not be valid",
        ),
        (json!(false), json!(1), "x: schema is false"),
    ] {
        let failed = property(schema.clone(), given).unwrap_err();
        assert!(
            failed.contains(&format!(":\n  - {message}\n\nReceived")),
            "{schema}: {failed}"
        );
    }
    // A pattern of another regex dialect blocks no value.
    assert!(property(json!({ "pattern": "(?=a)b" }), json!("x")).is_ok());
}

#[test]
fn deep_and_broad_schemas_are_validated() {
    let nested = |depth: usize, innermost: Value| (0..depth).fold(innermost, |value, _| json!([value]));
    let schema = |depth: usize| {
        (0..depth).fold(
            json!({ "type": "string" }),
            |schema, _| json!({ "type": "array", "items": schema }),
        )
    };
    let shallow = property(schema(30), nested(30, json!(1)));
    assert_eq!(shallow.unwrap(), nested(30, json!("1")));
    // As deep as parsed JSON can be: what lies below the bound passes as it is.
    let deep = property(schema(120), nested(120, json!(1)));
    assert_eq!(deep.unwrap(), nested(120, json!(1)));
    let choices: Vec<Value> = (0..50)
        .map(|_| json!({ "type": "object", "properties": {} }))
        .collect();
    let mut bomb = json!({ "anyOf": choices });
    for _ in 0..6 {
        bomb = json!({ "anyOf": [bomb, bomb] });
    }
    // 50 * 2^6 alternatives, none of which takes a number.
    let refused = property(bomb, json!(1)).unwrap_err();
    assert!(
        refused.contains("x: must match a schema in anyOf"),
        "{refused:.300}"
    );
    assert!(refused.len() < 10_000, "{} bytes", refused.len());
}

proptest::proptest! {
    #[test]
    fn valid_arguments_pass_unchanged(text in ".*", number: i64, flag: bool) {
        let schema = json!({ "type": "object", "properties": {
            "t": { "type": "string" }, "n": { "type": "number" }, "f": { "type": "boolean" } } });
        let args = map(json!({ "t": text, "n": number, "f": flag, "extra": [null] }));
        assert_eq!(validate("t", &schema, &args).unwrap(), args);
    }
}
