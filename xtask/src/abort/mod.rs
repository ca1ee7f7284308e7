//! `xtask abort`: an abort at any moment is answered at once, ends what runs, and nothing of that run comes after its end
//! (issue 3).
//!
//! Here: the options, the processes one after another, the report. A round is in `round`, the moments are made in `moment`,
//! the order of events is watched in `watch`, times are summed up in `times`.

mod moment;
mod round;
#[cfg(test)]
mod tests;
mod times;
mod watch;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;

use crate::args::Args;
use crate::fuzz::prng::{Prng, fresh_seed};
use crate::out::{complain, say};
use moment::Moment;
use round::{Measured, Process};
use times::Times;

/// Aborts per process.
const PER_PROCESS: u64 = 50;
/// Until an abort is answered, and until the end of its run is visible, at the 99th percentile.
const LIMITS: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(250));
/// How many of the slowest aborts are printed.
const SLOWEST: usize = 5;
/// How many problems are printed.
const PRINTED: usize = 20;

/// What to run.
#[derive(Debug, Clone)]
pub struct Options {
    /// The program.
    agent: PathBuf,
    /// How many aborts.
    rounds: u64,
    /// Same seed, same moments; what happens then still depends on the machine.
    seed: u64,
    /// Show times without judging them, for machines with other work.
    untimed: bool,
    /// The only moment to look at.
    only: Option<Moment>,
}

impl Options {
    /// Reads the command line.
    ///
    /// # Errors
    /// When `--agent` is missing, a number is none, or a moment is unknown.
    pub fn parse(args: &mut Args) -> Result<Self> {
        let only = args.option::<String>("--only")?;
        Ok(Self {
            agent: std::path::absolute(args.required::<PathBuf>("--agent")?)?,
            rounds: args.option("--rounds")?.unwrap_or(1_000),
            seed: args.option("--seed")?.unwrap_or_else(fresh_seed),
            untimed: args.flag("--untimed"),
            only: only.as_deref().map(Moment::named).transpose()?,
        })
    }
}

/// The chore; false when a promise was broken or the times are too long.
///
/// # Errors
/// When the agent cannot be run at all.
pub fn run(options: &Options) -> Result<bool> {
    say(&format!(
        "abort: {} rounds, --seed {}",
        options.rounds, options.seed
    ));
    let mut random = Prng::new(options.seed);
    let mut found: BTreeMap<Moment, Vec<Measured>> = BTreeMap::new();
    let mut problems = Vec::new();
    let mut done = 0;
    while done < options.rounds {
        let mut process = Process::start(&options.agent)?;
        let until = options.rounds.min(done + PER_PROCESS);
        while done < until && process.is_usable() {
            let moment = options.only.unwrap_or_else(|| Moment::random(&mut random));
            if let Some(measured) = process.round(moment, &mut random)? {
                found.entry(moment).or_default().push(measured);
            }
            problems.extend(process.problems(&format!("round {done}, {}", moment.name())));
            done += 1;
        }
        problems.extend(process.finish(&format!("after round {}", done.saturating_sub(1))));
    }
    for problem in problems.iter().take(PRINTED) {
        complain(problem);
    }
    let timely = report(&found);
    let broken = problems.len();
    say(&format!(
        "abort: {done} aborts, {broken} broken promises{}",
        if timely { "" } else { ", TOO SLOW" }
    ));
    Ok(broken == 0 && (timely || options.untimed))
}

/// Prints the times; false when they are too long.
fn report(found: &BTreeMap<Moment, Vec<Measured>>) -> bool {
    say(
        "| moment | aborts | answered: p50 / p99 / max, ms | end visible: p50 / p99 / max, ms | ended before |",
    );
    say("|---|---|---|---|---|");
    let row = |name: &str, all: &[&Measured]| {
        let answered: Times = all.iter().map(|measured| measured.answered).collect();
        let ended: Times = all.iter().filter_map(|measured| measured.ended).collect();
        let early = all.len() - ended.len();
        say(&format!(
            "| {name} | {} | {answered} | {ended} | {early} |",
            all.len()
        ));
        (answered, ended)
    };
    for (moment, all) in found {
        row(moment.name(), &all.iter().collect::<Vec<_>>());
    }
    let all: Vec<&Measured> = found.values().flatten().collect();
    let (answered, ended) = row("all", &all);
    let mut slowest: Vec<_> = found
        .iter()
        .flat_map(|(moment, all)| {
            all.iter()
                .map(move |measured| (measured.answered, moment.name(), measured.command))
        })
        .collect();
    slowest.sort_unstable_by(|a, b| b.cmp(a));
    for (answered, moment, command) in slowest.into_iter().take(SLOWEST) {
        say(&format!(
            "slow: {:.2} ms, {moment} {command}",
            answered.as_secs_f64() * 1e3
        ));
    }
    say(&format!(
        "answered later than {:?}: {}; end later than {:?}: {}",
        LIMITS.0,
        answered.over(LIMITS.0),
        LIMITS.1,
        ended.over(LIMITS.1)
    ));
    answered.percentile(99) <= LIMITS.0 && ended.percentile(99) <= LIMITS.1
}
