//! An agent without network, a core and a driver, each without a session around it. The model plays the replies of a test.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use config::Choice;
use config::settings::{Settings, SettingsSource};
use config::trust::Trust;
use llm::{CacheRetention, Client, ClientConfig};
use models::{Registry, Sources, StartRequest};
use process::Reaper;
use serde_json::Value;
use tokio::sync::mpsc;
use tools::{Toolbox, ToolsConfig};

use super::super::driver::Driver;
use super::super::extensions::Extensions;
use super::super::session_core::{Beginning, SessionCore};
use super::super::storage::Storage;
use super::super::tool_calls::OpenSubagent;
use super::super::wakeup;
use super::log;
use crate::extensions::{ExtensionProcesses, Launch};
use crate::factory::{Agent, AgentFactory, Options, PromptCaching, SessionHome, ToolFilter};
use crate::limits;
use crate::mcp::McpSetup;
use crate::outbox::{Outbox, Outgoing, outbox};

/// Makes the same agent again, with the faults of missing guards.
#[derive(Clone)]
struct Again {
    dir: std::path::PathBuf,
    settings: String,
}

impl AgentFactory for Again {
    fn make(&self, cwd: &Path, guards: &[String]) -> Agent {
        let mut agent = agent(&self.dir, cwd, &self.settings);
        if !guards.is_empty() {
            agent.settings.faults.extend_from_slice(guards);
            agent.settings.lock_down();
        }
        agent
    }
}

/// An agent that reads `dir`, with these settings.
fn agent(dir: &Path, cwd: &Path, settings: &str) -> Agent {
    std::fs::write(dir.join("settings.json"), settings).unwrap();
    let trust = Arc::new(Trust::new(dir, Some(false)));
    let (settings_read, notes) = Settings::load(&SettingsSource {
        agent_dir: dir,
        cwd,
        home: None,
        trust: &trust,
        tools: &[],
        is_omp: false,
    });
    assert!(notes.is_empty(), "{notes:?}");
    let lookup = |_: &str| None;
    let registry = Registry::new(Sources {
        agent_dir: dir.to_owned(),
        env: Arc::new(lookup),
        run: Arc::new(|_| None),
        local: models::local::LocalSources::default(),
        is_omp: false,
    });
    let client = Client::new(ClientConfig {
        script: Some(dir.join("script.json")),
        word_delay: Duration::ZERO,
        ..ClientConfig::default()
    });
    let launch = Launch {
        env: Vec::new(),
        path: std::ffi::OsString::new(),
        runtime: None,
        main: None,
        program: None,
        agent_dir: dir.to_owned(),
        cwd: cwd.to_owned(),
        version: "0.0.0".to_owned(),
        memory: None,
        silence: None,
        print: Arc::new(|_| {}),
    };
    let options = Options {
        start: StartRequest {
            model: Some("offline/script".to_owned()),
            ..StartRequest::default()
        },
        tools: vec!["read".to_owned(), "write".to_owned()],
        sessions: SessionHome::Memory,
        tool_filter: ToolFilter::default(),
        resources: config::resources::ResourceOptions::new(dir, cwd, None),
        permission_mode: None,
        durability: None,
        checkpoints: None,
        is_attended: true,
        sandbox: None,
        prompt_caching: PromptCaching {
            retention: CacheRetention::None,
            session_id: None,
        },
        extensions: Choice::default(),
        offline: true,
        limits: wire::RunLimits::default(),
        dialect: wire::Dialect::default(),
    };
    Agent {
        version: "0.0.0".to_owned(),
        agent_dir: dir.to_owned(),
        cwd: cwd.to_owned(),
        home: cwd.to_owned(),
        settings: settings_read,
        options,
        registry: Arc::new(registry),
        client,
        toolbox: Toolbox::new(ToolsConfig::default(), Reaper::direct()),
        reaper: Reaper::direct(),
        extensions: Arc::new(ExtensionProcesses::new(launch, Reaper::direct())),
        mcp: McpSetup {
            off: true,
            files: Vec::new(),
            is_omp: false,
            expand: ::mcp::Expander {
                lookup: Arc::new(lookup),
                run: Arc::new(|_| None),
                home: None,
            },
            env: Vec::new(),
            tmp_dir: dir.to_owned(),
            boundaries: files::Boundaries::default(),
            logins: crate::mcp::logins(dir),
        },
        lender: None,
        trust,
        inputs: None,
        maker: Arc::new(Again {
            dir: dir.to_owned(),
            settings: settings.to_owned(),
        }),
    }
}

