//! Local servers in the registry: when they are probed, and the use of their answers.

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use wire::Model;

use super::{MOCKS, names, shop};
use crate::local::{Kind, LocalSources, Place, Server};
use crate::{KeySource, Registry, Sources, StartRequest, resolve, scope, start};

type Asked = Arc<Mutex<Vec<Vec<String>>>>;

fn server(id: &str, models: &[&str]) -> Server {
    let model = |name: &&str| Model {
        id: (*name).to_owned(),
        name: (*name).to_owned(),
        provider: id.to_owned(),
        base_url: format!("http://{id}/v1"),
        api: "openai-completions".to_owned(),
        ..shop("", "", &[]).registry.echo().clone()
    };
    Server {
        id: id.to_owned(),
        kind: Kind::of_id(id),
        url: format!("http://{id}"),
        wants_key: false,
        models: models.iter().map(model).collect(),
    }
}

/// A registry whose local servers are these, and the ids of the places asked each time.
fn with(models: &str, env: &[(&str, &str)], servers: Vec<Server>, only_named: bool) -> (Registry, Asked) {
    let shop = shop(models, "", env);
    let asked = Asked::default();
    let log = Arc::clone(&asked);
    let probe = move |places: Vec<Place>| {
        let ids: Vec<String> = places.iter().map(|place| place.id.clone()).collect();
        log.lock().unwrap().push(ids.clone());
        let there = servers.iter().filter(|server| ids.contains(&server.id));
        there.cloned().collect()
    };
    let sources = Sources {
        local: LocalSources {
            only_named,
            servers: vec![("gpu".to_owned(), "http://gpu:8000".to_owned())],
            probe: Some(Arc::new(probe)),
        },
        ..shop.sources.clone()
    };
    (Registry::new(sources), asked)
}

fn begin(registry: &Registry, request: StartRequest) -> (String, Vec<String>) {
    let chosen = start(registry, &request).unwrap();
    (
        format!("{}/{}", chosen.model.provider, chosen.model.id),
        chosen.warnings,
    )
}

fn named(provider: &str, model: &str) -> StartRequest {
    StartRequest {
        provider: Some(provider.to_owned()),
        model: Some(model.to_owned()),
        ..StartRequest::default()
    }
}

#[test]
fn local_servers_are_not_probed_with_other_models() {
    let (registry, asked) = with(MOCKS, &[], vec![server("ollama", &["q"])], false);
    begin(&registry, StartRequest::default());
    begin(&registry, named("mock-openai", "gpt-mock"));
    let request = StartRequest {
        model: Some("claude-mock".to_owned()),
        models: vec!["mock-openai/*".to_owned(), "claude*".to_owned()],
        ..StartRequest::default()
    };
    begin(&registry, request);
    let _models = registry.models();
    assert!(asked.lock().unwrap().is_empty());
}

#[test]
fn all_local_servers_are_probed_without_other_models() {
    let servers = vec![server("ollama", &["q", "r"]), server("gpu", &["big"])];
    let (registry, asked) = with("", &[], servers, false);
    assert_eq!(begin(&registry, StartRequest::default()).0, "ollama/q");
    assert_eq!(
        *asked.lock().unwrap(),
        [["ollama", "llama.cpp", "lm-studio", "vllm", "gpu"]]
    );
    assert_eq!(names(&registry.models()), ["ollama/q", "ollama/r", "gpu/big"]);
    assert_eq!(registry.key_source("gpu"), Some(KeySource::None));
    assert_eq!(registry.resolve_key("gpu", 0), Ok(None));
    assert!(registry.has_auth("ollama") && !registry.has_auth("vllm"));
    // Just asked: not again so soon.
    registry.look_for_local(None);
    assert_eq!(asked.lock().unwrap().len(), 1);
    // No server runs: the stand-in.
    let (registry, _) = with("", &[], Vec::new(), false);
    assert_eq!(begin(&registry, StartRequest::default()).0, "offline/echo");
    // Switched off: only who is named.
    let (registry, asked) = with("", &[], vec![server("ollama", &["q"])], true);
    assert_eq!(begin(&registry, StartRequest::default()).0, "offline/echo");
    assert!(asked.lock().unwrap().is_empty());
    assert_eq!(begin(&registry, named("ollama", "q")).0, "ollama/q");
}

