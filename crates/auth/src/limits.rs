//! Every number that bounds what this crate reads, keeps and waits for. Those of logins are in `login::limits`.

use std::time::Duration;

/// Fewest bytes of a credential that is redacted in texts. Shorter ones would match ordinary words.
pub const SHORTEST_SECRET: usize = 12;

/// Most credentials that are redacted in texts, including encoded forms. Configured ones take at most half of it and are
/// never dropped for others.
pub const MAX_SECRETS: usize = 16_384;

/// Timeout of a credential server.
pub const CREDENTIAL_TIMEOUT: Duration = Duration::from_secs(10);

/// Timeout of a metadata server, which answers at once or not at all.
pub const METADATA_TIMEOUT: Duration = Duration::from_secs(2);

/// Time before expiry at which credentials are refreshed.
pub const CREDENTIAL_MARGIN: Duration = Duration::from_secs(300);

/// Time after which credentials without an expiry are read again.
pub const CREDENTIAL_RECHECK: Duration = Duration::from_secs(300);

/// Most sets of credentials that are kept.
pub const MAX_CREDENTIAL_SETS: usize = 16;

/// Largest file or answer with credentials, in bytes.
pub const MAX_CREDENTIAL_BYTES: usize = 1 << 20;

/// Most profiles that may refer to each other for a role.
pub const MAX_PROFILE_CHAIN: usize = 5;

/// Longest text taken from an error body that is a web page, in bytes.
pub const MAX_PAGE_TEXT_BYTES: usize = 300;
