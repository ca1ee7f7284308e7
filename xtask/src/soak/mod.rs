//! `xtask soak`: one process answers many prompts with tools while sessions are opened, evicted and deleted, the extension and the
//! MCP servers restart, and web clients come and go. At rest it must hold no more than after the warm-up (GUARANTEES.md 79).
//!
//! Here: the phases, the report and the verdict. `worker` plays a user, `measure` measures.

mod client;
mod measure;
mod plot;
#[cfg(test)]
mod tests;
mod worker;

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use testkit::llm::{Options as ServerOptions, ScriptedServer};
use testkit::workspace::Workspace;

use crate::args::Args;
use crate::bench::meter;
use crate::fuzz::prng::fresh_seed;
use crate::out::{complain, say};
use measure::{Rest, Sample};
use worker::{Done, Worker};

/// Users at the same time.
const WORKERS: u64 = 8;
/// Sessions that the agent keeps open next to the first; fewer than the users leave open.
const MAX_OPEN: &str = "16";
/// Phases after the warm-up, each of which ends at rest.
const PHASES: u64 = 10;
/// What the warm-up is of all prompts.
const WARM_UP: f64 = 0.1;
/// Time between two samples of a running phase.
const EVERY: Duration = Duration::from_secs(1);
/// How long the agent may take to come to rest after a phase: idle threads end after ten seconds.
const REST: Duration = Duration::from_secs(40);
/// Connections to the model that may be kept for the next request, one for each user.
const KEPT_CONNECTIONS: u64 = WORKERS;
/// Growth of the memory at rest that is allowed in the second half, bytes: the allocator keeps free pages.
const GROWTH: u64 = 8 << 20;

/// What to run.
#[derive(Debug, Clone)]
pub struct Options {
    /// The program.
    agent: PathBuf,
    /// All prompts together.
    prompts: u64,
    /// Same seed, same choices; their order among the users depends on the machine.
    seed: u64,
    /// Where the picture goes.
    plot: Option<PathBuf>,
}

impl Options {
    /// Reads the command line.
    ///
    /// # Errors
    /// When `--agent` is missing or a number is none.
    pub fn parse(args: &mut Args) -> Result<Self> {
        Ok(Self {
            agent: std::path::absolute(args.required::<PathBuf>("--agent")?)?,
            prompts: args.option("--prompts")?.unwrap_or(100_000),
            seed: args.option("--seed")?.unwrap_or_else(fresh_seed),
            plot: args.option("--plot")?,
        })
    }
}

/// The chore; false when the process holds more at the end than it did after the warm-up.
///
/// # Errors
/// When the agent cannot be run, refuses a command, or a run does not end.
pub fn run(options: &Options) -> Result<bool> {
    say(&format!(
        "soak: {} prompts, --seed {}",
        options.prompts, options.seed
    ));
    let scene = Scene::start(&options.agent)?;
    let mut workers: Vec<Worker> = (0..WORKERS)
        .map(|number| scene.worker(number, options.seed))
        .collect::<Result<_>>()?;
    let mut samples = Vec::new();
    let mut rests = Vec::new();
    for phase in 0..=PHASES {
        let prompts = share(options.prompts, phase);
        scene.phase(&mut workers, prompts, &mut samples)?;
        let rest = scene.rest(&workers, rests.first())?;
        say(&rest.line());
        rests.push(rest);
    }
    let done = all(&workers);
    say(&format!(
        "soak: {} prompts in {:.0} s, {:.1} s of CPU; {} sessions opened, {} left open and visited again, {} closed, {} deleted, \
         {} clients; the MCP server was reconnected {} times and ended {} times by itself, the extension ended {} times",
        done.prompts,
        scene.begun.elapsed().as_secs_f64(),
        scene.cpu_seconds(),
        done.opened,
        done.reopened,
        done.closed,
        done.deleted,
        done.clients,
        done.reconnects,
        done.server_crashes,
        done.extension_crashes,
    ));
    if let Some(path) = &options.plot {
        std::fs::write(path, plot::draw(&samples, &rests))?;
    }
    let problems = verdict(&rests);
    for problem in &problems {
        complain(problem);
    }
    if problems.is_empty() {
        say("soak: flat");
    }
    Ok(problems.is_empty())
}

/// Prompts of a phase; the first is the warm-up.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of a small count"
)]
fn share(prompts: u64, phase: u64) -> u64 {
    let warm_up = (prompts as f64 * WARM_UP) as u64;
    match phase {
        0 => warm_up,
        _ => (prompts - warm_up) / PHASES,
    }
}

/// Returns what grew: open files, threads and children from the end of the warm-up to the end of the run, memory in the second
/// half.
fn verdict(rests: &[Rest]) -> Vec<String> {
    let (Some(first), Some(last)) = (rests.first(), rests.last()) else {
        return vec!["nothing was measured".to_owned()];
    };
    let mut problems = Vec::new();
    for (what, before, after) in [
        (
            "open files",
            first.sample.files + KEPT_CONNECTIONS,
            last.sample.files,
        ),
        ("threads", first.sample.threads, last.sample.threads),
        ("child processes", first.sample.children, last.sample.children),
    ] {
        if after > before {
            problems.push(format!(
                "soak: at most {before} {what} may be left at rest, {after} are"
            ));
        }
    }
    // Sessions, caches and the allocator reach their size only some time after the warm-up.
    let settled = rests.get((rests.len() - 1) / 2).unwrap_or(first);
    let (before, after) = (settled.sample.resident, last.sample.resident);
    if after > before + GROWTH {
        problems.push(format!("soak: memory grew from {before} to {after} bytes"));
    }
    problems
}

fn all(workers: &[Worker]) -> Done {
    workers
        .iter()
        .fold(Done::default(), |sum, worker| sum.and(worker.done))
}

