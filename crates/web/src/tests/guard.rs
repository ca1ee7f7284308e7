//! The table of who gets in (web.md 3, rows 1 to 6).

use std::time::{Duration, Instant};

use axum::http::Request;
use axum::http::request::Parts;

use crate::guard::{Guard, Refusal, Wants};
use crate::limits::{WEB_WRONG_TOKENS, WEB_WRONG_WINDOW};

fn request(target: &str, headers: &[(&str, &str)]) -> Parts {
    let mut request = Request::builder().uri(target);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap().into_parts().0
}

fn guard(bound: &str, host: &str, token: Option<&str>, origins: &[&str]) -> Guard {
    let origins = origins.iter().map(|origin| (*origin).to_owned()).collect();
    Guard::new(
        bound.parse().unwrap(),
        host,
        false,
        token.map(str::to_owned),
        origins,
    )
}

fn admit(guard: &Guard, parts: &Parts, wants: Wants, now: Instant) -> Result<(), Refusal> {
    guard.check_page(parts, wants)?;
    match wants {
        Wants::Public => Ok(()),
        Wants::Agent => guard.check_token(parts, now),
    }
}

fn verdict(guard: &Guard, target: &str, headers: &[(&str, &str)]) -> u16 {
    match admit(guard, &request(target, headers), Wants::Agent, Instant::now()) {
        Ok(()) => 200,
        Err(refusal) => refusal.status().as_u16(),
    }
}

#[test]
fn foreign_origins_are_refused() {
    let guard = guard("127.0.0.1:4781", "127.0.0.1", None, &["https://host.ts.net:4781"]);
    let own = [
        ("127.0.0.1:4781", "http://127.0.0.1:4781"),
        ("localhost:4781", "http://localhost:4781"),
        ("localhost:4781", "http://127.0.0.1:4781"),
        ("[::1]:4781", "http://[::1]:4781"),
        ("host.ts.net:4781", "https://host.ts.net:4781"),
        ("127.0.0.1:4781", "https://host.ts.net:4781"),
    ];
    for (host, origin) in own {
        assert_eq!(
            verdict(&guard, "/ws", &[("host", host), ("origin", origin)]),
            200,
            "{host} {origin}"
        );
    }
    let foreign = [
        "null",
        "",
        "http://evil.example",
        "http://evil.example:4781",
        "https://127.0.0.1:4781",
        "http://127.0.0.1",
        "http://127.0.0.1:4782",
        "http://127.0.0.1:47810",
        "http://localhost.evil.example:4781",
        "http://localhost:4781.evil.example",
        "http://127.0.0.1.evil.example:4781",
        "http://127.0.0.1:4781@evil.example",
        "http://evil.example/http://127.0.0.1:4781",
        "http://localhost:4781/",
        "file://",
        "http://0.0.0.0:4781",
        "http://host.ts.net:4781",
        "https://host.ts.net:4781/",
        "HTTPS://host.ts.net:4781",
    ];
    for origin in foreign {
        let headers = [("host", "127.0.0.1:4781"), ("origin", origin)];
        assert_eq!(verdict(&guard, "/ws", &headers), 403, "{origin}");
    }
    let twice = [
        ("host", "127.0.0.1:4781"),
        ("origin", "http://127.0.0.1:4781"),
        ("origin", "http://127.0.0.1:4781"),
    ];
    assert_eq!(verdict(&guard, "/ws", &twice), 403);
    assert_eq!(
        verdict(&guard, "/ws", &[("host", "127.0.0.1:4781")]),
        403,
        "no origin and no token"
    );
}

