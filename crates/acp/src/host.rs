//! The services that the embedding program gives to a connection.

use std::sync::Arc;

use crate::accounts::Accounts;
use crate::port::ClientPort;

/// The services of the embedding program.
pub struct Host {
    /// Version of the program.
    pub version: String,
    /// Logins.
    pub accounts: Arc<dyn Accounts>,
    /// Requests of tools to the client.
    pub port: ClientPort,
    /// The sessions are on workers, which have other clients, too.
    pub is_gateway: bool,
}
