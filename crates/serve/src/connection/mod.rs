//! One connection: what was agreed on with `hello`, the numbers of its events, what was sent last. It stands between the
//! queue of what is to be said and the encoder. Here: which events are sent, and the answers to the commands that belong to
//! the connection. Not here: bytes on their way (`writer`, `sink`), the shape of lines (`encode`), sessions (`host`).

mod activity;
mod agreement;
mod describe;
mod ring;

use std::time::{Duration, Instant};

use host::Origin;
use wire::connection::{ReplayParams, Replayed, Snapshot};
use wire::{Command, Event, Message, Reply, Response};

use crate::encode::Encoder;

use self::activity::Activity;
use self::agreement::Agreement;
use self::ring::Ring;

/// See the module's page.
#[derive(Debug)]
pub struct Connection {
    encoder: Encoder,
    /// Version of the agent.
    version: String,
    agreement: Agreement,
    /// Number of the last event that has one.
    last_seq: u64,
    recent: Ring,
    activity: Activity,
    /// When something was said last.
    said: Instant,
    /// Updates of the answer that streams in were left out; the rest of them would say nothing without those.
    left_out: bool,
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
            agreement: Agreement::new(encoder.options()),
            encoder,
            version: version.to_owned(),
            last_seq: 0,
            recent: Ring::default(),
            activity: Activity::default(),
            said: Instant::now(),
            left_out: false,
        }
    }

    /// Takes an event. What is to be sent of it is appended to `out`, now or later.
    pub(crate) fn event(&mut self, event: &Event, now: Instant, out: &mut Vec<u8>) {
        let was_busy = self.activity.is_busy();
        self.activity.note(event);
        if self.activity.is_busy() && !was_busy {
            // Silence before a run is none of the run's.
            self.said = now;
        }
        let is_wanted = self.agreement.wants(event.name());
        if matches!(event, Event::MessageUpdate { .. }) {
            self.left_out |= !is_wanted;
            if self.left_out {
                return;
            }
        }
        if matches!(event, Event::MessageStart { message } if matches!(**message, Message::Assistant(_))) {
            self.left_out = false;
        }
        if is_wanted {
            self.say(event, now, out);
            return;
        }
        // The encoder follows what it does not write: the beginning of an answer says what its updates are about.
        self.flush(now, out);
        let start = out.len();
        self.encoder.event(event, now, out);
        out.truncate(start);
    }

    /// Takes a response and appends it, after deltas that were held back.
    pub(crate) fn response(&mut self, response: &Response, now: Instant, out: &mut Vec<u8>) {
        self.flush(now, out);
        self.encoder.response(response, now, out);
        self.said = now;
    }

    /// Appends what is due: deltas that were held back, and a heartbeat. To be called at the end of every batch and at
    /// [`next_deadline`](Self::next_deadline).
    pub(crate) fn tick(&mut self, now: Instant, out: &mut Vec<u8>) {
        let start = out.len();
        self.encoder.flush_due(now, out);
        self.sent(start, now, out);
        if self.heartbeat_at().is_some_and(|at| at <= now) {
            let heartbeat = self.activity.heartbeat(now.duration_since(self.said));
            self.say(&heartbeat, now, out);
        }
    }

    /// Appends all deltas that were held back.
    pub(crate) fn flush(&mut self, now: Instant, out: &mut Vec<u8>) {
        let start = out.len();
        self.encoder.flush(now, out);
        self.sent(start, now, out);
    }

    /// When [`tick`](Self::tick) has something to do at the latest; `None` when nothing waits.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let deadlines = [self.encoder.next_deadline(), self.heartbeat_at()];
        deadlines.into_iter().flatten().min()
    }

    /// Bytes of deltas that are held back.
    pub(crate) fn held_back(&self) -> usize {
        self.encoder.held_back()
    }

    /// Carries out a command of the connection and appends its answer. `snapshot` is the session at this place.
    pub(crate) fn answer(
        &mut self,
        origin: Origin,
        command: &Command,
        snapshot: Option<Box<Snapshot>>,
        now: Instant,
        out: &mut Vec<u8>,
    ) {
        // What was held back belongs before the answer, under the old rules and in the old count.
        self.flush(now, out);
        let outcome = match command {
            Command::GetProtocol(_) => Ok(Reply::Protocol(Box::new(describe::protocol(
                &self.version,
                &self.agreement,
            )))),
            Command::Hello(params) => {
                let (agreement, refused) = self.agreement.changed(params);
                let welcome = agreement.welcome(&self.version, self.last_seq, refused);
                self.respond(origin, Ok(Reply::Hello(Box::new(welcome))), now, out);
                self.encoder.speak(agreement.dialect);
                self.encoder.set_form(agreement.form());
                self.agreement = agreement;
                return;
            }
            Command::Replay(params) => match self.replay(*params, snapshot) {
                Ok((replayed, from)) => {
                    self.respond(origin, Ok(Reply::Replayed(Box::new(replayed))), now, out);
                    self.recent.write_after(from, out);
                    return;
                }
                Err(refusal) => Err(refusal),
            },
            other => Err(format!("Unknown command: {}", other.name())),
        };
        self.respond(origin, outcome, now, out);
    }

    /// What `replay` answers, and after which number events are to be sent again.
    fn replay(
        &self,
        params: ReplayParams,
        snapshot: Option<Box<Snapshot>>,
    ) -> Result<(Replayed, u64), String> {
        let last_seq = self.last_seq;
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
            if let Some(events) = self.recent.count_after(after, last_seq) {
                let replayed = Replayed {
                    events,
                    last_seq,
                    snapshot: None,
                };
                return Ok((replayed, after));
            }
        }
        let snapshot = snapshot.ok_or("There is no session to show")?;
        let replayed = Replayed {
            events: 0,
            last_seq,
            snapshot: Some(*snapshot),
        };
        Ok((replayed, last_seq))
    }

    fn respond(&mut self, origin: Origin, outcome: Result<Reply, String>, now: Instant, out: &mut Vec<u8>) {
        let response = Response {
            id: origin.id,
            command: Some(origin.command.into()),
            outcome,
        };
        self.response(&response, now, out);
    }

    /// Appends an event, whatever the filter says.
    fn say(&mut self, event: &Event, now: Instant, out: &mut Vec<u8>) {
        let start = out.len();
        self.encoder.event(event, now, out);
        self.sent(start, now, out);
    }

    /// The lines from `start` on are events that are sent now.
    fn sent(&mut self, start: usize, now: Instant, out: &mut Vec<u8>) {
        if out.len() == start {
            return;
        }
        self.said = now;
        if !self.agreement.sequence {
            return;
        }
        let lines = out.split_off(start);
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            let Some(body) = line.strip_suffix(b"}\n") else {
                out.extend_from_slice(line);
                continue;
            };
            let from = out.len();
            self.last_seq += 1;
            out.extend_from_slice(body);
            out.extend_from_slice(format!(",\"seq\":{}}}\n", self.last_seq).as_bytes());
            self.recent
                .push(self.last_seq, out.get(from..).unwrap_or_default());
        }
    }

    fn heartbeat_at(&self) -> Option<Instant> {
        let seconds = self.agreement.heartbeat?;
        self.activity
            .is_busy()
            .then(|| self.said + Duration::from_secs(seconds))
    }
}
