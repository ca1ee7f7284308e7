//! Ambient credentials end to end: a server plays provider, token servers and metadata, and what reaches the provider tells
//! whose credentials were found.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use auth::Secret;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use super::bedrock::event;
use super::cloud::from_map;
use super::requests::with;
use super::{last, request};
use crate::request::ModelRequest;
use crate::{Client, ClientConfig, ModelEvent};

/// What reached the server.
#[derive(Debug, Clone, Default)]
struct Seen {
    /// Method and path.
    line: String,
    headers: HashMap<String, String>,
    body: String,
}

impl Seen {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

/// What the server answers: a status and a body; none hangs.
type Rule = dyn Fn(&Seen) -> Option<(u16, Vec<u8>)> + Send + Sync;

struct Server {
    url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    fn count(&self, part: &str) -> usize {
        let seen = self.seen.lock().unwrap();
        seen.iter().filter(|seen| seen.line.contains(part)).count()
    }

    /// The last request whose line contains this.
    fn last(&self, part: &str) -> Seen {
        let seen = self.seen.lock().unwrap();
        let found = seen.iter().rev().find(|seen| seen.line.contains(part));
        found.unwrap_or_else(|| panic!("no {part}: {seen:?}")).clone()
    }
}

async fn serve(rule: impl Fn(&Seen) -> Option<(u16, Vec<u8>)> + Send + Sync + 'static) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (log, rule): (_, Arc<Rule>) = (Arc::clone(&seen), Arc::new(rule));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(connection(stream, Arc::clone(&log), Arc::clone(&rule)));
        }
    });
    Server { url, seen }
}

async fn connection(mut stream: TcpStream, log: Arc<Mutex<Vec<Seen>>>, rule: Arc<Rule>) {
    while let Some(seen) = read_request(&mut stream).await {
        let answer = rule(&seen);
        log.lock().unwrap().push(seen);
        let Some((status, body)) = answer else {
            std::future::pending().await
        };
        let head = format!("HTTP/1.1 {status} x\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(&body).await.unwrap();
    }
}

async fn read_request(stream: &mut TcpStream) -> Option<Seen> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let mut lines = head.lines();
            let line = lines.next().unwrap().trim_end_matches(" HTTP/1.1").to_owned();
            let pairs = lines.filter_map(|line| line.split_once(": "));
            let headers: HashMap<_, _> = pairs
                .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
                .collect();
            let length = headers
                .get("content-length")
                .map_or(0, |len| len.parse().unwrap());
            if body.len() >= length {
                return Some(Seen {
                    line,
                    headers,
                    body: body.to_owned(),
                });
            }
        }
        let mut piece = [0; 4096];
        match stream.read(&mut piece).await {
            Ok(0) | Err(_) => return None,
            Ok(n) => bytes.extend_from_slice(&piece[..n]),
        }
    }
}

fn ok(body: impl Into<Vec<u8>>) -> Option<(u16, Vec<u8>)> {
    Some((200, body.into()))
}

fn bedrock_answer() -> Option<(u16, Vec<u8>)> {
    ok([
        event(
            "contentBlockDelta",
            &json!({"contentBlockIndex": 0, "delta": {"text": "Hi"}}),
        ),
        event("messageStop", &json!({"stopReason": "end_turn"})),
        event("metadata", &json!({"usage": {}})),
    ]
    .concat())
}

fn google_answer() -> Option<(u16, Vec<u8>)> {
    let chunk = json!({"candidates": [{"content": {"parts": [{"text": "Hi"}]}, "finishReason": "STOP"}]});
    ok(format!("data: {chunk}\n\n"))
}

fn ambient(api: &str, base: &str, variables: &[(&str, String)]) -> ModelRequest {
    let mut request = request(with(api, json!({"baseUrl": base})));
    request.api_key = Some(Secret::new(Secret::AMBIENT));
    let owned = variables
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()));
    request.environment = from_map(owned);
    request
}

