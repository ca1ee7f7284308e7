//! Programs that run the values of some of their options.

use super::ast::Word;
use super::steps::{Input, Language, Step, Steps};

/// Options of programs whose values are commands, by program.
///
/// An option that ends with `@` takes a file that names commands or holds code. A program without options here is judged by
/// `value_options` alone.
const COMMANDS: [(&str, &[&str]); 66] = [
    ("ansible", &["-a"]),
    ("apt", &APT),
    ("apt-cache", &APT),
    ("apt-get", &APT),
    ("aptitude", &APT),
    ("c++", &COMPILER),
    ("cargo", &["--config"]),
    ("cc", &COMPILER),
    ("clang", &COMPILER),
    ("clang++", &COMPILER),
    ("cmake", &["-P@", "-E"]),
    ("ctags", &["--options@"]),
    ("diff3", &["--diff-program"]),
    ("dnf", &["--setopt", "-c@", "--config@"]),
    (
        "dpkg",
        &["--pre-invoke", "--post-invoke", "--status-logger", "--pager"],
    ),
    ("dpkg-query", &["--pager"]),
    (
        "eslint",
        &[
            "-c@",
            "--config@",
            "--rulesdir@",
            "--plugin@",
            "--parser@",
            "-f@",
            "--format@",
        ],
    ),
    ("flake8", &["--config@", "--append-config@"]),
    ("g++", &COMPILER),
    ("gcc", &COMPILER),
    ("getconf", &["-v"]),
    ("gfortran", &COMPILER),
    ("gh", &[]),
    ("glab", &[]),
    (
        "gpg",
        &[
            "--photo-viewer",
            "--agent-program",
            "--dirmngr-program",
            "--keyboxd-program",
            "--exec-path",
            "--options@",
        ],
    ),
    ("install", &["--strip-program"]),
    ("ip", &["-b@", "-batch@"]),
    ("journalctl", &["--pager"]),
    (
        "less",
        &[
            "+",
            "--lesskey-content",
            "--lesskey-src@",
            "--lesskey-file@",
            "-k@",
        ],
    ),
    ("make", &["--eval", "-E", "SHELL", "-f", "--file", "--makefile"]),
    ("gmake", &["--eval", "-E", "SHELL", "-f", "--file", "--makefile"]),
    (
        "man",
        &[
            "-P",
            "--pager",
            "-H",
            "--html",
            "-X",
            "-T",
            "--preprocessor",
            "-C@",
            "--config-file@",
        ],
    ),
    ("more", &["+"]),
    ("mypy", &["--python-executable", "--config-file@"]),
    ("mysql", &["-e", "--execute", "--pager"]),
    ("nc", &["-e", "-c", "--exec", "--sh-exec"]),
    ("ncat", &["-e", "-c", "--exec", "--sh-exec", "--lua-exec"]),
    ("nmap", &["--script@"]),
    (
        "npm",
        &[
            "-c",
            "--call",
            "--script-shell",
            "--node-options",
            "--editor",
            "--viewer",
            "--git",
        ],
    ),
    ("openssl", &["-engine", "-provider-path", "-config@"]),
    ("pacman", &["--config@", "--hookdir@"]),
    ("pip", &["--python", "--editor"]),
    ("pnpm", &["-c", "--script-shell", "--shell-mode"]),
    ("prettier", &["--config@", "--plugin@"]),
    ("psql", &["-c", "--command", "-f@", "--file@", "-o", "--output"]),
    ("pylint", &["--init-hook", "--load-plugins@", "--rcfile@"]),
    ("pyright", &["--pythonpath", "-p@", "--project@"]),
    ("rg", &["--pre", "--hostname-bin"]),
    ("rsync", &["-e", "--rsh", "--rsync-path"]),
    ("rustc", &["-C", "--codegen", "-Z"]),
    (
        "rustdoc",
        &["-C", "--codegen", "-Z", "--runtool", "--test-builder"],
    ),
    ("scp", &["-S", "-o", "-D", "-F@"]),
    ("sftp", &["-S", "-o", "-D", "-F@"]),
    ("socat", &["EXEC", "SYSTEM", "exec", "system"]),
    ("sort", &["--compress-program", "--compress-prog"]),
    ("split", &["--filter"]),
    ("sqlite3", &["-cmd", "--cmd", "-init@", "--init@"]),
    ("ssh-add", &["-s"]),
    ("ssh-keygen", &["-D", "-w"]),
    (
        "tar",
        &[
            "-I",
            "--use-compress-program",
            "--to-command",
            "--checkpoint-action",
            "--rsh-command",
            "--rmt-command",
            "-F",
            "--info-script",
            "--new-volume-script",
        ],
    ),
    ("bsdtar", &["--use-compress-program", "-I"]),
    ("tcpdump", &["-z"]),
    ("wget", &["--use-askpass", "-e", "--execute", "--config@"]),
    ("yarn", &["--script-shell"]),
    ("yum", &["--setopt", "-c@", "--config@"]),
    ("zip", &["-TT", "--unzip-command"]),
];
/// Options of `apt` and its relatives. A setting may be a command.
const APT: [&str; 4] = ["-o", "--option", "-c@", "--config-file@"];
/// Options of compilers: programs that they run, and where they look for them.
const COMPILER: [&str; 10] = [
    "-wrapper",
    "-fuse-ld",
    "--ld-path",
    "-B",
    "-fplugin",
    "-fpass-plugin",
    "-specs@",
    "--specs@",
    "-ccc-",
    "--config@",
];
/// Commands in one address of `socat` that are looked at. Each takes the rest of the word.
const MAX_ADDRESSES: usize = 8;
/// Programs whose options of one letter take commands only.
const GROUPING: [&str; 8] = ["bsdtar", "nc", "ncat", "rsync", "scp", "sftp", "tar", "tcpdump"];
/// The options whose values the program runs.
pub(super) fn of(program: &str) -> Option<&'static [&'static str]> {
    let found = COMMANDS.iter().find(|(name, _)| *name == program);
    found.map(|(_, options)| *options)
}

