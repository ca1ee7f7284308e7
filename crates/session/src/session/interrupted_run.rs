//! The run that a manual compaction interrupts and that goes on after it, as in today's oh-my-pi (dialects.md 14.1). Until then clients
//! do not learn that the session has settled, so that the run and its continuation are one for the prompt.

/// Where the interrupted run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum InterruptedRun {
    /// There is none, or another run has taken its place.
    #[default]
    None,
    /// The compaction is about to abort it.
    Wanted,
    /// It is ending.
    Ending,
    /// It has ended, and clients wait for the session to settle.
    Ended,
    /// As `Ended`, and everything was aborted since: it does not go on.
    Stopped,
}

impl InterruptedRun {
    /// Follows an abort. The first one is that of the compaction, and every later one is for the continuation, too.
    pub(super) fn abort(&mut self) {
        *self = match *self {
            Self::Wanted => Self::Ending,
            Self::Ended | Self::Stopped => Self::Stopped,
            // A second abort while it ends is that of the user: the run settles like any other.
            Self::None | Self::Ending => Self::None,
        };
    }

    /// The run ends and the session settles. Returns true if clients must not know yet.
    pub(super) fn end(&mut self) -> bool {
        let is_held = *self == Self::Ending;
        if is_held {
            *self = Self::Ended;
        }
        is_held
    }

    /// Returns true while clients wait for the session to settle.
    pub(super) fn is_held(self) -> bool {
        matches!(self, Self::Ended | Self::Stopped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_abort_stops_continuation() {
        let mut run = InterruptedRun::Wanted;
        run.abort();
        assert!(run.end() && run.is_held());
        run.abort();
        assert_eq!(run, InterruptedRun::Stopped);
        let mut run = InterruptedRun::Wanted;
        run.abort();
        run.abort();
        assert!(!run.end() && !run.is_held(), "it settles as any other");
    }
}
