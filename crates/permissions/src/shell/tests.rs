//! Lines that run a forbidden program (`corpus/attacks.txt`), lines of every day (`corpus/ordinary.txt`), generated lines.

use std::path::Path;
use std::time::Duration;

use wire::state::PermissionMode;

use super::Script;
use crate::{Bases, Call, PermissionLayer, PermissionSettings, Policy, Verdict};

mod computed;
mod installed_bash;
mod spellings;

const PROGRAM: &str = "forbidden-program";
const ATTACKS: &str = include_str!("corpus/attacks.txt");
const ORDINARY: &str = include_str!("corpus/ordinary.txt");

/// The CPU time of this thread: unlike the clock, it does not count what else a busy machine does.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap(),
        u32::try_from(time.tv_nsec).unwrap(),
    )
}

/// A line of a corpus: its group, the program that it needs, and the line.
struct Line {
    group: &'static str,
    needs: Option<&'static str>,
    text: String,
}

/// `⏎` stands for the end of a line and `⇥` for a tab; `@program` in front means that the line needs this program.
fn lines(corpus: &'static str) -> Vec<Line> {
    let mut group = "";
    let mut lines = Vec::new();
    for line in corpus.lines().filter(|line| !line.is_empty()) {
        if let Some(name) = line.strip_prefix("== ") {
            group = name;
            continue;
        }
        let (needs, text) = match line.strip_prefix('@').and_then(|rest| rest.split_once(' ')) {
            Some((needs, text)) => (Some(needs), text),
            None => (None, line),
        };
        let text = text.replace('⏎', "\n").replace('⇥', "\t");
        lines.push(Line { group, needs, text });
    }
    lines
}

fn policy(mode: &str, allow: &[String], ask: &[String], deny: &[String]) -> Policy {
    let user = PermissionLayer {
        mode: PermissionMode::parse(mode),
        allow: allow.to_vec(),
        ask: ask.to_vec(),
        deny: deny.to_vec(),
    };
    let settings = PermissionSettings {
        user,
        project: PermissionLayer::default(),
    };
    let bases = Bases {
        cwd: Path::new("/nowhere"),
        home: None,
        real_path: Path::to_path_buf,
    };
    Policy::new(&settings, None, bases).0
}

fn rule() -> Vec<String> {
    vec![format!("bash({PROGRAM} *)")]
}

fn is_refused(policy: &Policy, line: &str) -> bool {
    matches!(policy.judge(&Call::command("bash", line)), Verdict::Refuse(_))
}

#[test]
fn deny_rule_blocks_every_attack() {
    let policy = policy("auto", &[], &[], &rule());
    let lines = lines(ATTACKS);
    let passed: Vec<String> = lines
        .iter()
        .filter(|line| !is_refused(&policy, &line.text))
        .map(|line| format!("{}: {}", line.group, line.text))
        .collect();
    assert!(
        passed.is_empty(),
        "{} of {}:\n{}",
        passed.len(),
        lines.len(),
        passed.join("\n")
    );
    assert!(lines.len() >= 2_300, "{}", lines.len());
}

#[test]
fn file_that_no_program_reads_blocks_nothing() {
    let policy = policy("auto", &[], &[], &rule());
    for line in [
        "echo 'uses forbidden-program' > notes.md; git add notes.md; npm test",
        "echo 'forbidden-program' > list.txt; git add list.txt",
        "printf 'all:\\n\\tforbidden-program\\n' > Makefile; ls; cat Makefile",
        "echo 'system(\"forbidden-program\")' > x.lua; git commit -am x",
        "printf 'all:\\n\\ttrue\\n' > Makefile; make",
        "unlisted --title 'a system for builds'",
    ] {
        assert!(!is_refused(&policy, line), "{line}");
    }
    let long = "word ".repeat(3_000);
    let line = format!("cat > Makefile <<'E'\n{long}\nE\nmake\n");
    assert!(is_refused(&policy, &line), "a text that is not read to its end");
}

