//! The `fetch` tool: off unless it is named, never on private addresses unless they are allowed, permissions for each host.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use testkit::llm::Reply;

use crate::kit::{Pi, World, of_type, text};

/// A web server on this machine with one page. Counts requests.
struct Site {
    port: u16,
    requests: Arc<AtomicUsize>,
}

impl Site {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&requests);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                count.fetch_add(1, Ordering::SeqCst);
                let mut head = [0; 4096];
                let _read = stream.read(&mut head);
                let body = "<title>Site</title><h1>Welcome</h1><p>The answer is <b>42</b>.</p>";
                let length = body.len();
                let answer = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
                );
                let _written = stream.write_all(answer.as_bytes());
            }
        });
        Self { port, requests }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/page", self.port)
    }

    fn count(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

/// A model that fetches the page once.
fn fetching(site: &Site) -> World {
    World::new([
        Reply::tool("f", "fetch", json!({"url": site.url()})),
        Reply::text(["done"]),
    ])
}

/// The result of the only call: its text, and whether it is an error.
fn outcome(lines: &[Value]) -> (String, bool) {
    let ends = of_type(lines, "tool_execution_end");
    assert_eq!(ends.len(), 1, "{ends:?}");
    (text(&ends[0]["result"]), ends[0]["isError"].as_bool().unwrap())
}

/// The other tests run without network.
fn start(world: &World, args: &[&str]) -> Pi {
    let config = world.config().env("PI_OFFLINE", "0");
    Pi::spawn(config.args(args.iter().copied()))
}

fn names(pi: &Pi) -> String {
    pi.get("get_tools").to_string()
}

#[test]
fn fetch_is_off_unless_named() {
    let site = Site::start();
    let world = fetching(&site);
    for args in [&[][..], &["--tools", "*"]] {
        let pi = start(&world, args);
        assert!(!names(&pi).contains("fetch"));
        pi.finish();
    }
    let pi = start(&world, &[]);
    let (said, is_error) = outcome(&pi.say("Go"));
    assert!(is_error && said.contains("fetch not found"), "{said}");
    assert!(!world.server.requests()[0].body.to_string().contains("\"fetch\""));
    assert_eq!(site.count(), 0);
    pi.finish();
}

#[test]
fn allowed_page_is_read_as_markdown() {
    let site = Site::start();
    for (settings, args) in [
        (json!({"enabled": true, "privateHosts": ["127.0.0.1"]}), &[][..]),
        (json!({"privateHosts": ["127.0.0.1"]}), &["--tools", "read,fetch"]),
    ] {
        let world = fetching(&site);
        world.settings(json!({"fetch": settings}));
        let pi = start(&world, args);
        let lines = pi.say("Go");
        let (said, is_error) = outcome(&lines);
        assert_eq!(
            (said.trim_end(), is_error),
            ("Title: Site\n\n# Welcome\n\nThe answer is **42**.", false)
        );
        let end = of_type(&lines, "tool_execution_end")[0].clone();
        assert_eq!(end["result"]["details"]["url"], json!(site.url()));
        assert!(names(&pi).contains("\"fetch\""));
        pi.finish();
    }
    assert_eq!(site.count(), 2);
}

#[test]
fn private_and_offline_pages_are_refused() {
    let site = Site::start();
    let allowed = json!({"enabled": true, "privateHosts": ["127.0.0.1"]});
    for (settings, args, reason) in [
        (json!({"enabled": true}), &[][..], "private address"),
        (allowed.clone(), &["--offline"], "--offline"),
        (allowed, &["--sandbox", "workspace-write"], "sandbox.network"),
    ] {
        let world = fetching(&site);
        world.settings(json!({"fetch": settings}));
        let pi = start(&world, args);
        let (said, is_error) = outcome(&pi.say("Go"));
        assert!(is_error && said.contains(reason), "{args:?}: {said}");
        pi.finish();
    }
    assert_eq!(site.count(), 0);
}

#[test]
fn project_cannot_allow_private_hosts() {
    let site = Site::start();
    let world = fetching(&site);
    world.settings(json!({"fetch": {"enabled": true}, "defaultProjectTrust": "always"}));
    let folder = world.dir.cwd().join(".pi");
    std::fs::create_dir_all(&folder).unwrap();
    let project = json!({"fetch": {"privateHosts": ["127.0.0.1", "*"]}});
    std::fs::write(folder.join("settings.json"), project.to_string()).unwrap();
    let pi = start(&world, &[]);
    let (said, is_error) = outcome(&pi.say("Go"));
    assert!(is_error && said.contains("private address"), "{said}");
    assert_eq!(site.count(), 0);
    pi.finish();
}

#[test]
fn host_with_dot_matches_its_rule() {
    let rule = "fetch(*.corp.example/*)";
    let url = json!({"url": "http://wiki.corp.example./secret"});
    let world = World::new([Reply::tool("f", "fetch", url), Reply::text(["done"])]);
    world.settings(json!({"fetch": {"enabled": true}, "permissions": {"deny": [rule]}}));
    let pi = start(&world, &[]);
    let (said, is_error) = outcome(&pi.say("Go"));
    assert!(is_error && said.contains(rule), "{said}");
    pi.finish();
}

#[test]
fn permission_rules_name_hosts() {
    let site = Site::start();
    let rule = format!("fetch(http://127.0.0.1:{}/*)", site.port);
    let fetch = json!({"enabled": true, "privateHosts": ["127.0.0.1"]});
    for (permissions, is_refused) in [
        (json!({"mode": "ask", "allow": [rule]}), false),
        (json!({"mode": "read-only"}), true),
        (json!({"mode": "ask", "allow": ["fetch"], "deny": [rule]}), true),
        (
            json!({"mode": "ask", "allow": ["fetch(https://example.com/*)"]}),
            true,
        ),
    ] {
        let world = fetching(&site);
        world.settings(json!({"fetch": fetch, "permissions": permissions}));
        let before = site.count();
        let pi = start(&world, &[]);
        pi.prompt("Go");
        if permissions["allow"] == json!(["fetch(https://example.com/*)"]) {
            let question = pi.wait("extension_ui_request");
            assert!(
                question["title"].as_str().unwrap().contains(&site.url()),
                "{question}"
            );
            let answer = json!({"type": "extension_ui_response", "id": question["id"], "cancelled": true});
            pi.agent.send(&answer).unwrap();
        }
        pi.settled();
        let (said, is_error) = outcome(&pi.lines());
        assert_eq!(
            (is_error, site.count() - before),
            (is_refused, usize::from(!is_refused)),
            "{permissions}: {said}"
        );
        pi.finish();
    }
}
