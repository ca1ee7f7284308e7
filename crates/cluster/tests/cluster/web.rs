//! Web gateways: clients of sessions on workers over HTTP, at one gateway and then at another.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use crate::helpers::always;
use crate::place::{Place, is};

const WAIT: Duration = Duration::from_secs(40);

/// A web gateway, killed when this value goes.
struct Gateway {
    child: Child,
    port: u16,
}

impl Gateway {
    fn start(place: &Place, environment: &[(&str, &str)]) -> Result<Self> {
        let mut child = Command::new(&place.pinion)
            .args(["--mode", "web", "--port", "0", "--nats", &place.url()])
            .env("PI_CODING_AGENT_DIR", place.path("agent"))
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut lines = BufReader::new(child.stdout.take().context("no stdout")?).lines();
        let address = lines
            .find_map(|line| Some(line.ok()?.split_once("WebSocket: ws://")?.1.to_owned()))
            .context("no address")?;
        let port = address.split([':', '/']).nth(1).context("no port")?.parse()?;
        Ok(Self { child, port })
    }

    /// Sends a request; returns the status and the stream at its body.
    fn request(&self, head: &str, body: &str) -> Result<(String, BufReader<TcpStream>)> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(WAIT))?;
        let (port, length) = (self.port, body.len());
        write!(
            stream,
            "{head}\r\nhost: 127.0.0.1:{port}\r\norigin: http://127.0.0.1:{port}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        )?;
        let mut reader = BufReader::new(stream);
        let mut status = String::new();
        reader.read_line(&mut status)?;
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            ensure!(reader.read_line(&mut line)? > 0, "no body after {status}");
        }
        Ok((status.trim().to_owned(), reader))
    }

    /// Sends a command of a session and returns its response.
    fn ask(&self, session: &str, command: &Value) -> Result<Value> {
        let head = format!("POST /{session}/api/command HTTP/1.1\r\nconnection: close");
        let (status, mut body) = self.request(&head, &command.to_string())?;
        let mut text = String::new();
        body.read_to_string(&mut text)?;
        serde_json::from_str(&text).with_context(|| format!("{status}: {text}"))
    }

    /// The events of a session from now on.
    fn events(&self, session: &str, query: &str) -> Result<Events> {
        let (status, body) = self.request(&format!("GET /{session}/api/events{query} HTTP/1.1"), "")?;
        ensure!(status.ends_with("200 OK"), "{status}");
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in body.lines().map_while(Result::ok) {
                if let Some(data) = line.strip_prefix("data: ")
                    && let Ok(event) = serde_json::from_str::<Value>(data)
                    && sender.send(event).is_err()
                {
                    return;
                }
            }
        });
        Ok(Events {
            lines,
            seen: Vec::new(),
        })
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

struct Events {
    lines: Receiver<Value>,
    seen: Vec<Value>,
}

