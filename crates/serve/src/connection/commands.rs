//! The commands of a connection: `hello`, `replay` and `get_protocol`. Every kind of connection answers them here; in what
//! stdio and the web server differ is data ([`ConnectionRules`]). What follows from a reply is up to the connection
//! ([`FollowUp`]).

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;
use wire::command::{HelloParams, NoParams, ReplayParams};
use wire::connection::{Protocol, Refused, Replayed, Snapshot, Welcome};
use wire::omp::{EventFilter, EventFilterParams};
use wire::table::ConnectionHandler;
use wire::{ConnectionCommand, Reply};

use super::describe::protocol;
use super::options::NegotiatedOptions;

/// What connections of one kind promise.
#[derive(Debug, Clone)]
pub struct ConnectionRules {
    /// Version of the agent.
    pub version: String,
    /// The process that the numbers of events belong to, as `hello` and `replay` name it. None: each connection counts for
    /// itself, so a client that names an instance has numbers of another connection.
    pub instance: Option<Arc<str>>,
    /// Options of `hello` that are the same for all connections.
    pub fixed: &'static [FixedOption],
    /// What `replay` does with a number that no event has yet.
    pub unknown_number: UnknownNumber,
}

/// An option of `hello` with one value for all connections. Any other value is refused.
#[derive(Debug)]
pub struct FixedOption {
    /// Its name.
    pub name: &'static str,
    /// Where its value is in the parameters.
    pub wish: fn(&mut HelloParams) -> &mut Option<Value>,
    /// The value that it has, as JSON.
    pub value: &'static str,
    /// Why it has no other.
    pub reason: &'static str,
}

/// The reply of `replay` to a number that no event has yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownNumber {
    /// An error: a connection that counts for itself has sent all numbers that its client can know.
    Error,
    /// A snapshot: the client may have its number from before the process started.
    Snapshot,
}

/// The numbers of events.
pub trait EventNumbers {
    /// Number of the last event; 0 before the first.
    fn last(&self) -> u64;

    /// How many events came after the one with this number. None if not all of them are kept, or no event has the number.
    fn count_after(&self, number: u64) -> Option<usize>;
}

/// What a connection does after it has sent the reply.
#[derive(Debug)]
pub enum FollowUp {
    /// Nothing.
    None,
    /// Uses the options that `hello` set.
    Use(Box<Negotiated>),
    /// Sends again the events after this number.
    SendAgain(u64),
}

/// The result of a `hello`.
#[derive(Debug)]
pub struct Negotiated {
    /// All options from now on.
    pub options: NegotiatedOptions,
    /// The client named a dialect, and it was granted.
    pub sets_dialect: bool,
    /// The client named a form of `message_update`, and it was granted.
    pub sets_form: bool,
    /// The client said which frames of the user interface it renders.
    pub sets_ui: bool,
}

impl ConnectionRules {
    /// Carries out a command of the connection. `options` are those in use, `snapshot` is the session at this place among
    /// the events. Returns the reply or the text of the error response, and what the connection does after it.
    pub fn answer(
        &self,
        command: ConnectionCommand,
        options: &NegotiatedOptions,
        numbers: &impl EventNumbers,
        snapshot: Option<Box<Snapshot>>,
    ) -> (Result<Reply, String>, FollowUp) {
        let mut call = CommandCall {
            rules: self,
            options,
            numbers,
            snapshot,
            follow_up: FollowUp::None,
        };
        let outcome = command.dispatch(&mut call);
        (outcome, call.follow_up)
    }

    /// The wishes that remain, and refusals of other values than the fixed ones.
    fn without_fixed(&self, params: &HelloParams) -> (HelloParams, Vec<Refused>) {
        let mut wishes = params.clone();
        let mut refused = Vec::new();
        for option in self.fixed {
            let is_fixed = |value: &Value| {
                serde_json::from_str::<Value>(option.value).is_ok_and(|fixed| fixed == *value)
            };
            // Taken out of the wishes, granted or not: `changed` must not see it.
            if let Some(value) = (option.wish)(&mut wishes).take().filter(|value| !is_fixed(value)) {
                refused.push(Refused {
                    option: option.name,
                    value,
                    reason: option.reason.to_owned(),
                });
            }
        }
        (wishes, refused)
    }

