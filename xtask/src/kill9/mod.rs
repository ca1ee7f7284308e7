//! `xtask kill9`: acknowledged messages survive `kill -9`, and no child outlives the agent (GUARANTEES.md).
//!
//! Here: the rounds and the report. One round is in `round`, the checks after it in `check`, kills at each write in `writes`.

mod check;
mod round;
#[cfg(test)]
mod tests;
mod writes;

use std::path::PathBuf;

use anyhow::Result;

use crate::args::Args;
use crate::fuzz::prng::{Prng, fresh_seed};
use crate::out::{complain, say};
use round::Round;

/// How many problems of a round are printed.
const PRINTED: usize = 5;

/// What to run.
#[derive(Debug, Clone)]
pub struct Options {
    /// The program.
    agent: PathBuf,
    /// How many times it is killed.
    rounds: u64,
    /// Kill at every write to the session file instead.
    every_write: bool,
    /// Same seed, same plan; the moment of the kill still depends on the machine.
    seed: u64,
}

impl Options {
    /// Reads the command line.
    ///
    /// # Errors
    /// When `--agent` is missing or a number is none.
    pub fn parse(args: &mut Args) -> Result<Self> {
        Ok(Self {
            agent: std::path::absolute(args.required::<PathBuf>("--agent")?)?,
            rounds: args.option("--rounds")?.unwrap_or(200),
            every_write: args.flag("--every-write"),
            seed: args.option("--seed")?.unwrap_or_else(fresh_seed),
        })
    }
}

/// The chore; false when something acknowledged was lost or something was left behind.
///
/// # Errors
/// When the agent cannot be run at all.
pub fn run(options: &Options) -> Result<bool> {
    if options.every_write {
        return at_every_write(options);
    }
    say(&format!(
        "kill9: {} rounds, --seed {}",
        options.rounds, options.seed
    ));
    let mut random = Prng::new(options.seed);
    let mut total = Round::default();
    let mut failed = 0;
    for number in 0..options.rounds {
        let round = round::run(&options.agent, &mut random)?;
        for problem in round.problems.iter().take(PRINTED) {
            complain(&format!("round {number}: {problem}"));
        }
        failed += u64::from(!round.problems.is_empty());
        total.messages += round.messages;
        total.names += round.names;
        total.torn += round.torn;
        total.children += round.children;
    }
    say(&format!(
        "kill9: {} rounds, {} messages and {} names acknowledged, {} torn last lines, {} children running at the kill; \
         {failed} rounds failed",
        options.rounds, total.messages, total.names, total.torn, total.children
    ));
    Ok(failed == 0)
}

fn at_every_write(options: &Options) -> Result<bool> {
    if !writes::can_run() {
        say("skipped: strace is not installed, which kills an agent at a write");
        return Ok(true);
    }
    let mut total = Round::default();
    let mut failed = 0;
    let kills = writes::run(&options.agent, |write, round| {
        for problem in round.problems.iter().take(PRINTED) {
            complain(&format!("write {write}: {problem}"));
        }
        failed += u64::from(!round.problems.is_empty());
        total.messages += round.messages;
        total.names += round.names;
        total.torn += round.torn;
    })?;
    say(&format!(
        "kill9: killed at each of {kills} writes, {} messages and {} names acknowledged, {} torn last lines; {failed} kills failed",
        total.messages, total.names, total.torn
    ));
    Ok(failed == 0 && kills > 0)
}
