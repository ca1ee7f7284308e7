//! A tool call as rules look at it.

use std::path::PathBuf;

use super::paths::Place;
use super::question::Source;
use super::shell::Script;

/// A call that may or may not run.
#[derive(Debug, Clone)]
pub struct Call {
    /// The tool, by the name that the model calls.
    pub(super) tool: String,
    /// The tool's name before it was shortened, if that can differ.
    pub(super) full_name: Option<String>,
    pub(super) subject: Subject,
    /// What a consent for the session is bound to in addition; see `question`.
    identity: Option<String>,
}

/// What a call is about.
#[derive(Debug, Clone)]
pub(super) enum Subject {
    /// A command line.
    Command(Box<Script>),
    /// A file or a directory.
    File(Place),
    /// A URI of the host.
    Uri(String),
    /// Something that rules cannot look into.
    Unknown,
    /// It reaches nothing outside of its run.
    Nothing,
}

impl Call {
    /// A command line for the shell.
    #[must_use]
    pub fn command(tool: &str, command: &str) -> Self {
        Self::new(tool, Subject::Command(Box::new(Script::parse(command))))
    }

    /// Input that is typed into a program, which may be a shell: judged like a command line of `tool`.
    #[must_use]
    pub fn input(tool: &str, input: &str) -> Self {
        Self::new(tool, Subject::Command(Box::new(Script::typed(input))))
    }

    /// A file: `named` is the path in the call, absolute and without `..`; `real` is the same with every link followed.
    #[must_use]
    pub fn file(tool: &str, named: PathBuf, real: PathBuf) -> Self {
        Self::new(tool, Subject::File(Place { named, real }))
    }

    /// A URI of the host.
    #[must_use]
    pub fn uri(tool: &str, uri: &str) -> Self {
        Self::new(tool, Subject::Uri(uri.to_owned()))
    }

    /// A tool whose arguments mean nothing here.
    #[must_use]
    pub fn other(tool: &str) -> Self {
        Self::new(tool, Subject::Unknown)
    }

    /// A tool that reaches nothing outside of its run. Only a deny or ask rule concerns it.
    #[must_use]
    pub fn harmless(tool: &str) -> Self {
        Self::new(tool, Subject::Nothing)
    }

    fn new(tool: &str, subject: Subject) -> Self {
        Self {
            tool: tool.to_owned(),
            full_name: None,
            subject,
            identity: None,
        }
    }

    /// The same call, if a consent for the session covers no other definition and arguments of the tool.
    #[must_use]
    pub fn bound_to(self, identity: Option<String>) -> Self {
        Self { identity, ..self }
    }

    /// The same call of a tool from this source. Rules judge the full name of a tool of an MCP server as well.
    #[must_use]
    pub fn from_source(self, source: &Source) -> Self {
        let full_name = match source {
            Source::McpServer { full_name, .. } => Some(full_name.clone()),
            _ => None,
        };
        Self { full_name, ..self }
    }

    /// The file that it is about, with every link followed.
    #[must_use]
    pub fn real_file(&self) -> Option<PathBuf> {
        match &self.subject {
            Subject::File(place) => Some(place.real.clone()),
            _ => None,
        }
    }

    /// What two calls have in common that are the same to the user.
    pub(super) fn key(&self) -> String {
        let about = match &self.subject {
            Subject::Command(script) => script.text().to_owned(),
            Subject::File(place) => place.real.to_string_lossy().into_owned(),
            Subject::Uri(uri) => uri.clone(),
            Subject::Unknown | Subject::Nothing => String::new(),
        };
        let identity = self.identity.as_deref().unwrap_or_default();
        format!("{identity}\0{}\0{about}", self.tool)
    }

    /// What it is about: the command, the path, the URI. Empty when that is not known.
    #[must_use]
    pub fn shown(&self) -> String {
        match &self.subject {
            Subject::Command(script) => script.text().to_owned(),
            // A name that says itself where it leads must not be taken at its word.
            Subject::File(place)
                if place.real == place.named && !place.named.to_string_lossy().contains("(which is ") =>
            {
                place.named.to_string_lossy().into_owned()
            }
            Subject::File(place) => format!("{} (which is {})", place.named.display(), place.real.display()),
            Subject::Uri(uri) => uri.clone(),
            Subject::Unknown | Subject::Nothing => String::new(),
        }
    }
}
