//! Variables whose values bash calculates. A value such as `a[$(program)]` runs the program when it is calculated, so every
//! variable in arithmetic must only ever take numbers.

use std::collections::BTreeSet;

use super::ast::{List, Node, Parameter, Part, Word};
use super::cursor::{continues_name, is_name, starts_name};
use super::programs;

/// Parameters that are always numbers.
const NUMBERS: [&str; 5] = ["#", "?", "$", "!", "RANDOM"];
/// Variables that bash itself fills with texts that others choose.
const FILLED: [&str; 18] = [
    "_",
    "BASH_ALIASES",
    "BASH_ARGV",
    "BASH_ARGV0",
    "BASH_CMDS",
    "BASH_COMMAND",
    "BASH_EXECUTION_STRING",
    "BASH_REMATCH",
    "BASH_SOURCE",
    "COPROC",
    "DIRSTACK",
    "FUNCNAME",
    "MAPFILE",
    "OLDPWD",
    "OPTARG",
    "PWD",
    "READLINE_LINE",
    "REPLY",
];
/// Lists that bash itself makes.
const LISTS: [&str; 13] = [
    "BASH_ARGC",
    "BASH_ARGV",
    "BASH_LINENO",
    "BASH_REMATCH",
    "BASH_SOURCE",
    "BASH_VERSINFO",
    "COMP_WORDS",
    "COPROC",
    "DIRSTACK",
    "FUNCNAME",
    "GROUPS",
    "MAPFILE",
    "PIPESTATUS",
];
/// Letters of numbers and of ranges in braces.
const DIGITS: &str = "0123456789-+{},. \n";

/// Which variables are calculated, and which take values that may not be numbers.
#[derive(Debug, Default)]
pub(super) struct Variables {
    calculated: BTreeSet<String>,
    texts: BTreeSet<String>,
    /// A variable is assigned whose name is not known.
    assigns_unknown: bool,
    lists: BTreeSet<String>,
    /// Variables that take a text in a declaration that could be the values of a list, such as `($(program))`.
    declared: BTreeSet<String>,
}

impl Variables {
    pub(super) fn assign(&mut self, name: &str, is_number: bool) {
        if !is_number {
            self.texts.insert(name.to_owned());
        }
    }

    pub(super) fn assign_unknown(&mut self) {
        self.assigns_unknown = true;
    }

    /// A variable whose assignments are calculated.
    pub(super) fn calculate_name(&mut self, name: &str) {
        self.calculated.insert(name.to_owned());
    }

    /// A variable that is a list.
    pub(super) fn list(&mut self, name: &str) {
        self.lists.insert(name.to_owned());
    }

    /// A variable that takes a text in a declaration.
    pub(super) fn declare(&mut self, name: &str) {
        self.declared.insert(name.to_owned());
    }

    /// True if a text that is not a number may be calculated, or a text may be expanded as the values of a list.
    pub(super) fn are_unsafe(&self) -> bool {
        let is_list = |name: &String| self.lists.contains(name) || LISTS.contains(&name.as_str());
        if self.declared.iter().any(is_list) {
            return true;
        }
        let is_text = |name: &String| self.texts.contains(name) || FILLED.contains(&name.as_str());
        self.assigns_unknown && !self.calculated.is_empty() || self.calculated.iter().any(is_text)
    }

    /// Takes note of the names in a text that is calculated; false if it may run something by itself.
    pub(super) fn calculate(&mut self, word: &Word) -> bool {
        word.parts.iter().all(|part| match part {
            Part::Text { text, .. } => self.calculate_text(text),
            Part::Unknown | Part::Process(_) => false,
            Part::Arithmetic(_) => true,
            Part::Commands(list) => writes_number(list),
            Part::Parameter(parameter) => self.calculate_parameter(parameter),
        })
    }

    fn calculate_text(&mut self, text: &str) -> bool {
        let is_known =
            |letter: char| letter.is_ascii_alphanumeric() || "_ \t\n+-*/%<>=!&|^~?:,#@.()[]".contains(letter);
        if !text.chars().all(is_known) {
            return false;
        }
        for name in text.split(|letter| !continues_name(letter)) {
            if name.starts_with(starts_name) {
                self.calculated.insert(name.to_owned());
            }
        }
        true
    }

    fn calculate_parameter(&mut self, parameter: &Parameter) -> bool {
        if parameter.length || NUMBERS.contains(&parameter.name.as_str()) {
            return !parameter.indirect;
        }
        if !is_name(&parameter.name) || parameter.indirect {
            return false;
        }
        self.calculated.insert(parameter.name.clone());
        let operand = &parameter.operand;
        match parameter.operator.as_str() {
            "" => true,
            "%" | "%%" | "#" | "##" => !operand.is_dynamic(),
            _ => is_number(operand),
        }
    }
}

/// True if a word can only become a number, several numbers or nothing.
pub(super) fn is_number(word: &Word) -> bool {
    word.parts.iter().all(|part| match part {
        Part::Text { text, .. } => text.chars().all(|letter| DIGITS.contains(letter)),
        Part::Unknown | Part::Process(_) => false,
        Part::Arithmetic(_) => true,
        Part::Commands(list) => writes_number(list),
        Part::Parameter(parameter) => {
            !parameter.indirect && (parameter.length || NUMBERS.contains(&parameter.name.as_str()))
        }
    })
}

/// True if the commands can only write what stands in files: nothing that could be calculated as a command stands in them.
fn writes_number(list: &List) -> bool {
    list.nodes.iter().all(|node| {
        let Node::Simple(simple) = node else {
            return false;
        };
        let is_harmless = |word: &Word| {
            word.literal()
                .is_some_and(|text| !text.contains(['[', '\\', '$', '`']))
        };
        let program = simple.words.first().map(Word::text).unwrap_or_default();
        programs::copies_text(&program)
            && simple.assignments.is_empty()
            && simple.words.iter().all(is_harmless)
    })
}
