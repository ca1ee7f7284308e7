//! Logins at HTTP servers: `rmcp` discovers, gets and refreshes them. Here are its HTTP client, with the agent's
//! proxies and certificates, and its credential store. The program shows pages to the user.

use std::sync::Arc;

use rmcp::transport::auth::{
    AuthorizationManager, AuthorizationRequest, AuthorizationSession, OAuthHttpClient, OAuthHttpClientFuture,
    OAuthHttpRequest,
};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use crate::address;
use crate::authorised::Authorised;
use crate::config::{HttpConfig, OauthConfig, Reach, ServerConfig};
use crate::error::{McpError, with_causes};
use crate::limits;
use crate::link::{Surroundings, Web};
pub(crate) use crate::store::Logins;
use crate::text::line;
use crate::web::Bounded;

/// The client name that servers register.
const CLIENT_NAME: &str = "Pinion";

/// Sends what the login needs.
struct Sender {
    web: Arc<dyn Web>,
    /// Made when it is first needed: most servers have no login, and it reads the system's certificates.
    client: OnceCell<reqwest::Client>,
    /// The server whose login it is. It names the addresses.
    server: reqwest::Url,
}

impl Sender {
    async fn connect(&self) -> Result<reqwest::Client, String> {
        let server = self.server.clone();
        self.web.resolving(Arc::new(address::Checked { server })).await
    }
}

impl OAuthHttpClient for Sender {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            // The client follows redirects within one origin only; the request cannot change that.
            let request = reqwest::Request::try_from(request.request)?;
            let answer = async {
                address::check(&self.server, request.url()).await?;
                let client = self.client.get_or_try_init(|| self.connect()).await?;
                let mut response = client.execute(request).await?;
                let mut body = Vec::new();
                while let Some(piece) = response.chunk().await? {
                    body.extend_from_slice(&piece);
                    if body.len() > limits::OAUTH_BODY {
                        return Err("the answer is too long".into());
                    }
                }
                let mut answer = http::Response::new(body);
                *answer.status_mut() = response.status();
                *answer.headers_mut() = response.headers().clone();
                Ok(answer)
            };
            match tokio::time::timeout(limits::OAUTH, answer).await {
                Ok(answer) => answer,
                Err(_) => Err("no answer in time".into()),
            }
        })
    }
}

/// An HTTP client that adds the token of the server's login, if there is one.
pub(crate) async fn client(
    name: &str,
    url: &str,
    config: &HttpConfig,
    around: &Surroundings,
    web: Bounded,
) -> Result<Authorised<Bounded>, McpError> {
    let mut manager = manager(name, url, around).await?;
    // Without a stored login, discovery would only cost requests.
    if around.logins.has(name, url) {
        let known = manager.initialize_from_store().await.map_err(|error| {
            McpError::connect(format!("its login cannot be checked: {}", with_causes(&error)))
        })?;
        if known {
            configure(&mut manager, config)?;
        }
    }
    Ok(Authorised::new(web, manager, around.logins.refreshes().clone()))
}

/// Returns true for an address that a browser may be sent to. The server names it, and other programs than a browser open addresses of other
/// schemes. Like the tokens of the login, it needs https, unless the server does without or the page is on this machine.
fn is_web_page(address: &str, server: &reqwest::Url) -> bool {
    let Ok(page) = reqwest::Url::parse(address) else {
        return false;
    };
    let host = page.host_str().unwrap_or_default();
    let is_local = matches!(host, "localhost" | "127.0.0.1" | "[::1]");
    match page.scheme() {
        "https" => true,
        "http" => is_local || server.scheme() == "http",
        _ => false,
    }
}

/// A client that was registered by hand keeps its secret in the configuration.
fn configure(manager: &mut AuthorizationManager, config: &HttpConfig) -> Result<(), McpError> {
    let OauthConfig {
        client_id: Some(id),
        client_secret: Some(secret),
        ..
    } = &config.oauth
    else {
        return Ok(());
    };
    // The address is not used when a token is renewed.
    let client = rmcp::transport::auth::OAuthClientConfig::new(id, "http://127.0.0.1/callback")
        .with_client_secret(secret.clone());
    manager.configure_client(client).map_err(McpError::connect)
}

