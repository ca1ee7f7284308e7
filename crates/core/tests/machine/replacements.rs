//! Messages that the caller puts others in the place of.

use std::sync::Arc;

use crate::common::World;
use pinion_core::convert::close_dangling_calls;
use pinion_core::{Change, Effect, Input, LoopSettings, Prepared, ToolInput};
use wire::{Event, Message, StopReason, ToolResult};

fn message_ends(effects: &[Effect]) -> Vec<Arc<Message>> {
    let ends = effects.iter().filter_map(|effect| match effect {
        Effect::Emit(Event::MessageEnd { message }) => Some(Arc::clone(message)),
        _ => None,
    });
    ends.collect()
}

#[test]
fn replaced_message_appears_in_conversation_and_later_events() {
    let mut world = World::new(LoopSettings::default());
    world.prompt("go");
    world.answer(&["a"], StopReason::ToolUse);
    world.step(Input::Tool(0, ToolInput::Prepared(Prepared::Run)));
    let done = ToolInput::Done {
        result: ToolResult::text("secret"),
        is_error: false,
        duration_ms: 1,
    };
    world.asks_itself = false;
    let mut effects = world.step(Input::Tool(0, done));
    let old = message_ends(&effects).remove(0);
    let new = Arc::new(Message::user("other", 0));
    let at = world.machine.position(&old).unwrap();
    let message = Arc::clone(&new);
    world.step(Change::Replace { at, message }.into());
    for effect in &mut effects {
        effect.replace(&old, &new);
    }
    assert!(Arc::ptr_eq(&message_ends(&effects)[0], &new));
    assert!(effects.contains(&Effect::Persist(Arc::clone(&new))));
    // What the tool itself gave back stays.
    effects.retain(|effect| !matches!(effect, Effect::Emit(Event::ToolExecutionEnd { .. })));
    assert!(!format!("{effects:?}").contains("secret"));
    assert!(!format!("{:?}", world.machine).contains("secret"));
    // The run that is under way has it, too.
    let rest = world.step(Input::Context(false));
    assert!(rest.contains(&Effect::CallModel));
    world.asks_itself = true;
    world.answer(&[], StopReason::Stop);
    let end = world.effects.iter().find_map(|effect| match effect {
        Effect::Emit(Event::AgentEnd { messages, .. }) => Some(messages.clone()),
        _ => None,
    });
    assert!(end.unwrap().iter().any(|message| Arc::ptr_eq(message, &new)));
}

#[test]
fn request_needs_message_after_last_answer() {
    let mut world = World::new(LoopSettings::default());
    assert!(!world.machine.can_ask());
    world.prompt("go");
    assert!(world.machine.can_ask());
    world.answer(&[], StopReason::Stop);
    assert!(!world.machine.can_ask());
    world.step(Change::Add(Arc::new(Message::user("note", 0))).into());
    assert!(world.machine.can_ask());
}

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
fn session_opened_during_run_forgets_it() {
    let mut world = calling();
    world.queue(pinion_core::QueueKind::Steering, "later");
    let settings = world.machine.settings();
    let messages = Vec::new();
    assert_eq!(world.step(Change::Open { settings, messages }.into()), []);
    assert!(world.machine.is_idle() && world.machine.queued() == 0);
    let late = ToolInput::Prepared(Prepared::Run);
    assert_eq!(world.step(Input::Tool(0, late)), []);
}
