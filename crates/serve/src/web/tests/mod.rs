//! Tests of the parts of a web door that need no connection.

mod guard;
mod log;
