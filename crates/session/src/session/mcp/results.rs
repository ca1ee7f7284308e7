//! What the model is shown of what a server gives: texts up to a length, pictures that it can take; all else goes into files
//! that are named.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use ::mcp::{Block, Outcome};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use tools::image::{Preference, Resized, resize, sniff};
use tools::text::clean::clean;
use uuid::Uuid;
use wire::{Extra, ImageContent, ToolResult, UserBlock};

use crate::limits;

/// Where results go that are too large for a model.
pub(crate) struct Room {
    pub(crate) dir: PathBuf,
    /// Large images are made smaller.
    pub(crate) shrink: bool,
}

/// The bytes that the texts of one result may still have.
struct TextBudget {
    /// Bytes that may still be shown.
    left: usize,
    /// Texts for which nothing was left.
    rest: Vec<String>,
}

/// The result of a tool. Blocks; writes files.
pub(super) fn shown(outcome: Outcome, room: &Room) -> ToolResult {
    let mut content = Vec::new();
    // One budget for all texts: many small ones fill the context like a large one.
    let mut budget = TextBudget {
        left: limits::MCP_TEXT,
        rest: Vec::new(),
    };
    for block in outcome.blocks {
        let block = match block {
            Block::Text(text) => UserBlock::text(room.text(&text, &mut budget)),
            Block::Image { data, mime } => room.image(&data, &mime),
            Block::Binary { data, mime, uri } => {
                let about = uri.unwrap_or_default();
                UserBlock::text(room.file(&data, &mime, &about))
            }
            Block::Link { uri, about } => {
                UserBlock::text(room.text(&format!("[Resource {uri}: {about}]"), &mut budget))
            }
        };
        // Past the limit texts are empty, and thousands of empty blocks only cost tokens.
        if !matches!(&block, UserBlock::Text(text) if text.text.is_empty()) {
            content.push(block);
        }
    }
    // In one file: notices and files of their own would have no bound.
    if !budget.rest.is_empty() {
        let place = room.write(budget.rest.join("\n\n").as_bytes(), "txt");
        content.push(UserBlock::text(format!("[Further texts: {place}]")));
    }
    let mut details = Map::new();
    // All or nothing: a part of it would have another structure.
    if let Some(structured) = outcome.structured
        && structured.to_string().len() <= limits::MCP_STRUCTURED
    {
        details.insert("structuredContent".to_owned(), structured);
    }
    ToolResult {
        content,
        // An error has details, even if they are empty (behaviour.md 2.9).
        details: (outcome.is_error || !details.is_empty()).then_some(Value::Object(details)),
        structured_content: None,
        usage: None,
        terminate: None,
        has_failed: false,
        is_replaced: false,
    }
}

impl Room {
    /// A text without control sequences, its middle left out if it is too long; the whole of it is in a file then. Empty if the
    /// budget is used up.
    fn text(&self, text: &str, budget: &mut TextBudget) -> String {
        let text = clean(text.as_bytes());
        // By the whole length: after a text that was cut, nothing is left for the next ones.
        let left = budget.left.saturating_sub(text.len());
        let most = std::mem::replace(&mut budget.left, left);
        if text.len() <= most {
            return text;
        }
        if most == 0 {
            budget.rest.push(text);
            return String::new();
        }
        let (head, tail) = (
            text.floor_char_boundary(most / 2),
            text.ceil_char_boundary(text.len() - most / 2),
        );
        let (begin, end) = (
            text.get(..head).unwrap_or_default(),
            text.get(tail..).unwrap_or_default(),
        );
        let cut = text.get(head..tail).unwrap_or_default().chars().count();
        let place = self.write(text.as_bytes(), "txt");
        format!("{begin}…{cut} chars truncated…{end}\n\n[Full text: {place}]")
    }

    fn image(&self, data: &str, mime: &str) -> UserBlock {
        let Ok(bytes) = STANDARD.decode(data.trim()) else {
            return UserBlock::text("[Image omitted: it is not base64]");
        };
        // By the bytes: the type that a server names may be wrong.
        let Some(mime) = sniff(&bytes) else {
            return UserBlock::text(self.file(data, mime, "an image of a form that models do not take"));
        };
        let fits = data.len() <= tools::limits::IMAGE_BASE64_MAX;
        let image = if self.shrink {
            resize(&bytes, mime, Preference::Png).map(|Resized { data, mime_type, .. }| (data, mime_type))
        } else {
            fits.then(|| (data.trim().to_owned(), mime.to_owned()))
        };
        match image {
            Some((data, mime_type)) => UserBlock::Image(ImageContent {
                data,
                mime_type,
                extra: Extra::default(),
            }),
            None => UserBlock::text(self.file(data, mime, "an image that is too large or broken")),
        }
    }

