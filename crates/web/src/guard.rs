//! Access control of a web server (web.md 3): its host names, the pages that may use it, the token. Pure: headers in,
//! verdict out, with a delay after wrong tokens. It does not know the commands of a request.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use subtle::ConstantTimeEq;
use tokio::sync::Semaphore;

use crate::limits::{WEB_WRONG_PAUSE, WEB_WRONG_QUEUE, WEB_WRONG_TOKENS, WEB_WRONG_WINDOW};

/// Prefix of the WebSocket subprotocol that carries a token, for browsers that should not have it in an address.
pub(crate) const BEARER_PROTOCOL: &str = "bearer.";

/// Decides which requests a web server accepts.
#[derive(Debug)]
pub(crate) struct Guard {
    bound: SocketAddr,
    /// The name that was asked for, if it is none of an address.
    name: Option<String>,
    scheme: &'static str,
    token: Option<String>,
    /// Origins of other pages that may use the server, as configured.
    origins: Vec<String>,
    /// When wrong tokens came lately.
    wrong: Mutex<VecDeque<Instant>>,
    /// Serialises token checks after many wrong tokens.
    turn: tokio::sync::Mutex<()>,
    /// Places to wait for it.
    waiting: Semaphore,
}

/// What a request wants, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wants {
    /// A public resource: health, the page's files.
    Public,
    /// To talk to the agent.
    Agent,
}

/// Why a request was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Not exactly one host name.
    BadHost,
    /// A host name that this server does not have.
    ForeignHost,
    /// A page of another origin, or a request without origin and token.
    ForeignOrigin,
    /// No token, or a wrong one.
    WrongToken,
    /// Too many wrong tokens lately.
    TooManyTokens,
}

impl Refusal {
    /// The status of the response.
    pub(crate) fn status(self) -> StatusCode {
        match self {
            Self::BadHost => StatusCode::BAD_REQUEST,
            Self::ForeignHost | Self::ForeignOrigin => StatusCode::FORBIDDEN,
            Self::WrongToken => StatusCode::UNAUTHORIZED,
            Self::TooManyTokens => StatusCode::TOO_MANY_REQUESTS,
        }
    }

    /// The body of the response: what to change. It contains nothing of the request or of the server.
    pub(crate) fn advice(self) -> &'static str {
        match self {
            Self::BadHost => "The request needs one header Host\n",
            Self::ForeignHost => {
                "This server does not answer to this host name. Start it with --host NAME, or with --web-allowed-origin ORIGIN behind a proxy\n"
            }
            Self::ForeignOrigin => {
                "Pages of other origins are refused. Send the header Origin of this server. Requests without it need a server with --web-token, pages of another origin one with --web-allowed-origin ORIGIN\n"
            }
            Self::WrongToken => {
                "The token is missing or wrong. Send the header Authorization: Bearer TOKEN\n"
            }
            Self::TooManyTokens => "There were too many wrong tokens. Wait a minute\n",
        }
    }
}

impl Guard {
    /// Creates the guard of a server that listens at `bound`; `host` is the name from the command line.
    pub(crate) fn new(
        bound: SocketAddr,
        host: &str,
        is_tls: bool,
        token: Option<String>,
        origins: Vec<String>,
    ) -> Self {
        let name = host.parse::<IpAddr>().is_err().then(|| host.to_ascii_lowercase());
        Self {
            bound,
            name,
            scheme: if is_tls { "https" } else { "http" },
            token,
            origins,
            wrong: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
            waiting: Semaphore::new(WEB_WRONG_QUEUE),
        }
    }

    /// Checks a request: its host name, its origin, its token. Pages of other origins are refused before the token
    /// check. So they learn nothing about tokens, and cannot use up the limit of wrong ones.
    ///
    /// # Errors
    /// Why it is refused.
    pub(crate) async fn admit(&self, request: &Parts, wants: Wants) -> Result<(), Refusal> {
        self.check_page(request, wants)?;
        if wants == Wants::Public {
            return Ok(());
        }
        self.take_turn().await?;
        self.check_token(request, Instant::now())
    }

    /// The first part of it, which depends on nothing but the request.
    pub(crate) fn check_page(&self, request: &Parts, wants: Wants) -> Result<(), Refusal> {
        let authority = authority(request).ok_or(Refusal::BadHost)?;
        if !self.answers_to(&authority) {
            return Err(Refusal::ForeignHost);
        }
        match wants {
            Wants::Public => Ok(()),
            Wants::Agent => self.check_origin(&request.headers, &authority),
        }
    }

