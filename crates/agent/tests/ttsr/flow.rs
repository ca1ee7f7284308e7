//! What follows from a match.

use pinion_agent::ttsr::TtsrSettings;
use pinion_agent::{Input, ModelInput, QueueKind, Queued, Verdict};
use std::sync::Arc;
use wire::rule::RuleInterrupt;
use wire::{Message, Rule, StopReason};

use crate::{ALL_MODES, World, rule, scoped};

#[test]
fn matched_rule_stops_answer_and_run_continues() {
    let mut world = World::new(vec![rule("r", "bad"), rule("s", "bad|worse"), rule("t", "never")]);
    world.log();
    world.text("a bad");
    world.text(" word, worse");
    assert_eq!(world.log(), ["triggered", "CANCEL"]);
    world.finish(StopReason::Aborted);
    assert_eq!(
        world.log(),
        [
            "persist assistant",
            "end Aborted",
            "agent_end true",
            "persist custom",
            r#"record ["r","s"]"#,
            "agent_start",
            "CALL"
        ]
    );
    let Message::Custom(told) = world.machine.messages().last().unwrap().as_ref() else {
        panic!("{:?}", world.machine.messages());
    };
    assert_eq!(
        (told.custom_type.as_str(), told.display),
        ("ttsr-injection", false)
    );
    let text = told.content.text();
    assert!(
        text.contains("rule=\"r\" path=\"/rules/r.md\"") && text.contains("Mind r."),
        "{text}"
    );
    assert!(text.contains("Mind s.") && !text.contains("Mind t."), "{text}");
    let roles: Vec<&str> = world
        .machine
        .messages()
        .iter()
        .map(|message| message.role())
        .collect();
    assert_eq!(roles, ["user", "custom"], "the answer left the conversation");
    world.begin();
    world.text("a bad word");
    world.finish(StopReason::Stop);
    assert_eq!(
        world.log(),
        [
            "persist assistant",
            "end Stop",
            "agent_end false",
            "settled false"
        ]
    );
}

#[test]
fn answer_finished_before_cancel_is_still_stopped() {
    let mut world = World::new(vec![rule("r", "bad")]);
    world.text("bad");
    world.log();
    world.finish(StopReason::Stop);
    assert_eq!(world.log()[1], "end Aborted");
    assert!(!world.machine.is_idle());
}

#[test]
fn user_abort_wins_over_matched_rule() {
    let mut world = World::new(vec![rule("r", "bad")]);
    world.text("bad");
    world.step(Input::Abort);
    world.log();
    world.finish(StopReason::Aborted);
    assert_eq!(
        world.log(),
        [
            "persist assistant",
            "end Aborted",
            "agent_end false",
            "settled true"
        ]
    );
    // The model did not get the rule, so it counts as before.
    world.prompt();
    world.text("bad");
    assert_eq!(world.stopped(), ["r"]);
    // After an abort nothing is watched any more.
    let mut world = World::new(vec![rule("r", "bad")]);
    world.step(Input::Abort);
    world.text("bad");
    assert!(world.stopped().is_empty());
}

#[test]
fn answer_failing_after_match_counts_as_stopped() {
    let mut world = World::new(vec![rule("r", "bad")]);
    world.text("bad");
    world.log();
    let failed = wire::AssistantMessage {
        stop_reason: StopReason::Error,
        ..crate::head()
    };
    world.step(Input::Model(ModelInput::Finished(failed, Verdict::Retry(None))));
    assert_eq!(world.log().last().unwrap(), "CALL");
}

#[test]
fn kept_partial_answer_stays_in_messages() {
    let settings = TtsrSettings {
        keep_partial: true,
        ..TtsrSettings::default()
    };
    let mut world = World::with(vec![rule("r", "bad")], settings, &[]);
    world.text("bad");
    world.finish(StopReason::Aborted);
    let roles: Vec<&str> = world
        .machine
        .messages()
        .iter()
        .map(|message| message.role())
        .collect();
    assert_eq!(roles, ["user", "assistant", "custom"]);
}

#[test]
fn interrupt_mode_decides_which_streams_stop() {
    for (mode, in_text, in_tool) in [
        (RuleInterrupt::Always, true, true),
        (RuleInterrupt::ProseOnly, true, false),
        (RuleInterrupt::ToolOnly, false, true),
        (RuleInterrupt::Never, false, false),
    ] {
        // The rule's own mode comes before the setting.
        for other in ALL_MODES {
            let own = Rule {
                interrupt_mode: Some(mode),
                ..rule("r", "bad")
            };
            for (rules, setting) in [(own, other), (rule("r", "bad"), mode)] {
                let settings = TtsrSettings {
                    interrupt_mode: setting,
                    ..TtsrSettings::default()
                };
                let mut world = World::with(vec![rules.clone()], settings, &[]);
                world.text("bad");
                assert_eq!(!world.stopped().is_empty(), in_text, "{mode:?}");
                let mut world = World::with(vec![rules], settings, &[]);
                world.tool_start(0, "edit");
                world.tool(0, "{\"a\": \"bad");
                assert_eq!(!world.stopped().is_empty(), in_tool, "{mode:?}");
            }
        }
    }
}

#[test]
fn non_interrupting_rule_is_reported_at_run_end() {
    let never = Rule {
        interrupt_mode: Some(RuleInterrupt::Never),
        ..rule("r", "bad")
    };
    let mut world = World::new(vec![never, scoped("s", "x", &["thinking"])]);
    world.log();
    world.text("bad, bad");
    world.text("bad");
    assert!(world.log().is_empty());
    let message = Arc::new(Message::user("also", 0));
    let text = "also".to_owned();
    world.step(Input::Enqueue(
        QueueKind::FollowUp,
        Queued {
            text,
            message,
            interrupts: false,
        },
    ));
    world.finish(StopReason::Stop);
    assert_eq!(
        world.log(),
        [
            "persist assistant",
            "end Stop",
            "persist user",
            "end user",
            "CALL"
        ],
        "people first"
    );
    world.begin();
    world.finish(StopReason::Stop);
    assert_eq!(
        world.log(),
        [
            "persist assistant",
            "end Stop",
            "persist custom",
            "end custom",
            r#"record ["r"]"#,
            "CALL"
        ]
    );
    world.begin();
    world.finish(StopReason::Stop);
    assert_eq!(
        world.log(),
        [
            "persist assistant",
            "end Stop",
            "agent_end false",
            "settled false"
        ]
    );
}
