//! Every number of the settings: the bound on the file and the defaults of the keys (pi-core.md 8.1, pi-1.5-delta.md 6).

use std::time::Duration;

/// Bytes of a settings file; a longer one is left out with a warning.
pub const FILE_BYTES: u64 = 1024 * 1024;
/// `compaction.reserveTokens` and `branchSummary.reserveTokens`: room kept for the answer, in tokens.
pub const RESERVE_TOKENS: u64 = 16_384;
/// `compaction.keepRecentTokens`: the end of the conversation that is not summarised, in tokens.
pub const KEEP_RECENT_TOKENS: u64 = 20_000;
/// `retry.maxRetries`: attempts after the first.
pub const MAX_RETRIES: u32 = 3;
/// `retry.baseDelayMs`: wait before the first retry; doubles each time.
pub const BASE_DELAY_MS: u64 = 2_000;
/// `retry.provider.maxRetryDelayMs`: the longest wait a provider may ask for.
pub const MAX_RETRY_DELAY_MS: u64 = 60_000;
/// `httpIdleTimeoutMs`: silence on a provider's stream before it counts as dead.
pub const HTTP_IDLE_TIMEOUT_MS: u64 = 300_000;
/// `localServers.idleTimeoutMs`: as above for a server on the user's own machine, which may read a long prompt for minutes.
pub const LOCAL_IDLE_TIMEOUT_MS: u64 = 1_800_000;
/// `subagents.maxParallel`: sub-agents of a session that work at the same time.
pub const PARALLEL_SUBAGENTS: u32 = 4;
/// `dialogTimeoutMs`: default timeout of a dialog.
pub const DIALOG_WAIT: Duration = Duration::from_secs(300);