    /// Waits, when there were many wrong tokens lately, until this request's may be looked at; no more than a few may wait.
    async fn take_turn(&self) -> Result<(), Refusal> {
        if self.token.is_none() || self.count_wrong(Instant::now()) < WEB_WRONG_TOKENS {
            return Ok(());
        }
        let place = self.waiting.try_acquire();
        let _place = place.map_err(|_| Refusal::TooManyTokens)?;
        let _turn = self.turn.lock().await;
        tokio::time::sleep(WEB_WRONG_PAUSE).await;
        Ok(())
    }

    fn count_wrong(&self, now: Instant) -> usize {
        let mut wrong = self.wrong.lock().unwrap_or_else(PoisonError::into_inner);
        wrong.retain(|at| now.duration_since(*at) < WEB_WRONG_WINDOW);
        wrong.len()
    }

    /// Returns true if this is a name of the server. A host name counts only if it was configured: anyone can let a
    /// name in their DNS point here (DNS rebinding). An IP address cannot be redirected like that.
    fn is_ours(&self, authority: &str) -> bool {
        let Some((host, port)) = split(authority) else {
            return false;
        };
        let usual = if self.scheme == "https" { 443 } else { 80 };
        let is_our_port = port.unwrap_or(usual) == self.bound.port();
        let is_our_host = match host {
            Name::Address(address) if self.bound.ip().is_unspecified() => !address.is_unspecified(),
            Name::Address(address) if self.bound.ip().is_loopback() => address.is_loopback(),
            Name::Address(address) => address == self.bound.ip(),
            Name::Host(host) => {
                let is_local = self.bound.ip().is_loopback() || self.bound.ip().is_unspecified();
                (is_local && host.eq_ignore_ascii_case("localhost"))
                    || self
                        .name
                        .as_deref()
                        .is_some_and(|name| name.eq_ignore_ascii_case(host))
            }
        };
        is_our_port && is_our_host
    }

    /// Returns true if only this server can be at this name of ours. Another program can listen at the other loopback addresses, and
    /// any machine at the addresses that a server at 0.0.0.0 cannot tell from its own.
    fn is_ours_alone(&self, authority: &str) -> bool {
        match split(authority) {
            Some((Name::Address(address), _)) if self.bound.ip().is_unspecified() => {
                address == Ipv4Addr::LOCALHOST || address == Ipv6Addr::LOCALHOST
            }
            Some((Name::Address(address), _)) => address == self.bound.ip(),
            Some((Name::Host(_), _)) => true,
            None => false,
        }
    }

    /// Returns true if requests may have this host name. Behind a proxy it is the host of an allowed origin.
    fn answers_to(&self, authority: &str) -> bool {
        self.is_ours(authority) || self.origins.iter().any(|origin| names(origin, authority))
    }

    /// Checks the token, in the header, subprotocol or URL. Several different tokens are refused.
    pub(crate) fn check_token(&self, request: &Parts, now: Instant) -> Result<(), Refusal> {
        let Some(token) = &self.token else {
            return Ok(());
        };
        let given = given_tokens(request);
        let matches = |given: &String| bool::from(given.as_bytes().ct_eq(token.as_bytes()));
        if !given.is_empty() && given.iter().all(matches) {
            return Ok(());
        }
        if self.count_wrong(now) >= WEB_WRONG_TOKENS {
            return Err(Refusal::TooManyTokens);
        }
        let mut wrong = self.wrong.lock().unwrap_or_else(PoisonError::into_inner);
        wrong.push_back(now);
        Err(Refusal::WrongToken)
    }

    /// Accepts our own page and allowed origins. Programs send no origin; their token decides. `host` is where the request was
    /// sent to.
    fn check_origin(&self, headers: &HeaderMap, host: &str) -> Result<(), Refusal> {
        let mut origins = headers.get_all(header::ORIGIN).iter();
        let (origin, more) = (origins.next(), origins.next());
        // Says a browser by itself; no page can make it say otherwise.
        let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
        let is_fine = match (origin, more) {
            // Browsers name no origin when a page asks its own server, nor when any page shows an image.
            (None, _) if site == Some(b"same-origin") => true,
            (None, _) => self.token.is_some() && matches!(site, None | Some(b"none")),
            (Some(origin), None) => origin.to_str().is_ok_and(|origin| self.is_allowed(origin, host)),
            (Some(_), Some(_)) => false,
        };
        if is_fine {
            Ok(())
        } else {
            Err(Refusal::ForeignOrigin)
        }
    }

