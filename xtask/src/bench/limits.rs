//! The sizes of the measurements and the targets they are held to. Nothing else.

use std::time::Duration;

/// Starts of each program in `startup`; one more comes before them, which fills caches and is not counted.
pub(super) const STARTS: usize = 20;
/// Repetitions of everything else.
pub(super) const RUNS: usize = 5;
/// Repetitions of what takes seconds.
pub(super) const LONG_RUNS: usize = 3;

/// Milliseconds from spawn to the first answer of `get_state`.
pub(super) const START_MS: f64 = 15.0;
/// Start time as a multiple of that of an empty program.
pub(super) const START_TIMES: f64 = 3.0;
/// Resident memory then, MB.
pub(super) const START_MB: f64 = 12.0;

/// Deltas of the long answer, and of the short one. Their costs show whether the cost is linear.
pub(super) const DELTAS: (u64, u64) = (20_000, 2_000);
/// Bytes of a delta.
pub(super) const DELTA_BYTES: usize = 20;
/// Bytes the model's server gathers for a write when it does not write each delta by itself.
pub(super) const SERVER_BATCH: usize = 16 << 10;
/// CPU of the long answer in the cumulative and in the delta form, ms.
pub(super) const STREAM_CPU_MS: (f64, f64) = (500.0, 100.0);
/// Bytes written, as a multiple of the message.
pub(super) const STREAM_TIMES: f64 = 64.0;
/// CPU of ten times as many deltas, as a multiple.
pub(super) const STREAM_GROWTH: f64 = 12.0;

/// Deltas of the tool call's arguments.
pub(super) const ARGUMENT_DELTAS: u64 = 5_000;
/// CPU of that call, ms.
pub(super) const ARGUMENT_CPU_MS: f64 = 100.0;

/// Deltas of the short and of the long answer of each API family, and bytes of a delta: 1 MB and 10 MB.
pub(super) const FAMILY_DELTAS: (u64, u64, usize) = (10_000, 100_000, 100);
/// CPU of a delta, microseconds.
pub(super) const FAMILY_DELTA_US: f64 = 10.0;
/// CPU of the long answer, as a multiple of the short one's; above 10 because of noise.
pub(super) const FAMILY_GROWTH: f64 = 12.0;
/// Most memory, as a multiple of the long answer.
pub(super) const FAMILY_TIMES: f64 = 12.0;

/// Turns with one tool call each.
pub(super) const TURNS: usize = 500;
/// Turns at either end that are compared.
pub(super) const TURN_SAMPLE: usize = 50;
/// CPU of a turn, child included, ms.
pub(super) const TURN_CPU_MS: f64 = 3.0;
/// Time of the last turns, as a multiple of the first; above 1 because of noise.
pub(super) const TURN_GROWTH: f64 = 1.25;

/// Tool calls of the session with very many, and of each of its runs.
pub(super) const CALLS: u64 = 100_000;
/// See [`CALLS`].
pub(super) const CALLS_OF_A_RUN: u64 = 1_000;
/// Window of its model, tokens.
pub(super) const CALLS_WINDOW: u64 = 128_000;
/// CPU of its last turns, as a multiple of the first; above 1 because of noise.
pub(super) const CALLS_GROWTH: f64 = 1.1;

/// Bytes of output of one command.
pub(super) const OUTPUT_BYTES: u64 = 100_000_000;
/// CPU of the agent for them, ms, and growth of its memory, MB.
pub(super) const OUTPUT_CPU_MS: f64 = 300.0;
/// See [`OUTPUT_CPU_MS`].
pub(super) const OUTPUT_MB: f64 = 16.0;

/// Bytes of the line that is too long.
pub(super) const LONG_LINE: usize = 64 << 20;
/// Until it is refused and the next line is answered, ms.
pub(super) const LONG_LINE_MS: f64 = 500.0;
/// Most memory then, MB: the limit per line (32 MiB) and 20 MB.
pub(super) const LONG_LINE_MB: f64 = 33.6 + 20.0;

