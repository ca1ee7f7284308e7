//! The program from outside: the built binary, a scripted provider, pipes and signals. Nothing here knows the crates behind
//! it. `kit` starts things and waits, `check` holds every run to the rules that always apply; each other file is a topic.
#![expect(clippy::unwrap_used, reason = "helpers of a test may panic")]
#![expect(clippy::panic, reason = "helpers of a test may panic")]
#![expect(clippy::indexing_slicing, reason = "JSON of a known form")]

mod abort;
mod acp;
mod approvals;
mod auto_compaction;
mod auto_compaction_faults;
mod background;
mod check;
mod cli;
mod client;
mod cloud;
#[cfg(feature = "otel")]
mod collector;
mod commands;
mod compaction;
mod concurrent_sessions;
mod dialect_inputs;
mod dialect_outputs;
mod dialogs;
mod doctor;
mod events;
mod exit_wakeups;
mod exports;
mod extension_api;
mod extension_examples;
mod extension_faults;
mod extension_models;
mod extension_processes;
mod extensions;
mod fallback_models;
mod families;
mod faults;
mod fetch_tool;
mod first_contact;
mod forks;
mod guarantees;
mod hook_examples;
mod hooks;
mod host_tools;
mod host_uris;
mod input;
mod input_records;
mod kit;
mod leaks;
mod legacy_hooks;
mod links;
mod local_models;
mod local_server;
mod logins;
mod logs;
mod long_sessions;
mod mcp;
mod message_members;
mod models;
mod omp_commands;
mod oneshot;
mod openings;
mod package_commands;
mod packages;
mod permissions;
#[cfg(target_os = "linux")]
mod process_attacks;
mod processes;
mod protocol;
mod queue_items;
mod queues;
mod recordings;
mod replay;
mod results;
mod retry;
mod retry_events;
mod run_limits;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod sandbox;
mod seeds;
mod session_change;
mod session_list;
mod sessions;
mod shell;
mod shell_context;
mod startup_errors;
mod startup_protection;
mod stats;
mod storage;
mod sub_sessions;
mod subagents;
mod todos;
mod tree;
mod tree_navigation;
mod trust;
mod ttsr;
mod undo;
mod web;
