//! What matches: text in pieces, streams, scopes, paths.

use pinion_agent::ttsr::Rules;
use wire::Rule;

use crate::{World, rule, scoped, stops_text};

#[test]
fn rule_matches_word_across_deltas() {
    let mut world = World::new(vec![rule("r", r"\bunsafe\b")]);
    for piece in ["This is un", "sa", "fely said, un"] {
        world.text(piece);
        assert!(world.stopped().is_empty(), "{piece}");
    }
    // The word may still go on, but what there is matches; it is the text so far that counts.
    world.text("safe");
    assert_eq!(world.stopped(), ["r"]);
}

#[test]
fn rule_conditions_match_as_regular_expressions() {
    let table = [
        (r"console\.log\(", "use console.log(x)", true),
        (r"console\.log\(", "use consoleXlog(x)", false),
        (r"(?i)todo", "a ToDo", true),
        (r"^Sorry", "Sorry, no", true),
        (r"^Sorry", "I am sorry. Sorry", false),
        (r"bye$", "good bye", true),
        (r"bye$", "good bye!", false),
        (r"f\w+\s*=>\s*{", "foo => {", true),
        (r"a\/b", "a/b", true),
        (r"[\b]x", "\u{8}x", true),
        (r"x{1,2}y{", "xxy{", true),
        (r"x{,2}", "x{,2}", true),
        (r"[[&&\]]z", "[z", true),
        (r"\p{Lu}\x{41}\u0041", "ÄAA", true),
        (r"(?<name>a)\B", "ab", true),
        (r"ä+", "bäää", true),
        (r"\bä", "x ä", false),
        (r"a{3}", "aa", false),
        (r"", "x", true),
    ];
    for (condition, text, matches) in table {
        assert_eq!(
            stops_text(vec![rule("r", condition)], text),
            matches,
            "{condition} {text}"
        );
    }
}

#[test]
fn unusable_rule_parts_are_reported() {
    let rules = vec![
        rule("look", "a(?=b)"),
        Rule {
            condition: vec!["(".to_owned(), "good".to_owned()],
            ..rule("half", "")
        },
        scoped("scope", "x", &["text(*.rs)", "edit(*.rs"]),
        Rule {
            globs: vec!["[".to_owned()],
            ..rule("glob", "x")
        },
        rule("large", &r"\w{1000}".repeat(50)),
    ];
    let (ready, problems) = Rules::new(rules, "/");
    assert!(!ready.is_empty());
    let told: Vec<(&str, &str)> = problems
        .iter()
        .map(|(path, text)| (path.as_str(), text.split(" cannot").next().unwrap()))
        .collect();
    let paths: Vec<&str> = told.iter().map(|(path, _)| *path).collect();
    assert_eq!(
        paths,
        [
            "/rules/look.md",
            "/rules/half.md",
            "/rules/scope.md",
            "/rules/scope.md",
            "/rules/glob.md",
            "/rules/large.md"
        ]
    );
    assert!(problems[0].1.contains("look-around"), "{problems:?}");
    assert_eq!(told[1].1, "condition \"(\"");
}

#[test]
fn rules_match_each_stream_separately() {
    let everywhere = ["text", "thinking", "tool"];
    let mut world = World::new(vec![scoped("r", "ab", &everywhere)]);
    world.text("a");
    world.thinking("b");
    world.tool_start(1, "edit");
    world.tool(1, "b");
    world.tool_start(2, "edit");
    world.tool(2, "a");
    assert!(world.stopped().is_empty());
    world.tool(1, "a");
    world.thinking("ab");
    assert_eq!(world.stopped(), ["r"]);
}

#[test]
fn new_turn_resets_rule_matching() {
    let mut world = World::new(vec![rule("r", "ab")]);
    world.text("a");
    world.finish(wire::StopReason::Stop);
    world.prompt();
    world.text("b");
    assert!(world.stopped().is_empty());
    world.text("ab");
    assert_eq!(world.stopped(), ["r"]);
}

