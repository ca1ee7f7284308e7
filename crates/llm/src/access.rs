//! Credentials of a request other than its key: signatures and tokens that are made from ambient credentials, just
//! before it is sent. `bedrock` and `google` find their credentials; shared code is here.

use std::sync::Arc;

use auth::cloud::CredentialCache;
use auth::cloud::aws::Keys;
use auth::cloud::google::Token;
use reqwest::header::HeaderMap;
use tokio::time::timeout;

use crate::answer::Fault;
use crate::bedrock;
use crate::google::{self, token};
use crate::http::{Connector, HttpRequest};
use crate::limits::CREDENTIALS_TIMEOUT;
use crate::request::ModelRequest;

/// Credentials of all providers that were found so far; shared by the streams of a client, empty until one needs it.
#[derive(Debug, Default)]
pub(crate) struct CredentialCaches {
    /// AWS keys.
    pub(crate) aws: CredentialCache<Keys>,
    /// Google access tokens.
    pub(crate) google: CredentialCache<Token>,
}

/// How a request gets in.
#[derive(Debug)]
pub(crate) enum Access {
    /// As it is: its key, if any, is among the headers.
    Ready,
    /// With a signature or a bearer token of AWS.
    Aws(Box<bedrock::Access>, Arc<CredentialCaches>),
    /// With an access token of Google.
    Google(Box<token::Access>, Arc<CredentialCaches>),
}

/// Where a request goes and with which headers.
#[derive(Debug)]
pub(crate) struct Granted {
    /// Where to.
    pub(crate) url: String,
    /// All headers.
    pub(crate) headers: HeaderMap,
}

impl Access {
    /// What a request will need. Does no IO.
    pub(crate) fn of(request: &ModelRequest, caches: &Arc<CredentialCaches>) -> Self {
        match request.model.api.as_str() {
            bedrock::API => Self::Aws(Box::new(bedrock::Access::of(request)), Arc::clone(caches)),
            google::vertex::API if google::vertex::key(request).is_none() => {
                Self::Google(Box::new(token::Access::of(request)), Arc::clone(caches))
            }
            _ => Self::Ready,
        }
    }

    /// Returns true if the request must go over HTTP/1.1.
    pub(crate) fn wants_http1(&self) -> bool {
        matches!(self, Self::Aws(access, _) if access.wants_http1())
    }

    /// Completes a request for one attempt. May read files and ask servers, each and all bounded in time; safe to drop.
    pub(crate) async fn grant(
        &self,
        connector: &Connector,
        request: &HttpRequest,
        body: &[u8],
    ) -> Result<Granted, Fault> {
        let found = async {
            match self {
                Self::Ready => Ok(Granted {
                    url: request.url.clone(),
                    headers: request.headers.clone(),
                }),
                Self::Aws(access, caches) => access.grant(&caches.aws, connector, request, body).await,
                Self::Google(access, caches) => access.grant(&caches.google, connector, request).await,
            }
        };
        // Bounds the wait for another stream's search, too.
        timeout(CREDENTIALS_TIMEOUT, found).await.unwrap_or_else(|_| {
            let seconds = CREDENTIALS_TIMEOUT.as_secs();
            Err(Fault::new(format!(
                "Could not load credentials: timed out after {seconds} s"
            )))
        })
    }

    /// The provider refused the request with this status. Credentials it does not take are not used again.
    pub(crate) fn refused(&self, status: u16) {
        if !matches!(status, 401 | 403) {
            return;
        }
        match self {
            Self::Ready => {}
            Self::Aws(access, caches) => caches.aws.forget(&access.cache_key()),
            Self::Google(access, caches) => caches.google.forget(&access.cache_key()),
        }
    }
}
