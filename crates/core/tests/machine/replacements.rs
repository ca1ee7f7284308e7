//! Messages that the caller puts others in the place of.

use std::sync::Arc;

use crate::common::World;
use pinion_core::{Effect, Input, LoopSettings, Prepared, ToolInput};
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
    world.machine.replace(&old, &new);
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
    world.machine.add_message(Arc::new(Message::user("note", 0)));
    assert!(world.machine.can_ask());
}
