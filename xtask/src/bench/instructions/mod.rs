//! `xtask instructions`: a regression guard. It counts the instructions of fixed work and compares them with
//! `bench/instructions.json`.
//!
//! Counts of valgrind do not depend on the speed or the load of a machine. They depend on the compiler, the C library and the CPU
//! features that both select by; the file names what it was recorded with. Here: the command. `paths` does the work, `valgrind`
//! counts, `record` is the file.

mod paths;
mod record;
#[cfg(test)]
mod tests;
mod valgrind;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::args::Args;
use crate::out::{complain, say};
use paths::{PATHS, Work};
use record::{Counts, Record, Verdict};

/// The file of counts, from the root of the repository.
const FILE: &str = "bench/instructions.json";
/// Runs of a path that is stored, and most runs of a path that seems to have grown.
const MOST_RUNS: usize = 3;

/// What to count, and what to do with the counts.
#[derive(Debug, Clone)]
pub struct CountOptions {
    agent: PathBuf,
    /// Paths to count; all when empty.
    only: Vec<String>,
    /// Why the stored counts change; `None` compares with them.
    reason: Option<String>,
    /// Least number of runs of each path.
    runs: usize,
}

impl CountOptions {
    /// Reads `[--agent PATH] [--only NAME] [--runs N] [--write REASON]`.
    ///
    /// # Errors
    /// When a path is unknown or the reason is empty.
    pub fn parse(args: &mut Args, root: &Path) -> Result<Self> {
        let agent: Option<PathBuf> = args.option("--agent")?;
        let mut only = Vec::new();
        while let Some(name) = args.option::<String>("--only")? {
            only.extend(name.split(',').map(str::to_owned));
        }
        if let Some(unknown) = only
            .iter()
            .find(|name| !PATHS.iter().any(|path| path.name == name.as_str()))
        {
            bail!(
                "there is no path called {unknown}; there are {}",
                PATHS.map(|path| path.name).join(", ")
            );
        }
        let reason: Option<String> = args.option("--write")?;
        if reason.as_ref().is_some_and(|reason| reason.trim().is_empty()) {
            bail!("--write needs the reason why counts change");
        }
        Ok(Self {
            agent: std::path::absolute(agent.unwrap_or_else(|| root.join("target/release/pinion")))?,
            only,
            reason,
            runs: args.option("--runs")?.unwrap_or(1).max(1),
        })
    }
}

/// Counts and compares, or counts and writes; false when a count grew too much.
///
/// # Errors
/// When the program cannot be run or the file cannot be read.
pub fn run(root: &Path, options: &CountOptions) -> Result<bool> {
    let Some(version) = valgrind::version() else {
        say("skipped: valgrind is not installed; instructions were not counted");
        return Ok(true);
    };
    let file = root.join(FILE);
    let mut record = Record::read(&file)?;
    let environment = valgrind::environment(&version)?;
    if let Some(reason) = &options.reason {
        record.add(
            environment,
            reason,
            count(options, MOST_RUNS, &Record::default())?,
        );
        record.write(&file)?;
        say(&format!("written to {FILE}: {reason}"));
        return Ok(true);
    }
    let holds = judge(&record, &count(options, options.runs, &record)?);
    if let Some(other) = record.recorded_elsewhere(&environment) {
        // Another C library or compiler changes counts without a change of the code.
        say(&format!(
            "skipped: the stored counts are of {other}, this machine has {environment}; they are not enforced here"
        ));
        return Ok(true);
    }
    Ok(holds)
}

/// Counts every path and keeps the least count of its runs. A path that grew runs again: on a busy machine, a process that waits for
/// another one polls more often, which only adds instructions.
fn count(options: &CountOptions, runs: usize, record: &Record) -> Result<Counts> {
    let mut counts = Counts::new();
    for path in PATHS {
        let name = path.name;
        if !options.only.is_empty() && !options.only.iter().any(|only| only == name) {
            continue;
        }
        let (mut least, mut most) = (u64::MAX, 0);
        for run in 0..runs.max(MOST_RUNS) {
            if run >= runs && record.judge(name, path.tolerance, least).1 != Verdict::Grew {
                break;
            }
            let found = measure(&options.agent, path.work)?;
            (least, most) = (least.min(found), most.max(found));
        }
        complain(&format!(
            "{name}: {least} instructions, spread {:.2} %",
            record::percent(least, most)
        ));
        counts.insert(name.to_owned(), least);
    }
    Ok(counts)
}

fn measure(agent: &Path, work: Work) -> Result<u64> {
    let logs = tempfile::tempdir()?;
    let process = work(&valgrind::subject(agent, logs.path())?)?;
    valgrind::count(logs.path(), process)
}

/// Prints the comparison; false when it fails.
fn judge(record: &Record, counted: &Counts) -> bool {
    let mut holds = true;
    for (name, &count) in counted {
        let tolerance = PATHS
            .iter()
            .find(|path| path.name == name)
            .map_or(0.0, |path| path.tolerance);
        let (stored, verdict) = record.judge(name, tolerance, count);
        let change = stored.map_or_else(
            || "no stored count".to_owned(),
            |stored| format!("{stored} stored, {:+.2} %", record::percent(stored, count)),
        );
        let word = match verdict {
            Verdict::Holds => "",
            Verdict::Fell => "  fewer: --write REASON keeps it so",
            Verdict::Grew => "  FAILED: grew too much",
            Verdict::Unknown => "  FAILED",
        };
        holds &= matches!(verdict, Verdict::Holds | Verdict::Fell);
        say(&format!("{name:<28}{count:>14}  {change}{word}"));
    }
    if !holds {
        say(
            "FAILED: a count grew too much or has none stored. Make the path cheaper, or record why it costs more: \
             cargo xtask instructions --write REASON",
        );
    }
    holds
}
