//! The grammar of commands: lists, pipelines, compound commands and functions. Simple commands, redirections and
//! here-documents are in `simple`, words in `expansion`.

use super::ast::{Compound, List, Node, Simple, Word};
use super::computed;
use super::cursor::{Cursor, Parse, Unclear, is_meta, is_name};
use super::expansion::WordParser;

/// Words that mean something else than a program where a command begins.
const RESERVED: [&str; 22] = [
    "!", "[[", "{", "}", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function",
    "if", "in", "select", "then", "time", "until", "while", "]]",
];
/// Reserved words that begin a compound command.
const OPENING: [&str; 8] = ["[[", "{", "case", "for", "if", "select", "until", "while"];
/// Tests whose operands bash calculates.
const COMPARING: [&str; 6] = ["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];

/// Reads commands. Words are read by a [`WordParser`] at the same place.
#[derive(Debug)]
pub(super) struct CommandParser<'c, 'a> {
    pub(super) cursor: &'c mut Cursor<'a>,
}

impl<'c, 'a> CommandParser<'c, 'a> {
    pub(super) fn new(cursor: &'c mut Cursor<'a>) -> Self {
        Self { cursor }
    }

    pub(super) fn words(&mut self) -> WordParser<'_, 'a> {
        WordParser::new(self.cursor)
    }

    /// The whole text.
    pub(super) fn whole_list(&mut self) -> Parse<List> {
        let list = self.list(&[])?;
        if !self.cursor.is_at_end() || !self.cursor.pending.is_empty() {
            return Err(Unclear);
        }
        Ok(list)
    }

    /// Commands up to the end, a closing parenthesis, the end of a case, or one of these words; none is consumed.
    pub(super) fn list(&mut self, stops: &[&str]) -> Parse<List> {
        let mut list = List {
            is_pipeline: true,
            ..List::default()
        };
        loop {
            self.blank_lines()?;
            let word = self.reserved();
            let is_stop = word.is_some_and(|word| stops.contains(&word));
            if self.cursor.is_at_end() || self.cursor.peek() == Some(')') || self.is_at_case_end() || is_stop
            {
                return Ok(list);
            }
            list.is_pipeline &= list.nodes.is_empty();
            self.pipelines(&mut list)?;
            self.blanks()?;
            match self.cursor.peek() {
                Some(';') if self.is_at_case_end() => {}
                Some(';' | '&') => {
                    list.is_pipeline = false;
                    self.cursor.advance()?;
                }
                None | Some('\n' | ')') => {}
                _ => return Err(Unclear),
            }
        }
    }

    fn is_at_case_end(&self) -> bool {
        self.cursor.looks_at(";;") || self.cursor.looks_at(";&")
    }

    /// Pipelines with `&&` and `||` between them.
    fn pipelines(&mut self, list: &mut List) -> Parse<()> {
        loop {
            self.pipeline(list)?;
            self.blanks()?;
            if !(self.cursor.eat("&&")? || self.cursor.eat("||")?) {
                return Ok(());
            }
            list.is_pipeline = false;
            self.refuse_continued_operator()?;
            self.blank_lines()?;
        }
    }

    fn pipeline(&mut self, list: &mut List) -> Parse<()> {
        loop {
            match self.reserved() {
                Some("!") => {
                    self.cursor.skip(1)?;
                    list.has_prefix = true;
                }
                Some("time") => {
                    self.cursor.skip(4)?;
                    self.blanks()?;
                    while self.is_bare_ahead("-p") || self.is_bare_ahead("--") {
                        self.cursor.skip(2)?;
                        self.blanks()?;
                    }
                    list.has_prefix = true;
                }
                _ => break,
            }
            self.blanks()?;
        }
        let may_be_empty = list.has_prefix;
        if may_be_empty && self.cursor.peek().is_none_or(|letter| ";\n)".contains(letter)) {
            return Ok(());
        }
        let mut is_fed = false;
        loop {
            let node = self
                .cursor
                .deeper(|cursor| CommandParser::new(cursor).command())?;
            list.nodes.push(node);
            list.fed.push(is_fed);
            is_fed = true;
            self.blanks()?;
            if self.cursor.looks_at("||") || !self.cursor.eat("|")? {
                return Ok(());
            }
            self.cursor.eat("&")?;
            self.refuse_continued_operator()?;
            self.blank_lines()?;
            if self.reserved() == Some("!") {
                return Err(Unclear);
            }
            if self.reserved() == Some("time") {
                let start = list.fed.len();
                self.cursor
                    .deeper(|cursor| CommandParser::new(cursor).pipeline(list))?;
                list.fed.iter_mut().skip(start).for_each(|fed| *fed = true);
                return Ok(());
            }
        }
    }

    pub(super) fn refuse_continued_operator(&self) -> Parse<()> {
        if self.cursor.looks_at("\\\n&")
            || self.cursor.looks_at("\\\n|")
            || self.cursor.looks_at("\\\n>")
            || self.cursor.looks_at("\\\n<")
        {
            return Err(Unclear);
        }
        Ok(())
    }

    /// The reserved word that stands here, without consuming it.
    pub(super) fn reserved(&self) -> Option<&'static str> {
        RESERVED.into_iter().find(|word| self.is_bare_ahead(word))
    }

    fn is_bare_ahead(&self, word: &str) -> bool {
        self.cursor.looks_at(word) && self.cursor.peek_at(word.chars().count()).is_none_or(is_meta)
    }

    fn keyword(&mut self, word: &str) -> Parse<()> {
        self.blank_lines()?;
        if !self.is_bare_ahead(word) {
            return Err(Unclear);
        }
        self.cursor.expect(word)
    }

    fn command(&mut self) -> Parse<Node> {
        if self.cursor.peek() == Some('(') || self.reserved().is_some_and(|word| OPENING.contains(&word)) {
            return Ok(Node::Compound(self.compound()?));
        }
        match self.reserved() {
            Some("function") => {
                self.cursor.skip("function".len())?;
                self.blanks()?;
                let name = self.words().word()?.ok_or(Unclear)?;
                self.function_named(&name)
            }
            Some("coproc") => {
                self.cursor.skip("coproc".len())?;
                self.blanks()?;
                self.coprocess()
            }
            Some(word) if word != "in" && word != "]]" => Err(Unclear),
            _ => self.simple_or_function(),
        }
    }

    /// `coproc NAME compound`, `coproc compound` or `coproc program`. A name only stands before a compound command.
    fn coprocess(&mut self) -> Parse<Node> {
        let start = self.cursor.position();
        let begins = |parser: &Self| {
            parser.cursor.peek() == Some('(') || parser.reserved().is_some_and(|word| OPENING.contains(&word))
        };
        let mut name = None;
        if !begins(self) {
            name = self.words().word()?;
            self.blanks()?;
            if !begins(self) {
                self.cursor.go_back(start);
                name = None;
            }
        }
        let node = self.command()?;
        Ok(Node::Compound(Compound {
            variable: name.map(|name| (name.text(), None)),
            // A pipe is its input.
            is_function: true,
            lists: vec![List {
                nodes: vec![node],
                ..List::default()
            }],
            ..Compound::default()
        }))
    }

    fn simple_or_function(&mut self) -> Parse<Node> {
        let simple = self.simple()?;
        if self.cursor.peek() == Some('(') {
            let is_alone = simple.assignments.is_empty() && simple.redirects.is_empty();
            let [name] = simple.words.as_slice() else {
                return Err(Unclear);
            };
            // A continued line can make a list of what looks like a function: `a\<newline>=(1)`.
            if !is_alone || name.text().contains('=') {
                return Err(Unclear);
            }
            return self.function_named(&name.clone());
        }
        Ok(Node::Simple(simple))
    }

    /// Behind the name of a function.
    fn function_named(&mut self, name: &Word) -> Parse<Node> {
        if name.hides() || computed::is_trusted(&name.text()) {
            return Err(Unclear);
        }
        self.blanks()?;
        if self.cursor.looks_at("(") {
            let start = self.cursor.position();
            self.cursor.skip(1)?;
            self.blanks()?;
            if !self.cursor.eat(")")? {
                self.cursor.go_back(start);
            }
        }
        self.blank_lines()?;
        let mut body = self.compound()?;
        body.is_function = true;
        Ok(Node::Compound(body))
    }

    fn compound(&mut self) -> Parse<Compound> {
        let mut compound = match self.reserved() {
            Some("{") => {
                self.cursor.skip(1)?;
                let list = self.list(&["}"])?;
                self.keyword("}")?;
                groups(vec![list])
            }
            Some("if") => self.condition()?,
            Some(word @ ("while" | "until")) => {
                self.cursor.skip(word.len())?;
                let test = self.list(&["do"])?;
                let mut compound = self.do_group()?;
                compound.lists.push(test);
                compound
            }
            Some("for") => self.for_loop()?,
            Some("select") => {
                self.cursor.skip("select".len())?;
                self.loop_over_words()?
            }
            Some("case") => self.case()?,
            Some("[[") => self.test()?,
            None if self.cursor.peek() == Some('(') => self.parentheses()?,
            _ => return Err(Unclear),
        };
        self.redirects(&mut compound.redirects)?;
        Ok(compound)
    }

    /// `((...))` or commands in parentheses.
    fn parentheses(&mut self) -> Parse<Compound> {
        self.cursor.expect("(")?;
        if self.cursor.looks_at("\\\n") {
            // Bash joins the lines first: the next letter may make it another construct.
            return Err(Unclear);
        }
        Ok(match self.words().double_parentheses()? {
            Some(inner) => {
                self.cursor.shared.is_bash_only = true;
                Compound {
                    arithmetic: vec![inner],
                    ..Compound::default()
                }
            }
            None => groups(vec![self.words().until_parenthesis()?]),
        })
    }

    fn condition(&mut self) -> Parse<Compound> {
        let mut lists = Vec::new();
        self.cursor.skip("if".len())?;
        loop {
            lists.push(self.list(&["then"])?);
            self.keyword("then")?;
            lists.push(self.list(&["elif", "else", "fi"])?);
            match self.reserved().ok_or(Unclear)? {
                "elif" => self.cursor.skip("elif".len())?,
                "else" => {
                    self.cursor.skip("else".len())?;
                    lists.push(self.list(&["fi"])?);
                    break;
                }
                _ => break,
            }
        }
        self.keyword("fi")?;
        Ok(groups(lists))
    }

    fn do_group(&mut self) -> Parse<Compound> {
        self.blank_lines()?;
        if self.reserved() == Some("{") {
            self.cursor.skip(1)?;
            let list = self.list(&["}"])?;
            self.keyword("}")?;
            return Ok(groups(vec![list]));
        }
        self.keyword("do")?;
        let list = self.list(&["done"])?;
        self.keyword("done")?;
        Ok(groups(vec![list]))
    }

    fn for_loop(&mut self) -> Parse<Compound> {
        self.cursor.skip("for".len())?;
        self.blanks()?;
        if !self.cursor.looks_at("((") {
            return self.loop_over_words();
        }
        self.cursor.skip(2)?;
        let mut arithmetic = Vec::new();
        for end in [";", ";", ")"] {
            arithmetic.push(self.words().arithmetic(end)?);
            self.cursor.expect(end)?;
        }
        self.cursor.expect(")")?;
        self.blanks()?;
        self.cursor.eat(";")?;
        let mut compound = self.do_group()?;
        compound.arithmetic = arithmetic;
        Ok(compound)
    }

    fn loop_over_words(&mut self) -> Parse<Compound> {
        self.blanks()?;
        let name = self.words().word()?.ok_or(Unclear)?.literal().ok_or(Unclear)?;
        if !is_name(&name) {
            return Err(Unclear);
        }
        self.blank_lines()?;
        let mut words = None;
        if self.reserved() == Some("in") {
            self.cursor.skip("in".len())?;
            let mut found = Vec::new();
            self.blanks()?;
            while let Some(word) = self.words().word()? {
                found.push(word);
                self.blanks()?;
            }
            words = Some(found);
        }
        self.blanks()?;
        self.cursor.eat(";")?;
        let mut compound = self.do_group()?;
        compound.variable = Some((name, words));
        Ok(compound)
    }

    fn case(&mut self) -> Parse<Compound> {
        self.cursor.skip("case".len())?;
        self.blanks()?;
        let mut compound = groups(Vec::new());
        compound.words.push(self.words().word()?.ok_or(Unclear)?);
        self.keyword("in")?;
        loop {
            self.blank_lines()?;
            if self.reserved() == Some("esac") {
                self.cursor.skip("esac".len())?;
                return Ok(compound);
            }
            self.cursor.eat("(")?;
            loop {
                self.blanks()?;
                compound.words.push(self.words().word()?.ok_or(Unclear)?);
                self.blanks()?;
                if !self.cursor.eat("|")? {
                    break;
                }
            }
            self.cursor.expect(")")?;
            compound.lists.push(self.list(&["esac"])?);
            if !(self.cursor.eat(";;&")? || self.cursor.eat(";;")? || self.cursor.eat(";&")?)
                && self.reserved() != Some("esac")
            {
                return Err(Unclear);
            }
        }
    }

    /// `[[ ... ]]`.
    fn test(&mut self) -> Parse<Compound> {
        self.cursor.shared.is_bash_only = true;
        self.cursor.skip(2)?;
        let mut compound = Compound::default();
        let mut comparing = false;
        let mut matching = false;
        loop {
            self.blank_lines()?;
            if !matching && self.is_bare_ahead("]]") {
                self.cursor.skip(2)?;
                return Ok(compound);
            }
            if matching {
                compound.words.push(self.pattern()?);
                matching = false;
                continue;
            }
            if self.cursor.eat("&&")?
                || self.cursor.eat("||")?
                || self.cursor.eat("(")?
                || self.cursor.eat(")")?
            {
                comparing = false;
                continue;
            }
            if self.cursor.peek().is_some_and(|letter| "<>".contains(letter))
                && self.cursor.peek_at(1) != Some('(')
            {
                self.cursor.skip(1)?;
                continue;
            }
            let word = self.words().word()?.ok_or(Unclear)?;
            let text = word.text();
            if COMPARING.contains(&text.as_str()) {
                // Both sides are calculated.
                compound.arithmetic.extend(compound.words.last().cloned());
                comparing = true;
            } else if ["=~", "==", "!=", "="].contains(&text.as_str()) {
                matching = true;
            } else if comparing || compound.words.last().is_some_and(takes_name) {
                compound.arithmetic.push(word.clone());
                comparing = false;
            }
            compound.words.push(word);
        }
    }

    /// Behind an operator that compares with a pattern: parentheses and bars belong to the word.
    fn pattern(&mut self) -> Parse<Word> {
        let mut word = Word::default();
        let mut open = 0_usize;
        while let Some(letter) = self.cursor.peek() {
            match letter {
                ' ' | '\t' if open == 0 => break,
                ' ' | '\t' | '\n' | ';' | '&' | '<' | '>' => return Err(Unclear),
                '(' => open += 1,
                ')' if open == 0 => break,
                ')' => open -= 1,
                '|' if open == 0 && self.cursor.looks_at("||") => break,
                '|' => {}
                _ => {
                    self.words().piece(&mut word)?;
                    continue;
                }
            }
            self.cursor.advance()?;
            word.push(letter, false);
        }
        Ok(word)
    }

    /// The redirections behind a compound command.
    fn redirects(&mut self, redirects: &mut Vec<super::ast::Redirect>) -> Parse<()> {
        loop {
            self.blanks()?;
            match self.redirect()? {
                Some(redirect) => redirects.push(redirect),
                None => return Ok(()),
            }
        }
    }
}

fn takes_name(word: &Word) -> bool {
    ["-v", "-R"].contains(&word.text().as_str())
}

fn groups(lists: Vec<List>) -> Compound {
    Compound {
        lists,
        ..Compound::default()
    }
}

impl Simple {
    /// Returns true if the first word is a reserved word written with a continued line.
    pub(super) fn begins_reserved(&self) -> bool {
        let is_first = self.assignments.is_empty() && self.redirects.is_empty();
        is_first
            && self.words.first().is_some_and(|word| {
                RESERVED.iter().any(|reserved| word.is_bare(reserved)) && !word.is_bare("in")
            })
    }
}