#[test]
fn only_named_local_servers_are_probed() {
    let servers = || {
        vec![
            server("ollama", &["qwen3:8b", "qwen3:1b"]),
            server("gpu", &["big"]),
        ]
    };
    let patterns = |list: &[&str]| StartRequest {
        models: list.iter().map(|text| (*text).to_owned()).collect(),
        ..StartRequest::default()
    };
    let session = StartRequest {
        session_model: Some(("gpu".to_owned(), "big".to_owned())),
        ..StartRequest::default()
    };
    let settings = StartRequest {
        default_provider: Some("ollama".to_owned()),
        default_model: Some("qwen3:1b".to_owned()),
        ..StartRequest::default()
    };
    let by_id = StartRequest {
        model: Some("ollama/qwen3:8b".to_owned()),
        ..StartRequest::default()
    };
    for (request, model, place) in [
        (named("ollama", "qwen3:8b"), "ollama/qwen3:8b", "ollama"),
        (named("Ollama", "1b"), "ollama/qwen3:1b", "ollama"),
        (by_id, "ollama/qwen3:8b", "ollama"),
        (session, "gpu/big", "gpu"),
        (settings, "ollama/qwen3:1b", "ollama"),
        (patterns(&["gpu/*"]), "gpu/big", "gpu"),
    ] {
        let (registry, asked) = with(MOCKS, &[], servers(), false);
        assert_eq!(begin(&registry, request).0, model);
        assert_eq!(*asked.lock().unwrap(), [[place]], "{model}");
    }
    // No other provider has this id: all servers are probed.
    let (registry, asked) = with(MOCKS, &[], servers(), false);
    assert_eq!(
        resolve(&registry, None, "qwen3:8b").unwrap().model.provider,
        "ollama"
    );
    assert_eq!(asked.lock().unwrap()[0].len(), 5);
    let (scoped, _) = scope(
        &registry,
        &["gpu/big:high".to_owned(), "qwen3*".to_owned()],
        false,
    );
    assert_eq!(scoped.len(), 3);
}

/// Two stored sessions with a local model that are opened at the same time.
#[test]
fn second_start_waits_for_probe_under_way() {
    let long = Duration::from_secs(20);
    let (reached, is_reached) = mpsc::channel();
    let (answer, answers) = mpsc::channel();
    let answers = Mutex::new(answers);
    let found = vec![server("ollama", &["q"])];
    let probe = move |_: Vec<Place>| {
        reached.send(()).unwrap();
        let _late = answers.lock().unwrap().recv_timeout(long);
        found.clone()
    };
    let registry = Registry::new(Sources {
        local: LocalSources {
            only_named: false,
            servers: Vec::new(),
            probe: Some(Arc::new(probe)),
        },
        ..shop(MOCKS, "", &[]).sources.clone()
    });
    let open = || {
        let request = StartRequest {
            session_model: Some(("ollama".to_owned(), "q".to_owned())),
            ..StartRequest::default()
        };
        begin(&registry, request)
    };
    let restored = ("ollama/q".to_owned(), Vec::new());
    std::thread::scope(|scope| {
        let first = scope.spawn(open);
        is_reached.recv_timeout(long).unwrap();
        let (done, second) = mpsc::channel();
        scope.spawn(move || done.send(open()).unwrap());
        // A start that does not wait has chosen another model by now.
        let early = second.recv_timeout(Duration::from_millis(200));
        answer.send(()).unwrap();
        let second = early.or_else(|_| second.recv_timeout(long)).unwrap();
        assert_eq!((first.join().unwrap(), second), (restored.clone(), restored));
    });
    assert!(is_reached.try_recv().is_err(), "one probe serves both");
}

#[test]
fn missing_local_server_error_names_address() {
    let (registry, _) = with(MOCKS, &[("OLLAMA_HOST", "box:9")], Vec::new(), false);
    let error = |provider: &str, model: &str| {
        let error = start(&registry, &named(provider, model)).unwrap_err();
        error.to_string()
    };
    assert!(error("ollama", "q").starts_with("No Ollama server answers at http://box:9.\n"));
    assert!(error("gpu", "q").starts_with("No gpu server answers at http://gpu:8000.\n"));
    assert!(
        registry
            .no_key("ollama")
            .to_string()
            .starts_with("No Ollama server")
    );
    let (registry, _) = with(MOCKS, &[], vec![server("ollama", &["a", "b"])], false);
    let error = start(&registry, &named("ollama", "q")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Model \"q\" is not at the Ollama server at http://ollama, which has a, b."
    );
    // A default at home that is gone gives way, but not silently.
    let settings = StartRequest {
        default_provider: Some("vllm".to_owned()),
        default_model: Some("m".to_owned()),
        ..StartRequest::default()
    };
    let (model, warnings) = begin(&registry, settings);
    assert!(model.starts_with("mock-"), "{model}");
    let said = "The default model vllm/m (defaultProvider and defaultModel in the settings) is not used: No vLLM server \
                answers at http://127.0.0.1:8000.";
    assert_eq!(warnings, [said]);
}

