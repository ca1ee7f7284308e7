//! Logins: getting tokens by OAuth, keeping them in `auth.json`, renewing them before and during requests (providers.md 9).
//!
//! Here: the browser and the device flow, the file, its changes and its locks, renewal. Not here: which credential counts
//! (`models`), what a request does with a token (the families), asking and telling people (the binary).
//!
//! Anthropic's subscriptions have no login here: that provider offers it to its own programs only. A token that another
//! program stored is sent as what it is until it ends, and never renewed.

pub mod alias;
mod ask;
mod auth_file;
mod browser;
mod callback;
mod codex;
mod copilot;
mod device;
mod endpoints;
mod error;
mod fields;
mod file;
mod http;
pub mod json_file;
mod jwt;
mod keeper;
mod lent;
pub mod limits;
mod lock;
mod pkce;
mod run;
mod tokens;

#[cfg(test)]
mod tests;

pub use auth_file::{AuthEntry, AuthFile};
pub use callback::{Callback, pasted};
pub use copilot::copilot_address;
pub use endpoints::Endpoints;
pub use error::LoginError;
pub use file::AuthStore;
pub use lent::Credentials;
pub use run::{Login, Step, Way, way};

pub(crate) use ask::ask;
pub(crate) use jwt::account_id;
pub(crate) use keeper::Keeper;
