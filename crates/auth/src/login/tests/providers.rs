//! Logins of single providers from beginning to end, and their refreshes: what each sends, stores and refuses. What all
//! flows have in common is tested in `flows`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::flows::{log_in, parameters, visit};
use super::{Clients, Fake, Home, Seen};
use crate::Secret;
use crate::login::clock::now_ms;
use crate::login::{Endpoints, Login, LoginError, Step, TokenRefresher};

const OTHER: &str = r#"{"groq": {"type": "api_key", "key": "stay"}}"#;
const OPENROUTER: &str = "openrouter";
const CHATGPT: &str = "openai";

/// The parameters of a page.
type Parameters = HashMap<String, String>;

/// A provider with a device flow.
struct Device {
    id: &'static str,
    code_path: &'static str,
    token_path: &'static str,
    client: &'static str,
    access: &'static str,
    refresh: &'static str,
    /// From the login to the stored time of expiry, in ms.
    lifetime: i64,
}

const DEVICES: [Device; 3] = [
    Device {
        id: "xai",
        code_path: "/xai/device/code",
        token_path: "/xai/token",
        client: "b1a00492-073a-47ea-816f-4c329264a828",
        access: "at-of-provider",
        refresh: "rt-of-provider",
        lifetime: 3_300_000,
    },
    Device {
        id: "kimi-coding",
        code_path: "/kimi/api/oauth/device_authorization",
        token_path: "/kimi/api/oauth/token",
        client: "17e5f671-d194-4dfb-9706-5516cb48c098",
        access: "at-of-provider",
        refresh: "rt-of-provider",
        lifetime: 3_600_000,
    },
    Device {
        id: "meta",
        code_path: "/meta/authorization/",
        token_path: "/meta/token/",
        client: "1031625952748946",
        access: "key-for-a-day",
        refresh: "at-of-provider",
        lifetime: 86_400_000,
    },
];

fn tokens() -> Value {
    json!({"access_token": "at-of-provider", "refresh_token": "rt-of-provider", "expires_in": 3600})
}

/// All providers with a device flow. The polls give `pending`, then `token`.
fn device_servers(token: Value) -> Fake {
    Fake::start(move |number, seen| {
        let is_device = |path: fn(&Device) -> &'static str| DEVICES.iter().any(|one| path(one) == seen.path);
        let status = if token.get("error").is_some() { 400 } else { 200 };
        let grant = seen.field("grant_type");
        if is_device(|one| one.code_path) {
            let answer = json!({"device_code": "device-secret-code", "user_code": "ABCD-1234", "interval": 1, "expires_in": 900,
                "verification_uri": "https://x.test/device", "verification_uri_complete": "https://x.test/device?c=ABCD-1234"});
            return (200, answer.to_string());
        }
        let refuses = seen.field("refresh_token") == "rt-dead-token"
            || seen
                .headers
                .get("authorization")
                .is_some_and(|value| value == "Bearer rt-dead-token");
        match seen.path.as_str() {
            _ if refuses => (401, json!({"error": "invalid_grant"}).to_string()),
            "/meta-keys" => (200, json!({"api_key": "key-for-a-day"}).to_string()),
            _ if !is_device(|one| one.token_path) => (404, "{}".to_owned()),
            _ if grant == "refresh_token" => (200, json!({"access_token": "at-renewed"}).to_string()),
            _ if number == 0 => (400, json!({"error": "authorization_pending"}).to_string()),
            _ => (status, token.to_string()),
        }
    })
}

fn refresher(home: &Home, fake: &Fake) -> Arc<TokenRefresher> {
    TokenRefresher::new(home.file.clone(), fake.endpoints(), Arc::<Clients>::default())
}

/// A file with one login, which has ended.
fn expired(provider: &str, refresh: &str, extra: &Value) -> Home {
    let mut entry =
        json!({"type": "oauth", "access": "at-old-token", "refresh": refresh, "expires": 1, "note": "mine"});
    if let (Value::Object(entry), Value::Object(extra)) = (&mut entry, extra) {
        entry.extend(extra.clone());
    }
    Home::new(&json!({ provider: entry }).to_string())
}

