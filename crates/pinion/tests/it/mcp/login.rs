//! Servers over HTTP that want a login: the whole way from the refusal over the browser to a tool call and a new token,
//! against a server and an authorisation server that are played here.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use testkit::llm::Reply;

use super::{call, ends, until};
use crate::kit::{PROGRAM, World};

/// Both servers at one address.
struct Web {
    base: String,
    /// Method and path of every request, with its body.
    seen: Arc<Mutex<Vec<(String, String)>>>,
    state: Arc<State>,
}

/// What the servers do now.
struct State {
    /// The token that counts.
    token: Mutex<String>,
    /// Nothing is known of logins for the moment.
    is_away: AtomicBool,
    /// No token is given for a refresh token.
    is_strict: AtomicBool,
}

impl Web {
    fn start() -> Self {
        Self::with_page(None)
    }

    /// A server that sends people to this page instead of its own.
    fn with_page(page: Option<&'static str>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let web = Self {
            base: base.clone(),
            seen: Arc::default(),
            state: Arc::new(State {
                token: Mutex::new("at1".to_owned()),
                is_away: AtomicBool::new(false),
                is_strict: AtomicBool::new(false),
            }),
        };
        let (seen, state) = (Arc::clone(&web.seen), Arc::clone(&web.state));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (base, seen, state) = (base.clone(), Arc::clone(&seen), Arc::clone(&state));
                std::thread::spawn(move || serve(stream.unwrap(), &base, page, &seen, &state));
            }
        });
        web
    }

    fn bodies(&self, place: &str) -> Vec<String> {
        let seen = self.seen.lock().unwrap();
        let found = seen.iter().filter(|(known, _)| known == place);
        found.map(|(_, body)| body.clone()).collect()
    }
}

fn serve(
    stream: TcpStream,
    base: &str,
    page: Option<&str>,
    seen: &Mutex<Vec<(String, String)>>,
    state: &State,
) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut out = stream;
    loop {
        let mut first = String::new();
        if reader.read_line(&mut first).unwrap_or(0) == 0 {
            return;
        }
        let mut headers = HashMap::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            let Some((name, value)) = line.trim().split_once(": ") else {
                break;
            };
            headers.insert(name.to_lowercase(), value.to_owned());
        }
        let length = headers
            .get("content-length")
            .map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let body = String::from_utf8(body).unwrap();
        let mut words = first.split(' ');
        let place = format!("{} {}", words.next().unwrap(), words.next().unwrap());
        seen.lock().unwrap().push((place.clone(), body.clone()));
        let known = format!("Bearer {}", state.token.lock().unwrap());
        let is_known = headers.get("authorization") == Some(&known);
        let (status, more, kind, answer) = answer(&place, &body, (base, page), is_known, state);
        let length = answer.len();
        let head =
            format!("HTTP/1.1 {status}\r\n{more}content-type: {kind}\r\ncontent-length: {length}\r\n\r\n");
        if out.write_all(format!("{head}{answer}").as_bytes()).is_err() {
            return;
        }
    }
}

type Answer = (&'static str, String, &'static str, String);

fn json_of(value: Value) -> Answer {
    ("200 OK", String::new(), "application/json", value.to_string())
}

fn answer(
    place: &str,
    body: &str,
    (base, page): (&str, Option<&str>),
    is_known: bool,
    state: &State,
) -> Answer {
    let is = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
    match place {
        _ if place.starts_with("GET") && is(&state.is_away) => (
            "503 Service Unavailable",
            String::new(),
            "text/plain",
            String::new(),
        ),
        "POST /mcp" if !is_known => {
            let place = format!("{base}/.well-known/oauth-protected-resource/mcp");
            let more = format!("www-authenticate: Bearer resource_metadata=\"{place}\"\r\n");
            ("401 Unauthorized", more, "text/plain", "who are you?".to_owned())
        }
        "POST /mcp" => mcp(body),
        "GET /.well-known/oauth-protected-resource/mcp" => {
            json_of(json!({"resource": format!("{base}/mcp"), "authorization_servers": [base]}))
        }
        "GET /.well-known/oauth-authorization-server" => json_of(json!({
            "issuer": base,
            "authorization_endpoint": page.map_or_else(|| format!("{base}/authorize"), str::to_owned),
            "token_endpoint": format!("{base}/token"),
            "registration_endpoint": format!("{base}/register"),
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
        })),
        "POST /register" => {
            let asked: Value = serde_json::from_str(body).unwrap();
            json_of(
                json!({"client_id": "client-1", "client_name": "x", "redirect_uris": asked["redirect_uris"]}),
            )
        }
        "POST /token" if body.contains("grant_type=refresh_token") && is(&state.is_strict) => {
            let refusal = json!({"error": "invalid_grant"}).to_string();
            ("400 Bad Request", String::new(), "application/json", refusal)
        }
        "POST /token" if body.contains("grant_type=refresh_token") => {
            assert!(body.contains("refresh_token=rt1"), "{body}");
            *state.token.lock().unwrap() = "at2".to_owned();
            json_of(
                json!({"access_token": "at2", "token_type": "Bearer", "expires_in": 3600, "refresh_token": "rt2"}),
            )
        }
        "POST /token" => {
            assert!(
                body.contains("code=c0de") && body.contains("code_verifier="),
                "{body}"
            );
            json_of(
                json!({"access_token": "at1", "token_type": "Bearer", "expires_in": 3600, "refresh_token": "rt1"}),
            )
        }
        _ => ("404 Not Found", String::new(), "text/plain", String::new()),
    }
}

