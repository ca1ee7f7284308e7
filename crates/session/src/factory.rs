//! What all sessions of a process share: models and keys, tools, settings, and what the command line asked for.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ::mcp::{AskUser, Surroundings};
use agent::limits::{MAX_QUOTA_DELAY_MS, MAX_RETRY_DELAY_MS, SILENT_ANSWERS};
use agent::{FailureRules, LoopSettings, ResultOrder, RetrySettings};
use config::resources::{ResourceOptions, Resources};
use config::settings::Settings;
use config::trust::{Decision, Project, Trust};
use config::{Choice, ExtraPath, Places};
use llm::{Budgets, CacheRetention, Client};
use models::{Registry, Start, StartRequest};
use process::Reaper;
use tools::Toolbox;
use tools::pattern::fits;
use wire::SessionRule;
use wire::changes::Checkpoints;
use wire::state::{Durability, PermissionMode, SandboxState};
use wire::{Model, ThinkingLevel};

use crate::error::SessionError;
use crate::extensions::{ExtensionProcesses, ExtensionProvider};
use crate::input_record::InputRecord;
use crate::mcp::{self, Configured, McpSetup, ServerSource};
use crate::off_thread::off_thread;

/// What the command line asked for, as far as it outlives the start.
#[derive(Debug, Clone)]
pub struct Options {
    /// How a session's model and level are chosen; what a session itself brings is filled in for each.
    pub start: StartRequest,
    /// Names of the tools the model may call.
    pub tools: Vec<String>,
    /// Where session files go.
    pub sessions: SessionHome,
    /// Which tools of any source may be active.
    pub tool_filter: ToolFilter,
    /// What the system prompt is made of.
    pub resources: ResourceOptions,
    /// The permission mode that the command line names (`--permission-mode`).
    pub permission_mode: Option<PermissionMode>,
    /// What stored entries survive, if the command line names it (`--durability`).
    pub durability: Option<Durability>,
    /// What a checkpoint of files contains, if the command line names it (`--checkpoints`).
    pub checkpoints: Option<Checkpoints>,
    /// True if clients connect, who see why the agent is locked down. False: it ends instead.
    pub is_attended: bool,
    /// The sandbox of tools, for those who ask; the toolbox has it itself.
    pub sandbox: Option<SandboxState>,
    /// How providers should keep prompts cached.
    pub prompt_caching: PromptCaching,
    /// Which extensions are loaded.
    pub extensions: Choice,
    /// Whether only models may be asked over the network (`--offline`).
    pub offline: bool,
    /// Limits that the command line names.
    pub limits: wire::RunLimits,
    /// The dialect that the process starts with.
    pub dialect: wire::Dialect,
}

/// How providers should keep prompts cached.
#[derive(Debug, Clone)]
pub struct PromptCaching {
    /// How long.
    pub retention: CacheRetention,
    /// The id in cache keys and headers for routing (`--provider-session-id`). None: the id of the session.
    pub session_id: Option<String>,
}

/// Which tools of any source may be active.
#[derive(Debug, Clone, Default)]
pub struct ToolFilter {
    /// Patterns that the command line names.
    pub named: Vec<String>,
    /// Patterns that stay off.
    pub excluded: Vec<String>,
    /// Lists of the only tools that may be active: the user's (`--tools`, `--no-tools`), and one of each session that this one
    /// works for. A tool must be in all of them.
    pub only: Vec<Vec<String>>,
    /// Changes (`+name`, `-name`) to the tools that a stored session declared. `None` if the command line names the tools.
    pub restored: Option<Vec<String>>,
}

impl Options {
    /// Returns true unless the command line forbids the tool.
    pub(crate) fn allows_tool(&self, name: &str) -> bool {
        self.is_within_lists(name, |_| true)
    }

    /// The same for a tool of an MCP server. A list of tools means servers, too, only if it names some (pi 1.x); an empty one
    /// means all.
    pub(crate) fn allows_server_tool(&self, name: &str) -> bool {
        let mut excluded = self.tool_filter.excluded.iter();
        self.is_within_lists(name, |list| {
            list.is_empty() || list.iter().any(|item| item.starts_with(::mcp::PREFIX))
        }) && !excluded.any(|item| ::mcp::may_have_been(item, name))
    }

    fn is_within_lists(&self, name: &str, counts: impl Fn(&[String]) -> bool) -> bool {
        let named = |list: &[String]| list.iter().any(|item| fits(item, name));
        let mut lists = self.tool_filter.only.iter().filter(|list| counts(list));
        // A tool that stays off stays off even if a list names it.
        lists.all(|list| named(list)) && !named(&self.tool_filter.excluded)
    }
}

