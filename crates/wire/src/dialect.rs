//! The dialects of the family: their names and their differences (dialects.md 5 and 6). The list is closed: a dialect that
//! can be a superset of another is merged with it. `serve` detects a client's dialect and writes its lines.

mod rules;

pub use rules::SessionRule;

/// The prompt came during a run and did not say what to do with it, in the words of today's pi.
pub const BUSY: &str =
    "Agent is already processing. Specify streamingBehavior ('steer' or 'followUp') to queue the message.";

/// A prompt came during a compaction that a client asked for, or a move in the session tree, in the words of pi 1.5.2. Older agents
/// say [`BUSY`].
pub const COMPACTING: &str =
    "Cannot submit a prompt while compaction is in progress. Wait for compaction to finish and retry.";

/// [`BUSY`] as the dialects of omp and xcsh word it.
const BUSY_XCSH: &str =
    "Agent is already processing. Use steer() or followUp() to queue messages, or wait for completion.";

/// [`BUSY`] for clients that know one queue only; the originals started a second run over the first one.
const BUSY_HOOKS: &str = "Agent is already processing. Use queue_message to queue the message.";

/// A dialect of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Dialect {
    /// Not decided: a superset, until the client shows what it is.
    #[default]
    Auto,
    /// pi 0.12, 2025: three commands, no responses.
    Early,
    /// The web fork of pi, 2026.
    Web,
    /// pi 0.16 to 0.34, with hooks.
    Hooks,
    /// The first oh-my-pi.
    Omp,
    /// Today's oh-my-pi: the command names of `omp` with the frames of `xcsh`.
    OmpNow,
    /// xcsh.
    Xcsh,
    /// Today's pi, cumulative updates.
    Pi,
    /// Today's pi as it is: linear updates.
    PiDelta,
}

/// Which events tell of compactions (dialects.md 5, row 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompactionEvents {
    /// `compaction`, after a success.
    Early,
    /// `auto_compaction_start` and `auto_compaction_end`, for automatic ones only.
    Automatic,
    /// `compaction_start` and `compaction_end`, for all.
    All,
}

/// Roles that every client knows which knows roles at all; a strict one stops reading at any other (dialects.md 4).
const OLD_ROLES: [&str; 10] = [
    "user",
    "assistant",
    "toolResult",
    "bashExecution",
    "pythonExecution",
    "custom",
    "hookMessage",
    "branchSummary",
    "compactionSummary",
    "fileMention",
];

/// Events for sessions that have several clients.
const FOR_SEVERAL: [&str; 4] = [
    "bash_execution_start",
    "bash_execution_end",
    "connected",
    "session_closed",
];

impl Dialect {
    /// All of them: the undecided one, then those of the family, oldest first.
    pub const ALL: [Self; 9] = [
        Self::Auto,
        Self::Early,
        Self::Hooks,
        Self::Omp,
        Self::OmpNow,
        Self::Xcsh,
        Self::Web,
        Self::Pi,
        Self::PiDelta,
    ];

