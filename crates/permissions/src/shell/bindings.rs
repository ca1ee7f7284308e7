//! Values that a line gives to variables, and the commands that its words become with them: `o=-I p=program; tar $o $p` is judged as
//! `tar -I program`, too. The order of commands does not count, so each command is judged with every value of its variables.
//!
//! The work is bounded by [`WORK`] for a line, and by [`COMMANDS`] and [`COMMAND_BYTES`] for a round of commands.

use std::collections::{BTreeMap, BTreeSet};

use super::ast::{List, Parameter, Part, Word};
use super::computed;
use super::steps::Input;

/// Values of a variable, and combinations of values for a command, that are looked at. More count as a text that the line computes.
const CHOICES: usize = 256;
/// Bytes and parts of a value; a longer one counts as computed.
const VALUE_BYTES: usize = 4_096;
const VALUE_PARTS: usize = 64;
/// Commands with variables, and with values in place of them, that are looked at. A line with more is opaque.
const COMMANDS: usize = 512;
/// Bytes of a command with values in place of variables. A line with a longer one is opaque.
const COMMAND_BYTES: usize = 128 << 10;
/// Bytes of all words with values in place of variables. A line with more is opaque.
const WORK: usize = 512 << 10;
/// What a word or a command costs in addition to its bytes.
const WORD_WORK: usize = 64;
/// The positional parameters, under one name.
pub(super) const POSITIONAL: &str = "positional";

/// A value for each variable of a command, and for each member of a list.
type Choice<'a> = BTreeMap<Variable<'a>, &'a Word>;

/// The name of a variable, and its subscript or the number of a positional parameter.
type Variable<'a> = (&'a str, String);

/// The variables of a line, and its commands with variables.
#[derive(Debug, Default)]
pub(super) struct Bindings {
    /// Each value consists of texts, of computed parts, and of parts that are not known.
    values: BTreeMap<String, Vec<Word>>,
    /// Assignments whose values have variables.
    assignments: Vec<(String, Word)>,
    commands: Vec<(Vec<Word>, Input)>,
    /// Bytes of words with values in place of variables, so far.
    work: usize,
    /// A variable on which harmless output depends takes a value that can be an option.
    has_unclear_place: bool,
}

impl Bindings {
    /// A variable takes a value.
    pub(super) fn assign(&mut self, name: &str, value: &Word) {
        let mut variables = value.parts.iter().filter_map(variable).peekable();
        // A value that grows with each assignment is looked at once.
        let is_repeated = variables.peek().is_some() && !variables.any(|(variable, _)| variable == name);
        if is_repeated && self.assignments.len() < COMMANDS {
            self.assignments.push((name.to_owned(), without_lists(value)));
        } else if is_repeated {
            self.bind(name, &computed::word());
        }
        self.bind(name, value);
    }

    /// A variable takes a value behind its own (`+=`).
    pub(super) fn append(&mut self, name: &str, value: &Word) {
        let mut whole = Word::default();
        whole.parts.push(Part::Parameter(Box::new(Parameter {
            name: name.to_owned(),
            ..Parameter::default()
        })));
        whole.parts.extend(value.parts.iter().cloned());
        self.bind(name, &whole);
    }

    /// The values of variables whose values have variables, with the values that those variables have by now.
    pub(super) fn assigned_again(&mut self) -> Vec<(String, Word)> {
        let mut assigned = Vec::new();
        for (name, value) in self.assignments.clone() {
            let resolved = self.resolved(&value);
            assigned.extend(resolved.iter().map(|word| (name.clone(), simple(word))));
        }
        assigned
    }

    fn bind(&mut self, name: &str, value: &Word) {
        let resolved = self.resolved(value);
        let known = self.values.entry(name.to_owned()).or_default();
        for word in resolved {
            let word = simple(&word);
            self.has_unclear_place |= computed::is_place(name) && computed::may_be_options(&word);
            let new = key(&word);
            if known.len() <= CHOICES && !known.iter().any(|other| key(other) == new) {
                known.push(word);
            }
        }
    }

    /// The word with each value that its variables have so far. Too many count as a text that the line computes.
    pub(super) fn resolved(&mut self, word: &Word) -> Vec<Word> {
        if !word.parts.iter().any(|part| variable(part).is_some()) {
            return vec![word.clone()];
        }
        let word = without_lists(word);
        let words = std::slice::from_ref(&word);
        let choices = match self.choices(words) {
            Some(choices) if word.parts.len() <= VALUE_PARTS && self.work <= WORK => choices,
            _ => return vec![computed::word()],
        };
        let (mut resolved, mut work) = (Vec::new(), 0);
        for choice in choices {
            work += cost(words, &choice);
            let expanded = expanded(words, &choice, Splits::Nothing);
            resolved.extend(expanded.iter().map(simple));
        }
        self.work += work;
        resolved
    }

