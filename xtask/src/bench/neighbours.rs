//! Sessions of one process side by side: how much later a session's deltas reach the client while others flood it. Each flood
//! happens in another process, too: what it does from there is the machine's doing. What sessions cost that do nothing is
//! measured in `many`.

use anyhow::Result;

use super::limits::{PROBE_MS, RUNS};
use super::report::{Row, median};
use super::scene::{BATCHED, Heard, PRINTING, SINGLE, Scene};
use super::subject::Subject;

/// What floods: its name in the table, and the sessions.
const LOADS: [(&str, &[&str]); 4] = [
    ("20,000 deltas, a write per delta", &[SINGLE]),
    ("20,000 deltas, writes of 16 KiB", &[BATCHED]),
    ("bash that prints 20 MB", &[PRINTING]),
    ("both, large writes", &[BATCHED, PRINTING]),
];

/// The delays of each repetition.
#[derive(Default)]
struct Load {
    beside: Vec<Heard>,
    far: Vec<Heard>,
}

/// Measures the delays without and with each load, one after another in the same process.
pub(super) fn measure(subject: &Subject) -> Result<Vec<Row>> {
    let mut scene = Scene::new(subject)?;
    let mut alone = Vec::new();
    let mut loads = LOADS.map(|_| Load::default());
    for _ in 0..RUNS {
        alone.push(scene.beside(&[])?);
        for ((_, floods), load) in LOADS.iter().zip(&mut loads) {
            load.beside.push(scene.beside(floods)?);
            load.far.push(scene.far_from(floods)?);
        }
    }
    let note = format!(
        "p50 {:.2} ms, p100 {:.1} ms",
        middle(&alone, 50),
        middle(&alone, 100)
    );
    let title = "from the model to the client, nobody floods: p99";
    let mut rows = vec![Row::new("many", title, "ms", each(&alone, 99)).note(&note)];
    for ((name, _), load) in LOADS.iter().zip(&loads) {
        let floods: usize = load.beside.iter().map(|heard| heard.floods).sum();
        rows.push(
            Row::new(
                "many",
                &format!("p99 more beside {name}"),
                "ms",
                more(&load.beside, &alone),
            )
            .at_most(PROBE_MS)
            .note(&format!(
                "p50 {:.2} ms, p100 {:.1} ms; {floods} floods; in another process: p99 {:.2} ms more",
                middle(&load.beside, 50),
                middle(&load.beside, 100),
                median(&more(&load.far, &alone)),
            )),
        );
    }
    Ok(rows)
}

/// The delay that this part of the deltas did not exceed in each repetition, ms.
fn each(heard: &[Heard], percent: usize) -> Vec<f64> {
    heard.iter().map(|heard| heard.within(percent)).collect()
}

/// The middle one of them.
fn middle(heard: &[Heard], percent: usize) -> f64 {
    median(&each(heard, percent))
}

/// How much more p99 was in each repetition than it usually is without a flood, ms.
fn more(heard: &[Heard], alone: &[Heard]) -> Vec<f64> {
    let usual = middle(alone, 99);
    each(heard, 99).iter().map(|p99| p99 - usual).collect()
}