#[test]
fn rule_scopes_limit_matching() {
    let none: &[&str] = &[];
    // Scope; text, reasoning, edit, bash.
    let table: [(&[&str], [bool; 4]); 8] = [
        (none, [true, false, true, true]),
        (&["text"], [true, false, false, false]),
        (&["thinking"], [false, true, false, false]),
        (&["tool"], [false, false, true, true]),
        (&["toolcall"], [false, false, true, true]),
        (&["edit"], [false, false, true, false]),
        (&["tool:bash", "thinking"], [false, true, false, true]),
        (&["tool:edit(*.rs)"], [false, false, true, false]),
    ];
    for (scope, expected) in table {
        let new = || World::new(vec![scoped("r", "bad", scope)]);
        let mut found = [false; 4];
        let mut world = new();
        world.text("bad");
        found[0] = !world.stopped().is_empty();
        let mut world = new();
        world.thinking("bad");
        found[1] = !world.stopped().is_empty();
        for (at, tool) in [(2, "edit"), (3, "bash")] {
            let mut world = new();
            world.tool_start(0, tool);
            world.tool(0, r#"{"path": "src/a.rs", "newText": "bad"#);
            found[at] = !world.stopped().is_empty();
        }
        assert_eq!(found, expected, "{scope:?}");
    }
}

/// Does a call of `edit` with these arguments match, in one piece and letter by letter?
fn takes(rule: &Rule, arguments: &str) -> bool {
    let mut outcomes = Vec::new();
    for letters in [false, true] {
        let mut world = World::new(vec![rule.clone()]);
        world.tool_start(0, "edit");
        if letters {
            for letter in arguments.chars() {
                world.tool(0, &letter.to_string());
            }
        } else {
            world.tool(0, arguments);
        }
        world.tool_end(0, "edit", arguments);
        outcomes.push(!world.stopped().is_empty());
    }
    assert_eq!(outcomes[0], outcomes[1], "{arguments}");
    outcomes[0]
}

#[test]
fn rule_globs_match_paths_of_calls() {
    let on = |glob: &str| scoped("r", "bad", &[&format!("edit({glob})")]);
    let table = [
        ("*.rs", r#"{"path": "src/a.rs", "text": "bad"}"#, true),
        ("*.rs", r#"{"text": "bad", "path": "src/a.rs"}"#, true),
        ("*.rs", r#"{"path": "src/a.rsx", "text": "bad"}"#, false),
        ("*.ts", r#"{"text": "bad", "path": "a.tsx"}"#, false),
        ("src/*.rs", r#"{"path": "./src/a.rs", "text": "bad"}"#, true),
        ("src/*.rs", r#"{"path": "src/b/a.rs", "text": "bad"}"#, false),
        ("src/**/*.rs", r#"{"path": "src/b/a.rs", "text": "bad"}"#, true),
        (
            "src/*.rs",
            r#"{"file_path": "/project/src/a.rs", "text": "bad"}"#,
            true,
        ),
        (
            "src/*.rs",
            r#"{"filePaths": ["x", "src/a.rs"], "text": "bad"}"#,
            true,
        ),
        ("*.{rs,toml}", r#"{"path": "Cargo.toml", "text": "bad"}"#, true),
        ("*.rs", r#"{"file": "a.rs", "text": "bad"}"#, false),
        ("*.rs", r#"{"text": "bad"}"#, false),
    ];
    for (glob, arguments, expected) in table {
        assert_eq!(takes(&on(glob), arguments), expected, "{glob} {arguments}");
    }
}

#[test]
fn rule_globs_apply_only_to_calls() {
    let only_rust = Rule {
        globs: vec!["*.rs".to_owned(), "*.toml".to_owned()],
        ..rule("r", "bad")
    };
    assert!(takes(&only_rust, r#"{"path": "Cargo.toml", "text": "bad"}"#));
    assert!(!takes(&only_rust, r#"{"path": "a.py", "text": "bad"}"#));
    assert!(!stops_text(vec![only_rust], "bad"));
}

#[test]
fn long_call_is_matched_in_linear_time() {
    let mut world = World::new(vec![scoped("r", "bad", &["edit(*.rs)"])]);
    world.tool_start(0, "edit");
    world.tool(0, r#"{"newText": "bad "#);
    for _ in 0..1000 {
        world.tool(0, "some more text ");
    }
    world.tool(0, r#"", "path": "a.rs", "rest": ""#);
    assert!(world.stopped().is_empty(), "looking again has to wait");
    for _ in 0..1100 {
        world.tool(0, "some more text ");
    }
    assert_eq!(world.stopped(), ["r"]);
}
