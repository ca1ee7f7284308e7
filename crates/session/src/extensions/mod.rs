//! The processes that run extensions, for all sessions of the agent: one for TypeScript and one for each program, started
//! when the first session needs it, started again when it died, but not without end. What extensions want of a session is
//! dealt with in `session::extensions`; the lines are the crate `extensions`' business.

mod model_list;
mod models;
mod provider;

use std::collections::{HashMap, VecDeque};
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex as Table, PoisonError};
use std::time::{Duration, Instant};

use config::Generation;
use config::extensions::Key;
use extensions::line::Era;
use extensions::runtime::Runtime;
use extensions::{ExtensionProcess, Greeting, ProcessError, ProcessMessage};
use process::{Reaper, SpawnSpec};
use tokio::sync::{Mutex, mpsc};

use crate::factory::Agent;
use crate::limits;

pub use self::model_list::{Declared, DeclaredFlag, declared, has_extensions, with_extension_models};
pub use self::provider::ExtensionProvider;

/// Where a line goes that an extension printed.
pub type Print = Arc<dyn Fn(&str) + Send + Sync>;

/// The settings with which the process is started.
#[derive(Clone)]
pub struct Launch {
    /// The whole environment: extensions are the user's own code.
    pub env: Vec<(OsString, OsString)>,
    /// The `PATH` that Node or Bun is looked for on.
    pub path: OsString,
    /// The runtime to use instead.
    pub runtime: Option<PathBuf>,
    /// The host's main file to use instead of the one in this program.
    pub main: Option<PathBuf>,
    /// This program, for extensions that start it again.
    pub program: Option<String>,
    /// Directory of settings, keys and sessions.
    pub agent_dir: PathBuf,
    /// Where the process works.
    pub cwd: PathBuf,
    /// Version of the agent.
    pub version: String,
    /// Bytes of memory that a process may hold; more, and it is ended. None: the usual bound.
    pub memory: Option<u64>,
    /// How long a process may say nothing when it is asked whether it lives. None: the usual bound.
    pub silence: Option<Duration>,
    /// Takes what extensions print.
    pub print: Print,
}

impl fmt::Debug for Launch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Launch")
            .field("runtime", &self.runtime)
            .field("main", &self.main)
            .finish_non_exhaustive()
    }
}

/// The processes, when there are some.
#[derive(Debug)]
pub struct ExtensionProcesses {
    launch: Launch,
    reaper: Reaper,
    running: Table<HashMap<Key, Arc<Mutex<Running>>>>,
    /// Lists of models that were written.
    models: models::Written,
}

#[derive(Debug, Default)]
struct Running {
    process: Option<ExtensionProcess>,
    /// When it was started, the newest last.
    starts: VecDeque<Instant>,
}

impl ExtensionProcesses {
    /// None is started yet.
    #[must_use]
    pub fn new(launch: Launch, reaper: Reaper) -> Self {
        Self {
            launch,
            reaper,
            running: Table::default(),
            models: models::Written::default(),
        }
    }

    /// The directory with caches that may be deleted at any time.
    pub(crate) fn cache(&self) -> PathBuf {
        self.launch.agent_dir.join("cache")
    }

    /// The process with this key, which is started if it does not run. Sessions that ask at the same time get the same one.
    ///
    /// # Errors
    /// When it cannot be started, or was started too often.
    pub(crate) async fn process(&self, key: &Key) -> Result<ExtensionProcess, ProcessError> {
        let running = self.running(key);
        // Held while the process starts: sessions that ask at the same time wait for the same one.
        let mut running = running.lock().await;
        if let Some(process) = running.process.as_ref().filter(|process| !process.is_gone()) {
            return Ok(process.clone());
        }
        let now = Instant::now();
        running
            .starts
            .retain(|start| now.duration_since(*start) < limits::RESTART_WINDOW);
        // The first start is no restart.
        if running.starts.len() > limits::RESTARTS {
            return Err(ProcessError::Start(format!(
                "it ended {} times within a minute and is left alone",
                running.starts.len()
            )));
        }
        // Before the start, which counts even if it fails.
        running.starts.push_back(now);
        let (process, said) = self.start(key).await?;
        tokio::spawn(listen(said, Arc::clone(&self.launch.print)));
        running.process = Some(process.clone());
        Ok(process)
    }

