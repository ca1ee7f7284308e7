//! Which events of a session its clients get, while a client reads and after the input has ended.

use wire::Event;

/// The events that clients get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventScope {
    /// All events: a client reads.
    All,
    /// The input has ended: messages, ends of turns, and what extensions show. As in today's oh-my-pi, whose last lines are the aborted
    /// answer and the end of its turn.
    Messages,
    /// The input has ended: only what extensions show. As in pi, a client that still reads gets the frames of
    /// `session_shutdown` handlers.
    Extensions,
}

impl EventScope {
    /// Returns true while a client reads all events.
    pub(crate) fn is_all(self) -> bool {
        self == Self::All
    }

    /// Returns true if clients get this event.
    pub(crate) fn includes(self, event: &Event) -> bool {
        if self.is_all() {
            return true;
        }
        match event {
            Event::ExtensionUiRequest { request } => request.method.only_shows(),
            // A handler of `session_shutdown`, which runs after the end of the input, may fail, too.
            Event::ExtensionError { .. } => true,
            Event::MessageStart { .. }
            | Event::MessageEnd { .. }
            | Event::TurnStart
            | Event::TurnEnd { .. } => self == Self::Messages,
            _ => false,
        }
    }
}
