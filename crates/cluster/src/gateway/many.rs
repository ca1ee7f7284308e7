//! The gateway of a server that has clients of many sessions: each line names its session. One connection to NATS serves all of them,
//! and each session that is named has a gateway of its own until `detach`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, bail};
use serde_json::{Map, Value, json};
use store::{SessionId, SessionStore as _};
use tokio::sync::{OnceCell, mpsc};
use tokio::task::JoinSet;

use super::{GatewayOptions, Input, Output, serve};
use crate::NatsStore;
use crate::address::NatsAddress;
use crate::bus::Bus;
use crate::limits::GATEWAY_SESSIONS;
use crate::worker::file;

/// Serves sessions until the input ends. A line without a usable name of a session is dropped. `client` is the name under which commands
/// are recognised when they come again through another gateway.
///
/// # Errors
/// When NATS cannot be reached at the start, or the output fails.
pub async fn attach_many(
    address: NatsAddress,
    client: Option<String>,
    mut input: Input,
    mut output: Output,
) -> Result<()> {
    let bus = Arc::new(Bus::connect(&address, None).await?);
    let mut sessions: HashMap<String, mpsc::Sender<Vec<u8>>> = HashMap::new();
    let mut tasks: JoinSet<(String, Option<String>)> = JoinSet::new();
    let mut openings = Openings {
        address: address.clone(),
        store: Arc::default(),
        tasks: JoinSet::new(),
    };
    loop {
        let line = tokio::select! {
            line = input.next() => line,
            Some(Ok((session, error))) = tasks.join_next() => {
                if let Some(error) = error
                    && remove_ended(&mut sessions, &session)
                {
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
        if command.get("type").and_then(Value::as_str) == Some("open") {
            openings.begin(session, command, &mut output).await?;
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
                client: client.clone(),
            };
            let gateway = serve_one(Arc::clone(&bus), options, lines, output.of_session(&name));
            tasks.spawn(gateway);
        }
        command.shift_remove("session");
        // One session that takes no commands must not stop the others.
        let line = Value::Object(command.clone()).to_string();
        let sender = sessions.get(&name);
        if sender.is_some_and(|sender| sender.try_send(line.into()).is_err()) {
            let reason = "Too many commands of this session wait; send it again later";
            refuse(&mut output, &name, &command, reason).await?;
        }
    }
    drop(sessions);
    while tasks.join_next().await.is_some() {}
    while openings.tasks.join_next().await.is_some() {}
    output.finish().await
}

/// Removes a session whose gateway has ended. Returns false for a gateway that was detached: it has a successor by now, or none.
fn remove_ended(sessions: &mut HashMap<String, mpsc::Sender<Vec<u8>>>, session: &str) -> bool {
    let is_ended = sessions.get(session).is_some_and(mpsc::Sender::is_closed);
    is_ended && sessions.remove(session).is_some()
}

/// The gateway of a session. Returns its name, and why it ended early.
async fn serve_one(
    bus: Arc<Bus>,
    options: GatewayOptions,
    lines: Input,
    output: Output,
) -> (String, Option<String>) {
    let name = options.session.as_str().to_owned();
    let ended = serve(bus, options, lines, output).await;
    (name, ended.err().map(|error| format!("{error:#}")))
}

/// Sessions that are being looked up or stored.
struct Openings {
    address: NatsAddress,
    /// Most gateways never look into it.
    store: Arc<OnceCell<NatsStore>>,
    tasks: JoinSet<()>,
}

impl Openings {
    async fn begin(
        &mut self,
        session: SessionId,
        command: Map<String, Value>,
        output: &mut Output,
    ) -> Result<()> {
        while self.tasks.try_join_next().is_some() {}
        if self.tasks.len() >= GATEWAY_SESSIONS {
            let reason = "Too many sessions are being opened";
            return refuse(output, session.as_str(), &command, reason).await;
        }
        let output = output.of_session(session.as_str());
        let (store, address) = (Arc::clone(&self.store), self.address.clone());
        self.tasks.spawn(open(store, address, session, command, output));
        Ok(())
    }
}

/// Answers `open`.
async fn open(
    store: Arc<OnceCell<NatsStore>>,
    address: NatsAddress,
    session: SessionId,
    command: Map<String, Value>,
    mut output: Output,
) {
    let cwd = command.get("cwd").and_then(Value::as_str).map(PathBuf::from);
    let outcome = match store.get_or_try_init(|| NatsStore::connect(&address)).await {
        Ok(store) => open_stored(store, &session, cwd.as_deref()).await,
        Err(error) => Err(error.into()),
    };
    let id = command.get("id");
    let response = match outcome {
        Ok(cwd) => {
            json!({"id": id, "type": "response", "command": "open", "success": true, "data": {"cwd": cwd}})
        }
        Err(error) => {
            let error = format!("{error:#}");
            json!({"id": id, "type": "response", "command": "open", "success": false, "error": error})
        }
    };
    // Fails when the gateway ends.
    drop(output.line(response.to_string()).await);
}

/// Stores a new session with its directory, or finds a stored one. Returns the directory of the session.
async fn open_stored(store: &NatsStore, session: &SessionId, cwd: Option<&Path>) -> Result<PathBuf> {
    if let Some(cwd) = cwd {
        let header = file::header(session, cwd);
        store.append(session, std::slice::from_ref(&header), 0).await?;
        return Ok(cwd.to_owned());
    }
    let stored = store.load(session, 0).await?;
    if stored.is_empty() {
        bail!("There is no stored session {:?}", session.as_str());
    }
    file::check(session, stored.first())
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

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::{Input, remove_ended};

    #[test]
    fn failed_detached_gateway_leaves_its_successor() {
        let mut sessions = HashMap::new();
        assert!(!remove_ended(&mut sessions, "s"));
        let (sender, successor) = Input::from_task();
        sessions.insert("s".to_owned(), sender);
        assert!(!remove_ended(&mut sessions, "s"));
        drop(successor);
        assert!(remove_ended(&mut sessions, "s"));
        assert!(sessions.is_empty());
    }
}