/// Where session files go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionHome {
    /// In memory (`--no-session`).
    Memory,
    /// In one directory for all working directories (`--session-dir`, the environment, settings).
    One(PathBuf),
    /// Into a directory of their working directory's own, below the agent directory (pi-core.md 2.1).
    ByDirectory,
}

/// What all sessions of a process share. A session whose extensions bring models has its own, with another registry.
#[derive(Clone)]
pub struct Agent {
    /// Version of the program, for `ready`.
    pub version: String,
    /// Directory of settings, keys and sessions.
    pub agent_dir: PathBuf,
    /// Working directory of new sessions.
    pub cwd: PathBuf,
    /// Working directory of sessions whose own is gone: the directory that the program was started in.
    pub home: PathBuf,
    /// Settings, global and project merged.
    pub settings: Settings,
    /// The command line.
    pub options: Options,
    /// Models and keys.
    pub registry: Arc<Registry>,
    /// Asks models.
    pub client: Client,
    /// Runs tools.
    pub toolbox: Toolbox,
    /// Owns their processes.
    pub reaper: Reaper,
    /// Runs extensions.
    pub extensions: Arc<ExtensionProcesses>,
    /// Which MCP servers there are.
    pub mcp: McpSetup,
    /// Answers for models of the session's extensions.
    pub lender: Option<ExtensionProvider>,
    /// Who decided about which project.
    pub trust: Arc<Trust>,
    /// The record of inputs, if there is one (`--record-inputs`).
    pub inputs: Option<InputRecord>,
    /// Puts agents together anew.
    pub maker: Arc<dyn AgentFactory>,
}

/// Puts the agent of a working directory together: settings and resources are the directory's own, as its files and the
/// decisions on trust are now; models, keys and processes are those of all.
pub trait AgentFactory: Send + Sync {
    /// The agent for sessions that work in this directory. If guards could not be loaded, `guards` says why, and the agent is locked
    /// down as with unusable settings.
    fn make(&self, cwd: &Path, guards: &[String]) -> Agent;
}

/// Makes the agents of a session that works for another one: what its owner decided holds in other directories, too, and when
/// files are read again.
#[derive(Clone)]
struct SubordinateFactory {
    maker: Arc<dyn AgentFactory>,
    options: Options,
    has_no_servers: bool,
    inputs: Option<InputRecord>,
}

impl AgentFactory for SubordinateFactory {
    fn make(&self, cwd: &Path, guards: &[String]) -> Agent {
        let mut agent = self.maker.make(cwd, guards);
        let mut options = self.options.clone();
        // The toolbox is new, and the sandbox is part of it.
        options.sandbox = agent.options.sandbox.take();
        if !agent.settings.faults.is_empty() {
            // The settings of a locked-down agent ask; a looser mode must not take their place.
            options.permission_mode = options
                .permission_mode
                .filter(|mode| *mode >= PermissionMode::Ask);
        }
        agent.options = options;
        agent.mcp.off |= self.has_no_servers;
        // A sub-agent has no record of inputs; the inner factory would give it that of the process.
        agent.inputs.clone_from(&self.inputs);
        // Otherwise the next agent that is made from this one would have the rights of the user again.
        agent.maker = Arc::new(self.clone());
        agent
    }
}

impl Agent {
    /// The agent of a session that works for another one. Agents that are made from it have the same options.
    pub(crate) fn into_subordinate(mut self) -> Arc<Self> {
        self.maker = Arc::new(SubordinateFactory {
            maker: Arc::clone(&self.maker),
            options: self.options.clone(),
            has_no_servers: self.mcp.off,
            inputs: self.inputs.clone(),
        });
        Arc::new(self)
    }

    /// What stored entries of a session survive, unless a client says otherwise: what the command line names, else the
    /// settings.
    #[must_use]
    pub fn durability(&self) -> Durability {
        self.options
            .durability
            .unwrap_or(self.settings.storage.durability)
    }

    /// The content of checkpoints: as the command line names it, else as the settings do.
    #[must_use]
    pub fn checkpoints(&self) -> Checkpoints {
        self.options
            .checkpoints
            .unwrap_or(self.settings.storage.checkpoints)
    }

