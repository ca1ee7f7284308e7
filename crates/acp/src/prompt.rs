//! Content blocks of a prompt to the text and images of a command.

use serde_json::{Map, Value, json};
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
    let (mut texts, mut images, mut attachments) = (Vec::new(), Vec::new(), Vec::new());
    for block in blocks {
        match text(block, "/type")? {
            "text" => texts.push(text(block, "/text")?.to_owned()),
            "image" => images.push(image(text(block, "/data")?, text(block, "/mimeType")?)),
            "resource_link" => texts.push(link(block)?),
            "resource" => match block.pointer("/resource/blob") {
                None => texts.push(resource(block)?),
                Some(_) => match blob(block)? {
                    Blob::Image(image) => images.push(image),
                    Blob::Document(document) => attachments.push(document),
                },
            },
            other => {
                let message = format!("Content blocks of the type {other:?} are not supported");
                return Err(Failure::new(INVALID_PARAMS, message));
            }
        }
    }
    if texts.is_empty() && images.is_empty() && attachments.is_empty() {
        return Err(Failure::new(INVALID_PARAMS, "The prompt is empty"));
    }
    Ok(PromptParams {
        message: texts.join("\n"),
        images,
        attachments,
        streaming_behavior: None,
        limits: None,
        fallback_models: None,
        output_schema: None,
    })
}

/// A link is named, not read: the model reads what it needs, under the permissions that hold.
fn link(block: &Value) -> Result<String, Failure> {
    let uri = text(block, "/uri")?;
    let name = text(block, "/name")?;
    Ok(format!("[{name}]({uri})"))
}

fn image(data: &str, mime_type: &str) -> ImageContent {
    ImageContent {
        data: data.to_owned(),
        mime_type: mime_type.to_owned(),
        extra: wire::Extra::default(),
    }
}

/// A resource with bytes.
enum Blob {
    Image(ImageContent),
    /// The session decides what the model gets of it: the text of a text file, else its name.
    Document(Value),
}

fn blob(block: &Value) -> Result<Blob, Failure> {
    let data = text(block, "/resource/blob")?;
    let mime = block.pointer("/resource/mimeType").and_then(Value::as_str);
    if let Some(mime) = mime.filter(|mime| mime.starts_with("image/")) {
        return Ok(Blob::Image(image(data, mime)));
    }
    let uri = text(block, "/resource/uri")?;
    Ok(Blob::Document(
        json!({"type": "document", "fileName": uri, "mimeType": mime, "content": data}),
    ))
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
