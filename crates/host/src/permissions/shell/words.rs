//! What the words of a command say: which program, behind which other programs, and what rules compare.

/// Words that may stand before a command and are none.
const KEYWORDS: [&str; 16] = [
    "if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac", "time",
    "coproc", "!", "function",
];
/// Programs that run what stands behind them.
const RUNNERS: [&str; 64] = [
    "builtin",
    "busybox",
    "bwrap",
    "cgexec",
    "chpst",
    "chroot",
    "chrt",
    "command",
    "dbus-run-session",
    "doas",
    "docker",
    "dumb-init",
    "eatmydata",
    "entr",
    "env",
    "exec",
    "fakeroot",
    "fd",
    "find",
    "firejail",
    "flock",
    "gdb",
    "hyperfine",
    "ionice",
    "linux32",
    "linux64",
    "ltrace",
    "nice",
    "nohup",
    "nsenter",
    "numactl",
    "parallel",
    "perf",
    "pkexec",
    "podman",
    "prlimit",
    "proot",
    "rlwrap",
    "runuser",
    "script",
    "setarch",
    "setpriv",
    "setsid",
    "setuidgid",
    "sg",
    "ssh",
    "sshpass",
    "stdbuf",
    "strace",
    "su",
    "sudo",
    "systemd-inhibit",
    "systemd-run",
    "taskset",
    "time",
    "timeout",
    "tini",
    "toybox",
    "unbuffer",
    "unshare",
    "valgrind",
    "watch",
    "xargs",
    "xvfb-run",
];
/// Those of them that say with an option that a program follows.
const FINDERS: [&str; 2] = ["find", "fd"];
/// Programs that read their arguments as command lines.
const SHELLS: [&str; 14] = [
    "alias",
    "ash",
    "bash",
    "compgen",
    "dash",
    "eval",
    "fish",
    "ksh",
    "mapfile",
    "readarray",
    "sh",
    "su",
    "trap",
    "zsh",
];
/// Words behind a runner that are looked at as the beginning of another command, at most.
const MAX_BEHIND: usize = 24;

/// A word, its quotes taken off.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Word {
    text: String,
    /// Something in it is only known when it runs.
    dynamic: bool,
    /// Something in it was quoted.
    quoted: bool,
    /// A wild card or a brace in it is not quoted.
    wild: bool,
    brace: bool,
}

impl Word {
    pub(super) fn push(&mut self, letter: char) {
        self.wild |= matches!(letter, '*' | '?' | '[');
        self.brace |= matches!(letter, '{' | '}');
        self.text.push(letter);
    }

    pub(super) fn push_quoted(&mut self, letter: char) {
        self.quoted = true;
        self.text.push(letter);
    }

    /// Something stands here that is not known.
    pub(super) fn expand(&mut self) {
        self.dynamic = true;
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn is_dynamic(&self) -> bool {
        self.dynamic
    }

    pub(super) fn has_quotes(&self) -> bool {
        self.quoted
    }

    fn is_bare(&self, text: &str) -> bool {
        !self.quoted && !self.dynamic && self.text == text
    }

    /// May another word come out of it than the one that stands there?
    fn changes(&self) -> bool {
        self.dynamic || self.brace && !self.is_bare("{}")
    }

    /// Does a program follow that is run for each file that was found?
    fn runs_next(&self) -> bool {
        [
            "-exec",
            "-execdir",
            "-ok",
            "-okdir",
            "-x",
            "-X",
            "--exec",
            "--exec-batch",
        ]
        .contains(&self.text.as_str())
    }

    /// `NAME=...`.
    fn is_assignment(&self) -> bool {
        let Some((name, _)) = self.text.split_once('=') else {
            return false;
        };
        let name = name.trim_end_matches('+');
        let name = name.split_once('[').map_or(name, |(name, _)| name);
        let mut letters = name.chars();
        letters
            .next()
            .is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
            && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    }

    /// So that two commands that differ never look the same: with quotes where a blank or a quote is part of the word.
    fn shown(&self) -> String {
        let is_odd =
            |letter: char| letter.is_whitespace() || letter.is_control() || "'\"\\;|&<>()$`".contains(letter);
        if self.text.is_empty() || self.text.contains(is_odd) {
            format!("'{}'", self.text.replace('\'', "'\\''"))
        } else {
            self.text.clone()
        }
    }
}

/// A command and what stands before it.
#[derive(Debug)]
pub(super) struct Command {
    words: Vec<Word>,
    /// Something stood before it.
    prefixed: bool,
}

impl Command {
    pub(super) fn new(words: Vec<Word>) -> Self {
        let mut skipped = 0;
        for word in &words {
            let is_keyword = KEYWORDS.iter().any(|keyword| word.is_bare(keyword));
            let is_option_of_time = skipped > 0 && word.is_bare("-p");
            if !(is_keyword
                || is_option_of_time
                || word.is_assignment()
                || word.is_bare("{")
                || word.is_bare("}"))
            {
                break;
            }
            skipped += 1;
        }
        Self {
            words: words.into_iter().skip(skipped).collect(),
            prefixed: skipped > 0,
        }
    }