/// A program that runs the values of options.
pub(super) fn value_options<'w>(
    steps: &mut Steps<'w>,
    name: &str,
    options: &[&str],
    arguments: &'w [Word],
    input: &'w Input,
) {
    for (at, word) in arguments.iter().enumerate() {
        let text = word.text();
        for option in options {
            let (option, is_file) = option
                .strip_suffix('@')
                .map_or((*option, false), |option| (option, true));
            let Some(rest) = text.strip_prefix(option) else {
                continue;
            };
            if is_file {
                let value = match rest.strip_prefix('=').unwrap_or(rest) {
                    "" => arguments.get(at + 1).cloned(),
                    _ if word.changes() => Some(word.clone()),
                    value => Some(Word::literal_of(value)),
                };
                value.iter().for_each(|value| read_file(steps, value, input));
            } else if rest.is_empty() {
                arguments
                    .get(at + 1)
                    .into_iter()
                    .for_each(|value| option_value(steps, name, value, ""));
            } else if !option.starts_with("--") || rest.starts_with('=') {
                option_value(steps, name, word, option);
            }
        }
        if let Some(file) = text.strip_prefix('@') {
            // More options.
            let file = Word::literal_of(file);
            read_file(steps, if word.changes() { word } else { &file }, input);
        }
        suspect(steps, arguments, at);
        grouped(steps, name, options, arguments, at);
        if let Some(long) = text.strip_prefix("--")
            && options
                .iter()
                .any(|option| is_shortened(option.trim_start_matches('-').trim_end_matches('@'), long))
        {
            option_value(steps, name, word, "");
            arguments
                .get(at + 1)
                .into_iter()
                .for_each(|value| option_value(steps, name, value, ""));
        }
    }
    other_arguments(steps, name, arguments, input);
}

