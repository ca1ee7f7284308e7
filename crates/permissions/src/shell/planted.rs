//! Commands in text that is not a line of a shell: settings and code that a line writes to a file, and code in an argument.
//! Which words of it may be a command. They are compared with rules in `judge`.

use std::collections::BTreeSet;

use super::ast::{RedirectKind, Simple, Word};
use super::computed;
use super::programs::{self, Class};
use super::values::Candidates;

/// Words of a text that are read; a text with more could name any program.
const WORDS: usize = 2_000;
/// Words of a command that are compared.
const COMMAND: usize = 8;
/// Bytes of the texts of all files. A line can write a text to many files.
const BYTES: usize = 1 << 20;

/// Files with commands that programs look for by themselves.
const SETTINGS: &str = " .bazelrc .curlrc .emacs .envrc .exrc .gdbinit .gitattributes .gitconfig .gitmodules .inputrc .justfile \
    .lesskey .lldbinit .muttrc .my.cnf .nanorc .npmrc .pre-commit-config.yaml .psqlrc .screenrc .sqliterc .tmux.conf .vimrc \
    .wgetrc .yarnrc .yarnrc.yml BUILD BUILD.bazel CMakeLists.txt Containerfile Dockerfile GNUmakefile Gemfile Justfile Makefile \
    Procfile Rakefile Taskfile.yaml Taskfile.yml Vagrantfile WORKSPACE build.ninja build.xml compose.yaml compose.yml config \
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
/// Programs that copy their input to a file in their arguments.
const COPYING: &str = " cp dd install sponge tee ";
/// What programs of other languages call to run a command.
const CALLS: &str = " call exec execFile execFileSync execSync execl execlp execv execve execvp getoutput popen run shell \
    spawn spawnSync subprocess sy sys syscmd esyscmd system write18 ";

/// Who reads a file by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    /// Any program, such as `git` or `make`.
    Any,
    /// Any program except the writer of the file.
    Another,
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
    /// Bytes of the texts of these files, and of further ones that are left out.
    bytes: usize,
    /// What the commands of the pipeline at hand say, as far as it stands in the line.
    said: Vec<String>,
    /// What all commands so far say.
    texts: Vec<String>,
    runs_git: bool,
    /// How many programs that run others.
    runs_others: usize,
    /// Arguments of other programs than `git`.
    arguments: BTreeSet<String>,
}

impl Planted {
    /// A command writes to these files: its text, a here-document, or what commands before it in a pipeline say.
    pub(super) fn writes(
        &mut self,
        command: &Simple,
        targets: &[Word],
        document: Option<String>,
        is_fed: bool,
    ) {
        let arguments: Vec<String> = command.words.iter().skip(1).map(Word::text).collect();
        let program = command.words.first().map(Word::text).unwrap_or_default();
        let program = programs::base_name(&program);
        // Behind other letters, and shortened, too: `-Ei` and `--in`.
        let is_in_place = |word: &String| {
            let letters = word.strip_prefix('-').unwrap_or_default();
            let behind = letters.trim_start_matches(['E', 'b', 'n', 'r', 's', 'u', 'z']);
            behind.starts_with(['i', 'I']) || word.starts_with("--i")
        };
        let edits = ["sed", "gsed"].contains(&program) && arguments.iter().any(is_in_place);
        let text = document.or_else(|| text_of(command, program, &arguments, edits));
        if !is_fed {
            self.said.clear();
        }
        self.said.extend(text.clone());
        self.texts.extend(text.clone());
        let copies = edits || programs::has(COPYING, program);
        let named = arguments.iter().filter(|_| copies);
        let named = named.map(|path| path.strip_prefix("of=").unwrap_or(path).to_owned());
        let paths: Vec<String> = targets.iter().map(Word::text).chain(named).collect();
        let texts = match text {
            _ if paths.is_empty() => Vec::new(),
            Some(text) => vec![text],
            None => self.said.clone(),
        };
        for text in texts {
            for path in &paths {
                if let Some(reader) = reader(path) {
                    self.plant(reader, programs::base_name(path), &text);
                }
            }
            if targets.iter().any(computed::is_in) {
                // It may be the name of any file.
                self.plant(Reader::Any, "", &text);
            }
        }
        let is_code = matches!(
            programs::class(program),
            Class::Awk | Class::Python | Class::Perl | Class::Node | Class::Interpreter(_)
        );
        if is_code {
            let said = self.said.iter().map(String::as_str);
            let code: Vec<&str> = arguments.iter().map(String::as_str).chain(said).collect();
            self.writes_by_code(&code.join("\n"));
        }
    }

