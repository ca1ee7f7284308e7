//! A script of commands and expectations in JSON, the steps of the conformance kit. Comparing whole transcripts is
//! that kit's work, not done here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::agent::Agent;
use super::pattern::matches;
use super::process::Signal;
use crate::error::{Error, Result};
use crate::limits::{POLL, STEP_TIMEOUT};
use crate::llm::ScriptedServer;

/// One step. Exactly one of the fields that name an action is given.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Step {
    /// Sends this command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send: Option<Value>,
    /// Sends this text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_raw: Option<String>,
    /// Line end for the two above; LF unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eol: Option<String>,
    /// Waits for the next line that fits this pattern (see [`matches()`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait: Option<Value>,
    /// For `wait`: which of the fitting lines; 1 unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Waits for the response with this id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<String>,
    /// Waits until a reply of the server stands at this gate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_gate: Option<String>,
    /// Opens a gate of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release: Option<String>,
    /// Waits until the server has had so many requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_requests: Option<u64>,
    /// For `wait` and `response`: names for values of the line found, given as paths such as `data.messages.0.id`.
    /// `${name}` stands for the value in the texts of later steps.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub capture: BTreeMap<String, String>,
    /// Writes files below the working directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_files: Option<BTreeMap<PathBuf, String>>,
    /// Waits for a file in the working directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_file: Option<PathBuf>,
    /// Waits so many seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sleep: Option<f64>,
    /// Waits until nothing was printed for so many seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quiet: Option<f64>,
    /// Closes stdin; any value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub close_stdin: Option<Value>,
    /// Sends a signal by name, for example `SIGTERM`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// Waits for the program to end, at most so many seconds (`true`: the usual time).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_exit: Option<Value>,
    /// Seconds this step may take; [`STEP_TIMEOUT`] unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<f64>,
}

/// Runs steps against an agent.
#[derive(Debug, Clone)]
pub struct Runner<'a> {
    /// The agent.
    pub agent: &'a Agent,
    /// The server of the steps `wait_gate`, `release` and `wait_requests`.
    pub server: Option<&'a ScriptedServer>,
    /// Where the steps `wait_file` and `write_files` look; the test's own working directory if none is given.
    pub cwd: Option<PathBuf>,
    /// What `${name}` stands for; `capture` adds to it.
    pub vars: BTreeMap<String, String>,
}

impl<'a> Runner<'a> {
    /// A runner without server, working directory and variables.
    #[must_use]
    pub fn new(agent: &'a Agent) -> Self {
        Self {
            agent,
            server: None,
            cwd: None,
            vars: BTreeMap::new(),
        }
    }

    /// Sets the server.
    #[must_use]
    pub fn server(mut self, server: &'a ScriptedServer) -> Self {
        self.server = Some(server);
        self
    }

    /// Sets the working directory.
    #[must_use]
    pub fn cwd(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.cwd = Some(cwd.into());
        self
    }
}

