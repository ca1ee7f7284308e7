//! Selecting models and thinking levels.

use models::{Start, StartRequest};
use wire::EntryBody;
use wire::ThinkingLevel::{High, Low, Medium, Off};

use super::super::model_choice::{LevelSettings, Switch};
use super::{choice, model};

const SETTINGS: LevelSettings = LevelSettings {
    own: None,
    restored: Some(Low),
};

#[test]
fn selected_model_keeps_thinking_level() {
    let mut choice = choice(model("a", true), High);
    let switch = choice.select(model("b", true), None, SETTINGS);
    assert_eq!((choice.model.id.as_str(), choice.thinking), ("b", High));
    assert_eq!(
        switch,
        Switch {
            previous_model: Some(model("a", true)),
            previous_level: None
        }
    );
    assert_eq!(
        kinds(&choice.entries_of(&switch)),
        ["model_change"],
        "the level is the same"
    );
}

#[test]
fn level_lost_on_plain_model_returns() {
    let mut choice = choice(model("a", true), High);
    let lost = choice.select(model("plain", false), None, SETTINGS);
    assert_eq!((choice.thinking, lost.previous_level), (Off, Some(High)));
    let back = choice.select(model("a", true), None, SETTINGS);
    assert_eq!((choice.thinking, back.previous_level), (Low, Some(Off)));
    assert_eq!(
        kinds(&choice.entries_of(&back)),
        ["model_change", "thinking_level_change"]
    );
}

#[test]
fn level_stays_off_when_none_is_restored() {
    let settings = LevelSettings {
        own: None,
        restored: None,
    };
    let mut choice = choice(model("a", true), High);
    choice.select(model("plain", false), None, settings);
    let back = choice.select(model("a", true), None, settings);
    assert_eq!((choice.thinking, back.previous_level), (Off, None));
    let own = LevelSettings {
        own: Some(High),
        restored: None,
    };
    choice.select(model("b", true), None, own);
    assert_eq!(choice.thinking, High, "the level of the settings still counts");
}

#[test]
fn level_of_model_settings_counts() {
    let mut choice = choice(model("a", true), Medium);
    let own = LevelSettings {
        own: Some(High),
        restored: Some(Low),
    };
    choice.select(model("b", true), None, own);
    assert_eq!(choice.thinking, High);
    choice.select(model("c", true), Some(Low), own);
    assert_eq!(
        choice.thinking, Low,
        "the scope of cycling comes before the settings"
    );
}

#[test]
fn cycled_levels_wrap_around() {
    let mut choice = choice(model("a", true), High);
    let first = choice.next_level().unwrap();
    assert_eq!(first, Off, "after the strongest comes the weakest");
    let mut seen = vec![first];
    choice.select_level(first);
    while choice.thinking != High {
        let next = choice.next_level().unwrap();
        choice.select_level(next);
        seen.push(next);
    }
    assert_eq!(seen, choice.levels().levels);
    choice.select(model("plain", false), None, SETTINGS);
    assert_eq!(choice.next_level(), None);
}

#[test]
fn active_run_keeps_its_model() {
    let mut choice = choice(model("a", true), High);
    assert_eq!(choice.for_run().0.id, "a");
    choice.select(model("b", true), None, SETTINGS);
    assert_eq!(choice.for_run().0.id, "a", "until the run ends");
    choice.run_model = None;
    assert_eq!(choice.for_run().0.id, "b");
}

#[test]
fn active_run_follows_switch_in_todays_pi() {
    let mut choice = choice(model("a", true), High);
    choice.follow_in_run();
    assert_eq!(choice.run_model, None, "without a run there is nothing to change");
    choice.for_run();
    choice.select(model("b", true), Some(Low), SETTINGS);
    choice.follow_in_run();
    let (asked, level) = choice.for_run();
    assert_eq!((asked.id.as_str(), level), ("b", Low));
}

fn kinds(entries: &[EntryBody]) -> Vec<&str> {
    entries.iter().map(EntryBody::kind).collect()
}

fn start() -> Start {
    Start {
        model: model("default", true),
        thinking: Medium,
        scope: Vec::new(),
        warnings: Vec::new(),
    }
}

#[test]
fn chosen_model_stays_in_new_sessions() {
    let mut choice = choice(model("a", true), Medium);
    let mut unchanged = start();
    choice.keep_chosen(&StartRequest::default(), false, &mut unchanged);
    assert_eq!(unchanged, start(), "the client chose nothing");
    choice.select(model("b", true), None, SETTINGS);
    choice.select_level(High);
    let mut kept = start();
    choice.keep_chosen(&StartRequest::default(), false, &mut kept);
    assert_eq!((kept.model.id.as_str(), kept.thinking), ("b", High));
}

#[test]
fn command_line_overrides_chosen_model() {
    let mut choice = choice(model("a", true), Medium);
    choice.select(model("b", true), None, SETTINGS);
    choice.select_level(High);
    let flags = StartRequest {
        model: Some("default".to_owned()),
        thinking: Some(Medium),
        ..StartRequest::default()
    };
    let mut from_flags = start();
    choice.keep_chosen(&flags, false, &mut from_flags);
    assert_eq!(from_flags, start());
    let mut unresolved = start();
    choice.keep_chosen(&flags, true, &mut unresolved);
    assert_eq!(
        unresolved.model.id, "b",
        "the model of the command line is not known"
    );
}

#[test]
fn session_with_messages_keeps_model_entry() {
    let choice = choice(model("a", true), Medium);
    assert_eq!(
        kinds(&choice.first_entries(false)),
        ["model_change", "thinking_level_change"]
    );
    assert_eq!(kinds(&choice.first_entries(true)), ["thinking_level_change"]);
}
