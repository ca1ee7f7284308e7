//! Tests of the parts of the web server. Tests with real connections are black-box tests of the program.

mod connections;
mod frames;
mod guard;
mod log;
mod memory;
mod room;
