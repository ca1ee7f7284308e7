//! What must not be seen, and how the report is laid out.

use auth::Secret;

use super::keys::ends;
use super::mask::{key, mask, origin};
use super::paint;
use super::report::{Mark, Problem, Report, Section, Verdict};
use super::sessions::size;

#[test]
fn masked_secret_shows_at_most_five_characters() {
    for short in ["", "k", "sk-short", "1234567890123456789"] {
        assert_eq!(mask(short), "****");
    }
    assert_eq!(mask("12345678901234567890"), "123…90");
    assert_eq!(mask("key-with-thirty-letters-in-all"), "key…ll");
    assert_eq!(mask("ääääääääääääääääääääöü"), "äää…öü");
}

#[test]
fn doctor_urls_lose_login_path_and_query() {
    let table = [
        ("http://proxy:8080", "http://proxy:8080"),
        ("http://user:secret@proxy:8080/", "http://****@proxy:8080"),
        ("user:secret@proxy:8080", "****@proxy:8080"),
        ("http://user:se/cr@et@proxy", "http://****@proxy"),
        (
            "https://api.example/v1/token-in-path?key=secret#x",
            "https://api.example",
        ),
        ("https://api.example?key=secret", "https://api.example"),
    ];
    for (address, shown) in table {
        assert_eq!(origin(address), shown);
        assert!(!origin(address).contains("secret"));
    }
}

#[test]
fn stored_keys_are_described_by_kind() {
    let env = |name: &str| (name == "MY_KEY").then(|| "value-of-my-key".to_owned());
    let table = [
        ("!pass show key", "from a command (not run here)"),
        ("MY_KEY", "from the variable MY_KEY"),
        ("$MY_KEY", "from the variable MY_KEY"),
        ("${MY_KEY}", "from the variable MY_KEY"),
        ("$NOT_SET", "from the variable NOT_SET, which is not set"),
        ("$ecretPassword", "****"),
        ("sk-1234567890123456789", "sk-…89"),
        ("", "empty"),
    ];
    for (text, shown) in table {
        assert_eq!(key(&Secret::new(text), env), shown, "{text}");
    }
}

#[test]
fn doctor_formats_times_and_sizes() {
    let minute = 60_000;
    assert!(ends(90 * minute, 0).starts_with("expires in 90 min (1970-01-01 "));
    assert!(ends(0, 3 * 60 * minute).starts_with("expired 3 h ago"));
    assert!(ends(72 * 60 * minute, 0).starts_with("expires in 3 days"));
    assert_eq!(ends(i64::MAX, 0), "does not expire");
    assert!(ends(i64::MIN, i64::MAX).starts_with("expired"));
    assert_eq!(size(999), "999 bytes");
    assert_eq!(size(1_500), "1.5 KB");
    assert_eq!(size(51_240_000), "51.2 MB");
    assert_eq!(size(u64::MAX), "1844674407.3 GB");
}

fn report(rows: &[(&str, &str)]) -> Report {
    let mut section = Section::new("x", "Things");
    for (label, text) in rows {
        section.row(*label, *text);
    }
    section.marked(Mark::Odd, "odd", "one");
    Report {
        sections: vec![section],
        problems: vec![Problem::warning("careful")],
        verdict: Verdict {
            ready: false,
            headline: "Not ready.".to_owned(),
            advice: Some("Do this.\nThen that.".to_owned()),
        },
    }
}

#[test]
fn doctor_columns_are_aligned_and_folded() {
    let long = "word ".repeat(40);
    let text = paint::text(
        &report(&[("a", "1"), ("longer", long.trim()), ("", "more")]),
        false,
    );
    let lines: Vec<&str> = text.lines().skip(2).collect();
    assert_eq!(lines[..2], ["Things", "    a       1"]);
    assert!(lines[2].starts_with("    longer  word word") && lines[2].len() <= 110);
    assert!(lines[3].starts_with("            word word"), "{text}");
    assert!(
        text.contains("\n            more\n  ! odd     one\n\nWorth a look\n  ! careful\n"),
        "{text}"
    );
    assert!(
        text.ends_with("\nResult\n  ✗ Not ready.\n    Do this.\n    Then that.\n"),
        "{text}"
    );
    assert!(text.lines().all(|line| line.trim_end() == line));
    assert!(!text.contains('\u{1b}'));
    assert!(paint::text(&report(&[]), true).contains("\u{1b}[31m✗\u{1b}[0m"));
}

#[test]
fn terminal_control_characters_are_replaced() {
    let text = paint::text(&report(&[("a\u{1b}[2J", "b\r\n\u{202e}c\u{7}")]), false);
    assert!(text.contains("a\u{fffd}[2J  b \u{fffd}c\u{fffd}"), "{text:?}");
}
