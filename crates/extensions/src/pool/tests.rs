//! Several simulated processes in one pool.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::ExtensionPool;
use crate::error::ProcessError;
use crate::line::Registered;
use crate::process::ProcessMessage;
use crate::tests::{Played, open};

/// Two processes; both listen to `events`, the second has the tool `two`.
async fn pair(
    events: &[&str],
) -> (
    ExtensionPool,
    [Played; 2],
    [mpsc::Receiver<ProcessMessage>; 2],
    Vec<mpsc::Receiver<ProcessMessage>>,
) {
    let pool = ExtensionPool::default();
    let (one, rest_one, first) = open().await;
    let (two, rest_two, second) = open().await;
    let said = [pool.put(0, one, "s"), pool.put(1, two, "s")];
    for (place, path) in ["one.ts", "two.py"].into_iter().enumerate() {
        let registered = json!({"path": path, "events": events, "tools": [{"name": path}]});
        let registered: Registered = serde_json::from_value(registered).unwrap();
        pool.register(place, vec![registered]);
    }
    (pool, [first, second], said, vec![rest_one, rest_two])
}

/// The next line that is no ping; answered with this value.
async fn answer(played: &mut Played, value: Value) -> Value {
    loop {
        let line = played.next().await;
        if line["type"] != "ping" {
            played
                .say(&json!({"type": "result", "id": line["id"], "value": value}))
                .await;
            return line;
        }
    }
}

#[tokio::test]
async fn later_process_sees_input_changed_by_earlier_one() {
    let (pool, [mut one, mut two], ..) = pair(&["tool_call"]).await;
    let asking = pool.event("s", "tool_call", &json!({"input": {"n": 1}})).unwrap();
    let playing = async {
        answer(&mut one, json!({"input": {"n": 2}})).await;
        answer(&mut two, json!(null)).await
    };
    let (answer, seen) = tokio::join!(asking, playing);
    assert_eq!(answer.unwrap().value, json!({"input": {"n": 2}}));
    assert_eq!(seen["event"], json!({"input": {"n": 2}}));
}

#[tokio::test]
async fn failed_check_fails_call_but_other_events_continue() {
    let (pool, [mut one, mut two], ..) = pair(&["tool_call", "input"]).await;
    let refuse = |line: &Value| json!({"type": "error", "id": line["id"], "message": "no idea"});
    let asking = pool.event("s", "tool_call", &json!({})).unwrap();
    let line = one.next().await;
    one.say(&refuse(&line)).await;
    assert_eq!(asking.await, Err(ProcessError::Failed("no idea".to_owned())));
    let asking = pool.event("s", "input", &json!({"text": "a"})).unwrap();
    let playing = async {
        let line = one.next().await;
        one.say(&refuse(&line)).await;
        answer(&mut two, json!({"action": "handled"})).await;
    };
    let (answer, ()) = tokio::join!(asking, playing);
    let answer = answer.unwrap();
    assert_eq!(answer.value, json!({"action": "handled"}));
    assert_eq!(
        (answer.errors[0].path.as_str(), answer.errors[0].error.as_str()),
        ("one.ts", "no idea")
    );
}

#[tokio::test]
async fn user_command_of_ended_process_stops_there() {
    let (pool, [mut one, _two], ..) = pair(&["user_bash"]).await;
    let asking = pool.event("s", "user_bash", &json!({"command": "make"})).unwrap();
    one.next().await;
    one.dies.take().unwrap().send("exit code 3".to_owned()).unwrap();
    let answer = tokio::time::timeout(Duration::from_secs(30), asking).await;
    assert_eq!(
        answer.expect("the other process is not asked"),
        Err(ProcessError::Gone("exit code 3".to_owned()))
    );
}

#[tokio::test]
async fn cancelled_check_is_an_error() {
    let (pool, [mut one, _two], ..) = pair(&["tool_call"]).await;
    let mut asking = pool.event("s", "tool_call", &json!({})).unwrap();
    let line = one.next().await;
    asking.cancel();
    let playing = async {
        assert_eq!(one.next().await, json!({"type": "cancel", "id": line["id"]}));
        one.say(&json!({"type": "result", "id": line["id"]})).await;
    };
    let (answer, ()) = tokio::join!(&mut asking, playing);
    assert!(matches!(answer, Err(ProcessError::Failed(_))), "{answer:?}");
}

