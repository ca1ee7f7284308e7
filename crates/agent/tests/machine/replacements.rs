//! Messages that the caller puts others in the place of.

use std::sync::Arc;

use crate::common::World;
use pinion_agent::convert::close_dangling_calls;
use pinion_agent::{Change, Effect, Input, LoopSettings, Prepared, ToolInput};
use serde_json::{Map, json};
use wire::{Event, Message, StopReason};

/// A world whose only call runs.
fn calling() -> World {
    let mut world = World::new(LoopSettings::default());
    world.prompt("go");
    world.answer(&["a"], StopReason::ToolUse);
    world.prepared(0);
    world
}

fn roles(world: &World) -> Vec<&str> {
    let messages = world.machine.messages().iter();
    messages.map(|message| message.role()).collect()
}

#[test]
fn message_added_while_tools_run_follows_results() {
    let mut world = calling();
    let note = Message::CompactionSummary(wire::CompactionSummaryMessage {
        summary: "note".to_owned(),
        tokens_before: 0,
        timestamp: 0,
        extra: wire::Extra::default(),
    });
    world.step(Change::Add(Arc::new(note)).into());
    assert_eq!(roles(&world), ["user", "assistant"]);
    world.done(0, "ok");
    assert_eq!(
        roles(&world),
        ["user", "assistant", "toolResult", "compactionSummary"]
    );
}

#[test]
fn conversation_read_while_tools_run_ends_with_answer() {
    let mut world = calling();
    // The file has no results yet: reading it closes the calls.
    let read = close_dangling_calls(world.machine.messages().to_vec());
    assert_eq!(read.len(), 3);
    world.step(Change::Conversation(read).into());
    assert_eq!(roles(&world), ["user", "assistant"]);
    world.done(0, "ok");
    assert_eq!(roles(&world), ["user", "assistant", "toolResult"]);
    // A conversation without the answer gets it back: its results are still to come.
    let mut world = calling();
    world.step(Change::Conversation(Vec::new()).into());
    world.done(0, "ok");
    assert_eq!(roles(&world), ["assistant", "toolResult"]);
}

#[test]
fn repaired_arguments_show_from_turn_end_on() {
    let mut world = World::new(LoopSettings::default());
    world.prompt("go");
    world.answer(&["a", "b"], StopReason::ToolUse);
    let arguments = Map::from_iter([("edits".to_owned(), json!([]))]);
    world.step(Input::Tool(1, ToolInput::Repaired(arguments)));
    let shown = |message: &Message| {
        let calls = message.as_assistant().unwrap().tool_calls();
        calls.map(|call| json!(call.arguments)).collect::<Vec<_>>()
    };
    world.prepared(0);
    world.prepared(1);
    world.done(0, "ok");
    world.done(1, "ok");
    let of_turn = world.effects.iter().find_map(|effect| match effect {
        Effect::Emit(Event::TurnEnd { message, .. }) => Some(shown(message)),
        _ => None,
    });
    let repaired = vec![json!({}), json!({"edits": []})];
    assert_eq!(of_turn, Some(repaired.clone()));
    assert_eq!(shown(&world.machine.messages()[1]), repaired);
    world.answer(&[], StopReason::Stop);
    let of_run = world.effects.iter().find_map(|effect| match effect {
        Effect::Emit(Event::AgentEnd { messages, .. }) => Some(shown(&messages[1])),
        _ => None,
    });
    assert_eq!(of_run, Some(repaired));
    let stored = world.effects.iter().find_map(|effect| match effect {
        Effect::Persist(message) if message.as_assistant().is_some() => Some(shown(message)),
        _ => None,
    });
    assert_eq!(
        stored,
        Some(vec![json!({}), json!({})]),
        "the file has what the model wrote"
    );
}

#[test]
fn session_opened_during_run_forgets_it() {
    let mut world = calling();
    world.queue(pinion_agent::QueueKind::Steering, "later");
    let settings = world.machine.settings();
    let messages = Vec::new();
    assert_eq!(world.step(Change::Open { settings, messages }.into()), []);
    assert!(world.machine.is_idle() && world.machine.queues().is_empty());
    let late = ToolInput::Prepared(Prepared::Run);
    assert_eq!(world.step(Input::Tool(0, late)), []);
}
