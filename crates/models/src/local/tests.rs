//! Each kind of server, played by a listener that gives prepared answers; and addresses without a server.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use auth::Secret;
use serde_json::{Value, json};
use wire::Model;
use wire::ThinkingLevel::{High, Low, Medium, Off};

use super::places::address;
use super::probe::{Timeouts, prober_with};
use super::{Kind, LocalSources, Place, Server, places, prober};
use llm::ClientConfig;

/// A server that answers these paths and notes what it was asked. An answer may depend on the body: `path body`.
struct Fake {
    url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Fake {
    fn start(answers: &[(&str, Value)]) -> Self {
        Self::with_key(answers, None)
    }

    fn with_key(answers: &[(&str, Value)], key: Option<&'static str>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let answers: HashMap<String, String> = answers
            .iter()
            .map(|(path, answer)| ((*path).to_owned(), answer.to_string()))
            .collect();
        let (answers, log) = (Arc::new(answers), Arc::clone(&asked));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (answers, log) = (Arc::clone(&answers), Arc::clone(&log));
                std::thread::spawn(move || serve(stream, &answers, &log, key));
            }
        });
        Self { url, asked }
    }

    fn place(&self, kind: Kind) -> Place {
        Place {
            id: kind.id().to_owned(),
            url: self.url.clone(),
            kind: Some(kind),
            is_named: false,
            key: None,
        }
    }

    /// A place of this server under a name of the user's own.
    fn named(&self, id: &str) -> Place {
        Place {
            id: id.to_owned(),
            kind: None,
            is_named: true,
            ..self.place(Kind::Vllm)
        }
    }
}

fn serve(stream: TcpStream, answers: &HashMap<String, String>, log: &Mutex<Vec<String>>, key: Option<&str>) {
    let mut reader = BufReader::new(stream);
    loop {
        let (mut line, mut length, mut shown) = (String::new(), 0, None);
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        loop {
            let mut header = String::new();
            reader.read_line(&mut header).unwrap();
            let header = header.trim().to_lowercase();
            if let Some(value) = header.strip_prefix("content-length: ") {
                length = value.parse().unwrap();
            }
            if let Some(value) = header.strip_prefix("authorization: bearer ") {
                shown = Some(value.to_owned());
            }
            if header.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let path = line.split(' ').nth(1).unwrap().to_owned();
        let with_body = format!("{path} {}", String::from_utf8_lossy(&body));
        log.lock().unwrap().push(path.clone());
        let answer = answers.get(&with_body).or_else(|| answers.get(&path));
        let (status, text) = match answer {
            _ if shown.as_deref() != key => ("401 Unauthorized", "{}"),
            Some(text) => ("200 OK", text.as_str()),
            None => ("404 Not Found", "{}"),
        };
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            text.len()
        );
        let stream = reader.get_mut();
        if stream.write_all(format!("{head}{text}").as_bytes()).is_err() {
            return;
        }
    }
}

/// Timeouts that no server of a test exceeds.
const PATIENT: Timeouts = Timeouts {
    connect: Duration::from_secs(30),
    answer: Duration::from_secs(30),
    whole: Duration::from_secs(60),
};

fn probe(places: Vec<Place>) -> Vec<Server> {
    prober_with(ClientConfig::default(), PATIENT)(places)
}

fn models(place: Place) -> Vec<Model> {
    let mut servers = probe(vec![place]);
    assert_eq!(servers.len(), 1);
    servers.remove(0).models
}

fn flag(model: &Model, name: &str) -> Value {
    model
        .compat
        .as_ref()
        .unwrap()
        .get(name)
        .cloned()
        .unwrap_or_default()
}

