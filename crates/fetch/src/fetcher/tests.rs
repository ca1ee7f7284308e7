//! Against a server on this machine.

use std::sync::Mutex;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;

struct Plain;

impl WebClients for Plain {
    fn direct_client(&self, resolver: Arc<dyn Resolve>) -> ClientFuture<'_> {
        let builder = Client::builder()
            .tls_backend_preconfigured(no_tls())
            .redirect(reqwest::redirect::Policy::none());
        let client = builder.no_proxy().dns_resolver(resolver).build();
        Box::pin(std::future::ready(client.map_err(|error| error.to_string())))
    }
}

/// A TLS configuration without trusted certificates.
fn no_tls() -> rustls::ClientConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth()
}

fn fetcher(hosts: &[&str]) -> Fetcher {
    Fetcher::new(FetchConfig {
        clients: Arc::new(Plain),
        allowed: Allowed::new(hosts.iter().map(|host| (*host).to_owned())),
        refusal: None,
    })
}

/// Answers each request with the answer for its path. Returns the port and the paths that were asked for.
async fn serve(answers: &'static [(&'static str, String)]) -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let paths = Arc::clone(&asked);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let paths = Arc::clone(&paths);
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    match stream.read_u8().await {
                        Ok(byte) => head.push(byte),
                        Err(_) => return,
                    }
                }
                let head = String::from_utf8_lossy(&head).into_owned();
                let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                let answer = answers.iter().find(|(known, _)| *known == path);
                let answer = answer.map_or_else(
                    || status("404 Not Found", "text/html", "<h1>Nothing here</h1>"),
                    |(_, answer)| answer.clone(),
                );
                paths.lock().unwrap().push(path);
                let _gone = stream.write_all(answer.as_bytes()).await;
            });
        }
    });
    (port, asked)
}

