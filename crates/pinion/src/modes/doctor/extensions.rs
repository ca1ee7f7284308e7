//! Section: extensions, hooks and custom tools: what would be loaded, what runs it, and why something is not loaded. None of
//! their code is run.

use std::path::PathBuf;

use config::Places;
use config::listing::{self, Listed, list};
use serde_json::{Value, json};

use super::Patient;
use super::report::{Mark, Section};
use crate::session_options::{self, extension_choice};

/// Lines of this section; the JSON has all.
const SHOWN: usize = 20;

pub(super) fn section(patient: &Patient<'_>) -> Section {
    let mut section = Section::new("extensions", "Extensions and hooks");
    let choice = extension_choice(patient.args, patient.env);
    let packages = session_options::packages(patient.args, &patient.settings, patient.env).0;
    let listed = list(&Places {
        choice: &choice,
        settings: &patient.settings,
        packages: &packages,
        agent_dir: &patient.env.agent_dir,
        home: &patient.env.cwd,
        cwd: &patient.env.cwd,
        boundaries: &session_options::boundaries(patient.args, &patient.settings, patient.env),
    });
    if listed.is_empty() {
        section.row("extensions", "none");
    }
    for one in listed.iter().take(SHOWN) {
        row(&mut section, patient, one);
    }
    if let Some(more) = listed.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        section.row("", format!("and {more} more (--json lists all)"));
    }
    for one in &listed {
        if let Some(problem) = &one.problem {
            section.warn(format!("{} is not loaded: {problem}", one.path.display()));
        }
    }
    let needs_runtime = listed.iter().any(|one| one.needs_runtime);
    let runtime = needs_runtime.then(|| runtime(&mut section, patient)).flatten();
    let loaded: Vec<Value> = listed.iter().map(shown).collect();
    section.data = json!({"runtime": runtime, "loaded": loaded});
    section
}

fn row(section: &mut Section, patient: &Patient<'_>, one: &Listed) {
    let path = patient.short(&one.path);
    let text = match (&one.problem, one.event) {
        (Some(problem), _) => format!("{path}  not loaded: {problem}"),
        (None, Some(event)) => format!("{path}  for {event}"),
        (None, None) => path,
    };
    let mark = if one.problem.is_some() {
        Mark::Odd
    } else {
        Mark::None
    };
    section.marked(mark, one.kind, text);
}

/// What runs those in TypeScript.
fn runtime(section: &mut Section, patient: &Patient<'_>) -> Option<PathBuf> {
    let named = patient.settings.extension_runtime.as_deref();
    let found = match named {
        Some(path) => Some(patient.env.path(path)).filter(|path| path.is_file()),
        None => listing::runtime(patient.env.get("PATH").unwrap_or_default().as_ref()),
    };
    match &found {
        Some(path) => section.marked(Mark::Good, "run by", patient.short(path)),
        None => {
            section.marked(
                Mark::Odd,
                "run by",
                "nothing: Node 20 or later, or Bun, is needed",
            );
            section
                .warn("Extensions in TypeScript are not loaded: neither Node 20 or later nor Bun was found");
        }
    }
    found
}

fn shown(one: &Listed) -> Value {
    json!({
        "kind": one.kind, "path": one.path, "scope": one.scope, "event": one.event, "problem": one.problem,
    })
}
