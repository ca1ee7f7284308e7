//! Builtins of bash that run, expand or assign their arguments.

use std::borrow::Cow;

use super::ast::{Part, Word};
use super::bindings::POSITIONAL;
use super::computed;
use super::cursor::is_name;
use super::programs::{self, Class};
use super::steps::{Input, Language, Step, Steps};

/// Settings of `set -o` and `shopt` after which bash reads the rest of the line in the same way.
const SETTINGS: &str = " allexport braceexpand errexit errtrace functrace hashall noclobber noexec noglob nounset \
    onecmd physical pipefail privileged verbose xtrace monitor notify autocd checkhash checkjobs dotglob execfail failglob \
    globasciiranges globskipdots globstar huponexit inherit_errexit lastpipe nocaseglob nullglob xpg_echo cdable_vars \
    cmdhist histappend login_shell nocasematch checkwinsize extglob ";

/// Programs that make files with the names in their arguments.
const MAKING: &str = " cp link ln mkdir mkfifo mv tee touch ";

/// Programs and builtins that run none of their arguments; some assign variables or make files.
pub(super) fn quiet(steps: &mut Steps<'_>, name: &str, words: &[Word]) {
    let arguments = words.get(1..).unwrap_or_default();
    let is = |word: &Word, text: &str| word.literal().is_some_and(|literal| literal == text);
    if programs::has(MAKING, name) {
        option_files(steps, arguments);
    }
    match name {
        "test" | "[" => {
            for pair in arguments.windows(2) {
                if let [option, name] = pair
                    && (is(option, "-v") || is(option, "-R") || may_name(option, name))
                {
                    variable_name(steps, name);
                }
            }
        }
        "printf" => printf_variables(steps, arguments),
        "cp" | "mv" | "ln" | "link" | "dd" | "curl" | "wget" | "mkfifo" => {
            for word in arguments {
                let text = word.text();
                let text = text.strip_prefix("of=").unwrap_or(&text).to_owned();
                if !text.starts_with('-') {
                    steps.push(Step::Makes(text));
                }
            }
        }
        _ => {}
    }
}

/// `printf -v name`: bash reads every `-v`, and assigns the last variable.
fn printf_variables(steps: &mut Steps<'_>, arguments: &[Word]) {
    let mut at = 0;
    while let Some(option) = arguments.get(at) {
        let (text, next) = (option.text(), arguments.get(at + 1));
        if !text.starts_with("-v") && !next.is_some_and(|name| may_name(option, name)) {
            return;
        }
        at += 1;
        match text.strip_prefix("-v").filter(|name| !name.is_empty()) {
            Some(name) if !option.changes() => computed_name(steps, &Word::literal_of(name)),
            Some(_) => unknown_name(steps),
            None => {
                next.into_iter().for_each(|word| computed_name(steps, word));
                at += 1;
            }
        }
    }
}

/// Files whose names are options: another program of the line may get them by a pattern, as in `tar cf a.tar *`.
fn option_files(steps: &mut Steps<'_>, arguments: &[Word]) {
    let mut is_behind = false;
    for text in arguments.iter().map(Word::text) {
        let name = programs::base_name(&text);
        if name.starts_with('-') && (is_behind || name.len() < text.len()) {
            name.split('=').for_each(|piece| steps.guess(piece));
            steps.guess(name.get(2..).unwrap_or_default());
        }
        is_behind |= text == "--";
    }
}

/// A variable whose name is an argument: a subscript in it would be calculated.
fn variable_name(steps: &mut Steps<'_>, word: &Word) {
    if word.literal().is_none_or(|name| !is_harmless_name(&name)) {
        unknown_name(steps);
    }
}

/// A variable whose name is an argument takes a text.
fn assigned_name(steps: &mut Steps<'_>, word: &Word) {
    variable_name(steps, word);
    let text = word.text();
    let name = text.split('[').next().unwrap_or_default();
    if name.len() < text.len() {
        steps.push(Step::Listed(name.to_owned()));
    }
    steps.push(Step::AssignedText(name.to_owned()));
    // Programs of the commands behind it are looked for in `PATH`, and their settings in `HOME`.
    if ["HOME", "PATH"].contains(&name) || programs::variable(name) != programs::Variable::Other {
        steps.hide();
    }
}

