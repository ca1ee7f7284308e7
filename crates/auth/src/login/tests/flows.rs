//! Logins from beginning to end.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Clients, Fake, Home, Seen, jwt};
use crate::login::{Login, LoginError, Step, way};

const OTHER: &str = r#"{"xai": {"type": "api_key", "key": "stay"}}"#;
const CODEX: &str = "openai-codex";
const COPILOT: &str = "github-copilot";

/// Runs a login; `act` is called with the words of each step.
pub(super) async fn log_in(
    home: &Home,
    fake: &Fake,
    provider: &str,
    lines: Option<mpsc::Receiver<String>>,
    cancel: &CancellationToken,
    act: impl Fn(&str) + Send + Sync,
) -> Result<(), LoginError> {
    let login = super::login(home, fake);
    let tell = |step: Step<'_>| match step {
        Step::Visit(address) => act(address),
        Step::Enter { address, code } => act(&format!("{address} {code}")),
        Step::Note(note) => act(note),
    };
    let models = ["m-1".to_owned(), "m-2".to_owned()];
    login.run(provider, None, &models, &tell, lines, cancel).await
}

/// GitHub, whose answers to the polls are these in order, the last one again and again.
fn github(polls: Vec<Value>) -> Fake {
    Fake::start(move |number, seen| {
        match seen.path.as_str() {
        "/gh/login/device/code" => (
            200,
            json!({"device_code": "device-secret-code", "user_code": "ABCD-1234", "verification_uri": "https://github.test/device",
                "interval": 1, "expires_in": 900}).to_string(),
        ),
        "/gh/login/oauth/access_token" => (200, polls[number.min(polls.len() - 1)].to_string()),
        "/api/copilot_internal/v2/token" => {
            assert_eq!(seen.headers["authorization"], "Bearer gho_secret_token");
            (200, json!({"token": "tid=1;proxy-ep=proxy.x.test", "expires_at": 4_000_000_000_u64}).to_string())
        }
        "/copilot/models/m-1/policy" => (200, "{}".to_owned()),
        _ => (404, "{}".to_owned()),
    }
    })
}

fn pending(error: &str) -> Value {
    json!({ "error": error })
}

