//! Gateways: one client, two clients, a client that connects again, a worker that stops.

use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::helpers::{always, answer};

#[test]
fn prompt_through_gateway_is_answered_and_stored() -> Result<()> {
    let Some(place) = crate::place()? else {
        return Ok(());
    };
    let _worker = place.worker("a", &always("blue"), &[])?;
    let mut client = place.attach("one")?;
    let accepted = client.ask(json!({"id": 5, "type": "prompt", "message": "Which?"}))?;
    ensure!(
        accepted["success"] == true && accepted.get("session").is_none(),
        "{accepted}"
    );
    let end = answer(&mut client)?;
    ensure!(end["message"]["content"][0]["text"] == "blue", "{end}");
    // The message is stored before the event that announces it.
    let log = place.log("one")?;
    ensure!(log.first().is_some_and(|header| header["id"] == "one"));
    ensure!(
        log.iter()
            .any(|entry| entry["message"]["content"][0]["text"] == "blue"),
        "{log:#?}"
    );
    client.until("agent_settled")?;
    ensure!(client.numbers().is_empty());
    let refused = client.ask(json!({"id": "x", "type": "new_session"}))?;
    ensure!(refused["success"] == false);
    let unknown = client.ask(json!({"id": "y", "type": "nonsense"}))?;
    ensure!(unknown["error"] == "Unknown command: nonsense", "{unknown}");
    Ok(())
}

#[test]
fn two_gateways_see_one_order() -> Result<()> {
    let Some(place) = crate::place()? else {
        return Ok(());
    };
    let _worker = place.worker("a", &always("green"), &[])?;
    let (mut one, mut two) = (place.attach("both")?, place.attach("both")?);
    for client in [&mut one, &mut two] {
        client.ask(json!({"id": "h", "type": "hello", "sequence": true}))?;
    }
    let settled = {
        one.ask(json!({"id": "same", "type": "prompt", "message": "First"}))?;
        one.until("agent_settled")?;
        two.ask(json!({"id": "same", "type": "prompt", "message": "Second"}))?;
        two.until("agent_settled")?;
        one.until("agent_settled")?
    };
    let last = settled["seq"].as_u64().unwrap_or_default();
    // What the second gateway saw settle may have been the first run.
    if !two.numbers().contains(&last) {
        two.find("the last event", |line| line["seq"] == last)?;
    }
    let expected: Vec<u64> = (1..=last).collect();
    ensure!(one.numbers() == expected, "{:?}", one.numbers());
    ensure!(two.numbers() == expected, "{:?}", two.numbers());
    let responses = |seen: &[serde_json::Value]| seen.iter().filter(|line| line["id"] == "same").count();
    ensure!((responses(&one.seen), responses(&two.seen)) == (1, 1));
    Ok(())
}

#[test]
fn reconnected_client_continues_by_number() -> Result<()> {
    let Some(place) = crate::place()? else {
        return Ok(());
    };
    let _worker = place.worker("a", &always("red"), &[])?;
    let mut client = place.attach("again")?;
    client.ask(json!({"id": 1, "type": "hello", "sequence": true}))?;
    client.ask(json!({"id": 2, "type": "prompt", "message": "Go"}))?;
    let last = client.until("agent_settled")?["seq"].as_u64().unwrap_or_default();
    let before = client.seen.clone();
    drop(client);
    let mut client = place.attach("again")?;
    let hello = client.ask(json!({"id": 1, "type": "hello", "sequence": true}))?;
    ensure!(hello["data"]["lastSeq"] == last, "{hello}");
    let replay = client.ask(json!({"id": 2, "type": "replay", "after": 3, "instance": "again"}))?;
    ensure!(replay["data"]["events"] == last - 3, "{replay}");
    client.find("the last event", |line| line["seq"] == last)?;
    let events = |seen: &[serde_json::Value]| -> Vec<serde_json::Value> {
        let events = seen.iter().filter(|line| line["seq"].as_u64() > Some(3));
        events.cloned().collect()
    };
    ensure!(events(&client.seen) == events(&before));
    let snapshot = client.ask(json!({"id": 3, "type": "replay", "after": 3, "instance": "other"}))?;
    ensure!(snapshot["data"]["lastSeq"] == last, "{snapshot}");
    ensure!(
        snapshot["data"]["snapshot"]["messages"]
            .as_array()
            .is_some_and(|messages| messages.len() == 2),
        "{snapshot}"
    );
    Ok(())
}

