//! Workers and gateways with a real NATS server and real agents. The tests need the feature `nats`, the program `nats-server` on PATH
//! or in the folder that CLUSTER_ENGINES names, and a built `pinion` in the directory of `pinion-cluster`. A test whose programs are missing
//! prints `skipped:` to stderr, and fails if CLUSTER_ENGINES is set.

#![cfg(feature = "nats")]

mod editor;
#[path = "../stores/engine.rs"]
mod engine;
mod helpers;
mod place;
mod takeover;
mod tenants;
mod together;
mod web;

/// A place for one test.
fn place() -> anyhow::Result<Option<place::Place>> {
    let cluster = std::path::Path::new(env!("CARGO_BIN_EXE_pinion-cluster"));
    place::Place::start(cluster, &cluster.with_file_name("pinion"), 1)
}
