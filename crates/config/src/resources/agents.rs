//! Agents that a model can give tasks to: Markdown files in `agents` of the agent directory and of a project, which
//! count as its skills do (docs/guides/sub-agents.md).

use std::path::Path;

use files::Root;
use wire::ThinkingLevel;

use crate::diagnostic::Diagnostic;
use crate::resources::ResourceOptions;
use crate::resources::frontmatter::{self, Document};
use crate::resources::limits;
use crate::source::Scope;

/// An agent that a model can give tasks to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentDefinition {
    /// The name that the model uses: `name` of the front matter, else the file's name without `.md`.
    pub name: String,
    /// What the agent is for, for the model.
    pub description: String,
    /// What follows the system prompt of the agent; may be empty.
    pub prompt: String,
    /// The tools that it may use; none: those of the session that gives it the task.
    pub tools: Option<Vec<String>>,
    /// Its model as `--model` takes it; none: that of the session that gives it the task.
    pub model: Option<String>,
    /// Its thinking level; none: that of the session that gives it the task.
    pub thinking: Option<ThinkingLevel>,
    /// Requests to a model that one task may take.
    pub max_turns: Option<u64>,
    /// Where it was found.
    pub scope: Scope,
}

/// All agents, those of the project first; of two with the same name the first wins. A file with a mistake is left out: what it
/// restricts would otherwise not be restricted.
#[must_use]
pub fn agent_definitions(options: &ResourceOptions) -> (Vec<AgentDefinition>, Vec<Diagnostic>) {
    let mut found: Vec<AgentDefinition> = Vec::new();
    let mut notes = Vec::new();
    let mut places = Vec::new();
    if options.project {
        let root = options.boundaries.project(&options.cwd);
        let dirs = options.project_dirs();
        places.extend(dirs.map(|dir| (root.clone(), dir.join("agents"), Scope::Project)));
    }
    places.push((Root::user(), options.agent_dir.join("agents"), Scope::User));
    for (root, dir, scope) in places {
        let Ok((mut files, is_cut)) = root.list(&dir, limits::AGENT_ENTRIES) else {
            continue;
        };
        if is_cut {
            let most = limits::AGENT_ENTRIES;
            notes.push(Diagnostic::new(
                &dir,
                format!("more than {most} entries; the rest was not searched for agents"),
            ));
        }
        files.retain(|path| path.extension().is_some_and(|ext| ext == "md"));
        for path in files {
            match read(&root, &path, scope) {
                Ok(agent) => match found.iter().any(|known| known.name == agent.name) {
                    true => notes.push(Diagnostic::new(
                        &path,
                        format!("the name \"{}\" is taken; left out", agent.name),
                    )),
                    false => found.push(agent),
                },
                Err(problem) => notes.push(Diagnostic::new(
                    &path,
                    format!("{problem}; the agent is left out"),
                )),
            }
        }
    }
    (found, notes)
}

fn read(root: &Root, path: &Path, scope: Scope) -> Result<AgentDefinition, String> {
    let text = root
        .read(path, limits::AGENT_BYTES)
        .map_err(|error| error.to_string())?;
    if text.cut {
        return Err(format!("longer than {} KiB", limits::AGENT_BYTES / 1024));
    }
    let document = frontmatter::parse(&text.text);
    if let Some(problem) = &document.problem {
        return Err(problem.clone());
    }
    let stem = || path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let name = document.text("name").or_else(stem).unwrap_or_default();
    let description = document.text("description");
    Ok(AgentDefinition {
        description: description.ok_or("the description is missing")?,
        tools: tools(&document),
        model: model(&document),
        thinking: thinking(&document)?,
        max_turns: max_turns(&document)?,
        name,
        prompt: document.body,
        scope,
    })
}

/// The first name of a list. `inherit` and the roles of oh-my-pi (`@smol`, `pi/task`) name no model.
fn model(document: &Document) -> Option<String> {
    let items = document.texts("model");
    let mut names = items.iter().flat_map(|item| item.split(',')).map(str::trim);
    let name = names.find(|name| !name.is_empty())?;
    let is_role = name == "inherit" || name.starts_with('@') || name.starts_with("pi/");
    (!is_role).then(|| name.to_owned())
}

/// A list, or names between commas.
fn tools(document: &Document) -> Option<Vec<String>> {
    if !document.has("tools") {
        return None;
    }
    let items = document.texts("tools");
    let names = items.iter().flat_map(|item| item.split(','));
    let names = names.map(|name| name.trim().to_owned());
    Some(names.filter(|name| !name.is_empty()).collect())
}

fn thinking(document: &Document) -> Result<Option<ThinkingLevel>, String> {
    // The first is oh-my-pi's name, which has `auto` for a level that another model chooses.
    let level = document.text("thinkingLevel").filter(|level| level != "auto");
    let Some(text) = level.or_else(|| document.text("thinking")) else {
        return Ok(None);
    };
    let level = ThinkingLevel::parse(&text);
    level.map(Some).ok_or(format!("\"{text}\" is no thinking level"))
}

fn max_turns(document: &Document) -> Result<Option<u64>, String> {
    let Some(text) = document.text("maxTurns") else {
        return Ok(None);
    };
    match text.parse() {
        Ok(turns) if turns > 0 => Ok(Some(turns)),
        _ => Err(format!("maxTurns must be a number above 0, not \"{text}\"")),
    }
}
