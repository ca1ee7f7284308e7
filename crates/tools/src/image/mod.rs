//! Images that `read` finds: telling them from text, and the result for the model. Shrinking lives in `resize`.

mod resize;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use wire::{ImageContent, ToolResult, UserBlock};

use crate::limits;
pub use resize::{Resized, resize};

/// The image type of a file's first bytes, if it is one a model can take (pi-core.md 5.2).
#[must_use]
pub fn sniff(head: &[u8]) -> Option<&'static str> {
    let head = head.get(..limits::SNIFF_BYTES).unwrap_or(head);
    if let Some(rest) = head.strip_prefix(b"\xff\xd8\xff") {
        // F7 is JPEG-LS, which no provider accepts.
        return (rest.first() != Some(&0xf7)).then_some("image/jpeg");
    }
    if head.starts_with(b"\x89PNG\r\n\x1a\n") {
        return still_png(head).then_some("image/png");
    }
    if head.starts_with(b"GIF87a") || head.starts_with(b"GIF89a") {
        return Some("image/gif");
    }
    let webp = head.starts_with(b"RIFF") && head.get(8..12) == Some(b"WEBP");
    webp.then_some("image/webp")
}

/// A header chunk first, and no animation before the pixels.
fn still_png(head: &[u8]) -> bool {
    if head.get(12..16) != Some(b"IHDR") {
        return false;
    }
    let mut rest = head.get(8..).unwrap_or_default();
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        match after.get(..4) {
            Some(b"acTL") => return false,
            Some(b"IDAT") | None => return true,
            Some(_) => {}
        }
        // Type and checksum surround the data.
        let skip = (u32::from_be_bytes(*length) as usize).saturating_add(8);
        rest = after.get(skip..).unwrap_or_default();
    }
    true
}

/// What the model gets of an image file.
pub(crate) fn result(bytes: &[u8], mime: &str, shrink: bool, seen: bool) -> ToolResult {
    let mut text = format!("Read image file [{mime}]");
    let image = if shrink {
        match resize(bytes, mime) {
            Some(Resized {
                data,
                mime_type,
                note,
            }) => {
                if let Some(note) = note {
                    text = format!("Read image file [{mime_type}]\n{note}");
                }
                Some(ImageContent {
                    data,
                    mime_type,
                    extra: wire::Extra::default(),
                })
            }
            None => {
                text.push_str("\n[Image omitted: could not be resized below the inline image size limit.]");
                None
            }
        }
    } else {
        Some(ImageContent {
            data: STANDARD.encode(bytes),
            mime_type: mime.to_owned(),
            extra: wire::Extra::default(),
        })
    };
    if !seen {
        text.push_str(
            "\n[Current model does not support images. The image will be omitted from this request.]",
        );
    }
    let mut result = ToolResult::text(text);
    result.content.extend(image.map(UserBlock::Image));
    result
}

#[cfg(test)]
mod tests;