async fn ask(client: &Client, request: &ModelRequest) -> Result<(), String> {
    let mut stream = client.stream(request.clone(), CancellationToken::new());
    let mut out = Vec::new();
    while let Some(event) = stream.next().await {
        out.push(event);
    }
    assert_eq!(out.iter().filter(|event| event.is_last()).count(), 1);
    let (message, failed) = last(&out);
    if failed {
        return Err(message["errorMessage"].as_str().unwrap().to_owned());
    }
    assert_eq!(message["content"][0]["text"], "Hi");
    Ok(())
}

fn client() -> Client {
    Client::new(ClientConfig::default())
}

fn write(path: &Path, text: &str) -> String {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn in_an_hour() -> String {
    let end = SystemTime::now() + Duration::from_secs(3600);
    jiff::Timestamp::try_from(end).unwrap().to_string()
}

/// Keys as container and instance write them.
fn json_keys(id: &str) -> String {
    json!({"AccessKeyId": id, "SecretAccessKey": "s", "Token": "tok", "Expiration": in_an_hour()}).to_string()
}

fn sts_keys(id: &str) -> String {
    format!(
        "<R><Credentials><AccessKeyId>{id}</AccessKeyId><SecretAccessKey>s</SecretAccessKey>\
         <SessionToken>tok</SessionToken><Expiration>{}</Expiration></Credentials></R>",
        in_an_hour()
    )
}

/// All servers of AWS in one.
fn aws(seen: &Seen) -> Option<(u16, Vec<u8>)> {
    let line = seen.line.as_str();
    let bearer = seen.header("x-amz-sso_bearer_token");
    match line {
        _ if line.starts_with("POST /model/") => bedrock_answer(),
        "POST /sts" if seen.body.contains("Action=AssumeRoleWithWebIdentity") => {
            assert!(
                seen.body.contains("WebIdentityToken=web%2Ftoken") && seen.header("authorization").is_empty()
            );
            ok(sts_keys("ASIAWEB"))
        }
        "POST /sts" => {
            assert!(seen.body.contains("ExternalId=ext&") || seen.body.ends_with("ExternalId=ext"));
            assert!(seen.header("authorization").contains("Credential=AKIABASE/"));
            assert!(seen.header("authorization").contains("/sts/aws4_request"));
            ok(sts_keys("ASIAROLE"))
        }
        _ if line.starts_with("GET /sso/federation/credentials?role_name=Dev&account_id=123") => {
            assert_eq!(bearer, "login-token");
            let end = (SystemTime::now() + Duration::from_secs(3600))
                .duration_since(SystemTime::UNIX_EPOCH)
                .unwrap();
            let millis = u64::try_from(end.as_millis()).unwrap();
            let keys = json!({"accessKeyId": "ASIASSO", "secretAccessKey": "s", "sessionToken": "tok", "expiration": millis});
            ok(json!({"roleCredentials": keys}).to_string())
        }
        "GET /container" if seen.header("authorization") == "container-token" => ok(json_keys("ASIABOX")),
        "PUT /latest/api/token" => ok("imds-token"),
        _ if seen.header("x-aws-ec2-metadata-token") != "imds-token" => Some((401, Vec::new())),
        "GET /latest/meta-data/iam/security-credentials/" => ok("my-role\n"),
        "GET /latest/meta-data/iam/security-credentials/my-role" => ok(json_keys("ASIAEC2")),
        _ => Some((404, Vec::new())),
    }
}

/// Files of profiles of every kind.
fn profiles(home: &Path) {
    let config = "[default]\nregion = eu-west-3\n[profile keys]\nregion = ap-south-1\n\
        [profile role]\nrole_arn = arn:aws:iam::1:role/x\nsource_profile = keys\nexternal_id = ext\n\
        [profile login]\nsso_session = corp\nsso_account_id = 123\nsso_role_name = Dev\n\
        [profile late]\nsso_start_url = https://late\nsso_region = eu-west-1\nsso_account_id = 123\nsso_role_name = Dev\n\
        [sso-session corp]\nsso_start_url = https://corp\nsso_region = eu-west-1\n\
        [profile web]\nrole_arn = arn:aws:iam::1:role/x\nweb_identity_token_file = WEB\n\
        [profile process]\ncredential_process = echo {\"Version\":1,\"AccessKeyId\":\"AKIAPROC\",\"SecretAccessKey\":\"s\"}\n\
        [profile loop]\nrole_arn = r\nsource_profile = loop2\n[profile loop2]\nrole_arn = r\nsource_profile = loop\n\
        [profile mfa]\nrole_arn = r\nsource_profile = keys\nmfa_serial = m\n";
    let web = write(&home.join("web"), "web/token\n");
    write(&home.join(".aws/config"), &config.replace("WEB", &web));
    write(
        &home.join(".aws/credentials"),
        "[keys]\naws_access_key_id = AKIABASE\naws_secret_access_key = s\n",
    );
    let token = |end: &str| json!({"accessToken": "login-token", "expiresAt": end}).to_string();
    let cache = home.join(".aws/sso/cache");
    for (name, end) in [
        ("corp", in_an_hour()),
        ("https://late", "2020-01-01T00:00:00Z".to_owned()),
    ] {
        let digest = ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, name.as_bytes());
        let hex: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        write(&cache.join(format!("{hex}.json")), &token(&end));
    }
}