    /// Where the sessions of a working directory go; none when they live in memory.
    #[must_use]
    pub fn session_dir(&self, cwd: &Path) -> Option<PathBuf> {
        match &self.options.sessions {
            SessionHome::Memory => None,
            SessionHome::One(dir) => Some(dir.clone()),
            SessionHome::ByDirectory => {
                Some(store::paths::session_dir(&self.agent_dir, &cwd.to_string_lossy()))
            }
        }
    }

    /// Where the session goes that follows another in a working directory: to the directory that the user named, else next to
    /// the file of the other, as in pi; none when sessions live in memory.
    #[must_use]
    pub fn next_session_dir(&self, cwd: &Path, current: Option<&Path>) -> Option<PathBuf> {
        let usual = self.session_dir(cwd)?;
        let beside = current.and_then(Path::parent);
        Some(match &self.options.sessions {
            SessionHome::ByDirectory => beside.map_or(usual, Path::to_path_buf),
            SessionHome::One(_) | SessionHome::Memory => usual,
        })
    }

    /// Models with credentials, with the models that local servers have now.
    pub async fn available_models(&self) -> Vec<Model> {
        self.look_for_local(None).await;
        // Extensions read the list of models from a file, which lacks the models that were found just now.
        self.extensions.rewrite_models(&self.registry);
        self.registry.models().into_iter().cloned().collect()
    }

    /// Asks local servers for their models in a task; `only` names one of them by its provider id.
    async fn look_for_local(&self, only: Option<&str>) {
        let (registry, only) = (Arc::clone(&self.registry), only.map(str::to_owned));
        let looking = tokio::task::spawn_blocking(move || registry.look_for_local(only.as_deref()));
        // What panics there is a defect of ours, but no reason to answer nothing.
        let _outcome = looking.await;
    }

    /// Returns true if a model can only be known once its local server was asked.
    #[must_use]
    pub fn must_ask_for(&self, provider: &str, id: &str) -> bool {
        // Servers on the user's machine are contacted only for a model of theirs (GUARANTEES.md, 27).
        self.registry.is_local(provider) && self.registry.find(provider, id).is_none()
    }

    /// Asks the local server of a model, then returns the model as [`known_model`](Self::known_model) does.
    pub async fn ask_for_model(&self, provider: &str, id: &str) -> Option<Model> {
        self.look_for_local(Some(provider)).await;
        self.known_model(provider, id)
    }

    /// Returns a model with credentials, as far as it is known. Asks no server.
    #[must_use]
    pub fn known_model(&self, provider: &str, id: &str) -> Option<Model> {
        self.registry
            .find(provider, id)
            .filter(|_| self.registry.has_auth(provider))
            .cloned()
    }

    /// The thinking level that a model starts with before it is fitted to it: command line, the model's own setting, the
    /// setting for all, `medium`.
    #[must_use]
    pub fn default_thinking(&self, model: &Model) -> ThinkingLevel {
        let start = &self.options.start;
        let own = self.settings.model_thinking_level(&model.provider, &model.id);
        start
            .thinking
            .or(own)
            .or(start.default_thinking)
            .unwrap_or_default()
    }

    /// Model, level and scope of a session with this context (pi-core.md 8.6). With `flags` the command line comes first;
    /// a session that is switched to later speaks for itself.
    ///
    /// # Errors
    /// When the command line names a model that does not exist.
    pub fn choose(&self, context: &store::Context, flags: bool) -> Result<Start, SessionError> {
        let request = self.start_request(context, flags);
        Ok(models::start(&self.registry, &request)?)
    }

    /// Chooses as [`choose`](Self::choose) does, on a blocking thread: a local server may be asked on the way, and the thread of
    /// the sessions must not wait for it.
    ///
    /// # Errors
    /// When the command line names a model that does not exist.
    pub(crate) async fn choose_off_thread(
        &self,
        context: &store::Context,
        flags: bool,
    ) -> Result<Start, SessionError> {
        let (registry, request) = (Arc::clone(&self.registry), self.start_request(context, flags));
        Ok(off_thread(move || models::start(&registry, &request)).await?)
    }

    /// What a session with this context asks of the registry.
    fn start_request(&self, context: &store::Context, flags: bool) -> StartRequest {
        let mut request = StartRequest {
            session_model: context.model.clone(),
            session_thinking: context.thinking_level.as_deref().and_then(ThinkingLevel::parse),
            has_messages: !context.messages.is_empty(),
            ..self.options.start.clone()
        };
        // A stored session without a model has made no choice, so the command line counts for it, too.
        if !flags && request.session_model.is_some() {
            request.provider = None;
            request.model = None;
            // The registry prefers this level to that of the session, so the level of the session takes its place.
            request.thinking = request.session_thinking.or(request.thinking);
        }
        request
    }

