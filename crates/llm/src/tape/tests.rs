//! Tapes from outside: written, read, damaged.
