//! Facts about the whole protocol: its version, the dialects of the family, and which command and event belongs to which of
//! them (dialects.md 2 and 3). How the dialects differ in the shape of a line is not known here.

use crate::Dialect;

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

/// A set of dialects, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DialectSet(u16);

impl DialectSet {
    const fn of(dialect: Dialect) -> Self {
        Self(1 << dialect as u16)
    }

    const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns true if the set contains the dialect.
    #[must_use]
    pub const fn has(self, dialect: Dialect) -> bool {
        self.0 & Self::of(dialect).0 != 0
    }
}

const E: DialectSet = DialectSet::of(Dialect::Early);
const W: DialectSet = DialectSet::of(Dialect::Web);
const H: DialectSet = DialectSet::of(Dialect::Hooks);
const O: DialectSet = DialectSet::of(Dialect::Omp);
const N: DialectSet = DialectSet::of(Dialect::OmpNow);
const X: DialectSet = DialectSet::of(Dialect::Xcsh);
const P: DialectSet = DialectSet::of(Dialect::Pi);
const D: DialectSet = DialectSet::of(Dialect::PiDelta);

/// Today's pi in both forms.
const PI: DialectSet = P.and(D);
/// xcsh and today's oh-my-pi, which share their frames.
const XN: DialectSet = X.and(N);
/// Dialects that had pi's first queue and branches.
const HO: DialectSet = H.and(O);
/// Every dialect except the earliest.
const ALL: DialectSet = W.and(HO).and(XN).and(PI);
/// Every dialect.
const EVERY: DialectSet = ALL.and(E);
/// Dialects that began, or were changed, after pi got steering.
const LATE: DialectSet = W.and(XN).and(PI);

