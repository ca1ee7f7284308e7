//! The grammar of words: quotes, escapes and expansions.

use super::ast::{List, Parameter, Part, Word};
use super::cursor::{Cursor, Parse, Unclear, continues_name, is_meta, starts_name};
use super::grammar::CommandParser;

/// Where an expansion stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Unquoted,
    /// In double quotes or arithmetic.
    Quoted,
    /// In a here-document, where double quotes are letters.
    Document,
}

/// Reads words. The commands in them are read by a [`CommandParser`] at the same place.
#[derive(Debug)]
pub(super) struct WordParser<'c, 'a> {
    cursor: &'c mut Cursor<'a>,
}

impl<'c, 'a> WordParser<'c, 'a> {
    pub(super) fn new(cursor: &'c mut Cursor<'a>) -> Self {
        Self { cursor }
    }

    /// A word, none where an operator stands.
    pub(super) fn word(&mut self) -> Parse<Option<Word>> {
        let mut word = Word::default();
        let start = self.cursor.position();
        while let Some(letter) = self.cursor.peek() {
            if "<>".contains(letter) && self.cursor.peek_at(1) == Some('(') {
                self.cursor.skip(2)?;
                let list = self.until_parenthesis()?;
                word.parts.push(Part::Process(list));
            } else if is_meta(letter) {
                break;
            } else {
                self.piece(&mut word)?;
            }
        }
        if self.cursor.position() == start {
            return Ok(None);
        }
        if word.parts.is_empty() {
            // Nothing but empty quotes or a continued line.
            word.push_quoted_text("");
        }
        let has_loose_dollar = word
            .parts
            .iter()
            .any(|part| matches!(part, Part::Text { text, quoted: false } if text.contains('$')));
        if has_loose_dollar && word.has_braces() {
            // Braces are expanded first and could make an expansion.
            return Err(Unclear);
        }
        Ok(Some(word))
    }

    /// One piece of a word outside of quotes.
    pub(super) fn piece(&mut self, word: &mut Word) -> Parse<()> {
        match self.cursor.advance()? {
            '\\' => match self.cursor.advance()? {
                '\n' => {}
                letter => word.push(letter, true),
            },
            '\'' => self.single_quotes(word)?,
            '"' => self.double_quotes(word)?,
            '$' => {
                word.end_quotes();
                self.dollar(word, Place::Unquoted)?;
            }
            '`' => {
                word.end_quotes();
                self.backticks(word, Place::Unquoted)?;
            }
            '\0' => return Err(Unclear),
            letter => word.push(letter, false),
        }
        Ok(())
    }

    fn single_quotes(&mut self, word: &mut Word) -> Parse<()> {
        let text = self.cursor.take_while(|letter| letter != '\'')?;
        self.cursor.expect("'")?;
        self.refuse_line_end(&text)?;
        word.push_quoted_text(&text);
        Ok(())
    }

    /// Between `<<E` and its text no quoted line may end: there bash versions differ.
    fn refuse_line_end(&self, text: &str) -> Parse<()> {
        if !self.cursor.pending.is_empty() && text.contains('\n') {
            return Err(Unclear);
        }
        Ok(())
    }

    fn double_quotes(&mut self, word: &mut Word) -> Parse<()> {
        let start = self.cursor.position();
        word.push_quoted_text("");
        loop {
            match self.cursor.advance()? {
                '"' => break,
                '\\' => match self.cursor.advance()? {
                    '\n' => {}
                    letter @ ('$' | '`' | '"' | '\\') => word.push(letter, true),
                    letter => {
                        word.push('\\', true);
                        word.push(letter, true);
                    }
                },
                '$' => self.dollar(word, Place::Quoted)?,
                '`' => self.backticks(word, Place::Quoted)?,
                '\0' => return Err(Unclear),
                letter => word.push(letter, true),
            }
        }
        let text = self.cursor.since(start);
        self.refuse_line_end(&text)
    }

