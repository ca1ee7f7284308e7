//! NATS JetStream: the suite, and what only NATS can do.

use std::process::Command;
use std::sync::Mutex;

use anyhow::{Context as _, Result, ensure};
use cluster::NatsStore;
use cluster::address::Address;
use store::{SessionStore, StoreError};

use crate::engine::{Engine, find, free_port};
use crate::proxy::Proxy;
use crate::suite::{Place, session};

/// A server of its own for each test.
struct Server {
    program: std::path::PathBuf,
    port: u16,
    data: tempfile::TempDir,
    engine: Mutex<Option<Engine>>,
}

impl Server {
    async fn start(&self) -> Result<()> {
        let mut engine = Engine::start(
            Command::new(&self.program)
                .args(["-js", "-a", "127.0.0.1", "-p"])
                .arg(self.port.to_string())
                .arg("-sd")
                .arg(self.data.path()),
        )?;
        engine.wait_for_port(self.port).await?;
        *self.engine.lock().ok().context("poisoned")? = Some(engine);
        Ok(())
    }
}

async fn connect(port: u16, rest: &str) -> Result<Box<dyn SessionStore>> {
    let Address::Nats(address) = Address::parse(&format!("nats://127.0.0.1:{port}{rest}"))? else {
        anyhow::bail!("not an address of NATS")
    };
    // A server that has just started says that JetStream is not ready yet.
    let mut last = None;
    for _ in 0..300 {
        match NatsStore::connect(&address).await {
            Ok(store) => return Ok(Box::new(store)),
            Err(error) => last = Some(error),
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    Err(last.context("never tried")?.into())
}

impl Place for Server {
    async fn open(&self) -> Result<Box<dyn SessionStore>> {
        connect(self.port, "").await
    }

    async fn restart(&self) -> Result<()> {
        drop(self.engine.lock().ok().context("poisoned")?.take());
        self.start().await
    }
}

async fn place() -> Result<Option<Server>> {
    let Some(program) = find("nats-server")? else {
        return Ok(None);
    };
    let server = Server {
        program,
        port: free_port()?,
        data: tempfile::tempdir()?,
        engine: Mutex::default(),
    };
    server.start().await?;
    Ok(Some(server))
}

crate::whole_suite!(place);

#[test]
fn lost_response_stores_lines_once() -> Result<()> {
    crate::suite::run(async {
        let Some(server) = place().await? else {
            return Ok(());
        };
        let proxy = Proxy::start(server.port).await?;
        let proxied = connect(proxy.port, "").await?;
        crate::suite::lost_response(&server, proxied.as_ref(), &proxy).await
    })
}

#[test]
fn prefixes_separate_sessions() -> Result<()> {
    crate::suite::run(async {
        let Some(server) = place().await? else {
            return Ok(());
        };
        let (one, two) = (
            connect(server.port, "/one").await?,
            connect(server.port, "/two").await?,
        );
        let (id, header) = session("same")?;
        one.append(&id, &[header], 0).await?;
        ensure!(two.list().await?.is_empty() && one.list().await? == [id]);
        Ok(())
    })
}

#[test]
fn missing_server_is_an_engine_error() -> Result<()> {
    crate::suite::run(async {
        let Address::Nats(address) = Address::parse(&format!("nats://u:secret@127.0.0.1:{}", free_port()?))?
        else {
            anyhow::bail!("not an address of NATS")
        };
        let refused = NatsStore::connect(&address).await.map(drop);
        ensure!(matches!(&refused, Err(StoreError::Engine { .. })), "{refused:?}");
        ensure!(!format!("{refused:?}").contains("secret"));
        Ok(())
    })
}
