//! The table of all options: one definition each, which feeds the parser and the help text (pi-core.md 7.1,
//! pi-1.5-delta.md 6, clients.md 2). How a command line is taken apart lives in `parse`,
//! what the more particular options do in `set`.

use super::error::UsageError;
use super::set;
use super::{Args, Command};

/// What may follow an option, and what it does.
pub(crate) enum Takes {
    /// Nothing.
    Nothing(fn(&mut Args)),
    /// A value, named for the help text.
    Value(&'static str, fn(&mut Args, String) -> Result<(), UsageError>),
    /// A value or nothing.
    Maybe(&'static str, fn(&mut Args, Option<String>)),
}

/// One option.
pub(crate) struct Flag {
    /// The long name first; then short names and aliases.
    pub(crate) names: &'static [&'static str],
    pub(crate) takes: Takes,
    /// One line for people.
    pub(crate) help: &'static str,
}

/// The option with this name, dashes included.
pub(crate) fn find(name: &str) -> Option<&'static Flag> {
    SECTIONS
        .iter()
        .flat_map(|(_, flags)| flags.iter())
        .find(|flag| flag.names.contains(&name))
}

/// Returns the options that only this command has.
pub(crate) fn of_command(command: Command) -> &'static [Flag] {
    match command {
        Command::Doctor => DOCTOR,
        Command::Schema => SCHEMA,
        Command::Auth => AUTH,
        Command::Models => MODELS,
        Command::Trust => TRUST,
        Command::Mcp => MCP,
    }
}

/// An option that only this command has.
pub(crate) fn find_of_command(command: Command, name: &str) -> Option<&'static Flag> {
    of_command(command).iter().find(|flag| flag.names.contains(&name))
}

/// An option that only `--list-models` has.
pub(crate) fn find_of_list(name: &str) -> Option<&'static Flag> {
    LIST.iter().find(|flag| flag.names.contains(&name))
}

/// A setter that cannot fail.
macro_rules! set {
    ($field:ident) => {
        |a, v| {
            a.$field = Some(v);
            Ok(())
        }
    };
    (push $field:ident) => {
        |a, v| {
            a.$field.push(v);
            Ok(())
        }
    };
}

/// Options of commands alone; elsewhere they may be an extension's.
const DOCTOR: &[Flag] = &[switch(
    &["--json"],
    |a| a.json = true,
    "Answer as JSON, for programs",
)];
const LIST: &[Flag] = DOCTOR;
const MODELS: &[Flag] = &[
    switch(&["--json"], |a| a.json = true, "Answer as JSON, for programs"),
    value(
        &["--from"],
        "URL|FILE",
        set!(from),
        "A list as models.dev or pi-ai have it; also a directory of lists",
    ),
];
const TRUST: &[Flag] = &[
    switch(&["--json"], |a| a.json = true, "Answer as JSON, for programs"),
    switch(
        &["--remove"],
        |a| a.trust.remove = true,
        "Forget what was decided",
    ),
    switch(&["--deny"], |a| a.trust.deny = true, "Decide against it"),
    switch(&["--list"], |a| a.trust.list = true, "What is stored"),
];
const SCHEMA: &[Flag] = &[
    switch(
        &["--json"],
        |a| a.typescript = false,
        "As JSON Schema, the default",
    ),
    switch(&["--ts"], |a| a.typescript = true, "As TypeScript types"),
    value(
        &["--dialect"],
        "NAME",
        set::set_schema_dialect,
        "Only what this dialect has",
    ),
];

const AUTH: &[Flag] = &[
    switch(&["--json"], |a| a.json = true, "Answer as JSON, for programs"),
    switch(
        &["--api-key"],
        |a| a.key_from_stdin = true,
        "Store a key, read from stdin",
    ),
    value(&["--domain"], "DOMAIN", set!(domain), "A company's own GitHub"),
];

