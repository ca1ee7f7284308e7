//! Tests of the whole `edit` tool on files, with the recorded transcripts' texts.

use proptest::prelude::*;

use super::*;

struct Dir(tempfile::TempDir);

impl Dir {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn run(&self, mode: FuzzyEdit, before: &str, edits: &[(&str, &str)]) -> Result<(String, Value), String> {
        let path = self.0.path().join("a.txt");
        std::fs::write(&path, before).unwrap();
        let edits: Vec<_> = edits
            .iter()
            .map(|(o, n)| Edit {
                old: (*o).into(),
                new: (*n).into(),
            })
            .collect();
        let result = edit(&path, "a.txt", &edits, mode, Dialect::Auto)?;
        assert_eq!(
            result.joined_text(),
            format!("Successfully replaced {} block(s) in a.txt.", edits.len())
        );
        Ok((std::fs::read_to_string(&path).unwrap(), result.details.unwrap()))
    }
}

fn check(before: &str, edits: &[(&str, &str)], after: &str, diff: &str, line: u64) {
    for mode in [FuzzyEdit::RewriteFile, FuzzyEdit::KeepRest] {
        let (text, details) = Dir::new().run(mode, before, edits).unwrap();
        assert_eq!(text, after);
        assert_eq!(details, json!({ "diff": diff, "firstChangedLine": line }));
    }
}

#[test]
fn edit_matches_recording() {
    // tool-edit
    check(
        "alpha\nbeta\ngamma\ndelta\n",
        &[("beta", "BETA")],
        "alpha\nBETA\ngamma\ndelta\n",
        " 1 alpha\n-2 beta\n+2 BETA\n 3 gamma\n 4 delta",
        2,
    );
    check(
        "alpha\nBETA\ngamma\ndelta\n",
        &[("alpha\n", ""), ("delta", "delta\nepsilon")],
        "BETA\ngamma\ndelta\nepsilon\n",
        "-1 alpha\n 2 BETA\n 3 gamma\n 4 delta\n+4 epsilon",
        1,
    );
    check(
        "one\r\ntwo\r\nthree\r\nfour\r\n",
        &[("two\nthree", "2\n3")],
        "one\r\n2\r\n3\r\nfour\r\n",
        " 1 one\n-2 two\n-3 three\n+2 2\n+3 3\n 4 four",
        2,
    );
    check("\u{feff}hi\n", &[("hi", "ho")], "\u{feff}ho\n", "-1 hi\n+1 ho", 1);
    let long: String = (1..=100).map(|i| format!("line {i}\n")).collect();
    let after = long
        .replace("line 50\n", "line fifty\n")
        .replace("line 80\n", "line eighty\nextra\n");
    check(
        &long,
        &[
            ("line 50\n", "line fifty\n"),
            ("line 80\n", "line eighty\nextra\n"),
        ],
        &after,
        "     ...\n  46 line 46\n  47 line 47\n  48 line 48\n  49 line 49\n- 50 line 50\n+ 50 line fifty\n  51 line 51\n  52 line 52\n  53 line 53\n  54 line 54\n     ...\n  76 line 76\n  77 line 77\n  78 line 78\n  79 line 79\n- 80 line 80\n+ 80 line eighty\n+ 81 extra\n  81 line 81\n  82 line 82\n  83 line 83\n  84 line 84\n     ...",
        50,
    );
}

/// Patches as pi 1.5.2 wrote them.
#[test]
fn patch_has_unified_form() {
    let lines = |numbers: std::ops::RangeInclusive<u32>| -> String {
        numbers.map(|number| format!("{number}\n")).collect()
    };
    let long = lines(1..=40);
    let changed = long
        .replace("\n5\n", "\nx\n")
        .replace("\n14\n", "\ny\n")
        .replace("\n25\n", "\nz\n");
    for (before, after, hunks) in [
        ("a\nb\nc\n", "a\nB\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"),
        ("a\n", "a\nb\n", "@@ -1,1 +1,2 @@\n a\n+b\n"),
        ("b\n", "", "@@ -1,1 +0,0 @@\n-b\n"),
        // Eight unchanged lines are the context of both neighbours; nine are not.
        (
            &long,
            &changed,
            "@@ -1,18 +1,18 @@\n 1\n 2\n 3\n 4\n-5\n+x\n 6\n 7\n 8\n 9\n 10\n 11\n 12\n 13\n-14\n+y\n 15\n 16\n 17\n 18\n@@ -21,9 \
             +21,9 @@\n 21\n 22\n 23\n 24\n-25\n+z\n 26\n 27\n 28\n 29\n",
        ),
    ] {
        let expected = format!("--- a.txt\n+++ a.txt\n{hunks}");
        assert_eq!(diff::patch("a.txt", before, after), expected);
    }
}

