//! Rows 6 to 9 and 13 of the attack list (`attacks.txt`): odd targets and hosts, paths that lead out of the page's folder,
//! methods, smuggled requests, broken upgrades, and files that are no sessions.

use std::io::{Read, Write};
use std::os::unix::fs::symlink;

use serde_json::json;
use testkit::llm::Reply;

use super::Web;
use crate::kit::World;

/// Sends a request, alone on its connection; it must be refused in order or answered, and the server must live on.
fn survives(web: &mut Web, request: &[u8]) -> u16 {
    let (status, ..) = web.raw(request);
    let shown = String::from_utf8_lossy(&request[..request.len().min(60)]).into_owned();
    let is_fine = status == 0 || status == 200 || (400..500).contains(&status);
    assert!(is_fine, "{status}: {shown}");
    assert!(web.is_alive(), "{shown}");
    status
}

#[test]
fn odd_request_targets_and_hosts_are_refused() {
    let world = World::new([]);
    let mut web = Web::start(&world, &[]);
    let address = web.address.clone();
    let get = |target: &str| format!("GET {target} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    // target-double-slash
    for target in [
        "//",
        "///",
        "//evil.example/",
        "//evil.example:80/ws",
        "/./",
        "/.//..",
        "/?",
        "/#",
    ] {
        let (status, head, _) = web.raw(get(target).as_bytes());
        assert!([200, 400, 404].contains(&status), "{target}: {status}");
        assert!(!head.contains("location"), "{head}");
        assert!(web.is_alive());
    }
    // target-malformed
    let malformed = [
        "http://[",
        "http://",
        "http://%",
        "http://a b/",
        "*",
        "",
        "?",
        "x",
        "/%",
        "/%zz",
        "/%ff%fe",
        "/\u{1}",
        "/é",
        "http://evil.example/",
        "ws://[::1",
        "/a\\b",
        "http://user:pw@127.0.0.1/",
    ];
    for target in malformed {
        survives(&mut web, get(target).as_bytes());
    }
    survives(
        &mut web,
        format!("CONNECT {address} HTTP/1.1\r\nhost: {address}\r\n\r\n").as_bytes(),
    );
    // host-malformed: not one of them is taken for ours.
    let hosts = [
        "",
        " ",
        "[",
        "[::",
        "]",
        ":",
        ":80",
        "a b",
        "127.0.0.1:99999",
        "127.0.0.1:x",
        "127.0.0.1:-1",
        "\u{fffd}",
        "http://127.0.0.1",
        "127.0.0.1/",
        "user@127.0.0.1",
        "127.0.0.1#",
        "%00",
        "0x7f.1",
        "2130706433",
    ];
    for host in hosts {
        let status = survives(
            &mut web,
            format!("GET / HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n").as_bytes(),
        );
        assert!([0, 400, 403].contains(&status), "{host:?}: {status}");
    }
    let none = survives(&mut web, b"GET / HTTP/1.1\r\nconnection: close\r\n\r\n");
    assert_eq!(none, 400);
    let two = format!("GET / HTTP/1.1\r\nhost: {address}\r\nhost: evil.example\r\nconnection: close\r\n\r\n");
    assert_eq!(survives(&mut web, two.as_bytes()), 400);
    web.finish();
}

#[test]
fn endless_request_heads_are_refused() {
    let world = World::new([]);
    let mut web = Web::start(&world, &[]);
    let address = web.address.clone();
    // headers-huge: one long, many short, a long target; each far beyond the limit.
    let long = "x".repeat(1 << 20);
    let many: String = (0..50_000).map(|number| format!("x-{number}: y\r\n")).collect();
    for request in [
        format!("GET / HTTP/1.1\r\nhost: {address}\r\nx: {long}\r\n\r\n"),
        format!("GET / HTTP/1.1\r\nhost: {address}\r\n{many}\r\n"),
        format!("GET /{long} HTTP/1.1\r\nhost: {address}\r\n\r\n"),
        format!("{long} / HTTP/1.1\r\nhost: {address}\r\n\r\n"),
        long.clone(),
        "\r\n".repeat(100_000),
    ] {
        let status = survives(&mut web, request.as_bytes());
        assert_ne!(status, 200);
    }
    web.finish();
}

#[test]
fn paths_cannot_escape_page_directory() {
    let world = World::new([]);
    let dir = world.dir.cwd().to_path_buf();
    world.dir.write("ui/index.html", "<h1>Mine</h1>").unwrap();
    world.dir.write("ui/dir/index.html", "below").unwrap();
    world.dir.write("ui-secret/key", "secret").unwrap();
    world.dir.write("secret.txt", "secret").unwrap();
    // symlink: to a file, to a folder, and one of a folder of the page.
    symlink("../ui-secret/key", dir.join("ui/link")).unwrap();
    symlink("../ui-secret", dir.join("ui/away")).unwrap();
    symlink("/etc/passwd", dir.join("ui/users.txt")).unwrap();
    symlink("..", dir.join("ui/dir/up")).unwrap();
    let own = Web::start(&world, &[]);
    let theirs = Web::start(&world, &["--serve-ui", "ui"]);
    // traversal
    let paths = [
        "/../secret.txt",
        "/../../../../../../etc/passwd",
        "/..%2fsecret.txt",
        "/%2e%2e/secret.txt",
        "/%2e%2e%2fsecret.txt",
        "/.%2e/secret.txt",
        "/dir/../../secret.txt",
        "/dir/%2e%2e/%2e%2e/secret.txt",
        "/..%5csecret.txt",
        "/..\\secret.txt",
        "/%252e%252e/secret.txt",
        "/..%c0%afsecret.txt",
        "/....//secret.txt",
        "//etc/passwd",
        "/%2fetc%2fpasswd",
        "/index.html%00.txt",
        "/secret.txt%00",
        "/dir/up/../secret.txt",
        "/.//../secret.txt",
    ];
    // sibling-prefix: a folder whose name begins like the page's.
    let siblings = [
        "/../ui-secret/key",
        "/..%2fui-secret%2fkey",
        "/-secret/key",
        "/../ui-secret",
    ];
    let links = ["/link", "/away/key", "/away", "/users.txt", "/away/../link"];
    for path in paths.into_iter().chain(siblings).chain(links) {
        for web in [&own, &theirs] {
            let (status, _, body) = web.get(path, &[]);
            let body = String::from_utf8_lossy(&body);
            assert!(
                !body.contains("secret") || body.contains("<title>Pinion"),
                "{path}"
            );
            assert!(!body.contains("root:"), "{path}");
            assert!([200, 400, 403, 404].contains(&status), "{path}: {status}");
            assert!(
                status != 200 || body.contains("<title>Pinion") || body.contains("Mine"),
                "{path}: {body}"
            );
        }
    }
    // Existing files win over the page.
    assert_eq!(theirs.get("/dir/", &[]).2, b"below");
    assert_eq!(theirs.get("/dir/up/index.html", &[]).2, b"<h1>Mine</h1>");
    theirs.finish();
    own.finish();
}

#[test]
fn unexpected_methods_and_cross_site_requests_are_refused() {
    let world = World::new([]);
    let web = Web::start(&world, &[]);
    let own = web.origin();
    // methods
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"] {
        for path in ["/", "/index.html", "/api/events"] {
            let headers = [("origin", own.as_str()), ("x-secret", "mirror")];
            let (status, head, body) = web.request(method, path, &headers, "");
            assert_eq!(status, 405, "{method} {path}");
            assert!(head.contains("allow: "), "{head}");
            assert!(!String::from_utf8_lossy(&body).contains("mirror"));
        }
    }
    for method in ["GET", "HEAD", "PUT", "OPTIONS"] {
        assert_eq!(
            web.request(method, "/api/command", &[("origin", &own)], "").0,
            405,
            "{method}"
        );
    }
    let (status, _, body) = web.request("HEAD", "/", &[], "");
    assert_eq!((status, body.len()), (200, 0));
    // cors-closed: nothing invites other pages, and what they can send without asking is refused.
    let foreign = ("origin", "http://evil.example");
    let asks = [
        foreign,
        ("access-control-request-method", "POST"),
        ("access-control-request-private-network", "true"),
    ];
    for path in ["/", "/api/command", "/api/events", "/ws", "/health", "/ready"] {
        for method in ["OPTIONS", "GET", "POST"] {
            let (_, head, _) = web.request(method, path, &asks, "");
            assert!(!head.contains("access-control"), "{method} {path}: {head}");
        }
    }
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "text/plain; application/json",
        "",
    ] {
        let command = r#"{"type":"bash","command":"touch owned"}"#;
        let headers = [foreign, ("content-type", kind)];
        assert_eq!(
            web.request("POST", "/api/command", &headers, command).0,
            403,
            "{kind}"
        );
        let headers = [("origin", own.as_str()), ("content-type", kind)];
        assert_eq!(
            web.request("POST", "/api/command", &headers, command).0,
            415,
            "{kind}"
        );
    }
    assert!(!world.dir.cwd().join("owned").exists());
    web.finish();
}

