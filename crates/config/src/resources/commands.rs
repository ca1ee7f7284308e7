//! What `get_commands` lists of skills and templates (dialects.md 3). Commands of extensions are added by the caller.

use serde::Serialize;

use crate::resources::skills::Skill;
use crate::resources::templates::Template;
use crate::source::{Scope, SourceInfo};

/// One entry of `get_commands`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandInfo {
    /// The word after the slash.
    pub name: String,
    /// What it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// `prompt`, `skill` or `extension`.
    pub source: &'static str,
    /// Where it comes from.
    pub source_info: SourceInfo,
    /// What arguments it takes. Not on the wire: pi does not send it.
    #[serde(skip)]
    pub argument_hint: Option<String>,
    /// `user`, `project` or `path`: the place as clients before 0.62 read it.
    pub location: &'static str,
    /// The file, likewise for old clients.
    pub path: String,
}

impl CommandInfo {
    /// A command of an extension that was found there.
    #[must_use]
    pub fn of_extension(command: &extensions::line::Command, info: &SourceInfo) -> Self {
        Self {
            argument_hint: command.argument_hint.clone(),
            ..entry(
                command.name.clone(),
                command.description.as_deref().unwrap_or_default(),
                "extension",
                info,
            )
        }
    }
}

/// Templates first, then skills, each in order of precedence.
pub(crate) fn list(templates: &[Template], skills: &[Skill]) -> Vec<CommandInfo> {
    let prompts = templates.iter().map(|template| CommandInfo {
        argument_hint: template.argument_hint.clone(),
        ..entry(
            template.name.clone(),
            &template.description,
            "prompt",
            &template.source,
        )
    });
    let skills = skills.iter().map(|skill| {
        entry(
            format!("skill:{}", skill.name),
            &skill.description,
            "skill",
            &skill.source,
        )
    });
    prompts.chain(skills).collect()
}

fn entry(name: String, description: &str, source: &'static str, info: &SourceInfo) -> CommandInfo {
    CommandInfo {
        name,
        description: (!description.is_empty()).then(|| description.to_owned()),
        source,
        source_info: info.clone(),
        argument_hint: None,
        location: match info.scope {
            Scope::User => "user",
            Scope::Project => "project",
            Scope::Temporary => "path",
        },
        path: info.path.clone(),
    }
}