#[test]
fn models_json_overrides_probed_local_models() {
    let own = r#"{"providers": {"ollama": {"baseUrl": "http://mine:1/v1", "api": "openai-completions", "apiKey": "k",
        "models": [{"id": "q", "contextWindow": 77}]}}}"#;
    let (registry, asked) = with(own, &[], vec![server("ollama", &["q", "new"])], false);
    assert_eq!(names(&registry.models()), ["ollama/q"]);
    assert!(asked.lock().unwrap().is_empty());
    registry.look_for_local(None);
    assert_eq!(names(&registry.models()), ["ollama/q", "ollama/new"]);
    assert_eq!(registry.find("ollama", "q").unwrap().context_window, 77);
    assert_eq!(registry.key_source("ollama"), Some(KeySource::ModelsFile));
    // It is as it was without the server, too: an unknown id is passed on.
    let (registry, _) = with(own, &[], Vec::new(), false);
    assert_eq!(
        start(&registry, &named("ollama", "other")).unwrap().model.id,
        "other"
    );
}

#[test]
fn local_server_keys_stay_with_their_server() {
    let closed = Server {
        wants_key: true,
        ..server("vllm", &[])
    };
    let (registry, _) = with(MOCKS, &[], vec![closed], false);
    let error = start(&registry, &named("vllm", "m")).unwrap_err().to_string();
    assert!(error.contains("set VLLM_API_KEY"), "{error}");
    let (registry, _) = with(
        MOCKS,
        &[("VLLM_API_KEY", "s")],
        vec![server("vllm", &["m"])],
        false,
    );
    assert_eq!(
        registry.key_source("vllm"),
        Some(KeySource::Env("VLLM_API_KEY".to_owned()))
    );
    assert!(registry.key_variables().contains(&"VLLM_API_KEY".to_owned()));
    // A key alone makes no model.
    assert!(!names(&registry.models()).contains(&"vllm/m".to_owned()));
}

#[test]
fn stored_key_of_local_server_is_resolved_for_probe() {
    for (stored, sent) in [("plain", "plain"), ("MY_KEY", "secret"), ("$MY_KEY", "secret")] {
        let auth = format!(r#"{{"vllm": {{"type": "api_key", "key": "{stored}"}}}}"#);
        let sources = shop("", &auth, &[("MY_KEY", "secret")]);
        let keys: Arc<Mutex<Vec<String>>> = Arc::default();
        let log = Arc::clone(&keys);
        let probe = move |places: Vec<Place>| -> Vec<Server> {
            let key = |place: &Place| place.key.as_ref().map(|key| key.expose().to_owned());
            log.lock().unwrap().extend(places.iter().filter_map(key));
            Vec::new()
        };
        let registry = Registry::new(Sources {
            local: LocalSources {
                only_named: false,
                servers: Vec::new(),
                probe: Some(Arc::new(probe)),
            },
            ..sources.sources.clone()
        });
        registry.look_for_local(Some("vllm"));
        assert_eq!(*keys.lock().unwrap(), [sent], "{stored}");
    }
}

#[test]
fn scope_names_local_server_in_any_case() {
    let found = vec![server("GPU", &["big"])];
    let shop = shop(MOCKS, "", &[]);
    let registry = Registry::new(Sources {
        local: LocalSources {
            only_named: false,
            servers: vec![("GPU".to_owned(), "http://gpu:8000".to_owned())],
            probe: Some(Arc::new(move |_: Vec<Place>| found.clone())),
        },
        ..shop.sources.clone()
    });
    let (scoped, warnings) = scope(&registry, &["gpu/*".to_owned()], false);
    assert_eq!((scoped.len(), warnings.len()), (1, 0), "{warnings:?}");
}
