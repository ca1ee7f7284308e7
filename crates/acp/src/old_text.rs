//! The text of a file before a call replaces it. The tool waits 6 ms before the change, so that clients can read the file.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::limits::{OLD_TEXT, OLD_TEXT_WAIT};

/// Reads a file. `None` if there is no such text file, it is longer than [`OLD_TEXT`], or reading takes longer than
/// [`OLD_TEXT_WAIT`].
pub(crate) async fn read(path: PathBuf) -> Option<String> {
    let reading = spawn_blocking(move || read_file(&path));
    timeout(OLD_TEXT_WAIT, reading).await.ok()?.ok()?
}

fn read_file(path: &Path) -> Option<String> {
    let metadata = fs::metadata(path).ok()?;
    // Opening a named pipe would wait for its writer.
    if !metadata.is_file() || metadata.len() > OLD_TEXT {
        return None;
    }
    let mut text = String::new();
    let file = File::open(path).ok()?;
    file.take(OLD_TEXT).read_to_string(&mut text).ok()?;
    Some(text)
}
