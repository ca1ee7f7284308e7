//! Completions for zsh, on top of its `_arguments`.

use std::fmt::Write as _;

use super::table::{self, Value};
use crate::args::{COMMANDS, Flag};

/// Returns the script.
pub(super) fn script() -> String {
    let mut out = String::from(
        "#compdef pinion\n# zsh completion for pinion. Made by `pinion completions zsh`.\n\n_pinion_message() {\n    \
         if [[ $PREFIX == @* ]]; then\n        compset -P '@'\n    fi\n    _files\n}\n\n_pinion_first() {\n    \
         local -a commands\n    commands=(\n",
    );
    for command in &COMMANDS {
        let purpose = quote(&command.about.replace(':', "\\:"));
        let _ = writeln!(out, "        '{}:{purpose}'", command.name);
    }
    out.push_str("    )\n    _describe -t commands command commands\n    _pinion_message\n}\n\n_pinion() {\n    if (( CURRENT > 2 )); then\n        case $words[2] in\n");
    for command in &COMMANDS {
        let _ = writeln!(
            out,
            "            {})\n                shift words\n                (( CURRENT-- ))\n                _arguments \\",
            command.name
        );
        for flag in command.flags {
            let _ = writeln!(out, "                    {} \\", spec(flag));
        }
        let words = command.words;
        if !words.is_empty() {
            let _ = writeln!(out, "                    '1:action:({})' \\", words.join(" "));
        }
        out.push_str("                    '*:argument:_files'\n                return\n                ;;\n");
    }
    out.push_str("        esac\n    fi\n    _arguments \\\n");
    for flag in table::main_flags() {
        let _ = writeln!(out, "        {} \\", spec(flag));
    }
    out.push_str("        '1:command or message:_pinion_first' \\\n        '*:message:_pinion_message'\n}\n\n_pinion \"$@\"\n");
    out
}

/// Returns the specification of one option. All options may be repeated, as the parser lets them.
fn spec(flag: &Flag) -> String {
    let help = quote(&bracketed(flag.help));
    let value = value(flag);
    match flag.names {
        [name] => format!("'*{name}[{help}]{value}'"),
        names => format!("'*'{{{}}}'[{help}]{value}'", names.join(",")),
    }
}

fn value(flag: &Flag) -> String {
    let action = match table::value(flag) {
        Value::None => return String::new(),
        Value::Choice(words) => format!("({})", words.join(" ")),
        Value::File => "_files".to_owned(),
        Value::Directory => "_files -/".to_owned(),
        Value::Text => " ".to_owned(),
    };
    let what = table::placeholder(flag).unwrap_or_default().replace(':', "\\:");
    let colons = if table::is_optional(flag) { "::" } else { ":" };
    format!("{colons}{}:{action}", quote(&what))
}

/// Escapes what ends a description.
fn bracketed(text: &str) -> String {
    text.replace('\\', "\\\\").replace('[', "\\[").replace(']', "\\]")
}

/// Escapes a text for single quotes.
fn quote(text: &str) -> String {
    text.replace('\'', "'\\''")
}
