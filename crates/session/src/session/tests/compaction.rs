//! What extensions answer before a compaction, and handoffs.

use agent::HooksOutcome;
use agent::compaction::Refusal;
use serde_json::{Value, json};
use wire::command::CompactParams;
use wire::event::CompactionResult;
use wire::omp::Handoff;
use wire::table::Respond as _;

use super::super::compaction::take_answer;
use super::super::handoff::handoff;
use super::events;
use crate::outbox::{ClientId, Origin, Outgoing, Responder, outbox};
use crate::{limits, strings};

/// The outcome of an answer, and the events that were sent.
async fn taken(answer: Value) -> (HooksOutcome, Vec<Value>) {
    let (outbox, mut sent) = outbox(limits::OUTBOX);
    let outcome = take_answer(answer, &outbox).await;
    (outcome, events(&mut sent))
}

#[tokio::test]
async fn only_true_cancels_the_compaction() {
    let (outcome, _) = taken(json!({"cancel": true, "compaction": {}})).await;
    assert!(matches!(outcome, HooksOutcome::Cancel));
    for answer in [json!({"cancel": "true"}), json!({"cancel": 1}), Value::Null] {
        let (outcome, events) = taken(answer).await;
        assert!(matches!(outcome, HooksOutcome::Unchanged));
        assert!(events.is_empty(), "{events:?}");
    }
}

#[tokio::test]
async fn compaction_of_extension_is_marked_as_such() {
    let compaction = json!({
        "summary": "short", "firstKeptEntryId": "e1", "tokensBefore": 7, "details": {"by": "me"}, "usage": {"input": 3}
    });
    let (outcome, events) = taken(json!({"compaction": compaction})).await;
    let HooksOutcome::Compacted(finished) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(finished.entry.from_hook, Some(true));
    assert_eq!(finished.result.summary, "short");
    assert_eq!(finished.result.first_kept_entry_id, "e1");
    assert_eq!(finished.result.tokens_before, 7);
    assert_eq!(finished.result.details, json!({"by": "me"}));
    // Counted in the session file, and shown to clients.
    for usage in [&finished.entry.usage, &finished.result.usage] {
        assert_eq!(usage.as_ref().map(|usage| usage.input), Some(3));
    }
    assert!(events.is_empty());
}

#[tokio::test]
async fn unusable_compaction_is_reported_and_ignored() {
    for compaction in [
        json!({"summary": "", "firstKeptEntryId": "e1", "tokensBefore": 7}),
        json!({"summary": "short", "firstKeptEntryId": "", "tokensBefore": 7}),
        json!("short"),
    ] {
        let (outcome, events) = taken(json!({"compaction": compaction})).await;
        assert!(matches!(outcome, HooksOutcome::Unchanged), "{compaction}");
        assert_eq!(events.len(), 1, "{compaction}");
        assert_eq!(events[0]["type"], "extension_error");
        assert_eq!(events[0]["event"], "session_before_compact");
    }
}

/// The response of a handoff whose compaction ended so.
async fn handed_off(outcome: Result<CompactionResult, String>) -> Result<(), String> {
    let (outbox, mut sent) = outbox(limits::OUTBOX);
    let origin = Origin {
        client: ClientId::default(),
        id: None,
        command: "handoff",
    };
    let responder: Responder<Handoff> = Responder::new(origin, &outbox);
    let (_, responder) = handoff(CompactParams::default(), responder);
    responder.respond(outcome).await;
    match sent.recv().await {
        Some(Outgoing::Response(_, response)) => response.outcome.map(drop),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn needless_handoff_has_its_own_words() {
    for refusal in [Refusal::NothingToCompact, Refusal::AlreadyCompacted] {
        assert_eq!(
            handed_off(Err(refusal.to_string())).await,
            Err(strings::NO_HANDOFF.to_owned())
        );
    }
    assert_eq!(
        handed_off(Err("overloaded".to_owned())).await,
        Err("overloaded".to_owned())
    );
}

#[tokio::test]
async fn handoff_adds_wishes_after_its_instructions() {
    let (outbox, _sent) = outbox(limits::OUTBOX);
    let instructions = |wish: Option<&str>| {
        let origin = Origin {
            client: ClientId::default(),
            id: None,
            command: "handoff",
        };
        let params = CompactParams {
            custom_instructions: wish.map(str::to_owned),
        };
        let responder: Responder<Handoff> = Responder::new(origin, &outbox);
        handoff(params, responder).0.custom_instructions.unwrap()
    };
    let plain = instructions(None);
    assert!(plain.contains("handoff"));
    assert_eq!(
        instructions(Some("name the files")),
        format!("{plain}\n\nname the files")
    );
}
