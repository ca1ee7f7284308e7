//! What the tools are given: configuration, the context of one call, and the slot their progress goes into.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use wire::{Dialect, ToolResult};

use process::Sandbox;

use crate::client::{Caller, Client};

/// What all calls of a toolbox share.
#[derive(Debug, Clone, Default)]
pub struct ToolsConfig {
    /// Where logs of long outputs go.
    pub tmp_dir: PathBuf,
    /// What `~` stands for.
    pub home: Option<PathBuf>,
    /// The shell of `bash`; none means `/bin/bash`, else `bash` or `sh` from the path.
    pub shell_path: Option<PathBuf>,
    /// Lines put before every command.
    pub shell_command_prefix: Option<String>,
    /// Timeout of a `bash` call that names none; none is without end.
    pub bash_timeout: Option<Duration>,
    /// Directory put first in the `PATH` of commands.
    pub bin_dir: Option<PathBuf>,
    /// The whole environment of commands, already without secrets.
    pub env: Vec<(OsString, OsString)>,
    /// Shrink images that are too large for a model.
    pub auto_resize_images: bool,
    /// What an edit that only matched in normalised form does to the lines it did not touch.
    pub fuzzy_edit: FuzzyEdit,
    /// What tools are confined to, if to anything.
    pub sandbox: Option<Sandbox>,
    /// The client, if it may serve files and commands.
    pub client: Option<Arc<dyn Client>>,
    /// The dialect that the process starts with: results of `write` and `edit` depend on it (pi-1.5-delta.md 7).
    pub dialect: Dialect,
}

/// What happens to the rest of a file when an edit needed the normalised form (pi-core.md 5.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FuzzyEdit {
    /// The whole file is written back normalised, as the recorded agent does.
    #[default]
    RewriteFile,
    /// Only the touched lines are; all others keep their bytes (pi-1.5-delta.md 7).
    KeepRest,
}

/// A call of a tool.
#[derive(Debug, Clone, Default)]
pub struct ToolRequest {
    /// Tool name as the model wrote it.
    pub name: String,
    /// Arguments as the model wrote them.
    pub args: serde_json::Map<String, serde_json::Value>,
}

/// What one call may use.
#[derive(Debug, Clone, Default)]
pub struct ToolContext {
    /// The session's working directory, absolute.
    pub cwd: PathBuf,
    /// Cancelled when the run is aborted.
    pub cancel: CancellationToken,
    /// Where partial results go.
    pub progress: Progress,
    /// True if the model accepts images.
    pub sees_images: bool,
    /// Variables added to the environment of this call's command, such as the session id.
    pub env: Vec<(OsString, OsString)>,
    /// The call for requests to the client. None keeps the call local.
    pub caller: Option<Caller>,
    /// Keeps files that `edit` and `write` change as they were, so that they can be restored; absent without checkpoints.
    pub changes: Option<Arc<dyn ChangeRecorder>>,
    /// The line that announces the call to a client; absent without a client that could read the file.
    pub start_line: Option<Arc<dyn StartLine>>,
}

/// The `tool_execution_start` line of a call.
pub trait StartLine: std::fmt::Debug + Send + Sync {
    /// Resolves when the line was written, or when no client will get it. Bounded.
    fn written(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// Keeps files as they were before a tool changes them.
pub trait ChangeRecorder: std::fmt::Debug + Send + Sync {
    /// The file at this absolute path is about to change. Blocks.
    ///
    /// # Errors
    /// The text for the model: the file cannot be recorded, so it must not be changed.
    fn begin(&self, path: &Path) -> Result<Box<dyn PendingChange>, String>;
}

/// A change that is under way.
pub trait PendingChange: Send {
    /// The change was made, or not. Blocks.
    fn end(self: Box<Self>);
}

/// What a tool came to.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutcome {
    /// The result.
    pub result: ToolResult,
    /// True if the call failed.
    pub is_error: bool,
}

impl ToolOutcome {
    /// A success.
    #[must_use]
    pub fn ok(result: ToolResult) -> Self {
        Self {
            result,
            is_error: false,
        }
    }

    /// A failure with the text the model sees.
    #[must_use]
    pub fn error(text: impl Into<String>) -> Self {
        Self {
            result: ToolResult::error(text),
            is_error: true,
        }
    }
}

impl From<Result<ToolResult, String>> for ToolOutcome {
    fn from(result: Result<ToolResult, String>) -> Self {
        result.map_or_else(Self::error, Self::ok)
    }
}

/// A slot for the latest partial result. A new one replaces an unread one, so it never grows. After the call has ended,
/// the reader takes once more, to get the last update before the result.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    slot: Mutex<Option<ToolResult>>,
    changed: Notify,
}

impl Progress {
    /// Replaces the partial result.
    pub fn put(&self, partial: ToolResult) {
        *self.shared.slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(partial);
        self.shared.changed.notify_one();
    }

    /// Takes the partial result, if there is a new one.
    #[must_use]
    pub fn take(&self) -> Option<ToolResult> {
        self.shared
            .slot
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// Waits for a new partial result. Cancel-safe; for one reader.
    pub async fn next(&self) -> ToolResult {
        loop {
            if let Some(partial) = self.take() {
                return partial;
            }
            self.shared.changed.notified().await;
        }
    }
}
