//! Workers that are lost: killed, stopped, cut off.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::helpers::{always, answer};

#[test]
fn killed_worker_is_replaced() -> Result<()> {
    let Some(place) = crate::place()? else {
        return Ok(());
    };
    let first = place.worker("a", &always("one"), &[])?;
    let mut client = place.attach("lost")?;
    client.ask(json!({"id": 1, "type": "prompt", "message": "Go"}))?;
    client.until("agent_settled")?;
    let _second = place.worker("b", &always("two"), &[])?;
    std::thread::sleep(Duration::from_secs(1));
    first.signal("-KILL")?;
    let begin = Instant::now();
    client.ask(json!({"id": 2, "type": "prompt", "message": "Again"}))?;
    // How long it takes is a figure of the example `faults`. Here it must only not take for ever.
    ensure!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
    ensure!(answer(&mut client)?["message"]["content"][0]["text"] == "two");
    let log = place.log("lost")?;
    ensure!(
        log.iter().filter(|entry| entry["type"] == "message").count() == 4,
        "{log:#?}"
    );
    Ok(())
}

#[test]
fn restarted_server_loses_no_session() -> Result<()> {
    let Some(mut place) = crate::place()? else {
        return Ok(());
    };
    let _worker = place.worker("a", &always("one"), &[])?;
    let mut client = place.attach("server")?;
    client.ask(json!({"id": 0, "type": "hello", "sequence": true}))?;
    client.ask(json!({"id": 1, "type": "prompt", "message": "Go"}))?;
    client.until("agent_settled")?;
    place.stop_nats();
    client.send(&json!({"id": 2, "type": "prompt", "message": "Again"}))?;
    std::thread::sleep(Duration::from_secs(3));
    place.start_nats()?;
    let accepted = client.response(&json!(2))?;
    ensure!(accepted["success"] == true, "{accepted}");
    client.until("agent_settled")?;
    let expected: Vec<u64> = (1..=client.numbers().len() as u64).collect();
    ensure!(client.numbers() == expected, "{:?}", client.numbers());
    ensure!(
        place
            .log("server")?
            .iter()
            .filter(|entry| entry["type"] == "message")
            .count()
            == 4
    );
    Ok(())
}

#[test]
fn stopped_worker_writes_nothing_after_takeover() -> Result<()> {
    let Some(place) = crate::place()? else {
        return Ok(());
    };
    // The agent continues without its worker and says the second half while the worker is stopped.
    let delay = 8;
    let slow = json!([{"repeat": true, "stream": [{"text": ["a", {"delay": delay}, "b"]}]}]);
    let first = place.worker("a", &slow, &[])?;
    let mut client = place.attach("stopped")?;
    client.ask(json!({"id": 0, "type": "hello", "sequence": true}))?;
    client.ask(json!({"id": 1, "type": "prompt", "message": "Go"}))?;
    client.until("message_update")?;
    let begin = Instant::now();
    let _second = place.worker("b", &always("two"), &[])?;
    std::thread::sleep(Duration::from_secs(1));
    first.signal("-STOP")?;
    let ended = client.until("agent_settled")?;
    ensure!(ended["aborted"] == true, "{ended}");
    client.ask(json!({"id": 2, "type": "prompt", "message": "Again"}))?;
    ensure!(answer(&mut client)?["message"]["content"][0]["text"] == "two");
    client.until("agent_settled")?;
    std::thread::sleep(Duration::from_secs(delay + 1).saturating_sub(begin.elapsed()));
    first.signal("-CONT")?;
    std::thread::sleep(Duration::from_secs(4));
    client.ask(json!({"id": 3, "type": "get_messages"}))?;
    let numbers = client.numbers();
    let expected: Vec<u64> = (1..=numbers.len() as u64).collect();
    ensure!(numbers == expected, "{numbers:?}");
    let texts: Vec<Value> = place
        .log("stopped")?
        .iter()
        .filter(|entry| entry["message"]["role"] == "assistant")
        .map(|entry| {
            json!([
                entry["message"]["content"][0]["text"],
                entry["message"]["stopReason"]
            ])
        })
        .collect();
    ensure!(
        texts == [json!(["a", "aborted"]), json!(["two", "stop"])],
        "{texts:?}"
    );
    Ok(())
}

