//! The transports of the agent: bytes in, commands out; events in, bytes out.
//!
//! What lives here: the line codec, the step from a line to a command, the encoder that writes events without quadratic
//! cost, and the two ends of stdio with bounded queues. Commands are defined in `wire` and executed in `session`. Only
//! this crate writes to stdout.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod budget;
pub mod codec;
pub mod connection;
pub mod encode;
mod error;
mod frames;
pub mod intake;
pub mod limits;
pub mod manner;
pub mod parse;
pub mod queues;
mod scan;
pub mod sink;
pub mod stdin;
pub mod stdio;
#[cfg(test)]
mod tests;
pub mod writer;

pub use codec::{Line, LineReader};
pub use connection::Connection;
pub use encode::{Encoder, Form, Piece};
pub use error::Error;
pub use manner::{Manner, Spoken, WantedUi};
pub use parse::{Inbound, Request, line_text, parse_line};
pub use sink::Sink;
pub use stdin::StdinOptions;
pub use stdio::take_stdout;
pub use writer::StdoutWriter;