    /// The line runs this command, whose words may have variables.
    pub(super) fn note_command(&mut self, words: &[Word], input: &Input) {
        let has_variable = |word: &Word| word.parts.iter().any(|part| matches!(part, Part::Parameter(_)));
        if self.commands.len() <= COMMANDS && words.iter().any(has_variable) {
            let input = match input {
                Input::Text(text) => Input::Text(without_lists(text)),
                other => other.clone(),
            };
            self.commands
                .push((words.iter().map(without_lists).collect(), input));
        }
    }

    /// How many values there are.
    pub(super) fn count(&self) -> usize {
        self.values.values().map(Vec::len).sum()
    }

    /// Returns true if values are left out, or change the output of harmless commands.
    pub(super) fn are_unclear(&self) -> bool {
        self.work > WORK || self.has_unclear_place
    }

    /// The commands with values in place of variables. None if there are too many.
    pub(super) fn resolved_commands(&mut self) -> Option<Vec<(Vec<Word>, Input)>> {
        // Blanks and ends of lines separate words in any case.
        let separates = |word: &Word| {
            computed::is_in(word) || word.text().contains(|letter: char| !letter.is_whitespace())
        };
        let separators = self.values.get("IFS");
        let splits = match separators.is_some_and(|values| values.iter().any(separates)) {
            true => Splits::Unknown,
            false => Splits::Blanks,
        };
        if self.commands.len() > COMMANDS {
            return None;
        }
        let computed = computed::word();
        let mut resolved = Vec::new();
        let mut work = self.work;
        for (words, input) in &self.commands {
            let choices = self.choices(words);
            let choices = choices.unwrap_or_else(|| vec![self.same_choice(words, &computed)]);
            for choice in choices.iter().filter(|choice| !choice.is_empty()) {
                let cost = cost(words, choice);
                work += cost;
                if work > WORK || cost > COMMAND_BYTES || resolved.len() >= COMMANDS {
                    return None;
                }
                resolved.push((expanded(words, choice, splits), input.clone()));
            }
        }
        self.work = work;
        Some(resolved)
    }

    /// All combinations of the values of the variables in these words; an empty one if they have none. None if there are too many.
    fn choices<'a>(&'a self, words: &'a [Word]) -> Option<Vec<Choice<'a>>> {
        let parts = words.iter().flat_map(|word| &word.parts);
        let variables: BTreeSet<Variable<'a>> = parts.filter_map(variable).collect();
        let mut choices = vec![Choice::new()];
        for variable in variables {
            let Some(values) = self.values.get(variable.0) else {
                continue;
            };
            if choices.len() * values.len() > CHOICES {
                return None;
            }
            if let [value] = values.as_slice() {
                for choice in &mut choices {
                    choice.insert(variable.clone(), value);
                }
                continue;
            }
            let mut next = Vec::new();
            for choice in &choices {
                for value in values {
                    let mut choice = choice.clone();
                    choice.insert(variable.clone(), value);
                    next.push(choice);
                }
            }
            choices = next;
        }
        Some(choices)
    }

    /// The same value for all variables in these words that have one.
    fn same_choice<'a>(&self, words: &'a [Word], value: &'a Word) -> Choice<'a> {
        let variables = words.iter().flat_map(|word| &word.parts).filter_map(variable);
        variables
            .filter(|variable| self.values.contains_key(variable.0))
            .map(|variable| (variable, value))
            .collect()
    }
}

/// About the bytes of these words with values in place of variables.
fn cost(words: &[Word], choice: &Choice<'_>) -> usize {
    let bytes = |part: &Part| match part {
        Part::Text { text, .. } => 1 + text.len(),
        _ => 1,
    };
    let parts = words.iter().flat_map(|word| &word.parts);
    let costs = parts.map(
        |part| match variable(part).and_then(|variable| choice.get(&variable)) {
            Some(value) => 1 + value.parts.iter().map(bytes).sum::<usize>(),
            None => bytes(part),
        },
    );
    WORD_WORK + costs.sum::<usize>()
}

/// The word without the commands in it, which are judged where they stand: only whether they compute a text is kept. Without them a copy
/// for each value of a variable is small.
fn without_lists(word: &Word) -> Word {
    let parts = word.parts.iter().map(|part| match part {
        part if computed::is_part(part) => computed::part(),
        Part::Text { .. } | Part::Unknown => part.clone(),
        Part::Commands(_) => Part::Unknown,
        Part::Process(_) => Part::Process(List::default()),
        Part::Arithmetic(_) => Part::Arithmetic(Word::default()),
        Part::Parameter(parameter) => Part::Parameter(Box::new(Parameter {
            name: parameter.name.clone(),
            indirect: parameter.indirect,
            length: parameter.length,
            subscript: parameter
                .subscript
                .as_ref()
                .map(|subscript| Word::literal_of(&subscript.text())),
            operator: parameter.operator.clone(),
            operand: match parameter.operand.literal() {
                Some(text) => Word::literal_of(&text),
                None => Word {
                    parts: vec![Part::Unknown],
                    is_ansi: false,
                },
            },
        })),
    });
    Word {
        parts: parts.collect(),
        is_ansi: word.is_ansi,
    }
}

