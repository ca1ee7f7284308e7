//! What a session cost, by model.
#![expect(clippy::unwrap_used, reason = "helpers of a test may panic")]

use std::sync::Arc;

use pinion_agent::spending::by_model;
use serde_json::{Value, json};
use wire::Entry;

fn entries(bodies: Vec<Value>) -> Vec<Arc<Entry>> {
    bodies
        .iter()
        .map(|body| Arc::new(Entry::from_json(&body.to_string()).unwrap()))
        .collect()
}

fn usage(input: u64, cost: f64) -> Value {
    json!({"input": input, "output": 10, "cacheRead": 1, "cacheWrite": 2, "totalTokens": 0, "cost": {"total": cost}})
}

fn answer(model: &str, input: u64, cost: f64) -> Value {
    json!({"type": "message", "id": "a", "message": {"role": "assistant", "provider": "p", "model": model, "content": [],
           "usage": usage(input, cost), "stopReason": "stop"}})
}

#[test]
fn spending_counts_all_entries_by_model() {
    let spent = by_model(&entries(vec![
        answer("one", 100, 0.5),
        answer("two", 10, 0.25),
        json!({"type": "compaction", "id": "c", "summary": "s", "usage": usage(1000, 1.0)}),
        answer("one", 100, 0.5),
        json!({"type": "branch_summary", "id": "b", "summary": "s", "usage": usage(5, 0.0)}),
        json!({"type": "usage", "id": "u", "kind": "title", "provider": "q", "model": "small", "usage": usage(7, 0.125)}),
        json!({"type": "message", "id": "t", "message": {"role": "toolResult", "toolCallId": "c", "usage": usage(3, 0.0)}}),
    ]));
    let told: Vec<_> = spent
        .iter()
        .map(|s| {
            (
                s.model.as_str(),
                s.answers,
                s.tokens.input,
                s.tokens.total,
                s.cost,
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            ("one", 2, 208, 208 + 4 * 13, 1.0),
            ("two", 1, 1010, 1010 + 2 * 13, 1.25),
            ("small", 0, 7, 20, 0.125)
        ]
    );
    assert_eq!(spent[2].provider, "q");
}

#[test]
fn huge_token_counts_do_not_overflow() {
    let spent = by_model(&entries(vec![
        answer("one", u64::MAX, 0.0),
        answer("one", u64::MAX, 0.0),
    ]));
    assert_eq!(spent[0].tokens.input, u64::MAX);
}