    /// What follows a `$`.
    pub(super) fn dollar(&mut self, word: &mut Word, place: Place) -> Parse<()> {
        if self.cursor.looks_at("\\\n") {
            return Err(Unclear);
        }
        let Some(next) = self.cursor.peek() else {
            word.push('$', place != Place::Unquoted);
            return Ok(());
        };
        match next {
            '(' => {
                self.cursor.advance()?;
                let part = self
                    .cursor
                    .deeper(|cursor| WordParser::new(cursor).parenthesis())?;
                word.parts.push(part);
            }
            '{' => {
                self.cursor.advance()?;
                let parameter = self
                    .cursor
                    .deeper(|cursor| WordParser::new(cursor).braces(place))?;
                word.parts.push(Part::Parameter(Box::new(parameter)));
            }
            '[' => {
                self.cursor.advance()?;
                self.cursor.shared.is_bash_only = true;
                let inner = self
                    .cursor
                    .deeper(|cursor| WordParser::new(cursor).arithmetic("]"))?;
                self.cursor.expect("]")?;
                word.parts.push(Part::Arithmetic(inner));
            }
            '\'' if place == Place::Unquoted => {
                self.cursor.advance()?;
                self.cursor.shared.is_bash_only = true;
                word.is_ansi = true;
                self.ansi_quotes(word)?;
            }
            '"' if place == Place::Unquoted => {
                self.cursor.advance()?;
                word.is_ansi = true;
                self.double_quotes(word)?;
            }
            letter if starts_name(letter) => {
                let name = self.cursor.take_while(continues_name)?;
                if self.cursor.looks_at("\\\n") {
                    return Err(Unclear);
                }
                self.push_parameter(word, &name);
            }
            letter if letter.is_ascii_digit() || "@*#?$!-".contains(letter) => {
                self.cursor.advance()?;
                self.push_parameter(word, &letter.to_string());
            }
            _ => word.push('$', place != Place::Unquoted),
        }
        Ok(())
    }

    fn push_parameter(&mut self, word: &mut Word, name: &str) {
        word.parts.push(Part::Parameter(Box::new(Parameter {
            name: name.to_owned(),
            ..Parameter::default()
        })));
    }

    /// Behind `$(`: arithmetic if it ends with `))`, else commands. Bash looks for the first closing parenthesis that fits.
    fn parenthesis(&mut self) -> Parse<Part> {
        if self.cursor.looks_at("\\\n") {
            return Err(Unclear);
        }
        Ok(match self.double_parentheses()? {
            Some(inner) => Part::Arithmetic(inner),
            None => Part::Commands(self.until_parenthesis()?),
        })
    }

    /// Behind a parenthesis: the arithmetic of `((...))`. None, and nothing consumed, if the two do not close together.
    pub(super) fn double_parentheses(&mut self) -> Parse<Option<Word>> {
        let start = self.cursor.position();
        if self.cursor.eat("(")? {
            let inner = self.arithmetic(")")?;
            self.cursor.expect(")")?;
            if self.cursor.eat(")")? {
                return Ok(Some(inner));
            }
            self.cursor.go_back(start);
        }
        Ok(None)
    }

    /// Commands up to the parenthesis that ends them.
    pub(super) fn until_parenthesis(&mut self) -> Parse<List> {
        let outer = std::mem::take(&mut self.cursor.pending);
        let start = self.cursor.position();
        let list = self
            .cursor
            .deeper(|cursor| CommandParser::new(cursor).list(&[]))?;
        self.cursor.expect(")")?;
        if !self.cursor.pending.is_empty() || !outer.is_empty() && self.cursor.since(start).contains('\n') {
            return Err(Unclear);
        }
        self.cursor.pending = outer;
        Ok(list)
    }

