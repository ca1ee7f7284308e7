//! A scripted LLM server: it answers like a provider, byte for byte as a test wants it, and records what it
//! was asked. Here are only the module list and the public names; replies are described in `reply`, `item` and
//! `fault`, put into a provider's form in `encode`, and served by `server`, `conn` and `body`.

mod api;
mod body;
mod conn;
mod dead;
mod encode;
mod errors;
mod expand;
mod fault;
mod gates;
mod http;
mod item;
mod record;
mod reply;
mod script;
mod secs;
mod server;
mod shared;

pub(crate) use encode::pyjson;

pub use api::{Api, FAMILIES};
pub use dead::DeadPort;
pub use errors::ErrorKind;
pub use fault::{Before, Cut, CutHow, End, Framing, Pace};
pub use item::{Deltas, ErrorEvent, Item, Part, Tool, Tools};
pub use record::{Outcome, Recorded, Request};
pub use reply::{ErrorReply, Match, Page, Reply, Usage};
pub use server::ScriptedServer;
pub use shared::Options;