const MCP: &[Flag] = &[
    switch(&["--json"], |a| a.json = true, "Answer as JSON, for programs"),
    value(
        &["--url"],
        "URL",
        |a, v| {
            a.mcp.url = Some(v);
            Ok(())
        },
        "Where the server is",
    ),
    value(
        &["--env"],
        "NAME=VALUE",
        |a, v| {
            a.mcp.env.push(v);
            Ok(())
        },
        "A variable; repeatable",
    ),
    value(
        &["--header"],
        "NAME: VALUE",
        |a, v| {
            a.mcp.headers.push(v);
            Ok(())
        },
        "A header; repeatable",
    ),
    value(
        &["--bearer-token-env-var"],
        "NAME",
        |a, v| {
            a.mcp.bearer = Some(v);
            Ok(())
        },
        "The variable that holds the token",
    ),
    value(
        &["--cwd"],
        "DIR",
        |a, v| {
            a.mcp.cwd = Some(v);
            Ok(())
        },
        "Where the server works",
    ),
    value(
        &["--timeout"],
        "SECONDS",
        |a, v| {
            a.mcp.timeout = Some(v);
            Ok(())
        },
        "How long a request waits",
    ),
    switch(
        &["--local", "-l"],
        |a| a.mcp.local = true,
        "In the project's file",
    ),
];

/// Every option under its heading, in the order of the help text.
pub(crate) const SECTIONS: [(&str, &[Flag]); 8] = [
    ("Ways to run", RUN),
    ("Model", MODEL),
    ("Session", SESSION),
    ("Tools and trust", TOOLS),
    ("Prompt, skills, templates, extensions", RESOURCES),
    ("Web (--mode web)", WEB),
    ("Testing without a provider", TESTING),
    ("Accepted from other agents' command lines", COMPATIBILITY),
];

const fn switch(names: &'static [&'static str], set: fn(&mut Args), help: &'static str) -> Flag {
    Flag {
        names,
        takes: Takes::Nothing(set),
        help,
    }
}

const fn value(
    names: &'static [&'static str],
    what: &'static str,
    set: fn(&mut Args, String) -> Result<(), UsageError>,
    help: &'static str,
) -> Flag {
    Flag {
        names,
        takes: Takes::Value(what, set),
        help,
    }
}

const fn maybe(
    names: &'static [&'static str],
    what: &'static str,
    set: fn(&mut Args, Option<String>),
    help: &'static str,
) -> Flag {
    Flag {
        names,
        takes: Takes::Maybe(what, set),
        help,
    }
}

const RUN: &[Flag] = &[
    value(
        &["--mode"],
        "MODE",
        set::set_mode,
        "text (default), json, rpc or web",
    ),
    maybe(&["--print", "-p"], "TEXT", set::set_print, "Answer once and exit"),
    value(
        &["--rpc-dialect"],
        "NAME",
        set::set_dialect,
        "auto, early, web, hooks, omp, omp-now, xcsh, pi or pi-delta",
    ),
    maybe(
        &["--list-models"],
        "SEARCH",
        |a, v| a.list_models = Some(v),
        "List usable models and exit; --json for programs",
    ),
    value(
        &["--export"],
        "FILE",
        set!(export),
        "Write a session file as HTML and exit; the output may follow",
    ),
    switch(
        &["--offline"],
        |a| a.offline = true,
        "Do nothing on the network but talk to the model",
    ),
    switch(&["--verbose"], |a| a.verbose = true, "Say more on stderr"),
    value(
        &["--log-file"],
        "FILE",
        set!(log_file),
        "Log as JSON lines into a file (PINION_LOG says what)",
    ),
    switch(&["--help", "-h"], |a| a.help = true, "Show this text and exit"),
    switch(
        &["--version", "-v"],
        |a| a.version = true,
        "Show the version and exit",
    ),
];

