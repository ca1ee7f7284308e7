//! Commands in text that is not a line of a shell: settings and code that a line writes to a file, and code in an argument.
//! Which words of it may be a command. They are compared with rules in `judge`.

use std::collections::BTreeSet;

use super::ast::{RedirectKind, Simple, Word};
use super::programs::{self, Class};
use super::values::Candidates;

/// Words of a text that are read; a text with more could name any program.
const WORDS: usize = 2_000;
/// Words of a command that are compared.
const COMMAND: usize = 8;

/// Files with commands that programs look for by themselves.
const SETTINGS: &str = " .bazelrc .curlrc .emacs .envrc .exrc .gdbinit .gitattributes .gitconfig .gitmodules .inputrc .justfile \
    .lesskey .lldbinit .muttrc .my.cnf .nanorc .npmrc .pre-commit-config.yaml .psqlrc .screenrc .sqliterc .tmux.conf .vimrc \
    .wgetrc .yarnrc .yarnrc.yml BUILD BUILD.bazel CMakeLists.txt Containerfile Dockerfile GNUmakefile Gemfile Justfile Makefile \
    Procfile Rakefile Taskfile.yaml Taskfile.yml Vagrantfile WORKSPACE build.ninja build.xml compose.yaml compose.yml \
    configure.ac configure.in deno.json docker-compose.yaml docker-compose.yml init.el init.vim justfile lefthook.yml \
    makefile meson.build package.json pom.xml pyproject.toml setup.cfg tasks.json tox.ini \
    applypatch-msg commit-msg fsmonitor-watchman post-applypatch post-checkout post-commit post-merge post-receive post-rewrite \
    post-update pre-applypatch pre-commit pre-merge-commit pre-push pre-rebase pre-receive prepare-commit-msg push-to-checkout \
    reference-transaction update ";
/// Folders of such files.
const FOLDERS: &str = " .cargo .config .git .githooks .hg .husky .ssh .vscode git hooks systemd ";
/// Ends of the names of such files.
const SETTINGS_ENDS: &str = " bzl cmake desktop gradle hcl kts mk nix nomad path service socket tf timer ";
/// Ends of the names of files with code that other programs compile or load.
const CODE_ENDS: &str = " R awk bb c cc cjs cljs cpp cr cs cts cxx d dart el ex exs f90 fs go groovy h hh hpp hs java jl js jsx kt lua m \
    mjs ml mm mts nim php pl pm ps py pyi r rake rb rs scala scm sty swift tcl tex ts tsx v vim vue zig ";
/// Ends of the names of documents, which programs do not run.
const DOCUMENT_ENDS: &str = " adoc markdown md rst ";
/// What programs of other languages call to run a command.
const CALLS: &str = " call exec execFile execFileSync execSync execl execlp execv execve execvp getoutput popen run shell \
    spawn spawnSync subprocess sy sys syscmd esyscmd system write18 ";

/// Who reads a file by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    /// Any program, such as `git` or `make`.
    Any,
    /// Any program but `git`.
    Compiler,
    /// A program with the name of the file in its arguments, but for `git`.
    Named,
}

/// The files that a line makes and that programs read by themselves, and the programs that the line runs.
#[derive(Debug, Default)]
pub(super) struct Planted {
    /// Who reads the file, its name and its text.
    files: Vec<(Reader, String, String)>,
    runs_git: bool,
    runs_others: bool,
    /// Arguments of other programs than `git`.
    arguments: BTreeSet<String>,
}