fn status(status: &str, media_type: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: {media_type}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

fn redirect(target: &str) -> String {
    format!("HTTP/1.1 302 Found\r\nlocation: {target}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
}

fn answers(list: Vec<(&'static str, String)>) -> &'static [(&'static str, String)] {
    list.leak()
}

fn url(port: u16, path: &str) -> Url {
    crate::parse(&format!("http://127.0.0.1:{port}{path}")).unwrap()
}

#[tokio::test]
async fn page_is_fetched_as_markdown() {
    let html = "<title>Doc</title><h2>Usage</h2><p>Run <code>it</code>.</p>";
    let list = answers(vec![
        ("/page", status("200 OK", "text/html; charset=utf-8", html)),
        ("/data", status("200 OK", "application/json", "{\"a\": 1}")),
        ("/image", status("200 OK", "image/png", "....")),
        ("/empty", status("200 OK", "text/plain", "")),
    ]);
    let (port, _) = serve(list).await;
    let fetcher = fetcher(&["127.0.0.1"]);
    let page = fetcher.fetch(url(port, "/page"), 0).await.unwrap();
    assert_eq!(page.text.trim_end(), "Title: Doc\n\n## Usage\n\nRun `it`.");
    assert_eq!((page.media_type.as_str(), page.bytes), ("text/html", html.len()));
    let data = fetcher.fetch(url(port, "/data"), 0).await.unwrap();
    assert_eq!(data.text, "{\"a\": 1}");
    let error = fetcher.fetch(url(port, "/image"), 0).await.unwrap_err();
    assert!(error.contains("image/png (4 bytes)"), "{error}");
    assert_eq!(
        fetcher.fetch(url(port, "/empty"), 0).await.unwrap().text,
        "(no text)"
    );
    let error = fetcher.fetch(url(port, "/gone"), 0).await.unwrap_err();
    assert!(
        error.contains("status 404 Not Found") && error.ends_with("# Nothing here"),
        "{error}"
    );
}

#[tokio::test]
async fn long_pages_come_in_parts() {
    let line = "0123456789 äöü\n";
    let body = line.repeat(10_000);
    let list = answers(vec![
        ("/long", status("200 OK", "text/plain", &body)),
        (
            "/endless",
            status("200 OK", "text/plain", &"x".repeat(limits::FETCH_BODY + 1)),
        ),
    ]);
    let (port, _) = serve(list).await;
    let fetcher = fetcher(&["127.0.0.1"]);
    let (mut whole, mut start) = (String::new(), 0);
    loop {
        let part = fetcher.fetch(url(port, "/long"), start).await.unwrap().text;
        match part.split_once("\n\n[Bytes") {
            Some((text, note)) => {
                assert!(
                    text.len() <= limits::FETCH_TEXT && note.contains(&format!("of {}", body.len())),
                    "{note}"
                );
                whole.push_str(text);
                start = whole.len();
                assert!(note.contains(&format!("start={start} ")), "{note}");
            }
            None => {
                whole.push_str(&part);
                break;
            }
        }
    }
    assert_eq!(whole, body);
    let error = fetcher.fetch(url(port, "/long"), body.len()).await.unwrap_err();
    assert!(error.contains("behind its end"), "{error}");
    let last = fetcher
        .fetch(url(port, "/endless"), limits::FETCH_BODY - 10)
        .await
        .unwrap()
        .text;
    assert!(last.contains("the rest was not read"), "{last}");
}

#[test]
fn start_within_character_continues_behind_it() {
    let page = page::Page {
        title: None,
        text: "ä".repeat(limits::FETCH_TEXT),
    };
    let text = window(&page, &url(80, "/"), 1, false).unwrap();
    assert!(text.ends_with("[Bytes 2 to 51202 of 102400. Use start=51202 to continue]"));
    assert!(window(&page, &url(80, "/"), 102_399, false).is_err());
}

#[tokio::test]
async fn titles_and_headers_are_bounded() {
    let long = "x".repeat(10_000);
    let list = answers(vec![
        (
            "/title",
            status("200 OK", "text/html", &format!("<title>{long}</title><p>text")),
        ),
        ("/type", status("200 OK", &format!("image/{long}"), "....")),
        ("/location", redirect(&format!("/{long}"))),
    ]);
    let (port, _) = serve(list).await;
    let fetcher = fetcher(&["127.0.0.1"]);
    let page = fetcher.fetch(url(port, "/title"), 0).await.unwrap();
    assert_eq!(page.title.as_ref().map(String::len), Some(limits::FETCH_TITLE));
    assert!(page.text.len() < 2 * limits::FETCH_TITLE, "{}", page.text);
    let error = fetcher.fetch(url(port, "/type"), 0).await.unwrap_err();
    assert!(error.len() < 2 * limits::FETCH_TITLE, "{error}");
    let error = fetcher.fetch(url(port, "/location"), 0).await.unwrap_err();
    assert!(
        error.ends_with("redirects to a URL that is longer than 4096 bytes"),
        "{error}"
    );
}

#[tokio::test]
async fn redirects_stay_on_their_host() {
    let list = answers(vec![
        ("/a", redirect("/b")),
        ("/b", status("200 OK", "text/plain", "arrived")),
        ("/away", redirect("http://localhost/secret")),
        ("/file", redirect("file:///etc/passwd")),
        ("/loop", redirect("/loop")),
    ]);
    let (port, asked) = serve(list).await;
    let fetcher = fetcher(&["127.0.0.1"]);
    let arrived = fetcher.fetch(url(port, "/a"), 0).await.unwrap();
    assert_eq!(
        (arrived.text.as_str(), arrived.url.ends_with("/b")),
        ("arrived", true)
    );
    for (path, reason) in [
        ("/away", "redirects to http://localhost/secret. Fetch that URL"),
        ("/file", "redirects to file:///etc/passwd"),
        ("/loop", "redirects more than 5 times"),
    ] {
        let error = fetcher.fetch(url(port, path), 0).await.unwrap_err();
        assert!(error.contains(reason), "{error}");
    }
    assert_eq!(
        asked
            .lock()
            .unwrap()
            .iter()
            .filter(|path| *path == "/loop")
            .count(),
        6
    );
}

#[tokio::test]
async fn private_addresses_are_never_asked() {
    let (port, asked) = serve(answers(Vec::new())).await;
    let fetcher = fetcher(&[]);
    for host in ["127.0.0.1", "localhost", "[::1]", "2130706433", "0.0.0.0"] {
        let url = crate::parse(&format!("http://{host}:{port}/")).unwrap();
        let error = fetcher.fetch(url, 0).await.unwrap_err();
        assert!(error.contains("private address"), "{host}: {error}");
    }
    assert!(asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn refused_fetcher_asks_nobody() {
    let (port, asked) = serve(answers(Vec::new())).await;
    let fetcher = Fetcher::new(FetchConfig {
        clients: Arc::new(Plain),
        allowed: Allowed::new(["127.0.0.1".to_owned()]),
        refusal: Some("no network".to_owned()),
    });
    assert_eq!(fetcher.fetch(url(port, "/"), 0).await.unwrap_err(), "no network");
    assert!(asked.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn silent_server_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let error = fetcher(&["127.0.0.1"])
        .fetch(url(port, "/"), 0)
        .await
        .unwrap_err();
    assert_eq!(error, "No complete page within 30 seconds");
}
