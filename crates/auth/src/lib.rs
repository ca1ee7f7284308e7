//! Credentials: the keys and logins of `auth.json`, tokens and their renewal, the credential chains of clouds, and redaction.
//!
//! What lives here: reading and changing `auth.json`, logins in the browser and with a code, refreshing tokens once for all
//! sessions and processes, credentials of AWS and Google Cloud, and taking all of them out of texts. What does not: which
//! credential counts for a provider (`models`), what a request does with it (`llm`), asking and telling people (the binary).
//!
//! This crate knows neither `llm` nor `models`: its user lends it HTTP clients ([`HttpClients`]) and the variables of
//! a provider ([`Environment`]). No environment reads.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod cloud;
mod environment;
mod http;
pub mod limits;
pub mod login;
mod secret;
pub mod secrets;
pub mod text;

pub use environment::Environment;
pub use http::{ClientFuture, HttpClients, NO_SERVER_RUNS, UsedProxy, connection_error};
pub use secret::Secret;
pub use secrets::Secrets;
