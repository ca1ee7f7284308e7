//! Limits of runs, how much a session has used of them, and the limit that ended a run (docs/guides/limits.md).

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// The members of [`RunLimits`], in both spellings.
const MEMBERS: [&str; 13] = [
    "maxTurns",
    "max_turns",
    "maxToolCalls",
    "max_tool_calls",
    "maxTokens",
    "max_tokens",
    "maxCost",
    "max_cost",
    "maxSeconds",
    "max_seconds",
    "maxRepeats",
    "max_repeats",
    "warn",
];

/// Letters of an unknown name that an error shows.
const SHOWN_NAME: usize = 64;

/// What a prompt or a session may use. An absent member is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct RunLimits {
    /// Requests to a model. Retries and the summaries of compactions count.
    #[serde(alias = "max_turns", skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u64>,
    /// Tool calls that may start, calls made by tools included.
    #[serde(alias = "max_tool_calls", skip_serializing_if = "Option::is_none")]
    pub max_tool_calls: Option<u64>,
    /// Tokens of all requests: input, output, cache reads and cache writes.
    #[serde(alias = "max_tokens", skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// US dollars. Needs a model whose price is known.
    #[serde(
        alias = "max_cost",
        skip_serializing_if = "Option::is_none",
        serialize_with = "optional_number"
    )]
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    pub max_cost: Option<f64>,
    /// Seconds during which a run is active.
    #[serde(alias = "max_seconds", skip_serializing_if = "Option::is_none")]
    pub max_seconds: Option<u64>,
    /// Times that the model may make the same tool calls in a row with the same results.
    #[serde(alias = "max_repeats", skip_serializing_if = "Option::is_none")]
    pub max_repeats: Option<u64>,
    /// Whether the model gets a message once when 80 % of a limit is used. Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warn: Option<bool>,
}

fn optional_number<S: serde::Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => crate::number::serialize(value, serializer),
        None => serializer.serialize_none(),
    }
}

/// Reads the limits of a command.
fn known_limits<'de, D: Deserializer<'de>>(deserializer: D) -> Result<RunLimits, D::Error> {
    known(Map::deserialize(deserializer)?)
}

/// Reads limits that a command may have.
pub(crate) fn known_limits_if_any<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<RunLimits>, D::Error> {
    let members = Option::<Map<String, Value>>::deserialize(deserializer)?;
    members.map(known).transpose()
}

/// Refuses an unknown member, unlike in other parameters: a mistyped limit that is ignored limits nothing. Responses may have further
/// members, since a newer agent may have more limits.
fn known<E: Error>(members: Map<String, Value>) -> Result<RunLimits, E> {
    if let Some(name) = members.keys().find(|name| !MEMBERS.contains(&name.as_str())) {
        return Err(E::custom(unknown(name)));
    }
    RunLimits::deserialize(Value::Object(members)).map_err(E::custom)
}

fn unknown(name: &str) -> String {
    let name: String = name.chars().take(SHOWN_NAME).collect();
    let known: Vec<&str> = camel_case().collect();
    // In the words of serde, which adds the place in the line.
    format!(
        "unknown member \"{name}\" of limits, expected one of {}",
        known.join(", ")
    )
}

/// The members in the spelling of the protocol.
fn camel_case() -> impl Iterator<Item = &'static str> {
    MEMBERS.into_iter().filter(|name| !name.contains('_'))
}

impl RunLimits {
    /// Limits that cannot be meant: a cost that is no positive number, or a limit of 0.
    ///
    /// # Errors
    /// Names the member and what it must be.
    pub fn check(&self) -> Result<(), String> {
        let counts = [
            ("maxTurns", self.max_turns),
            ("maxTokens", self.max_tokens),
            ("maxSeconds", self.max_seconds),
        ];
        if let Some((name, _)) = counts.iter().find(|(_, value)| *value == Some(0)) {
            return Err(format!("{name} must be at least 1"));
        }
        if self.max_repeats.is_some_and(|times| times < 2) {
            return Err("maxRepeats must be at least 2".to_owned());
        }
        if self
            .max_cost
            .is_some_and(|cost| !(cost.is_finite() && cost > 0.0))
        {
            return Err("maxCost must be a number of US dollars above 0".to_owned());
        }
        Ok(())
    }

