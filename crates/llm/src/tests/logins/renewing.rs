//! Renewal of tokens: before a request, after a refusal, once for all, and what happens when it fails.

use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use auth::Secret;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use wire::Message;

use super::{Fake, Home, Seen, config, jwt, now_ms};
use crate::{Client, ModelEvent, ModelRequest};

const CODEX: &str = "openai-codex";
const DONE: &str = "data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\"}}\n\n";

/// OpenAI: each renewal gives the next token and takes only the refresh token of the last. The model's endpoint takes
/// tokens that `valid` names.
fn openai(valid: &'static [&'static str]) -> Fake {
    let refresh = Mutex::new("rt-secrets-0".to_owned());
    Fake::start(move |number, seen| match seen.path.as_str() {
        "/token" => {
            let mut current = refresh.lock().unwrap();
            let given = seen.field("refresh_token");
            if given != *current {
                let words = format!("{given} was used already");
                return (
                    400,
                    json!({"error": "invalid_grant", "error_description": words}).to_string(),
                );
            }
            *current = format!("rt-secrets-{}", number + 1);
            let access = jwt("acc", &format!("renewed-{}", number + 1));
            (
                200,
                json!({"access_token": access, "refresh_token": *current, "expires_in": 3600}).to_string(),
            )
        }
        "/codex/responses" => {
            let token = &seen.headers["authorization"];
            if valid.iter().any(|name| token.ends_with(name)) {
                (200, DONE.to_owned())
            } else {
                (
                    401,
                    json!({"error": {"message": format!("bad token {token}")}}).to_string(),
                )
            }
        }
        _ => (404, String::new()),
    })
}

/// An `auth.json` with a login that ends so many ms from now.
fn stored(name: &str, left_ms: i64) -> Home {
    let entry = json!({"type": "oauth", "access": jwt("acc", name), "refresh": "rt-secrets-0", "expires": now_ms() + left_ms,
        "accountId": "acc", "note": "mine"});
    Home::new(&json!({"xai": {"type": "api_key", "key": "stay"}, CODEX: entry}).to_string())
}

fn request(fake: &Fake, access: &str) -> ModelRequest {
    let model = json!({"id": "gpt", "name": "G", "api": "openai-codex-responses", "provider": CODEX, "baseUrl": fake.url,
        "reasoning": false, "input": ["text"], "contextWindow": 1000, "maxTokens": 100,
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}});
    let mut request = ModelRequest::new(serde_json::from_value(model).unwrap(), 0);
    request.messages = vec![Arc::new(Message::user("Hi.", 0))];
    request.api_key = Some(Secret::new(access));
    request.is_login = true;
    request
}

/// The error text, or nothing.
async fn ask(client: &Client, request: ModelRequest) -> Option<String> {
    let mut stream = client.stream(request, CancellationToken::new());
    let mut last = None;
    while let Some(event) = stream.next().await {
        last = Some(event);
    }
    match last.unwrap() {
        ModelEvent::Done(_) => None,
        ModelEvent::Error { message, .. } => message.error_message.clone(),
        other => panic!("{other:?}"),
    }
}

fn bearer(seen: &Seen) -> &str {
    seen.headers["authorization"].rsplit('.').next().unwrap()
}

#[tokio::test]
async fn expired_token_is_refreshed_before_request() {
    let fake = openai(&["renewed-1"]);
    let home = stored("old", -1);
    let config = config(&home, &fake);
    let secrets = config.secrets.clone();
    let client = Client::new(config);
    assert_eq!(ask(&client, request(&fake, &jwt("acc", "old"))).await, None);
    // The new ones are kept out of texts as the old ones are.
    for token in ["rt-secrets-0", "rt-secrets-1", &jwt("acc", "renewed-1")] {
        assert_eq!(secrets.redact(format!("<{token}>")), "<[key]>");
    }
    assert_eq!(ask(&client, request(&fake, &jwt("acc", "old"))).await, None);
    assert_eq!(fake.at("/token").len(), 1);
    assert_eq!(fake.at("/token")[0].field("grant_type"), "refresh_token");
    let asked = fake.at("/codex/responses");
    assert_eq!((asked.len(), bearer(&asked[0])), (2, "renewed-1"));
    assert_eq!(asked[0].headers["chatgpt-account-id"], "acc");
    let entry = home.entry(CODEX);
    assert_eq!(
        (entry["refresh"].as_str(), entry["note"].as_str()),
        (Some("rt-secrets-1"), Some("mine"))
    );
    assert!(entry["expires"].as_i64().unwrap() > now_ms() + 3_000_000);
    assert_eq!(
        (home.mode(), home.entry("xai")["key"].as_str()),
        (0o600, Some("stay"))
    );
}

