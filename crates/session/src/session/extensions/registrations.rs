//! What the registrations of extensions change in the session: the tools of the model, and the hook points at which the machine
//! waits.

use agent::{Change, Subscriptions};

use super::super::session_core::SessionCore;
use super::super::tool_calls::Layer;
use super::{Extensions, extension_tools};

/// Points at which the machine asks hooks, whether or not one of them may answer.
const ASKED: [&str; 5] = [
    "message_end",
    "tool_call",
    "tool_result",
    "agent_before_settle",
    "session_before_compact",
];

/// Events of a run that hooks may subscribe to.
const EVENTS: [&str; 10] = [
    "agent_start",
    "turn_start",
    "message_start",
    "message_update",
    "tool_execution_start",
    "tool_execution_update",
    "tool_execution_end",
    "turn_end",
    "agent_end",
    "agent_settled",
];

/// Further events of the machine: subscribers receive them, and nothing waits.
const TOLD: [&str; 7] = [
    "queue_update",
    "compaction_start",
    "compaction_end",
    "auto_retry_start",
    "auto_retry_end",
    "ttsr_triggered",
    "todo_reminder",
];

/// Uses the tools and commands that extensions register now.
pub(crate) fn use_registrations(extensions: &mut Extensions, core: &mut SessionCore) {
    extensions.state.mark_stale();
    // A process takes a tool that it registers as active, which the command line or the client may have ruled out.
    extensions.state.forget_member("activeTools");
    // The prompt lists the tools of extensions.
    core.workspace.forget_system_prompt();
    let options = &core.agent.options;
    core.tools.replace(
        Layer::Extension,
        extension_tools(&extensions.links, options.dialect),
        // The command line may name a tool before its extension is loaded again.
        |name| options.tools.iter().any(|named| named == name),
        |name| options.allows_tool(name),
    );
    sync_hooks(extensions, core);
}

/// Tells the machine which hook points have subscribers, after registrations have changed.
pub(crate) fn sync_hooks(extensions: &Extensions, core: &mut SessionCore) {
    let mut subscribed = Subscriptions::default();
    for name in ASKED.into_iter().chain(EVENTS).chain(TOLD) {
        if !extensions.has_listener(name) {
            continue;
        }
        // Executables that are only told need no wait, so they do not delay the run.
        let is_asked = ASKED.contains(&name) || (EVENTS.contains(&name) && extensions.waits_for(name));
        let names = if is_asked {
            &mut subscribed.waits
        } else {
            &mut subscribed.tells
        };
        names.push(name.to_owned());
    }
    // An input that changes nothing would only make the record of inputs longer.
    if subscribed != *core.machine.subscriptions() {
        core.apply(Change::Hooks(subscribed));
    }
}