    /// How many texts commands have said so far.
    pub(super) fn said(&self) -> usize {
        self.texts.len()
    }

    /// A group of commands writes to this file what they said behind the first texts.
    pub(super) fn group_writes(&mut self, target: &Word, said: usize) {
        let path = target.text();
        let reader = match computed::is_in(target) {
            true => Some(Reader::Any),
            false => reader(&path),
        };
        let Some(reader) = reader else { return };
        let texts = self.texts.get(said..).unwrap_or_default().join("\n");
        self.plant(reader, programs::base_name(&path), &texts);
    }

    fn plant(&mut self, reader: Reader, name: &str, text: &str) {
        self.bytes += text.len();
        if self.bytes <= BYTES {
            self.files.push((reader, name.to_owned(), text.to_owned()));
        }
    }

    /// Code in another language may write settings that it names.
    fn writes_by_code(&mut self, code: &str) {
        let writes = ["write", ">", "'w", "\"w", "'a", "\"a"]
            .iter()
            .any(|sign| code.contains(sign));
        // Without quotes it is the name of a variable.
        let has_quoted = code.contains("'config'") || code.contains("\"config\"");
        let is_settings = |word: &&str| {
            let mut folders = word.split('/').rev().skip(1);
            (*word != "config" || has_quoted) && programs::has(SETTINGS, programs::base_name(word))
                || folders.any(|folder| programs::has(FOLDERS, folder))
        };
        if writes && words(code).iter().any(is_settings) {
            // Escaped ends of lines stand before words.
            let text = code.replace("\\n", "\n").replace("\\t", " ");
            self.plant(Reader::Another, "", &text);
        }
    }

    /// The line runs a program.
    pub(super) fn starts(&mut self, class: Class, words: &[Word]) {
        match class {
            Class::Quiet | Class::Builtin | Class::Sed => {}
            Class::Git => self.runs_git = true,
            _ => {
                self.runs_others += 1;
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
        let mut found = Candidates {
            is_cut: self.bytes > BYTES,
            ..Candidates::default()
        };
        for (reader, name, text) in std::mem::take(&mut self.files) {
            let is_read = match reader {
                Reader::Any => self.runs_git || self.runs_others > 0,
                Reader::Another => self.runs_git || self.runs_others > 1,
                Reader::Compiler => self.runs_others > 0,
                Reader::Named => self.arguments.contains(&name),
            };
            if !is_read {
                continue;
            }
            match commands(&text) {
                Some(commands) => {
                    let is_for_git = matches!(reader, Reader::Any | Reader::Another);
                    if self.runs_git && is_for_git && text.to_ascii_lowercase().contains("alias") {
                        // The value of an alias is a subcommand with its arguments.
                        let aliases = commands.iter().map(|command| format!("git {command}"));
                        found.commands.extend(aliases);
                    }
                    found.commands.extend(commands);
                }
                None => found.is_cut = true,
            }
        }
        found
    }
}

/// What a command writes, if it stands in the line.
fn text_of(command: &Simple, program: &str, arguments: &[String], edits: bool) -> Option<String> {
    match program {
        "echo" | "printf" => Some(arguments.join(" ").replace("\\n", "\n").replace("\\t", " ")),
        _ if edits => Some(arguments.join("\n")),
        _ => {
            let mut redirects = command.redirects.iter();
            let text = redirects.find(|redirect| redirect.kind == RedirectKind::HereString);
            text.map(|redirect| redirect.target.text())
        }
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