#[test]
fn smuggled_requests_are_refused() {
    let world = World::new([]);
    let web = Web::start(&world, &[]);
    let address = &web.address;
    // smuggling: what a proxy in front could read as one request is one here, or none.
    let hidden = format!("GET /health HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    let chunk = format!("0\r\n\r\n{hidden}");
    let heads = [
        format!("content-length: {}\r\ntransfer-encoding: chunked", chunk.len()),
        format!("transfer-encoding: chunked\r\ncontent-length: {}", chunk.len()),
        "content-length: 0\r\ncontent-length: 6".to_owned(),
        "content-length: 0, 6".to_owned(),
        "content-length: +6".to_owned(),
        "content-length: -1".to_owned(),
        "content-length: 0x6".to_owned(),
        "transfer-encoding: chunked, identity".to_owned(),
        "transfer-encoding: xchunked".to_owned(),
        "transfer-encoding : chunked".to_owned(),
        "transfer-encoding:\r\n chunked".to_owned(),
        "content-length\t: 6".to_owned(),
        "x: y\r\n folded: z".to_owned(),
        "x: y\nz: a".to_owned(),
    ];
    for head in heads {
        let request = format!("POST / HTTP/1.1\r\nhost: {address}\r\n{head}\r\n\r\n{chunk}");
        let mut stream = web.connect();
        stream
            .set_read_timeout(Some(std::time::Duration::from_secs(3)))
            .unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        let _late = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer);
        assert!(!answer.contains("\"status\":\"ok\""), "{head}: {answer}");
    }
    web.finish();
}

