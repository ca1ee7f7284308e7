//! What comes with a message to the model: images, and the attachments of the oldest clients (dialects.md 13).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize as _;
use serde_json::{Map, Value};
use tools::image::{Preference, fit};
use wire::attachment::Attachment;
use wire::message::UserContent;
use wire::{Extra, ImageContent, Message, TextContent, UserBlock, UserMessage};

use super::clock::now_ms;

/// The content of a user message in addition to its text.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Attachments {
    blocks: Vec<UserBlock>,
    /// As the client sent them; kept on the message.
    attachments: Vec<Value>,
}

impl From<Vec<ImageContent>> for Attachments {
    fn from(images: Vec<ImageContent>) -> Self {
        Self {
            blocks: images.into_iter().map(UserBlock::Image).collect(),
            attachments: Vec::new(),
        }
    }
}

impl Attachments {
    /// Attachments first, then images (dialects.md 5, row 9).
    ///
    /// # Errors
    /// A sentence for the client when an attachment cannot be used; nothing is sent then.
    pub(super) fn new(attachments: Vec<Value>, images: Vec<ImageContent>) -> Result<Self, String> {
        let mut blocks = Vec::with_capacity(attachments.len() + images.len());
        for value in &attachments {
            blocks.push(Reader::new(value)?.to_block());
        }
        blocks.extend(images.into_iter().map(UserBlock::Image));
        Ok(Self { blocks, attachments })
    }

    /// Adds an image behind the others.
    pub(super) fn add_image(&mut self, image: ImageContent) {
        self.blocks.push(UserBlock::Image(image));
    }

    /// The images, as extensions see them.
    pub(super) fn images(&self) -> Vec<Value> {
        let images = self
            .blocks
            .iter()
            .filter(|block| matches!(block, UserBlock::Image(_)));
        images
            .filter_map(|image| serde_json::to_value(image).ok())
            .collect()
    }

    /// True if there are images.
    pub(super) fn has_images(&self) -> bool {
        self.blocks
            .iter()
            .any(|block| matches!(block, UserBlock::Image(_)))
    }

    /// Makes images small enough for a model and leaves out unreadable ones, which would fail every later request.
    /// Returns a line for each image that is not as it was sent (recorded from pi 1.5.2). Blocks.
    pub(super) fn fit_images(&mut self) -> Vec<String> {
        let mut notes = Vec::new();
        self.blocks.retain_mut(|block| {
            let UserBlock::Image(image) = block else {
                return true;
            };
            match fitting(image) {
                Ok(changes) => {
                    notes.extend(changes);
                    true
                }
                Err(note) => {
                    notes.push(note.to_owned());
                    false
                }
            }
        });
        notes
    }

    /// Other images; what else is among the blocks is left out.
    pub(super) fn set_images(&mut self, blocks: Vec<UserBlock>) {
        // Documents stay: extensions see only the images, so that they cannot have changed anything else.
        self.blocks.retain(|block| !matches!(block, UserBlock::Image(_)));
        self.blocks.extend(
            blocks
                .into_iter()
                .filter(|block| matches!(block, UserBlock::Image(_))),
        );
    }

    /// The user message: the text first.
    pub(super) fn message(self, text: String) -> Message {
        let mut blocks = vec![UserBlock::text(text)];
        blocks.extend(self.blocks);
        let mut extra = Map::new();
        // Most clients know no such member (dialects.md 5, row 9).
        if !self.attachments.is_empty() {
            extra.insert("attachments".to_owned(), Value::Array(self.attachments));
        }
        Message::User(UserMessage {
            content: UserContent::Blocks(blocks),
            timestamp: now_ms(),
            extra: Extra::from(extra),
        })
    }
}

/// The member that tells the text of a document from that of the message, as the agents that attachments come from name it.
const IS_DOCUMENT: &str = "isDocument";

/// Returns true for a block of a message that came with the text: an image or a document.
pub(super) fn is_attached(block: &UserBlock) -> bool {
    match block {
        UserBlock::Image(_) => true,
        UserBlock::Text(text) => text.extra.get(IS_DOCUMENT).is_some(),
    }
}

