//! One process that is aborted again and again, and one round: something long is begun, aborted, and seen to end.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use testkit::Error;
use testkit::driver::{Agent, processes_marked};
use testkit::llm::ScriptedServer;
use testkit::workspace::Workspace;

use super::moment::Moment;
use super::watch::Watch;
use crate::fuzz::prng::Prng;

/// How long anything may take before the process is given up.
const STUCK: Duration = Duration::from_secs(30);
/// Pause between two looks at whether helper processes have ended.
const POLL: Duration = Duration::from_millis(20);
/// Longest wait between the beginning of a moment and the abort, us.
const LATEST_US: usize = 40_000;
/// Longest pause after the answer in which nothing may come, us.
const PAUSE_US: usize = 3_000;
/// How long the process may say something after its last round.
const LAST_PAUSE: Duration = Duration::from_millis(200);
/// Percentage of rounds before the first delta in which the abort lies in the pipe right behind the prompt.
const AT_ONCE: usize = 25;
/// Percentage of rounds after which a new session begins.
const FRESH: usize = 10;
/// Arguments of every agent.
const ARGS: [&str; 6] = [
    "--mode",
    "rpc",
    "--provider",
    "mock-anthropic",
    "--model",
    "claude-mock",
];

/// Times of an abort, from just before it was written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Measured {
    /// Until its answer was read.
    pub(super) answered: Duration,
    /// Time until the end of the aborted work was read; none if it had ended by itself.
    pub(super) ended: Option<Duration>,
    /// The command that ran; empty if none did.
    pub(super) command: &'static str,
}

/// A running agent with its model.
pub(super) struct Process {
    server: ScriptedServer,
    // Keeps the folders while the agent runs.
    _workspace: Workspace,
    agent: Agent,
    watch: Watch,
    serial: u64,
    usable: bool,
}

impl Process {
    /// Starts an agent.
    ///
    /// # Errors
    /// When the agent or the server cannot be started.
    pub(super) fn start(program: &Path) -> Result<Self> {
        let server = ScriptedServer::start([])?;
        let workspace = Workspace::new(&server.url())?;
        // The short conversation of a round can be compacted; a retry waits longer than any round.
        workspace.write_settings(&json!({
            "compaction": {"keepRecentTokens": 1},
            "retry": {"baseDelayMs": 20_000, "provider": {"maxRetries": 0}},
        }))?;
        let agent = Agent::spawn(workspace.agent(program).args(ARGS))?;
        let mut process = Self {
            server,
            _workspace: workspace,
            agent,
            watch: Watch::default(),
            serial: 0,
            usable: true,
        };
        process
            .ask("get_state", &json!({}))?
            .context("the agent says nothing")?;
        Ok(process)
    }

    /// Returns true if another round can be played.
    pub(super) fn is_usable(&self) -> bool {
        self.usable
    }

    /// Returns the problems since the last call.
    pub(super) fn problems(&mut self, place: &str) -> Vec<String> {
        let problems = self.watch.take_problems().into_iter();
        problems.map(|problem| format!("{place}: {problem}")).collect()
    }

    /// Plays a round; nothing is measured when the agent got stuck, which is among the problems then.
    ///
    /// # Errors
    /// When the agent cannot be talked to.
    pub(super) fn round(&mut self, moment: Moment, random: &mut Prng) -> Result<Option<Measured>> {
        let by_itself = moment == Moment::Compaction && random.chance(50);
        let command = moment.command(random);
        self.server.set_rule(moment.rule(command, by_itself, random));
        if moment == Moment::Compaction && !by_itself {
            self.send("prompt", &json!({"message": "Something to compact."}))?;
            if !self.until("the end of a run", |line| is_type(line, "agent_settled"))? {
                return Ok(None);
            }
            self.send("compact", &json!({}))?;
        } else {
            self.send("prompt", &json!({"message": "Go on."}))?;
        }
        let at_once = moment == Moment::BeforeDelta && random.chance(AT_ONCE);
        if !at_once {
            if !self.until(moment.name(), |line| moment.begins(line))? {
                return Ok(None);
            }
            thread::sleep(Duration::from_micros(random.below(LATEST_US) as u64));
        }
        let Some(mut measured) = self.abort(moment)? else {
            return Ok(None);
        };
        measured.command = command;
        thread::sleep(Duration::from_micros(random.below(PAUSE_US) as u64));
        self.expect_quiet()?;
        if self.usable && (moment == Moment::Compaction || random.chance(FRESH)) {
            self.ask("new_session", &json!({}))?;
        }
        Ok(Some(measured))
    }

