//! Puts the system prompt together (pi-core.md 6.1). A pure function of its parts: `context` and `skills` find them.

use std::fmt::Write as _;
use std::path::Path;

use crate::resources::context::ContextFile;
use crate::resources::skills::{self, Skill};

const ROLE: &str = "You are Pinion, a coding agent. You work in the user's project through tools: you look at files, run \
commands, change code and check the result, until the request is done or only the user can decide how to go on.";

const OTHER_TOOLS: &str =
    "Besides these, the project or the host application may have added tools of its own.";

const EXPLORE_BY_SHELL: &str = "Look around with bash (ls, rg, find).";
const EXPLORE_BY_TOOLS: &str =
    "Look around with grep, find and ls rather than bash: they are faster and leave out ignored files.";
const GENERAL: [&str; 2] = [
    "Answer briefly and to the point.",
    "Name the path of every file you talk about.",
];

/// What a tool contributes to the prompt. Its schema travels elsewhere.
#[derive(Debug, Clone, Copy)]
pub struct ToolHint<'a> {
    /// The tool's name.
    pub name: &'a str,
    /// One line on what it is for; a tool without one is not listed.
    pub snippet: Option<&'a str>,
    /// Rules for its use, one sentence each.
    pub guidelines: &'a [&'a str],
}

/// Everything a prompt is made of.
#[derive(Debug, Clone, Copy)]
pub struct PromptParts<'a> {
    /// Replaces role, tool list and guidelines. An empty text does not, as in pi.
    pub custom: Option<&'a str>,
    /// Follows the first part.
    pub append: Option<&'a str>,
    /// The active tools, in order.
    pub tools: &'a [ToolHint<'a>],
    /// The context files, in order.
    pub context: &'a [ContextFile],
    /// The skills that are shown; none if no active tool can read them.
    pub skills: &'a [Skill],
    /// `YYYY-MM-DD`, local time; none leaves the line out.
    pub date: Option<&'a str>,
    /// The session's working directory.
    pub cwd: &'a Path,
}

/// The system prompt. It ends with the date and the working directory, each on its own line.
#[must_use]
pub fn system_prompt(parts: &PromptParts<'_>) -> String {
    let mut out = match parts.custom.filter(|text| !text.is_empty()) {
        Some(custom) => custom.to_owned(),
        None => built_in(parts.tools),
    };
    if let Some(append) = parts.append.filter(|text| !text.is_empty()) {
        out.push_str("\n\n");
        out.push_str(append);
    }
    push_context(&mut out, parts.context);
    out.push_str(&skills::prompt_block(parts.skills));
    let cwd = parts.cwd.display().to_string().replace('\\', "/");
    // Writing into a String cannot fail.
    if let Some(date) = parts.date {
        let _ = write!(out, "\nCurrent date: {date}");
    }
    let _ = write!(out, "\nCurrent working directory: {cwd}");
    out
}

fn built_in(tools: &[ToolHint<'_>]) -> String {
    let mut out = format!("{ROLE}\n\nAvailable tools:\n");
    let lines: Vec<String> = tools
        .iter()
        .filter_map(|tool| {
            let snippet = tool.snippet?.split_whitespace().collect::<Vec<_>>().join(" ");
            (!snippet.is_empty()).then(|| format!("- {}: {snippet}", tool.name))
        })
        .collect();
    out.push_str(&if lines.is_empty() {
        "(none)".to_owned()
    } else {
        lines.join("\n")
    });
    let _ = write!(out, "\n\n{OTHER_TOOLS}\n\nGuidelines:");
    for rule in guidelines(tools) {
        let _ = write!(out, "\n- {rule}");
    }
    out
}

/// The shell rule, the tools' own rules in tool order, then the general ones; each text once.
fn guidelines<'a>(tools: &[ToolHint<'a>]) -> Vec<&'a str> {
    let active = |name: &str| tools.iter().any(|tool| tool.name == name);
    let explore = active("bash").then(|| match ["grep", "find", "ls"].into_iter().any(active) {
        true => EXPLORE_BY_TOOLS,
        false => EXPLORE_BY_SHELL,
    });
    let own = tools.iter().flat_map(|tool| tool.guidelines.iter().copied());
    let mut rules: Vec<&str> = Vec::new();
    for rule in explore.into_iter().chain(own).chain(GENERAL) {
        let rule = rule.trim();
        if !rule.is_empty() && !rules.contains(&rule) {
            rules.push(rule);
        }
    }
    rules
}

fn push_context(out: &mut String, files: &[ContextFile]) {
    if files.is_empty() {
        return;
    }
    out.push_str("\n\n# Project Context\n\nInstructions that the user and the project give you:\n\n");
    for file in files {
        let _ = write!(
            out,
            "## {}\n\n{}\n\n",
            file.path.display(),
            file.content.trim_end()
        );
    }
    out.truncate(out.trim_end_matches('\n').len());
}
