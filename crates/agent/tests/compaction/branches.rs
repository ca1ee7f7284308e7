//! Summaries of branches that are left.

use pinion_agent::compaction::{
    BranchPlan, Refusal, SummaryKind, abandoned, branch_plan, branch_request, finish_branch,
};
use serde_json::json;

use crate::common::{Branch, long, names};

fn planned(branch: &Branch, budget: u64) -> Result<BranchPlan, Refusal> {
    branch_plan(&branch.0, budget)
}

#[test]
fn abandoned_branch_starts_after_last_shared_entry() {
    let old = Branch::default().user("a").says("b", 0).user("c").says("d", 0);
    let new = Branch(old.0[..2].to_vec());
    let ids = |old: &Branch, new: &Branch| -> Vec<String> {
        abandoned(&old.0, &new.0)
            .iter()
            .map(|entry| entry.id.clone())
            .collect()
    };
    assert_eq!(ids(&old, &new), ["e2", "e3"]);
    assert_eq!(ids(&new, &old), Vec::<String>::new());
    assert_eq!(ids(&old, &Branch::default()).len(), 4);
}

#[test]
fn branch_summary_takes_newest_messages_within_budget() {
    let branch = Branch::default()
        .user(&format!("one {}", long(50)))
        .settings()
        .says("two", 0)
        .calls(0, "read", json!({"path": "r"}), 0)
        .result(0, &long(5_000))
        .says("three", 0);
    assert_eq!(
        names(&planned(&branch, 1_000).unwrap().messages),
        ["one", "two", "c0", "three"]
    );
    let small = planned(&branch, 20).unwrap();
    assert_eq!(names(&small.messages), ["two", "c0", "three"]);
    assert_eq!(small.files.read().collect::<Vec<_>>(), ["r"]);
    assert_eq!(planned(&branch, 1), Err(Refusal::NothingToSummarise));
    assert_eq!(
        planned(&Branch::default().settings(), 1_000),
        Err(Refusal::NothingToSummarise)
    );
}

#[test]
fn older_summary_exceeding_budget_is_kept_when_recent() {
    let with = |tail: usize| {
        Branch::default()
            .user("oldest")
            .compaction(&format!("SUM {}", long(100)), "e0")
            .user(&format!("tail {}", long(tail)))
    };
    assert_eq!(names(&planned(&with(80), 100).unwrap().messages), ["SUM", "tail"]);
    let failed = Branch::default().failed("error", &long(500)).says("two", 0);
    assert_eq!(names(&planned(&failed, 100).unwrap().messages), ["two"]);
    assert_eq!(names(&planned(&with(95), 100).unwrap().messages), ["tail"]);
    assert_eq!(
        names(&planned(&with(80), 1_000).unwrap().messages),
        ["oldest", "SUM", "tail"]
    );
}

#[test]
fn branch_summary_request_and_entry_have_contents() {
    let nested = json!({"type": "branch_summary", "fromId": "x", "summary": "nested summary",
        "details": {"readFiles": ["n", "w"], "modifiedFiles": []}});
    let branch = Branch::default()
        .entry(nested)
        .user("try it")
        .calls(0, "write", json!({"path": "w"}), 0);
    let plan = planned(&branch, 1_000).unwrap();
    let request = branch_request(&plan, Some("costs"), false);
    assert_eq!((request.kind, request.max_tokens), (SummaryKind::Branch, 2_048));
    assert!(
        request
            .user_text
            .contains("[User]: try it\n\n[Assistant tool calls]: write(path=\"w\")\n</conversation>\n\n")
    );
    assert!(request.user_text.contains("nested summary"));
    assert!(request.user_text.ends_with("\n\nAdditional focus: costs"));
    assert!(request.user_text.contains("## Goal") && !request.user_text.contains("## Critical Context"));
    let replaced = branch_request(&plan, Some("Only the costs."), true).user_text;
    assert!(replaced.ends_with("</conversation>\n\nOnly the costs."));

    let entry = finish_branch(&plan, "NOTES".into(), "leaf").unwrap();
    assert!(
        entry.summary.ends_with(
            "\n\nNOTES\n\n<read-files>\nn\n</read-files>\n\n<modified-files>\nw\n</modified-files>"
        )
    );
    assert_eq!((entry.from_id.as_str(), entry.from_hook), ("leaf", Some(false)));
    assert_eq!(
        entry.details,
        Some(json!({"readFiles": ["n"], "modifiedFiles": ["w"]}))
    );
    assert_eq!(finish_branch(&plan, String::new(), "leaf"), Err(Refusal::Empty));
}
