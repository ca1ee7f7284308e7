//! Settles the run of a lost worker before the session opens here: reads what clients saw of it, stores the missing messages, and
//! publishes its end. `takeover` decides which.

use std::collections::HashSet;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use store::{SessionId, SessionStore};
use uuid::Uuid;

use super::child::Line;
use super::file::SessionFile;
use super::gate;
use super::takeover::recover;
use crate::bus::{Bus, EventWriter, Frame, Frames, RunEdge, Until};

/// Ends an open run. Returns false if no run is open.
pub(crate) async fn settle(
    bus: &Bus,
    store: &dyn SessionStore,
    session: &SessionId,
    file: &mut SessionFile,
    events: &mut EventWriter,
    until: &Until,
) -> Result<bool> {
    let Some(begin) = events.run else {
        return Ok(false);
    };
    let seen = read(bus, session, begin).await?;
    let (messages, last) = log(&file.path)?;
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| time.as_millis());
    let begun = begun(bus, session, &messages).await?;
    let recovery = recover(
        &seen,
        &messages,
        |call| begun.contains(call),
        u64::try_from(now).unwrap_or(0),
    );
    let mut parent = last;
    let mut lines = Vec::new();
    for message in &recovery.messages {
        let id: String = Uuid::new_v4().simple().to_string().chars().take(8).collect();
        let entry = json!({
            "type": "message",
            "id": id,
            "parentId": parent,
            "timestamp": store::now_iso(),
            "message": message,
        });
        lines.push(entry.to_string().into_bytes());
        parent = json!(id);
    }
    if !lines.is_empty() {
        file.append(store, session, &lines).await?;
    }
    let mut frames = Vec::new();
    for event in &recovery.events {
        let mut line = event.clone();
        let is_end = line.get("type").and_then(Value::as_str) == Some("agent_settled");
        let seq = events.number();
        line.insert("seq".to_owned(), json!(seq));
        frames.push(Frame::Event {
            seq,
            edge: is_end.then_some(RunEdge::Ends),
            line: Value::Object(line).to_string(),
        });
    }
    events.publish(bus, &frames, until).await?;
    // The results say which calls ran; a record that stays makes a later call of the same id look begun, which is the safe side.
    drop(bus.forget_calls(session, None).await);
    Ok(true)
}

/// The calls of the last answer that may have begun: those with a record, and those of tools that need none.
async fn begun(bus: &Bus, session: &SessionId, messages: &[Value]) -> Result<HashSet<String>> {
    let is_answer = |message: &&Value| message.get("role").and_then(Value::as_str) == Some("assistant");
    let content = messages
        .iter()
        .rev()
        .find(is_answer)
        .and_then(|answer| answer.get("content"));
    let mut begun = HashSet::new();
    for block in content.and_then(Value::as_array).into_iter().flatten() {
        let word = |name: &str| block.get(name).and_then(Value::as_str).unwrap_or_default();
        let id = word("id");
        if word("type") == "toolCall"
            && (gate::only_reads(word("name")) || bus.has_call(session, &gate::key(id)).await?)
        {
            begun.insert(id.to_owned());
        }
    }
    Ok(begun)
}

/// The events of a run that begins in the message with this sequence, or the last of them if the stream has dropped that message.
async fn read(bus: &Bus, session: &SessionId, begin: u64) -> Result<Vec<Line>> {
    let subject = bus.subject("event", session);
    let (mut next, mut frames, mut seen) = (begin, Frames::default(), Vec::new());
    let mut is_open = false;
    loop {
        let messages = bus.events.several(&subject, next).await?;
        if messages.is_empty() {
            return Ok(seen);
        }
        for message in messages {
            is_open |= next == begin && message.sequence > begin;
            next = message.sequence + 1;
            for frame in frames.take(&message) {
                let Frame::Event { line, .. } = frame else {
                    continue;
                };
                let Ok(Value::Object(event)) = serde_json::from_str(&line) else {
                    continue;
                };
                // The message with the beginning can also have the end of the run before.
                is_open |= event.get("type").and_then(Value::as_str) == Some("agent_start");
                if is_open {
                    seen.push(event);
                }
            }
        }
    }
}

/// The messages of a session file, and the id of its last entry. Damaged lines are left out.
fn log(path: &Path) -> Result<(Vec<Value>, Value)> {
    let text = std::fs::read(path).with_context(|| format!("{} cannot be read", path.display()))?;
    let (mut messages, mut last) = (Vec::new(), Value::Null);
    for line in text.split(|byte| *byte == b'\n').skip(1) {
        let Ok(mut entry) = serde_json::from_slice::<Value>(line) else {
            continue;
        };
        if let Some(id) = entry.get("id") {
            last = id.clone();
        }
        if entry.get("type").and_then(Value::as_str) == Some("message")
            && let Some(message) = entry.get_mut("message")
        {
            messages.push(message.take());
        }
    }
    Ok((messages, last))
}

#[cfg(test)]
mod tests {
    use super::log;
    use serde_json::json;

    #[test]
    fn damaged_lines_do_not_hide_the_others() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        let entry =
            |id: &str| json!({"type": "message", "id": id, "message": {"role": "user", "content": id}});
        let text = [
            json!({"type": "session"}).to_string().into_bytes(),
            entry("a").to_string().into_bytes(),
            b"{\"type\":\"message\",\"id\":\"b\",\"message\":\"\xff".to_vec(),
            entry("c").to_string().into_bytes(),
            Vec::new(),
        ];
        std::fs::write(&path, text.join(&b'\n')).unwrap();
        let (messages, last) = log(&path).unwrap();
        assert_eq!(
            json!(messages),
            json!([{"role": "user", "content": "a"}, {"role": "user", "content": "c"}])
        );
        assert_eq!(last, "c");
    }
}
