//! The moments of a run at which it is aborted: what the model says so that they last, and by which line they are known.

use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use testkit::llm::{Before, ErrorKind, Reply, Request, Usage};

use crate::fuzz::prng::Prng;

/// Deltas of an answer that is to be aborted, and the pause after each: longer than any wait before the abort.
const DELTAS: u64 = 1_000;
/// See [`DELTAS`].
const DELTA_PAUSE: Duration = Duration::from_millis(1);
/// Bytes of a delta.
const DELTA_BYTES: usize = 12;
/// A gate that stays closed.
const NEVER: &str = "never";
/// Prompt tokens that leave no room in the window of the scripted model.
const FULL: u64 = 199_000;
/// Commands that run until they are killed.
const COMMANDS: [&str; 5] = [
    "sleep 300",
    "(trap '' TERM HUP INT; sleep 300) | cat",
    "sleep 300 & sleep 300",
    "while :; do echo tick; sleep 0.002; done",
    "head -c 3000000 /dev/zero | tr '\\0' x | fold -w 80; sleep 300",
];

/// A moment of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Moment {
    /// Between the prompt and the first delta.
    BeforeDelta,
    /// While text arrives.
    Text,
    /// While the arguments of a tool call arrive.
    Arguments,
    /// While a command runs.
    Bash,
    /// While a retry is waited for.
    Retry,
    /// While a summary is made.
    Compaction,
}

impl Moment {
    /// All of them.
    pub(super) const ALL: [Self; 6] = [
        Self::BeforeDelta,
        Self::Text,
        Self::Arguments,
        Self::Bash,
        Self::Retry,
        Self::Compaction,
    ];

    /// Any of them, each as likely as the others.
    pub(super) fn random(random: &mut Prng) -> Self {
        random.pick(&Self::ALL).copied().unwrap_or(Self::BeforeDelta)
    }

    /// Its name in the report and on the command line.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::BeforeDelta => "before-delta",
            Self::Text => "text",
            Self::Arguments => "arguments",
            Self::Bash => "bash",
            Self::Retry => "retry",
            Self::Compaction => "compaction",
        }
    }

    /// The moment with this name.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn named(name: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|moment| moment.name() == name);
        let known = Self::ALL.map(Self::name).join(", ");
        found.with_context(|| format!("there is no moment called {name}; there are {known}"))
    }

    /// A command that runs until it is killed; empty at other moments.
    pub(super) fn command(self, random: &mut Prng) -> &'static str {
        match self {
            Self::Bash => random.pick(&COMMANDS).copied().unwrap_or_default(),
            _ => "",
        }
    }

    /// What the model says in a round, which lasts until it is aborted: `command` is what it wants to run, and `full` makes
    /// the context full, so that it is compacted.
    pub(super) fn rule(
        self,
        command: &str,
        full: bool,
        random: &mut Prng,
    ) -> impl Fn(&Request) -> Reply + Send + Sync + 'static {
        let reply = match self {
            Self::BeforeDelta => before_delta(random),
            Self::Text => Reply::text_deltas(DELTAS, DELTA_BYTES).chunk_delay(DELTA_PAUSE),
            Self::Arguments => Reply::write_deltas("out.txt", DELTAS, DELTA_BYTES).chunk_delay(DELTA_PAUSE),
            Self::Bash => Reply::tool("toolu_01", "bash", json!({ "command": command })),
            Self::Retry => Reply::error(ErrorKind::Overloaded),
            Self::Compaction => Reply::text_deltas(40, DELTA_BYTES).usage(Usage {
                input: if full { FULL } else { 100 },
                ..Usage::default()
            }),
        };
        let summary = before_delta(random);
        move |request| {
            let has_tools = request.body.get("tools").and_then(Value::as_array);
            // Only a summary is asked for without tools.
            if has_tools.is_none_or(Vec::is_empty) {
                summary.clone()
            } else {
                reply.clone()
            }
        }
    }

    /// Returns true if this line shows that the moment has begun.
    pub(super) fn begins(self, line: &Value) -> bool {
        let kind = line.get("type").and_then(Value::as_str).unwrap_or_default();
        let delta = line
            .pointer("/assistantMessageEvent/type")
            .and_then(Value::as_str);
        match self {
            Self::BeforeDelta => kind == "agent_start",
            Self::Text => delta == Some("text_delta"),
            Self::Arguments => delta == Some("toolcall_delta"),
            Self::Bash => kind == "tool_execution_start",
            Self::Retry => kind == "auto_retry_start",
            Self::Compaction => kind == "compaction_start",
        }
    }

    /// Returns true if this line ends the aborted work.
    pub(super) fn ends(self, line: &Value) -> bool {
        let kind = line.get("type").and_then(Value::as_str);
        kind == Some(match self {
            Self::Retry => "auto_retry_end",
            Self::Compaction => "compaction_end",
            _ => "agent_end",
        })
    }
}

/// An answer that stops before its head, behind it, or behind some thinking.
fn before_delta(random: &mut Prng) -> Reply {
    let gate = Before {
        gate: Some(NEVER.to_owned()),
        ..Before::default()
    };
    match random.below(3) {
        0 => Reply::text(["x"]).before(gate),
        1 => Reply::new().gate(NEVER).then_text(["x"]),
        _ => Reply::new().raw(": nothing yet\n\n").gate(NEVER).then_text(["x"]),
    }
}
