//! The driver: owns sessions, carries out what the machine of `pinion_core` wants, and holds what sessions share. What does
//! not live here: how lines are read and written (`serve`), arguments and environment (the binary), decisions about what
//! follows what in a run (`core`).

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod agent;
mod error;
pub mod extensions;
mod hooks;
mod hub;
mod input_record;
pub mod limits;
mod mail;
pub mod mcp;
mod off_thread;
mod outbox;
mod rendered;
mod session;
mod standing;
mod strings;
mod trace;

pub use agent::{Agent, Maker, Options, SessionHome};
pub use error::HostError;
pub use hub::{AgentFor, Hub, Keeping, Lane};
pub use input_record::{InputRecord, InputWriter};
pub use mail::{Mail, Mailbox, Slot, mailbox};
pub use outbox::{ClientId, Origin, Outbox, Outgoing, Responder, WriterGone, outbox};
pub use session::{Answer, Dialog, NoAnswer, Opening, Session, Show, Ui};
