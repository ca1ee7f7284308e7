//! `xtask kill9`: acknowledged messages survive `kill -9`, and no child outlives the agent (GUARANTEES.md).
//!
//! Here: the rounds and the report. One round is in `round`, the checks after it in `check`.

mod check;
mod round;
#[cfg(test)]
mod tests;

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
            seed: args.option("--seed")?.unwrap_or_else(fresh_seed),
        })
    }
}

/// The chore; false when something acknowledged was lost or something was left behind.
///
/// # Errors
/// When the agent cannot be run at all.
pub fn run(options: &Options) -> Result<bool> {
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
