//! Google's application default credentials: a file of a service account or a user, else the machine's own account. Forms
//! of files are in `file`, signed claims in `jwt`; keeping tokens is `cloud::cache`'s work.

mod file;
mod jwt;

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use serde::Deserialize;

use crate::cloud::Key;
use crate::cloud::fetch::{Ask, aside, fetch, read_small};
use crate::http::HttpClients;
use crate::{Environment, Secret};

/// What tokens are asked for.
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";

/// Where the machine's account is asked for.
const METADATA: &str = "metadata.google.internal";

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
pub struct Token {
    /// Sent with requests.
    pub access: Secret,
    /// Whose quota the requests count against, if that is not the token's own.
    pub quota_project: Option<String>,
}

/// A token, and when it runs out.
pub type Found = (Token, Option<SystemTime>);

/// What the token found in this environment depends on.
#[must_use]
pub fn cache_key(environment: &Environment) -> Key {
    SETTINGS.iter().map(|name| environment.value(name)).collect()
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

/// Finds a token, and says when it runs out: by the file that a variable names, by the file that Google's tool leaves in the home folder, from the
/// machine.
///
/// # Errors
/// Why there is none.
pub async fn load(environment: &Environment, connector: &dyn HttpClients) -> Result<Found, String> {
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
