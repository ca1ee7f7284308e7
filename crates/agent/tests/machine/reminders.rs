//! Reminders of open todos: when they come and what follows.

use std::sync::Arc;

use pinion_agent::convert::without_retried;
use pinion_agent::todo::{TodoSettings, normalise};
use pinion_agent::{Change, CompactOutcome, Effect, Input, LoopSettings, ModelInput, QueueKind, Verdict};
use serde_json::json;
use wire::{Event, Message, StopReason};

use crate::common::{World, answer, head};

/// A world with one item in progress and one pending, and so many reminders.
fn world(max_reminders: u32) -> World {
    let mut world = World::new(LoopSettings::default());
    let settings = TodoSettings {
        reminders: max_reminders > 0,
        max_reminders,
        ..TodoSettings::default()
    };
    let branch = Change::Branch {
        todos: settings,
        phases: list("pending"),
    };
    world.step(branch.into());
    world
}

fn list(second: &str) -> Vec<wire::TodoPhase> {
    let first = if second == "pending" {
        "in_progress"
    } else {
        second
    };
    let tasks = json!([{"content": "a", "status": first}, {"content": "b", "status": second}]);
    normalise(&json!([{"name": "A", "tasks": tasks}])).unwrap_or_default()
}

/// The attempts told since the last call, and whether all is quiet.
fn reminded(world: &mut World) -> (Vec<(u32, u32, usize)>, bool) {
    let attempts = world.effects.drain(..).filter_map(|effect| match effect {
        Effect::Emit(Event::TodoReminder {
            todos,
            attempt,
            max_attempts,
        }) => Some((attempt, max_attempts, todos.len())),
        _ => None,
    });
    (attempts.collect(), world.machine.is_idle())
}

#[test]
fn reminders_end_with_their_tool() {
    let mut world = world(3);
    world.prompt("Go");
    world.step(Change::Reminders(false).into());
    world.answer(&[], StopReason::Stop);
    assert_eq!(reminded(&mut world), (Vec::new(), true));
    world.step(Change::Reminders(true).into());
    world.prompt("Again");
    world.answer(&[], StopReason::Stop);
    assert_eq!(reminded(&mut world), (vec![(1, 3, 2)], false));
}

#[test]
fn reminder_follows_run_end_and_starts_another() {
    let mut world = world(1);
    world.prompt("Go");
    world.answer(&[], StopReason::Stop);
    let log = world.take();
    let end = log.iter().position(|line| line == "agent_end 2 retry");
    let rest: Vec<&str> = log
        .iter()
        .skip(end.map_or(0, |at| at + 1))
        .map(|line| line.split(' ').next().unwrap_or_default())
        .collect();
    assert_eq!(rest, ["TodoReminder", "agent_start", "turn_start", "CALL"]);
    let Some(Message::Custom(told)) = world.machine.messages().last().map(AsRef::as_ref) else {
        panic!("nothing was said");
    };
    assert_eq!(
        (told.custom_type.as_str(), told.display),
        ("todo-reminder", false)
    );
    let text = told.content.text();
    assert!(
        text.contains(
            "2 items of the todo list are not done:\n- task-1 [in_progress] a (A)\n- task-2 [pending] b (A)\n"
        ) && text.contains("(Reminder 1 of 1)"),
        "{text}"
    );
    let on_disk = world.effects.iter().any(
        |effect| matches!(effect, Effect::Persist(message) if matches!(message.as_ref(), Message::Custom(_))),
    );
    assert!(on_disk);
    world.answer(&[], StopReason::Stop);
    assert!(world.take().contains(&"agent_end 1".to_owned()));
}

#[test]
fn reminders_are_limited_per_user_message() {
    let mut world = world(2);
    for _ in 0..2 {
        world.prompt("Go");
        for attempt in 1..=2 {
            world.answer(&[], StopReason::Stop);
            assert_eq!(reminded(&mut world), (vec![(attempt, 2, 2)], false));
        }
        world.answer(&[], StopReason::Stop);
        assert_eq!(reminded(&mut world), (vec![], true));
    }
}

