//! The machine, driven by scripts and by chance.

mod common;
mod compact;
mod dangling_calls;
mod failures;
mod hooks;
mod regressions;
mod reminders;
mod replacements;
mod results;
mod resume;
mod run;
mod simulate;
mod simulation;
