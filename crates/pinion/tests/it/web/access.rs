//! Rows 1 to 5 and 20 of the attack list (`attacks.txt`): who gets in at all. Other origins, other names, tokens, and where
//! tokens may be read.

use std::time::Instant;

use serde_json::json;

use super::Web;
use crate::kit::World;

/// The status of an upgrade with these headers; 101 when it is let in. `host` none: the right one.
fn upgrade(web: &Web, target: &str, host: Option<&str>, headers: &[(&str, &str)]) -> u16 {
    let mut all = headers.to_vec();
    all.push(("host", host.unwrap_or(&web.address)));
    let head = web.head(&asking(target, &all));
    head.split(' ').nth(1).unwrap().parse().unwrap()
}

fn asking(target: &str, headers: &[(&str, &str)]) -> String {
    let mut text = format!(
        "GET {target} HTTP/1.1\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
         sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    );
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text + "\r\n"
}

/// Origins that are not ours, however similar they look.
fn foreign(port: u16) -> [String; 15] {
    [
        "http://evil.example".to_owned(),
        format!("http://evil.example:{port}"),
        "null".to_owned(),
        String::new(),
        format!("https://127.0.0.1:{port}"),
        "http://127.0.0.1".to_owned(),
        format!("http://127.0.0.1:{}", port.wrapping_add(1).max(1)),
        format!("http://127.0.0.1:{port}0"),
        format!("http://localhost.evil.example:{port}"),
        format!("http://127.0.0.1.evil.example:{port}"),
        format!("http://127.0.0.1:{port}@evil.example"),
        format!("http://evil.example/http://127.0.0.1:{port}"),
        format!("http://0.0.0.0:{port}"),
        "file://".to_owned(),
        format!("http://127.0.0.1:{port}, http://evil.example"),
    ]
}

#[test]
fn socket_opens_only_for_own_and_allowed_origins() {
    let world = World::new([]);
    let web = Web::start(
        &world,
        &[
            "--web-allowed-origin",
            "https://host.ts.net:4781",
            "--web-allowed-origins",
            "http://dev:5173",
        ],
    );
    // origin-foreign
    for origin in foreign(web.port()) {
        let refused = upgrade(&web, "/ws", None, &[("origin", &origin)]);
        assert_eq!(refused, 403, "{origin}");
        let headers = [("origin", origin.as_str()), ("content-type", "application/json")];
        let command = r#"{"type":"get_state"}"#;
        assert_eq!(
            web.request("POST", "/api/command", &headers, command).0,
            403,
            "{origin}"
        );
        assert_eq!(web.get("/api/events", &[("origin", &origin)]).0, 403, "{origin}");
    }
    // origin-twice
    let own = web.origin();
    let twice = [("origin", own.as_str()), ("origin", own.as_str())];
    assert_eq!(upgrade(&web, "/ws", None, &twice), 403);
    let mixed = [("origin", own.as_str()), ("origin", "http://evil.example")];
    assert_eq!(upgrade(&web, "/ws", None, &mixed), 403);
    // origin-good
    let local = own.replace("127.0.0.1", "localhost");
    for origin in [
        own.as_str(),
        &local,
        "https://host.ts.net:4781",
        "http://dev:5173",
    ] {
        assert_eq!(upgrade(&web, "/ws", None, &[("origin", origin)]), 101, "{origin}");
    }
    // origin-missing-without-token
    assert_eq!(upgrade(&web, "/ws", None, &[]), 403);
    let (status, _, advice) = web.get("/api/events", &[]);
    assert_eq!(status, 403);
    let advice = String::from_utf8(advice).unwrap();
    assert!(advice.contains("header Origin"), "{advice}");
    for site in ["cross-site", "same-site", "none"] {
        assert_eq!(
            web.get("/api/events", &[("sec-fetch-site", site)]).0,
            403,
            "{site}"
        );
    }
    web.finish();
}

#[test]
fn wildcard_address_admits_no_foreign_origins() {
    let world = World::new([]);
    let web = Web::start(&world, &["--host", "0.0.0.0", "--web-insecure"]);
    // origin-foreign, again where the fork takes every page.
    for origin in ["http://evil.example", "null", "http://localhost.evil.example"] {
        assert_eq!(upgrade(&web, "/ws", None, &[("origin", origin)]), 403, "{origin}");
    }
    // origin-other-address: a page on another machine that listens at the same port.
    let port = web.port();
    for address in ["6.6.6.6", "[2001:db8::6]", "127.0.0.2"] {
        let origin = format!("http://{address}:{port}");
        assert_eq!(
            upgrade(&web, "/ws", None, &[("origin", &origin)]),
            403,
            "{origin}"
        );
    }
    let own = format!("127.0.0.1:{port}");
    let origin = format!("http://{own}");
    assert_eq!(upgrade(&web, "/ws", Some(&own), &[("origin", &origin)]), 101);
    assert_eq!(upgrade(&web, "/ws", None, &[]), 403, "no origin, no token");
    assert_eq!(
        upgrade(&web, "/ws", Some(&format!("evil.example:{}", web.port())), &[]),
        403
    );
    web.finish();
}