#[test]
fn queued_message_precedes_reminder_and_resets_count() {
    let mut world = world(1);
    world.prompt("Go");
    world.answer(&[], StopReason::Stop);
    assert_eq!(reminded(&mut world).0.len(), 1);
    world.queue(QueueKind::FollowUp, "also");
    world.answer(&[], StopReason::Stop);
    assert_eq!(reminded(&mut world).0.len(), 0);
    world.answer(&[], StopReason::Stop);
    assert_eq!(reminded(&mut world).0, [(1, 1, 2)]);
}

#[test]
fn reminder_needs_open_items_and_setting() {
    let mut done = world(3);
    done.step(Change::Todos(list("completed")).into());
    let off = world(0);
    for mut world in [done, off] {
        world.prompt("Go");
        world.answer(&[], StopReason::Stop);
        assert_eq!(reminded(&mut world), (vec![], true));
        assert!(world.take().contains(&"agent_end 2".to_owned()));
    }
}

#[test]
fn reminder_is_skipped_after_failure_or_abort() {
    let mut failed = world(3);
    failed.prompt("Go");
    failed.fail("no", Verdict::Final);
    assert_eq!(reminded(&mut failed), (vec![], true));
    let mut aborted = world(3);
    aborted.prompt("Go");
    aborted.step(Input::Abort);
    aborted.answer(&[], StopReason::Stop);
    assert_eq!(reminded(&mut aborted), (vec![], true));
}

#[test]
fn reminder_waits_for_tools() {
    let mut world = world(3);
    world.prompt("Go");
    world.answer(&["c"], StopReason::ToolUse);
    world.prepared(0);
    world.done(0, "x");
    assert_eq!(reminded(&mut world), (vec![], false));
    world.answer(&[], StopReason::Stop);
    assert_eq!(reminded(&mut world).0.len(), 1);
}

#[test]
fn manual_compaction_causes_no_reminder() {
    let mut world = world(3);
    world.step(Input::Compact);
    world.step(Input::Compacted(CompactOutcome::Failed("no".to_owned())));
    assert_eq!(reminded(&mut world), (vec![], true));
}

#[test]
fn compaction_precedes_reminder() {
    let mut world = world(3);
    world.prompt("Go");
    world.full = true;
    world.answer(&[], StopReason::Stop);
    assert_eq!(
        reminded(&mut world),
        (vec![], false),
        "the conversation is compacted first"
    );
    world.step(Input::Compacted(CompactOutcome::Failed("no".to_owned())));
    assert_eq!(reminded(&mut world).0, [(1, 3, 2)]);
    // The list changed meanwhile: then there is nothing to say.
    world.full = true;
    world.answer(&[], StopReason::Stop);
    world.step(Change::Todos(list("abandoned")).into());
    world.step(Input::Compacted(CompactOutcome::Failed("no".to_owned())));
    assert_eq!(reminded(&mut world), (vec![], true));
    // The run was aborted: then no reminder follows.
    world.step(Change::Todos(list("pending")).into());
    world.prompt("Go");
    world.full = true;
    world.answer(&[], StopReason::Stop);
    world.step(Input::Abort);
    world.step(Input::Compacted(CompactOutcome::Aborted));
    assert_eq!(reminded(&mut world), (vec![], true));
}

#[test]
fn completed_list_resets_reminder_count() {
    let mut world = world(1);
    world.prompt("Go");
    world.answer(&[], StopReason::Stop);
    assert_eq!(reminded(&mut world).0.len(), 1);
    world.step(Change::Todos(list("completed")).into());
    world.step(Change::Todos(list("pending")).into());
    world.answer(&[], StopReason::Stop);
    assert_eq!(reminded(&mut world).0, [(1, 1, 2)]);
}