    /// The dialects that an existing program uses: all except [`Dialect::Auto`].
    pub fn spoken() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|dialect| *dialect != Self::Auto)
    }

    /// The names of all, as a sentence lists them.
    #[must_use]
    pub fn names() -> String {
        Self::ALL.map(Self::as_str).join(", ")
    }

    /// Which programs speak it.
    #[must_use]
    pub const fn doc(self) -> &'static str {
        match self {
            Self::Auto => "not decided: understands all and writes what all tolerate",
            Self::Early => "pi 0.12 (December 2025): prompt, abort, compact, and nothing is answered",
            Self::Hooks => "pi 0.16 to 0.34: responses, hooks, one queue, branches by line",
            Self::Omp => "the first oh-my-pi (1.337): ids of entries, hooks",
            Self::OmpNow => "today's oh-my-pi: host tools, todos, login",
            Self::Xcsh => "xcsh: todos, host tools, interrupts",
            Self::Web => "the web fork of pi: the protocol over a WebSocket, with a list of sessions",
            Self::Pi => "pi from 0.74 on, with updates that repeat the message so far",
            Self::PiDelta => "today's pi, from 0.84 on: updates contain only the new text",
        }
    }

    /// What `--rpc-dialect`, `hello` and `pinion schema --dialect` call it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Early => "early",
            Self::Web => "web",
            Self::Hooks => "hooks",
            Self::Omp => "omp",
            Self::OmpNow => "omp-now",
            Self::Xcsh => "xcsh",
            Self::Pi => "pi",
            Self::PiDelta => "pi-delta",
        }
    }

    /// The dialect with this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.as_str() == name)
    }

    /// Row 1. While undecided `serve` adds the others for clients that show signs of age.
    #[must_use]
    pub const fn compaction_events(self) -> CompactionEvents {
        match self {
            Self::Early => CompactionEvents::Early,
            Self::Web | Self::Hooks | Self::Omp | Self::OmpNow | Self::Xcsh => CompactionEvents::Automatic,
            Self::Auto | Self::Pi | Self::PiDelta => CompactionEvents::All,
        }
    }

    /// Row 2: the `type` of the event that says an extension failed, and its member for the extension's path. The undecided
    /// form has `extensionPath` with the same path in `hookPath`.
    #[must_use]
    pub const fn extension_error(self) -> (&'static str, &'static str) {
        if self.has_hooks() {
            ("hook_error", "hookPath")
        } else {
            ("extension_error", "extensionPath")
        }
    }

    /// Row 3: the `type` of a question of an extension. One question is one frame, never two.
    #[must_use]
    pub const fn ui_request(self) -> &'static str {
        if self.has_hooks() {
            "hook_ui_request"
        } else {
            "extension_ui_request"
        }
    }

    /// Do clients know that a question can be withdrawn (dialects.md 10.4, `cancel`)? Others say so with `hello`.
    #[must_use]
    pub const fn knows_ui_cancel(self) -> bool {
        matches!(self, Self::OmpNow | Self::Xcsh)
    }

    /// Row 4: returns true if failures become `error` events and commands get no response.
    #[must_use]
    pub const fn is_silent(self) -> bool {
        matches!(self, Self::Early)
    }

    /// Row 12: the error text for a prompt that arrives during a run without `streamingBehavior`.
    #[must_use]
    pub const fn busy(self) -> &'static str {
        match self {
            Self::Hooks | Self::Omp => BUSY_HOOKS,
            Self::OmpNow | Self::Xcsh => BUSY_XCSH,
            Self::Auto | Self::Early | Self::Web | Self::Pi | Self::PiDelta => BUSY,
        }
    }

    /// [`COMPACTING`] in the words of the dialect.
    #[must_use]
    pub const fn compacting(self) -> &'static str {
        match self {
            Self::PiDelta => COMPACTING,
            _ => self.busy(),
        }
    }

    /// Row 15: returns true if `steer` starts a run when none is active. `follow_up` waits in every dialect.
    #[must_use]
    pub const fn steering_starts_runs(self) -> bool {
        matches!(self, Self::OmpNow)
    }

    /// Returns true if a fallback model also has the events of oh-my-pi and xcsh (dialects.md 3).
    #[must_use]
    pub const fn tells_fallbacks(self) -> bool {
        matches!(self, Self::OmpNow | Self::Xcsh)
    }

    /// Row 35: returns true if each accepted prompt ends with `prompt_result`, and a run with `session_settled`.
    #[must_use]
    pub const fn reports_prompts(self) -> bool {
        matches!(self, Self::OmpNow)
    }

    /// Row 42: returns true if a slash command of an extension is answered when it begins. The client of oh-my-pi waits 30 seconds for
    /// that response, and a dialog of the command may take longer.
    #[must_use]
    pub const fn answers_commands_early(self) -> bool {
        matches!(self, Self::OmpNow)
    }

    /// Row 40: returns true if `agent_end` comes when the agent does nothing more by itself, and is left out for a run that it continues.
    /// The RPC client of oh-my-pi waits for one `agent_end` per prompt.
    #[must_use]
    pub const fn has_one_end(self) -> bool {
        matches!(self, Self::OmpNow)
    }

    /// Row 41: returns true if the model is asked again after an answer without text and calls.
    #[must_use]
    pub const fn asks_for_text(self) -> bool {
        matches!(self, Self::OmpNow)
    }

    /// Row 20: returns true if `ready` offers the protocol versions of oh-my-pi.
    #[must_use]
    pub const fn offers_versions(self) -> bool {
        matches!(self, Self::Auto | Self::OmpNow | Self::Omp)
    }

    /// Returns true if long lines come in chunks when the client asks for it. Clients of other dialects become clients of
    /// this one when they do.
    #[must_use]
    pub const fn has_chunks(self) -> bool {
        matches!(self, Self::OmpNow)
    }

    /// Returns true if failed responses have a `code` for some reasons (dialects.md 14).
    #[must_use]
    pub const fn has_error_codes(self) -> bool {
        matches!(self, Self::OmpNow)
    }

    /// Row 17: returns true if the result of a failed tool call is a string in `tool_execution_end`.
    #[must_use]
    pub const fn tool_errors_are_text(self) -> bool {
        matches!(self, Self::Early)
    }

    /// Returns true if tool results always have `details`. The early dialect and today's pi leave empty ones out.
    #[must_use]
    pub const fn results_have_details(self) -> bool {
        !matches!(self, Self::Auto | Self::Early | Self::Pi | Self::PiDelta)
    }

    /// Row 36: returns true if a result of `bash` repeats its output as `structuredContent`, as in pi from 1.4 on.
    #[must_use]
    pub const fn has_structured_content(self) -> bool {
        matches!(self, Self::PiDelta)
    }

    /// Row 18: returns true if updates contain only the new text.
    #[must_use]
    pub const fn has_delta_updates(self) -> bool {
        matches!(self, Self::PiDelta)
    }

    /// Returns true for today's pi. A process that starts with this dialect writes what pi changed since 0.74 in messages, results
    /// and session files: system messages, edits of the context, complete usage, and a system prompt without the date
    /// (pi-1.5-delta.md 3).
    #[must_use]
    pub const fn is_newest_pi(self) -> bool {
        matches!(self, Self::PiDelta)
    }

    /// Returns true for today's oh-my-pi. A process that starts with this dialect works as oh-my-pi 18.3.4 in the points of dialects.md
    /// 14.1, and its clients see the forms named there.
    #[must_use]
    pub const fn is_newest_omp(self) -> bool {
        matches!(self, Self::OmpNow)
    }

    /// Row 24: the name of the todo tool, and whether its items carry ids.
    #[must_use]
    pub const fn todo_tool(self) -> (&'static str, bool) {
        match self {
            Self::OmpNow => ("todo", false),
            _ => ("todo_write", true),
        }
    }

    /// Row 26: returns true if the answer of `bash` counts lines and bytes.
    #[must_use]
    pub const fn counts_bash_output(self) -> bool {
        matches!(self, Self::OmpNow | Self::Xcsh)
    }

    /// Returns true if results of failed calls and the statistics of a session have the members of today's oh-my-pi: `isError`,
    /// `reasoning`.
    #[must_use]
    pub const fn has_omp_members(self) -> bool {
        matches!(self, Self::OmpNow)
    }

    /// Returns true if clients of this dialect get the event without naming it in `hello`. Only the web dialect has
    /// several clients in one session; these events tell a client about commands of the others.
    #[must_use]
    pub fn sends_unasked(self, event: &str) -> bool {
        match event {
            "available_commands_update" => self.is_newest_omp(),
            _ => matches!(self, Self::Web) || !FOR_SEVERAL.contains(&event),
        }
    }

    /// Returns true if the lines of a message have a `messageId`, and `agent_end` says whether the run ended for good (dialects.md
    /// 14).
    #[must_use]
    pub const fn has_message_ids(self) -> bool {
        matches!(self, Self::OmpNow)
    }

    /// Row 28: are `setTitle` requests sent? `PI_RPC_EMIT_TITLE` asks for them where they are not.
    #[must_use]
    pub const fn sends_titles(self) -> bool {
        !matches!(self, Self::OmpNow | Self::Xcsh)
    }

    /// Row 29: the role of messages that extensions made.
    #[must_use]
    pub const fn custom_role(self) -> &'static str {
        match self {
            Self::Omp => "hookMessage",
            _ => "custom",
        }
    }

    /// Row 29: may a client of this dialect see a message of this role as it is? Others become hidden custom messages.
    #[must_use]
    pub fn knows_role(self, role: &str) -> bool {
        match self {
            // Today's pi has roles of its own, and more to come.
            Self::Auto | Self::Pi | Self::PiDelta => true,
            Self::OmpNow | Self::Xcsh => role == "developer" || OLD_ROLES.contains(&role),
            Self::Early | Self::Web | Self::Hooks | Self::Omp => OLD_ROLES.contains(&role),
        }
    }

    /// Returns true for clients that call extensions hooks.
    #[must_use]
    pub const fn has_hooks(self) -> bool {
        matches!(self, Self::Hooks | Self::Omp)
    }
}