    fn is_allowed(&self, origin: &str, host: &str) -> bool {
        if self.origins.iter().any(|allowed| allowed == origin) {
            return true;
        }
        let authority = origin
            .strip_prefix(self.scheme)
            .and_then(|rest| rest.strip_prefix("://"));
        authority.is_some_and(|authority| {
            let is_same = authority.eq_ignore_ascii_case(host);
            self.is_ours(authority) && (is_same || self.is_ours_alone(authority))
        })
    }
}

/// Where the request was sent to: exactly one `Host`, and the same in an absolute target.
fn authority(request: &Parts) -> Option<String> {
    let mut hosts = request.headers.get_all(header::HOST).iter();
    let (host, more) = (hosts.next()?, hosts.next());
    let host = host.to_str().ok().filter(|_| more.is_none())?;
    let is_odd = host.is_empty() || host.contains(['/', '@', '?', '#', ' ', ',']);
    let agrees = request
        .uri
        .authority()
        .is_none_or(|target| target.as_str().eq_ignore_ascii_case(host));
    (!is_odd && agrees).then(|| host.to_owned())
}

/// A host of an authority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Name<'a> {
    Address(IpAddr),
    Host(&'a str),
}

/// Host and port of an authority; none if it is not written as browsers write it.
fn split(authority: &str) -> Option<(Name<'_>, Option<u16>)> {
    let (host, rest) = if let Some(bracketed) = authority.strip_prefix('[') {
        let (address, rest) = bracketed.split_once(']')?;
        (Name::Address(address.parse::<Ipv6Addr>().ok()?.into()), rest)
    } else {
        let end = authority.find(':').unwrap_or(authority.len());
        let (host, rest) = authority.split_at_checked(end)?;
        let address = host.parse::<Ipv4Addr>();
        (
            address.map_or(Name::Host(host), |address| Name::Address(address.into())),
            rest,
        )
    };
    if rest.is_empty() {
        return Some((host, None));
    }
    let digits = rest.strip_prefix(':')?;
    // `parse` would take a plus sign and zeros before the number, too.
    let port: u16 = digits.parse().ok()?;
    (port.to_string() == digits).then_some((host, Some(port)))
}

/// Returns true if this is the host (and port) of an allowed origin.
fn names(origin: &str, authority: &str) -> bool {
    let Some((_, host)) = origin.split_once("://") else {
        return false;
    };
    host.eq_ignore_ascii_case(authority)
}

/// All tokens in a request: `?token=`, `Authorization: Bearer`, a subprotocol `bearer.TOKEN`.
fn given_tokens(request: &Parts) -> Vec<String> {
    let mut given = Vec::new();
    for pair in request.uri.query().unwrap_or_default().split('&') {
        if let Some(value) = pair.strip_prefix("token=") {
            given.push(query_value(value));
        }
    }
    let text = |name: HeaderName| {
        let values = request.headers.get_all(name).iter();
        values.filter_map(|value| value.to_str().ok()).collect::<Vec<_>>()
    };
    for value in text(header::AUTHORIZATION) {
        let bearer = value
            .split_once(' ')
            .filter(|(kind, _)| kind.eq_ignore_ascii_case("bearer"));
        given.push(bearer.map_or_else(String::new, |(_, token)| token.trim().to_owned()));
    }
    for value in text(header::SEC_WEBSOCKET_PROTOCOL) {
        let protocols = value.split(',').map(str::trim);
        given.extend(
            protocols
                .filter_map(|protocol| protocol.strip_prefix(BEARER_PROTOCOL))
                .map(str::to_owned),
        );
    }
    given
}

/// A value of a query, in which `+` means a space.
pub(crate) fn query_value(value: &str) -> String {
    percent_decoded(&value.replace('+', " "))
}

/// Decodes the escaped bytes of a URL.
pub(crate) fn percent_decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((byte, tail)) = rest.split_first() {
        let hex = tail.first_chunk::<2>().and_then(|pair| {
            let digit = |byte: u8| char::from(byte).to_digit(16);
            let [high, low] = *pair;
            u8::try_from(digit(high)? * 16 + digit(low)?).ok()
        });
        match (byte, hex) {
            (b'%', Some(decoded)) => {
                out.push(decoded);
                rest = tail.get(2..).unwrap_or_default();
            }
            (byte, _) => {
                out.push(*byte);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}