#[test]
fn answer_with_reasoning_only_is_asked_again() {
    let settings = LoopSettings {
        silent_answers: 2,
        ..LoopSettings::default()
    };
    let think = |world: &mut World| {
        let mut answer = answer(&[], StopReason::Stop);
        answer.content = serde_json::from_value(json!([{"type": "thinking", "thinking": "hm"}])).unwrap();
        world.step(Input::Model(ModelInput::Started(head())));
        world.step(Input::Model(ModelInput::Finished(answer, Verdict::Final)));
    };
    let mut world = World::new(settings);
    world.prompt("Go");
    for _ in 0..2 {
        think(&mut world);
        let told = world.machine.messages().last().unwrap();
        assert!(
            matches!(&**told, Message::Custom(told) if told.custom_type == "silent-answer" && !told.display)
        );
        assert!(!world.machine.is_idle());
    }
    think(&mut world);
    assert!(world.machine.is_idle(), "twice is enough");
    let asked = |world: &mut World| {
        let effects = world.effects.drain(..);
        effects.filter(|effect| *effect == Effect::CallModel).count()
    };
    assert_eq!(asked(&mut world), 3);
    world.prompt("Once more");
    think(&mut world);
    world.answer(&[], StopReason::Stop);
    assert!(world.machine.is_idle(), "an answer with text ends the run");
    assert_eq!(asked(&mut world), 2);
    let mut world = World::new(LoopSettings::default());
    world.prompt("Go");
    think(&mut world);
    assert!(world.machine.is_idle(), "only if the settings say so");
}

#[test]
fn empty_answer_is_asked_again_and_left_out() {
    let settings = LoopSettings {
        silent_answers: 1,
        ..LoopSettings::default()
    };
    let say_nothing = |world: &mut World| {
        let mut answer = answer(&[], StopReason::Stop);
        answer.content = Vec::new();
        world.step(Input::Model(ModelInput::Started(head())));
        world.step(Input::Model(ModelInput::Finished(answer, Verdict::Final)));
    };
    let mut world = World::new(settings);
    world.prompt("Go");
    say_nothing(&mut world);
    assert!(!world.machine.is_idle());
    let messages = world.machine.messages().iter();
    let roles: Vec<_> = messages.map(|message| message.role()).collect();
    assert_eq!(
        roles,
        ["user", "custom"],
        "the conversation lacks the empty answer"
    );
    say_nothing(&mut world);
    assert!(world.machine.is_idle(), "once is enough");
    let mut world = World::new(LoopSettings::default());
    world.prompt("Go");
    say_nothing(&mut world);
    assert!(world.machine.is_idle(), "only if the settings say so");
}

#[test]
fn stored_empty_answer_is_left_out_again() {
    let mut empty = answer(&[], StopReason::Stop);
    empty.content.clear();
    let told = json!({"role": "custom", "customType": "silent-answer", "content": "More.", "display": false});
    let told = Message::from_json(&told.to_string()).unwrap();
    let messages: Vec<Arc<Message>> = vec![
        Arc::new(Message::user("Go", 0)),
        empty.into(),
        Arc::new(told),
        answer(&[], StopReason::Stop).into(),
    ];
    let (messages, _) = without_retried(messages, 0);
    let roles: Vec<_> = messages.iter().map(|message| message.role()).collect();
    assert_eq!(roles, ["user", "custom", "assistant"]);
}

#[test]
fn reasoning_without_text_ends_the_run() {
    let mut sealed = answer(&[], StopReason::Stop);
    let block = json!({"type": "thinking", "thinking": "", "thinkingSignature": "s", "redacted": true});
    sealed.content = serde_json::from_value(json!([block])).unwrap();
    let mut world = World::new(LoopSettings {
        silent_answers: 1,
        ..LoopSettings::default()
    });
    world.prompt("Go");
    world.step(Input::Model(ModelInput::Started(head())));
    world.step(Input::Model(ModelInput::Finished(sealed, Verdict::Final)));
    assert!(world.machine.is_idle());
    assert_eq!(
        world.machine.messages().len(),
        2,
        "the provider gets its reasoning back"
    );
}
