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

/// Fewest bytes of a credential that is looked for in texts; shorter ones would hit ordinary words.
pub const SHORTEST_SECRET: usize = 12;

/// Most credentials that are looked for in texts, all their written forms counted.
pub const MAX_SECRETS: usize = 4096;

/// Longest line of a recording, in bytes.
pub const MAX_TAPE_LINE: u64 = 256 << 20;

/// Most requests of a recording.
pub const MAX_TAPE_EXCHANGES: usize = 100_000;

/// Longest recorded wait that is kept when a recording is played in its own time.
pub const MAX_TAPE_WAIT: Duration = Duration::from_secs(3600);

/// How long a played answer stays open where the recorded one was given up.
pub const TAPE_HOLD: Duration = Duration::from_secs(10);

/// Largest script file of the offline provider, in bytes.
pub const MAX_SCRIPT_BYTES: u64 = 64 << 20;

/// Longest delay a script may ask for.
pub const MAX_SCRIPT_DELAY: Duration = Duration::from_secs(3600);

/// How long a server that gives credentials may take for one answer.
pub const CREDENTIAL_TIMEOUT: Duration = Duration::from_secs(10);

/// The same for a server of the machine's own surroundings (instance metadata), which answers at once or not at all.
pub const METADATA_TIMEOUT: Duration = Duration::from_secs(2);

/// How long finding credentials may take in all.
pub const CREDENTIALS_TIMEOUT: Duration = Duration::from_secs(30);

/// How long before their end credentials are renewed.
pub const CREDENTIAL_MARGIN: Duration = Duration::from_secs(300);

/// After which time credentials without an end are looked for again.
pub const CREDENTIAL_RECHECK: Duration = Duration::from_secs(300);

/// Most sets of credentials that are kept.
pub const MAX_CREDENTIAL_SETS: usize = 16;

/// Largest file or answer with credentials, in bytes.
pub const MAX_CREDENTIAL_BYTES: usize = 1 << 20;

/// Most profiles that may refer to each other for a role.
pub const MAX_PROFILE_CHAIN: usize = 5;

/// How long a connection to a local server may take to stand.
pub const LOCAL_CONNECT: Duration = Duration::from_millis(300);

/// How long a local server may take for the head of one answer about itself; it may be busy with a model.
pub const LOCAL_ANSWER: Duration = Duration::from_secs(1);

/// How long looking at one local server may take in all.
pub const LOCAL_WHOLE: Duration = Duration::from_secs(3);

/// How long what was found at local servers counts as fresh.
pub const LOCAL_FRESH: Duration = Duration::from_secs(5);

/// Largest answer of a local server about itself, in bytes.
pub const LOCAL_BODY: usize = 8 << 20;

/// Most models of one local server.
pub const LOCAL_MODELS: usize = 200;

/// Models of a local server that are asked about at once.
pub const LOCAL_AT_ONCE: usize = 8;

/// Most times that a change among the local servers is taken note of in one process.
pub const LOCAL_CHANGES: usize = 1000;

/// Context window of a local model that names none, in tokens: what small servers offer unless told otherwise.
pub const LOCAL_CONTEXT: u64 = 8192;

/// Largest answer asked of a local model, in tokens; a quarter of its window if that is less.
pub const LOCAL_OUTPUT: u64 = 16_384;

/// Largest document that is fetched, such as a list of models, in bytes.
pub const MAX_DOCUMENT_BYTES: usize = 64 << 20;

/// How long fetching a document may take.
pub const DOCUMENT_TIMEOUT: Duration = Duration::from_secs(60);

/// Room for the body of a request, bytes; it grows when more is needed.
pub(crate) const BODY_BYTES: usize = 16 << 10;

/// Room for each message in it, bytes.
pub(crate) const BODY_BYTES_PER_MESSAGE: usize = 256;