/// No test opens sub-agents.
fn no_subagents() -> mpsc::Sender<OpenSubagent> {
    mpsc::channel(1).0
}

/// A core, and what it sends.
pub(super) struct CoreStage {
    pub(super) core: SessionCore,
    pub(super) sent: mpsc::Receiver<Outgoing>,
    pub(super) warnings: Vec<String>,
    pub(super) outbox: Outbox,
    pub(super) dir: tempfile::TempDir,
}

impl CoreStage {
    pub(super) fn new() -> Self {
        Self::with(&[], "{}")
    }

    /// A core whose model gives these replies, with these settings.
    pub(super) fn with(replies: &[Value], settings: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let cwd = dir.path().join("work");
        std::fs::create_dir(&cwd).unwrap();
        std::fs::write(
            dir.path().join("script.json"),
            serde_json::to_vec(replies).unwrap(),
        )
        .unwrap();
        let agent = Arc::new(agent(dir.path(), &cwd, settings));
        let (outbox, sent) = outbox(limits::OUTBOX);
        let log = Storage::new(log(Some(&dir.path().join("session.jsonl"))), agent.durability());
        let context = log.context(None);
        let beginning = Beginning {
            start: agent.choose(&context, true).unwrap(),
            log,
            cwd,
            context,
        };
        let (core, warnings) = SessionCore::open(agent, &outbox, beginning, no_subagents);
        Self {
            core,
            sent,
            warnings,
            outbox,
            dir,
        }
    }
}

/// A driver, and what it sends.
pub(super) struct DriverStage {
    pub(super) driver: Driver,
    pub(super) sent: mpsc::Receiver<Outgoing>,
    pub(super) dir: tempfile::TempDir,
}

impl DriverStage {
    /// A driver whose model gives these replies.
    pub(super) fn new(replies: &[Value]) -> Self {
        Self::with(replies, "{}")
    }

    /// The same, with these settings.
    pub(super) fn with(replies: &[Value], settings: &str) -> Self {
        let CoreStage { core, sent, dir, .. } = CoreStage::with(replies, settings);
        let hooks = crate::hooks::Hooks::new(config::hooks::Finding::default());
        Self {
            driver: Driver::new(core, Extensions::new(Vec::new(), hooks)),
            sent,
            dir,
        }
    }

    /// Gives the machine a prompt.
    pub(super) async fn prompt(&mut self, text: &str) {
        let prompt = agent::Input::Prompt {
            messages: vec![super::user(text)],
            full: false,
            limits: None,
            wants_result: false,
        };
        self.driver.drive(prompt).await;
    }

    /// Passes on what the model, the tools, the summaries and the timer report until the machine is idle.
    pub(super) async fn settle(&mut self) {
        let settled = async {
            while !self.driver.core.machine.is_idle() {
                let Driver { turn, summaries, .. } = &mut self.driver;
                tokio::select! {
                    events = wakeup::next_events(&mut turn.request) => self.driver.on_model(events).await,
                    report = turn.calls.next() => self.driver.on_call(report).await,
                    () = wakeup::due(&mut turn.retry_timer) => self.driver.drive(agent::Input::RetryDue).await,
                    summarised = summaries.next() => {
                        if let super::super::summaries::Summarised::Compaction(outcome) = summaries.accept(summarised) {
                            super::super::compaction::compacted(&mut self.driver, outcome).await;
                        }
                    }
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(10), settled)
            .await
            .expect("the machine settles");
    }

    /// Waits for events of the model. They must come.
    pub(super) async fn next_events(&mut self) -> Vec<llm::ModelEvent> {
        let next = wakeup::next_events(&mut self.driver.turn.request);
        let next = tokio::time::timeout(Duration::from_secs(10), next);
        next.await.expect("events of the model")
    }

    /// The types of the events that were sent.
    pub(super) fn types(&mut self) -> Vec<String> {
        let events = super::events(&mut self.sent);
        let kind = |event: &Value| event["type"].as_str().unwrap().to_owned();
        events.iter().map(kind).collect()
    }

    /// The types of the entries in the file.
    pub(super) fn stored(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.dir.path().join("session.jsonl")).unwrap_or_default();
        let kind = |line: &str| {
            let line: Value = serde_json::from_str(line).unwrap();
            match line["message"]["role"].as_str() {
                Some(role) => role.to_owned(),
                None => line["type"].as_str().unwrap().to_owned(),
            }
        };
        text.lines().map(kind).collect()
    }
}
