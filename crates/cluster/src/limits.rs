//! Every number that bounds what this crate sends, keeps or waits for. No logic here.

use std::time::Duration;

/// Longest wait for one answer of an engine.
pub const ANSWER_WAIT: Duration = Duration::from_secs(5);

/// Longest wait for one answer of NATS to a request that can be sent again. A stream without a leader does not answer, and a server that is lost or
/// begins drops requests, so a short wait finds the new leader soon.
pub const NATS_WAIT: Duration = Duration::from_secs(1);

/// Longest wait for one message of a session, which can have 512 KiB. Sent again like the others.
pub const NATS_READ_WAIT: Duration = Duration::from_secs(2);

/// Longest time to read or remove something in NATS, with all repetitions. A stream can be without a leader for 9 seconds.
pub const NATS_REPEAT_WAIT: Duration = Duration::from_secs(15);

/// Pause between two pings of a NATS server. The client leaves a server that answers none of two: a stopped server or a lost host ends no
/// connection. Leases have to survive this time.
pub const PING_PAUSE: Duration = Duration::from_secs(1);

/// Longest wait for the connection to an engine.
pub const CONNECT_WAIT: Duration = Duration::from_secs(5);

/// Longest wait for the connection to one NATS server before the next one is tried.
pub const NATS_CONNECT_WAIT: Duration = Duration::from_secs(2);

/// Sequences before the last one where the search for an event begins; eight times as many in each further step. Clients that connect again
/// lack little, and a search in the whole stream would load its oldest blocks.
pub const SEARCH_STEP: u64 = 1 << 10;

/// Times an append to S3 is sent before the store gives up; a response may have been lost each time.
pub const APPEND_TRIES: u32 = 4;

/// Longest time to append to NATS, with all repetitions. A response may have been lost each time.
pub const APPEND_WAIT: Duration = Duration::from_secs(20);

/// Pause before an append is sent again; the second pause is twice as long, and so on; up to four times with NATS.
pub const APPEND_PAUSE: Duration = Duration::from_millis(250);

/// Longest wait for another process to close a session file.
pub const LOCK_WAIT: Duration = Duration::from_secs(2);

/// Pause between two attempts to lock a session file.
pub const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// Pause between two looks at a session file that is followed.
pub const FILE_WATCH_PAUSE: Duration = Duration::from_millis(100);

/// Pause between two looks at a session in S3 that is followed.
pub const S3_WATCH_PAUSE: Duration = Duration::from_millis(500);

/// Times a broken watch is started again without a line in between before it fails.
pub const WATCH_TRIES: u32 = 20;

/// Pause before a broken watch is started again.
pub const WATCH_PAUSE: Duration = Duration::from_millis(500);

/// Bytes of lines that one message of a session in NATS has at most. Larger appends are stored in parts. A consumer of `watch` fetches up
/// to 500 messages ahead, so this also bounds its memory.
pub const MESSAGE_BYTES: usize = 128 << 10;

/// Messages that are read with one request at most.
pub const BATCH_MESSAGES: usize = 256;

/// Bytes of the messages that are read with one request, unless one message is larger.
pub const BATCH_BYTES: usize = 1 << 20;

/// Longest wait for the next message of a batch. The leader of the stream is asked for the rest.
pub const BATCH_WAIT: Duration = Duration::from_secs(1);

/// Messages before it that a message of a session names. With more, a long session needs fewer requests one after the other, and each message
/// is larger.
pub const NAMED_BEFORE: usize = 32;

/// Messages of one session that are read at the same time, each with 128 KiB at most.
pub const READ_AT_ONCE: usize = 16;

/// Bytes of one part of a larger append. Below the default limit of a NATS server for one message (1 MiB) with its headers.
pub const PART_BYTES: usize = 512 << 10;

/// Sessions of which a store remembers where they end. A session that it does not remember costs further requests.
pub const KNOWN_SESSIONS: usize = 10_000;

/// Longest wait for one answer of S3, a large object included.
pub const S3_ANSWER_WAIT: Duration = Duration::from_secs(30);

/// Sessions in S3 whose head objects a store remembers.
pub const KNOWN_HEADS: usize = 256;

/// Bytes of lines that the head object of a session in S3 has at most. More lines go to an object of their own.
pub const HEAD_BYTES: usize = 64 << 10;

/// Appends that the head object of a session in S3 remembers, to tell after a lost response whether it was stored.
pub const HEAD_APPENDS: usize = 64;

/// Largest head object of a session in S3, in bytes: its lines and the list of its segments.
pub const HEAD_LIMIT: usize = 16 << 20;

/// Bytes of lines after which a copy begins another append.
pub const COPY_BYTES: usize = 256 << 10;

/// Pause before a lost connection to NATS is made again; ten times as long after the tenth attempt.
pub const RECONNECT_PAUSE: Duration = Duration::from_millis(50);

/// Default seconds until the lease of a silent worker ends.
pub const LEASE_SECONDS: u64 = 10;

/// Default number of sessions that one worker takes.
pub const WORKER_SESSIONS: usize = 250;

/// Most sessions that one worker takes. An agent has 4,096 handles, and some of them belong to sessions that are still closing.
pub const MOST_WORKER_SESSIONS: usize = 4_000;

/// Longest name of a session in an agent, in bytes. A longer id becomes a hash there.
pub const AGENT_HANDLE: usize = 64;

/// Pause between two looks at the connection while nothing is announced; a reconnection costs this long.
pub const FOLLOW_PAUSE: Duration = Duration::from_secs(1);

/// First pause between two looks at a stream after an announcement; each further one is four times as long.
pub const FOLLOW_AGAIN: Duration = Duration::from_millis(5);

