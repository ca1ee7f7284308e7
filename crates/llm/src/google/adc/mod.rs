//! Google's application default credentials: a file of a service account or a user, else the machine's own account. Forms
//! of files are in `file`, signed claims in `jwt`; keeping tokens is `access::cache`'s work.

mod file;
mod jwt;

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use serde::Deserialize;

use crate::access::Granted;
use crate::access::cache::{Cache, Key};
use crate::access::fetch::{Ask, aside, fetch, read_small};
use crate::answer::Fault;
use crate::http::{Connector, HttpRequest};
use crate::request::ModelRequest;
use crate::{Environment, Secret};

/// What tokens are asked for.
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";

/// Where the machine's account is asked for.
const METADATA: &str = "metadata.google.internal";

/// The header that names whose quota a user's request counts against.
const QUOTA_PROJECT: HeaderName = HeaderName::from_static("x-goog-user-project");

/// The settings that decide whose token is found.
const SETTINGS: [&str; 6] = [
    "GOOGLE_APPLICATION_CREDENTIALS",
    "CLOUDSDK_CONFIG",
    "APPDATA",
    "HOME",
    "GCE_METADATA_HOST",
    "GOOGLE_CLOUD_QUOTA_PROJECT",
];

/// An access token.
#[derive(Debug, Clone)]
pub(crate) struct Token {
    access: Secret,
    quota_project: Option<String>,
}

/// A token, and when it runs out.
type Found = (Token, Option<SystemTime>);

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
        SETTINGS.iter().map(|name| self.environment.value(name)).collect()
    }

    /// The headers of one attempt.
    pub(crate) async fn grant(
        &self,
        cache: &Cache<Token>,
        connector: &Connector,
        request: &HttpRequest,
    ) -> Result<Granted, Fault> {
        let load = load(&self.environment, connector);
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

/// A token server's answer.
#[derive(Deserialize)]
struct TokenReply {
    access_token: String,
    #[serde(default)]
    expires_in: Option<u64>,
}

impl TokenReply {
    fn found(self, quota_project: Option<String>) -> Found {
        let end = self
            .expires_in
            .and_then(|left| SystemTime::now().checked_add(Duration::from_secs(left)));
        let token = Token {
            access: Secret::from(self.access_token),
            quota_project,
        };
        (token, end)
    }
}

/// Finds a token: by the file that a variable names, by the file that Google's tool leaves in the home folder, from the
/// machine.
async fn load(environment: &Environment, connector: &Connector) -> Result<Found, String> {
    let quota = environment.value("GOOGLE_CLOUD_QUOTA_PROJECT");
    if let Some(path) = environment.value("GOOGLE_APPLICATION_CREDENTIALS") {
        let file = PathBuf::from(&path);
        let text = aside(move || read_small(&file)).await?;
        let text = text.ok_or_else(|| format!("{path} does not exist"))?;
        return file::token(&text, quota, connector).await;
    }
    if let Some(path) = usual_file(environment)
        && let Some(text) = aside(move || read_small(&path)).await?
    {
        return file::token(&text, quota, connector).await;
    }
    let host = environment.value("GCE_METADATA_HOST");
    let host = host.as_deref().unwrap_or(METADATA);
    let url = format!("http://{host}/computeMetadata/v1/instance/service-accounts/default/token");
    let ask = Ask {
        url: &url,
        headers: vec![("metadata-flavor", "Google".to_owned())],
        nearby: true,
        ..Ask::default()
    };
    // Most machines are not Google's: what went wrong there says less than what can be done.
    let reply = fetch(connector, ask)
        .await
        .and_then(|reply| reply.json::<TokenReply>("The machine"));
    let reply = reply.map_err(|_| {
        "there is no file and no machine account; run: gcloud auth application-default login".to_owned()
    })?;
    Ok(reply.found(quota))
}

/// Where Google's tool leaves credentials.
fn usual_file(environment: &Environment) -> Option<PathBuf> {
    let folder = environment.value("CLOUDSDK_CONFIG").map(PathBuf::from);
    let folder = folder.or_else(|| {
        let roaming = environment.value("APPDATA").map(PathBuf::from);
        let home = environment.value("HOME").map(PathBuf::from);
        let config = home.map(|home| home.join(".config")).or(roaming)?;
        Some(config.join("gcloud"))
    });
    Some(folder?.join("application_default_credentials.json"))
}
