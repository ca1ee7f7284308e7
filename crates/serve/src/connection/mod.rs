//! One connection: the options negotiated with `hello`, the numbers of its events, and the lines it sent last. It sits
//! between the outgoing queues of the sessions and one encoder for each. Here: the filter of events, and the answers to
//! commands of the connection. Not here: the transport of bytes (`writer`, `sink`), the format of lines (`encode`),
//! sessions (`session`).

mod activity;
mod commands;
mod describe;
mod numbers;
mod options;
mod ring;
mod stream;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use session::Origin;
use wire::connection::Snapshot;
use wire::{ConnectionCommand, Event, Reply, Response};

use crate::encode::{Encoder, Repeats};
use crate::limits::BATCH_BYTES;
use crate::manner::WantedUi;

pub use self::commands::{ConnectionRules, EventNumbers, FixedOption, FollowUp, Negotiated, UnknownNumber};
pub use self::options::NegotiatedOptions;

use self::numbers::Numbers;
use self::stream::{SessionStream, Written};

/// The session that says something: the first one, or the handle of another.
pub(crate) type SessionRef<'a> = Option<&'a Arc<str>>;

/// The protocol state of one client: options, numbers, and an encoder per session.
#[derive(Debug)]
pub struct Connection {
    first: SessionStream,
    others: HashMap<Arc<str>, SessionStream>,
    /// Those of the others that something is due of.
    awake: Vec<Arc<str>>,
    rules: ConnectionRules,
    options: NegotiatedOptions,
    /// User interface frames that the client got before `hello`.
    ui_at_first: WantedUi,
    numbers: Numbers,
}

impl From<Encoder> for Connection {
    fn from(encoder: Encoder) -> Self {
        Self::new(encoder, "")
    }
}

impl Connection {
    /// A connection to an agent of this version.
    #[must_use]
    pub fn new(encoder: Encoder, version: &str) -> Self {
        Self {
            options: NegotiatedOptions::new(encoder.manner()),
            ui_at_first: encoder.manner().ui,
            first: SessionStream::new(encoder),
            others: HashMap::new(),
            awake: Vec::new(),
            rules: ConnectionRules {
                version: version.to_owned(),
                instance: None,
                fixed: &[],
                unknown_number: UnknownNumber::Error,
            },
            numbers: Numbers::default(),
        }
    }

    /// The caller writes each batch with [`take_repeats`](Self::take_repeats).
    pub(crate) fn write_repeats(&mut self) {
        self.first.encoder.share_long_text();
    }

    /// The repeats of the batch, which ends here.
    pub(crate) fn take_repeats(&mut self) -> Repeats {
        self.numbers.take_repeats()
    }

    /// Returns true if the client takes long lines in chunks.
    pub(crate) fn sends_chunks(&self) -> bool {
        self.first.encoder.manner().chunks
    }

    /// One more session will have something to say.
    pub(crate) fn join(&mut self, session: &Arc<str>) {
        // An encoder of its own: answers of several sessions stream in at a time. The dialect is shared.
        let encoder = self.first.encoder.for_another();
        self.others
            .insert(Arc::clone(session), SessionStream::new(encoder));
    }

    /// A session has said its last. What it held back is appended.
    pub(crate) fn leave(&mut self, session: &Arc<str>, now: Instant, out: &mut Vec<u8>) {
        // Otherwise it would be lost with the encoder.
        self.write_one(Some(session), now, out, Encoder::finish);
        self.others.remove(session);
    }

    /// All sessions have said their last. What the first one held back is appended; the others have left.
    pub(crate) fn finish(&mut self, now: Instant, out: &mut Vec<u8>) {
        self.write_one(None, now, out, Encoder::finish);
    }

