//! Records of inputs and their replay. Whole sessions are replayed by the simulation in `machine`.
#![expect(clippy::unwrap_used, reason = "helpers of a test may panic")]

use std::sync::Arc;

use pinion_agent::record::{Recorder, ReplayError, replay, sessions};
use pinion_agent::ttsr::{Rules, TtsrSettings};
use pinion_agent::{Change, Effect, Input, LoopSettings, Machine, ModelInput, QueueKind, Queued};
use wire::rule::RuleSource;
use wire::{AssistantMessage, Message, Rule, StreamEvent, Usage};

fn plain(text: String) -> String {
    text
}

/// Gives a machine inputs and records them.
fn record(session: u64, inputs: Vec<Input>, redact: impl Fn(String) -> String + Copy) -> Vec<String> {
    let mut machine = Machine::default();
    let mut recorder = Recorder::new(session);
    let steps = inputs.into_iter().zip(1..).map(|(input, now)| {
        let pending = recorder.begin(&input, now).unwrap();
        let mut effects = Vec::new();
        machine.step(input, now, &mut effects);
        pending.finish(&effects, redact).unwrap()
    });
    steps.collect()
}

fn prompt(text: &str) -> Input {
    Input::Prompt {
        messages: vec![Arc::new(Message::user(text, 0))],
        full: false,
        limits: None,
        wants_result: false,
    }
}

fn queued(text: &str) -> Input {
    Input::Enqueue(
        QueueKind::Steering,
        Queued {
            text: text.to_owned(),
            message: Arc::new(Message::user(text, 0)),
            interrupts: false,
        },
    )
}

fn replayed(lines: &[String], session: u64) -> Result<Vec<Effect>, ReplayError> {
    let mut effects = Vec::new();
    let lines = lines.iter().map(String::as_str);
    replay(lines, session, |step| effects.extend(step.effects))?;
    Ok(effects)
}

#[test]
fn replay_of_two_sessions_keeps_them_apart() {
    let one = record(1, vec![prompt("a"), queued("b"), Input::Abort], plain);
    let two = record(2, vec![prompt("c")], plain);
    let mut lines = one.clone();
    lines.splice(1..1, two);
    assert_eq!(sessions(lines.iter().map(String::as_str)), [1, 2]);
    assert_eq!(replayed(&lines, 1).unwrap(), replayed(&one, 1).unwrap());
    assert!(replayed(&lines, 2).unwrap().contains(&Effect::CallModel));
}

#[test]
fn missing_line_is_a_gap() {
    let mut lines = record(1, vec![prompt("a"), queued("b"), Input::Abort], plain);
    lines.remove(1);
    let error = replayed(&lines, 1).unwrap_err();
    assert!(
        matches!(
            error,
            ReplayError::Gap {
                expected: 2,
                found: 3
            }
        ),
        "{error}"
    );
}

#[test]
fn changed_input_is_found_by_its_effects() {
    let mut lines = record(1, vec![prompt("a"), queued("b")], plain);
    for line in &mut lines {
        *line = line.replace("\"text\":\"b\"", "\"text\":\"x\"");
    }
    let error = replayed(&lines, 1).unwrap_err();
    assert!(matches!(error, ReplayError::Differs { step: 2, .. }), "{error}");
}

#[test]
fn damaged_line_is_named() {
    let mut lines = record(1, vec![prompt("a"), queued("b")], plain);
    if let Some(last) = lines.last_mut() {
        last.pop();
    }
    let error = replayed(&lines, 1).unwrap_err();
    assert!(matches!(error, ReplayError::Line { line: 2, .. }), "{error}");
}

#[test]
fn redacted_record_replays_without_the_secret() {
    let redact = |text: String| text.replace("sk-secret", "[key]");
    let lines = record(
        1,
        vec![prompt("my key is sk-secret"), queued("sk-secret")],
        redact,
    );
    assert!(!lines.concat().contains("sk-secret"));
    let effects = replayed(&lines, 1).unwrap();
    assert!(format!("{effects:?}").contains("my key is [key]"));
}

#[test]
fn rules_match_alike_after_a_replay() {
    let rule = Rule {
        name: "r".to_owned(),
        path: "/rules/r.md".to_owned(),
        content: "Mind r.".to_owned(),
        globs: Vec::new(),
        always_apply: None,
        description: None,
        // The second one cannot be used, neither now nor in the replay.
        condition: vec!["b.d".to_owned(), "(".to_owned()],
        scope: Vec::new(),
        interrupt_mode: None,
        source: RuleSource {
            provider: String::new(),
            provider_name: String::new(),
            path: String::new(),
            level: "project".to_owned(),
        },
    };
    let (rules, problems) = Rules::new(vec![rule], "/project");
    assert_eq!(problems.len(), 1);
    let delta = StreamEvent::TextDelta {
        content_index: 0,
        delta: "a bad word".to_owned(),
    };
    let inputs = vec![
        Change::Open {
            settings: LoopSettings::default(),
            messages: Vec::new(),
        }
        .into(),
        Change::Rules {
            rules: Arc::new(rules),
            settings: TtsrSettings::default(),
            told: Vec::new(),
        }
        .into(),
        prompt("Go"),
        Input::Model(ModelInput::Started(AssistantMessage::begin("a", "p", "m", 0))),
        Input::Model(ModelInput::Update(delta, Usage::default())),
    ];
    let effects = replayed(&record(1, inputs, plain), 1).unwrap();
    assert!(effects.contains(&Effect::CancelModel), "{effects:?}");
}
