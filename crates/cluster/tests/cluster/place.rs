//! A NATS server, workers and clients of one test.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::engine::{Engine, find, free_port};

/// Longest wait for one line.
const WAIT: Duration = Duration::from_secs(40);

/// A NATS server, and a directory for everything else.
pub(crate) struct Place {
    cluster: PathBuf,
    pub(crate) pinion: PathBuf,
    pub(crate) dir: tempfile::TempDir,
    pub(crate) port: u16,
    nats: PathBuf,
    engine: Option<Engine>,
    /// Configuration file of the server, if it has one.
    pub(crate) config: Option<PathBuf>,
    /// `USER:PASSWORD@` of workers, gateways and reads that begin from now on; empty without accounts.
    pub(crate) user: &'static str,
}

/// A process of a test, killed when this value goes.
pub(crate) struct Worker(pub(crate) Child);

impl Place {
    /// None if a program is missing and nothing says that it should be there. `cluster` is the program `pinion-cluster`.
    pub(crate) fn beside(cluster: &Path) -> Result<Option<Self>> {
        let Some(nats) = find("nats-server")? else {
            return Ok(None);
        };
        let pinion = cluster.with_file_name("pinion");
        if !pinion.is_file() {
            if std::env::var_os("CLUSTER_ENGINES").is_some() {
                bail!("{} is missing: cargo build -p pinion", pinion.display());
            }
            writeln!(std::io::stderr(), "skipped: pinion is not built")?;
            return Ok(None);
        }
        let mut place = Self {
            cluster: cluster.to_owned(),
            pinion,
            dir: tempfile::tempdir()?,
            port: free_port()?,
            nats,
            engine: None,
            config: None,
            user: "",
        };
        std::fs::create_dir(place.path("agent"))?;
        std::fs::create_dir(place.path("project"))?;
        place.start_nats()?;
        Ok(Some(place))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn start_nats(&mut self) -> Result<()> {
        let mut command = Command::new(&self.nats);
        command.args(["-js", "-a", "127.0.0.1", "-p", &self.port.to_string(), "-sd"]);
        command.arg(self.path("nats"));
        if let Some(config) = &self.config {
            command.arg("-c").arg(config);
        }
        let mut engine = Engine::start(&mut command)?;
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?
            .block_on(engine.wait_for_port(self.port))?;
        self.engine = Some(engine);
        // The port is there a moment before JetStream is.
        std::thread::sleep(Duration::from_millis(300));
        Ok(())
    }

    /// Ends the server without warning.
    pub(crate) fn stop_nats(&mut self) {
        self.engine = None;
    }

    /// The address of the server.
    pub(crate) fn url(&self) -> String {
        format!("nats://{}127.0.0.1:{}", self.user, self.port)
    }

    /// A worker with leases of two seconds whose model plays a script.
    pub(crate) fn worker(&self, name: &str, script: &Value, options: &[&str]) -> Result<Worker> {
        let script_file = self.path(&format!("{name}.json"));
        std::fs::write(&script_file, script.to_string())?;
        let child = Command::new(&self.cluster)
            .args(["worker", "--nats", &self.url()])
            .args(["--name", name, "--lease-seconds", "2", "--program"])
            .arg(&self.pinion)
            .arg("--state-dir")
            .arg(self.path(name))
            .arg("--cwd")
            .arg(self.path("project"))
            .args(options)
            .args(["--", "--no-extensions", "--model", "offline/script", "--script"])
            .arg(&script_file)
            .env("PI_CODING_AGENT_DIR", self.path("agent"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()?;
        Ok(Worker(child))
    }

    /// A gateway of a session. The name can have options of the address.
    pub(crate) fn start_gateway(&self, session: &str) -> Result<Client> {
        let url = format!("{}/{session}", self.url());
        Client::start(Command::new(&self.cluster).args(["attach", &url]))
    }

    /// All lines of a stored session.
    pub(crate) fn log(&self, session: &str) -> Result<Vec<Value>> {
        let dir = tempfile::tempdir()?;
        let pulled = Command::new(&self.cluster)
            .args(["sessions", "pull", &self.url(), session, "--flat", "--dir"])
            .arg(dir.path())
            .output()?;
        if !pulled.status.success() {
            bail!("{}", String::from_utf8_lossy(&pulled.stderr));
        }
        let file = std::fs::read_dir(dir.path())?.next().context("no file")??;
        let text = std::fs::read_to_string(file.path())?;
        text.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
    }
}

impl Worker {
    pub(crate) fn signal(&self, name: &str) -> Result<()> {
        let status = Command::new("kill")
            .args([name, &self.0.id().to_string()])
            .status()?;
        anyhow::ensure!(status.success());
        Ok(())
    }

    /// Waits for the end of the process; true if it succeeded.
    pub(crate) fn wait(&mut self) -> Result<bool> {
        let begin = Instant::now();
        while begin.elapsed() < WAIT {
            if let Some(status) = self.0.try_wait()? {
                return Ok(status.success());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        bail!("the worker does not end")
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// A client of a gateway.
pub(crate) struct Client {
    child: Child,
    input: Option<ChildStdin>,
    pub(crate) lines: Receiver<Value>,
    /// Everything that it printed so far.
    pub(crate) seen: Vec<Value>,
}

impl Client {
    /// Starts a process that speaks JSON lines on stdin and stdout.
    pub(crate) fn start(command: &mut Command) -> Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let output = child.stdout.take().context("no stdout")?;
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if let Ok(line) = serde_json::from_str::<Value>(&line)
                    && sender.send(line).is_err()
                {
                    return;
                }
            }
        });
        Ok(Client {
            input: child.stdin.take(),
            child,
            lines,
            seen: Vec::new(),
        })
    }

    pub(crate) fn send(&mut self, command: &Value) -> Result<()> {
        let input = self.input.as_mut().context("closed")?;
        writeln!(input, "{command}")?;
        Ok(())
    }

    /// Waits for the next line that fits.
    pub(crate) fn find(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Result<Value> {
        let begin = Instant::now();
        loop {
            match self.lines.recv_timeout(WAIT.saturating_sub(begin.elapsed())) {
                Ok(line) => {
                    self.seen.push(line.clone());
                    if fits(&line) {
                        return Ok(line);
                    }
                }
                Err(RecvTimeoutError::Timeout) => bail!("no {what} after {}", tail(&self.seen)),
                Err(RecvTimeoutError::Disconnected) => {
                    bail!("the gateway ended before {what} after {}", tail(&self.seen))
                }
            }
        }
    }

    /// Waits for the next event of a type.
    pub(crate) fn until(&mut self, event: &str) -> Result<Value> {
        self.find(event, |line| is(line, "type", event))
    }

    /// Sends a command and waits for its response.
    pub(crate) fn ask(&mut self, command: Value) -> Result<Value> {
        self.send(&command)?;
        self.response(command.get("id").context("no id")?)
    }

    pub(crate) fn response(&mut self, id: &Value) -> Result<Value> {
        self.find(&format!("response to {id}"), |line| {
            is(line, "type", "response") && line.get("id") == Some(id)
        })
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The last lines, for messages of failed tests.
fn tail(lines: &[Value]) -> String {
    let last = lines.iter().rev().take(5).rev();
    last.map(|line| format!("\n{line}")).collect()
}

/// True if a member of an object is this text.
pub(crate) fn is(object: &Value, name: &str, text: &str) -> bool {
    object.get(name).and_then(Value::as_str) == Some(text)
}