/// A made-up environment.
type Variables = Vec<(&'static str, String)>;

/// The variables that lead to the servers of [`aws`].
fn places(server: &Server, home: &Path) -> Variables {
    vec![
        ("HOME", home.to_str().unwrap().to_owned()),
        ("AWS_ENDPOINT_URL_STS", format!("{}/sts", server.url)),
        ("AWS_ENDPOINT_URL_SSO", format!("{}/sso", server.url)),
        ("AWS_EC2_METADATA_SERVICE_ENDPOINT", server.url.clone()),
    ]
}

#[tokio::test]
async fn aws_credentials_are_found_in_every_source() {
    let home = tempfile::tempdir().unwrap();
    profiles(home.path());
    let server = serve(aws).await;
    let web = home.path().join("web").to_str().unwrap().to_owned();
    let set = |pairs: &[(&'static str, &str)]| -> Variables {
        pairs
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()))
            .collect()
    };
    let box_url = format!("{}/container", server.url);
    let own = [("AWS_ACCESS_KEY_ID", "AKIAENV"), ("AWS_SECRET_ACCESS_KEY", "s")];
    let table: [(Variables, &str, &str); 10] = [
        (set(&own), "AKIAENV", "us-east-1"),
        (set(&[("AWS_PROFILE", "keys")]), "AKIABASE", "ap-south-1"),
        (
            set(&[("AWS_PROFILE", "role"), ("AWS_REGION", "eu-west-2")]),
            "ASIAROLE",
            "eu-west-2",
        ),
        (set(&[("AWS_PROFILE", "login")]), "ASIASSO", "us-east-1"),
        (set(&[("AWS_PROFILE", "web")]), "ASIAWEB", "us-east-1"),
        (set(&[("AWS_PROFILE", "process")]), "AKIAPROC", "us-east-1"),
        (
            set(&[("AWS_WEB_IDENTITY_TOKEN_FILE", &web), ("AWS_ROLE_ARN", "r")]),
            "ASIAWEB",
            "us-east-1",
        ),
        (
            set(&[
                ("AWS_CONTAINER_CREDENTIALS_FULL_URI", &box_url),
                ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "container-token"),
            ]),
            "ASIABOX",
            "us-east-1",
        ),
        // The default profile has a region but no keys.
        (set(&[]), "ASIAEC2", "us-east-1"),
        (
            set(&[("AWS_BEDROCK_SKIP_AUTH", "1"), ("AWS_PROFILE", "login")]),
            "dummy-access-key",
            "us-east-1",
        ),
    ];
    for (variables, id, region) in table {
        let variables = [places(&server, home.path()), variables].concat();
        let request = ambient("bedrock-converse-stream", &server.url, &variables);
        assert_eq!(ask(&client(), &request).await, Ok(()), "{id}");
        let seen = server.last("/model/m/converse-stream");
        let auth = seen.header("authorization");
        assert!(auth.starts_with("AWS4-HMAC-SHA256 "), "{auth}");
        assert!(auth.contains(&format!("Credential={id}/")), "{id}: {auth}");
        assert!(
            auth.contains(&format!("/{region}/bedrock/aws4_request")),
            "{id}: {auth}"
        );
        let temporary = id.starts_with("ASIA");
        assert_eq!(
            seen.header("x-amz-security-token"),
            if temporary { "tok" } else { "" }
        );
    }
}

