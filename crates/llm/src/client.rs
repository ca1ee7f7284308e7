//! The entrance: a client that many sessions share. Everything costly is built with the first request that needs it.

use std::sync::Arc;

use auth::login::{Login, LoginError, TokenRefresher};
use auth::{HttpClients, Secret, Secrets};
use bytes::Bytes;
use reqwest::Url;
use reqwest::header::HeaderMap;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, Span};

use crate::access::{Access, CredentialCaches};
use crate::answer::{Answer, Fault};
use crate::anthropic::threads::ThreadSender;
use crate::error::LlmError;
use crate::family::Family;
use crate::http::{ClientConfig, Connector, HttpRequest, Line, Patience, send};
use crate::ids::CallNumbers;
use crate::lent::{Lending, Lent};
use crate::limits::MAX_ERROR_BODY_BYTES;
use crate::login_request::ask;
use crate::offline::Offline;
use crate::request::ModelRequest;
use crate::stream::{Head, ModelStream, State, Waiting};
use crate::strict_refusal::{self, StrictRefusals};
use crate::tape::{self, Tape};
use crate::trace;

/// Asks models. Cheap to clone; clones share connections.
#[derive(Debug, Clone)]
pub struct Client {
    connector: Arc<Connector>,
    caches: Arc<CredentialCaches>,
    offline: Arc<Offline>,
    refresher: Option<Arc<TokenRefresher>>,
    tape: Tape,
    secrets: Secrets,
    numbers: CallNumbers,
    strict_refusals: StrictRefusals,
}

impl Client {
    /// A client. Does no IO.
    #[must_use]
    pub fn new(config: ClientConfig) -> Self {
        let offline = Offline::new(config.script.clone(), config.word_delay);
        let (tape, secrets) = (config.tape.clone(), config.secrets.clone());
        let connector = Arc::new(Connector::new(config.clone()));
        // A recording needs neither logins nor credentials.
        let refresher = match tape {
            Tape::Replay(_) => None,
            _ => config.auth_file.clone().map(|file| {
                let clients: Arc<dyn HttpClients> = connector.clone();
                TokenRefresher::new(file, config.endpoints.clone(), clients)
            }),
        };
        Self {
            refresher,
            tape,
            secrets,
            connector,
            caches: Arc::default(),
            offline: Arc::new(offline),
            numbers: CallNumbers::default(),
            strict_refusals: StrictRefusals::default(),
        }
    }

    /// Asks a model. Failures come as the stream's last event, also those before the request is sent. Nothing happens until
    /// the stream is polled; that needs a tokio runtime with IO and time.
    #[must_use]
    pub fn stream(&self, request: ModelRequest, cancel: CancellationToken) -> ModelStream {
        if let Some(key) = &request.api_key {
            self.secrets.learn(key.expose());
        }
        let mut request = request;
        if matches!(self.tape, Tape::Replay(_)) {
            request.model.base_url = tape::address(&request.model.base_url);
        }
        self.strict_refusals.apply(&mut request);
        let request = Arc::new(request);
        let span = trace::request(&request);
        let state = match self.start(&request, &span) {
            Ok(state) => state,
            Err(error) => {
                let fault = Fault::new(error.to_string());
                State::Refused(Box::new((Answer::new(&request), fault)))
            }
        };
        ModelStream::new(state, cancel, self.secrets.clone(), span)
    }

    /// Streams an answer that an extension gives in a provider's place. Needs a tokio runtime with time.
    #[must_use]
    pub fn borrow(&self, request: &ModelRequest, lent: Lent, cancel: CancellationToken) -> ModelStream {
        if let Some(key) = &request.api_key {
            self.secrets.learn(key.expose());
        }
        let span = trace::request(request);
        let state = State::Lending(Box::new(Lending::new(request, lent)));
        ModelStream::new(state, cancel, self.secrets.clone(), span)
    }

    /// Logins with the addresses and the `auth.json` of this client; none without such a file.
    #[must_use]
    pub fn login(&self) -> Option<Login> {
        self.refresher.clone().map(Login::with)
    }

    /// The token of a login, renewed if it has ended. `known` is what the caller has.
    ///
    /// # Errors
    /// When it cannot be renewed.
    pub async fn fresh_token(&self, provider: &str, known: &Secret) -> Result<Secret, LoginError> {
        match &self.refresher {
            Some(refresher) => Ok(refresher.token(provider, known).await?.access),
            None => Ok(known.clone()),
        }
    }

    /// Waits until refreshes of logins that are under way are stored, and lets no other begin. To be called before the process
    /// ends, which would lose their tokens. Returns at once if there are none, else after [`auth::login::limits::HTTP`] at most.
    /// Needs a tokio runtime with time.
    pub async fn finish_logins(&self) {
        if let Some(refresher) = &self.refresher {
            refresher.finish().await;
        }
    }

    /// Returns an HTTP client for an address, with the configured proxies and certificates, for requests that do not go
    /// to a model. Redirects stay within one origin.
    ///
    /// # Errors
    /// When the address is invalid, or the system's certificates cannot be read.
    pub async fn http(&self, url: &str) -> Result<reqwest::Client, LlmError> {
        let url = Url::parse(url).map_err(|error| LlmError::Http(error.to_string()))?;
        self.connector.client(&url).await
    }