#[test]
fn interrupted_run_continues_if_the_worker_resumes() -> Result<()> {
    let Some(place) = crate::place()? else {
        return Ok(());
    };
    let call =
        json!([{"stream": [{"tool": {"name": "bash", "args": {"command": "echo x >> ran; sleep 30"}}}]}]);
    let first = place.worker("a", &call, &[])?;
    let mut client = place.attach("resumed")?;
    client.ask(json!({"id": 1, "type": "prompt", "message": "Go"}))?;
    client.until("tool_execution_start")?;
    client.ask(json!({"id": 2, "type": "steer", "message": "Hurry"}))?;
    let ran = place.path("project").join("ran");
    let begin = Instant::now();
    while std::fs::read_to_string(&ran).unwrap_or_default() != "x\n" {
        ensure!(
            begin.elapsed() < Duration::from_secs(40),
            "the command does not run"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    let _second = place.worker("b", &always("fine"), &["--resume", "auto"])?;
    std::thread::sleep(Duration::from_secs(1));
    first.signal("-KILL")?;
    let end = client.until("tool_execution_end")?;
    ensure!(end["isError"] == true, "{end}");
    let text = end["result"]["content"][0]["text"].as_str().unwrap_or_default();
    ensure!(text.contains("may have run"), "{end}");
    client.until("agent_settled")?;
    client.until("agent_start")?;
    ensure!(answer(&mut client)?["message"]["content"][0]["text"] == "fine");
    let roles: Vec<String> = place
        .log("resumed")?
        .iter()
        .filter_map(|entry| entry["message"]["role"].as_str().map(str::to_owned))
        .collect();
    ensure!(
        roles == ["user", "assistant", "toolResult", "user", "assistant"],
        "{roles:?}"
    );
    ensure!(std::fs::read_to_string(ran)? == "x\n");
    Ok(())
}

#[test]
fn queued_message_of_idle_session_survives_workers() -> Result<()> {
    let Some(place) = crate::place()? else {
        return Ok(());
    };
    let first = place.worker("a", &always("one"), &[])?;
    let mut client = place.attach("queued")?;
    client.ask(json!({"id": 1, "type": "steer", "message": "Soon"}))?;
    client.ask(json!({"id": 2, "type": "follow_up", "message": "Later"}))?;
    first.signal("-KILL")?;
    let second = place.worker("b", &always("two"), &[])?;
    let pending = |client: &mut crate::place::Client, id: u64| -> Result<Value> {
        let state = client.ask(json!({"id": id, "type": "get_state"}))?;
        Ok(state["data"]["pendingMessageCount"].clone())
    };
    ensure!(pending(&mut client, 3)? == 2);
    second.signal("-TERM")?;
    let _third = place.worker("c", &always("three"), &[])?;
    ensure!(pending(&mut client, 4)? == 2);
    client.ask(json!({"id": 5, "type": "prompt", "message": "Go"}))?;
    client.until("agent_settled")?;
    let said: Vec<String> = place
        .log("queued")?
        .iter()
        .filter(|entry| entry["message"]["role"] == "user")
        .map(|entry| entry["message"]["content"].to_string())
        .collect();
    ensure!(said.len() == 3, "{said:?}");
    for text in ["Soon", "Later", "Go"] {
        ensure!(
            said.iter().filter(|said| said.contains(text)).count() == 1,
            "{said:?}"
        );
    }
    Ok(())
}

#[test]
fn stopped_worker_begins_no_call_afterwards() -> Result<()> {
    let Some(place) = crate::place()? else {
        return Ok(());
    };
    let delay = 6;
    let call = json!([{"stream": [{"delay": delay}, {"tool": {"name": "bash", "args": {"command": "echo x >> ran"}}}]}]);
    let first = place.worker("a", &call, &[])?;
    let mut client = place.attach("gated")?;
    client.ask(json!({"id": 1, "type": "prompt", "message": "Go"}))?;
    client.until("turn_start")?;
    let begin = Instant::now();
    // The agent continues without its worker and reaches the call.
    first.signal("-STOP")?;
    let _second = place.worker("b", &always("two"), &[])?;
    client.until("agent_settled")?;
    std::thread::sleep(Duration::from_secs(delay + 1).saturating_sub(begin.elapsed()));
    ensure!(!place.path("project").join("ran").exists());
    first.signal("-CONT")?;
    std::thread::sleep(Duration::from_secs(3));
    ensure!(!place.path("project").join("ran").exists());
    client.ask(json!({"id": 2, "type": "prompt", "message": "Again"}))?;
    ensure!(answer(&mut client)?["message"]["content"][0]["text"] == "two");
    Ok(())
}

#[test]
fn queued_message_outlives_its_events_with_images() -> Result<()> {
    let Some(place) = crate::place()? else {
        return Ok(());
    };
    let first = place.worker("a", &always("one"), &[])?;
    let mut client = place.attach("kept")?;
    let image = json!({"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"});
    client.ask(json!({"id": 1, "type": "steer", "message": "See", "images": [image]}))?;
    // As if so many events had followed that the stream dropped the one with the queue.
    place.purge("pinion-events", "pinion.event.kept")?;
    first.signal("-KILL")?;
    let _second = place.worker("b", &always("two"), &[])?;
    client.ask(json!({"id": 2, "type": "prompt", "message": "Go"}))?;
    client.until("agent_settled")?;
    let log = place.log("kept")?;
    let see = log
        .iter()
        .find(|entry| entry["message"]["content"][0]["text"] == "See");
    let content = see
        .map(|entry| entry["message"]["content"].clone())
        .unwrap_or_default();
    ensure!(content[1]["data"] == "iVBORw0KGgo=", "{log:#?}");
    Ok(())
}

#[test]
fn session_that_does_not_close_leaves_others() -> Result<()> {
    let Some(place) = crate::place()? else {
        return Ok(());
    };
    // An agent that answers everything but `close_session`.
    let agent = place.program(
        "mute-agent",
        "while read -r line; do case $line in *close_session*) continue;; esac; \
         id=$(printf %s \"$line\" | sed 's/.*\"id\":\"\\([^\"]*\\)\".*/\\1/'); \
         echo \"{\\\"id\\\":\\\"$id\\\",\\\"type\\\":\\\"response\\\",\\\"success\\\":true}\"; done",
    )?;
    let mut worker = place.worker("a", &always("one"), &["--program", &agent])?;
    let (mut stuck, mut other) = (place.attach("stuck")?, place.attach("other")?);
    ensure!(stuck.ask(json!({"id": 1, "type": "get_state"}))?["success"] == true);
    ensure!(other.ask(json!({"id": 1, "type": "get_state"}))?["success"] == true);
    // The lease is lost, and the agent has ten seconds to close the session.
    place.purge("pinion-leases", "pinion.lease.stuck")?;
    std::thread::sleep(Duration::from_secs(13));
    ensure!(worker.0.try_wait()?.is_none(), "the worker ended");
    ensure!(other.ask(json!({"id": 2, "type": "get_state"}))?["success"] == true);
    let _second = place.worker("b", &always("two"), &[])?;
    stuck.ask(json!({"id": 2, "type": "prompt", "message": "Go"}))?;
    ensure!(answer(&mut stuck)?["message"]["content"][0]["text"] == "two");
    Ok(())
}

#[test]
fn unwritable_session_goes_to_another_worker() -> Result<()> {
    let Some(place) = crate::place()? else {
        return Ok(());
    };
    let _full = place.worker("a", &always("one"), &[])?;
    let mut ready = place.attach("ready")?;
    ensure!(ready.ask(json!({"id": 1, "type": "get_state"}))?["success"] == true);
    // It can write no session file from now on.
    std::fs::rename(place.path("a").join("sessions"), place.path("a").join("away"))?;
    let mut client = place.attach("moved")?;
    client.send(&json!({"id": 1, "type": "prompt", "message": "Go"}))?;
    std::thread::sleep(Duration::from_secs(1));
    let _other = place.worker("b", &always("two"), &[])?;
    ensure!(client.response(&json!(1))?["success"] == true);
    ensure!(answer(&mut client)?["message"]["content"][0]["text"] == "two");
    Ok(())
}
