//! Small parts between the session and its extensions: messages, failures, slash commands, waits.

use config::resources::CommandInfo;
use config::{Scope, SourceInfo};
use serde_json::{Value, json};
use wire::Message;

use super::super::available_commands;
use super::super::boundaries::outcome;
use super::super::extensions::{cancels, custom, failure, members, put, report};
use super::super::wakeup;
use super::events;
use crate::limits;
use crate::outbox::outbox;

#[test]
fn custom_message_without_content_is_empty() {
    for value in [json!({}), json!({"content": null, "details": null})] {
        let Ok(Message::Custom(message)) = custom(&value) else {
            panic!("no custom message");
        };
        assert_eq!(serde_json::to_value(&message.content).unwrap(), "");
        assert_eq!((message.custom_type.as_str(), message.display), ("", false));
        assert_eq!(message.details, None);
    }
}

#[test]
fn custom_message_with_odd_content_is_refused() {
    let refusal = custom(&json!({"content": 7})).unwrap_err();
    assert!(refusal.starts_with("Invalid message content"), "{refusal}");
    assert!(custom(&json!({"content": [{"type": "text", "text": "x"}]})).is_ok());
}

#[test]
fn members_of_no_object_are_none() {
    assert!(members(json!([1])).is_empty() && members(Value::Null).is_empty());
    let mut text = json!("text");
    put(&mut text, "a", json!(1));
    assert_eq!(text, "text", "a text has no members");
    assert!(cancels(&json!({"cancel": true})));
    assert!(!cancels(&json!({"cancel": "true"})) && !cancels(&json!(true)));
}

#[tokio::test]
async fn reported_failure_hides_its_stack() {
    let (outbox, mut sent) = outbox(limits::OUTBOX);
    let mut failed = failure("a.ts", "tool_call", "broken");
    failed.stack = Some("at secret.ts:1".to_owned());
    report(failed, &outbox).await;
    let events = events(&mut sent);
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["extensionPath"], "a.ts");
    assert_eq!(events[0]["error"], "broken");
    assert!(!events[0].to_string().contains("secret"));
}

fn command(name: &str, source: &'static str, hint: Option<&str>) -> CommandInfo {
    CommandInfo {
        name: name.to_owned(),
        description: None,
        source,
        source_info: SourceInfo {
            path: String::new(),
            source: String::new(),
            scope: Scope::User,
            origin: "top-level",
            base_dir: None,
        },
        argument_hint: hint.map(str::to_owned),
        location: "user",
        path: String::new(),
    }
}

#[test]
fn listed_commands_have_sources_of_other_agent() {
    let commands = vec![
        command("review", "prompt", None),
        command("review", "prompt", Some("<file>")),
        command("mcp:server:ask", "extension", None),
        command("skill:x", "skill", None),
    ];
    let listed: Vec<(String, Option<String>)> = available_commands::reply(commands)
        .commands
        .into_iter()
        .map(|command| (command.source, command.input.map(|input| input.hint)))
        .collect();
    let hint = |hint: &str| Some(hint.to_owned());
    assert_eq!(
        listed,
        [
            ("file".to_owned(), None),
            ("file".to_owned(), hint("<file>")),
            ("mcp_prompt".to_owned(), hint("arguments")),
            ("skill".to_owned(), hint("arguments")),
        ]
    );
}

#[test]
fn unknown_end_of_run_counts_as_completed() {
    use wire::StopReason;
    assert_eq!(outcome(None), "completed");
    assert_eq!(outcome(Some(StopReason::Length)), "completed");
    assert_eq!(outcome(Some(StopReason::Aborted)), "aborted");
    assert_eq!(outcome(Some(StopReason::Error)), "error");
}

#[tokio::test]
async fn wait_for_a_past_time_ends_at_once() {
    wakeup::at(Some(0)).await;
    wakeup::at(Some(i64::MIN)).await;
    let never = wakeup::at(None);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(std::pin::pin!(never).poll(&mut context).is_pending());
}

#[tokio::test]
async fn closed_queue_of_requests_never_wakes_twice() {
    let none = wakeup::next_request(None, false);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(std::pin::pin!(none).poll(&mut context).is_pending());
}
