//! Lines of the Agent Client Protocol: calls before `initialize`, good calls, calls with odd parts, calls about sessions that do not
//! exist, broken bytes, notifications, prompts, answers to permission requests and about files and terminals, and answers that nothing
//! waits for. Logins are left out.

use std::path::Path;

use serde_json::{Value, json};

use crate::sample::{Plan, Sample};

use super::lines::{ASKED, Expect, Line, Oddities, id};

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

/// Prompts of a run: each makes its session longer.
const PROMPTS: u64 = 2_000;

/// The sessions that are stored before the program starts: the first is loaded again and again, the second gets the prompts.
pub(super) fn stored_sessions(cwd: &Path) -> [Sample; 2] {
    [1, 2].map(|seed| {
        Sample::new(&Plan {
            entries: 12,
            bytes: 8_000,
            seed,
            cwd: cwd.to_string_lossy().into_owned(),
            compaction: false,
        })
    })
}

/// The answers of the model: each tool that needs the client, then a text. Prompts after the last answer fail.
pub(super) fn replies() -> Value {
    let tools = [
        ("read", json!({"path": "a.txt"})),
        ("write", json!({"path": "b.txt", "content": "b"})),
        ("bash", json!({"command": "true"})),
        (
            "edit",
            json!({"path": "a.txt", "edits": [{"oldText": "text", "newText": "word"}]}),
        ),
    ];
    let count = usize::try_from(PROMPTS).unwrap_or(usize::MAX);
    let turn = |(name, args): &(&str, Value)| {
        let call = json!({"stream": [{"tool": {"name": name, "args": args}}]});
        [call, json!({"stream": [{"text": "Done."}]})]
    };
    tools.iter().cycle().take(count).flat_map(turn).collect()
}

/// The lines that end a prompt: it is cancelled, and the requests that it still makes are refused.
pub(super) fn last_lines(cwd: &Path) -> [String; 2] {
    let [_, Sample { id, .. }] = stored_sessions(cwd);
    let cancel = json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": id}});
    let error = json!({"code": -32_603, "message": "No"});
    let answer = json!({"jsonrpc": "2.0", "id": "$asked", "error": error});
    [cancel.to_string(), answer.to_string()]
}

/// Makes lines without end.
pub(super) struct Generator {
    odd: Oddities,
    number: u64,
    cwd: String,
    session: String,
    /// The session for prompts.
    prompted: String,
    prompts: u64,
}

impl Generator {
    /// Lines for a program that works in `cwd`, where `stored_session` is.
    pub(super) fn new(seed: u64, cwd: &Path) -> Self {
        let [session, prompted] = stored_sessions(cwd).map(|sample| sample.id);
        Self {
            odd: Oddities::new(seed),
            number: 0,
            cwd: cwd.to_string_lossy().into_owned(),
            session,
            prompted,
            prompts: 0,
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
            0 => {
                let sessions = [self.session.as_str(), self.prompted.as_str()];
                let session = self.odd.random.pick(&sessions).copied().unwrap_or_default();
                json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}})
            }
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

    /// A prompt, or a call that makes its session ready for one.
    fn prompt(&mut self) -> Value {
        if self.prompts.is_multiple_of(10) {
            let params = json!({"sessionId": self.prompted, "cwd": self.cwd, "mcpServers": []});
            return self.call("session/resume", &params);
        }
        let text = self.odd.text(60);
        let mut prompt = vec![json!({"type": "text", "text": format!("Go {text}")})];
        if self.odd.random.chance(30) {
            prompt.push(self.odd.any(2));
        }
        let params = json!({"sessionId": self.prompted, "prompt": prompt});
        self.call("session/prompt", &params)
    }

    /// An answer to the last request of the agent. A good one has the members of every answer: which request it is, is not known.
    fn answer(&mut self) -> Vec<u8> {
        let odd = self.odd.any(2);
        let options = ["allow-once", "allow-session", "reject", "none"];
        let option = self.odd.random.pick(&options).copied().unwrap_or_default();
        let mut result = json!({
            "outcome": {"outcome": "selected", "optionId": option}, "content": "some text", "terminalId": "t1",
            "exitCode": 0, "signal": null, "output": "done", "truncated": false,
        });
        let members = [
            "outcome",
            "content",
            "terminalId",
            "exitCode",
            "output",
            "truncated",
        ];
        let member = self.odd.random.pick(&members).copied().unwrap_or_default();
        let body = match self.odd.random.below(10) {
            0..5 => ("result", result),
            5..8 => {
                if let Some(value) = result.get_mut(member) {
                    *value = odd;
                }
                ("result", result)
            }
            8 => ("result", odd),
            _ => ("error", json!({"code": -32_603, "message": "No", "data": odd})),
        };
        let mut answer = json!({"jsonrpc": "2.0", "id": "$asked", body.0: body.1});
        // Some libraries write the other member, too.
        if let Some(answer) = answer.as_object_mut().filter(|_| self.odd.random.chance(20)) {
            answer.entry("error").or_insert(Value::Null);
            answer.entry("result").or_insert(Value::Null);
        }
        let text = answer.to_string();
        debug_assert!(text.contains(ASKED), "{text}");
        text.into_bytes()
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

    /// The line, what must happen, and whether it answers the agent.
    fn line(&mut self) -> (Vec<u8>, Expect, bool) {
        // Answers come often, so that most requests of the agent are answered before their prompt is cancelled.
        if self.number > EARLY && self.odd.random.chance(10) {
            return (self.answer(), Expect::Nothing, true);
        }
        let (bytes, expect) = self.message();
        (bytes, expect, false)
    }

    fn message(&mut self) -> (Vec<u8>, Expect) {
        let bytes = |value: Value| value.to_string().into_bytes();
        if self.number < EARLY {
            let call = self.call("session/list", &json!({}));
            return (bytes(call), Expect::Code(INVALID_REQUEST));
        }
        if self.number == EARLY {
            let able = json!({"fs": {"readTextFile": true, "writeTextFile": true}, "terminal": true});
            let params = json!({"protocolVersion": 1, "clientCapabilities": able});
            return (bytes(self.call("initialize", &params)), Expect::OwnId);
        }
        if self.prompts < PROMPTS && self.odd.random.chance(4) {
            let call = self.prompt();
            self.prompts += 1;
            return (bytes(call), Expect::OwnId);
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
        let (bytes, expect, answers) = self.line();
        let number = self.number;
        self.number += 1;
        Some(Line {
            number,
            bytes: super::lines::without_line_feed(bytes),
            expect,
            answers,
        })
    }
}
