//! Attempts to connect to a web server, many at once, and their outcomes.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::intake::head;

/// What came of many attempts to connect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    /// They were let in.
    pub(super) taken: usize,
    /// They were told that there is no room.
    pub(super) refused: usize,
    /// Nothing came, while the connection stayed open.
    pub(super) quiet: usize,
    /// The connection broke without an answer.
    pub(super) broken: usize,
    /// Another answer.
    pub(super) other: usize,
}

/// Attempts to connect, whose connections stay open until it is dropped.
#[derive(Debug)]
pub(super) struct Storm {
    /// What came of them.
    pub(super) outcome: Outcome,
    _connections: Vec<TcpStream>,
    _runtime: tokio::runtime::Runtime,
}

impl Storm {
    /// Tries `count` times, `at_once` of them at the same time; sends the request, or nothing at all. An answer may take `wait`.
    pub(super) fn raise(
        address: &str,
        (count, at_once): (usize, usize),
        request: Option<String>,
        wait: Duration,
    ) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (outcome, connections) = runtime.block_on(async {
            let room = Arc::new(tokio::sync::Semaphore::new(at_once));
            let request = request.map(Arc::new);
            let mut attempts = tokio::task::JoinSet::new();
            for _ in 0..count {
                let held = Arc::clone(&room).acquire_owned().await?;
                let (address, request) = (address.to_owned(), request.clone());
                attempts.spawn(async move {
                    let found = attempt(&address, request.as_deref().map(String::as_str), wait).await;
                    drop(held);
                    found
                });
            }
            let (mut outcome, mut connections) = (Outcome::default(), Vec::new());
            while let Some(found) = attempts.join_next().await {
                match found? {
                    (Some(101 | 200), stream) => {
                        outcome.taken += 1;
                        connections.extend(stream);
                    }
                    (Some(503), _) => outcome.refused += 1,
                    (Some(_), _) => outcome.other += 1,
                    (None, Some(stream)) => {
                        outcome.quiet += 1;
                        connections.push(stream);
                    }
                    (None, None) => outcome.broken += 1,
                }
            }
            anyhow::Ok((outcome, connections))
        })?;
        Ok(Self {
            outcome,
            _connections: connections,
            _runtime: runtime,
        })
    }
}

/// The status of the answer, and the connection if it is still open.
async fn attempt(address: &str, request: Option<&str>, wait: Duration) -> (Option<u16>, Option<TcpStream>) {
    let Ok(mut stream) = TcpStream::connect(address).await else {
        return (None, None);
    };
    let mut bytes = Vec::new();
    let asking = async {
        if let Some(request) = request {
            stream.write_all(request.as_bytes()).await?;
        }
        loop {
            if stream.read_buf(&mut bytes).await? == 0 {
                return Err(anyhow!("closed"));
            }
            if let Some((status, _)) = head(&bytes) {
                return Ok(status);
            }
        }
    };
    match tokio::time::timeout(wait, asking).await {
        Ok(Ok(status)) => (Some(status), Some(stream)),
        Ok(Err(_)) => (None, None),
        Err(_) => (None, Some(stream)),
    }
}

/// How many files this program may have open, raised as far as it must be.
pub(super) fn raise_descriptors(to: u64) -> Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= to) {
        return Ok(());
    }
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: Some(maximum.map_or(to, |maximum| maximum.min(to))),
            maximum,
        },
    )
    .context("cannot raise the limit of open files")?;
    ensure!(
        maximum.is_none_or(|maximum| maximum >= to),
        "this needs {to} open files; the hard limit (ulimit -Hn) is lower"
    );
    Ok(())
}