/// A variable whose name is an argument takes a text that the line computes.
fn computed_name(steps: &mut Steps<'_>, word: &Word) {
    assigned_name(steps, word);
    let text = word.text();
    let name = text.split('[').next().unwrap_or_default();
    steps.push(Step::Computed(name.to_owned()));
}

fn unknown_name(steps: &mut Steps<'_>) {
    steps.push(Step::AssignedUnknown);
    steps.hide();
}

/// `declare`, `local`, `export` and others.
pub(super) fn declaring(steps: &mut Steps<'_>, builtin: &str, words: &[Word]) {
    let mut is_integer = false;
    let mut is_list = false;
    for word in words.iter().skip(1) {
        let text = word.text();
        if text.starts_with(['-', '+']) && !word.changes() {
            is_integer |= text.contains('i');
            is_list |= text.contains(['a', 'A']);
            if text.contains('n') && builtin != "export" && builtin != "readonly" {
                // A reference reads the name of another variable from its value.
                steps.hide();
            }
            continue;
        }
        let (name, value) = split_assignment(word);
        let Some(name) = name else {
            // `export "$name=$value"` only takes names, and never a subscript.
            steps.push(Step::AssignedUnknown);
            steps.guess(text.split_once('=').map_or("", |(_, value)| value));
            if builtin != "export" {
                steps.hide();
            }
            continue;
        };
        if !is_harmless_name(&name) {
            steps.hide();
            continue;
        }
        let variable = name.trim_end_matches('+');
        if variable.len() < name.len() && programs::variable(variable) != programs::Variable::Other {
            // It goes on with a value of before.
            steps.hide();
        }
        if is_integer {
            steps.push(Step::Calculated(variable.to_owned()));
        }
        if is_list || variable.contains('[') {
            let list = variable.split('[').next().unwrap_or_default();
            steps.push(Step::Listed(list.to_owned()));
        }
        if let Some(value) = value {
            // A quoted list is read again, and what stands in it is expanded then.
            if value.begins_dynamic() || value.text().starts_with('(') && value.text().contains(['$', '`']) {
                steps.push(Step::Declared(variable.to_owned()));
            }
            if is_integer {
                steps.push(Step::Arithmetic(Cow::Owned(value.clone())));
            }
            steps.assigned(variable, value);
        }
    }
}

/// A builtin that is no declaration.
pub(super) fn builtin<'w>(steps: &mut Steps<'w>, name: &str, words: &'w [Word], input: &'w Input) {
    let arguments = words.get(1..).unwrap_or_default();
    match name {
        "eval" => eval_words(steps, arguments),
        "." | "source" => source(steps, arguments, input),
        "trap" => trap(steps, arguments),
        "alias" => alias(steps, arguments),
        "let" => arguments
            .iter()
            .for_each(|word| steps.push(Step::Arithmetic(Cow::Borrowed(word)))),
        "read" | "getopts" | "unset" | "mapfile" | "readarray" | "wait" => {
            names(steps, name, arguments, input)
        }
        "set" | "shopt" => settings(steps, name, arguments),
        "hash" | "enable" => {
            // `-p` and `-f` give names to other programs.
            let is_bad =
                |word: &Word| word.changes() || word.text().starts_with('-') && !is_simple_hash(&word.text());
            if arguments.iter().any(is_bad) {
                steps.hide();
            }
        }
        // They run what the history holds, what keys and completions are bound to.
        "fc" | "bind" => {
            let lists = |word: &Word| ["-l", "-ln", "-lp", "-P", "-p", "-v"].contains(&word.text().as_str());
            if !arguments.iter().any(lists) {
                steps.hide();
            }
        }
        "history" | "compgen" | "complete" | "compopt" => {
            let is_bad = |word: &Word| {
                let text = word.text();
                let is_group = text.starts_with('-') && !text.starts_with("--");
                word.changes()
                    || text.contains(['$', '`', '('])
                    || is_group && text.contains(['C', 'F', 's', 'p'])
            };
            if arguments.iter().any(is_bad) {
                arguments.iter().for_each(|word| steps.guess(&word.text()));
                steps.hide();
            }
        }
        _ => {}
    }
}