    /// Encodes an event. Appends the lines for it to `out`, now or with a later call.
    pub(crate) fn event(&mut self, from: SessionRef<'_>, event: &Event, now: Instant, out: &mut Vec<u8>) {
        let is_wanted =
            self.options.wants(event.name()) && self.options.wants_session(from.map(AsRef::as_ref));
        let Some(stream) = stream(&mut self.first, &mut self.others, from) else {
            return;
        };
        let slept = !stream.is_awake();
        match stream.note(event, is_wanted, now) {
            Written::Nothing => {}
            Written::Event => {
                let numbering = self.numbers.of(from, self.options.sequence);
                stream.write(numbering, now, out, |encoder, out| encoder.event(event, now, out));
            }
            // The encoder must see the start of an answer whose updates are written. Its line is cut off again, but not the deltas
            // before it, which the client asked for.
            Written::Followed => {
                let numbering = self.numbers.of(from, self.options.sequence);
                stream.write(numbering, now, out, |encoder, out| encoder.flush(now, out));
                let numbering = self.numbers.of(from, self.options.sequence);
                stream.write(numbering, now, out, |encoder, out| {
                    encoder.follow(event, now, out)
                });
            }
        }
        // Only sessions that wait for a time are in the list: a tick must not cost as much as there are sessions.
        if let (true, true, Some(session)) = (slept, stream.is_awake(), from) {
            self.awake.push(Arc::clone(session));
        }
    }

    /// Notes whether the end of a background process may begin a run. A session that only waited for that settles when none may.
    pub(crate) fn pending_wakeup(
        &mut self,
        from: SessionRef<'_>,
        is_pending: bool,
        now: Instant,
        out: &mut Vec<u8>,
    ) {
        self.write_one(from, now, out, |encoder, _, out| {
            encoder.pending_wakeup(is_pending, out);
        });
    }

    /// Appends the deltas that must come before the event, if they alone fill a batch. Returns true if it did: the
    /// event then gets a batch of its own, so that other sessions wait less.
    pub(crate) fn clears_the_way(
        &mut self,
        from: SessionRef<'_>,
        event: &Event,
        now: Instant,
        out: &mut Vec<u8>,
    ) -> bool {
        let Some(stream) = stream(&mut self.first, &mut self.others, from) else {
            return false;
        };
        if stream.encoder.bytes_before(event) < BATCH_BYTES {
            return false;
        }
        let numbering = self.numbers.of(from, self.options.sequence);
        stream.write(numbering, now, out, |encoder, out| {
            encoder.flush_before(event, now, out)
        });
        true
    }

    /// Takes a response and appends it, after deltas that were held back.
    pub(crate) fn response(
        &mut self,
        from: SessionRef<'_>,
        response: &Response,
        now: Instant,
        out: &mut Vec<u8>,
    ) {
        self.flush_one(from, now, out);
        let Some(stream) = stream(&mut self.first, &mut self.others, from) else {
            return;
        };
        let start = out.len();
        stream.encoder.response(response, now, out);
        // A response ends the silence, too.
        stream.said = now;
        let repeats = stream.encoder.take_repeats();
        self.numbers.answered(from, start, repeats, out);
    }

    /// Appends deltas whose delay has ended, and heartbeats. Call it at the end of every batch and at
    /// [`next_deadline`](Self::next_deadline).
    pub(crate) fn tick(&mut self, now: Instant, out: &mut Vec<u8>) {
        self.tick_one(None, now, out);
        // Taken out meanwhile, since `tick_one` borrows the whole connection.
        let awake = std::mem::take(&mut self.awake);
        for session in &awake {
            self.tick_one(Some(session), now, out);
        }
        self.awake = awake;
        let others = &self.others;
        self.awake
            .retain(|session| others.get(session).is_some_and(SessionStream::is_awake));
    }

    fn tick_one(&mut self, from: SessionRef<'_>, now: Instant, out: &mut Vec<u8>) {
        let heartbeat = self.options.heartbeat;
        let Some(stream) = stream(&mut self.first, &mut self.others, from) else {
            return;
        };
        let numbering = self.numbers.of(from, self.options.sequence);
        stream.write(numbering, now, out, |encoder, out| encoder.flush_due(now, out));
        // After the deltas: if some were written, there was no silence.
        if stream.heartbeat_at(heartbeat).is_some_and(|at| at <= now) {
            // As of its other events, a client gets none of a session that it left out.
            if self.options.wants_session(from.map(AsRef::as_ref)) {
                let event = stream.activity.heartbeat(now.duration_since(stream.said));
                let numbering = self.numbers.of(from, self.options.sequence);
                stream.write(numbering, now, out, |encoder, out| {
                    encoder.event(&event, now, out)
                });
            }
            // Also if no line was written: the next one is due after another silence, not at once.
            stream.said = now;
        }
    }

