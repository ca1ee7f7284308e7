//! Programs that run what stands in their arguments: which part of them is a command, and which a line.

use super::ast::{Part, Word};
use super::bindings::POSITIONAL;
use super::code;
use super::computed;
use super::finder;
use super::git;
use super::options;
use super::planted;
use super::programs::{self, Class};
use super::python;
use super::steps::{Input, Language, SESSION, Step, Steps, UNKNOWN};
use super::xargs;

/// Words behind a program that are looked at as the beginning of another command, at most.
pub(super) const MAX_BEHIND: usize = 24;
/// Programs whose first argument is a subcommand of their own.
const MANAGERS: [&str; 14] = [
    "asdf", "bundle", "conda", "docker", "kubectl", "lxc", "mise", "nerdctl", "npx", "pipenv", "podman",
    "poetry", "uv", "vagrant",
];
/// Those of them that run programs on this machine, and the subcommands behind which a program stands.
const LOCAL_MANAGERS: [&str; 7] = ["asdf", "bundle", "conda", "mise", "pipenv", "poetry", "uv"];
const RUNNING: [&str; 3] = ["exec", "run", "x"];
/// Letters of options of programs that run lines, behind which a line or a setting with one may stand in the same word.
const LINE_LETTERS: &str = "coOpsSx";
/// Programs that set documents, which may run programs with the option `-U`.
const ROFF: [&str; 5] = ["ditroff", "groff", "nroff", "pic", "troff"];

/// A program that runs others.
pub(super) fn runner<'w>(
    steps: &mut Steps<'w>,
    class: Class,
    name: &str,
    words: &'w [Word],
    input: &'w Input,
) {
    let arguments = words.get(1..).unwrap_or_default();
    if let Class::Finder | Class::Git | Class::Options(_) = class {
        expanded_options(steps, class, arguments);
    }
    computed::hide_options(steps, class, name, arguments);
    if class == Class::Python {
        python::imports(steps, arguments, input);
    }
    match class {
        Class::Wrapper => wrapper(steps, name, words, input),
        Class::LineWrapper => line_wrapper(steps, words, input),
        Class::Shell => shell(steps, name, arguments, input),
        Class::Finder => finder::finder(steps, name, arguments),
        Class::Xargs => xargs::xargs(steps, arguments, input),
        Class::Git => git::git(steps, arguments),
        Class::Options(valued) => options::value_options(steps, name, valued, arguments, input),
        Class::Interpreter(valued) => code::interpreter(steps, valued, arguments, input),
        Class::Awk => {
            let is_bad = |word: &Word| {
                let text = word.text();
                ["-W", "-D", "--de"]
                    .iter()
                    .any(|option| text.starts_with(*option))
            };
            if arguments.iter().any(is_bad) {
                // `mawk -W exec file`, and the debugger of `gawk`, which reads commands.
                steps.hide();
            }
            let files = ["-f", "--file", "-E", "--exec"];
            let valued = ["-v", "-F", "-Z", "--assign", "--field-separator"];
            code::script_in(steps, arguments, input, code::is_quiet_awk, &files, &valued);
        }
        Class::Sed => code::script_in(
            steps,
            arguments,
            input,
            code::is_quiet_sed,
            &["-f", "--file"],
            &["-l", "--line-length"],
        ),
        Class::Python => code::coded(steps, arguments, input, code::PYTHON),
        Class::Perl => code::coded(steps, arguments, input, code::PERL),
        Class::Node => code::coded(steps, arguments, input, code::NODE),
        Class::Quiet | Class::Builtin | Class::Other => {}
    }
}

