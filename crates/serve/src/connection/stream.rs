//! The output of one session on a connection: its encoder, its activity, and the updates that were left out. Event
//! numbers and negotiated options belong to the connection.

use std::time::{Duration, Instant};

use wire::{Event, Message};

use crate::encode::Encoder;

use super::activity::Activity;
use super::numbers::Numbering;

/// The output state of one session on a connection.
#[derive(Debug)]
pub(crate) struct SessionStream {
    pub(crate) encoder: Encoder,
    pub(crate) activity: Activity,
    /// When something was said last.
    pub(crate) said: Instant,
    /// Updates of the answer that streams in were left out; the rest of them would say nothing without those.
    left_out: bool,
}

impl SessionStream {
    pub(crate) fn new(encoder: Encoder) -> Self {
        Self {
            encoder,
            activity: Activity::default(),
            said: Instant::now(),
            left_out: false,
        }
    }

    /// Follows an event; says whether it is to be written, if its name is wanted.
    pub(crate) fn note(&mut self, event: &Event, is_wanted: bool, now: Instant) -> Written {
        // A client may ask for updates in the middle of an answer. It gets them from the next answer on.
        // Updates go first: most events are updates, and they change no activity.
        if matches!(event, Event::MessageUpdate { .. }) {
            self.left_out |= !is_wanted;
            return match self.left_out {
                true => Written::Nothing,
                false => Written::Event,
            };
        }
        let was_busy = self.activity.is_busy();
        self.activity.note(event);
        if self.activity.is_busy() && !was_busy {
            // Silence before a run is none of the run's.
            self.said = now;
        }
        if matches!(event, Event::MessageStart { message } if matches!(**message, Message::Assistant(_))) {
            self.left_out = false;
        }
        if is_wanted {
            Written::Event
        } else {
            Written::Followed
        }
    }

    /// Has the encoder write lines of this session, and adds the members that a line of a connection has. Lines end the silence.
    pub(crate) fn write(
        &mut self,
        numbering: Numbering<'_>,
        now: Instant,
        out: &mut Vec<u8>,
        encode: impl FnOnce(&mut Encoder, &mut Vec<u8>),
    ) {
        let start = out.len();
        encode(&mut self.encoder, out);
        // Taken for these lines alone, since their places count from the beginning of the batch and lines get longer here.
        let repeats = self.encoder.take_repeats();
        if numbering.sent(start, repeats, out) {
            self.said = now;
        }
    }

    /// Returns true if it needs a tick without a new event.
    pub(crate) fn is_awake(&self) -> bool {
        self.encoder.held_back() > 0 || self.activity.is_busy()
    }

    /// When a heartbeat is due, if one is wanted after so many seconds of silence.
    pub(crate) fn heartbeat_at(&self, seconds: Option<u64>) -> Option<Instant> {
        let seconds = seconds?;
        self.activity
            .is_busy()
            .then(|| self.said + Duration::from_secs(seconds))
    }
}

/// What becomes of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    /// It is written.
    Event,
    /// Only the encoder follows it: the beginning of an answer says what its updates are about.
    Followed,
    /// No line: the client did not ask for the event.
    Nothing,
}
