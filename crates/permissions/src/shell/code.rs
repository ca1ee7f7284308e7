//! Programs that run code in another language: `awk`, `sed`, `python`, `perl`, `node` and other interpreters. Code that is
//! not known to be harmless is opaque. Scripts in files are beyond rules.

use super::ast::Word;
use super::computed;
use super::node;
use super::planted;
use super::programs::has;
use super::python;
use super::steps::{Input, Language, Steps};

/// What an option of an interpreter is.
enum CodeOption {
    None,
    /// It loads modules or a debugger.
    Loads,
    Code(String),
    /// The next argument is code.
    CodeFollows,
}

/// How an interpreter takes code.
#[derive(Debug, Clone, Copy)]
pub(super) struct Coding {
    language: Language,
    /// Letters of options that take code.
    short: &'static str,
    /// Letters of options that take the rest of the word.
    ends: &'static str,
    long: &'static [&'static str],
    is_quiet: fn(&str) -> bool,
}

pub(super) const PYTHON: Coding = Coding {
    language: Language::Python,
    short: "c",
    ends: "WX",
    long: &[],
    is_quiet: python::is_quiet,
};
pub(super) const PERL: Coding = Coding {
    language: Language::Other,
    short: "eE",
    ends: "iMmdIxF",
    long: &[],
    is_quiet: is_quiet_perl,
};
pub(super) const NODE: Coding = Coding {
    language: Language::Other,
    short: "epr",
    ends: "C",
    long: &[
        "eval",
        "print",
        "require",
        "import",
        "loader",
        "experimental-loader",
    ],
    is_quiet: node::is_quiet,
};

/// Words of Perl that run programs or text and need no brackets.
const PERL_RUNS: &str = " do eval exec fork open qx require syscall system use ";

impl Coding {
    fn option(&self, text: &str) -> CodeOption {
        let letters = text.strip_prefix('-').unwrap_or_default();
        if let Some(long) = letters.strip_prefix('-') {
            let (name, value) = long
                .split_once('=')
                .map_or((long, None), |(name, value)| (name, Some(value)));
            // Node takes underscores for dashes.
            let name = name.replace('_', "-");
            return match value {
                _ if !self.long.contains(&name.as_str()) => CodeOption::None,
                Some(value) => CodeOption::Code(value.to_owned()),
                None => CodeOption::CodeFollows,
            };
        }
        let is_wanted = |letter: char| self.short.contains(letter) || self.ends.contains(letter);
        let Some((position, letter)) = letters.char_indices().find(|(_, letter)| is_wanted(*letter)) else {
            return CodeOption::None;
        };
        let rest = letters.get(position + 1..).unwrap_or_default();
        if self.ends.contains(letter) {
            // Perl makes code of the pattern behind `-F`.
            let is_code = letter == 'F' && rest.contains([')', '`', '@', '{']);
            return if "Mmd".contains(letter) || is_code {
                CodeOption::Loads
            } else {
                CodeOption::None
            };
        }
        if rest.chars().all(|letter| self.short.contains(letter)) {
            CodeOption::CodeFollows
        } else {
            CodeOption::Code(rest.to_owned())
        }
    }
}

/// Lines of an input that are compared with rules.
const INPUT_LINES: usize = 200;