/// The token of a login in the file, refreshed if it has ended.
async fn token(home: &Home, fake: &Fake, provider: &str) -> Result<String, LoginError> {
    let known = Secret::new("at-old-token");
    let token = refresher(home, fake).token(provider, &known).await?;
    Ok(token.access.expose().to_owned())
}

fn milliseconds_left(entry: &Value) -> i64 {
    entry["expires"].as_i64().unwrap() - now_ms()
}

#[tokio::test]
async fn device_logins_store_what_provider_gives() {
    for device in &DEVICES {
        let fake = device_servers(tokens());
        let home = Home::new(OTHER);
        let told = Mutex::new(String::new());
        let act = |text: &str| told.lock().unwrap().push_str(text);
        log_in(&home, &fake, device.id, None, &CancellationToken::new(), act)
            .await
            .unwrap();
        assert_eq!(
            told.into_inner().unwrap(),
            "https://x.test/device?c=ABCD-1234 ABCD-1234"
        );
        let polls = fake.at(device.token_path);
        assert_eq!(polls.len(), 2, "{}", device.id);
        for sent in [&fake.at(device.code_path)[0], &polls[1]] {
            assert_eq!(sent.field("client_id"), device.client);
        }
        assert_eq!(polls[1].field("device_code"), "device-secret-code");
        let entry = home.entry(device.id);
        assert_eq!(
            (entry["access"].as_str(), entry["refresh"].as_str()),
            (Some(device.access), Some(device.refresh))
        );
        let left = milliseconds_left(&entry);
        assert!(
            (device.lifetime - 60_000..=device.lifetime).contains(&left),
            "{}: {left}",
            device.id
        );
        assert_eq!(home.entry("groq")["key"], "stay");
        // Only Copilot's models are switched on.
        let seen = fake.seen.lock().unwrap();
        assert!(!seen.iter().any(|seen| seen.path.contains("policy")));
    }
}

#[tokio::test]
async fn denied_device_logins_store_nothing() {
    for device in &DEVICES {
        for (error, wanted) in [
            ("access_denied", LoginError::Denied),
            ("authorization_denied", LoginError::Denied),
            ("expired_token", LoginError::CodeExpired),
        ] {
            let fake = device_servers(json!({ "error": error }));
            let home = Home::new(OTHER);
            let done = log_in(&home, &fake, device.id, None, &CancellationToken::new(), |_| {}).await;
            assert_eq!(done, Err(wanted), "{}", device.id);
            assert_eq!(home.text(), OTHER);
        }
    }
}

#[tokio::test]
async fn stored_device_logins_of_pi_are_refreshed() {
    for device in &DEVICES {
        let fake = device_servers(tokens());
        let home = expired(device.id, "rt-stored-by-pi", &json!({"accountId": "a"}));
        let given = token(&home, &fake, device.id).await.unwrap();
        let entry = home.entry(device.id);
        assert_eq!(entry["access"], json!(given));
        // No answer names a new refresh token or an account here, so the old ones stay.
        assert_eq!(
            (&entry["refresh"], &entry["accountId"], &entry["note"]),
            (&json!("rt-stored-by-pi"), &json!("a"), &json!("mine"))
        );
        assert!(milliseconds_left(&entry) > 3_000_000);
        if device.id == "meta" {
            let sent = &fake.at("/meta-keys")[0];
            assert_eq!(sent.headers["authorization"], "Bearer rt-stored-by-pi");
            assert_eq!(sent.headers["x-api-version"], "1.0.0");
            assert_eq!(given, "key-for-a-day");
        } else {
            let sent = &fake.at(device.token_path)[0];
            assert_eq!(sent.field("refresh_token"), "rt-stored-by-pi");
            assert_eq!(sent.field("client_id"), device.client);
            assert_eq!(given, "at-renewed");
        }
        // The new one counts, so nothing is asked again.
        let requests = fake.seen.lock().unwrap().len();
        assert_eq!(token(&home, &fake, device.id).await.unwrap(), given);
        assert_eq!(fake.seen.lock().unwrap().len(), requests);
    }
}

