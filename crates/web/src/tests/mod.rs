//! Tests of the parts of the web server; those that need real connections are black-box tests of the program.

mod connections;
mod frames;
mod guard;
mod log;
mod memory;