#[tokio::test]
async fn valid_token_is_not_refreshed() {
    let fake = openai(&["good"]);
    let home = stored("good", 60_000);
    let client = Client::new(config(&home, &fake));
    // The file counts, not what the caller read from it earlier.
    assert_eq!(ask(&client, request(&fake, &jwt("acc", "older"))).await, None);
    assert_eq!(fake.at("/token").len(), 0);
    assert_eq!(bearer(&fake.at("/codex/responses")[0]), "good");
    // The file is being edited and is not valid: the caller's token is used.
    std::fs::write(&home.file, "{").unwrap();
    assert_eq!(ask(&client, request(&fake, &jwt("acc", "good"))).await, None);
}

#[tokio::test]
async fn refused_token_is_refreshed_once() {
    let fake = openai(&["renewed-1"]);
    let home = stored("revoked", 600_000);
    let client = Client::new(config(&home, &fake));
    assert_eq!(ask(&client, request(&fake, &jwt("acc", "revoked"))).await, None);
    assert_eq!(
        (fake.at("/token").len(), fake.at("/codex/responses").len()),
        (1, 2)
    );
    let stubborn = openai(&[]);
    let home = stored("revoked", 600_000);
    let client = Client::new(config(&home, &stubborn));
    let text = ask(&client, request(&stubborn, &jwt("acc", "revoked")))
        .await
        .unwrap();
    assert_eq!(
        (stubborn.at("/token").len(), stubborn.at("/codex/responses").len()),
        (1, 2)
    );
    assert_eq!(text, "401 bad token [key]");
}

#[tokio::test]
async fn failed_refresh_is_reported_and_keeps_stored_login() {
    let fake = openai(&[]);
    let home = stored("old", -1);
    let text = home.text().replace("rt-secrets-0", "rt-secrets-spent");
    std::fs::write(&home.file, &text).unwrap();
    let client = Client::new(config(&home, &fake));
    let error = ask(&client, request(&fake, &jwt("acc", "old"))).await.unwrap();
    assert_eq!(
        error,
        "Authentication failed for \"openai-codex\": 127.0.0.1 answered 400: [key] was used already. \
         Run: pinion auth login openai-codex"
    );
    assert!(!crate::is_retryable(&error));
    assert_eq!(home.text(), text);
    assert_eq!(fake.at("/codex/responses").len(), 0);
    let mut config = config(&home, &fake);
    config.endpoints.openai_token = "http://127.0.0.1:9/token".to_owned();
    let error = ask(&Client::new(config), request(&fake, &jwt("acc", "old")))
        .await
        .unwrap();
    assert!(
        error.ends_with("no server runs at 127.0.0.1:9. The login is kept") && crate::is_retryable(&error),
        "{error}"
    );
    assert_eq!(home.text(), text);
}

#[tokio::test]
async fn unwritable_auth_file_spends_no_refresh_token() {
    let fake = openai(&[]);
    let home = stored("old", -1);
    // The draft cannot be made where a folder has its name.
    let draft = home
        .folder
        .path()
        .join(format!("auth.json.{}.tmp", std::process::id()));
    std::fs::create_dir(draft).unwrap();
    let client = Client::new(config(&home, &fake));
    let error = ask(&client, request(&fake, &jwt("acc", "old"))).await.unwrap();
    assert!(
        error.contains("auth.json") && error.ends_with("The login is kept"),
        "{error}"
    );
    assert_eq!(fake.at("/token").len(), 0);
}

/// A write beyond the file size limit fails as one to a full disk does. Renewing itself needs less than the limit.
#[test]
fn full_disk_spends_no_refresh_token() {
    let fake = openai(&["renewed-1"]);
    let home = stored("old", -1);
    let text = home.text();
    let status = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 8; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "tests::logins::renewing::child_with_full_disk",
            "--ignored",
        ])
        .env("PINION_TEST_URL", &fake.url)
        .env("PINION_TEST_FILE", &home.file)
        .stdout(std::process::Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    assert_eq!(fake.at("/token").len(), 0);
    assert_eq!(home.text(), text);
}

#[test]
#[ignore = "started by full_disk_spends_no_refresh_token"]
fn child_with_full_disk() {
    let variable = |name| std::env::var(name).unwrap();
    let url = variable("PINION_TEST_URL");
    let error = ask_in_a_runtime(&url, Path::new(&variable("PINION_TEST_FILE"))).unwrap();
    assert!(
        error.contains("auth.json") && error.ends_with("The login is kept"),
        "{error}"
    );
}