/// How long stdout is not read while requests are written.
pub(super) const FLOOD_TIME: Duration = Duration::from_secs(4);
/// Requests at most.
pub(super) const FLOOD_LINES: u64 = 2_000_000;
/// Every so many requests one asks for the whole conversation.
pub(super) const FLOOD_BIG: u64 = 50;
/// Growth of memory, MB.
pub(super) const FLOOD_MB: f64 = 64.0;

/// Fuzzed lines.
pub(super) const FUZZ_LINES: u64 = 1_000_000;
/// Lines a second.
pub(super) const FUZZ_SPEED: f64 = 50_000.0;

/// Entries and bytes of the long session.
pub(super) const SESSION: (usize, usize) = (20_000, 50_000_000);
/// CPU of `switch_session` and `get_messages` with it, ms.
pub(super) const SESSION_CPU_MS: f64 = 400.0;
/// Most memory then, as a multiple of the file.
pub(super) const SESSION_TIMES: f64 = 4.0;

/// Sessions that are listed: how many, entries, bytes of each.
pub(super) const LISTED: [(usize, usize, usize); 2] = [(2_000, 16, 40_000), (10, 2_000, 5_000_000)];
/// Time since they were changed.
pub(super) const LISTED_AGE: Duration = Duration::from_secs(3_600);
/// Folders they lie in when all are asked for.
pub(super) const LISTED_FOLDERS: usize = 40;
/// Least bytes of the answer for each of them; less means that some are missing.
pub(super) const LISTED_BYTES: u64 = 200;
/// Time of a listing without a cache and of the next one, ms.
pub(super) const LIST_MS: (f64, f64) = (150.0, 20.0);

/// Entries of the short and of the long session that are appended to, and bytes of an entry.
pub(super) const APPEND_TO: (usize, usize, usize) = (100, 20_000, 2_500);
/// Appends.
pub(super) const APPENDS: u32 = 2_000;
/// Appends before them that are not counted.
pub(super) const APPENDS_BEFORE: u32 = 200;
/// CPU of an append to the long session, as a multiple of one to the short session.
pub(super) const APPEND_GROWTH: f64 = 1.2;

/// Sessions that are open in one process.
pub(super) const MANY: usize = 1_000;
/// Growth of memory for each of them, kB.
pub(super) const MANY_KB: f64 = 200.0;
/// Memory of the process then, MB.
pub(super) const MANY_MB: f64 = 300.0;

/// Sessions that are opened one after another, how many of them stay open, entries and bytes of each.
pub(super) const KEPT: (usize, usize, usize, usize) = (200, 8, 200, 1 << 20);
/// Growth of memory then, MB: open sessions, and memory that the allocator keeps.
pub(super) const KEPT_MB: f64 = 60.0;

/// Answers whose deltas are timed, and deltas of each. Short ones: an update tells the whole answer so far.
pub(super) const PROBE_ANSWERS: usize = 4;
/// See [`PROBE_ANSWERS`].
pub(super) const PROBE_DELTAS: usize = 250;
/// Time between them.
pub(super) const PROBE_PACE: Duration = Duration::from_millis(2);
/// How much later they may come when another session floods, ms at p99.
pub(super) const PROBE_MS: f64 = 5.0;
/// Bytes that the flooding command prints.
pub(super) const FLOODED_BYTES: u64 = 20_000_000;

/// Longest wait for an answer or the end of a run.
pub(super) const PATIENCE: Duration = Duration::from_secs(180);
/// How long an agent may take to end by itself.
pub(super) const EXIT: Duration = Duration::from_secs(3);
/// Bytes kept of an output line.
pub(super) const LINE_HEAD: u64 = 4096;
/// A quiet moment before CPU is read, so that every thread has been accounted for.
pub(super) const SETTLE: Duration = Duration::from_millis(30);

