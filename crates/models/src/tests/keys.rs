//! Keys, headers, base URLs: order of sources, errors, what stays hidden.

use std::sync::Arc;

use auth::Secret;
use auth::login::AuthStore;

use crate::tests::{Vars, shop};
use crate::{KeySource, Registry, RegistryError, Sources};

const CUSTOM: &str = r#"{"providers": {"anthropic": {"apiKey": "file-key", "baseUrl": "u"},
  "cmd": {"baseUrl": "u", "api": "x", "apiKey": "!get", "models": [{"id": "m"}]},
  "bad": {"baseUrl": "u", "api": "x", "apiKey": "!fail", "models": [{"id": "m"}]},
  "unset": {"baseUrl": "u", "api": "x", "apiKey": "$NOWHERE", "models": [{"id": "m"}]}}}"#;

/// pi-core.md 8.5, strongest last.
#[test]
fn key_sources_have_precedence() {
    let api_key = r#"{"anthropic": {"type": "api_key", "key": "auth-key"}}"#;
    let env = [
        ("ANTHROPIC_API_KEY", "env-key"),
        ("ANTHROPIC_OAUTH_TOKEN", "oauth-env"),
    ];
    let table: [(&str, Vars<'_>, &str, KeySource); 4] = [
        ("", &[], "file-key", KeySource::ModelsFile),
        (
            "",
            &env[..1],
            "env-key",
            KeySource::Env("ANTHROPIC_API_KEY".into()),
        ),
        (
            "",
            &env,
            "oauth-env",
            KeySource::Env("ANTHROPIC_OAUTH_TOKEN".into()),
        ),
        (api_key, &env, "auth-key", KeySource::AuthFile),
    ];
    for (auth, env, key, source) in table {
        let mut shop = shop(CUSTOM, auth, env);
        assert_eq!(shop.registry.key_source("anthropic"), Some(source));
        let found = shop.registry.resolve_key("anthropic", 0).unwrap().unwrap();
        assert_eq!(found.expose(), key);
        shop.registry
            .set_runtime_key("anthropic", Secret::new("flag-key"));
        let registry = shop.registry.reload();
        assert_eq!(
            registry.resolve_key("anthropic", 0).unwrap().unwrap().expose(),
            "flag-key"
        );
        assert_eq!(registry.key_source("openai"), None);
    }
}

/// pi 1.5.2: a key of models.json comes before variables, and a token of Anthropic before its keys.
#[test]
fn newest_order_prefers_own_key_and_token() {
    let env = [
        ("ANTHROPIC_API_KEY", "env-key"),
        ("ANTHROPIC_AUTH_TOKEN", "token-0123"),
    ];
    let variable = |name: &str| Some(KeySource::Env(name.to_owned()));
    let mut own = shop(CUSTOM, "", &env);
    assert_eq!(
        own.registry.key_source("anthropic"),
        variable("ANTHROPIC_API_KEY")
    );
    own.registry.use_newest_order();
    let registry = own.registry.reload();
    assert_eq!(registry.key_source("anthropic"), Some(KeySource::ModelsFile));
    let key = registry.resolve_key("anthropic", 0).unwrap().unwrap();
    assert_eq!(key.expose(), "file-key");
    let mut built_in = shop("", "", &env);
    built_in.registry.use_newest_order();
    let registry = &built_in.registry;
    assert_eq!(registry.key_source("anthropic"), variable("ANTHROPIC_AUTH_TOKEN"));
    let key = registry.resolve_key("anthropic", 0).unwrap().unwrap();
    assert!(key.is_ambient());
    let model = registry.models_of("anthropic")[0];
    let headers = registry.headers(model, Some(&key)).unwrap();
    assert_eq!(
        headers,
        [("Authorization".to_owned(), "Bearer token-0123".to_owned())]
    );
}

/// pi 1.5.2: an entry of auth.json may hold only variables.
#[test]
fn stored_entry_without_key_adds_variables() {
    let auth = r#"{"cloudflare-ai-gateway": {"type": "api_key", "env": {"CLOUDFLARE_API_KEY": "own-key"}},
      "xai": {"type": "api_key", "env": {"OTHER": "x"}}, "openai": {"type": "api_key", "apiKey": "misspelled"}}"#;
    let shop = shop("", auth, &[("XAI_API_KEY", "env-key")]);
    let error = shop.registry.auth().error().unwrap();
    assert!(error.contains("entry openai was ignored"), "{error}");
    for (provider, wanted) in [("cloudflare-ai-gateway", "own-key"), ("xai", "env-key")] {
        let key = shop.registry.resolve_key(provider, 0).unwrap().unwrap();
        assert_eq!(key.expose(), wanted, "{provider}");
    }
}