    /// The same as if the command line named no model.
    ///
    /// # Errors
    /// None that are expected.
    pub(crate) fn choose_without_flags(&self, context: &store::Context) -> Result<Start, SessionError> {
        let request = self.start_request_without_flags(context);
        Ok(models::start(&self.registry, &request)?)
    }

    /// Chooses as [`choose_without_flags`](Self::choose_without_flags) does, on a blocking thread.
    ///
    /// # Errors
    /// None that are expected.
    pub(crate) async fn choose_without_flags_off_thread(
        &self,
        context: &store::Context,
    ) -> Result<Start, SessionError> {
        let (registry, request) = (
            Arc::clone(&self.registry),
            self.start_request_without_flags(context),
        );
        Ok(off_thread(move || models::start(&registry, &request)).await?)
    }

    fn start_request_without_flags(&self, context: &store::Context) -> StartRequest {
        let mut options = self.options.start.clone();
        (options.provider, options.model) = (None, None);
        options.session_model.clone_from(&context.model);
        options.has_messages = !context.messages.is_empty();
        options
    }

    /// Who answers for a model in the place of a provider, and under which name.
    pub(crate) fn lender_for(&self, model: &Model) -> Option<(&ExtensionProvider, &str)> {
        Some((self.lender.as_ref()?, self.registry.lender(model)?))
    }

    /// Can the model be asked, as far as one can tell without running commands or asking anybody?
    ///
    /// # Errors
    /// A sentence for the client that names the missing credential.
    pub fn check_credentials(&self, model: &Model) -> Result<(), String> {
        if self.registry.has_auth(&model.provider) {
            Ok(())
        } else {
            Err(self.registry.no_key(&model.provider).to_string())
        }
    }

    /// Settings of the turn loop.
    #[must_use]
    pub fn loop_settings(&self) -> LoopSettings {
        let settings = &self.settings;
        let longest_delay = match self.options.dialect.follows(SessionRule::KnowsQuotas) {
            true => MAX_QUOTA_DELAY_MS,
            false => MAX_RETRY_DELAY_MS,
        };
        LoopSettings {
            steering_mode: settings.queues.steering_mode,
            follow_up_mode: settings.queues.follow_up_mode,
            interrupt_mode: settings.queues.interrupt_mode,
            retry: RetrySettings {
                enabled: settings.retry.enabled,
                max_retries: settings.retry.max_retries,
                base_delay_ms: settings.retry.base_delay_ms,
                max_delay_ms: settings.retry.max_agent_delay_ms.unwrap_or(longest_delay),
            },
            // Only oh-my-pi asks again after an answer without text and calls (dialects.md 5, row 41).
            silent_answers: match self.options.dialect.asks_for_text() {
                true => SILENT_ANSWERS,
                false => 0,
            },
            // One by one: a limit that the command line does not name stays as the settings have it.
            limits: self.options.limits.or(settings.limits),
            failures: self.failure_rules(),
            results: match self.options.dialect.follows(SessionRule::ResultsFollowEnds) {
                true => ResultOrder::Ends,
                false => ResultOrder::Calls,
            },
        }
    }

    /// What follows a run that failed or was aborted.
    fn failure_rules(&self) -> FailureRules {
        let dialect = self.options.dialect;
        if dialect.follows(SessionRule::QueuesFollowFailures) {
            FailureRules::NewestPi
        } else if dialect.follows(SessionRule::AbortedAnswersEndRetries) {
            FailureRules::Pi
        } else {
            FailureRules::General
        }
    }

    /// Token budgets of the thinking levels.
    #[must_use]
    pub fn budgets(&self) -> Budgets {
        let tokens = |level| self.settings.thinking_budgets.get(&level).copied();
        Budgets {
            minimal: tokens(ThinkingLevel::Minimal),
            low: tokens(ThinkingLevel::Low),
            medium: tokens(ThinkingLevel::Medium),
            high: tokens(ThinkingLevel::High),
            // Only oh-my-pi has another default for them.
            above_high: self.options.dialect.is_newest_omp().then(|| {
                let asked = tokens(ThinkingLevel::Xhigh).or(tokens(ThinkingLevel::High));
                // The number of oh-my-pi (dialects.md 14.1).
                asked.unwrap_or(32_768)
            }),
        }
    }

    /// How long a provider may ask to be left alone before a request is tried again.
    #[must_use]
    pub fn max_retry_delay(&self) -> Duration {
        Duration::from_millis(self.settings.retry.provider.max_retry_delay_ms)
    }