const MODEL: &[Flag] = &[
    value(&["--provider"], "NAME", set!(provider), "Provider of --model"),
    value(
        &["--model"],
        "ID",
        set!(model),
        "Model: id, provider/id, part of a name, with :level",
    ),
    value(
        &["--thinking"],
        "LEVEL",
        set::set_thinking,
        "off, minimal, low, medium, high, xhigh or max",
    ),
    value(
        &["--models"],
        "LIST",
        set::set_models,
        "Models to switch between: names and patterns, by commas",
    ),
    value(
        &["--api-key"],
        "KEY",
        set!(api_key),
        "Key for this run (others can see it in the process list)",
    ),
];

const SESSION: &[Flag] = &[
    switch(
        &["--continue", "-c"],
        |a| a.continue_latest = true,
        "Go on with the latest session here",
    ),
    switch(
        &["--resume", "-r"],
        |a| a.resume = true,
        "Like --continue: there is no picker",
    ),
    value(
        &["--session"],
        "WHICH",
        set!(session),
        "Go on with a session: file or beginning of its id",
    ),
    value(&["--fork"], "WHICH", set!(fork), "Start with a copy of a session"),
    value(
        &["--session-id"],
        "ID",
        set::set_session_id,
        "Id of the new session",
    ),
    value(&["--name", "-n"], "NAME", set!(name), "Name of the session"),
    value(
        &["--session-dir"],
        "DIR",
        set!(session_dir),
        "Where session files are kept",
    ),
    switch(&["--no-session"], |a| a.no_session = true, "Keep nothing on disk"),
];

const TOOLS: &[Flag] = &[
    value(
        &["--tools", "-t"],
        "LIST",
        set::set_tools,
        "Only these tools, by commas; * matches",
    ),
    value(
        &["--exclude-tools", "-xt"],
        "LIST",
        set::exclude_tools,
        "Without these tools, by commas; * matches",
    ),
    switch(&["--no-tools", "-nt"], |a| a.no_tools = true, "No tools at all"),
    switch(
        &["--no-builtin-tools", "-nbt"],
        |a| a.no_builtin_tools = true,
        "Only tools of extensions",
    ),
    switch(
        &["--approve", "-a"],
        |a| a.approve = Some(true),
        "Trust the project's own configuration",
    ),
    switch(
        &["--no-approve", "-na"],
        |a| a.approve = Some(false),
        "Use nothing the project brings",
    ),
    value(
        &["--permission-mode"],
        "MODE",
        set::set_permission_mode,
        "off (default), auto, ask or read-only: which calls may run",
    ),
    value(
        &["--sandbox"],
        "MODE",
        set::set_sandbox,
        "off (default), workspace-write or read-only: what tools can reach",
    ),
    switch(
        &["--sandbox-network"],
        |a| a.sandbox_network = true,
        "Leave the network to commands in the sandbox",
    ),
    switch(&["--no-mcp"], |a| a.no_mcp = true, "Start no MCP servers"),
    value(
        &["--mcp-config"],
        "FILE",
        set!(push mcp_config),
        "A file with MCP servers; repeatable",
    ),
];

const RESOURCES: &[Flag] = &[
    value(
        &["--system-prompt"],
        "TEXT",
        set!(system_prompt),
        "In place of the built-in prompt: text or file",
    ),
    value(
        &["--append-system-prompt"],
        "TEXT",
        set!(push append_system_prompt),
        "After it: text or file; repeatable",
    ),
    switch(
        &["--no-context-files", "-nc"],
        |a| a.no_context_files = true,
        "Without AGENTS.md and CLAUDE.md",
    ),
    value(
        &["--skill"],
        "PATH",
        set!(push skills),
        "A skill or a directory of skills; repeatable",
    ),
    switch(
        &["--no-skills", "-ns"],
        |a| a.no_skills = true,
        "Only skills named by --skill",
    ),
    value(
        &["--prompt-template"],
        "PATH",
        set!(push prompt_templates),
        "A template or a directory of them; repeatable",
    ),
    switch(
        &["--no-prompt-templates", "-np"],
        |a| a.no_prompt_templates = true,
        "Only templates named by --prompt-template",
    ),
    value(
        &["--extension", "-e"],
        "PATH",
        set!(push extensions),
        "An extension; repeatable",
    ),
    switch(
        &["--no-extensions", "-ne"],
        |a| a.no_extensions = true,
        "Only extensions, hooks and tools named on the command line",
    ),
    value(
        &["--hook"],
        "PATH",
        set!(push hooks),
        "A hook: an executable, or a file of older pi; repeatable",
    ),
    switch(
        &["--no-hooks"],
        |a| a.no_hooks = true,
        "Only hooks named by --hook",
    ),
    value(
        &["--tool"],
        "PATH",
        set!(push custom_tools),
        "A tool file of older pi; repeatable",
    ),
];

