//! Reading HTTP/1.1 requests and writing response heads. Bodies of responses are `body`'s work.

use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use crate::limits::{MAX_BODY, MAX_HEAD};

/// Why there is no (further) request on a connection.
pub(crate) enum NoRequest {
    /// The client has closed it, or it failed, or was idle for too long.
    Closed,
    /// The bytes are no HTTP request; to be answered with 400.
    Bad(&'static str),
    /// The body is larger than [`MAX_BODY`]; to be answered with 413.
    TooLarge,
}

impl From<io::Error> for NoRequest {
    fn from(_: io::Error) -> Self {
        Self::Closed
    }
}

/// A request as read from the wire.
#[derive(Debug)]
pub(crate) struct RawRequest {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// The client wants the connection closed after the answer.
    pub(crate) close: bool,
}

/// The read side of a shared socket.
struct Half(Arc<TcpStream>);

impl Read for Half {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        (&*self.0).read(buf)
    }
}

/// Reads the requests of one connection.
pub(crate) struct Requests {
    input: BufReader<Half>,
}

impl Requests {
    pub(crate) fn new(stream: Arc<TcpStream>) -> Self {
        Self {
            input: BufReader::new(Half(stream)),
        }
    }

    /// The next request.
    pub(crate) fn next(&mut self) -> Result<RawRequest, NoRequest> {
        let mut budget = MAX_HEAD;
        let mut first = self.line(&mut budget)?;
        while first.is_empty() {
            first = self.line(&mut budget)?;
        }
        let mut words = first.split_whitespace();
        let (Some(method), Some(path), Some(version)) = (words.next(), words.next(), words.next()) else {
            return Err(NoRequest::Bad("bad request line"));
        };
        let mut headers = Vec::new();
        loop {
            let line = self.line(&mut budget)?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').ok_or(NoRequest::Bad("bad header"))?;
            headers.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
        }
        let has = |name: &str, token: &str| {
            headers
                .iter()
                .any(|(n, v)| n == name && v.to_ascii_lowercase().contains(token))
        };
        let close = has("connection", "close") || version == "HTTP/1.0";
        if has("expect", "100-continue") {
            (&*self.input.get_ref().0).write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        let body = if has("transfer-encoding", "chunked") {
            self.chunked()?
        } else {
            let length = headers
                .iter()
                .find(|(n, _)| n == "content-length")
                .map_or("0", |(_, v)| v.as_str());
            self.exactly(length.parse().map_err(|_| NoRequest::Bad("bad content-length"))?)?
        };
        Ok(RawRequest {
            method: method.to_owned(),
            path: path.to_owned(),
            headers,
            body,
            close,
        })
    }

    fn line(&mut self, budget: &mut usize) -> Result<String, NoRequest> {
        let mut raw = Vec::new();
        let n = (&mut self.input)
            .take(*budget as u64)
            .read_until(b'\n', &mut raw)?;
        *budget = budget.saturating_sub(n);
        if raw.pop() != Some(b'\n') {
            return Err(if *budget == 0 {
                NoRequest::Bad("head too long")
            } else {
                NoRequest::Closed
            });
        }
        if raw.last() == Some(&b'\r') {
            raw.pop();
        }
        String::from_utf8(raw).map_err(|_| NoRequest::Bad("head is not UTF-8"))
    }

    fn exactly(&mut self, n: usize) -> Result<Vec<u8>, NoRequest> {
        if n > MAX_BODY {
            return Err(NoRequest::TooLarge);
        }
        let mut body = Vec::new();
        let got = (&mut self.input).take(n as u64).read_to_end(&mut body)?;
        if got == n {
            Ok(body)
        } else {
            Err(NoRequest::Closed)
        }
    }

    fn chunked(&mut self) -> Result<Vec<u8>, NoRequest> {
        let mut body = Vec::new();
        loop {
            let line = self.line(&mut MAX_HEAD.clone())?;
            let digits = line.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(digits, 16).map_err(|_| NoRequest::Bad("bad chunk"))?;
            if size.saturating_add(body.len()) > MAX_BODY {
                return Err(NoRequest::TooLarge);
            }
            if size == 0 {
                break;
            }
            body.append(&mut self.exactly(size)?);
            self.line(&mut MAX_HEAD.clone())?;
        }
        while !self.line(&mut MAX_HEAD.clone())?.is_empty() {}
        Ok(body)
    }
}

/// A response head, ready to be written. CR and LF in a value are left out.
pub(crate) fn head<'a>(status: u16, headers: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut out = format!("HTTP/1.1 {status} {}\r\n", reason(status));
    for (name, value) in headers {
        let value: String = value.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
        // Writing to a String cannot fail.
        let _ = write!(out, "{name}: {value}\r\n");
    }
    out.push_str("\r\n");
    out
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        413 => "Payload Too Large",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        529 => "Overloaded",
        _ => "Status",
    }
}
