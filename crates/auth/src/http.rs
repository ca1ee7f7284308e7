//! The border to the transport: who sends requests for logins and credentials. `llm` has the HTTP clients, with the user's
//! proxies and certificates, and lends them to this crate.

use std::error::Error;
use std::fmt::Debug;
use std::io;
use std::pin::Pin;

use reqwest::Url;

use crate::Secrets;

/// The future of [`HttpClients::client`].
pub type ClientFuture<'a> = Pin<Box<dyn Future<Output = Result<reqwest::Client, String>> + Send + 'a>>;

/// HTTP clients for the requests of this crate. An error is a sentence for the user.
pub trait HttpClients: Debug + Send + Sync {
    /// The client for an address. Building the first one may read the system's certificates.
    fn client<'a>(&'a self, url: &'a Url) -> ClientFuture<'a>;

    /// The client for plain HTTP to services of this machine: it uses no proxy.
    ///
    /// # Errors
    /// When the client cannot be built.
    fn direct(&self) -> Result<reqwest::Client, String>;

    /// The credentials that are redacted in texts; requests add to them what they carry.
    fn secrets(&self) -> &Secrets;
}

/// Why a request got no response, in a short text of the kind that the retry list knows (pi-core.md 4.1). No URLs: they may hold
/// keys.
#[must_use]
pub fn connection_error(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "Connection error: connecting timed out".to_owned();
    }
    let whole = chain(error);
    let reason = match io_kind(error) {
        Some(io::ErrorKind::ConnectionRefused) => match here(error) {
            Some(address) => format!("connection refused: no server runs at {address}"),
            None => "connection refused".to_owned(),
        },
        Some(io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe) => "socket hang up".to_owned(),
        Some(io::ErrorKind::TimedOut) => "connecting timed out".to_owned(),
        _ if whole.contains("dns error") || whole.contains("lookup address") => {
            let host = error
                .url()
                .and_then(|url| url.host_str().map(str::to_owned))
                .unwrap_or_default();
            format!("getaddrinfo ENOTFOUND {host}")
        }
        _ if whole.contains("before message completed") || whole.contains("connection closed") => {
            "other side closed".to_owned()
        }
        _ => innermost(error),
    };
    format!("Connection error: {reason}")
}

/// Returns host and port if they are local, so that the error names the local server that is down.
fn here(error: &reqwest::Error) -> Option<String> {
    let url = error.url()?;
    let host = url.host_str()?;
    let is_here = host == "localhost" || host == "[::1]" || host.starts_with("127.");
    let port = url.port_or_known_default()?;
    is_here.then(|| format!("{host}:{port}"))
}

/// An error and its causes, outermost first.
fn sources<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| Error::source(*error))
}

/// The kind of the innermost IO error.
fn io_kind(error: &(dyn Error + 'static)) -> Option<io::ErrorKind> {
    sources(error)
        .filter_map(|error| error.downcast_ref::<io::Error>())
        .map(io::Error::kind)
        .last()
}

/// The texts of all causes.
fn chain(error: &(dyn Error + 'static)) -> String {
    let texts: Vec<String> = sources(error).skip(1).map(ToString::to_string).collect();
    texts.join(": ")
}

/// The text of the innermost cause; the outer ones repeat the URL.
fn innermost(error: &reqwest::Error) -> String {
    let last = sources(error).skip(1).last().map(ToString::to_string);
    last.unwrap_or_else(|| "request failed".to_owned())
}
