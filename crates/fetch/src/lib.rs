//! Web pages as Markdown: the `fetch` tool (docs/guides/fetch.md).
//!
//! What lives here: which addresses may be asked, the request with its bounds, the conversion. What does not: whether the model may call
//! the tool and for which hosts (`session`, `permissions`), TLS and certificates (given by [`WebClients`]).

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod address;
mod fetcher;
pub mod limits;
mod page;
mod table;

pub use address::{Allowed, parse};
pub use reqwest::dns::Resolve;

pub use fetcher::{ClientFuture, FetchConfig, Fetched, Fetcher, WebClients};

/// The name of the tool.
pub const TOOL: &str = "fetch";
