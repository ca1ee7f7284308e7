//! Facts about the whole protocol: its version, the dialects of the family, and which command and event belongs to which of
//! them (dialects.md 2 and 3). How the dialects differ in the shape of a line is not known here.

pub use crate::dialect_set::{Belongs, DialectSet};
use crate::dialect_set::{E, N, OWN, XN};
use crate::event_name::{EVENT_DIALECTS, OLDER_EVENTS};
use crate::table::TABLE;

/// Version of the protocol, apart from the agent's: the first number changes when a client may break, the second when
/// something is added. `xtask breaking` holds it to that.
pub const PROTOCOL_VERSION: &str = "1.1.0";

/// What this agent can do beyond the commands' names, as `get_protocol` lists it.
pub const CAPABILITIES: [&str; 15] = [
    "continue",
    "deltas",
    "dialogs",
    "event_filter",
    "heartbeat",
    "host_tools",
    "host_uris",
    "mcp",
    "permissions",
    "queue_items",
    "replay",
    "sequence",
    "sessions",
    "snapshot",
    "todos",
];

/// The dialects of a row of [`family_commands`] or [`family_events`]; none for what only this agent has.
#[must_use]
pub fn dialects_of(rows: &[Belongs], name: &str) -> Option<DialectSet> {
    rows.iter().find(|(known, _)| *known == name).map(|(_, set)| *set)
}
/// Returns the commands of the family. A command of the table that is not among them is this agent's own.
#[must_use]
pub fn family_commands() -> Vec<Belongs> {
    let rows = TABLE.iter().filter(|spec| spec.dialects != OWN);
    rows.map(|spec| (spec.name, spec.dialects)).collect()
}

/// Events and other lines of the family that this agent does not send (dialects.md 3). The others are rows of the table in
/// `event_name`.
const ABSENT_EVENTS: &[Belongs] = &[
    ("retry_fallback_applied", XN),
    ("retry_fallback_succeeded", XN),
    ("error", E),
    ("available_commands_update", N),
    ("command_output", N),
    ("session_info_update", N),
    ("config_update", N),
    ("irc_message", N),
    ("goal_updated", N),
    ("model_changed", N),
];

/// Returns the events of the family under all their names, those included that this agent does not send. An event that is not
/// among them is this agent's own.
#[must_use]
pub fn family_events() -> Vec<Belongs> {
    let rows = EVENT_DIALECTS.iter().filter(|(_, dialects)| *dialects != OWN);
    rows.chain(OLDER_EVENTS).chain(ABSENT_EVENTS).copied().collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{Belongs, dialects_of, family_commands, family_events};
    use crate::Dialect;

    #[test]
    fn command_and_event_names_are_unique() {
        for rows in [family_commands(), family_events()] {
            let names: BTreeSet<&str> = rows.iter().map(|(name, _)| *name).collect();
            assert_eq!(names.len(), rows.len());
        }
    }

    #[test]
    fn commands_and_events_list_their_dialects() {
        let commands = family_commands();
        let has = |rows: &[Belongs], name: &str| {
            let set = dialects_of(rows, name)?;
            let names = Dialect::ALL.into_iter().filter(|dialect| set.has(*dialect));
            Some(names.map(Dialect::as_str).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(
            has(&commands, "abort_and_prompt").as_deref(),
            Some("omp-now xcsh")
        );
        assert_eq!(
            has(&commands, "compact").as_deref(),
            Some("early hooks omp omp-now xcsh web pi pi-delta")
        );
        assert_eq!(has(&family_events(), "compaction").as_deref(), Some("early"));
        assert_eq!(has(&commands, "hello"), None);
    }
}