    /// Aborts and waits for the answer.
    fn abort(&mut self, moment: Moment) -> Result<Option<Measured>> {
        let begun = Instant::now();
        let id = self.send("abort", &json!({}))?;
        let mut ended = None;
        while let Some(line) = self.next("an answer to abort")? {
            if ended.is_none() && moment.ends(&line) {
                ended = Some(begun.elapsed());
            }
            if answers(&line, &id) {
                let answered = begun.elapsed();
                self.watch.expect_idle("when abort is answered");
                return Ok(Some(Measured {
                    answered,
                    ended,
                    command: "",
                }));
            }
        }
        Ok(None)
    }

    /// After the answer to an abort only answers may come.
    fn expect_quiet(&mut self) -> Result<()> {
        let id = self.send("get_state", &json!({}))?;
        while let Some(line) = self.next("get_state")? {
            if answers(&line, &id) {
                for flag in ["isStreaming", "isCompacting", "isRetrying"] {
                    if line.pointer(&format!("/data/{flag}")) == Some(&Value::Bool(true)) {
                        self.complain(format!("get_state says {flag} after abort was answered"));
                    }
                }
                self.watch.expect_answered();
                return Ok(());
            }
            if !is_type(&line, "response") {
                self.complain(format!("after abort was answered came {}", head(&line)));
            }
        }
        Ok(())
    }

    /// Ends the process; what it still says must be in order, and nothing may be left running.
    pub(super) fn finish(mut self, place: &str) -> Vec<String> {
        if self.usable {
            thread::sleep(LAST_PAUSE);
            self.agent.close_stdin();
            while let Ok(line) = self.agent.wait(|_| true, STUCK) {
                self.watch.see(&line);
                self.complain(format!("after the last round came {}", head(&line)));
            }
            match self.agent.wait_exit(STUCK) {
                Ok(status) if status.success() => {}
                Ok(status) => self.complain(format!("the agent ended with {status}")),
                Err(error) => self.complain(format!("the agent does not end: {error}")),
            }
            // Its helper processes notice its end a moment later.
            let end = Instant::now() + STUCK;
            while !processes_marked(self.agent.mark()).is_empty() && Instant::now() < end {
                thread::sleep(POLL);
            }
            for pid in processes_marked(self.agent.mark()) {
                self.complain(format!("process {pid} outlives the agent"));
            }
        }
        self.problems(place)
    }

    /// Sends a command and waits for its answer; none when the agent got stuck.
    fn ask(&mut self, command: &str, fields: &Value) -> Result<Option<()>> {
        let id = self.send(command, fields)?;
        let answered = self.until(command, |line| answers(line, &id))?;
        Ok(answered.then_some(()))
    }

    /// Sends a command; gives back its id.
    fn send(&mut self, command: &str, fields: &Value) -> Result<String> {
        self.serial += 1;
        let id = format!("{command}{}", self.serial);
        let mut line = json!({"id": id, "type": command});
        for (name, value) in fields.as_object().into_iter().flatten() {
            if let Some(object) = line.as_object_mut() {
                object.insert(name.clone(), value.clone());
            }
        }
        self.watch.asked(&id, matches!(command, "prompt" | "compact"));
        self.agent.send(&line)?;
        Ok(id)
    }

    /// Reads until a line fits; false when the agent got stuck.
    fn until(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Result<bool> {
        while let Some(line) = self.next(what)? {
            if fits(&line) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The next line; none when it does not come, which is a problem.
    fn next(&mut self, what: &str) -> Result<Option<Value>> {
        match self.agent.wait(|_| true, STUCK) {
            Ok(line) => {
                self.watch.see(&line);
                Ok(Some(line))
            }
            Err(error @ (Error::Timeout { .. } | Error::Ended { .. })) => {
                self.usable = false;
                self.complain(format!("waited for {what}: {error}"));
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn complain(&mut self, problem: String) {
        self.watch.add(problem);
    }
}

fn is_type(line: &Value, kind: &str) -> bool {
    line.get("type").is_some_and(|found| found == kind)
}

fn answers(line: &Value, id: &str) -> bool {
    is_type(line, "response") && line.get("id").is_some_and(|found| found == id)
}

fn head(line: &Value) -> String {
    line.to_string().chars().take(160).collect()
}