impl Runner<'_> {
    /// Runs steps given as JSON text, a list.
    ///
    /// # Errors
    /// As [`Self::run`], and if the text is not understood.
    pub fn run_json(&mut self, steps: &str) -> Result<()> {
        self.run(&serde_json::from_str::<Vec<Step>>(steps)?)
    }

    /// Runs the steps in order until one fails.
    ///
    /// # Errors
    /// What the step failed with; [`Error::Step`] if a step makes no sense here.
    pub fn run(&mut self, steps: &[Step]) -> Result<()> {
        steps
            .iter()
            .enumerate()
            .try_for_each(|(i, step)| self.step(i, step))
    }

    fn step(&mut self, index: usize, step: &Step) -> Result<()> {
        let step = &self.expanded(step)?;
        let timeout = step.timeout.map_or(Ok(STEP_TIMEOUT), |s| seconds(index, s))?;
        if self.send(step)? || self.wait(index, step, timeout)? || self.act(index, step, timeout)? {
            return Ok(());
        }
        if let Some(secs) = step.sleep {
            thread::sleep(seconds(index, secs)?);
        } else if let Some(secs) = step.quiet {
            if !self.agent.wait_quiet(seconds(index, secs)?, timeout) {
                return Err(late("quiet output", timeout));
            }
        } else if let Some(file) = &step.wait_file {
            self.wait_file(file, timeout)?;
        } else if let Some(files) = &step.write_files {
            for (file, content) in files {
                std::fs::write(self.path(file), content).map_err(Error::io("write a file"))?;
            }
        } else if step.close_stdin.is_some() {
            self.agent.close_stdin();
        } else if let Some(name) = &step.signal {
            let signal = signal_by_name(name).ok_or_else(|| problem(index, format!("no signal {name:?}")))?;
            self.agent.signal(signal)?;
        } else if let Some(limit) = &step.wait_exit {
            let limit = limit.as_f64().map_or(Ok(timeout), |s| seconds(index, s))?;
            self.agent.wait_exit(limit)?;
        } else {
            return Err(problem(index, "no action".to_owned()));
        }
        Ok(())
    }

    fn send(&self, step: &Step) -> Result<bool> {
        let eol = step.eol.as_deref().unwrap_or("\n");
        let line = match (&step.send, &step.send_raw) {
            (Some(value), _) => format!("{value}{eol}"),
            (None, Some(text)) => format!("{text}{eol}"),
            (None, None) => return Ok(false),
        };
        self.agent.send_raw(line.as_bytes()).map(|()| true)
    }

    fn wait(&mut self, index: usize, step: &Step, timeout: Duration) -> Result<bool> {
        let line = if let Some(pattern) = &step.wait {
            let what = format!("line that fits {pattern}");
            let count = step.count.unwrap_or(1);
            self.agent
                .wait_for(&what, false, count, timeout, |v| matches(pattern, v))?
        } else if let Some(id) = &step.response {
            self.agent.response(id, timeout)?
        } else {
            return Ok(false);
        };
        for (name, path) in &step.capture {
            let pointer = format!("/{}", path.replace('.', "/"));
            let value = line
                .pointer(&pointer)
                .ok_or_else(|| problem(index, format!("no {path} in {line}")))?;
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            self.vars.insert(name.clone(), text);
        }
        Ok(true)
    }

    fn act(&self, index: usize, step: &Step, timeout: Duration) -> Result<bool> {
        if step.wait_gate.is_none() && step.release.is_none() && step.wait_requests.is_none() {
            return Ok(false);
        }
        let server = self
            .server
            .ok_or_else(|| problem(index, "there is no server".to_owned()))?;
        if let Some(gate) = &step.wait_gate {
            server.wait_gate(gate, timeout)?;
        }
        if let Some(gate) = &step.release {
            server.release(gate);
        }
        if let Some(n) = step.wait_requests {
            server.wait_requests(n, timeout)?;
        }
        Ok(true)
    }

    fn path(&self, file: &Path) -> PathBuf {
        self.cwd
            .as_ref()
            .map_or_else(|| file.to_owned(), |cwd| cwd.join(file))
    }

    /// The step with the variables put in.
    fn expanded(&self, step: &Step) -> Result<Step> {
        let mut value = serde_json::to_value(step)?;
        expand(&mut value, &self.vars);
        Ok(serde_json::from_value(value)?)
    }

    fn wait_file(&self, file: &Path, timeout: Duration) -> Result<()> {
        let path = self.path(file);
        let end = Instant::now() + timeout;
        while !path.exists() {
            if Instant::now() >= end {
                return Err(late(&format!("file {}", path.display()), timeout));
            }
            thread::sleep(POLL);
        }
        Ok(())
    }
}

/// Puts the variables into every text of `value`.
fn expand(value: &mut Value, vars: &BTreeMap<String, String>) {
    match value {
        Value::String(text) => {
            for (name, with) in vars {
                *text = text.replace(&format!("${{{name}}}"), with);
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|v| expand(v, vars)),
        Value::Object(map) => map.values_mut().for_each(|v| expand(v, vars)),
        _ => {}
    }
}

fn seconds(index: usize, secs: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(secs).map_err(|e| problem(index, e.to_string()))
}

fn problem(index: usize, problem: String) -> Error {
    Error::Step { index, problem }
}

fn late(what: &str, after: Duration) -> Error {
    Error::Timeout {
        what: what.to_owned(),
        after,
        context: String::new(),
    }
}

fn signal_by_name(name: &str) -> Option<Signal> {
    Some(match name {
        "SIGTERM" => Signal::TERM,
        "SIGINT" => Signal::INT,
        "SIGHUP" => Signal::HUP,
        "SIGQUIT" => Signal::QUIT,
        "SIGKILL" => Signal::KILL,
        "SIGSTOP" => Signal::STOP,
        "SIGCONT" => Signal::CONT,
        "SIGPIPE" => Signal::PIPE,
        _ => return None,
    })
}
