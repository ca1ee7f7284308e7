//! The grammar of simple commands: assignments, words, redirections and here-documents; and what stands between commands.

use super::ast::{Assignment, Redirect, RedirectKind, Simple, Value, Word};
use super::cursor::{Cursor, Parse, Pending, Unclear, continues_name, is_meta, starts_name};
use super::expansion::{Place, WordParser};
use super::grammar::CommandParser;

/// Builtins whose arguments are assignments, with lists too.
pub(super) const DECLARING: [&str; 5] = ["declare", "typeset", "local", "export", "readonly"];

impl CommandParser<'_, '_> {
    /// Skips blanks, continued lines and a comment.
    pub(super) fn blanks(&mut self) -> Parse<()> {
        loop {
            if self.cursor.looks_at("\\\n") {
                self.cursor.skip(2)?;
            } else if self
                .cursor
                .peek()
                .is_some_and(|letter| letter == ' ' || letter == '\t')
            {
                self.cursor.advance()?;
            } else if self.cursor.peek() == Some('#') {
                self.cursor.take_while(|letter| letter != '\n')?;
            } else {
                return Ok(());
            }
        }
    }

    /// Skips blanks and ends of lines. Here-documents begin behind the end of a line.
    pub(super) fn blank_lines(&mut self) -> Parse<()> {
        loop {
            self.blanks()?;
            if self.cursor.peek() != Some('\n') {
                return Ok(());
            }
            self.cursor.advance()?;
            for pending in std::mem::take(&mut self.cursor.pending) {
                self.document(&pending)?;
            }
        }
    }

    /// A simple command; the caller sees to a parenthesis behind it.
    pub(super) fn simple(&mut self) -> Parse<Simple> {
        let mut simple = Simple::default();
        loop {
            self.blanks()?;
            if let Some(redirect) = self.redirect()? {
                simple.redirects.push(redirect);
                continue;
            }
            let declares = simple
                .words
                .first()
                .is_some_and(|word| DECLARING.contains(&word.text().as_str()));
            if simple.words.is_empty()
                && let Some(assignment) = self.assignment()?
            {
                simple.assignments.push(assignment);
                continue;
            }
            if declares && let Some(word) = self.declared_list()? {
                simple.words.push(word);
                continue;
            }
            match self.words().word()? {
                Some(word) => simple.words.push(word),
                None => break,
            }
        }
        let is_empty =
            simple.words.is_empty() && simple.assignments.is_empty() && simple.redirects.is_empty();
        // With `extglob`, a parenthesis behind such a letter begins a pattern; without, it is an error.
        let is_pattern = self.cursor.peek() == Some('(')
            && simple
                .words
                .last()
                .is_some_and(|word| word.text().ends_with(['!', '@', '+', '?', '*']));
        if is_empty || is_pattern || simple.begins_reserved() {
            return Err(Unclear);
        }
        Ok(simple)
    }

    /// `name=(...)` as an argument: the values are kept as one word.
    fn declared_list(&mut self) -> Parse<Option<Word>> {
        let start = self.cursor.position();
        if !self.cursor.peek().is_some_and(starts_name) {
            return Ok(None);
        }
        let name = self.cursor.take_while(continues_name)?;
        if !(self.cursor.eat("=(")? || self.cursor.eat("+=(")?) {
            self.cursor.go_back(start);
            return Ok(None);
        }
        let mut word = Word::literal_of(&format!("{name}="));
        for (subscript, value) in self.array()? {
            word.parts.extend(subscript.map(super::ast::Part::Arithmetic));
            word.parts.extend(value.parts);
            word.push(' ', true);
        }
        if self.cursor.peek().is_some_and(|letter| !is_meta(letter)) {
            return Err(Unclear);
        }
        // Its value is a list, which no rule compares.
        word.parts.push(super::ast::Part::Unknown);
        Ok(Some(word))
    }

