//! Models in the clouds of Amazon, Google and Microsoft through the whole program: text, a tool call, an abort, and how a
//! request gets in. What requests look like in detail is tested in the `llm` crate.

use std::io::{Read, Write};
use std::net::TcpListener;

use serde_json::{Value, json};
use testkit::llm::{Api, ErrorKind, Reply, Usage};

use crate::kit::{Pi, World, answers, bash, of_type, text};

/// One provider as a user has it: the model, the file, the variables.
struct Cloud {
    model: &'static str,
    api: Api,
    /// `models.json`, where `URL` stands for the server.
    models: &'static str,
    variables: &'static [(&'static str, &'static str)],
    path: &'static str,
    /// A header and how it begins.
    header: (&'static str, &'static str),
}

const AWS_KEYS: [(&str, &str); 3] = [
    ("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE"),
    ("AWS_SECRET_ACCESS_KEY", "s"),
    ("AWS_REGION", "eu-west-1"),
];

const BEDROCK: Cloud = Cloud {
    model: "amazon-bedrock/us.anthropic.claude-opus-4-6-v1",
    api: Api::Bedrock,
    models: r#"{"providers": {"amazon-bedrock": {"baseUrl": "URL"}}}"#,
    variables: &AWS_KEYS,
    path: "/model/us.anthropic.claude-opus-4-6-v1/converse-stream",
    header: ("authorization", "AWS4-HMAC-SHA256 Credential=AKIAEXAMPLE/"),
};

const VERTEX: Cloud = Cloud {
    model: "google-vertex/gemini-3.1-pro-preview",
    api: Api::Google,
    models: r#"{"providers": {"google-vertex": {"baseUrl": "URL"}}}"#,
    variables: &[("GOOGLE_CLOUD_API_KEY", "key-of-google")],
    path: "/v1/publishers/google/models/gemini-3.1-pro-preview:streamGenerateContent?alt=sse",
    header: ("x-goog-api-key", "key-of-google"),
};

/// By its new name; the address comes from a variable alone.
const AZURE: Cloud = Cloud {
    model: "azure/gpt-5.4",
    api: Api::Responses,
    models: r#"{"providers": {}}"#,
    variables: &[
        ("AZURE_OPENAI_API_KEY", "key-of-azure"),
        ("AZURE_OPENAI_BASE_URL", "URL"),
        ("AZURE_OPENAI_DEPLOYMENT_NAME_MAP", "gpt-5.4=mine"),
    ],
    path: "/responses?api-version=v1",
    header: ("api-key", "key-of-azure"),
};

impl Cloud {
    fn start(&self, world: &World) -> Pi {
        let url = world.server.url();
        let models: Value = serde_json::from_str(&self.models.replace("URL", &url)).unwrap();
        world.dir.write_models(&models).unwrap();
        let mut config = world.dir.agent(crate::kit::PROGRAM);
        config = config.args(["--mode", "rpc", "--model", self.model]);
        for (name, value) in self.variables {
            config = config.env(*name, value.replace("URL", &url));
        }
        Pi::spawn(config)
    }
}

#[test]
fn cloud_families_support_text_calls_and_abort() {
    for cloud in [BEDROCK, VERTEX, AZURE] {
        let usage = Usage {
            input: 10,
            output: 5,
            ..Usage::default()
        };
        let world = World::new([
            bash("call_1", "echo from-the-tool").usage(usage),
            Reply::text(["All ", "done"]),
            Reply::text(["half of "]).gate("never").then_text(["it"]),
            Reply::text(["back"]),
        ]);
        let pi = cloud.start(&world);
        let lines = pi.say("Go");
        let said = answers(&lines);
        assert_eq!(said[0]["stopReason"], "toolUse", "{}", said[0]);
        assert_eq!(said[0]["usage"]["input"], 10);
        assert_eq!(of_type(&lines, "tool_execution_end").len(), 1);
        assert_eq!(text(said[1]), "All done");
        pi.prompt("More");
        pi.wait_update("text_delta");
        let id = pi.send(json!({"type": "abort"}));
        assert_eq!(pi.settled()["aborted"], true);
        assert_eq!(pi.response(&id)["success"], true);
        let lines = pi.lines();
        let aborted = answers(&lines).last().copied().unwrap();
        assert_eq!(
            (&aborted["stopReason"], text(aborted)),
            (&json!("aborted"), "half of ".to_owned())
        );
        let lines = pi.say("Again");
        assert_eq!(text(answers(&lines)[0]), "back");
        pi.finish();
        let requests = world.server.requests();
        for request in &requests {
            assert_eq!(
                (request.api, request.path.as_str()),
                (Some(cloud.api), cloud.path)
            );
            let (name, start) = cloud.header;
            assert!(
                request.header(name).unwrap().starts_with(start),
                "{:?}",
                request.headers
            );
        }
        assert!(requests[1].body.to_string().contains("from-the-tool"));
    }
}