/// Programs that other arguments, or the input, of these programs name.
fn other_arguments<'w>(steps: &mut Steps<'w>, name: &str, arguments: &'w [Word], input: &'w Input) {
    if name == "cmake"
        && let Some(at) = arguments.iter().position(|word| word.text() == "-E")
    {
        steps.program(arguments.get(at + 1..).unwrap_or_default(), input);
    }
    let is_command = |word: &Word| {
        let text = word.text();
        text.starts_with('.') && !text.starts_with("./") && !text.starts_with("..")
    };
    let runs_editor = |word: &Word| is_editing(&word.text());
    if name == "sqlite3" && arguments.iter().any(|word| is_command(word) || runs_editor(word)) {
        steps.hide();
    }
    let reads = |word: &Word| {
        word.text() == "-"
            || word.text() == "-f-"
            || word.text().ends_with("=-")
            || word.text().contains("/dev/")
    };
    let reads_input = match name {
        "make" | "gmake" => {
            if arguments.iter().any(reads) && !matches!(input, Input::Session) {
                steps.hide();
            }
            make_variables(steps, arguments);
            false
        }
        "ip" => {
            network(steps, arguments);
            false
        }
        "install" => {
            for word in arguments.iter().filter(|word| !word.text().starts_with('-')) {
                steps.push(Step::Makes(word.text()));
            }
            false
        }
        "gh" | "glab" => {
            repository(steps, arguments, input);
            false
        }
        "psql" | "sqlite3" | "mysql" | "sftp" => true,
        "socat" => {
            arguments.iter().for_each(|word| addresses(steps, word));
            false
        }
        "tar" | "bsdtar" => {
            // A list of files in the input may have options.
            if reads_list(arguments) && !matches!(input, Input::Session | Input::Names) {
                steps.hide();
            }
            false
        }
        _ => false,
    };
    if reads_input {
        match input {
            Input::Session => {}
            Input::Text(text) if text.literal().is_some_and(|text| is_quiet_sql(&text)) => {}
            _ => steps.hide(),
        }
    }
    if ["npm", "pnpm", "yarn"].contains(&name) {
        // `yarn program` and `npm config set script-shell program`.
        arguments.iter().for_each(|word| steps.guess(&word.text()));
        package_program(steps, arguments, input);
    }
}

/// `socat - Exec:program` and `socat - x!!SHELL:line`, in any letters.
fn addresses(steps: &mut Steps<'_>, word: &Word) {
    let text = word.text();
    let small = text.to_ascii_lowercase();
    for keyword in ["exec:", "system:", "shell:"] {
        for (count, (at, _)) in small.match_indices(keyword).enumerate() {
            if word.changes() || count >= MAX_ADDRESSES {
                steps.hide();
            }
            if count >= MAX_ADDRESSES {
                break;
            }
            let line = text.get(at + keyword.len()..).unwrap_or_default();
            steps.line(line);
            // Options stand behind a comma.
            steps.guess(line.split(',').next().unwrap_or_default());
        }
    }
}

/// Returns true for `tar -T -` and `tar --files-from=-`.
fn reads_list(arguments: &[Word]) -> bool {
    let is_list = |option: &str| {
        let is_group = !option.starts_with("--") && option.ends_with('T');
        is_group || option.len() > 4 && "--files-from".starts_with(option)
    };
    let texts: Vec<String> = arguments.iter().map(Word::text).collect();
    let is_input = |text: &str| text == "-" || text.starts_with("/dev/");
    texts
        .windows(2)
        .any(|pair| matches!(pair, [option, file] if is_list(option) && is_input(file)))
        || texts.iter().any(|text| {
            let glued = text.split_once(['=', 'T']);
            glued.is_some_and(|(option, file)| is_input(file) && (option == "-" || is_list(option)))
        })
}

