//! A command line for bash, taken apart as far as rules need it: every command that it runs, wherever it stands in it, and
//! whether that is all there is to know.
//!
//! Two questions are asked of it, and the doubt goes against the command both times. To allow it, every command must be known
//! and nothing else may happen: it is *plain*. To forbid it, it is enough that one of its commands may be a forbidden one; a
//! line whose commands are only made when it runs is *opaque*. What programs do by themselves (scripts, `make`, `python -c`)
//! is beyond rules.

mod lexer;
mod words;

use self::lexer::{Lexer, Piece};
use self::words::Command;

/// Longest line that is looked into, in bytes; longer ones are opaque.
const MAX_BYTES: usize = 64 << 10;
/// How deep command lines may stand in each other.
const MAX_DEPTH: usize = 8;
/// Forms of a line that are compared with rules; a line with more is opaque.
const MAX_FORMS: usize = 4_000;

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
    /// Takes a line apart. Never fails: what is not understood is not plain, and opaque where a command could hide in it.
    pub(super) fn parse(text: &str) -> Self {
        let mut script = Self {
            text: text.to_owned(),
            commands: Vec::new(),
            forms: vec![text.split_whitespace().collect::<Vec<_>>().join(" ")],
            plain: true,
            opaque: false,
        };
        script.read(text, 0, true);
        script
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

    /// Does it do nothing but run its commands with the words that stand there?
    pub(super) fn is_plain(&self) -> bool {
        self.plain && !self.opaque
    }

    /// May it run commands that do not show in it?
    pub(super) fn is_opaque(&self) -> bool {
        self.opaque
    }

    /// `counts`: is it the line itself, whose commands rules that allow must know? Otherwise it stands in another command.
    fn read(&mut self, text: &str, depth: usize, counts: bool) {
        if depth >= MAX_DEPTH || text.len() > MAX_BYTES || self.forms.len() > MAX_FORMS {
            self.opaque = true;
            return;
        }
        let mut plain = true;
        for piece in Lexer::new(text) {
            match piece {
                Piece::Command(words) => {
                    let command = Command::new(words);
                    plain &= command.is_plain();
                    self.opaque |= command.is_opaque();
                    self.forms.extend(command.forms());
                    for line in command.lines() {
                        self.read(&line, depth + 1, false);
                    }
                    if counts {
                        self.commands.extend(command.text());
                    }
                }
                // What stands in it runs; what comes of it is unknown.
                Piece::Nested(inner) => {
                    plain = false;
                    self.opaque |= lexer::may_end_elsewhere(&inner);
                    self.read(&inner, depth + 1, false);
                }
                Piece::Other => plain = false,
                Piece::Broken => {
                    plain = false;
                    self.opaque = true;
                }
            }
        }
        self.plain &= plain || !counts;
    }
}
