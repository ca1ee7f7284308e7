//! What came of a call, read leniently: text, pictures, sound, resources, links. How it is shown to the model, and how much
//! of it, is the host's business.

use serde_json::Value;

use crate::limits;
use crate::text::{line, plain};

/// The result of a call or of reading a resource.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outcome {
    /// Its blocks, in order.
    pub blocks: Vec<Block>,
    /// The structured content, for programs.
    pub structured: Option<Value>,
    /// True if the tool failed.
    pub is_error: bool,
}

/// A piece of a result.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// Text.
    Text(String),
    /// A picture.
    Image {
        /// Its bytes in base64.
        data: String,
        /// Its type.
        mime: String,
    },
    /// Bytes that a model cannot see: sound, files.
    Binary {
        /// In base64.
        data: String,
        /// Their type.
        mime: String,
        /// Where they are from, if they have an address.
        uri: Option<String>,
    },
    /// Something that can be read if it is wanted.
    Link {
        /// Its address.
        uri: String,
        /// What it is called, and what it is.
        about: String,
    },
}

impl Outcome {
    /// Reads the result of a call.
    pub(crate) fn of_call(mut value: Value) -> Self {
        let is_error = value.get("isError") == Some(&Value::Bool(true));
        let structured = value
            .get_mut("structuredContent")
            .map(Value::take)
            .filter(|value| !value.is_null());
        let mut blocks = list(&mut value, "content")
            .into_iter()
            .map(block)
            .collect::<Vec<_>>();
        if blocks.is_empty()
            && let Some(structured) = &structured
        {
            blocks.push(Block::Text(structured.to_string()));
        }
        Self {
            blocks,
            structured,
            is_error,
        }
    }

    /// Reads what a resource holds.
    pub(crate) fn of_resource(mut value: Value) -> Self {
        Self {
            blocks: list(&mut value, "contents").into_iter().map(contents).collect(),
            ..Self::default()
        }
    }

    /// Reads the messages of a prompt; who says them is written before them when it is not the user alone.
    pub(crate) fn of_prompt(mut value: Value) -> Self {
        let messages = list(&mut value, "messages");
        let is_users = messages
            .iter()
            .all(|message| message.get("role").is_none_or(|role| role == "user"));
        let mut blocks = Vec::new();
        for mut message in messages {
            let is_assistant = message.get("role").is_some_and(|role| role == "assistant");
            let content = message.get_mut("content").map(Value::take).unwrap_or_default();
            let content = match content {
                Value::Array(items) => items,
                other => vec![other],
            };
            for block in content.into_iter().map(block) {
                blocks.push(match block {
                    Block::Text(text) if !is_users => Block::Text(format!(
                        "{}: {text}",
                        if is_assistant { "Assistant" } else { "User" }
                    )),
                    other => other,
                });
            }
        }
        Self {
            blocks,
            ..Self::default()
        }
    }
}

fn list(value: &mut Value, key: &str) -> Vec<Value> {
    match value.get_mut(key).map(Value::take) {
        Some(Value::Array(mut items)) => {
            items.truncate(limits::BLOCKS);
            items
        }
        _ => Vec::new(),
    }
}

fn block(mut value: Value) -> Block {
    let mut take = |key: &str| match value.get_mut(key).map(Value::take) {
        Some(Value::String(text)) => Some(text),
        Some(other) => {
            // Put back a value that is no text, so that the result stays complete.
            if let Some(place) = value.get_mut(key) {
                *place = other;
            }
            None
        }
        None => None,
    };
    match take("type").as_deref() {
        Some("text") => Block::Text(take("text").unwrap_or_default()),
        Some("image") => Block::Image {
            data: take("data").unwrap_or_default(),
            mime: line(&take("mimeType").unwrap_or_default(), limits::NAME),
        },
        Some("audio") => Block::Binary {
            data: take("data").unwrap_or_default(),
            mime: line(&take("mimeType").unwrap_or_default(), limits::NAME),
            uri: None,
        },
        Some("resource") => contents(value.get_mut("resource").map(Value::take).unwrap_or_default()),
        Some("resource_link") => {
            let words = [
                take("title").or_else(|| take("name")),
                take("description"),
                take("mimeType"),
            ];
            let words: Vec<String> = words.into_iter().flatten().collect();
            Block::Link {
                uri: line(&take("uri").unwrap_or_default(), limits::ERROR),
                about: line(&words.join(", "), limits::ERROR),
            }
        }
        kind => {
            let kind = kind.unwrap_or("?").to_owned();
            Block::Text(plain(&format!("[{kind}] {value}"), limits::DESCRIPTION))
        }
    }
}

/// What an address holds.
fn contents(mut value: Value) -> Block {
    let mut take = |key: &str| match value.get_mut(key).map(Value::take) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    };
    let uri = line(&take("uri").unwrap_or_default(), limits::ERROR);
    let mime = line(&take("mimeType").unwrap_or_default(), limits::NAME);
    match (take("text"), take("blob")) {
        (Some(text), _) => Block::Text(text),
        (None, Some(data)) if mime.starts_with("image/") => Block::Image { data, mime },
        (None, data) => Block::Binary {
            data: data.unwrap_or_default(),
            mime,
            uri: Some(uri).filter(|uri| !uri.is_empty()),
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_mcp_content_block_kind_is_read() {
        let outcome = Outcome::of_call(json!({
            "content": [
                {"type": "text", "text": "a"},
                {"type": "image", "data": "AA==", "mimeType": "image/png"},
                {"type": "audio", "data": "AA==", "mimeType": "audio/wav"},
                {"type": "resource", "resource": {"uri": "x://1", "text": "b"}},
                {"type": "resource", "resource": {"uri": "x://2", "mimeType": "image/png", "blob": "AA=="}},
                {"type": "resource_link", "uri": "x://3", "name": "n", "description": "d"},
                {"type": "hologram", "light": 3},
                7,
            ],
            "isError": true,
            "structuredContent": {"k": 1},
        }));
        assert!(outcome.is_error);
        assert_eq!(outcome.structured, Some(json!({"k": 1})));
        assert_eq!(outcome.blocks.len(), 8);
        assert_eq!(outcome.blocks[3], Block::Text("b".to_owned()));
        assert_eq!(
            outcome.blocks[5],
            Block::Link {
                uri: "x://3".to_owned(),
                about: "n, d".to_owned()
            }
        );
        assert!(
            matches!(&outcome.blocks[6], Block::Text(text) if text.contains("hologram") && text.contains('3'))
        );
        assert!(matches!(&outcome.blocks[7], Block::Text(text) if text.contains('7')));
    }

    #[test]
    fn structured_results_alone_become_text() {
        let outcome = Outcome::of_call(json!({"structuredContent": [1]}));
        assert_eq!(outcome.blocks, [Block::Text("[1]".to_owned())]);
        assert_eq!(Outcome::of_call(json!({})), Outcome::default());
        assert_eq!(Outcome::of_call(json!(3)), Outcome::default());
    }
}