/// Compares what an option may name, also if the option is not known: the words in it, and the word behind a long one.
fn suspect(steps: &mut Steps<'_>, arguments: &[Word], at: usize) {
    let text = arguments.get(at).map(Word::text).unwrap_or_default();
    if text.contains('=') {
        text.split(['=', ','])
            .skip(1)
            .for_each(|piece| steps.guess(piece));
    }
    if text.starts_with('-') && text.len() > 2 {
        let behind = arguments.get(at + 1..).unwrap_or_default();
        let value = behind.first().map(Word::text).unwrap_or_default();
        if !value.is_empty() && !value.starts_with('-') {
            // It may also be a value like any other, which needs no rule.
            steps.guess_words("", behind);
            value.split(',').for_each(|piece| steps.guess(piece));
        }
    }
}

/// Letters of options may stand together, as in `rsync -aeprogram`, and in front of `tar` without a dash.
fn grouped(steps: &mut Steps<'_>, name: &str, options: &[&str], arguments: &[Word], at: usize) {
    let Some(word) = arguments.get(at) else {
        return;
    };
    let text = word.text();
    let letters = match text.strip_prefix('-') {
        Some(letters) => letters,
        None if at == 0 && ["tar", "bsdtar"].contains(&name) => &text,
        None => return,
    };
    if letters.starts_with('-') {
        return;
    }
    let valued = options
        .iter()
        .filter(|option| option.len() == 2 && !option.starts_with("--"));
    for letter in valued.filter_map(|option| option.strip_prefix('-')) {
        let Some((before, rest)) = letters.split_once(letter) else {
            continue;
        };
        steps.guess(rest);
        // Behind another letter stands its value, as in `tar -C/Files`.
        if GROUPING.contains(&name) && before.chars().all(char::is_alphanumeric) {
            // A rule that allows the program does not allow the command, as where the option stands alone. This line stands for it.
            steps.line(":");
        }
        // The old form of `tar` takes the values in the order of the letters.
        for value in arguments.iter().skip(at + 1).take(letters.len()) {
            if value.changes() && ["tar", "bsdtar", "rsync"].contains(&name) {
                steps.hide();
            }
            steps.guess(&value.text());
        }
    }
}

/// A file with commands or code.
fn read_file(steps: &mut Steps<'_>, word: &Word, input: &Input) {
    match word.literal() {
        None => steps.hide(),
        Some(path) if path == "-" || path.starts_with("/dev/") || path.starts_with("/proc/") => {
            if !matches!(input, Input::Session) {
                steps.hide();
            }
        }
        Some(path) => steps.runs(&path, Language::Other),
    }
}

/// `make CC=program`: the rules run what variables name.
fn make_variables(steps: &mut Steps<'_>, arguments: &[Word]) {
    for word in arguments {
        let text = word.text();
        if let Some((name, value)) = text.split_once('=').filter(|_| !text.starts_with('-')) {
            let name = name.trim_end_matches([':', '?', '+', '!']);
            if word.changes() {
                steps.hide();
            } else {
                steps.assigned(name, Word::literal_of(value));
                steps.guess(value);
            }
        }
    }
}

/// `ip netns exec name program`. Words may be shortened.
fn network<'w>(steps: &mut Steps<'w>, arguments: &'w [Word]) {
    let is_exec = |word: &Word| {
        let text = word.text();
        "exec".starts_with(&text) && (!text.is_empty() || word.is_dynamic())
    };
    let Some(at) = arguments.iter().position(is_exec) else {
        return;
    };
    let behind = arguments.get(at + 1..).unwrap_or_default();
    for (at, word) in behind.iter().enumerate().take(4) {
        if word.changes() {
            steps.hide();
        }
        steps.program(behind.get(at..).unwrap_or_default(), &super::steps::UNKNOWN);
    }
}

/// `gh alias set name '!program'`: subcommands that store or run commands.
fn repository(steps: &mut Steps<'_>, arguments: &[Word], input: &Input) {
    let first = arguments.first().map(Word::text).unwrap_or_default();
    let stores = ["alias", "config", "extension", "extensions", "ext"].contains(&first.as_str());
    if !stores {
        return;
    }
    for (at, word) in arguments.iter().enumerate().skip(1) {
        if word.changes() {
            steps.hide();
        }
        steps.guess_words("", arguments.get(at..).unwrap_or_default());
        steps.guess(word.text().trim_start_matches('!'));
    }
    if !matches!(input, Input::Session) {
        steps.hide();
    }
}

