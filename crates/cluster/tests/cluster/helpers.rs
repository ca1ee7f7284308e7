//! What only tests need of a place and its clients.

use std::os::unix::fs::PermissionsExt as _;

use anyhow::{Context as _, Result};
use async_nats::jetstream::stream::Stream;
use serde_json::{Value, json};

use crate::place::{Client, Place, is};

impl Place {
    /// An executable with this shell script.
    pub(crate) fn program(&self, name: &str, script: &str) -> Result<String> {
        let path = self.path(name);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n"))?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?;
        Ok(path.display().to_string())
    }

    /// Starts the server again with a configuration.
    pub(crate) fn configure(&mut self, config: &str) -> Result<()> {
        let file = self.path("nats.conf");
        std::fs::write(&file, config)?;
        self.config = Some(file);
        self.stop_nats();
        self.start_nats()
    }

    /// Ends all servers without warning.
    pub(crate) fn stop_nats(&mut self) {
        for server in &mut self.servers {
            server.engine = None;
        }
    }

    /// Removes the messages of a subject from a stream.
    pub(crate) fn purge(&self, stream: &str, subject: &str) -> Result<()> {
        self.with_stream(stream, async |stream| {
            stream.purge().filter(subject).await?;
            Ok(())
        })
    }

    /// Bytes of a stream.
    pub(crate) fn stream_bytes(&self, stream: &str) -> Result<u64> {
        self.with_stream(stream, async |stream| Ok(stream.cached_info().state.bytes))
    }

    /// Connects to the server and does something with a stream.
    fn with_stream<T>(&self, name: &str, then: impl AsyncFnOnce(Stream) -> Result<T>) -> Result<T> {
        let server = self.servers.first().context("no server")?;
        let url = format!("nats://{}127.0.0.1:{}", self.user, server.port);
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?
            .block_on(async {
                let context = async_nats::jetstream::new(async_nats::connect(url).await?);
                then(context.get_stream(name).await?).await
            })
    }

    /// A gateway of a session that has said that it is ready.
    pub(crate) fn attach(&self, session: &str) -> Result<Client> {
        let mut client = self.start_gateway(session)?;
        client.until("ready")?;
        Ok(client)
    }
}

impl Client {
    pub(crate) fn response(&mut self, id: &Value) -> Result<Value> {
        self.find(&format!("response to {id}"), |line| {
            is(line, "type", "response") && line.get("id") == Some(id)
        })
    }

    /// Numbers of the events so far.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        self.seen
            .iter()
            .filter_map(|line| line.get("seq")?.as_u64())
            .collect()
    }
}

/// A reply of the script that is used again and again.
pub(crate) fn always(text: &str) -> Value {
    json!([{"repeat": true, "stream": [{"text": text}]}])
}

/// Waits for the end of the model's next answer.
pub(crate) fn answer(client: &mut Client) -> Result<Value> {
    client.find("answer", |line| {
        let message = line.get("message");
        is(line, "type", "message_end") && message.is_some_and(|message| is(message, "role", "assistant"))
    })
}