#[test]
fn expired_login_does_not_fall_through() {
    let auth = r#"{"anthropic": {"type": "oauth", "access": "at", "refresh": "rt", "expires": 1000}}"#;
    let shop = shop("", auth, &[("ANTHROPIC_API_KEY", "env-key")]);
    assert_eq!(
        shop.registry
            .resolve_key("anthropic", 999)
            .unwrap()
            .unwrap()
            .expose(),
        "at"
    );
    let expired = shop.registry.resolve_key("anthropic", 1000).unwrap_err();
    assert_eq!(expired, RegistryError::Expired("anthropic".into()));
    assert!(expired.to_string().starts_with("Authentication failed"));
    assert!(shop.registry.has_auth("anthropic"));
}

#[test]
fn key_commands_run_only_on_demand() {
    let auth = r#"{"xai": {"type": "api_key", "key": "!once"}}"#;
    let shop = shop(CUSTOM, auth, &[]);
    assert!(
        shop.registry.has_auth("cmd") && shop.registry.has_auth("bad") && !shop.registry.has_auth("unset")
    );
    assert!(shop.registry.models().len() > 3);
    assert_eq!(shop.commands(), 0);
    let key = |provider| {
        shop.registry
            .resolve_key(provider, 0)
            .map(|key| key.unwrap().expose().to_owned())
    };
    assert_eq!((key("cmd"), key("cmd")), (Ok("get".into()), Ok("get".into())));
    assert_eq!(shop.commands(), 2);
    assert_eq!((key("xai"), key("xai")), (Ok("once".into()), Ok("once".into())));
    assert_eq!(shop.commands(), 3);
    let failed = shop.registry.resolve_key("bad", 0).unwrap_err().to_string();
    assert_eq!(
        failed,
        "Failed to resolve API key for provider \"bad\" from shell command: fail"
    );
    let unset = shop.registry.resolve_key("unset", 0).unwrap_err().to_string();
    assert!(unset.ends_with("environment variable: NOWHERE"), "{unset}");
}

#[test]
fn missing_key_error_has_fixed_text() {
    let shop = shop("", "", &[("ANTHROPIC_API_KEY", "")]);
    assert_eq!(shop.registry.resolve_key("anthropic", 0), Ok(None));
    let text = shop.registry.no_key("anthropic").to_string();
    assert!(text.starts_with("No API key found for anthropic.\n\n"), "{text}");
    assert!(text.contains("ANTHROPIC_API_KEY"));
    assert_eq!(
        shop.registry.resolve_key("offline", 0).unwrap().unwrap().expose(),
        "offline"
    );
}

#[test]
fn ambient_credentials_count_as_key() {
    let table: [(&str, Vars<'_>, bool); 5] = [
        ("amazon-bedrock", &[("AWS_PROFILE", "p")], true),
        ("amazon-bedrock", &[("AWS_ACCESS_KEY_ID", "a")], false),
        (
            "amazon-bedrock",
            &[("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "s")],
            true,
        ),
        (
            "google-vertex",
            &[("GOOGLE_CLOUD_PROJECT", "p"), ("GOOGLE_CLOUD_LOCATION", "l")],
            false,
        ),
        (
            "google-vertex",
            &[
                ("GOOGLE_CLOUD_PROJECT", "p"),
                ("GOOGLE_CLOUD_LOCATION", "l"),
                ("GOOGLE_APPLICATION_CREDENTIALS", "/"),
            ],
            true,
        ),
    ];
    for (provider, env, wanted) in table {
        let shop = shop("", "", env);
        assert_eq!(shop.registry.has_auth(provider), wanted, "{provider} {env:?}");
        let key = shop.registry.resolve_key(provider, 0).unwrap();
        assert_eq!(key.is_some_and(|key| key.is_ambient()), wanted);
    }
}

/// Golden custom-headers.
#[test]
fn model_headers_are_resolved_and_key_added() {
    let text = r#"{"providers": {"hdr": {"baseUrl": "u", "api": "openai-completions", "apiKey": "KIT_KEY",
      "authHeader": true, "headers": {"x-session-affinity": "fixed-value", "x-var": "$KIT_KEY", "x-cmd": "!say"},
      "models": [{"id": "m", "headers": {"X-Cmd": "plain"}}]}}}"#;
    let shop = shop(text, "", &[("KIT_KEY", "from-env")]);
    let model = shop.registry.find("hdr", "m").unwrap();
    let key = shop.registry.resolve_key("hdr", 0).unwrap();
    let headers = shop.registry.headers(model, key.as_ref()).unwrap();
    let wanted = [
        ("x-session-affinity", "fixed-value"),
        ("x-var", "from-env"),
        ("X-Cmd", "plain"),
        ("Authorization", "Bearer from-env"),
    ];
    assert_eq!(
        headers,
        wanted.map(|(name, value)| (name.to_owned(), value.to_owned()))
    );
    assert_eq!(shop.commands(), 0);
    assert!(
        shop.registry
            .headers(model, None)
            .unwrap_err()
            .to_string()
            .starts_with("No API key found for hdr.")
    );
    let mut synthetic = model.clone();
    synthetic.id = "new".to_owned();
    assert_eq!(shop.registry.headers(&synthetic, key.as_ref()).unwrap().len(), 4);
}

