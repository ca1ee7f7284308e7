//! Words that only the run decides: which of them the line itself computes, and where such a word can be an option of its program. A
//! variable that the line does not assign comes from outside: the model that writes the line does not choose its value.

use super::ast::{List, Node, Parameter, Part, Simple, Word};
use super::git;
use super::programs::{self, Class};
use super::steps::Steps;
use super::variables;

/// Commands whose output begins with no dash, or consists of options that the line does not choose. `*` stands for arguments that are no
/// options.
const PLAIN_OUTPUT: [&str; 71] = [
    ":",
    "arch",
    "brew --prefix *",
    "command -v *",
    "dirname *",
    "docker images -q",
    "docker ps -aq",
    "docker ps -q",
    "git branch --show-current",
    "git describe",
    "git describe --abbrev=0 --tags",
    "git describe --always",
    "git describe --always --dirty",
    "git describe --tags",
    "git describe --tags --abbrev=0",
    "git describe --tags --always",
    "git describe --tags --always --dirty",
    "git describe --tags --dirty",
    "git hash-object *",
    "git log -1 --format=%H",
    "git log -1 --format=%ct",
    "git log -1 --format=%h",
    "git merge-base *",
    "git rev-list --count *",
    "git rev-parse *",
    "git rev-parse --abbrev-ref *",
    "git rev-parse --git-dir",
    "git rev-parse --short *",
    "git rev-parse --show-toplevel",
    "git rev-parse --verify *",
    "git symbolic-ref --short *",
    "getconf _NPROCESSORS_ONLN",
    "go env GOPATH",
    "go env GOROOT",
    "hostname",
    "id -g",
    "id -gn",
    "id -u",
    "id -un",
    "llvm-config --cxxflags",
    "llvm-config --ldflags",
    "mktemp",
    "mktemp *",
    "mktemp -d",
    "mktemp -d *",
    "mktemp -d -t *",
    "mktemp -t *",
    "nproc",
    "npm prefix",
    "npm root",
    "pgrep *",
    "pkg-config --cflags *",
    "pkg-config --cflags --libs *",
    "pkg-config --libs *",
    "pwd",
    "pwd -P",
    "python3-config --includes",
    "readlink -f *",
    "realpath *",
    "sdl2-config --cflags --libs",
    "seq *",
    "sysctl -n hw.logicalcpu",
    "sysctl -n hw.ncpu",
    "sysctl -n hw.physicalcpu",
    "true",
    "uname",
    "uname -m",
    "uname -r",
    "uname -s",
    "which *",
    "whoami",
];
/// Other programs and builtins whose output is harmless in some calls.
const TRUSTED: &str = " cd date echo egrep fd fdfind fgrep find gfind grep head locate ls rg sort tail uniq ";
/// Conversions of `date` that write letters or digits and nothing else. The names of time zones can be any text.
const DATE_CONVERSIONS: &str = "CFGHIMNSTUVWYabdhjmsuwyAB";
/// Variables on which such output depends. They may stand in arguments of [`PLACED`].
const PLACES: &str = " 0 BASH_ARGV0 BASH_SOURCE HOME PWD TMPDIR ";
/// Programs that write the path in their single argument, or a path below it. They refuse an argument that is an option.
const PLACED: &str = " dirname mktemp readlink realpath ";
/// Letters of short options that take the next word in any case, and run nothing, by program. Those of `git` are by subcommand. `tar -T`
/// reads options from its file, `psql -o` runs a program, and `make -j` takes only numbers.
const VALUED: [(&str, &str); 40] = [
    ("apt", "t"),
    ("apt-get", "t"),
    ("awk", "Fv"),
    ("bsdtar", "bCfX"),
    ("c++", "DILUTlouxz"),
    ("cargo", "Fjp"),
    ("cc", "DILUTlouxz"),
    ("clang", "DILUTlouxz"),
    ("clang++", "DILUTlouxz"),
    ("cmake", "BGSjt"),
    ("fd", "CEStcdejo"),
    ("fdfind", "CEStcdejo"),
    ("g++", "DILUTlouxz"),
    ("gawk", "Fv"),
    ("gcc", "DILUTlouxz"),
    ("git-archive", "o"),
    ("git-clone", "bjo"),
    ("git-difftool", "t"),
    ("git-fetch", "jo"),
    ("git-grep", "ABCefm"),
    ("git-push", "o"),
    ("git-rebase", "CXs"),
    ("gpg", "our"),
    ("install", "Sgmot"),
    ("journalctl", "Stnpu"),
    ("make", "CIWo"),
    ("mysql", "DPhu"),
    ("node", "epr"),
    ("perl", "EIe"),
    ("pip", "citr"),
    ("psql", "Udhp"),
    ("python", "WX"),
    ("rg", "ABCEMTefgjmt"),
    ("rsync", "BMTf"),
    ("scp", "FJPcil"),
    ("sort", "STkot"),
    ("split", "Cabln"),
    ("tar", "CHKLNVXbfg"),
    ("wget", "OPTUot"),
    ("zip", "bnt"),
];
/// Long options of those programs that take the next word, and run nothing.
const VALUED_LONG: &str = " --body --branch --cd --chdir --depth --directory --exclude --exclude-from --features --file --format \
    --include --include-from --manifest-path --message --name --onto --origin --output-document --package --passphrase --prefix \
    --reference --regexp --suffix --target --target-dir --target-directory --title --transform --type ";
