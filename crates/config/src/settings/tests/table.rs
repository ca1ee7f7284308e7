//! The table of keys agrees with the code that reads them.

use serde_json::{Value, json};

use super::load;
use crate::settings::table::keys;
use crate::settings::{KeyUse, Settings, classify};

/// A settings file with one key.
fn file(path: &str, value: Value) -> String {
    let nested = path.rsplit('.').fold(value, |value, name| json!({ name: value }));
    nested.to_string()
}

/// Everything that the values of a file have an effect on.
fn effect(mut settings: Settings) -> String {
    // The default of `dialogTimeoutMs` is applied when a dialog opens.
    let dialog_wait = settings.dialog_wait();
    settings.dialog_timeout_ms = None;
    settings.files.clear();
    settings.raw.clear();
    format!("{dialog_wait:?} {settings:?}")
}

#[test]
fn documented_default_equals_unset() {
    let (unset, _) = load("{}", "", None);
    let unset = effect(unset);
    let mut checked = 0;
    for key in keys().filter(|key| !key.default.is_empty()) {
        let value: Value = serde_json::from_str(key.default).expect(key.path);
        let (settings, notes) = load(&file(key.path, value), "", None);
        assert_eq!(notes, Vec::<String>::new(), "{}", key.path);
        assert_eq!(effect(settings), unset, "{}", key.path);
        checked += 1;
    }
    assert!(checked > 40, "{checked}");
}

#[test]
fn wrong_type_is_reported_for_every_key() {
    for key in keys() {
        let (_, notes) = load(&file(key.path, json!([-1.5])), "", None);
        assert!(!notes.is_empty(), "{} is not checked", key.path);
    }
}

#[test]
fn dotted_key_is_classified_by_its_path() {
    for key in keys().filter(|key| key.path.contains('.')) {
        let text = file(key.path, json!("value"));
        let found = classify(&serde_json::from_str(&text).unwrap());
        let found: Vec<(&str, &KeyUse)> = found
            .iter()
            .map(|found| (found.key.as_str(), &found.usage))
            .collect();
        assert_eq!(found, [(key.path, &KeyUse::Used)]);
    }
}
