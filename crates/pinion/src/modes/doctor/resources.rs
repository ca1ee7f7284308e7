//! Section: context files, texts of the system prompt, skills and prompt templates, with their paths.

use std::path::Path;

use config::resources::Resources;
use serde_json::{Value, json};

use super::Patient;
use super::report::{Mark, Section};
use crate::session_options::resource_options;

/// Lines per kind; the JSON has all.
const SHOWN: usize = 12;

pub(super) fn section(patient: &Patient<'_>) -> Section {
    let mut section = Section::new("resources", "Context, skills, prompts");
    let resources = Resources::new(resource_options(patient.args, &patient.settings, patient.env));
    let context: Vec<&Path> = resources
        .context_files()
        .iter()
        .map(|file| file.path.as_path())
        .collect();
    let shown = context.iter().map(|path| patient.short(path)).collect();
    list(
        &mut section,
        "context files",
        shown,
        "none (AGENTS.md or CLAUDE.md)",
    );
    let named = |name: &str, path: &Path| format!("{name}  {}", patient.short(path));
    let skills = resources.skills().iter();
    let shown = skills.map(|skill| named(&skill.name, &skill.path)).collect();
    list(&mut section, "skills", shown, "none");
    let templates = resources.templates().iter();
    let shown = templates
        .map(|one| named(&format!("/{}", one.name), &one.path))
        .collect();
    list(&mut section, "prompts", shown, "none");
    let texts = resources.prompt_texts();
    let prompt = match (&texts.custom, &texts.append) {
        (Some(_), Some(_)) => "your own, and your additions",
        (Some(_), None) => "your own",
        (None, Some(_)) => "built in, with your additions",
        (None, None) => "built in",
    };
    section.row("system prompt", prompt);
    for note in resources.diagnostics() {
        section.warn(note.to_string());
    }
    let skills = resources.skills().iter().map(|skill| {
        json!({"name": skill.name, "path": skill.path, "scope": skill.source.scope, "hidden": skill.hidden})
    });
    let templates = resources
        .templates()
        .iter()
        .map(|one| json!({"name": one.name, "path": one.path, "scope": one.source.scope}));
    section.data = json!({
        "contextFiles": context,
        "skills": skills.collect::<Vec<Value>>(),
        "prompts": templates.collect::<Vec<Value>>(),
        "customSystemPrompt": texts.custom.is_some(),
        "appendedSystemPrompt": texts.append.is_some(),
    });
    section
}

/// A row for each; the first carries the label.
fn list(section: &mut Section, label: &str, items: Vec<String>, none: &str) {
    if items.is_empty() {
        section.row(label, none);
        return;
    }
    let more = items.len().saturating_sub(SHOWN);
    for (at, item) in items.into_iter().take(SHOWN).enumerate() {
        section.marked(Mark::None, if at == 0 { label } else { "" }, item);
    }
    if more > 0 {
        section.row("", format!("and {more} more (--json lists all)"));
    }
}