/// Words of `find` behind which a value stands.
const FIND_VALUED: &str = " -amin -anewer -atime -cmin -cnewer -ctime -fprint -fstype -gid -group -iname -inum -ipath -iregex \
    -iwholename -links -lname -maxdepth -mindepth -mmin -mtime -name -newer -newermt -path -perm -printf -regex -regextype -size -type \
    -uid -user -wholename ";
/// Interpreters for which everything behind the script is for the script.
const SCRIPTED: &str = " Rscript julia lua luajit php ruby ";
/// Subcommands of `git` with options that run programs.
const GIT_RUNNING: &str = " archive clone difftool fetch fetch-pack filter-branch grep instaweb interpret-trailers ls-remote \
    pull push rebase send-email send-pack ";

/// A text that the line computes. Bash sets this variable, and no line assigns it.
pub(super) fn part() -> Part {
    Part::Parameter(Box::new(Parameter {
        name: "_".to_owned(),
        ..Parameter::default()
    }))
}

/// A word that is such a text.
pub(super) fn word() -> Word {
    let mut word = Word::default();
    word.parts.push(part());
    word
}

/// Returns true if the word, or a piece of it when bash splits it, begins with a text that the line computes. An expansion before that
/// text may be empty.
pub(super) fn begins(word: &Word) -> bool {
    let mut has_text = false;
    for (part, is_quoted) in word.with_quotes() {
        match part {
            Part::Text { text, .. } => has_text |= !text.is_empty(),
            part if is_part(part) && !(has_text && is_quoted) => return true,
            Part::Unknown | Part::Process(_) | Part::Arithmetic(_) => has_text = true,
            Part::Commands(_) | Part::Parameter(_) => {}
        }
    }
    false
}

/// Returns true if a part of the word is a text that the line computes.
pub(super) fn is_in(word: &Word) -> bool {
    word.parts.iter().any(is_part)
}

/// Returns true for a text that the line computes.
pub(super) fn is_part(part: &Part) -> bool {
    match part {
        Part::Commands(list) => !is_plain(list),
        Part::Parameter(parameter) => is_computed(parameter),
        _ => false,
    }
}

fn is_computed(parameter: &Parameter) -> bool {
    if parameter.length {
        return false;
    }
    let operand = &parameter.operand;
    let gives_text = match parameter.operator.as_str() {
        "" => false,
        // Some of the parameters.
        ":" if ["@", "*"].contains(&parameter.name.as_str()) => false,
        // A part of the value, or the value in other letters. The line gives the parameters of its functions.
        "%" | "%%" | "#" | "##" | ":" | "^" | "^^" | "," | ",," => parameter.is_position(),
        ":-" | "-" | ":=" | "=" | ":+" | "+" | ":?" | "?" => {
            operand.text().starts_with('-') || begins(operand)
        }
        _ => true,
    };
    gives_text || variables::is_filled(&parameter.name)
}

/// Returns true if the commands only list files, or their output cannot be an option that the line chooses.
fn is_plain(list: &List) -> bool {
    if list.is_pipeline && programs::is_listed(list, list.nodes.len()) {
        return true;
    }
    let is_plain_call = |node: &Node| matches!(node, Node::Simple(simple) if writes_no_option(simple));
    !list.nodes.is_empty() && list.nodes.iter().all(is_plain_call)
}

