//! The text of `--help`, made from the table of options.

use std::fmt::Write as _;

use super::flags::{Flag, SECTIONS, Takes};

/// Commands, which stand first: what to type, and one line for people.
pub(crate) const COMMANDS: [(&str, &str); 12] = [
    (
        "doctor [--json]",
        "Say what was found where: settings, keys, models, sessions",
    ),
    (
        "schema [--ts] [--dialect NAME]",
        "Print the protocol as JSON Schema (--json) or TypeScript types",
    ),
    (
        "auth login PROVIDER [--open]",
        "Log in; --api-key stores a key read from stdin instead",
    ),
    ("auth logout PROVIDER", "Forget what is stored for a provider"),
    ("auth status [--json]", "Which providers have a key or login"),
    (
        "models update [--from URL|FILE]",
        "Renew the list of known models, from models.dev or elsewhere",
    ),
    (
        "models status [--json]",
        "Say which list of known models is in use",
    ),
    (
        "trust [DIR] [--deny|--remove]",
        "Let a project bring code; --deny forbids it, --remove forgets",
    ),
    ("trust --list [--json]", "The decisions that are stored"),
    (
        "mcp add NAME -- COMMAND ...",
        "Configure an MCP server; --url URL for one that is reached by HTTP",
    ),
    (
        "mcp remove|login|logout NAME",
        "Forget an MCP server; log in at one, or out",
    ),
    (
        "mcp list [--json]",
        "Connect the MCP servers and say how they are",
    ),
];

/// Columns for an option's names and value.
const OPTION_WIDTH: usize = 32;
/// Columns for an example.
const EXAMPLE_WIDTH: usize = 44;

const EXAMPLES: [(&str, &str); 6] = [
    ("PROGRAM -p \"What does this project do?\"", "answer once"),
    ("PROGRAM -p @notes.txt \"Summarise this\"", "with a file"),
    ("git diff | PROGRAM -p \"Review this\"", "with what comes in"),
    (
        "PROGRAM -c -p \"And now the tests\"",
        "go on with the latest session",
    ),
    ("PROGRAM --mode rpc", "speak JSON lines with a host application"),
    (
        "PROGRAM --mode web --open",
        "the same over WebSocket, with a page",
    ),
];

/// The help text for a program of this name.
pub(crate) fn help(program: &str) -> String {
    let mut out = format!(
        "{program}: a headless coding agent\n\n\
         Usage: {program} [options] [@file...] [message...]\n       {program} doctor [--json] [options]\n       \
         {program} schema [--json|--ts] [--dialect NAME]\n       {program} auth login|logout|status\n       \
         {program} models update|status [options]\n\n\
         Examples:\n"
    );
    for (arguments, purpose) in EXAMPLES {
        let _ = writeln!(
            out,
            "  {:<width$}  {purpose}",
            arguments.replace("PROGRAM", program),
            width = EXAMPLE_WIDTH
        );
    }
    out.push_str("\nCommands:\n");
    for (what, purpose) in COMMANDS {
        let _ = writeln!(out, "  {what:<OPTION_WIDTH$}  {purpose}");
    }
    for (heading, flags) in SECTIONS {
        let _ = writeln!(out, "\n{heading}:");
        for flag in flags {
            let _ = writeln!(
                out,
                "  {:<width$}  {}",
                left(flag),
                flag.help,
                width = OPTION_WIDTH
            );
        }
    }
    out.push_str(
        "\nWhat follows -- is a message, whatever it looks like. Options unknown here are kept for extensions.\n",
    );
    out
}

/// Names and value of an option, the short name first. Aliases are left out.
fn left(flag: &Flag) -> String {
    let short = flag.names.iter().find(|name| !name.starts_with("--"));
    let names: Vec<&str> = short.into_iter().chain(flag.names.first()).copied().collect();
    let names = names.join(", ");
    match flag.takes {
        Takes::Nothing(_) => names,
        Takes::Value(what, _) => format!("{names} {what}"),
        Takes::Maybe(what, _) => format!("{names} [{what}]"),
    }
}
