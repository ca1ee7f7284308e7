//! Tests of sniffing and shrinking on images made here.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::{DynamicImage, ImageFormat, RgbImage};

use super::*;

const DOT_PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
const DOT_GIF: &str = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7";

fn make(width: u32, height: u32, format: ImageFormat, noise: bool) -> Vec<u8> {
    let mut seed = 1_u32;
    let image = RgbImage::from_fn(width, height, |x, y| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if noise {
            image::Rgb(seed.to_be_bytes()[..3].try_into().unwrap())
        } else {
            image::Rgb([x as u8, y as u8, 7])
        }
    });
    let mut out = std::io::Cursor::new(Vec::new());
    DynamicImage::ImageRgb8(image).write_to(&mut out, format).unwrap();
    out.into_inner()
}

#[test]
fn image_type_is_sniffed_from_bytes() {
    let png = make(2, 2, ImageFormat::Png, false);
    let mut animated = png.clone();
    animated.splice(33..33, *b"\0\0\0\x08acTL\0\0\0\x01\0\0\0\0\0\0\0\0");
    for (bytes, mime) in [
        (png.as_slice(), Some("image/png")),
        (&animated, None),
        (b"\x89PNG\r\n\x1a\n", None),
        (&make(2, 2, ImageFormat::Jpeg, false), Some("image/jpeg")),
        (b"\xff\xd8\xff\xf7", None),
        (b"GIF89a", Some("image/gif")),
        (b"GIF87a", Some("image/gif")),
        (b"GIFs are fun", None),
        (&make(2, 2, ImageFormat::WebP, false), Some("image/webp")),
        (b"RIFF1234WAVE", None),
        (b"", None),
    ] {
        assert_eq!(sniff(bytes), mime);
    }
}

#[test]
fn image_results_match_recording() {
    // tool-read-image, tool-read-image-gif
    for (data, mime) in [(DOT_PNG, "image/png"), (DOT_GIF, "image/gif")] {
        let bytes = STANDARD.decode(data).unwrap();
        let result = result(&bytes, sniff(&bytes).unwrap(), true, true, Preference::Png);
        assert_eq!(result.joined_text(), format!("Read image file [{mime}]"));
        let image = UserBlock::Image(ImageContent {
            data: data.to_owned(),
            mime_type: mime.to_owned(),
            extra: wire::Extra::default(),
        });
        assert_eq!((result.content.len(), result.content.last()), (2, Some(&image)));
    }
    let blind = result(
        &STANDARD.decode(DOT_PNG).unwrap(),
        "image/png",
        true,
        false,
        Preference::Png,
    );
    assert!(blind.joined_text().ends_with(
        "\n[Current model does not support images. The image will be omitted from this request.]"
    ));
    let broken = result(b"\xff\xd8\xff broken", "image/jpeg", true, true, Preference::Png);
    assert_eq!(
        (broken.joined_text().as_str(), broken.content.len()),
        (
            "Read image file [image/jpeg]\n[Image omitted: could not be resized below the inline image size limit.]",
            1
        )
    );
}

/// As pi 1.5.2 does it.
#[test]
fn bmp_is_sent_as_png() {
    let bmp = make(3, 2, ImageFormat::Bmp, false);
    assert!(is_bmp(&bmp) && sniff(&bmp).is_none());
    for text in [
        b"BM".as_slice(),
        b"BMW builds cars, and this text is long enough for a header",
    ] {
        assert!(!is_bmp(text));
    }
    for shrink in [true, false] {
        let result = result(&bmp, BMP, shrink, true, Preference::Png);
        assert_eq!(
            result.joined_text(),
            "Read image file [image/png]\n[Image converted from image/bmp to image/png.]"
        );
        let Some(UserBlock::Image(image)) = result.content.last() else {
            panic!("{result:?}")
        };
        let decoded = image::load_from_memory(&STANDARD.decode(&image.data).unwrap()).unwrap();
        assert_eq!((decoded.width(), decoded.height()), (3, 2));
    }
    let broken = result(&bmp[..40], BMP, true, true, Preference::Png);
    assert_eq!(
        broken.joined_text(),
        "Read image file [image/bmp]\n[Image omitted: could not be converted to a supported inline image format.]"
    );
    // The type that a client or server names does not count.
    assert_eq!(resize(&bmp, "image/png", Preference::Png), None);
}

