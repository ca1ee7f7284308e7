//! The driver: owns sessions, carries out what the machine of `agent` wants, and holds what sessions share. What does
//! not live here: how lines are read and written (`serve`), arguments and environment (the binary), decisions about what
//! follows what in a run (`agent`).

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod answer_routes;
mod error;
mod event_scope;
pub mod extensions;
mod factory;
mod hooks;
mod input_record;
pub mod limits;
mod listener_queue;
mod live_state;
mod manager;
pub mod mcp;
mod off_thread;
mod outbox;
mod reply_size;
mod requests;
mod retired;
mod session;
mod strings;
mod timeouts;
mod trace;
mod ui_capabilities;

pub use error::SessionError;
pub use factory::{Agent, AgentFactory, Options, PromptCaching, SessionHome, ToolFilter};
pub use input_record::{InputRecord, InputWriter};
pub use llm::{is_context_overflow, is_retryable};
pub use manager::{AgentByDirectory, Eviction, Lane, SessionManager};
pub use outbox::{ClientId, Origin, Outbox, Outgoing, Responder, WriterGone, outbox};
pub use requests::{RequestReceiver, RequestSender, SessionRequest, request_queue};
pub use session::{Answer, Dialog, NoAnswer, Opening, PROCESS_TOOL, Session, Show, Ui, when_closed};
