//! Plays sessions by chance against the machine: `cargo run --profile quick --example simulate -- [SEEDS] [FIRST]`. Prints
//! the rate and every seed that fails; those belong into `tests/machine/seeds.txt`.
//! The rules of the dialect depend on FIRST (`SEEDS_OF_RULES`).

#[path = "../tests/machine/simulation/mod.rs"]
mod simulation;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

const THREADS: usize = 2;
/// Failing seeds that are shown in full; the others show only the violated rule.
const SHOWN: usize = 5;

/// What one thread found.
#[derive(Default)]
struct Found {
    steps: usize,
    failures: Vec<String>,
    seen: BTreeMap<&'static str, u64>,
}

fn main() -> io::Result<ExitCode> {
    let mut args = std::env::args().skip(1).map(|arg| arg.parse::<u64>());
    let seeds = args.next().and_then(Result::ok).unwrap_or(100_000);
    let first = args.next().and_then(Result::ok).unwrap_or(0);
    let begun = Instant::now();
    let next = AtomicU64::new(first);
    let end = first.saturating_add(seeds);
    let found = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(|| work(&next, end))).collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined
            .map(|found| found.map_err(|_| io::Error::other("a seed panicked")))
            .collect::<io::Result<Vec<_>>>()
    })?;
    report(&found, seeds, begun.elapsed().as_secs_f64())
}

fn work(next: &AtomicU64, end: u64) -> Found {
    let mut found = Found::default();
    loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= end {
            return found;
        }
        match simulation::run_seed(seed) {
            Ok(played) => {
                found.steps += played.steps;
                for situation in played.seen {
                    *found.seen.entry(situation).or_default() += 1;
                }
            }
            Err(failure) => found.failures.push(failure),
        }
    }
}

fn report(found: &[Found], seeds: u64, seconds: f64) -> io::Result<ExitCode> {
    let mut out = io::stdout().lock();
    let failures: Vec<_> = found.iter().flat_map(|found| &found.failures).collect();
    for failure in failures.iter().take(SHOWN) {
        writeln!(out, "{failure}\n")?;
    }
    for failure in failures.iter().skip(SHOWN) {
        writeln!(out, "{}", failure.lines().next().unwrap_or_default())?;
    }
    let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
    for failure in &failures {
        let what = failure.lines().next().and_then(|line| line.split_once(": "));
        *kinds.entry(what.map_or("", |(_, what)| what)).or_default() += 1;
    }
    for (kind, count) in kinds {
        writeln!(out, "{count:>8} failed: {kind}")?;
    }
    let mut seen: BTreeMap<&str, u64> = BTreeMap::new();
    for (situation, count) in found.iter().flat_map(|found| &found.seen) {
        *seen.entry(situation).or_default() += count;
    }
    for (situation, count) in seen {
        writeln!(out, "{count:>8} {situation}")?;
    }
    let steps: usize = found.iter().map(|found| found.steps).sum();
    let failed = failures.len();
    writeln!(
        out,
        "{seeds} seeds, {steps} inputs, {seconds:.1} s, {failed} failed"
    )?;
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    writeln!(out, "{:.0} seeds per second", seeds as f64 / seconds)?;
    Ok(if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
