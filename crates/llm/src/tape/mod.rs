//! Recordings of requests to providers and their responses: written to a file (`--record`) and replayed from one
//! (`--replay`). Both hook in where a request leaves for the network, so that the same code handles retries, errors and
//! streams.
//! Not here: the meaning of requests and responses.

mod compare;
mod format;
mod index;
mod play;
mod record;
mod strip;

#[cfg(test)]
mod tests;

use reqwest::Response;
use reqwest::header::HeaderMap;

pub use play::{Player, Replaying};
pub use record::Recorder;

use crate::answer::Fault;

/// Where requests go instead of, or on their way to, the network.
#[derive(Debug, Clone, Default)]
pub enum Tape {
    /// To the network alone.
    #[default]
    None,
    /// To the network, and into a file.
    Record(Recorder),
    /// To a file, which answers.
    Replay(Player),
}

/// What a tape must know of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    /// API family.
    pub(crate) api: &'a str,
    /// Provider id.
    pub(crate) provider: &'a str,
    /// Model id.
    pub(crate) model: &'a str,
    pub(crate) url: &'a str,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) body: &'a [u8],
}

/// A remark for the user that travels with a response.
#[derive(Debug, Clone)]
pub(crate) struct Remark(pub(crate) String);

/// The remark that came with a response.
pub(crate) fn remark(response: &Response) -> Option<String> {
    response
        .extensions()
        .get::<Remark>()
        .map(|Remark(text)| text.clone())
}

/// A base URL for a request that a tape answers. What a variable would have to complete does not matter then.
pub(crate) fn address(base: &str) -> String {
    if base.is_empty() || base.contains('{') {
        return "http://replay.invalid".to_owned();
    }
    base.to_owned()
}

/// Something about a tape that cannot go on; never tried again.
pub(crate) fn fault(text: &str) -> Fault {
    Fault::new(format!("Replay: {text}"))
}