/// A command or event of the family, and the dialects that have it.
pub type Belongs = (&'static str, DialectSet);

/// The dialects of a row of [`COMMANDS`] or [`EVENTS`]; none for what only this agent has.
#[must_use]
pub fn dialects_of(rows: &[Belongs], name: &str) -> Option<DialectSet> {
    rows.iter().find(|(known, _)| *known == name).map(|(_, set)| *set)
}

/// Commands of the family (dialects.md 2), including some that this agent does not have. Commands of the command table that
/// are missing here exist only in this agent.
pub const COMMANDS: &[Belongs] = &[
    ("prompt", EVERY),
    ("steer", LATE),
    ("follow_up", LATE),
    ("queue_message", HO),
    ("abort", EVERY),
    ("abort_and_prompt", XN),
    ("clear_queue", W.and(PI)),
    ("reset", H),
    ("new_session", O.and(LATE)),
    ("negotiate_protocol", N),
    ("get_state", ALL),
    ("get_messages", ALL),
    ("get_messages_page", N),
    ("get_entries", N.and(PI)),
    ("get_tree", N.and(PI)),
    ("set_todos", XN),
    ("set_host_tools", XN),
    ("set_host_uri_schemes", N),
    ("get_commands", W.and(PI)),
    ("get_available_commands", N),
    ("set_subagent_subscription", N),
    ("get_subagents", N),
    ("get_subagent_messages", N),
    ("set_event_filter", N),
    ("set_fast_mode", N),
    ("list_sessions", W),
    ("get_context_usage", W),
    ("get_session_tree", W),
    ("navigate_tree", W),
    ("set_entry_label", W),
    ("reload_resources", W),
    ("get_tools", W),
    ("set_active_tools", W),
    ("list_directory", W),
    ("set_model", ALL),
    ("cycle_model", ALL),
    ("get_available_models", ALL),
    ("set_thinking_level", ALL),
    ("cycle_thinking_level", ALL),
    ("get_available_thinking_levels", N.and(PI)),
    ("set_queue_mode", HO),
    ("set_steering_mode", LATE),
    ("set_follow_up_mode", LATE),
    ("set_interrupt_mode", XN),
    ("compact", EVERY),
    ("set_auto_compaction", ALL),
    ("set_auto_retry", ALL),
    ("abort_retry", ALL),
    ("bash", ALL),
    ("abort_bash", ALL),
    ("get_session_stats", ALL),
    ("export_html", ALL),
    ("switch_session", ALL),
    ("branch", HO.and(XN)),
    ("fork", W.and(PI)),
    ("clone", PI),
    ("get_branch_messages", HO.and(XN)),
    ("get_fork_messages", W.and(PI)),
    ("get_last_assistant_text", ALL),
    ("set_session_name", LATE),
    ("open_session", N),
    ("handoff", N),
    ("get_login_providers", N),
    ("login", N),
];

/// Events and other lines that an agent of the family sends on its own account (dialects.md 3), those included that this
/// agent does not send.
pub const EVENTS: &[Belongs] = &[
    ("ready", XN),
    ("agent_start", EVERY),
    ("agent_end", EVERY),
    ("agent_settled", PI),
    ("turn_start", EVERY),
    ("turn_end", EVERY),
    ("message_start", EVERY),
    ("message_update", EVERY),
    ("message_end", EVERY),
    ("tool_execution_start", EVERY),
    ("tool_execution_update", ALL),
    ("tool_execution_end", EVERY),
    ("queue_update", PI),
    ("compaction", E),
    ("auto_compaction_start", W.and(HO).and(XN)),
    ("auto_compaction_end", W.and(HO).and(XN)),
    ("compaction_start", PI),
    ("compaction_end", PI),
    ("summarization_retry_scheduled", PI),
    ("summarization_retry_attempt_start", PI),
    ("summarization_retry_finished", PI),
    ("auto_retry_start", ALL),
    ("auto_retry_end", ALL),
    ("retry_fallback_applied", XN),
    ("retry_fallback_succeeded", XN),
    ("ttsr_triggered", XN),
    ("todo_reminder", XN),
    ("todo_auto_clear", XN),
    ("thinking_level_changed", N.and(PI)),
    ("session_info_changed", PI),
    ("entry_appended", PI),
    ("bash_execution_update", PI),
    ("session_changed", W),
    ("hook_error", HO),
    ("hook_ui_request", HO),
    ("extension_error", LATE),
    ("extension_ui_request", LATE),
    ("host_tool_call", XN),
    ("host_tool_cancel", XN),
    ("host_uri_request", N),
    ("host_uri_cancel", N),
    ("error", E),
    ("notice", N),
    ("session_settled", N),
    ("prompt_result", N),
    ("available_commands_update", N),
    ("command_output", N),
    ("session_info_update", N),
    ("config_update", N),
    ("subagent_lifecycle", N),
    ("subagent_progress", N),
    ("subagent_event", N),
    ("irc_message", N),
    ("goal_updated", N),
    ("model_changed", N),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{Belongs, COMMANDS, EVENTS, dialects_of};
    use crate::Dialect;

    #[test]
    fn command_and_event_names_are_unique() {
        for rows in [COMMANDS, EVENTS] {
            let names: BTreeSet<&str> = rows.iter().map(|(name, _)| *name).collect();
            assert_eq!(names.len(), rows.len());
        }
    }

    #[test]
    fn commands_and_events_list_their_dialects() {
        let has = |rows: &[Belongs], name: &str| {
            let set = dialects_of(rows, name)?;
            let names = Dialect::ALL.into_iter().filter(|dialect| set.has(*dialect));
            Some(names.map(Dialect::as_str).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(has(COMMANDS, "abort_and_prompt").as_deref(), Some("omp-now xcsh"));
        assert_eq!(
            has(COMMANDS, "compact").as_deref(),
            Some("early hooks omp omp-now xcsh web pi pi-delta")
        );
        assert_eq!(has(EVENTS, "compaction").as_deref(), Some("early"));
        assert_eq!(has(COMMANDS, "hello"), None);
    }
}