#[test]
fn ollama_capabilities_become_model_flags() {
    let show = |capabilities: Value, window: u64, parameters: &str| {
        json!({"capabilities": capabilities, "parameters": parameters,
            "model_info": {"general.architecture": "qwen3", "qwen3.context_length": window}})
    };
    let fake = Fake::start(&[
        (
            "/api/tags",
            json!({"models": [{"name": "chat:latest"}, {"name": "embed:latest"}, {"name": "think:8b"}, {"name": "old:1b"},
                {"name": "gone:1b"}]}),
        ),
        (
            "/api/ps",
            json!({"models": [{"name": "think:8b", "context_length": 16384}]}),
        ),
        (
            "/api/show {\"model\":\"chat:latest\"}",
            show(
                json!(["completion", "vision"]),
                131_072,
                "stop \"<|im_end|>\"\nnum_ctx 32768",
            ),
        ),
        (
            "/api/show {\"model\":\"embed:latest\"}",
            show(json!(["embedding"]), 8192, ""),
        ),
        (
            "/api/show {\"model\":\"think:8b\"}",
            show(json!(["completion", "tools", "thinking"]), 40_960, ""),
        ),
        (
            "/api/show {\"model\":\"old:1b\"}",
            json!({"template": "{{ .Prompt }}", "model_info": {"general.architecture": "llama", "llama.context_length": 2048}}),
        ),
    ]);
    let models = models(fake.place(Kind::Ollama));
    // Models with tool calls come first; models that cannot hold a conversation are left out.
    let ids: Vec<&str> = models.iter().map(|model| model.id.as_str()).collect();
    assert_eq!(ids, ["think:8b", "gone:1b", "chat:latest", "old:1b"]);
    let [think, gone, chat, old] = models.as_slice() else {
        panic!("{ids:?}")
    };
    // As loaded now; as its own file says; as it was made.
    let windows = [think, chat, old].map(|model| model.context_window);
    assert_eq!(windows, [16_384, 32_768, 2048]);
    assert_eq!((think.max_tokens, old.max_tokens), (4096, 512));
    assert_eq!(
        (gone.context_window, flag(gone, "supportsTools")),
        (8192, Value::Null)
    );
    assert_eq!((think.reasoning, chat.reasoning), (true, false));
    assert_eq!((think.sees_images(), chat.sees_images()), (false, true));
    assert_eq!(flag(chat, "supportsTools"), json!(false));
    assert_eq!(flag(old, "supportsTools"), json!(false));
    assert_eq!(think.thinking_levels(), [Off, Low, Medium, High]);
    assert_eq!(think.mapped_thinking(Off), Some("none"));
    assert_eq!(think.base_url, format!("{}/v1", fake.url));
    assert_eq!(
        (think.api.as_str(), think.cost.input),
        ("openai-completions", 0.0)
    );
    for (name, value) in [
        ("supportsDeveloperRole", json!(false)),
        ("supportsStore", json!(false)),
        ("maxTokensField", json!("max_tokens")),
    ] {
        assert_eq!(flag(think, name), value, "{name}");
    }
}

/// What llama.cpp lists; the weights' own window is larger than the slot's.
fn llama_list() -> Value {
    json!({"data": [{"id": "/models/small.gguf", "owned_by": "llamacpp", "meta": {"n_ctx_train": 131_072}}]})
}

#[test]
fn llama_cpp_reports_slot_size_and_template_capabilities() {
    let props = |template: &str, caps: Value| {
        json!({"default_generation_settings": {"n_ctx": 4096}, "chat_template": template, "chat_template_caps": caps,
            "modalities": {"vision": true}})
    };
    let cases = [
        (
            "{{ messages }}",
            json!({"supports_tools": false}),
            json!(false),
            vec![Off],
        ),
        (
            "{{ tools }}{{ enable_thinking }}",
            json!({}),
            Value::Null,
            vec![Off, Medium],
        ),
        ("{{ messages }}", json!({}), json!(false), vec![Off]),
        ("{{ tools }}<think>", json!({}), Value::Null, vec![Medium]),
        (
            "{{ tools }}",
            json!({"supports_reasoning_effort": true}),
            Value::Null,
            vec![Off, Low, Medium, High],
        ),
    ];
    for (template, caps, tools, levels) in cases {
        let fake = Fake::start(&[("/v1/models", llama_list()), ("/props", props(template, caps))]);
        let models = models(fake.place(Kind::LlamaCpp));
        let [model] = models.as_slice() else { panic!() };
        assert_eq!(
            (model.id.as_str(), model.name.as_str()),
            ("/models/small.gguf", "small")
        );
        assert_eq!((model.context_window, model.sees_images()), (4096, true));
        assert_eq!(flag(model, "supportsTools"), tools, "{template}");
        assert_eq!(model.thinking_levels(), levels, "{template}");
    }
}

