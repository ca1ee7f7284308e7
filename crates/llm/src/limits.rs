//! Every number that bounds what the API families accept, wait for or repeat. Limits of the registry live there.

use std::time::Duration;

/// Longest line and largest event of a stream, in bytes.
pub const MAX_EVENT_BYTES: usize = 16 << 20;

/// Buffer of a stream that is kept from event to event; what a longer event needs is given back.
pub(crate) const KEPT_BYTES: usize = 64 << 10;

/// Largest answer, in bytes of text, reasoning and tool arguments together.
pub const MAX_ANSWER_BYTES: usize = 16 << 20;

/// Most content blocks of an answer.
pub const MAX_BLOCKS: usize = 20_000;

/// Most bytes of a response body after decompression; stops a body that never says anything.
pub const MAX_BODY_BYTES: u64 = 1 << 30;

/// Most bytes read of the body of an HTTP error.
pub const MAX_ERROR_BODY_BYTES: usize = 64 << 10;

/// Longest error text that leaves this crate, in bytes.
pub const MAX_ERROR_TEXT_BYTES: usize = 8 << 10;

/// Longest text taken from an error body that is a web page, in bytes.
pub const MAX_PAGE_TEXT_BYTES: usize = 300;

/// Events after which a batch is handed over although more may be ready.
pub const MAX_BATCH_EVENTS: usize = 512;

/// Default of [`crate::ModelRequest::idle_timeout`].
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(300);

/// Default of [`crate::ClientConfig::connect_timeout`].
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// How long the body of an HTTP error may take.
pub const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a connection without a request is kept.
pub const POOL_IDLE: Duration = Duration::from_secs(45);

/// How long the tail of a finished response may take, so that its connection can be used again.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Most bytes of that tail.
pub const DRAIN_BYTES: usize = 64 << 10;

/// Most redirects of one request; only within one origin.
pub const MAX_REDIRECTS: usize = 5;

/// First wait between attempts of one request (pi-core.md 4.2); it doubles with each attempt.
pub const RETRY_BASE: Duration = Duration::from_millis(500);

/// Longest wait of that series.
pub const RETRY_CAP: Duration = Duration::from_secs(8);

/// Longest wait a server may ask for; beyond it the request fails at once.
pub const RETRY_AFTER_CAP: Duration = Duration::from_secs(60);

/// Length of a tool-call id at Anthropic and Bedrock.
pub const ANTHROPIC_ID_LEN: usize = 64;

/// Length of a tool-call id in chat completions.
pub const COMPLETIONS_ID_LEN: usize = 40;

/// Length of each half of an id `call|item` in the Responses API.
pub const RESPONSES_ID_LEN: usize = 64;

/// Length of a tool-call id at Mistral; none may be shorter or longer.
pub const MISTRAL_ID_LEN: usize = 9;

/// Largest script file of the offline provider, in bytes.
pub const MAX_SCRIPT_BYTES: u64 = 64 << 20;

/// Longest delay a script may ask for.
pub const MAX_SCRIPT_DELAY: Duration = Duration::from_secs(3600);
