//! The texts of `--help`, made from the tables of options and commands.

use std::fmt::Write as _;

use super::Command;
use super::commands::{self, COMMANDS};
use super::flags::{Flag, SECTIONS, Takes, find};

/// Columns for an option's names and value.
const OPTION_WIDTH: usize = 32;
/// Columns for an example.
const EXAMPLE_WIDTH: usize = 44;
/// Columns for the name of a command.
const COMMAND_WIDTH: usize = 12;

const EXAMPLES: [(&str, &str); 6] = [
    ("PROGRAM -p \"What does this project do?\"", "answer one prompt"),
    ("PROGRAM -p @notes.txt \"Summarise this\"", "attach a file"),
    ("git diff | PROGRAM -p \"Review this\"", "read stdin"),
    (
        "PROGRAM -c -p \"And now the tests\"",
        "resume the most recent session",
    ),
    (
        "PROGRAM --mode rpc",
        "serve a host application on stdin and stdout",
    ),
    ("PROGRAM --mode web --open", "serve the web page and open it"),
];

/// The help text for a program of this name.
pub(crate) fn help(program: &str) -> String {
    let mut out = format!(
        "{program}: a headless coding agent\n\n\
         Usage: {program} [options] [@file...] [message...]\n       {program} COMMAND [options]\n\nExamples:\n"
    );
    for (arguments, purpose) in EXAMPLES {
        let arguments = arguments.replace("PROGRAM", program);
        let _ = writeln!(out, "  {arguments:<EXAMPLE_WIDTH$}  {purpose}");
    }
    let _ = writeln!(out, "\nCommands ({program} COMMAND --help describes one):");
    for info in &COMMANDS {
        let _ = writeln!(out, "  {:<COMMAND_WIDTH$}  {}", info.name, info.about);
    }
    for (heading, flags) in SECTIONS {
        let _ = writeln!(out, "\n{heading}:");
        options(&mut out, flags);
    }
    out.push_str(
        "\nWords after -- are messages, even if they look like options or commands.\n\
         Loaded extensions can add options. Other unknown options are errors.\n",
    );
    out
}

/// The help text of one command.
pub(crate) fn help_of(program: &str, command: Command) -> String {
    let Some(info) = commands::info(command) else {
        return help(program);
    };
    let mut out = format!("{program} {}: {}\n\nUsage:\n", info.name, info.about);
    let widest = info.usage.iter().map(|(usage, _)| usage.len()).max().unwrap_or(0);
    let width = widest + program.len() + 1;
    for (usage, purpose) in info.usage {
        let usage = format!("{program} {usage}");
        let _ = writeln!(out, "  {usage:<width$}  {purpose}");
    }
    if !info.flags.is_empty() {
        out.push_str("\nOptions:\n");
        options(&mut out, info.flags);
    }
    let general: Vec<&Flag> = info.general.iter().filter_map(|name| find(name)).collect();
    if !general.is_empty() {
        out.push_str("\nGeneral options that it uses:\n");
        options(&mut out, general);
    }
    out
}

fn options<'a>(out: &mut String, flags: impl IntoIterator<Item = &'a Flag>) {
    for flag in flags {
        let _ = writeln!(out, "  {:<OPTION_WIDTH$}  {}", left(flag), flag.help);
    }
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