#[test]
fn fuzzy_edit_rewrites_file_or_keeps_rest() {
    // tool-edit-fuzzy
    let text = "he say \u{201c}hi\u{201d} \u{2013} ok\u{a0}done  \nnext   \n";
    let edits = [("say \"hi\" - ok", "said")];
    let (after, details) = Dir::new().run(FuzzyEdit::RewriteFile, text, &edits).unwrap();
    assert_eq!(after, "he said done\nnext\n");
    assert_eq!(
        details["diff"],
        "-1 he say \"hi\" - ok done\n+1 he said done\n 2 next"
    );
    let (after, _) = Dir::new().run(FuzzyEdit::KeepRest, text, &edits).unwrap();
    assert_eq!(after, "he said done\nnext   \n");

    let (after, details) = Dir::new()
        .run(
            FuzzyEdit::RewriteFile,
            "foo   \nbar\t\nend\n",
            &[("foo\nbar", "FOO\nBAR")],
        )
        .unwrap();
    assert_eq!(after, "FOO\nBAR\nend\n");
    assert_eq!(details["diff"], "-1 foo\n-2 bar\n+1 FOO\n+2 BAR\n 3 end");
}

#[test]
fn fuzzy_edits_apply_on_and_across_lines() {
    let text = "a \u{2014} b \u{2014} c  \r\nkeep  \ntail\u{a0}x\nend";
    let edits = [("a - b", "A"), ("c\n", "C\nnew\n"), ("tail x\n", "")];
    let (after, _) = Dir::new().run(FuzzyEdit::KeepRest, text, &edits).unwrap();
    assert_eq!(after, "A - C\r\nnew\nkeep  \nend");
}

#[test]
fn edit_keeps_mixed_line_endings() {
    let (after, _) = Dir::new()
        .run(FuzzyEdit::RewriteFile, "a\r\nb\nc\rd\r\n", &[("b\nc", "B\nC\nX")])
        .unwrap();
    assert_eq!(after, "a\r\nB\nC\rX\rd\r\n");
}

#[test]
fn failed_edit_leaves_file_unchanged() {
    let dir = Dir::new();
    let run = |edits: &[(&str, &str)]| {
        let text = "one\ndup\ndup\ntwo\nit\u{2019}s\n";
        let failed = dir.run(FuzzyEdit::RewriteFile, text, edits).unwrap_err();
        assert_eq!(std::fs::read_to_string(dir.0.path().join("a.txt")).unwrap(), text);
        failed
    };
    for (edits, text) in [
        (
            &[("nowhere", "b")][..],
            "Could not find the exact text in a.txt. The old text must match exactly including all whitespace and newlines.",
        ),
        (
            &[("ones", "b")],
            "Could not find the exact text in a.txt. The old text must match exactly including all whitespace and newlines.\nThe nearest text is in line 1:\n1: one",
        ),
        (
            &[("one", "1"), ("nowhere", "b")],
            "Could not find edits[1] in a.txt. The oldText must match exactly including all whitespace and newlines.",
        ),
        (
            &[("dup", "b")],
            "Found 2 occurrences of the text in a.txt. The text must be unique. Please provide more context to make it unique.\nThey begin in lines 2, 3.",
        ),
        (
            &[("one", "1"), ("dup", "b")],
            "Found 2 occurrences of edits[1] in a.txt. Each oldText must be unique. Please provide more context to make it unique.\nThey begin in lines 2, 3.",
        ),
        (&[("", "b")], "oldText must not be empty in a.txt."),
        (
            &[("one", "1"), ("", "b")],
            "edits[1].oldText must not be empty in a.txt.",
        ),
        (
            &[("one", "one")],
            "No changes made to a.txt. The replacement produced identical content. This might indicate an issue with special characters or the text not existing as expected.",
        ),
        (
            &[("dup\ntwo", "x"), ("one\ndup\ndup", "y")],
            "edits[0] and edits[1] overlap in a.txt. Merge them into one edit or target disjoint regions.",
        ),
        (
            &[],
            "Edit tool input is invalid. edits must contain at least one replacement.",
        ),
    ] {
        assert_eq!(run(edits), text);
    }
    let missing = edit(
        Path::new("/no/such"),
        "x",
        &[Edit {
            old: "a".into(),
            new: "b".into(),
        }],
        FuzzyEdit::KeepRest,
        Dialect::Auto,
    );
    assert_eq!(
        missing.unwrap_err(),
        "Could not edit file: x. Error code: ENOENT."
    );
    std::fs::write(dir.0.path().join("bin"), b"a\xff").unwrap();
    let binary = edit(
        &dir.0.path().join("bin"),
        "bin",
        &[Edit {
            old: "a".into(),
            new: "b".into(),
        }],
        FuzzyEdit::KeepRest,
        Dialect::Auto,
    );
    assert!(binary.unwrap_err().contains("not valid UTF-8"));
    assert_eq!(std::fs::read(dir.0.path().join("bin")).unwrap(), b"a\xff");
}

