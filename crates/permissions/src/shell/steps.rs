//! What a program does with its arguments, as steps that the judge takes in their order. The files that know programs
//! (`builtins`, `runs`, `options`, `code`) only write steps, so they neither see nor change what the judge has found.

use std::borrow::Cow;

use super::ast::{Redirect, RedirectKind, Word};

/// Who reads a file that is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    Shell,
    Python,
    Other,
}

/// What a program reads.
#[derive(Debug, Clone)]
pub(super) enum Input {
    /// The session's: nothing.
    Session,
    /// A text in the line.
    Text(Word),
    /// Names of files that another command lists: none is an option.
    Names,
    /// A file, or what another command writes.
    Unknown,
}

impl Input {
    /// What a simple command reads: its own redirection, or what the command around it gives.
    pub(super) fn of(redirects: &[Redirect], documents: &[Word], outer: Self) -> Self {
        let mut input = outer;
        for redirect in redirects {
            match redirect.kind {
                RedirectKind::HereString => {
                    let mut text = redirect.target.clone();
                    text.push('\n', true);
                    input = Self::Text(text);
                }
                RedirectKind::Document(index) => {
                    input = Self::Text(documents.get(index).cloned().unwrap_or_default());
                }
                RedirectKind::Input | RedirectKind::Duplicate => input = Self::Unknown,
                RedirectKind::Output => {}
            }
        }
        input
    }
}

/// The input of a program that another one feeds.
pub(super) static UNKNOWN: Input = Input::Unknown;
/// The input of a program that reads nothing.
pub(super) static SESSION: Input = Input::Session;

/// One thing that a program does. `'w` is the command that it is part of.
#[derive(Debug)]
pub(super) enum Step<'w> {
    /// It may run something that does not show.
    Hide,
    /// It runs a line.
    Line(String),
    /// It may run a line: only the parts that are understood count.
    Guess(String),
    /// It runs another program.
    Program(&'w [Word], &'w Input),
    /// It runs another program. Some words are only known then; the first words are those of the line.
    Replaced(&'w [Word], Vec<Word>),
    /// Rules that forbid compare these words, too.
    Form(Cow<'w, [Word]>),
    /// It runs a file.
    Runs(String, Language),
    /// It makes a file.
    Makes(String),
    /// A variable takes a value.
    Assigned(String, Word),
    /// A variable takes a text that is not known.
    AssignedText(String),
    /// A variable takes a text that the line computes.
    Computed(String),
    /// A variable takes a value whose name is not known.
    AssignedUnknown,
    /// Bash calculates a text.
    Arithmetic(Cow<'w, Word>),
    /// Bash calculates every value of this variable.
    Calculated(String),
    /// A variable is a list.
    Listed(String),
    /// A variable takes a text in a declaration. If it is a list, the text is read as its values and expanded.
    Declared(String),
}

/// Bytes of texts that may be lines; a line with more is opaque. Each such text can contain others.
pub(super) const MAX_GUESSED_BYTES: usize = 4 << 20;

/// The steps of one program.
#[derive(Debug)]
pub(super) struct Steps<'w> {
    steps: Vec<Step<'w>>,
    /// Bytes of the texts that may be lines.
    guessed_bytes: usize,
    /// The program stands in a text that may be no line.
    is_guess: bool,
}

impl<'w> Steps<'w> {
    pub(super) fn new(is_guess: bool) -> Self {
        Self {
            steps: Vec::new(),
            guessed_bytes: 0,
            is_guess,
        }
    }

    pub(super) fn into_steps(self) -> Vec<Step<'w>> {
        self.steps
    }

    pub(super) fn is_guess(&self) -> bool {
        self.is_guess
    }

    pub(super) fn push(&mut self, step: Step<'w>) {
        self.steps.push(step);
    }

    pub(super) fn hide(&mut self) {
        self.push(Step::Hide);
    }

    pub(super) fn line(&mut self, text: &str) {
        self.push(Step::Line(text.to_owned()));
    }

    pub(super) fn guess(&mut self, text: &str) {
        // Behind the bound the line is opaque in any case.
        if self.guessed_bytes <= MAX_GUESSED_BYTES {
            self.guessed_bytes += text.len();
            self.push(Step::Guess(text.to_owned()));
        }
    }

    /// Words that may be a line behind this text. Joins nothing behind the bound: callers do this for each word of a line.
    pub(super) fn guess_words(&mut self, before: &str, words: &[Word]) {
        if self.guessed_bytes <= MAX_GUESSED_BYTES {
            let texts: Vec<String> = words.iter().map(Word::text).collect();
            self.guess(&format!("{before}{}", texts.join(" ")));
        }
    }

    /// An argument that is a line.
    pub(super) fn code(&mut self, word: &Word) {
        self.push(word.literal().map_or(Step::Hide, Step::Line));
    }

    /// What a shell reads from its input is a line.
    pub(super) fn fed(&mut self, input: &Input) {
        match input {
            Input::Session => {}
            Input::Text(text) => self.code(text),
            Input::Unknown | Input::Names => self.hide(),
        }
    }

    pub(super) fn program(&mut self, words: &'w [Word], input: &'w Input) {
        self.push(Step::Program(words, input));
    }

    pub(super) fn form(&mut self, words: &'w [Word]) {
        self.push(Step::Form(Cow::Borrowed(words)));
    }

    pub(super) fn runs(&mut self, path: &str, language: Language) {
        self.push(Step::Runs(path.to_owned(), language));
    }

    pub(super) fn assigned(&mut self, name: &str, value: Word) {
        self.push(Step::Assigned(name.to_owned(), value));
    }
}
