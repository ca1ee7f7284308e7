//! What a client and the connection agreed on with `hello`, and how a wish becomes part of it or is refused. What follows
//! from it is in the module above.

use std::collections::BTreeSet;

use serde_json::Value;
use wire::connection::{HelloParams, Refused, Welcome};
use wire::protocol::PROTOCOL_VERSION;
use wire::ui::{UiMethod, UiMethods};
use wire::{Dialect, EVENT_NAMES, canonical_event};

use crate::encode::Form;
use crate::limits::{MAX_HEARTBEAT, MAX_NAME_ECHO, MAX_REFUSALS, MAX_SESSIONS};
use crate::manner::{Manner, WantedUi};

/// The options of one connection, as negotiated with `hello`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NegotiatedOptions {
    pub(crate) dialect: Dialect,
    /// Events that are sent; none: all of them.
    events: Option<BTreeSet<&'static str>>,
    /// Handles of the sessions whose events are sent, the first one being `""`; none: all of them.
    sessions: Option<BTreeSet<String>>,
    deltas: bool,
    /// True if events have numbers.
    pub(crate) sequence: bool,
    /// Seconds of silence before a heartbeat.
    pub(crate) heartbeat: Option<u64>,
    /// Methods of `extension_ui_request` that the client renders; none: it did not say.
    ui: Option<UiMethods>,
}

impl NegotiatedOptions {
    /// The options before `hello`.
    #[must_use]
    pub fn new(manner: Manner) -> Self {
        Self {
            dialect: manner.dialect,
            events: None,
            sessions: None,
            deltas: manner.has_delta_updates(),
            sequence: false,
            heartbeat: None,
            ui: None,
        }
    }

    /// These options with numbers for events.
    #[must_use]
    pub fn with_numbers(self) -> Self {
        Self {
            sequence: true,
            ..self
        }
    }

    /// Returns the options of a client that receives only responses.
    #[must_use]
    pub fn without_events(self) -> Self {
        Self {
            events: Some(BTreeSet::new()),
            ..self
        }
    }

    /// Frames of the user interface that were asked for by name. A client that takes back what it said gets what it began with.
    pub(crate) fn wanted_ui(&self, at_first: WantedUi) -> WantedUi {
        self.ui.map_or(at_first, |ui| WantedUi {
            titles: Some(ui.has(UiMethod::SetTitle)),
            cancels: Some(ui.has(UiMethod::Cancel)),
        })
    }

    /// These options with a filter of oh-my-pi (dialects.md 14): only events of runs are left out, and names that no event has
    /// mean nothing.
    pub(crate) fn filtered(&self, names: Option<&[String]>) -> Self {
        let wanted = |names: &[String]| {
            // Older names of an event mean the same event.
            let is_named = |event: &str| names.iter().any(|name| canonical_event(name) == event);
            let events = EVENT_NAMES.iter().copied();
            let is_spared = |event: &str| !is_filtered(event) && self.dialect.sends_unasked(event);
            events
                .filter(|event| is_spared(event) || is_named(event))
                .collect()
        };
        Self {
            events: names.map(wanted),
            ..self.clone()
        }
    }

    /// Returns true if the client receives events of this name.
    #[must_use]
    pub fn wants(&self, name: &str) -> bool {
        match &self.events {
            Some(events) => events.contains(name),
            None => self.dialect.sends_unasked(name),
        }
    }

    /// Returns true if the client receives events of this session.
    #[must_use]
    pub fn wants_session(&self, session: Option<&str>) -> bool {
        let handle = session.unwrap_or_default();
        self.sessions
            .as_ref()
            .is_none_or(|sessions| sessions.contains(handle))
    }

    /// The form of `message_update`.
    pub(crate) fn form(&self) -> Form {
        if self.deltas {
            Form::Delta
        } else {
            Form::Cumulative
        }
    }

    /// The options after a `hello`, and what could not be granted.
    pub(crate) fn changed(&self, wishes: &HelloParams) -> (Self, Vec<Refused>) {
        let mut new = self.clone();
        let mut refused = Refusals::default();
        // The dialect first: it resets `deltas`, and a wish for `deltas` in the same `hello` must win.
        if let Some(wish) = &wishes.dialect {
            new.set_dialect(wish, &mut refused);
        }
        if let Some(wish) = &wishes.events {
            new.set_events(wish, &mut refused);
        }
        if let Some(wish) = &wishes.deltas {
            match flag(wish, new.dialect.has_delta_updates()) {
                Some(deltas) => new.deltas = deltas,
                None => refused.push("deltas", wish, "It must be true or false"),
            }
        }
        if let Some(wish) = &wishes.sequence {
            match flag(wish, false) {
                Some(sequence) => new.sequence = sequence,
                None => refused.push("sequence", wish, "It must be true or false"),
            }
        }
        if let Some(wish) = &wishes.heartbeat {
            match wish.as_u64() {
                _ if wish.is_null() => new.heartbeat = None,
                Some(seconds) if (1..=MAX_HEARTBEAT).contains(&seconds) => new.heartbeat = Some(seconds),
                _ => {
                    let reason =
                        format!("It must be a whole number of seconds from 1 to {MAX_HEARTBEAT}, or null");
                    refused.push("heartbeat", wish, &reason);
                }
            }
        }
        if let Some(wish) = &wishes.sessions {
            new.set_sessions(wish, &mut refused);
        }
        if let Some(wish) = &wishes.ui {
            new.set_ui(wish, &mut refused);
        }
        (new, refused.0)
    }

