//! The gateway of a server that has clients of many sessions: each line names its session. One connection to NATS serves all of them,
//! and each session that is named has a gateway of its own until `detach`.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::Result;
use serde_json::{Map, Value, json};
use store::SessionId;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::{GatewayOptions, Input, Output, serve};
use crate::address::NatsAddress;
use crate::bus::Bus;
use crate::limits::GATEWAY_SESSIONS;

/// Serves sessions until the input ends. A line without a usable name of a session is dropped.
///
/// # Errors
/// When NATS cannot be reached at the start, or the output fails.
pub async fn attach_many(address: NatsAddress, mut input: Input, mut output: Output) -> Result<()> {
    let bus = Arc::new(Bus::connect(&address, None).await?);
    let mut sessions: HashMap<String, mpsc::Sender<Vec<u8>>> = HashMap::new();
    let mut tasks: JoinSet<(String, Option<String>)> = JoinSet::new();
    loop {
        let line = tokio::select! {
            line = input.next() => line,
            Some(Ok((session, error))) = tasks.join_next() => {
                // A gateway that was detached has a successor by now, or none.
                if let Some(error) = error {
                    sessions.remove(&session);
                    let line = json!({"session": session, "type": "detached", "error": error});
                    output.line(line.to_string()).await?;
                }
                continue;
            }
        };
        let Some(line) = line else { break };
        let Some((session, mut command)) = named(&line) else {
            continue;
        };
        let name = session.as_str().to_owned();
        if command.get("type").and_then(Value::as_str) == Some("detach") {
            sessions.remove(&name);
            continue;
        }
        if !sessions.contains_key(&name) {
            if sessions.len() >= GATEWAY_SESSIONS {
                let reason = "The gateway has too many sessions";
                refuse(&mut output, &name, &command, reason).await?;
                continue;
            }
            let (sender, lines) = Input::from_task();
            sessions.insert(name.clone(), sender);
            let options = GatewayOptions {
                address: address.clone(),
                session,
                client: None,
            };
            let (bus, output) = (Arc::clone(&bus), output.of_session(&name));
            let name = name.clone();
            tasks.spawn(async move {
                let ended = serve(bus, options, lines, output).await;
                (name, ended.err().map(|error| format!("{error:#}")))
            });
        }
        command.shift_remove("session");
        let Some(sender) = sessions.get(&name) else {
            continue;
        };
        // One session that takes no commands must not stop the others.
        if sender
            .try_send(Value::Object(command.clone()).to_string().into())
            .is_err()
        {
            let reason = "Too many commands of this session wait; send it again later";
            refuse(&mut output, &name, &command, reason).await?;
        }
    }
    drop(sessions);
    while tasks.join_next().await.is_some() {}
    output.finish().await
}

fn named(line: &[u8]) -> Option<(SessionId, Map<String, Value>)> {
    let Ok(Value::Object(command)) = serde_json::from_slice(line) else {
        return None;
    };
    let session = SessionId::new(command.get("session")?.as_str()?).ok()?;
    Some((session, command))
}

async fn refuse(
    output: &mut Output,
    session: &str,
    command: &Map<String, Value>,
    reason: &str,
) -> Result<()> {
    let response = json!({
        "session": session,
        "id": command.get("id"),
        "type": "response",
        "command": command.get("type"),
        "success": false,
        "error": reason,
    });
    output.line(response.to_string()).await
}
