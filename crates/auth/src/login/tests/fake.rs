//! A server that plays the providers of logins, and an `auth.json` of its own. The tests of `llm` use this file, too.

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::Endpoints;

/// One request as the server saw it.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: String,
}

impl Seen {
    /// A field of a form.
    pub(crate) fn field(&self, name: &str) -> String {
        let url = reqwest::Url::parse(&format!("http://x/?{}", self.body)).unwrap();
        let found = url.query_pairs().find(|(known, _)| known == name);
        found.map(|(_, value)| value.into_owned()).unwrap_or_default()
    }
}

type Answering = dyn Fn(usize, &Seen) -> (u16, String) + Send + Sync;

/// A server with scripted answers; each connection has a thread.
pub(crate) struct Fake {
    pub(crate) url: String,
    pub(crate) seen: Arc<Mutex<Vec<Seen>>>,
}

impl Fake {
    /// `answer` gets the number of the request to this path, from 0, and the request. Texts that begin with `data:` are
    /// sent as a stream.
    pub(crate) fn start(answer: impl Fn(usize, &Seen) -> (u16, String) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (all, answer): (_, Arc<Answering>) = (Arc::clone(&seen), Arc::new(answer));
        std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                let (all, answer) = (Arc::clone(&all), Arc::clone(&answer));
                std::thread::spawn(move || serve(stream, &all, &*answer));
            }
        });
        Self { url, seen }
    }

    /// The requests to a path, in order.
    pub(crate) fn at(&self, path: &str) -> Vec<Seen> {
        let seen = self.seen.lock().unwrap();
        seen.iter().filter(|seen| seen.path == path).cloned().collect()
    }

    pub(crate) fn endpoints(&self) -> Endpoints {
        Endpoints {
            openai_authorize: format!("{}/authorize", self.url),
            openai_token: format!("{}/token", self.url),
            chatgpt: format!("{}/chatgpt", self.url),
            openrouter: format!("{}/openrouter", self.url),
            xai: format!("{}/xai", self.url),
            kimi: format!("{}/kimi", self.url),
            meta: format!("{}/meta", self.url),
            meta_keys: format!("{}/meta-keys", self.url),
            callback_host: "127.0.0.1".to_owned(),
            callback_port: 0,
            github: format!("{}/gh", self.url),
            github_api: format!("{}/api", self.url),
            copilot: Some(format!("{}/copilot", self.url)),
            second: Duration::from_millis(2),
        }
    }
}

fn serve(mut stream: TcpStream, all: &Mutex<Vec<Seen>>, answer: &Answering) -> Option<()> {
    let mut bytes = Vec::new();
    let seen = loop {
        let mut piece = [0; 4096];
        let count = stream.read(&mut piece).ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&piece[..count]);
        if let Some(seen) = parse(&bytes) {
            break seen;
        }
    };
    let number = {
        let mut all = all.lock().unwrap();
        all.push(seen.clone());
        all.iter().filter(|other| other.path == seen.path).count() - 1
    };
    let (status, text) = answer(number, &seen);
    let kind = if text.starts_with("data:") {
        "text/event-stream"
    } else {
        "application/json"
    };
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        text.len()
    );
    stream.write_all(format!("{head}{text}").as_bytes()).ok()
}

fn parse(bytes: &[u8]) -> Option<Seen> {
    let text = String::from_utf8_lossy(bytes);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let mut lines = head.lines();
    let mut words = lines.next()?.split(' ');
    let headers: HashMap<String, String> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length = headers
        .get("content-length")
        .map_or(0, |length| length.parse().unwrap());
    (body.len() >= length).then(|| Seen {
        method: words.next().unwrap().to_owned(),
        path: words.next().unwrap().to_owned(),
        headers,
        body: body.to_owned(),
    })
}

/// A token of ChatGPT's form; `name` makes it differ.
pub(crate) fn jwt(account: &str, name: &str) -> String {
    let claims = json!({"https://api.openai.com/auth": {"chatgpt_account_id": account}, "jti": name});
    format!("head.{}.{name}", URL_SAFE_NO_PAD.encode(claims.to_string()))
}

/// An `auth.json` in a folder of its own.
pub(crate) struct Home {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) file: PathBuf,
}

impl Home {
    /// With this text, or without a file when it is empty.
    pub(crate) fn new(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("auth.json");
        if !text.is_empty() {
            std::fs::write(&file, text).unwrap();
        }
        Self { folder, file }
    }

    pub(crate) fn text(&self) -> String {
        std::fs::read_to_string(&self.file).unwrap()
    }

    pub(crate) fn entry(&self, provider: &str) -> Value {
        serde_json::from_str::<Value>(&self.text()).unwrap()[provider].clone()
    }

    pub(crate) fn mode(&self) -> u32 {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::metadata(&self.file).unwrap().permissions().mode() & 0o777
    }
}