/// A value without the commands of its expansions: texts, and parts that are not known.
fn simple(value: &Word) -> Word {
    let mut word = Word::default();
    if computed::begins(value) {
        word.parts.push(computed::part());
    }
    for part in &value.parts {
        match part {
            Part::Text { text, .. } if text.is_empty() => {}
            Part::Text { text, .. } => word.push_quoted_text(text),
            part if computed::is_part(part) => {
                // Two in a row say no more than one. A value that goes in circles must not grow.
                if !word.parts.last().is_some_and(computed::is_part) {
                    word.parts.push(computed::part());
                }
            }
            _ => word.parts.push(Part::Unknown),
        }
    }
    if word.text().len() > VALUE_BYTES || word.parts.len() > VALUE_PARTS {
        return computed::word();
    }
    word
}

/// Two values are the same if their keys are.
fn key(value: &Word) -> String {
    let texts = value.parts.iter().map(|part| match part {
        Part::Text { text, .. } => text.as_str(),
        Part::Parameter(_) => "\0computed",
        _ => "\0",
    });
    texts.collect()
}

/// The variable whose value stands in a word.
fn variable(part: &Part) -> Option<Variable<'_>> {
    let Part::Parameter(parameter) = part else {
        return None;
    };
    let name = parameter.name.as_str();
    // Bash itself sets `$_`.
    if name == "_" || parameter.indirect || parameter.length {
        None
    } else if parameter.is_position() {
        Some((POSITIONAL, name.to_owned()))
    } else {
        let subscript = parameter.subscript.as_ref().map(Word::text);
        Some((name, subscript.unwrap_or_default()))
    }
}

/// Returns true for `$@` and `${name[@]}`, which are several words in quotes, too.
fn is_list(part: &Part) -> bool {
    let Part::Parameter(parameter) = part else {
        return false;
    };
    let subscript = parameter.subscript.as_ref().map(Word::text);
    parameter.name == "@" || subscript.as_deref() == Some("@")
}

/// Returns true if the expansion can be another text than the value. Its default is part of the line, and judged there if it is known.
fn changes_value(part: &Part) -> bool {
    let Part::Parameter(parameter) = part else {
        return false;
    };
    let has_default = [":-", "-", ":=", "=", ":?", "?"].contains(&parameter.operator.as_str());
    !parameter.operator.is_empty() && (!has_default || parameter.operand.is_dynamic())
}

/// How a value outside of quotes is split into words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Splits {
    Nothing,
    Blanks,
    /// The line chooses what separates words.
    Unknown,
}

/// The words with values in place of variables.
fn expanded(words: &[Word], choice: &Choice<'_>, splits: Splits) -> Vec<Word> {
    let mut expanded = Vec::new();
    for word in words {
        let mut current = Word {
            parts: Vec::new(),
            is_ansi: word.is_ansi,
        };
        let mut has_value = false;
        for (part, is_quoted) in word.with_quotes() {
            let Some(value) = variable(part).and_then(|variable| choice.get(&variable)) else {
                current.parts.push(part.clone());
                continue;
            };
            let is_whole = is_quoted && !is_list(part) || splits == Splits::Nothing;
            has_value |= !is_whole;
            if changes_value(part) || splits == Splits::Unknown && !is_quoted {
                // Only a part of the value, or another text.
                current.parts.push(computed::part());
                continue;
            }
            for part in &value.parts {
                match part {
                    Part::Text { text, .. } if is_whole => current.push_quoted_text(text),
                    Part::Text { text, .. } => split(text, &mut current, &mut expanded),
                    part => {
                        if !is_whole {
                            current.end_quotes();
                        }
                        current.parts.push(part.clone());
                    }
                }
            }
        }
        // A value without letters makes no word.
        if !has_value || !current.parts.is_empty() {
            expanded.push(current);
        }
    }
    expanded
}

/// Appends a text to a word. Each blank in it ends a word.
fn split(text: &str, current: &mut Word, words: &mut Vec<Word>) {
    for (at, piece) in text.split(char::is_whitespace).enumerate() {
        if at > 0 && !current.parts.is_empty() {
            words.push(std::mem::take(current));
        }
        if !piece.is_empty() {
            current.push_quoted_text(piece);
        }
    }
}
