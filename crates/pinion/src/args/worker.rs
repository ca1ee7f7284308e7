//! The options of `worker`. They go to the program `pinion-cluster` as they are, which checks their values.

use super::flags::{Flag, value};
use super::set;

macro_rules! passed_on {
    ($($name:literal $what:literal $help:literal)*) => {
        &[$(value(
            &[$name],
            $what,
            |a, v| {
                set::pass_on(a, $name, v);
                Ok(())
            },
            $help,
        )),*]
    };
}

pub(super) const WORKER: &[Flag] = passed_on! {
    "--nats" "URL" "NATS servers and prefix: nats://HOST[:PORT][,HOST...][/PREFIX]"
    "--max-sessions" "N" "Limit of sessions at a time (default: 250)"
    "--name" "NAME" "Name of the worker (default: host name and process id)"
    "--state-dir" "DIR" "Directory of session files while the worker has them (default: a temporary one)"
    "--health" "ADDRESS:PORT" "Answer GET /live, /ready and /metrics"
    "--lease-seconds" "S" "Time until another worker takes over; the first worker decides (default: 10)"
    "--resume" "auto|wait" "Continue runs of lost workers, or wait for a command (default: wait)"
    "--prepare" "FILE" "Program that makes the working directory of a session before it opens"
    "--save" "FILE" "Program that keeps the working directory of a session after each run"
    "--cwd" "DIR" "Working directory of new sessions (default: the current one)"
};