#[test]
fn foreign_host_names_are_refused() {
    let guard = guard("127.0.0.1:4781", "127.0.0.1", None, &[]);
    let bad = [
        ("evil.example:4781", 403),
        ("127.0.0.1.nip.io:4781", 403),
        ("localhost.:4781", 403),
        ("127.0.0.1:80", 403),
        ("127.0.0.1", 403),
        ("0.0.0.0:4781", 403),
        ("192.168.1.1:4781", 403),
        ("", 400),
        ("a b", 400),
        ("127.0.0.1:4781,evil", 400),
        ("user@127.0.0.1:4781", 400),
    ];
    for (host, status) in bad {
        for wants in [Wants::Public, Wants::Agent] {
            let parts = request("/", &[("host", host), ("origin", "http://127.0.0.1:4781")]);
            let verdict = admit(&guard, &parts, wants, Instant::now());
            assert_eq!(verdict.unwrap_err().status().as_u16(), status, "{host:?}");
        }
    }
    let none = admit(&guard, &request("/", &[]), Wants::Public, Instant::now());
    assert_eq!(none, Err(Refusal::BadHost));
    let other = request("http://evil.example/", &[("host", "127.0.0.1:4781")]);
    assert_eq!(
        admit(&guard, &other, Wants::Public, Instant::now()),
        Err(Refusal::BadHost)
    );
}

#[test]
fn wildcard_address_accepts_ip_hosts_and_allowed_names() {
    let guard = guard("0.0.0.0:4781", "0.0.0.0", Some("t"), &["https://box.example"]);
    let good = [
        ("192.168.1.7:4781", "http://192.168.1.7:4781"),
        ("localhost:4781", "http://localhost:4781"),
        ("box.example", "https://box.example"),
    ];
    for (host, origin) in good {
        let headers = [("host", host), ("origin", origin), ("authorization", "Bearer t")];
        assert_eq!(verdict(&guard, "/ws", &headers), 200, "{host}");
    }
    for host in ["evil.example:4781", "box.example:4781"] {
        let headers = [("host", host), ("authorization", "Bearer t")];
        assert_eq!(verdict(&guard, "/ws", &headers), 403, "{host}");
    }
}

#[test]
fn token_is_required_in_every_form() {
    let guard = guard("127.0.0.1:4781", "127.0.0.1", Some("s3cret+/="), &[]);
    let host = ("host", "127.0.0.1:4781");
    let own = ("origin", "http://127.0.0.1:4781");
    let good: [(&str, &[(&str, &str)]); 4] = [
        ("/ws?token=s3cret%2B%2F%3D", &[host, own]),
        ("/ws?a=b&token=s3cret%2b/=", &[host]),
        ("/ws", &[host, ("authorization", "Bearer s3cret+/=")]),
        (
            "/ws",
            &[host, own, ("sec-websocket-protocol", "x, bearer.s3cret+/=")],
        ),
    ];
    for (target, headers) in good {
        assert_eq!(verdict(&guard, target, headers), 200, "{target}");
    }
    let bad = [
        "/ws",
        "/ws?token=",
        "/ws?token=s3cre",
        "/ws?token=s3cret%2B%2F%3D%00",
        "/ws?Token=s3cret%2B%2F%3D",
        "/ws?token=s3cret%2B%2F%3D&token=x",
        "/ws?tokens=s3cret%2B%2F%3D",
    ];
    for target in bad {
        assert_eq!(verdict(&guard, target, &[host, own]), 401, "{target}");
    }
    let foreign = [host, ("origin", "http://evil.example")];
    assert_eq!(verdict(&guard, "/ws?token=s3cret%2B%2F%3D", &foreign), 403);
}

#[test]
fn wrong_tokens_are_throttled_right_token_is_not() {
    let guard = guard("127.0.0.1:4781", "127.0.0.1", Some("t"), &[]);
    let now = Instant::now();
    let ask = |token: &str, now| {
        let parts = request(&format!("/ws?token={token}"), &[("host", "127.0.0.1:4781")]);
        admit(&guard, &parts, Wants::Agent, now)
    };
    for _ in 0..WEB_WRONG_TOKENS {
        assert_eq!(ask("x", now), Err(Refusal::WrongToken));
    }
    assert_eq!(ask("x", now), Err(Refusal::TooManyTokens));
    assert_eq!(ask("t", now), Ok(()));
    let later = now + WEB_WRONG_WINDOW + Duration::from_secs(1);
    assert_eq!(ask("x", later), Err(Refusal::WrongToken));
}

