//! Section: the settings files, their keys and what each key comes to. Values are not shown: they may be secret.

use config::Scope;
use config::settings::{FileState, FoundKey, KeyUse, SettingsFile};
use serde_json::{Value, json};

use super::Patient;
use super::keys::counted;
use super::report::{Mark, Section};

pub(super) fn section(patient: &Patient<'_>) -> Section {
    let mut section = Section::new("settings", "Settings");
    for file in &patient.settings.files {
        show(&mut section, patient, file);
    }
    let files: Vec<Value> = patient.settings.files.iter().map(data).collect();
    section.data = json!({ "files": files });
    section
}

fn show(section: &mut Section, patient: &Patient<'_>, file: &SettingsFile) {
    let path = patient.short(&file.path);
    let whose = if file.scope == Scope::User {
        "yours"
    } else {
        "the project's"
    };
    let (mark, state) = match &file.state {
        FileState::Missing => (Mark::None, "not there".to_owned()),
        FileState::NotRead => (Mark::None, "not read: the project is ignored".to_owned()),
        FileState::Broken(_) => (
            Mark::Bad,
            "broken, so all of it is left out (see below)".to_owned(),
        ),
        FileState::Read => (Mark::Good, counted(file.keys.len(), "key", "keys")),
    };
    section.marked(mark, whose, format!("{path}  {state}"));
    keys(section, file);
}

/// One row for each kind of use.
fn keys(section: &mut Section, file: &SettingsFile) {
    let listed = |wanted: fn(&KeyUse) -> bool| {
        let keys = file.keys.iter().filter(|found| wanted(&found.usage));
        keys.map(in_words).collect::<Vec<_>>().join(", ")
    };
    let kinds: [(Mark, &str, String); 6] = [
        (
            Mark::None,
            "in use",
            listed(|usage| matches!(usage, KeyUse::Used)),
        ),
        (
            Mark::None,
            "old names",
            listed(|usage| matches!(usage, KeyUse::Renamed(_))),
        ),
        (
            Mark::None,
            "no effect yet",
            listed(|usage| matches!(usage, KeyUse::NotYet)),
        ),
        (
            Mark::None,
            "no meaning here",
            listed(|usage| matches!(usage, KeyUse::NoMeaning)),
        ),
        (
            Mark::Odd,
            "unknown",
            listed(|usage| matches!(usage, KeyUse::Unknown(_))),
        ),
        (
            Mark::Odd,
            "left out",
            listed(|usage| matches!(usage, KeyUse::Untrusted | KeyUse::GlobalOnly)),
        ),
    ];
    for (mark, kind, keys) in kinds {
        if !keys.is_empty() {
            section.marked(mark, "", format!("{kind}: {keys}"));
        }
    }
}

fn in_words(found: &FoundKey) -> String {
    let key = &found.key;
    match &found.usage {
        KeyUse::Renamed(new) => format!("{key} (now {new})"),
        KeyUse::Unknown(Some(meant)) => format!("{key} (did you mean {meant}?)"),
        KeyUse::Untrusted => format!("{key} (the project is not trusted)"),
        KeyUse::GlobalOnly => format!("{key} (counts in your own settings only)"),
        KeyUse::Used | KeyUse::NotYet | KeyUse::NoMeaning | KeyUse::Unknown(None) => key.clone(),
    }
}

fn data(file: &SettingsFile) -> Value {
    let (state, error) = match &file.state {
        FileState::Missing => ("missing", None),
        FileState::Read => ("read", None),
        FileState::Broken(why) => ("broken", Some(why)),
        FileState::NotRead => ("not-read", None),
    };
    let keys = file.keys.iter().map(|found| {
        let (usage, hint) = match &found.usage {
            KeyUse::Used => ("used", None),
            KeyUse::NotYet => ("not-yet", None),
            KeyUse::NoMeaning => ("no-meaning", None),
            KeyUse::Renamed(new) => ("renamed", Some(*new)),
            KeyUse::Unknown(meant) => ("unknown", *meant),
            KeyUse::Untrusted => ("untrusted", None),
            KeyUse::GlobalOnly => ("global-only", None),
        };
        json!({"key": found.key, "use": usage, "hint": hint})
    });
    json!({
        "path": file.path,
        "scope": file.scope,
        "state": state,
        "error": error,
        "keys": keys.collect::<Vec<_>>(),
    })
}