/// The names are those of headers in which this program sends ids of sessions, which are no secrets.
#[test]
fn configured_session_headers_are_secrets() {
    let text = r#"{"providers": {"hdr": {"baseUrl": "u", "api": "openai-completions", "apiKey": "k",
      "headers": {"X-Session-Id": "corp-literal-0123", "session_id": "!corp-command-0123",
      "User-Agent": "corp-agent/1.0.0.0"}, "models": [{"id": "m"}]}}}"#;
    let shop = shop(text, "", &[]);
    let shown = |text: &str| shop.registry.secrets().redact(text.to_owned());
    assert_eq!(shown("corp-literal-0123"), "[key]");
    let model = shop.registry.find("hdr", "m").unwrap();
    shop.registry.headers(model, None).unwrap();
    assert_eq!(shown("corp-command-0123"), "[key]");
    assert_eq!(shown("corp-agent/1.0.0.0"), "corp-agent/1.0.0.0");
}

#[test]
fn base_url_placeholders_are_filled_in() {
    let auth = r#"{"cloudflare-ai-gateway": {"type": "api_key", "key": "k", "env": {"CLOUDFLARE_GATEWAY_ID": "gate"}},
      "github-copilot": {"type": "oauth", "access": "tid=1;proxy-ep=proxy.biz.example;x", "refresh": "r", "expires": 9}}"#;
    let shop = shop("", auth, &[("CLOUDFLARE_ACCOUNT_ID", "acc")]);
    let url = |provider: &str| shop.registry.base_url(shop.registry.models_of(provider)[0]);
    assert!(
        url("cloudflare-ai-gateway")
            .unwrap()
            .starts_with("https://gateway.ai.cloudflare.com/v1/acc/gate/")
    );
    assert_eq!(
        url("google-vertex").unwrap(),
        "https://{location}-aiplatform.googleapis.com"
    );
    assert_eq!(url("github-copilot").unwrap(), "https://api.biz.example");
    let bare = super::shop("", "", &[]);
    let model = bare
        .registry
        .find("cloudflare-workers-ai", "@cf/moonshotai/kimi-k2.6")
        .unwrap();
    let error = bare.registry.base_url(model).unwrap_err().to_string();
    assert_eq!(
        error,
        "CLOUDFLARE_ACCOUNT_ID is required for provider cloudflare-workers-ai but is not set."
    );
}

#[test]
fn key_variables_name_secrets_only() {
    let shop = shop(
        CUSTOM,
        r#"{"zai": {"type": "api_key", "key": "$MY_ZAI"}}"#,
        &[("NOWHERE", "x"), ("MY_ZAI", "y")],
    );
    let names = shop.registry.key_variables();
    for name in [
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "HF_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "NOWHERE",
        "MY_ZAI",
    ] {
        assert!(names.iter().any(|other| other == name), "{name}");
    }
    for name in ["AWS_PROFILE", "PATH", "HOME", "CLOUDFLARE_ACCOUNT_ID", "file"] {
        assert!(!names.iter().any(|other| other == name), "{name}");
    }
}

#[test]
fn damaged_auth_entries_do_not_affect_others() {
    let half = r#"{"xai": {"type": "api_key", "key": "k"}, "zai": {"type": "magic", "key": "sk-secret"}}"#;
    let damaged = shop("", half, &[]);
    assert!(damaged.registry.has_auth("xai") && !damaged.registry.has_auth("zai"));
    let error = damaged.registry.auth().error().unwrap();
    assert!(error.contains("zai") && !error.contains("sk-secret"), "{error}");
    let broken = shop("", "{\"xai\": sk-secret", &[]);
    let error = broken.registry.auth().error().unwrap();
    assert!(
        error.contains("line 1") && !error.contains("sk-secret"),
        "{error}"
    );
    let none = shop("", "", &[]);
    assert!(none.registry.auth().error().is_none() && !none.folder.path().join("auth.json").exists());
}

