//! Knowledge of programs and variables by their names.

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
}

/// What the value of a variable is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Variable {
    /// A command line.
    Command,
    /// A text that bash expands.
    Prompt,
    /// A number that bash calculates.
    Integer,
    /// It changes what programs load or how bash reads lines.
    Loader,
    Other,
}

/// Programs that run none of their arguments, and builtins that neither run nor expand them.
const QUIET: &str = " : [ apt apt-get b2sum base32 base64 basename bg biome black brew bun-types bzip2 cal cargo-add cat cd \
    chgrp chmod chown cksum clang clang-format clang-tidy clang++ cmp column comm cp curl cut date dd df diff dig dirname dirs \
    disown dnf dos2unix dpkg du echo egrep eslint exit expand expr factor false fc-list fg fgrep file flake8 fmt fold \
    free g++ gcc getconf getent getfacl gh glab gofmt gpg grep groups gunzip gzip head hexdump host hostname iconv id ifconfig \
    ip ipcs isort jobs join jq kill killall ldd link ln locale localectl logger logname logout ls lsattr lsb_release \
    lscpu lsof md5sum mkdir mkfifo mktemp mv mypy nl nm nproc npm-check nslookup ntpq objdump od openssl pacman paste patch \
    pathchk pgrep pidof ping pip pip3 pipx-list pkill popd pr prettier printenv printf ps pushd pwd pylint pyright \
    readelf readlink realpath return rev rg rm rmdir ruff rustc rustfmt seq sha1sum sha224sum sha256sum sha384sum \
    sha512sum shasum shellcheck shfmt shift shred shuf size sleep snap sort split ss stat strings strip stty suspend sum sync tac \
    tail tee test times top touch tput tr traceroute tree true truncate tsc tsort tty type ulimit umask unalias uname \
    unexpand uniq unlink unxz unzip uptime users vdir vmstat w wc wget whatis whereis which who whoami xxd xz xzcat \
    yamllint yes yq yum zcat zipinfo zstd ";

/// Builtins whose arguments are lines, names or numbers.
const BUILTIN: &str = " . alias bind builtin-eval compgen complete compopt declare enable eval export fc getopts \
    hash history let local mapfile read readarray readonly set shopt source trap typeset unset wait ";

/// Programs whose first argument that is no option is the command they run.
const WRAPPER: &str = " builtin catchsegv cgexec chpst chrt choom command coproc cpulimit dbus-run-session doas dumb-init eatmydata env \
    exec faketime fakeroot firejail gosu ionice jobs linux32 linux64 ltrace nice nohup numactl pkexec prlimit proot \
    rlwrap setarch setpriv setsid setuidgid softlimit stdbuf strace sudo sudoedit systemd-cat systemd-inhibit \
    systemd-run time timeout tini torsocks torify tsocks unbuffer unshare valgrind winpty xvfb-run aoss proxychains \
    proxychains4 i386 x86_64 uname26 with-contenv s6-setuidgid su-exec start-stop-daemon trickle ";

/// Programs that run commands behind other arguments, or lines.
const LINE_WRAPPER: &str = " adb asdf at perf batch bundle busybox bwrap cargo-watch chroot conda dialog direnv docker entr \
    flock gdbserver hyperfine kubectl lxc machinectl make-chroot mise newgrp nerdctl nix-shell nodemon npx nsenter \
    parallel pipenv pnpx podman poetry rbenv run-one runuser runcon screen script sg ssh sshpass su taskset tmux \
    toybox uv uvx vagrant watch watchexec xterm gnome-terminal konsole xdg-terminal-exec run-parts runsv nsjail sem sshfs \
    chronic mispipe ifne ts zargs lxc-attach lxc-execute schroot pct wsl ";

const SHELL: &str =
    " ash bash csh dash elvish fish ksh mksh nu osh posh pwsh rbash rksh sh tcsh xonsh yash zsh ";

/// The last part of a path.
pub(super) fn base_name(text: &str) -> &str {
    text.rsplit('/').next().unwrap_or(text)
}

