//! The table of general options: one definition each, which feeds the parser and the help text. The options of single
//! commands live in `commands`, those of other agents in `foreign`, the parser in `parse`, and setters that check their value
//! in `set`.

use super::Args;
use super::error::UsageError;
use super::foreign::FOREIGN;
use super::set;

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

impl Flag {
    /// Returns true for options that limit what a run may do. `--approval-mode` is oh-my-pi's name of `--permission-mode`.
    pub(super) fn protects(&self) -> bool {
        self.names.iter().any(|name| {
            name.starts_with("--max-")
                || *name == "--approval-mode"
                || TOOLS.iter().any(|flag| flag.names.contains(name))
        })
    }
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
    // As in pi, an empty text is the same as no option.
    (text $field:ident) => {
        |a, v| {
            a.$field = Some(v).filter(|text| !text.is_empty());
            Ok(())
        }
    };
}

/// Every option under its heading, in the order of the help text.
pub(crate) const SECTIONS: [(&str, &[Flag]); 8] = [
    ("Mode", RUN),
    ("Model", MODEL),
    ("Session", SESSION),
    ("Tools, permissions and trust", TOOLS),
    ("Prompt, skills, templates and extensions", RESOURCES),
    ("Web server (--mode web)", WEB),
    ("Tests and recordings", TESTING),
    ("Options of other agents, accepted for compatibility", FOREIGN),
];

pub(super) const fn switch(names: &'static [&'static str], set: fn(&mut Args), help: &'static str) -> Flag {
    Flag {
        names,
        takes: Takes::Nothing(set),
        help,
    }
}

pub(super) const fn value(
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
        "Output mode: text (default), json, rpc, web or acp",
    ),
    maybe(
        &["--print", "-p"],
        "TEXT",
        set::set_print,
        "Answer one prompt and exit",
    ),
    value(
        &["--output-schema"],
        "FILE",
        |a, v| {
            a.run.output_schema = Some(v);
            Ok(())
        },
        "With -p, print only a result that fits this JSON Schema",
    ),
    value(
        &["--rpc-dialect"],
        "NAME",
        set::set_dialect,
        "RPC dialect: auto, early, web, hooks, omp, omp-now, xcsh, pi or pi-delta",
    ),
    maybe(
        &["--list-models"],
        "SEARCH",
        |a, v| a.list_models = Some(v),
        "List the models that can be used and exit; with --json as JSON",
    ),
    value(
        &["--export"],
        "FILE",
        set!(export),
        "Write a session file as HTML and exit; the next word names the output",
    ),
    switch(
        &["--offline"],
        |a| a.offline = true,
        "Use the network only for model requests",
    ),
    switch(
        &["--verbose"],
        |a| a.verbose = true,
        "Print more messages to stderr",
    ),
    value(
        &["--log-file"],
        "FILE",
        set!(log_file),
        "Write a log as JSON lines to this file (filter: PINION_LOG)",
    ),
    switch(
        &["--help", "-h"],
        |a| a.help = true,
        "Print this help and exit; COMMAND --help describes one command",
    ),
    switch(
        &["--version", "-v"],
        |a| a.version = true,
        "Print the version and exit",
    ),
    value(
        &["--attach"],
        "URL",
        set::set_attach,
        "With --mode rpc, attach to a session on a worker: nats://HOST[/PREFIX]/SESSION",
    ),
    value(
        &["--nats"],
        "URL",
        set::set_nats,
        "With --mode web or acp, serve the sessions of workers: nats://HOST[:PORT][,HOST...]",
    ),
];

const MODEL: &[Flag] = &[
    value(
        &["--provider"],
        "NAME",
        set!(provider),
        "Provider; without --model, its default model",
    ),
    value(
        &["--model"],
        "ID",
        set!(model),
        "Model: id, provider/id or part of a name; may end in :LEVEL",
    ),
    value(
        &["--thinking"],
        "LEVEL",
        set::set_thinking,
        "Thinking level: off, minimal, low, medium, high, xhigh or max",
    ),
    value(
        &["--models"],
        "LIST",
        set::set_models,
        "Models to cycle through: names and patterns, comma-separated",
    ),
    value(
        &["--api-key"],
        "KEY",
        set!(api_key),
        "API key for this run; visible in the process list",
    ),
];

