//! Bash's words and operators: quotes, escapes, redirections, here-documents, substitutions. What words mean is `words`'
//! business.

use super::words::Word;

/// What a line is made of, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    /// The words of a command, redirections taken out; never empty.
    Command(Vec<Word>),
    /// A command line in the line: `$(...)`, backticks, `<(...)`.
    Nested(String),
    /// Something that is no word of a command: a redirection to a file, a group, an expansion.
    Other,
    /// It does not end, or is nothing that we know.
    Broken,
}

/// Takes a line apart.
pub(super) struct Lexer {
    letters: Vec<char>,
    at: usize,
    words: Vec<Word>,
    /// The word that is being read.
    word: Option<Word>,
    /// The next word is where a redirection leads.
    target: Option<Target>,
    /// Here-documents that begin after this line: their last lines, and whether tabs in front are dropped.
    documents: Vec<(Word, bool)>,
    pieces: std::collections::VecDeque<Piece>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    /// A file that is written.
    Output,
    /// A file that is read, or anything else.
    Other,
    /// The last line of a here-document; true drops tabs.
    Document(bool),
}

impl Iterator for Lexer {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        while self.pieces.is_empty() {
            let Some(letter) = self.advance() else {
                self.end_command();
                if !self.documents.is_empty() {
                    self.documents.clear();
                    self.pieces.push_back(Piece::Broken);
                }
                break;
            };
            self.step(letter);
        }
        self.pieces.pop_front()
    }
}

/// Could a command line in the line be longer than it looks to us? `case`, comments and here-documents have parentheses that
/// end nothing.
pub(super) fn may_end_elsewhere(inner: &str) -> bool {
    let is_comment = |(at, _): (usize, &str)| {
        let before = inner.get(..at).and_then(|before| before.chars().next_back());
        before.is_none_or(|letter| letter.is_whitespace() || ";&|(".contains(letter))
    };
    inner.contains("case") || inner.contains("<<") || inner.match_indices('#').any(is_comment)
}

impl Lexer {
    pub(super) fn new(text: &str) -> Self {
        Self {
            letters: text.chars().collect(),
            at: 0,
            words: Vec::new(),
            word: None,
            target: None,
            documents: Vec::new(),
            pieces: std::collections::VecDeque::new(),
        }
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.letters.get(self.at + ahead).copied()
    }

    fn advance(&mut self) -> Option<char> {
        let letter = self.peek(0)?;
        self.at += 1;
        Some(letter)
    }

    fn eat(&mut self, letter: char) -> bool {
        let is_it = self.peek(0) == Some(letter);
        self.at += usize::from(is_it);
        is_it
    }

    fn word(&mut self) -> &mut Word {
        self.word.get_or_insert_default()
    }