/// A long-lived process signs without end: signatures must not displace keys among the texts that are redacted.
#[tokio::test]
async fn bedrock_keys_are_learnt_and_signatures_are_not() {
    let server = serve(aws).await;
    let keys = [
        "AKIDEXAMPLE0123",
        "secret-of-bedrock-0123",
        "token-of-bedrock-0123",
    ];
    let names = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"];
    let variables: Vec<_> = names.into_iter().zip(keys.map(str::to_owned)).collect();
    let request = ambient("bedrock-converse-stream", &server.url, &variables);
    let config = ClientConfig::default();
    let secrets = config.secrets.clone();
    let client = Client::new(config);
    let mut learnt = Vec::new();
    for _ in 0..2 {
        ask(&client, &request).await.unwrap();
        learnt.push(format!("{secrets:?}"));
    }
    assert_eq!(learnt[0], learnt[1]);
    assert_eq!(secrets.redact(keys.join(" ")), "[key] [key] [key]");
    let seen = server.last("/model/m/converse-stream");
    let (_, signature) = seen.header("authorization").split_once("Signature=").unwrap();
    for open in [signature, seen.header("x-amz-date")] {
        assert_eq!(secrets.redact(open.to_owned()), open);
    }
}

#[tokio::test]
async fn missing_aws_keys_are_explained_without_request() {
    let home = tempfile::tempdir().unwrap();
    profiles(home.path());
    let server = serve(aws).await;
    let expired = "profile \"late\": the login has run out; run: aws sso login";
    for (name, value, text) in [
        ("AWS_PROFILE", "late", expired),
        (
            "AWS_PROFILE",
            "mfa",
            "profile \"mfa\": roles that ask for a one-time code are not supported",
        ),
        ("AWS_PROFILE", "loop", "too many profiles refer to each other"),
        ("AWS_WEB_IDENTITY_TOKEN_FILE", "/nowhere", "AWS_ROLE_ARN is not"),
        (
            "AWS_CONTAINER_CREDENTIALS_FULL_URI",
            "http://example.invalid/x",
            "must be https or an address of this machine",
        ),
    ] {
        let mut variables = places(&server, home.path());
        variables.push((name, value.to_owned()));
        let request = ambient("bedrock-converse-stream", &server.url, &variables);
        let error = ask(&client(), &request).await.unwrap_err();
        assert!(error.starts_with("Could not load AWS credentials: "), "{error}");
        assert!(error.contains(text), "{error}");
        assert!(!crate::is_retryable(&error), "{error}");
    }
    for (profile, text) in [
        (None, "there are none in variables, files, container or instance"),
        (Some("gone"), "profile \"gone\" was not found"),
    ] {
        let mut variables = places(&server, home.path());
        variables.push(("AWS_EC2_METADATA_DISABLED", "true".to_owned()));
        variables.extend(profile.map(|name| ("AWS_PROFILE", name.to_owned())));
        let request = ambient("bedrock-converse-stream", &server.url, &variables);
        let error = ask(&client(), &request).await.unwrap_err();
        assert_eq!(error, format!("Could not load AWS credentials: {text}"));
    }
    assert_eq!(server.count("/model/"), 0);
}

