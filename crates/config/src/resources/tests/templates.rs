//! Prompt templates: discovery, the argument language, substitution.

use super::{GOLDEN, Place, complaints};
use crate::resources::limits;
use crate::resources::template_args::{OpenQuote, split, substitute};
use crate::source::Scope;

#[test]
fn template_calls_match_recorded_texts() {
    let place = Place::new(&GOLDEN);
    let resources = place.resources();
    // Goldens template-expansion, template-edge, template-newline-args.
    let table = [
        (
            "/fix a.rs b.rs 'c d.rs'",
            "Fix a.rs please. All: a.rs b.rs c d.rs Rest: b.rs c d.rs",
        ),
        ("/plain ignored args", "Just plain text template.\n"),
        ("/proj all \"of this\"", "Project prompt all of this"),
        ("/fix", "Fix  please. All:  Rest: "),
        ("/fix \"unclosed", "Fix unclosed please. All: unclosed Rest: "),
        (" /fix leading blank", " /fix leading blank"),
        ("/FIX upper", "/FIX upper"),
        ("/fix a.rs\nb.rs", "Fix a.rs please. All: a.rs b.rs Rest: b.rs"),
        ("/fix\ta.rs\tb.rs", "Fix a.rs please. All: a.rs b.rs Rest: b.rs"),
        (
            "/fix   two   blanks ",
            "Fix two please. All: two blanks Rest: blanks",
        ),
        ("/plain\nmore text", "Just plain text template.\n"),
        ("/nosuch\nline", "/nosuch\nline"),
    ];
    for (typed, expected) in table {
        let expanded = resources.expand(typed);
        assert_eq!(expanded.text, expected, "{typed:?}");
        assert_eq!(expanded.problem, None);
    }
}

#[test]
fn template_arguments_are_split_with_quotes() {
    let table: &[(&str, &[&str])] = &[
        ("", &[]),
        (" a  b ", &["a", "b"]),
        ("\"a b\" 'c d'", &["a b", "c d"]),
        ("don't split what's here", &["don't", "split", "what's", "here"]),
        ("'tis John's", &["'tis", "John's"]),
        ("'it's here' x", &["it's here", "x"]),
        ("\"\" '' x", &["", "", "x"]),
        ("a\"b c\"d", &["a\"b", "c\"d"]),
        ("\"a b\"c d", &["a bc", "d"]),
        (
            "\"the \\\"fast\\\" path\" 'it\\'s so'",
            &["the \"fast\" path", "it's so"],
        ),
        ("\"C:\\dir\" x", &["C:\\dir", "x"]),
        ("\"it's\"", &["it's"]),
        ("'say \"hi\"'", &["say \"hi\""]),
        ("\"open end", &["open end"]),
        ("'open end", &["'open", "end"]),
        ("C:\\dir\\file", &["C:\\dir\\file"]),
        ("ä\u{a0}ö", &["ä", "ö"]),
    ];
    for (text, expected) in table {
        assert_eq!(split(text, OpenQuote::Groups), *expected, "{text:?}");
    }
    let open = split("\"open end", OpenQuote::IsText);
    assert_eq!(open, ["\"open", "end"]);
    assert_eq!(split("\"a b\" c", OpenQuote::IsText), ["a b", "c"]);
}

#[test]
fn template_placeholders_are_filled_in_one_pass() {
    let args: Vec<String> = ["one", "$2 $@", "", "four"]
        .iter()
        .map(ToString::to_string)
        .collect();
    let table = [
        ("$1|$2|$3|$4|$5|$0", "one|$2 $@||four||".to_owned()),
        ("$@", "one $2 $@  four".to_owned()),
        ("$ARGUMENTS", "one $2 $@  four".to_owned()),
        ("${@:2}", "$2 $@  four".to_owned()),
        ("${@:0:1} ${@:1:1}", "one one".to_owned()),
        ("${@:4:9}|${@:9}|${@:2:0}", "four||".to_owned()),
        ("${1:-x} ${3:-x} ${9:-a b} ${0:-z}", "one x a b z".to_owned()),
        ("${9:-$1}", "$1".to_owned()),
        (
            "${@:-none}|${ARGUMENTS:-none}",
            "one $2 $@  four|one $2 $@  four".to_owned(),
        ),
        ("$10 $99999999999999999999", " ".to_owned()),
        (
            "${1} ${HOME} $HOME ${@:x} $ $$1 ${1:-open",
            "${1} ${HOME} $HOME ${@:x} $ $one ${1:-open".to_owned(),
        ),
        ("$& costs 5$", "$& costs 5$".to_owned()),
    ];
    for (template, expected) in table {
        assert_eq!(substitute(template, &args).unwrap(), expected, "{template:?}");
    }
}

#[test]
fn template_expansion_is_bounded() {
    let place = Place::new(&[("agent/prompts/t.md", &"$@".repeat(1000))]);
    let text = format!("/t {}", "x".repeat(limits::EXPANSION_BYTES / 500));
    let expanded = place.resources().expand(&text);
    assert_eq!(expanded.text, text);
    assert!(expanded.problem.unwrap().message.contains("grows beyond 4 MiB"));
}

#[test]
fn template_description_falls_back_to_first_line() {
    let sixty = "x".repeat(60);
    let table = [
        ("---\ndescription: D\n---\nBody", "D"),
        ("\n\n  First line \nSecond", "First line"),
        (&sixty, &sixty),
        (&format!("{sixty}y"), &format!("{sixty}...")),
        (
            &format!("{}\n", "ä".repeat(61)),
            &format!("{}...", "ä".repeat(60)),
        ),
        ("", ""),
    ];
    for (text, expected) in table {
        let place = Place::new(&[("agent/prompts/t.md", text)]);
        assert_eq!(place.resources().templates()[0].description, expected);
    }
}

#[test]
fn template_brackets_are_plain_text() {
    let place = Place::new(&[("agent/prompts/t.md", "---\nargument-hint: [message]\n---\nB")]);
    assert_eq!(
        place.resources().templates()[0].argument_hint.as_deref(),
        Some("[message]")
    );
}

#[test]
fn template_precedence_and_ignored_files() {
    let mut place = Place::new(&[
        ("work/.pi/prompts/a.md", "project"),
        ("agent/prompts/a.md", "user"),
        ("agent/prompts/sub/b.md", "too deep"),
        ("agent/prompts/c.txt", "no markdown"),
        ("extra/a.md", "cli"),
        ("extra/d.md", "cli d"),
    ]);
    place.options.template_paths = vec![place.extra("extra", Scope::Temporary)];
    let resources = place.resources();
    let found: Vec<(&str, &str)> = resources
        .templates()
        .iter()
        .map(|t| (t.name.as_str(), t.content.as_str()))
        .collect();
    assert_eq!(found, [("a", "project"), ("d", "cli d")]);
    assert_eq!(complaints(&resources, place.root.path()).len(), 2);
    place.options.templates.load = false;
    let names: Vec<String> = place
        .resources()
        .templates()
        .iter()
        .map(|t| t.content.clone())
        .collect();
    assert_eq!(names, ["cli", "cli d"]);
}