    /// `name=value`, `name[subscript]+=value`, `name=(values)`.
    fn assignment(&mut self) -> Parse<Option<Assignment>> {
        let start = self.cursor.position();
        if !self.cursor.peek().is_some_and(starts_name) {
            return Ok(None);
        }
        let name = self.cursor.take_while(continues_name)?;
        let mut subscript = None;
        if self.cursor.peek() == Some('[') {
            self.cursor.advance()?;
            match self.words().subscript(Place::Unquoted) {
                Ok(word) => subscript = Some(word),
                Err(error) => return Err(error),
            }
        }
        let appends = self.cursor.eat("+=")?;
        if !appends && !self.cursor.eat("=")? {
            if subscript.is_some()
                && self
                    .cursor
                    .since(start)
                    .contains([' ', '\t', ';', '|', '&', '<', '>', '(', ')'])
            {
                return Err(Unclear);
            }
            self.cursor.go_back(start);
            return Ok(None);
        }
        let value = if self.cursor.peek() == Some('(') && subscript.is_none() {
            self.cursor.advance()?;
            Value::Array(self.array()?)
        } else {
            Value::Scalar(self.words().word()?.unwrap_or_default())
        };
        // Bash reads on behind a list: `a=(1)echo` is one word, and a `#` there begins no comment.
        if self
            .cursor
            .peek()
            .is_some_and(|letter| letter == '(' || !is_meta(letter))
        {
            return Err(Unclear);
        }
        Ok(Some(Assignment {
            name,
            subscript,
            appends,
            value,
        }))
    }

    /// Behind `name=(`.
    fn array(&mut self) -> Parse<Vec<(Option<Word>, Word)>> {
        let mut values = Vec::new();
        loop {
            self.blank_lines()?;
            if self.cursor.eat(")")? {
                return Ok(values);
            }
            let start = self.cursor.position();
            let mut subscript = None;
            if self.cursor.eat("[")? {
                let word = self.words().subscript(Place::Unquoted)?;
                if self.cursor.eat("=")? || self.cursor.eat("+=")? {
                    subscript = Some(word);
                } else {
                    self.cursor.go_back(start);
                }
            }
            let value = match self.words().word()? {
                Some(word) => word,
                None if subscript.is_some() => Word::default(),
                None => return Err(Unclear),
            };
            values.push((subscript, value));
        }
    }

    /// A redirection, none where no one begins.
    pub(super) fn redirect(&mut self) -> Parse<Option<Redirect>> {
        let start = self.cursor.position();
        if self.cursor.looks_at("&>") {
            self.cursor.shared.is_bash_only = true;
            self.cursor.skip(2)?;
            self.cursor.eat(">")?;
            return self.target(RedirectKind::Output).map(Some);
        }
        let descriptor = if self.cursor.peek() == Some('{') {
            self.cursor.advance()?;
            let name = self
                .cursor
                .take_while(|letter| continues_name(letter) || letter == '[' || letter == ']')?;
            if name.is_empty() || !self.cursor.eat("}")? {
                self.cursor.go_back(start);
                return Ok(None);
            }
            name
        } else {
            self.cursor.take_while(|letter| letter.is_ascii_digit())?
        };
        let is_redirect = self.cursor.peek().is_some_and(|letter| "<>".contains(letter));
        if !is_redirect {
            self.cursor.go_back(start);
            return Ok(None);
        }
        if self.cursor.peek_at(1) == Some('(') {
            self.cursor.go_back(start);
            return if descriptor.is_empty() {
                Ok(None)
            } else {
                Err(Unclear)
            };
        }
        // A variable takes the number of the descriptor; its subscript would be calculated.
        if descriptor.contains('[') {
            return Err(Unclear);
        }
        if self.cursor.eat("<<<")? {
            return self.target(RedirectKind::HereString).map(Some);
        }
        if self.cursor.eat("<<")? {
            return self.document_start().map(Some);
        }
        if self.cursor.eat("<&")? {
            return self.duplicate(RedirectKind::Input).map(Some);
        }
        if self.cursor.eat(">&")? {
            return self.duplicate(RedirectKind::Output).map(Some);
        }
        let kind = if self.cursor.eat("<>")?
            || self.cursor.eat(">>")?
            || self.cursor.eat(">|")?
            || self.cursor.eat(">")?
        {
            RedirectKind::Output
        } else {
            self.cursor.expect("<")?;
            RedirectKind::Input
        };
        self.target(kind).map(Some)
    }

