//! Reasoning details: reasoning as the provider behind a router made it, in texts with signatures, summaries and encrypted data. The
//! provider wants them back as they came, or it reasons anew.

use serde_json::Value;

/// Kinds of details, each with the member that it must have.
const KINDS: [(&str, &str); 3] = [
    ("reasoning.text", "text"),
    ("reasoning.summary", "summary"),
    ("reasoning.encrypted", ENCRYPTED),
];

/// The member of encrypted details.
const ENCRYPTED: &str = "data";

/// Returns true for a detail that can be sent back.
pub(super) fn is_detail(value: &Value) -> bool {
    member(value).is_some()
}

/// The member that holds what a detail says; none for other values.
fn member(detail: &Value) -> Option<&'static str> {
    let kind = detail.get("type")?.as_str()?;
    let (_, member) = KINDS.iter().find(|(known, _)| *known == kind)?;
    detail.get(member)?.as_str().map(|_| *member)
}

/// Adds a piece of the stream. A text or a summary continues one right before it; encrypted data stay apart.
pub(super) fn add(details: &mut Vec<Value>, piece: Value) {
    let continued = member(&piece).filter(|member| *member != ENCRYPTED);
    if continued.is_none() || details.last().and_then(member) != continued {
        details.push(piece);
        return;
    }
    let (Some(text), Some(Value::Object(last)), Value::Object(piece)) =
        (continued, details.last_mut(), piece)
    else {
        return;
    };
    for (name, value) in piece {
        match last.get_mut(&name) {
            Some(Value::String(known)) if name == text => known.push_str(value.as_str().unwrap_or_default()),
            Some(known) if known.is_null() || known.as_str() == Some("") => *known = value,
            Some(_) => {}
            None => {
                last.insert(name, value);
            }
        }
    }
}

/// The details that the signature of reasoning holds; none for other signatures.
pub(super) fn of_reasoning(signature: &str) -> Option<Vec<Value>> {
    let details: Vec<Value> = signature
        .starts_with('[')
        .then(|| serde_json::from_str(signature).ok())??;
    (!details.is_empty() && details.iter().all(is_detail)).then_some(details)
}

/// The encrypted detail that the signature of a call holds; none for other signatures.
pub(super) fn of_call(signature: &str) -> Option<Value> {
    let detail: Value = serde_json::from_str(signature).ok()?;
    (member(&detail) == Some(ENCRYPTED)).then_some(detail)
}
