//! Lines that come in: framing, ids, nonsense.

use serde_json::{Value, json};
use testkit::llm::Reply;

use crate::kit::{LONG, World, of_type, text};

#[test]
fn request_ids_of_any_type_are_echoed() {
    let world = World::new([]);
    let pi = world.start();
    for id in [json!(7), json!(null), json!({"a": [1]}), json!(""), json!(1.50)] {
        pi.agent.send(&json!({"type": "get_state", "id": id})).unwrap();
        let response = pi.agent.wait_type("response", LONG).unwrap();
        assert_eq!(response["id"], id);
        assert!(response.get("id").is_some());
    }
    pi.agent.send(&json!({"type": "get_state"})).unwrap();
    assert!(pi.agent.wait_type("response", LONG).unwrap().get("id").is_none());
}

#[test]
fn malformed_lines_are_answered_and_reading_continues() {
    let world = World::new([]);
    let pi = world.start();
    let deep = format!(
        "{{\"type\":\"get_state\",\"x\":{}{}}}",
        "[".repeat(500),
        "]".repeat(500)
    );
    let lines: [(&[u8], &str); 8] = [
        (b"{", "Failed to parse command: "),
        (b"", "Failed to parse command: "),
        (b"nope", "Failed to parse command: "),
        (b"null", "Failed to parse command: "),
        (deep.as_bytes(), "Failed to parse command: "),
        (b"[1]", "Unknown command: undefined"),
        (b"7", "Unknown command: undefined"),
        (b"{\"message\":\"no type\"}", "Unknown command: undefined"),
    ];
    for (line, error) in lines {
        pi.agent.send_raw(&[line, b"\n"].concat()).unwrap();
        let response = pi.wait("response");
        assert_eq!(response["success"], false);
        let found = response["error"].as_str().unwrap();
        assert!(
            found.starts_with(error),
            "{}: {found}",
            String::from_utf8_lossy(line)
        );
        let is_parse_error = error.starts_with("Failed");
        assert_eq!(response["command"] == "parse", is_parse_error, "{response}");
    }
    pi.finish();
}

#[test]
fn invalid_utf8_reaches_model_as_replacement_character() {
    let world = World::new([Reply::text(["Hi."])]);
    let pi = world.start();
    pi.agent
        .send_raw(b"{\"id\":\"u\",\"type\":\"prompt\",\"message\":\"caf\xe9 \xff!\"}\n")
        .unwrap();
    assert_eq!(pi.response("u")["success"], true);
    pi.settled();
    assert_eq!(text(&pi.messages()[0]), "caf\u{FFFD} \u{FFFD}!");
    let asked = world.server.requests()[0].body.to_string();
    assert!(asked.contains("caf\u{FFFD} \u{FFFD}!"), "{asked}");
}

#[test]
fn unknown_commands_are_answered_with_id() {
    let world = World::new([]);
    let pi = world.start();
    assert_eq!(
        pi.error(json!({"type": "frobnicate"})),
        "Unknown command: frobnicate"
    );
    assert_eq!(
        pi.error(json!({"type": "Prompt", "message": "x"})),
        "Unknown command: Prompt"
    );
    pi.finish();
}

#[test]
fn missing_parameters_are_refused_with_id() {
    let world = World::new([]);
    let pi = world.start();
    for kind in [
        "prompt",
        "steer",
        "follow_up",
        "abort_and_prompt",
        "bash",
        "set_session_name",
        "set_steering_mode",
    ] {
        let error = pi.error(json!({ "type": kind }));
        assert!(
            !error.is_empty() && !error.starts_with("Unknown command"),
            "{kind}: {error}"
        );
    }
    assert!(of_type(&pi.lines(), "agent_start").is_empty());
    pi.finish();
}

#[test]
fn unsolicited_response_frames_are_ignored() {
    let world = World::new([]);
    let pi = world.start();
    pi.agent
        .send(&json!({"type": "extension_ui_response", "id": "ui_1", "value": "x"}))
        .unwrap();
    pi.agent
        .send(&json!({"type": "host_tool_result", "id": "host_1", "result": {"content": []}}))
        .unwrap();
    pi.state();
    assert_eq!(of_type(&pi.lines(), "response").len(), 1);
    pi.finish();
}

#[test]
fn crlf_and_unicode_separators_are_handled() {
    let world = World::new([Reply::text(["ok"])]);
    let pi = world.start();
    pi.agent
        .send_raw(b"{\"id\":\"crlf\",\"type\":\"get_state\"}\r\n")
        .unwrap();
    assert_eq!(pi.response("crlf")["success"], true);
    pi.agent
        .send_raw(b"{\"id\":\"a\",\"type\":\"get_state\"}\n{\"id\":\"b\",\"type\":\"get_state\"}\n")
        .unwrap();
    pi.response("a");
    pi.response("b");
    let odd = "a\u{2028}b\u{2029}c\u{85}d\u{0}e \u{1f600}";
    pi.agent
        .send_raw(
            format!(
                "{{\"id\":\"p\",\"type\":\"prompt\",\"message\":{}}}\n",
                json!(odd)
            )
            .as_bytes(),
        )
        .unwrap();
    pi.settled();
    assert_eq!(pi.messages()[0]["content"][0]["text"], odd);
    assert_eq!(
        world.server.requests()[0].body["messages"][0]["content"][0]["text"],
        odd
    );
}

#[test]
fn input_line_may_arrive_in_pieces_or_unterminated() {
    let world = World::new([]);
    let pi = world.start();
    for byte in b"{\"id\":\"slow\",\"type\":\"get_state\"}\n" {
        pi.agent.send_raw(&[*byte]).unwrap();
    }
    assert_eq!(pi.response("slow")["success"], true);
    pi.agent
        .send_raw(b"{\"id\":\"last\",\"type\":\"get_state\"}")
        .unwrap();
    pi.agent.close_stdin();
    assert_eq!(pi.response("last")["success"], true);
    assert_eq!(pi.agent.wait_exit(LONG).unwrap().code(), Some(0));
}

#[test]
fn responses_keep_order_of_requests() {
    let world = World::new([]);
    let pi = world.start();
    let ids: Vec<String> = (0..2_000)
        .map(|_| pi.send(json!({"type": "get_messages"})))
        .collect();
    pi.response(ids.last().unwrap());
    let lines = pi.lines();
    let answered: Vec<&Value> = of_type(&lines, "response")
        .into_iter()
        .map(|line| &line["id"])
        .collect();
    assert_eq!(answered, ids.iter().collect::<Vec<_>>());
    pi.finish();
}

#[test]
fn long_prompt_arrives_whole() {
    let world = World::new([Reply::text(["ok"])]);
    let pi = world.start();
    let long = "0123456789abcdef".repeat(128 * 1024);
    pi.say(&long);
    assert_eq!(pi.messages()[0]["content"][0]["text"], long.as_str());
    assert_eq!(
        world.server.requests()[0].body["messages"][0]["content"][0]["text"],
        long.as_str()
    );
    pi.finish();
}