#[test]
fn command_behind_long_input_is_refused() {
    let policy = policy("auto", &[], &[], &rule());
    let lines = "p\n".repeat(300);
    let line = |last: &str| format!("ed notes.txt <<'END'\n{lines}{last}\nEND\n");
    assert!(is_refused(&policy, &line("!forbidden-program")));
    assert!(is_refused(
        &policy,
        "ed notes.txt <<'END'\n!forbidden-program\nEND\n"
    ));
    assert!(!is_refused(&policy, "ed notes.txt <<'END'\np\nEND\n"));
}

#[test]
fn command_behind_many_words_is_refused() {
    let policy = policy("auto", &[], &[], &rule());
    let words = |count: usize, word: &str| format!("{word} ").repeat(count);
    for line in [
        format!("CHECKER='{}forbidden-program' git status", words(40, "a")),
        format!("CHECKER='{}forbidden-program' git status", words(4_000, "a")),
        format!("flags='{}-x forbidden-program' && run $flags", words(40, "-a")),
        format!("flags='{}-x forbidden-program' && run $flags", words(400, "-a")),
        "tar cfbLVI a.tar 20 100 label forbidden-program x".to_owned(),
    ] {
        assert!(is_refused(&policy, &line), "{line}");
    }
    let harmless = format!("MESSAGE='{}' && echo \"$MESSAGE\"", words(40, "word"));
    assert!(!is_refused(&policy, &harmless));
}

#[test]
fn grouped_option_needs_rule_for_its_command() {
    let allow = ["bash(tar *)".to_owned(), "bash(rsync *)".to_owned()];
    let policy = policy("ask", &allow, &[], &[]);
    for line in [
        "tar -xIprogram -f a",
        "tar xIf program a",
        "rsync -ae program a h:b",
    ] {
        assert_eq!(policy.judge(&Call::command("bash", line)), Verdict::Ask, "{line}");
    }
    for line in ["tar -xzf a", "tar xzf a", "rsync -az a h:b"] {
        assert_eq!(policy.judge(&Call::command("bash", line)), Verdict::Run, "{line}");
    }
}

/// Each of these words could be the beginning of a command that has all words behind it, so that their number is a power of that of the
/// words. Words beyond the bound of work make the line unclear.
#[test]
fn repeated_programs_with_options_are_refused_at_bound() {
    let policy = policy("auto", &[], &[], &rule());
    for unit in ["git -* ", "tar --aa ", "find $x "] {
        assert!(!is_refused(&policy, unit), "{unit}");
        assert!(is_refused(&policy, &unit.repeat(2_000)), "{unit}");
    }
}

#[test]
fn git_subcommand_by_other_names_is_refused() {
    let policy = policy("auto", &[], &[], &["bash(git push *)".to_owned()]);
    for line in [
        "git config alias.p push; git p",
        "git config set Alias.p 'push origin'",
        "printf '[alias]\\n\\tp = push origin\\n' >> .git/config; git p",
        "git --attr-source HEAD push origin",
        "git --shallow-file x push",
        "git for-each-repo --config=x push",
        "git for-each-repo --conf x -- push origin",
        "/usr/lib/git-core/git-push origin",
        "find . -exec git-push origin \\;",
    ] {
        assert!(is_refused(&policy, line), "{line}");
    }
    for line in [
        "git config alias.l 'log --oneline'",
        "git --attr-source HEAD log",
        "git for-each-repo --config=x fetch",
        "git-lfs ls-files",
    ] {
        assert!(!is_refused(&policy, line), "{line}");
    }
}

#[test]
fn argument_behind_variable_is_no_program_for_ordinary_rules() {
    let policy = policy("auto", &[], &[], &["bash(rm *)".to_owned()]);
    for line in ["git -C \"$repo\" rm --cached a", "git --git-dir=\"$d\" rm x"] {
        assert!(!is_refused(&policy, line), "{line}");
    }
    assert!(is_refused(&policy, "find . $x rm x"));
}