/// Makes an image fit for a model. Returns notes on the changes.
///
/// # Errors
/// The note in its place if it cannot be sent.
fn fitting(image: &mut ImageContent) -> Result<Vec<String>, &'static str> {
    // Data that is not base64 is no image either, and is refused as such.
    let bytes = STANDARD.decode(&image.data).unwrap_or_default();
    let (fitting, notes) = fit(&bytes, &image.mime_type, true, Preference::Smaller)?;
    (image.data, image.mime_type) = (fitting.data, fitting.mime_type);
    Ok(notes)
}

/// An attachment that was looked at.
struct Reader(Attachment);

impl Reader {
    fn new(value: &Value) -> Result<Self, String> {
        let attachment =
            Attachment::deserialize(value).map_err(|error| format!("Invalid attachment: {error}"))?;
        let reader = Self(attachment);
        reader.check().map(|()| reader)
    }

    /// Nothing is sent to the model that it could not read.
    fn check(&self) -> Result<(), String> {
        let name = self.name();
        let bytes = self.bytes();
        match self.0.kind.as_str() {
            "image" | "document" if bytes.is_none() => {
                Err(format!("Attachment \"{name}\": the content is not base64"))
            }
            // A document may be without content: its text can be in `extractedText`.
            "image" if bytes.is_some_and(|bytes| bytes.is_empty()) => {
                Err(format!("Attachment \"{name}\" has no content"))
            }
            "image" if self.0.mime_type.is_none() && self.inline().0.is_none() => {
                Err(format!("Attachment \"{name}\" has no mimeType"))
            }
            "image" | "document" => Ok(()),
            other => Err(format!(
                "Attachment \"{name}\" has the unknown type \"{other}\"; known are image and document"
            )),
        }
    }

    /// What the model gets of it.
    fn to_block(&self) -> UserBlock {
        if self.0.kind == "image" {
            let (mime, data) = self.inline();
            return UserBlock::Image(ImageContent {
                data: data.to_owned(),
                mime_type: mime
                    .map(str::to_owned)
                    .or(self.0.mime_type.clone())
                    .unwrap_or_default(),
                extra: Extra::default(),
            });
        }
        // Text and member are those of the agents that attachments come from (dialects.md 13).
        let text = format!("\n\n[Document: {}]\n{}", self.name(), self.document_text());
        UserBlock::Text(TextContent {
            text,
            text_signature: None,
            extra: Extra::from(Map::from_iter([(IS_DOCUMENT.to_owned(), Value::Bool(true))])),
        })
    }

    /// The text of a document: the text from the client, or the decoded content of a text file.
    fn document_text(&self) -> String {
        if let Some(text) = self.0.extracted_text.as_ref().filter(|text| !text.is_empty()) {
            return text.clone();
        }
        // The originals send nothing for a document without `extractedText` (dialects.md 13).
        let mime = self
            .0
            .mime_type
            .as_deref()
            .or(self.inline().0)
            .unwrap_or_default();
        let text = self.bytes().filter(|_| is_text(mime)).map(String::from_utf8);
        match text {
            Some(Ok(text)) => text,
            _ => format!("(The text of this document is not available: {mime} without extractedText.)"),
        }
    }

    fn name(&self) -> &str {
        self.0.file_name.as_deref().unwrap_or("unnamed")
    }

    /// The type that a `data:` URL names, and the base64 text.
    fn inline(&self) -> (Option<&str>, &str) {
        let content = self.0.content.as_deref().unwrap_or_default();
        match content
            .strip_prefix("data:")
            .and_then(|rest| rest.split_once(";base64,"))
        {
            Some((mime, data)) => (Some(mime), data),
            None => (None, content),
        }
    }

    fn bytes(&self) -> Option<Vec<u8>> {
        STANDARD.decode(self.inline().1.trim_ascii()).ok()
    }
}

/// Types whose bytes are text.
fn is_text(mime: &str) -> bool {
    // A type may have parameters, such as `charset`.
    let mime = mime
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    mime.starts_with("text/")
        || mime.ends_with("+json")
        || mime.ends_with("+xml")
        || [
            "application/json",
            "application/xml",
            "application/yaml",
            "application/x-yaml",
            "application/toml",
            "application/javascript",
            "application/x-sh",
        ]
        .contains(&mime.as_str())
}