/// Longest pause between two looks at a stream that is followed; an announcement that was lost on a good connection costs this long.
pub const FOLLOW_LOOK: Duration = Duration::from_secs(5);

/// Pause before a publication is sent again; the second pause is twice as long, up to ten times.
pub const PUBLISH_PAUSE: Duration = Duration::from_millis(50);

/// Longest time to publish something that no lease limits, such as a command of a client.
pub const PUBLISH_WAIT: Duration = Duration::from_secs(30);

/// Messages that the event stream keeps per session, for clients that connect again. Each has one event or several.
pub const EVENT_MESSAGES: i64 = 20_000;

/// Updates of an answer after which one has the whole answer, so that the answer is known although the stream drops old messages.
pub const UPDATES_PER_WHOLE: u64 = 1_000;

/// Bytes of events that one message has at most, unless one event is larger.
pub const EVENT_BYTES: usize = 256 << 10;

/// Events of a session that its task takes at once.
pub const EVENT_BATCH: usize = 128;

/// Events of a session that wait for its task. A full queue stops the reader of the agent's output.
pub const SESSION_QUEUE: usize = 256;

/// Events of a session that wait on a full disk until its file is written. With more the worker gives the session up.
pub const HELD_LINES: usize = 10_000;

/// Bytes of these events. With more the worker gives the session up.
pub const HELD_BYTES: usize = 64 << 20;

/// Commands of a session that the agent has at a time.
pub const COMMANDS_IN_FLIGHT: usize = 64;

/// Commands that the queue of one session has at most. A further one is refused.
pub const QUEUED_COMMANDS: i64 = 10_000;

/// Bytes of one command through NATS.
pub const COMMAND_BYTES: usize = 900 << 10;

/// Bytes of a client's name and a command's id up to which they are the idempotency key. The key of longer ones is a hash of them.
pub const KEY_BYTES: usize = 96;

/// Time for which the record of an answered command is kept, to recognise the same command again.
pub const RECORD_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// Age of a queued command from which a missing record does not tell that no worker has begun it: the record may have expired. Less than
/// `RECORD_AGE`, because the clocks of a worker and of NATS differ.
pub const COMMAND_AGE: Duration = Duration::from_secs(23 * 60 * 60);

/// Longest wait for the agent to open a session.
pub const OPEN_WAIT: Duration = Duration::from_secs(30);

/// Longest wait for the agent to close a session. The place of a session that it does not close stays taken until a later attempt.
pub const CLOSE_WAIT: Duration = Duration::from_secs(10);

/// Pause between two attempts to close a session that the agent did not close.
pub const CLOSE_PAUSE: Duration = Duration::from_secs(5);

/// Longest wait for the response to such an attempt. Commands to a session that hangs stay in its queue, and the agent reads no further
/// commands of any session once the queue is full.
pub const STUCK_WAIT: Duration = Duration::from_secs(600);

/// Time for which a worker leaves a session to other workers after it could not write the session's file.
pub const UNWRITABLE_PAUSE: Duration = Duration::from_secs(10);

/// Time for runs to end when a worker stops. Kubernetes kills a process 30 seconds after SIGTERM.
pub const DRAIN_WAIT: Duration = Duration::from_secs(25);

/// Longest wait for sessions to give up their leases after their agent was killed.
pub const ABANDON_WAIT: Duration = Duration::from_secs(3);

/// Time without a run or a command after which a worker closes a session. The next command opens it again.
pub const IDLE_WAIT: Duration = Duration::from_secs(30 * 60);

/// Time that a gateway waits for responses after its input has ended.
pub const GATEWAY_END_WAIT: Duration = Duration::from_secs(10);

/// Bytes of one line from a client or an agent.
pub const LINE_BYTES: usize = 64 << 20;

/// Connections to the health address at a time.
pub const HEALTH_CONNECTIONS: usize = 16;

/// Longest time of one health request.
pub const HEALTH_WAIT: Duration = Duration::from_secs(5);

/// Bytes of events that a gateway sends again with one `replay`, as the client gets them. With more, the worker answers with a snapshot.
/// With the answer so far in each update, a long answer alone can have hundreds of MiB.
pub const REPLAY_BYTES: usize = 32 << 20;

/// Commands of one gateway that wait for a response at a time. A gateway with so many reads no further input.
pub const GATEWAY_COMMANDS: usize = 1_000;

/// Sessions of one gateway for many sessions.
pub const GATEWAY_SESSIONS: usize = 10_000;

/// Lines between a gateway and its input or output.
pub const GATEWAY_LINES: usize = 64;

/// Calls whose begin is being stored at a time. Further ones wait.
pub const GATE_CALLS: usize = 256;

/// Longest time to store that a tool call begins. The call is denied after it.
pub const GATE_WAIT: Duration = Duration::from_secs(8);

/// Longest time of one workspace hook.
pub const WORKSPACE_WAIT: Duration = Duration::from_secs(300);

/// Characters of a failed workspace hook's stderr in the error.
pub const WORKSPACE_TEXT: usize = 500;

/// Times that a stream is opened, or a session read, before it fails.
pub const REQUEST_TRIES: u32 = 5;

/// Sessions that a worker takes at a time, from the request for the lease until they are open. After the loss of a worker with 250 sessions,
/// one after the other would take seconds on a busy machine; all at a time can be more than NATS answers in time.
pub const TAKEN_AT_ONCE: usize = 32;

/// Longest pause between two looks at the sessions without a worker.
pub const LOOK_PAUSE: Duration = Duration::from_millis(500);