    /// The next one who asks for a program gets a process that was started anew: its file may have changed. Sessions that have
    /// the old process keep it. The TypeScript host reads files anew by itself.
    pub(crate) fn renew(&self, key: &Key) {
        if !matches!(key, Key::Program(_)) {
            return;
        }
        // A process that is being started is new enough.
        if let Ok(mut running) = self.running(key).try_lock() {
            *running = Running::default();
        }
    }

    fn running(&self, key: &Key) -> Arc<Mutex<Running>> {
        let mut table = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(table.entry(key.clone()).or_default())
    }

    async fn start(
        &self,
        key: &Key,
    ) -> Result<(ExtensionProcess, mpsc::Receiver<ProcessMessage>), ProcessError> {
        let launch = &self.launch;
        let mut command = match key {
            Key::TypeScript => self.host_command().await?,
            Key::Program(program) => program.command.iter().map(OsString::from).collect(),
        };
        if command.is_empty() {
            return Err(ProcessError::Start("there is no command".to_owned()));
        }
        let spec = SpawnSpec {
            program: command.remove(0),
            args: command,
            env: launch.env.clone(),
            cwd: launch.cwd.clone().into(),
        };
        let spawned = self.reaper.spawn_piped(spec).await;
        let (child, pipes) = spawned.map_err(|error| ProcessError::Start(error.to_string()))?;
        let greeting = Greeting {
            version: &launch.version,
            agent_dir: &launch.agent_dir.to_string_lossy(),
            program: launch.program.as_deref(),
            memory: launch.memory.unwrap_or(extensions::limits::MEMORY),
            silence: launch.silence.unwrap_or(extensions::limits::PONG_WAIT),
        };
        ExtensionProcess::open(child, pipes, greeting).await
    }

    /// What starts the TypeScript host.
    async fn host_command(&self) -> Result<Vec<OsString>, ProcessError> {
        let launch = &self.launch;
        let runtime = match &launch.runtime {
            Some(program) => Some(Runtime::new(program.clone())),
            None => Runtime::find(&launch.path),
        };
        let Some(runtime) = runtime else {
            return Err(ProcessError::Start(
                "TypeScript extensions need Node 20 or later, or Bun, and neither is on PATH. Install one, set \
                 \"extensionRuntime\" in settings.json to its path, or start with --no-extensions"
                    .to_owned(),
            ));
        };
        let main = match &launch.main {
            Some(main) => main.clone(),
            None => {
                let cache = self.cache();
                let unpacked = tokio::task::spawn_blocking(move || extensions::unpack(&cache)).await;
                let unpacked = unpacked.unwrap_or_else(|error| Err(std::io::Error::other(error)));
                unpacked.map_err(|error| ProcessError::Start(error.to_string()))?
            }
        };
        let mut command = vec![runtime.program.into_os_string()];
        command.extend(runtime.args);
        command.push(main.into_os_string());
        Ok(command)
    }
}

/// What the process says about no session: for the log, and for people who look at what their extensions print.
async fn listen(mut said: mpsc::Receiver<ProcessMessage>, print: Print) {
    while let Some(said) = said.recv().await {
        match said {
            ProcessMessage::Printed(line) => print(&line),
            ProcessMessage::Log(level, text) if level == "error" => tracing::error!("extensions: {text}"),
            ProcessMessage::Log(level, text) if level == "warn" => tracing::warn!("extensions: {text}"),
            ProcessMessage::Log(_, text) => tracing::debug!("extensions: {text}"),
            ProcessMessage::Failed(failure) => {
                tracing::error!("extensions: {}: {}", failure.path, failure.error)
            }
            ProcessMessage::Gone(reason) => tracing::warn!("the extension process is gone: {reason}"),
            _ => {}
        }
    }
}

impl Drop for ExtensionProcesses {
    fn drop(&mut self) {
        self.forget_all_models();
    }
}

/// How older extensions are treated. Only the first hooks had a time limit by themselves (dialects.md 10.3).
pub(crate) fn era(agent: &Agent) -> Era {
    let generation = agent.options.extensions.generation;
    let wait = u64::try_from(config::limits::HOOK_WAIT.as_millis()).ok();
    let by_default = wait.filter(|_| generation == Generation::Hooks);
    Era {
        generation,
        hook_timeout: agent.settings.hook_timeout_ms.or(by_default),
    }
}
