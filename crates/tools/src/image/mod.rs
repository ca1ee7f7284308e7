//! Images that `read` finds: telling them from text, and the result for the model. Shrinking lives in `resize`.

mod resize;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use wire::{ImageContent, ToolResult, UserBlock};

use crate::limits;
pub use resize::{Preference, Resized, resize};

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

/// The type of a BMP file. No provider takes it, so that the file is sent as PNG.
pub(crate) const BMP: &str = "image/bmp";

/// Returns true for the first bytes of a BMP file. Texts can begin with its two letters, so that the header counts, too.
pub(crate) fn is_bmp(head: &[u8]) -> bool {
    let short = |at: usize| {
        head.get(at..)?
            .first_chunk()
            .map(|bytes| u16::from_le_bytes(*bytes))
    };
    let long = |at: usize| {
        head.get(at..)?
            .first_chunk()
            .map(|bytes| u32::from_le_bytes(*bytes))
    };
    let (Some(size), Some(pixels), Some(header)) = (long(2), long(10), long(14)) else {
        return false;
    };
    // Planes and bits of a pixel follow width and height, which have two bytes each in the oldest header.
    let planes = match header {
        12 => 22,
        40..=124 => 26,
        _ => return false,
    };
    head.starts_with(b"BM")
        && (size == 0 || (size >= 26 && pixels < size))
        && pixels >= 14 + header
        && short(planes) == Some(1)
        && matches!(short(planes + 2), Some(1 | 4 | 8 | 16 | 24 | 32))
}

/// What the model gets of an image file.
pub(crate) fn result(
    bytes: &[u8],
    mime: &str,
    shrink: bool,
    seen: bool,
    preference: Preference,
) -> ToolResult {
    let (kind, notes, image) = match fit(bytes, mime, shrink, preference) {
        Ok((image, notes)) => (image.mime_type.clone(), notes, Some(image)),
        Err(reason) => (mime.to_owned(), vec![reason.to_owned()], None),
    };
    let mut text = format!("Read image file [{kind}]");
    for note in notes {
        text.push('\n');
        text.push_str(&note);
    }
    if !seen {
        text.push_str(
            "\n[Current model does not support images. The image will be omitted from this request.]",
        );
    }
    let mut result = ToolResult::text(text);
    result.content.extend(image.map(UserBlock::Image));
    result
}

/// The image as it is sent to a model, with notes on how it was changed: a type that no provider takes becomes PNG, and `shrink` makes
/// the image small enough. Blocks.
///
/// # Errors
/// The note in its place if it cannot be sent.
pub fn fit(
    bytes: &[u8],
    mime: &str,
    shrink: bool,
    preference: Preference,
) -> Result<(ImageContent, Vec<String>), &'static str> {
    let base = mime.split(';').next().unwrap_or(mime).trim().to_ascii_lowercase();
    let (kind, converted) = match base.as_str() {
        "image/jpg" => ("image/jpeg", None),
        "image/png" | "image/jpeg" | "image/gif" | "image/webp" => (base.as_str(), None),
        _ => ("image/png", Some(resize::to_png(bytes).ok_or(NOT_CONVERTED)?)),
    };
    let bytes = converted.as_deref().unwrap_or(bytes);
    let resized = if shrink {
        resize(bytes, kind, preference).ok_or(NOT_RESIZED)?
    } else {
        Resized {
            data: STANDARD.encode(bytes),
            mime_type: kind.to_owned(),
            note: None,
        }
    };
    let conversion = converted
        .is_some()
        .then(|| format!("[Image converted from {base} to {}.]", resized.mime_type));
    let notes = conversion.into_iter().chain(resized.note).collect();
    let image = ImageContent {
        data: resized.data,
        mime_type: resized.mime_type,
        extra: wire::Extra::default(),
    };
    Ok((image, notes))
}

const NOT_CONVERTED: &str = "[Image omitted: could not be converted to a supported inline image format.]";
const NOT_RESIZED: &str = "[Image omitted: could not be resized below the inline image size limit.]";

#[cfg(test)]
mod tests;