impl Events {
    fn find(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Result<Value> {
        let begin = Instant::now();
        while let Ok(event) = self.lines.recv_timeout(WAIT.saturating_sub(begin.elapsed())) {
            self.seen.push(event.clone());
            if fits(&event) {
                return Ok(event);
            }
        }
        bail!("no {what} after {:?}", self.seen)
    }

    fn until(&mut self, event: &str) -> Result<Value> {
        self.find(event, |line| is(line, "type", event))
    }

    fn after(&self, seq: u64) -> Vec<Value> {
        let numbered = self.seen.iter().filter(|event| event["seq"].as_u64() > Some(seq));
        numbered.cloned().collect()
    }
}

#[test]
fn web_clients_share_session_across_gateways() -> Result<()> {
    let Some(place) = crate::place()? else {
        return Ok(());
    };
    let _worker = place.worker("a", &always("blue"), &[])?;
    let mut lines = place.attach("one")?;
    lines.ask(json!({"id": "h", "type": "hello", "sequence": true}))?;
    let (first, second) = (Gateway::start(&place, &[])?, Gateway::start(&place, &[])?);
    let (mut one, mut two) = (first.events("one", "")?, second.events("one", "")?);
    let accepted = first.ask("one", &json!({"id": 7, "type": "prompt", "message": "Which?"}))?;
    ensure!(accepted["success"] == true && accepted["id"] == 7, "{accepted}");
    let settled = one.until("agent_settled")?;
    ensure!(settled == two.until("agent_settled")?);
    ensure!(lines.until("agent_settled")?["seq"] == settled["seq"]);
    ensure!(
        one.after(0) == two.after(0) && !one.after(0).is_empty(),
        "{:?}",
        one.seen
    );
    let delta = one
        .seen
        .iter()
        .find(|event| event["assistantMessageEvent"]["type"] == "text_delta");
    let delta = delta.context("no delta")?;
    ensure!(delta["assistantMessageEvent"]["delta"].is_string(), "{delta}");
    ensure!(delta["message"]["content"] == json!([]), "{delta}");
    ensure!(delta["assistantMessageEvent"].get("partial").is_none(), "{delta}");
    let messages = second.ask("one", &json!({"id": "m", "type": "get_messages"}))?;
    ensure!(
        messages["data"]["messages"][1]["content"][0]["text"] == "blue",
        "{messages}"
    );
    let other = second.ask("two", &json!({"id": "m", "type": "get_messages"}))?;
    ensure!(other["data"]["messages"] == json!([]), "{other}");
    Ok(())
}

#[test]
fn web_client_continues_by_number_elsewhere() -> Result<()> {
    let Some(place) = crate::place()? else {
        return Ok(());
    };
    let worker = place.worker("a", &always("red"), &[])?;
    let first = Gateway::start(&place, &[])?;
    let mut events = first.events("moved", "?after=0")?;
    let connected = events.until("connected")?;
    ensure!(
        connected["instanceId"] == "moved" && connected["isComplete"] == true,
        "{connected}"
    );
    first.ask("moved", &json!({"id": 1, "type": "prompt", "message": "Go"}))?;
    let last = events.until("agent_settled")?["seq"]
        .as_u64()
        .context("no number")?;
    drop(first);
    // Another worker and another gateway go on with the numbers.
    worker.signal("-KILL")?;
    let _other = place.worker("b", &always("green"), &[])?;
    let second = Gateway::start(&place, &[])?;
    let mut again = second.events("moved", "?after=3&instance=moved")?;
    let connected = again.until("connected")?;
    ensure!(connected["isComplete"] == true, "{connected}");
    again.find("the last event", |event| event["seq"] == last)?;
    ensure!(
        again.after(3) == events.after(3),
        "{:?} {:?}",
        again.seen,
        events.seen
    );
    second.ask("moved", &json!({"id": 2, "type": "prompt", "message": "More"}))?;
    again.until("agent_settled")?;
    let numbers: Vec<u64> = again
        .after(3)
        .iter()
        .filter_map(|event| event["seq"].as_u64())
        .collect();
    let expected: Vec<u64> = (4..4 + numbers.len() as u64).collect();
    ensure!(numbers == expected && numbers.len() as u64 > last, "{numbers:?}");
    let snapshot = second.ask(
        "moved",
        &json!({"id": 3, "type": "replay", "after": 3, "instance": "other"}),
    )?;
    let messages = snapshot["data"]["snapshot"]["messages"].as_array();
    ensure!(messages.is_some_and(|messages| messages.len() == 4), "{snapshot}");
    Ok(())
}

#[test]
fn web_gateway_guards_all_sessions() -> Result<()> {
    let Some(place) = crate::place()? else {
        return Ok(());
    };
    let _worker = place.worker("a", &always("red"), &[])?;
    let gateway = Gateway::start(&place, &[("PINION_WEB_TOKEN", "secret")])?;
    let status = |head: &str| Ok::<_, anyhow::Error>(gateway.request(head, "")?.0);
    ensure!(status("GET /one/api/events HTTP/1.1")?.contains(" 401 "));
    ensure!(status("GET /one/api/events?token=wrong HTTP/1.1")?.contains(" 401 "));
    ensure!(status("GET /one/api/events?token=secret HTTP/1.1")?.contains(" 200 "));
    ensure!(status("GET / HTTP/1.1")?.contains(" 404 "));
    ensure!(status("GET /one HTTP/1.1")?.contains(" 308 "));
    let (page, mut body) = gateway.request("GET /one/ HTTP/1.1\r\nconnection: close", "")?;
    let mut text = String::new();
    body.read_to_string(&mut text)?;
    ensure!(page.contains(" 200 ") && text.contains("boot.js"), "{page}");
    let socket = "GET /one/ws?token=secret HTTP/1.1\r\nupgrade: websocket\r\nconnection: upgrade\r\n\
                  sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==";
    ensure!(status(socket)?.contains(" 101 "));
    Ok(())
}

/// A WebSocket (RFC 6455) of a session, as far as this test needs it.
struct Socket(BufReader<TcpStream>);

impl Socket {
    fn open(gateway: &Gateway, session: &str) -> Result<Self> {
        let head = format!(
            "GET /{session}/ws HTTP/1.1\r\nupgrade: websocket\r\nconnection: upgrade\r\n\
             sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ=="
        );
        let (status, stream) = gateway.request(&head, "")?;
        ensure!(status.contains(" 101 "), "{status}");
        Ok(Self(stream))
    }

