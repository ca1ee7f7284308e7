//! Tests of the providers' order and of what the sections of files and extensions say of them.

use std::fs;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::Registered;
use crate::catalogue::Catalogue;
use crate::models_file::ModelsFile;
use crate::providers::Providers;

fn providers(models: &Value, registered: Vec<Registered>, copilot_url: Option<&str>) -> Providers {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("models.json");
    fs::write(&path, json!({"providers": models}).to_string()).unwrap();
    let (catalogue, _) = Catalogue::load(folder.path());
    let file = ModelsFile::read(&path, &|id| catalogue.provider(id).is_some());
    assert_eq!(file.error(), None);
    let url = copilot_url.map(str::to_owned);
    Providers::new(Arc::new(catalogue), file, registered, url)
}

fn acme(model: &str) -> Value {
    json!({"baseUrl": "http://acme", "apiKey": "file-key", "api": "openai-completions", "models": [{"id": model}]})
}

#[test]
fn ids_are_catalogue_then_file_then_extensions() {
    let theirs = Registered::parse("theirs", &acme("t")).unwrap();
    let providers = providers(&json!({"acme": acme("m")}), vec![theirs], None);
    let ids: Vec<&str> = providers.ids().collect();
    assert!(ids.len() > 2);
    assert_eq!(ids[ids.len() - 2..], ["acme", "theirs"]);
    assert!(providers.contains("anthropic") && providers.contains("theirs"));
    assert!(!providers.contains("nobody"));
}

#[test]
fn file_and_extension_share_a_place() {
    let theirs = Registered::parse("acme", &json!({"apiKey": "their-key", "authHeader": true})).unwrap();
    let providers = providers(&json!({"acme": acme("m")}), vec![theirs], None);
    assert_eq!(providers.ids().filter(|id| *id == "acme").count(), 1);
    assert_eq!(providers.key("acme"), Some("their-key"));
    assert!(providers.sends_bearer("acme"));
    assert!(providers.custom("acme").is_some());
    let ids: Vec<&str> = providers
        .models_of("acme")
        .map(|model| model.id.as_str())
        .collect();
    assert_eq!(ids, ["m"]);
}

#[test]
fn copilot_url_yields_to_address_of_file() {
    let of_login = providers(&json!({}), Vec::new(), Some("https://login.example"));
    let url = |providers: &Providers| {
        let mut models = providers.models_of("github-copilot");
        models.next().unwrap().base_url.clone()
    };
    assert_eq!(url(&of_login), "https://login.example");
    let own = json!({"github-copilot": {"baseUrl": "http://own"}});
    assert_eq!(
        url(&providers(&own, Vec::new(), Some("https://login.example"))),
        "http://own"
    );
}

#[test]
fn added_models_come_after_all_built_in_ones() {
    let providers = providers(
        &json!({"zz": acme("z"), "anthropic": {"models": [{"id": "claude-own"}]}}),
        Vec::new(),
        None,
    );
    let models = providers.in_order(|id| id == "zz" || id == "anthropic");
    let ids: Vec<&str> = models.iter().map(|model| model.id.as_str()).collect();
    assert_eq!(ids[ids.len() - 2..], ["z", "claude-own"], "in the file's order");
}

#[test]
fn definitions_contain_file_and_extensions() {
    let theirs = Registered::parse("theirs", &acme("t")).unwrap();
    let providers = providers(&json!({"acme": acme("m")}), vec![theirs], None);
    assert_eq!(providers.definitions().count(), 2);
}