const SESSION: &[Flag] = &[
    switch(
        &["--continue", "-c"],
        |a| a.continue_latest = true,
        "Resume the most recent session in this directory",
    ),
    switch(
        &["--resume", "-r"],
        |a| a.resume = true,
        "Same as --continue, or a session that the first word names",
    ),
    value(
        &["--session"],
        "WHICH",
        set!(text session),
        "Resume a session: file, or first characters of its id",
    ),
    value(
        &["--fork"],
        "WHICH",
        set!(text fork),
        "Copy a session and continue the copy",
    ),
    value(
        &["--login"],
        "PROVIDER",
        |a, v| {
            a.auth.login = Some(v);
            Ok(())
        },
        "Log in to a provider in the browser and exit",
    ),
    value(
        &["--session-id"],
        "ID",
        set::set_session_id,
        "Id of the session: continued, or new if there is none",
    ),
    value(&["--name", "-n"], "NAME", set!(name), "Name of the session"),
    value(
        &["--session-dir"],
        "DIR",
        set!(session_dir),
        "Directory of session files",
    ),
    value(
        &["--durability"],
        "LEVEL",
        set::set_durability,
        "What stored entries survive: process (kill -9, default) or disk (power failure)",
    ),
    value(
        &["--max-turns"],
        "N",
        set::set_max_turns,
        "End the session's work after N requests to the model",
    ),
    value(
        &["--max-tool-calls"],
        "N",
        set::set_max_tool_calls,
        "End it after N tool calls",
    ),
    value(
        &["--max-tokens"],
        "N",
        set::set_max_tokens,
        "End it after N tokens, input and output",
    ),
    value(
        &["--max-cost"],
        "USD",
        set::set_max_cost,
        "End it after this cost in US dollars",
    ),
    value(
        &["--max-time"],
        "SECONDS",
        set::set_max_time,
        "End it after so many seconds of work",
    ),
    value(
        &["--max-repeats"],
        "N",
        set::set_max_repeats,
        "End it when the model makes the same calls N times in a row with the same results",
    ),
    value(
        &["--checkpoints"],
        "KIND",
        set::set_checkpoints,
        "What rewind can restore: off (default), files (edit, write) or worktree (all tools)",
    ),
    switch(
        &["--no-session"],
        |a| a.no_session = true,
        "Do not write a session file",
    ),
];

const TOOLS: &[Flag] = &[
    value(
        &["--tools", "-t"],
        "LIST",
        set::set_tools,
        "Enable only these tools, comma-separated; * matches; +NAME adds, -NAME removes",
    ),
    value(
        &["--exclude-tools", "-xt"],
        "LIST",
        set::exclude_tools,
        "Disable these tools, comma-separated; * matches",
    ),
    switch(&["--no-tools", "-nt"], |a| a.no_tools = true, "Disable all tools"),
    switch(
        &["--no-builtin-tools", "-nbt"],
        |a| a.no_builtin_tools = true,
        "Disable the built-in tools",
    ),
    switch(
        &["--approve", "-a"],
        |a| a.approve = Some(true),
        "Use the project's extensions, hooks and MCP servers",
    ),
    switch(
        &["--no-approve", "-na"],
        |a| a.approve = Some(false),
        "Ignore all configuration of the project",
    ),
    value(
        &["--permission-mode"],
        "MODE",
        set::set_permission_mode,
        "Which tool calls may run: off (no limit, default), auto, ask or read-only",
    ),
    value(
        &["--sandbox"],
        "MODE",
        set::set_sandbox,
        "What tools can access: off (no limit, default), workspace-write or read-only",
    ),
    switch(
        &["--sandbox-network"],
        |a| a.sandbox.network = true,
        "Allow network access inside the sandbox",
    ),
    switch(&["--no-mcp"], |a| a.no_mcp = true, "Do not start MCP servers"),
    value(
        &["--mcp-config"],
        "FILE",
        set!(push mcp_config),
        "File with MCP servers; repeatable",
    ),
];