#[test]
fn large_images_are_resized() {
    let wide = resize(
        &make(3000, 1000, ImageFormat::Png, false),
        "image/png",
        Preference::Png,
    )
    .unwrap();
    assert_eq!(wide.mime_type, "image/png");
    assert_eq!(
        wide.note.unwrap(),
        "[Image: original 3000x1000, displayed at 2000x667. Multiply coordinates by 1.50 to map to original image.]"
    );
    let decoded = image::load_from_memory(&STANDARD.decode(wide.data).unwrap()).unwrap();
    assert_eq!((decoded.width(), decoded.height()), (2000, 667));
    let gif = resize(
        &make(2001, 3, ImageFormat::Gif, false),
        "image/gif",
        Preference::Png,
    )
    .unwrap();
    assert_eq!(gif.mime_type, "image/png");
}

#[test]
fn noisy_image_becomes_jpeg() {
    let noise = resize(
        &make(2200, 2200, ImageFormat::Jpeg, true),
        "image/jpeg",
        Preference::Png,
    )
    .unwrap();
    assert_eq!(noise.mime_type, "image/jpeg");
    assert!(
        noise.note.unwrap().contains("displayed at 2000x2000") && noise.data.len() < limits::IMAGE_BASE64_MAX
    );
}

#[test]
fn newest_pi_prefers_smaller_form() {
    let noise = make(2200, 200, ImageFormat::Png, true);
    for (dialect, mime) in [
        (wire::Dialect::Auto, "image/png"),
        (wire::Dialect::PiDelta, "image/jpeg"),
    ] {
        let resized = resize(&noise, "image/png", dialect.into()).unwrap();
        assert_eq!(resized.mime_type, mime);
    }
    let tiny = make(2001, 1, ImageFormat::Png, false);
    let resized = resize(&tiny, "image/png", Preference::Smaller).unwrap();
    assert!(resized.note.is_some() && resized.data.len() < 20_000);
}

#[test]
fn image_bomb_is_refused_by_header() {
    // 30000 x 30000 pixels in a few bytes.
    let mut png = STANDARD.decode(DOT_PNG).unwrap();
    png.splice(16..24, [0, 0, 0x75, 0x30, 0, 0, 0x75, 0x30]);
    assert_eq!(resize(&png, "image/png", Preference::Png), None);
}

#[test]
fn shrunk_image_equals_reference_within_rounding() {
    // Sizes that are no multiple of the lines scaled together, and a picture with smooth and with sharp places.
    let image = RgbImage::from_fn(2_301, 103, |x, y| {
        let sharp = if (x / 9 + y / 7) % 2 == 0 { 215 } else { 40 };
        image::Rgb([(x % 256) as u8, (y % 256) as u8, sharp])
    });
    let mut bytes = std::io::Cursor::new(Vec::new());
    image.write_to(&mut bytes, ImageFormat::Png).unwrap();
    let shrunk = resize(&bytes.into_inner(), "image/png", Preference::Png).unwrap();
    let shrunk = image::load_from_memory(&STANDARD.decode(&shrunk.data).unwrap())
        .unwrap()
        .to_rgb8();
    assert_eq!(shrunk.dimensions(), (2_000, 90));
    let reference = image::imageops::resize(&image, 2_000, 90, image::imageops::FilterType::Lanczos3);
    let furthest = shrunk
        .iter()
        .zip(reference.iter())
        .map(|(ours, theirs)| ours.abs_diff(*theirs))
        .max();
    assert!(furthest <= Some(4), "{furthest:?}");
}