#[test]
fn requests_without_origin_need_same_origin_fetch_site() {
    for token in [None, Some("t")] {
        let guard = guard("127.0.0.1:4781", "127.0.0.1", token, &[]);
        let target = "/api/events?token=t";
        // An `EventSource` of our own page sends no origin.
        for (site, status) in [
            ("same-origin", 200),
            ("same-site", 403),
            ("cross-site", 403),
            ("odd", 403),
        ] {
            let headers = [("host", "127.0.0.1:4781"), ("sec-fetch-site", site)];
            assert_eq!(verdict(&guard, target, &headers), status, "{site}");
        }
        // A page elsewhere cannot make it say so; and an origin counts for more.
        let both = [
            ("host", "127.0.0.1:4781"),
            ("sec-fetch-site", "same-origin"),
            ("origin", "http://evil.example"),
        ];
        assert_eq!(verdict(&guard, target, &both), 403);
        let typed = [("host", "127.0.0.1:4781"), ("sec-fetch-site", "none")];
        assert_eq!(
            verdict(&guard, target, &typed),
            if token.is_some() { 200 } else { 403 }
        );
    }
}

#[test]
fn other_addresses_with_our_port_are_foreign_origins() {
    for (bound, host) in [("0.0.0.0:4781", "0.0.0.0"), ("[::]:4781", "::")] {
        let guard = guard(bound, host, None, &[]);
        let ask = |host: &str, origin: &str| verdict(&guard, "/ws", &[("host", host), ("origin", origin)]);
        // A server at all addresses answers to each of them, but a page at another one is not its own.
        for origin in [
            "http://6.6.6.6:4781",
            "http://[2001:db8::6]:4781",
            "http://127.0.0.2:4781",
        ] {
            assert_eq!(ask("127.0.0.1:4781", origin), 403, "{bound} {origin}");
            assert_eq!(ask("192.168.0.7:4781", origin), 403, "{bound} {origin}");
        }
        for (host, origin) in [
            ("192.168.0.7:4781", "http://192.168.0.7:4781"),
            ("192.168.0.7:4781", "http://127.0.0.1:4781"),
            ("127.0.0.1:4781", "http://localhost:4781"),
            ("[::1]:4781", "http://[::1]:4781"),
        ] {
            assert_eq!(ask(host, origin), 200, "{bound} {host} {origin}");
        }
    }
    let guard = guard("127.0.0.1:4781", "127.0.0.1", None, &[]);
    for origin in ["http://127.0.0.2:4781", "http://[::1]:4781"] {
        let headers = [("host", "127.0.0.1:4781"), ("origin", origin)];
        assert_eq!(verdict(&guard, "/ws", &headers), 403, "{origin}");
    }
}

#[test]
fn hosts_are_accepted_only_as_browsers_write_them() {
    let guard = guard("127.0.0.1:4781", "127.0.0.1", Some("t"), &[]);
    let odd = [
        "127.0.0.1:+4781",
        "127.0.0.1:04781",
        "[127.0.0.1]:4781",
        "[::1]x:4781",
        "[::1].evil.example:4781",
        "[::1][::1]:4781",
        "[::1]4781",
        "localhost.:4781",
        "127.0.0.1:4781:4781",
        ":4781",
    ];
    for host in odd {
        let headers = [("host", host), ("authorization", "Bearer t")];
        assert_eq!(verdict(&guard, "/ws", &headers), 403, "{host}");
        let origin = format!("http://{host}");
        let headers = [
            ("host", "127.0.0.1:4781"),
            ("origin", &origin),
            ("authorization", "Bearer t"),
        ];
        assert_eq!(verdict(&guard, "/ws", &headers), 403, "{origin}");
    }
}
