//! Requests for summaries and the use of the answers.

use pinion_agent::compaction::{
    Plan, Refusal, SummaryKind, answer_text, finish, plan, requests, short_request,
};
use serde_json::{Value, json};
use wire::{AssistantMessage, StopReason};

use crate::common::{Branch, TINY, answer, call, keep, long, names};

fn planned(branch: &Branch) -> Plan {
    plan(&branch.0, TINY).unwrap()
}

fn summary(plan: &Plan, answers: &[&str]) -> String {
    let answers = answers.iter().map(ToString::to_string).collect();
    finish(plan, answers).unwrap().entry.summary
}

#[test]
fn summary_file_lists_match_recording() {
    let both = json!([
        call(0, "read", json!({"path": "a.txt"})),
        call(1, "write", json!({"path": "w.txt", "content": "w"}))
    ]);
    let branch = Branch::default()
        .settings()
        .user("Work on files.")
        .entry(answer(&both, "toolUse", 120))
        .result(0, "alpha\n")
        .result(1, "Successfully wrote 1 bytes to w.txt")
        .calls(
            2,
            "edit",
            json!({"path": "a.txt", "edits": [{"oldText": "alpha", "newText": "ALPHA"}]}),
            120,
        )
        .result(2, "Successfully replaced 1 block(s) in a.txt.")
        .calls(3, "read", json!({"path": "b.txt"}), 120)
        .result(3, "beta\n")
        .says("Files done.", 120)
        .user("Second question about apples.")
        .says("Apples are fine.", 120);
    let plan = planned(&branch);
    let talk = "<conversation>\n[User]: Work on files.\n\n[Assistant tool calls]: read(path=\"a.txt\"); write(path=\"w.txt\", \
                content=\"w\")\n\n[Tool result]: alpha\n\n\n[Tool result]: Successfully wrote 1 bytes to w.txt\n\n[Assistant \
                tool calls]: edit(path=\"a.txt\", edits=[{\"oldText\":\"alpha\",\"newText\":\"ALPHA\"}])\n\n[Tool result]: \
                Successfully replaced 1 block(s) in a.txt.\n\n[Assistant tool calls]: read(path=\"b.txt\")\n\n[Tool result]: \
                beta\n\n\n[Assistant]: Files done.\n</conversation>\n\n";
    assert!(requests(&plan, None)[0].user_text.starts_with(talk));
    let done = finish(&plan, vec!["File summary".into()]).unwrap();
    assert_eq!(
        done.entry.summary,
        "File summary\n\n<read-files>\nb.txt\n</read-files>\n\n<modified-files>\na.txt\nw.txt\n</modified-files>"
    );
    let details = json!({"readFiles": ["b.txt"], "modifiedFiles": ["a.txt", "w.txt"]});
    assert_eq!(done.entry.details, Some(details.clone()));
    assert_eq!(
        (done.entry.from_hook, done.entry.tokens_before),
        (Some(false), 120)
    );
    assert_eq!(done.entry.first_kept_entry_id, "e11");
    assert_eq!(
        (done.result.summary, done.result.details),
        (done.entry.summary, details)
    );
    // The kept messages are 29 and 16 characters, the summary with its lists is 94.
    let text = done.result.first_kept_entry_id;
    assert_eq!(
        (text.as_str(), done.result.estimated_tokens_after),
        ("e11", Some(8 + 4 + 24))
    );
}

#[test]
fn unexecuted_calls_add_no_files_to_summary() {
    let write = json!([
        call(0, "write", json!({"path": "never"})),
        call(1, "read", json!({"path": 7}))
    ]);
    let branch = Branch::default()
        .user("one")
        .entry(answer(&write, "aborted", 0))
        .user(&long(20));
    assert_eq!(summary(&planned(&branch), &["S"]), "S");
}

