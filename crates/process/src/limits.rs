//! Bounds of child processes: sizes, counts and waits.

use std::time::Duration;

/// Requests to the guardian that may wait.
pub const REAPER_QUEUE: usize = 64;
/// Largest frame on the guardian's socket, in bytes.
pub const FRAME_MAX: usize = 16 << 20;
/// File descriptors taken from the guardian's socket in one read.
pub const FRAME_FDS: usize = 16;
/// How long a command may take to start.
pub const SPAWN_WAIT: Duration = Duration::from_secs(10);
/// How long a kill is waited for.
pub const KILL_WAIT: Duration = Duration::from_secs(3);
/// How long the guardian's own end is waited for.
pub const SHUTDOWN_WAIT: Duration = Duration::from_secs(3);
/// How long the guardian tries to kill a command.
pub const KILL_SWEEP: Duration = Duration::from_secs(2);
/// How long processes are stopped, at most, before they are killed.
pub const FREEZE_WAIT: Duration = Duration::from_millis(100);
/// How long a guardian without an agent tries to end the remaining processes.
pub const END_WAIT: Duration = Duration::from_secs(30);
/// Processes between agent and guardian, which end everything when one of the others is killed.
pub const SUPERVISORS: u32 = 2;
/// How long a guardian without an agent may take before its supervisors do its work.
pub const GUARDIAN_GRACE: Duration = Duration::from_secs(1);
/// How often a guardian or supervisor may be stopped by a signal; more is an attack, and everything is ended.
pub const STOPS_MAX: u32 = 20;
/// Pause between two looks for processes that are left, first and last; it doubles in between.
pub const KILL_PAUSE: (Duration, Duration) = (Duration::from_micros(300), Duration::from_millis(2));

/// Links followed on the way to one file, at most; as many as Linux follows.
pub const LINKS: usize = 40;
/// Bytes read from the output of a child at once.
pub const READ_CHUNK: usize = 64 << 10;
/// How long a connection to a port of this machine may take, where only a connection shows that it is open.
pub const PORT_WAIT: Duration = Duration::from_millis(100);