#[test]
fn lm_studio_lists_kinds_and_windows() {
    let fake = Fake::start(&[(
        "/api/v0/models",
        json!({"data": [
            {"id": "e", "type": "embeddings", "max_context_length": 512},
            {"id": "v", "type": "vlm", "state": "not-loaded", "max_context_length": 32768, "capabilities": []},
            {"id": "l", "type": "llm", "state": "loaded", "max_context_length": 131072, "loaded_context_length": 8192,
             "capabilities": ["tool_use"]}]}),
    )]);
    let models = models(fake.place(Kind::LmStudio));
    let [l, v] = models.as_slice() else { panic!() };
    assert_eq!(
        (l.id.as_str(), l.context_window, l.sees_images()),
        ("l", 8192, false)
    );
    assert_eq!(
        (v.id.as_str(), v.context_window, v.sees_images()),
        ("v", 32_768, true)
    );
    assert_eq!(flag(v, "supportsTools"), json!(false));
}

#[test]
fn vllm_lists_context_windows() {
    let list = json!({"data": [{"id": "Qwen/Qwen3-8B", "owned_by": "vllm", "max_model_len": 40960}]});
    let fake = Fake::start(&[("/v1/models", list)]);
    let models = models(fake.place(Kind::Vllm));
    assert_eq!(
        (models[0].id.as_str(), models[0].context_window),
        ("Qwen/Qwen3-8B", 40_960)
    );
}

#[test]
fn default_port_accepts_only_its_own_server() {
    let other = json!({"data": [{"id": "m", "owned_by": "somebody"}]});
    let fake = Fake::start(&[("/v1/models", other)]);
    let places = [Kind::LlamaCpp, Kind::Vllm, Kind::LmStudio, Kind::Ollama].map(|kind| fake.place(kind));
    assert_eq!(probe(places.to_vec()), []);
    // At an address that the user named, any server of the protocol is accepted.
    let servers = probe(vec![fake.named("mine")]);
    assert_eq!((servers[0].id.as_str(), servers[0].kind), ("mine", None));
    assert_eq!(servers[0].models[0].provider, "mine");
    // And it is recognised.
    let llama = Fake::start(&[("/v1/models", llama_list()), ("/api/tags", json!({"models": []}))]);
    assert_eq!(probe(vec![llama.named("mine")])[0].kind, Some(Kind::LlamaCpp));
    let ollama = Fake::start(&[
        (
            "/v1/models",
            json!({"data": [{"id": "q", "owned_by": "library"}]}),
        ),
        ("/api/tags", json!({"models": [{"name": "q"}]})),
    ]);
    assert_eq!(probe(vec![ollama.named("mine")])[0].kind, Some(Kind::Ollama));
}

#[test]
fn local_server_may_require_key() {
    let list = json!({"data": [{"id": "m", "owned_by": "vllm", "max_model_len": 4096}]});
    let fake = Fake::with_key(&[("/v1/models", list)], Some("open-sesame"));
    let closed = probe(vec![fake.place(Kind::Vllm)]);
    assert_eq!((closed[0].wants_key, closed[0].models.len()), (true, 0));
    let open = Place {
        key: Some(Secret::new("open-sesame")),
        ..fake.place(Kind::Vllm)
    };
    let open = probe(vec![open]);
    assert_eq!((open[0].wants_key, open[0].models.len()), (false, 1));
}

