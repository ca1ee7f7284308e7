//! `--mode web` from the outside: sockets, plain HTTP, files, and what people try on them.

mod access;
mod attacks;
mod commands;
mod eviction;
mod flags;
mod floods;
mod fork;
mod frames;
mod http;
mod memory;
mod requests;
mod rules;
mod seed;
mod shutdown;
mod snapshots;
mod sockets;
mod table;
mod tls;
mod trees;

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tungstenite::client::IntoClientRequest;
use tungstenite::error::ProtocolError;
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{Message, WebSocket};

use crate::kit::{LONG, PROGRAM, World, until};
use crate::line_schema::Connection;

/// A running `--mode web`.
pub(crate) struct Web {
    child: Child,
    /// Host and port.
    pub(crate) address: String,
    pub(crate) banner: String,
    err: PathBuf,
}

/// A client on a socket.
pub(crate) struct Tab {
    socket: WebSocket<TcpStream>,
    next: Cell<u32>,
    /// Everything that came.
    pub(crate) seen: RefCell<Vec<Value>>,
    schema: Connection,
}

impl Web {
    pub(crate) fn start(world: &World, args: &[&str]) -> Self {
        Self::listening(world, Self::try_start(world, args))
    }

    /// Starts a server with this limit of open files.
    pub(crate) fn start_limited(world: &World, files: usize) -> Self {
        let mut shell = Command::new("sh");
        let script = format!("ulimit -n {files} && exec \"$0\" \"$@\"");
        shell.args(["-c", &script, PROGRAM]);
        Self::listening(world, Self::run(world, shell, &[]))
    }

    /// Starts a server that looks for programs only in this folder.
    pub(crate) fn start_with_path(world: &World, args: &[&str], path: &std::path::Path) -> Self {
        let mut shell = Command::new("/bin/sh");
        let script = format!("PATH={} && exec \"$0\" \"$@\"", path.display());
        shell.args(["-c", &script, PROGRAM]);
        Self::listening(world, Self::run(world, shell, args))
    }

    fn listening(world: &World, mut web: Self) -> Self {
        until("the banner", || {
            web.banner = std::fs::read_to_string(world.dir.root().join("web.out")).unwrap();
            assert!(web.child.try_wait().unwrap().is_none(), "{}", web.errors());
            web.banner.contains("Static UI:")
        });
        let line = web
            .banner
            .lines()
            .find(|line| line.contains("WebSocket:"))
            .unwrap();
        let address = line.split("://").nth(1).unwrap();
        web.address = address.trim_end_matches("/ws").to_owned();
        web
    }

    /// Without waiting for it to listen.
    pub(crate) fn try_start(world: &World, args: &[&str]) -> Self {
        Self::run(world, Command::new(PROGRAM), args)
    }

    fn run(world: &World, mut program: Command, args: &[&str]) -> Self {
        let (out, err) = (world.dir.root().join("web.out"), world.dir.root().join("web.err"));
        let child = program
            .args(["--mode", "web", "--port", "0"])
            .args(["--provider", "mock-anthropic", "--model", "claude-mock"])
            .args(args)
            .env_clear()
            .envs(world.dir.env())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .current_dir(world.dir.cwd())
            .stdin(Stdio::null())
            .stdout(File::create(&out).unwrap())
            .stderr(File::create(&err).unwrap())
            .spawn()
            .unwrap();
        Self {
            child,
            address: String::new(),
            banner: String::new(),
            err,
        }
    }