#[test]
fn registry_debug_output_hides_keys() {
    let auth = r#"{"xai": {"type": "api_key", "key": "sk-one"},
      "anthropic": {"type": "oauth", "access": "sk-two", "refresh": "sk-three", "expires": 1, "accountId": "sk-four"}}"#;
    let models = r#"{"providers": {"c": {"baseUrl": "u", "api": "x", "apiKey": "sk-five", "headers": {"h": "sk-six"},
      "models": [{"id": "m", "headers": {"h": "sk-seven"}}]}}}"#;
    let mut shop = shop(models, auth, &[]);
    shop.registry.set_runtime_key("c", Secret::new("sk-eight"));
    assert!(shop.registry.models().len() > 1);
    assert!(shop.registry.resolve_key("xai", 0).unwrap().is_some());
    let text = format!("{:?}", shop.registry);
    assert!(!text.contains("sk-"), "{text}");
}

/// pi 1.x calls the provider `azure`; its files and its clients' commands keep working.
#[test]
fn azure_provider_alias_is_accepted() {
    let models = r#"{"providers": {"azure": {"baseUrl": "https://gw.example"}}}"#;
    let auth = r#"{"azure": {"type": "api_key", "key": "k", "env": {"AZURE_OPENAI_API_VERSION": "v9"}}}"#;
    let shop = shop(models, auth, &[]);
    let registry = &shop.registry;
    assert_eq!(registry.models_file().error(), None);
    let model = registry.find("azure", "gpt-5.4").unwrap();
    assert_eq!(
        (model.provider.as_str(), model.base_url.as_str()),
        ("azure-openai-responses", "https://gw.example")
    );
    assert!(registry.provider_ids().all(|id| id != "azure"));
    for (provider, pattern) in [
        (Some("azure"), "gpt-5.4"),
        (Some("Azure"), "azure/gpt-5.4"),
        (None, "azure/gpt-5.4"),
    ] {
        let resolved = crate::resolve(registry, provider, pattern).unwrap();
        assert_eq!(
            (resolved.model.id.as_str(), resolved.warnings.len()),
            ("gpt-5.4", 0)
        );
    }
    let key = registry
        .resolve_key("azure-openai-responses", 0)
        .unwrap()
        .unwrap();
    assert_eq!(key.expose(), "k");
    assert_eq!(
        registry
            .variable("azure-openai-responses", "AZURE_OPENAI_API_VERSION")
            .unwrap(),
        "v9"
    );
    // With models of its own it is a provider of the user, not the built-in one.
    let own = r#"{"providers": {"azure": {"baseUrl": "u", "api": "openai-completions", "apiKey": "k", "models": [{"id": "m"}]}}}"#;
    let shop = super::shop(own, "", &[]);
    assert_eq!(shop.registry.find("azure", "m").unwrap().provider, "azure");
    assert_eq!(shop.registry.find("azure", "gpt-5.4"), None);
}

/// Keys may look like commands or variables; the key that was given comes back.
#[tokio::test]
async fn stored_keys_are_read_back_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("auth.json");
    for key in ["plain", "!rm", "a$HOME", "$HOME", "$$", "!$!", "ünï"] {
        AuthStore::new(&file).put_key("xai", key).await.unwrap();
        let registry = Registry::new(Sources {
            agent_dir: folder.path().to_owned(),
            env: Arc::new(|name| (name == "HOME").then(|| "/home".to_owned())),
            run: Arc::new(|_| panic!("a key is no command")),
            local: Default::default(),
            is_omp: false,
        });
        let found = registry.resolve_key("xai", 0).unwrap().unwrap();
        assert_eq!(found.expose(), key);
    }
}

#[test]
fn missing_credentials_are_recognized_by_message() {
    let provider = "acme".to_owned();
    let (missing, expired) = (
        RegistryError::NoKey {
            provider: provider.clone(),
            help: "help".to_owned(),
        },
        RegistryError::Expired(provider.clone()),
    );
    assert!(crate::needs_credentials(&missing.to_string()));
    assert!(crate::needs_credentials(&expired.to_string()));
    assert!(!crate::needs_credentials(
        &RegistryError::UnknownProvider(provider).to_string()
    ));
}
