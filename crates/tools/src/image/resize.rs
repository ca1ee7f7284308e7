//! Makes an image small enough for a model (pi-core.md 5.3). Every decoding failure means "cannot be sent".

use std::io::Cursor;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fast_image_resize as fir;
use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::PngEncoder;
use image::{DynamicImage, ExtendedColorType, ImageDecoder as _, ImageEncoder as _, ImageReader, Limits};

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

const JPEG_QUALITIES: [u8; 5] = [80, 85, 70, 55, 40];

/// Shrinks an image to at most 2000 pixels on a side and 4.5 MiB of base64; unchanged when it is within both. None when it
/// cannot be decoded or made small enough. Blocks, and takes a while for large images.
#[must_use]
pub fn resize(bytes: &[u8], mime: &str) -> Option<Resized> {
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
        if let Some((bytes, mime)) = candidates(&small) {
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
    limits.reserve(decoder.total_bytes()).ok()?;
    let orientation = decoder.orientation().ok();
    let mut image = DynamicImage::from_decoder(decoder).ok()?;
    if let Some(orientation) = orientation {
        image.apply_orientation(orientation);
    }
    Some(image)
}

fn scale(image: &DynamicImage, width: u32, height: u32) -> Option<image::RgbaImage> {
    let source = image.to_rgba8();
    if (source.width(), source.height()) == (width, height) {
        return Some(source);
    }
    let (w, h) = (source.width(), source.height());
    let source = fir::images::Image::from_vec_u8(w, h, source.into_raw(), fir::PixelType::U8x4).ok()?;
    let mut target = fir::images::Image::new(width, height, fir::PixelType::U8x4);
    let options =
        fir::ResizeOptions::new().resize_alg(fir::ResizeAlg::Convolution(fir::FilterType::Lanczos3));
    fir::Resizer::new().resize(&source, &mut target, &options).ok()?;
    image::RgbaImage::from_raw(width, height, target.into_vec())
}

/// The first form that is small enough: PNG, then JPEG in the given order of qualities.
fn candidates(image: &image::RgbaImage) -> Option<(Vec<u8>, &'static str)> {
    let (width, height) = image.dimensions();
    let fits = |bytes: &Vec<u8>| encoded_len(bytes.len()) < IMAGE_BASE64_MAX;
    let mut png = Vec::new();
    PngEncoder::new(&mut png)
        .write_image(image.as_raw(), width, height, ExtendedColorType::Rgba8)
        .ok()?;
    if fits(&png) {
        return Some((png, "image/png"));
    }
    let opaque = DynamicImage::ImageRgba8(image.clone()).into_rgb8();
    JPEG_QUALITIES.iter().find_map(|quality| {
        let mut jpeg = Vec::new();
        let encoder = JpegEncoder::new_with_quality(&mut jpeg, *quality);
        encoder
            .write_image(opaque.as_raw(), width, height, ExtendedColorType::Rgb8)
            .ok()?;
        fits(&jpeg).then_some((jpeg, "image/jpeg"))
    })
}