#[test]
fn unreachable_or_malformed_servers_are_left_out() {
    // No server listens there. A port that was merely free a moment ago can be the next one of another test.
    let gone = "http://127.0.0.1:1".to_owned();
    // Takes connections and never says a word.
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let mute_url = format!("http://{}", mute.local_addr().unwrap());
    let mute_place = Place {
        id: Kind::Ollama.id().to_owned(),
        url: mute_url,
        kind: Some(Kind::Ollama),
        is_named: false,
        key: None,
    };
    assert!(prober(ClientConfig::default())(vec![mute_place]).is_empty());
    let odd = Fake::start(&[
        ("/api/tags", json!("no list")),
        ("/v1/models", json!({"data": "no list"})),
    ]);
    let empty = Fake::start(&[("/api/tags", json!({"models": []}))]);
    let mut places: Vec<Place> = [&gone, &odd.url, &empty.url]
        .into_iter()
        .map(|url| Place {
            url: url.clone(),
            ..odd.place(Kind::Ollama)
        })
        .collect();
    places.push(odd.place(Kind::Vllm));
    let servers = probe(places);
    assert_eq!(servers.len(), 1);
    assert_eq!(
        (servers[0].url.as_str(), servers[0].models.len()),
        (empty.url.as_str(), 0)
    );
    // One question was enough to know that this is not it.
    let mut asked = odd.asked.lock().unwrap().clone();
    asked.sort();
    assert_eq!(asked, ["/api/tags", "/v1/models"]);
}

#[test]
fn local_requests_bypass_proxies() {
    let fake = Fake::start(&[("/api/tags", json!({"models": []}))]);
    let mut config = ClientConfig::default();
    config.proxy.all = Some("http://127.0.0.1:1".to_owned());
    let servers = prober_with(config, PATIENT)(vec![fake.place(Kind::Ollama)]);
    assert_eq!(servers.len(), 1);
}

#[test]
fn server_addresses_are_normalised() {
    for (text, wanted) in [
        ("http://host:1234/v1/", Some("http://host:1234")),
        ("https://host/api/v1", Some("https://host/api")),
        ("host", Some("http://host:11434")),
        ("host:80", Some("http://host:80")),
        (":8080", Some("http://127.0.0.1:8080")),
        ("0.0.0.0", Some("http://127.0.0.1:11434")),
        ("http://0.0.0.0:5", Some("http://127.0.0.1:5")),
        ("[::1]:5", Some("http://[::1]:5")),
        ("::", Some("http://127.0.0.1:11434")),
        ("::1", Some("http://[::1]:11434")),
        ("http://me:word@host:5", Some("http://me:word@host:5")),
        ("http://host", Some("http://host")),
        (" ", None),
        ("ftp://host", None),
    ] {
        assert_eq!(address(text, Some(11434)).as_deref(), wanted, "{text}");
    }
}

#[test]
fn server_addresses_follow_settings_models_json_environment() {
    let urls = |servers: &[(&str, &str)], file: Option<&str>, env: Option<&str>| {
        let sources = LocalSources {
            servers: servers
                .iter()
                .map(|(id, url)| ((*id).to_owned(), (*url).to_owned()))
                .collect(),
            ..LocalSources::default()
        };
        let env = |name: &str| env.filter(|_| name == "OLLAMA_HOST").map(str::to_owned);
        let file = |id: &str| file.filter(|_| id == "ollama").map(str::to_owned);
        let places = places(&sources, &env, &file);
        let last = places.last().unwrap().clone();
        (places[0].url.clone(), places[0].is_named, places.len(), last.id)
    };
    let usual = "http://127.0.0.1:11434".to_owned();
    assert_eq!(urls(&[], None, None), (usual, false, 4, "vllm".to_owned()));
    let env = urls(&[], None, Some("box:1"));
    assert_eq!((env.0.as_str(), env.1), ("http://box:1", true));
    assert_eq!(urls(&[], Some("http://f:2/v1"), Some("box:1")).0, "http://f:2");
    let all = urls(
        &[("ollama", "http://s:3"), ("gpu", "http://gpu:8000/v1")],
        Some("http://f:2/v1"),
        Some("box:1"),
    );
    assert_eq!(all, ("http://s:3".to_owned(), true, 5, "gpu".to_owned()));
}