fn eval_words(steps: &mut Steps<'_>, arguments: &[Word]) {
    let arguments = match arguments.split_first() {
        Some((first, rest)) if first.text() == "--" => rest,
        _ => arguments,
    };
    if arguments.iter().any(Word::changes) {
        steps.hide();
    }
    let texts: Vec<String> = arguments.iter().map(Word::text).collect();
    steps.line(&texts.join(" "));
}

fn source<'w>(steps: &mut Steps<'w>, arguments: &'w [Word], input: &'w Input) {
    let file = arguments.iter().find(|word| word.text() != "--");
    if let Some(file) = file {
        steps.form(std::slice::from_ref(file));
    }
    if file.is_some_and(Word::is_wild) {
        return steps.hide();
    }
    match file.map(|file| (file, file.literal())) {
        Some((_, Some(path))) if path.starts_with("/dev/") || path.starts_with("/proc/") => steps.fed(input),
        Some((_, Some(path))) => {
            steps.runs(&path, Language::Shell);
        }
        // A file in a folder that is not known is a script like any other, but not what a command writes.
        Some((file, None)) if is_script(file) => {
            let text = file.text();
            steps.runs(&text, Language::Shell);
        }
        _ => steps.hide(),
    }
}

/// Returns true if a path is only partly known and names no descriptor: `$folder/script`.
fn is_script(file: &Word) -> bool {
    let text = file.text();
    let name = programs::base_name(&text);
    let is_descriptor = name == "stdin" || name.chars().all(|letter| letter.is_ascii_digit());
    !file.parts.iter().any(|part| matches!(part, Part::Process(_)))
        && matches!(file.parts.last(), Some(Part::Text { .. }))
        && !is_descriptor
        && !["/dev", "/proc", "/fd/"]
            .iter()
            .any(|folder| text.contains(folder))
}

fn trap(steps: &mut Steps<'_>, arguments: &[Word]) {
    let action = arguments
        .iter()
        .find(|word| !["-", "--", "-p", "-l"].contains(&word.text().as_str()));
    if let Some(action) = action {
        steps.code(action);
    }
}

/// An alias changes how the rest is read, so it may only stand for a plain program.
fn alias(steps: &mut Steps<'_>, arguments: &[Word]) {
    for word in arguments.iter().filter(|word| word.text() != "-p") {
        let text = word.text();
        if word.changes() {
            steps.hide();
        } else if let Some((name, value)) = text.split_once('=') {
            steps.line(value);
            let is_odd = |letter: char| !(letter.is_alphanumeric() || " -_./=".contains(letter));
            let program = value.split_whitespace().next().unwrap_or_default();
            let class = programs::class(programs::base_name(program));
            // What stands behind the name is looked at as the arguments of the program of this name: `alias echo=command`.
            let replaced = programs::class(name);
            let takes_other_arguments = replaced != Class::Other && replaced != class;
            let is_plain = class == Class::Quiet || !value.contains(' ') && !takes_other_arguments;
            if value.contains(is_odd) || !is_plain || value.ends_with(' ') {
                steps.hide();
            }
        }
    }
}

/// Builtins whose arguments are names of variables.
fn names(steps: &mut Steps<'_>, builtin: &str, arguments: &[Word], input: &Input) {
    // Names of files are no options.
    let assigns: fn(&mut Steps<'_>, &Word) = match (builtin, input) {
        ("read" | "mapfile" | "readarray", Input::Names) => assigned_name,
        _ => computed_name,
    };
    // Letters of options that take a value.
    let valued = match builtin {
        "read" => "adinNptu",
        "mapfile" | "readarray" => "cCdnOsu",
        "wait" => "p",
        _ => "",
    };
    let mut at = 0;
    let mut is_first = true;
    while let Some(word) = arguments.get(at) {
        at += 1;
        let text = word.text();
        let next = arguments.get(at);
        if text.starts_with('-') && text.len() > 1 {
            // The first letter that takes a value takes the rest of the word, or the next one.
            let first = text.char_indices().find(|(_, letter)| valued.contains(*letter));
            let Some((position, letter)) = first else { continue };
            let rest = text.get(position + 1..).unwrap_or_default();
            let is_glued = !rest.is_empty() || word.changes();
            at += usize::from(!is_glued);
            let value = if is_glued {
                Some(Word::literal_of(rest))
            } else {
                next.cloned()
            };
            value_of_option(steps, builtin, letter, value.filter(|_| !word.changes()), assigns);
            continue;
        }
        match builtin {
            // Jobs and processes.
            "wait" => {}
            "unset" => variable_name(steps, word),
            "getopts" if is_first => {}
            "getopts" => {
                assigns(steps, word);
                return;
            }
            "mapfile" | "readarray" => {
                steps.push(Step::Listed(word.text()));
                assigns(steps, word);
            }
            _ => assigns(steps, word),
        }
        is_first = false;
    }
}