    /// Returns true if nothing is limited.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Self {
            max_turns,
            max_tool_calls,
            max_tokens,
            max_cost,
            max_seconds,
            max_repeats,
            warn: _,
        } = self;
        let counts = [max_turns, max_tool_calls, max_tokens, max_seconds, max_repeats];
        counts.iter().all(|count| count.is_none()) && max_cost.is_none()
    }

    /// These limits, and those of `other` where there are none.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            max_turns: self.max_turns.or(other.max_turns),
            max_tool_calls: self.max_tool_calls.or(other.max_tool_calls),
            max_tokens: self.max_tokens.or(other.max_tokens),
            max_cost: self.max_cost.or(other.max_cost),
            max_seconds: self.max_seconds.or(other.max_seconds),
            max_repeats: self.max_repeats.or(other.max_repeats),
            warn: self.warn.or(other.warn),
        }
    }
}

/// Requests, calls, tokens, cost and time of a session since it was opened, or since a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LimitUse {
    /// Requests to a model.
    pub turns: u64,
    /// Tool calls that were started.
    pub tool_calls: u64,
    /// Tokens of all requests.
    pub tokens: u64,
    /// US dollars.
    #[serde(serialize_with = "crate::number::serialize")]
    pub cost: f64,
    /// Seconds during which a run was active.
    #[serde(serialize_with = "crate::number::serialize")]
    pub seconds: f64,
}

/// The kind of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum LimitKind {
    /// Requests to a model.
    Turns,
    /// Tool calls.
    ToolCalls,
    /// Tokens.
    Tokens,
    /// US dollars.
    Cost,
    /// Seconds of active runs.
    Seconds,
    /// The same tool calls with the same results.
    Repeats,
}

/// The limit that ended a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReachedLimit {
    /// The kind of the limit.
    pub kind: LimitKind,
    /// The limit.
    #[serde(serialize_with = "crate::number::serialize")]
    pub value: f64,
}

impl std::fmt::Display for ReachedLimit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let value = self.value;
        let what = match self.kind {
            LimitKind::Turns => "turn",
            LimitKind::ToolCalls => "tool call",
            LimitKind::Tokens => "token",
            LimitKind::Cost => "US dollar",
            LimitKind::Seconds => "second",
            LimitKind::Repeats => "identical turn",
        };
        let plural = if value == 1.0 { "" } else { "s" };
        write!(f, "{value} {what}{plural}")
    }
}

/// Parameters of `set_limits`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SetLimitsParams {
    /// All limits of the session from now on. An empty object removes them.
    #[serde(deserialize_with = "known_limits")]
    pub limits: RunLimits,
    /// Whether counting begins again at 0. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset: Option<bool>,
}

/// The limits of a session.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CurrentLimits {
    /// The limits.
    #[serde(flatten)]
    pub limits: RunLimits,
}

/// Response to `get_limits` and `set_limits`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SessionLimits {
    /// The limits of the session.
    pub limits: CurrentLimits,
    /// How much the session has used since it was opened in this process, or since `reset`.
    pub used: LimitUse,
    /// The limit that prevents the next request, if one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reached: Option<ReachedLimit>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::command::PromptParams;

    #[test]
    fn members_are_those_of_limits() {
        let all = RunLimits {
            max_turns: Some(1),
            max_tool_calls: Some(1),
            max_tokens: Some(1),
            max_cost: Some(1.0),
            max_seconds: Some(1),
            max_repeats: Some(2),
            warn: Some(true),
        };
        let Ok(Value::Object(members)) = serde_json::to_value(all) else {
            panic!("limits are an object");
        };
        assert!(members.keys().map(String::as_str).eq(camel_case()));
        for name in MEMBERS {
            // Those in snake case are numbers.
            let value = members.get(name).cloned().unwrap_or(json!(2));
            known::<serde_json::Error>(Map::from_iter([(name.to_owned(), value)])).unwrap();
        }
    }

    #[test]
    fn unknown_limit_is_refused_with_known_names() {
        let expected = "unknown member \"maxTurn\" of limits, expected one of maxTurns, maxToolCalls, maxTokens, maxCost, \
                        maxSeconds, maxRepeats, warn";
        let limits = json!({"maxCost": 1, "maxTurn": 1});
        let prompt = serde_json::from_value::<PromptParams>(json!({"message": "x", "limits": limits}));
        assert_eq!(prompt.unwrap_err().to_string(), expected);
        let set = serde_json::from_value::<SetLimitsParams>(json!({"limits": limits}));
        assert_eq!(set.unwrap_err().to_string(), expected);
        let prompt = serde_json::from_value::<PromptParams>(json!({"message": "x", "limits": null}));
        assert_eq!(prompt.unwrap().limits, None);
        assert!(unknown(&"x".repeat(1_000)).len() < 200);
    }
}
