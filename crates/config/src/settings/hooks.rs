//! The setting `hooks`: paths of hooks, as in the older generations, and commands for an event. Which events there are is not
//! known here.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::diagnostic::Diagnostic;
use crate::settings::layers::Layer;
use crate::settings::reader::{Reader, whole};
use crate::settings::types::SettingsSource;
use crate::source::{ExtraPath, Scope, resolve_path};

/// A command that is run for an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookCommand {
    /// Name of the event.
    pub event: String,
    /// The program: a path, or a name that is looked for on `PATH`.
    pub program: PathBuf,
    /// What it is called with.
    pub args: Vec<String>,
    /// Patterns of tools that it is about; none: all.
    pub tools: Vec<String>,
    /// How long it may run.
    pub timeout: Option<Duration>,
    /// Whose setting it is.
    pub scope: Scope,
}

/// Reads the setting of both files.
pub(super) fn hooks(
    reader: &mut Reader<'_>,
    source: &SettingsSource<'_>,
) -> (Vec<ExtraPath>, Vec<HookCommand>) {
    let (mut paths, mut commands) = (Vec::new(), Vec::new());
    for layer in reader.layers {
        let Some(value) = layer.get("hooks") else { continue };
        let Value::Array(items) = value else {
            reader.notes.push(note(layer, "should be a list; ignored"));
            continue;
        };
        let base = layer.path.parent().unwrap_or(source.agent_dir);
        let resolve = |text: &str| resolve_path(text, base, source.home);
        for item in items {
            match item {
                Value::String(text) => paths.push(ExtraPath {
                    path: resolve(text),
                    scope: layer.scope,
                }),
                _ => match command(item, &resolve, layer.scope) {
                    Ok(command) => commands.push(command),
                    Err(why) => reader
                        .notes
                        .push(note(layer, &format!("has an item that is left out: {why}"))),
                },
            }
        }
    }
    (paths, commands)
}

fn note(layer: &Layer, what: &str) -> Diagnostic {
    // Hooks can deny tool calls.
    Diagnostic::fault(&layer.path, "hooks", format!("\"hooks\" {what}"))
}

fn command(
    item: &Value,
    resolve: &impl Fn(&str) -> PathBuf,
    scope: Scope,
) -> Result<HookCommand, &'static str> {
    let texts = |name: &str| -> Option<Vec<String>> {
        let list = item.get(name)?.as_array()?;
        list.iter().map(|text| text.as_str().map(str::to_owned)).collect()
    };
    let event = item
        .get("event")
        .and_then(Value::as_str)
        .ok_or("\"event\" should be a text")?;
    let mut words = texts("command")
        .ok_or("\"command\" should be a list of texts")?
        .into_iter();
    let program = words
        .next()
        .filter(|program| !program.is_empty())
        .ok_or("\"command\" is empty")?;
    let tools = match item.get("tools") {
        None | Some(Value::Null) => Vec::new(),
        Some(_) => texts("tools").ok_or("\"tools\" should be a list of texts")?,
    };
    let timeout = match item.get("timeout") {
        None | Some(Value::Null) => None,
        Some(value) => Some(
            whole(value)
                .filter(|ms| *ms > 0)
                .ok_or("\"timeout\" should be milliseconds above 0")?,
        ),
    };
    Ok(HookCommand {
        event: event.to_owned(),
        program: if program.contains('/') {
            resolve(&program)
        } else {
            PathBuf::from(program)
        },
        args: words.collect(),
        tools,
        timeout: timeout.map(Duration::from_millis),
        scope,
    })
}
