//! `xargs`: its options, its program, and what it adds to the arguments of the program.

use super::ast::{Part, Word};
use super::computed;
use super::programs::{self, Class};
use super::steps::{Input, Step, Steps, UNKNOWN};

/// Options of `xargs` that take the next word.
const XARGS_VALUED: &str = "adeEIiJlLnPRsS";
/// Long options of `xargs` that take the next word.
const XARGS_LONG: [&str; 6] = [
    "arg-file",
    "delimiter",
    "max-args",
    "max-chars",
    "max-procs",
    "process-slot-var",
];
/// Long options of `xargs` that take no word, or one behind `=`.
const XARGS_FLAGS: [&str; 11] = [
    "eof",
    "exit",
    "help",
    "interactive",
    "max-lines",
    "no-run-if-empty",
    "null",
    "open-tty",
    "show-limits",
    "verbose",
    "version",
];

/// `xargs [options] program`: its last arguments are not known.
pub(super) fn xargs<'w>(steps: &mut Steps<'w>, arguments: &'w [Word], input: &Input) {
    let mut replaced = String::new();
    let mut reads_names = matches!(input, Input::Names | Input::Session);
    let mut at = 0;
    while let Some(word) = arguments.get(at) {
        let text = word.text();
        if word.changes() {
            return steps.hide();
        }
        let Some(letters) = text.strip_prefix('-') else {
            break;
        };
        at += 1;
        if text == "--" {
            break;
        }
        if let Some(long) = letters.strip_prefix('-') {
            reads_names &= !long.starts_with("arg-file");
            match long.split_once('=') {
                Some((option, value)) if "replace".starts_with(option) => value.clone_into(&mut replaced),
                None if long == "replace" => "{}".clone_into(&mut replaced),
                None if XARGS_LONG.contains(&long) => at += 1,
                // Shortened, it may take the next word.
                None if !XARGS_FLAGS.contains(&long) => return steps.hide(),
                _ => {}
            }
            continue;
        }
        // The first letter that takes a value takes the rest of the word, or the next one.
        let Some(position) = letters.find(|letter| XARGS_VALUED.contains(letter)) else {
            continue;
        };
        let option = letters.get(position..=position).unwrap_or_default();
        let rest = letters.get(position + 1..).unwrap_or_default();
        reads_names &= option != "a";
        let is_optional = ["i", "l", "e"].contains(&option);
        let value = if rest.is_empty() && !is_optional {
            at += 1;
            arguments.get(at - 1).map(Word::text).unwrap_or_default()
        } else {
            rest.to_owned()
        };
        if option == "I" || option == "i" {
            replaced = if value.is_empty() { "{}".to_owned() } else { value };
        }
    }
    let command = arguments.get(at..).unwrap_or_default();
    if command.is_empty() {
        return;
    }
    if replaced.is_empty() {
        steps.program(command, &UNKNOWN);
        takes_unknown(steps, command, reads_names);
    } else {
        let with = match reads_names {
            true => Part::Unknown,
            false => computed::part(),
        };
        let words = command
            .iter()
            .map(|word| word.replaced(&replaced, &with))
            .collect();
        steps.push(Step::Replaced(command, words));
    }
}

/// Further arguments follow at the end of this command. They may be options, unless they are names of files.
fn takes_unknown(steps: &mut Steps<'_>, command: &[Word], are_names: bool) {
    let program = command.first().map(Word::text).unwrap_or_default();
    let name = programs::base_name(&program).to_owned();
    let behind = command.get(1..).unwrap_or_default();
    let has_word = behind.iter().any(|word| !word.text().starts_with('-'));
    match programs::class(&name) {
        Class::Quiet => {}
        _ if !are_names && !behind.iter().any(|word| word.text() == "--") => steps.hide(),
        Class::Awk | Class::Sed | Class::Git if has_word => {}
        Class::Perl | Class::Python | Class::Node if has_word => {}
        Class::Shell if has_code(behind) => {}
        Class::Options(_) => {}
        // The program of a wrapper takes what follows.
        Class::Wrapper if has_word => {
            let inner = behind.iter().position(|word| {
                let text = word.text();
                !text.starts_with('-')
                    && !text.contains('=')
                    && !text.starts_with(|c: char| c.is_ascii_digit())
            });
            match inner.and_then(|inner| behind.get(inner..)) {
                Some(inner) => takes_unknown(steps, inner, are_names),
                None => steps.hide(),
            }
        }
        Class::Other if has_word => {}
        _ => steps.hide(),
    }
}

/// A group of options with `c` in it: the next word is a line.
pub(super) fn is_code_option(text: &str) -> bool {
    text.starts_with('-') && !text.starts_with("--") && text.contains('c')
}

/// A line follows behind an option for one.
fn has_code(arguments: &[Word]) -> bool {
    let option = arguments.iter().position(|word| is_code_option(&word.text()));
    option.is_some_and(|option| option + 1 < arguments.len())
}
