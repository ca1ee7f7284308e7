//! Servers of the revision of July 2026, which has no handshake, and how the client recognises servers of older revisions.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use pinion_mcp::{Form, Reply, Status, limits};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::play::{Says, Wire, becomes, call, is_connected, played, played_with, settled, text, tool};

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// What a server says of itself.
fn about() -> Value {
    json!({
        "resultType": "complete",
        "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {"listChanged": true}},
        "instructions": "Be modern",
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "modern", "version": "2"}},
    })
}

fn listed(tools: Value) -> Value {
    json!({"resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "private"})
}

fn complete(words: &str) -> Value {
    let mut result = text(words);
    result["resultType"] = json!("complete");
    result
}

async fn refuse(wire: &mut Wire, asked: &Value) {
    let error = json!({"code": -32601, "message": "Method not found"});
    wire.say(json!({"jsonrpc": "2.0", "id": asked["id"], "error": error}))
        .await;
}

/// Answers the question for the revision and lists a tool; says which notifications are wanted.
async fn offer(wire: &mut Wire, name: &str) {
    let asked = wire.next().await;
    assert_eq!(asked["method"], "server/discover");
    wire.answer(&asked, about()).await;
    let asked = wire.until("tools/list").await;
    assert_eq!(asked["params"]["_meta"][VERSION], "2026-07-28");
    wire.answer(&asked, listed(json!([tool(name)]))).await;
}

#[tokio::test]
async fn modern_mcp_server_needs_no_handshake() {
    let mut server = played(async |mut wire| {
        offer(&mut wire, "a").await;
        loop {
            let asked = wire.next().await;
            assert_ne!(asked["method"], "initialize");
            if asked["method"] == "tools/call" {
                assert_eq!(asked["params"]["_meta"][VERSION], "2026-07-28");
                wire.answer(&asked, complete("here")).await;
            }
        }
    });
    let seen = settled(&mut server).await;
    assert_eq!(
        (&seen.status, seen.title.as_str()),
        (&Status::Connected, "modern 2")
    );
    assert_eq!(seen.instructions.as_deref(), Some("Be modern"));
    assert_eq!(call(&server, "a").await, Ok("here".to_owned()));
}

#[tokio::test]
async fn input_that_modern_server_requires_is_asked_for() {
    let questions = Says(Arc::default(), Some(Reply::Accept(name_of("Ada"))));
    let asked_user = Arc::clone(&questions.0);
    let play = async |mut wire: Wire| {
        offer(&mut wire, "a").await;
        let first = wire.until("tools/call").await;
        assert!(first["params"]["inputResponses"].is_null());
        let schema =
            json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
        let form = json!({"mode": "form", "message": "Who are you?", "requestedSchema": schema});
        let wanted = json!({
            "resultType": "input_required",
            "requestState": "state-1",
            "inputRequests": {
                "who": {"method": "elicitation/create", "params": form},
                "where": {"method": "roots/list"},
            },
        });
        wire.answer(&first, wanted).await;
        let again = wire.until("tools/call").await;
        let params = &again["params"];
        assert_eq!(
            (&params["name"], &params["requestState"]),
            (&first["params"]["name"], &json!("state-1"))
        );
        let given = &params["inputResponses"];
        assert_eq!(given["where"]["roots"][0]["uri"], "file:///tmp/gr%C3%B6%C3%9Fe");
        let said = format!("{} {}", given["who"]["action"], given["who"]["content"]["name"]);
        wire.answer(&again, complete(&said)).await;
        wire.next().await;
    };
    let mut server = played_with(play, questions, json!({"timeout": 5}));
    settled(&mut server).await;
    assert_eq!(call(&server, "a").await, Ok(r#""accept" "Ada""#.to_owned()));
    let asked = asked_user.lock().unwrap();
    assert!(matches!(&asked[0].form, Form::Fields(fields) if fields[0].name == "name"));
}

fn name_of(name: &str) -> Map<String, Value> {
    json!({ "name": name }).as_object().unwrap().clone()
}

#[tokio::test]
async fn endless_requests_for_input_end() {
    let rounds = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&rounds);
    let mut server = played(move |mut wire| {
        let rounds = Arc::clone(&counted);
        async move {
            offer(&mut wire, "a").await;
            loop {
                let asked = wire.until("tools/call").await;
                rounds.fetch_add(1, Ordering::Relaxed);
                let wanted = json!({"where": {"method": "roots/list"}});
                let answer = json!({"resultType": "input_required", "inputRequests": wanted});
                wire.answer(&asked, answer).await;
            }
        }
    });
    settled(&mut server).await;
    let error = call(&server, "a").await.unwrap_err();
    assert!(error.contains("asks for input without end"), "{error}");
    assert_eq!(rounds.load(Ordering::Relaxed), limits::ROUNDS);
}

#[tokio::test]
async fn model_is_not_lent_to_modern_server() {
    let mut server = played(async |mut wire| {
        offer(&mut wire, "a").await;
        let asked = wire.until("tools/call").await;
        let params = json!({"messages": [], "maxTokens": 1});
        let wanted = json!({"m": {"method": "sampling/createMessage", "params": params}});
        let answer = json!({"resultType": "input_required", "inputRequests": wanted});
        wire.answer(&asked, answer).await;
        wire.next().await;
    });
    settled(&mut server).await;
    let error = call(&server, "a").await.unwrap_err();
    assert!(
        error.contains("sampling/createMessage, which is not supported"),
        "{error}"
    );
}

#[tokio::test]
async fn modern_server_tells_of_changed_lists() {
    let mut server = played(async |mut wire| {
        offer(&mut wire, "a").await;
        let asked = wire.until("subscriptions/listen").await;
        let wanted = &asked["params"]["notifications"];
        assert_eq!(wanted["toolsListChanged"], true);
        let meta = json!({"io.modelcontextprotocol/subscriptionId": asked["id"]});
        let mut notify = async |method: &str, params: Value| {
            let mut params = params;
            params["_meta"] = meta.clone();
            wire.say(json!({"jsonrpc": "2.0", "method": method, "params": params}))
                .await;
        };
        let accepted = json!({"notifications": {"toolsListChanged": true}});
        notify("notifications/subscriptions/acknowledged", accepted).await;
        notify("notifications/tools/list_changed", json!({})).await;
        let asked = wire.until("tools/list").await;
        wire.answer(&asked, listed(json!([tool("a"), tool("late")])))
            .await;
        wire.next().await;
    });
    becomes(&server, |seen| seen.lists.tools.len() == 2).await;
    settled(&mut server).await;
}

#[tokio::test(start_paused = true)]
async fn silent_old_server_is_greeted_after_bounded_wait() {
    let start = Instant::now();
    let mut server = played(async |mut wire| {
        let asked = wire.next().await;
        assert_eq!(asked["method"], "server/discover");
        let hello = wire.until("initialize").await;
        assert_eq!(hello["params"]["protocolVersion"], "2025-11-25");
        // What comes too late does no harm.
        wire.answer(&asked, about()).await;
        let info = json!({"name": "old", "version": "1"});
        let able = json!({"tools": {}});
        let answer = json!({"protocolVersion": "2025-11-25", "capabilities": able, "serverInfo": info});
        wire.answer(&hello, answer).await;
        let asked = wire.until("tools/list").await;
        wire.answer(&asked, json!({"tools": [tool("a")]})).await;
        wire.next().await;
    });
    becomes(&server, is_connected).await;
    assert_eq!(settled(&mut server).await.title, "old 1");
    let waited = start.elapsed();
    assert!(
        waited >= limits::PROBE && waited < limits::PROBE + Duration::from_secs(1),
        "{waited:?}"
    );
}

#[tokio::test]
async fn old_server_ending_at_question_restarts() {
    let starts = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&starts);
    let mut server = played(move |mut wire| {
        let starts = Arc::clone(&counted);
        async move {
            starts.fetch_add(1, Ordering::Relaxed);
            let first = wire.next().await;
            if first["method"] == "server/discover" {
                return;
            }
            let info = json!({"name": "old", "version": "1"});
            let answer =
                json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info});
            wire.answer(&first, answer).await;
            let asked = wire.until("tools/list").await;
            wire.answer(&asked, json!({"tools": [tool("a")]})).await;
            wire.next().await;
        }
    });
    assert_eq!(settled(&mut server).await.status, Status::Connected);
    assert_eq!(starts.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn modern_server_that_starts_slowly_is_asked_again() {
    let server = played(async |mut wire| {
        // The program is being downloaded.
        let asked = wire.next().await;
        assert_eq!(asked["method"], "server/discover");
        tokio::time::sleep(limits::PROBE * 2).await;
        wire.answer(&asked, about()).await;
        loop {
            let asked = wire.next().await;
            match asked["method"].as_str() {
                Some("initialize") => refuse(&mut wire, &asked).await,
                Some("tools/list") => wire.answer(&asked, listed(json!([tool("a")]))).await,
                _ => {}
            }
        }
    });
    let seen = becomes(&server, is_connected).await;
    assert_eq!((seen.title.as_str(), seen.lists.tools.len()), ("modern 2", 1));
}
