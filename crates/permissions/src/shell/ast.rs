//! The syntax tree of a command line, as far as permissions need it. Every place in which bash runs text is a node; the
//! order of commands is kept, how their exit codes depend on each other is not.

/// Commands in their order.
#[derive(Debug, Clone, Default)]
pub(super) struct List {
    pub(super) nodes: Vec<Node>,
    /// For each command, whether another one writes its input.
    pub(super) fed: Vec<bool>,
    /// Only `|` stands between the commands.
    pub(super) is_pipeline: bool,
    /// A word such as `!` or `time` stands before a command.
    pub(super) has_prefix: bool,
}

#[derive(Debug, Clone)]
pub(super) enum Node {
    Simple(Simple),
    Compound(Compound),
}

/// A program or a builtin with its arguments.
#[derive(Debug, Clone, Default)]
pub(super) struct Simple {
    pub(super) assignments: Vec<Assignment>,
    pub(super) words: Vec<Word>,
    pub(super) redirects: Vec<Redirect>,
}

/// Loops, conditions, groups, functions, `[[` and `((`.
#[derive(Debug, Clone, Default)]
pub(super) struct Compound {
    pub(super) lists: Vec<List>,
    pub(super) words: Vec<Word>,
    /// Texts that bash evaluates as arithmetic.
    pub(super) arithmetic: Vec<Word>,
    /// The variable of a loop and its words; no words stand for the positional parameters or for input.
    pub(super) variable: Option<(String, Option<Vec<Word>>)>,
    pub(super) redirects: Vec<Redirect>,
    pub(super) is_function: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Assignment {
    pub(super) name: String,
    pub(super) subscript: Option<Word>,
    /// `+=`: behind what the variable has.
    pub(super) appends: bool,
    pub(super) value: Value,
}

#[derive(Debug, Clone)]
pub(super) enum Value {
    Scalar(Word),
    /// Subscripts and values.
    Array(Vec<(Option<Word>, Word)>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RedirectKind {
    /// To another descriptor; opens no file.
    Duplicate,
    Input,
    Output,
    HereString,
    /// The index of its text among the documents of the script.
    Document(usize),
}

#[derive(Debug, Clone)]
pub(super) struct Redirect {
    pub(super) kind: RedirectKind,
    pub(super) target: Word,
}

/// A word before expansion.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Word {
    pub(super) parts: Vec<Part>,
    /// Some of it stands in `$'...'` or `$"..."`.
    pub(super) is_ansi: bool,
}

#[derive(Debug, Clone)]
pub(super) enum Part {
    Text {
        text: String,
        quoted: bool,
    },
    /// Text that depends on the system, such as `~user`.
    Unknown,
    Parameter(Box<Parameter>),
    /// `$(...)` and backticks.
    Commands(List),
    /// `<(...)` and `>(...)`.
    Process(List),
    Arithmetic(Word),
}

impl PartialEq for Part {
    /// Only texts are compared; expansions are never the same.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Text { text, quoted },
                Self::Text {
                    text: other,
                    quoted: other_quoted,
                },
            ) => text == other && quoted == other_quoted,
            _ => false,
        }
    }
}

impl Eq for Part {}

/// `$name` or `${...}`.
#[derive(Debug, Clone, Default)]
pub(super) struct Parameter {
    pub(super) name: String,
    /// `${!name}`.
    pub(super) indirect: bool,
    /// `${#name}`.
    pub(super) length: bool,
    pub(super) subscript: Option<Word>,
    /// `:-`, `/`, `@P`; empty without one.
    pub(super) operator: String,
    pub(super) operand: Word,
}

impl Parameter {
    /// Returns true for `$1`, `$@` and `$*`.
    pub(super) fn is_position(&self) -> bool {
        let mut letters = self.name.chars();
        self.name != "0" && letters.all(|letter| letter.is_ascii_digit() || "@*".contains(letter))
    }
}

impl Word {
    pub(super) fn literal_of(text: &str) -> Self {
        let mut word = Self::default();
        word.push_quoted_text(text);
        word
    }

    pub(super) fn push(&mut self, letter: char, is_quoted: bool) {
        if let Some(Part::Text { text, quoted }) = self.parts.last_mut()
            && *quoted == is_quoted
        {
            text.push(letter);
            return;
        }
        self.parts.push(Part::Text {
            text: letter.to_string(),
            quoted: is_quoted,
        });
    }

    pub(super) fn push_quoted_text(&mut self, text: &str) {
        self.parts.push(Part::Text {
            text: text.to_owned(),
            quoted: true,
        });
    }

    /// The parts, and whether each stands in quotes.
    pub(super) fn with_quotes(&self) -> impl Iterator<Item = (&Part, bool)> {
        let mut is_quoted = false;
        self.parts.iter().map(move |part| {
            if let Part::Text { quoted, .. } = part {
                is_quoted = *quoted;
            }
            (part, is_quoted)
        })
    }

    /// The word without its quotes. Expansions leave nothing.
    pub(super) fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Text { text, .. } => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    /// The word with a part that is not known in place of a text.
    pub(super) fn replaced(&self, placeholder: &str, with: &Part) -> Self {
        let text = self.text();
        if self.is_dynamic() || !text.contains(placeholder) {
            return self.clone();
        }
        let mut word = Self::default();
        // No shell splits it.
        word.push_quoted_text("");
        for (at, piece) in text.split(placeholder).enumerate() {
            if at > 0 {
                word.parts.push(with.clone());
            }
            if !piece.is_empty() {
                word.push_quoted_text(piece);
            }
        }
        word
    }

