//! Summaries that a model makes, and their outcome.

use std::time::Duration;

use agent::compaction::Refusal;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use wire::event::CompactionReason;

use super::super::asker::{Asked, Asker};
use super::super::run_limits::SharedSpending;
use super::super::storage::Batch;
use super::super::summaries::{Summaries, Summarised, Summarising};
use super::stage::CoreStage;
use super::{events, user};

/// A core whose log has several long turns.
async fn long(replies: &[Value]) -> CoreStage {
    let settings = r#"{"compaction": {"keepRecentTokens": 1000}}"#;
    let mut stage = CoreStage::with(replies, settings);
    let outbox = stage.outbox.clone();
    for turn in 0..4 {
        let batch = Batch::of(user(&format!("turn {turn} {}", "word ".repeat(1000))));
        assert!(stage.core.conversation.log.keep(batch, &outbox).await);
    }
    stage
}

async fn outcome(summaries: &mut Summaries) -> Summarised {
    let next = tokio::time::timeout(Duration::from_secs(30), summaries.next());
    let summarised = next.await.expect("an outcome");
    summaries.accept(summarised)
}

fn compaction(summarised: Summarised) -> Result<String, Refusal> {
    match summarised {
        Summarised::Compaction(outcome) => outcome.map(|finished| finished.entry.summary),
        Summarised::Branch(_) => panic!("another outcome"),
    }
}

#[tokio::test]
async fn summaries_without_requests_never_wake_the_session() {
    let mut summaries = Summaries::default();
    let next = tokio::time::timeout(Duration::from_millis(5), summaries.next());
    assert!(next.await.is_err());
}

#[tokio::test]
async fn empty_conversation_has_nothing_to_compact() {
    let mut stage = CoreStage::new();
    let mut summaries = Summaries::default();
    let (plan, _) = summaries.plan(&stage.core, CompactionReason::Manual);
    assert!(matches!(plan, Err(Refusal::NothingToCompact)), "{plan:?}");
    summaries.begin_compaction(
        &mut stage.core,
        SharedSpending::default(),
        CompactionReason::Manual,
    );
    let refusal = compaction(outcome(&mut summaries).await).unwrap_err();
    assert!(matches!(refusal, Refusal::NothingToCompact));
}

#[tokio::test]
async fn compaction_returns_the_summary_of_the_model() {
    let mut stage = long(&[json!({"stream": [{"text": "all in short"}]})]).await;
    let mut summaries = Summaries::default();
    let spending = SharedSpending::default();
    summaries.begin_compaction(&mut stage.core, spending.clone(), CompactionReason::Manual);
    assert!(summaries.running.is_some());
    let summary = compaction(outcome(&mut summaries).await).unwrap();
    assert!(summary.contains("all in short"), "{summary}");
    assert!(summaries.running.is_none());
    assert!(spending.take().is_some(), "the session counts what it took");
}

#[tokio::test]
async fn failed_summary_names_the_error() {
    let error = json!({"error": {"status": 400, "message": "no summaries today"}});
    let mut stage = long(&[error]).await;
    let mut summaries = Summaries::default();
    summaries.begin_compaction(
        &mut stage.core,
        SharedSpending::default(),
        CompactionReason::Manual,
    );
    match compaction(outcome(&mut summaries).await) {
        Err(Refusal::Failed(_, error)) => assert!(error.contains("no summaries today"), "{error}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn overloaded_summary_is_tried_again_with_events() {
    let error = json!({"error": {"status": 529, "message": "overloaded"}});
    let mut stage = long(&[error, json!({"stream": [{"text": "short"}]})]).await;
    stage
        .core
        .change_settings(|settings| settings.retry.base_delay_ms = 1);
    events(&mut stage.sent);
    let mut summaries = Summaries::default();
    summaries.begin_compaction(
        &mut stage.core,
        SharedSpending::default(),
        CompactionReason::Threshold,
    );
    assert!(compaction(outcome(&mut summaries).await).is_ok());
    let types: Vec<Value> = events(&mut stage.sent)
        .into_iter()
        .map(|event| event["type"].clone())
        .collect();
    assert_eq!(
        types,
        [
            "summarization_retry_scheduled",
            "summarization_retry_attempt_start",
            "summarization_retry_finished"
        ]
    );
}

#[tokio::test]
async fn summary_that_beats_its_abort_changes_nothing() {
    let mut stage = long(&[json!({"stream": [{"text": "too late"}]})]).await;
    let mut summaries = Summaries::default();
    summaries.begin_compaction(
        &mut stage.core,
        SharedSpending::default(),
        CompactionReason::Manual,
    );
    let summarised = summaries.next().await;
    summaries.cancel();
    let refusal = compaction(summaries.accept(summarised)).unwrap_err();
    assert!(matches!(refusal, Refusal::Aborted));
}

#[tokio::test]
async fn aborted_branch_summary_is_refused() {
    let mut summaries = Summaries::default();
    let cancel = CancellationToken::new();
    summaries.running = Some(Summarising::new(cancel.clone(), async {
        Summarised::Branch(Err(Refusal::NothingToSummarise))
    }));
    cancel.cancel();
    let summarised = summaries.next().await;
    assert!(matches!(
        summaries.accept(summarised),
        Summarised::Branch(Err(Refusal::Aborted))
    ));
}

#[tokio::test]
async fn compaction_refused_by_hooks_is_aborted() {
    let mut summaries = Summaries::default();
    summaries.end_compaction(Err(Refusal::Aborted));
    let refusal = compaction(outcome(&mut summaries).await).unwrap_err();
    assert!(matches!(refusal, Refusal::Aborted));
}

#[tokio::test]
async fn instructions_belong_to_manual_compactions() {
    let stage = CoreStage::new();
    let summaries = Summaries {
        compaction: Some(Asked {
            asker: Asker::Extension(None),
            instructions: Some("the tests".to_owned()),
        }),
        ..Summaries::default()
    };
    let instructions = |reason| summaries.plan(&stage.core, reason).1;
    assert_eq!(
        instructions(CompactionReason::Manual),
        Some("the tests".to_owned())
    );
    assert_eq!(instructions(CompactionReason::Overflow), None);
}
