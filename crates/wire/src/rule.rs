//! Rules that watch an answer while it streams in (TTSR, dialects.md 8). What they match lives in `core`, where they are
//! found in `host`.

use serde::{Deserialize, Serialize};

/// Which matches of a rule stop the answer; the others wait until the run would end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RuleInterrupt {
    /// All.
    #[default]
    Always,
    /// Those in text and reasoning.
    ProseOnly,
    /// Those in arguments of tool calls.
    ToolOnly,
    /// None.
    Never,
}

impl RuleInterrupt {
    /// The mode of this name.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "always" => Some(Self::Always),
            "prose-only" => Some(Self::ProseOnly),
            "tool-only" => Some(Self::ToolOnly),
            "never" => Some(Self::Never),
            _ => None,
        }
    }
}

/// Where a rule comes from, in the words xcsh's clients know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RuleSource {
    /// Id of the kind of configuration: `native`.
    pub provider: String,
    /// The same for people.
    pub provider_name: String,
    /// The file.
    pub path: String,
    /// `user` or `project`.
    pub level: String,
}

/// A rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Rule {
    /// Its name: the file's, without the ending.
    pub name: String,
    /// The file.
    pub path: String,
    /// What the model is told when the rule matches.
    pub content: String,
    /// Only calls about files that match one of these globs count; none means all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub globs: Vec<String>,
    /// Does it belong to every conversation, too? It is only reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub always_apply: Option<bool>,
    /// What it is for, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Regular expressions; one that matches is enough.
    pub condition: Vec<String>,
    /// What is watched: `text`, `thinking`, `tool`, `toolcall`, a tool's name, each tool form with `(glob)` if wanted; none
    /// means text and all tools.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scope: Vec<String>,
    /// In place of the setting `ttsr.interruptMode`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupt_mode: Option<RuleInterrupt>,
    /// Where it comes from.
    #[serde(rename = "_source")]
    pub source: RuleSource,
}
