//! The program from outside: the built binary, a scripted provider, pipes and signals. Nothing here knows the crates behind
//! it. `kit` starts things and waits, `check` holds every run to the rules that always apply; each other file is a topic.
#![expect(clippy::unwrap_used, reason = "helpers of a test may panic")]
#![expect(clippy::panic, reason = "helpers of a test may panic")]
#![expect(clippy::indexing_slicing, reason = "JSON of a known form")]

mod abort;
mod approvals;
mod careless;
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
mod extensions_bad;
mod extensions_calls;
mod extensions_examples;
mod extensions_models;
mod extensions_several;
mod extensions_sub;
mod families;
mod faults;
mod first_contact;
mod forks;
mod front;
mod guarantees;
mod hook_examples;
mod hooks;
mod hooks_older;
mod host_tools;
mod host_uris;
mod input;
mod input_records;
mod kit;
mod leaks;
mod links;
mod listing;
mod local;
mod logins;
mod logs;
mod many;
mod mcp;
mod models;
mod navigating;
mod oneshot;
mod openings;
mod packages;
mod permissions;
mod pressure;
mod pressure_trouble;
mod processes;
#[cfg(target_os = "linux")]
mod processes_attacked;
mod protocol;
mod queue_items;
mod queues;
mod replay;
mod retries_order;
mod retry;
mod rows_input;
mod rows_output;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod sandbox;
mod seeds;
mod sessions;
mod shell;
mod shell_context;
mod stats;
mod storage;
mod switching;
mod tapes;
mod todos;
mod tree;
mod trust;
mod ttsr;
mod web;
