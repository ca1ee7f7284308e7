//! Where a branch is cut: the recorded cases, then the rules one by one.

use pinion_agent::compaction::{Keep, Refusal, Settings, SummaryKind, plan, requests};
use serde_json::json;

use crate::common::{Branch, TINY, call, keep, long, names, user};

const ELEPHANT: &str = "Please remember the word ELEPHANT and the file src/main.rs. Please remember the word ELEPHANT and the \
file src/main.rs. Please remember the word ELEPHANT and the file src/main.rs. Please remember the word ELEPHANT and the file \
src/main.rs. ";

fn first_turns() -> Branch {
    Branch::default()
        .settings()
        .user(ELEPHANT)
        .says("Remembered.", 120)
}

/// What a plan keeps and summarises, in short.
fn cut(branch: &Branch, settings: Settings) -> Result<(String, Vec<String>, Vec<String>), Refusal> {
    plan(&branch.0, settings).map(|plan| {
        (
            plan.first_kept_entry_id.clone(),
            names(&plan.history),
            names(&plan.turn_prefix),
        )
    })
}

fn expect(
    id: &str,
    history: &[&str],
    prefix: &[&str],
) -> Result<(String, Vec<String>, Vec<String>), Refusal> {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Ok((id.to_owned(), owned(history), owned(prefix)))
}

#[test]
fn compaction_matches_recorded_manual_and_repeated() {
    let branch = first_turns()
        .user("Second question about apples.")
        .says("Apples are fine.", 120);
    assert_eq!(cut(&branch, TINY), expect("e4", &["Please", "Remembered."], &[]));
    let plan_one = plan(&branch.0, TINY).unwrap();
    assert_eq!(plan_one.tokens_before, 120);
    let asked = requests(&plan_one, None);
    assert_eq!(asked.len(), 1);
    assert_eq!(
        (asked[0].kind, asked[0].max_tokens),
        (SummaryKind::History, 1_600)
    );
    let talk = format!("<conversation>\n[User]: {ELEPHANT}\n\n[Assistant]: Remembered.\n</conversation>\n\n");
    assert!(asked[0].user_text.starts_with(&talk), "{}", asked[0].user_text);

    let branch = branch.compaction("First summary", "e4");
    assert_eq!(plan(&branch.0, TINY), Err(Refusal::AlreadyCompacted));
    let branch = branch
        .user("Third question about pears.")
        .says("Pears are fine too.", 120);
    assert_eq!(cut(&branch, TINY), expect("e7", &["Second", "Apples"], &[]));
    let plan_two = plan(&branch.0, TINY).unwrap();
    assert_eq!(plan_two.tokens_before, 120);
    let talk = "<conversation>\n[User]: Second question about apples.\n\n[Assistant]: Apples are fine.\n</conversation>\n\n\
                <previous-summary>\nFirst summary\n</previous-summary>\n\n";
    assert!(requests(&plan_two, None)[0].user_text.starts_with(talk));
}

#[test]
fn compaction_matches_recorded_split_turn() {
    let branch = first_turns()
        .user("Work.")
        .calls(0, "bash", json!({"command": "echo hi"}), 99_050)
        .result(0, "hi\n")
        .says("Done.", 99_510);
    assert_eq!(
        cut(&branch, TINY),
        expect("e5", &["Please", "Remembered."], &["Work."])
    );
    let plan = plan(&branch.0, TINY).unwrap();
    assert_eq!(plan.tokens_before, 99_510);
    let limits: Vec<_> = requests(&plan, None)
        .iter()
        .map(|r| (r.kind, r.max_tokens))
        .collect();
    assert_eq!(
        limits,
        [(SummaryKind::History, 1_600), (SummaryKind::TurnPrefix, 1_000)]
    );
}

#[test]
fn overflow_size_counts_from_last_successful_answer() {
    let branch = first_turns()
        .user("Too much text in this longer question here.")
        .failed("error", "");
    assert_eq!(cut(&branch, TINY), expect("e4", &["Please", "Remembered."], &[]));
    assert_eq!(plan(&branch.0, TINY).unwrap().tokens_before, 131);
}

#[test]
fn compaction_without_older_part_is_refused() {
    let small = Branch::default()
        .settings()
        .user("One short message.")
        .says("One answer.", 120);
    for branch in [
        Branch::default(),
        Branch::default().settings(),
        small.clone(),
        Branch::default().user(&long(500)),
    ] {
        assert_eq!(plan(&branch.0, keep(100)), Err(Refusal::NothingToCompact));
    }
    // Settings alone are nothing to summarise, and neither is a command that was kept from the model.
    let hidden = json!({"type": "message", "message": {
        "role": "bashExecution", "command": "env", "output": "x", "excludeFromContext": true, "exitCode": 0}});
    let branch = Branch::default()
        .settings()
        .entry(hidden)
        .user(&format!("big {}", long(50)));
    assert_eq!(plan(&branch.0, TINY), Err(Refusal::NothingToCompact));
    assert!(plan(&small.0, TINY).is_err() && plan(&small.0, keep(3)).is_ok());
}

