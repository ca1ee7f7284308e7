//! What the end of a hook executable means: exit 0 with the event's result as JSON or with nothing to say, exit 2 as a refusal
//! with its reason on standard error, everything else as a failure.

use process::Ended;
use serde_json::{Value, json};

use crate::limits;
use extensions::combining::{Rule, rule};

use super::running::Exit;

/// Said by a hook that blocks without a word (dialects.md 10.2).
const BLOCKED: &str = "Tool execution was blocked by a hook";

/// What it answers; null when it has nothing to say.
///
/// # Errors
/// When it failed, or said something that is no answer.
pub(super) fn answer(event: &str, exit: Exit) -> Result<Value, String> {
    let words = words(&exit.stderr);
    match exit.ended {
        // Such a hook has no answer, so it may print what it likes.
        Ended::Code(0) if super::is_only_told(event) => Ok(Value::Null),
        Ended::Code(0) => said(event, &exit.stdout),
        Ended::Code(2) => refusal(event, &words).ok_or_else(|| {
            let said = with("It exited with code 2", &words);
            format!("{said} ({event} cannot be refused)")
        }),
        Ended::Code(code) => Err(with(&format!("It exited with code {code}"), &words)),
        Ended::Signal(signal) => Err(with(&format!("Signal {signal} ended it"), &words)),
        // The guardian went away, which kills its commands.
        Ended::Lost => Err("It was ended".to_owned()),
    }
}

fn said(event: &str, stdout: &[u8]) -> Result<Value, String> {
    // Before it is parsed: many small values take far more memory than their text.
    if wire::values::has_too_many(stdout) {
        return Err(format!(
            "It answered with more than {} values",
            wire::limits::MAX_VALUES
        ));
    }
    let text = String::from_utf8_lossy(stdout);
    let text = text.trim();
    if text.is_empty() {
        return Ok(Value::Null);
    }
    let mut value = match serde_json::from_str::<Value>(text) {
        Ok(value @ (Value::Object(_) | Value::Null)) => value,
        _ => {
            return Err(format!(
                "It answered something that is no JSON object: {}",
                beginning(text)
            ));
        }
    };
    if rule(event) == Rule::Block
        && value.get("block") == Some(&Value::Bool(true))
        && value.get("reason").is_none_or(Value::is_null)
        && let Value::Object(members) = &mut value
    {
        members.insert("reason".to_owned(), BLOCKED.into());
    }
    Ok(value)
}

/// What exit 2 is for an event; nothing when there is nothing to refuse.
fn refusal(event: &str, reason: &str) -> Option<Value> {
    let or = |default: &str| {
        if reason.is_empty() {
            default.to_owned()
        } else {
            reason.to_owned()
        }
    };
    Some(match (rule(event), event) {
        (Rule::Block, _) => json!({"block": true, "reason": or(BLOCKED)}),
        (Rule::Cancel, _) => json!({"cancel": true, "reason": reason}),
        (Rule::Input, _) => json!({"action": "handled", "reason": reason}),
        (Rule::Patch, _) => {
            json!({"isError": true, "content": [{"type": "text", "text": or("The result was withheld by a hook")}]})
        }
        // A result in place of that of the command keeps the command from running.
        (Rule::First(_), "user_bash") => {
            json!({"result": {"output": or("The command was blocked by a hook"), "exitCode": 2, "cancelled": false, "truncated": false}})
        }
        _ => return None,
    })
}

/// What it wrote to standard error, for people.
fn words(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    text.trim().chars().take(limits::HOOK_WORDS).collect()
}

fn with(what: &str, words: &str) -> String {
    if words.is_empty() {
        what.to_owned()
    } else {
        format!("{what}: {words}")
    }
}

fn beginning(text: &str) -> String {
    text.chars().take(200).collect()
}
