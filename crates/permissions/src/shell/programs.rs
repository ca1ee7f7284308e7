//! Knowledge of programs and variables by their names.

use super::ast::{List, Node, Word};

/// What a program does with its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Runs none of its arguments.
    Quiet,
    /// A builtin of bash that runs, expands or assigns its arguments.
    Builtin,
    /// Runs the command behind its options.
    Wrapper,
    /// Runs a command behind its options and other arguments, or a line.
    LineWrapper,
    Shell,
    Finder,
    Xargs,
    Git,
    /// Runs the values of some options.
    Options(&'static [&'static str]),
    /// Runs code in another language that is given with these options, or in its input.
    Interpreter(&'static [&'static str]),
    Awk,
    Sed,
    Python,
    Perl,
    Node,
    Other,
}

impl Class {
    /// Returns true for programs that have another purpose than to run the commands in their arguments. A shell and `eval` have no
    /// other: a rule for them covers every command that they run.
    pub(super) fn runs_in_passing(self) -> bool {
        matches!(
            self,
            Self::Wrapper | Self::Finder | Self::Xargs | Self::Git | Self::Options(_)
        )
    }

    /// Returns true if a line that this program runs may be run by `sh`. Builtins and wrappers leave it to the shell that runs them.
    pub(super) fn runs_sh(self, name: &str, words: &[Word], is_sh: bool) -> bool {
        let is_bash = |pair: &[Word]| {
            let mut texts = pair.iter().map(Word::text);
            texts.next().is_some_and(|shell| base_name(&shell) == "bash")
                && texts.next().is_some_and(|option| option.starts_with('-'))
        };
        match self {
            Self::Builtin | Self::Wrapper => is_sh,
            Self::Shell => !name.trim_start_matches('r').starts_with("bash"),
            // `flock file bash -c line`.
            Self::LineWrapper if has(LINE_OR_PROGRAM, name) => !words.windows(2).any(is_bash),
            // Others run a program, or a shell of another machine.
            Self::LineWrapper => has(LINE_BY_SH, name),
            _ => true,
        }
    }
}

/// What the value of a variable is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Variable {
    /// A command line.
    Command,
    /// A text that bash expands.
    Prompt,
    /// Options of a pager. A command in them begins with `+` or `!`.
    Keys,
    /// A number that bash calculates.
    Integer,
    /// It changes what programs load or how bash reads lines.
    Loader,
    Other,
}

/// Programs that run no other program with any arguments, input or options, and builtins that neither run nor expand
/// their arguments. A program with a single option that names a program does not belong here but in `options`; a program that looks
/// for further programs by itself belongs in no list.
const QUIET: &str = " : [ b2sum base32 base64 basename bg biome black bun-types bzip2 cal cargo-add cat cd chgrp \
    chmod chown cksum clang-format clang-tidy cmp column comm cp curl cut date dd df diff dig dirname dirs disown \
    dos2unix du echo egrep exit expand expr factor false fc-list fg fgrep file fmt fold free getent getfacl gofmt \
    grep groups gunzip gzip head hexdump host hostname iconv id ifconfig ipcs isort join jq kill killall link ln \
    locale localectl logger logname logout ls lsattr lsb_release lscpu lsof md5sum mkdir mkfifo mktemp mv nl nm \
    nproc npm-check nslookup ntpq objdump od paste patch pathchk pgrep pidof ping pipx-list pkill popd pr printenv \
    printf ps pushd pwd readelf readlink realpath return rev rm rmdir ruff rustfmt seq sha1sum sha224sum sha256sum \
    sha384sum sha512sum shasum shellcheck shfmt shift shred shuf size sleep ss stat strings strip stty suspend sum \
    sync tac tail tee test times top touch tput tr traceroute tree true truncate tsc tsort tty type ulimit umask \
    unalias uname unexpand uniq unlink unxz unzip uptime users vdir vmstat w wc whatis whereis which who whoami xxd \
    xz xzcat yamllint yes zcat zipinfo zstd ";

/// Builtins whose arguments are lines, names or numbers.
const BUILTIN: &str = " . alias bind builtin-eval compgen complete compopt declare enable eval export fc getopts \
    hash history let local mapfile read readarray readonly set shopt source trap typeset unset wait ";

