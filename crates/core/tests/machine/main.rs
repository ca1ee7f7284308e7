//! The machine, driven by scripts and by chance.

mod common;
mod compact;
mod dangling;
mod found;
mod reminders;
mod replaced;
mod resume;
mod run;
mod simulate;
mod simulation;