#[tokio::test]
async fn refused_refresh_keeps_login_and_names_command() {
    for device in &DEVICES {
        let fake = device_servers(tokens());
        let home = expired(device.id, "rt-dead-token", &json!({}));
        let before = home.text();
        let error = token(&home, &fake, device.id).await.unwrap_err().to_string();
        let id = device.id;
        assert_eq!(
            error,
            format!(
                "Authentication failed for \"{id}\": 127.0.0.1 answered 401: invalid_grant. Run: pinion auth login {id}"
            )
        );
        assert_eq!(home.text(), before);
    }
}

#[tokio::test]
async fn refused_refresh_hides_token_and_no_other_words() {
    let words = "refresh_token rt-stored-by-pi is spent";
    let answer = json!({"error": "invalid_grant", "error_description": words}).to_string();
    let fake = Fake::start(move |_, _| (400, answer.clone()));
    let home = expired("xai", "rt-stored-by-pi", &json!({}));
    let error = token(&home, &fake, "xai").await.unwrap_err().to_string();
    assert!(error.contains("400: refresh_token [key] is spent"), "{error}");
}

/// Another login would not help.
#[tokio::test]
async fn busy_token_server_asks_for_no_login() {
    for (device, status) in DEVICES.iter().zip([503, 429, 500]) {
        let fake = Fake::start(move |_, _| (status, "{}".to_owned()));
        let home = expired(device.id, "rt-stored-by-pi", &json!({}));
        let error = token(&home, &fake, device.id).await.unwrap_err().to_string();
        let end = format!("answered {status}: no reason given. The login is kept");
        assert!(error.ends_with(&end), "{error}");
    }
}

#[tokio::test]
async fn meta_account_without_setup_names_page() {
    let fake = Fake::start(|_, _| (200, json!({"action_url": "https://meta.test/setup"}).to_string()));
    let home = expired("meta", "rt-stored-by-pi", &json!({}));
    let error = token(&home, &fake, "meta").await.unwrap_err().to_string();
    assert!(
        error.contains("Complete the setup at https://meta.test/setup"),
        "{error}"
    );
}

#[tokio::test]
async fn logins_of_all_providers_can_be_cancelled() {
    for provider in ["xai", "kimi-coding", "meta", OPENROUTER, CHATGPT] {
        let fake = device_servers(json!({"error": "authorization_pending"}));
        let home = Home::new(OTHER);
        let cancel = CancellationToken::new();
        let stop = cancel.clone();
        let done = log_in(&home, &fake, provider, None, &cancel, move |_| stop.cancel()).await;
        assert_eq!(done, Err(LoginError::Cancelled), "{provider}");
        assert_eq!(home.text(), OTHER);
    }
}

/// OpenRouter: gives a key when the code is right.
fn openrouter() -> Fake {
    Fake::start(|_, seen: &Seen| {
        assert_eq!(seen.path, "/openrouter/api/v1/auth/keys");
        let body: Value = serde_json::from_str(&seen.body).unwrap();
        assert_eq!(body["code_challenge_method"], "S256");
        assert_eq!(body["code_verifier"].as_str().unwrap().len(), 43);
        if body["code"] == "the-right-code-12" {
            (200, json!({"key": "sk-or-v1-secret"}).to_string())
        } else {
            let error = json!({"error": {"code": 403, "message": format!("bad code {}", body["code"])}});
            (403, error.to_string())
        }
    })
}

/// Logs in to a provider with a page in the browser. `query` makes the query of the address at which the browser ends from the
/// parameters of the page. Returns the address of the page.
async fn visit_page(
    home: &Home,
    fake: &Fake,
    provider: &str,
    redirect: &'static str,
    query: fn(&Parameters) -> String,
) -> Result<String, LoginError> {
    let page = Mutex::new(String::new());
    let visits: Mutex<Vec<std::thread::JoinHandle<()>>> = Mutex::default();
    let act = |address: &str| {
        *page.lock().unwrap() = address.to_owned();
        let asked = parameters(address);
        visits.lock().unwrap().push(std::thread::spawn(move || {
            let target = reqwest::Url::parse(&asked[redirect]).unwrap();
            assert_eq!(target.host_str(), Some("127.0.0.1"));
            let port = target.port().unwrap();
            assert!(visit(port, "/oauth/callback?code=evil").starts_with("HTTP/1.1 404"));
            let ends = format!("{}?{}", target.path(), query(&asked));
            assert!(visit(port, &ends).starts_with("HTTP/1.1 200"));
        }));
    };
    let done = log_in(home, fake, provider, None, &CancellationToken::new(), act).await;
    for visit in visits.into_inner().unwrap() {
        visit.join().unwrap();
    }
    done.map(|()| page.into_inner().unwrap())
}

