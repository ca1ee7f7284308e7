//! The check finds lost messages.

use serde_json::{Value, json};

use super::check::{Saved, promised};

fn user(text: &str) -> Value {
    json!({"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 1})
}

fn file(messages: &[Value]) -> String {
    let mut text =
        "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"t\",\"cwd\":\"/\"}\n".to_owned();
    for (number, message) in messages.iter().enumerate() {
        let entry = json!({"type": "message", "id": format!("{number}"), "parentId": null, "timestamp": "t", "message": message});
        text += &format!("{entry}\n");
    }
    text
}

#[test]
fn kept_promises_pass_with_torn_line() {
    let output = [
        json!({"type": "message_end", "message": user("a")}),
        json!({"type": "response", "id": "n3", "command": "set_session_name", "success": true}),
    ];
    let promised = promised(&output);
    let name = "{\"type\":\"session_info\",\"id\":\"x\",\"parentId\":null,\"timestamp\":\"t\",\"name\":\"Name 3\"}\n";
    let saved = Saved::read((file(&[user("a")]) + name + "{\"type\":\"mess").as_bytes());
    assert_eq!((saved.torn, saved.problems.len()), (13, 0));
    assert!(promised.missing_in(&saved).is_empty());
}

#[test]
fn lost_messages_and_names_are_detected() {
    let output = [
        json!({"type": "message_end", "message": user("a")}),
        json!({"type": "message_end", "message": user("b")}),
        json!({"type": "response", "id": "n0", "command": "set_session_name", "success": true}),
        json!({"type": "response", "id": "n1", "command": "set_session_name", "success": false, "error": "x"}),
    ];
    let promised = promised(&output);
    assert!(!promised.is_empty());
    let missing = promised.missing_in(&Saved::read(file(&[user("a")]).as_bytes()));
    assert_eq!(missing.len(), 2);
    assert!(missing[0].contains("\"b\"") && missing[1].ends_with("Name 0"));
}

#[test]
fn broken_session_files_are_detected() {
    assert_eq!(Saved::read(b"not json\n").problems.len(), 1);
    let twice = file(&[]) + &file(&[]);
    assert_eq!(Saved::read(twice.as_bytes()).problems.len(), 1);
    let entry_without_message = file(&[]) + "{\"type\":\"message\",\"id\":\"1\"}\n";
    assert_eq!(Saved::read(entry_without_message.as_bytes()).problems.len(), 1);
}
