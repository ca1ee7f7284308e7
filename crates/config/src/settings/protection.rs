//! Keys that protect the user: a value of the wrong type and a misspelled name are faults, which stop the start. A misspelled rule
//! that is ignored looks like a rule that holds.

use serde_json::{Map, Value};

use crate::settings::keys::{distance, meaning};
use crate::settings::types::KeyUse;

/// Keys that protect the user, at the top of the file.
const PROTECTIVE: [&str; 9] = [
    "defaultProjectTrust",
    "defaultTools",
    "durability",
    "hooks",
    "images",
    "keepKeysInToolEnv",
    "limits",
    "permissions",
    "sandbox",
];
/// Objects in which every key counts.
const PROTECTIVE_OBJECTS: [&str; 3] = ["limits", "permissions", "sandbox"];
/// The key of another object that protects the user.
const BLOCK_IMAGES: &str = "images.blockImages";
/// Parts of names that no other key has.
const TELLING: [(&str, &str); 2] = [("permission", "permissions"), ("sandbox", "sandbox")];

/// A key that is not known and was meant to protect the user.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Misspelled {
    /// The key as the file has it.
    pub(crate) key: String,
    /// The key at the top of the file that was meant, or that holds it.
    pub(crate) top: &'static str,
    /// The key that was probably meant.
    pub(crate) meant: Option<String>,
}

/// Returns true if a value that cannot be used is a fault. An unusable address of a model server is one: the conversation would go
/// to another model.
pub(crate) fn is_needed(key: &str) -> bool {
    let top = key.split('.').next().unwrap_or_default();
    match top {
        "images" => key == top || key == BLOCK_IMAGES,
        "localServers" => true,
        _ => PROTECTIVE.contains(&top),
    }
}

/// The misspelled keys of a file, in its order.
pub(crate) fn misspelled(keys: &Map<String, Value>) -> Vec<Misspelled> {
    let mut found = Vec::new();
    for (name, value) in keys.iter().filter(|(_, value)| !value.is_null()) {
        // `sandbox.mode` as one name is no key, although it reads like one.
        if name.contains('.') || is_unknown(name) {
            if let Some(meant) = protective_like(name) {
                found.push(Misspelled {
                    key: name.clone(),
                    top: meant,
                    meant: Some(meant.to_owned()),
                });
            }
        } else if let (Some(top), Value::Object(members)) = (protective(name), value) {
            inside(top, members, &mut found);
        }
    }
    found
}

fn inside(top: &'static str, members: &Map<String, Value>, found: &mut Vec<Misspelled>) {
    for (name, _) in members.iter().filter(|(_, value)| !value.is_null()) {
        let key = format!("{top}.{name}");
        let KeyUse::Unknown(alike) = meaning(&key) else {
            continue;
        };
        let known = super::table::keys().filter_map(|known| known.path.strip_prefix(top)?.strip_prefix('.'));
        let near = nearest(name, known).map(|near| format!("{top}.{near}"));
        if PROTECTIVE_OBJECTS.contains(&top) || near.as_deref() == Some(BLOCK_IMAGES) {
            // `pinion doctor` compares whole paths, so that names may differ more.
            let meant = near.or_else(|| alike.map(str::to_owned));
            found.push(Misspelled { key, top, meant });
        }
    }
}

fn is_unknown(key: &str) -> bool {
    matches!(meaning(key), KeyUse::Unknown(_))
}

fn protective(name: &str) -> Option<&'static str> {
    PROTECTIVE.into_iter().find(|known| *known == name)
}

/// The protective key that a name at the top of the file means.
fn protective_like(name: &str) -> Option<&'static str> {
    let plain = plain(name);
    let telling = TELLING.iter().find(|(part, _)| plain.contains(part));
    let dotted = || protective(name.split('.').next()?);
    telling
        .map(|(_, meant)| *meant)
        .or_else(dotted)
        .or_else(|| nearest(name, PROTECTIVE.into_iter()))
}

/// The name that differs least, if it differs little.
fn nearest(name: &str, known: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    let wanted = plain(name);
    // A short name resembles too many others.
    let bound = (wanted.chars().count() / 3).clamp(1, 2);
    known
        .map(|known| (distance(&wanted, &plain(known)), known))
        .filter(|(distance, _)| *distance <= bound)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// A name without what spellings differ in: `permission_mode` and `permissionMode` are the same.
fn plain(name: &str) -> String {
    let letters = name.chars().filter(|letter| letter.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::misspelled;

    fn keys(value: &serde_json::Value) -> Vec<String> {
        let found = misspelled(value.as_object().unwrap()).into_iter();
        found.map(|found| found.key).collect()
    }

    #[test]
    fn protective_key_with_typo_is_found() {
        for (typo, key) in [
            (json!({"permisions": {}}), "permisions"),
            (json!({"Permissions": {}}), "Permissions"),
            (json!({"snadbox": {}}), "snadbox"),
            (json!({"sandbox_mode": "read-only"}), "sandbox_mode"),
            (json!({"limits.maxCost": 1}), "limits.maxCost"),
            (json!({"limit": {"maxCost": 1}}), "limit"),
            (json!({"hook": ["guard"]}), "hook"),
            (json!({"image": {"blockImages": true}}), "image"),
            (json!({"keepKeysInToolsEnv": false}), "keepKeysInToolsEnv"),
            (json!({"durabilty": "disk"}), "durabilty"),
            (json!({"permissions": {"denied": []}}), "permissions.denied"),
            (
                json!({"permissions": {"rules": {"deny": []}}}),
                "permissions.rules",
            ),
            (json!({"sandbox": {"Network": true}}), "sandbox.Network"),
            (json!({"images": {"blockimages": true}}), "images.blockimages"),
        ] {
            assert_eq!(keys(&typo), [key]);
        }
    }

    #[test]
    fn unknown_member_names_key_that_doctor_names() {
        for (typo, meant) in [
            (json!({"permissions": {"denied": []}}), Some("permissions.deny")),
            (json!({"permissions": {"dney": []}}), Some("permissions.deny")),
            (json!({"sandbox": {"denyReading": []}}), Some("sandbox.denyRead")),
            (json!({"permissions": {"rules": {}}}), None),
        ] {
            let found = misspelled(typo.as_object().unwrap());
            assert_eq!(found.len(), 1, "{typo}");
            assert_eq!(found[0].meant.as_deref(), meant, "{typo}");
        }
    }

    #[test]
    fn known_and_foreign_keys_are_not_misspelled() {
        let value = json!({
            "permissions": {"mode": "ask", "allow": [], "ask": [], "deny": []},
            "sandbox": {"mode": "off", "denyRead": null, "nothing": null},
            "limits": {"maxCost": 1}, "hooks": [], "hookTimeout": 1, "images": {"autoresize": true},
            "theme": "dark", "mcp": {}, "zzz": {"deny": []}, "defaultRole": "x", "tools": {}, "links": 1, "permisions": null,
            "compaction": {"sandbox": 1}, "todo": {"eager": true},
        });
        assert_eq!(keys(&value), Vec::<String>::new());
    }
}