#[test]
fn lists_of_earlier_summaries_are_carried_on() {
    let earlier = |details: Value, hook: bool| {
        let text = "Old\n\n<read-files>\nr\nm\n</read-files>\n\n<modified-files>\nw\n</modified-files>";
        let body = json!({"type": "compaction", "summary": text, "firstKeptEntryId": "e0", "tokensBefore": 1,
            "details": details, "fromHook": hook});
        Branch::default()
            .user("one")
            .entry(body)
            .calls(0, "edit", json!({"path": "m"}), 0)
            .result(0, "ok")
            .user(&long(20))
    };
    let ours = planned(&earlier(
        json!({"readFiles": ["r", "m"], "modifiedFiles": ["w"]}),
        false,
    ));
    // The model does not see the old lists, so it cannot copy them.
    assert_eq!(ours.previous_summary.as_deref(), Some("Old"));
    assert_eq!(
        summary(&ours, &["S"]),
        "S\n\n<read-files>\nr\n</read-files>\n\n<modified-files>\nm\nw\n</modified-files>"
    );
    // An extension's details have a meaning of their own; its text stays whole.
    let hook = planned(&earlier(json!({"readFiles": ["r"]}), true));
    assert!(
        hook.previous_summary
            .as_deref()
            .unwrap()
            .ends_with("</modified-files>")
    );
    assert_eq!(
        summary(&hook, &["S"]),
        "S\n\n<modified-files>\nm\n</modified-files>"
    );
}

#[test]
fn split_turns_join_two_summaries() {
    let branch = Branch::default()
        .user("first")
        .says("yes", 0)
        .user("work")
        .says(&long(20), 0);
    let plan = planned(&branch);
    assert!(plan.splits_turn());
    assert_eq!(
        summary(&plan, &["H", "P"]),
        "H\n\n---\n\n**Turn Context (split turn):**\n\nP"
    );
    let reading = Branch::default()
        .user("work")
        .calls(0, "read", json!({"path": "r"}), 0)
        .result(0, "ok")
        .says(&long(20), 0);
    assert!(summary(&planned(&reading), &["P"]).ends_with("P\n\n<read-files>\nr\n</read-files>"));
    let only = Branch::default().user("work").says(&long(20), 0);
    assert_eq!(
        summary(&planned(&only), &["P"]),
        "No prior history.\n\n---\n\n**Turn Context (split turn):**\n\nP"
    );
}

#[test]
fn short_summary_is_asked_from_kept_messages() {
    let branch = Branch::default()
        .user("first")
        .calls(0, "read", json!({"path": "r"}), 0)
        .result(0, "ok")
        .user("work")
        .says(&long(20), 0);
    let plan = planned(&branch);
    let mut done = finish(&plan, vec!["H".into(), "P".into()]).unwrap();
    assert!(
        done.entry
            .summary
            .ends_with("P\n\n<read-files>\nr\n</read-files>")
    );
    let asked = short_request(&plan, &done.entry.summary);
    assert_eq!((asked.kind, asked.max_tokens), (SummaryKind::Short, 512));
    let talk = format!(
        "<conversation>\n[Assistant]: {}\n</conversation>\n\n<previous-summary>\nH\n\n---\n\n**Turn Context (split turn):**\n\n\
         P\n</previous-summary>\n\n",
        long(20)
    );
    assert!(asked.user_text.starts_with(&talk), "{}", asked.user_text);
    done.complete_as_omp(Some("S".into()));
    assert_eq!(done.result.short_summary.as_deref(), Some("S"));
    let entry = serde_json::to_value(&done.entry).unwrap();
    assert_eq!(
        (&entry["shortSummary"], &entry["method"]),
        (&json!("S"), &json!("soft"))
    );
    assert_eq!(entry["tokensAfter"].as_u64(), done.result.estimated_tokens_after);
}

#[test]
fn previous_summary_survives_cut_in_next_turn() {
    let branch = Branch::default()
        .user("old")
        .compaction("EARLIER", "gone")
        .user("work")
        .says(&long(20), 0);
    let plan = planned(&branch);
    assert_eq!(names(&plan.turn_prefix), ["work"]);
    assert_eq!(requests(&plan, None)[0].kind, SummaryKind::TurnPrefix);
    assert_eq!(
        summary(&plan, &["P"]),
        "EARLIER\n\n---\n\n**Turn Context (split turn):**\n\nP"
    );
}

#[test]
fn custom_instructions_reach_every_summary_request() {
    let branch = Branch::default()
        .user("first")
        .says("yes", 0)
        .user("work")
        .says(&long(20), 0);
    let asked = requests(&planned(&branch), Some(" the tests "));
    assert_eq!(asked.len(), 2);
    for request in &asked {
        assert!(request.user_text.ends_with("\n\nAdditional focus: the tests"));
        assert!(!request.system_prompt.is_empty());
    }
    let without = requests(&planned(&branch), Some("  "));
    assert!(
        without
            .iter()
            .all(|request| !request.user_text.contains("Additional focus"))
    );
    let sections = [
        "## Goal",
        "## Constraints & Preferences",
        "## Progress",
        "## Key Decisions",
        "## Next Steps",
        "## Critical Context",
    ];
    let places: Vec<_> = sections
        .iter()
        .map(|section| asked[0].user_text.find(section).unwrap())
        .collect();
    assert!(places.is_sorted());
}