    pub(crate) fn errors(&self) -> String {
        std::fs::read_to_string(&self.err).unwrap()
    }

    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        let mut ended = None;
        until("the end", || {
            ended = self.child.try_wait().unwrap();
            ended.is_some()
        });
        ended.unwrap()
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    pub(crate) fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none() && self.get("/health", &[]).0 == 200
    }

    pub(crate) fn connect(&self) -> TcpStream {
        self.try_connect().unwrap()
    }

    fn try_connect(&self) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(LONG))?;
        Ok(stream)
    }

    /// Sends bytes as they are; gives status, head and body of the answer. Status 0: the connection was closed.
    pub(crate) fn raw(&self, request: &[u8]) -> (u16, String, Vec<u8>) {
        let mut stream = self.connect();
        // The server may refuse and close before all is written.
        let _closed = stream.write_all(request);
        let mut answer = Vec::new();
        let _closed = stream.read_to_end(&mut answer);
        let split = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n");
        let Some(split) = split else {
            return (0, String::new(), answer);
        };
        let head = String::from_utf8_lossy(&answer[..split]).to_lowercase();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, head, answer[split + 4..].to_vec())
    }

    /// Returns the head of a response, in lower case; its body may have no end.
    pub(crate) fn head(&self, request: &str) -> String {
        let mut stream = self.connect();
        let _closed = stream.write_all(request.as_bytes());
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        String::from_utf8_lossy(&head).to_lowercase()
    }

    /// The port it listens at.
    pub(crate) fn port(&self) -> u16 {
        self.address.rsplit(':').next().unwrap().parse().unwrap()
    }

    pub(crate) fn request(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> (u16, String, Vec<u8>) {
        let mut text = format!("{method} {target} HTTP/1.1\r\nconnection: close\r\n");
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            text.push_str(&format!("host: {}\r\n", self.address));
        }
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str(&format!("content-length: {}\r\n\r\n{body}", body.len()));
        self.raw(text.as_bytes())
    }

    pub(crate) fn get(&self, target: &str, headers: &[(&str, &str)]) -> (u16, String, Vec<u8>) {
        self.request("GET", target, headers, "")
    }

    /// The origin of our own page.
    pub(crate) fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A socket from our own page.
    pub(crate) fn tab(&self) -> Tab {
        self.tab_at("/ws")
    }

    pub(crate) fn tab_at(&self, path: &str) -> Tab {
        let origin = self.origin();
        self.try_tab(path, &[("origin", &origin)]).unwrap()
    }

    /// A socket with these headers; the status when it is refused, 0 when the server ends before it answers.
    pub(crate) fn try_tab(&self, path: &str, headers: &[(&str, &str)]) -> Result<Tab, u16> {
        let mut request = format!("ws://{}{path}", self.address)
            .into_client_request()
            .unwrap();
        for (name, value) in headers {
            let name = tungstenite::http::HeaderName::from_bytes(name.as_bytes()).unwrap();
            request.headers_mut().append(name, value.parse().unwrap());
        }
        // Snapshots may be long.
        let config = WebSocketConfig::default()
            .max_message_size(None)
            .max_frame_size(None);
        // A server that has ended refuses connections.
        let Ok(stream) = self.try_connect() else {
            return Err(0);
        };
        match tungstenite::client::client_with_config(request, stream, Some(config)) {
            Ok((socket, _)) => Ok(Tab {
                socket,
                next: Cell::new(0),
                seen: RefCell::default(),
                schema: Connection::new("web"),
            }),
            Err(tungstenite::HandshakeError::Failure(tungstenite::Error::Http(refused))) => {
                Err(refused.status().as_u16())
            }
            // It may also end before it reads the request.
            Err(tungstenite::HandshakeError::Failure(
                tungstenite::Error::Io(_) | tungstenite::Error::Protocol(ProtocolError::HandshakeIncomplete),
            )) => Err(0),
            Err(other) => panic!("{other}"),
        }
    }

    /// Waits until so many clients are there.
    pub(crate) fn wait_for_clients(&self, count: usize) {
        let wanted = format!("\"clients\":{count}}}");
        until("clients to come and go", || {
            let (_, _, body) = self.get("/health", &[]);
            String::from_utf8_lossy(&body).contains(&wanted)
        });
    }

    /// The most memory it ever had, in kB.
    pub(crate) fn peak(&self) -> u64 {
        self.memory("VmHWM:")
    }

    /// The memory that it has now, in kB.
    pub(crate) fn resident(&self) -> u64 {
        self.memory("VmRSS:")
    }

    fn memory(&self, row: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let bytes = status.lines().find_map(|line| line.strip_prefix(row)).unwrap();
        bytes.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// Ends it by SIGTERM; it must end in order.
    pub(crate) fn finish(mut self) {
        terminate(self.pid());
        assert_eq!(self.wait().code(), Some(0), "{}", self.errors());
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}

pub(crate) fn terminate(pid: i32) {
    let killed = Command::new("kill").arg(pid.to_string()).status().unwrap();
    assert!(killed.success());
}

impl Tab {
    pub(crate) fn send_text(&mut self, text: &str) {
        self.socket.send(Message::text(text)).unwrap();
    }

    /// Sends a command under a new id.
    pub(crate) fn send(&mut self, mut command: Value) -> String {
        self.next.set(self.next.get() + 1);
        let id = format!("req_{}", self.next.get());
        command["id"] = id.clone().into();
        self.send_text(&command.to_string());
        id
    }

    /// The next line, or the code that the connection is closed with; 0 when no line comes in time.
    pub(crate) fn line(&mut self) -> Result<Value, u16> {
        let end = Instant::now() + LONG;
        // Pings keep a connection alive on which nothing else comes.
        while Instant::now() < end {
            match self.socket.read() {
                Ok(Message::Text(text)) => {
                    let value: Value = serde_json::from_str(&text).unwrap();
                    self.schema.check(&value);
                    self.seen.borrow_mut().push(value.clone());
                    return Ok(value);
                }
                Ok(Message::Close(frame)) => return Err(frame.map_or(1005, |frame| frame.code.into())),
                Ok(_) => {}
                Err(_) => return Err(1006),
            }
        }
        Err(0)
    }

    /// Waits for a line; those before it are seen, too.
    pub(crate) fn wait(&mut self, what: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + LONG;
        loop {
            assert!(Instant::now() < end, "{:?}", self.seen.borrow());
            let line = self.line().unwrap();
            if what(&line) {
                return line;
            }
        }
    }

    pub(crate) fn wait_type(&mut self, kind: &str) -> Value {
        self.wait(|line| line["type"] == kind)
    }

    pub(crate) fn ask(&mut self, command: Value) -> Value {
        let id = self.send(command);
        self.wait(|line| line["type"] == "response" && line["id"] == *id)
    }

    pub(crate) fn data(&mut self, command: Value) -> Value {
        let response = self.ask(command);
        assert_eq!(response["success"], true, "{response}");
        response["data"].clone()
    }

    /// Says something and waits until all is quiet; gives what came.
    pub(crate) fn say(&mut self, text: &str) -> Vec<Value> {
        let before = self.seen.borrow().len();
        self.data(json!({"type": "prompt", "message": text}));
        self.wait_type("agent_settled");
        self.seen.borrow()[before..].to_vec()
    }

    /// Lets the system hold little of what this client has not read: some machines hold 32 MB, which a server takes for read.
    pub(crate) fn hold_little(&self) {
        let stream = self.socket.get_ref();
        rustix::net::sockopt::set_socket_recv_buffer_size(stream, 64 * 1024).unwrap();
    }

    /// Nothing more comes for a moment.
    pub(crate) fn is_quiet(&mut self) -> bool {
        let stream = self.socket.get_ref();
        stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        let quiet = self.line().is_err();
        self.socket.get_ref().set_read_timeout(Some(LONG)).unwrap();
        quiet
    }

    pub(crate) fn socket(&mut self) -> &mut WebSocket<TcpStream> {
        &mut self.socket
    }
}
