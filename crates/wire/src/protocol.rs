//! Facts about the whole protocol: its version, the dialects of the family, and which command and event belongs to which of
//! them (dialects.md 2 and 3). How the dialects differ in the shape of a line is not known here.

use crate::Dialect;
use crate::dialect::CompactionEvents;
pub use crate::dialect_set::{Belongs, DialectSet};
use crate::dialect_set::{E, HO, LATE, N, OWN, XN};
use crate::event_name::{EVENT_DIALECTS, OLDER_EVENTS, canonical_event};
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
    ("command_output", N),
    ("session_info_update", N),
    ("config_update", N),
    ("irc_message", N),
    ("goal_updated", N),
    ("model_changed", N),
];

/// Lines of single dialects that stand for no event (dialects.md 1 and 5, row 4).
const OTHER_LINES: &[Belongs] = &[("error", E), ("rpc_chunk", N)];

/// Frames: lines of a client that answer a question of the agent and get no response (dialects.md 2).
pub const FRAMES: [Belongs; 5] = [
    ("host_tool_update", XN),
    ("host_tool_result", XN),
    ("host_uri_result", N),
    ("extension_ui_response", LATE),
    ("hook_ui_response", HO),
];

/// Returns the names of the lines that only clients of single dialects receive: older names of events, and lines that stand
/// for no event.
pub fn dialect_lines() -> impl Iterator<Item = &'static str> {
    OLDER_EVENTS.iter().chain(OTHER_LINES).map(|(name, _)| *name)
}

/// Returns true if clients of the dialect can receive lines of this `type`. They receive events that only newer dialects
/// have, under one name each. Responses are not asked for here.
#[must_use]
pub fn is_written(dialect: Dialect, kind: &str) -> bool {
    let is_older = kind != canonical_event(kind);
    match canonical_event(kind) {
        "compaction_start" | "compaction_end" => match dialect.compaction_events() {
            CompactionEvents::Early => kind == "compaction",
            CompactionEvents::Automatic => kind.starts_with("auto_"),
            CompactionEvents::All => !is_older,
        },
        "extension_error" => kind == dialect.extension_error().0,
        "extension_ui_request" => kind == dialect.ui_request(),
        "agent_settled" if is_older => dialect.reports_prompts(),
        "model_fallback" if is_older => dialect.tells_fallbacks(),
        "available_commands_update" => dialect.sends_unasked(kind),
        "error" => dialect.is_silent(),
        "rpc_chunk" => dialect.has_chunks(),
        _ => true,
    }
}

/// Returns the events of the family under all their names, those included that this agent does not send. An event that is not
/// among them is this agent's own.
#[must_use]
pub fn family_events() -> Vec<Belongs> {
    let rows = EVENT_DIALECTS.iter().filter(|(_, dialects)| *dialects != OWN);
    let lines = OLDER_EVENTS.iter().chain(OTHER_LINES).chain(ABSENT_EVENTS);
    rows.chain(lines).copied().collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{Belongs, dialect_lines, dialects_of, family_commands, family_events, is_written};
    use crate::Dialect;

    #[test]
    fn command_and_event_names_are_unique() {
        for rows in [family_commands(), family_events()] {
            let names: BTreeSet<&str> = rows.iter().map(|(name, _)| *name).collect();
            assert_eq!(names.len(), rows.len());
        }
    }

    #[test]
    fn lines_of_dialects_match_table() {
        let rows = family_events();
        for name in dialect_lines() {
            for dialect in Dialect::spoken() {
                let has = dialects_of(&rows, name).unwrap().has(dialect);
                assert_eq!(is_written(dialect, name), has, "{name} {dialect:?}");
            }
        }
        assert!(
            !is_written(Dialect::Xcsh, "compaction_start") && is_written(Dialect::Pi, "compaction_start")
        );
        assert!(
            is_written(Dialect::Hooks, "agent_settled"),
            "newer events are sent to all"
        );
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