    /// The word as the value of an assignment, which bash does not split.
    pub(super) fn unsplit(&self) -> Self {
        let mut word = Self::default();
        word.push_quoted_text("");
        for part in &self.parts {
            match part {
                Part::Text { text, .. } => word.push_quoted_text(text),
                part => word.parts.push(part.clone()),
            }
        }
        word.is_ansi = self.is_ansi;
        word
    }

    /// Ends quotes before an expansion that does not stand in them.
    pub(super) fn end_quotes(&mut self) {
        if let Some(Part::Text { quoted: true, .. }) = self.parts.last() {
            self.parts.push(Part::Text {
                text: String::new(),
                quoted: false,
            });
        }
    }

    /// True if its text begins with something that only its run decides.
    pub(super) fn begins_dynamic(&self) -> bool {
        let is_empty = |part: &&Part| matches!(part, Part::Text { text, .. } if text.is_empty());
        let first = self.parts.iter().find(|part| !is_empty(part));
        first.is_some_and(|part| !matches!(part, Part::Text { .. }))
    }

    /// The word without its quotes if nothing in it is expanded.
    pub(super) fn literal(&self) -> Option<String> {
        (!self.changes()).then(|| self.text())
    }

    /// True if no part of it is quoted or expanded and it is this text.
    pub(super) fn is_bare(&self, expected: &str) -> bool {
        matches!(self.parts.as_slice(), [Part::Text { text, quoted: false }] if text == expected)
    }

    fn unquoted(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Text { text, quoted: false } => Some(text.as_str()),
            _ => None,
        })
    }

    /// Its value is only known when it runs.
    pub(super) fn is_dynamic(&self) -> bool {
        let is_text = |part: &Part| matches!(part, Part::Text { .. });
        !self.parts.iter().all(is_text)
    }

    /// True for `{a,b}` and `{1..3}` outside of quotes.
    pub(super) fn has_braces(&self) -> bool {
        let has = |sign: &str| self.unquoted().any(|text| text.contains(sign));
        has("{") && has("}") && (has(",") || has(".."))
    }

    /// True for `*`, `?`, `[` and the `(` of an extended pattern outside of quotes.
    pub(super) fn is_wild(&self) -> bool {
        self.unquoted().any(|text| text.contains(['*', '?', '[', '(']))
    }

    /// True for a pattern that begins with a dash: a file whose name is an option can fit it. A pattern behind `=` changes no option.
    pub(super) fn may_be_option(&self) -> bool {
        let text = self.text();
        let fixed = text.split(['*', '?', '[', '(']).next().unwrap_or_default();
        self.is_wild() && text.starts_with('-') && !fixed.contains('=')
    }

    /// True for `{-c,code}` and `-{c,x}`, whose braces make options, but not for `--name={a,b}`.
    pub(super) fn braces_make_option(&self) -> bool {
        let text = self.text();
        let mut pieces = text.split(['{', ',']);
        let prefix = pieces.next().unwrap_or_default();
        self.has_braces()
            && (["-", "--"].contains(&prefix)
                || prefix.is_empty() && pieces.any(|piece| piece.starts_with('-')))
    }

    /// `~` alone takes the value of a variable.
    fn is_tilde(&self) -> bool {
        self.unquoted().next().is_some_and(|first| {
            let starts = matches!(self.parts.first(), Some(Part::Text { quoted: false, .. }));
            starts && first.starts_with('~') && !first.starts_with("~/")
        })
    }

    /// Returns true if bash may make another word of it, or several.
    pub(super) fn changes(&self) -> bool {
        self.is_dynamic() || self.has_braces()
    }

    /// In a line that is to be allowed: bash may make another word of it than it says.
    pub(super) fn is_odd(&self) -> bool {
        self.changes() || self.may_be_option() || self.is_ansi || self.is_bare("{") || self.is_bare("}")
    }

    /// As the name of a program: it may name another one than it says.
    pub(super) fn hides(&self) -> bool {
        self.changes() || self.is_tilde() || self.is_wild() && !["[", "[["].contains(&self.text().as_str())
    }

    /// Returns true for a number with an optional unit, as in `timeout 5 make`.
    pub(super) fn is_duration(&self) -> bool {
        let text = self.text();
        let number = text.trim_end_matches(['s', 'm', 'h', 'd']);
        text.len() - number.len() <= 1
            && !number.is_empty()
            && number
                .chars()
                .all(|letter| letter.is_ascii_digit() || letter == '.')
    }

    /// The word with quotes where a blank or a special character belongs to it, so that two commands that differ never look
    /// the same.
    pub(super) fn shown(&self) -> String {
        let text = self.text();
        let is_odd =
            |letter: char| letter.is_whitespace() || letter.is_control() || "'\"\\;|&<>()$`".contains(letter);
        if text.is_empty() || text.contains(is_odd) {
            format!("'{}'", text.replace('\'', "'\\''"))
        } else {
            text
        }
    }
}
