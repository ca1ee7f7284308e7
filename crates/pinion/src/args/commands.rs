//! The table of commands: name, purpose, what may follow, own options. It feeds the parser, the check for mistyped commands
//! and the help texts. What each command does lives in `modes`.

use super::Command;
use super::flags::{Flag, switch, value};
use super::nearest::nearest;
use super::set;
use super::worker::WORKER;

/// One command.
pub(crate) struct CommandInfo {
    pub(crate) command: Command,
    /// What to type.
    pub(crate) name: &'static str,
    /// One sentence for the list of commands.
    pub(crate) about: &'static str,
    /// What may follow the name, and what it does.
    pub(crate) usage: &'static [(&'static str, &'static str)],
    /// Options that only this command has.
    pub(crate) flags: &'static [Flag],
    /// General options that change what it does.
    pub(crate) general: &'static [&'static str],
    /// Words that may follow the name, where they are known.
    pub(crate) words: &'static [&'static str],
}

/// Every command, in the order of the help text.
pub(crate) const COMMANDS: [CommandInfo; 16] = [
    CommandInfo {
        command: Command::Acp,
        name: "acp",
        about: "Serve an editor with the Agent Client Protocol (also --mode acp)",
        usage: &[(
            "acp [options]",
            "Serve on stdin and stdout until stdin ends. All general options can follow",
        )],
        flags: &[],
        general: &["--model", "--provider", "--permission-mode", "--sandbox"],
        words: &[],
    },
    CommandInfo {
        command: Command::Doctor,
        name: "doctor",
        about: "Check settings, keys, models, tools and sessions, and report problems",
        usage: &[(
            "doctor [--json]",
            "Print a report. The exit code is 1 if no model can be used",
        )],
        flags: DOCTOR,
        general: &["--model", "--provider", "--session-dir", "--approve", "--sandbox"],
        words: &[],
    },
    CommandInfo {
        command: Command::Auth,
        name: "auth",
        about: "Log in to providers and store API keys",
        usage: &[
            (
                "auth login PROVIDER [--open]",
                "Log in with the provider's own login page",
            ),
            (
                "auth login PROVIDER --api-key",
                "Store an API key that is read from stdin",
            ),
            (
                "auth logout PROVIDER",
                "Delete the stored login or key of a provider",
            ),
            (
                "auth status [--json]",
                "List the providers that have a key or a login",
            ),
        ],
        flags: AUTH,
        general: &["--open"],
        words: &["login", "logout", "status"],
    },
    CommandInfo {
        command: Command::Models,
        name: "models",
        about: "Update the list of known models, or show its age",
        usage: &[
            (
                "models update [--from URL|FILE]",
                "Download the list of models from models.dev or another source",
            ),
            (
                "models status [--json]",
                "Show which list is used and how old it is",
            ),
        ],
        flags: MODELS,
        general: &["--offline"],
        words: &["update", "status"],
    },
    CommandInfo {
        command: Command::Sessions,
        name: "sessions",
        about: "Copy sessions to and from a store that several machines share",
        usage: &[
            (
                "sessions push URL [ID...]",
                "Copy sessions to the store; without an ID, all",
            ),
            ("sessions pull URL [ID...]", "Copy sessions from the store"),
            ("sessions list URL", "Print the ids of the sessions in the store"),
        ],
        flags: &[],
        general: &["--session-dir"],
        words: &["push", "pull", "list"],
    },
    CommandInfo {
        command: Command::Worker,
        name: "worker",
        about: "Run sessions that clients reach through a NATS server",
        usage: &[(
            "worker --nats URL [options] [-- OPTIONS]",
            "Take sessions until SIGTERM; the last options apply to all of them",
        )],
        flags: WORKER,
        general: &[],
        words: &[],
    },
    CommandInfo {
        command: Command::Trust,
        name: "trust",
        about: "Decide whether a project may run its own extensions, hooks and MCP servers",
        usage: &[
            (
                "trust [DIR] [--json]",
                "Trust the project in DIR (default: the working directory)",
            ),
            ("trust [DIR] --deny", "Never use what the project brings"),
            ("trust [DIR] --remove", "Delete the decision"),
            ("trust --list [--json]", "List all stored decisions"),
        ],
        flags: TRUST,
        general: &[],
        words: &[],
    },
    CommandInfo {
        command: Command::Mcp,
        name: "mcp",
        about: "Configure MCP servers and check their connections",
        usage: &[
            (
                "mcp add NAME -- COMMAND [ARG...]",
                "Add a server that is started as a process",
            ),
            ("mcp add NAME --url URL", "Add a server that is reached over HTTP"),
            ("mcp remove NAME", "Remove a server"),
            ("mcp login NAME [--open]", "Log in to a server with OAuth"),
            ("mcp logout NAME", "Delete the stored login of a server"),
            ("mcp list [--json]", "Connect to all servers and show their state"),
        ],
        flags: MCP,
        general: &["--open", "--mcp-config"],
        words: &["add", "remove", "login", "logout", "list"],
    },
    CommandInfo {
        command: Command::Install,
        name: "install",
        about: "Install a package of extensions, skills and prompts from npm, git or a directory",
        usage: &[
            (
                "install npm:NAME[@VERSION]",
                "Install a package from npm and add it to the settings",
            ),
            (
                "install git:HOST/USER/REPOSITORY[@REF]",
                "Install from a git repository; https:// and ssh:// work, too",
            ),
            (
                "install PATH",
                "Add a directory or file to the settings, without a copy",
            ),
        ],
        flags: INSTALL,
        general: &["--approve", "--no-approve", "--offline"],
        words: &[],
    },
    CommandInfo {
        command: Command::Remove,
        name: "remove",
        about: "Remove an installed package (also: uninstall)",
        usage: &[(
            "remove SOURCE",
            "Delete the package and its entry in the settings. A directory named by its path stays",
        )],
        flags: REMOVE,
        general: &["--approve", "--no-approve", "--offline"],
        words: &[],
    },
    CommandInfo {
        command: Command::List,
        name: "list",
        about: "List the packages of the user and of the project",
        usage: &[(
            "list [--json]",
            "Print the packages of the settings and their directories",
        )],
        flags: DOCTOR,
        general: &["--approve", "--no-approve"],
        words: &[],
    },
    CommandInfo {
        command: Command::Update,
        name: "update",
        about: "Update installed packages",
        usage: &[
            (
                "update",
                "Install missing packages and the newest versions of packages without an exact version",
            ),
            ("update SOURCE", "Update one package"),
        ],
        flags: UPDATE,
        general: &["--approve", "--no-approve", "--offline"],
        words: &[],
    },
    CommandInfo {
        command: Command::Schema,
        name: "schema",
        about: "Print the protocol as JSON Schema or TypeScript types",
        usage: &[(
            "schema [--json|--ts] [--dialect NAME]",
            "Print the schema to stdout",
        )],
        flags: SCHEMA,
        general: &[],
        words: &[],
    },
    CommandInfo {
        command: Command::Completions,
        name: "completions",
        about: "Print a completion script for a shell",
        usage: &[(
            "completions bash|zsh|fish",
            "Print the script to stdout; the packages contain all three",
        )],
        flags: &[],
        general: &[],
        words: &["bash", "zsh", "fish"],
    },
    CommandInfo {
        command: Command::Man,
        name: "man",
        about: "Print a manual page",
        usage: &[(
            "man [COMMAND]",
            "Print the page of the program or of one command, in roff",
        )],
        flags: &[],
        general: &[],
        words: &[
            "acp",
            "doctor",
            "auth",
            "models",
            "sessions",
            "worker",
            "trust",
            "mcp",
            "install",
            "remove",
            "list",
            "update",
            "schema",
            "completions",
            "man",
            "help",
        ],
    },
    CommandInfo {
        command: Command::Help,
        name: "help",
        about: "Describe the program or one command",
        usage: &[
            ("help", "List all commands and options"),
            (
                "help COMMAND",
                "Describe one command. COMMAND --help does the same",
            ),
        ],
        flags: &[],
        general: &[],
        words: &[],
    },
];