#[cfg(test)]
mod tests {
    //! What follows from the rows of dialects.md 5 whose events do not exist yet; the others are tested from outside.
    use super::*;

    #[test]
    fn dialect_names_round_trip() {
        for dialect in Dialect::ALL {
            assert_eq!(Dialect::parse(dialect.as_str()), Some(dialect));
        }
        assert_eq!(Dialect::parse("klingon"), None);
    }

    #[test]
    fn row_02_error_event_name_follows_dialect() {
        for dialect in Dialect::ALL {
            let expected = match dialect {
                Dialect::Hooks | Dialect::Omp => ("hook_error", "hookPath"),
                _ => ("extension_error", "extensionPath"),
            };
            assert_eq!(dialect.extension_error(), expected, "{dialect:?}");
        }
    }

    #[test]
    fn row_03_dialog_frame_name_follows_dialect() {
        for dialect in Dialect::ALL {
            let expected = match dialect {
                Dialect::Hooks | Dialect::Omp => "hook_ui_request",
                _ => "extension_ui_request",
            };
            assert_eq!(dialect.ui_request(), expected, "{dialect:?}");
        }
    }

    #[test]
    fn row_24_todo_items_have_ids_except_omp() {
        assert_eq!(Dialect::Xcsh.todo_tool(), ("todo_write", true));
        assert_eq!(Dialect::Auto.todo_tool(), ("todo_write", true));
        assert_eq!(Dialect::OmpNow.todo_tool(), ("todo", false));
    }

    #[test]
    fn row_28_titles_are_sent_where_shown() {
        for dialect in Dialect::ALL {
            let expected = !matches!(dialect, Dialect::Xcsh | Dialect::OmpNow);
            assert_eq!(dialect.sends_titles(), expected, "{dialect:?}");
        }
    }
}