impl Planted {
    /// A command writes to these files, perhaps a here-document.
    pub(super) fn writes(&mut self, command: &Simple, targets: &[&Word], document: Option<String>) {
        let arguments: Vec<String> = command.words.iter().skip(1).map(Word::text).collect();
        let program = command.words.first().map(Word::text).unwrap_or_default();
        let is_in_place = |word: &String| word.starts_with("-i") || word.starts_with("--in-place");
        let edits = program == "sed" && arguments.iter().any(is_in_place);
        let text = document.or_else(|| match program.as_str() {
            "echo" | "printf" => Some(arguments.join(" ").replace("\\n", "\n").replace("\\t", " ")),
            "sed" if edits => Some(arguments.join("\n")),
            _ => {
                let mut redirects = command.redirects.iter();
                let text = redirects.find(|redirect| redirect.kind == RedirectKind::HereString);
                text.map(|redirect| redirect.target.text())
            }
        });
        let Some(text) = text else { return };
        let edited = arguments.into_iter().filter(|_| edits);
        for path in targets.iter().map(|word| word.text()).chain(edited) {
            if let Some(reader) = reader(&path) {
                let name = programs::base_name(&path).to_owned();
                self.files.push((reader, name, text.clone()));
            }
        }
    }

    /// The line runs a program.
    pub(super) fn starts(&mut self, class: Class, words: &[Word]) {
        match class {
            Class::Quiet | Class::Builtin | Class::Sed => {}
            Class::Git => self.runs_git = true,
            _ => {
                self.runs_others = true;
                for word in words.iter().skip(1) {
                    let text = word.text();
                    let name = text.rsplit(['/', '=', '@']).next().unwrap_or_default();
                    self.arguments.insert(name.to_owned());
                }
            }
        }
    }

    /// Commands in the files that the programs may run.
    pub(super) fn commands(&mut self) -> Candidates {
        let mut found = Candidates::default();
        for (reader, name, text) in std::mem::take(&mut self.files) {
            let is_read = match reader {
                Reader::Any => self.runs_git || self.runs_others,
                Reader::Compiler => self.runs_others,
                Reader::Named => self.arguments.contains(&name),
            };
            if !is_read {
                continue;
            }
            match commands(&text) {
                Some(commands) => found.commands.extend(commands),
                None => found.is_cut = true,
            }
        }
        found
    }
}

/// Returns which programs may run what the file says, none for documents.
fn reader(path: &str) -> Option<Reader> {
    let name = programs::base_name(path);
    let end = name.rsplit_once('.').map(|(_, end)| end).unwrap_or_default();
    let mut folders = path.split('/').rev().skip(1);
    let is_settings = programs::has(SETTINGS, name)
        || programs::has(SETTINGS_ENDS, end)
        || name.contains(".config.")
        || name.ends_with("rc.js")
        || name.ends_with("rc.cjs")
        || folders.any(|folder| programs::has(FOLDERS, folder));
    if is_settings {
        Some(Reader::Any)
    } else if programs::has(CODE_ENDS, end) {
        Some(Reader::Compiler)
    } else {
        (!programs::has(DOCUMENT_ENDS, end)).then_some(Reader::Named)
    }
}

/// Commands that may stand in a text; none when it has too many words.
fn commands(text: &str) -> Option<Vec<String>> {
    let mut found = Vec::new();
    for line in text.lines() {
        let words = words(line);
        if found.len() + words.len() > WORDS {
            return None;
        }
        found.extend((0..words.len()).map(|at| command(&words, at)));
    }
    Some(found)
}

/// Commands that a text in another language calls.
pub(super) fn called(text: &str) -> Vec<String> {
    let words = words(text);
    let calls = words.iter().enumerate().take(WORDS);
    let calls = calls.filter(|(_, word)| programs::has(CALLS, word.rsplit('.').next().unwrap_or(word)));
    calls
        .map(|(at, _)| command(&words, at + 1))
        .filter(|command| !command.is_empty())
        .collect()
}

fn words(line: &str) -> Vec<&str> {
    let is_part = |letter: char| letter.is_alphanumeric() || "_-./+@%~".contains(letter);
    line.split(|letter: char| !is_part(letter))
        .filter(|word| !word.is_empty())
        .collect()
}

/// The words from this one on, with the program's name alone.
fn command(words: &[&str], at: usize) -> String {
    let mut words = words.iter().skip(at).take(COMMAND);
    let Some(first) = words.next() else {
        return String::new();
    };
    let mut command = programs::base_name(first).to_owned();
    for word in words {
        command.push(' ');
        command.push_str(word);
    }
    command
}
