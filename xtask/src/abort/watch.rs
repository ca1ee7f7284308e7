//! The order of events: what begins ends, once, and nothing of a run comes outside of it. Times are not known here.

use std::collections::BTreeSet;

use serde_json::Value;

/// What the lines up to now say is going on.
#[derive(Debug, Default)]
pub(super) struct Watch {
    running: bool,
    turn: bool,
    message: bool,
    tools: BTreeSet<String>,
    compacting: bool,
    retrying: bool,
    /// Commands that are not answered.
    unanswered: BTreeSet<String>,
    /// True after the agent reported that no work is left, until the next command.
    quiet: bool,
    problems: Vec<String>,
}

impl Watch {
    /// A command with this id is about to be written; `starts` something that may take long.
    pub(super) fn asked(&mut self, id: &str, starts: bool) {
        self.unanswered.insert(id.to_owned());
        if starts {
            self.quiet = false;
        }
    }

    /// Looks at the next line.
    pub(super) fn see(&mut self, line: &Value) {
        let text = |name: &str| line.get(name).and_then(Value::as_str).unwrap_or_default();
        let kind = text("type");
        if self.quiet && is_of_work(kind) {
            self.problem(kind, "after agent_settled");
        }
        let inside =
            kind.starts_with("turn_") || kind.starts_with("message_") || kind.starts_with("tool_execution_");
        if inside && !self.running {
            self.problem(kind, "outside of a run");
        }
        match kind {
            "agent_start" => self.open(|watch| &mut watch.running, kind),
            "turn_start" => self.open(|watch| &mut watch.turn, kind),
            "message_start" => self.open(|watch| &mut watch.message, kind),
            "compaction_start" => self.open(|watch| &mut watch.compacting, kind),
            "auto_retry_start" => self.retrying = true,
            "message_update" if !self.message => self.problem(kind, "without message_start"),
            "message_end" => self.close(|watch| &mut watch.message, kind),
            "turn_end" => {
                self.expect_done(kind);
                self.close(|watch| &mut watch.turn, kind);
            }
            "agent_end" => {
                self.expect_done(kind);
                if std::mem::take(&mut self.turn) {
                    self.problem(kind, "before turn_end");
                }
                self.close(|watch| &mut watch.running, kind);
            }
            "compaction_end" => self.close(|watch| &mut watch.compacting, kind),
            "auto_retry_end" => self.close(|watch| &mut watch.retrying, kind),
            "agent_settled" => {
                self.expect_idle("at agent_settled");
                self.quiet = true;
            }
            "response" if !self.unanswered.remove(text("id")) => self.problem(
                kind,
                &format!("to {:?}, which was not asked or is answered", text("id")),
            ),
            "tool_execution_start" => {
                self.tools.insert(text("toolCallId").to_owned());
            }
            "tool_execution_update" if !self.tools.contains(text("toolCallId")) => {
                self.problem(kind, "of a call that does not run");
            }
            "tool_execution_end" if !self.tools.remove(text("toolCallId")) => {
                self.problem(kind, "of a call that does not run");
            }
            _ => {}
        }
    }

    /// Nothing may be going on.
    pub(super) fn expect_idle(&mut self, when: &str) {
        for (open, what) in [
            (self.running, "run"),
            (self.turn, "turn"),
            (self.message, "message"),
            (!self.tools.is_empty(), "tool call"),
            (self.compacting, "compaction"),
            (self.retrying, "retry"),
        ] {
            if open {
                self.problems.push(format!("a {what} is still open {when}"));
            }
        }
    }

    /// Every command must be answered.
    pub(super) fn expect_answered(&mut self) {
        for id in std::mem::take(&mut self.unanswered) {
            self.problems.push(format!("command {id} was not answered"));
        }
    }

    /// Returns the problems since the last call.
    pub(super) fn take_problems(&mut self) -> Vec<String> {
        std::mem::take(&mut self.problems)
    }

    /// Adds a problem that the caller found.
    pub(super) fn add(&mut self, problem: String) {
        self.problems.push(problem);
    }

    fn problem(&mut self, kind: &str, what: &str) {
        self.problems.push(format!("{kind} {what}"));
    }

    fn open(&mut self, flag: impl Fn(&mut Self) -> &mut bool, kind: &str) {
        if std::mem::replace(flag(self), true) {
            self.problem(kind, "a second time");
        }
    }

    fn close(&mut self, flag: impl Fn(&mut Self) -> &mut bool, kind: &str) {
        if !std::mem::replace(flag(self), false) {
            self.problem(kind, "without a start");
        }
    }

    /// Messages and calls must have ended.
    fn expect_done(&mut self, kind: &str) {
        if std::mem::take(&mut self.message) {
            self.problem(kind, "before message_end");
        }
        if !std::mem::take(&mut self.tools).is_empty() {
            self.problem(kind, "before tool_execution_end");
        }
    }
}

/// Returns true for an event of a run, a compaction or a retry.
fn is_of_work(kind: &str) -> bool {
    let families = [
        "agent_",
        "turn_",
        "message_",
        "tool_execution_",
        "compaction_",
        "auto_retry_",
    ];
    families.iter().any(|family| kind.starts_with(family))
}