    fn program(&self) -> &str {
        let first = self.words.first().map_or("", Word::text);
        first.rsplit('/').next().unwrap_or(first)
    }

    /// Does it run what stands behind it? The loader of programs does as well, whatever its version.
    fn runs_others(&self) -> bool {
        let program = self.program();
        RUNNERS.contains(&program) || program.starts_with("ld-linux") || program.starts_with("ld-musl")
    }

    fn is_finder(&self) -> bool {
        FINDERS.contains(&self.program())
    }

    /// Is it nothing but a program and words that stand there?
    pub(super) fn is_plain(&self) -> bool {
        let is_keyword = |word: &Word| ["[[", "((", "select"].iter().any(|keyword| word.is_bare(keyword));
        !self.prefixed
            && !self
                .words
                .iter()
                .any(|word| word.changes() || word.is_bare("{") || word.is_bare("}"))
            && self
                .words
                .first()
                .is_none_or(|first| !first.wild && !is_keyword(first))
    }

    /// May it run another program than the one that stands there?
    pub(super) fn is_opaque(&self) -> bool {
        let hides = |word: &Word| word.changes() || word.wild && !["[", "[["].contains(&word.text());
        if self.words.first().is_some_and(hides) {
            return true;
        }
        self.runs_others() && self.runs_unknown() || self.shell_at().is_some_and(|at| self.reads_unknown(at))
    }

    /// Behind a program that runs others: is what it runs not there to be seen?
    fn runs_unknown(&self) -> bool {
        if self.is_finder() {
            let run = self
                .words
                .windows(2)
                .filter(|pair| pair.first().is_some_and(Word::runs_next));
            let mut found = 0;
            for program in run.filter_map(|pair| pair.get(1)) {
                found += 1;
                if program.changes() || found > MAX_BEHIND {
                    return true;
                }
            }
            return false;
        }
        let mut takes_value = false;
        for word in self.words.iter().skip(1).take(MAX_BEHIND) {
            if word.changes() {
                return true;
            }
            let is_option = word.text.starts_with('-');
            let is_number = word.text.starts_with(|first: char| first.is_ascii_digit());
            if !is_option && !takes_value && !is_number && !word.is_assignment() {
                return false;
            }
            takes_value = is_option;
        }
        self.words.len() > MAX_BEHIND
    }

    /// Where a program stands that reads its arguments as command lines.
    fn shell_at(&self) -> Option<usize> {
        let is_shell = |word: &Word| SHELLS.contains(&word.text.rsplit('/').next().unwrap_or_default());
        let looked_at = if self.is_finder() { usize::MAX } else { MAX_BEHIND };
        let at = self.words.iter().take(looked_at).position(is_shell)?;
        (at == 0 || self.runs_others()).then_some(at)
    }

