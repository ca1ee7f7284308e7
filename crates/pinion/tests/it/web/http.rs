//! Plain HTTP: the page's files, health, commands by POST, server-sent events.

use std::io::{BufRead, BufReader, Write};

use serde_json::{Value, json};
use testkit::llm::Reply;

use super::Web;
use crate::kit::World;

#[test]
fn page_files_and_health_have_security_headers() {
    let world = World::new([]);
    let mut web = Web::start(&world, &[]);
    let (status, head, body) = web.get("/", &[]);
    assert_eq!(status, 200);
    assert!(String::from_utf8(body).unwrap().contains("<title>Pinion"));
    for header in [
        "content-security-policy: default-src 'none'; script-src 'self'",
        "frame-ancestors 'none'",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        "cross-origin-opener-policy: same-origin",
        "content-type: text/html",
    ] {
        assert!(head.contains(header), "{header}: {head}");
    }
    assert!(!head.contains("unsafe-inline") && !head.contains("access-control"));
    let tag = head.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap();
    assert_eq!(web.get("/", &[("if-none-match", tag)]).0, 304);
    assert_eq!(web.get("/some/place", &[]).0, 200, "an address of the page");
    for missing in ["/nope.js", "/assets/nope", "/%2e%2e/Cargo.toml", "/a.txt"] {
        assert_eq!(web.get(missing, &[]).0, 404, "{missing}");
    }
    assert_eq!(web.request("POST", "/", &[], "").0, 405);
    let (status, _, body) = web.get("/health", &[]);
    let health: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!((status, health), (200, json!({"status": "ok", "clients": 0})));
    assert_eq!(web.get("/ready", &[]).0, 200);
    assert!(web.is_alive());
    web.finish();
}

#[test]
fn web_dir_flag_serves_custom_page() {
    let world = World::new([]);
    world.dir.write("ui/index.html", "<h1>Mine</h1>").unwrap();
    world.dir.write("ui/app.js", "1").unwrap();
    world.dir.write("ui/c++ a.js", "2").unwrap();
    world.dir.write("ui-secret/key", "secret").unwrap();
    std::os::unix::fs::symlink("../ui-secret/key", world.dir.cwd().join("ui/link")).unwrap();
    let web = Web::start(&world, &["--serve-ui", "ui"]);
    assert_eq!(web.get("/", &[]).2, b"<h1>Mine</h1>");
    assert!(web.get("/app.js", &[]).1.contains("application/javascript"));
    assert_eq!(web.get("/any/where", &[]).2, b"<h1>Mine</h1>");
    // Only in queries does `+` mean a space.
    for path in ["/c++%20a.js", "/c%2B%2b%20a.js"] {
        assert_eq!(web.get(path, &[]).2, b"2", "{path}");
    }
    for (path, status) in [
        ("/link", 403),
        ("/../ui-secret/key", 403),
        ("/%2e%2e/ui-secret/key", 403),
        ("/..%2fui-secret/key", 403),
        ("/%00", 403),
        ("/nope.js", 404),
    ] {
        let (got, _, body) = web.get(path, &[]);
        assert!(!body.windows(6).any(|bytes| bytes == b"secret"), "{path}");
        assert!(got == status || got == 400, "{path}: {got}");
    }
    web.finish();
}

#[test]
fn commands_and_events_work_without_socket() {
    let world = World::new([Reply::text(["Hi."])]);
    let web = Web::start(&world, &[]);
    let origin = web.origin();
    let json_type = ("content-type", "application/json; charset=utf-8");
    let post = |body: &str| web.request("POST", "/api/command", &[("origin", &origin), json_type], body);
    let (status, _, body) = post(r#"{"id":"a","type":"get_state"}"#);
    let answer: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(
        (status, &answer["id"], &answer["success"]),
        (200, &json!("a"), &json!(true))
    );
    assert_eq!(post("no json").0, 400);
    assert_eq!(post(r#"{"type":"extension_ui_response","id":"x"}"#).0, 202);
    let plain = [("origin", origin.as_str()), ("content-type", "text/plain")];
    assert_eq!(web.request("POST", "/api/command", &plain, "{}").0, 415);
    assert_eq!(web.get("/api/command", &[("origin", &origin)]).0, 405);
    let mut stream = web.connect();
    write!(
        stream,
        "GET /api/events?after=0 HTTP/1.1\r\nhost: {}\r\norigin: {origin}\r\n\r\n",
        web.address
    )
    .unwrap();
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    assert!(
        lines
            .find(|line| line.starts_with("content-type"))
            .unwrap()
            .contains("text/event-stream")
    );
    assert_eq!(post(r#"{"type":"prompt","message":"Hi"}"#).0, 200);
    let mut last = None;
    for line in lines {
        if let Some(id) = line.strip_prefix("id: ") {
            last = Some(id.to_owned());
        }
        if let Some(data) = line.strip_prefix("data: ") {
            let event: Value = serde_json::from_str(data).unwrap();
            if event["type"] != "connected" {
                assert_eq!(event["seq"].to_string(), *last.as_ref().unwrap());
            }
            assert_ne!(event["type"], "response", "answers are for those who asked");
            if event["type"] == "agent_settled" {
                break;
            }
        }
    }
    web.finish();
}
