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
mod builtins;
mod code;
mod cursor;
mod expansion;
mod git;
mod grammar;
mod judge;
mod options;
mod planted;
mod programs;
mod runs;
mod simple;
mod steps;
mod values;
mod variables;

#[cfg(test)]
mod tests;

use self::judge::Judge;

/// Longest line that is looked into, in bytes; longer ones are opaque.
const MAX_BYTES: usize = 64 << 10;

/// A command line. See the module's page.
#[derive(Debug, Clone)]
pub(super) struct Script {
    text: String,
    /// Each command as rules that allow look at it.
    commands: Vec<String>,
    /// Everything that a rule that forbids could mean.
    forms: Vec<String>,
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
            forms: judge.forms,
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

    /// True if it does nothing but run its commands with the words that stand there.
    pub(super) fn is_plain(&self) -> bool {
        self.plain
    }

    /// True if it may run commands that do not show in it.
    pub(super) fn is_opaque(&self) -> bool {
        self.opaque
    }
}