/// `sudo -u user program`: the command is the first word that is neither an option nor the value of one.
fn wrapper<'w>(steps: &mut Steps<'w>, name: &str, words: &'w [Word], input: &'w Input) {
    if name == "command"
        && words
            .get(1)
            .is_some_and(|word| ["-v", "-V"].contains(&word.text().as_str()))
    {
        return;
    }
    let mut takes_value = false;
    for (at, word) in words.iter().enumerate().skip(1) {
        if word.changes() || at > MAX_BEHIND {
            return steps.hide();
        }
        let text = word.text();
        if name == "strace"
            && let Some((_, command)) = text.split_once(['|', '!'])
        {
            // `strace -o '|program'`.
            steps.line(command);
        }
        if name == "env" && (text.starts_with("-S") || text.starts_with("--split-string") || splits(&text)) {
            return split_string(steps, &text, words.get(at + 1..).unwrap_or_default());
        }
        let behind = words.get(at..).unwrap_or_default();
        let is_option = text.starts_with('-');
        let is_number = text.starts_with(|first: char| first.is_ascii_digit());
        if let Some((variable, value)) = text.split_once('=').filter(|_| !is_option) {
            // `systemd-run -p ExecStartPre=program`.
            steps.guess(value);
            steps.assigned(variable, Word::literal_of(value));
            continue;
        }
        if is_option {
            if let Some((_, value)) = text.split_once('=') {
                steps.guess(value);
            }
            takes_value = !["-", "-i", "-n"].contains(&text.as_str()) || name != "env";
            if text == "--" {
                takes_value = false;
            }
            continue;
        }
        if takes_value || is_number {
            // The value of an option, or already the program.
            takes_value = false;
            let runs_builtins = ["builtin", "command", "time", "exec"].contains(&name);
            maybe_program(steps, behind, input, runs_builtins);
            continue;
        }
        return steps.program(behind, input);
    }
    if [
        "exec", "builtin", "command", "env", "nohup", "jobs", "time", "setarch",
    ]
    .contains(&name)
    {
        return;
    }
    // Without a program many of them start a shell.
    if !matches!(input, Input::Session) {
        steps.hide();
    }
}

/// `env -S 'A=1 program'`: blanks separate words, backslashes and variables make others.
fn split_string(steps: &mut Steps<'_>, option: &str, rest: &[Word]) {
    let after = option
        .split_once('=')
        .filter(|_| option.starts_with("--"))
        .map(|(_, after)| after);
    let after = after
        .or_else(|| option.split_once('S').map(|(_, after)| after))
        .unwrap_or_default();
    let mut text = after.to_owned();
    for word in rest {
        let Some(literal) = word.literal() else {
            return steps.hide();
        };
        text.push(' ');
        text.push_str(&literal);
    }
    if text.contains(['\\', '$']) {
        steps.hide();
    }
    steps.line(&format!("env {text}"));
}

/// What may be a program, or the value of an option of the program before it.
fn maybe_program<'w>(steps: &mut Steps<'w>, words: &'w [Word], input: &'w Input, runs_builtins: bool) {
    let name = words.first().map(Word::text).unwrap_or_default();
    match programs::class(programs::base_name(&name)) {
        Class::Quiet | Class::Other => steps.form(words),
        Class::Builtin if !runs_builtins => steps.form(words),
        _ => steps.program(words, input),
    }
}

/// `flock file program`, `su -c 'line'`: a command may begin at every word, and every word may be a line.
pub(super) fn line_wrapper<'w>(steps: &mut Steps<'w>, words: &'w [Word], input: &'w Input) {
    if words.len() > 4 * MAX_BEHIND {
        steps.hide();
    }
    let text = words.first().map(Word::text).unwrap_or_default();
    let name = programs::base_name(&text);
    let is_local = LOCAL_MANAGERS.contains(&name);
    // Words that are neither options nor perhaps the value of one.
    let mut placed = 0;
    let mut is_value = false;
    let mut runs = false;
    let mut is_found = false;
    for (at, word) in words.iter().enumerate().skip(1).take(4 * MAX_BEHIND) {
        let text = word.text();
        let is_option = text.starts_with('-');
        if word.changes() {
            if !is_found {
                steps.hide();
            }
            continue;
        }
        let value = text.split_once('=').map(|(_, value)| value);
        if let Some(value) = value {
            steps.line(value);
        }
        if is_option {
            glued_lines(steps, &text);
            is_value = value.is_none() && text != "--";
            continue;
        }
        let is_line = |letter: char| letter.is_whitespace() || ";|&'\"\\$`<>(){}*?[~".contains(letter);
        if text.contains(is_line) {
            steps.line(&text);
        } else {
            maybe_program(steps, words.get(at..).unwrap_or_default(), &UNKNOWN, false);
        }
        placed += usize::from(is_argument(name, &text, std::mem::take(&mut is_value)));
        if is_local && !runs && RUNNING.contains(&text.as_str()) {
            // Behind `uv run` stands the program.
            runs = true;
            placed = 1;
        }
        is_found = match name {
            // It makes one line of all words.
            "watch" => false,
            _ if is_local => placed > usize::from(runs),
            _ => placed > 1 || MANAGERS.contains(&name),
        };
    }
    if name == "ssh" && words.windows(2).any(gives_settings) && !matches!(input, Input::Session) {
        steps.hide();
    }
    if name == "script" && !matches!(input, Input::Session) {
        // A shell reads the input.
        steps.hide();
    }
    if ["su", "at", "batch", "parallel", "screen", "newgrp", "zargs"].contains(&name) {
        let has_line = words
            .iter()
            .any(|word| word.text() == "-c" || word.text() == ":::");
        if !has_line || !matches!(input, Input::Session) {
            steps.hide();
        }
    }
}