    /// A new client with the same proxies and certificates. It connects only to what `resolver` gives, or through a proxy.
    ///
    /// # Errors
    /// When the system's certificates cannot be read, or a proxy is not a URL.
    pub async fn resolving(
        &self,
        resolver: Arc<dyn reqwest::dns::Resolve>,
    ) -> Result<reqwest::Client, LlmError> {
        self.connector.resolving(resolver).await
    }

    /// A new client for pages of the web, with the system's certificates. It connects only to what `resolver` gives, follows no redirect
    /// and uses no proxy.
    ///
    /// # Errors
    /// When the system's certificates cannot be read.
    pub async fn direct(
        &self,
        resolver: Arc<dyn reqwest::dns::Resolve>,
    ) -> Result<reqwest::Client, LlmError> {
        self.connector.direct_with(resolver).await
    }

    /// Posts something that is no request to a model, with the same proxies and certificates; gives status and body. Needs a
    /// tokio runtime, always the same one.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn post(&self, url: &str, headers: HeaderMap, body: Bytes) -> Result<(u16, Bytes), LlmError> {
        let failed = |error: reqwest::Error| LlmError::Http(error.without_url().to_string());
        let url = Url::parse(url).map_err(|error| LlmError::Http(error.to_string()))?;
        let client = self.connector.client(&url).await?;
        let sent = client.post(url).headers(headers).body(body).send().await;
        let mut response = sent.map_err(failed)?;
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(failed)? {
            if body.len() + piece.len() > MAX_ERROR_BODY_BYTES {
                break;
            }
            body.extend_from_slice(&piece);
        }
        Ok((response.status().as_u16(), body.into()))
    }

    fn start(&self, request: &Arc<ModelRequest>, span: &Span) -> Result<State, LlmError> {
        if request.model.api == crate::offline::API {
            return Ok(State::Playing(Box::new(self.offline.play(request)?)));
        }
        let api = &request.model.api;
        let family = Family::of(api).ok_or_else(|| LlmError::UnknownApi(api.clone()))?;
        if let Some((_, name)) = request.model.base_url.split_once('{')
            && let Some((name, _)) = name.split_once('}')
            && !family.fills(name)
        {
            let provider = request.model.provider.clone();
            return Err(LlmError::Placeholder {
                name: name.to_owned(),
                provider,
            });
        }
        let access = match self.tape {
            Tape::Replay(_) => Access::Ready,
            _ => Access::of(request, &self.caches),
        };
        let access = Arc::new(access);
        let connector = Arc::clone(&self.connector);
        let patience = Patience {
            retries: request.provider_retries,
            longest_wait: request.max_retry_delay,
            response: request.timeouts.response,
        };
        let idle = request.timeouts.idle;
        let line = Line::new(connector, self.tape.clone(), self.secrets.clone(), request);
        let line = Arc::new(line);
        let (rewrite, change) = (
            request.hooks.rewrite.clone(),
            request.hooks.change_headers.clone(),
        );
        let thread = ThreadSender::of(request).map(Arc::new);
        let post = move |mut http: HttpRequest| {
            let (line, access, thread) = (Arc::clone(&line), Arc::clone(&access), thread.clone());
            let (rewrite, change) = (rewrite.clone(), change.clone());
            async move {
                if let Some(change) = change {
                    http.headers = change.apply(&http.headers).await;
                }
                if let Some(rewrite) = rewrite {
                    http.body = rewrite.apply(http.body).await;
                }
                let send = |http| send(&line, family, http, &access, patience);
                match thread.filter(|_| family == Family::Anthropic) {
                    Some(thread) => thread.send(http, send).await,
                    None => send(http).await,
                }
            }
        };
        let head = self.head(request, family, post, span)?;
        Ok(State::Waiting(Box::new(Waiting {
            head,
            parser: family.parser(request, &self.numbers),
            framing: family.framing(),
            idle,
        })))
    }

    /// The response to a request that `post` sends. A login is sent again with a new token, and strict tools that are refused as plain
    /// ones.
    fn head<F>(
        &self,
        request: &Arc<ModelRequest>,
        family: Family,
        post: impl Fn(HttpRequest) -> F + Clone + Send + 'static,
        span: &Span,
    ) -> Result<Head, LlmError>
    where
        F: Future<Output = Result<reqwest::Response, Fault>> + Send + 'static,
    {
        let strict = strict_refusal::has_strict(request).then(|| Arc::clone(request));
        let refusals = self.strict_refusals.clone();
        let head: Head = match &self.refresher {
            Some(refresher) if request.is_login => {
                let refresher = Arc::clone(refresher);
                let first = ask(
                    Arc::clone(&refresher),
                    family,
                    ModelRequest::clone(request),
                    post.clone(),
                );
                let again = move |plain| ask(refresher, family, plain, post);
                let asking = refusals.respond(strict, first, again);
                Box::pin(asking.instrument(span.clone()))
            }
            _ => {
                let first = post(family.request(request)?);
                let again = move |plain: ModelRequest| async move {
                    let http = family.request(&plain);
                    let http = http.map_err(|error| Fault::new(error.to_string()))?;
                    post(http).await
                };
                let asking = refusals.respond(strict, first, again);
                Box::pin(asking.instrument(span.clone()))
            }
        };
        Ok(head)
    }
}