#[tokio::test]
async fn device_flow_polls_and_stores_credentials() {
    let slower = json!({"error": "slow_down", "interval": 2});
    let fake = github(vec![
        pending("authorization_pending"),
        slower,
        pending("authorization_pending"),
        json!({"access_token": "gho_secret_token"}),
    ]);
    let home = Home::new(OTHER);
    let told = Mutex::new(Vec::new());
    let cancel = CancellationToken::new();
    let act = |text: &str| told.lock().unwrap().push(text.to_owned());
    log_in(&home, &fake, COPILOT, None, &cancel, act).await.unwrap();
    let polls = fake.at("/gh/login/oauth/access_token");
    assert_eq!(polls.len(), 4);
    assert_eq!(polls[0].field("device_code"), "device-secret-code");
    assert_eq!(fake.at("/gh/login/device/code")[0].field("scope"), "read:user");
    let entry = home.entry(COPILOT);
    assert_eq!(
        entry,
        json!({"type": "oauth", "access": "tid=1;proxy-ep=proxy.x.test", "refresh": "gho_secret_token", "expires": 3_999_999_700_000_u64})
    );
    assert_eq!(
        (home.entry("xai")["key"].as_str(), home.mode()),
        (Some("stay"), 0o600)
    );
    let policy = &fake.at("/copilot/models/m-1/policy")[0];
    assert_eq!(
        (policy.method.as_str(), policy.body.as_str()),
        ("POST", r#"{"state":"enabled"}"#)
    );
    assert_eq!(
        policy.headers["authorization"],
        "Bearer tid=1;proxy-ep=proxy.x.test"
    );
    assert_eq!(policy.headers["openai-intent"], "chat-policy");
    let told = told.into_inner().unwrap().join("\n");
    assert!(told.contains("https://github.test/device ABCD-1234"), "{told}");
    assert!(told.contains("1 of 2 models could not be switched on"), "{told}");
    assert!(!told.contains("secret") && !told.contains("tid="), "{told}");
}

#[tokio::test]
async fn new_login_forgets_enterprise_domain_of_old_one() {
    let fake = github(vec![json!({"access_token": "gho_secret_token"})]);
    let old = json!({"type": "oauth", "access": "a", "refresh": "r", "expires": 1, "enterpriseUrl": "company.ghe.test",
        "note": "mine"});
    let home = Home::new(&json!({ COPILOT: old }).to_string());
    log_in(&home, &fake, COPILOT, None, &CancellationToken::new(), |_| {})
        .await
        .unwrap();
    let entry = home.entry(COPILOT);
    assert_eq!(entry["refresh"], "gho_secret_token");
    assert_eq!(
        (entry.get("enterpriseUrl"), &entry["note"]),
        (None, &json!("mine"))
    );
}

#[tokio::test]
async fn device_flow_ends_when_code_expires() {
    let table = [
        (json!({"error": "expired_token"}), LoginError::CodeExpired),
        (json!({"error": "access_denied"}), LoginError::Denied),
    ];
    for (answer, wanted) in table {
        let fake = github(vec![pending("authorization_pending"), answer]);
        let home = Home::new(OTHER);
        let done = log_in(&home, &fake, COPILOT, None, &CancellationToken::new(), |_| {}).await;
        assert_eq!(done, Err(wanted));
        assert_eq!(home.text(), OTHER);
    }
    let fake = github(vec![
        json!({"error": "incorrect_device_code", "error_description": "no device-secret-code here"}),
    ]);
    let done = log_in(
        &Home::new(""),
        &fake,
        COPILOT,
        None,
        &CancellationToken::new(),
        |_| {},
    )
    .await;
    let text = done.unwrap_err().to_string();
    assert!(text.contains("no [key] here"), "{text}");
}

#[tokio::test]
async fn device_code_not_entered_expires() {
    let fake = Fake::start(|_, seen| {
        match seen.path.as_str() {
        "/gh/login/device/code" => (
            200,
            json!({"device_code": "d", "user_code": "u", "verification_uri": "https://x.test", "interval": 1, "expires_in": 200}).to_string(),
        ),
        _ => (200, pending("authorization_pending").to_string()),
    }
    });
    let done = log_in(
        &Home::new(""),
        &fake,
        COPILOT,
        None,
        &CancellationToken::new(),
        |_| {},
    )
    .await;
    assert_eq!(done, Err(LoginError::CodeExpired));
    assert!(fake.at("/gh/login/oauth/access_token").len() > 1);
}

#[tokio::test]
async fn malformed_device_codes_and_addresses_are_not_shown() {
    for (address, code) in [
        ("file:///etc/passwd", "u"),
        ("https://x.test/\u{1b}[2J", "u"),
        ("https://x.test", "a b"),
    ] {
        let (address, code) = (address.to_owned(), code.to_owned());
        let fake = Fake::start(move |_, _| {
            (
                200,
                json!({"device_code": "d", "user_code": code, "verification_uri": address}).to_string(),
            )
        });
        let act = |text: &str| panic!("{text}");
        let done = log_in(
            &Home::new(""),
            &fake,
            COPILOT,
            None,
            &CancellationToken::new(),
            act,
        )
        .await;
        assert!(matches!(done, Err(LoginError::System(_))), "{done:?}");
    }
}

#[tokio::test]
async fn login_can_be_cancelled_at_any_time() {
    for provider in [CODEX, COPILOT] {
        let fake = github(vec![pending("authorization_pending")]);
        let home = Home::new(OTHER);
        let cancel = CancellationToken::new();
        let stop = cancel.clone();
        let done = log_in(&home, &fake, provider, None, &cancel, move |_| stop.cancel()).await;
        assert_eq!(done, Err(LoginError::Cancelled));
        assert_eq!(home.text(), OTHER);
    }
}

/// OpenAI: gives tokens when code and proof are right.
fn openai() -> Fake {
    Fake::start(|_, seen: &Seen| {
        assert_eq!(seen.path, "/token");
        if seen.field("code") != "the-right-code-12" {
            let words = format!("bad code {}", seen.field("code"));
            return (
                400,
                json!({"error": "invalid_grant", "error_description": words}).to_string(),
            );
        }
        let answer = json!({"access_token": jwt("acc-1", "first"), "refresh_token": "rt-first-token", "expires_in": 3600});
        (200, answer.to_string())
    })
}

/// Calls the callback and gives the status line.
pub(super) fn visit(port: u16, target: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream
        .write_all(format!("GET {target} HTTP/1.1\r\nhost: localhost\r\n\r\n").as_bytes())
        .unwrap();
    let mut text = String::new();
    let _reset = stream.read_to_string(&mut text);
    text
}

pub(super) fn parameters(address: &str) -> std::collections::HashMap<String, String> {
    let url = reqwest::Url::parse(address).unwrap();
    url.query_pairs().into_owned().collect()
}

#[tokio::test]
async fn browser_flow_accepts_only_its_own_state() {
    let fake = openai();
    let home = Home::new(OTHER);
    let page = Mutex::new(String::new());
    let visits: Mutex<Vec<std::thread::JoinHandle<()>>> = Mutex::default();
    let act = |address: &str| {
        *page.lock().unwrap() = address.to_owned();
        let asked = parameters(address);
        visits.lock().unwrap().push(std::thread::spawn(move || {
            let redirect = reqwest::Url::parse(&asked["redirect_uri"]).unwrap();
            let port = redirect.port().unwrap();
            // Browsers connect ahead of time and say nothing.
            let _silent = TcpStream::connect(("127.0.0.1", port)).unwrap();
            assert!(visit(port, "/favicon.ico").starts_with("HTTP/1.1 404"));
            assert!(visit(port, "/auth/callback?code=evil&state=wrong").starts_with("HTTP/1.1 404"));
            assert!(visit(port, "/auth/callback?error=access_denied").starts_with("HTTP/1.1 404"));
            let target = format!("/auth/callback?code=the-right-code-12&state={}", asked["state"]);
            let answer = visit(port, &target);
            assert!(
                answer.starts_with("HTTP/1.1 200") && answer.contains("You are logged in"),
                "{answer}"
            );
            assert!(!answer.contains("the-right-code"));
        }));
    };
    log_in(&home, &fake, CODEX, None, &CancellationToken::new(), act)
        .await
        .unwrap();
    for visit in visits.into_inner().unwrap() {
        visit.join().unwrap();
    }
    let page = page.into_inner().unwrap();
    let asked = parameters(&page);
    assert_eq!(
        (
            asked["response_type"].as_str(),
            asked["code_challenge_method"].as_str()
        ),
        ("code", "S256")
    );
    assert_eq!(asked["scope"], "openid profile email offline_access");
    let sent = &fake.at("/token")[0];
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(sent.field("code_verifier")));
    assert_eq!(challenge, asked["code_challenge"]);
    assert_ne!(asked["state"], sent.field("code_verifier"));
    assert_eq!(sent.field("redirect_uri"), asked["redirect_uri"]);
    assert_eq!(fake.at("/token").len(), 1);
    let entry = home.entry(CODEX);
    assert_eq!(
        (&entry["accountId"], &entry["refresh"]),
        (&json!("acc-1"), &json!("rt-first-token"))
    );
    let left = entry["expires"].as_i64().unwrap() - crate::login::clock::now_ms();
    assert!((3_500_000..=3_600_000).contains(&left), "{left}");
    assert_eq!(home.entry("xai")["key"], "stay");
}

