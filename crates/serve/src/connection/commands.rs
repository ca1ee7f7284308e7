//! The commands of a connection: `hello`, `replay` and `get_protocol`. Every kind of connection answers them here; in what
//! stdio and the web server differ is data ([`ConnectionRules`]). What follows from a reply is up to the connection
//! ([`FollowUp`]).

use std::sync::Arc;

use serde_json::Value;
use wire::connection::{HelloParams, Refused, ReplayParams, Replayed, Snapshot};
use wire::{Command, Reply};

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
    /// The outcome of a command of the connection. `options` are those in use, `snapshot` is the session at this place among
    /// the events.
    ///
    /// # Errors
    /// The text of the error response.
    pub fn answer(
        &self,
        command: &Command,
        options: &NegotiatedOptions,
        numbers: &impl EventNumbers,
        snapshot: Option<Box<Snapshot>>,
    ) -> Result<(Reply, FollowUp), String> {
        match command {
            Command::GetProtocol(_) => {
                let protocol = protocol(&self.version, options);
                Ok((Reply::Protocol(Box::new(protocol)), FollowUp::None))
            }
            Command::Hello(params) => Ok(self.hello(params, options, numbers)),
            Command::Replay(params) => self.replay(params, options, numbers, snapshot),
            other => Err(format!("Unknown command: {}", other.name())),
        }
    }

    fn hello(
        &self,
        params: &HelloParams,
        options: &NegotiatedOptions,
        numbers: &impl EventNumbers,
    ) -> (Reply, FollowUp) {
        let (wishes, mut refused) = self.without_fixed(params);
        let (options, more) = options.changed(&wishes);
        refused.extend(more);
        let is_refused = |option: &str| refused.iter().any(|refused| refused.option == option);
        let negotiated = Negotiated {
            sets_dialect: wishes.dialect.is_some() && !is_refused("dialect"),
            sets_form: wishes.deltas.is_some() && !is_refused("deltas"),
            sets_ui: wishes.ui.is_some(),
            options,
        };
        let mut welcome = negotiated.options.welcome(&self.version, numbers.last(), refused);
        welcome.instance_id = self.instance_id();
        (
            Reply::Hello(Box::new(welcome)),
            FollowUp::Use(Box::new(negotiated)),
        )
    }

    /// The wishes that remain, and refusals of other values than the fixed ones.
    fn without_fixed(&self, params: &HelloParams) -> (HelloParams, Vec<Refused>) {
        let mut wishes = params.clone();
        let mut refused = Vec::new();
        for option in self.fixed {
            let is_fixed = |value: &Value| {
                serde_json::from_str::<Value>(option.value).is_ok_and(|fixed| fixed == *value)
            };
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

    fn replay(
        &self,
        params: &ReplayParams,
        options: &NegotiatedOptions,
        numbers: &impl EventNumbers,
        snapshot: Option<Box<Snapshot>>,
    ) -> Result<(Reply, FollowUp), String> {
        let last_seq = numbers.last();
        let replayed = |events, snapshot: Option<Box<Snapshot>>| {
            Reply::Replayed(Box::new(Replayed {
                events,
                last_seq,
                instance_id: self.instance_id(),
                snapshot: snapshot.map(|snapshot| *snapshot),
            }))
        };
        if let Some(after) = params.after {
            if !options.sequence {
                return Err(
                    "Events have no numbers here: say hello with \"sequence\": true first".to_owned(),
                );
            }
            if after > last_seq && self.unknown_number == UnknownNumber::Error {
                return Err(format!(
                    "No event has the number {after} yet; the last one is {last_seq}"
                ));
            }
            // Numbers of another process say nothing about the events that are kept here.
            let is_ours = params
                .instance
                .as_deref()
                .is_none_or(|id| Some(id) == self.instance.as_deref());
            if let Some(events) = numbers.count_after(after).filter(|_| is_ours) {
                return Ok((replayed(events, None), FollowUp::SendAgain(after)));
            }
        }
        let snapshot = snapshot.ok_or("There is no session to show")?;
        Ok((replayed(0, Some(snapshot)), FollowUp::None))
    }

    fn instance_id(&self) -> Option<String> {
        self.instance.as_deref().map(str::to_owned)
    }
}
