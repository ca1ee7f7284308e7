//! Section: context files, texts of the system prompt, skills, prompt templates and rules, with their paths.

use std::path::Path;

use config::resources::Resources;
use serde_json::{Value, json};

use super::Patient;
use super::keys::counted;
use super::report::{Mark, Section};
use crate::session_options::resource_options;

/// Lines per kind; the JSON has all.
const SHOWN: usize = 12;

pub(super) fn section(patient: &Patient<'_>) -> Section {
    let mut section = Section::new("resources", "Context, skills, prompts, rules");
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
    let rules = rules(&mut section, patient, &resources);
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
        "rules": rules,
        "customSystemPrompt": texts.custom.is_some(),
        "appendedSystemPrompt": texts.append.is_some(),
    });
    section
}

/// Rows about the rules that watch answers. Returns the rules for the JSON.
fn rules(section: &mut Section, patient: &Patient<'_>, resources: &Resources) -> Vec<Value> {
    if !patient.settings.ttsr.enabled {
        section.row("rules", "not read: ttsr.enabled is false");
        return Vec::new();
    }
    let (rules, problems) = (resources.rules(), resources.rule_problems().len());
    let count = |level: &str| rules.sources().filter(|rule| rule.source.level == level).count();
    let (project, user) = (count("project"), count("user"));
    let mut text = match project + user {
        0 => "none".to_owned(),
        all => format!("{all} ({project} of the project, {user} of yours)"),
    };
    let mut mark = Mark::None;
    if problems > 0 {
        mark = Mark::Odd;
        text.push_str(&format!(
            "; {} (see below)",
            counted(problems, "problem", "problems")
        ));
    }
    section.marked(mark, "rules", text);
    let named = rules.sources().take(SHOWN);
    for rule in named {
        let path = patient.short(Path::new(&rule.path));
        section.row("", format!("{}  {path}", rule.name));
    }
    let data = rules.sources().map(|rule| {
        json!({"name": rule.name, "path": rule.path, "scope": rule.source.level, "condition": rule.condition})
    });
    data.collect()
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
