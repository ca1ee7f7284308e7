//! Building HTTP clients: late, because most processes never need TLS in their first milliseconds, and from given values
//! only, never from the environment.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use auth::limits::METADATA_TIMEOUT;
use auth::login::Endpoints;
use auth::{ClientFuture, HttpClients, Secrets, UsedProxy};
use hyper_util::client::proxy::matcher::Matcher;
use reqwest::dns::Resolve;
use reqwest::redirect::{Attempt, Policy};
use reqwest::{NoProxy, Proxy};
use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls_platform_verifier::Verifier;

use crate::error::LlmError;
use crate::limits::{CONNECT_TIMEOUT, MAX_REDIRECTS, POOL_IDLE};
use crate::tape::Tape;

/// What no proxy is used for.
const LOOPBACK: &str = "localhost,127.0.0.0/8,::1";

/// Proxies, as the usual environment variables name them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProxyConfig {
    /// For `http:` requests (`HTTP_PROXY`).
    pub http: Option<String>,
    /// For `https:` requests (`HTTPS_PROXY`).
    pub https: Option<String>,
    /// For both, where nothing else is said (`ALL_PROXY`).
    pub all: Option<String>,
    /// Hosts that are reached directly (`NO_PROXY`).
    pub no_proxy: Option<String>,
}

/// What a [`crate::Client`] is built from.
#[derive(Debug, Clone)]
pub struct ClientConfig {
    /// The `User-Agent` header.
    pub user_agent: String,
    /// How long a connection may take to stand.
    pub connect_timeout: Duration,
    /// Proxies.
    pub proxy: ProxyConfig,
    /// Replies for the model `offline/script`; read when it is first asked.
    pub script: Option<PathBuf>,
    /// `auth.json`, from which the tokens of logins are taken and where renewed ones go; without it they are sent as they
    /// are.
    pub auth_file: Option<PathBuf>,
    /// Where logins are renewed.
    pub endpoints: Endpoints,
    /// How long the offline model takes for a word.
    pub word_delay: Duration,
    /// Records or replaces the network.
    pub tape: Tape,
    /// Kept out of error texts and recordings; the registry's.
    pub secrets: Secrets,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            user_agent: concat!("pinion/", env!("CARGO_PKG_VERSION")).to_owned(),
            connect_timeout: CONNECT_TIMEOUT,
            proxy: ProxyConfig::default(),
            script: None,
            auth_file: None,
            endpoints: Endpoints::default(),
            word_delay: Duration::from_millis(8),
            tape: Tape::None,
            secrets: Secrets::default(),
        }
    }
}

/// The HTTP clients, built when first needed. `http:` needs no root certificates and gets a client of its own.
#[derive(Debug)]
pub struct Connector {
    config: ClientConfig,
    /// For `http:`.
    plain: OnceLock<reqwest::Client>,
    /// For `https:`.
    secure: OnceLock<reqwest::Client>,
    /// For `https:` to servers that must be spoken to in HTTP/1.1.
    secure_http1: OnceLock<reqwest::Client>,
    /// For `http:` to servers of the machine's surroundings: never through a proxy.
    direct: OnceLock<reqwest::Client>,
}

impl HttpClients for Connector {
    fn client<'a>(&'a self, url: &'a reqwest::Url) -> ClientFuture<'a> {
        Box::pin(async move {
            self.client_for(url, false)
                .await
                .map_err(|error| error.to_string())
        })
    }

    fn direct(&self) -> Result<reqwest::Client, String> {
        self.without_proxy().map_err(|error| error.to_string())
    }

    fn proxy(&self, url: &reqwest::Url) -> Option<UsedProxy> {
        used_proxy(&self.config.proxy, url)
    }

    fn secrets(&self) -> &Secrets {
        &self.config.secrets
    }
}

impl Connector {
    /// Notes the configuration; builds nothing.
    #[must_use]
    pub fn new(config: ClientConfig) -> Self {
        Self {
            config,
            plain: OnceLock::new(),
            secure: OnceLock::new(),
            secure_http1: OnceLock::new(),
            direct: OnceLock::new(),
        }
    }

    /// The client for a URL.
    ///
    /// # Errors
    /// When the client cannot be built, for example because a proxy is not a URL.
    pub async fn client(&self, url: &reqwest::Url) -> Result<reqwest::Client, LlmError> {
        self.client_for(url, false).await
    }

    /// Returns the client for a URL, on request without HTTP/2.
    pub(crate) async fn client_for(
        &self,
        url: &reqwest::Url,
        http1: bool,
    ) -> Result<reqwest::Client, LlmError> {
        let secure = url.scheme() != "http" || self.proxied_by_tls();
        let cell = match secure {
            true if http1 => &self.secure_http1,
            true => &self.secure,
            false => &self.plain,
        };
        if let Some(client) = cell.get() {
            return Ok(client.clone());
        }
        let mut tls = if secure {
            // Reading the system's certificates takes tens of milliseconds of blocking IO.
            let built = tokio::task::spawn_blocking(system_tls).await;
            built.map_err(|error| LlmError::Tls(error.to_string()))??
        } else {
            no_tls()?
        };
        if http1 {
            tls.alpn_protocols.retain(|protocol| protocol != b"h2");
        }
        let client = build(&self.config, tls, None)?;
        Ok(cell.get_or_init(|| client).clone())
    }

    /// A new client that connects only to what `resolver` gives, or through the proxies.
    pub(crate) async fn resolving(&self, resolver: Arc<dyn Resolve>) -> Result<reqwest::Client, LlmError> {
        // Reading the system's certificates takes tens of milliseconds of blocking IO.
        let tls = tokio::task::spawn_blocking(system_tls).await;
        let tls = tls.map_err(|error| LlmError::Tls(error.to_string()))??;
        build(&self.config, tls, Some(resolver))
    }

