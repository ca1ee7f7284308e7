//! Files and commands of the client. An editor may serve the text of files with unsaved changes, take changes, and run
//! commands in its terminals. Tools use it in place of the disk and of processes of their own; what decides whether a call may
//! run comes before, and with a sandbox everything stays local.

use std::fmt;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::{binary, image, limits};

/// An answer of the client. Dropping it withdraws the request.
pub type Asked<T> = Pin<Box<dyn Future<Output = Result<T, ClientError>> + Send>>;

/// Why the client did not answer a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// The client refused it, for this reason.
    #[error("{0}")]
    Refused(String),
    /// There is no client for the session, or it has gone.
    #[error("the client is gone")]
    Gone,
}

/// What a client can serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// Reads text files.
    Read,
    /// Writes text files.
    Write,
    /// Runs commands.
    Run,
}

/// The call that a request to the client is for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caller {
    /// Id of the session.
    pub session: String,
    /// Id of the tool call.
    pub call: String,
}

/// A command for the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCommand {
    /// The program.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables added to the environment of the client.
    pub env: Vec<(String, String)>,
    /// Working directory, absolute.
    pub cwd: PathBuf,
    /// Bytes of output that the client keeps, from the end.
    pub output_limit: u64,
}

/// The output of a command so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientOutput {
    /// The text.
    pub text: String,
    /// True if its beginning is lost.
    pub truncated: bool,
}

/// How a command of the client ended. Both are none if the client does not know.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientExit {
    /// Exit code.
    pub code: Option<i32>,
    /// Name of the signal that killed it.
    pub signal: Option<String>,
}

/// A command that runs in the client. Dropping it ends the command and releases its terminal.
pub trait ClientProcess: Send + Sync {
    /// Waits for its end. The wait has no limit of its own.
    fn ended(&self) -> Asked<ClientExit>;

    /// Returns the output so far.
    fn output(&self) -> Asked<ClientOutput>;

    /// Kills it. The output can be read afterwards.
    fn kill(&self) -> Asked<()>;
}

/// The client of a process.
pub trait Client: fmt::Debug + Send + Sync {
    /// Returns true if the client serves requests of this kind.
    fn serves(&self, service: Service) -> bool;

    /// Reads a text file, with unsaved changes.
    fn read(&self, caller: &Caller, path: &Path) -> Asked<String>;

    /// Writes a text file.
    fn write(&self, caller: &Caller, path: &Path, text: &str) -> Asked<()>;

    /// Starts a command.
    fn run(&self, caller: &Caller, command: ClientCommand) -> Asked<Box<dyn ClientProcess>>;
}

/// The client as one call uses it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallClient<'a> {
    pub(crate) client: &'a Arc<dyn Client>,
    pub(crate) caller: &'a Caller,
}

impl CallClient<'_> {
    /// Returns the text of a file. `None` if only the disk has it: the file is no text, or the client refuses.
    ///
    /// # Errors
    /// The text for the model, when the call was aborted or the client did not answer.
    pub(crate) async fn text(
        self,
        path: &Path,
        cancel: &CancellationToken,
    ) -> Result<Option<String>, String> {
        let checked = path.to_path_buf();
        let is_text = spawn_blocking(move || may_be_text(&checked)).await;
        if !is_text.unwrap_or(false) {
            return Ok(None);
        }
        let answer = within(cancel, Duration::ZERO, self.client.read(self.caller, path)).await?;
        Ok(answer.ok())
    }

    /// Writes a file. Returns false if the client does not know the session, so that only the disk is left.
    ///
    /// # Errors
    /// The text for the model, when the call was aborted, or the client refused or did not answer.
    pub(crate) async fn put(
        self,
        path: &Path,
        text: &str,
        cancel: &CancellationToken,
    ) -> Result<bool, String> {
        let asked = self.client.write(self.caller, path, text);
        match within(cancel, limits::WRITE_GRACE, asked).await? {
            Ok(()) => Ok(true),
            Err(ClientError::Gone) => Ok(false),
            Err(error) => Err(format!("The client did not write {}: {error}", path.display())),
        }
    }

    /// Starts a command. `None` if the client does not know the session.
    ///
    /// # Errors
    /// The text for the model, when the call was aborted, or the client refused or did not answer.
    pub(crate) async fn start(
        self,
        command: ClientCommand,
        cancel: &CancellationToken,
    ) -> Result<Option<Box<dyn ClientProcess>>, String> {
        let asked = self.client.run(self.caller, command);
        match within(cancel, Duration::ZERO, asked).await? {
            Ok(process) => Ok(Some(process)),
            Err(ClientError::Gone) => Ok(None),
            Err(error) => Err(format!("The client did not run the command: {error}")),
        }
    }
}

/// Waits for an answer. After an abort it may take `grace`.
async fn within<T>(
    cancel: &CancellationToken,
    grace: Duration,
    asked: Asked<T>,
) -> Result<Result<T, ClientError>, String> {
    let aborted = async {
        cancel.cancelled().await;
        sleep(grace).await;
    };
    tokio::select! {
        biased;
        answer = asked => Ok(answer),
        () = aborted => Err("Operation aborted".to_owned()),
        () = sleep(limits::CLIENT_WAIT) => {
            let seconds = limits::CLIENT_WAIT.as_secs();
            Err(format!("The client did not answer within {seconds} seconds"))
        }
    }
}

/// A file that is not there may be a buffer that was never saved. A file that is no text is read from the disk.
fn may_be_text(path: &Path) -> bool {
    let Ok(metadata) = fs::metadata(path) else {
        return true;
    };
    if !metadata.is_file() || metadata.len() > limits::CLIENT_FILE_MAX {
        return false;
    }
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(limits::SNIFF_BYTES as u64).read_to_end(&mut head));
    read.is_ok() && image::sniff(&head).is_none() && binary::kind(&head).is_none()
}