#[test]
fn command_at_any_depth_is_refused() {
    let policy = policy("auto", &[], &[], &rule());
    for depth in 0..40 {
        let prefix = "env ".repeat(depth);
        for command in [
            "forbidden-program x",
            "unlisted -c 'forbidden-program x'",
            "CHECKER='forbidden-program x' unlisted",
            "unlisted env env 'forbidden-program x'",
            "unlisted --run=\"env env env 'env forbidden-program x'\"",
        ] {
            let line = format!("{prefix}{command}");
            assert!(is_refused(&policy, &line), "{line}");
        }
    }
}

#[test]
fn ask_rule_asks_for_every_attack() {
    let policy = policy("auto", &[], &rule(), &[]);
    for line in lines(ATTACKS) {
        let verdict = policy.judge(&Call::command("bash", &line.text));
        assert_eq!(verdict, Verdict::Ask, "{}", line.text);
    }
}

#[test]
fn allow_rules_allow_no_attack() {
    let allow = [
        ":", "[", "cat", "cd", "declare", "echo", "eval-not", "export", "getopts", "git log", "grep", "let",
        "ls", "mapfile", "printf", "read", "test", "true", "unset", "wait",
    ];
    let allow: Vec<String> = allow.iter().map(|name| format!("bash({name} *)")).collect();
    let policy = policy("ask", &allow, &[], &[]);
    for line in lines(ATTACKS) {
        let verdict = policy.judge(&Call::command("bash", &line.text));
        assert_ne!(verdict, Verdict::Run, "{}", line.text);
    }
    for line in [
        "printf '%s' a",
        "test -f a && echo b",
        "[ -n a ]",
        "read -r a",
        "printf -v a b",
        "test -v a",
        "cat a | grep b",
    ] {
        let verdict = policy.judge(&Call::command("bash", line));
        assert_eq!(verdict, Verdict::Run, "{line}");
    }
}

/// Ordinary lines that a deny rule for another program blocks because what they do does not show.
const BLOCKED: [&str; 2] = [
    "eval \"$(ssh-agent -s)\"",
    "while read -r a b; do echo $((a + b)); done < numbers",
];

#[test]
fn deny_rule_for_other_program_allows_ordinary_lines() {
    let policy = policy("auto", &[], &[], &rule());
    let lines = lines(ORDINARY);
    for line in &lines {
        let is_blocked = is_refused(&policy, &line.text);
        assert_eq!(is_blocked, BLOCKED.contains(&line.text.as_str()), "{}", line.text);
    }
    assert!(lines.len() >= 250);
}

/// Lines that do nothing but run commands with the words that stand there.
#[test]
fn lines_without_expansions_are_plain() {
    let expands = |text: &str| {
        let text = text.replace("2>/dev/null", "").replace("2>&1", "");
        text.contains(['$', '<', '>', '{', '`', '\n', '!', '('])
    };
    let is_compound = |text: &str| {
        let first = text.split_whitespace().next().unwrap_or_default();
        first.contains('=') || ["time", "for", "while", "if", "case", "[["].contains(&first)
    };
    let mut count = 0;
    for line in lines(ORDINARY) {
        // A rule for the program does not allow a program that a setting names.
        let names_programs = line.group == "settings that may name programs";
        if expands(&line.text) || is_compound(&line.text) || line.group == "scripts" || names_programs {
            continue;
        }
        assert!(Script::parse(&line.text).is_plain(), "{}", line.text);
        count += 1;
    }
    assert!(count >= 150, "{count}");
}

