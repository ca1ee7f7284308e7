//! The decision about a call: modes, rules, and what the user allowed for the session. Permissions are off by default.
//!
//! Of two rules the stricter counts: deny before ask before allow. What the project says can only make things stricter. Rules
//! look at what a call says it does; they are no sandbox for what a program does that was allowed to run.

use std::collections::VecDeque;

use wire::state::PermissionMode;

use super::call::{Call, Subject};
use super::limits;
use super::paths::Bases;
use super::rule::Rule;
use super::settings::PermissionSettings;
use super::strings;
use super::visible;

/// Tools that change no file and run no program.
const READING: [&str; 5] = ["read", "grep", "find", "ls", "todo_write"];
/// Tools that write. No rule can make them read-only.
const WRITING: [&str; 2] = ["edit", "write"];

/// The decision about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It may run.
    Run,
    /// The user is to be asked.
    Ask,
    /// It must not; the text is for the model.
    Refuse(String),
}

/// What holds in a session.
#[derive(Debug, Clone)]
pub struct Policy {
    /// What the user chose.
    chosen: PermissionMode,
    /// What the project wants at least.
    floor: PermissionMode,
    allow: Vec<Rule>,
    ask: Vec<Rule>,
    deny: Vec<Rule>,
    /// Calls that the user allowed for the session, oldest first.
    granted: VecDeque<String>,
}

impl Policy {
    /// The policy of a session, and one sentence for each rule that cannot be read. `chosen` is the user's own choice of a
    /// mode, which comes before the user's settings. Follows the links of the paths in the rules.
    #[must_use]
    pub fn new(
        settings: &PermissionSettings,
        chosen: Option<PermissionMode>,
        bases: Bases<'_>,
    ) -> (Self, Vec<String>) {
        let mut notes = Vec::new();
        let policy = Self {
            chosen: chosen.unwrap_or_else(|| settings.user.mode()),
            floor: settings.project.mode(),
            allow: rules(&settings.user.allow, bases, false, &mut notes),
            ask: Vec::from_iter([&settings.user.ask, &settings.project.ask])
                .into_iter()
                .flat_map(|texts| rules(texts, bases, true, &mut notes))
                .collect(),
            deny: Vec::from_iter([&settings.user.deny, &settings.project.deny])
                .into_iter()
                .flat_map(|texts| rules(texts, bases, true, &mut notes))
                .collect(),
            granted: VecDeque::new(),
        };
        (policy, notes)
    }

    /// The mode that holds.
    #[must_use]
    pub fn mode(&self) -> PermissionMode {
        self.chosen.max(self.floor)
    }

    /// The user chooses another mode; the project's holds at least.
    pub fn choose(&mut self, mode: PermissionMode) {
        self.chosen = mode;
    }

    /// What the policy forbids, as sentences for the system prompt.
    #[must_use]
    pub fn limits(&self) -> Vec<String> {
        let mode = self.mode();
        let mut limits: Vec<String> = strings::mode_limit(mode).map(str::to_owned).into_iter().collect();
        if !mode.is_off() && !self.deny.is_empty() {
            let named = self.deny.iter().take(limits::PROMPT_RULES);
            let rules: Vec<&str> = named.map(|rule| rule.text.as_str()).collect();
            limits.push(strings::deny_rules(&rules, self.deny.len() - rules.len()));
        }
        limits
    }

    /// The user allowed a call: others like it run without a question.
    pub fn grant(&mut self, call: &Call) {
        if self.granted.len() >= limits::GRANTS {
            self.granted.pop_front();
        }
        self.granted.push_back(call.key());
    }

    /// Decides about a call.
    #[must_use]
    pub fn judge(&self, call: &Call) -> Verdict {
        let mode = self.mode();
        if mode.is_off() {
            return Verdict::Run;
        }
        if let Some(rule) = self.deny.iter().find(|rule| rule.forbids(call)) {
            return Verdict::Refuse(strings::denied_by(&rule.text));
        }
        let is_opaque = matches!(&call.subject, Subject::Command(script) if script.is_opaque());
        let is_unclear = |rule: &Rule| is_opaque && rule.looks_into_commands() || rule.may_forbid(call);
        if self.deny.iter().any(is_unclear) {
            return Verdict::Refuse(strings::UNCLEAR_COMMAND.to_owned());
        }
        let is_reading = READING.contains(&call.tool.as_str()) || matches!(call.subject, Subject::Nothing);
        let is_allowed = self.allows(call);
        if mode == PermissionMode::ReadOnly
            && !is_reading
            && (WRITING.contains(&call.tool.as_str()) || !is_allowed)
        {
            return Verdict::Refuse(strings::read_only(&call.tool));
        }
        if self.granted.contains(&call.key()) {
            return Verdict::Run;
        }
        let asks = self.ask.iter().any(|rule| rule.forbids(call) || is_unclear(rule));
        if asks || mode == PermissionMode::Ask && !is_reading && !is_allowed {
            return Verdict::Ask;
        }
        Verdict::Run
    }

    /// Returns true if rules allow everything that the call does.
    fn allows(&self, call: &Call) -> bool {
        if self.allow.iter().any(|rule| rule.allows(call)) {
            return true;
        }
        let Subject::Command(script) = &call.subject else {
            return false;
        };
        let mut commands = script.commands().peekable();
        commands.peek().is_some()
            && script.is_plain()
            && commands.all(|command| self.allow.iter().any(|rule| rule.allows_command(call, command)))
    }
}

/// Returns the programs that deny rules for `bash` name, alone or with any arguments, as names or paths. The sandbox keeps
/// commands from running and reading them, so that a script cannot either. Rules for some arguments (`git push *`) name none.
#[must_use]
pub fn denied_programs(settings: &PermissionSettings, bases: Bases<'_>) -> Vec<String> {
    let texts = settings.user.deny.iter().chain(&settings.project.deny);
    let rules = texts.filter_map(|text| Rule::parse(text, bases).ok());
    rules
        .filter_map(|rule| rule.program().map(str::to_owned))
        .collect()
}

/// Parses rules. An unreadable rule allows nothing; in a list that forbids, it forbids all calls of its tool.
fn rules(texts: &[String], bases: Bases<'_>, forbids: bool, notes: &mut Vec<String>) -> Vec<Rule> {
    let read = texts.iter().filter_map(|text| match Rule::parse(text, bases) {
        Ok(rule) => Some(rule),
        Err((error, whole)) => {
            let text = visible::line(text, limits::ASKED_PATH);
            notes.push(format!("The permission rule \"{text}\" cannot be read: {error}"));
            forbids.then_some(whole)
        }
    });
    read.collect()
}