/// Returns true for `ssh -F /dev/stdin`: settings in the input, which can have a `ProxyCommand`.
fn gives_settings(pair: &[Word]) -> bool {
    let mut texts = pair.iter().map(Word::text);
    let (option, file) = (texts.next().unwrap_or_default(), texts.next().unwrap_or_default());
    option.ends_with('F') && file.starts_with("/dev/") || option.contains("F/dev/")
}

/// Returns true for a word that cannot be the value of an option before it.
fn is_argument(name: &str, text: &str, follows_option: bool) -> bool {
    match name {
        // All values of its options are numbers.
        "flock" => text.parse::<f64>().is_err(),
        // Its options take none.
        "taskset" => true,
        _ => !follows_option,
    }
}

/// `-cprogram` and `-o'ProxyCommand program'`: what stands behind a letter of an option may be a line.
fn glued_lines(steps: &mut Steps<'_>, option: &str) {
    let letters = option
        .char_indices()
        .filter(|(_, letter)| LINE_LETTERS.contains(*letter));
    for (at, _) in letters {
        let glued = option.get(at + 1..).unwrap_or_default();
        if !glued.is_empty() && !option.starts_with("--") {
            steps.guess(glued);
            let setting = glued.split_once(char::is_whitespace);
            setting
                .iter()
                .for_each(|(_, line)| steps.guess(line.trim_start()));
        }
    }
}

/// Files that shells read when they start, by their names.
const STARTUP: [&str; 18] = [
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".cshrc",
    ".kshrc",
    ".login",
    ".mkshrc",
    ".profile",
    ".shrc",
    ".tcshrc",
    ".yashrc",
    ".zlogin",
    ".zlogout",
    ".zprofile",
    ".zshenv",
    ".zshrc",
    "config.fish",
];
/// Shells whose language bash understands.
const LIKE_BASH: &str = " ash bash dash ksh mksh posh rbash rksh sh ";
/// Commands of other shells that give a name to a program, or run a text.
const NAMING: &str =
    " abbr alias autoload bind bindkey complete emit function functions hash sched trap zle zmodload ";

/// A line of a shell whose language differs from bash: only what all shells understand in the same way counts.
fn foreign(steps: &mut Steps<'_>, code: Option<String>) {
    let is_common = |letter: char| letter.is_alphanumeric() || " \n\t_-./,:;&|+@%'\"".contains(letter);
    let names = |word: &str| {
        let word = word.trim_matches(['\'', '"']);
        programs::has(NAMING, word)
    };
    let split = |letter: char| letter.is_whitespace() || ";&|".contains(letter);
    match code {
        Some(code) if code.chars().all(is_common) && !code.split(split).any(names) => {}
        _ => steps.hide(),
    }
}

