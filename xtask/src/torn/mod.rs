//! `xtask torn`: a session file that was cut or has wrong bytes still opens, keeps every whole entry, says once that it is
//! damaged, and can be appended to (issue 3).
//!
//! Here: the options, the cases, the report. `damage` changes a file, `check` judges the result.

mod check;
mod damage;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use anyhow::Result;
use testkit::workspace::Workspace;

use crate::args::Args;
use crate::fuzz::prng::{Prng, fresh_seed};
use crate::out::{complain, say};
use crate::sample::{Plan, Sample};
use damage::Case;

/// Entries of the session, and its size.
const SESSION: (usize, usize) = (60, 50_000);
/// Entries at the end that are cut at every byte.
const CUT_ENTRIES: usize = 3;
/// Percentage of the wrong bytes that lie in the header.
const IN_HEADER: usize = 15;
/// How many problems are printed.
const PRINTED: usize = 20;
/// An address where nothing listens: no model is asked.
const NO_SERVER: &str = "http://127.0.0.1:9";

/// What to run.
#[derive(Debug, Clone)]
pub struct Options {
    /// The program.
    agent: PathBuf,
    /// How many files with a wrong byte.
    flips: u64,
    /// Cut at every so many bytes; 1 for each of them.
    step: usize,
    /// Same seed, same session and same wrong bytes.
    seed: u64,
    /// The folder where files that failed are left.
    keep: Option<PathBuf>,
}

impl Options {
    /// Reads the command line.
    ///
    /// # Errors
    /// When `--agent` is missing or a number is none.
    pub fn parse(args: &mut Args) -> Result<Self> {
        Ok(Self {
            agent: std::path::absolute(args.required::<PathBuf>("--agent")?)?,
            flips: args.option("--flips")?.unwrap_or(300),
            step: args.option("--step")?.unwrap_or(1).max(1),
            seed: args.option("--seed")?.unwrap_or_else(fresh_seed),
            keep: args.option("--keep")?,
        })
    }
}

/// The chore; false when a file could not be used as it must.
///
/// # Errors
/// When the agent cannot be run at all.
pub fn run(options: &Options) -> Result<bool> {
    say(&format!(
        "torn: {} wrong bytes, cuts at every {} bytes, --seed {}",
        options.flips, options.step, options.seed
    ));
    let workspace = Workspace::new(NO_SERVER)?;
    let sample = session(&workspace, options.seed);
    let (mut failed, mut told, mut refused) = (0_usize, 0_u64, 0_u64);
    let cases = cases(&sample, options);
    for (number, case) in cases.iter().enumerate() {
        let verdict = check::check(&options.agent, &workspace, &sample, case)?;
        told += u64::from(verdict.told);
        refused += u64::from(verdict.refused);
        if let Some(problem) = verdict.problems.first() {
            failed += 1;
            if failed <= PRINTED {
                let more = verdict.problems.len() - 1;
                complain(&format!(
                    "case {number}, {}: {problem} (and {more} more)",
                    case.name
                ));
            }
            keep(options, number, case)?;
        }
    }
    say(&format!(
        "torn: {} files, {told} of them reported as damaged, {refused} refused since their folder is missing; {failed} files \
         failed",
        cases.len()
    ));
    Ok(failed == 0)
}

/// Leaves the file of a case that failed where it can be looked at.
fn keep(options: &Options, number: usize, case: &Case) -> Result<()> {
    if let Some(folder) = &options.keep {
        std::fs::create_dir_all(folder)?;
        std::fs::write(folder.join(format!("{number}.jsonl")), &case.bytes)?;
    }
    Ok(())
}

fn session(workspace: &Workspace, seed: u64) -> Sample {
    Sample::new(&Plan {
        entries: SESSION.0,
        bytes: SESSION.1,
        seed,
        cwd: workspace.cwd().to_string_lossy().into_owned(),
        compaction: true,
    })
}

/// Every file that is to be opened.
fn cases(sample: &Sample, options: &Options) -> Vec<Case> {
    let mut random = Prng::new(options.seed);
    let mut cases = damage::cuts(&sample.lines, CUT_ENTRIES, options.step);
    let flips = (0..options.flips).map(|_| {
        let in_header = random.chance(IN_HEADER);
        damage::flip(&sample.lines, in_header, &mut random)
    });
    cases.extend(flips);
    cases
}
