//! Completions for bash 3.2 and newer.

use std::fmt::Write as _;

use super::table::{self, Value};
use crate::args::{COMMANDS, Flag};

const HEAD: &str = r#"# bash completion for pinion. Made by `pinion completions bash`.
_pinion() {
    local cur prev command="" options="" words=""
    cur=${COMP_WORDS[COMP_CWORD]}
    prev=${COMP_WORDS[COMP_CWORD-1]}
    local IFS=$'\n'
    COMPREPLY=()
"#;

const TAIL: &str = r#"    IFS=$' \n'
    case $cur in
        -*) COMPREPLY=($(compgen -W "$options" -- "$cur")) ;;
        @*)
            IFS=$'\n'
            compopt -o filenames 2>/dev/null
            COMPREPLY=($(compgen -P @ -f -- "${cur#@}"))
            ;;
        *)
            COMPREPLY=($(compgen -W "$words" -- "$cur"))
            IFS=$'\n'
            compopt -o filenames 2>/dev/null
            COMPREPLY+=($(compgen -f -- "$cur"))
            ;;
    esac
}
complete -F _pinion pinion
"#;

/// Returns the script.
pub(super) fn script() -> String {
    let commands = COMMANDS.each_ref().map(|command| command.name);
    let mut out = HEAD.to_owned();
    let _ = writeln!(
        out,
        "    if [ \"$COMP_CWORD\" -gt 1 ]; then\n        case ${{COMP_WORDS[1]}} in\n            {}) command=${{COMP_WORDS[1]}} ;;\n        \
         esac\n    fi",
        commands.join("|")
    );
    out.push_str("    case $command:$prev in\n");
    for command in &COMMANDS {
        values(&mut out, command.name, command.flags);
    }
    values(&mut out, "*", table::main_flags());
    out.push_str("    esac\n    case $command in\n");
    for command in &COMMANDS {
        let flags = names(command.flags).join(" ");
        let words = command.words.join(" ");
        let _ = writeln!(
            out,
            "        {})\n            options=\"{flags}\"\n            [ \"$COMP_CWORD\" -eq 2 ] && words=\"{words}\"\n            ;;",
            command.name
        );
    }
    let _ = writeln!(
        out,
        "        *)\n            options=\"{}\"\n            [ \"$COMP_CWORD\" -eq 1 ] && words=\"{}\"\n            ;;\n    esac",
        names(table::main_flags()).join(" "),
        commands.join(" ")
    );
    out.push_str(TAIL);
    out
}

fn names(flags: impl IntoIterator<Item = &'static Flag>) -> Vec<&'static str> {
    flags
        .into_iter()
        .flat_map(|flag| flag.names.iter().copied())
        .collect()
}

/// Writes what completes the values of options, one case for each.
fn values(out: &mut String, command: &str, flags: impl IntoIterator<Item = &'static Flag>) {
    for flag in flags {
        let action = match table::value(flag) {
            Value::None => continue,
            Value::Choice(words) => {
                let words = words.join("\\n");
                format!("COMPREPLY=($(compgen -W $'{words}' -- \"$cur\")); return")
            }
            Value::File => {
                "compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- \"$cur\")); return".to_owned()
            }
            Value::Directory => {
                "compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -d -- \"$cur\")); return".to_owned()
            }
            Value::Text if table::is_optional(flag) => continue,
            Value::Text => "return".to_owned(),
        };
        let patterns: Vec<String> = flag
            .names
            .iter()
            .map(|name| format!("{command}:{name}"))
            .collect();
        let _ = writeln!(out, "        {}) {action} ;;", patterns.join("|"));
    }
}
