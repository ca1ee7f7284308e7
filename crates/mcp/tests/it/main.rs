//! Servers as they should not be: nothing that one sends, leaves out or does not read may do more than fail its own calls.
//! And one as it should be, by rmcp's own hands.
#![expect(clippy::unwrap_used, reason = "helpers of a test may panic")]
#![expect(clippy::indexing_slicing, reason = "JSON of a known form")]

mod modern;
mod play;
mod proper;
mod silent;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use pinion_mcp::{Reply, Snapshot, Status, limits};
use serde_json::{Map, Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use play::{Says, becomes, call, is_connected, played, played_with, played_within, settled, text, tool};

#[tokio::test]
async fn noise_between_mcp_messages_is_ignored() {
    let mut server = played(async |mut wire| {
        let noise = b"Listening...\n\xff\xfe\x00\n{\"jsonrpc\":\n[]\n{}\nnull\n\n{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}\n";
        wire.out.write_all(noise).await.unwrap();
        wire.offer(json!([tool("a")])).await;
        let asked = wire.until("tools/call").await;
        wire.out.write_all(noise).await.unwrap();
        wire.answer(&asked, text("here")).await;
        wire.next().await;
    });
    let seen = settled(&mut server).await;
    assert_eq!(
        (&seen.status, seen.title.as_str()),
        (&Status::Connected, "played 1")
    );
    assert_eq!(call(&server, "a").await, Ok("here".to_owned()));
}

#[tokio::test]
async fn endless_mcp_lists_are_cut() {
    let mut server = played(async |mut wire| {
        wire.greet().await;
        let mut page = 0;
        loop {
            let asked = wire.until("tools/list").await;
            page += 1;
            let tools: Vec<Value> = (0..20).map(|at| tool(&format!("t{page}_{at}"))).collect();
            wire.answer(&asked, json!({"tools": tools, "nextCursor": format!("{page}")}))
                .await;
        }
    });
    let seen = settled(&mut server).await;
    assert_eq!(seen.lists.tools.len(), limits::ITEMS);
    assert_eq!(seen.lists.notes, ["only 500 tools are taken, there are more"]);
    // A page that names itself as the next one.
    let mut server = played(async |mut wire| {
        wire.greet().await;
        loop {
            let asked = wire.until("tools/list").await;
            wire.answer(&asked, json!({"tools": [tool("a")], "nextCursor": "x"}))
                .await;
        }
    });
    let seen = settled(&mut server).await;
    assert_eq!(seen.lists.tools.len(), 1);
}

#[tokio::test]
async fn malformed_mcp_list_is_a_failure() {
    let mut server = played(async |mut wire| {
        wire.greet().await;
        let asked = wire.until("tools/list").await;
        wire.answer(&asked, json!({"tools": "none"})).await;
        wire.next().await;
    });
    let seen = settled(&mut server).await;
    assert!(
        matches!(&seen.status, Status::Failed(why) if why.contains("cannot be listed")),
        "{seen:?}"
    );
}

#[tokio::test]
async fn duplicate_and_unmatched_mcp_answers_are_ignored() {
    let mut server = played(async |mut wire| {
        wire.offer(json!([tool("a")])).await;
        let first = wire.until("tools/call").await;
        wire.answer(&json!({"id": "x"}), text("to nobody")).await;
        wire.answer(&json!({"id": -1}), text("to nobody")).await;
        wire.answer(&first, text("one")).await;
        wire.answer(&first, text("one again")).await;
        let second = wire.until("tools/call").await;
        wire.answer(&first, text("one once more")).await;
        wire.answer(&second, text("two")).await;
        wire.next().await;
    });
    settled(&mut server).await;
    assert_eq!(call(&server, "a").await, Ok("one".to_owned()));
    assert_eq!(call(&server, "a").await, Ok("two".to_owned()));
}

#[tokio::test]
async fn endless_mcp_line_closes_only_that_connection() {
    let mut server = played(async |mut wire| {
        wire.offer(json!([tool("a")])).await;
        wire.until("tools/call").await;
        let piece = vec![b'x'; 1 << 20];
        while wire.out.write_all(&piece).await.is_ok() {}
    });
    settled(&mut server).await;
    let error = call(&server, "a").await.unwrap_err();
    assert!(
        error.contains("not connected") || error.contains("did not answer"),
        "{error}"
    );
    becomes(&server, is_connected).await;
}

#[tokio::test]
async fn mcp_message_of_too_many_values_closes_only_that_connection() {
    let mut server = played(async |mut wire| {
        wire.offer(json!([tool("a")])).await;
        let asked = wire.until("tools/call").await;
        let values = vec![json!({}); 600_000];
        wire.answer(
            &asked,
            json!({"content": [], "structuredContent": {"values": values}}),
        )
        .await;
        std::future::pending::<()>().await;
    });
    settled(&mut server).await;
    let error = call(&server, "a").await.unwrap_err();
    assert!(error.contains("not connected"), "{error}");
    let has_fault =
        |seen: &Snapshot| matches!(&seen.status, Status::Failed(why) if why.contains("too many JSON values"));
    becomes(&server, has_fault).await;
    becomes(&server, is_connected).await;
}

#[tokio::test]
async fn unanswered_mcp_call_times_out_and_is_cancelled() {
    let (withdrawn, mut heard) = mpsc::channel(4);
    let (called, mut calls) = mpsc::channel(4);
    let mut server = played_within(2, move |mut wire| {
        let (withdrawn, called) = (withdrawn.clone(), called.clone());
        async move {
            wire.offer(json!([tool("a")])).await;
            loop {
                let asked = wire.until("tools/call").await;
                called.send(()).await.unwrap();
                let cancelled = wire.until("notifications/cancelled").await;
                assert_eq!(cancelled["params"]["requestId"], asked["id"]);
                withdrawn.send(()).await.unwrap();
            }
        }
    });
    settled(&mut server).await;
    let error = call(&server, "a").await.unwrap_err();
    assert_eq!(error, "MCP server p did not answer within 2 s");
    heard.recv().await.unwrap();
    calls.recv().await.unwrap();
    // The same when the caller gives up.
    let cancel = CancellationToken::new();
    let (progress, _unseen) = mpsc::channel(1);
    let args = Map::new();
    let calling = server.call("a", &args, progress, &cancel);
    let (outcome, ()) = tokio::join!(calling, async {
        calls.recv().await.unwrap();
        cancel.cancel();
    });
    assert_eq!(outcome.unwrap_err().to_string(), "Operation aborted");
    heard.recv().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn progress_extends_mcp_timeout_even_when_flooding() {
    let mut server = played_within(2, async |mut wire| {
        wire.offer(json!([tool("a")])).await;
        let asked = wire.until("tools/call").await;
        let token = &asked["params"]["_meta"]["progressToken"];
        for step in 0..6 {
            for _ in 0..500 {
                let params = json!({"progressToken": token, "progress": step});
                wire.say(json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}))
                    .await;
            }
            tokio::time::sleep(Duration::from_millis(600)).await;
        }
        wire.answer(&asked, text("late")).await;
        wire.next().await;
    });
    settled(&mut server).await;
    assert_eq!(
        call(&server, "a").await,
        Ok("late".to_owned()),
        "after more than two seconds"
    );
}