#[tokio::test]
async fn openrouter_login_stores_key_without_expiry() {
    let fake = openrouter();
    let home = Home::new(OTHER);
    let query = |_: &Parameters| "code=the-right-code-12".to_owned();
    let page = visit_page(&home, &fake, OPENROUTER, "callback_url", query)
        .await
        .unwrap();
    assert!(
        page.starts_with(&format!("{}/openrouter/auth?", fake.url)),
        "{page}"
    );
    assert_eq!(parameters(&page)["code_challenge_method"], "S256");
    assert_eq!(
        home.entry(OPENROUTER),
        json!({"type": "oauth", "access": "sk-or-v1-secret", "refresh": "", "expires": 9_007_199_254_740_991_i64})
    );
    assert_eq!(token(&home, &fake, OPENROUTER).await.unwrap(), "sk-or-v1-secret");
    let refused = Secret::new("sk-or-v1-secret");
    let error = refresher(&home, &fake).instead_of(OPENROUTER, &refused).await;
    assert_eq!(
        error.unwrap_err().to_string(),
        "Authentication failed for \"openrouter\": the stored token was refused. Run: pinion auth login openrouter"
    );
    assert_eq!(fake.seen.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn openrouter_browser_returns_to_configured_callback_host() {
    let home = Home::new(OTHER);
    let endpoints = Endpoints {
        callback_host: "localhost".to_owned(),
        ..openrouter().endpoints()
    };
    let login = Login::new(home.file.clone(), endpoints, Arc::<Clients>::default());
    let cancel = CancellationToken::new();
    let callback = Mutex::new(String::new());
    let tell = |step: Step<'_>| {
        let Step::Visit(address) = step else { panic!() };
        *callback.lock().unwrap() = parameters(address)["callback_url"].clone();
        cancel.cancel();
    };
    let done = login.run(OPENROUTER, None, &[], &tell, None, &cancel).await;
    assert_eq!(done, Err(LoginError::Cancelled));
    let callback = callback.into_inner().unwrap();
    assert!(
        callback.starts_with("http://localhost:") && callback.contains("/oauth/callback/"),
        "{callback}"
    );
}

#[tokio::test]
async fn refused_openrouter_login_stores_nothing() {
    for (query, wanted) in [
        ("error=access_denied", "The login was denied"),
        (
            "code=a-wrong-code-1234",
            "127.0.0.1 answered 403: bad code \"[key]\"",
        ),
    ] {
        let fake = openrouter();
        let home = Home::new(OTHER);
        let (sender, lines) = mpsc::channel(1);
        sender
            .try_send(format!("http://127.0.0.1:1/oauth/callback/x?{query}"))
            .unwrap();
        let cancel = CancellationToken::new();
        let done = log_in(&home, &fake, OPENROUTER, Some(lines), &cancel, |_| {}).await;
        assert_eq!(done.unwrap_err().to_string(), wanted);
        assert_eq!(home.text(), OTHER);
    }
}

/// OpenAI: registers the client `app_issued` and grants these scopes.
fn chatgpt(scope: &'static str) -> Fake {
    Fake::start(move |_, seen: &Seen| {
        assert_eq!(seen.path, "/chatgpt/oauth/token");
        let (client, resource) = (seen.field("client_id"), seen.field("resource"));
        assert_eq!(
            (client.as_str(), resource.as_str()),
            ("app_issued", "https://api.openai.com/v1")
        );
        let mut answer = tokens();
        answer["scope"] = json!(scope);
        answer["id_token"] = json!("id");
        (200, answer.to_string())
    })
}

const GRANTED: &str = "openid chatgpt.tokens.use.direct";

#[tokio::test]
async fn chatgpt_login_uses_client_that_openai_registers() {
    let fake = chatgpt(GRANTED);
    let home = Home::new(OTHER);
    let query = |asked: &Parameters| {
        format!(
            "code=c0de-of-openai&client_id=app_issued&state={}",
            asked["state"]
        )
    };
    let mut hosts = Vec::new();
    for _ in 0..2 {
        let page = visit_page(&home, &fake, CHATGPT, "redirect_uri", query)
            .await
            .unwrap();
        assert!(
            page.starts_with(&format!("{}/chatgpt/authorize?", fake.url)),
            "{page}"
        );
        let asked = parameters(&page);
        assert_eq!(
            (asked["client_id"].as_str(), asked["agent_name_hint"].as_str()),
            ("dynamic_agent_client", "Pinion")
        );
        assert!(asked["scope"].ends_with("chatgpt.tokens.use.direct"));
        hosts.push(asked["ext_agent_host_id"].clone());
    }
    // OpenAI knows an installation by its id, so another login uses the same.
    assert_eq!(hosts[0], hosts[1]);
    let entry = home.entry(CHATGPT);
    assert_eq!(
        (&entry["clientId"], &entry["scopes"]),
        (
            &json!("app_issued"),
            &json!(["openid", "chatgpt.tokens.use.direct"])
        )
    );
    let host = entry["hostId"].as_str().unwrap();
    assert_eq!(hosts[0], format!("urn:uuid:{host}"));
    let left = milliseconds_left(&entry);
    assert!((3_360_000..=3_420_000).contains(&left), "{left}");
}

#[tokio::test]
async fn chatgpt_login_without_direct_use_is_refused() {
    let fake = chatgpt("openid");
    let home = Home::new(OTHER);
    let query = |asked: &Parameters| {
        format!(
            "code=c0de-of-openai&client_id=app_issued&state={}",
            asked["state"]
        )
    };
    let done = visit_page(&home, &fake, CHATGPT, "redirect_uri", query).await;
    let error = done.unwrap_err().to_string();
    assert!(
        error.contains("did not grant chatgpt.tokens.use.direct"),
        "{error}"
    );
    assert_eq!(home.text(), OTHER);
}

#[tokio::test]
async fn pasted_chatgpt_address_must_name_client() {
    let fake = chatgpt(GRANTED);
    let home = Home::new("");
    let (sender, lines) = mpsc::channel(4);
    let notes = Mutex::new(Vec::new());
    let tell = |step: Step<'_>| match step {
        Step::Visit(address) => {
            let asked = parameters(address);
            let bare = format!("{}?code=c0de&state={}", asked["redirect_uri"], asked["state"]);
            for line in [bare.clone(), format!("{bare}&client_id=app_issued")] {
                sender.try_send(line).unwrap();
            }
        }
        Step::Note(note) => notes.lock().unwrap().push(note.to_owned()),
        Step::Enter { .. } => panic!(),
    };
    super::login(&home, &fake)
        .run(CHATGPT, None, &[], &tell, Some(lines), &CancellationToken::new())
        .await
        .unwrap();
    assert_eq!(notes.into_inner().unwrap(), [LoginError::Paste.to_string()]);
    assert_eq!(home.entry(CHATGPT)["clientId"], "app_issued");
}

#[tokio::test]
async fn chatgpt_login_is_refreshed_with_its_client() {
    let fake = chatgpt(GRANTED);
    let home = expired(
        CHATGPT,
        "rt-stored-by-pi",
        &json!({"clientId": "app_issued", "scopes": ["a"]}),
    );
    assert_eq!(token(&home, &fake, CHATGPT).await.unwrap(), "at-of-provider");
    assert_eq!(
        fake.at("/chatgpt/oauth/token")[0].field("refresh_token"),
        "rt-stored-by-pi"
    );
    let entry = home.entry(CHATGPT);
    assert_eq!(
        (&entry["clientId"], &entry["scopes"], &entry["refresh"]),
        (&json!("app_issued"), &json!(["a"]), &json!("rt-of-provider"))
    );
    let nameless = expired(CHATGPT, "rt-stored-by-pi", &json!({}));
    let error = token(&nameless, &fake, CHATGPT).await.unwrap_err().to_string();
    assert!(
        error.contains("names no client") && error.ends_with("Run: pinion auth login openai"),
        "{error}"
    );
}