    fn step(&mut self, letter: char) {
        match letter {
            ' ' | '\t' => self.end_word(),
            '\n' => {
                self.end_command();
                self.skip_documents();
            }
            ';' => self.end_command(),
            '&' if self.peek(0) == Some('>') => {
                self.end_word();
                self.at += 1;
                self.eat('>');
                self.target = Some(Target::Output);
            }
            '&' | '|' => {
                self.end_command();
                while self.eat('&') || self.eat('|') {}
            }
            '(' | ')' => {
                self.end_command();
                self.pieces.push_back(Piece::Other);
            }
            '#' if self.word.is_none() => {
                while self.peek(0).is_some_and(|letter| letter != '\n') {
                    self.at += 1;
                }
            }
            '<' | '>' => self.redirect(letter),
            '\\' => match self.advance() {
                Some('\n') => {}
                Some(letter) => self.word().push_quoted(letter),
                None => self.pieces.push_back(Piece::Broken),
            },
            '\'' => self.single_quotes(),
            '"' => self.double_quotes(),
            '$' | '`' => self.expand(letter, false),
            letter => self.word().push(letter),
        }
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        match self.target.take() {
            None => self.words.push(word),
            Some(Target::Document(drops_tabs)) => self.documents.push((word, drops_tabs)),
            Some(Target::Output) if word.text() == "/dev/null" && !word.is_dynamic() => {}
            Some(Target::Output | Target::Other) => self.pieces.push_back(Piece::Other),
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        if self.target.take().is_some() {
            self.pieces.push_back(Piece::Broken);
        }
        if !self.words.is_empty() {
            let words = std::mem::take(&mut self.words);
            self.pieces.push_back(Piece::Command(words));
        }
    }

    fn redirect(&mut self, letter: char) {
        // The number in front of it is no word.
        let is_number =
            |word: &Word| !word.has_quotes() && word.text().chars().all(|digit| digit.is_ascii_digit());
        if self.word.as_ref().is_some_and(is_number) {
            self.word = None;
        }
        self.end_word();
        if self.peek(0) == Some('(') {
            self.at += 1;
            self.nested_parentheses();
            self.word().expand();
            return;
        }
        if letter == '<' && self.eat('<') {
            if self.eat('<') {
                self.target = Some(Target::Other);
            } else {
                let drops_tabs = self.eat('-');
                self.target = Some(Target::Document(drops_tabs));
                self.pieces.push_back(Piece::Other);
            }
            return;
        }
        if self.eat('&') {
            // To another descriptor: nothing is opened.
            let start = self.at;
            while self
                .peek(0)
                .is_some_and(|letter| letter.is_ascii_digit() || letter == '-')
            {
                self.at += 1;
            }
            if self.at > start && self.peek(0).is_none_or(|next| " \t\n;&|()<>".contains(next)) {
                return;
            }
            self.at = start;
        } else if letter == '>' {
            let _clobbers = self.eat('>') || self.eat('|');
        } else {
            self.eat('>');
        }
        self.target = Some(if letter == '>' {
            Target::Output
        } else {
            Target::Other
        });
    }

    fn single_quotes(&mut self) {
        self.word();
        while let Some(letter) = self.advance() {
            if letter == '\'' {
                return;
            }
            self.word().push_quoted(letter);
        }
        self.pieces.push_back(Piece::Broken);
    }

    fn double_quotes(&mut self) {
        self.word();
        while let Some(letter) = self.advance() {
            match letter {
                '"' => return,
                '\\' => match self.advance() {
                    Some('\n') => {}
                    Some(letter @ ('$' | '`' | '"' | '\\')) => self.word().push_quoted(letter),
                    Some(letter) => {
                        self.word().push_quoted('\\');
                        self.word().push_quoted(letter);
                    }
                    None => break,
                },
                '$' | '`' => self.expand(letter, true),
                letter => self.word().push_quoted(letter),
            }
        }
        self.pieces.push_back(Piece::Broken);
    }

    /// `$...` or a backtick, whose letter has been taken.
    fn expand(&mut self, letter: char, in_quotes: bool) {
        if letter == '`' {
            self.word().expand();
            return self.backticks();
        }
        match self.peek(0) {
            Some('(') => {
                self.at += 1;
                self.word().expand();
                self.nested_parentheses();
            }
            Some('{') => {
                self.at += 1;
                self.word().expand();
                self.braces();
            }
            // Escapes in it stand for any letters.
            Some('\'') if !in_quotes => {
                self.at += 1;
                self.word().expand();
                while let Some(letter) = self.advance() {
                    match letter {
                        '\\' => self.at += 1,
                        '\'' => return,
                        _ => {}
                    }
                }
                self.pieces.push_back(Piece::Broken);
            }
            Some('"') if !in_quotes => {}
            Some(next) if next.is_ascii_alphanumeric() || "_@*#?$!-".contains(next) => {
                self.at += 1;
                if next.is_ascii_alphabetic() || next == '_' {
                    while self
                        .peek(0)
                        .is_some_and(|next| next.is_ascii_alphanumeric() || next == '_')
                    {
                        self.at += 1;
                    }
                }
                self.word().expand();
            }
            Some('[') => self.word().expand(),
            _ => self.word().push_quoted('$'),
        }
    }

    /// To the backtick that ends it.
    fn backticks(&mut self) {
        let mut inner = String::new();
        while let Some(letter) = self.advance() {
            match letter {
                '`' => return self.pieces.push_back(Piece::Nested(inner)),
                '\\' => match self.advance() {
                    Some(letter @ ('$' | '`' | '\\')) => inner.push(letter),
                    Some(letter) => inner.extend(['\\', letter]),
                    None => break,
                },
                letter => inner.push(letter),
            }
        }
        self.pieces.push_back(Piece::Broken);
    }

    /// To the parenthesis that ends what began with one, as far as that can be told: see [`may_end_elsewhere`].
    fn nested_parentheses(&mut self) {
        let start = self.at;
        let mut depth = 1_usize;
        while let Some(letter) = self.advance() {
            match letter {
                '(' => depth += 1,
                ')' => depth -= 1,
                '\\' => self.at += 1,
                '\'' => self.skip_to('\'', false),
                '"' => self.skip_to('"', true),
                _ => {}
            }
            if depth == 0 {
                let inner = self.letters.get(start..self.at - 1).unwrap_or_default();
                self.pieces.push_back(Piece::Nested(inner.iter().collect()));
                return;
            }
        }
        self.pieces.push_back(Piece::Broken);
    }

    fn skip_to(&mut self, end: char, escapes: bool) {
        while let Some(letter) = self.advance() {
            if letter == end {
                return;
            }
            if escapes && letter == '\\' {
                self.at += 1;
            }
        }
    }

    /// `${...}`: what stands in it may hold substitutions.
    fn braces(&mut self) {
        let mut inner = String::new();
        let mut depth = 1_usize;
        while let Some(letter) = self.advance() {
            match letter {
                '{' => depth += 1,
                '}' => depth -= 1,
                '\\' => {
                    self.at += 1;
                    continue;
                }
                _ => {}
            }
            if depth == 0 {
                self.substitutions(&inner);
                return;
            }
            inner.push(letter);
        }
        self.pieces.push_back(Piece::Broken);
    }

    /// Command lines in a text that is expanded but is no command.
    fn substitutions(&mut self, text: &str) {
        if text.contains("<(") || text.contains(">(") {
            // Outside of quotes it runs, inside it does not.
            self.pieces.push_back(Piece::Broken);
        }
        if !text.contains('`') && !text.contains("$(") && !text.contains("${") {
            return;
        }
        let mut inner = Self::new(text);
        while let Some(letter) = inner.advance() {
            match letter {
                '\\' => inner.at += 1,
                '$' | '`' => inner.expand(letter, true),
                _ => {}
            }
        }
        self.pieces.extend(inner.pieces);
    }

    /// Skips the here-documents that begin here.
    fn skip_documents(&mut self) {
        for (end, drops_tabs) in std::mem::take(&mut self.documents) {
            let mut body = String::new();
            loop {
                if self.at >= self.letters.len() {
                    // Bash takes the end of the line for its end; to us it looks like an attempt to hide something.
                    self.pieces.push_back(Piece::Broken);
                    break;
                }
                let line: String = self
                    .letters
                    .iter()
                    .skip(self.at)
                    .take_while(|c| **c != '\n')
                    .collect();
                self.at += line.chars().count() + 1;
                let bare = if drops_tabs {
                    line.trim_start_matches('\t')
                } else {
                    &line
                };
                if bare == end.text() {
                    break;
                }
                body.push_str(&line);
                body.push('\n');
            }
            if !end.has_quotes() {
                self.substitutions(&body);
            }
        }
    }
}
