//! Who is waiting for an outcome.

use wire::event::CompactionResult;

use crate::outbox::Responder;

/// Who asked for something that clients and extensions can ask for, with the reply of the command.
pub(super) enum Asker<R> {
    /// A client.
    Client(Responder<R>),
    /// An extension, by the id of its call.
    Extension(Option<u64>),
}

/// Who asked for a manual compaction, and how.
pub(super) struct Asked {
    pub(super) asker: Asker<CompactionResult>,
    pub(super) instructions: Option<String>,
}

/// A compaction of which extensions hear.
pub(super) enum EndedCompaction {
    /// The summary is stored. The machine waits for the messages of the branch.
    Stored(CompactionResult),
    /// Who asked for it, and the error. The machine has gone on.
    Failed(Option<Asked>, String),
}