const RESOURCES: &[Flag] = &[
    value(
        &["--system-prompt"],
        "TEXT",
        set!(system_prompt),
        "Replace the built-in system prompt: text or file",
    ),
    value(
        &["--append-system-prompt"],
        "TEXT",
        set!(push append_system_prompt),
        "Append to the system prompt: text or file; repeatable",
    ),
    switch(
        &["--no-context-files", "-nc"],
        |a| a.no_context_files = true,
        "Do not load AGENTS.md and CLAUDE.md",
    ),
    value(
        &["--skill"],
        "PATH",
        set!(push skills),
        "Load a skill or a directory of skills; repeatable",
    ),
    switch(
        &["--no-skills", "-ns"],
        |a| a.no_skills = true,
        "Load only skills named with --skill",
    ),
    value(
        &["--prompt-template"],
        "PATH",
        set!(push prompt_templates),
        "Load a prompt template or a directory of templates; repeatable",
    ),
    switch(
        &["--no-prompt-templates", "-np"],
        |a| a.no_prompt_templates = true,
        "Load only templates named with --prompt-template",
    ),
    value(
        &["--extension", "-e"],
        "PATH",
        set!(push extensions),
        "Load an extension; repeatable",
    ),
    switch(
        &["--no-extensions", "-ne"],
        |a| a.no_extensions = true,
        "Load only extensions, hooks and tools named on the command line",
    ),
    value(
        &["--hook"],
        "PATH",
        set!(push hooks),
        "Load a hook: an executable, or a hook file of older pi; repeatable",
    ),
    switch(
        &["--no-hooks"],
        |a| a.no_hooks = true,
        "Load only hooks named with --hook",
    ),
    value(
        &["--tool"],
        "PATH",
        set!(push custom_tools),
        "Load a tool file of older pi; repeatable",
    ),
];

const WEB: &[Flag] = &[
    value(
        &["--host", "--web-host"],
        "ADDRESS",
        set!(host),
        "Address to listen on (default: 127.0.0.1)",
    ),
    value(
        &["--port", "--web-port"],
        "N",
        set::set_port,
        "Port (default: 4781); 0 selects a free port",
    ),
    switch(
        &["--open", "--web-open"],
        |a| a.open = true,
        "Open the page in the default browser",
    ),
    maybe(
        &["--web-token"],
        "TOKEN",
        |a, v| a.web_token = Some(v),
        "Require a token from clients; generated if omitted",
    ),
    value(
        &["--web-allowed-origin", "--web-allowed-origins"],
        "ORIGIN",
        set!(push web_origins),
        "Accept pages from this origin; repeatable",
    ),
    value(
        &["--web-cert"],
        "FILE",
        set!(web_cert),
        "TLS certificate chain (PEM); needs --web-key",
    ),
    value(
        &["--web-key"],
        "FILE",
        set!(web_key),
        "Private key of the certificate (PEM)",
    ),
    switch(
        &["--web-insecure"],
        |a| a.web_insecure = true,
        "Accept clients on other machines without a token",
    ),
    value(
        &["--max-open-sessions"],
        "N",
        set::set_max_open_sessions,
        "Limit of open sessions, not counting the first (default: 32)",
    ),
    value(
        &["--serve-ui"],
        "DIR",
        set!(serve_ui),
        "Serve the page in this directory instead of the built-in page",
    ),
];

const TESTING: &[Flag] = &[
    value(
        &["--script"],
        "FILE",
        set!(script),
        "Replies for --model offline/script (JSON)",
    ),
    value(
        &["--record"],
        "FILE",
        set!(record),
        "Record provider requests and responses, without keys",
    ),
    value(
        &["--record-inputs"],
        "FILE",
        set!(record_inputs),
        "Record inputs in a new file for a bug report: all messages, without known keys",
    ),
    value(
        &["--replay"],
        "FILE",
        set!(replay),
        "Answer from a recording; needs no network and no keys",
    ),
    value(
        &["--replay-speed"],
        "N",
        set::set_replay_speed,
        "Replay N times as fast as recorded (default: no delays)",
    ),
    switch(
        &["--replay-strict"],
        |a| a.replay_strict = true,
        "Fail when a request differs from the recorded one",
    ),
];