    /// Bytes that a model cannot see.
    fn file(&self, data: &str, mime: &str, about: &str) -> String {
        let Ok(bytes) = STANDARD.decode(data.trim()) else {
            return format!("[{mime} {about}: not base64]");
        };
        // The server chose it, and it becomes part of a file name.
        let kind = mime.rsplit('/').next().unwrap_or_default();
        let kind: String = kind.chars().filter(char::is_ascii_alphanumeric).take(8).collect();
        let place = self.write(&bytes, if kind.is_empty() { "bin" } else { &kind });
        format!("[{mime} {about}, {} bytes: {place}]", bytes.len())
    }

    /// Writes a file for its owner only and says where it is.
    fn write(&self, bytes: &[u8], kind: &str) -> String {
        let path = self
            .dir
            .join(format!("pinion-mcp-{}.{kind}", Uuid::new_v4().simple()));
        // Only a new file: the directory may be writable for others, who could have put a link there.
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path);
        match file.and_then(|mut file| file.write_all(bytes)) {
            Ok(()) => path.display().to_string(),
            Err(error) => format!("it could not be written: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(dir: &tempfile::TempDir) -> Room {
        Room {
            dir: dir.path().to_path_buf(),
            shrink: true,
        }
    }

    fn texts(result: &ToolResult) -> Vec<&str> {
        let texts = result.content.iter().map(|block| match block {
            UserBlock::Text(text) => text.text.as_str(),
            _ => "<image>",
        });
        texts.collect()
    }

    #[test]
    fn large_mcp_text_is_truncated_and_saved() {
        let dir = tempfile::tempdir().unwrap();
        let text = format!("begin{}end", "é".repeat(5 << 20));
        let blocks = vec![
            Block::Text(text.clone()),
            Block::Text("more".to_owned()),
            Block::Text(String::new()),
        ];
        let result = shown(
            Outcome {
                blocks,
                ..Outcome::default()
            },
            &room(&dir),
        );
        let shown = texts(&result);
        assert!(shown[0].len() < limits::MCP_TEXT + 300, "{}", shown[0].len());
        assert!(shown[0].starts_with("begin") && shown[0].contains("chars truncated…"));
        let place = shown[0]
            .rsplit("[Full text: ")
            .next()
            .unwrap()
            .trim_end_matches(']');
        assert_eq!(std::fs::read_to_string(place).unwrap(), text);
        assert_eq!(shown.len(), 2, "what is empty is left out");
    }

    #[test]
    fn many_texts_past_the_limit_share_one_file() {
        let dir = tempfile::tempdir().unwrap();
        let full = "x".repeat(limits::MCP_TEXT);
        let more = (0..500).map(|n| Block::Text(format!("text {n}")));
        let blocks = [Block::Text(full.clone())].into_iter().chain(more);
        let result = shown(
            Outcome {
                blocks: blocks.collect(),
                ..Outcome::default()
            },
            &room(&dir),
        );
        let shown = texts(&result);
        assert_eq!((shown.len(), shown[0]), (2, full.as_str()));
        let place = shown[1].strip_prefix("[Further texts: ").unwrap();
        let rest = std::fs::read_to_string(place.trim_end_matches(']')).unwrap();
        assert!(rest.starts_with("text 0\n\ntext 1\n\n") && rest.ends_with("\n\ntext 499"));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn binary_results_and_odd_images_become_files() {
        let dir = tempfile::tempdir().unwrap();
        let data = STANDARD.encode(b"RIFFsound");
        let blocks = vec![
            Block::Binary {
                data: data.clone(),
                mime: "audio/wav".to_owned(),
                uri: None,
            },
            Block::Image {
                data,
                mime: "image/tiff".to_owned(),
            },
            Block::Image {
                data: "§".to_owned(),
                mime: "image/png".to_owned(),
            },
        ];
        let result = shown(
            Outcome {
                blocks,
                ..Outcome::default()
            },
            &room(&dir),
        );
        let shown = texts(&result);
        assert!(
            shown[0].contains("9 bytes") && shown[0].contains(".wav]"),
            "{shown:?}"
        );
        assert!(shown[1].contains("image/tiff"), "{shown:?}");
        assert_eq!(shown[2], "[Image omitted: it is not base64]");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    }
}