/// The value of an option of such a builtin; none if it is not known.
fn value_of_option(
    steps: &mut Steps<'_>,
    builtin: &str,
    letter: char,
    value: Option<Word>,
    assigns: fn(&mut Steps<'_>, &Word),
) {
    let takes_line = letter == 'C';
    let takes_name = builtin == "read" && letter == 'a' || builtin == "wait";
    match value {
        Some(line) if takes_line => steps.code(&line),
        Some(name) if takes_name => {
            if builtin == "read" {
                steps.push(Step::Listed(name.text()));
            }
            assigns(steps, &name);
        }
        None if takes_line || takes_name => unknown_name(steps),
        _ => {}
    }
}

/// The positional parameters, which may be the options of a program.
fn positional(steps: &mut Steps<'_>, words: &[Word]) {
    let texts: Vec<String> = words.iter().map(Word::text).collect();
    steps.assigned(POSITIONAL, Word::literal_of(&texts.join(" ")));
    words
        .iter()
        .for_each(|word| steps.assigned(POSITIONAL, word.clone()));
    if words.iter().any(computed::is_in) {
        steps.push(Step::Computed(POSITIONAL.to_owned()));
    }
}

fn settings(steps: &mut Steps<'_>, builtin: &str, arguments: &[Word]) {
    let mut is_name = builtin == "shopt";
    for (at, word) in arguments.iter().enumerate() {
        let text = word.text();
        if text == "--" {
            return positional(steps, arguments.get(at + 1..).unwrap_or_default());
        }
        if let Some(letters) = text.strip_prefix(['-', '+']).filter(|_| !word.changes()) {
            // `-k` takes arguments for assignments, `-H` expands the history.
            let is_known = |letter: char| "aefhmnoptuvxBCETqsu".contains(letter);
            if !letters.chars().all(is_known) {
                steps.hide();
            }
            is_name = builtin == "shopt" || letters.contains('o');
        } else if is_name {
            let is_known = SETTINGS.split_ascii_whitespace().any(|name| name == text);
            if word.changes() || !is_known {
                steps.hide();
            }
            is_name = builtin == "shopt";
        } else {
            return positional(steps, arguments.get(at..).unwrap_or_default());
        }
    }
}

fn is_simple_hash(option: &str) -> bool {
    ["-r", "-l", "-t", "-d", "-n", "-a", "--"].contains(&option)
}

/// True for a word that is not known at all, before a word that would run something as the name of a variable.
fn may_name(option: &Word, name: &Word) -> bool {
    option.is_dynamic() && option.text().is_empty() && name.text().contains(['$', '`'])
}

/// A name, perhaps with a number as its subscript.
fn is_harmless_name(name: &str) -> bool {
    match name.trim_end_matches('+').split_once('[') {
        None => is_name(name.trim_end_matches('+')),
        Some((name, subscript)) => {
            let subscript = subscript.strip_suffix(']').unwrap_or("?");
            let is_number = !subscript.is_empty() && subscript.chars().all(|letter| letter.is_ascii_digit());
            is_name(name) && (is_number || subscript == "@" || subscript == "*")
        }
    }
}

/// The name in `name=value` if nothing in it is expanded, and the value.
fn split_assignment(word: &Word) -> (Option<String>, Option<Word>) {
    let mut name = String::new();
    let mut parts = word.parts.iter();
    while let Some(part) = parts.next() {
        let Part::Text { text, quoted } = part else {
            return (None, None);
        };
        match text.split_once('=') {
            None => name.push_str(text),
            Some((before, after)) => {
                name.push_str(before);
                let mut value = Word::default();
                value.parts.push(Part::Text {
                    text: after.to_owned(),
                    quoted: *quoted,
                });
                value.parts.extend(parts.cloned());
                return (Some(name), Some(value));
            }
        }
    }
    (Some(name), None)
}