#[tokio::test]
async fn calls_are_routed_to_their_process_and_renumbered() {
    let (pool, [mut one, mut two], [mut from_one, mut from_two], _rest) = pair(&[]).await;
    assert!(pool.event("s", "input", &json!({})).is_err());
    let asking = pool
        .call("s", "tool.execute", &json!({"extension": "two.py"}), None)
        .unwrap();
    let (answer, line) = tokio::join!(asking, answer(&mut two, json!(2)));
    assert_eq!(
        (answer.unwrap().value, &line["method"]),
        (json!(2), &json!("tool.execute"))
    );
    // Both use the same number.
    for played in [&mut one, &mut two] {
        played
            .say(&json!({"type": "call", "session": "s", "id": 1, "method": "ui.input"}))
            .await;
    }
    let mut numbers = Vec::new();
    for (place, said) in [(0, from_one.recv().await), (1, from_two.recv().await)] {
        match pool.heard(place, said.unwrap()) {
            Some(ProcessMessage::Call { id: Some(id), .. }) => numbers.push(id),
            other => panic!("{other:?}"),
        }
    }
    assert_ne!(numbers[0], numbers[1]);
    pool.answer(numbers[1], &json!("b")).unwrap();
    assert_eq!(two.next().await, json!({"type": "result", "id": 1, "value": "b"}));
    // An answered call cannot be withdrawn, and a process that is gone gets no answer.
    assert!(pool.heard(1, ProcessMessage::Withdrawn(1)).is_none());
    assert!(
        matches!(pool.heard(0, ProcessMessage::Withdrawn(1)), Some(ProcessMessage::Withdrawn(id)) if id == numbers[0])
    );
    pool.refuse(numbers[0], "too late");
    assert!(pool.lose(1).0.is_empty());
    assert!(!pool.is_there(1) && pool.registered().len() == 1);
}

#[tokio::test]
async fn updates_and_streams_reach_owner_until_it_exits() {
    let (pool, [_one, mut two], [_from_one, mut from_two], _rest) = pair(&[]).await;
    let registered = json!({"path": "two.py", "shortcuts": [{"shortcut": "f2"}],
        "providers": [{"name": "own", "config": {"streams": true, "refreshes": true}}]});
    pool.register(1, vec![serde_json::from_value(registered).unwrap()]);
    pool.models_found("own", json!([{"id": "m"}]));
    assert_eq!(
        pool.registered_at(1)[0].providers[0].config["models"][0]["id"],
        "m"
    );
    two.say(&json!({"type": "call", "session": "s", "id": 7, "method": "llm.stream"}))
        .await;
    let Some(ProcessMessage::Call { id: Some(id), .. }) = pool.heard(1, from_two.recv().await.unwrap())
    else {
        panic!("no call");
    };
    pool.update(id, &json!(1)).await.unwrap();
    pool.update_now(id, &json!(2)).unwrap();
    pool.answer(id, &json!(3)).unwrap();
    for (kind, value) in [("update", 1), ("update", 2), ("result", 3)] {
        assert_eq!(two.next().await, json!({"type": kind, "id": 7, "value": value}));
    }
    assert!(pool.update_now(id, &json!(4)).is_err());
    let stream = |params: Value| pool.stream("s", "provider.stream", &params);
    let (asking, mut updates) = stream(json!({"provider": "own"})).unwrap();
    let line = two.next().await;
    two.say(&json!({"type": "update", "id": line["id"], "value": "a"}))
        .await;
    two.say(&json!({"type": "result", "id": line["id"], "value": "b"}))
        .await;
    let first = std::future::poll_fn(|context| updates.poll_next(context)).await;
    assert_eq!(first, Some(json!("a")));
    assert_eq!(asking.await.unwrap().value, "b");
    let pressed = pool.call("s", "shortcut.run", &json!({"shortcut": "f2"}), None);
    assert!(pressed.is_ok() && two.next().await["method"] == "shortcut.run");
    pool.lose(1);
    // No other process gets the call instead.
    assert!(matches!(
        stream(json!({"provider": "own"})),
        Err(ProcessError::Gone(_))
    ));
}

#[tokio::test]
async fn provider_of_several_is_asked_where_its_function_is() {
    let (pool, [mut one, mut two], ..) = pair(&[]).await;
    let configs = [
        json!({"streams": true, "oauth": {"name": "One"}, "models": []}),
        json!({"streams": true, "baseUrl": "http://two"}),
    ];
    for (place, config) in configs.into_iter().enumerate() {
        let registered =
            json!({"path": place.to_string(), "providers": [{"name": "both", "config": config}]});
        pool.register(place, vec![serde_json::from_value(registered).unwrap()]);
    }
    let ask = |method: &str| pool.call("s", method, &json!({"provider": "both"}), None);
    let _answer = ask("provider.stream").unwrap();
    assert_eq!(two.next().await["method"], "provider.stream");
    let _answer = ask("provider.oauth.login").unwrap();
    assert_eq!(one.next().await["method"], "provider.oauth.login");
    // Neither lists its models.
    assert!(matches!(
        ask("provider.refreshModels"),
        Err(ProcessError::Gone(_))
    ));
    pool.models_found("both", json!([{"id": "m"}]));
    assert_eq!(pool.registered_at(0)[0].providers[0].config["models"], json!([]));
}
