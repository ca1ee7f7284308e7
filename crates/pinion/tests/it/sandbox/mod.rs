//! The sandbox of tools, tested with the whole program: escapes (there are none), permitted work, and texts.

mod denied_programs;
mod escapes;
mod everyday_use;
mod planted_code;
mod tools;

use serde_json::{Value, json};
use testkit::llm::Reply;

use crate::kit::{PROGRAM, Pi, World, of_type, skipped, text};

/// A world whose user wants this sandbox.
fn world(sandbox: Value, calls: impl IntoIterator<Item = Reply>) -> World {
    let world = World::new(calls.into_iter().chain([Reply::text(["done"])]));
    world.settings(json!({ "sandbox": sandbox }));
    world
}

/// What the system offers: the version of Landlock, and whether there are user namespaces.
pub(crate) fn offered() -> (u64, bool) {
    let output = std::process::Command::new(PROGRAM)
        .args(["__sandbox", "probe"])
        .output()
        .unwrap();
    let offered: Value = serde_json::from_slice(&output.stdout).unwrap();
    let offered = (
        offered["landlock"].as_u64().unwrap(),
        offered["namespaces"].as_bool().unwrap(),
    );
    if offered.0 == 0 {
        skipped("this kernel has no Landlock, so there is no sandbox to be tested");
    }
    offered
}

/// How the calls ended: error or not, and the text.
fn ends(pi: &Pi) -> Vec<(bool, String)> {
    let lines = pi.lines();
    of_type(&lines, "tool_execution_end")
        .into_iter()
        .map(|end| (end["isError"].as_bool().unwrap(), text(&end["result"])))
        .collect()
}
