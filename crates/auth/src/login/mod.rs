//! Logins: getting tokens by OAuth, keeping them in `auth.json`, renewing them before and during requests (providers.md 9).
//!
//! Here: the browser and the device flow, the file, its changes and its locks, renewal. Not here: which credential counts
//! (`models`), what a request does with a token (`llm`), asking and telling people (the binary).
//!
//! Anthropic's subscriptions have no login here: that provider offers it to its own programs only. A token that another
//! program stored is sent as what it is until it ends, and never renewed.

pub mod alias;
mod auth_file;
mod browser;
mod callback;
mod chatgpt;
mod clock;
mod codex;
mod copilot;
mod device;
mod device_clients;
mod endpoints;
mod error;
mod fields;
mod file;
pub mod json_file;
mod jwt;
mod lent;
pub mod limits;
mod lock;
mod meta;
mod methods;
mod openrouter;
mod pkce;
mod refresher;
mod run;
mod step;

mod token_server;
mod tokens;
mod way;

#[cfg(test)]
mod tests;

pub use auth_file::{AuthEntry, AuthFile};
pub use callback::{Callback, pasted};
pub use clock::NEVER_MS;
pub use codex::ORIGINATOR;
pub use copilot::copilot_address;
pub use endpoints::Endpoints;
pub use error::LoginError;
pub use file::AuthStore;
pub use jwt::account_id;
pub use lent::Credentials;
pub use refresher::{Token, TokenRefresher};
pub use run::Login;
pub use step::Step;
pub use way::{LOGIN_PROVIDERS, LoginProvider, Way, login_provider, renews, way};