    fn instance_id(&self) -> Option<String> {
        self.instance.as_deref().map(str::to_owned)
    }
}

/// A command that is being carried out.
struct CommandCall<'a, N> {
    rules: &'a ConnectionRules,
    options: &'a NegotiatedOptions,
    numbers: &'a N,
    /// The session at this place.
    snapshot: Option<Box<Snapshot>>,
    follow_up: FollowUp,
}

impl<N: EventNumbers> ConnectionHandler for CommandCall<'_, N> {
    fn get_protocol(&mut self, _: NoParams) -> Result<Protocol, String> {
        Ok(protocol(&self.rules.version, self.options))
    }

    fn hello(&mut self, params: Box<HelloParams>) -> Result<Welcome, String> {
        let (wishes, mut refused) = self.rules.without_fixed(&params);
        let (options, more) = self.options.changed(&wishes);
        refused.extend(more);
        // A refused option leaves the connection as it was: a wrong name must not switch detection off.
        let is_refused = |option: &str| refused.iter().any(|refused| refused.option == option);
        let negotiated = Negotiated {
            sets_dialect: wishes.dialect.is_some() && !is_refused("dialect"),
            sets_form: wishes.deltas.is_some() && !is_refused("deltas"),
            // Also if names were refused: the others count (`set_ui`).
            sets_ui: wishes.ui.is_some(),
            options,
        };
        let last = self.numbers.last();
        let mut welcome = negotiated.options.welcome(&self.rules.version, last, refused);
        welcome.instance_id = self.rules.instance_id();
        self.follow_up = FollowUp::Use(Box::new(negotiated));
        Ok(welcome)
    }

    fn set_event_filter(&mut self, params: EventFilterParams) -> Result<EventFilter, String> {
        let options = self.options.filtered(params.events.as_deref());
        self.follow_up = FollowUp::Use(Box::new(Negotiated {
            options,
            sets_dialect: false,
            sets_form: false,
            sets_ui: false,
        }));
        let mut events = params.events;
        if let Some(events) = &mut events {
            let mut seen = HashSet::new();
            events.retain(|event| seen.insert(event.clone()));
        }
        Ok(EventFilter { events })
    }

    fn replay(&mut self, params: ReplayParams) -> Result<Replayed, String> {
        let last_seq = self.numbers.last();
        let instance_id = self.rules.instance_id();
        let replayed = |events, snapshot: Option<Box<Snapshot>>| Replayed {
            events,
            last_seq,
            instance_id,
            snapshot: snapshot.map(|snapshot| *snapshot),
        };
        if let Some(after) = params.after {
            if !self.options.sequence {
                return Err(
                    "Events have no numbers here: say hello with \"sequence\": true first".to_owned(),
                );
            }
            // A number from the future: the client mixes up connections, and events would be missing without a word.
            if after > last_seq && self.rules.unknown_number == UnknownNumber::Error {
                return Err(format!(
                    "No event has the number {after} yet; the last one is {last_seq}"
                ));
            }
            // Numbers of another process say nothing about the events that are kept here.
            let is_ours = params
                .instance
                .as_deref()
                .is_none_or(|id| Some(id) == self.rules.instance.as_deref());
            if let Some(events) = self.numbers.count_after(after).filter(|_| is_ours) {
                self.follow_up = FollowUp::SendAgain(after);
                return Ok(replayed(events, None));
            }
        }
        // Too many events have come since: the client gets the state in place of the way to it.
        let snapshot = self.snapshot.take().ok_or("There is no session to show")?;
        Ok(replayed(0, Some(snapshot)))
    }
}
