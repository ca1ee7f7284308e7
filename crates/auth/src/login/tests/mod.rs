//! Tests of logins against a server of our own. Renewal during requests is tested in `llm`.

mod fake;
mod flows;
mod providers;
mod storing;

use std::sync::Arc;

use self::fake::{Fake, Home, Seen, jwt};
use super::{Endpoints, Login};
use crate::http::{ClientFuture, HttpClients, UsedProxy};
use crate::secrets::Secrets;

/// Clients without proxies and TLS.
#[derive(Debug, Default)]
struct Clients(Secrets);

impl HttpClients for Clients {
    fn client<'a>(&'a self, _url: &'a reqwest::Url) -> ClientFuture<'a> {
        Box::pin(async { self.direct() })
    }

    fn direct(&self) -> Result<reqwest::Client, String> {
        let builder = reqwest::Client::builder()
            .no_proxy()
            .tls_backend_preconfigured(no_tls());
        builder.build().map_err(|error| error.to_string())
    }

    fn proxy(&self, _url: &reqwest::Url) -> Option<UsedProxy> {
        None
    }

    fn secrets(&self) -> &Secrets {
        &self.0
    }
}

/// No server is trusted: the tests use plain HTTP.
fn no_tls() -> rustls::ClientConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider);
    builder
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth()
}

/// A login with the file of `home` at the server `fake`.
fn login(home: &Home, fake: &Fake) -> Login {
    Login::new(home.file.clone(), fake.endpoints(), Arc::<Clients>::default())
}