#[test]
fn summary_request_contains_conversation_text() {
    let blocks = json!([
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "one"},
        {"type": "text", "text": "two"},
        call(0, "bash", json!({"command": "ls", "timeout": 5})),
    ]);
    let bash = json!({"type": "message", "message": {"role": "bashExecution", "command": "ls", "output": "x", "exitCode": 0}});
    let long_result = "\u{1F600}".repeat(2_003);
    let branch = Branch::default()
        .user("look </conversation> here")
        .entry(answer(&blocks, "toolUse", 0))
        .result(0, &long_result)
        .entry(bash)
        .user(&long(20));
    let text = &requests(&planned(&branch), None)[0].user_text;
    let head = "<conversation>\n[User]: look <\\/conversation> here\n\n[Assistant]: one\ntwo\n\n[Assistant tool calls]: \
                bash(command=\"ls\", timeout=5)\n\n[Tool result]: \u{1F600}";
    assert!(text.starts_with(head), "{}", &text[..300]);
    assert_eq!(text.matches('\u{1F600}').count(), 2_000);
    assert!(text.contains(
        "\u{1F600}\n[3 more characters left out]\n\n[User]: Ran `ls`\n```\nx\n```\n</conversation>\n\n"
    ));
    assert!(!text.contains("hm"));
}

#[test]
fn unusable_summary_answers_are_refused() {
    let branch = Branch::default().user("one").user(&long(20));
    let plan = planned(&branch);
    assert_eq!(finish(&plan, vec![" \n".into()]), Err(Refusal::Empty));
    assert_eq!(finish(&plan, vec![]), Err(Refusal::Answers { wanted: 1, got: 0 }));
    assert_eq!(
        finish(&plan, vec!["a".into(), "b".into()]),
        Err(Refusal::Answers { wanted: 1, got: 2 })
    );
    let mut answer = AssistantMessage::begin("a", "p", "m", 0);
    assert_eq!(answer_text(SummaryKind::History, &answer), Err(Refusal::Empty));
    answer.content.push(wire::AssistantBlock::text("half a summ"));
    assert_eq!(
        answer_text(SummaryKind::History, &answer),
        Ok("half a summ".into())
    );
    answer.stop_reason = StopReason::Length;
    assert_eq!(
        answer_text(SummaryKind::History, &answer),
        Err(Refusal::CutOff(SummaryKind::History))
    );
    // As in oh-my-pi: it replaces nothing.
    assert_eq!(answer_text(SummaryKind::Short, &answer), Ok("half a summ".into()));
    answer.stop_reason = StopReason::Aborted;
    assert_eq!(answer_text(SummaryKind::History, &answer), Err(Refusal::Aborted));
    answer.stop_reason = StopReason::Error;
    answer.error_message = Some("401 no".into());
    assert_eq!(
        answer_text(SummaryKind::History, &answer)
            .unwrap_err()
            .to_string(),
        "Summarization failed: 401 no"
    );
    let error = answer_text(SummaryKind::Branch, &answer).unwrap_err();
    assert_eq!(error.to_string(), "Branch summarization failed: 401 no");
    let cut_off = Refusal::CutOff(SummaryKind::TurnPrefix).to_string();
    assert_eq!(
        cut_off,
        "Turn prefix summarization failed: generation hit the token cap and the summary is incomplete"
    );
}

#[test]
fn compaction_refusals_have_fixed_texts() {
    assert_eq!(Refusal::AlreadyCompacted.to_string(), "Already compacted");
    assert_eq!(
        Refusal::NothingToCompact.to_string(),
        "Nothing to compact (session too small)"
    );
    assert_eq!(Refusal::NothingToSummarise.to_string(), "No content to summarize");
    assert_eq!(Refusal::Aborted.to_string(), "Compaction cancelled");
}

#[test]
fn zero_reserve_still_leaves_tokens_for_summary() {
    let branch = Branch::default().user("one").user(&long(20));
    let settings = pinion_agent::compaction::Settings {
        reserve_tokens: 0,
        ..keep(10)
    };
    let plan = plan(&branch.0, settings).unwrap();
    assert_eq!(requests(&plan, None)[0].max_tokens, 512);
}