#[tokio::test]
async fn cached_credentials_are_shared_and_dropped_on_refusal() {
    let refuse = Arc::new(Mutex::new(false));
    let refused = Arc::clone(&refuse);
    let server = serve(move |seen| {
        if *refused.lock().unwrap() && seen.line.contains("/model/") {
            return Some((403, b"{\"message\":\"expired\"}".to_vec()));
        }
        aws(seen)
    })
    .await;
    let variables = [
        (
            "AWS_CONTAINER_CREDENTIALS_FULL_URI",
            format!("{}/container", server.url),
        ),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "container-token".to_owned()),
    ];
    let request = ambient("bedrock-converse-stream", &server.url, &variables);
    let client = client();
    let (a, b) = tokio::join!(ask(&client, &request), ask(&client, &request));
    assert_eq!((a, b), (Ok(()), Ok(())));
    ask(&client.clone(), &request).await.unwrap();
    assert_eq!((server.count("/model/"), server.count("/container")), (3, 1));
    *refuse.lock().unwrap() = true;
    assert_eq!(ask(&client, &request).await.unwrap_err(), "403 expired");
    *refuse.lock().unwrap() = false;
    ask(&client, &request).await.unwrap();
    assert_eq!(server.count("/container"), 2);
}

#[tokio::test]
async fn abort_ends_credential_search() {
    let server = serve(|_| None).await;
    let variables = [("AWS_CONTAINER_CREDENTIALS_FULL_URI", format!("{}/x", server.url))];
    let request = ambient("bedrock-converse-stream", &server.url, &variables);
    let cancel = CancellationToken::new();
    let mut stream = client().stream(request, cancel.clone());
    let stop = async {
        while server.count("/x") == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        cancel.cancel();
    };
    let (event, ()) = tokio::join!(stream.next(), stop);
    let Some(ModelEvent::Error { message, .. }) = event else {
        panic!("{event:?}")
    };
    assert_eq!(message.error_message.as_deref(), Some("Request was aborted."));
    assert_eq!(stream.next().await, None);
}

#[tokio::test]
async fn hanging_metadata_server_times_out() {
    let server = serve(|_| None).await;
    let variables = [("AWS_CONTAINER_CREDENTIALS_FULL_URI", format!("{}/x", server.url))];
    let request = ambient("bedrock-converse-stream", &server.url, &variables);
    let error = ask(&client(), &request).await.unwrap_err();
    assert!(error.ends_with("127.0.0.1: timed out after 2 s"), "{error}");
    assert!(crate::is_retryable(&error));
}