#[test]
fn drained_worker_gives_session_to_another() -> Result<()> {
    let Some(place) = crate::place()? else {
        return Ok(());
    };
    let port = crate::engine::free_port()?;
    let health = format!("127.0.0.1:{port}");
    let mut first = place.worker("a", &always("one"), &["--health", &health])?;
    let mut client = place.attach("moves")?;
    client.ask(json!({"id": 1, "type": "prompt", "message": "Go"}))?;
    client.until("agent_settled")?;
    let metrics = get(port, "/metrics")?;
    ensure!(metrics.contains("\npinion_worker_sessions 1\n"), "{metrics}");
    ensure!(get(port, "/ready")?.starts_with("HTTP/1.1 200"));
    let _second = place.worker("b", &always("two"), &[])?;
    std::thread::sleep(Duration::from_secs(1));
    let begin = Instant::now();
    first.signal("-TERM")?;
    ensure!(first.wait()?);
    client.ask(json!({"id": 2, "type": "prompt", "message": "And now?"}))?;
    let end = answer(&mut client)?;
    ensure!(end["message"]["content"][0]["text"] == "two", "{end}");
    ensure!(begin.elapsed() < Duration::from_secs(30));
    ensure!(
        place
            .log("moves")?
            .iter()
            .filter(|entry| entry["type"] == "message")
            .count()
            == 4
    );
    Ok(())
}

#[test]
fn permission_mode_moves_with_session() -> Result<()> {
    let Some(place) = crate::place()? else {
        return Ok(());
    };
    let mut first = place.worker("a", &always("one"), &[])?;
    let mut client = place.attach("mode")?;
    let chosen = client.ask(json!({"id": 1, "type": "set_permission_mode", "mode": "read-only"}))?;
    ensure!(chosen["success"] == true, "{chosen}");
    first.signal("-TERM")?;
    ensure!(first.wait()?);
    let _second = place.worker("b", &always("two"), &[])?;
    let state = client.ask(json!({"id": 2, "type": "get_state"}))?;
    ensure!(state["data"]["permissionMode"] == "read-only", "{state}");
    Ok(())
}

#[test]
fn workspace_hooks_move_directory_between_workers() -> Result<()> {
    let Some(place) = crate::place()? else {
        return Ok(());
    };
    let (saved, project) = (place.path("saved"), place.path("project"));
    let (saved, project) = (saved.display(), project.display());
    let prepare = place.program(
        "prepare",
        &format!("mkdir -p {project}; cp -r {saved}/. {project} 2>/dev/null; true"),
    )?;
    let save = place.program("save", &format!("rm -rf {saved}; cp -r \"$PINION_CWD\" {saved}"))?;
    let hooks = ["--prepare", prepare.as_str(), "--save", save.as_str()];
    let call = json!([{"stream": [{"tool": {"name": "bash", "args": {"command": "echo $PWD > made"}}}]}, {"stream": [{"text": "done"}]}]);
    let mut first = place.worker("a", &call, &hooks)?;
    let mut client = place.attach("work")?;
    client.ask(json!({"id": 1, "type": "prompt", "message": "Go"}))?;
    client.until("agent_settled")?;
    // No run follows that would save it.
    let later = client.ask(json!({"id": "later", "type": "bash", "command": "echo later > later"}))?;
    ensure!(later["success"] == true, "{later}");
    first.signal("-TERM")?;
    ensure!(first.wait()?);
    std::fs::remove_dir_all(place.path("project"))?;
    std::fs::create_dir(place.path("elsewhere"))?;
    let elsewhere = place.path("elsewhere").display().to_string();
    let mut bare = place.worker("b", &always("two"), &["--cwd", &elsewhere])?;
    let refused = client.ask(json!({"id": 2, "type": "prompt", "message": "Again"}))?;
    ensure!(
        refused["error"]
            .as_str()
            .is_some_and(|error| error.contains("does not exist on this worker")),
        "{refused}"
    );
    bare.signal("-TERM")?;
    ensure!(bare.wait()?);
    let _third = place.worker(
        "c",
        &always("three"),
        &[&hooks[..], &["--cwd", &elsewhere]].concat(),
    )?;
    client.ask(json!({"id": 3, "type": "prompt", "message": "Again"}))?;
    ensure!(answer(&mut client)?["message"]["content"][0]["text"] == "three");
    ensure!(place.path("project").join("made").is_file());
    ensure!(place.path("project").join("later").is_file());
    Ok(())
}