    fn send(&mut self, command: &Value) -> Result<()> {
        let text = command.to_string();
        let length = u16::try_from(text.len())?;
        // A whole text message with a length of 16 bits; its mask is zero.
        let mut frame = vec![0x81, 0x80 | 126];
        frame.extend(length.to_be_bytes());
        frame.extend([0; 4]);
        frame.extend(text.as_bytes());
        self.0.get_mut().write_all(&frame)?;
        Ok(())
    }

    fn find(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Result<Value> {
        for _ in 0..10_000 {
            let mut head = [0; 2];
            self.0
                .read_exact(&mut head)
                .with_context(|| format!("no {what}"))?;
            let [opcode, length] = head;
            let width = match length {
                127 => 8,
                126 => 2,
                _ => 0,
            };
            // The length follows in so many bytes, the most significant first.
            let mut wide = vec![0; width];
            self.0.read_exact(&mut wide)?;
            let long = wide.iter().fold(0_u64, |sum, byte| (sum << 8) | u64::from(*byte));
            let length = if width == 0 { u64::from(length) } else { long };
            let mut text = vec![0; usize::try_from(length)?];
            self.0.read_exact(&mut text)?;
            ensure!(opcode != 0x88, "the gateway closed the socket before {what}");
            if opcode != 0x81 {
                continue;
            }
            let message: Value = serde_json::from_slice(&text)?;
            if fits(&message) {
                return Ok(message);
            }
        }
        bail!("no {what}")
    }
}

#[test]
fn web_client_decides_about_calls_on_worker() -> Result<()> {
    let Some(place) = crate::place()? else {
        return Ok(());
    };
    let call = json!({"stream": [{"tool": {"name": "bash", "args": {"command": "echo x >> ran"}}}]});
    let _worker = place.worker("a", &json!([call, {"stream": [{"text": "done"}]}]), &[])?;
    let gateway = Gateway::start(&place, &[])?;
    let (mut one, mut two) = (Socket::open(&gateway, "s")?, Socket::open(&gateway, "s")?);
    one.send(&json!({"id": 1, "type": "set_permission_mode", "mode": "ask"}))?;
    let is_response = |message: &Value, id: u64| is(message, "type", "response") && message["id"] == id;
    let set = one.find("response", |message| is_response(message, 1))?;
    ensure!(set["success"] == true, "{set}");
    one.send(&json!({"id": 2, "type": "prompt", "message": "Go"}))?;
    let accepted = one.find("response", |message| is_response(message, 2))?;
    ensure!(accepted["success"] == true, "{accepted}");
    let is_dialog =
        |message: &Value| is(message, "type", "extension_ui_request") && is(message, "method", "select");
    let dialog = one.find("dialog", is_dialog)?;
    ensure!(two.find("dialog", is_dialog)?["id"] == dialog["id"]);
    ensure!(!place.path("project").join("ran").exists());
    two.send(&json!({"type": "extension_ui_response", "id": dialog["id"], "value": "Allow once"}))?;
    one.find("withdrawal", |message| {
        is(message, "method", "cancel") && message["targetId"] == dialog["id"]
    })?;
    let end = one.find("end of the call", |message| {
        is(message, "type", "tool_execution_end")
    })?;
    ensure!(end["isError"] == false, "{end}");
    two.find("end of the run", |message| is(message, "type", "agent_settled"))?;
    ensure!(std::fs::read_to_string(place.path("project").join("ran"))? == "x\n");
    Ok(())
}