#[test]
fn bedrock_errors_are_retried_or_reported() {
    let world = World::new([
        Reply::error(ErrorKind::RateLimit),
        Reply::text(["x"]).error_event(ErrorKind::RateLimit),
        serde_json::from_value(json!({"stream": [{"text": ["x"]}, {"eof": true}]})).unwrap(),
        Reply::text(["well"]),
        Reply::error(ErrorKind::Auth),
        Reply::text(["again"]),
    ]);
    let pi = BEDROCK.start(&world);
    let lines = pi.say("Go");
    let said: Vec<&str> = answers(&lines)
        .iter()
        .filter_map(|answer| answer["errorMessage"].as_str())
        .collect();
    assert!(
        said[0].starts_with("Throttling error: Too many requests"),
        "{said:?}"
    );
    assert_eq!(said[1], "Throttling error: Too many requests.");
    assert_eq!(said[2], "Bedrock stream ended without a stop reason");
    assert_eq!(text(answers(&lines)[3]), "well");
    let lines = pi.say("Go");
    assert_eq!(
        answers(&lines)[0]["errorMessage"],
        "UnrecognizedClientException: The security token included in the request is invalid."
    );
    assert_eq!(text(answers(&pi.say("Go"))[0]), "again");
    pi.finish();
}

#[test]
fn cloud_providers_appear_with_their_variables() {
    let world = World::new([]);
    world.dir.write_models(&json!({"providers": {}})).unwrap();
    let adc = world
        .dir
        .home()
        .join(".config/gcloud/application_default_credentials.json");
    world.dir.write(&adc, "{}").unwrap();
    let mut config = world.dir.agent(crate::kit::PROGRAM).args(["--mode", "rpc"]);
    let place = [("GOOGLE_CLOUD_PROJECT", "p"), ("GOOGLE_CLOUD_LOCATION", "global")];
    for (name, value) in [AWS_KEYS.as_slice(), &place, &[("AZURE_OPENAI_API_KEY", "k")]].concat() {
        config = config.env(name, value);
    }
    let pi = Pi::spawn(config);
    let models = pi.get("get_available_models")["models"].clone();
    for provider in ["amazon-bedrock", "google-vertex", "azure-openai-responses"] {
        let is_there = models
            .as_array()
            .unwrap()
            .iter()
            .any(|model| model["provider"] == provider);
        assert!(is_there, "{provider}");
    }
    pi.finish();
}

/// A server that gives one token; its address.
fn token_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/token", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        let mut piece = [0; 4096];
        while !request.ends_with(b"refresh_token=r") {
            let n = stream.read(&mut piece).unwrap();
            assert!(n > 0);
            request.extend_from_slice(&piece[..n]);
        }
        let body = r#"{"access_token": "ya29.token", "expires_in": 3599}"#;
        let length = body.len();
        write!(
            stream,
            "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .unwrap();
    });
    url
}

#[test]
fn google_login_enables_vertex() {
    let world = World::new([Reply::text(["one"]), Reply::text(["two"])]);
    let models = json!({"providers": {"google-vertex": {"baseUrl": world.server.url()}}});
    world.dir.write_models(&models).unwrap();
    let login = json!({"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r",
        "token_uri": token_server()});
    let file = world.dir.root().join("login.json");
    world.dir.write(&file, login.to_string()).unwrap();
    let config = world.dir.agent(crate::kit::PROGRAM);
    let config = config
        .args(["--mode", "rpc", "--model", VERTEX.model])
        .env("GOOGLE_APPLICATION_CREDENTIALS", file)
        .env("GOOGLE_CLOUD_PROJECT", "p")
        .env("GOOGLE_CLOUD_LOCATION", "global");
    let pi = Pi::spawn(config);
    assert_eq!(text(answers(&pi.say("Go"))[0]), "one");
    // The server answers once: the token is kept.
    assert_eq!(text(answers(&pi.say("Go"))[0]), "two");
    pi.finish();
    for request in world.server.requests() {
        assert_eq!(request.header("authorization"), Some("Bearer ya29.token"));
    }
}
