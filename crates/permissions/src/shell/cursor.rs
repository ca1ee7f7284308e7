//! Where the parsers are in a line, and the bounds of their work. They stop at anything that they do not understand
//! completely: a line that was read wrong is worse than a line that was not read.

use super::ast::Word;

/// Steps of the parser for one line. A line of 64 KiB takes some 200,000; the rest is for lines that must be read twice.
const MAX_STEPS: usize = 2_000_000;
/// How deep constructs may stand in each other.
const MAX_DEPTH: usize = 40;

/// The line cannot be understood completely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unclear;

pub(super) type Parse<T> = Result<T, Unclear>;

/// What a line and the lines within it share.
#[derive(Debug)]
pub(super) struct Shared {
    steps: usize,
    depth: usize,
    /// The texts of here-documents.
    pub(super) documents: Vec<Word>,
    /// The line has a construct that a plain `sh` takes for something else: dash reads `[[ x || program ]]`, `((program))`,
    /// `$[1 | program ]`, `$'\'; program #'` and `true &>file program` as commands that run the program.
    pub(super) is_bash_only: bool,
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            steps: MAX_STEPS,
            depth: 0,
            documents: Vec::new(),
            is_bash_only: false,
        }
    }
}

impl Shared {
    /// Takes a step.
    pub(super) fn step(&mut self) -> Parse<()> {
        self.steps = self.steps.checked_sub(1).ok_or(Unclear)?;
        Ok(())
    }
}

/// A here-document whose text has not been read yet.
#[derive(Debug, Clone)]
pub(super) struct Pending {
    pub(super) end: String,
    pub(super) drops_tabs: bool,
    pub(super) is_literal: bool,
    /// Its index among the documents.
    pub(super) index: usize,
}

/// A place in a line. The parsers of words and of commands move it forward in turns.
#[derive(Debug)]
pub(super) struct Cursor<'a> {
    letters: Vec<char>,
    at: usize,
    pub(super) pending: Vec<Pending>,
    pub(super) shared: &'a mut Shared,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &str, shared: &'a mut Shared) -> Self {
        Self {
            letters: text.chars().collect(),
            at: 0,
            pending: Vec::new(),
            shared,
        }
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.peek_at(0)
    }

    pub(super) fn peek_at(&self, ahead: usize) -> Option<char> {
        self.letters.get(self.at + ahead).copied()
    }

    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// Goes back to read the same text another way.
    pub(super) fn go_back(&mut self, at: usize) {
        self.at = at;
    }

    /// The text between a position and this one.
    pub(super) fn since(&self, start: usize) -> String {
        let letters = self.letters.get(start..self.at).unwrap_or_default();
        letters.iter().collect()
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.at >= self.letters.len()
    }

    pub(super) fn advance(&mut self) -> Parse<char> {
        self.shared.step()?;
        let letter = self.peek().ok_or(Unclear)?;
        self.at += 1;
        Ok(letter)
    }

    pub(super) fn skip(&mut self, count: usize) -> Parse<()> {
        for _ in 0..count {
            self.advance()?;
        }
        Ok(())
    }

    pub(super) fn looks_at(&self, text: &str) -> bool {
        text.chars()
            .enumerate()
            .all(|(ahead, letter)| self.peek_at(ahead) == Some(letter))
    }

    pub(super) fn eat(&mut self, text: &str) -> Parse<bool> {
        let is_it = self.looks_at(text);
        if is_it {
            self.skip(text.chars().count())?;
        }
        Ok(is_it)
    }

    pub(super) fn expect(&mut self, text: &str) -> Parse<()> {
        if self.eat(text)? { Ok(()) } else { Err(Unclear) }
    }

    /// The letters for which this holds.
    pub(super) fn take_while(&mut self, is_wanted: impl Fn(char) -> bool) -> Parse<String> {
        let start = self.at;
        while self.peek().is_some_and(&is_wanted) {
            self.advance()?;
        }
        Ok(self.since(start))
    }

    /// Parses something one level deeper.
    pub(super) fn deeper<T>(&mut self, act: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        if self.shared.depth >= MAX_DEPTH {
            return Err(Unclear);
        }
        self.shared.depth += 1;
        let done = act(self);
        self.shared.depth -= 1;
        done
    }
}

/// A letter that ends a word outside of quotes.
pub(super) fn is_meta(letter: char) -> bool {
    " \t\n;&|()<>".contains(letter)
}

pub(super) fn is_name(text: &str) -> bool {
    let mut letters = text.chars();
    letters.next().is_some_and(starts_name) && letters.all(continues_name)
}

pub(super) fn starts_name(letter: char) -> bool {
    letter.is_ascii_alphabetic() || letter == '_'
}

pub(super) fn continues_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}