/// Programs whose first argument that is no option is the command they run.
const WRAPPER: &str = " builtin catchsegv cgexec chpst chrt choom command coproc cpulimit dbus-run-session doas dumb-init eatmydata env \
    exec faketime fakeroot firejail gosu ionice jobs linux32 linux64 ltrace nice nohup numactl pkexec prlimit proot \
    rlwrap setarch setpriv ssh-agent ccache distcc sccache dbus-launch setsid setuidgid softlimit stdbuf strace sudo sudoedit systemd-cat systemd-inhibit \
    systemd-run time timeout tini torsocks torify tsocks unbuffer unshare valgrind winpty xvfb-run aoss proxychains \
    proxychains4 i386 x86_64 uname26 with-contenv s6-setuidgid su-exec start-stop-daemon trickle ";

/// Programs that run commands behind other arguments, or lines.
const LINE_WRAPPER: &str = " adb asdf at perf batch bundle busybox bwrap cargo-watch chroot conda dialog direnv docker entr \
    flock gdbserver hyperfine kubectl lxc machinectl make-chroot mise newgrp nerdctl nix-shell nodemon npx nsenter \
    parallel pipenv pnpx podman poetry rbenv run-one runuser runcon screen script sg ssh sshpass su taskset tmux \
    toybox uv uvx vagrant watch watchexec xterm gnome-terminal konsole xdg-terminal-exec run-parts runsv nsjail sem sshfs \
    chronic mispipe ifne ts zargs lxc-attach lxc-execute schroot pct wsl ";

/// Programs of [`LINE_WRAPPER`] that run a line with `sh` or with the shell of the user.
const LINE_BY_SH: &str = " at batch hyperfine nodemon parallel script sem sg su watch ";

/// Programs of [`LINE_WRAPPER`] that run such a line, or the program behind their arguments.
const LINE_OR_PROGRAM: &str = " entr flock mise npx pnpx watchexec ";

const SHELL: &str =
    " ash bash csh dash elvish fish ksh mksh nu osh posh pwsh rbash rksh sh tcsh xonsh yash zsh ";

/// The last part of a path.
pub(super) fn base_name(text: &str) -> &str {
    text.rsplit('/').next().unwrap_or(text)
}

/// Whether `name` is a word of a list. It is searched as a whole: each command line is looked up in dozens of long lists.
pub(super) fn has(list: &str, name: &str) -> bool {
    let is_space = |letter: char| letter.is_ascii_whitespace();
    let is_word = |(start, _): (usize, &str)| {
        let (before, rest) = (&list[..start], &list[start + name.len()..]);
        (before.is_empty() || before.ends_with(is_space)) && (rest.is_empty() || rest.starts_with(is_space))
    };
    !name.is_empty() && !name.contains(is_space) && list.match_indices(name).any(is_word)
}

/// The name without its version: `python` for `python3.12`.
pub(super) fn family(name: &str) -> &str {
    name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.' || letter == '-')
}

/// What a program does with its arguments. Numbers behind names are versions.
pub(super) fn class(name: &str) -> Class {
    let known = [name, family(name)]
        .into_iter()
        .map(class_of)
        .find(|class| *class != Class::Other);
    known.unwrap_or(Class::Other)
}

fn class_of(name: &str) -> Class {
    if has(SHELL, name) {
        return Class::Shell;
    }
    if let Some(options) = super::options::of(name) {
        return Class::Options(options);
    }
    match name {
        "find" | "gfind" | "fd" | "fdfind" => Class::Finder,
        "xargs" | "gxargs" => Class::Xargs,
        "git" => Class::Git,
        "awk" | "gawk" | "mawk" | "nawk" | "original-awk" => Class::Awk,
        "sed" | "gsed" => Class::Sed,
        "python" | "pypy" => Class::Python,
        "perl" => Class::Perl,
        "node" | "nodejs" => Class::Node,
        _ if name.starts_with("ld-linux") || name.starts_with("ld-musl") || name == "ld.so" => Class::Wrapper,
        _ if has(WRAPPER, name) => Class::Wrapper,
        _ if has(LINE_WRAPPER, name) => Class::LineWrapper,
        _ if has(BUILTIN, name) => Class::Builtin,
        _ if has(QUIET, name) => Class::Quiet,
        _ => interpreter(name),
    }
}

