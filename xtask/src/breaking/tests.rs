//! Breaking and compatible changes of a protocol of three lines.

use serde_json::{Value, json};

use super::compare::breaking;
use super::major;

fn protocol() -> Value {
    json!({
        "$defs": {
            "InboundLine": {"anyOf": [{"$ref": "#/$defs/PromptCommand"}, {"$ref": "#/$defs/AbortCommand"}]},
            "Response": {"anyOf": [{"$ref": "#/$defs/PromptResponse"}]},
            "Event": {"anyOf": [{"$ref": "#/$defs/EndEvent"}]},
            "PromptCommand": {
                "type": "object",
                "properties": {
                    "type": {"type": "string", "const": "prompt"},
                    "message": {"type": "string"},
                    "mode": {"$ref": "#/$defs/Mode"},
                    "count": {"type": "integer"},
                },
                "required": ["type", "message"],
            },
            "AbortCommand": {"type": "object", "properties": {"type": {"type": "string", "const": "abort"}}, "required": ["type"]},
            "PromptResponse": {
                "type": "object",
                "properties": {"success": {"type": "boolean"}, "data": {"type": ["string", "null"]}},
                "required": ["success", "data"],
            },
            "EndEvent": {
                "type": "object",
                "properties": {"messages": {"type": "array", "items": {"$ref": "#/$defs/Message"}}},
                "required": ["messages"],
            },
            "Message": {"anyOf": [{"$ref": "#/$defs/User"}, {"$ref": "#/$defs/Answer"}]},
            "User": {"type": "object", "properties": {"role": {"const": "user"}, "text": {"type": "string"}}, "required": ["role", "text"]},
            "Answer": {"type": "object", "properties": {"role": {"const": "answer"}, "next": {"$ref": "#/$defs/Message"}}, "required": ["role"]},
            "Mode": {"type": "string", "enum": ["all", "one"]},
        },
    })
}

/// The differences after a change of one place.
fn after(pointer: &str, value: Option<Value>) -> Vec<String> {
    let (old, mut new) = (protocol(), protocol());
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let parent = new.pointer_mut(&format!("/$defs{parent}")).unwrap();
    match (parent, value) {
        (Value::Object(map), Some(value)) => {
            map.insert(key.to_owned(), value);
        }
        (Value::Object(map), None) => assert!(map.shift_remove(key).is_some()),
        (Value::Array(list), Some(value)) => list.push(value),
        (other, _) => panic!("{other}"),
    }
    breaking(&old, &new)
}

#[test]
fn identical_schemas_have_no_breaking_change() {
    assert!(breaking(&protocol(), &protocol()).is_empty());
}

#[test]
fn breaking_changes_are_found() {
    for (pointer, value, finding) in [
        (
            "/InboundLine/anyOf",
            Some(json!([{"$ref": "#/$defs/PromptCommand"}])),
            "command AbortCommand is gone",
        ),
        ("/Event/anyOf", Some(json!([])), "event EndEvent is gone"),
        (
            "/PromptCommand/properties/count",
            None,
            "PromptCommand.count is gone",
        ),
        (
            "/PromptCommand/required/-",
            Some(json!("mode")),
            "PromptCommand.mode is needed now",
        ),
        (
            "/PromptCommand/properties/message",
            Some(json!({"type": "integer"})),
            "PromptCommand.message was string and is integer",
        ),
        (
            "/PromptCommand/properties/type",
            Some(json!({"type": "string", "const": "ask"})),
            "PromptCommand.type has another fixed value",
        ),
        (
            "/Mode/enum",
            Some(json!(["all"])),
            "PromptCommand.mode cannot be \"one\" any more",
        ),
        (
            "/PromptResponse/required",
            Some(json!(["success"])),
            "PromptResponse.data may be missing now",
        ),
        (
            "/PromptResponse/properties/success",
            Some(json!({"type": ["boolean", "null"]})),
            "PromptResponse.success was boolean and is boolean or null",
        ),
        (
            "/User/properties/text",
            None,
            "EndEvent.messages[]: the variant User is gone or has changed",
        ),
        (
            "/Message/anyOf",
            Some(json!([{"$ref": "#/$defs/User"}])),
            "EndEvent.messages[]: the variant Answer is gone or has changed",
        ),
    ] {
        let found = after(pointer, value);
        assert!(found.iter().any(|line| line == finding), "{pointer}: {found:?}");
    }
}

#[test]
fn compatible_changes_are_not_breaking() {
    for (pointer, value) in [
        ("/InboundLine/anyOf/-", Some(json!({"$ref": "#/$defs/User"}))),
        ("/PromptCommand/properties/more", Some(json!({"type": "string"}))),
        ("/PromptCommand/required", Some(json!(["type"]))),
        (
            "/PromptCommand/properties/count",
            Some(json!({"type": ["number", "null"]})),
        ),
        ("/Mode/enum/-", Some(json!("two"))),
        ("/PromptResponse/properties/data", Some(json!({"type": "string"}))),
        ("/EndEvent/properties/more", Some(json!({"type": "string"}))),
        ("/Message/anyOf/-", Some(json!({"$ref": "#/$defs/Mode"}))),
        ("/User/description", Some(json!("Somebody."))),
    ] {
        let found = after(pointer, value);
        assert!(found.is_empty(), "{pointer}: {found:?}");
    }
}

#[test]
fn renamed_schema_type_is_not_breaking() {
    let new: Value = serde_json::from_str(&protocol().to_string().replace("Answer\"", "Reply\"")).unwrap();
    assert!(breaking(&protocol(), &new).is_empty());
}

#[test]
fn major_version_is_first_number() {
    assert_eq!((major("2.10.3"), major("nonsense")), (2, 0));
}
