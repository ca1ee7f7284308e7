//! Which dialogs a client can show: what clients declared of the methods they render, and of the events they want. Shared by all
//! sessions of a connection; what becomes of a question is the session's business.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;
use wire::canonical_event;
use wire::connection::HelloParams;
use wire::ui::{UiMethod, UiMethods};

/// Set when the client leaves `extension_ui_request` out of the events that it wants.
const DEAF: u32 = 1 << 16;

/// Set when many clients listen, none of which speaks for the others.
const SHARED: u32 = 1 << 17;

/// Set when nothing is shown, also after a `hello` of the client.
const NOTHING: u32 = 1 << 18;

/// What the client renders; everything until it says otherwise. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct UiCapabilities(Arc<AtomicU32>);

impl Default for UiCapabilities {
    fn default() -> Self {
        Self(Arc::new(AtomicU32::new(u32::from(UiMethods::ALL.bits()))))
    }
}

impl UiCapabilities {
    /// No client can answer or look, or `--no-ui` was given.
    pub(crate) fn nothing(&self) {
        self.0.store(NOTHING, Ordering::Relaxed);
    }

    /// There are several clients, and more may come: every method counts as shown.
    pub(crate) fn shared(&self) {
        self.0
            .store(SHARED | u32::from(UiMethods::ALL.bits()), Ordering::Relaxed);
    }

    /// Are many there?
    pub(crate) fn is_shared(&self) -> bool {
        self.0.load(Ordering::Relaxed) & SHARED != 0
    }

    /// Returns true if a client shows frames of this method.
    pub(crate) fn has(&self, method: UiMethod) -> bool {
        let bits = self.0.load(Ordering::Relaxed);
        // The methods are the lower half; the upper half has the flags.
        let methods = UiMethods::from_bits(u16::try_from(bits & 0xffff).unwrap_or_default());
        bits & DEAF == 0 && methods.has(method)
    }

    /// Listens to a `hello`. What it says nothing of, or nothing that can be understood, stays.
    pub(crate) fn apply_hello(&self, hello: &HelloParams) {
        // Not one atomic step: a session handles `hello`, and the sessions of a connection share one thread.
        let mut bits = self.0.load(Ordering::Relaxed);
        // One client of several must not speak for the others.
        if bits & (SHARED | NOTHING) != 0 {
            return;
        }
        let methods = match &hello.ui {
            // `null` takes back what an earlier `hello` said.
            Some(Value::Null) => Some(UiMethods::ALL),
            wish => wish.as_ref().and_then(UiMethods::read),
        };
        if let Some(methods) = methods {
            bits = bits & !0xffff | u32::from(methods.bits());
        }
        match &hello.events {
            Some(Value::Null) => bits &= !DEAF,
            Some(Value::Array(names)) => {
                // Clients use the names of their dialect, such as `hook_ui_request`.
                let names = names.iter().filter_map(Value::as_str).map(canonical_event);
                let is_wanted = names.into_iter().any(|name| name == "extension_ui_request");
                bits = if is_wanted { bits & !DEAF } else { bits | DEAF };
            }
            _ => {}
        }
        self.0.store(bits, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn hello(value: Value) -> HelloParams {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn ui_capabilities_persist_until_client_changes_them() {
        let rendered = UiCapabilities::default();
        assert!(rendered.has(UiMethod::Select) && rendered.has(UiMethod::OpenUrl));
        rendered.apply_hello(&hello(json!({"ui": ["select", "dance"]})));
        assert!(rendered.has(UiMethod::Select) && !rendered.has(UiMethod::Confirm));
        rendered.apply_hello(&hello(json!({"ui": "all", "deltas": true})));
        assert!(rendered.has(UiMethod::Select) && !rendered.has(UiMethod::Confirm));
        rendered.apply_hello(&hello(json!({"events": ["agent_end"]})));
        assert!(!rendered.has(UiMethod::Select));
        rendered.apply_hello(&hello(json!({"events": ["hook_ui_request"]})));
        assert!(rendered.has(UiMethod::Select) && !rendered.has(UiMethod::Confirm));
        rendered.apply_hello(&hello(json!({"ui": null, "events": null})));
        assert!(rendered.has(UiMethod::Confirm));
        rendered.shared();
        rendered.apply_hello(&hello(json!({"ui": []})));
        assert!(rendered.has(UiMethod::Confirm));
        rendered.nothing();
        rendered.apply_hello(&hello(json!({"ui": null, "events": null})));
        assert!(!rendered.has(UiMethod::Select));
    }
}