/// Code in an option, or in the input.
pub(super) fn interpreter<'w>(
    steps: &mut Steps<'w>,
    options: &[&str],
    arguments: &'w [Word],
    input: &'w Input,
) {
    let gives_code = |word: &Word| {
        let text = word.text();
        // Letters in one word, as in `ruby -we code`.
        let letters = text.strip_prefix('-').unwrap_or_default();
        let is_flag = |letter: char| "alnpsw".contains(letter);
        let is_group = letters.ends_with('e')
            && letters.len() <= 4
            && letters.chars().all(|letter| letter.is_ascii_lowercase())
            || letters
                .split_once('e')
                .is_some_and(|(flags, _)| flags.chars().all(is_flag));
        let is_long = text.len() > 3 && text.starts_with("--");
        let name = text.split('=').next().unwrap_or_default();
        is_group && options.contains(&"-pe")
            || text.contains("data:") && options.contains(&"eval")
            // Calls in code: `julia --print 'run(...)'` and `m4 -Dx='syscmd(...)'`.
            || text.contains('(') && !planted::called(&text).is_empty()
            || options.iter().any(|option| is_long && option.starts_with(name))
            || options.iter().any(|option| {
                text == *option
                    || text.starts_with(&format!("{option}="))
                    || option.len() <= 2 && text.len() > 2 && text.starts_with(option)
            })
    };
    // A debugger reads commands in addition to the program in its arguments.
    let reads_commands = options.contains(&"-iex") && !matches!(input, Input::Session);
    if reads_commands || arguments.iter().any(gives_code) {
        arguments.iter().for_each(|word| steps.guess(&word.text()));
        return steps.hide();
    }
    for word in arguments {
        // `bun run program`, `deno run npm:program` and `ed '!program'`.
        let text = word.text();
        text.split(':')
            .for_each(|piece| steps.guess(piece.trim_start_matches('!')));
        planted::called(&text).iter().for_each(|call| steps.guess(call));
    }
    if let Input::Text(text) = input {
        // Some read commands as well as a file: `ed file`, `mail user`.
        let text = text.text();
        let mut lines = text.lines();
        for line in lines.by_ref().take(INPUT_LINES) {
            steps.guess(line.trim_start_matches(['~', '!', ' ']));
        }
        // The lines after that could name any program.
        if lines.next().is_some() {
            steps.hide();
        }
    }
    let script = arguments
        .iter()
        .find(|word| !word.text().starts_with('-') || word.is_dynamic());
    file_or_input(steps, script, input, Language::Other, |_| false);
}

/// A script in a file, or code in the input.
fn file_or_input<'w>(
    steps: &mut Steps<'w>,
    script: Option<&'w Word>,
    input: &'w Input,
    language: Language,
    is_quiet: fn(&str) -> bool,
) {
    if let Some(script) = script {
        steps.form(std::slice::from_ref(script));
        let text = script.text();
        if text != "-" && !text.starts_with("/dev/") && !text.starts_with("/proc/") {
            steps.runs(&text, language);
            let is_process = |part: &super::ast::Part| matches!(part, super::ast::Part::Process(_));
            if script.parts.iter().any(is_process) {
                steps.hide();
            }
            return;
        }
    }
    let is_known = match input {
        Input::Session => true,
        Input::Text(text) => text.literal().is_some_and(|text| is_quiet(&text)),
        Input::Unknown | Input::Names => false,
    };
    if !is_known {
        steps.hide();
    }
}

/// Interpreters whose short options may be grouped, such as `python3 -Ic code`. Options are looked for behind the script
/// too: which options take a value is not known.
pub(super) fn coded<'w>(steps: &mut Steps<'w>, arguments: &'w [Word], input: &'w Input, coding: Coding) {
    let mut script = None;
    let mut has_code = false;
    for (at, word) in arguments.iter().enumerate() {
        let text = word.text();
        let next = arguments.get(at + 1);
        if script.is_none() && may_give_code(word, next, coding) {
            steps.hide();
        }
        if !text.starts_with('-') || text == "-" {
            script = script.or(Some(word));
            continue;
        }
        if coding.language == Language::Python && script.is_none() && !has_code && python::runs_module(&text)
        {
            python::module(steps, &text, arguments.get(at + 1..).unwrap_or_default(), input);
            has_code = true;
            continue;
        }
        let code = match coding.option(&text) {
            CodeOption::None => continue,
            CodeOption::Loads => {
                steps.hide();
                continue;
            }
            CodeOption::Code(code) => Some(Word::literal_of(&code)),
            CodeOption::CodeFollows => next.cloned(),
        };
        has_code = true;
        let is_known = code
            .and_then(|code| code.literal())
            .is_some_and(|code| (coding.is_quiet)(&code));
        if !is_known || word.changes() {
            steps.hide();
        }
    }
    // Perl opens its arguments, and runs one with a bar.
    let is_pipe = |word: &Word| word.text().trim().starts_with('|') || word.text().trim().ends_with('|');
    if coding.short.contains('E')
        && arguments
            .iter()
            .any(|word| is_pipe(word) || computed::is_in(word))
    {
        steps.hide();
    }
    if !has_code {
        file_or_input(steps, script, input, coding.language, coding.is_quiet);
    }
}