    /// Behind `<&` or `>&`: a descriptor, or the name of a file, which is opened like this.
    fn duplicate(&mut self, of_file: RedirectKind) -> Parse<Redirect> {
        let mut redirect = self.target(RedirectKind::Duplicate)?;
        let target = redirect.target.text();
        // Bash closes the descriptor and reads on: `>&-program` runs the program.
        if target.starts_with('-') && (target != "-" || redirect.target.changes()) {
            return Err(Unclear);
        }
        let text = redirect.target.literal().unwrap_or_default();
        let is_number = !text.is_empty()
            && text
                .chars()
                .all(|letter| letter.is_ascii_digit() || letter == '-');
        if !is_number {
            redirect.kind = of_file;
        }
        Ok(redirect)
    }

    fn target(&mut self, kind: RedirectKind) -> Parse<Redirect> {
        self.refuse_continued_operator()?;
        self.blanks_without_comment()?;
        let target = self.words().word()?.ok_or(Unclear)?;
        Ok(Redirect { kind, target })
    }

    fn blanks_without_comment(&mut self) -> Parse<()> {
        self.cursor.take_while(|letter| letter == ' ' || letter == '\t')?;
        if self.cursor.looks_at("\\\n") || self.cursor.peek() == Some('#') {
            return Err(Unclear);
        }
        Ok(())
    }

    /// Behind `<<`: only plain last lines, in which all versions of bash see the same.
    fn document_start(&mut self) -> Parse<Redirect> {
        let drops_tabs = self.cursor.eat("-")?;
        self.blanks_without_comment()?;
        let start = self.cursor.position();
        let mut target = Word::default();
        while self.cursor.peek().is_some_and(|letter| !is_meta(letter)) {
            if self.cursor.peek().is_some_and(|letter| "$`".contains(letter)) {
                return Err(Unclear);
            }
            self.words().piece(&mut target)?;
        }
        let raw = self.cursor.since(start);
        let end = target.text();
        if raw.is_empty() || raw.contains('\n') || end.contains(['\n', '\\', '$', '`', '(', ')']) {
            return Err(Unclear);
        }
        let index = self.cursor.shared.documents.len();
        self.cursor.shared.documents.push(Word::default());
        self.cursor.pending.push(Pending {
            end,
            drops_tabs,
            is_literal: raw.contains(['\'', '"', '\\']),
            index,
        });
        Ok(Redirect {
            kind: RedirectKind::Document(index),
            target,
        })
    }

    /// The text of a here-document and its last line. One without a last line is not understood.
    fn document(&mut self, pending: &Pending) -> Parse<()> {
        let mut body = String::new();
        loop {
            if self.cursor.is_at_end() {
                return Err(Unclear);
            }
            let mut line = self.document_line()?;
            // The end of a line may be quoted; then the last line is compared with both lines as one.
            while !pending.is_literal && ends_with_escape(&line) {
                line.pop();
                if self.cursor.is_at_end() {
                    return Err(Unclear);
                }
                let next = self.document_line()?;
                if next == pending.end || next.trim_start_matches('\t') == pending.end {
                    return Err(Unclear);
                }
                line.push_str(&next);
            }
            let bare = if pending.drops_tabs {
                line.trim_start_matches('\t')
            } else {
                &line
            };
            if bare == pending.end {
                break;
            }
            body.push_str(bare);
            body.push('\n');
        }
        let word = if pending.is_literal {
            Word::literal_of(&body)
        } else {
            WordParser::new(&mut Cursor::new(&body, self.cursor.shared)).document_text()?
        };
        if let Some(document) = self.cursor.shared.documents.get_mut(pending.index) {
            *document = word;
        }
        Ok(())
    }

    fn document_line(&mut self) -> Parse<String> {
        let line = self.cursor.take_while(|letter| letter != '\n')?;
        if !self.cursor.is_at_end() {
            self.cursor.advance()?;
        }
        Ok(line)
    }
}

/// Returns true if an odd number of backslashes stands at its end.
fn ends_with_escape(line: &str) -> bool {
    line.chars().rev().take_while(|letter| *letter == '\\').count() % 2 == 1
}
