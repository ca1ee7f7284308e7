//! Images in session files of oh-my-pi (dialects.md 12). It stores the bytes of an image in a file, `blobs/HASH` next to the directory
//! `sessions`, and a reference in the entry. The entry keeps the reference; models and clients get the image.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use files::Boundaries;
use wire::message::UserContent;
use wire::{Message, UserBlock};

use crate::limits::{BLOB_BYTES, BLOBS_BYTES};
use crate::strings;

/// What a reference begins with. The SHA-256 of the bytes follows, which is the name of the file.
const REFERENCE: &str = "blob:sha256:";

/// Puts images in the place of references to them. A text takes the place of an image that cannot be read, since no provider accepts
/// the reference. A file from elsewhere can name an image of the user many times, so that all of them together have a limit, which the
/// newest ones use first.
pub(super) fn restore(messages: &mut [Arc<Message>], session_file: Option<&Path>) {
    restore_within(messages, session_file, BLOBS_BYTES);
}

/// `room`: bytes of base64.
fn restore_within(messages: &mut [Arc<Message>], session_file: Option<&Path>, mut room: usize) {
    let dir = session_file.and_then(directory);
    for message in messages.iter_mut().rev() {
        if !blocks(message).iter().any(|block| reference(block).is_some()) {
            continue;
        }
        for block in blocks_mut(Arc::make_mut(message)) {
            let Some(hash) = reference(block) else { continue };
            let readable = dir.as_deref().filter(|_| room > 0);
            let data = readable.and_then(|dir| read(dir, hash)).filter(|data| {
                // After the first image without room, no other is read.
                let left = room.checked_sub(data.len());
                room = left.unwrap_or_default();
                left.is_some()
            });
            match (data, block) {
                (Some(data), UserBlock::Image(image)) => image.data = data,
                (_, block) => *block = UserBlock::text(strings::MISSING_IMAGE),
            }
        }
    }
}

/// The directory of images for a session file, which may be that of a sub-agent.
fn directory(session_file: &Path) -> Option<PathBuf> {
    let mut above = session_file.ancestors().skip(1);
    let sessions = above.find(|dir| dir.file_name().is_some_and(|name| name == "sessions"))?;
    Some(sessions.parent()?.join("blobs"))
}

/// The hash that a block refers to.
fn reference(block: &UserBlock) -> Option<&str> {
    let UserBlock::Image(image) = block else {
        return None;
    };
    image.data.strip_prefix(REFERENCE)
}

/// The content of a file as base64. The session file may come from elsewhere, so its reference must be a hash and lead to no file outside
/// of the directory.
fn read(dir: &Path, hash: &str) -> Option<String> {
    if hash.len() != 64 || !hash.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let root = Boundaries::default().beneath(dir);
    let (bytes, is_cut) = root.read_bytes(&dir.join(hash), BLOB_BYTES).ok()?;
    (!is_cut).then(|| STANDARD.encode(bytes))
}

fn blocks(message: &Message) -> &[UserBlock] {
    match message {
        Message::ToolResult(result) => &result.content,
        Message::User(user) => content(&user.content),
        Message::Custom(custom) => content(&custom.content),
        _ => &[],
    }
}

fn content(content: &UserContent) -> &[UserBlock] {
    match content {
        UserContent::Blocks(blocks) => blocks,
        UserContent::Text(_) => &[],
    }
}

fn blocks_mut(message: &mut Message) -> &mut [UserBlock] {
    let content = match message {
        Message::ToolResult(result) => return &mut result.content,
        Message::User(user) => &mut user.content,
        Message::Custom(custom) => &mut custom.content,
        _ => return &mut [],
    };
    match content {
        UserContent::Blocks(blocks) => blocks,
        UserContent::Text(_) => &mut [],
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    fn messages(data: &str) -> Vec<Arc<Message>> {
        let image = json!({"type": "image", "data": data, "mimeType": "image/png"});
        let user = json!({"role": "user", "content": [image.clone()], "timestamp": 1});
        let result = json!({"role": "toolResult", "toolCallId": "c", "toolName": "read", "content": [image],
            "isError": false, "timestamp": 2});
        let read = |message: serde_json::Value| Arc::new(Message::from_json(&message.to_string()).unwrap());
        vec![read(user), read(result)]
    }

    #[test]
    fn image_of_oh_my_pi_is_read_from_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let (hash, other) = ("0a".repeat(32), "1b".repeat(32));
        let blobs = dir.path().join("blobs");
        fs::create_dir(&blobs).unwrap();
        fs::write(blobs.join(&hash), b"image").unwrap();
        let file = dir.path().join("sessions/-work/session/sub.jsonl");
        let restored = |name: &str| {
            let mut messages = messages(&format!("{REFERENCE}{name}"));
            restore(&mut messages, Some(&file));
            messages
                .iter()
                .map(|message| blocks(message)[0].clone())
                .collect::<Vec<_>>()
        };
        for block in restored(&hash) {
            let UserBlock::Image(image) = block else {
                panic!("{block:?}")
            };
            assert_eq!(
                (image.data.as_str(), image.mime_type.as_str()),
                ("aW1hZ2U=", "image/png")
            );
        }
        let mut both = messages(&format!("{REFERENCE}{hash}"));
        restore_within(&mut both, Some(&file), "aW1hZ2U=".len());
        assert_eq!(blocks(&both[0]), [UserBlock::text(strings::MISSING_IMAGE)]);
        assert!(matches!(&blocks(&both[1])[0], UserBlock::Image(image) if image.data == "aW1hZ2U="));
        fs::write(dir.path().join(&hash), b"secret").unwrap();
        std::os::unix::fs::symlink(dir.path().join(&hash), blobs.join(&other)).unwrap();
        for name in [other, format!("../{hash}"), String::new()] {
            assert!(
                restored(&name)
                    .iter()
                    .all(|block| *block == UserBlock::text(strings::MISSING_IMAGE))
            );
        }
        let mut plain = messages("aW1hZ2U=");
        let same = plain.clone();
        restore(&mut plain, None);
        assert_eq!(plain, same);
    }
}