/// Returns true for a word before the script that bash may make into an option for code: `{-c,code}`, `-$letter code`, `$option code`.
fn may_give_code(word: &Word, next: Option<&Word>, coding: Coding) -> bool {
    let text = word.text();
    let takes_rest = |letter: char| coding.ends.contains(letter);
    if text.starts_with('-') && !text.starts_with("--") && word.changes() {
        return !text.chars().skip(1).any(takes_rest);
    }
    // Names of files, and texts without a call, are no code.
    let is_plain = |code: &str| {
        let is_known = |letter: char| letter.is_alphanumeric() || "_-./=: ,~+%@!?".contains(letter);
        code.chars().all(is_known) && !words(code).any(|word| has(PERL_RUNS, word))
    };
    let is_code = |code: String| !is_plain(&code) && !(coding.is_quiet)(&code);
    let is_name = |next: &&Word| next.is_wild();
    word.braces_make_option()
        || word.begins_dynamic()
            && next
                .filter(|next| !is_name(next))
                .and_then(Word::literal)
                .is_some_and(is_code)
}

/// `awk` and `sed`: the first argument is code unless options give it.
pub(super) fn script_in<'w>(
    steps: &mut Steps<'w>,
    arguments: &'w [Word],
    input: &'w Input,
    is_quiet: fn(&str) -> bool,
    files: &[&str],
    valued: &[&str],
) {
    let mut has_script = false;
    let mut at = 0;
    let judge = |word: Option<&Word>| word.and_then(Word::literal).is_some_and(|code| is_quiet(&code));
    let is_awk = valued.contains(&"-v");
    while let Some(word) = arguments.get(at) {
        let text = last_of_group(word.text(), is_awk);
        at += 1;
        let (name, value) = text.split_once('=').unwrap_or((&text, ""));
        if word.is_dynamic() && text.is_empty() {
            // Code that is not known, if none was given.
            if !std::mem::replace(&mut has_script, true) {
                steps.hide();
            }
            continue;
        }
        // Long options may be shortened.
        let is_long = |option: &str| name.len() > 2 && name.starts_with("--") && option.starts_with(name);
        let is_short = |option: &&str| option.len() == 2 && text.starts_with(*option);
        let glued = match text.strip_prefix("-e") {
            None if is_long("--expression") || is_long("--source") => Some(value),
            glued => glued,
        };
        if glued_script(steps, word, input, is_quiet, is_awk) {
            has_script = true;
        } else if files.iter().copied().any(is_long) || files.iter().any(is_short) {
            has_script = true;
            let option = Word::literal_of(&text);
            let option = if word.changes() { word } else { &option };
            at += script_file(steps, option, arguments.get(at), input, is_quiet);
        } else if let Some(glued) = glued {
            let is_known = if glued.is_empty() && !word.changes() {
                at += 1;
                judge(arguments.get(at - 1))
            } else {
                !word.changes() && is_quiet(glued)
            };
            has_script = true;
            if !is_known {
                steps.hide();
            }
        } else if valued.contains(&text.as_str())
            || !text.contains('=') && valued.iter().copied().any(is_long)
        {
            // Behind `-F$x` stands the script, or a value if `$x` is empty.
            let behind = arguments.get(at + 1).and_then(Word::literal);
            if word.changes() && behind.is_some_and(|code| !is_quiet(&code)) {
                steps.hide();
            }
            at += usize::from(!word.changes());
        } else if is_awk
            && (text.starts_with("-i") || text.starts_with("-l") || is_long("--load") || is_long("--include"))
        {
            steps.hide();
        } else if !text.starts_with('-') {
            // Options may stand behind it, too.
            if !std::mem::replace(&mut has_script, true) && !judge(Some(word)) {
                steps.hide();
            }
        }
    }
}

/// The first option with a value behind other letters in one word, and how many letters are before it. It takes the rest of the word.
fn valued_in_group(text: &str, is_awk: bool) -> Option<(usize, char)> {
    let valued = if is_awk { "-DEFLWZdefilopv" } else { "-Iefil" };
    let mut letters = text.strip_prefix('-')?.char_indices();
    let first = letters.find(|(_, letter)| valued.contains(*letter));
    first.filter(|(at, _)| *at > 0)
}

/// The last option of a group whose value is the next word: `-v` for `-bv`. Any other word stays as it is.
fn last_of_group(text: String, is_awk: bool) -> String {
    match valued_in_group(&text, is_awk) {
        Some((at, letter)) if at + 2 == text.len() => format!("-{letter}"),
        _ => text,
    }
}

