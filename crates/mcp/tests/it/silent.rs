//! Servers over HTTP that accept requests without answering them.

use std::sync::Arc;
use std::time::Duration;

use pinion_mcp::{HttpClient, Resolve, Web};
use process::Boxed;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;

use crate::play::reached;

/// Gives clients for plain HTTP.
#[derive(Debug)]
struct Plain;

fn client() -> Result<HttpClient, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    let builder = HttpClient::builder().tls_backend_preconfigured(tls).no_proxy();
    builder.build().map_err(|error| error.to_string())
}

impl Web for Plain {
    fn client(&self, _: &str) -> Boxed<'_, Result<HttpClient, String>> {
        Box::pin(std::future::ready(client()))
    }

    fn resolving(&self, _: Arc<dyn Resolve>) -> Boxed<'_, Result<HttpClient, String>> {
        Box::pin(std::future::ready(client()))
    }
}

#[tokio::test]
async fn request_without_answer_ends_with_its_server() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let server = reached(&url, Arc::new(Plain));
    let (mut socket, _) = listener.accept().await.unwrap();
    let mut asked = vec![0; 4096];
    assert!(socket.read(&mut asked).await.unwrap() > 0);
    drop(server);
    let end = async { while socket.read(&mut asked).await.is_ok_and(|count| count > 0) {} };
    let ended = tokio::time::timeout(Duration::from_secs(10), end).await;
    assert!(ended.is_ok(), "the request goes on");
}