#[test]
fn huge_trailing_result_is_kept_with_its_call() {
    let branch = Branch::default()
        .user("ask")
        .calls(0, "bash", json!({}), 0)
        .result(0, &long(500));
    assert_eq!(cut(&branch, keep(100)), expect("e1", &[], &["ask"]));
    // A result in the middle is not: the next place to cut comes after it.
    let branch = branch.says("done", 0);
    assert_eq!(cut(&branch, keep(100)), expect("e3", &[], &["ask", "c0", "abc"]));
}

#[test]
fn extension_messages_count_and_begin_turns() {
    let note = format!("note {}", long(200));
    let branch = Branch::default()
        .user("ask")
        .says("answer", 0)
        .custom_message(&note)
        .says("seen", 0);
    assert_eq!(cut(&branch, keep(100)), expect("e2", &["ask", "answer"], &[]));
    let branch = branch.says(&long(200), 0);
    assert_eq!(
        cut(&branch, keep(100)),
        expect("e4", &["ask", "answer"], &["note", "seen"])
    );
}

#[test]
fn settings_entries_stay_with_following_message() {
    let label = json!({"type": "label", "targetId": "e0", "label": "x"});
    let branch = Branch::default()
        .user("one")
        .says("two", 0)
        .settings()
        .entry(label)
        .user(&long(20));
    // The cut moves back over them, and a turn that ended before them is not taken for a split one.
    assert_eq!(cut(&branch, TINY), expect("e2", &["one", "two"], &[]));
    // Not over a compaction.
    let branch = Branch::default()
        .user("one")
        .says("two", 0)
        .user("three")
        .compaction("S", "e0")
        .user(&long(20));
    assert_eq!(cut(&branch, TINY), expect("e4", &["one", "two", "three"], &[]));
}

#[test]
fn cut_never_separates_call_from_its_results() {
    let both = json!([call(0, "bash", json!({})), call(1, "bash", json!({}))]);
    let branch = Branch::default()
        .user("ask")
        .entry(crate::common::answer(&both, "toolUse", 0))
        .result(0, "first")
        .custom_message(&long(50))
        .result(1, "second")
        .user("next")
        .says("end", 0);
    // The budget is reached at the extension's message; the first safe place after it is the next prompt.
    assert_eq!(
        cut(&branch, keep(20)),
        expect("e5", &["ask", "c0", "first", "abc", "second"], &[])
    );
    let open = Branch(branch.0[..5].to_vec());
    assert_eq!(cut(&open, keep(20)), expect("e1", &[], &["ask"]));
}

#[test]
fn compaction_region_begins_at_first_kept_entry() {
    let tail = |branch: Branch| branch.user("new").says(&long(20), 0);
    let base = Branch::default().user("old").says("older", 0).user("kept");
    let table = [
        ("e2", vec!["kept", "new"]),
        ("e3", vec!["new"]),
        ("gone", vec!["new"]),
        ("e4", vec!["new"]),
    ];
    for (first_kept, summarised) in table {
        let branch = tail(base.clone().compaction("S", first_kept));
        let plan = plan(&branch.0, TINY).unwrap();
        let all: Vec<_> = [names(&plan.history), names(&plan.turn_prefix)].concat();
        assert_eq!(
            (all, plan.first_kept_entry_id.as_str()),
            (summarised.iter().map(ToString::to_string).collect(), "e5"),
            "{first_kept}"
        );
    }
}

#[test]
fn context_edits_apply_to_summary() {
    let edit = |target: &str, replacement| json!({"type": "context_edit", "targetId": target, "replacement": replacement});
    let branch = Branch::default()
        .user("keep")
        .failed("error", "attempt")
        .user("secret")
        .says(&long(20), 0)
        .entry(edit("e1", json!(null)))
        .entry(edit("e2", json!("harmless text")));
    let plan = plan(&branch.0, TINY).unwrap();
    assert_eq!(names(&plan.history), ["keep"]);
    assert_eq!(names(&plan.turn_prefix), ["harmless"]);
}

#[test]
fn cut_counts_images_but_not_failed_answers() {
    let image = json!({"type": "message", "message": {"role": "user", "content": [
        {"type": "image", "data": "AA==", "mimeType": "image/png"}]}});
    let branch = Branch::default()
        .user("one")
        .says("two", 0)
        .entry(image)
        .says("nice", 0);
    assert_eq!(cut(&branch, keep(1_000)), expect("e2", &["one", "two"], &[]));
    let branch = Branch::default()
        .user("one")
        .says("two", 0)
        .failed("aborted", &long(500));
    assert!(plan(&branch.0, keep(100)).is_err());
}

