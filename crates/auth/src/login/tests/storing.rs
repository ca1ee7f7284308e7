//! `auth.json`: content that is kept or refused, permissions, and the lock.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::{Clients, Home};
use crate::login::{AuthStore, Credentials, Endpoints, LoginError, TokenRefresher};
use crate::{Secret, Secrets};

/// Nothing of this may change, not even how it is written.
const OTHERS: &str = r#""zeta": {"type":"magic","n":[1.0E+30, 0.10,  -0],"s":"\u00e4/\/"},
  "alpha": {"type": "oauth", "access": "at", "refresh": "rt", "expires": 12345678901234567890.5}"#;

#[tokio::test]
async fn auth_file_keeps_other_entries_byte_for_byte() {
    let home = Home::new(&format!(
        "{{\n  {OTHERS},\n  \"xai\": {{\"type\": \"api_key\", \"key\": \"old\", \"env\": {{\"A\": \"b\"}}, \"own\": 1.50}}\n}}"
    ));
    fs::set_permissions(&home.file, fs::Permissions::from_mode(0o644)).unwrap();
    let store = AuthStore::new(&home.file);
    store.put_key("xai", "  new-key\n").await.unwrap();
    store.put_key("groq", "second").await.unwrap();
    let text = home.text();
    for part in OTHERS.split(",\n  ") {
        let (_, value) = part.split_once(": ").unwrap();
        assert!(text.contains(value), "{value} is not in {text}");
    }
    assert!(text.find("zeta").unwrap() < text.find("alpha").unwrap());
    assert!(text.contains("1.50"), "{text}");
    assert_eq!(home.entry("xai")["env"]["A"], "b");
    assert_eq!(
        (
            home.entry("xai")["key"].as_str(),
            home.entry("groq")["key"].as_str()
        ),
        (Some("new-key"), Some("second"))
    );
    assert_eq!(home.mode(), 0o600);
    assert!(store.remove("zeta").await.unwrap());
    assert!(!store.remove("zeta").await.unwrap());
    assert!(!home.text().contains("1.0E+30") && home.text().contains("12345678901234567890.5"));
    let left: Vec<_> = fs::read_dir(home.folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".tmp") || name == "auth.json.lock")
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn removed_login_leaves_api_keys() {
    let home = Home::new(
        r#"{"xai": {"type": "oauth", "access": "a", "refresh": "r", "expires": 1}, "groq": {"type": "api_key", "key": "k"}}"#,
    );
    let store = AuthStore::new(&home.file);
    assert!(store.remove_login("xai").await.unwrap());
    assert!(!store.remove_login("xai").await.unwrap());
    assert!(!store.remove_login("groq").await.unwrap());
    let left: Value = serde_json::from_str(&home.text()).unwrap();
    assert_eq!(left, json!({"groq": {"type": "api_key", "key": "k"}}));
}

#[tokio::test]
async fn api_key_replacing_login_keeps_environment_variables() {
    let home = Home::new(
        r#"{"xai": {"type": "oauth", "access": "sk-a", "refresh": "sk-r", "expires": 1, "env": {"A": "b"}}}"#,
    );
    AuthStore::new(&home.file).put_key("xai", "k").await.unwrap();
    assert_eq!(
        home.entry("xai"),
        serde_json::json!({"env": {"A": "b"}, "type": "api_key", "key": "k"})
    );
}

#[tokio::test]
async fn damaged_auth_file_is_not_overwritten() {
    for text in [
        "{\"xai\": {\"type\": \"api_key\", \"key\": \"sk-secret\"}",
        "[]",
        "{} x",
    ] {
        let home = Home::new(text);
        let error = AuthStore::new(&home.file).put_key("groq", "k").await.unwrap_err();
        assert!(matches!(error, LoginError::File { .. }), "{error}");
        assert!(!error.to_string().contains("sk-secret"), "{error}");
        assert_eq!(home.text(), text);
    }
}

#[tokio::test]
async fn new_auth_file_and_folder_are_owner_only() {
    let home = Home::new("");
    let folder = home.folder.path().join("deep/agent");
    let file = folder.join("auth.json");
    assert!(!AuthStore::new(&file).remove("xai").await.unwrap());
    assert!(!folder.exists());
    AuthStore::new(&file).put_key("xai", "k").await.unwrap();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&file), mode(&folder)), (0o600, 0o700));
}

#[tokio::test]
async fn linked_auth_file_stays_a_link() {
    let home = Home::new("{}");
    let link = home.folder.path().join("link.json");
    symlink(&home.file, &link).unwrap();
    AuthStore::new(&link).put_key("xai", "k").await.unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(home.entry("xai")["key"], "k");
}

