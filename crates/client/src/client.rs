//! An agent and its first session: start, further sessions, end.

use std::ffi::OsString;
use std::io::Write as _;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use wire::state::SessionState;
use wire::ui::UiMethod;

use crate::error::{Error, Result};
use crate::link::{Link, read};
use crate::options::Options;
use crate::process::Process;
use crate::session::Session;

/// A running agent; dereferences to its first session. Dropping it kills the agent, [`Client::close`] lets it finish.
#[derive(Debug)]
pub struct Client {
    session: Session,
    process: Option<Process>,
    /// Goes away with the client.
    _script: Option<NamedTempFile>,
}

/// What [`Client::open_session`] opens; everything is optional.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenSession {
    /// The handle; without it the agent makes one up.
    pub session: Option<String>,
    /// A session file to go on with.
    pub session_path: Option<String>,
    /// The session's working directory.
    pub cwd: Option<String>,
}

#[derive(Deserialize)]
struct Opened {
    session: String,
}

impl Client {
    /// Starts an agent and waits until it answers.
    ///
    /// # Errors
    /// [`Error::Start`] when it does not; [`Error::Refused`] when it does not take the tools.
    pub async fn start(options: Options) -> Result<Self> {
        let script = options
            .script
            .as_ref()
            .map(|script| write_script(&script.text()))
            .transpose()?;
        let mut more: Vec<OsString> = Vec::new();
        if let Some(file) = &script {
            more.extend(["--model", "offline/script", "--script"].map(OsString::from));
            more.push(file.path().into());
        }
        let (process, stdin, stdout) = Process::start(&options, &more)?;
        let link = Link::new(Box::new(stdin), options.dialogs.clone(), options.times);
        let (seen, reader) = (process.seen().clone(), Arc::clone(&link));
        tokio::spawn(async move {
            let error = match read(&reader, stdout).await {
                Ok(()) => seen.error().await,
                Err(error) => error,
            };
            reader.end(&error);
        });
        let mut client = Self {
            session: Session::new(link, None),
            process: Some(process),
            _script: script,
        };
        match client.greet(&options).await {
            Ok(()) => Ok(client),
            Err(error) => {
                let error = match (error, &client.process) {
                    (Error::Exited { .. }, Some(process)) => {
                        Error::Start(process.seen().clone().error().await.to_string())
                    }
                    (error @ Error::TimedOut { .. }, _) => Error::Start(error.to_string()),
                    (error, _) => error,
                };
                client.stop().await;
                Err(error)
            }
        }
    }

    /// An agent at the other end of a stream, for example a socket. Of the options only tools, dialogs and times count.
    ///
    /// # Errors
    /// Those of [`Client::start`].
    pub async fn over(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        options: Options,
    ) -> Result<Self> {
        let link = Link::new(Box::new(writer), options.dialogs.clone(), options.times);
        let inbound = Arc::clone(&link);
        tokio::spawn(async move {
            let gone = Error::Exited {
                code: None,
                stderr: String::new(),
            };
            let error = read(&inbound, reader).await.err().unwrap_or(gone);
            inbound.end(&error);
        });
        let mut client = Self {
            session: Session::new(link, None),
            process: None,
            _script: None,
        };
        if let Err(error) = client.greet(&options).await {
            // The reading task keeps the writer: without this, the other end would never see the end of the stream.
            client.stop().await;
            return Err(error);
        }
        Ok(client)
    }

    async fn greet(&self, options: &Options) -> Result<()> {
        let limit = options.times.start;
        let first = self.session.call::<serde_json::Value>("get_state", &());
        timeout(limit, first)
            .await
            .map_err(|_| Error::timed_out("no answer", limit))??;
        if options.dialogs.is_some() {
            self.say_what_is_rendered().await?;
        }
        if !options.tools.is_empty() {
            self.session.set_tools(options.tools.clone()).await?;
        }
        Ok(())
    }

    /// So that the agent takes questions back that are over. Agents that do not know how to are asked all the same.
    async fn say_what_is_rendered(&self) -> Result<()> {
        let rendered = UiMethod::ALL.map(UiMethod::as_str);
        let hello = serde_json::json!({ "ui": rendered });
        match self.session.call::<serde_json::Value>("hello", &hello).await {
            Err(error) if !error.is_unknown_command() => Err(error),
            _ => Ok(()),
        }
    }

    /// Opens another session in this process, in a working directory of its own. Needs an agent with many sessions.
    ///
    /// # Errors
    /// [`Error::Refused`] when the agent does not.
    pub async fn open_session(&self, wanted: OpenSession) -> Result<Session> {
        let opened: Opened = self.session.call("open_session", &wanted).await?;
        Ok(Session::new(
            Arc::clone(self.session.link()),
            Some(opened.session),
        ))
    }

    /// Ends the agent: closes its stdin, waits, helps with signals. Gives its exit code, none when a signal ended it.
    pub async fn close(mut self) -> Option<i32> {
        self.stop().await;
        self.process
            .as_ref()
            .and_then(|process| process.seen().code().flatten())
    }

    async fn stop(&mut self) {
        let link = Arc::clone(self.session.link());
        link.close_input().await;
        if let Some(process) = &mut self.process {
            process.stop(link.times.stop).await;
        }
    }

    /// The end of what the agent wrote to stderr.
    #[must_use]
    pub fn stderr(&self) -> String {
        self.process
            .as_ref()
            .map(|process| process.seen().stderr())
            .unwrap_or_default()
    }

    /// The state of the first session.
    ///
    /// # Errors
    /// Those of [`Session::call`].
    pub async fn state(&self) -> Result<SessionState> {
        self.session.state().await
    }
}

impl Deref for Client {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.session
    }
}

fn write_script(text: &str) -> Result<NamedTempFile> {
    let write = || -> std::io::Result<NamedTempFile> {
        let mut file = NamedTempFile::with_prefix("pinion-script-")?;
        file.write_all(text.as_bytes())?;
        Ok(file)
    };
    write().map_err(|error| Error::Script(error.to_string()))
}
