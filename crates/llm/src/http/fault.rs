//! Failures of the transport, in short texts of the kind that the retry list knows (pi-core.md 4.1). No URLs: they may
//! hold keys.

use auth::{UsedProxy, connection_error};

use crate::answer::Fault;

/// The request got no response.
pub(crate) fn no_response(error: &reqwest::Error, proxy: Option<&UsedProxy>) -> Fault {
    Fault::new(connection_error(error, proxy))
}

/// The body of an answer broke off, was not framed right or could not be unpacked: one text for all, because what helps is
/// the same (behaviour.md 7.5).
pub(crate) fn broken_body() -> Fault {
    Fault::new("terminated")
}