    /// Appends all deltas that were held back.
    pub(crate) fn flush(&mut self, now: Instant, out: &mut Vec<u8>) {
        self.flush_one(None, now, out);
        for session in std::mem::take(&mut self.awake) {
            self.flush_one(Some(&session), now, out);
            // A session that works has heartbeats to come.
            if self.others.get(&session).is_some_and(SessionStream::is_awake) {
                self.awake.push(session);
            }
        }
    }

    fn flush_one(&mut self, from: SessionRef<'_>, now: Instant, out: &mut Vec<u8>) {
        self.write_one(from, now, out, Encoder::flush);
    }

    fn write_one(
        &mut self,
        from: SessionRef<'_>,
        now: Instant,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut Encoder, Instant, &mut Vec<u8>),
    ) {
        let Some(stream) = stream(&mut self.first, &mut self.others, from) else {
            return;
        };
        let numbering = self.numbers.of(from, self.options.sequence);
        stream.write(numbering, now, out, |encoder, out| write(encoder, now, out));
    }

    /// When [`tick`](Self::tick) has something to do at the latest; `None` when nothing waits.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let heartbeat = self.options.heartbeat;
        let awake = self.awake.iter().filter_map(|session| self.others.get(session));
        // The list of awake sessions never has the first one.
        let streams = std::iter::once(&self.first).chain(awake);
        let deadlines =
            streams.flat_map(|stream| [stream.encoder.next_deadline(), stream.heartbeat_at(heartbeat)]);
        deadlines.flatten().min()
    }

    /// Bytes of deltas that are held back.
    pub(crate) fn held_back(&self) -> usize {
        let awake = self.awake.iter().filter_map(|session| self.others.get(session));
        let streams = std::iter::once(&self.first).chain(awake);
        streams.map(|stream| stream.encoder.held_back()).sum()
    }

    /// Carries out a command of the connection and appends its answer. `snapshot` is the session at this place.
    pub(crate) fn answer(
        &mut self,
        from: SessionRef<'_>,
        origin: Origin,
        command: ConnectionCommand,
        snapshot: Option<Box<Snapshot>>,
        now: Instant,
        out: &mut Vec<u8>,
    ) {
        // Deltas of before `hello` are written under the old options and numbers, since the response separates old from
        // new.
        self.flush(now, out);
        // The dialect may have been detected since.
        self.options.dialect = self.first.encoder.manner().dialect;
        let (outcome, follow_up) = self.rules.answer(command, &self.options, &self.numbers, snapshot);
        // The response still has the old form; the new options begin with the line after it.
        self.respond(from, origin, outcome, now, out);
        match follow_up {
            FollowUp::None => {}
            FollowUp::Use(negotiated) => self.negotiated(*negotiated),
            // After the response, which says how many lines come.
            FollowUp::SendAgain(after) => self.numbers.recent().write_after(after, out),
        }
    }

    /// Uses other options from here on. All encoders follow one dialect. Detection goes on for what the client did not name.
    fn negotiated(&mut self, negotiated: Negotiated) {
        let encoder = &self.first.encoder;
        if negotiated.sets_dialect {
            encoder.speak(negotiated.options.dialect);
        }
        // A dialect brings its form along; a form that was named in the same `hello` is in the options already.
        if negotiated.sets_dialect || negotiated.sets_form {
            encoder.set_form(negotiated.options.form());
        }
        if negotiated.sets_ui {
            encoder.set_ui(negotiated.options.wanted_ui(self.ui_at_first));
        }
        self.options = negotiated.options;
    }

    fn respond(
        &mut self,
        from: SessionRef<'_>,
        origin: Origin,
        outcome: Result<Reply, String>,
        now: Instant,
        out: &mut Vec<u8>,
    ) {
        let response = Response {
            id: origin.id,
            command: Some(origin.command.into()),
            outcome,
        };
        self.response(from, &response, now, out);
    }
}

/// Returns the stream state of a session; none after it has left.
fn stream<'a>(
    first: &'a mut SessionStream,
    others: &'a mut HashMap<Arc<str>, SessionStream>,
    from: SessionRef<'_>,
) -> Option<&'a mut SessionStream> {
    match from {
        None => Some(first),
        Some(session) => others.get_mut(session),
    }
}
