//! Makes an image small enough for a model (pi-core.md 5.3). Every decoding failure means "cannot be sent".

use std::io::Cursor;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::PngEncoder;
use image::{
    DynamicImage, ExtendedColorType, ImageDecoder as _, ImageEncoder as _, ImageFormat, ImageReader, Limits,
};
use resize::Pixel::RGBA8P;
use resize::Type::Lanczos3;
use rgb::{FromSlice as _, RGBA8};
use wire::Dialect;

use crate::limits::{self, IMAGE_BASE64_MAX, IMAGE_SIDE_MAX};

/// An image that can be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resized {
    /// Base64 of its bytes.
    pub data: String,
    /// Its type, which can be another than before.
    pub mime_type: String,
    /// How its coordinates relate to the original's, when it was shrunk.
    pub note: Option<String>,
}

/// Which form a shrunk image gets if both are small enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preference {
    /// PNG.
    Png,
    /// The smaller one of PNG and JPEG. A photo takes a fraction as JPEG, also in the session file.
    Smaller,
}

impl From<Dialect> for Preference {
    /// pi changed it after 0.74.
    fn from(dialect: Dialect) -> Self {
        match dialect.is_newest_pi() {
            true => Self::Smaller,
            false => Self::Png,
        }
    }
}

/// Rows or columns that are scaled together.
const LINES_AT_ONCE: usize = 64;

const JPEG_QUALITIES: [u8; 5] = [80, 85, 70, 55, 40];

/// Shrinks an image to at most 2000 pixels on a side and 4.5 MiB of base64; unchanged when it is within both. None when it
/// cannot be decoded or made small enough. Blocks, and takes a while for large images.
#[must_use]
pub fn resize(bytes: &[u8], mime: &str, preference: Preference) -> Option<Resized> {
    // No provider takes BMP, also if the sender names another type.
    if image::guess_format(bytes).is_ok_and(|format| format == ImageFormat::Bmp) {
        return None;
    }
    let image = decode(bytes)?;
    let (width, height) = (image.width(), image.height());
    if width.max(height) <= IMAGE_SIDE_MAX && encoded_len(bytes.len()) < IMAGE_BASE64_MAX {
        return Some(Resized {
            data: STANDARD.encode(bytes),
            mime_type: mime.to_owned(),
            note: None,
        });
    }
    let (mut w, mut h) = fit(width, height);
    loop {
        let small = scale(&image, w, h)?;
        if let Some((bytes, mime)) = encode(&small, preference) {
            let note = format!(
                "[Image: original {width}x{height}, displayed at {w}x{h}. Multiply coordinates by {:.2} to map to original image.]",
                f64::from(width) / f64::from(w)
            );
            return Some(Resized {
                data: STANDARD.encode(bytes),
                mime_type: mime.to_owned(),
                note: Some(note),
            });
        }
        if (w, h) == (1, 1) {
            return None;
        }
        (w, h) = (three_quarters(w), three_quarters(h));
    }
}

/// The image as PNG. None if it cannot be decoded. Blocks.
pub(super) fn to_png(bytes: &[u8]) -> Option<Vec<u8>> {
    png(&decode(bytes)?.into_rgba8())
}

fn encoded_len(bytes: usize) -> usize {
    bytes.div_ceil(3) * 4
}

fn three_quarters(side: u32) -> u32 {
    (side * 3 / 4).max(1)
}

/// The largest size with the same proportions that is allowed.
fn fit(width: u32, height: u32) -> (u32, u32) {
    let longest = u64::from(width.max(height));
    let max = u64::from(IMAGE_SIDE_MAX);
    if longest <= max {
        return (width, height);
    }
    let side = |side: u32| {
        let scaled = (u64::from(side) * max * 2 + longest) / (longest * 2);
        u32::try_from(scaled).unwrap_or(IMAGE_SIDE_MAX).max(1)
    };
    (side(width), side(height))
}

/// Decodes the first frame, upright.
fn decode(bytes: &[u8]) -> Option<DynamicImage> {
    let mut limits = Limits::default();
    limits.max_image_width = Some(limits::IMAGE_SOURCE_SIDE_MAX);
    limits.max_image_height = Some(limits::IMAGE_SOURCE_SIDE_MAX);
    limits.max_alloc = Some(limits::IMAGE_ALLOC_MAX);
    let mut reader = ImageReader::new(Cursor::new(bytes)).with_guessed_format().ok()?;
    reader.limits(limits.clone());
    let mut decoder = reader.into_decoder().ok()?;
    let (width, height) = decoder.dimensions();
    limits
        .reserve(memory(width, height, decoder.total_bytes()))
        .ok()?;
    let orientation = decoder.orientation().ok();
    let mut image = DynamicImage::from_decoder(decoder).ok()?;
    if let Some(orientation) = orientation {
        image.apply_orientation(orientation);
    }
    Some(image)
}