fn interpreter(name: &str) -> Class {
    Class::Interpreter(match name {
        "crontab" | "ed" | "gs" | "tclsh" | "wish" | "gnuplot" | "m4" | "dc" | "ftp" | "mail" | "mailx"
        | "ghci" | "irb" | "guile" | "maxima" | "octave" | "julia" | "R" | "Rscript" | "jshell"
        | "sqlite" | "ocaml" | "erl" => &[
            "-e",
            "-c",
            "-cmd",
            "--eval",
            "--execute",
            "--expression",
            "--print",
            "-eval",
            "-f",
            "-E",
            "-s",
        ],
        "ruby" | "lua" | "luajit" | "tclkit" | "racket" | "swift" | "scala" | "groovy" | "osascript"
        | "elixir" => &["-e", "--eval", "-x", "-pe", "-ne", "-l"],
        "php" => &["-r", "-B", "-R", "-E", "--run"],
        "deno" | "bun" => &["eval", "-e", "--eval", "-p", "--print"],
        "vi" | "vim" | "nvim" | "ex" | "view" | "gvim" | "vimdiff" | "rvim" | "emacs" | "emacsclient"
        | "nano" | "kak" => &[
            "-c",
            "--cmd",
            "+",
            "-S",
            "-s",
            "--eval",
            "-eval",
            "-e",
            "-es",
            "-l",
            "-f",
            "--execute",
            "--speller",
        ],
        "gdb" | "lldb" => &[
            "-ex",
            "-iex",
            "--eval-command",
            "--init-eval-command",
            "-o",
            "-O",
            "--one-line",
            "-x",
            "--args",
        ],
        "expect" => &["-c"],
        "psql" | "mysql" | "mariadb" => return Class::Other,
        _ => return Class::Other,
    })
}

/// True if what feeds this command lists files, perhaps through filters.
pub(super) fn is_listed(list: &List, at: usize) -> bool {
    for before in (0..at).rev() {
        let Some(Node::Simple(simple)) = list.nodes.get(before) else {
            return false;
        };
        if lists_files(&simple.words) {
            return true;
        }
        let is_fed = list.fed.get(before).copied().unwrap_or_default();
        if !is_fed || !passes_lines(&simple.words) {
            return false;
        }
    }
    false
}

/// True if a command writes names of files, one by one, and nothing else.
fn lists_files(words: &[Word]) -> bool {
    let texts: Vec<String> = words.iter().map(Word::text).collect();
    let Some((name, options)) = texts.split_first() else {
        return false;
    };
    let is_formatted = |text: &String| {
        text.contains("printf") || text.starts_with("--format") || text.starts_with("--pretty")
    };
    if words.iter().any(Word::is_dynamic) || options.iter().any(is_formatted) {
        return false;
    }
    let has = |wanted: &str| options.iter().any(|text| text == wanted);
    let is_short = |text: &String| text.starts_with('-') && !text.starts_with("--");
    match base_name(name) {
        "find" | "gfind" | "fd" | "fdfind" | "ls" | "locate" => true,
        "git" => has("ls-files") || has("--name-only"),
        "grep" | "egrep" | "fgrep" | "rg" => {
            has("--files")
                || has("--files-with-matches")
                || options.iter().any(|text| is_short(text) && text.contains('l'))
        }
        _ => false,
    }
}

/// True if a command writes some of the lines that it reads, unchanged.
fn passes_lines(words: &[Word]) -> bool {
    let name = words.first().map(Word::text).unwrap_or_default();
    let cuts = |word: &Word| word.text().starts_with("-") && word.text().contains('o');
    ["sort", "uniq", "head", "tail", "grep", "egrep", "fgrep"].contains(&base_name(&name))
        && !words.iter().any(|word| word.is_dynamic() || cuts(word))
}

/// The files to which a command copies its input, in addition to its output: those of `tee`, also behind `sudo`. None if it does
/// something else with its input.
pub(super) fn copies_into(words: &[Word]) -> Option<&[Word]> {
    let is = |word: &Word, name: &str| base_name(&word.text()) == name;
    let first = words.first()?;
    if words.len() == 1 && is(first, "cat") {
        return Some(&[]);
    }
    let at = words.iter().position(|word| is(word, "tee"))?;
    let is_run = at == 0 || class(base_name(&first.text())) == Class::Wrapper;
    words.get(at + 1..).filter(|_| is_run)
}

