//! One connection: what was agreed on with `hello`, the numbers of its events, what was sent last. It stands between the
//! queues of what sessions have to say and the encoders, one for each. Here: which events are sent, and the answers to the
//! commands that belong to the connection. Not here: bytes on their way (`writer`, `sink`), the shape of lines (`encode`), sessions (`host`).

mod activity;
mod agreement;
mod describe;
mod numbers;
mod ring;
mod voice;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use host::Origin;
use wire::command::{HelloParams, NoParams, ReplayParams};
use wire::connection::{Protocol, Replayed, Snapshot, Welcome};
use wire::table::ConnectionHandler;
use wire::{ConnectionCommand, Event, Reply, Response};

use crate::encode::Encoder;
use crate::limits::BATCH_BYTES;
use crate::manner::WantedUi;

pub(crate) use self::agreement::Agreement;
pub(crate) use self::describe::protocol;
use self::numbers::Numbers;
use self::voice::{Voice, Written};

/// `replay` came where no session is.
pub(crate) const NO_SNAPSHOT: &str = "There is no session to show";

/// The session that says something: the first one, or the handle of another.
pub(crate) type From<'a> = Option<&'a Arc<str>>;

/// See the module's page.
#[derive(Debug)]
pub struct Connection {
    first: Voice,
    others: HashMap<Arc<str>, Voice>,
    /// Those of the others that something is due of.
    awake: Vec<Arc<str>>,
    /// Version of the agent.
    version: String,
    agreement: Agreement,
    /// Frames that were wanted before anybody said hello.
    ui_at_first: WantedUi,
    numbers: Numbers,
}

impl std::convert::From<Encoder> for Connection {
    fn from(encoder: Encoder) -> Self {
        Self::new(encoder, "")
    }
}

impl Connection {
    /// A connection to an agent of this version.
    #[must_use]
    pub fn new(encoder: Encoder, version: &str) -> Self {
        Self {
            agreement: Agreement::new(encoder.manner()),
            ui_at_first: encoder.manner().ui,
            first: Voice::new(encoder),
            others: HashMap::new(),
            awake: Vec::new(),
            version: version.to_owned(),
            numbers: Numbers::default(),
        }
    }

    /// One more session will have something to say.
    pub(crate) fn join(&mut self, session: &Arc<str>) {
        let encoder = self.first.encoder.for_another();
        self.others.insert(Arc::clone(session), Voice::new(encoder));
    }

    /// A session has said its last. What it held back is appended.
    pub(crate) fn leave(&mut self, session: &Arc<str>, now: Instant, out: &mut Vec<u8>) {
        self.flush_one(Some(session), now, out);
        self.others.remove(session);
    }

    /// Takes an event. What is to be sent of it is appended to `out`, now or later.
    pub(crate) fn event(&mut self, from: From<'_>, event: &Event, now: Instant, out: &mut Vec<u8>) {
        let is_wanted =
            self.agreement.wants(event.name()) && self.agreement.wants_session(from.map(AsRef::as_ref));
        let Some(voice) = voice(&mut self.first, &mut self.others, from) else {
            return;
        };
        let slept = !voice.is_awake();
        match voice.note(event, is_wanted, now) {
            Written::Nothing => {}
            Written::Event => {
                let start = out.len();
                voice.encoder.event(event, now, out);
                if self.numbers.sent(from, self.agreement.sequence, start, out) {
                    voice.said = now;
                }
            }
            Written::Followed => {
                let start = out.len();
                voice.encoder.flush(now, out);
                if self.numbers.sent(from, self.agreement.sequence, start, out) {
                    voice.said = now;
                }
                let start = out.len();
                voice.encoder.event(event, now, out);
                out.truncate(start);
            }
        }
        if let (true, true, Some(session)) = (slept, voice.is_awake(), from) {
            self.awake.push(Arc::clone(session));
        }
    }

    /// Appends what was held back and would be written before the event, if that alone fills a batch. True when it did: the
    /// event then has a batch of its own, and others get their turn sooner.
    pub(crate) fn clears_the_way(
        &mut self,
        from: From<'_>,
        event: &Event,
        now: Instant,
        out: &mut Vec<u8>,
    ) -> bool {
        let Some(voice) = voice(&mut self.first, &mut self.others, from) else {
            return false;
        };
        if voice.encoder.bytes_before(event) < BATCH_BYTES {
            return false;
        }
        let start = out.len();
        voice.encoder.flush_before(event, now, out);
        if self.numbers.sent(from, self.agreement.sequence, start, out) {
            voice.said = now;
        }
        true
    }

