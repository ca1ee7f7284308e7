//! Tests of stored credentials and of the variables that hold some.

use std::collections::HashMap;
use std::fs;
use std::sync::Arc;

use auth::Secret;

use crate::catalogue::Catalogue;
use crate::credentials::Credentials;
use crate::models_file::ModelsFile;
use crate::providers::Providers;

fn credentials(auth: &str, env: &'static [(&'static str, &'static str)]) -> (Credentials, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("auth.json"), auth).unwrap();
    let env: HashMap<&str, &str> = env.iter().copied().collect();
    let read = Credentials::read(
        folder.path(),
        Arc::new(move |name| env.get(name).map(|value| (*value).to_owned())),
        Arc::new(|_| panic!("no command may run")),
    );
    (read, folder)
}

fn providers(models: &str) -> Providers {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("models.json");
    fs::write(&path, models).unwrap();
    let (catalogue, _) = Catalogue::load(folder.path());
    let file = ModelsFile::read(&path, &|id| catalogue.provider(id).is_some());
    Providers::new(Arc::new(catalogue), file, Vec::new(), None)
}

#[test]
fn variable_of_entry_wins_over_process() {
    let auth = r#"{"acme": {"type": "api_key", "key": "k", "env": {"REGION": "own", "EMPTY": ""}}}"#;
    let (credentials, _folder) = credentials(auth, &[("REGION", "process"), ("EMPTY", "process")]);
    assert_eq!(credentials.variable("acme", "REGION").as_deref(), Some("own"));
    assert_eq!(
        credentials.variable("other", "REGION").as_deref(),
        Some("process")
    );
    assert_eq!(
        credentials.variable("acme", "EMPTY").as_deref(),
        Some("process"),
        "empty counts as unset"
    );
}

#[test]
fn runtime_key_counts_for_its_provider_only() {
    let (mut credentials, _folder) = credentials("{}", &[]);
    credentials.set_runtime_key("acme", Secret::from("sk-run-123456".to_owned()));
    let exposed = |id: &str| credentials.runtime_key(id).map(|key| key.expose().to_owned());
    assert_eq!(exposed("acme").as_deref(), Some("sk-run-123456"));
    assert_eq!(exposed("other"), None);
    assert!(
        !credentials
            .secrets()
            .redact("sk-run-123456".to_owned())
            .contains("sk-run-123456")
    );
}

#[test]
fn local_key_is_never_a_command() {
    let auth = r#"{"vllm": {"type": "api_key", "key": "!secret"}, "llama.cpp": {"type": "api_key", "key": "plain"}}"#;
    let (credentials, _folder) = credentials(auth, &[("VLLM_API_KEY", "of-variable")]);
    let exposed = |id: &str| credentials.local_key(id).map(|key| key.expose().to_owned());
    assert_eq!(exposed("vllm").as_deref(), Some("of-variable"));
    assert_eq!(exposed("llama.cpp").as_deref(), Some("plain"));
    assert_eq!(exposed("ollama"), None);
}

#[test]
fn replay_answers_for_named_providers_and_offline() {
    let (mut credentials, _folder) = credentials("{}", &[]);
    assert_eq!(credentials.is_replayed("acme"), None);
    credentials.set_replayed(vec!["acme".to_owned()]);
    assert_eq!(credentials.is_replayed("acme"), Some(true));
    assert_eq!(credentials.is_replayed("offline"), Some(true));
    assert_eq!(credentials.is_replayed("other"), Some(false));
}

#[test]
fn reread_keeps_runtime_key_and_takes_new_file() {
    let (mut credentials, folder) = credentials("{}", &[]);
    credentials.set_runtime_key("acme", Secret::from("sk-run".to_owned()));
    let auth = r#"{"other": {"type": "api_key", "key": "k"}}"#;
    fs::write(folder.path().join("auth.json"), auth).unwrap();
    let reread = credentials.reread(folder.path());
    assert!(reread.runtime_key("acme").is_some());
    assert!(reread.file().entry("other").is_some());
    assert!(credentials.file().entry("other").is_none());
}

#[test]
fn copilot_url_needs_a_login() {
    let (key, _folder) = credentials(r#"{"github-copilot": {"type": "api_key", "key": "k"}}"#, &[]);
    assert_eq!(key.copilot_url(), None);
    let auth = r#"{"github-copilot": {"type": "oauth", "refresh": "r", "expires": 1,
        "access": "tid=1;proxy-ep=proxy.business.githubcopilot.com;x=2"}}"#;
    let (login, _folder) = credentials(auth, &[]);
    assert_eq!(
        login.copilot_url().as_deref(),
        Some("https://api.business.githubcopilot.com")
    );
}

#[test]
fn key_variables_contain_only_set_references() {
    let models = r#"{"providers": {"acme": {"baseUrl": "http://a", "apiKey": "ACME_KEY", "api": "openai-completions",
        "headers": {"x-a": "$ACME_HEADER", "x-b": "UNSET_NAME"}, "models": [{"id": "m"}]}}}"#;
    let (credentials, _folder) = credentials("{}", &[("ACME_KEY", "k"), ("ACME_HEADER", "h")]);
    let names = credentials.key_variables(&providers(models));
    let has = |name: &str| names.iter().any(|known| known == name);
    assert!(has("ACME_KEY") && has("ACME_HEADER"));
    assert!(!has("UNSET_NAME"));
    assert!(
        has("ANTHROPIC_API_KEY") && has("VLLM_API_KEY"),
        "built-in ones, set or not"
    );
}
