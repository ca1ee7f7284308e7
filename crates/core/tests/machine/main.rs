//! The machine, driven by scripts and by chance.

mod common;
mod compact;
mod run;
mod simulate;