#[test]
fn upgrade_is_accepted_at_one_path_only() {
    let world = World::new([]);
    let mut web = Web::start(&world, &[]);
    let (address, own) = (web.address.clone(), web.origin());
    // upgrade-elsewhere
    for path in [
        "/",
        "/ws/",
        "/ws/x",
        "//ws",
        "/WS",
        "/api/events/",
        "/health/ws",
        "/%77s",
        "/index.html",
    ] {
        let refused = web.try_tab(path, &[("origin", &own)]).err();
        assert!(
            refused.is_some_and(|status| (400..500).contains(&status)),
            "{path}: {refused:?}"
        );
    }
    // upgrade-broken
    let key = "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==";
    let broken = [
        format!("upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 8\r\n{key}"),
        format!("upgrade: websocket\r\nconnection: upgrade\r\n{key}"),
        "upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13".to_owned(),
        format!("upgrade: h2c\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\n{key}"),
        format!("upgrade: websocket\r\nconnection: close\r\nsec-websocket-version: 13\r\n{key}"),
        format!("upgrade: websocket\r\nsec-websocket-version: 13\r\n{key}"),
    ];
    for headers in &broken {
        let request = format!("GET /ws HTTP/1.1\r\nhost: {address}\r\norigin: {own}\r\n{headers}\r\n\r\n");
        let mut stream = web.connect();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 4"), "{headers}: {answer:?}");
    }
    let post = format!(
        "POST /ws HTTP/1.1\r\nhost: {address}\r\norigin: {own}\r\n{}\r\n\r\n",
        "upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ=="
    );
    assert!(web.head(&post).starts_with("http/1.1 4"));
    assert!(web.is_alive());
    let (_, _, body) = web.get("/health", &[]);
    assert!(
        String::from_utf8_lossy(&body).contains("\"clients\":0}"),
        "nobody keeps a seat"
    );
    web.finish();
}

#[test]
fn switching_creates_or_changes_no_files() {
    let world = World::new([Reply::text(["One."])]);
    let web = Web::start(&world, &[]);
    let mut tab = web.tab();
    tab.say("Hi");
    let here = tab.data(json!({"type": "get_state"}))["sessionFile"].clone();
    let dir = world.dir.cwd().to_path_buf();
    world.dir.write("precious.txt", "precious\nwords\n").unwrap();
    world
        .dir
        .write("precious.jsonl", "{\"type\":\"other\"}\n")
        .unwrap();
    world.dir.write("empty.jsonl", "").unwrap();
    std::fs::create_dir(dir.join("folder.jsonl")).unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(dir.join("pipe.jsonl"))
        .status()
        .unwrap();
    assert!(made.success());
    // switch-session-foreign-file (R4)
    for name in [
        "precious.txt",
        "precious.jsonl",
        "empty.jsonl",
        "folder.jsonl",
        "pipe.jsonl",
    ] {
        let answer = tab.ask(json!({"type": "switch_session", "sessionPath": dir.join(name)}));
        assert_eq!(answer["success"], false, "{name}: {answer}");
        assert_ne!(answer["error"], "Session file not found", "{name}");
    }
    for name in ["missing.jsonl", "no/such/place.jsonl", ""] {
        let path = if name.is_empty() {
            String::new()
        } else {
            dir.join(name).display().to_string()
        };
        let answer = tab.ask(json!({"type": "switch_session", "sessionPath": path}));
        assert_eq!(answer["success"], false, "{name}: {answer}");
        if !name.is_empty() {
            assert_eq!(answer["error"], "Session file not found", "{name}");
            assert!(!dir.join(name).exists());
        }
    }
    let read = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap();
    assert_eq!(read("precious.txt"), "precious\nwords\n");
    assert_eq!(read("precious.jsonl"), "{\"type\":\"other\"}\n");
    assert_eq!(read("empty.jsonl"), "");
    // Nothing was changed for anybody, and the way back to where we are is open.
    let seen = tab
        .seen
        .borrow()
        .iter()
        .any(|line| line["type"] == "session_changed");
    assert!(!seen);
    assert_eq!(tab.data(json!({"type": "get_state"}))["sessionFile"], here);
    tab.data(json!({"type": "switch_session", "sessionPath": here}));
    assert_eq!(tab.data(json!({"type": "get_state"}))["messageCount"], 2);
    web.finish();
}