#[test]
fn foreign_host_header_is_refused() {
    let world = World::new([]);
    let web = Web::start(&world, &[]);
    let (own, port) = (web.origin(), web.port());
    let names = [
        format!("evil.example:{port}"),
        "evil.example".to_owned(),
        format!("127.0.0.1.nip.io:{port}"),
        format!("localhost.:{port}"),
        format!("0.0.0.0:{port}"),
        format!("127.0.0.1:{}", port.wrapping_add(1).max(1)),
        "127.0.0.1".to_owned(),
    ];
    for name in &names {
        // rebind-ws: the page's origin is that name, too.
        let theirs = format!("http://{name}");
        assert_eq!(
            upgrade(&web, "/ws", Some(name), &[("origin", &theirs)]),
            403,
            "{name}"
        );
        // rebind-ws-good-origin
        assert_eq!(
            upgrade(&web, "/ws", Some(name), &[("origin", &own)]),
            403,
            "{name}"
        );
        // rebind-http
        let site = ("sec-fetch-site", "same-origin");
        for path in ["/", "/index.html", "/health", "/ready", "/api/events", "/nope"] {
            assert_eq!(web.get(path, &[("host", name), site]).0, 403, "{name} {path}");
        }
        let post = [
            ("host", name.as_str()),
            ("content-type", "application/json"),
            site,
        ];
        let (status, ..) = web.request("POST", "/api/command", &post, r#"{"type":"get_state"}"#);
        assert_eq!(status, 403, "{name}");
    }
    web.finish();
}

#[test]
fn proxy_headers_are_ignored() {
    let world = World::new([]);
    let web = Web::start(&world, &["--web-token", "t0ken"]);
    // proxy-headers: no header makes a client local, allowed or authenticated.
    let port = web.port();
    let host = format!("evil.example:{port}");
    let good = web.address.clone();
    let claims = [
        ("x-forwarded-host", good.as_str()),
        ("x-forwarded-for", "127.0.0.1"),
        ("x-forwarded-proto", "https"),
        ("x-real-ip", "127.0.0.1"),
        ("forwarded", "for=127.0.0.1;host=127.0.0.1"),
        ("x-original-host", good.as_str()),
        ("x-http-method-override", "POST"),
    ];
    let mut headers = claims.to_vec();
    headers.push(("host", &host));
    assert_eq!(web.get("/", &headers).0, 403);
    let mut headers = claims.to_vec();
    let theirs = format!("http://{host}");
    headers.push(("origin", &theirs));
    assert_eq!(upgrade(&web, "/ws?token=t0ken", None, &headers), 403);
    let own = web.origin();
    let mut headers = claims.to_vec();
    headers.push(("origin", &own));
    assert_eq!(upgrade(&web, "/ws", None, &headers), 401);
    // Nor do they keep anybody out, or change where anything leads.
    let away = [
        ("x-forwarded-host", "evil.example"),
        ("x-forwarded-proto", "https"),
        ("origin", own.as_str()),
    ];
    assert_eq!(upgrade(&web, "/ws?token=t0ken", None, &away), 101);
    let (status, head, body) = web.get("/", &away);
    assert!(status == 200 && !head.contains("evil") && !String::from_utf8_lossy(&body).contains("evil"));
    web.finish();
}

#[test]
fn only_exact_token_is_accepted() {
    let world = World::new([]);
    let web = Web::start(&world, &["--web-token", "s3cret/t0ken+="]);
    let own = web.origin();
    let own = ("origin", own.as_str());
    let encoded = "s3cret%2Ft0ken%2B%3D";
    // Right, in each of the three ways (R9); programs need no origin.
    let alone = "bearer.s3cret/t0ken+=";
    let protocol = "x, bearer.s3cret/t0ken+=";
    let right: [(&str, &[(&str, &str)]); 6] = [
        ("/ws?token=s3cret%2Ft0ken%2B%3D", &[own]),
        ("/ws?token=s3cret%2Ft0ken%2B%3D", &[]),
        ("/ws?after=3&token=s3cret%2ft0ken%2b=", &[own]),
        ("/ws", &[("authorization", "Bearer s3cret/t0ken+=")]),
        ("/ws", &[("authorization", "bearer s3cret/t0ken+="), own]),
        ("/ws", &[("sec-websocket-protocol", protocol), own]),
    ];
    for (target, headers) in right {
        assert_eq!(upgrade(&web, target, None, headers), 101, "{target} {headers:?}");
    }
    // A browser insists on one of the subprotocols that it named; the one with the token does not come back.
    let head = web.head(&asking(
        "/ws",
        &[("host", &web.address), ("sec-websocket-protocol", protocol), own],
    ));
    assert!(
        head.contains("sec-websocket-protocol: x\r\n") && !head.contains("s3cret"),
        "{head}"
    );
    let head = web.head(&asking(
        "/ws",
        &[("host", &web.address), ("sec-websocket-protocol", alone), own],
    ));
    assert!(
        head.starts_with("http/1.1 101") && !head.contains("protocol:"),
        "{head}"
    );
    // token-wrong: none, a part, more, twice, elsewhere, in other letters.
    let wrong: [(String, &[(&str, &str)]); 12] = [
        ("/ws".to_owned(), &[own]),
        ("/ws?token=".to_owned(), &[own]),
        ("/ws?token=s3cret".to_owned(), &[own]),
        (format!("/ws?token={encoded}x"), &[own]),
        (format!("/ws?token={encoded}%00"), &[own]),
        (format!("/ws?token={encoded}&token=x"), &[own]),
        (format!("/ws?token=x&token={encoded}"), &[own]),
        (format!("/ws?Token={encoded}"), &[own]),
        (format!("/ws?auth={encoded}"), &[own]),
        ("/ws?token=S3CRET%2FT0KEN%2B%3D".to_owned(), &[own]),
        (
            "/ws".to_owned(),
            &[("authorization", "Basic s3cret/t0ken+="), own],
        ),
        ("/ws".to_owned(), &[("cookie", "token=s3cret/t0ken+="), own]),
    ];
    for (target, headers) in &wrong {
        assert_eq!(upgrade(&web, target, None, headers), 401, "{target} {headers:?}");
    }
    // token-right-foreign-origin, and it cannot be told from a wrong one.
    let foreign = [("origin", "http://evil.example")];
    assert_eq!(
        upgrade(&web, &format!("/ws?token={encoded}"), None, &foreign),
        403
    );
    assert_eq!(upgrade(&web, "/ws?token=x", None, &foreign), 403);
    web.finish();
}

#[test]
fn token_guesses_are_slowed_on_loopback() {
    let world = World::new([]);
    let web = Web::start(&world, &["--web-token", "t0ken"]);
    let own = web.origin();
    // token-brute-force
    let begin = Instant::now();
    let tries = 60;
    let refused: Vec<u16> = (0..tries)
        .map(|number| {
            upgrade(
                &web,
                &format!("/ws?token=guess{number}"),
                None,
                &[("origin", &own)],
            )
        })
        .collect();
    assert!(
        refused.iter().all(|status| [401, 429].contains(status)),
        "{refused:?}"
    );
    let unseen = refused.iter().filter(|status| **status == 429).count();
    assert_eq!(unseen, 40, "{refused:?}");
    assert!(begin.elapsed().as_millis() >= 4_000, "{:?}", begin.elapsed());
    // Pages elsewhere cannot use up the patience, nor learn anything.
    for _ in 0..60 {
        assert_eq!(
            web.get("/api/events?token=x", &[("sec-fetch-site", "cross-site")])
                .0,
            403
        );
    }
    // Who knows it gets in.
    assert_eq!(upgrade(&web, "/ws?token=t0ken", None, &[("origin", &own)]), 101);
    web.finish();
}

#[test]
fn token_appears_in_no_output() {
    let world = World::new([]);
    world.dir.write("ui/index.html", "<h1>Mine</h1>").unwrap();
    for more in [&[][..], &["--serve-ui", "ui"]] {
        let args = [&["--web-token", "s3cret-t0ken", "--verbose"], more].concat();
        let web = Web::start(&world, &args);
        let own = web.origin();
        // token-not-in-page: neither for strangers nor for who knows it.
        for path in [
            "/",
            "/index.html",
            "/?token=s3cret-t0ken",
            "/health",
            "/ready",
            "/ws",
            "/nope",
            "/main.js",
        ] {
            let (_, head, body) = web.get(path, &[("authorization", "Bearer s3cret-t0ken")]);
            let body = String::from_utf8_lossy(&body);
            assert!(
                !head.contains("s3cret") && !body.contains("s3cret"),
                "{path}: {head}"
            );
            assert!(!head.contains("set-cookie"), "{head}");
        }
        let mut tab = web
            .try_tab("/ws?token=s3cret-t0ken", &[("origin", &own)])
            .unwrap();
        tab.data(json!({"type": "get_state"}));
        tab.data(json!({"type": "get_protocol"}));
        tab.data(json!({"type": "hello", "heartbeat": 5}));
        assert!(
            tab.seen
                .borrow()
                .iter()
                .all(|line| !line.to_string().contains("s3cret"))
        );
        // page-headers: other servers never get our addresses.
        let (_, head, _) = web.get("/", &[]);
        for header in [
            "referrer-policy: no-referrer",
            "x-content-type-options: nosniff",
            "x-frame-options: deny",
            "frame-ancestors 'none'",
            "cross-origin-opener-policy: same-origin",
            "cross-origin-resource-policy: same-origin",
            "cache-control: no-",
        ] {
            assert!(head.contains(header), "{header}: {head}");
        }
        // token-not-logged-per-request
        for _ in 0..5 {
            web.get("/api/events?token=s3cret-t0ke", &[]);
        }
        assert!(!web.errors().contains("s3cret"), "{}", web.errors());
        web.finish();
    }
}
