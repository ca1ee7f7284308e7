//! S3, as SeaweedFS serves it: the suite, and what only S3 can do.

use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use cluster::S3Store;
use cluster::address::{Address, S3Address};
use store::SessionStore;

use crate::engine::{Engine, find, free_port};
use crate::proxy::Proxy;
use crate::suite::Place;

/// Keys of the test server.
const KEYS: [(&str, &str); 3] = [
    ("AWS_ACCESS_KEY_ID", "test"),
    ("AWS_SECRET_ACCESS_KEY", "test-secret"),
    ("AWS_REGION", "us-east-1"),
];

/// One server at a time: each needs much memory and eight ports.
static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// A server of its own for each test.
struct Server {
    _turn: tokio::sync::MutexGuard<'static, ()>,
    program: std::path::PathBuf,
    port: u16,
    ports: Vec<String>,
    data: tempfile::TempDir,
    engine: Mutex<Option<Engine>>,
}

impl Server {
    async fn start(&self) -> Result<()> {
        let mut engine = Engine::start(
            Command::new(&self.program)
                .current_dir(self.data.path())
                .args([
                    "server",
                    "-s3",
                    "-ip=127.0.0.1",
                    "-ip.bind=127.0.0.1",
                    "-volume.max=8",
                ])
                .args(["-master.volumeSizeLimitMB=64", "-master.volumePreallocate=false"])
                .arg(format!("-dir={}", self.data.path().display()))
                .arg(format!(
                    "-s3.config={}",
                    self.data.path().join("s3.json").display()
                ))
                .arg(format!("-s3.port={}", self.port))
                .args(&self.ports),
        )?;
        engine.wait_for_port(self.port).await?;
        *self.engine.lock().ok().context("poisoned")? = Some(engine);
        Ok(())
    }

    /// The volume server comes up after the port does.
    async fn wait_until_writable(&self) -> Result<()> {
        let begin = Instant::now();
        let (id, header) = crate::suite::session("probe")?;
        let mut address = address(self.port);
        address.prefix = format!("probe-{}", begin.elapsed().as_nanos());
        loop {
            let store = connect_to(&address)?;
            let error = match store.append(&id, std::slice::from_ref(&header), 0).await {
                Ok(_) | Err(store::StoreError::Stale { .. }) => return Ok(()),
                Err(error) => error,
            };
            ensure!(begin.elapsed() < Duration::from_secs(60), "{error}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

fn address(port: u16) -> S3Address {
    S3Address {
        bucket: "sessions".to_owned(),
        prefix: "pinion".to_owned(),
        endpoint: Some(format!("http://127.0.0.1:{port}")),
        region: None,
    }
}

fn connect_to(address: &S3Address) -> Result<Box<dyn SessionStore>> {
    drop(rustls::crypto::ring::default_provider().install_default());
    let keys = KEYS.map(|(name, value)| (name.to_owned(), value.to_owned()));
    Ok(Box::new(S3Store::new(address, &keys)?))
}

impl Place for Server {
    async fn open(&self) -> Result<Box<dyn SessionStore>> {
        connect_to(&address(self.port))
    }

    async fn restart(&self) -> Result<()> {
        drop(self.engine.lock().ok().context("poisoned")?.take());
        self.start().await?;
        self.wait_until_writable().await
    }
}

async fn place() -> Result<Option<Server>> {
    let Some(program) = find("weed")? else {
        return Ok(None);
    };
    let mut last = None;
    for _ in 0..4 {
        // A port that was free may be taken by now; the server then ends, or never serves.
        let server = prepare(&program, TURN.lock().await)?;
        let started = server.start().await;
        let ready = match started {
            Ok(()) => server.wait_until_writable().await,
            failed => failed,
        };
        match ready {
            Ok(()) => return Ok(Some(server)),
            Err(error) => last = Some(error),
        }
    }
    Err(last.context("never tried")?)
}

fn prepare(program: &std::path::Path, turn: tokio::sync::MutexGuard<'static, ()>) -> Result<Server> {
    let mut ports = Vec::new();
    for name in ["master", "volume", "filer"] {
        ports.push(format!("-{name}.port={}", free_port()?));
        ports.push(format!("-{name}.port.grpc={}", free_port()?));
    }
    ports.push(format!("-s3.port.grpc={}", free_port()?));
    let server = Server {
        _turn: turn,
        program: program.to_path_buf(),
        port: free_port()?,
        ports,
        data: tempfile::tempdir()?,
        engine: Mutex::default(),
    };
    let identity = serde_json::json!({"identities": [{
        "name": "test",
        "credentials": [{"accessKey": "test", "secretKey": "test-secret"}],
        "actions": ["Admin", "Read", "Write", "List", "Tagging"],
    }]});
    std::fs::write(server.data.path().join("s3.json"), identity.to_string())?;
    Ok(server)
}

crate::whole_suite!(place);

#[test]
fn lost_response_stores_lines_once() -> Result<()> {
    crate::suite::run(async {
        let Some(server) = place().await? else {
            return Ok(());
        };
        let proxy = Proxy::start(server.port).await?;
        let proxied = connect_to(&address(proxy.port))?;
        crate::suite::lost_response(&server, proxied.as_ref(), &proxy).await
    })
}

#[test]
fn address_gives_bucket_and_prefix() -> Result<()> {
    let Address::S3(parsed) = Address::parse("s3://sessions?endpoint=http://127.0.0.1:1")? else {
        anyhow::bail!("not an address of S3")
    };
    ensure!(parsed == address(1));
    Ok(())
}
