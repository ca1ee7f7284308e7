//! `permissions`: modes and rules, of the user and of the project. They are kept apart: only the user's own file can loosen
//! anything. What they mean is in the crate `permissions`.
//!
//! Permissions fail closed: an unknown mode becomes `ask`.

use permissions::{PermissionLayer, PermissionSettings};
use serde_json::Value;
use wire::state::PermissionMode;

use crate::diagnostic::Diagnostic;
use crate::settings::layers::Layer;
use crate::settings::reader::Reader;
use crate::source::Scope;

pub(super) fn permissions(reader: &mut Reader<'_>) -> PermissionSettings {
    let mut found = PermissionSettings::default();
    for layer in reader.layers {
        let read = one(layer, &mut reader.notes);
        match layer.scope {
            Scope::Project => found.project = read,
            _ => found.user = read,
        }
    }
    found
}

fn one(layer: &Layer, notes: &mut Vec<Diagnostic>) -> PermissionLayer {
    let mut fault = |key: &str, message: String| notes.push(Diagnostic::fault(&layer.path, key, message));
    if layer.get("permissions").is_some_and(|value| !value.is_object()) {
        fault(
            "permissions",
            "\"permissions\" should be an object; taken as the mode ask".to_owned(),
        );
        return PermissionLayer {
            mode: Some(PermissionMode::Ask),
            ..PermissionLayer::default()
        };
    }
    let mode = layer.get("permissions.mode").map(|value| {
        value.as_str().and_then(PermissionMode::parse).unwrap_or_else(|| {
            let message = "\"permissions.mode\" should be off, auto, ask or read-only; taken as ask";
            fault("permissions.mode", message.to_owned());
            PermissionMode::Ask
        })
    });
    let mut rules = |name: &str| {
        let key = format!("permissions.{name}");
        let texts: Option<Vec<String>> = match layer.get(&key) {
            None => return Vec::new(),
            Some(Value::String(text)) => Some(vec![text.clone()]),
            Some(Value::Array(items)) => items
                .iter()
                .map(|item| item.as_str().map(str::to_owned))
                .collect(),
            Some(_) => None,
        };
        texts.unwrap_or_else(|| {
            // The intended rules are unknown: nothing is allowed, and everything forbidden or asked about.
            let (meaning, texts) = match name {
                "allow" => ("ignored", Vec::new()),
                _ => ("taken as a rule for all tools", vec!["*".to_owned()]),
            };
            fault(&key, format!("\"{key}\" should be a list of rules; {meaning}"));
            texts
        })
    };
    let (mut allow, ask, deny) = (rules("allow"), rules("ask"), rules("deny"));
    if layer.scope == Scope::Project && !allow.is_empty() {
        let message = "\"permissions.allow\" is left out: a project allows nothing by itself";
        notes.push(Diagnostic::new(&layer.path, message));
        allow.clear();
    }
    PermissionLayer {
        mode,
        allow,
        ask,
        deny,
    }
}
