//! Prompts that hooks of extensions still look at, or that wait for extensions, when the client wants something else: each is
//! refused, and none begins a run.

use serde_json::{Value, json};
use testkit::llm::Reply;

use crate::extensions::{can_run, extended, notes};
use crate::kit::{LONG, Pi, World, of_type, until};

/// An extension whose handler of `event` never answers for the prompt of `held`.
fn waiting_for(event: &str) -> World {
    let body = format!(
        r#"
        pi.on("{event}", async (event, ctx) => {{
          if ((event.text ?? event.prompt) !== "hold") return;
          ctx.ui.notify("asked");
          await new Promise(() => {{}});
        }});
        "#
    );
    extended([Reply::text(["Fine."]).repeat()], &body)
}

/// Sends the prompt on which the handler waits.
fn held(pi: &Pi) -> String {
    let id = pi.send(json!({"type": "prompt", "message": "hold"}));
    until("the question", || notes(&pi.lines()) == ["asked"]);
    id
}

fn assert_refused(response: &Value) {
    assert_eq!(response["success"], false, "{response}");
    assert_eq!(response["error"], "Operation aborted", "{response}");
}

#[test]
fn abort_and_prompt_refuses_prompt_at_hooks() {
    if !can_run() {
        return;
    }
    for event in ["input", "before_agent_start"] {
        let world = waiting_for(event);
        let pi = world.start();
        let first = held(&pi);
        let data = pi.data(json!({"type": "abort_and_prompt", "message": "Rather this"}));
        assert_eq!(data["disposition"], "started", "{event}");
        assert_refused(&pi.response(&first));
        pi.settled();
        let sent: Vec<String> = world
            .server
            .requests()
            .iter()
            .map(|request| request.body["messages"].to_string())
            .collect();
        assert_eq!(sent.len(), 1, "{event}: {sent:?}");
        assert!(
            sent[0].contains("Rather this") && !sent[0].contains("hold"),
            "{sent:?}"
        );
        assert_eq!(pi.roles(), ["user", "assistant"], "{event}");
        pi.agent.close_stdin();
        pi.agent.wait_exit(LONG).unwrap();
    }
}

#[test]
fn abort_refuses_prompt_at_hooks() {
    if !can_run() {
        return;
    }
    for event in ["input", "before_agent_start"] {
        let world = waiting_for(event);
        let pi = world.start();
        let first = held(&pi);
        pi.data(json!({"type": "abort"}));
        assert_refused(&pi.response(&first));
        assert_eq!(pi.state()["isStreaming"], false, "{event}");
        pi.say("Go on");
        assert_eq!(pi.roles(), ["user", "assistant"], "{event}");
        pi.agent.close_stdin();
        pi.agent.wait_exit(LONG).unwrap();
    }
}

#[test]
fn abort_refuses_prompt_that_waits_for_extensions() {
    if !can_run() {
        return;
    }
    let body = "return new Promise(() => {});";
    let world = extended([Reply::text(["Fine."]).repeat()], body);
    let pi = world.start();
    let first = pi.send(json!({"type": "prompt", "message": "Go"}));
    pi.data(json!({"type": "abort"}));
    assert_refused(&pi.response(&first));
    pi.agent.close_stdin();
    pi.agent.wait_exit(LONG).unwrap();
    pi.wait_ended();
    assert!(of_type(&pi.lines(), "agent_start").is_empty());
    assert!(world.server.requests().is_empty());
}

#[test]
fn end_of_input_refuses_prompt_at_hooks() {
    if !can_run() {
        return;
    }
    for event in ["input", "before_agent_start"] {
        let world = waiting_for(event);
        let pi = world.start();
        let first = held(&pi);
        // They wait for the prompt. The second one would wait at the hook, too.
        let behind = ["get_messages", "prompt", "get_messages"]
            .map(|command| pi.send(json!({"type": command, "message": "hold"})));
        pi.agent.close_stdin();
        let status = pi.agent.wait_exit(LONG).unwrap();
        assert_eq!(status.code(), Some(0), "{event}: {}", pi.agent.stderr());
        pi.wait_ended();
        let lines = pi.lines();
        let response = lines.iter().find(|line| line["id"] == first.as_str());
        assert_refused(response.unwrap());
        let answered = |id: &String| lines.iter().any(|line| line["id"] == id.as_str());
        assert!(behind.iter().all(answered), "{event}: {lines:?}");
        assert!(of_type(&lines, "agent_start").is_empty(), "{event}");
        assert!(world.server.requests().is_empty(), "{event}");
    }
}

#[test]
fn end_of_input_refuses_session_change_at_hooks() {
    if !can_run() {
        return;
    }
    let body = r#"
        pi.on("session_before_switch", async (_event, ctx) => {
          ctx.ui.notify("asked");
          await new Promise(() => {});
        });
        "#;
    let world = extended([], body);
    let pi = world.start();
    let change = pi.send(json!({"type": "new_session"}));
    until("the question", || notes(&pi.lines()) == ["asked"]);
    let behind = pi.send(json!({"type": "get_messages"}));
    pi.agent.close_stdin();
    pi.agent.wait_exit(LONG).unwrap();
    pi.wait_ended();
    let lines = pi.lines();
    for id in [change, behind] {
        let response = lines.iter().find(|line| line["id"] == id.as_str());
        assert_eq!(response.unwrap()["success"], false, "{lines:?}");
    }
}