fn writes_no_option(simple: &Simple) -> bool {
    let [first, arguments @ ..] = simple.words.as_slice() else {
        return false;
    };
    let is_option = |word: &Word| word.text().starts_with('-') && word.text() != "--";
    let writes = match first.literal().as_deref() {
        // It writes nothing, or a path from the root.
        Some("cd") => !arguments.iter().any(is_option),
        Some("date") => arguments.iter().all(is_date_format),
        Some("echo") => arguments.len() == 1 && arguments.iter().all(|word| is_operand(word, false)),
        _ => PLAIN_OUTPUT.iter().any(|known| is_call_of(known, &simple.words)),
    };
    writes && simple.assignments.is_empty()
}

/// Returns true for `-u`, `-I` and formats such as `+%Y-%m-%d`.
fn is_date_format(word: &Word) -> bool {
    let Some(text) = word.literal() else {
        return false;
    };
    let Some(format) = text.strip_prefix('+') else {
        return text == "-u" || text.starts_with("-I");
    };
    let is_known = |rest: &str| rest.starts_with(|letter: char| DATE_CONVERSIONS.contains(letter));
    !format.starts_with('-')
        && !format.contains(char::is_whitespace)
        && format
            .split('%')
            .skip(1)
            .all(|rest| is_known(rest.strip_prefix('-').unwrap_or(rest)))
}

fn is_call_of(known: &str, words: &[Word]) -> bool {
    let has_operands = known.ends_with(" *");
    let known: Vec<&str> = known.trim_end_matches(" *").split(' ').collect();
    let Some((call, operands)) = words.split_at_checked(known.len()) else {
        return false;
    };
    let is_same = |(known, word): (&&str, &Word)| word.literal().is_some_and(|text| text == **known);
    let has_place = operands.len() == 1 && known.first().is_some_and(|name| programs::has(PLACED, name));
    known.iter().zip(call).all(is_same)
        && (has_operands || operands.is_empty())
        && operands.iter().all(|word| is_operand(word, has_place))
}

/// Returns true for a word that is no option. `has_place` is true if a variable such as `$HOME` may stand in it.
fn is_operand(word: &Word, has_place: bool) -> bool {
    let is_harmless = |operand: &Word| operand.literal().is_some_and(|text| !text.starts_with('-'));
    let is_known = |part: &Part| match part {
        Part::Text { .. } => true,
        Part::Parameter(parameter) => {
            let is_default = parameter.operator == ":-" && is_harmless(&parameter.operand);
            let is_whole = parameter.operator.is_empty() && !parameter.indirect;
            has_place && (is_whole || is_default) && is_place(&parameter.name)
        }
        _ => false,
    };
    let text = word.text();
    word.parts.iter().all(is_known)
        && !word.has_braces()
        && !word.is_wild()
        && !text.starts_with('-')
        && !text.contains(|letter: char| letter.is_whitespace() || letter == '\\')
}

/// Returns true for a variable on which harmless output depends.
pub(super) fn is_place(name: &str) -> bool {
    programs::has(PLACES, name)
}

/// Returns true if code names a program whose output depends on such a variable.
pub(super) fn names_placed(code: &str) -> bool {
    PLACED.split_ascii_whitespace().any(|name| code.contains(name))
}

/// Returns true if a value can be an option, or contain one behind a blank.
pub(super) fn may_be_options(value: &Word) -> bool {
    begins(value) || value.text().split_whitespace().any(|word| word.starts_with('-'))
}

/// Returns true for a program or builtin whose output counts as harmless in some calls. A function or a script of the line must not take
/// its place.
pub(super) fn is_trusted(name: &str) -> bool {
    let mut known = PLAIN_OUTPUT.iter();
    programs::has(TRUSTED, name) || known.any(|known| known.split(' ').next() == Some(name))
}

/// Returns true if the line chooses no part of the output, not even a path.
fn is_fixed(list: &List) -> bool {
    let is_fixed_call = |node: &Node| {
        let Node::Simple(simple) = node else {
            return false;
        };
        let is_date = simple.words.first().is_some_and(|first| first.text() == "date");
        let mut known = PLAIN_OUTPUT.iter().filter(|known| !known.ends_with(" *"));
        is_date || known.any(|known| is_call_of(known, &simple.words))
    };
    is_plain(list) && list.nodes.iter().all(is_fixed_call)
}

