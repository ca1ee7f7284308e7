//! Who is waiting for an outcome.

use crate::outbox::Responder;

/// Who asked for something that clients and extensions can ask for, with the reply of the command.
pub(super) enum Asker<R> {
    /// A client.
    Client(Responder<R>),
    /// An extension, by the id of its call.
    Extension(Option<u64>),
}