const WEB: &[Flag] = &[
    value(
        &["--host", "--web-host"],
        "ADDRESS",
        set!(host),
        "Address to listen on (127.0.0.1)",
    ),
    value(
        &["--port", "--web-port"],
        "N",
        set::set_port,
        "Port (4781); 0 takes a free one",
    ),
    switch(
        &["--open", "--web-open"],
        |a| a.open = true,
        "Open the page in a browser",
    ),
    maybe(
        &["--web-token"],
        "TOKEN",
        |a, v| a.web_token = Some(v),
        "Ask clients for a token; made up if none is given",
    ),
    value(
        &["--web-allowed-origin", "--web-allowed-origins"],
        "ORIGIN",
        set!(push web_origins),
        "Another origin pages may come from; repeatable",
    ),
    value(
        &["--web-cert"],
        "FILE",
        set!(web_cert),
        "Certificates (PEM): TLS, with --web-key",
    ),
    value(
        &["--web-key"],
        "FILE",
        set!(web_key),
        "The key of the certificate (PEM)",
    ),
    switch(
        &["--web-insecure"],
        |a| a.web_insecure = true,
        "Allow other machines in without a token",
    ),
    value(
        &["--max-open-sessions"],
        "N",
        set::set_max_open_sessions,
        "Sessions kept open beside the first (32)",
    ),
    value(
        &["--serve-ui"],
        "DIR",
        set!(serve_ui),
        "Serve this page in place of the built-in one",
    ),
];

const TESTING: &[Flag] = &[
    value(
        &["--script"],
        "FILE",
        set!(script),
        "Replies for --model offline/script",
    ),
    value(
        &["--record"],
        "FILE",
        set!(record),
        "Keep what providers are asked and answer in a file, without keys",
    ),
    value(
        &["--replay"],
        "FILE",
        set!(replay),
        "Answer from such a file; needs no network and no keys",
    ),
    value(
        &["--replay-speed"],
        "N",
        set::set_replay_speed,
        "In its own time (1), or N times faster; without it at once",
    ),
    switch(
        &["--replay-strict"],
        |a| a.replay_strict = true,
        "Fail when a conversation differs from the recorded one",
    ),
];

const COMPATIBILITY: &[Flag] = &[
    value(
        &["--theme"],
        "PATH",
        |_, _| Ok(()),
        "No effect: there is no terminal page",
    ),
    value(&["--use-theme"], "NAME", |_, _| Ok(()), "No effect"),
    value(&["--tui-mode"], "MODE", |_, _| Ok(()), "No effect"),
    switch(&["--no-themes"], |_| {}, "No effect"),
    switch(
        &["--no-title"],
        set::set_vendor,
        "No effect but to tell the dialect",
    ),
    switch(
        &["--no-rules"],
        set::set_no_rules,
        "Do not load rules that watch answers",
    ),
    switch(
        &["--no-pty"],
        set::set_vendor,
        "No effect but to tell the dialect",
    ),
    switch(
        &["--no-lsp"],
        set::set_vendor,
        "No effect but to tell the dialect",
    ),
    value(
        &["--provider-session-id"],
        "ID",
        set::set_provider_session,
        "Session id told to the provider",
    ),
];
