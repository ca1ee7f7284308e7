//! A child process as its user sees it: streams, end and kill. The reaper's children are these; tests play them.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use tokio::io::{AsyncRead, AsyncWrite};

use crate::error::ChildError;
use crate::reaper::SpawnSpec;

/// A future in a box.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A readable stream of a child.
pub type Output = Box<dyn AsyncRead + Send + Unpin>;

/// The agent's ends of the standard streams of a child. Dropping `input` tells the child that nothing more will come.
pub struct Pipes {
    /// Writes to the child's standard input.
    pub input: Box<dyn AsyncWrite + Send + Unpin>,
    /// The child's standard output.
    pub output: Output,
    /// The child's standard error.
    pub errors: Output,
}

impl fmt::Debug for Pipes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Pipes").finish_non_exhaustive()
    }
}

/// A process that can be waited for and ended.
pub trait ChildProcess: Send {
    /// Waits for its end and says how it ended. Cancel-safe.
    fn ended(&mut self) -> Boxed<'_, String>;

    /// Bytes of memory that it holds now, where that can be known.
    fn memory(&self) -> Option<u64> {
        None
    }

    /// Ends it with all that it started.
    fn kill(&mut self) -> Boxed<'_, ()>;
}

/// A child and its streams, or why there is none.
pub type Spawned = Result<(Box<dyn ChildProcess>, Pipes), ChildError>;

/// Starts programs.
pub trait Spawn: Send + Sync + fmt::Debug {
    /// Starts one with a pipe for each of its standard streams.
    fn spawn_child(&self, spec: SpawnSpec) -> Boxed<'_, Spawned>;
}
