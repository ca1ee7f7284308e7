//! NATS servers, workers and clients of one test.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::engine::{Engine, find, free_port};

/// How often servers are started on other ports until they answer.
const STARTS: u32 = 3;

/// Longest wait for one line.
const WAIT: Duration = Duration::from_secs(40);

/// NATS servers, and a directory for everything else.
pub(crate) struct Place {
    pub(crate) cluster: PathBuf,
    pub(crate) pinion: PathBuf,
    pub(crate) dir: tempfile::TempDir,
    nats: PathBuf,
    pub(crate) servers: Vec<Server>,
    /// Configuration file of the server, if it has one.
    pub(crate) config: Option<PathBuf>,
    /// `USER:PASSWORD@` of workers, gateways and reads that begin from now on; empty without accounts.
    pub(crate) user: &'static str,
}

/// One NATS server.
pub(crate) struct Server {
    pub(crate) port: u16,
    /// Port for the other servers.
    route: u16,
    /// Port of its state over HTTP.
    monitor: u16,
    pub(crate) engine: Option<Engine>,
}

/// A process of a test, killed when this value goes.
pub(crate) struct Worker(pub(crate) Child);

impl Place {
    /// Starts this number of servers, 1 or 3. None if a program is missing and nothing says that it should be there. `cluster` is the
    /// program `pinion-cluster`.
    pub(crate) fn start(cluster: &Path, pinion: &Path, servers: usize) -> Result<Option<Self>> {
        let Some(nats) = find("nats-server")? else {
            return Ok(None);
        };
        if !pinion.is_file() {
            if std::env::var_os("CLUSTER_ENGINES").is_some() {
                bail!("{} is missing: cargo build -p pinion", pinion.display());
            }
            writeln!(std::io::stderr(), "skipped: pinion is not built")?;
            return Ok(None);
        }
        let mut place = Self {
            cluster: cluster.to_owned(),
            pinion: pinion.to_owned(),
            dir: tempfile::tempdir()?,
            nats,
            servers: Vec::new(),
            config: None,
            user: "",
        };
        std::fs::create_dir(place.path("agent"))?;
        std::fs::create_dir(place.path("project"))?;
        // A port that was free can be taken by another program before the server listens.
        let mut tries = STARTS;
        while let Err(error) = place.start_on_free_ports(servers) {
            tries -= 1;
            if tries == 0 {
                return Err(error);
            }
            writeln!(std::io::stderr(), "servers are started again: {error}")?;
        }
        Ok(Some(place))
    }

    /// Starts this number of new servers without data.
    fn start_on_free_ports(&mut self, servers: usize) -> Result<()> {
        self.servers.clear();
        for index in 0..servers {
            let data = self.path(&format!("nats{index}"));
            if data.exists() {
                std::fs::remove_dir_all(data)?;
            }
            self.servers.push(Server {
                port: free_port()?,
                route: free_port()?,
                monitor: free_port()?,
                engine: None,
            });
        }
        self.start_nats()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Starts all servers.
    pub(crate) fn start_nats(&mut self) -> Result<()> {
        for index in 0..self.servers.len() {
            self.start_server(index)?;
        }
        let begin = Instant::now();
        while !self.servers.iter().all(Server::is_healthy) {
            if begin.elapsed() > WAIT {
                bail!("the servers are not healthy");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// Starts one server, which may not be healthy yet.
    pub(crate) fn start_server(&mut self, index: usize) -> Result<()> {
        let routes = self
            .servers
            .iter()
            .map(|server| format!("nats://127.0.0.1:{}", server.route));
        let routes: Vec<String> = routes.collect();
        let data = self.path(&format!("nats{index}"));
        let server = self.servers.get_mut(index).context("no server")?;
        let mut command = Command::new(&self.nats);
        command.args(["-js", "-a", "127.0.0.1", "-p", &server.port.to_string(), "-sd"]);
        command.arg(data).args(["-m", &server.monitor.to_string()]);
        if routes.len() > 1 {
            command.args(["-n", &format!("n{index}"), "--cluster_name", "rig"]);
            command.args(["-cluster", &format!("nats://127.0.0.1:{}", server.route)]);
            command.args(["-routes", &routes.join(",")]);
        }
        if let Some(config) = &self.config {
            command.arg("-c").arg(config);
        }
        let mut engine = Engine::start(&mut command)?;
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?
            .block_on(engine.wait_for_port(server.port))?;
        server.engine = Some(engine);
        Ok(())
    }

    /// The address of the servers, for a path and options.
    pub(crate) fn address(&self, path: &str, options: &str) -> String {
        let servers = self.servers.iter();
        let servers: Vec<String> = servers
            .map(|server| format!("{}127.0.0.1:{}", self.user, server.port))
            .collect();
        format!(
            "nats://{}{path}?replicas={}&{options}",
            servers.join(","),
            servers.len()
        )
    }

    /// The address of the servers.
    pub(crate) fn url(&self) -> String {
        self.address("", "")
    }

    /// A worker with leases of two seconds whose model plays a script.
    pub(crate) fn worker(&self, name: &str, script: &Value, options: &[&str]) -> Result<Worker> {
        let script_file = self.path(&format!("{name}.json"));
        std::fs::write(&script_file, script.to_string())?;
        let child = Command::new(&self.cluster)
            .args(["worker", "--nats", &self.url()])
            .args(["--name", name, "--program"])
            .arg(&self.pinion)
            .arg("--state-dir")
            .arg(self.path(name))
            .arg("--cwd")
            .arg(self.path("project"))
            .args(["--lease-seconds", "2"])
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
        let (session, options) = session.split_once('?').unwrap_or((session, ""));
        let url = self.address(&format!("/{session}"), options);
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

impl Server {
    /// The answer of a page about its state.
    pub(crate) fn page(&self, path: &str) -> Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.monitor))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        write!(stream, "GET {path} HTTP/1.0\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").context("no answer")?;
        anyhow::ensure!(head.contains(" 200 "), "{head}");
        Ok(body.to_owned())
    }

    /// True once JetStream can be used.
    fn is_healthy(&self) -> bool {
        self.page("/healthz").is_ok()
    }
}

/// Sends a signal to a process.
pub(crate) fn signal(child: &Child, name: &str) -> Result<()> {
    let status = Command::new("kill")
        .args([name, &child.id().to_string()])
        .status()?;
    anyhow::ensure!(status.success());
    Ok(())
}

impl Worker {
    pub(crate) fn signal(&self, name: &str) -> Result<()> {
        signal(&self.0, name)
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
        let id = command.get("id").context("no id")?;
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
