//! Options to start an agent. The library reads no environment; the agent's own defaults apply to missing options.

use std::ffi::OsString;
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;

use crate::dialog::{Answer, Dialog, Handler};
use crate::limits;
use crate::script::Script;
use crate::tool::HostTool;

/// Limits of all waits.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// Until the agent answers for the first time.
    pub start: Duration,
    /// For the answer of a command.
    pub command: Duration,
    /// For the answer of a command that runs a shell or asks the model.
    pub slow: Duration,
    /// Longest silence in a run.
    pub idle: Duration,
    /// For an answer to a dialog.
    pub dialog: Duration,
    /// Each for the end after stdin is closed, after SIGTERM and after SIGKILL.
    pub stop: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            start: limits::START,
            command: limits::COMMAND,
            slow: limits::SLOW,
            idle: limits::IDLE,
            dialog: limits::DIALOG,
            stop: limits::STOP,
        }
    }
}

/// How to start an agent.
#[derive(Debug, Clone)]
pub struct Options {
    pub(crate) program: OsString,
    pub(crate) args: Vec<OsString>,
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) tools: Vec<HostTool>,
    pub(crate) dialogs: Option<Handler>,
    pub(crate) script: Option<Script>,
    pub(crate) times: Times,
}

impl Options {
    /// Starts this program in RPC mode, its events in the linear form.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            args: ["--mode", "rpc", "--rpc-dialect", "pi-delta"]
                .map(Into::into)
                .to_vec(),
            cwd: None,
            env: Vec::new(),
            tools: Vec::new(),
            dialogs: None,
            script: None,
            times: Times::default(),
        }
    }

    /// Another argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// The model: `provider/id`.
    #[must_use]
    pub fn model(self, model: &str) -> Self {
        self.arg("--model").arg(model)
    }

    /// A session to go on with: file or beginning of its id.
    #[must_use]
    pub fn session(self, session: impl Into<OsString>) -> Self {
        self.arg("--session").arg(session)
    }

    /// Keeps nothing on disk.
    #[must_use]
    pub fn no_session(self) -> Self {
        self.arg("--no-session")
    }

    /// The agent's working directory.
    #[must_use]
    pub fn cwd(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.cwd = Some(cwd.into());
        self
    }

    /// Adds a variable to the agent's environment, in addition to those of this process.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Tools of the host for the first session.
    #[must_use]
    pub fn tools(mut self, tools: impl IntoIterator<Item = HostTool>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Who answers dialogs. Without it they are cancelled at once. A dialog whose handler panics is cancelled.
    #[must_use]
    pub fn on_dialog<F, W>(mut self, handler: F) -> Self
    where
        F: Fn(Dialog) -> W + Send + Sync + 'static,
        W: Future<Output = Answer> + Send + 'static,
    {
        self.dialogs = Some(Handler(Arc::new(move |dialog| handler(dialog).boxed())));
        self
    }

    /// Plays these replies instead of asking a model.
    #[must_use]
    pub fn script(mut self, script: Script) -> Self {
        self.script = Some(script);
        self
    }

    /// Keeps everything that providers are asked and answer in this file, without keys.
    #[must_use]
    pub fn record(self, file: impl Into<OsString>) -> Self {
        self.arg("--record").arg(file)
    }

    /// This file, which was recorded, answers in place of providers. No network and no keys are needed.
    #[must_use]
    pub fn replay(self, file: impl Into<OsString>) -> Self {
        self.arg("--replay").arg(file)
    }

    /// Limits of the waits.
    #[must_use]
    pub fn times(mut self, times: Times) -> Self {
        self.times = times;
        self
    }
}
