//! Completions for fish.

use std::fmt::Write as _;

use super::table::{self, Value};
use crate::args::{COMMANDS, Flag};

/// Returns the script.
pub(super) fn script() -> String {
    let commands = COMMANDS.each_ref().map(|command| command.name).join(" ");
    let mut out = format!(
        "# fish completion for pinion. Made by `pinion completions fish`.\n\nfunction __pinion_command\n    \
         set -l words (commandline -opc)\n    if test (count $words) -ge 2; and contains -- $words[2] {commands}\n        \
         echo $words[2]\n    end\nend\n\nfunction __pinion_is\n    test (__pinion_command) = \"$argv[1]\" 2>/dev/null\nend\n\n\
         function __pinion_words\n    test (count (commandline -opc)) -eq $argv[1]\nend\n\n"
    );
    for command in &COMMANDS {
        let _ = writeln!(
            out,
            "complete -c pinion -n '__pinion_words 1' -a {} -d {}",
            command.name,
            quote(command.about)
        );
    }
    for command in &COMMANDS {
        let name = command.name;
        for word in command.words {
            let _ = writeln!(
                out,
                "complete -c pinion -n '__pinion_is {name}; and __pinion_words 2' -a {word}"
            );
        }
        for flag in command.flags {
            let _ = writeln!(out, "{}", line(&format!("__pinion_is {name}"), flag));
        }
    }
    for flag in table::main_flags() {
        let _ = writeln!(
            out,
            "{}",
            line("test -z (__pinion_command | string collect)", flag)
        );
    }
    out
}

/// Returns the line of one option under a condition.
fn line(condition: &str, flag: &Flag) -> String {
    let mut out = format!("complete -c pinion -n '{condition}'");
    for name in flag.names {
        let _ = match (name.strip_prefix("--"), name.strip_prefix('-')) {
            (Some(long), _) => write!(out, " -l {long}"),
            (None, Some(short)) if short.len() == 1 => write!(out, " -s {short}"),
            (None, Some(old)) => write!(out, " -o {old}"),
            (None, None) => Ok(()),
        };
    }
    match table::value(flag) {
        Value::None => {}
        _ if table::is_optional(flag) => {}
        Value::Choice(words) => {
            let _ = write!(out, " -x -a '{}'", words.join(" "));
        }
        Value::File => out.push_str(" -r -F"),
        Value::Directory => out.push_str(" -x -a '(__fish_complete_directories)'"),
        Value::Text => out.push_str(" -x"),
    }
    let _ = write!(out, " -d {}", quote(flag.help));
    out
}

/// Quotes a text, with the escapes that fish knows inside single quotes.
fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}
