//! Thousands of sessions by chance. `examples/simulate.rs` plays as many as one likes.

use std::collections::BTreeMap;

use crate::simulation::{SEEDS_OF_RULES, run_seed};

/// Seeds that failed once, each with its failure.
const KEPT: &str = include_str!("seeds.txt");

/// How many seeds each test run plays.
const SEEDS: u64 = 5_000;

/// How many of them it plays of each of the other sets of rules.
const SEEDS_OF_OTHERS: u64 = 1_000;

/// What a simulation that proves something has to come across.
const SITUATIONS: [&str; 51] = [
    "abort while asking",
    "abort while checking",
    "abort while compacting",
    "abort while idle",
    "abort while moving",
    "abort while tools run",
    "abort while waiting",
    "prompt while waiting",
    "all results terminate",
    "answer after abort",
    "as many tools as allowed",
    "calls interrupted",
    "compaction aborted",
    "compaction before or after a run",
    "compaction between turns",
    "compaction done",
    "compaction failed",
    "cut off calls",
    "follow-up taken",
    "kill",
    "kill between effects",
    "manual compaction",
    "move in the tree",
    "overflow",
    "overflow healed",
    "overflow twice",
    "retry cancelled",
    "retry ended by an abort",
    "retry given up",
    "retry succeeded",
    "run after a failure",
    "run for what was queued meanwhile",
    "dangling calls closed",
    "failed answers in the file only",
    "commands heard later",
    "message added while tools run",
    "conversation replaced while tools run",
    "todos cleared",
    "session opened in a used machine",
    "replayed",
    "call blocked",
    "call of a tool",
    "hook never answers",
    "hooks withdrawn",
    "permission denied",
    "permission never answered",
    "result before the end of another call",
    "result changed",
    "compaction refused by hooks",
    "session change while tools run",
    "run waits for hooks of an event",
];

#[test]
fn recorded_simulation_seeds_pass() {
    let seeds = KEPT
        .lines()
        .filter_map(|line| line.split('#').next()?.trim().parse().ok());
    for seed in seeds {
        if let Err(report) = run_seed(seed) {
            panic!("{report}");
        }
    }
}

#[test]
fn random_simulations_hold_invariants() {
    let mut seen = BTreeMap::new();
    let others = [1, 2, 3].map(|rules| {
        let first = rules * SEEDS_OF_RULES;
        first..first + SEEDS_OF_OTHERS
    });
    for seed in (0..SEEDS).chain(others.into_iter().flatten()) {
        match run_seed(seed) {
            Ok(played) => {
                for situation in played.seen {
                    *seen.entry(situation).or_insert(0) += 1;
                }
            }
            Err(report) => panic!("{report}\nAdd the seed to tests/machine/seeds.txt."),
        }
    }
    for situation in SITUATIONS {
        assert!(
            seen.get(situation).is_some_and(|times| *times > 10),
            "{situation} hardly ever happened: {seen:?}"
        );
    }
}
