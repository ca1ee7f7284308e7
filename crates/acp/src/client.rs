//! What the client can do, as it says in `initialize`.

use serde_json::{Map, Value};

/// A capability of a client that changes what Pinion sends to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Capability {
    /// Runs the program in a terminal for a login.
    LoginTerminal,
    /// Shows forms (`elicitation/create`).
    Forms,
    /// Opens pages (`elicitation/create`).
    Pages,
    /// Shows notices.
    Notices,
    /// Shows compactions.
    Compactions,
    /// Reads text files.
    ReadFiles,
    /// Writes text files.
    WriteFiles,
    /// Runs commands in terminals.
    Terminals,
}

impl Capability {
    /// Where the capability is in `clientCapabilities`.
    const fn pointer(self) -> &'static str {
        match self {
            Self::LoginTerminal => "/auth/terminal",
            Self::Forms => "/elicitation/form",
            Self::Pages => "/elicitation/url",
            Self::Notices => "/session/notices",
            Self::Compactions => "/session/compaction",
            Self::ReadFiles => "/fs/readTextFile",
            Self::WriteFiles => "/fs/writeTextFile",
            Self::Terminals => "/terminal",
        }
    }
}

/// The capabilities of a client. Before `initialize` it has none.
#[derive(Debug, Default)]
pub(crate) struct Client(Value);

impl Client {
    /// Reads the parameters of `initialize`. Members of the wrong type count as absent.
    pub(crate) fn read(params: &Map<String, Value>) -> Self {
        Self(params.get("clientCapabilities").cloned().unwrap_or_default())
    }

    /// Returns true if the client has announced the capability: `true` or an object.
    pub(crate) fn has(&self, capability: Capability) -> bool {
        match self.0.pointer(capability.pointer()) {
            Some(Value::Bool(has)) => *has,
            Some(value) => value.is_object(),
            None => false,
        }
    }
}
