//! The machine, driven by scripts and by chance.

mod common;
mod run;
mod simulate;