/// Bytes that an image takes at most, as it is decoded or as it is scaled: with four bytes a pixel, also if the decoder needs one.
fn memory(width: u32, height: u32, decoded: u64) -> u64 {
    decoded.max(4 * u64::from(width) * u64::from(height))
}

/// Scales across, then down, some lines at a time: between the two directions the library holds 16 bytes a pixel, which for
/// a photograph at once would be more than the photograph.
fn scale(image: &DynamicImage, width: u32, height: u32) -> Option<image::RgbaImage> {
    let source = image.to_rgba8();
    if (source.width(), source.height()) == (width, height) {
        return Some(source);
    }
    let across = Scaling {
        from: usize::try_from(source.width()).ok()?,
        to: usize::try_from(width).ok()?,
    };
    let down = Scaling {
        from: usize::try_from(source.height()).ok()?,
        to: usize::try_from(height).ok()?,
    };
    let narrow = across.rows(source.as_raw().as_rgba()).ok()?;
    drop(source);
    let mut scaled = image::RgbaImage::new(width, height);
    down.columns(&narrow, across.to, scaled.as_rgba_mut()).ok()?;
    Some(scaled)
}

/// A length of pixels, before and after.
#[derive(Clone, Copy)]
struct Scaling {
    from: usize,
    to: usize,
}

impl Scaling {
    /// Scales rows of `from` pixels.
    fn rows(self, source: &[RGBA8]) -> resize::Result<Vec<RGBA8>> {
        let mut scaled = vec![RGBA8::default(); source.len() / self.from * self.to];
        let bands = source.chunks(self.from * LINES_AT_ONCE);
        for (band, target) in bands.zip(scaled.chunks_mut(self.to * LINES_AT_ONCE)) {
            let rows = band.len() / self.from;
            resize::new(self.from, rows, self.to, rows, RGBA8P, Lanczos3)?.resize(band, target)?;
        }
        Ok(scaled)
    }

    /// Scales the columns of `from` pixels in rows of this width.
    fn columns(self, source: &[RGBA8], width: usize, target: &mut [RGBA8]) -> resize::Result<()> {
        let mut stripe = vec![RGBA8::default(); LINES_AT_ONCE.min(width) * self.to];
        for left in (0..width).step_by(LINES_AT_ONCE) {
            let columns = left..(left + LINES_AT_ONCE).min(width);
            let Some((from, stripe)) = source.get(left..).zip(stripe.get_mut(..columns.len() * self.to))
            else {
                return Err(resize::Error::InvalidParameters);
            };
            resize::new(columns.len(), self.from, columns.len(), self.to, RGBA8P, Lanczos3)?
                .resize_stride(from, width, stripe)?;
            for (row, target) in stripe.chunks(columns.len()).zip(target.chunks_mut(width)) {
                if let Some(target) = target.get_mut(columns.clone()) {
                    target.copy_from_slice(row);
                }
            }
        }
        Ok(())
    }
}

fn png(image: &image::RgbaImage) -> Option<Vec<u8>> {
    let mut png = Vec::new();
    PngEncoder::new(&mut png)
        .write_image(
            image.as_raw(),
            image.width(),
            image.height(),
            ExtendedColorType::Rgba8,
        )
        .ok()?;
    Some(png)
}

/// The first form that is small enough: PNG and JPEG in the preferred order, then JPEG in the given order of qualities.
fn encode(image: &image::RgbaImage, preference: Preference) -> Option<(Vec<u8>, &'static str)> {
    let fits = |bytes: &Vec<u8>| encoded_len(bytes.len()) < IMAGE_BASE64_MAX;
    let png = png(image)?;
    if preference == Preference::Png && fits(&png) {
        return Some((png, "image/png"));
    }
    let opaque = DynamicImage::ImageRgba8(image.clone()).into_rgb8();
    let mut forms = JPEG_QUALITIES.iter().map(|quality| jpeg(&opaque, *quality));
    let first = forms.next()??;
    let (preferred, other) = match first.len() < png.len() {
        true => ((first, "image/jpeg"), (png, "image/png")),
        false => ((png, "image/png"), (first, "image/jpeg")),
    };
    let rest = forms.map_while(|bytes| Some((bytes?, "image/jpeg")));
    let mut all = [preferred, other].into_iter().chain(rest);
    all.find(|(bytes, _)| fits(bytes))
}

fn jpeg(image: &image::RgbImage, quality: u8) -> Option<Vec<u8>> {
    let mut jpeg = Vec::new();
    JpegEncoder::new_with_quality(&mut jpeg, quality)
        .write_image(
            image.as_raw(),
            image.width(),
            image.height(),
            ExtendedColorType::Rgb8,
        )
        .ok()?;
    Some(jpeg)
}

#[cfg(test)]
mod tests {
    use super::memory;

    #[test]
    fn image_counts_as_it_is_scaled() {
        // Grey: 400 MB decoded, which is below the limit.
        assert_eq!(memory(20_000, 20_000, 400_000_000), 1_600_000_000);
        // Sixteen bits a channel.
        assert_eq!(memory(10, 10, 800), 800);
    }
}