fn mcp(body: &str) -> Answer {
    let message: Value = serde_json::from_str(body).unwrap();
    let id = &message["id"];
    let answer = |result: Value| json!({"jsonrpc": "2.0", "id": id, "result": result});
    match message["method"].as_str().unwrap_or_default() {
        "initialize" => {
            let (status, _, kind, body) = json_of(answer(json!({
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "web", "version": "2"},
            })));
            (status, "mcp-session-id: s1\r\n".to_owned(), kind, body)
        }
        "tools/list" => json_of(answer(
            json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}),
        )),
        // Results may come as a stream of events.
        "tools/call" => {
            let result = answer(json!({"content": [{"type": "text", "text": "by HTTP"}]}));
            let body = format!("event: message\ndata: {result}\n\n");
            ("200 OK", String::new(), "text/event-stream", body)
        }
        _ => ("202 Accepted", String::new(), "text/plain", String::new()),
    }
}

/// The value of a parameter, decoded as far as these have to be.
fn parameter(address: &str, name: &str) -> String {
    let query = address.split_once('?').unwrap().1;
    let found = query
        .split('&')
        .find_map(|pair| pair.strip_prefix(&format!("{name}=")));
    found.unwrap().replace("%3A", ":").replace("%2F", "/")
}

/// `pinion mcp login`, with pipes for input and output.
fn login(world: &World) -> Command {
    let mut command = Command::new(PROGRAM);
    command
        .args(["mcp", "login", "kit"])
        .env_clear()
        .envs(world.dir.env())
        .current_dir(world.dir.cwd())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    command
}

/// Logs in as a person does: reads the address, and goes where the page would send the browser.
fn log_in(world: &World) -> String {
    let mut child = login(world).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map(Result::unwrap);
    let address = lines.find(|line| line.starts_with("http")).unwrap();
    let (redirect, state) = (parameter(&address, "redirect_uri"), parameter(&address, "state"));
    let place = redirect.strip_prefix("http://").unwrap();
    let (host, path) = place.split_once('/').unwrap();
    let mut browser = TcpStream::connect(host).unwrap();
    let request = format!("GET /{path}?code=c0de&state={state} HTTP/1.1\r\nhost: {host}\r\n\r\n");
    browser.write_all(request.as_bytes()).unwrap();
    let mut page = String::new();
    browser.read_to_string(&mut page).unwrap();
    assert!(page.contains("You are logged in"), "{page}");
    let rest: Vec<String> = lines.collect();
    assert!(child.wait().unwrap().success(), "{rest:?}");
    address
}

#[test]
fn mcp_login_is_stored_used_refreshed_and_removed() {
    let web = Web::start();
    let world = World::new([Reply::text(["none"])]);
    let path = world.dir.agent_dir().join("mcp.json");
    let servers = json!({"mcpServers": {"kit": {"url": format!("{}/mcp", web.base)}}});
    std::fs::write(path, servers.to_string()).unwrap();
    let pi = world.start();
    pi.say("Go");
    let server = pi.get("get_mcp_servers")["servers"][0].clone();
    assert_eq!(
        (&server["status"], &server["transport"]),
        (&json!("needs_login"), &json!("http")),
        "{server}"
    );

    let address = log_in(&world);
    assert_eq!(parameter(&address, "code_challenge_method"), "S256");
    assert_eq!(parameter(&address, "client_id"), "client-1");
    let file = world.dir.agent_dir().join("mcp-auth.json");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    // Pi makes a directory of this name to read or write the file.
    assert!(!world.dir.agent_dir().join("mcp-auth.json.lock").exists());

    // The session that runs finds the login.
    pi.data(json!({"type": "mcp_reconnect", "server": "kit"}));
    until("a connection", || {
        pi.get("get_mcp_servers")["servers"][0]["status"] == "connected"
    });
    world.server.push(call("c1", "echo", json!({})));
    world.server.push(Reply::text(["done"]));
    assert_eq!(ends(&pi.say("Go on")), [("by HTTP".to_owned(), false)]);

    // A token that does not count any more is renewed in the middle of it all.
    *web.state.token.lock().unwrap() = "another".to_owned();
    world.server.push(call("c2", "echo", json!({})));
    world.server.push(Reply::text(["done"]));
    assert_eq!(ends(&pi.say("Once more")), [("by HTTP".to_owned(), false)]);
    assert_eq!(web.bodies("POST /token").len(), 2);
    assert_eq!(web.bodies("POST /register").len(), 1);
    pi.finish();

    assert_eq!(world.run(&["mcp", "logout", "kit"], "").code, Some(0));
    assert!(!std::fs::read_to_string(&file).unwrap().contains("at2"));
    let listed = world.run(&["mcp", "list"], "");
    assert_eq!(listed.code, Some(1));
    assert!(listed.out.contains("needs_login"), "{}", listed.out);
}

