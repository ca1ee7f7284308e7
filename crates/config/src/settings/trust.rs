//! What a project may not decide for a user who has not said that the project is trusted (pi-1.5-delta.md 6). Everything here
//! only takes away; nothing a project says makes it trusted.

use serde_json::Value;

use crate::diagnostic::Diagnostic;
use crate::settings::layers::Layer;
use crate::settings::types::KeyUse;
use crate::settings::types::SettingsSource;
use crate::source::resolve_path;

/// Keys that only a trusted project can set: they run code, enable tools, or send or write data elsewhere.
pub const TRUSTED_ONLY: [&str; 27] = [
    "extensionRuntime",
    "shellPath",
    "shellCommandPrefix",
    "npmCommand",
    "packages",
    "extensions",
    "hooks",
    "hookTimeout",
    "customTools",
    "mcp",
    "mcpServers",
    "codemode",
    "selfUpdateCommand",
    "defaultTools",
    "fetch",
    "processes",
    "subagents",
    "httpProxy",
    "localServers",
    "sessionDir",
    "maxOpenSessions",
    "sessionIdleMs",
    "webMemoryMib",
    "sessionShareDestination",
    "shareViewerUrl",
    "enableAnalytics",
    "enableInstallTelemetry",
];

/// Takes out of a project's layer what only a trusted project may set.
pub(crate) fn restrict(
    project: &mut Layer,
    global: &Layer,
    source: &SettingsSource<'_>,
    notes: &mut Vec<Diagnostic>,
) {
    for key in TRUSTED_ONLY {
        if project.keys.remove(key).is_some() {
            project.found.mark(key, &KeyUse::Untrusted);
            let message = format!("\"{key}\" is left out: the project is not trusted (see --approve)");
            notes.push(Diagnostic::new(&project.path, message));
        }
    }
    keep_images_blocked(project, global, notes);
    for key in ["skills", "prompts"] {
        keep_inside(project, key, source, notes);
    }
}

/// A user who sends no pictures does not begin to because a project says so.
fn keep_images_blocked(project: &mut Layer, global: &Layer, notes: &mut Vec<Diagnostic>) {
    let key = "images.blockImages";
    let loosens = global.get(key) == Some(&Value::Bool(true)) && project.get(key).is_some();
    let images = project.keys.get_mut("images").and_then(Value::as_object_mut);
    if let Some(images) = images.filter(|_| loosens) {
        images.remove("blockImages");
        project.found.mark(key, &KeyUse::Untrusted);
        let message = format!("\"{key}\" is left out: the project is not trusted (see --approve)");
        notes.push(Diagnostic::new(&project.path, message));
    }
}

/// A project shows its own texts to the model, not texts outside of it.
fn keep_inside(project: &mut Layer, key: &str, source: &SettingsSource<'_>, notes: &mut Vec<Diagnostic>) {
    let base = project.path.parent().unwrap_or(source.cwd).to_path_buf();
    let Some(Value::Array(items)) = project.keys.get_mut(key) else {
        return;
    };
    items.retain(|item| {
        let Some(text) = item.as_str() else { return true };
        let plain = text.trim_start_matches(['!', '+', '-']);
        let path = resolve_path(plain, &base, source.home);
        // A project may lie around the user's own directory.
        let is_users = path.starts_with(source.agent_dir) && !base.starts_with(source.agent_dir);
        let inside = path.starts_with(source.cwd) && !is_users;
        if !inside {
            let message = format!(
                "\"{key}\": {text} is left out: it is outside of the project, and the project is not trusted (see --approve)"
            );
            notes.push(Diagnostic::new(&project.path, message));
        }
        inside
    });
}
