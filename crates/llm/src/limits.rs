//! Every number that bounds what the API families accept, wait for or repeat. Limits of the registry live there.

use std::time::Duration;

/// Longest line and largest event of a stream, in bytes.
pub const MAX_EVENT_BYTES: usize = 16 << 20;

/// Buffer of a stream that is kept between events.
pub(crate) const KEPT_BYTES: usize = 64 << 10;

/// Largest answer, in bytes of text, reasoning and tool calls together.
pub const MAX_ANSWER_BYTES: usize = 16 << 20;

/// Most content blocks of an answer.
pub const MAX_BLOCKS: usize = 20_000;

/// Deepest nesting of the arguments of a tool call. A call with deeper ones does not run.
pub const MAX_ARGUMENT_DEPTH: usize = 100;

/// Most bytes of a response body after decompression.
pub const MAX_BODY_BYTES: u64 = 1 << 30;

/// Most bytes read of the body of an HTTP error.
pub const MAX_ERROR_BODY_BYTES: usize = 64 << 10;

/// Longest error message in bytes.
pub const MAX_ERROR_TEXT_BYTES: usize = 8 << 10;

/// Events in a batch.
pub const MAX_BATCH_EVENTS: usize = 512;

/// Bytes of a stream after which a batch ends.
pub const MAX_BATCH_BYTES: u64 = 256 << 10;

/// Default idle timeout of a stream.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(300);

/// Timeout of a connection attempt.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// Timeout for the body of an HTTP error.
pub const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Time for which an idle connection is kept.
pub const POOL_IDLE: Duration = Duration::from_secs(45);

/// Timeout for the rest of a finished response, so that its connection can be reused.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Most bytes of the rest of a finished response.
pub const DRAIN_BYTES: usize = 64 << 10;

/// Most redirects of one request; only within one origin.
pub const MAX_REDIRECTS: usize = 5;

/// First delay between attempts of one request. It doubles with each attempt.
pub const RETRY_BASE: Duration = Duration::from_millis(500);

/// Longest delay between attempts of one request.
pub const RETRY_CAP: Duration = Duration::from_secs(8);

/// Longest delay that a server can request. With a longer one, the request fails at once.
pub const RETRY_AFTER_CAP: Duration = Duration::from_secs(60);

/// Length of a tool-call id at Anthropic and Bedrock.
pub const ANTHROPIC_ID_LEN: usize = 64;

/// Length of a tool-call id in chat completions.
pub const COMPLETIONS_ID_LEN: usize = 40;

/// Length of each half of an id `call|item` in the Responses API.
pub const RESPONSES_ID_LEN: usize = 64;

/// Most characters of a prompt cache key at OpenAI.
pub(crate) const PROMPT_CACHE_KEY_LEN: usize = 64;

/// Least output limit of the Responses API, in tokens.
pub(crate) const RESPONSES_LEAST_OUTPUT: u64 = 16;

/// Length of a tool-call id at Mistral; none may be shorter or longer.
pub const MISTRAL_ID_LEN: usize = 9;

/// Longest line of a recording, in bytes.
pub const MAX_TAPE_LINE: u64 = 256 << 20;

/// Most requests of a recording.
pub const MAX_TAPE_EXCHANGES: usize = 100_000;

/// Longest delay that a replay of a recording keeps.
pub const MAX_TAPE_WAIT: Duration = Duration::from_secs(3600);

/// Time for which a replayed answer stays open if the recorded one was aborted.
pub const TAPE_HOLD: Duration = Duration::from_secs(10);

/// Largest script file of the offline provider, in bytes.
pub const MAX_SCRIPT_BYTES: u64 = 64 << 20;

/// Longest delay in a script.
pub const MAX_SCRIPT_DELAY: Duration = Duration::from_secs(3600);

/// Timeout of the whole search for credentials.
pub const CREDENTIALS_TIMEOUT: Duration = Duration::from_secs(30);

/// Largest downloaded document, such as a list of models, in bytes.
pub const MAX_DOCUMENT_BYTES: usize = 64 << 20;

/// Timeout of a download.
pub const DOCUMENT_TIMEOUT: Duration = Duration::from_secs(60);

/// Room for the body of a request, bytes; it grows when more is needed.
pub(crate) const BODY_BYTES: usize = 16 << 10;

/// Room for each message in it, bytes.
pub(crate) const BODY_BYTES_PER_MESSAGE: usize = 256;

/// Models in sessions whose refusal of strict tools is remembered. Further ones cost a refused request again.
pub(crate) const STRICT_REFUSALS: usize = 256;

/// Most bytes of a conversation that stay encoded during a run. Longer conversations are encoded anew for every request.
pub const ENCODED_BYTES: usize = 64 << 20;
