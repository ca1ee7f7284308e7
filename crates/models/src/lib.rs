//! Which models there are, whose key opens them, and which one a session starts with.
//!
//! Here: the built-in catalogue, `models.json`, `auth.json`, models of local servers, key resolution, model choice, the
//! table of `--list-models`. Not here: requests to providers, OAuth refresh, the process environment, the clock, and
//! child processes; the caller passes environment, time and a command runner in. A `Registry` is a value with one
//! owner: a reload makes a new one.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod advice;
mod catalogue;
mod choose;
mod credentials;
mod error;
mod key_source;
mod keys;
pub mod limits;
pub mod local;
mod local_servers;
mod merge;
mod models_file;
mod nearest;
mod offline;
mod providers;
mod registered;
pub mod snapshot;
mod store;
mod table;
mod value;

#[cfg(test)]
mod tests;

pub use advice::advice;
pub use catalogue::{Catalogue, FILE as CATALOGUE_FILE, Header, Listed, Provider};
pub use choose::{
    Cycled, Resolved, Scoped, Start, StartRequest, cycle, default_problem, resolve, scope, start, unusable,
};
pub use error::{RegistryError, needs_credentials};
pub use key_source::KeySource;
pub use keys::{TOKEN_PROVIDER, TOKEN_VARIABLE};
pub use models_file::{ModelsFile, ProviderDef};
pub use nearest::model_not_found;
pub use registered::{Registered, Registrations};
pub use store::{Env, Registry, RunCommand, Sources};
pub use table::{list_models, search_models};
