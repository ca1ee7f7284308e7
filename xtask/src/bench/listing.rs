//! Listing thousands of sessions: without a cache, again, and in a new process.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testkit::driver::Agent;

use super::limits::{LIST_MS, LISTED, LISTED_AGE, LISTED_BYTES, LISTED_FOLDERS, PATIENCE, RUNS};
use super::report::{Row, median};
use super::runner::{Runner, Stage, mb};
use super::subject::Subject;
use crate::sample::{Plan, Sample};

/// Files of an agent directory that are no cache.
const KEPT: [&str; 3] = ["models.json", "settings.json", "auth.json"];

/// Times, CPU and output of one kind of listing.
#[derive(Default)]
struct Listings {
    wall: Vec<f64>,
    cpu: Vec<f64>,
    out: Vec<f64>,
}

/// Measures the group.
pub(super) fn measure(subject: &Subject) -> Result<Vec<Row>> {
    let stage = Stage::new()?;
    let folder = session_folder(subject, &stage)?;
    let files = fill(&stage, &folder)?;
    let mut rows = scope(subject, &stage, "cwd", files.len())?;
    spread(&folder, &files)?;
    rows.extend(scope(subject, &stage, "all", files.len())?);
    Ok(rows)
}

/// Where the program keeps the sessions of the working directory.
fn session_folder(subject: &Subject, stage: &Stage) -> Result<PathBuf> {
    let agent = Agent::spawn(stage.workspace.agent(&subject.program).args(&subject.args))?;
    let state = agent.call(&json!({"id": "state", "type": "get_state"}), PATIENCE)?;
    let file = state.pointer("/data/sessionFile").and_then(Value::as_str);
    let file = Path::new(file.context("get_state names no session file")?);
    Ok(file
        .parent()
        .context("the session file lies nowhere")?
        .to_path_buf())
}

/// Writes the sessions.
fn fill(stage: &Stage, folder: &Path) -> Result<Vec<PathBuf>> {
    fs::create_dir_all(folder)?;
    let cwd = stage.workspace.cwd().to_string_lossy().into_owned();
    let old = SystemTime::now() - LISTED_AGE;
    let mut files = Vec::new();
    for (count, entries, bytes) in LISTED {
        for _ in 0..count {
            let sample = Sample::new(&Plan {
                entries,
                bytes,
                seed: files.len() as u64,
                cwd: cwd.clone(),
                compaction: false,
            });
            let file = folder.join(sample.file_name());
            fs::write(&file, sample.text())?;
            // Nearly all of a user's sessions are old; a cache may distrust what changed a moment ago.
            fs::File::options().append(true).open(&file)?.set_modified(old)?;
            files.push(file);
        }
    }
    Ok(files)
}

/// Moves the sessions to several folders next to the first one.
fn spread(folder: &Path, files: &[PathBuf]) -> Result<()> {
    let root = folder.parent().context("the sessions lie nowhere")?;
    for (number, file) in files.iter().enumerate() {
        let target = root.join(format!("--project-{}--", number % LISTED_FOLDERS));
        fs::create_dir_all(&target)?;
        fs::rename(
            file,
            target.join(file.file_name().context("a file without a name")?),
        )?;
    }
    Ok(())
}

fn scope(subject: &Subject, stage: &Stage, scope: &'static str, files: usize) -> Result<Vec<Row>> {
    let (mut first, mut again, mut anew) = (Listings::default(), Listings::default(), Listings::default());
    for _ in 0..RUNS {
        drop_caches(stage)?;
        let mut agent = stage.start(subject)?;
        agent.call("get_state", None)?;
        first.take(&mut agent, scope, files)?;
        again.take(&mut agent, scope, files)?;
        drop(agent);
        let mut agent = stage.start(subject)?;
        agent.call("get_state", None)?;
        anew.take(&mut agent, scope, files)?;
    }
    let title = |what: &str| format!("{scope}, {files} sessions, {what}");
    Ok(vec![
        first.row(
            &title("without a cache: time"),
            Some(LIST_MS.0),
            "; files in the page cache",
        ),
        again.row(&title("again: time"), Some(LIST_MS.1), ""),
        anew.row(&title("in a new process: time"), None, ""),
    ])
}

impl Listings {
    fn take(&mut self, agent: &mut Runner, scope: &str, files: usize) -> Result<()> {
        let mut wall = 0.0;
        let cost = agent.cost(|agent| {
            let started = Instant::now();
            let answer = agent.ask(json!({"type": "list_sessions", "scope": scope}))?;
            wall = answer.at.duration_since(started).as_secs_f64() * 1e3;
            Ok(())
        })?;
        ensure!(
            cost.bytes >= LISTED_BYTES * files as u64,
            "list_sessions printed only {} bytes for {files} sessions",
            cost.bytes
        );
        self.wall.push(wall);
        self.cpu.push(cost.cpu_ms);
        self.out.push(mb(cost.bytes));
        Ok(())
    }

    fn row(self, figure: &str, target: Option<f64>, remark: &str) -> Row {
        let (cpu, out) = (median(&self.cpu), median(&self.out));
        Row::new("listing", figure, "ms", self.wall)
            .target(target)
            .note(&format!("CPU {cpu:.1} ms, {out:.1} MB printed{remark}"))
    }
}

/// Deletes the folders in which a program may have cached a listing; keeps sessions and settings.
fn drop_caches(stage: &Stage) -> Result<()> {
    let home = stage.workspace.home();
    for folder in [home.join(".cache"), home.join(".local")] {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
    }
    clean(&stage.workspace.agent_dir())
}

fn clean(folder: &Path) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = name.unwrap_or_default();
        if path.is_dir() {
            clean(&path)?;
        } else if !name.ends_with(".jsonl") && !KEPT.contains(&name.as_str()) {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}