/// Returns true if the word behind this one is its value. `is_first` is true for the first argument.
pub(super) fn takes_value(program: &str, before: &str, is_first: bool) -> bool {
    if before.starts_with("--") {
        return programs::has(VALUED_LONG, before);
    }
    if ["find", "gfind"].contains(&program) {
        return programs::has(FIND_VALUED, before);
    }
    let family = programs::family(program);
    let found = VALUED
        .iter()
        .find(|(name, _)| *name == program || *name == family);
    let letters = found.map_or("", |(_, letters)| *letters);
    // `tar czf file`: without a dash.
    let is_group =
        before.len() > 1 && before.starts_with('-') || is_first && ["tar", "bsdtar"].contains(&program);
    is_group && before.ends_with(|last: char| letters.contains(last))
}

/// Hides a line in which a word that the line computes can be an option of a program that starts others by its options.
pub(super) fn hide_options(steps: &mut Steps<'_>, class: Class, name: &str, arguments: &[Word]) {
    let (name, arguments) = match class {
        Class::Git => match git_call(arguments) {
            Some((subcommand, arguments)) => (format!("git-{subcommand}"), arguments),
            None => return,
        },
        // It has no option that runs something.
        Class::Options([]) => return,
        Class::Finder | Class::Options(_) | Class::Interpreter(_) | Class::Awk | Class::Sed => {
            (name.to_owned(), arguments)
        }
        Class::Python | Class::Perl | Class::Node => (name.to_owned(), arguments),
        _ => return,
    };
    let mut before = String::new();
    for (at, word) in arguments.iter().enumerate() {
        let text = word.text();
        let is_value = takes_value(&name, &before, at == 1);
        // `tar` reads options in lists of files, too.
        let is_list = |part: &Part| matches!(part, Part::Process(list) if !is_plain(list));
        let lists = ["tar", "bsdtar"].contains(&name.as_str()) && word.parts.iter().any(is_list);
        let is_whole = word
            .with_quotes()
            .all(|(part, is_quoted)| is_quoted || !is_part(part));
        if begins(word) && !(is_value && is_whole) || lists {
            return steps.hide();
        }
        let is_option = text.starts_with('-');
        let is_end = match class {
            Class::Finder => false,
            // What follows is for the script.
            Class::Python if text == "-c" || text == "-m" => true,
            Class::Awk | Class::Python | Class::Perl | Class::Node => {
                !is_option && !is_value && !word.is_dynamic()
            }
            Class::Interpreter(_) => {
                at == 0
                    && !is_option
                    && !word.is_dynamic()
                    && programs::has(SCRIPTED, programs::family(&name))
            }
            _ => false,
        };
        if is_end || text == "--" && class != Class::Finder {
            return;
        }
        before = if word.changes() { String::new() } else { text };
    }
}

/// The subcommand and its arguments, if options of the subcommand run programs.
fn git_call(arguments: &[Word]) -> Option<(String, &[Word])> {
    let mut at = 0;
    loop {
        let text = arguments.get(at)?.text();
        if !text.starts_with('-') {
            let behind = arguments.get(at + 1..).unwrap_or_default();
            return programs::has(GIT_RUNNING, &text).then_some((text, behind));
        }
        at += 1 + usize::from(git::takes_value(&text));
    }
}

/// The texts of a command between the texts that the line computes; none if it computes none, or may name another program. The value of
/// an option is no text in which a rule could find an option.
pub(super) fn pieces(words: &[Word]) -> Option<Vec<String>> {
    let first = words.first().filter(|first| !first.hides())?.text();
    let name = programs::base_name(&first);
    let mut pieces = vec![name.to_owned()];
    let mut before = String::new();
    for (at, word) in words.iter().enumerate().skip(1) {
        // `git commit -am message`.
        let is_group = before.starts_with('-') && !before.starts_with("--");
        let is_message = name == "git" && is_group && before.ends_with(['m', 'F']);
        let is_value = takes_value(name, &before, at == 2) || is_message;
        let mut text = " ".to_owned();
        for part in &word.parts {
            let is_open = match part {
                Part::Text { text: more, .. } => {
                    text.push_str(more);
                    false
                }
                Part::Commands(list) => !is_value && !is_fixed(list),
                Part::Parameter(parameter) => !is_value && is_computed(parameter),
                _ => false,
            };
            if is_open {
                add(&mut pieces, &text);
                text.clear();
                pieces.push(String::new());
            }
        }
        add(&mut pieces, &text);
        before = if word.changes() {
            String::new()
        } else {
            word.text()
        };
    }
    (pieces.len() > 1).then_some(pieces)
}

fn add(pieces: &mut [String], text: &str) {
    if let Some(last) = pieces.last_mut() {
        last.push_str(text);
    }
}
