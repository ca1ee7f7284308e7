//! Logins: `authMethods`, `authenticate` and `logout`. The session logs in; what the embedding program must do is in
//! [`Accounts`].

use std::pin::Pin;

use serde_json::{Value, json};

use crate::client::{Capability, Client};
use crate::rpc::{Failure, INVALID_PARAMS};

/// Ends the ids of methods that need a terminal.
const TERMINAL: &str = "-terminal";

/// A provider that users can log in to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provider {
    /// The id for the command `login`.
    pub id: String,
    /// The name for users.
    pub name: String,
}

/// The outcome of a logout; the error is a message for the user.
pub type LoggingOut = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

/// What the embedding program does for logins.
pub trait Accounts: Send + Sync {
    /// The providers that users can log in to.
    fn providers(&self) -> Vec<Provider>;

    /// Returns true for the error of a prompt whose model has no usable credentials.
    fn needs_login(&self, error: &str) -> bool;

    /// Arguments with which the program logs in to a provider in a terminal.
    fn terminal_args(&self, provider: &str) -> Vec<String>;

    /// Opens a page in the user's browser.
    ///
    /// # Errors
    /// When there is no browser. The message is for the user.
    fn open_page(&self, url: &str) -> Result<(), String>;

    /// Removes the stored logins of all [`providers`](Self::providers). Stored API keys stay.
    fn log_out(&self) -> LoggingOut;
}

/// The member `authMethods`.
pub(crate) fn methods(accounts: &dyn Accounts, client: &Client) -> Value {
    let providers = accounts.providers();
    let agent = providers.iter().map(|Provider { id, name }| {
        json!({
            "id": id,
            "name": name,
            "description": format!("Log in to {name} in the browser"),
            "type": "agent",
        })
    });
    let has_terminal = client.has(Capability::LoginTerminal);
    let terminal = providers.iter().filter(|_| has_terminal);
    let terminal = terminal.map(|Provider { id, name }| {
        json!({
            "id": format!("{id}{TERMINAL}"),
            "name": format!("{name} (terminal)"),
            "description": format!("Log in to {name} in a terminal"),
            "type": "terminal",
            "args": accounts.terminal_args(id),
            "env": {},
        })
    });
    agent.chain(terminal).collect()
}

/// The provider of an authentication method.
///
/// # Errors
/// When there is no such method, or the client has to run it itself.
pub(crate) fn provider(accounts: &dyn Accounts, method: &str) -> Result<String, Failure> {
    let providers = accounts.providers();
    let has = |id: &str| providers.iter().any(|provider| provider.id == id);
    if has(method) {
        return Ok(method.to_owned());
    }
    let message = if method.strip_suffix(TERMINAL).is_some_and(has) {
        "The client runs this authentication method in a terminal".to_owned()
    } else {
        let shown: String = method.chars().take(100).collect();
        format!("There is no authentication method {shown:?}")
    };
    Err(Failure::new(INVALID_PARAMS, message))
}
