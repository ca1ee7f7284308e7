//! The generated files against the table of options and the parser.

use super::table::{self, Value};
use super::text;
use crate::args::{Command, of_command, parse};

fn generate(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    text(&words, "pinion 0.0.0").unwrap().unwrap()
}

#[test]
fn offered_values_are_accepted_by_parser() {
    let own = Command::ALL
        .into_iter()
        .flat_map(|command| of_command(command).iter().map(move |flag| (Some(command), flag)));
    let mut choices = 0;
    for (command, flag) in table::main_flags().map(|flag| (None, flag)).chain(own) {
        let Value::Choice(words) = table::value(flag) else {
            continue;
        };
        for word in words {
            let mut line: Vec<String> = command.iter().map(|command| command.name().to_owned()).collect();
            line.extend([flag.names[0].to_owned(), word.to_owned()]);
            let args = parse(&line).unwrap();
            assert!(args.warnings.is_empty(), "{line:?}: {:?}", args.warnings);
            choices += 1;
        }
    }
    assert!(choices > 20, "{choices}");
}

#[test]
fn offered_words_are_read_from_help() {
    assert_eq!(table::words(Command::Auth), ["login", "logout", "status"]);
    assert_eq!(table::words(Command::Models), ["update", "status"]);
    assert_eq!(
        table::words(Command::Mcp),
        ["add", "remove", "login", "logout", "list"]
    );
    assert!(table::words(Command::Trust).is_empty());
    for command in Command::ALL {
        assert!(!table::purpose(command).is_empty(), "{}", command.name());
    }
}

#[test]
fn every_option_is_in_every_file() {
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
    for command in Command::ALL {
        let page = generate(&["man", command.name()]).replace("\\-", "-");
        for name in of_command(command).iter().flat_map(|flag| flag.names) {
            assert!(page.contains(name), "{name} is missing in {}", command.name());
        }
    }
}

#[test]
fn other_command_lines_are_left_alone() {
    for words in [&["man", "the", "boats"][..], &["doctor"], &[]] {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        assert!(text(&words, "").unwrap().is_none(), "{words:?}");
    }
    assert!(text(&["completions".to_owned(), "tcsh".to_owned()], "").is_err());
    assert!(text(&["man".to_owned(), "nothing".to_owned()], "").is_err());
}
