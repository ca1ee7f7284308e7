//! A deliberately plain HTTP client over a raw socket, so that tests see exactly what the server put there.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failing test is meant to stop at once"
)]

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::Value;
use testkit::llm::ScriptedServer;

/// Long enough for a busy machine; no test waits for it to pass.
pub(crate) const LONG: Duration = Duration::from_secs(30);

pub(crate) const ANTHROPIC: &str = "/anthropic/v1/messages";
pub(crate) const OPENAI: &str = "/openai/v1/chat/completions";
pub(crate) const RESPONSES: &str = "/responses/v1/responses";
pub(crate) const GOOGLE: &str = "/google/v1beta/models/gemini-mock:streamGenerateContent?alt=sse";

/// How reading a response ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The body was complete.
    Complete,
    /// The connection ended in an orderly way first.
    Eof,
    /// The connection was reset first.
    Reset,
    /// Nothing came any more.
    Silence,
}

/// A response as far as it came.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    pub(crate) chunks: Vec<usize>,
    pub(crate) end: End,
}

impl Response {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The data of all events that are JSON.
    pub(crate) fn events(&self) -> Vec<Value> {
        self.text()
            .lines()
            .filter_map(|l| serde_json::from_str(l.strip_prefix("data: ")?).ok())
            .collect()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let prefix = format!("{name}: ");
        self.head.lines().find_map(|l| l.strip_prefix(prefix.as_str()))
    }
}

/// A connection, and the bytes that were read too far.
pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    rest: Vec<u8>,
}

impl Client {
    pub(crate) fn new(server: &ScriptedServer) -> Self {
        let stream = TcpStream::connect(server.addr()).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        Self {
            stream,
            rest: Vec::new(),
        }
    }

    pub(crate) fn silence_after(self, time: Duration) -> Self {
        self.stream.set_read_timeout(Some(time)).unwrap();
        self
    }

    pub(crate) fn send(&mut self, path: &str, body: &str) {
        self.send_with(path, body, "");
    }

    pub(crate) fn send_with(&mut self, path: &str, body: &str, headers: &str) {
        let n = body.len();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\n{headers}Content-Length: {n}\r\n\r\n{body}"
        );
        self.stream.write_all(request.as_bytes()).unwrap();
    }

    /// Waits until `n` bytes of the body's first chunk have arrived. They stay unread.
    pub(crate) fn wait_first_chunk(&self, n: usize) {
        let end = Instant::now() + LONG;
        let mut buffer = [0; 4096];
        loop {
            let here = self.stream.peek(&mut buffer).unwrap();
            let here = String::from_utf8_lossy(buffer.get(..here).unwrap());
            let body = here.split_once("\r\n\r\n").map_or("", |(_, body)| body);
            // The line with the size stands before the chunk.
            if body.split_once("\r\n").is_some_and(|(_, chunk)| chunk.len() >= n) {
                return;
            }
            assert!(Instant::now() < end, "{here}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub(crate) fn post(&mut self, path: &str, body: &str) -> Response {
        self.send(path, body);
        self.read()
    }

    /// Reads more; the end if there is none.
    fn more(&mut self) -> Result<(), End> {
        let mut buffer = [0; 65536];
        match self.stream.read(&mut buffer) {
            Ok(0) => Err(End::Eof),
            Ok(n) => {
                self.rest.extend_from_slice(buffer.get(..n).unwrap());
                Ok(())
            }
            Err(e) if e.kind() == ErrorKind::ConnectionReset => Err(End::Reset),
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => Err(End::Silence),
            Err(e) => panic!("{e}"),
        }
    }

    /// Takes `n` bytes, or as many as come.
    fn take(&mut self, n: usize, into: &mut Vec<u8>) -> Result<(), End> {
        while self.rest.len() < n {
            if let Err(end) = self.more() {
                into.append(&mut self.rest);
                return Err(end);
            }
        }
        into.extend(self.rest.drain(..n));
        Ok(())
    }

    fn line(&mut self) -> Result<String, End> {
        loop {
            if let Some(at) = self.rest.windows(2).position(|w| w == b"\r\n") {
                let line: Vec<u8> = self.rest.drain(..at + 2).collect();
                return Ok(String::from_utf8(line).unwrap().trim_end().to_owned());
            }
            self.more()?;
        }
    }

    /// Reads one response.
    pub(crate) fn read(&mut self) -> Response {
        let mut r = Response {
            status: 0,
            head: String::new(),
            body: vec![],
            chunks: vec![],
            end: End::Complete,
        };
        if let Err(end) = self.read_into(&mut r) {
            r.end = end;
        }
        r
    }

    fn read_into(&mut self, r: &mut Response) -> Result<(), End> {
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            r.head.push_str(&line);
            r.head.push('\n');
        }
        r.status = r.head.split(' ').nth(1).unwrap().parse().unwrap();
        if let Some(n) = r.header("content-length") {
            let n = n.parse().unwrap();
            return self.take(n, &mut r.body);
        }
        if r.header("transfer-encoding").is_none() {
            loop {
                self.take(usize::MAX, &mut r.body)?;
            }
        }
        loop {
            let size = usize::from_str_radix(&self.line()?, 16).unwrap();
            if size > 0 {
                r.chunks.push(size);
                self.take(size, &mut r.body)?;
            }
            let end = self.line()?;
            assert_eq!(end, "");
            if size == 0 {
                return Ok(());
            }
        }
    }
}

/// One request on a connection of its own.
pub(crate) fn post(server: &ScriptedServer, path: &str) -> Response {
    Client::new(server).post(path, r#"{"model": "m", "stream": true, "messages": []}"#)
}