/// Words that other programs use for something that has another name here.
const SYNONYMS: [(&str, &str); 8] = [
    ("login", "auth login PROVIDER"),
    ("logout", "auth logout PROVIDER"),
    ("version", "--version"),
    ("web", "--mode web --open"),
    ("serve", "--mode web"),
    ("rpc", "--mode rpc"),
    ("export", "--export FILE"),
    ("resume", "--continue"),
];

/// Commands of pi that need a terminal, and what does the same here.
const COMMANDS_OF_PI: [(&str, &str); 1] = [(
    "config",
    "Edit \"extensions\" and \"packages\" in settings.json, and check them with \"pinion doctor\".",
)];

/// Other names of commands.
const ALIASES: [(&str, &str); 1] = [("uninstall", "remove")];

/// The entry of a command.
pub(crate) fn info(command: Command) -> Option<&'static CommandInfo> {
    COMMANDS.iter().find(|info| info.command == command)
}

/// The command with this name.
pub(super) fn by_name(word: &str) -> Option<&'static CommandInfo> {
    let alias = ALIASES.iter().find(|(alias, _)| *alias == word);
    let word = alias.map_or(word, |(_, name)| name);
    COMMANDS.iter().find(|info| info.name == word)
}

/// The option with this name that only this command has.
pub(super) fn own_flag(command: Command, name: &str) -> Option<&'static Flag> {
    info(command)?
        .flags
        .iter()
        .find(|flag| flag.names.contains(&name))
}