fn get(port: u16, path: &str) -> Result<String> {
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: h\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

#[test]
fn client_without_deltas_sees_answer_so_far() -> Result<()> {
    let Some(place) = crate::place()? else {
        return Ok(());
    };
    // The late gateway starts during the first delay.
    let script =
        json!([{"stream": [{"thinking": "hm"}, {"text": ["one ", {"delay": 8}, "two"]}, {"delay": 1}]}]);
    let _worker = place.worker("a", &script, &[])?;
    let (mut early, mut short) = (place.attach("whole")?, place.attach("whole")?);
    short.ask(json!({"id": 1, "type": "hello", "deltas": true}))?;
    early.ask(json!({"id": 1, "type": "prompt", "message": "Go"}))?;
    let has_text = |line: &serde_json::Value, text: &str| line["message"]["content"][1]["text"] == text;
    early.find("first half", |line| has_text(line, "one "))?;
    // This gateway did not see the answer begin.
    let mut late = place.attach("whole")?;
    for client in [&mut early, &mut late] {
        let update = client.find("both halves", |line| {
            line["type"] == "message_update" && has_text(line, "one two")
        })?;
        ensure!(
            update["assistantMessageEvent"]["partial"] == update["message"],
            "{update}"
        );
        let end = answer(client)?;
        for member in ["content", "api", "provider", "model", "usage", "timestamp"] {
            ensure!(
                update["message"].get(member).is_some() || end["message"].get(member).is_none(),
                "{member}: {update}"
            );
        }
        ensure!(end["message"]["content"][1]["text"] == "one two", "{end}");
    }
    answer(&mut short)?;
    let has_message =
        |line: &&serde_json::Value| line["type"] == "message_update" && line.get("message").is_some();
    ensure!(short.seen.iter().find(has_message).is_none(), "{:?}", short.seen);
    Ok(())
}

#[test]
fn answer_of_many_deltas_is_published_once() -> Result<()> {
    let Some(place) = crate::place()? else {
        return Ok(());
    };
    let deltas: Vec<String> = (0..2_000).map(|n| format!("delta number {n:06} ")).collect();
    let length: usize = deltas.iter().map(String::len).sum();
    let _worker = place.worker("a", &json!([{"stream": [{"text": deltas}]}]), &[])?;
    let mut client = place.attach("long")?;
    client.ask(json!({"id": 1, "type": "hello", "deltas": true}))?;
    client.ask(json!({"id": 2, "type": "prompt", "message": "Go"}))?;
    let end = answer(&mut client)?;
    ensure!(end["message"]["content"][0]["text"].as_str().map(str::len) == Some(length));
    client.until("agent_settled")?;
    let bytes = place.stream_bytes("pinion-events")?;
    writeln!(
        std::io::stderr(),
        "{} deltas, {length} bytes of text: {bytes} bytes in the stream of events",
        deltas.len()
    )?;
    // With the answer so far in each update it would be a thousand times its length.
    ensure!(bytes < 40 * length as u64, "{bytes}");
    Ok(())
}

#[test]
fn client_does_not_choose_dialect_of_others() -> Result<()> {
    let Some(place) = crate::place()? else {
        return Ok(());
    };
    let call = json!({"stream": [{"tool": {"name": "bash", "args": {"command": "true"}}}]});
    let _worker = place.worker("a", &json!([call, {"stream": [{"text": "done"}]}]), &[])?;
    let mut old = place.attach("old")?;
    let mut new = place.attach("new")?;
    // A command that only the dialect with hooks has: its dialogs would be `hook_ui_request`.
    old.ask(json!({"id": 1, "type": "set_queue_mode", "mode": "all"}))?;
    new.ask(json!({"id": 1, "type": "set_permission_mode", "mode": "ask"}))?;
    new.ask(json!({"id": 2, "type": "prompt", "message": "Go"}))?;
    let dialog = new.until("extension_ui_request")?;
    new.send(&json!({"type": "extension_ui_response", "id": dialog["id"], "value": "Allow once"}))?;
    new.until("agent_settled")?;
    Ok(())
}

#[test]
fn replay_above_limit_is_answered_with_snapshot() -> Result<()> {
    let Some(place) = crate::place()? else {
        return Ok(());
    };
    // The agent cannot join deltas of different blocks into one update.
    let blocks: Vec<Value> = vec![json!({"text": "x".repeat(50_000)}); 60];
    let _worker = place.worker("a", &json!([{"stream": blocks}]), &[])?;
    let mut client = place.attach("large")?;
    client.ask(json!({"id": 1, "type": "hello", "deltas": true}))?;
    client.ask(json!({"id": 2, "type": "prompt", "message": "Go"}))?;
    client.until("agent_settled")?;
    let replay = client.ask(json!({"id": 3, "type": "replay", "after": 0}))?;
    ensure!(replay["data"]["events"].as_u64() > Some(60), "{replay}");
    // The same events with the answer so far in each update are 90 MB.
    client.ask(json!({"id": 4, "type": "hello", "deltas": false}))?;
    let replay = client.ask(json!({"id": 5, "type": "replay", "after": 0}))?;
    ensure!(
        replay["data"]["snapshot"].is_object(),
        "{}",
        replay["data"]["events"]
    );
    Ok(())
}
