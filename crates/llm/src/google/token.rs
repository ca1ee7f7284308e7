//! The access token of a request to Vertex. How it is found is in `auth::cloud::google`.

use auth::Environment;
use auth::cloud::google::{self, Token};
use auth::cloud::{CredentialCache, Key};
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};

use crate::access::Granted;
use crate::answer::Fault;
use crate::http::{Connector, HttpRequest};
use crate::request::ModelRequest;

/// The header that names whose quota a user's request counts against.
const QUOTA_PROJECT: HeaderName = HeaderName::from_static("x-goog-user-project");

/// What one request needs to get in.
#[derive(Debug)]
pub(crate) struct Access {
    environment: Environment,
}

impl Access {
    /// What a request needs. Does no IO.
    pub(crate) fn of(request: &ModelRequest) -> Self {
        Self {
            environment: request.environment.clone(),
        }
    }

    /// What the token depends on.
    pub(crate) fn cache_key(&self) -> Key {
        google::cache_key(&self.environment)
    }

    /// The headers of one attempt.
    pub(crate) async fn grant(
        &self,
        cache: &CredentialCache<Token>,
        connector: &Connector,
        request: &HttpRequest,
    ) -> Result<Granted, Fault> {
        let load = google::load(&self.environment, connector);
        let token = cache
            .get(&self.cache_key(), load)
            .await
            .map_err(|why| Fault::new(format!("Could not load Google Cloud credentials: {why}")))?;
        let mut headers = request.headers.clone();
        let unsendable = |_| Fault::new("The Google Cloud token has characters that cannot be sent");
        let bearer = format!("Bearer {}", token.access.expose());
        let mut bearer = HeaderValue::from_str(&bearer).map_err(unsendable)?;
        bearer.set_sensitive(true);
        headers.insert(AUTHORIZATION, bearer);
        if let Some(project) = &token.quota_project
            && !headers.contains_key(QUOTA_PROJECT)
        {
            let project = HeaderValue::from_str(project).map_err(unsendable)?;
            headers.insert(QUOTA_PROJECT, project);
        }
        Ok(Granted {
            url: request.url.clone(),
            headers,
        })
    }
}
