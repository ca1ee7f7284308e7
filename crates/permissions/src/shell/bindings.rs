//! Values that a line gives to variables, and the commands that its words become with them: `o=-I p=program; tar $o $p` is judged as
//! `tar -I program`, too. The order of commands does not count, so each command is judged with every value of its variables.

use std::collections::{BTreeMap, BTreeSet};

use super::ast::{Parameter, Part, Word};
use super::computed;
use super::programs::{self, Class};
use super::steps::Input;

/// Values of a variable, and combinations of values for a command, that are looked at.
const CHOICES: usize = 64;
/// Bytes and parts of a value; a longer one counts as computed.
const VALUE_BYTES: usize = 4_096;
const VALUE_PARTS: usize = 64;
/// Commands with variables, and with values in place of them, that are looked at.
const COMMANDS: usize = 512;
/// The positional parameters, under one name.
pub(super) const POSITIONAL: &str = "positional";

/// A value for each variable of a command, and for each member of a list.
type Choice<'a> = BTreeMap<Variable<'a>, &'a Word>;

/// The name of a variable, and its subscript or the number of a positional parameter.
type Variable<'a> = (&'a str, String);

/// The variables of a line, and its commands with variables.
#[derive(Debug, Default)]
pub(super) struct Bindings {
    /// Values of texts and of parts that are not known.
    values: BTreeMap<String, Vec<Word>>,
    /// Assignments whose values have variables.
    assignments: Vec<(String, Word)>,
    commands: Vec<(Vec<Word>, Input)>,
}

impl Bindings {
    /// A variable takes a value.
    pub(super) fn assign(&mut self, name: &str, value: &Word) {
        let mut variables = value.parts.iter().filter_map(variable).peekable();
        // A value that grows with each assignment is looked at once.
        let is_repeated = variables.peek().is_some() && !variables.any(|(variable, _)| variable == name);
        if is_repeated && self.assignments.len() < COMMANDS {
            self.assignments.push((name.to_owned(), value.clone()));
        } else if is_repeated {
            self.bind(name, &computed::word());
        }
        self.bind(name, value);
    }

    /// A variable takes a value behind the one that it has.
    pub(super) fn append(&mut self, name: &str, value: &Word) {
        let mut whole = Word::default();
        whole.parts.push(Part::Parameter(Box::new(Parameter {
            name: name.to_owned(),
            ..Parameter::default()
        })));
        whole.parts.extend(value.parts.iter().cloned());
        self.bind(name, &whole);
    }

    /// The values of variables whose values have variables, with what those have by now.
    pub(super) fn assigned_again(&self) -> Vec<(String, Word)> {
        let mut assigned = Vec::new();
        for (name, value) in &self.assignments {
            let resolved = self.resolved(value).into_iter().take(CHOICES);
            assigned.extend(resolved.map(|word| (name.clone(), simple(&word))));
        }
        assigned
    }

    fn bind(&mut self, name: &str, value: &Word) {
        let resolved = self.resolved(value);
        let known = self.values.entry(name.to_owned()).or_default();
        for word in resolved {
            let word = simple(&word);
            let is_known = known.iter().any(|other| key(other) == key(&word));
            if known.len() <= CHOICES && !is_known {
                known.push(word);
            }
        }
    }

    /// The word with each value that its variables have so far. Too many count as a text that the line computes.
    pub(super) fn resolved(&self, word: &Word) -> Vec<Word> {
        let words = std::slice::from_ref(word);
        let Some(choices) = self.choices(words) else {
            return vec![computed::word()];
        };
        let resolved = choices
            .iter()
            .flat_map(|choice| expanded(words, choice, Splits::Nothing));
        resolved.collect()
    }

    /// The line runs this command, whose words may have variables.
    pub(super) fn note_command(&mut self, words: &[Word], input: &Input) {
        let has_variable = |word: &Word| word.parts.iter().any(|part| matches!(part, Part::Parameter(_)));
        if self.commands.len() <= COMMANDS && words.iter().any(has_variable) {
            self.commands.push((words.to_vec(), input.clone()));
        }
    }

    /// How many values there are.
    pub(super) fn count(&self) -> usize {
        self.values.values().map(Vec::len).sum()
    }

    /// The commands with values in place of variables. None if there are too many.
    pub(super) fn resolved_commands(&self) -> Option<Vec<(Vec<Word>, Input)>> {
        let splits = match self.values.contains_key("IFS") {
            true => Splits::Unknown,
            false => Splits::Blanks,
        };
        if self.commands.len() > COMMANDS {
            return None;
        }
        let mut resolved = Vec::new();
        for (words, input) in &self.commands {
            let choices = match self.choices(words) {
                Some(choices) => choices,
                None if is_quiet(words) => continue,
                None => return None,
            };
            for choice in choices.iter().filter(|choice| !choice.is_empty()) {
                resolved.push((expanded(words, choice, splits), input.clone()));
            }
            if resolved.len() > COMMANDS {
                return None;
            }
        }
        Some(resolved)
    }

    /// All combinations of the values of the variables in these words; one that is empty if they have none. None if there are too many.
    fn choices<'a>(&'a self, words: &'a [Word]) -> Option<Vec<Choice<'a>>> {
        let parts = words.iter().flat_map(|word| &word.parts);
        let variables: BTreeSet<Variable<'a>> = parts.filter_map(variable).collect();
        let mut choices = vec![Choice::new()];
        for variable in variables {
            let Some(values) = self.values.get(variable.0) else {
                continue;
            };
            let mut next = Vec::new();
            for choice in &choices {
                for value in values {
                    let mut choice = choice.clone();
                    choice.insert(variable.clone(), value);
                    next.push(choice);
                }
            }
            if next.len() > CHOICES {
                return None;
            }
            choices = next;
        }
        Some(choices)
    }
}

/// Returns true for a program that runs none of its arguments.
fn is_quiet(words: &[Word]) -> bool {
    let program = words.first().map(Word::text).unwrap_or_default();
    programs::class(programs::base_name(&program)) == Class::Quiet
}

/// A value without what its expansions run: texts, and parts that are not known.
fn simple(value: &Word) -> Word {
    let mut word = Word::default();
    if computed::begins(value) {
        word.parts.push(computed::part());
    }
    for part in &value.parts {
        match part {
            Part::Text { text, .. } => word.push_quoted_text(text),
            part if computed::is_part(part) => word.parts.push(computed::part()),
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
    let is_position = name != "0"
        && name
            .chars()
            .all(|letter| letter.is_ascii_digit() || "@*".contains(letter));
    // Bash itself sets `$_`.
    if name == "_" || parameter.indirect || parameter.length {
        None
    } else if is_position {
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

/// What separates words in a value outside of quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Splits {
    Nothing,
    Blanks,
    /// The line chooses it.
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
            let has_operator = matches!(part, Part::Parameter(parameter) if !parameter.operator.is_empty());
            if has_operator || splits == Splits::Unknown && !is_quoted {
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