/// Programs that write only what stands in their arguments or in files.
pub(super) fn copies_text(program: &str) -> bool {
    const COPYING: &str = " basename cat cut date df dirname du echo expr find getconf git grep head id ls nproc printf ps \
        seq sort stat tail uname uniq wc ";
    has(COPYING, program)
}

/// Variables whose values are commands.
const COMMAND: &str = " AR AS AWK BROWSER CARGO CC CPP CVS_RSH CXX FC FCEDIT FZF_DEFAULT_COMMAND GCC GIT_EXTERNAL_DIFF GIT_MAN_VIEWER \
    GIT_SSH GREP HGMERGE HOSTCC HOSTCXX INSTALL LD LESSCLOSE LESSEDIT LESSOPEN LEX MAILER MAKE NM OBJCOPY OBJDUMP P4DIFF P4MERGE \
    PERL PIP_PYTHON PKG_CONFIG PYTHON RANLIB RSH RUSTC RUSTDOC RUSTFMT SED SHELL SSH_SK_PROVIDER STRIP SVN_MERGE SVN_SSH \
    TERMINAL VISUAL YACC ZIPOPT ";
/// Ends of their names.
const COMMAND_ENDS: &str = " ASKPASS EDITOR PAGER SHELL _AR _BROWSER _CC _CMD _COMMAND _COMPILER _CXX _DIFF _HELPER _LAUNCHER _LINKER \
    _PROG _PROGRAM _RSH _RUNNER _RUSTC _RUSTDOC _SSH _WRAPPER ";
/// Beginnings of their names: `CC_x86_64-unknown-linux-gnu` of the crate `cc`.
const COMMAND_STARTS: &str = " AR_ CC_ CXX_ LD_FOR RANLIB_ ";
/// Variables that change what programs load or read: options, files of settings, directories of programs.
const LOADER: &str = " APT_CONFIG BASHOPTS BASH_ALIASES BASH_CMDS BASH_ENV BASH_LOADABLES_PATH CDPATH_COMMAND COMPILER_PATH \
    DYLD_INSERT_LIBRARIES ENV EXINIT GCC_EXEC_PREFIX GCONV_PATH GETCONF_DIR GIT_CONFIG GIT_EXEC_PATH GIT_TEMPLATE_DIR GNUMAKEFLAGS \
    HGRCPATH INPUTRC LD_AUDIT LD_PRELOAD LESSKEY LESSKEYIN LESSKEY_CONTENT LESSKEY_SYSTEM LUA_INIT MAKEFILES MAKEFLAGS MANOPT MFLAGS \
    NODE_OPTIONS PERL5DB PERL5OPT PYTHONBREAKPOINT PYTHONINSPECT PYTHONSTARTUP RIPGREP_CONFIG_PATH RUBYOPT SHELLOPTS TAR_OPTIONS \
    VIMINIT WGETRC ";
/// Beginnings of their names.
const LOADER_STARTS: &str = " BASH_FUNC GIT_CONFIG_ NPM_CONFIG_ npm_config_ ";
/// Variables with commands of a pager: `LESS='+!program'`.
const PAGER_KEYS: &str = " LESS MORE ";

fn begins(list: &str, name: &str) -> bool {
    list.split_ascii_whitespace().any(|start| name.starts_with(start))
}

/// What the value of a variable is used for.
pub(super) fn variable(name: &str) -> Variable {
    if matches!(name, "PS0" | "PS1" | "PS2" | "PS3" | "PS4") {
        Variable::Prompt
    } else if matches!(
        name,
        "RANDOM" | "OPTIND" | "HISTCMD" | "SECONDS" | "LINENO" | "EPOCHSECONDS" | "SRANDOM"
    ) {
        Variable::Integer
    } else if has(LOADER, name) || begins(LOADER_STARTS, name) {
        Variable::Loader
    } else if has(PAGER_KEYS, name) {
        Variable::Keys
    } else if has(COMMAND, name)
        || begins(COMMAND_STARTS, name)
        || COMMAND_ENDS
            .split_ascii_whitespace()
            .any(|end| name.ends_with(end))
    {
        Variable::Command
    } else {
        Variable::Other
    }
}