#[tokio::test(start_paused = true)]
async fn mcp_timeout_stands_still_while_user_is_asked() {
    let play = |mut wire: play::Wire| async move {
        wire.offer(json!([tool("a")])).await;
        let call = wire.until("tools/call").await;
        let question = json!({"message": "may I?", "requestedSchema": {"type": "object", "properties": {}}});
        wire.say(json!({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": question}))
            .await;
        tokio::time::sleep(Duration::from_secs(3)).await;
        let withdrawn = json!({"requestId": "q"});
        wire.say(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": withdrawn}))
            .await;
        wire.answer(&call, text("late")).await;
        wire.next().await;
    };
    let says = Says(Arc::default(), None);
    let mut server = played_with(play, says, json!({"timeout": 1}));
    settled(&mut server).await;
    assert_eq!(
        call(&server, "a").await,
        Ok("late".to_owned()),
        "after more than a second"
    );
}

#[tokio::test]
async fn mcp_server_that_does_not_read_times_out() {
    let mut server = played_within(2, async |mut wire| {
        wire.offer(json!([tool("a")])).await;
        std::future::pending().await
    });
    settled(&mut server).await;
    let before = Instant::now();
    let (progress, _unseen) = mpsc::channel(1);
    let args = Map::from_iter([("big".to_owned(), json!("x".repeat(1 << 20)))]);
    let outcome = server.call("a", &args, progress, &CancellationToken::new()).await;
    assert!(outcome.is_err());
    assert!(before.elapsed() < Duration::from_secs(20));
}

#[tokio::test(start_paused = true)]
async fn mcp_server_that_does_not_read_is_restarted() {
    let mut server = played_within(2, async |mut wire| {
        wire.offer(json!([tool("a")])).await;
        std::future::pending().await
    });
    settled(&mut server).await;
    let (progress, _unseen) = mpsc::channel(1);
    let args = Map::from_iter([("big".to_owned(), json!("x".repeat(1 << 20)))]);
    let outcome = server.call("a", &args, progress, &CancellationToken::new()).await;
    assert!(outcome.is_err());
    let has_fault =
        |seen: &Snapshot| matches!(&seen.status, Status::Failed(why) if why == "it does not read its input");
    becomes(&server, has_fault).await;
    becomes(&server, is_connected).await;
}

#[tokio::test(start_paused = true)]
async fn reconnect_ends_attempt_that_hangs() {
    let starts = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&starts);
    let server = played(move |mut wire| {
        let is_first = counted.fetch_add(1, Ordering::Relaxed) == 0;
        async move {
            if is_first {
                return std::future::pending().await;
            }
            wire.offer(json!([tool("a")])).await;
            std::future::pending().await
        }
    });
    becomes(&server, |_| starts.load(Ordering::Relaxed) > 0).await;
    let start = tokio::time::Instant::now();
    server.reconnect();
    becomes(&server, is_connected).await;
    assert!(start.elapsed() < limits::PROBE, "{:?}", start.elapsed());

    // The old connection is of no use from the order on, although its program runs on for a while.
    let start = tokio::time::Instant::now();
    server.reconnect();
    becomes(&server, |seen| seen.status == Status::Connecting).await;
    assert!(start.elapsed() < limits::STOP, "{:?}", start.elapsed());
    becomes(&server, is_connected).await;
    assert_eq!(starts.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn mcp_server_asking_without_reading_is_disconnected() {
    let floods = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&floods);
    let mut server = played(move |mut wire| {
        let count = Arc::clone(&count);
        async move {
            wire.offer(json!([tool("a")])).await;
            // Each request is answered; nothing is read of it.
            let pad = "x".repeat(1_000);
            for n in 0_u64.. {
                let ping = json!({"jsonrpc": "2.0", "id": format!("{n}{pad}"), "method": "ping"});
                if wire.out.write_all(format!("{ping}\n").as_bytes()).await.is_err() {
                    break;
                }
            }
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    settled(&mut server).await;
    becomes(&server, |_| floods.load(Ordering::Relaxed) > 0).await;
    assert_eq!(server.snapshot().lists.tools.len(), 1);
}

#[tokio::test]
async fn long_pages_of_mcp_lists_end_the_listing() {
    let pages = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&pages);
    let mut server = played(move |mut wire| {
        let count = Arc::clone(&count);
        async move {
            wire.greet().await;
            loop {
                let asked = wire.until("tools/list").await;
                let page = count.fetch_add(1, Ordering::Relaxed);
                let mut long = tool(&format!("t{page}"));
                long["description"] = "x".repeat(1 << 20).into();
                let next = format!("{page}{}", "y".repeat(1 << 18));
                wire.answer(&asked, json!({"tools": [long], "nextCursor": next}))
                    .await;
            }
        }
    });
    let seen = settled(&mut server).await;
    assert_eq!(seen.status, Status::Connected);
    assert!(pages.load(Ordering::Relaxed) < 16, "{pages:?} pages");
    assert!(
        seen.lists.notes[0].contains("there are more"),
        "{:?}",
        seen.lists.notes
    );
    assert!(seen.lists.tools[0].description.len() <= limits::DESCRIPTION);
}

#[tokio::test]
async fn exited_mcp_server_is_restarted_with_reason() {
    let mut server = played(async |mut wire| {
        wire.errors
            .write_all(b"\x1b[1mout of paper\x1b[0m\n")
            .await
            .unwrap();
        wire.offer(json!([tool("a")])).await;
        wire.until("tools/call").await;
    });
    settled(&mut server).await;
    let error = call(&server, "a").await.unwrap_err();
    assert!(error.starts_with("MCP server p is not connected: "), "{error}");
    let seen = becomes(&server, |seen| matches!(seen.status, Status::Failed(_))).await;
    assert!(
        matches!(&seen.status, Status::Failed(why) if why.contains("the play is over; its last words: out of paper")),
        "{seen:?}"
    );
    assert_eq!(seen.lists.tools.len(), 1, "what it offers stays");
    becomes(&server, is_connected).await;
}

#[tokio::test]
async fn mcp_server_requests_are_answered_within_bounds() {
    let asked = Arc::default();
    let says = Says(Arc::clone(&asked), None);
    let play = |mut wire: play::Wire| async move {
        wire.offer(json!([tool("a")])).await;
        let call = wire.until("tools/call").await;
        let schema = json!({"type": "object", "properties": {}});
        let question = json!({"message": "\u{1b}[2Jmay I?", "requestedSchema": schema});
        for n in 0..50 {
            wire.say(json!({"jsonrpc": "2.0", "id": n, "method": "elicitation/create", "params": question}))
                .await;
        }
        let sampling =
            json!({"messages": [{"role": "user", "content": {"type": "text", "text": "x"}}], "maxTokens": 1});
        wire.say(
            json!({"jsonrpc": "2.0", "id": "s", "method": "sampling/createMessage", "params": sampling}),
        )
        .await;
        wire.say(json!({"jsonrpc": "2.0", "id": "r", "method": "roots/list"}))
            .await;
        wire.say(json!({"jsonrpc": "2.0", "id": "u", "method": "no/such"}))
            .await;
        let (mut declined, mut sampled, mut roots, mut unknown) = (0, json!(0), json!(0), json!(0));
        for _ in 0..50 - limits::QUESTIONS + 3 {
            let message = wire.next().await;
            match message["id"].as_str() {
                Some("s") => sampled = message["error"]["message"].clone(),
                Some("r") => roots = message["result"]["roots"][0]["uri"].clone(),
                Some("u") => unknown = message["error"]["code"].clone(),
                _ if message["result"]["action"] == "decline" => declined += 1,
                _ => {}
            }
        }
        let told = json!([declined, sampled, roots, unknown]).to_string();
        wire.answer(&call, text(&told)).await;
        wire.next().await;
    };
    let mut server = played_with(play, says, json!({"timeout": 20}));
    settled(&mut server).await;
    let told: Value = serde_json::from_str(&call(&server, "a").await.unwrap()).unwrap();
    assert_eq!(told[0], 50 - limits::QUESTIONS);
    assert!(
        told[1].as_str().unwrap().contains("sampling is not supported"),
        "{told}"
    );
    assert_eq!(told[2], "file:///tmp/gr%C3%B6%C3%9Fe");
    assert_eq!(told[3], -32601);
    let asked = asked.lock().unwrap();
    assert_eq!(
        (asked.len(), asked[0].message.as_str()),
        (limits::QUESTIONS, "may I?")
    );
}

#[tokio::test]
async fn failing_mcp_server_is_retried_only_on_request() {
    let starts = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let counted = Arc::clone(&starts);
    let play = move |_| {
        counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        std::future::ready(())
    };
    let mut server = played_with(play, Says(Arc::default(), Some(Reply::Decline)), json!({}));
    let seen = settled(&mut server).await;
    assert!(
        matches!(&seen.status, Status::Failed(why) if why.contains("the play is over")),
        "{seen:?}"
    );
    let count = || starts.load(std::sync::atomic::Ordering::Relaxed);
    // A server that ends when it is asked for its revision is started once more, with `initialize`.
    assert_eq!(count(), 2);
    server.reconnect();
    becomes(&server, |_| count() == 4).await;
}
