//! When a branch is checked, and what counts towards the window.

use pinion_agent::compaction::{Moment, answer_under_test, context_tokens, pressure, should_compact};

use crate::common::{Branch, long};

#[test]
fn compaction_threshold_is_strict_and_needs_window() {
    let table = [
        (83_616, 100_000, 16_384, false),
        (83_617, 100_000, 16_384, true),
        (1_000_000, 0, 16_384, false),
        (1, 8_000, 16_384, true),
        (0, 8_000, 16_384, false),
        (u64::MAX, u64::MAX, 0, false),
    ];
    for (tokens, window, reserve, expected) in table {
        assert_eq!(
            should_compact(tokens, window, reserve),
            expected,
            "{tokens} of {window}"
        );
    }
}

#[test]
fn context_tokens_are_reported_or_estimated() {
    let said = Branch::default().user(&long(100));
    assert_eq!(context_tokens(&said.0), 100);
    let said = said.says("abcd", 0);
    assert_eq!(context_tokens(&said.0), 101);
    let reported = said.says("abcd", 5_000);
    assert_eq!(context_tokens(&reported.0), 5_000);
    let more = reported
        .calls(0, "ls", serde_json::json!({}), 0)
        .result(0, &long(50));
    assert_eq!(context_tokens(&more.0), 5_051);
    let failed = more.failed("error", "x").failed("aborted", &long(100));
    assert_eq!(context_tokens(&failed.0), 5_051);
}

#[test]
fn usage_from_before_compaction_is_ignored() {
    let old = Branch::default()
        .user("one")
        .says("abcd", 90_000)
        .compaction("12345678", "e1");
    // The summary and the kept answer, estimated.
    assert_eq!(context_tokens(&old.0), 2 + 1);
    let next = old.user(&long(10));
    assert_eq!(context_tokens(&next.0), 2 + 1 + 10);
    assert_eq!(context_tokens(&next.says("fine", 700).0), 700);
}

#[test]
fn answers_from_before_a_compaction_never_trigger() {
    let full = Branch::default().user("one").says("abcd", 90_000);
    assert_eq!(pressure(&full.0, Moment::Run), Some(90_000));
    let compacted = full.compaction("S", "e1");
    assert_eq!(answer_under_test(&compacted.0), None);
    assert_eq!(pressure(&compacted.0, Moment::Prompt), None);
    let asked = compacted.user(&long(10));
    assert_eq!(pressure(&asked.0, Moment::Prompt), None);
    let answered = asked.says("x", 300);
    assert_eq!(pressure(&answered.0, Moment::Prompt), Some(300));
    assert_eq!(answer_under_test(&answered.0).unwrap().usage.total_tokens, 300);
}

#[test]
fn aborted_answer_triggers_compaction_only_before_next_prompt() {
    let aborted = Branch::default()
        .user("one")
        .says("x", 400)
        .user("two")
        .failed("aborted", "half");
    assert_eq!(pressure(&aborted.0, Moment::Run), None);
    assert_eq!(pressure(&aborted.0, Moment::Prompt), Some(401));
    let failed = Branch::default()
        .user("one")
        .says("x", 400)
        .user("two")
        .failed("error", "");
    assert_eq!(pressure(&failed.0, Moment::Run), Some(401));
    assert_eq!(pressure(&[], Moment::Prompt), None);
}