/// `npm exec -- program`: the program of a package.
fn package_program<'w>(steps: &mut Steps<'w>, arguments: &'w [Word], input: &'w Input) {
    let runs = |word: &Word| ["exec", "x", "dlx", "explore", "start-script"].contains(&word.text().as_str());
    let Some(at) = arguments.iter().position(runs) else {
        return;
    };
    let behind = arguments.get(at + 1..).unwrap_or_default();
    let is_program = |word: &Word| !word.text().starts_with('-');
    if let Some(inner) = behind.iter().position(is_program) {
        steps.program(behind.get(inner..).unwrap_or_default(), input);
    }
}

/// The value of an option that a program runs. Some write `name=command` or `EXEC:command`.
fn option_value(steps: &mut Steps<'_>, program: &str, word: &Word, option: &str) {
    let Some(text) = word.literal() else {
        return steps.hide();
    };
    let text = text
        .strip_prefix(option)
        .unwrap_or(&text)
        .trim_start_matches(['=', ':', '!', '"']);
    match program {
        // SQL; its clients run what stands behind these.
        "psql" | "mysql" | "sqlite3" => {
            if text.contains("\\")
                || text.starts_with(['.', '|'])
                || text.contains('!')
                || text.to_ascii_lowercase().contains("program")
                || text.contains("system")
            {
                steps.hide();
            }
        }
        "make" | "gmake"
            if ["-f", "--file", "--makefile"].contains(&option)
                || option.is_empty() && !text.contains([' ', '$', ':']) =>
        {
            steps.runs(text, Language::Other);
        }
        "make" | "gmake" | "cmake" | "cargo" | "ansible" | "nmap" | "less" | "more" => {
            let is_plain = |letter: char| letter.is_alphanumeric() || "._-/ ".contains(letter);
            let is_flag = program == "cmake" && text.chars().all(is_plain);
            if text.contains(['$', '!', '(', '|', '&', ';'])
                || program == "cargo" && text.contains(['=', '['])
                || program == "less" && option != "+" && text.contains('\\')
            {
                steps.hide();
            } else if !is_flag || program == "cmake" {
                text.split('=').for_each(|piece| steps.guess(piece));
                steps.guess(&text.split_whitespace().skip(1).collect::<Vec<_>>().join(" "));
            }
        }
        // Code in Python.
        "pylint" => steps.hide(),
        // A directory of programs, or the beginning of their paths.
        _ if ["-B", "-ccc-"].contains(&option) => steps.hide(),
        _ => {
            text.split(['=', ','])
                .skip(1)
                .for_each(|piece| steps.guess(piece));
            steps.guess(&text.replace(',', " "));
            let line = text
                .split_once('=')
                .filter(|(name, _)| !name.contains(' '))
                .map_or(text, |(_, line)| line);
            steps.line(line);
            if line != text {
                steps.guess(text);
            }
        }
    }
}

/// SQL without commands of the client.
fn is_quiet_sql(text: &str) -> bool {
    let is_command = |line: &str| line.trim_start().starts_with('.') || line.contains("system");
    !text.contains(['!', '\\']) && !text.lines().any(is_command) && !is_editing(text)
}

/// Functions of `sqlite3` that run a program or load code.
fn is_editing(text: &str) -> bool {
    let mut text = text.to_ascii_lowercase();
    text.retain(|letter| !letter.is_whitespace());
    text.contains("edit(") || text.contains("load_extension(")
}

/// Long options may be shortened.
fn is_shortened(option: &str, given: &str) -> bool {
    let given = given.split('=').next().unwrap_or_default();
    // `--no` turns an option off, as in `npm exec --no`.
    !["", "no"].contains(&given) && option.len() > given.len() && option.starts_with(given)
}