/// The agent with its model, its extension and its MCP server.
struct Scene {
    agent: Child,
    address: String,
    begun: Instant,
    workspace: Workspace,
    _server: ScriptedServer,
}

impl Scene {
    fn start(program: &Path) -> Result<Self> {
        let options = ServerOptions {
            recorded: 100,
            ..ServerOptions::default()
        };
        let server = ScriptedServer::with_options([], options)?;
        server.set_rule(worker::reply);
        let workspace = Workspace::new(&server.url())?;
        // A window that no session fills, so that nothing is compacted.
        workspace.write_models(&json!({"providers": {"mock": {
            "baseUrl": format!("{}/anthropic", server.url()), "api": "anthropic-messages", "apiKey": "mock-key",
            "models": [{
                "id": "mock", "name": "Mock", "reasoning": false, "input": ["text"],
                "contextWindow": 1_000_000, "maxTokens": 10_000,
                "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
            }],
        }}}))?;
        let agent_dir = workspace.agent_dir();
        let extension = agent_dir.join("extensions/soak");
        workspace.write(&extension, include_str!("extension.py"))?;
        std::fs::set_permissions(&extension, std::fs::Permissions::from_mode(0o755))?;
        let mcp = agent_dir.join("soak-mcp.py");
        workspace.write(&mcp, include_str!("mcp.py"))?;
        let servers = json!({"mcpServers": {"soak": {"command": "python3", "args": [mcp]}}});
        workspace.write(agent_dir.join("mcp.json"), servers.to_string())?;
        let mut agent = Command::new(program)
            .args([
                "--mode",
                "web",
                "--port",
                "0",
                "--provider",
                "mock",
                "--model",
                "mock",
            ])
            .args(["--max-open-sessions", MAX_OPEN])
            .env_clear()
            .envs(workspace.env())
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .env("SHELL", "/bin/bash")
            .current_dir(workspace.cwd())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let address = address(&mut agent)?;
        Ok(Self {
            agent,
            address,
            begun: Instant::now(),
            workspace,
            _server: server,
        })
    }

    fn worker(&self, number: u64, seed: u64) -> Result<Worker> {
        let directory = self.workspace.cwd().join(format!("work{number}"));
        self.workspace
            .write(directory.join("notes.txt"), "alpha\nbeta\ngamma\n")?;
        let name = format!("user{number}");
        Ok(Worker::new(
            &self.address,
            directory,
            name,
            seed.wrapping_add(number),
        ))
    }

    /// Lets all users work, and samples the process meanwhile.
    fn phase(&self, workers: &mut [Worker], prompts: u64, samples: &mut Vec<Sample>) -> Result<()> {
        let count = u64::try_from(workers.len())?;
        let running = AtomicU64::new(count);
        thread::scope(|scope| {
            let users: Vec<_> = workers
                .iter_mut()
                .map(|worker| {
                    let running = &running;
                    scope.spawn(move || {
                        let worked = worker.work(prompts / count);
                        running.fetch_sub(1, Ordering::SeqCst);
                        worked
                    })
                })
                .collect();
            while running.load(Ordering::SeqCst) > 0 {
                thread::sleep(EVERY);
                samples.push(measure::sample(self.agent.id(), self.begun)?);
            }
            for user in users {
                user.join()
                    .map_err(|_| anyhow!("a user of the soak panicked"))??;
            }
            Ok(())
        })
    }

    /// Waits until the process holds no more than at the first rest, or for as long as it may take, and measures it.
    fn rest(&self, workers: &[Worker], first: Option<&Rest>) -> Result<Rest> {
        self.empty_trash()?;
        let end = Instant::now() + REST;
        let mut sample;
        loop {
            thread::sleep(EVERY);
            sample = measure::sample(self.agent.id(), self.begun)?;
            let is_calm = first.is_some_and(|first| {
                sample.threads <= first.sample.threads
                    && sample.files <= first.sample.files + KEPT_CONNECTIONS
                    && sample.children <= first.sample.children
            });
            if is_calm || Instant::now() > end {
                break;
            }
        }
        Ok(Rest {
            prompts: all(workers).prompts,
            sample,
        })
    }

    /// Deleted sessions are moved to a folder that nothing empties; the disk of a soak is finite.
    fn empty_trash(&self) -> Result<()> {
        let sessions = self.workspace.agent_dir().join("sessions");
        for folder in std::fs::read_dir(sessions)?.flatten() {
            let trash = folder.path().join(".trash");
            if trash.exists() {
                std::fs::remove_dir_all(trash)?;
            }
        }
        Ok(())
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "a time of hours in ns stays below 2^53"
    )]
    fn cpu_seconds(&self) -> f64 {
        meter::usage(self.agent.id()).cpu as f64 / 1e9
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        if let Some(pid) = i32::try_from(self.agent.id()).ok().and_then(Pid::from_raw) {
            let _ended = kill_process(pid, Signal::TERM);
        }
        let _collected = self.agent.wait();
    }
}

/// Host and port, from the banner of the web server.
fn address(agent: &mut Child) -> Result<String> {
    let stdout = agent.stdout.take().context("no stdout")?;
    let mut lines = BufReader::new(stdout).lines();
    let socket = lines
        .by_ref()
        .map_while(Result::ok)
        .find(|line| line.contains("WebSocket:"))
        .context("the agent ended before it listened")?;
    // Further output must be read, or the agent would block.
    thread::spawn(move || lines.for_each(drop));
    let address = socket.split("://").nth(1).context("no address")?.trim();
    let address = address.trim_end_matches("/ws");
    ensure!(!address.is_empty(), "no address in {socket}");
    Ok(address.to_owned())
}