/// Settings of oh-my-pi.
fn at_most(tokens: u64) -> Settings {
    Settings {
        keep: Keep::AtMost,
        ..keep(tokens)
    }
}

/// The recorded sessions of oh-my-pi: its second turn has a long question.
fn two_turns(tokens: u64) -> Branch {
    first_turns()
        .user(&format!("Second. {ELEPHANT}"))
        .says("Apples.", tokens)
}

#[test]
fn omp_cuts_match_recordings() {
    let split = || expect("e5", &["Please", "Remembered."], &["Second."]);
    // `omp-compact` and `omp-auto-compact`.
    for tokens in [120, 199_100] {
        let branch = two_turns(tokens);
        assert_eq!(cut(&branch, at_most(10)), split());
        let plan = plan(&branch.0, at_most(10)).unwrap();
        assert_eq!(
            (plan.tokens_before, names(&plan.recent)),
            (tokens, vec!["Apples.".to_owned()])
        );
        // A compaction of pi keeps the turn that reaches the tokens.
        assert_eq!(cut(&branch, TINY), expect("e4", &["Please", "Remembered."], &[]));
    }
    // `omp-overflow`: the failed answer does not count.
    let branch = two_turns(120).user("Third.").failed("error", "");
    assert_eq!(cut(&branch, at_most(10)), split());
    assert_eq!(plan(&branch.0, at_most(10)).unwrap().tokens_before, 120);
    // `compact-manual`.
    let branch = first_turns()
        .user("Second question about apples.")
        .says("Apples are fine.", 120);
    assert_eq!(
        cut(&branch, at_most(10)),
        expect("e5", &["Please", "Remembered."], &["Second"])
    );
    // `omp-compact-in-run`: the question whose answer was aborted is kept.
    let branch = first_turns().user(ELEPHANT).failed("aborted", "One");
    assert_eq!(
        cut(&branch, at_most(10)),
        expect("e4", &["Please", "Remembered."], &[])
    );
    assert_eq!(plan(&branch.0, at_most(10)).unwrap().tokens_before, 120);
    // `omp-compact-refused`.
    let branch = Branch::default().settings().user("One.").says("A.", 120);
    assert_eq!(plan(&branch.0, at_most(20_000)), Err(Refusal::NothingToCompact));
}

#[test]
fn omp_keeps_whole_groups_within_budget() {
    let talk = |tokens| {
        Branch::default()
            .user(&long(50))
            .says(&long(50), 0)
            .user(&long(50))
            .says(&long(50), tokens)
    };
    let first_kept = |tokens, keep| cut(&talk(tokens), at_most(keep)).map(|(id, _, _)| id);
    for (keep, id) in [(1, "e3"), (99, "e3"), (100, "e2"), (199, "e1")] {
        assert_eq!(first_kept(0, keep), Ok(id.to_owned()), "{keep}");
    }
    assert_eq!(first_kept(0, 200), Err(Refusal::NothingToCompact));
    // The provider counted ten times the estimate, so that 199 tokens are 19.
    assert_eq!(first_kept(2_000, 199), Ok("e3".to_owned()));
    // What it counted before an edit is of a context that is gone.
    let edit = json!({"type": "context_edit", "targetId": "e0", "replacement": long(50)});
    let edited = cut(&talk(2_000).entry(edit), at_most(199));
    assert_eq!(edited.map(|(id, _, _)| id), Ok("e1".to_owned()));
    // A call and its result stay together.
    let branch = Branch::default()
        .user("one")
        .calls(0, "read", json!({"path": "r"}), 0)
        .result(0, &long(500));
    assert_eq!(cut(&branch, at_most(10)), expect("e1", &[], &["one"]));
}

#[test]
fn small_windows_limit_default_reserve_only() {
    let fitted = |window, reserve| {
        let settings = Settings::for_window(window, reserve, 16_384, 20_000);
        (settings.reserve_tokens, settings.keep_recent_tokens)
    };
    assert_eq!(fitted(128_000, None), (16_384, 20_000));
    assert_eq!(fitted(0, None), (16_384, 20_000));
    assert_eq!(fitted(8_192, None), (4_096, 2_048));
    // A value of the user is used as set, also beyond half the window and beyond the window.
    assert_eq!(fitted(8_192, Some(6_000)), (6_000, 1_096));
    assert_eq!(fitted(8_192, Some(16_384)), (16_384, 0));
    assert_eq!(fitted(200_000, Some(190_000)), (190_000, 5_000));
}

#[test]
fn unknown_role_messages_are_not_summarised() {
    let system = json!({"type": "message", "message": {"role": "system", "content": "prompt"}});
    let branch = Branch::default().entry(system).user("one").entry(user(&long(20)));
    assert_eq!(cut(&branch, TINY), expect("e2", &["one"], &[]));
}