/// Pi locks the file that a link leads to.
#[tokio::test]
async fn linked_auth_file_is_locked_at_its_target() {
    let home = Home::new("{}");
    let link = home.folder.path().join("link.json");
    symlink(&home.file, &link).unwrap();
    let dir = home.folder.path().join("auth.json.lock");
    fs::create_dir(&dir).unwrap();
    let store = AuthStore::new(&link);
    let waiting = tokio::time::timeout(Duration::from_millis(150), store.put_key("xai", "k"));
    assert!(waiting.await.is_err());
    assert_eq!(home.text(), "{}");
    fs::remove_dir(&dir).unwrap();
    store.put_key("xai", "k").await.unwrap();
    assert_eq!(home.entry("xai")["key"], "k");
    for lock in ["link.json.lock", "link.json.pinion-lock"] {
        assert!(!home.folder.path().join(lock).exists(), "{lock}");
    }
}

#[tokio::test]
async fn unusable_keys_are_refused() {
    let home = Home::new("");
    for bad in ["", "  \n", "two words", "a\tb", &"k".repeat(70_000)] {
        let error = AuthStore::new(&home.file).put_key("xai", bad).await.unwrap_err();
        assert!(matches!(error, LoginError::Key(_)));
    }
}

#[tokio::test]
async fn lock_of_pi_is_waited_for_unless_stale() {
    let home = Home::new("{}");
    let dir = home.folder.path().join("auth.json.lock");
    fs::create_dir(&dir).unwrap();
    let store = AuthStore::new(&home.file);
    let waiting = tokio::time::timeout(Duration::from_millis(150), store.put_key("xai", "k"));
    assert!(waiting.await.is_err());
    assert_eq!(home.text(), "{}");
    let old = SystemTime::now() - Duration::from_secs(60);
    fs::File::open(&dir).unwrap().set_modified(old).unwrap();
    store.put_key("xai", "k").await.unwrap();
    assert_eq!(home.entry("xai")["key"], "k");
    assert!(!dir.exists());
}

#[tokio::test]
async fn auth_file_lock_of_other_process_is_awaited() {
    let home = Home::new("{}");
    let lock = fs::File::create(home.folder.path().join("auth.json.pinion-lock")).unwrap();
    lock.lock().unwrap();
    let store = AuthStore::new(&home.file);
    let waiting = tokio::time::timeout(Duration::from_millis(150), store.put_key("xai", "k"));
    assert!(waiting.await.is_err());
    assert_eq!(home.text(), "{}");
    lock.unlock().unwrap();
    store.put_key("xai", "k").await.unwrap();
    assert_eq!(home.entry("xai")["key"], "k");
}

/// The login of an extension, expired.
const LENT: &str = r#"{"ext": {"type": "oauth", "access": "at-1", "refresh": "rt-1", "expires": 1}}"#;

#[tokio::test]
async fn refresh_without_refresh_token_keeps_old_one() {
    let home = Home::new(LENT);
    let store = AuthStore::new(&home.file);
    for renewed in [
        json!({"access": "at-2", "expires": 1}),
        json!({"access": "at-3", "expires": 1, "refresh": null}),
    ] {
        let access = renewed["access"].clone();
        let Value::Object(renewed) = renewed else { panic!() };
        let renew = move |stored: Credentials| async move {
            assert_eq!(stored["refresh"], "rt-1");
            Ok(renewed)
        };
        let given = store.lent("ext", &Secrets::default(), renew).await.unwrap();
        assert_eq!(given["refresh"], "rt-1");
        let entry = json!({"type": "oauth", "access": access, "refresh": "rt-1", "expires": 1});
        assert_eq!(home.entry("ext"), entry);
    }
}

#[tokio::test]
async fn failed_refresh_of_extension_asks_for_another_login() {
    let home = Home::new(LENT);
    let renew = |_: Credentials| async { Err::<Credentials, _>("invalid_grant".to_owned()) };
    let store = AuthStore::new(&home.file);
    let error = store.lent("ext", &Secrets::default(), renew).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "Authentication failed for \"ext\": invalid_grant. Log in to ext again"
    );
    assert_eq!(home.text(), LENT);
}

#[tokio::test]
async fn damaged_auth_file_is_no_missing_login() {
    let home = Home::new("{\"openai-codex\": {");
    let renew = |_: Credentials| async { Err::<Credentials, _>("not reached".to_owned()) };
    let store = AuthStore::new(&home.file);
    let lent = store.lent("ext", &Secrets::default(), renew).await;
    let clients: Arc<Clients> = Arc::default();
    let refresher = TokenRefresher::new(home.file.clone(), Endpoints::default(), clients);
    let refused = Secret::new("a-refused-token");
    let codex = refresher.instead_of("openai-codex", &refused).await;
    for error in [lent.unwrap_err(), codex.unwrap_err()] {
        let text = error.to_string();
        assert!(
            text.contains("Failed to parse auth.json") && text.ends_with("The login is kept"),
            "{text}"
        );
    }
}
