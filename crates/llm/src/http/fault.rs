//! Failures of the transport, in short texts of the kind that the retry list knows (pi-core.md 4.1). No URLs: they may
//! hold keys.

use std::error::Error;
use std::io;

use crate::answer::Fault;

/// The request got no response.
pub(crate) fn no_response(error: &reqwest::Error) -> Fault {
    if error.is_timeout() {
        return Fault::new("Connection error: connecting timed out");
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
    Fault::new(format!("Connection error: {reason}"))
}

/// Returns host and port if they are local, so that the error names the local server that is down.
fn here(error: &reqwest::Error) -> Option<String> {
    let url = error.url()?;
    let host = url.host_str()?;
    let is_here = host == "localhost" || host == "[::1]" || host.starts_with("127.");
    let port = url.port_or_known_default()?;
    is_here.then(|| format!("{host}:{port}"))
}

/// The body of an answer broke off, was not framed right or could not be unpacked: one text for all, because what helps is
/// the same (behaviour.md 7.5).
pub(crate) fn broken_body() -> Fault {
    Fault::new("terminated")
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