fn has(list: &str, name: &str) -> bool {
    !name.is_empty() && list.split_ascii_whitespace().any(|known| known == name)
}

/// What a program does with its arguments. Numbers behind names are versions.
pub(super) fn class(name: &str) -> Class {
    let family =
        name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.' || letter == '-');
    let known = [name, family]
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
        "crontab" | "ed" | "tclsh" | "wish" | "gnuplot" | "m4" | "dc" | "ftp" | "mail" | "mailx" | "ghci"
        | "irb" | "guile" | "maxima" | "octave" | "julia" | "R" | "Rscript" | "jshell" | "sqlite"
        | "ocaml" | "erl" => &[
            "-e",
            "-c",
            "-cmd",
            "--eval",
            "--execute",
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

/// Programs that write only what stands in their arguments or in files.
pub(super) fn copies_text(program: &str) -> bool {
    const COPYING: &str = " basename cat cut date df dirname du echo expr find getconf git grep head id ls nproc printf ps \
        seq sort stat tail uname uniq wc ";
    has(COPYING, program)
}

/// Variables whose values are commands, that change what programs load, and ends of names like the first.
const COMMAND: [&str; 30] = [
    "AR",
    "BROWSER",
    "CC",
    "CPP",
    "CVS_RSH",
    "CXX",
    "EDITOR",
    "FCEDIT",
    "FZF_DEFAULT_COMMAND",
    "GIT_EDITOR",
    "GIT_EXTERNAL_DIFF",
    "GIT_PAGER",
    "GIT_SEQUENCE_EDITOR",
    "GIT_SSH",
    "LD",
    "LESSCLOSE",
    "LESSOPEN",
    "MAKE",
    "MANPAGER",
    "PAGER",
    "PROMPT_COMMAND",
    "RSYNC_RSH",
    "RUSTC",
    "RUSTDOC",
    "SHELL",
    "SVN_SSH",
    "TERMINAL",
    "VISUAL",
    "ZIPOPT",
    "CARGO",
];
const LOADER: [&str; 30] = [
    "BASHOPTS",
    "BASH_ALIASES",
    "BASH_CMDS",
    "BASH_ENV",
    "BASH_LOADABLES_PATH",
    "CDPATH_COMMAND",
    "DYLD_INSERT_LIBRARIES",
    "ENV",
    "GCONV_PATH",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_SYSTEM",
    "GIT_EXEC_PATH",
    "GIT_TEMPLATE_DIR",
    "LD_AUDIT",
    "LD_PRELOAD",
    "LUA_INIT",
    "MAKEFLAGS",
    "MFLAGS",
    "NODE_OPTIONS",
    "PERL5DB",
    "PERL5OPT",
    "PYTHONSTARTUP",
    "PYTHONINSPECT",
    "RUBYOPT",
    "SHELLOPTS",
    "TAR_OPTIONS",
    "VIMINIT",
];
const COMMAND_ENDS: [&str; 9] = [
    "_ASKPASS", "_COMMAND", "_EDITOR", "_LINKER", "_PAGER", "_RUNNER", "_SHELL", "_WRAPPER", "_CMD",
];

/// What the value of a variable is used for.
pub(super) fn variable(name: &str) -> Variable {
    if matches!(name, "PS0" | "PS1" | "PS2" | "PS3" | "PS4") {
        Variable::Prompt
    } else if matches!(
        name,
        "RANDOM" | "OPTIND" | "HISTCMD" | "SECONDS" | "LINENO" | "EPOCHSECONDS" | "SRANDOM"
    ) {
        Variable::Integer
    } else if LOADER.contains(&name) || name.starts_with("GIT_CONFIG_") || name.starts_with("BASH_FUNC") {
        Variable::Loader
    } else if COMMAND.contains(&name) || COMMAND_ENDS.iter().any(|end| name.ends_with(end)) {
        Variable::Command
    } else {
        Variable::Other
    }
}