    /// The reply to the `hello` that led to these options.
    pub(crate) fn welcome(&self, version: &str, last_seq: u64, refused: Vec<Refused>) -> Welcome {
        let names = |events: &BTreeSet<&str>| events.iter().map(ToString::to_string).collect();
        Welcome {
            protocol_version: PROTOCOL_VERSION,
            version: version.to_owned(),
            dialect: self.dialect.as_str().to_owned(),
            events: self.events.as_ref().map(names),
            deltas: self.deltas,
            sequence: self.sequence,
            last_seq,
            instance_id: None,
            heartbeat: self.heartbeat,
            sessions: self
                .sessions
                .as_ref()
                .map(|sessions| sessions.iter().cloned().collect()),
            ui: self.ui.map(|ui| {
                let rendered = UiMethod::ALL.into_iter().filter(|method| ui.has(*method));
                rendered.map(UiMethod::as_str).collect()
            }),
            refused,
        }
    }

    fn set_dialect(&mut self, wish: &Value, refused: &mut Refusals) {
        let dialect = match wish {
            Value::Null => Some(Dialect::Auto),
            wish => wish.as_str().and_then(Dialect::parse),
        };
        match dialect {
            Some(dialect) => {
                self.dialect = dialect;
                self.deltas = dialect.has_delta_updates();
            }
            None => refused.push(
                "dialect",
                wish,
                "No dialect has this name; get_protocol lists them",
            ),
        }
    }

    fn set_sessions(&mut self, wish: &Value, refused: &mut Refusals) {
        let handles: Option<BTreeSet<String>> = wish.as_array().and_then(|handles| {
            let texts = handles.iter().map(|handle| handle.as_str().map(str::to_owned));
            texts.collect()
        });
        match handles {
            _ if wish.is_null() => self.sessions = None,
            Some(handles) if handles.len() <= MAX_SESSIONS => self.sessions = Some(handles),
            _ => refused.push(
                "sessions",
                wish,
                "It must be a list of handles (\"\" is the first session), or null",
            ),
        }
    }

    fn set_ui(&mut self, wish: &Value, refused: &mut Refusals) {
        if wish.is_null() {
            self.ui = None;
            return;
        }
        // Unknown names are refused one by one and the others count: a newer client may know more methods.
        match UiMethods::read(wish) {
            Some(ui) => self.ui = Some(ui),
            None => refused.push("ui", wish, "It must be a list of methods, or null"),
        }
        for wish in wish.as_array().into_iter().flatten() {
            if wish.as_str().and_then(UiMethod::parse).is_none() {
                refused.push("ui", wish, "No method of extension_ui_request has this name");
            }
        }
    }

    fn set_events(&mut self, wish: &Value, refused: &mut Refusals) {
        if wish.is_null() {
            self.events = None;
            return;
        }
        let Some(names) = wish.as_array() else {
            refused.push("events", wish, "It must be a list of names, or null");
            return;
        };
        let mut events = BTreeSet::new();
        for wish in names {
            let name = wish.as_str().map(canonical_event);
            match EVENT_NAMES.iter().find(|known| Some(**known) == name) {
                Some(known) => {
                    events.insert(*known);
                }
                None => refused.push("events", wish, "No event has this name; get_protocol lists them"),
            }
        }
        // Also when all names were refused: the client asked for few events, and gets none rather than all.
        self.events = Some(events);
    }
}

/// Returns true for an event that `set_event_filter` can leave out: what oh-my-pi calls a session event, and what other dialects tell
/// of the session. Events that warn of lost data always come.
fn is_filtered(event: &str) -> bool {
    const NAMES: [&str; 5] = [
        "entry_appended",
        "model_fallback",
        "notice",
        "queue_update",
        "session_info_changed",
    ];
    const STARTS: [&str; 12] = [
        "agent_",
        "turn_",
        "message_",
        "tool_execution_",
        "compaction_",
        "auto_retry_",
        "bash_execution_",
        "process_",
        "summarization_",
        "ttsr_",
        "todo_",
        "thinking_level_",
    ];
    NAMES.contains(&event) || STARTS.iter().any(|start| event.starts_with(start))
}

/// True, false, or the default for null.
fn flag(wish: &Value, default: bool) -> Option<bool> {
    if wish.is_null() {
        Some(default)
    } else {
        wish.as_bool()
    }
}

/// What cannot be granted; so many at most, the rest goes unnamed.
#[derive(Debug, Default)]
struct Refusals(Vec<Refused>);

impl Refusals {
    fn push(&mut self, option: &'static str, wish: &Value, reason: &str) {
        if self.0.len() >= MAX_REFUSALS {
            return;
        }
        // A client must not get a large value back once for each refusal.
        let is_short = wish.is_boolean()
            || wish.is_number()
            || wish.as_str().is_some_and(|text| text.len() <= MAX_NAME_ECHO);
        self.0.push(Refused {
            option,
            value: if is_short { wish.clone() } else { Value::Null },
            reason: reason.to_owned(),
        });
    }
}
