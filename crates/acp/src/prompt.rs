//! Content blocks of a prompt to the text and images of a command.

use serde_json::{Map, Value};
use wire::ImageContent;
use wire::command::PromptParams;

use crate::rpc::{Failure, INVALID_PARAMS};

/// Converts the member `prompt` of `session/prompt`.
///
/// # Errors
/// When a block has an unknown type or lacks a member. Nothing of such a prompt reaches the model.
pub(crate) fn read(params: &Map<String, Value>) -> Result<PromptParams, Failure> {
    // acplint 0.1 sends the blocks as `content`.
    let blocks = params.get("prompt").or_else(|| params.get("content"));
    let blocks = blocks.and_then(Value::as_array);
    let blocks = blocks.ok_or_else(|| Failure::new(INVALID_PARAMS, "The member prompt must be an array"))?;
    let (mut texts, mut images) = (Vec::new(), Vec::new());
    for block in blocks {
        match text(block, "/type")? {
            "text" => texts.push(text(block, "/text")?.to_owned()),
            "image" => images.push(ImageContent {
                data: text(block, "/data")?.to_owned(),
                mime_type: text(block, "/mimeType")?.to_owned(),
                extra: wire::Extra::default(),
            }),
            "resource_link" => texts.push(link(block)?),
            "resource" => texts.push(resource(block)?),
            other => {
                let message = format!("Content blocks of the type {other:?} are not supported");
                return Err(Failure::new(INVALID_PARAMS, message));
            }
        }
    }
    if texts.is_empty() && images.is_empty() {
        return Err(Failure::new(INVALID_PARAMS, "The prompt is empty"));
    }
    Ok(PromptParams {
        message: texts.join("\n"),
        images,
        attachments: Vec::new(),
        streaming_behavior: None,
        limits: None,
        fallback_models: None,
    })
}

/// A link is named, not read: the model reads what it needs, under the permissions that hold.
fn link(block: &Value) -> Result<String, Failure> {
    let uri = text(block, "/uri")?;
    let name = text(block, "/name")?;
    Ok(format!("[{name}]({uri})"))
}

fn resource(block: &Value) -> Result<String, Failure> {
    let uri = text(block, "/resource/uri")?;
    let content = text(block, "/resource/text")?;
    Ok(format!("<resource uri={uri:?}>\n{content}\n</resource>"))
}

fn text<'a>(block: &'a Value, pointer: &str) -> Result<&'a str, Failure> {
    let found = block.pointer(pointer).and_then(Value::as_str);
    found.ok_or_else(|| {
        let name = pointer.trim_start_matches('/').replace('/', ".");
        Failure::new(
            INVALID_PARAMS,
            format!("A content block needs the text member {name}"),
        )
    })
}
