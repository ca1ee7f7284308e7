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

    /// The proxy for requests to an address, if one is used.
    fn proxy(&self, url: &Url) -> Option<UsedProxy>;

    /// The credentials that are redacted in texts; requests add to them what they carry.
    fn secrets(&self) -> &Secrets;
}

/// Part of the text about a connection that a port of this machine refused.
pub const NO_SERVER_RUNS: &str = "no server runs at";

/// A proxy that a request was sent through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsedProxy {
    /// Host and port, without user and password.
    pub address: String,
    /// The environment variable that names it.
    pub variable: &'static str,
}

impl UsedProxy {
    fn host(&self) -> &str {
        self.address
            .rsplit_once(':')
            .map_or(&self.address, |(host, _)| host)
    }
}

/// Why a request got no response, in a short text of the kind that the retry list knows (pi-core.md 4.1), then the address that
/// could not be reached. No URLs: they may hold keys.
#[must_use]
pub fn connection_error(error: &reqwest::Error, proxy: Option<&UsedProxy>) -> String {
    let (reason, names_host) = reason(error, proxy);
    let address = address(error).filter(|_| !names_host && (error.is_connect() || proxy.is_some()));
    let address = address.map_or_else(String::new, |address| format!(": {address}"));
    format!("Connection error: {reason}{address}{}", through(proxy))
}

/// The same reason for texts that name the host themselves.
pub(crate) fn connection_failure(error: &reqwest::Error, proxy: Option<&UsedProxy>) -> String {
    format!("{}{}", reason(error, proxy).0, through(proxy))
}

fn through(proxy: Option<&UsedProxy>) -> String {
    proxy.map_or_else(String::new, |proxy| {
        format!(" through the proxy {} (check {})", proxy.address, proxy.variable)
    })
}

/// The reason, and true if it names the host.
fn reason(error: &reqwest::Error, proxy: Option<&UsedProxy>) -> (String, bool) {
    if error.is_timeout() {
        return ("connecting timed out".to_owned(), false);
    }
    let whole = chain(error);
    let reason = match io_kind(error) {
        Some(io::ErrorKind::ConnectionRefused) => match address(error).filter(|_| is_here(error)) {
            Some(address) if proxy.is_none() => {
                return (format!("connection refused: {NO_SERVER_RUNS} {address}"), true);
            }
            _ => "connection refused".to_owned(),
        },
        Some(io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe) => "socket hang up".to_owned(),
        Some(io::ErrorKind::TimedOut) => "connecting timed out".to_owned(),
        _ if whole.contains("dns error") || whole.contains("lookup address") => {
            // The proxy resolves the names of the hosts behind it.
            let host = proxy
                .map(UsedProxy::host)
                .or_else(|| error.url()?.host_str())
                .unwrap_or_default();
            return (format!("getaddrinfo ENOTFOUND {host}"), proxy.is_none());
        }
        _ if whole.contains("before message completed") || whole.contains("connection closed") => {
            "other side closed".to_owned()
        }
        _ => innermost(error),
    };
    (reason, false)
}

/// Host and port of the request.
fn address(error: &reqwest::Error) -> Option<String> {
    let url = error.url()?;
    Some(format!("{}:{}", url.host_str()?, url.port_or_known_default()?))
}

/// Returns true for a request to this machine.
fn is_here(error: &reqwest::Error) -> bool {
    let host = error.url().and_then(Url::host_str).unwrap_or_default();
    host == "localhost" || host == "[::1]" || host.starts_with("127.")
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
