//! Manual pages in man(7) format.

use std::fmt::Write as _;

use super::table;
use crate::args::{COMMANDS, CommandInfo, Flag, SECTIONS};

const DESCRIPTION: &str = "Pinion is a coding agent without a terminal interface of its own. It sends messages to a language model, runs the tools \
that the model calls in the working directory, and writes the conversation to a session file. With a message, Pinion answers \
once and exits. With --mode rpc, an application writes JSON commands to stdin, one on each line, and reads responses and events \
from stdout. With --mode web, browsers and other clients connect over WebSocket or HTTP.";

const STATUS: [(&str, &str); 5] = [
    ("0", "Success."),
    (
        "1",
        "The model's last answer failed or was aborted, or the configuration has an error.",
    ),
    ("2", "The command line has an error."),
    ("130", "SIGINT ended the run."),
    ("143", "SIGTERM ended the run."),
];

const VARIABLES: [(&str, &str); 4] = [
    (
        "PI_CODING_AGENT_DIR",
        "The directory of settings, keys, models and sessions (default ~/.pi/agent).",
    ),
    (
        "PI_OFFLINE",
        "Do nothing on the network but talk to the model, like --offline.",
    ),
    (
        "PINION_LOG, RUST_LOG",
        "What to log: a level, or target=level separated by commas.",
    ),
    (
        "ANTHROPIC_API_KEY, OPENAI_API_KEY, ...",
        "Keys of model providers. \"pinion auth status\" lists the providers.",
    ),
];

const FILES: [(&str, &str); 5] = [
    ("~/.pi/agent/settings.json", "The user's settings."),
    ("~/.pi/agent/auth.json", "Keys and logins."),
    ("~/.pi/agent/models.json", "Models that the user adds."),
    ("~/.pi/agent/sessions/", "Session files."),
    (".pi/settings.json", "The project's settings."),
];

/// Returns pinion(1).
pub(super) fn main_page(version: &str) -> String {
    let mut out = head("pinion", version);
    let _ = writeln!(
        out,
        ".SH NAME\npinion \\- a headless coding agent\n.SH SYNOPSIS\n.B pinion\n.RI [ options ]\n.RI [ @file ...]\n.RI [ message ...]\n.br\n\
         .B pinion\n.I command\n.RI [ options ]\n.SH DESCRIPTION\n{}\n.SH COMMANDS",
        escape(DESCRIPTION)
    );
    for command in &COMMANDS {
        for (what, purpose) in command.usage {
            let _ = writeln!(out, ".TP\n.B {}\n{}.", escape(what), escape(purpose));
        }
    }
    out.push_str(".SH OPTIONS\n");
    for (heading, flags) in SECTIONS {
        let _ = writeln!(out, ".SS {}", escape(heading));
        for flag in flags {
            option(&mut out, flag);
        }
    }
    out.push_str(
        ".PP\nWords after \\fB\\-\\-\\fR are messages. Loaded extensions can add options; other unknown options are errors.\n",
    );
    list(&mut out, "EXIT STATUS", &STATUS);
    list(&mut out, "ENVIRONMENT", &VARIABLES);
    list(&mut out, "FILES", &FILES);
    let pages: Vec<String> = COMMANDS
        .iter()
        .map(|command| format!(".BR pinion\\-{} (1)", command.name))
        .collect();
    let _ = writeln!(out, ".SH SEE ALSO\n{}", pages.join(",\n"));
    out
}

/// Returns the page of one command.
pub(super) fn command_page(command: &CommandInfo, version: &str) -> String {
    let name = command.name;
    let mut out = head(&format!("pinion-{name}"), version);
    let _ = writeln!(
        out,
        ".SH NAME\npinion\\-{name} \\- {}\n.SH SYNOPSIS",
        escape(&lowercase(command.about))
    );
    for (what, _) in command.usage {
        let _ = writeln!(out, ".B pinion {}\n.br", escape(what));
    }
    out.push_str(".SH DESCRIPTION\n");
    for (what, purpose) in command.usage {
        let _ = writeln!(out, ".TP\n.B {}\n{}.", escape(what), escape(purpose));
    }
    if !command.flags.is_empty() {
        out.push_str(".SH OPTIONS\n");
    }
    for flag in command.flags {
        option(&mut out, flag);
    }
    out.push_str(".PP\nThe options of\n.BR pinion (1)\nare accepted, too.\n.SH SEE ALSO\n.BR pinion (1)\n");
    out
}

fn head(name: &str, version: &str) -> String {
    let upper = escape(&name.to_uppercase());
    format!(
        ".\\\" Made by `pinion man`.\n.TH {upper} 1 \"\" \"{}\" \"User Commands\"\n",
        escape(version)
    )
}

fn option(out: &mut String, flag: &Flag) {
    let names: Vec<String> = flag
        .names
        .iter()
        .map(|name| format!("\\fB{}\\fR", escape(name)))
        .collect();
    let value = match table::placeholder(flag) {
        None => String::new(),
        Some(what) if table::is_optional(flag) => format!(" [\\fI{}\\fR]", escape(what)),
        Some(what) => format!(" \\fI{}\\fR", escape(what)),
    };
    let _ = writeln!(out, ".TP\n{}{value}\n{}.", names.join(", "), escape(flag.help));
}

fn list(out: &mut String, heading: &str, rows: &[(&str, &str)]) {
    let _ = writeln!(out, ".SH {heading}");
    for (what, text) in rows {
        let _ = writeln!(out, ".TP\n.B {}\n{}", escape(what), escape(text));
    }
}

fn lowercase(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

/// Escapes what roff would take for a request or a hyphen.
fn escape(text: &str) -> String {
    let escaped = text.replace('\\', "\\e").replace('-', "\\-");
    if escaped.starts_with(['.', '\'']) {
        format!("\\&{escaped}")
    } else {
        escaped
    }
}
