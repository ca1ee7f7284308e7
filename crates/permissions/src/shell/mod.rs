//! A command line for bash: which commands it runs, wherever they stand in it, and whether that is everything it runs.
//!
//! The line is parsed with a grammar of bash (`grammar`, `simple`, `expansion`) that accepts only what it understands
//! completely. `judge` walks over the tree; what a program does with its arguments are `steps` for it. Two questions are answered. To allow a line, every command must be known and
//! nothing else may happen: the line is *plain*. To forbid it, one of its commands that may be a forbidden one is enough. A
//! line whose commands are only made when it runs, or that is not understood, is *opaque*. What programs do by themselves
//! (scripts, `make`) is beyond rules; `docs/guides/permissions.md` says so.
//!
//! Why no parser of others: `tree-sitter-bash` 0.25 and `brush-parser` 0.4 were tried on a hundred lines. Both read some of
//! them otherwise than bash and report no error: `r\<newline>m x` and `"${x:-'$(rm x)'}"` (tree-sitter-bash),
//! `echo \$'a\'; rm x #'` and `!(rm x)` (brush-parser). The first took 9.7 s for 10,000 here-documents, the second 3.6 s for 25
//! parentheses.

mod ast;
mod bindings;
mod builtins;
mod code;
mod computed;
mod cursor;
mod expansion;
mod finder;
mod forms;
mod git;
mod grammar;
mod judge;
mod node;
mod options;
mod planted;
mod programs;
mod python;
mod runs;
mod simple;
mod steps;
mod values;
mod variables;
mod xargs;

#[cfg(test)]
mod tests;

use self::judge::Judge;

/// Longest line that is looked into, in bytes; longer ones are opaque.
const MAX_BYTES: usize = 64 << 10;

/// Returns true for nothing but Ctrl-C, Ctrl-D, Ctrl-Z and Ctrl-\\. At the beginning of a line there is nothing that they could change.
#[must_use]
pub fn is_lone_key(typed: &str) -> bool {
    !typed.is_empty()
        && typed
            .chars()
            .all(|key| matches!(key, '\u{3}' | '\u{4}' | '\u{1a}' | '\u{1c}'))
}

/// Returns true if a line is made of the arrow key down. It chooses in menus, and moves no cursor that is in the last line.
fn is_moving_only(line: &str) -> bool {
    !line.is_empty() && line.replace("\u{1b}[B", "").replace("\u{1b}OB", "").is_empty()
}

/// Returns true for a line in which an interactive shell replaces something by earlier lines (`!x`, `^a^b`) before it reads it.
fn recalls_history(line: &str) -> bool {
    line.starts_with('^')
        || line
            .split('!')
            .skip(1)
            .any(|after| !(after.is_empty() || after.starts_with([' ', '\t', '='])))
}

/// A command line. See the module's page.
#[derive(Debug, Clone)]
pub(super) struct Script {
    text: String,
    /// Each command as rules that allow look at it.
    commands: Vec<String>,
    /// Everything that a rule that forbids could mean.
    forms: Vec<String>,
    /// Commands of which the line computes a part: the texts between those parts.
    open_forms: Vec<Vec<String>>,
    plain: bool,
    opaque: bool,
}

impl Script {
    /// Parses a line. Never fails: a line that is not understood is not plain, and it is opaque.
    pub(super) fn parse(text: &str) -> Self {
        let mut judge = Judge::new();
        judge
            .forms
            .push(text.split_whitespace().collect::<Vec<_>>().join(" "));
        if text.len() > MAX_BYTES {
            judge.opaque = true;
        } else {
            judge.whole(text);
        }
        Self {
            text: text.to_owned(),
            plain: judge.plain && !judge.opaque,
            opaque: judge.opaque,
            commands: judge.commands,
            forms: judge.forms.texts,
            open_forms: judge.forms.open,
        }
    }

    /// Parses lines that are typed into a program. Its terminal, or its own line editor, lets control characters delete, quote or complete
    /// others, and a shell puts earlier lines in, so that it reads another line than stands here.
    pub(super) fn typed(text: &str) -> Self {
        let lines = || text.split(['\n', '\r']);
        let is_edited = !is_lone_key(text)
            && lines().any(|line| {
                line.contains(char::is_control) && !is_moving_only(line) || recalls_history(line)
            });
        let script = if !is_edited && lines().any(is_moving_only) {
            // They leave empty lines: the line before may go on in the next one.
            let read: Vec<&str> = lines()
                .map(|line| if is_moving_only(line) { "" } else { line })
                .collect();
            Self::parse(&read.join("\n"))
        } else {
            Self::parse(text)
        };
        Self {
            text: text.to_owned(),
            plain: script.plain && !is_edited,
            opaque: script.opaque || is_edited,
            ..script
        }
    }

    /// As it was given.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The commands.
    pub(super) fn commands(&self) -> impl Iterator<Item = &str> {
        self.commands.iter().map(String::as_str)
    }

    /// Everything that a rule that forbids could mean.
    pub(super) fn forms(&self) -> impl Iterator<Item = &str> {
        self.forms.iter().map(String::as_str)
    }

    /// Commands of which the line computes a part: the texts between those parts.
    pub(super) fn open_forms(&self) -> &[Vec<String>] {
        &self.open_forms
    }

    /// True if it does nothing but run its commands with the words that stand there.
    pub(super) fn is_plain(&self) -> bool {
        self.plain
    }

    /// True if it may run commands that do not show in it.
    pub(super) fn is_opaque(&self) -> bool {
        self.opaque
    }
}
