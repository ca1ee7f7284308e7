//! The program from outside: the built binary, a scripted provider, pipes and signals. Nothing here knows the crates behind
//! it. `kit` starts things and waits, `check` holds every run to the rules that always apply; each other file is a topic.
#![expect(clippy::unwrap_used, reason = "helpers of a test may panic")]
#![expect(clippy::panic, reason = "helpers of a test may panic")]
#![expect(clippy::indexing_slicing, reason = "JSON of a known form")]

mod abort;
mod check;
mod cli;
mod client;
mod cloud;
#[cfg(feature = "otel")]
mod collector;
mod combined;
mod commands;
mod compaction;
mod dialogs;
mod doctor;
mod events;
mod exporting;
mod extensions;
mod families;
mod faults;
mod forks;
mod front;
mod guarantees;
mod host_tools;
mod host_uris;
mod input;
mod kit;
mod leaks;
mod listing;
mod local;
mod logins;
mod logs;
mod many;
mod models;
mod navigating;
mod oneshot;
mod openings;
mod permissions;
mod pressure;
mod pressure_trouble;
mod processes;
mod protocol;
mod queue_items;
mod queues;
mod replay;
mod retries_order;
mod retry;
mod rows_input;
mod rows_output;
mod seeds;
mod sessions;
mod shell;
mod shell_context;
mod stats;
mod switching;
mod tapes;
mod todos;
mod tree;
mod ttsr;
mod web;