/// The option with this name of any command.
pub(super) fn any_flag(name: &str) -> Option<&'static Flag> {
    let mut flags = COMMANDS.iter().flat_map(|info| info.flags);
    flags.find(|flag| flag.names.contains(&name))
}

/// The command of pi with this name that does not exist here, and what to do instead.
pub(super) fn of_pi(word: &str) -> Option<(&'static str, &'static str)> {
    COMMANDS_OF_PI.into_iter().find(|(name, _)| *name == word)
}

/// Returns the command that a prompt of one or a few words probably means. Only a single word, or a word followed by
/// an argument of the command, can mean a command: `instal npm:x` does, `last commit` does not.
pub(super) fn meant_by(words: &[String]) -> Option<&'static str> {
    let (first, rest) = words.split_first()?;
    if !first.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
        return None;
    }
    if rest.is_empty()
        && let Some((_, meant)) = SYNONYMS.iter().find(|(word, _)| word.eq_ignore_ascii_case(first))
    {
        return Some(meant);
    }
    let synonyms = SYNONYMS.iter().map(|(word, _)| *word);
    let name = nearest(first, COMMANDS.iter().map(|info| info.name).chain(synonyms))?;
    let synonym = SYNONYMS.iter().find(|(word, _)| *word == name);
    let takes_next = match (rest, by_name(name)) {
        ([], _) => true,
        ([next, ..], Some(info)) if info.words.contains(&next.as_str()) => true,
        ([next], Some(info)) => is_address(next) && info.takes_address(),
        ([next], None) => is_address(next) && synonym.is_some_and(|(_, meant)| meant.ends_with("FILE")),
        _ => false,
    };
    takes_next.then(|| synonym.map_or(name, |(_, meant)| meant))
}

/// Returns true for a package, URL or file, which is rarely a word of a prompt.
fn is_address(word: &str) -> bool {
    let inner = word.trim_end_matches(['.', ':', '/', '?', '!']);
    inner.contains([':', '/']) || (inner.contains('.') && !inner.starts_with(|c: char| c.is_ascii_digit()))
}

impl CommandInfo {
    /// Returns true if a package, URL or file can follow the name.
    fn takes_address(&self) -> bool {
        let names = ["SOURCE", "DIR", "PATH"];
        self.usage
            .iter()
            .filter_map(|(usage, _)| usage.split(' ').nth(1))
            .any(|next| names.contains(&next.trim_matches(['[', ']'])))
    }
}

