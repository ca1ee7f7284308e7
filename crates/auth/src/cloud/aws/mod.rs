//! Keys that sign a request: the chain of AWS's own tools (variables, profile, web identity, container, instance). Profiles
//! are in `profile` with their files in `files`; servers that give keys are in `servers`. `cloud::cache` keeps the result.

mod files;
mod profile;
mod servers;
mod sign;

use std::time::SystemTime;

use crate::cloud::Key;
use crate::http::HttpClients;
use crate::{Environment, Secret, Secrets};

pub use files::Files;
pub use sign::{Job, sign};

/// A set of keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keys {
    /// Access key id.
    pub id: Secret,
    /// Secret access key.
    pub secret: Secret,
    /// Session token of temporary keys.
    pub token: Option<Secret>,
}

impl Keys {
    /// Keeps them out of texts from now on, before something is signed with them.
    pub fn learn(&self, secrets: &Secrets) {
        for secret in [Some(&self.id), Some(&self.secret), self.token.as_ref()]
            .into_iter()
            .flatten()
        {
            secrets.learn(secret.expose());
        }
    }
}

/// Keys, and when they run out if they do.
pub type Found = (Keys, Option<SystemTime>);

/// Everything that finding keys needs.
#[derive(Debug, Clone, Copy)]
struct Search<'a> {
    environment: &'a Environment,
    connector: &'a dyn HttpClients,
    /// Region of servers that are asked when nothing names another.
    region: &'a str,
}

/// The settings that decide which keys are found.
const SETTINGS: [&str; 22] = [
    "AWS_BEDROCK_SKIP_AUTH",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_PROFILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_CONFIG_FILE",
    "AWS_ROLE_ARN",
    "AWS_ROLE_SESSION_NAME",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    "AWS_EC2_METADATA_DISABLED",
    "AWS_EC2_METADATA_SERVICE_ENDPOINT",
    "AWS_ENDPOINT_URL_STS",
    "AWS_ENDPOINT_URL_SSO",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "HOME",
    "USERPROFILE",
];

/// What keys found in this environment depend on.
#[must_use]
pub fn cache_key(environment: &Environment) -> Key {
    SETTINGS.iter().map(|name| environment.value(name)).collect()
}

/// Finds keys, and says when they run out if they do. May read files and ask servers, each bounded in time.
///
/// # Errors
/// Why there are none.
pub async fn load(
    environment: &Environment,
    connector: &dyn HttpClients,
    region: &str,
) -> Result<Found, String> {
    let search = Search {
        environment,
        connector,
        region,
    };
    search.chain().await
}

impl Search<'_> {
    /// Tries one source after the other. A configured source that fails ends the search: the next source could have the
    /// keys of another account. The search goes on only past a profile that is not configured.
    async fn chain(self) -> Result<Found, String> {
        let environment = self.environment;
        if environment.is_on("AWS_BEDROCK_SKIP_AUTH") {
            return Ok((plain("dummy-access-key", "dummy-secret-key", None), None));
        }
        // A profile that was chosen for this provider wins over keys that happen to be around.
        if !environment.is_own("AWS_PROFILE")
            && let Some(keys) = self.variables()
        {
            return Ok((keys, None));
        }
        if let Some(found) = self.profile().await? {
            return Ok(found);
        }
        if let Some(file) = environment.value("AWS_WEB_IDENTITY_TOKEN_FILE") {
            let role = environment.value("AWS_ROLE_ARN");
            let role = role.ok_or("AWS_WEB_IDENTITY_TOKEN_FILE is set, but AWS_ROLE_ARN is not")?;
            let name = environment.value("AWS_ROLE_SESSION_NAME");
            return self.web_identity(&file, &role, name.as_deref()).await;
        }
        if let Some(found) = self.container().await? {
            return Ok(found);
        }
        if let Some(found) = self.instance().await {
            return Ok(found);
        }
        Err(match environment.value("AWS_PROFILE") {
            Some(profile) => format!("profile {profile:?} was not found"),
            None => "there are none in variables, files, container or instance".to_owned(),
        })
    }

    /// Keys in variables.
    fn variables(self) -> Option<Keys> {
        let value = |name| self.environment.value(name);
        let (id, secret) = (value("AWS_ACCESS_KEY_ID")?, value("AWS_SECRET_ACCESS_KEY")?);
        Some(plain(&id, &secret, value("AWS_SESSION_TOKEN").as_deref()))
    }
}

/// Keys from their texts.
fn plain(id: &str, secret: &str, token: Option<&str>) -> Keys {
    Keys {
        id: Secret::new(id),
        secret: Secret::new(secret),
        token: token.filter(|token| !token.is_empty()).map(Secret::new),
    }
}

/// A time as AWS writes it; a time that cannot be read counts as none.
fn time(text: &str) -> Option<SystemTime> {
    let stamp: jiff::Timestamp = text.trim().parse().ok()?;
    Some(stamp.into())
}
