//! What the registrations of extensions change in the session: the tools of the model, the hook points at which the machine waits, and the
//! events that the outbox queues for listeners.

use agent::{Change, HOOK_POINTS, Subscriptions};
use extensions::combining::client_events;

use super::super::session_core::SessionCore;
use super::super::tool_calls::Layer;
use super::{Extensions, extension_tools};

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

/// Tells the machine and the outbox which events have listeners, after registrations have changed.
pub(crate) fn sync_hooks(extensions: &Extensions, core: &mut SessionCore) {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    // Executables that are only told need no wait, so they do not delay the run.
    let mut waits = HOOK_POINTS.to_vec();
    waits.retain(|name| extensions.waits_for(name));
    let told: Vec<&'static str> = client_events()
        .filter(|name| extensions.has_listener(name))
        .collect();
    // The machine tells listeners of its events itself: it knows which turn they belong to, and which ones listeners had already.
    let mut tells = told.clone();
    tells.retain(|name| !waits.contains(name));
    core.outbox.listeners().listen_to(told);
    let subscribed = Subscriptions {
        waits: owned(&waits),
        tells: owned(&tells),
    };
    // An input that changes nothing would only make the record of inputs longer.
    if subscribed != *core.machine.subscriptions() {
        core.apply(Change::Hooks(subscribed));
    }
}
