//! Rules that watch an answer while it streams in (TTSR, dialects.md 8). What they match lives in `agent`, where they are
//! found in `session`.

use serde::{Deserialize, Serialize};

/// Which matches of a rule interrupt the answer. Other matches are reported at the end of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RuleInterrupt {
    /// All matches.
    #[default]
    Always,
    /// Matches in text and thinking.
    ProseOnly,
    /// Matches in arguments of tool calls.
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

/// Source of a rule, in the format of xcsh.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RuleSource {
    /// Id of the kind of configuration: `native`.
    pub provider: String,
    /// Its name.
    pub provider_name: String,
    /// The file.
    pub path: String,
    /// `user` or `project`.
    pub level: String,
}

/// A rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Rule {
    /// Its name: the file name without extension.
    pub name: String,
    /// The file.
    pub path: String,
    /// Text for the model when the rule matches.
    pub content: String,
    /// Globs of files. If present, only calls about matching files are watched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub globs: Vec<String>,
    /// Whether it applies to every conversation. Only reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub always_apply: Option<bool>,
    /// Description for users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Regular expressions. One match is sufficient.
    pub condition: Vec<String>,
    /// Where the rule applies: `text`, `thinking`, `tool`, `toolcall` or the name of a tool, optionally with `(glob)`.
    /// Default:
    /// text and all tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scope: Vec<String>,
    /// Replaces the setting `ttsr.interruptMode`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupt_mode: Option<RuleInterrupt>,
    /// Its source.
    #[serde(rename = "_source")]
    pub source: RuleSource,
}