/// Extensions of the session in `extensions`.
pub(super) const EXTENSIONS: usize = 10;
/// Milliseconds from spawn until they are there.
pub(super) const EXTENSIONS_MS: f64 = 500.0;
/// Questions to an extension in one measurement.
pub(super) const TRIPS: usize = 500;
/// Milliseconds that one may take, there and back.
pub(super) const TRIP_MS: f64 = 0.3;

/// Clients of one session that listen, in the order they are measured.
pub(super) const WEB_CLIENTS: [usize; 3] = [1, 100, 1_000];
/// Clients that get their events as server-sent events.
pub(super) const WEB_STREAMS: usize = 200;
/// Deltas of the answer they listen to.
pub(super) const WEB_DELTAS: usize = 1_000;
/// Time between them.
pub(super) const WEB_PACE: Duration = Duration::from_millis(10);
/// Bytes of an answer that comes at once.
pub(super) const WEB_LONG: usize = 200_000;
/// Memory of a connection on which nothing happens, kB.
pub(super) const WEB_IDLE_KB: f64 = 20.0;
/// Most memory of the server with the most clients, MB.
pub(super) const WEB_MB: f64 = 100.0;
/// From the model to a client, ms at p99.
pub(super) const WEB_MS: f64 = 20.0;
/// Attempts to connect.
pub(super) const WEB_ATTEMPTS: usize = 10_000;
/// Of them at the same time.
pub(super) const WEB_AT_ONCE: usize = 500;
/// Connections that never say anything.
pub(super) const WEB_SILENT: usize = 3_000;
/// Descriptors this program needs for itself: one for each attempt, and some.
pub(super) const WEB_DESCRIPTORS: u64 = 11_000;
/// A moment in which memory comes to rest.
pub(super) const WEB_REST: Duration = Duration::from_millis(1_500);

/// Background processes, as many as a session may have.
pub(super) const BACKGROUNDS: u64 = 50;
/// Bytes that each prints a second.
pub(super) const BACKGROUND_RATE: u64 = 10_000_000;
/// How long the session is asked meanwhile, and the pause between two questions.
pub(super) const BACKGROUND_TIME: Duration = Duration::from_secs(10);
/// See [`BACKGROUND_TIME`].
pub(super) const BACKGROUND_PAUSE: Duration = Duration::from_millis(10);
/// Until an answer, ms at p99.
pub(super) const BACKGROUND_MS: f64 = 20.0;
/// Growth of memory, MB.
pub(super) const BACKGROUND_MB: f64 = 64.0;

/// Turns that edit a file, and bytes of the file.
pub(super) const UNDO_TURNS: usize = 200;
/// See [`UNDO_TURNS`].
pub(super) const UNDO_BYTES: usize = 50_000;
/// What checkpoints may add to a turn, ms.
pub(super) const UNDO_MS: f64 = 10.0;

/// Milliseconds from spawn to the response of `initialize`.
pub(super) const ACP_INITIALIZE_MS: f64 = 15.0;
/// Milliseconds until the response of `session/new`, and the MCP servers that are configured meanwhile.
pub(super) const ACP_NEW_MS: f64 = 30.0;
/// See [`ACP_NEW_MS`].
pub(super) const ACP_SERVERS: usize = 10;
/// CPU of a delta, as a multiple of that on the RPC wire; above 1 because of noise.
pub(super) const ACP_TIMES: f64 = 1.05;
/// Sessions of one connection that get an answer at the same time.
pub(super) const ACP_MANY: usize = 100;

/// Sessions that stream at the same time, in the order they are measured.
pub(super) const CORES_SESSIONS: [usize; 5] = [50, 100, 200, 400, 800];
/// Deltas of each answer.
pub(super) const CORES_DELTAS: u64 = 250;
/// Time between them.
pub(super) const CORES_PACE: Duration = Duration::from_millis(20);
