//! `@file` arguments.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tempfile::TempDir;

use crate::args::error::UsageError;
use crate::args::files::FileParts;
use crate::args::read_files;

const JPEG: &[u8] = &[0xff, 0xd8, 0xff, 0xe0, 1, 2, 3];

fn read(dir: &Path, names: &[&str]) -> Result<FileParts, UsageError> {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    read_files(&names, dir, Some(&dir.join("home")))
}

fn png(animated: bool) -> Vec<u8> {
    let mut out = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut chunk = |kind: &[u8; 4], data: &[u8]| {
        out.extend(u32::try_from(data.len()).unwrap().to_be_bytes());
        out.extend(kind);
        out.extend(data);
        out.extend([0; 4]);
    };
    chunk(b"IHDR", &[0; 13]);
    if animated {
        chunk(b"acTL", &[0; 8]);
    }
    chunk(b"IDAT", &[0; 4]);
    out
}

#[test]
fn file_arguments_keep_order_of_text_and_images() {
    let tmp = TempDir::new().unwrap();
    let dir = tmp.path();
    fs::create_dir(dir.join("home")).unwrap();
    fs::write(dir.join("a.txt"), "\u{feff}one\n").unwrap();
    fs::write(dir.join("b.bin"), JPEG).unwrap();
    fs::write(dir.join("empty"), "").unwrap();
    fs::write(dir.join("home/c"), "three").unwrap();

    let parts = read(dir, &["a.txt", "./b.bin", "empty", "~/c"]).unwrap();
    let at = dir.display();
    assert_eq!(
        parts.text,
        format!(
            "<file name=\"{at}/a.txt\">\none\n\n</file>\n<file name=\"{at}/b.bin\"></file>\n\
             <file name=\"{at}/home/c\">\nthree\n</file>\n"
        )
    );
    assert_eq!(parts.images.len(), 1);
    assert_eq!(parts.images[0].mime_type, "image/jpeg");
    assert_eq!(STANDARD.decode(&parts.images[0].data).unwrap(), JPEG);
}

#[test]
fn image_files_are_recognised_by_content() {
    let tmp = TempDir::new().unwrap();
    let (still, moving) = (png(false), png(true));
    let table: &[(&[u8], Option<&str>)] = &[
        (JPEG, Some("image/jpeg")),
        (&[0xff, 0xd8, 0xff, 0xf7], None),
        (&still, Some("image/png")),
        (&moving, None),
        (b"GIF89a....", Some("image/gif")),
        (b"GIFT ideas", None),
        (b"RIFF\x01\x02\x03\x04WEBPVP8 ", Some("image/webp")),
        (b"RIFF\x01\x02\x03\x04WAVEfmt ", None),
        (b"\x89PNG\r\n\x1a\n", None),
    ];
    for (bytes, mime) in table {
        fs::write(tmp.path().join("f"), bytes).unwrap();
        let parts = read(tmp.path(), &["f"]).unwrap();
        let found = parts.images.first().map(|image| image.mime_type.as_str());
        assert_eq!(found, *mime, "{bytes:?}");
    }
}

#[test]
fn file_names_match_despite_unicode_blanks() {
    let tmp = TempDir::new().unwrap();
    fs::write(tmp.path().join("a b"), "x").unwrap();
    fs::write(tmp.path().join("c\u{a0}d"), "y").unwrap();
    assert!(read(tmp.path(), &["a\u{202f}b"]).unwrap().text.contains("\nx\n"));
    assert!(read(tmp.path(), &["c\u{a0}d"]).unwrap().text.contains("\ny\n"));
}

#[test]
fn unreadable_file_argument_is_named() {
    let tmp = TempDir::new().unwrap();
    let missing = read(tmp.path(), &["nope"]).unwrap_err().to_string();
    assert_eq!(missing, format!("File not found: {}/nope", tmp.path().display()));
    let directory = read(tmp.path(), &["."]).unwrap_err().to_string();
    assert!(directory.ends_with("it is a directory"), "{directory}");
}