fn signature(method: &str, url: &str, kind: &str, body: &str, service: &str, token: Option<&str>) -> String {
    use auth::cloud::aws::{self, Keys};
    let keys = Keys {
        id: Secret::new("AKIDEXAMPLE"),
        secret: Secret::new("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
        token: token.map(Secret::new),
    };
    let time: jiff::Timestamp = "2015-08-30T12:36:00Z".parse().unwrap();
    let headers = [("content-type", kind)];
    let job = aws::Job {
        method,
        url,
        headers: if kind.is_empty() { &[] } else { &headers },
        body: body.as_bytes(),
        service,
        region: "us-east-1",
        time: time.into(),
    };
    let signed = aws::sign(&job, &keys).unwrap();
    let auth = &signed.iter().find(|(name, _)| name == "authorization").unwrap().1;
    auth.split("Signature=").nth(1).unwrap().to_owned()
}

/// The vectors that AWS publishes for Signature Version 4, then two made with AWS's own JavaScript library.
#[test]
fn aws_signatures_match_reference_vectors() {
    const FORM: &str = "application/x-www-form-urlencoded";
    const UTF8: &str = "application/x-www-form-urlencoded; charset=utf-8";
    const PLAIN: &str = "https://example.amazonaws.com/";
    const PATH: &str = "/model/arn%3Aaws%3Abedrock%3A1%2Fx-v1%3A0/converse-stream";
    let iam = "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08";
    for (given, expected) in [
        (
            signature("GET", PLAIN, "", "", "service", None),
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
        ),
        (
            signature("POST", PLAIN, "", "", "service", None),
            "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
        ),
        (
            signature("POST", PLAIN, FORM, "Param1=value1", "service", None),
            "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
        ),
        (
            signature("GET", iam, UTF8, "", "iam", None),
            "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7",
        ),
    ] {
        assert_eq!(given, expected);
    }
    for (host, expected) in [
        (
            "https://bedrock-runtime.us-east-1.amazonaws.com",
            "16d0ac441dd3c735ec0ffb8fe84dc2e1a034ce9e30c55d454937459284f1d178",
        ),
        (
            "http://127.0.0.1:8080",
            "38dec10d2907938372c65d4690cc717766ad212a711cabeff9a612c83721327e",
        ),
    ] {
        let url = format!("{host}{PATH}");
        let given = signature(
            "POST",
            &url,
            "application/json",
            "{\"a\":1}",
            "bedrock",
            Some("tok/+="),
        );
        assert_eq!(given, expected, "{host}");
    }
}

/// Made for these tests, opens nothing.
fn test_key() -> String {
    let name = "test_only_rsa_key.b64";
    let path = format!("{}/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
    let base64 = std::fs::read_to_string(path).unwrap();
    let (begin, end) = ("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----");
    format!("{begin}\n{base64}{end}\n")
}

/// All servers of Google in one.
fn google(seen: &Seen) -> Option<(u16, Vec<u8>)> {
    let token = |token: &str| ok(json!({"access_token": token, "expires_in": 3599}).to_string());
    match seen.line.as_str() {
        line if line.contains(":streamGenerateContent") => google_answer(),
        "POST /token" if seen.body.contains("grant_type=refresh_token") => {
            assert_eq!(
                seen.body,
                "grant_type=refresh_token&client_id=cid&client_secret=c%2Fs&refresh_token=r"
            );
            token("ya29.user")
        }
        "POST /token" if seen.body.contains("jwt-bearer") => token("ya29.robot"),
        "POST /impersonate" if seen.header("authorization") == "Bearer ya29.user" => {
            let reply = json!({"accessToken": "ya29.other", "expireTime": in_an_hour()});
            ok(reply.to_string())
        }
        "GET /computeMetadata/v1/instance/service-accounts/default/token"
            if seen.header("metadata-flavor") == "Google" =>
        {
            token("ya29.machine")
        }
        _ => Some((
            400,
            b"{\"error\":\"invalid_grant\",\"error_description\":\"Token has been revoked.\"}".to_vec(),
        )),
    }
}

#[tokio::test]
async fn google_tokens_are_found_in_every_source() {
    let home = tempfile::tempdir().unwrap();
    let server = serve(google).await;
    let token_uri = format!("{}/token", server.url);
    let user = json!({"type": "authorized_user", "client_id": "cid", "client_secret": "c/s", "refresh_token": "r",
        "token_uri": token_uri, "quota_project_id": "quota"});
    let robot = json!({"type": "service_account", "client_email": "robot@x", "private_key": test_key(),
        "private_key_id": "kid", "token_uri": token_uri});
    let other = json!({"type": "impersonated_service_account", "source_credentials": user,
        "service_account_impersonation_url": format!("{}/impersonate", server.url)});
    let file = |name: &str, json: &Value| write(&home.path().join(name), &json.to_string());
    let named = |path: String| vec![("GOOGLE_APPLICATION_CREDENTIALS", path)];
    let usual = file(".config/gcloud/application_default_credentials.json", &user);
    let (robot, other) = (file("robot.json", &robot), file("other.json", &other));
    let host = server.url.trim_start_matches("http://").to_owned();
    let machine = vec![("GCE_METADATA_HOST", host), ("HOME", "/nowhere".to_owned())];
    for (variables, token, quota) in [
        (named(robot), "ya29.robot", ""),
        (named(usual.clone()), "ya29.user", "quota"),
        (
            vec![("HOME", home.path().to_str().unwrap().to_owned())],
            "ya29.user",
            "quota",
        ),
        (named(other), "ya29.other", ""),
        (machine, "ya29.machine", ""),
    ] {
        let client = client();
        let request = ambient("google-vertex", &server.url, &variables);
        let before = server.count("/token");
        ask(&client, &request).await.unwrap();
        let asked = server.count("/token");
        ask(&client, &request).await.unwrap();
        assert!(
            asked > before && server.count("/token") == asked,
            "{token} is kept"
        );
        let seen = server.last(":streamGenerateContent");
        assert_eq!(
            seen.line,
            "POST /v1/publishers/google/models/m:streamGenerateContent?alt=sse"
        );
        assert_eq!(seen.header("authorization"), format!("Bearer {token}"));
        assert_eq!(seen.header("x-goog-user-project"), quota);
        assert_eq!(seen.header("x-goog-api-key"), "");
    }
    let claim = server
        .seen
        .lock()
        .unwrap()
        .iter()
        .find(|seen| seen.body.contains("assertion="))
        .unwrap()
        .clone();
    check_claim(claim.body.split("assertion=").nth(1).unwrap(), &token_uri);
}

/// The claim says the right things and its signature is good.
fn check_claim(jwt: &str, audience: &str) {
    let parts: Vec<&str> = jwt.split('.').collect();
    let json = |part: &str| serde_json::from_slice::<Value>(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap();
    assert_eq!(
        json(parts[0]),
        json!({"alg": "RS256", "typ": "JWT", "kid": "kid"})
    );
    let claims = json(parts[1]);
    assert_eq!(
        (&claims["iss"], &claims["aud"]),
        (&json!("robot@x"), &json!(audience))
    );
    assert_eq!(claims["scope"], "https://www.googleapis.com/auth/cloud-platform");
    assert_eq!(
        claims["exp"].as_u64().unwrap() - claims["iat"].as_u64().unwrap(),
        3600
    );
    let der: String = test_key().lines().filter(|line| !line.starts_with('-')).collect();
    let pair = ring::signature::RsaKeyPair::from_pkcs8(&STANDARD.decode(der).unwrap()).unwrap();
    let key = ring::signature::UnparsedPublicKey::new(
        &ring::signature::RSA_PKCS1_2048_8192_SHA256,
        pair.public().as_ref(),
    );
    let signature = URL_SAFE_NO_PAD.decode(parts[2]).unwrap();
    key.verify(format!("{}.{}", parts[0], parts[1]).as_bytes(), &signature)
        .unwrap();
}

#[tokio::test]
async fn missing_google_tokens_are_explained() {
    let home = tempfile::tempdir().unwrap();
    let server = serve(google).await;
    let user = |refresh: &str| {
        json!({"type": "authorized_user", "client_id": "cid", "client_secret": "hidden-secret",
            "refresh_token": refresh, "token_uri": format!("{}/revoked", server.url)})
    };
    let bad_key = json!({"type": "service_account", "client_email": "e", "private_key": "hidden-secret"});
    for (name, text, expected) in [
        (
            "a.json",
            user("r").to_string(),
            "The token server answered 400: Token has been revoked.",
        ),
        (
            "b.json",
            "{\"type\":\"external_account\"}".to_owned(),
            "credentials of type external_account are not supported",
        ),
        (
            "c.json",
            "hidden-secret".to_owned(),
            "the credentials file has an unknown form",
        ),
        (
            "d.json",
            bad_key.to_string(),
            "the private key of the credentials file cannot be read",
        ),
    ] {
        let path = write(&home.path().join(name), &text);
        let variables = [("GOOGLE_APPLICATION_CREDENTIALS", path)];
        let error = ask(&client(), &ambient("google-vertex", &server.url, &variables))
            .await
            .unwrap_err();
        assert!(
            error.starts_with("Could not load Google Cloud credentials: "),
            "{error}"
        );
        assert!(error.ends_with(expected) && !error.contains("hidden"), "{error}");
        assert!(!crate::is_retryable(&error), "{error}");
    }
    let gone = [("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere.json".to_owned())];
    let error = ask(&client(), &ambient("google-vertex", &server.url, &gone))
        .await
        .unwrap_err();
    assert!(error.ends_with("/nowhere.json does not exist"), "{error}");
    assert_eq!(server.count(":streamGenerateContent"), 0);
}