    /// The project of its working directory.
    pub(crate) fn project(&self) -> Project<'_> {
        Project {
            cwd: &self.cwd,
            agent_dir: &self.agent_dir,
            home: self.options.resources.home.as_deref(),
            is_omp: self.options.dialect.is_newest_omp(),
        }
    }

    /// Where extensions and hooks of a session that works in `cwd` are searched.
    pub(crate) fn places<'a>(&'a self, cwd: &'a Path) -> Places<'a> {
        Places {
            choice: &self.options.extensions,
            settings: &self.settings,
            packages: &self.options.resources.packages,
            agent_dir: &self.agent_dir,
            // Trust was decided for this directory: of another one, no code of the project is loaded (`Places::is_trusted`).
            home: &self.cwd,
            cwd,
            boundaries: &self.options.resources.boundaries,
        }
    }

    /// The current decision about its project, which may differ from the decision with which its settings were read.
    pub(crate) fn decision(&self) -> Decision {
        let default = self.settings.default_trust;
        self.trust.decide(&self.cwd, default, &mut Vec::new())
    }

    /// The agent for a session that works in `cwd`: this one, unless another directory or another decision on trust asks for
    /// other settings.
    #[must_use]
    pub fn fitting(self: &Arc<Self>, cwd: &Path) -> Arc<Self> {
        if self.cwd == cwd && self.decision().access == self.settings.project {
            return Arc::clone(self);
        }
        // No guards are known to be missing yet: that shows when the extensions of the directory are loaded.
        Arc::new(self.maker.make(cwd, &[]))
    }

    /// Loads what the system prompt is made of.
    #[must_use]
    pub fn load_resources(&self, cwd: &Path) -> Resources {
        Resources::new(ResourceOptions {
            cwd: cwd.to_path_buf(),
            ..self.options.resources.clone()
        })
    }

    /// Resources with skills and prompt templates of extensions in addition; resources that are named elsewhere come first.
    #[must_use]
    pub fn load_more_resources(
        &self,
        cwd: &Path,
        skills: Vec<ExtraPath>,
        templates: Vec<ExtraPath>,
    ) -> Resources {
        let mut options = ResourceOptions {
            cwd: cwd.to_path_buf(),
            ..self.options.resources.clone()
        };
        options.skill_paths.extend(skills);
        options.template_paths.extend(templates);
        Resources::new(options)
    }

    /// Variables that tools of a session see in addition (pi-1.5-delta.md 6).
    #[must_use]
    pub fn tool_env(
        session_id: &str,
        file: Option<&str>,
        model: Option<(&Model, ThinkingLevel)>,
    ) -> Vec<(OsString, OsString)> {
        let mut env: Vec<(OsString, OsString)> = vec![("PI_SESSION_ID".into(), session_id.into())];
        if let Some(file) = file {
            env.push(("PI_SESSION_FILE".into(), file.into()));
        }
        if let Some((model, level)) = model {
            env.push(("PI_REASONING_LEVEL".into(), level.as_str().into()));
            env.push(("PI_PROVIDER".into(), model.provider.clone().into()));
            env.push(("PI_MODEL".into(), model.id.clone().into()));
        }
        env
    }
}

impl ServerSource for Agent {
    fn servers(&self, cwd: &Path) -> (Vec<Configured>, Vec<String>) {
        // Whether a project may start programs was decided for the agent's own directory.
        let project = (cwd == self.cwd).then_some(cwd);
        mcp::read(&self.mcp, &self.settings, &self.agent_dir, project)
    }

    fn surroundings(&self, cwd: &Path, ask: Arc<dyn AskUser>) -> Surroundings {
        self.mcp_surroundings(cwd, ask)
    }

    fn is_off(&self) -> bool {
        self.mcp.off
    }

    fn activates(&self, tool: &str) -> bool {
        self.options.allows_server_tool(tool)
    }
}

impl Agent {
    /// What the connection to an MCP server needs.
    #[must_use]
    pub fn mcp_surroundings(&self, cwd: &Path, ask: Arc<dyn AskUser>) -> Surroundings {
        Surroundings {
            spawn: Arc::new(self.reaper.clone()),
            env: self.mcp.env.clone(),
            web: Arc::new(mcp::ModelClients(self.client.clone())),
            expand: self.mcp.expand.clone(),
            ask,
            logins: self.mcp.logins.clone(),
            cwd: cwd.to_path_buf(),
            version: self.version.clone(),
        }
    }
}