    /// Behind a backtick.
    pub(super) fn backticks(&mut self, word: &mut Word, place: Place) -> Parse<()> {
        let mut inner = String::new();
        loop {
            match self.cursor.advance()? {
                '`' => break,
                '\\' => match self.cursor.advance()? {
                    letter @ ('$' | '`' | '\\') => inner.push(letter),
                    // Bash takes this backslash away directly within double quotes, but not in arithmetic, expansions and here-documents.
                    '"' if place != Place::Unquoted => return Err(Unclear),
                    letter => inner.extend(['\\', letter]),
                },
                letter => inner.push(letter),
            }
        }
        self.refuse_line_end(&inner)?;
        let list = self.cursor.deeper(|cursor| {
            let mut inner = Cursor::new(&inner, cursor.shared);
            CommandParser::new(&mut inner).whole_list()
        })?;
        word.parts.push(Part::Commands(list));
        Ok(())
    }

    /// Text in which bash expands and then calculates, up to a closing sign that is not consumed. Only what bash cannot read
    /// in two ways.
    pub(super) fn arithmetic(&mut self, end: &str) -> Parse<Word> {
        let mut word = Word::default();
        let mut open = Vec::new();
        loop {
            let letter = self.cursor.peek().ok_or(Unclear)?;
            if open.is_empty() && (self.cursor.looks_at(end) || letter == ';' && end == ";") {
                return Ok(word);
            }
            self.cursor.advance()?;
            match letter {
                '(' | '[' => open.push(letter),
                ')' if open.pop() != Some('(') => return Err(Unclear),
                ']' if open.pop() != Some('[') => return Err(Unclear),
                '$' => {
                    self.dollar(&mut word, Place::Quoted)?;
                    continue;
                }
                '`' => {
                    self.backticks(&mut word, Place::Quoted)?;
                    continue;
                }
                '"' => {
                    self.double_quotes(&mut word)?;
                    continue;
                }
                ')' | ']' => {}
                letter if letter.is_ascii_alphanumeric() || "_ \t\n+-*/%<>=!&|^~?:,#@.".contains(letter) => {}
                _ => return Err(Unclear),
            }
            word.push(letter, true);
        }
    }

    /// Behind `${`.
    fn braces(&mut self, place: Place) -> Parse<Parameter> {
        let mut parameter = Parameter::default();
        if self.cursor.looks_at("#}") || self.cursor.looks_at("!}") {
            parameter.name = self.cursor.advance()?.to_string();
            self.cursor.expect("}")?;
            return Ok(parameter);
        }
        parameter.length = self.cursor.eat("#")?;
        parameter.indirect = !parameter.length && self.cursor.eat("!")?;
        let first = self.cursor.peek().ok_or(Unclear)?;
        parameter.name = if starts_name(first) {
            self.cursor.take_while(continues_name)?
        } else if first.is_ascii_digit() {
            self.cursor.take_while(|letter| letter.is_ascii_digit())?
        } else if "@*?$-!#".contains(first) {
            self.cursor.advance()?.to_string()
        } else {
            return Err(Unclear);
        };
        if self.cursor.peek() == Some('[') && starts_name(first) {
            self.cursor.advance()?;
            parameter.subscript = Some(self.subscript(place)?);
        }
        for operator in [
            ":-", ":=", ":?", ":+", "##", "%%", "//", "/#", "/%", "^^", ",,", "-", "=", "?", "+", "#", "%",
            "/", "^", ",", ":", "@", "*",
        ] {
            if self.cursor.eat(operator)? {
                operator.clone_into(&mut parameter.operator);
                break;
            }
        }
        if parameter.operator.is_empty() || parameter.length {
            self.cursor.expect("}")?;
            return Ok(parameter);
        }
        if parameter.operator == "@" && !self.cursor.looks_at("}") {
            parameter.operator.push(self.cursor.advance()?);
        }
        parameter.operand = self.operand(place)?;
        Ok(parameter)
    }

    /// Up to the bracket that ends a subscript.
    pub(super) fn subscript(&mut self, place: Place) -> Parse<Word> {
        let mut word = Word::default();
        let mut depth = 0_usize;
        loop {
            match self.cursor.peek().ok_or(Unclear)? {
                ']' if depth == 0 => {
                    self.cursor.advance()?;
                    return Ok(word);
                }
                '[' => depth += 1,
                ']' => depth -= 1,
                '\\' | '\n' => return Err(Unclear),
                '\'' if place != Place::Unquoted => return Err(Unclear),
                _ => {}
            }
            self.piece(&mut word)?;
        }
    }