/// The arguments of a shell: a line behind `-c`, a script, or nothing.
fn shell<'w>(steps: &mut Steps<'w>, name: &str, arguments: &'w [Word], input: &'w Input) {
    let is_foreign = !programs::has(LIKE_BASH, programs::family(name));
    startup_files(steps, is_foreign);
    if is_foreign && let Input::Text(text) = input {
        foreign(steps, text.literal());
    }
    let mut at = 0;
    let mut has_code = false;
    let mut reads_input = false;
    while let Some(word) = arguments.get(at) {
        if word.is_dynamic() && word.text().is_empty() && !has_code {
            return run_script(steps, word, input);
        }
        let text = word.text();
        if text == "--" || text == "-" {
            at += 1;
            break;
        }
        let Some(letters) = text
            .strip_prefix(['-', '+'])
            .filter(|letters| !letters.is_empty())
        else {
            break;
        };
        if word.changes() {
            return steps.hide();
        }
        at += 1;
        if let Some(long) = letters.strip_prefix('-') {
            has_code |= ["command", "init-command"].contains(&long);
            at += long_option(steps, long, is_foreign, arguments.get(at));
            continue;
        }
        has_code |= letters.contains('c') || letters.contains('C') || letters.contains("Command");
        reads_input |= letters.contains('s');
        // Each such letter of a group takes a word: `bash -oc pipefail line`.
        let settings = match is_foreign {
            true => usize::from(letters.ends_with(['o', 'O'])),
            false => letters.matches(['o', 'O']).count(),
        };
        for _ in 0..settings {
            hide_if_changed(steps, arguments.get(at));
            at += 1;
        }
        if letters.contains('i') {
            hide_if_fed(steps, input);
        }
    }
    if has_code {
        return shell_code(steps, arguments.get(at..).unwrap_or_default(), is_foreign);
    }
    match arguments.get(at) {
        Some(script) if !reads_input => {
            run_script(steps, script, input);
            if is_foreign && let Some(path) = script.literal() {
                steps.runs(&path, Language::Other);
            }
        }
        _ => steps.fed(input),
    }
}

/// The line behind `-c`, and its parameters.
fn shell_code(steps: &mut Steps<'_>, arguments: &[Word], is_foreign: bool) {
    let Some(word) = arguments.first() else {
        return;
    };
    if is_foreign {
        foreign(steps, word.literal());
    }
    steps.code(word);
    let name = arguments.get(1).filter(|name| name.text() != "--");
    if name.is_some_and(computed::may_be_options) && computed::names_placed(&word.text()) {
        // The output of such a program depends on `$0`.
        steps.hide();
    }
}

/// An option of a shell that begins with two dashes, and the word behind it. Returns how many words it takes from there.
fn long_option<'w>(steps: &mut Steps<'w>, long: &str, is_foreign: bool, next: Option<&'w Word>) -> usize {
    match long.split_once('=') {
        // `--init-command=line` of fish.
        Some((_, value)) if is_foreign => steps.line(value),
        Some((_, value)) => steps.guess(value),
        None if ["rcfile", "init-file"].contains(&long) => {
            if let Some(file) = next {
                run_script(steps, file, &UNKNOWN);
            }
            return 1;
        }
        None => {}
    }
    0
}

/// The files that a shell reads before its line.
fn startup_files(steps: &mut Steps<'_>, is_foreign: bool) {
    let language = if is_foreign {
        Language::Other
    } else {
        Language::Shell
    };
    for file in STARTUP {
        steps.runs(file, language);
    }
}

/// A setting of a shell: some change how the line is to be read.
fn hide_if_changed(steps: &mut Steps<'_>, setting: Option<&Word>) {
    let setting = setting.map(Word::text).unwrap_or_default();
    if ["expand_aliases", "extglob", "posix", "history", "histexpand"].contains(&setting.as_str()) {
        steps.hide();
    }
}

fn hide_if_fed(steps: &mut Steps<'_>, input: &Input) {
    if matches!(input, Input::Unknown | Input::Names) {
        steps.hide();
    }
}

/// A file that a shell runs.
pub(super) fn run_script<'w>(steps: &mut Steps<'w>, word: &'w Word, input: &'w Input) {
    // A shell also looks for it where programs are.
    steps.form(std::slice::from_ref(word));
    if word.is_wild() {
        return steps.hide();
    }
    match word.literal() {
        Some(path) if path.starts_with("/dev/") || path.starts_with("/proc/") => steps.fed(input),
        Some(path) => {
            steps.runs(&path, Language::Shell);
        }
        None => steps.hide(),
    }
}