/// A world with this server, in a spelling of its address that is not the normal one.
fn world_of(web: &Web, replies: impl IntoIterator<Item = Reply>) -> World {
    let world = World::new(replies);
    let path = world.dir.agent_dir().join("mcp.json");
    let servers = json!({"mcpServers": {"kit": {"url": format!("{}/./mcp", web.base)}}});
    std::fs::write(path, servers.to_string()).unwrap();
    world
}

#[test]
fn mcp_logout_finds_login_of_any_spelling() {
    let web = Web::start();
    let world = world_of(&web, []);
    log_in(&world);
    let file = world.dir.agent_dir().join("mcp-auth.json");
    assert!(std::fs::read_to_string(&file).unwrap().contains("at1"));
    assert_eq!(world.run(&["mcp", "logout", "kit"], "").code, Some(0));
    assert!(!std::fs::read_to_string(&file).unwrap().contains("at1"));
}

/// The stored login is kept: only its server cannot be asked for the moment.
#[test]
fn unchecked_mcp_login_is_a_retried_failure() {
    let web = Web::start();
    let world = world_of(&web, [Reply::text(["none"])]);
    log_in(&world);
    web.state.is_away.store(true, Ordering::Relaxed);
    let pi = world.start();
    pi.say("Go");
    let status = || pi.get("get_mcp_servers")["servers"][0].clone();
    until("a failure", || {
        let server = status();
        let error = server["error"].as_str().unwrap_or_default();
        server["status"] == "failed" && error.contains("its login cannot be checked")
    });
    web.state.is_away.store(false, Ordering::Relaxed);
    until("a connection", || status()["status"] == "connected");
    pi.finish();
}

#[test]
fn mcp_login_ending_during_session_is_reported() {
    let web = Web::start();
    let world = world_of(&web, [call("c1", "echo", json!({})), Reply::text(["done"])]);
    log_in(&world);
    let pi = world.start();
    assert_eq!(ends(&pi.say("Go")), [("by HTTP".to_owned(), false)]);

    web.state.is_strict.store(true, Ordering::Relaxed);
    *web.state.token.lock().unwrap() = "another".to_owned();
    world.server.push(call("c2", "echo", json!({})));
    world.server.push(Reply::text(["done"]));
    let ended = ends(&pi.say("Once more"));
    assert!(
        ended[0].1 && ended[0].0.contains("pinion mcp login kit"),
        "{ended:?}"
    );
    until("the status", || {
        pi.get("get_mcp_servers")["servers"][0]["status"] == "needs_login"
    });

    // The next prompt finds the new login.
    *web.state.token.lock().unwrap() = "at1".to_owned();
    log_in(&world);
    world.server.push(call("c3", "echo", json!({})));
    world.server.push(Reply::text(["done"]));
    assert_eq!(ends(&pi.say("Go on")), [("by HTTP".to_owned(), false)]);
    pi.finish();
}

/// A server of this kind started programs with the addresses that it named (CVE-2025-6514).
#[test]
fn mcp_login_page_must_be_a_web_page() {
    for page in ["file:///tmp/run.desktop", "ms-settings:x", "javascript:alert(1)"] {
        let web = Web::with_page(Some(page));
        let world = World::new([]);
        let path = world.dir.agent_dir().join("mcp.json");
        let servers = json!({"mcpServers": {"kit": {"url": format!("{}/mcp", web.base)}}});
        std::fs::write(path, servers.to_string()).unwrap();
        let mut child = login(&world).stderr(Stdio::piped()).spawn().unwrap();
        // Where the address counts, the program waits for the browser; input that never comes ends that.
        let waiting = child.stdin.take().unwrap();
        let mut first = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut first)
            .unwrap();
        assert_eq!(first, "", "{page}");
        drop(waiting);
        let output = child.wait_with_output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && errors.contains("is no https address"),
            "{page}: {errors}"
        );
    }
}