    /// Is what such a program reads not there to be seen?
    fn reads_unknown(&self, at: usize) -> bool {
        let behind = || self.words.iter().skip(at + 1);
        let is_code = |word: &Word| {
            word.text.starts_with('-') && !word.text.starts_with("--") && word.text.contains('c')
        };
        let name = self
            .words
            .get(at)
            .map_or("", |word| word.text.rsplit('/').next().unwrap_or_default());
        if ["alias", "compgen", "eval", "mapfile", "readarray", "su", "trap"].contains(&name)
            || behind().any(is_code)
        {
            return behind().any(Word::changes);
        }
        // Without a file it reads what comes out of another command.
        behind()
            .find(|word| !word.text.starts_with('-'))
            .is_none_or(Word::changes)
    }

    /// As rules that allow see it; none when nothing runs.
    pub(super) fn text(&self) -> Option<String> {
        let shown: Vec<String> = self.words.iter().map(Word::shown).collect();
        (!shown.is_empty()).then(|| shown.join(" "))
    }

    /// Everything that a rule that forbids could mean: with and without quotes, by the program's name alone, and what stands
    /// behind programs that run others, and behind braces.
    pub(super) fn forms(&self) -> Vec<String> {
        // Behind a finder only what its options name is a program.
        let runs_others = self.runs_others() && !self.is_finder();
        let begins = |at: &usize| {
            let before = at.checked_sub(1).and_then(|before| self.words.get(before));
            before.is_none_or(|word| {
                runs_others && *at < MAX_BEHIND || word.is_bare("{") || word.is_bare("do") || word.runs_next()
            })
        };
        let mut forms = Vec::new();
        for at in (0..self.words.len()).filter(begins).take(2 * MAX_BEHIND) {
            let words = self.words.get(at..).unwrap_or_default();
            let shown: Vec<String> = words.iter().map(Word::shown).collect();
            let plain: Vec<&str> = words.iter().map(Word::text).collect();
            forms.push(shown.join(" "));
            forms.push(plain.join(" "));
            if let Some((_, name)) = words.first().and_then(|first| first.text.rsplit_once('/')) {
                let rest = plain.iter().skip(1).copied();
                forms.push(std::iter::once(name).chain(rest).collect::<Vec<_>>().join(" "));
            }
        }
        forms.dedup();
        forms
    }

    /// Arguments that are command lines themselves, or may be.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = self.lines_of_runner();
        let Some(at) = self.shell_at() else {
            return lines;
        };
        let arguments = self.words.iter().skip(at + 1);
        let name = self.words.get(at).map_or("", Word::text);
        if name == "eval" {
            let all: Vec<&str> = arguments.map(Word::text).collect();
            lines.push(all.join(" "));
            return lines;
        }
        let read = arguments.filter(|word| !word.text.starts_with('-'));
        let looked_at = if self.is_finder() { usize::MAX } else { MAX_BEHIND };
        lines.extend(
            read.take(looked_at)
                .map(|word| match (name, word.text.split_once('=')) {
                    ("alias", Some((_, line))) => line.to_owned(),
                    _ => word.text.clone(),
                }),
        );
        lines
    }

    /// Many programs that run others take a whole line as well (`watch`, `flock -c`, `script -c`, `env -S`): every word in
    /// which there could be one.
    fn lines_of_runner(&self) -> Vec<String> {
        if !self.runs_others() || self.is_finder() {
            return Vec::new();
        }
        let behind = self.words.iter().skip(1).take(2 * MAX_BEHIND);
        let texts = behind.map(|word| {
            let text = word.text.as_str();
            let split = text.strip_prefix("--split-string=").or(text.strip_prefix("-S"));
            split.or(text.strip_prefix("--command=")).unwrap_or(text)
        });
        let is_line =
            |text: &&str| text.contains(|letter: char| letter.is_whitespace() || ";|&".contains(letter));
        texts.filter(is_line).map(str::to_owned).collect()
    }
}
