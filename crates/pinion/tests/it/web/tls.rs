//! TLS by flag (`--web-cert`, `--web-key`): the same over https and wss; files that do not fit are said to be so at start.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, Error, SignatureScheme, StreamOwned};
use tungstenite::Message;
use tungstenite::client::IntoClientRequest;

use super::Web;
use crate::kit::World;

fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/it/web/tls")
        .join(name);
    path.to_str().unwrap().to_owned()
}

/// Trusts one certificate and no other, at any date.
#[derive(Debug)]
struct Only(CertificateDer<'static>, Arc<CryptoProvider>);

impl ServerCertVerifier for Only {
    fn verify_server_cert(
        &self,
        end: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if *end == self.0 {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(Error::General("another certificate".to_owned()))
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.1.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.1.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.1.signature_verification_algorithms.supported_schemes()
    }
}

fn secure(web: &Web) -> StreamOwned<ClientConnection, TcpStream> {
    let provider = Arc::new(ring::default_provider());
    let certificate = CertificateDer::from_pem_file(fixture("chain.pem")).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Only(certificate, provider)))
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    StreamOwned::new(connection, web.connect())
}

fn ask(web: &Web, request: &str) -> String {
    let mut stream = secure(web);
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let _unclean = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn tls_serves_page_and_socket() {
    let world = World::new([]);
    let (chain, key) = (fixture("chain.pem"), fixture("key.pem"));
    let mut web = Web::start(
        &world,
        &["--web-cert", &chain, "--web-key", &key, "--web-token", "t0ken"],
    );
    assert!(
        web.banner.contains("UI:        https://127.0.0.1:"),
        "{}",
        web.banner
    );
    assert!(
        web.banner.contains("WebSocket: wss://127.0.0.1:"),
        "{}",
        web.banner
    );
    let address = web.address.clone();
    let page = ask(
        &web,
        &format!("GET / HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n"),
    );
    assert!(
        page.starts_with("HTTP/1.1 200") && page.contains("<title>Pinion"),
        "{page:.200}"
    );
    // A page that came without TLS is another one.
    for (origin, fits) in [
        (format!("https://{address}"), true),
        (format!("http://{address}"), false),
    ] {
        let mut request = format!("wss://{address}/ws?token=t0ken")
            .into_client_request()
            .unwrap();
        request.headers_mut().insert("origin", origin.parse().unwrap());
        match tungstenite::client(request, secure(&web)) {
            Ok((mut socket, _)) => {
                assert!(fits, "{origin}");
                socket
                    .send(Message::text(r#"{"id":"a","type":"get_state"}"#))
                    .unwrap();
                // The first session may become ready after the client came.
                let answer = (0..10)
                    .map(|_| socket.read().unwrap())
                    .find(|line| line.to_text().unwrap().contains(r#""id":"a""#))
                    .unwrap();
                assert!(
                    answer.to_text().unwrap().contains(r#""success":true"#),
                    "{answer}"
                );
            }
            Err(error) => assert!(!fits, "{origin}: {error}"),
        }
    }
    // Clients without TLS, or without any bytes, do no harm.
    let (status, ..) = web.raw(format!("GET / HTTP/1.1\r\nhost: {address}\r\n\r\n").as_bytes());
    assert_eq!(status, 0);
    let silent: Vec<TcpStream> = (0..100).map(|_| web.connect()).collect();
    let health = ask(
        &web,
        &format!("GET /health HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n"),
    );
    assert!(health.contains("200 OK"), "{health}");
    drop(silent);
    assert!(!web.has_ended());
    web.finish();
}

#[test]
fn unusable_certificates_are_named() {
    let world = World::new([]);
    let (chain, key, other) = (fixture("chain.pem"), fixture("key.pem"), fixture("other-key.pem"));
    world.dir.write("empty.pem", "").unwrap();
    let cases: [(&[&str], &str); 6] = [
        (
            &["--web-cert", &chain],
            "--web-cert and --web-key belong together",
        ),
        (&["--web-key", &key], "--web-cert and --web-key belong together"),
        (&["--web-cert", "missing.pem", "--web-key", &key], "missing.pem"),
        (&["--web-cert", &chain, "--web-key", "missing.pem"], "missing.pem"),
        (&["--web-cert", "empty.pem", "--web-key", &key], "empty.pem"),
        (&["--web-cert", &chain, "--web-key", &other], "certificate"),
    ];
    for (args, what) in cases {
        let mut web = Web::try_start(&world, args);
        assert_eq!(web.wait().code(), Some(1), "{args:?}");
        assert!(web.errors().contains(what), "{args:?}: {}", web.errors());
    }
    let mut swapped = Web::try_start(&world, &["--web-cert", &key, "--web-key", &chain]);
    assert_eq!(swapped.wait().code(), Some(1));
    assert!(swapped.errors().contains("key.pem"), "{}", swapped.errors());
}
