//! Questions of servers to the user (`elicitation/create`), in a form that can be asked by simple dialogs. How they are
//! asked is the host's business.

use std::collections::HashSet;

use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction};
use serde_json::{Map, Value};

use crate::limits;
use crate::text::{line, plain};
use process::Boxed;

/// A question.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The server that asks.
    pub server: String,
    /// What it says.
    pub message: String,
    /// What it wants.
    pub form: Form,
}

/// What a question wants.
#[derive(Debug, Clone, PartialEq)]
pub enum Form {
    /// Answers; without any, consent.
    Fields(Vec<Field>),
    /// A page to be visited.
    Visit(String),
}

/// One answer that is wanted.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Its key in the answer.
    pub name: String,
    /// What it is called, for people.
    pub title: String,
    /// What fits.
    pub kind: Kind,
    /// True if the answer is required.
    pub required: bool,
    /// What counts if nothing is given.
    pub default: Option<Value>,
}

/// What fits into a field.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// Any text.
    Text,
    /// A number; `true`: a whole one.
    Number(bool),
    /// Yes or no.
    Flag,
    /// One of these: value and label.
    Choice(Vec<(String, String)>),
    /// Some of these.
    Choices(Vec<(String, String)>),
}

/// The user's answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// Given.
    Accept(Map<String, Value>),
    /// Refused.
    Decline,
    /// The user gave no answer.
    Cancel,
}

/// Asks the user.
pub trait AskUser: Send + Sync {
    /// Asks; the wait may be dropped.
    fn ask(&self, question: Question) -> Boxed<'static, Reply>;
}

impl Question {
    /// Reads a request; none if it cannot be asked.
    pub(crate) fn read(server: &str, params: &ElicitRequestParams) -> Option<Self> {
        let value = serde_json::to_value(params).ok()?;
        let message = value.get("message").and_then(Value::as_str).unwrap_or_default();
        let form = match value.get("url").and_then(Value::as_str) {
            Some(url) => {
                let is_web = url.starts_with("https://") || url.starts_with("http://");
                let is_plain = url.len() <= limits::ERROR && url.chars().all(|c| c.is_ascii_graphic());
                Form::Visit((is_web && is_plain).then(|| url.to_owned())?)
            }
            None => Form::Fields(fields(value.get("requestedSchema")?)?),
        };
        Some(Self {
            server: server.to_owned(),
            message: plain(message, limits::ERROR),
            form,
        })
    }
}

fn fields(schema: &Value) -> Option<Vec<Field>> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return Some(Vec::new());
    };
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|known| known == name));
    if properties.len() > limits::FIELDS {
        return None;
    }
    let fields = properties.iter().map(|(name, property)| {
        let text = |key: &str| property.get(key).and_then(Value::as_str);
        let title = match (text("title"), text("description")) {
            (Some(title), Some(description)) => format!("{title}: {description}"),
            (title, description) => title.or(description).unwrap_or(name).to_owned(),
        };
        Some(Field {
            name: name.clone(),
            title: line(&title, 4 * limits::NAME),
            kind: kind(property)?,
            required: is_required(name),
            default: property.get("default").filter(|value| !value.is_null()).cloned(),
        })
    });
    fields.collect()
}

fn kind(property: &Value) -> Option<Kind> {
    if let Some(choices) = choices(property) {
        return Some(Kind::Choice(told_apart(choices)));
    }
    Some(match property.get("type").and_then(Value::as_str)? {
        "string" => Kind::Text,
        "number" => Kind::Number(false),
        "integer" => Kind::Number(true),
        "boolean" => Kind::Flag,
        "array" => Kind::Choices(told_apart(choices(property.get("items")?)?)),
        _ => return None,
    })
}

/// Makes labels differ: they may have been cut to the same text, and the user chooses by the label alone.
fn told_apart(mut choices: Vec<(String, String)>) -> Vec<(String, String)> {
    let mut seen = HashSet::new();
    for (at, (_, label)) in choices.iter_mut().enumerate() {
        while !seen.insert(label.clone()) {
            label.push_str(&format!(" ({})", at + 1));
        }
    }
    choices
}

/// What there is to choose from: `enum`, with `enumNames`, or `oneOf` and `anyOf` of constants with titles.
fn choices(property: &Value) -> Option<Vec<(String, String)>> {
    let label = |text: &str| line(text, limits::NAME);
    if let Some(values) = property.get("enum").and_then(Value::as_array) {
        let names = property.get("enumNames").and_then(Value::as_array);
        let choices = values.iter().enumerate().map(|(at, value)| {
            let value = value.as_str()?;
            let name = names.and_then(|names| names.get(at)?.as_str());
            Some((value.to_owned(), label(name.unwrap_or(value))))
        });
        return choices.take(limits::ITEMS).collect();
    }
    let of = property
        .get("oneOf")
        .or_else(|| property.get("anyOf"))?
        .as_array()?;
    let choices = of.iter().map(|item| {
        let value = item.get("const")?.as_str()?;
        let title = item.get("title").and_then(Value::as_str).unwrap_or(value);
        Some((value.to_owned(), label(title)))
    });
    choices.take(limits::ITEMS).collect()
}

impl From<Reply> for ElicitResult {
    fn from(reply: Reply) -> Self {
        match reply {
            Reply::Accept(content) => {
                Self::new(ElicitationAction::Accept).with_content(Value::Object(content))
            }
            Reply::Decline => Self::new(ElicitationAction::Decline),
            Reply::Cancel => Self::new(ElicitationAction::Cancel),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn choices_cut_to_same_label_are_told_apart() {
        let path = |end: &str| format!("/{}/{end}", "deep".repeat(limits::NAME));
        let (a, b) = (path("a"), path("b"));
        let property = json!({"type": "string", "enum": [a, b, "c", "c\u{200b}"]});
        let Some(Kind::Choice(choices)) = kind(&property) else {
            panic!("{property}");
        };
        let values: Vec<&str> = choices.iter().map(|(value, _)| value.as_str()).collect();
        assert_eq!(values, [a.as_str(), b.as_str(), "c", "c\u{200b}"]);
        let labels: HashSet<&str> = choices.iter().map(|(_, label)| label.as_str()).collect();
        assert_eq!(labels.len(), choices.len(), "{choices:?}");
    }
}