    /// Up to the brace that ends an expansion: the first unquoted one.
    fn operand(&mut self, place: Place) -> Parse<Word> {
        let mut word = Word::default();
        loop {
            match self.cursor.peek().ok_or(Unclear)? {
                '}' => {
                    self.cursor.advance()?;
                    return Ok(word);
                }
                '{' | '\n' => return Err(Unclear),
                '<' | '>' if self.cursor.peek_at(1) == Some('(') => return Err(Unclear),
                // What quotes mean within other quotes depends on the operator and the version.
                '\'' if place != Place::Unquoted => return Err(Unclear),
                '"' if place == Place::Document => return Err(Unclear),
                '\\' if self.cursor.peek_at(1) == Some('\n') => return Err(Unclear),
                '$' if place != Place::Unquoted => {
                    self.cursor.advance()?;
                    self.dollar(&mut word, place)?;
                }
                '`' if place != Place::Unquoted => {
                    self.cursor.advance()?;
                    self.backticks(&mut word, place)?;
                }
                _ => self.piece(&mut word)?,
            }
        }
    }

    /// Behind `$'`.
    fn ansi_quotes(&mut self, word: &mut Word) -> Parse<()> {
        let start = self.cursor.position();
        word.push_quoted_text("");
        loop {
            let letter = match self.cursor.advance()? {
                '\'' => break,
                '\\' => self.ansi_escape()?,
                letter => letter,
            };
            word.push(letter, true);
        }
        let text = self.cursor.since(start);
        self.refuse_line_end(&text)
    }

    fn ansi_escape(&mut self) -> Parse<char> {
        let letter = self.cursor.advance()?;
        let (digits, radix) = match letter {
            'a' => return Ok('\u{7}'),
            'b' => return Ok('\u{8}'),
            'e' | 'E' => return Ok('\u{1b}'),
            'f' => return Ok('\u{c}'),
            'n' => return Ok('\n'),
            'r' => return Ok('\r'),
            't' => return Ok('\t'),
            'v' => return Ok('\u{b}'),
            '\\' | '\'' | '"' | '?' => return Ok(letter),
            'x' => (2, 16),
            'u' => (4, 16),
            'U' => (8, 16),
            '0'..='7' => (3, 8),
            _ => return Err(Unclear),
        };
        let mut value = if radix == 8 { letter.to_digit(8) } else { None };
        for _ in usize::from(radix == 8)..digits {
            let Some(digit) = self.cursor.peek().and_then(|letter| letter.to_digit(radix)) else {
                break;
            };
            self.cursor.advance()?;
            value = Some(value.unwrap_or(0) * radix + digit);
        }
        // Bytes beyond ASCII may be parts of one letter, and zero ends the text.
        let is_byte = letter != 'u' && letter != 'U';
        match value.and_then(char::from_u32) {
            Some(letter) if letter != '\0' && (letter.is_ascii() || !is_byte) => Ok(letter),
            _ => Err(Unclear),
        }
    }

    /// A text in which expansions are made, and quotes mean nothing.
    pub(super) fn document_text(&mut self) -> Parse<Word> {
        let mut word = Word::default();
        word.push_quoted_text("");
        while !self.cursor.is_at_end() {
            match self.cursor.advance()? {
                '\\' => match self.cursor.peek() {
                    Some(letter @ ('$' | '`' | '\\')) => {
                        self.cursor.advance()?;
                        word.push(letter, true);
                    }
                    _ => word.push('\\', true),
                },
                '$' => self.dollar(&mut word, Place::Document)?,
                '`' => self.backticks(&mut word, Place::Document)?,
                letter => word.push(letter, true),
            }
        }
        Ok(word)
    }
}
