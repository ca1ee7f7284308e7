//! Words that only the run decides: which of them the line itself computes, and where such a word can be an option of its program. A
//! variable that the line does not assign comes from outside: nobody who writes the line chooses its value.

use super::ast::{List, Node, Parameter, Part, Word};
use super::git;
use super::programs::{self, Class};
use super::steps::Steps;
use super::variables;

/// Commands whose output begins with no dash, or consists of options that the line does not choose. `*` stands for arguments that are no
/// options.
const PLAIN_OUTPUT: [&str; 57] = [
    "arch",
    "brew --prefix *",
    "command -v *",
    "date",
    "date -I",
    "date +%F",
    "date +%H%M%S",
    "date +%s",
    "date +%s%N",
    "date +%Y",
    "date +%Y%m%d",
    "date +%Y-%m-%d",
    "date +%Y%m%d%H%M%S",
    "date +%Y%m%d-%H%M%S",
    "date +%Y%m%d_%H%M%S",
    "dirname *",
    "docker images -q",
    "docker ps -aq",
    "docker ps -q",
    "git branch --show-current",
    "git describe",
    "git describe --always",
    "git describe --tags",
    "git describe --tags --always",
    "git hash-object *",
    "git merge-base *",
    "git rev-parse *",
    "git rev-parse --abbrev-ref *",
    "git rev-parse --git-dir",
    "git rev-parse --short *",
    "git rev-parse --show-toplevel",
    "git rev-parse --verify *",
    "git symbolic-ref --short *",
    "go env GOPATH",
    "hostname",
    "id -g",
    "id -u",
    "id -un",
    "llvm-config --cxxflags",
    "llvm-config --ldflags",
    "mktemp",
    "mktemp -d",
    "nproc",
    "npm prefix",
    "npm root",
    "pgrep *",
    "pkg-config --cflags *",
    "pkg-config --cflags --libs *",
    "pkg-config --libs *",
    "pwd",
    "pwd -P",
    "readlink -f *",
    "realpath *",
    "uname -m",
    "uname -r",
    "which *",
    "whoami",
];
/// Variables that may stand in arguments of those commands.
const PLACES: &str = " 0 BASH_SOURCE HOME PWD ";
/// Letters of short options that take the next word, and run nothing, by program. Those of `git` are by subcommand.
const VALUED: [(&str, &str); 40] = [
    ("apt", "t"),
    ("apt-get", "t"),
    ("awk", "Fv"),
    ("bsdtar", "bCfgKLNTVX"),
    ("c++", "DILUTlouxz"),
    ("cargo", "Fjpt"),
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
    ("git-rebase", "CSXs"),
    ("gpg", "Kour"),
    ("install", "Sgmot"),
    ("journalctl", "Stnpu"),
    ("make", "CIWjlo"),
    ("mysql", "DPhu"),
    ("node", "epr"),
    ("perl", "EIe"),
    ("pip", "citr"),
    ("psql", "Udhop"),
    ("python", "WX"),
    ("rg", "ABCEMTefgjmt"),
    ("rsync", "BMTf"),
    ("scp", "FJPcil"),
    ("sort", "STkot"),
    ("split", "Cabln"),
    ("tar", "CHKLNTVXbfg"),
    ("wget", "OPTUot"),
    ("zip", "bintx"),
];
/// Long options of those programs that take the next word, and run nothing.
const VALUED_LONG: &str = " --branch --cd --chdir --depth --directory --exclude --exclude-from --file --files-from --format \
    --include --include-from --jobs --message --name --onto --origin --output --output-document --package --prefix --reference \
    --regexp --suffix --target --target-directory --transform --type ";
/// Words of `find` behind which a value stands.
const FIND_VALUED: &str = " -amin -anewer -atime -cmin -cnewer -ctime -fprint -fstype -gid -group -iname -inum -ipath -iregex \
    -iwholename -links -lname -maxdepth -mindepth -mmin -mtime -name -newer -newermt -path -perm -printf -regex -regextype -size -type \
    -uid -user -wholename ";
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

/// A word that is nothing but such a text.
pub(super) fn word() -> Word {
    let mut word = Word::default();
    word.parts.push(part());
    word
}

/// Returns true if the word, or one that it is split into, begins with a text that the line computes. What stands before that text may
/// be empty.
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
        "" | "%" | "%%" | "#" | "##" => false,
        ":-" | "-" | ":=" | "=" | ":+" | "+" | ":?" | "?" => {
            operand.text().starts_with('-') || begins(operand)
        }
        _ => true,
    };
    gives_text || variables::is_filled(&parameter.name)
}

/// Returns true if the commands only list files, or write what the line cannot choose.
fn is_plain(list: &List) -> bool {
    if list.is_pipeline && programs::is_listed(list, list.nodes.len()) {
        return true;
    }
    let [Node::Simple(simple)] = list.nodes.as_slice() else {
        return false;
    };
    let is_quiet = simple.assignments.is_empty() && !simple.words.is_empty();
    is_quiet && PLAIN_OUTPUT.iter().any(|known| is_call_of(known, &simple.words))
}

fn is_call_of(known: &str, words: &[Word]) -> bool {
    let has_operands = known.ends_with(" *");
    let known: Vec<&str> = known.trim_end_matches(" *").split(' ').collect();
    let Some((call, operands)) = words.split_at_checked(known.len()) else {
        return false;
    };
    let is_same = |(known, word): (&&str, &Word)| word.literal().is_some_and(|text| text == **known);
    let is_place = |part: &Part| match part {
        Part::Text { .. } => true,
        Part::Parameter(parameter) => {
            !parameter.indirect && parameter.operator.is_empty() && programs::has(PLACES, &parameter.name)
        }
        _ => false,
    };
    let is_operand = |word: &Word| {
        let text = word.text();
        word.parts.iter().all(is_place)
            && !word.has_braces()
            && !text.starts_with('-')
            && !text.contains(char::is_whitespace)
    };
    known.iter().zip(call).all(is_same)
        && (has_operands || operands.is_empty())
        && operands.iter().all(is_operand)
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
        let is_value =
            takes_value(name, &before, at == 2) || name == "git" && ["-m", "-F"].contains(&before.as_str());
        let mut text = " ".to_owned();
        for part in &word.parts {
            let is_open = match part {
                Part::Text { text: more, .. } => {
                    text.push_str(more);
                    false
                }
                Part::Commands(_) => !is_value,
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