#[tokio::test]
async fn login_address_is_pasted_when_port_is_taken() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let fake = openai();
    let home = Home::new("");
    let mut endpoints = fake.endpoints();
    endpoints.callback_port = taken.local_addr().unwrap().port();
    let login = Login::new(home.file.clone(), endpoints, Arc::<Clients>::default());
    let none = login
        .run(CODEX, None, &[], &|_| {}, None, &CancellationToken::new())
        .await;
    assert!(matches!(none, Err(LoginError::Callback { .. })), "{none:?}");
    let (sender, lines) = mpsc::channel(4);
    let notes = Mutex::new(Vec::new());
    let tell = |step: Step<'_>| match step {
        Step::Visit(address) => {
            let asked = parameters(address);
            let right = format!(
                "{}?code=the-right-code-12&state={}\n",
                asked["redirect_uri"], asked["state"]
            );
            for line in [
                "\n".to_owned(),
                "code=the-right-code-12&state=other".to_owned(),
                right,
            ] {
                sender.try_send(line).unwrap();
            }
        }
        Step::Note(note) => notes.lock().unwrap().push(note.to_owned()),
        Step::Enter { .. } => panic!(),
    };
    login
        .run(CODEX, None, &[], &tell, Some(lines), &CancellationToken::new())
        .await
        .unwrap();
    let notes = notes.into_inner().unwrap();
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert!(notes[0].starts_with("Cannot listen on") && notes[1].contains("not the address or code"));
    assert_eq!(home.entry(CODEX)["type"], "oauth");
}

#[tokio::test]
async fn refused_code_stores_nothing_and_is_redacted() {
    let fake = openai();
    let home = Home::new(OTHER);
    let (sender, lines) = mpsc::channel(1);
    sender.try_send("a-wrong-code-1234".to_owned()).unwrap();
    let done = log_in(
        &home,
        &fake,
        CODEX,
        Some(lines),
        &CancellationToken::new(),
        |_| {},
    )
    .await;
    let text = done.unwrap_err().to_string();
    assert_eq!(text, "127.0.0.1 answered 400: bad code [key]");
    assert_eq!(home.text(), OTHER);
}

#[tokio::test]
async fn login_exists_only_for_offering_providers() {
    assert_eq!(way("anthropic"), None);
    let fake = openai();
    let home = Home::new("");
    let done = log_in(&home, &fake, "anthropic", None, &CancellationToken::new(), |_| {}).await;
    assert!(done.unwrap_err().to_string().contains("--api-key"));
    let dead = Fake {
        url: "http://127.0.0.1:9".to_owned(),
        seen: Default::default(),
    };
    let done = log_in(&home, &dead, COPILOT, None, &CancellationToken::new(), |_| {}).await;
    let text = done.unwrap_err().to_string();
    assert_eq!(
        text,
        "Connection error: 127.0.0.1: connection refused: no server runs at 127.0.0.1:9"
    );
    tokio::time::sleep(Duration::ZERO).await;
}
