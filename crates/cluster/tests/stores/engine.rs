//! Programs of engines: found, started on ports of their own, ended with the test.

use std::io::Write as _;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

/// The program of an engine. None, with a word on stderr, if it is not installed and nothing says that it should be.
pub(crate) fn find(name: &str) -> Result<Option<PathBuf>> {
    if let Some(folder) = std::env::var_os("CLUSTER_ENGINES") {
        let program = PathBuf::from(folder).join(name);
        if program.is_file() {
            return Ok(Some(program));
        }
        bail!("{} is missing", program.display());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .map(|dir| dir.join(name))
        .find(|program| program.is_file());
    if found.is_none() {
        drop(writeln!(std::io::stderr(), "skipped: {name} is not on PATH"));
    }
    Ok(found)
}

/// A port that was free a moment ago.
pub(crate) fn free_port() -> Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// A process that is killed when this value goes.
pub(crate) struct Engine {
    pub(crate) child: Child,
    name: String,
}

impl Engine {
    pub(crate) fn start(command: &mut Command) -> Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| name.clone())?;
        Ok(Self { child, name })
    }

    /// Waits until something listens on the port.
    pub(crate) async fn wait_for_port(&mut self, port: u16) -> Result<()> {
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs(60) {
            if let Some(status) = self.child.try_wait()? {
                bail!("{} ended: {status}", self.name);
            }
            if tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        bail!("{} does not listen on port {port}", self.name)
    }
}

impl Drop for Engine {
    /// SIGKILL: acknowledged lines have to be there afterwards.
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