    /// A new client that connects only to what `resolver` gives, follows no redirect and uses no proxy.
    pub(crate) async fn direct_with(&self, resolver: Arc<dyn Resolve>) -> Result<reqwest::Client, LlmError> {
        // Reading the system's certificates takes tens of milliseconds of blocking IO.
        let tls = tokio::task::spawn_blocking(system_tls).await;
        let tls = tls.map_err(|error| LlmError::Tls(error.to_string()))??;
        let builder = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .user_agent(&self.config.user_agent)
            .connect_timeout(self.config.connect_timeout)
            .redirect(Policy::none())
            .no_proxy()
            .dns_resolver(resolver);
        builder.build().map_err(|error| LlmError::Http(error.to_string()))
    }

    /// The client for plain HTTP that knows no proxy.
    fn without_proxy(&self) -> Result<reqwest::Client, LlmError> {
        if let Some(client) = self.direct.get() {
            return Ok(client.clone());
        }
        let config = ClientConfig {
            proxy: ProxyConfig::default(),
            connect_timeout: METADATA_TIMEOUT,
            ..self.config.clone()
        };
        let client = build(&config, no_tls()?, None)?;
        Ok(self.direct.get_or_init(|| client).clone())
    }

    /// Returns true if a proxy itself uses TLS.
    fn proxied_by_tls(&self) -> bool {
        let proxy = &self.config.proxy;
        [&proxy.http, &proxy.all]
            .into_iter()
            .flatten()
            .any(|address| address.starts_with("https:"))
    }
}

/// The cryptography; given to each TLS configuration instead of being installed for the whole process.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Returns a TLS configuration without trusted certificates, for clients that never use it.
fn no_tls() -> Result<rustls::ClientConfig, LlmError> {
    let builder = rustls::ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| LlmError::Tls(error.to_string()))?;
    Ok(builder
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth())
}

/// A TLS configuration that trusts what the system trusts. Reads certificate files.
fn system_tls() -> Result<rustls::ClientConfig, LlmError> {
    let tls = |error: rustls::Error| LlmError::Tls(error.to_string());
    let verifier = Verifier::new(provider()).map_err(tls)?;
    let mut config = rustls::ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(tls)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// A client of this configuration.
fn build(
    config: &ClientConfig,
    tls: rustls::ClientConfig,
    resolver: Option<Arc<dyn Resolve>>,
) -> Result<reqwest::Client, LlmError> {
    let mut builder = reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .user_agent(&config.user_agent)
        .connect_timeout(config.connect_timeout)
        .pool_idle_timeout(POOL_IDLE)
        .tcp_nodelay(true)
        .redirect(Policy::custom(same_origin))
        .no_proxy();
    for proxy in proxies(&config.proxy)? {
        builder = builder.proxy(proxy);
    }
    if let Some(resolver) = resolver {
        builder = builder.dns_resolver(resolver);
    }
    builder.build().map_err(|error| LlmError::Http(error.to_string()))
}

/// The proxies, most specific first.
fn proxies(config: &ProxyConfig) -> Result<Vec<Proxy>, LlmError> {
    let direct = NoProxy::from_string(&direct(config));
    let mut proxies = Vec::new();
    let mut add = |scheme, address: &Option<String>, make: fn(&str) -> reqwest::Result<Proxy>| {
        if let Some(address) = address.as_deref().filter(|address| !address.is_empty()) {
            let proxy = make(address).map_err(|_| LlmError::Proxy(scheme))?;
            proxies.push(proxy.no_proxy(direct.clone()));
        }
        Ok(())
    };
    add("http", &config.http, |address| Proxy::http(address))?;
    add("https", &config.https, |address| Proxy::https(address))?;
    add("all", &config.all, |address| Proxy::all(address))?;
    Ok(proxies)
}

/// Hosts that are reached directly. This machine is never reached through another one: local servers are found directly and must be
/// asked so.
fn direct(config: &ProxyConfig) -> String {
    let direct = [LOOPBACK, config.no_proxy.as_deref().unwrap_or_default()].join(",");
    direct.trim_end_matches(',').to_owned()
}

/// The proxy that [`proxies`] chooses for a URL, for texts.
fn used_proxy(config: &ProxyConfig, url: &reqwest::Url) -> Option<UsedProxy> {
    let is_set = |address: &Option<String>| address.as_ref().is_some_and(|address| !address.is_empty());
    let (own, variable) = match url.scheme() {
        "http" => (&config.http, "HTTP_PROXY"),
        _ => (&config.https, "HTTPS_PROXY"),
    };
    let (address, variable) = if is_set(own) {
        (own, variable)
    } else {
        (&config.all, "ALL_PROXY")
    };
    // reqwest decides by the same rules.
    let matcher = Matcher::builder()
        .all(address.as_deref()?)
        .no(direct(config).as_str())
        .build();
    let used = matcher.intercept(&url.as_str().parse().ok()?)?;
    let uri = used.uri();
    let port = uri.port_u16().map_or_else(String::new, |port| format!(":{port}"));
    Some(UsedProxy {
        address: format!("{}{port}", uri.host()?),
        variable,
    })
}

/// Follows redirects only within one origin: headers may hold keys.
fn same_origin(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let same = attempt
        .previous()
        .first()
        .is_some_and(|first| first.origin() == attempt.url().origin());
    if same && attempt.previous().len() <= MAX_REDIRECTS {
        attempt.follow()
    } else {
        attempt.stop()
    }
}