#[test]
fn edit_accepts_argument_shapes_of_models() {
    for (args, edits) in [
        (
            json!({ "edits": "[{\"oldText\":\"a\",\"newText\":\"b\"}]" }),
            json!([{ "oldText": "a", "newText": "b" }]),
        ),
        (
            json!({ "edits": { "oldText": "a", "newText": "b", "extra": 1 } }),
            json!([{ "oldText": "a", "newText": "b" }]),
        ),
        (
            json!({ "oldText": "a", "newText": "b" }),
            json!([{ "oldText": "a", "newText": "b" }]),
        ),
        (
            json!({ "edits": [{ "oldText": "x", "newText": "y" }], "oldText": "a", "newText": "b" }),
            json!([{ "oldText": "x", "newText": "y" }, { "oldText": "a", "newText": "b" }]),
        ),
        (json!({ "edits": "not json" }), json!("not json")),
    ] {
        let mut args = args.as_object().unwrap().clone();
        prepare(&mut args);
        assert_eq!((&args["edits"], args.len()), (&edits, 1));
    }
}

proptest! {
    #[test]
    fn exact_edit_changes_only_matched_text(
        head in "[a-c\r\n\u{2019} ]{0,30}", tail in "[a-c\r\n\u{2019} ]{0,30}", new in "[x-z\n]{0,8}", crlf in any::<bool>(),
    ) {
        let before = format!("{head}@MARK@{tail}");
        let new = if crlf { new.replace('\n', "") } else { new };
        for mode in [FuzzyEdit::RewriteFile, FuzzyEdit::KeepRest] {
            let (after, _) = Dir::new().run(mode, &before, &[("@MARK@", &new)]).unwrap();
            if new.contains('\n') {
                assert!(after.starts_with(&head) && after.ends_with(&tail));
            } else {
                assert_eq!(after, format!("{head}{new}{tail}"));
            }
        }
    }

    #[test]
    fn fuzzy_edit_keeps_other_lines(
        lines in proptest::collection::vec("[a-c\u{2019}\u{a0} \t]{0,8}", 1..8), at in 0_usize..8,
    ) {
        let at = at % lines.len();
        let mut before = lines.clone();
        before.insert(at, "x \u{201c}q\u{201d} y  ".to_owned());
        let (after, _) = Dir::new()
            .run(FuzzyEdit::KeepRest, &before.join("\n"), &[("\"q\"", "Q")])
            .unwrap();
        let mut expected = lines;
        expected.insert(at, "x Q y".to_owned());
        assert_eq!(after, expected.join("\n"));
    }
}

#[test]
fn edits_as_text_or_single_are_repaired() {
    let shown = |args: Value| repaired(args.as_object().unwrap()).map(Value::Object);
    let edit = json!({"oldText": "a", "newText": "b"});
    let list = Some(json!({"path": "p", "edits": [edit]}));
    assert_eq!(
        shown(json!({"path": "p", "edits": json!([edit]).to_string()})),
        list
    );
    assert_eq!(shown(json!({"path": "p", "edits": edit.to_string()})), list);
    assert_eq!(shown(json!({"path": "p", "edits": edit})), list);
    for own in [
        json!({"path": "p", "edits": [edit]}),
        json!({"path": "p", "edits": "no JSON"}),
        json!({"path": "p", "edits": "{\"oldText\": 1}"}),
        json!({"path": "p", "oldText": "a", "newText": "b"}),
    ] {
        assert_eq!(shown(own.clone()), None, "{own}");
    }
}
