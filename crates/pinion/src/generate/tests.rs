//! The generated files against the table of options and the parser.

use super::table::{self, Value};
use super::text;
use crate::args::{COMMANDS, parse};

fn try_generate(words: &[&str]) -> anyhow::Result<Option<String>> {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    text(&parse("pinion", &words)?, "pinion 0.0.0")
}

fn generate(words: &[&str]) -> String {
    try_generate(words).unwrap().unwrap()
}

#[test]
fn offered_values_are_accepted_by_parser() {
    let own = COMMANDS
        .iter()
        .flat_map(|command| command.flags.iter().map(move |flag| (Some(command), flag)));
    let mut choices = 0;
    for (command, flag) in table::main_flags().map(|flag| (None, flag)).chain(own) {
        let Value::Choice(words) = table::value(flag) else {
            continue;
        };
        for word in words {
            let mut line: Vec<String> = command.iter().map(|command| command.name.to_owned()).collect();
            line.extend([flag.names[0].to_owned(), word.to_owned()]);
            let args = parse("pinion", &line).unwrap();
            assert!(args.warnings.is_empty(), "{line:?}: {:?}", args.warnings);
            choices += 1;
        }
    }
    assert!(choices > 20, "{choices}");
}

#[test]
fn every_command_has_page_and_completion() {
    for command in &COMMANDS {
        assert!(generate(&["man", command.name]).contains(command.usage[0].1));
        for shell in ["bash", "zsh", "fish"] {
            assert!(generate(&["completions", shell]).contains(command.name));
        }
    }
}

#[test]
fn every_option_is_in_generated_files() {
    for file in [&["completions", "bash"][..], &["completions", "zsh"], &["man"]] {
        let text = generate(file).replace("\\-", "-");
        for name in table::main_flags().flat_map(|flag| flag.names) {
            assert!(text.contains(name), "{name} is missing in {file:?}");
        }
    }
    let fish = generate(&["completions", "fish"]);
    for name in table::main_flags().flat_map(|flag| flag.names) {
        let bare = name.trim_start_matches('-');
        let forms = [
            format!(" -l {bare} "),
            format!(" -s {bare} "),
            format!(" -o {bare} "),
        ];
        assert!(forms.iter().any(|form| fish.contains(form)), "{name}");
    }
    for command in &COMMANDS {
        let page = generate(&["man", command.name]).replace("\\-", "-");
        for name in command.flags.iter().flat_map(|flag| flag.names) {
            assert!(page.contains(name), "{name} is missing in {}", command.name);
        }
    }
}

#[test]
fn unrelated_command_lines_generate_nothing() {
    for words in [&["doctor"][..], &[], &["-p", "man"]] {
        assert!(try_generate(words).unwrap().is_none(), "{words:?}");
    }
    for words in [
        &["completions"][..],
        &["completions", "tcsh"],
        &["man", "nothing"],
    ] {
        assert!(try_generate(words).is_err(), "{words:?}");
    }
}
