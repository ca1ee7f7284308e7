//! Files with rules that watch answers while they stream in (TTSR, dialects.md 8): Markdown with front matter that has a
//! `condition`. Finding and reading them; what they match is `agent`'s.

use std::path::{Path, PathBuf};

use agent::limits::RULES;
use files::Root;
use wire::Rule;
use wire::rule::{RuleInterrupt, RuleSource};

use crate::diagnostic::Diagnostic;
use crate::resources::ResourceOptions;
use crate::resources::context::ContextFile;
use crate::resources::frontmatter::{self, Document};
use crate::resources::limits;
use crate::resources::place::Place;
use crate::source::Scope;

/// Directories of a project that hold configuration of the family, in order of precedence.
const PROJECT_DIRS: [&str; 3] = [".pi", ".omp", ".xcsh"];

/// All rules with a condition, the project's first; of two with the same name the first wins.
pub(crate) fn load(options: &ResourceOptions) -> (Vec<Rule>, Vec<Diagnostic>) {
    let mut rules: Vec<Rule> = Vec::new();
    let mut notes = Vec::new();
    for place in places(options) {
        for path in files(&place) {
            if rules.len() >= RULES {
                notes.push(Diagnostic::new(
                    &path,
                    format!("more than {RULES} rules; left out"),
                ));
                return (rules, notes);
            }
            let rule = read(&path, &place, &mut notes);
            rules.extend(rule.filter(|rule| rules.iter().all(|known| known.name != rule.name)));
        }
    }
    (rules, notes)
}

fn places(options: &ResourceOptions) -> Vec<Place> {
    if !options.rules {
        return Vec::new();
    }
    let project = PROJECT_DIRS.iter().filter(|_| options.project).map(|name| {
        let base = options.cwd.join(name);
        let root = options.boundaries.project(&options.cwd);
        Place::auto(root, base.join("rules"), &base, Scope::Project)
    });
    let user = Place::auto(
        Root::user(),
        options.agent_dir.join("rules"),
        &options.agent_dir,
        Scope::User,
    );
    project.chain([user]).collect()
}

/// The Markdown files directly in a directory, by name.
fn files(place: &Place) -> Vec<PathBuf> {
    let listed = place.root.list(&place.path, limits::RULE_ENTRIES);
    let (mut out, _) = listed.unwrap_or_default();
    let is_rule = |path: &PathBuf| path.extension().is_some_and(|ext| ext == "md" || ext == "mdc");
    out.retain(|path| is_rule(path) && place.root.is_readable_or_refused(path));
    out
}

fn read(path: &Path, place: &Place, notes: &mut Vec<Diagnostic>) -> Option<Rule> {
    let mut complain = |message: String| notes.push(Diagnostic::new(path, message));
    let text = match place.root.read(path, limits::RULE_BYTES) {
        Ok(text) if text.cut => {
            let kib = limits::RULE_BYTES / 1024;
            complain(format!("rule is longer than {kib} KiB; left out"));
            return None;
        }
        Ok(text) => text.text,
        Err(error) => {
            complain(format!("could not read rule: {error}"));
            return None;
        }
    };
    let document = frontmatter::parse(&text);
    if is_off(&document) {
        return None;
    }
    // A rule without one watches nothing; such files belong to other parts of other agents.
    let condition = document.texts("condition");
    if condition.is_empty() {
        return None;
    }
    if let Some(problem) = &document.problem {
        complain(problem.clone());
    }
    let interrupt_mode = interrupt_mode(&document, &mut complain);
    let shown = path.display().to_string();
    Some(Rule {
        name: path.file_stem()?.to_string_lossy().into_owned(),
        path: shown.clone(),
        globs: document
            .texts("globs")
            .iter()
            .flat_map(|text| listed(text))
            .collect(),
        always_apply: document.has("alwaysApply").then(|| document.flag("alwaysApply")),
        description: document.text("description"),
        condition,
        scope: document
            .texts("scope")
            .iter()
            .flat_map(|text| listed(text))
            .collect(),
        interrupt_mode,
        source: RuleSource {
            provider: "native".to_owned(),
            provider_name: "Pinion".to_owned(),
            path: shown,
            level: match place.scope {
                Scope::User => "user".to_owned(),
                Scope::Project | Scope::Temporary => "project".to_owned(),
            },
        },
        content: document.body,
    })
}

fn is_off(document: &Document) -> bool {
    document.text("enabled").is_some_and(|word| word == "false")
}

/// Texts that oh-my-pi puts into every system prompt: the file named RULES, and rules with `alwaysApply` that watch nothing. Those of the user
/// come first, as those of context files do. Other dialects have none. [`load`] reports rules that cannot be read.
pub(crate) fn always_applied(options: &ResourceOptions) -> (Vec<ContextFile>, Vec<Diagnostic>) {
    let (mut found, mut notes) = (Vec::new(), Vec::new());
    if !options.templates.is_omp {
        return (found, notes);
    }
    for place in places(options).iter().rev() {
        let sticky = place.base.join("RULES.md");
        for path in [sticky.clone()].into_iter().chain(files(place)) {
            let content = match place.root.read_if_there(&path, limits::RULE_BYTES) {
                Ok(Some(text)) if !text.cut => text.text,
                Ok(None) => continue,
                _ if path != sticky => continue,
                Ok(Some(_)) => {
                    let kib = limits::RULE_BYTES / 1024;
                    notes.push(Diagnostic::left_out(
                        &path,
                        format!("rule is longer than {kib} KiB"),
                    ));
                    continue;
                }
                Err(error) => {
                    notes.push(Diagnostic::left_out(
                        &path,
                        format!("could not read rule: {error}"),
                    ));
                    continue;
                }
            };
            let document = frontmatter::parse(&content);
            let applies = document.flag("alwaysApply") && document.texts("condition").is_empty();
            let has_text = !document.body.trim().is_empty() && !is_off(&document);
            if has_text && (applies || path == sticky) && found.len() < RULES {
                let content = document.body;
                found.push(ContextFile { path, content });
            }
        }
    }
    (found, notes)
}

fn interrupt_mode(document: &Document, complain: &mut impl FnMut(String)) -> Option<RuleInterrupt> {
    let word = document.text("interruptMode")?;
    let mode = RuleInterrupt::parse(&word);
    if mode.is_none() {
        complain("\"interruptMode\" should be always, prose-only, tool-only or never; ignored".to_owned());
    }
    mode
}

/// Items of a text, by commas that are not inside brackets or braces.
fn listed(text: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let items = text.split(|letter: char| {
        match letter {
            '(' | '{' | '[' => depth += 1,
            ')' | '}' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        letter == ',' && depth == 0
    });
    let items = items.map(str::trim).filter(|item| !item.is_empty());
    items.map(str::to_owned).collect()
}
