//! Variables whose values bash calculates. A value such as `a[$(program)]` runs the program when it is calculated, so every
//! variable in arithmetic must only ever take numbers.

use std::collections::{BTreeMap, BTreeSet};

use super::ast::{List, Node, Parameter, Part, Redirect, RedirectKind, Simple, Word};
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
/// Programs that write what they read: the letters of their options that take a value, and how many arguments they have if they read
/// files and not their input.
const COPYING: [(&str, &str, usize); 7] = [
    ("cat", "", 1),
    ("cut", "bcdf", 1),
    ("grep", "ABCDdefm", 2),
    ("head", "cn", 1),
    ("sort", "kSTot", 1),
    ("tail", "cns", 1),
    ("uniq", "fsw", 1),
];
/// A pattern for names of files that is not compared with them.
const ANY: &str = "*";
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
    /// Names of files that commands copy into a variable, or into a calculation, which has no name.
    copied: BTreeMap<String, BTreeSet<String>>,
}

impl Variables {
    /// A variable takes this value.
    pub(super) fn take(&mut self, name: &str, value: &Word) {
        self.assign(name, is_number(value));
        self.copies(name, value);
    }

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

    /// Takes note of the files that commands in a value copy.
    fn copies(&mut self, name: &str, value: &Word) {
        for part in &value.parts {
            if let Part::Commands(list) = part
                && !ends_with_count(list)
            {
                let files = list.nodes.iter().flat_map(copied_files);
                self.copied.entry(name.to_owned()).or_default().extend(files);
            }
        }
    }

    /// True if the text of a file that the line makes may be calculated.
    pub(super) fn calculates(&self, made: &str) -> bool {
        let is_calculated = |name: &String| name.is_empty() || self.calculated.contains(name);
        let mut copied = self.copied.iter();
        copied.any(|(name, files)| is_calculated(name) && (files.contains(made) || files.contains(ANY)))
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
        self.copies("", word);
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
        let mut end = 0;
        for name in text.split(|letter| !continues_name(letter)) {
            end += name.len();
            if name.starts_with(starts_name) {
                self.calculated.insert(name.to_owned());
                if text.get(end..).is_some_and(|rest| rest.starts_with('[')) {
                    // `((name[0] = 1))` makes a list.
                    self.lists.insert(name.to_owned());
                }
            }
            // All other letters that are known take one byte.
            end += 1;
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
        self.copies("", operand);
        match parameter.operator.as_str() {
            "" => true,
            "%" | "%%" | "#" | "##" => !operand.is_dynamic(),
            _ => is_number(operand),
        }
    }
}

/// True if a word can only become a number, several numbers or nothing.
fn is_number(word: &Word) -> bool {
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
    list.nodes.iter().enumerate().all(|(at, node)| {
        let Node::Simple(simple) = node else {
            return false;
        };
        let program = simple.words.first().map(Word::text).unwrap_or_default();
        programs::copies_text(&program)
            && simple.assignments.is_empty()
            && simple.words.iter().all(is_harmless)
            && (writes_count(simple)
                || simple.redirects.iter().all(gives_number)
                    && (at > 0 || copying(simple).is_none_or(|copying| !copying.reads_input)))
    })
}

fn is_harmless(word: &Word) -> bool {
    word.literal()
        .is_some_and(|text| !text.contains(['[', '\\', '$', '`']))
}

/// True if no text that stands in this redirection is written.
fn gives_number(redirect: &Redirect) -> bool {
    match redirect.kind {
        RedirectKind::Duplicate | RedirectKind::Output => true,
        RedirectKind::Input => is_harmless(&redirect.target) && !is_descriptor(&redirect.target.text()),
        RedirectKind::HereString => is_number(&redirect.target),
        RedirectKind::Document(_) => false,
    }
}

/// True if the commands write numbers for any input: `sort file | wc -l`.
fn ends_with_count(list: &List) -> bool {
    list.is_pipeline && matches!(list.nodes.last(), Some(Node::Simple(last)) if writes_count(last))
}

/// True if a command writes numbers for any input.
fn writes_count(simple: &Simple) -> bool {
    let is_wc = simple.words.first().is_some_and(|program| program.text() == "wc");
    is_wc || copying(simple).is_some_and(|copying| copying.counts)
}

/// How a command of [`COPYING`] is called.
#[derive(Debug, Default)]
struct Copying {
    /// `grep -c`: it writes how many lines there are, and none of them.
    counts: bool,
    /// It may write what comes into the line, and not only what stands in files.
    reads_input: bool,
}

fn copying(simple: &Simple) -> Option<Copying> {
    let program = simple.words.first().map(Word::text).unwrap_or_default();
    let (_, valued, files) = COPYING.iter().find(|(name, _, _)| *name == program)?;
    let is_grep = program == "grep";
    let (mut found, mut needed) = (0, *files);
    let mut is_value = false;
    let mut copying = Copying::default();
    for text in simple.words.iter().skip(1).map(Word::text) {
        copying.reads_input |= text == "-" || is_descriptor(&text);
        if std::mem::take(&mut is_value) {
            continue;
        }
        let Some(letters) = text.strip_prefix('-') else {
            found += 1;
            continue;
        };
        if letters.starts_with('-') {
            copying.counts |= is_grep && letters == "-count";
            is_value = letters != "-" && !letters.contains('=');
            continue;
        }
        // The first letter that takes a value takes the rest of the word, or the next one.
        let end = letters.find(|letter: char| valued.contains(letter));
        let (flags, value) = letters.split_at(end.unwrap_or(letters.len()));
        copying.counts |= is_grep && flags.contains('c');
        if is_grep && value.starts_with(['e', 'f']) {
            // The pattern.
            needed = 1;
        }
        is_value = value.len() == 1;
    }
    let has_file = simple
        .redirects
        .iter()
        .any(|redirect| redirect.kind == RedirectKind::Input);
    copying.reads_input |= found < needed && !has_file;
    Some(copying)
}

/// The names of the files that a command copies, among its other arguments.
fn copied_files(node: &Node) -> BTreeSet<String> {
    let Node::Simple(simple) = node else {
        return BTreeSet::new();
    };
    if copying(simple).is_none_or(|copying| copying.counts) {
        return BTreeSet::new();
    }
    let inputs = simple
        .redirects
        .iter()
        .filter(|redirect| redirect.kind == RedirectKind::Input);
    let words = simple.words.iter().skip(1);
    words
        .chain(inputs.map(|redirect| &redirect.target))
        .map(|word| match word.is_wild() {
            true => ANY.to_owned(),
            false => programs::base_name(&word.text()).to_owned(),
        })
        .collect()
}

/// Returns true if bash itself fills the variable with a text that the line can choose.
pub(super) fn is_filled(name: &str) -> bool {
    FILLED.contains(&name) && !["OLDPWD", "PWD"].contains(&name)
}

fn is_descriptor(path: &str) -> bool {
    path.starts_with("/dev/") || path.starts_with("/proc/")
}