/// Judges a script behind other letters in one word: `-ne's/a/b/p'` and `-nfscript`. Returns false if the word has none.
fn glued_script<'w>(
    steps: &mut Steps<'w>,
    word: &Word,
    input: &'w Input,
    is_quiet: fn(&str) -> bool,
    is_awk: bool,
) -> bool {
    let text = word.text();
    let Some((at, letter)) = valued_in_group(&text, is_awk) else {
        return false;
    };
    if is_awk && matches!(letter, 'D' | 'W' | 'i' | 'l') {
        // Code of other files, and options that may name code.
        steps.hide();
        return true;
    }
    let rest = text.get(at + 2..).unwrap_or_default();
    if rest.is_empty() || !matches!(letter, 'e' | 'f' | 'E') {
        return false;
    }
    if letter != 'e' {
        script_file(
            steps,
            &Word::literal_of(&format!("-f{rest}")),
            None,
            input,
            is_quiet,
        );
    }
    if word.changes() || letter == 'e' && !is_quiet(rest) {
        steps.hide();
    }
    true
}

/// A script in a file: `-f script`, `-fscript` or `--file=script`. Returns how many of the next words it takes.
fn script_file<'w>(
    steps: &mut Steps<'w>,
    word: &Word,
    next: Option<&'w Word>,
    input: &'w Input,
    is_quiet: fn(&str) -> bool,
) -> usize {
    let text = word.text();
    let glued = match text.starts_with("--") {
        true => text.split_once('=').map(|(_, path)| path),
        false => text.get(2..),
    };
    match glued.filter(|path| !path.is_empty()) {
        _ if word.changes() => steps.hide(),
        Some(path) if path == "-" || path.starts_with("/dev/") || path.starts_with("/proc/") => {
            file_or_input(steps, None, input, Language::Other, is_quiet);
        }
        Some(path) => steps.runs(path, Language::Other),
        None => {
            if next.is_some() {
                file_or_input(steps, next, input, Language::Other, is_quiet);
            }
            return 1;
        }
    }
    0
}

/// Words of letters, digits and underscores.
pub(super) fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|letter: char| !(letter.is_alphanumeric() || letter == '_'))
        .filter(|word| !word.is_empty())
}

/// `awk` runs programs with `system`, pipes and calls by name.
pub(super) fn is_quiet_awk(code: &str) -> bool {
    let mut rest = code.trim_start();
    // A bar in the regular expression at the beginning is none.
    if let Some((pattern, after)) = rest.strip_prefix('/').and_then(|rest| rest.split_once('/'))
        && !pattern.contains(['[', '\\', '"'])
    {
        rest = after;
    }
    let rest = rest.replace("||", " ");
    !rest.contains(['|', '@', '\\']) && !words(code).any(|word| word == "system" || word == "getline")
        || is_quiet_awk_text(code)
}

/// Code with escapes but nothing else that is not known.
fn is_quiet_awk_text(code: &str) -> bool {
    !code.contains(['|', '@'])
        && !words(code).any(|word| word == "system" || word == "getline")
        && !code.contains("\\\n")
}

/// Only scripts of `sed` whose commands are known to run nothing.
pub(super) fn is_quiet_sed(code: &str) -> bool {
    let letters: Vec<char> = code.chars().collect();
    let mut at = 0;
    while let Some(letter) = letters.get(at).copied() {
        at += 1;
        match letter {
            ' ' | '\t' | '\n' | ';' | '{' | '}' | '!' | ',' | '$' | '~' | '+' | 'I' | 'M' => {}
            letter if letter.is_ascii_digit() => {}
            'p' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'x' | 'l' | '=' | 'P' | 'z' | 'q' | 'Q'
            | 'F' => {}
            '/' => match skip_pattern(&letters, at, '/') {
                Some(next) => at = next,
                None => return false,
            },
            '\\' => {
                let Some(end) = letters.get(at).copied() else {
                    return false;
                };
                match skip_pattern(&letters, at + 1, end) {
                    Some(next) => at = next,
                    None => return false,
                }
            }
            's' | 'y' => {
                let Some(end) = letters
                    .get(at)
                    .copied()
                    .filter(|end| !end.is_alphanumeric() && !end.is_whitespace())
                else {
                    return false;
                };
                let Some(next) = skip_pattern(&letters, at + 1, end)
                    .and_then(|next| skip_replacement(&letters, next, end))
                else {
                    return false;
                };
                at = next;
                while letters
                    .get(at)
                    .is_some_and(|flag| "gpiImM0123456789".contains(*flag))
                {
                    at += 1;
                }
                if letters.get(at).is_some_and(|next| !" \t\n;}".contains(*next)) {
                    return false;
                }
            }
            // Labels and texts go on to the end of the line.
            'b' | 't' | 'T' | ':' | 'a' | 'i' | 'c' | 'r' => {
                let is_label = "btT:".contains(letter);
                let is_text = "aci".contains(letter);
                let mut is_escaped = false;
                while let Some(next) = letters.get(at).copied() {
                    if next == '\n' && !is_escaped || is_label && (next == ';' || next == '}') {
                        break;
                    }
                    // Only in texts, and only without another backslash before it.
                    is_escaped = is_text && next == '\\' && !is_escaped;
                    at += 1;
                }
            }
            _ => return false,
        }
    }
    true
}