/// What happens when the line runs a file that it makes itself, with this text if it is known. None: nothing.
pub(super) fn made_script(language: Language, text: Option<String>) -> Option<Step<'static>> {
    let Some(text) = text else {
        return Some(Step::Hide);
    };
    let first = text.lines().next().filter(|line| line.starts_with("#!"));
    let first = first.unwrap_or_default();
    let language = match language {
        Language::Shell if first.contains("python") => Language::Python,
        Language::Shell if !first.is_empty() && !first.ends_with("sh") => Language::Other,
        language => language,
    };
    match language {
        Language::Shell => Some(Step::Line(text)),
        Language::Python => (!python::is_quiet(&text)).then_some(Step::Hide),
        Language::Other => Some(Step::Hide),
    }
}

/// Words that bash may make into options: `{-exec,program}`, `$option program`. What stands behind such a word may be the command of
/// an option, so that rules that forbid compare it. It hides nothing: most such words are names of files.
fn expanded_options<'w>(steps: &mut Steps<'w>, class: Class, arguments: &'w [Word]) {
    let mut before = String::new();
    for (at, word) in arguments.iter().enumerate() {
        let text = word.text();
        if word.braces_make_option() {
            steps.hide();
        }
        // The directory behind `-C` is no option, and a subcommand may follow it.
        let is_value = before == "-C" || class == Class::Git && git::takes_value(&before);
        let is_known = text.contains('=');
        let may_be_option = word.begins_dynamic() && !is_value
            || word.may_be_option()
            || text.starts_with('-') && word.changes() && !is_known;
        if may_be_option {
            // Only as words: to read them as a line would look at every word behind once more, for each such word.
            steps.form(arguments.get(at + 1..).unwrap_or_default());
        }
        before = text;
    }
}

/// A program that nothing is known of may run what stands behind it.
pub(super) fn unlisted<'w>(steps: &mut Steps<'w>, words: &'w [Word], input: &Input) {
    if words.len() > 8 * MAX_BEHIND {
        return steps.hide();
    }
    if let Input::Text(text) = input {
        // It may read commands.
        let text = text.text();
        let lines = text.lines().take(8 * MAX_BEHIND);
        lines.for_each(|line| steps.guess(line.trim_start_matches(['!', ' ', '\t'])));
        planted::called(&text).iter().for_each(|call| steps.guess(call));
    }
    if words.iter().skip(1).any(computed::is_in) {
        // It may be a function.
        steps.push(Step::Computed(POSITIONAL.to_owned()));
    }
    let name = words.first().map(Word::text).unwrap_or_default();
    let is_roff = ROFF.contains(&programs::base_name(&name));
    for (at, word) in words.iter().enumerate().skip(1) {
        let text = word.text();
        if is_roff && text.starts_with('-') && (text.contains('U') || text.contains("unsafe")) {
            // A document may run programs.
            steps.hide();
        }
        planted::called(&text).iter().for_each(|call| steps.guess(call));
        let behind = words.get(at..).unwrap_or_default();
        let class = programs::class(programs::base_name(&text));
        let next = words.get(at + 1).map(Word::text).unwrap_or_default();
        if class == Class::Shell && xargs::is_code_option(&next) {
            steps.program(behind, &SESSION);
        }
        if word.parts.iter().any(|part| matches!(part, Part::Process(_))) {
            // A file with settings or code that the line writes.
            steps.hide();
        }
        if steps.is_guess() || word.is_dynamic() && text.is_empty() {
            continue;
        }
        steps.form(behind);
        let is_piped = |text: &&str| text.starts_with('|') || text.ends_with('|');
        let piped = Some(text.trim())
            .filter(is_piped)
            .map(|text| text.trim_matches('|'));
        let options = text.split_whitespace().skip(1).filter(|_| text.starts_with('-'));
        for piece in text
            .split(['=', ',', '{', '}', '(', ')', '!', ':'])
            .chain(piped)
            .chain([text.get(2..).unwrap_or_default()])
            .chain(options)
        {
            if !piece.is_empty() {
                steps.guess(piece);
            }
        }
    }
}

/// `-vS`: options of `env` with `S` among them.
fn splits(text: &str) -> bool {
    text.starts_with('-') && !text.starts_with("--") && text.contains('S')
}
