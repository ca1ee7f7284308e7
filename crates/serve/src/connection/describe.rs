//! The answer of `get_protocol`: everything comes from the tables of `wire` and the limits of the crates.

use wire::Dialect;
use wire::connection::{CommandInfo, Protocol, ProtocolLimits};
use wire::protocol::{CAPABILITIES, PROTOCOL_VERSION};
use wire::table::TABLE;

use crate::limits;

use super::options::NegotiatedOptions;

/// What this agent speaks, on a connection with these options.
pub(crate) fn protocol(version: &str, options: &NegotiatedOptions) -> Protocol {
    let commands = TABLE.iter().map(|spec| CommandInfo {
        name: spec.name,
        lane: spec.lane.name(),
    });
    Protocol {
        protocol_version: PROTOCOL_VERSION,
        version: version.to_owned(),
        dialect: options.dialect.as_str().to_owned(),
        dialects: Dialect::ALL.map(Dialect::as_str).to_vec(),
        commands: commands.collect(),
        events: wire::EVENT_NAMES.to_vec(),
        capabilities: CAPABILITIES.to_vec(),
        limits: ProtocolLimits {
            line_bytes: limits::MAX_LINE,
            line_depth: wire::limits::MAX_DEPTH,
            queued_messages: session::limits::QUEUED,
            bash_commands: session::limits::BASH_RUNNING,
            replay_events: limits::REPLAY_EVENTS,
            replay_bytes: limits::REPLAY_BYTES,
            heartbeat_seconds: limits::MAX_HEARTBEAT,
            open_dialogs: session::limits::OPEN_DIALOGS,
            dialog_seconds: config::settings::limits::DIALOG_WAIT.as_secs(),
        },
    }
}