#[test]
fn nested_and_unclosed_constructs_are_refused() {
    let policy = policy("auto", &[], &[], &rule());
    let openers = [
        "(",
        "((",
        "{ ",
        "$(",
        "$((",
        "${a:-",
        "`",
        "\"$(",
        "'",
        "\"",
        "<(",
        "echo $(",
        "if ",
        "while ",
        "case x in x) ",
        "f() { ",
        "[[ ( ",
        "a[",
        "$[",
        "cat <<E;",
        "! ",
        "time ",
        "coproc ",
        "function f ",
        "a=(",
        "${a[",
        "bash -c '",
        "| ",
        "for ((",
        "<<<",
        "&&",
        "eval ",
        "\\\n",
    ];
    for opener in openers {
        let text = opener.repeat(10_000);
        for line in [
            format!("{text}{PROGRAM}"),
            format!("echo {text}\n{PROGRAM}"),
            format!("{text} {PROGRAM}\n{text}"),
        ] {
            assert!(is_refused(&policy, &line), "{opener}");
        }
    }
    for (opener, closer) in [
        ("( ", ")"),
        ("{ ", ";}"),
        ("echo $(", ")"),
        ("\"$(", ")\""),
        ("echo ${a:-", "}"),
        ("echo $((", "))"),
    ] {
        for depth in [1, 5, 20, 35, 100, 3_000] {
            let line = format!("{}{PROGRAM}{}", opener.repeat(depth), closer.repeat(depth));
            let inner = format!("{}$({PROGRAM}){}", opener.repeat(depth), closer.repeat(depth));
            assert!(is_refused(&policy, &inner), "{opener} {depth}");
            let runs = !opener.contains("${") && !opener.contains("$((");
            assert!(!runs || is_refused(&policy, &line), "{opener} {depth}");
        }
    }
}

/// A generator of lines that run the program, seeded so that a failure can be repeated.
struct Generator(u64);

impl Generator {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }

    /// The program's name, written in some way.
    fn program(&mut self) -> String {
        let at = 1 + self.below(PROGRAM.len() - 2);
        let (before, after) = PROGRAM.split_at(at);
        match self.below(7) {
            0 => format!("{before}''{after}"),
            1 => format!("'{before}'\"{after}\""),
            2 => format!("\\{PROGRAM}"),
            3 => format!("{before}\\\n{after}"),
            4 => format!("$'\\x{:02x}{}'", PROGRAM.as_bytes()[0], &PROGRAM[1..]),
            5 => format!("{{{PROGRAM},}}"),
            _ => PROGRAM.to_owned(),
        }
    }

    /// A line that runs the program, in this many constructs.
    fn line(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.program();
        }
        let inner = self.line(depth - 1);
        let wrapped = self.pick(&[
            "true && @",
            "false || @",
            "@; true",
            "true\n@",
            "{ @\n}",
            "( @\n)",
            "if true; then @\nfi",
            "if @\nthen :; fi",
            "for i in 1; do @\ndone",
            "until @\ndo break; done",
            "while @\ndo break; done",
            "f() { @\n}; f",
            "function f { @\n}\nf",
            "! @",
            "true | @",
            "case x in x) @\n;; esac",
            "x=$(@\n)",
            "echo \"$(@\n)\"",
            "echo \"${x:-$(@\n)}\"",
            "cat <(@\n) >/dev/null",
            "cat <<E\n$(@\n)\nE",
            "cat <<'E'\n$(\nE\n@",
            "[[ -n $(@\n) ]]",
            "echo $((1 + $(@\n) 1))",
            "echo ${a[$(@\n)1]}",
            "coproc { @\n}; wait",
            "trap : EXIT; @",
            "A=1\n@",
            "time -p @",
            "declare y=$(@\n)",
            ": \"$(: \"$(@\n)\")\"",
        ]);
        if self.below(4) == 0 && !inner.contains('\'') {
            let runner = self.pick(&[
                "bash -c '@'",
                "eval '@'",
                "sh -c 'bash -c \"$0\"' '@'",
                "bash <<< '@'",
                "env bash -c '@'",
                "timeout 5 bash -c '@'",
                "echo x | xargs -I{} bash -c '@'",
                "find . -maxdepth 0 -exec bash -c '@' \\;",
                "bash -s <<'EOT'\n@\nEOT",
                "nice bash -ec '@'",
                "trap '@' EXIT",
                "printf '%s' '@' | bash",
                ". <(printf '%s' '@')",
                "env -S \"bash -c '@'\"",
            ]);
            return runner.replace('@', &inner);
        }
        wrapped.replace('@', &inner)
    }
}

#[test]
fn deny_rule_blocks_generated_lines() {
    let policy = policy("auto", &[], &[], &rule());
    for seed in 0..20_000 {
        let mut generator = Generator(seed);
        let depth = generator.below(6);
        let line = generator.line(depth);
        assert!(is_refused(&policy, &line), "seed {seed}: {line}");
    }
}