/// Behind the delimiter that ends a pattern. One in brackets may or may not end it.
fn skip_pattern(letters: &[char], mut at: usize, end: char) -> Option<usize> {
    let mut in_brackets = false;
    loop {
        match letters.get(at)? {
            '\\' => at += 1,
            '[' if !in_brackets => {
                in_brackets = letters.get(at..).is_some_and(|rest| rest.contains(&']')) && end != ']';
            }
            ']' => in_brackets = false,
            '\n' => return None,
            letter if *letter == end && !in_brackets => return Some(at + 1),
            letter if *letter == end => return None,
            _ => {}
        }
        at += 1;
    }
}

/// Behind the second delimiter: brackets mean nothing in a replacement.
fn skip_replacement(letters: &[char], mut at: usize, end: char) -> Option<usize> {
    loop {
        match letters.get(at)? {
            '\\' => at += 1,
            letter if *letter == end => return Some(at + 1),
            _ => {}
        }
        at += 1;
    }
}

/// Perl that only substitutes: `s/a/b/g`.
pub(super) fn is_quiet_perl(code: &str) -> bool {
    code.split(';').all(|part| {
        let part = part.trim();
        let Some(delimiter) = part.strip_prefix('s').and_then(|rest| rest.chars().next()) else {
            return part.is_empty() || ["print", "print $_", "next", "last"].contains(&part);
        };
        if !"/|#,!".contains(delimiter) {
            return false;
        }
        let escaped = format!("\\{delimiter}");
        let text = part.replace("\\\\", "").replace(&escaped, "");
        let pieces: Vec<&str> = text.split(delimiter).collect();
        let [_, pattern, replacement, flags] = pieces.as_slice() else {
            return false;
        };
        let interpolates =
            |text: &str| text.contains(['@', '`']) || text.contains("?{") || has_perl_subscript(text);
        flags.chars().all(|flag| "gimsx".contains(flag))
            && !interpolates(pattern)
            && !interpolates(replacement)
            && !pattern.contains("(?")
    })
}

/// Returns true if a variable in a text of Perl has a subscript that is no word: Perl calculates it, as in `$h{system("x")}`.
fn has_perl_subscript(text: &str) -> bool {
    let pieces: Vec<&str> = text.split('$').collect();
    pieces.windows(2).any(|pair| {
        let [before, after] = pair else { return false };
        if before.ends_with('\\') {
            return false;
        }
        let is_name = |letter: char| letter.is_alphanumeric() || "_:+-&,.'\"!<=?^~#%*".contains(letter);
        let rest = after.trim_start_matches(is_name);
        let subscript = rest.trim_start_matches('>').strip_prefix(['[', '{']);
        let is_word = |subscript: &str| {
            let end = subscript.find([']', '}']).unwrap_or(0);
            let inner = subscript.get(..end).unwrap_or_default();
            let behind = subscript.get(end + 1..).unwrap_or_default();
            let behind = behind.strip_prefix("->").unwrap_or(behind);
            rest.len() < after.len()
                && !behind.starts_with(['[', '{'])
                && !inner.is_empty()
                && inner
                    .chars()
                    .all(|letter| letter.is_alphanumeric() || letter == '_')
        };
        subscript.is_some_and(|subscript| !is_word(subscript))
    })
}