    /// Takes a response and appends it, after deltas that were held back.
    pub(crate) fn response(&mut self, from: From<'_>, response: &Response, now: Instant, out: &mut Vec<u8>) {
        self.flush_one(from, now, out);
        let Some(voice) = voice(&mut self.first, &mut self.others, from) else {
            return;
        };
        let start = out.len();
        voice.encoder.response(response, now, out);
        voice.said = now;
        self.numbers.answered(from, start, out);
    }

    /// Appends what is due: deltas that were held back, and heartbeats. To be called at the end of every batch and at
    /// [`next_deadline`](Self::next_deadline).
    pub(crate) fn tick(&mut self, now: Instant, out: &mut Vec<u8>) {
        self.tick_one(None, now, out);
        let awake = std::mem::take(&mut self.awake);
        for session in &awake {
            self.tick_one(Some(session), now, out);
        }
        self.awake = awake;
        let others = &self.others;
        self.awake
            .retain(|session| others.get(session).is_some_and(Voice::is_awake));
    }

    fn tick_one(&mut self, from: From<'_>, now: Instant, out: &mut Vec<u8>) {
        let heartbeat = self.agreement.heartbeat;
        let Some(voice) = voice(&mut self.first, &mut self.others, from) else {
            return;
        };
        let start = out.len();
        voice.encoder.flush_due(now, out);
        if self.numbers.sent(from, self.agreement.sequence, start, out) {
            voice.said = now;
        }
        if voice.heartbeat_at(heartbeat).is_some_and(|at| at <= now) {
            let event = voice.activity.heartbeat(now.duration_since(voice.said));
            let start = out.len();
            voice.encoder.event(&event, now, out);
            self.numbers.sent(from, self.agreement.sequence, start, out);
            voice.said = now;
        }
    }

    /// Appends all deltas that were held back.
    pub(crate) fn flush(&mut self, now: Instant, out: &mut Vec<u8>) {
        self.flush_one(None, now, out);
        for session in std::mem::take(&mut self.awake) {
            self.flush_one(Some(&session), now, out);
            if self.others.get(&session).is_some_and(Voice::is_awake) {
                self.awake.push(session);
            }
        }
    }

    fn flush_one(&mut self, from: From<'_>, now: Instant, out: &mut Vec<u8>) {
        let Some(voice) = voice(&mut self.first, &mut self.others, from) else {
            return;
        };
        let start = out.len();
        voice.encoder.flush(now, out);
        if self.numbers.sent(from, self.agreement.sequence, start, out) {
            voice.said = now;
        }
    }

