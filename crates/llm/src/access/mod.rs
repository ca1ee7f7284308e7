//! Credentials of a request other than its key: signatures and tokens that are made from ambient credentials, just
//! before it is sent. `bedrock` and `google` find their credentials; shared code is here.

pub(crate) mod cache;
pub(crate) mod fetch;

use std::sync::Arc;

use reqwest::header::HeaderMap;
use tokio::time::timeout;

use crate::answer::Fault;
use crate::bedrock;
use crate::google::{self, adc};
use crate::http::{Connector, HttpRequest};
use crate::limits::CREDENTIALS_TIMEOUT;
use crate::request::ModelRequest;
use cache::Cache;

/// Credentials of all providers that were found so far; shared by the streams of a client, empty until one needs it.
#[derive(Debug, Default)]
pub(crate) struct Vault {
    /// AWS keys.
    pub(crate) aws: Cache<bedrock::credentials::Keys>,
    /// Google access tokens.
    pub(crate) google: Cache<adc::Token>,
}

/// How a request gets in.
#[derive(Debug)]
pub(crate) enum Access {
    /// As it is: its key, if any, is among the headers.
    Ready,
    /// With a signature or a bearer token of AWS.
    Aws(Box<bedrock::Access>, Arc<Vault>),
    /// With an access token of Google.
    Google(Box<adc::Access>, Arc<Vault>),
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
    pub(crate) fn of(request: &ModelRequest, vault: &Arc<Vault>) -> Self {
        match request.model.api.as_str() {
            bedrock::API => Self::Aws(Box::new(bedrock::Access::of(request)), Arc::clone(vault)),
            google::vertex::API if google::vertex::key(request).is_none() => {
                Self::Google(Box::new(adc::Access::of(request)), Arc::clone(vault))
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
                Self::Aws(access, vault) => access.grant(&vault.aws, connector, request, body).await,
                Self::Google(access, vault) => access.grant(&vault.google, connector, request).await,
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
            Self::Aws(access, vault) => vault.aws.forget(&access.cache_key()),
            Self::Google(access, vault) => vault.google.forget(&access.cache_key()),
        }
    }
}
