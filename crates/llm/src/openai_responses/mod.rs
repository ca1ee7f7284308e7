//! The Responses API of OpenAI (providers.md 5): requests in `request` and `messages`, answers in `stream`. HTTP errors have
//! the words of `openai_completions`.

pub(crate) mod azure;
pub(crate) mod messages;
pub(crate) mod request;
pub(crate) mod stream;

use serde_json::{Map, Value, json};

/// The text of an error, with what helps if a ChatGPT plan that OpenAI's API shares is used up (pi 1.5.2).
pub(crate) fn with_plan_help(text: String) -> String {
    let help = if text.contains("subscription_sharing_usage_limit_exceeded") {
        "Check your ChatGPT usage: https://chatgpt.com/settings/usage"
    } else if text.contains("subscription_sharing_workplace_individual_usage_limit_exceeded") {
        "You've reached your ChatGPT workspace's usage limit. Ask your workspace admin to increase it at admin.openai.com → \
         Workspace → Usage limits."
    } else {
        return text;
    };
    format!("{text}\n{help}")
}

/// The parts of a message item that are kept as the signature of its text: its id, and the phase of its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TextSignature {
    id: String,
    phase: Option<String>,
}

impl TextSignature {
    /// The JSON that goes into `textSignature`.
    fn write(&self) -> String {
        let mut fields = Map::new();
        fields.insert("v".into(), json!(1));
        fields.insert("id".into(), json!(self.id));
        if let Some(phase) = &self.phase {
            fields.insert("phase".into(), json!(phase));
        }
        Value::Object(fields).to_string()
    }

    /// Reads what [`Self::write`] wrote; anything else is an id itself, as older sessions have it.
    fn read(text: &str) -> Option<Self> {
        let json: Option<Value> = serde_json::from_str(text).ok().filter(Value::is_object);
        let Some(json) = json else {
            let id = (!text.is_empty()).then(|| text.to_owned())?;
            return Some(Self { id, phase: None });
        };
        let word = |name: &str| json.get(name).and_then(Value::as_str).map(str::to_owned);
        Some(Self {
            id: word("id")?,
            phase: word("phase"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::TextSignature;

    #[test]
    fn text_signatures_and_plain_ids_are_parsed() {
        let signature = TextSignature {
            id: "msg_1".to_owned(),
            phase: Some("commentary".to_owned()),
        };
        assert_eq!(signature.write(), r#"{"v":1,"id":"msg_1","phase":"commentary"}"#);
        assert_eq!(TextSignature::read(&signature.write()), Some(signature));
        assert_eq!(TextSignature::read("msg_old").unwrap().id, "msg_old");
        assert_eq!(TextSignature::read("{\"v\":1}"), None);
        assert_eq!(TextSignature::read(""), None);
    }
}
