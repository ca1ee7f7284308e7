//! Whole sessions by chance: a seed decides what clients ask for, what the model and the tools answer, when something fails
//! and when the process dies. [`run_seed`] plays one of them in a fake world and checks everything that must hold.
//!
//! What must hold is in `check`, `calls` and `queues`; here is what happens. Shared by the tests and `examples/simulate.rs`.

mod calls;
mod check;
mod disk;
mod hooked;
mod model;
mod queues;
mod rng;
mod world;

use std::collections::BTreeSet;

/// What a seed came to.
#[derive(Debug, Default)]
pub(crate) struct Played {
    /// Inputs given.
    pub(crate) steps: usize,
    /// Situations that came up.
    pub(crate) seen: BTreeSet<&'static str>,
}

/// Seeds of each set of rules, in their order: the general rules for failures, those of pi 0.74, those of pi 1.5, and the general rules
/// with results in the order of the ends of their calls.
pub(crate) const SEEDS_OF_RULES: u64 = 1_000_000_000_000;

/// How much of the end of a failing run is shown.
const SHOWN: usize = 60;

/// Plays the session that a seed decides.
///
/// # Errors
/// The violated rule, with the seed and the last steps.
pub(crate) fn run_seed(seed: u64) -> Result<Played, String> {
    let mut world = world::World::new(seed, false);
    if world.play().is_ok() {
        return Ok(world.played);
    }
    // Once more, writing everything down: that is too slow to be done each time.
    let mut world = world::World::new(seed, true);
    let error = world
        .play()
        .err()
        .unwrap_or_else(|| "failed once, then not".to_owned());
    let skipped = world.trace.len().saturating_sub(SHOWN);
    let shown: Vec<_> = world.trace.iter().skip(skipped).cloned().collect();
    Err(format!("seed {seed}: {error}\n{}", shown.join("\n")))
}