/// Sessions of one process, each client with a runtime and a thread of its own.
#[test]
fn concurrent_requests_refresh_token_once() {
    let fake = openai(&["renewed-1"]);
    let home = stored("old", -1);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_eq!(ask_in_a_runtime(&fake.url, &home.file), None));
        }
    });
    assert_eq!(fake.at("/token").len(), 1);
    assert_eq!(fake.at("/codex/responses").len(), 8);
}

#[test]
fn concurrent_processes_refresh_token_once() {
    let fake = openai(&["renewed-1"]);
    let home = stored("old", -1);
    let children: Vec<_> = (0..3)
        .map(|_| {
            Command::new(std::env::current_exe().unwrap())
                .args([
                    "--exact",
                    "tests::logins::renewing::child_of_several_processes",
                    "--ignored",
                ])
                .env("PINION_TEST_URL", &fake.url)
                .env("PINION_TEST_FILE", &home.file)
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(fake.at("/token").len(), 1);
    assert_eq!(fake.at("/codex/responses").len(), 3);
}

#[test]
#[ignore = "started by concurrent_processes_refresh_token_once"]
fn child_of_several_processes() {
    let variable = |name| std::env::var(name).unwrap();
    let url = variable("PINION_TEST_URL");
    let error = ask_in_a_runtime(&url, Path::new(&variable("PINION_TEST_FILE")));
    assert_eq!(error, None);
}

/// The error text of a request with a client and a runtime of its own.
fn ask_in_a_runtime(url: &str, file: &Path) -> Option<String> {
    let fake = Fake {
        url: url.to_owned(),
        seen: Arc::default(),
    };
    let config = crate::ClientConfig {
        auth_file: Some(file.to_owned()),
        endpoints: fake.endpoints(),
        ..crate::ClientConfig::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let client = Client::new(config);
    runtime.block_on(ask(&client, request(&fake, &jwt("acc", "old"))))
}

/// A server whose token endpoint gives new tokens when `answers` says so, or after 50 ms. `reached` hears of each request to it.
fn slow_openai(reached: tokio::sync::mpsc::Sender<()>, answers: Option<mpsc::Receiver<()>>) -> Fake {
    let answers = Mutex::new(answers);
    Fake::start(move |_, _| {
        reached.blocking_send(()).unwrap();
        match &*answers.lock().unwrap() {
            Some(answers) => answers.recv_timeout(Duration::from_secs(20)).unwrap(),
            None => std::thread::sleep(Duration::from_millis(50)),
        }
        (
            200,
            json!({"access_token": jwt("acc", "new"), "refresh_token": "rt-new", "expires_in": 60})
                .to_string(),
        )
    })
}

/// Sends a request that needs a new token and aborts it once the token endpoint has the old one.
async fn abort_during_refresh(
    client: &Client,
    fake: &Fake,
    is_reached: &mut tokio::sync::mpsc::Receiver<()>,
) {
    let cancel = CancellationToken::new();
    let mut stream = client.stream(request(fake, &jwt("acc", "old")), cancel.clone());
    let (first, ()) = tokio::join!(stream.next(), async {
        is_reached.recv().await.unwrap();
        cancel.cancel();
    });
    let Some(ModelEvent::Error { message, .. }) = first else {
        panic!("{first:?}")
    };
    assert_eq!(message.error_message.as_deref(), Some("Request was aborted."));
}

/// An abort must not lose the new refresh token.
#[tokio::test]
async fn aborted_request_does_not_lose_token_refresh() {
    let (reached, mut is_reached) = tokio::sync::mpsc::channel(1);
    let fake = slow_openai(reached, None);
    let home = stored("old", -1);
    let client = Client::new(config(&home, &fake));
    abort_during_refresh(&client, &fake, &mut is_reached).await;
    let end = std::time::Instant::now() + Duration::from_secs(20);
    while home.entry(CODEX)["refresh"] != "rt-new" {
        assert!(std::time::Instant::now() < end, "{}", home.text());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Nor must the end of the process, which comes when `finish_logins` returns.
#[tokio::test]
async fn finished_logins_are_stored_and_begin_no_refresh() {
    let (reached, mut is_reached) = tokio::sync::mpsc::channel(1);
    let (answer, answers) = mpsc::channel();
    let fake = slow_openai(reached, Some(answers));
    let home = stored("old", -1);
    let client = Client::new(config(&home, &fake));
    abort_during_refresh(&client, &fake, &mut is_reached).await;
    // In this order: the answer comes while the end waits.
    tokio::join!(biased; client.finish_logins(), async { answer.send(()).unwrap() });
    assert_eq!(home.entry(CODEX)["refresh"], "rt-new");
    std::fs::write(&home.file, stored("old", -1).text()).unwrap();
    let error = ask(&client, request(&fake, &jwt("acc", "old"))).await.unwrap();
    assert!(error.ends_with("The login is kept"), "{error}");
    assert_eq!(fake.at("/token").len(), 1);
}

/// Anthropic offers its login to its own programs only: a stored token is used, never renewed.
#[tokio::test]
async fn tokens_of_other_programs_are_used_until_expiry() {
    let fake = Fake::start(|_, seen| {
        assert_eq!(seen.path, "/v1/messages");
        if seen.headers["authorization"].ends_with("-second") {
            (400, "{\"error\":\"reached\"}".to_owned())
        } else {
            (401, "{}".to_owned())
        }
    });
    let write = |home: &Home, access: &str, left: i64| {
        let entry = json!({"type": "oauth", "access": access, "refresh": "r", "expires": now_ms() + left});
        std::fs::write(&home.file, json!({"anthropic": entry}).to_string()).unwrap();
    };
    let home = Home::new("{}");
    let client = Client::new(config(&home, &fake));
    let ask_anthropic = async || {
        let mut request = request(&fake, "sk-ant-oat-first");
        request.model.api = "anthropic-messages".to_owned();
        request.model.provider = "anthropic".to_owned();
        ask(&client, request).await.unwrap()
    };
    write(&home, "sk-ant-oat-first", -1);
    let text = ask_anthropic().await;
    assert!(
        text.contains("has expired") && text.contains("does not renew") && text.contains("--api-key"),
        "{text}"
    );
    write(&home, "sk-ant-oat-first", 60_000);
    assert!(ask_anthropic().await.contains("was refused"));
    write(&home, "sk-ant-oat-second", 60_000);
    assert!(ask_anthropic().await.contains("reached"));
    std::fs::write(&home.file, "{}").unwrap();
    assert!(ask_anthropic().await.contains("gone from auth.json"));
    assert!(
        fake.at("/v1/messages")
            .iter()
            .all(|seen| seen.headers["anthropic-beta"].starts_with("oauth-2025-04-20"))
    );
}

/// Copilot's tokens say where Copilot is, so a new one may lead elsewhere; and until the margin is over, the old one serves.
#[tokio::test]
async fn copilot_token_is_exchanged_again_after_expiry() {
    let fake = Fake::start(|number, seen| {
        let ends = now_ms() / 1000 + 1800;
        match (seen.path.as_str(), number) {
            ("/api/copilot_internal/v2/token", 0) => {
                assert_eq!(seen.headers["authorization"], "Bearer gho_x");
                assert!(seen.headers.contains_key("editor-version"));
                (
                    200,
                    json!({"token": "tid=new-one;proxy-ep=127.0.0.1", "expires_at": ends}).to_string(),
                )
            }
            ("/api/copilot_internal/v2/token", _) => (503, "down".to_owned()),
            _ => (400, "{\"error\":{\"message\":\"reached\"}}".to_owned()),
        }
    });
    let home = Home::new("{}");
    let write = |left: i64| {
        let entry =
            json!({"type": "oauth", "access": "tid=old-one", "refresh": "gho_x", "expires": now_ms() + left});
        std::fs::write(&home.file, json!({"github-copilot": entry}).to_string()).unwrap();
    };
    let client = Client::new(config(&home, &fake));
    let ask_copilot = async || {
        let mut request = request(&fake, "tid=old-one");
        request.model.api = "openai-completions".to_owned();
        request.model.provider = "github-copilot".to_owned();
        ask(&client, request).await.unwrap()
    };
    write(-1);
    assert_eq!(ask_copilot().await, "400 reached");
    let entry: Value = home.entry("github-copilot");
    assert_eq!(entry["refresh"], "gho_x");
    let left = entry["expires"].as_i64().unwrap() - now_ms();
    assert!((1_490_000..=1_500_000).contains(&left), "{left}");
    assert_eq!(
        fake.at("/chat/completions")[0].headers["authorization"],
        "Bearer tid=new-one;proxy-ep=127.0.0.1"
    );
    write(-1000);
    assert_eq!(ask_copilot().await, "400 reached");
    assert_eq!(
        fake.at("/chat/completions")[1].headers["authorization"],
        "Bearer tid=old-one"
    );
    write(-400_000);
    let text = ask_copilot().await;
    assert!(
        text.contains("answered 503: down") && crate::is_retryable(&text),
        "{text}"
    );
}