    /// When [`tick`](Self::tick) has something to do at the latest; `None` when nothing waits.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let heartbeat = self.agreement.heartbeat;
        let awake = self.awake.iter().filter_map(|session| self.others.get(session));
        let voices = std::iter::once(&self.first).chain(awake);
        let deadlines =
            voices.flat_map(|voice| [voice.encoder.next_deadline(), voice.heartbeat_at(heartbeat)]);
        deadlines.flatten().min()
    }

    /// Bytes of deltas that are held back.
    pub(crate) fn held_back(&self) -> usize {
        let awake = self.awake.iter().filter_map(|session| self.others.get(session));
        let voices = std::iter::once(&self.first).chain(awake);
        voices.map(|voice| voice.encoder.held_back()).sum()
    }

    /// Carries out a command of the connection and appends its answer. `snapshot` is the session at this place.
    pub(crate) fn answer(
        &mut self,
        from: From<'_>,
        origin: Origin,
        command: ConnectionCommand,
        snapshot: Option<Box<Snapshot>>,
        now: Instant,
        out: &mut Vec<u8>,
    ) {
        // What was held back belongs before the answer, under the old rules and in the old count.
        self.flush(now, out);
        // It may have been found out since.
        self.agreement.dialect = self.first.encoder.manner().dialect;
        let mut answering = Answering {
            connection: &*self,
            snapshot,
            after: After::Nothing,
        };
        let outcome = command.dispatch(&mut answering);
        let after = answering.after;
        self.respond(from, origin, outcome, now, out);
        match after {
            After::Nothing => {}
            After::Agree(changed) => self.agree(*changed),
            After::Resend(number) => self.numbers.recent().write_after(number, out),
        }
    }

    /// Applies what `hello` changed. All encoders follow one dialect; what the client said nothing of goes on being found out.
    fn agree(&mut self, changed: Changed) {
        let Changed {
            agreement,
            names_dialect,
            names_form,
            names_ui,
        } = changed;
        if names_dialect {
            self.first.encoder.speak(agreement.dialect);
        }
        if names_dialect || names_form {
            self.first.encoder.set_form(agreement.form());
        }
        if names_ui {
            self.first.encoder.set_ui(agreement.wanted_ui(self.ui_at_first));
        }
        self.agreement = agreement;
    }

    /// What `replay` answers, and after which number events are to be sent again.
    fn replay(
        &self,
        params: &ReplayParams,
        snapshot: Option<Box<Snapshot>>,
    ) -> Result<(Replayed, u64), String> {
        let last_seq = self.numbers.last();
        if let Some(after) = params.after {
            if !self.agreement.sequence {
                return Err(
                    "Events have no numbers here: say hello with \"sequence\": true first".to_owned(),
                );
            }
            if after > last_seq {
                return Err(format!(
                    "No event has the number {after} yet; the last one is {last_seq}"
                ));
            }
            // Who has numbers of another process has none of ours.
            let events = self.numbers.recent().count_after(after, last_seq);
            if let Some(events) = events.filter(|_| params.instance.is_none()) {
                let replayed = Replayed {
                    events,
                    last_seq,
                    instance_id: None,
                    snapshot: None,
                };
                return Ok((replayed, after));
            }
        }
        let snapshot = snapshot.ok_or(NO_SNAPSHOT)?;
        let replayed = Replayed {
            events: 0,
            last_seq,
            instance_id: None,
            snapshot: Some(*snapshot),
        };
        Ok((replayed, last_seq))
    }

    fn respond(
        &mut self,
        from: From<'_>,
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

/// A command of the connection that is being carried out.
struct Answering<'a> {
    connection: &'a Connection,
    /// The session at this place.
    snapshot: Option<Box<Snapshot>>,
    after: After,
}

/// What follows the response.
enum After {
    Nothing,
    /// The response to `hello` still goes by the old agreement, everything behind it by the new one.
    Agree(Box<Changed>),
    /// The events after this number are sent again.
    Resend(u64),
}

/// A new agreement, and which of its parts `hello` named.
struct Changed {
    agreement: Agreement,
    names_dialect: bool,
    names_form: bool,
    names_ui: bool,
}

impl ConnectionHandler for Answering<'_> {
    fn get_protocol(&mut self, _: NoParams) -> Result<Protocol, String> {
        Ok(protocol(&self.connection.version, &self.connection.agreement))
    }

    fn hello(&mut self, params: Box<HelloParams>) -> Result<Welcome, String> {
        let connection = self.connection;
        let (agreement, refused) = connection.agreement.changed(&params);
        let is_refused = |option: &str| refused.iter().any(|refused| refused.option == option);
        let names_dialect = params.dialect.is_some() && !is_refused("dialect");
        let names_form = params.deltas.is_some() && !is_refused("deltas");
        let welcome = agreement.welcome(&connection.version, connection.numbers.last(), refused);
        self.after = After::Agree(Box::new(Changed {
            agreement,
            names_dialect,
            names_form,
            names_ui: params.ui.is_some(),
        }));
        Ok(welcome)
    }

    fn replay(&mut self, params: ReplayParams) -> Result<Replayed, String> {
        let snapshot = self.snapshot.take();
        let (replayed, after) = self.connection.replay(&params, snapshot)?;
        self.after = After::Resend(after);
        Ok(replayed)
    }
}

/// The voice of a session; none for one that has left.
fn voice<'a>(
    first: &'a mut Voice,
    others: &'a mut HashMap<Arc<str>, Voice>,
    from: From<'_>,
) -> Option<&'a mut Voice> {
    match from {
        None => Some(first),
        Some(session) => others.get_mut(session),
    }
}
