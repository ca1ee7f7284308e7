//! A file of a directory as the body of a response, read piece by piece as the client takes it. The page needs no
//! token, so a client that does not read must cost neither the file's length in memory nor an open file.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::body::{Body, Bytes};
use futures_util::{StreamExt as _, stream};

use crate::limits::WEB_FILE_BYTES;

/// What has to stay the same while a file is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
}

impl Identity {
    fn of(metadata: &std::fs::Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }
}

/// The body of the file at `path`, which has this `metadata`.
///
/// # Errors
/// When the file cannot be read.
pub(super) async fn body(path: PathBuf, metadata: &std::fs::Metadata) -> io::Result<Body> {
    let identity = Identity::of(metadata);
    let path: Arc<Path> = path.into();
    let first = piece(Arc::clone(&path), identity, 0).await?;
    let next = first.len() as u64;
    let rest = stream::try_unfold((path, next), move |(path, offset)| async move {
        if offset >= identity.bytes {
            return Ok(None);
        }
        let piece = piece(Arc::clone(&path), identity, offset).await?;
        let next = offset + piece.len() as u64;
        Ok::<_, io::Error>(Some((piece, (path, next))))
    });
    let first = stream::once(async { Ok(first) });
    Ok(Body::from_stream(first.chain(rest)))
}

/// Reads the piece at `offset` on a blocking thread.
async fn piece(path: Arc<Path>, identity: Identity, offset: u64) -> io::Result<Bytes> {
    let reading = tokio::task::spawn_blocking(move || read(&path, identity, offset));
    reading.await.map_err(io::Error::other)?
}

/// Reads the piece at `offset`. Fails if another file is there by now, since its pieces would not fit.
fn read(path: &Path, identity: Identity, offset: u64) -> io::Result<Bytes> {
    let file = File::open(path)?;
    if Identity::of(&file.metadata()?) != identity {
        return Err(io::Error::other("the file has changed"));
    }
    let left = usize::try_from(identity.bytes - offset).unwrap_or(usize::MAX);
    let mut piece = vec![0; left.min(WEB_FILE_BYTES)];
    file.read_exact_at(&mut piece, offset)?;
    Ok(piece.into())
}