const DOCTOR: &[Flag] = &[switch(&["--json"], |a| a.json = true, "Print JSON")];

const MODELS: &[Flag] = &[
    switch(&["--json"], |a| a.json = true, "Print JSON"),
    value(
        &["--from"],
        "URL|FILE",
        |a, v| {
            a.from = Some(v);
            Ok(())
        },
        "Source in the format of models.dev or pi-ai: URL, file or directory",
    ),
];

const TRUST: &[Flag] = &[
    switch(&["--json"], |a| a.json = true, "Print JSON"),
    switch(&["--remove"], |a| a.trust.remove = true, "Delete the decision"),
    switch(
        &["--deny"],
        |a| a.trust.deny = true,
        "Never use what the project brings",
    ),
    switch(&["--list"], |a| a.trust.list = true, "List all stored decisions"),
];

const LOCAL: Flag = switch(
    &["--local", "-l"],
    |a| a.packages.local = true,
    "Use the project's .pi directory and settings instead of the user's",
);

const ALLOW_SCRIPTS: Flag = switch(
    &["--allow-scripts"],
    |a| a.packages.allow_scripts = true,
    "Let npm run the scripts of packages and read the .npmrc of repositories",
);

const INSTALL: &[Flag] = &[LOCAL, ALLOW_SCRIPTS];

const REMOVE: &[Flag] = &[LOCAL];

const UPDATE: &[Flag] = &[
    ALLOW_SCRIPTS,
    switch(
        &["--extensions", "--all"],
        |a| a.packages.extensions = true,
        "Update all packages (default)",
    ),
    value(
        &["--extension"],
        "SOURCE",
        |a, v| {
            a.packages.source = Some(v);
            Ok(())
        },
        "Update one package only",
    ),
    switch(
        &["--self"],
        |a| a.packages.own = true,
        "Report how to update Pinion itself",
    ),
];

const SCHEMA: &[Flag] = &[
    switch(
        &["--json"],
        |a| a.typescript = false,
        "Print JSON Schema (default)",
    ),
    switch(&["--ts"], |a| a.typescript = true, "Print TypeScript types"),
    value(
        &["--dialect"],
        "NAME",
        set::set_schema_dialect,
        "Print only what this dialect contains",
    ),
];

const AUTH: &[Flag] = &[
    switch(&["--json"], |a| a.json = true, "Print JSON"),
    switch(
        &["--api-key"],
        |a| a.auth.key_from_stdin = true,
        "Read an API key from stdin and store it",
    ),
    value(
        &["--domain"],
        "DOMAIN",
        |a, v| {
            a.auth.domain = Some(v);
            Ok(())
        },
        "Domain of a GitHub Enterprise server",
    ),
];

const MCP: &[Flag] = &[
    switch(&["--json"], |a| a.json = true, "Print JSON"),
    value(
        &["--url"],
        "URL",
        |a, v| {
            a.mcp.url = Some(v);
            Ok(())
        },
        "URL of the server",
    ),
    value(
        &["--env"],
        "NAME=VALUE",
        |a, v| {
            a.mcp.env.push(v);
            Ok(())
        },
        "Environment variable of the server process; repeatable",
    ),
    value(
        &["--header"],
        "NAME: VALUE",
        |a, v| {
            a.mcp.headers.push(v);
            Ok(())
        },
        "HTTP header of each request; repeatable",
    ),
    value(
        &["--bearer-token-env-var"],
        "NAME",
        |a, v| {
            a.mcp.bearer = Some(v);
            Ok(())
        },
        "Environment variable that holds the bearer token",
    ),
    value(
        &["--cwd"],
        "DIR",
        |a, v| {
            a.mcp.cwd = Some(v);
            Ok(())
        },
        "Working directory of the server process",
    ),
    value(
        &["--timeout"],
        "SECONDS",
        |a, v| {
            a.mcp.timeout = Some(v);
            Ok(())
        },
        "Timeout of a request",
    ),
    switch(
        &["--local", "-l"],
        |a| a.mcp.local = true,
        "Write to the project's .pi/mcp.json instead of the user's file",
    ),
];
