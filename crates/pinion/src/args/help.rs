//! The text of `--help`, made from the table of options.

use std::fmt::Write as _;

use super::flags::{COMMANDS, Flag, SECTIONS, Takes};

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
