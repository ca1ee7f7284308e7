//! Lines of the Agent Client Protocol: calls before `initialize`, good calls, calls with odd parts, calls about sessions that do not
//! exist, broken bytes, notifications and answers that nothing waits for. Calls that would ask a model or log in are left out.

use std::path::Path;

use serde_json::{Value, json};

use crate::sample::{Plan, Sample};

use super::lines::{Expect, Line, Oddities, id};

/// Lines before `initialize`.
const EARLY: u64 = 20;
/// A member has the wrong type or value.
const INVALID_PARAMS: i64 = -32_602;
/// A message is no request, or comes at the wrong time.
const INVALID_REQUEST: i64 = -32_600;
/// The method does not exist.
const NO_METHOD: i64 = -32_601;
/// The session is not open.
const NOT_FOUND: i64 = -32_002;

/// Calls about a session.
const SESSION_METHODS: [&str; 4] = [
    "session/prompt",
    "session/set_mode",
    "session/set_config_option",
    "session/close",
];
/// All calls whose parameters may have any value: without a good `cwd` none of them opens a session.
const METHODS: [&str; 11] = [
    "session/new",
    "session/load",
    "session/resume",
    "session/fork",
    "session/list",
    "session/close",
    "session/delete",
    "session/prompt",
    "session/set_mode",
    "session/set_config_option",
    "initialize",
];

/// A session that is stored before the program starts.
pub(super) fn stored_session(cwd: &Path) -> Sample {
    Sample::new(&Plan {
        entries: 12,
        bytes: 8_000,
        seed: 1,
        cwd: cwd.to_string_lossy().into_owned(),
        compaction: false,
    })
}

/// Makes lines without end.
pub(super) struct Generator {
    odd: Oddities,
    number: u64,
    cwd: String,
    session: String,
}

impl Generator {
    /// Lines for a program that works in `cwd`, where `stored_session` is.
    pub(super) fn new(seed: u64, cwd: &Path) -> Self {
        Self {
            odd: Oddities::new(seed),
            number: 0,
            cwd: cwd.to_string_lossy().into_owned(),
            session: stored_session(cwd).id,
        }
    }

    fn call(&self, method: &str, params: &Value) -> Value {
        json!({"jsonrpc": "2.0", "id": id(self.number), "method": method, "params": params})
    }

    /// A call whose outcome is known.
    fn known(&mut self) -> (Value, Expect) {
        let odd = self.odd.text(20);
        match self.odd.random.below(8) {
            0 => (self.call(&format!("x{odd}"), &json!({})), Expect::Code(NO_METHOD)),
            1 => {
                let methods = &SESSION_METHODS;
                let method = self.odd.random.pick(methods).copied().unwrap_or_default();
                let params = json!({
                    "sessionId": format!("no-{odd}"), "prompt": [{"type": "text", "text": "x"}], "modeId": "ask",
                    "configId": "mode", "value": "ask",
                });
                (self.call(method, &params), Expect::Code(NOT_FOUND))
            }
            2 => {
                let list = json!([self.odd.any(3)]);
                let method = self.odd.random.pick(&METHODS).copied().unwrap_or_default();
                (self.call(method, &list), Expect::Code(INVALID_PARAMS))
            }
            3 => {
                let mut call = self.call("session/list", &json!({}));
                if let Some(version) = call.get_mut("jsonrpc") {
                    *version = json!("1.0");
                }
                (call, Expect::Code(INVALID_REQUEST))
            }
            4 => {
                let params = json!({"cwd": format!("relative/{odd}"), "mcpServers": []});
                (self.call("session/new", &params), Expect::Code(INVALID_PARAMS))
            }
            5 => {
                let params = json!({"sessionId": self.session, "cwd": self.cwd, "mcpServers": []});
                (self.call("session/load", &params), Expect::OwnId)
            }
            6 => (
                self.call("session/list", &json!({"cwd": self.cwd})),
                Expect::OwnId,
            ),
            _ => {
                let modes = ["ask", "auto", "read-only", odd.as_str()];
                let mode = self.odd.random.pick(&modes).copied().unwrap_or_default();
                let params = json!({"sessionId": self.session, "modeId": mode});
                (self.call("session/set_mode", &params), Expect::OwnId)
            }
        }
    }

    /// A call with parameters of any kind. One about the open session may have any outcome.
    fn odd_call(&mut self) -> Value {
        let method = self.odd.random.pick(&METHODS).copied().unwrap_or_default();
        let mut params = self.odd.object(0);
        for name in [
            "sessionId",
            "modeId",
            "configId",
            "value",
            "cursor",
            "protocolVersion",
            "mcpServers",
        ] {
            if self.odd.random.chance(30) {
                let value = self.odd.any(2);
                params.insert(name.to_owned(), value);
            }
        }
        if self.odd.random.chance(50) && method != "session/delete" {
            params.insert("sessionId".to_owned(), json!(self.session));
        }
        // A good working directory would open sessions, and a good text would ask a model.
        for name in ["cwd", "prompt"] {
            if self.odd.random.chance(60) {
                let value = json!([self.odd.random.below(9)]);
                params.insert(name.to_owned(), value);
            } else {
                params.shift_remove(name);
            }
        }
        self.call(method, &Value::Object(params))
    }

    /// A message that is never answered.
    fn silent(&mut self) -> Value {
        match self.odd.random.below(4) {
            0 => json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": self.session}}),
            1 => {
                json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": self.odd.any(2)}})
            }
            2 => {
                let params = self.odd.object(0);
                json!({"jsonrpc": "2.0", "method": self.odd.text(20), "params": params})
            }
            // An answer to a request that was never made.
            _ => {
                json!({"jsonrpc": "2.0", "id": self.odd.random.below(1_000) + 1_000_000, "result": self.odd.any(2)})
            }
        }
    }

    /// A good call with broken bytes. The rest of it may be a notification, an answer, or no message at all.
    fn broken(&mut self) -> Vec<u8> {
        let mut call = self.known().0;
        // Another letter, since a broken id may otherwise be the good id of another line.
        if let Some(own) = call.get_mut("id") {
            *own = json!(format!("m{}", self.number));
        }
        let mut bytes = call.to_string().into_bytes();
        for _ in 0..=self.odd.random.below(3) {
            self.odd.mutate(&mut bytes);
        }
        bytes
    }

    fn line(&mut self) -> (Vec<u8>, Expect) {
        let bytes = |value: Value| value.to_string().into_bytes();
        if self.number < EARLY {
            let call = self.call("session/list", &json!({}));
            return (bytes(call), Expect::Code(INVALID_REQUEST));
        }
        if self.number == EARLY {
            let params = json!({"protocolVersion": 1, "clientCapabilities": {}});
            return (bytes(self.call("initialize", &params)), Expect::OwnId);
        }
        match self.odd.random.below(100) {
            0..45 => {
                let (call, expect) = self.known();
                (bytes(call), expect)
            }
            45..70 => (bytes(self.odd_call()), Expect::OwnId),
            70..80 => (bytes(self.silent()), Expect::Nothing),
            _ if self.odd.random.chance(50) => (self.broken(), Expect::Anything),
            _ => (self.odd.rubbish(), Expect::Anything),
        }
    }
}

impl Iterator for Generator {
    type Item = Line;

    fn next(&mut self) -> Option<Line> {
        let (bytes, expect) = self.line();
        let number = self.number;
        self.number += 1;
        Some(Line {
            number,
            bytes: super::lines::without_line_feed(bytes),
            expect,
        })
    }
}