async fn manager(name: &str, url: &str, around: &Surroundings) -> Result<AuthorizationManager, McpError> {
    let server = reqwest::Url::parse(url).map_err(McpError::connect)?;
    let sender = Sender {
        web: Arc::clone(&around.web),
        client: OnceCell::new(),
        server,
    };
    let mut manager = AuthorizationManager::new_with_oauth_http_client(url, Arc::new(sender))
        .await
        .map_err(McpError::connect)?;
    manager.set_credential_store(around.logins.of(name, url));
    Ok(manager)
}

/// The address of a server, normalised: logins are stored under this form, however the configuration writes it.
fn parsed(url: &str) -> Result<reqwest::Url, McpError> {
    reqwest::Url::parse(url).map_err(|_| McpError::Config("\"url\" should be an address".to_owned()))
}

/// A login that waits for the person.
pub struct Login {
    session: AuthorizationSession,
}

impl Login {
    /// Finds out where to log in at a server, and introduces the agent there. `redirect` is where the browser ends.
    ///
    /// # Errors
    /// When the server has no address or offers no login.
    pub async fn begin(
        config: &ServerConfig,
        around: &Surroundings,
        redirect: &str,
    ) -> Result<Self, McpError> {
        let Reach::Http(http) = &config.reach else {
            return Err(McpError::Config("a program needs no login".to_owned()));
        };
        let (expander, http) = (around.expand.clone(), http.clone());
        let expanded = tokio::task::spawn_blocking(move || expander.http(&http)).await;
        let http = expanded.map_err(McpError::connect)??;
        let url = parsed(&http.url)?;
        let mut manager = manager(&config.name, url.as_str(), around).await?;
        let found = manager.resolve_metadata().await.map_err(McpError::connect)?;
        manager.set_metadata(found.metadata);
        let oauth = &http.oauth;
        let mut request = AuthorizationRequest::new(redirect)
            .with_client_name(oauth.client_name.as_deref().unwrap_or(CLIENT_NAME));
        if let Some(scope) = &oauth.scope {
            request = request.with_scopes(scope.split_whitespace());
        }
        if let Some(id) = &oauth.client_id {
            request = request.with_preregistered_client(id);
            if let Some(secret) = &oauth.client_secret {
                request = request.with_client_secret(secret);
            }
        }
        let session = AuthorizationSession::new(manager, request).await;
        let session = session.map_err(|(_, error)| McpError::connect(error))?;
        if !is_web_page(session.get_authorization_url(), &url) {
            let address = line(session.get_authorization_url(), limits::NAME);
            return Err(McpError::Connect(format!(
                "its login page {address} is no https address"
            )));
        }
        Ok(Self { session })
    }

    /// Forgets the stored login at a server. Returns false if there was none.
    ///
    /// # Errors
    /// When the server has no address, or the file cannot be changed.
    pub fn forget(config: &ServerConfig, around: &Surroundings) -> Result<bool, McpError> {
        let Reach::Http(http) = &config.reach else {
            return Err(McpError::Config("a program needs no login".to_owned()));
        };
        let url = parsed(&around.expand.text(&http.url)?)?;
        around.logins.remove(&config.name, url.as_str())
    }

    /// The page to visit.
    #[must_use]
    pub fn address(&self) -> &str {
        self.session.get_authorization_url()
    }

    /// The state that the browser must bring back.
    #[must_use]
    pub fn state(&self) -> String {
        let url = reqwest::Url::parse(self.address()).ok();
        let state = url.and_then(|url| {
            let pair = url.query_pairs().find(|(name, _)| name == "state")?;
            Some(pair.1.into_owned())
        });
        state.unwrap_or_default()
    }

    /// Gets tokens for what the browser brought to the redirect address, and keeps them.
    ///
    /// # Errors
    /// When it belongs to another login, or the server does not take it.
    pub async fn finish(&self, visited: &str, cancel: &CancellationToken) -> Result<(), McpError> {
        let done = tokio::select! {
            done = self.session.handle_callback_url(visited) => done,
            () = cancel.cancelled() => return Err(McpError::Cancelled),
        };
        match done {
            Ok(_) => Ok(()),
            Err(error) => Err(McpError::Connect(line(&error.to_string(), limits::ERROR))),
        }
    }
}
