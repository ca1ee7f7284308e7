//! Logins: getting tokens by OAuth, keeping them in `auth.json`, renewing them before and during requests (providers.md 9).
//!
//! Here: the browser and the device flow, the file and its locks, renewal. Not here: which credential counts
//! (`registry`), what a request does with a token (the families), asking and telling people (the binary).
//!
//! Anthropic's subscriptions have no login here: that provider offers it to its own programs only. A token that another
//! program stored is sent as what it is until it ends, and never renewed.

mod ask;
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

pub use callback::{Callback, pasted};
pub use endpoints::Endpoints;
pub use error::LoginError;
pub use file::AuthStore;
pub use lent::Credentials;
pub use run::{Login, Step, Way, way};

pub(crate) use ask::ask;
pub(crate) use jwt::account_id;
pub(crate) use keeper::Keeper;
