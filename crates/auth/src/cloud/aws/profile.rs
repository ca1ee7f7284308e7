//! Keys of a profile: those in the files, a role taken with another profile's keys, a login (SSO), a web identity, or a
//! command that prints them. The servers behind some of these are in `servers`.

use std::path::{Path, PathBuf};
use std::pin::Pin;

use serde::Deserialize;

use super::files::{Files, Section};
use super::servers::JsonKeys;
use super::{Found, Search, plain, time};
use crate::cloud::fetch::{aside, read_small};
use crate::limits::MAX_PROFILE_CHAIN;

/// A search that may call itself.
type Finding<'a> = Pin<Box<dyn Future<Output = Result<Found, String>> + Send + 'a>>;

impl<'a> Search<'a> {
    /// Keys of the profile in use; none when it has no section or says nothing of keys.
    pub(super) async fn profile(self) -> Result<Option<Found>, String> {
        let files = Files::read(self.environment).await?;
        match files.profile(&files.profile) {
            Some(section) if names_keys(section) => {
                self.of_profile(&files, &files.profile, 0).await.map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Keys of a profile; `depth` counts the profiles that led here.
    fn of_profile<'b>(self, files: &'b Files, name: &'b str, depth: usize) -> Finding<'b>
    where
        'a: 'b,
    {
        Box::pin(async move {
            let found = self.of_section(files, name, depth).await;
            found.map_err(|why| format!("profile {name:?}: {why}"))
        })
    }

    async fn of_section(self, files: &Files, name: &str, depth: usize) -> Result<Found, String> {
        if depth >= MAX_PROFILE_CHAIN {
            return Err("too many profiles refer to each other".to_owned());
        }
        let section = files.profile(name).ok_or("it does not exist")?;
        let get = |field: &str| section.get(field).map(String::as_str);
        let own = get("aws_access_key_id").zip(get("aws_secret_access_key"));
        let own = own.map(|(id, secret)| (plain(id, secret, get("aws_session_token")), None));
        // A profile may take a role with its own keys; otherwise it would refer to itself for ever.
        let to_itself = get("source_profile") == Some(name);
        if let (Some(role), false) = (get("role_arn"), depth > 0 && to_itself) {
            let session = get("role_session_name");
            if let Some(file) = get("web_identity_token_file") {
                return self.web_identity(file, role, session).await;
            }
            let source = match (get("source_profile"), get("credential_source")) {
                (Some(_), _) if to_itself => own.ok_or("source_profile has no keys")?,
                (Some(source), _) => self.of_profile(files, source, depth + 1).await?,
                (None, Some(source)) => self.of_source(source).await?,
                (None, None) => return Err("role_arn needs source_profile".to_owned()),
            };
            if get("mfa_serial").is_some() {
                return Err("roles that ask for a one-time code are not supported".to_owned());
            }
            return self.assume(role, session, get("external_id"), &source.0).await;
        }
        if let Some(own) = own {
            return Ok(own);
        }
        if get("sso_account_id").is_some() {
            return self.login(files, section).await;
        }
        match get("credential_process") {
            Some(command) => self.printed(command).await,
            None => Err("it has no keys".to_owned()),
        }
    }

    /// `credential_source`: where the keys for taking a role come from.
    async fn of_source(self, source: &str) -> Result<Found, String> {
        let found = match source {
            "Environment" => self.variables().map(|keys| (keys, None)),
            "EcsContainer" => self.container().await?,
            "Ec2InstanceMetadata" => self.instance().await,
            _ => None,
        };
        found.ok_or_else(|| format!("credential_source {source} gives no keys"))
    }

    /// Keys for a role that a login may take. The login itself is made with AWS's own tool.
    async fn login(self, files: &Files, section: &Section) -> Result<Found, String> {
        let session = section.get("sso_session");
        let shared = session.and_then(|name| files.session(name));
        let get = |field: &str| {
            let own = section
                .get(field)
                .or_else(|| shared.and_then(|shared| shared.get(field)));
            own.ok_or_else(|| format!("{field} is missing"))
        };
        let start = get("sso_start_url")?;
        let path = files
            .home
            .as_deref()
            .map(|home| token_file(home, session.unwrap_or(start)))
            .ok_or("there is no home folder")?;
        let text = aside(move || read_small(&path)).await?;
        let expired = || "the login has run out; run: aws sso login".to_owned();
        let token: Token = serde_json::from_str(&text.unwrap_or_default()).map_err(|_| expired())?;
        if time(&token.expires_at).is_none_or(|end| end <= std::time::SystemTime::now()) {
            return Err(expired());
        }
        let (account, role) = (get("sso_account_id")?, get("sso_role_name")?);
        self.role_of_login(get("sso_region")?, account, role, &token.access_token)
            .await
    }

    /// Keys that a command prints.
    async fn printed(self, command: &str) -> Result<Found, String> {
        let (environment, command) = (self.environment.clone(), command.to_owned());
        let printed = aside(move || {
            let printed = environment.run(&command);
            printed.ok_or_else(|| "credential_process failed".to_owned())
        });
        let keys: Result<JsonKeys, _> = serde_json::from_str(&printed.await?);
        let keys = keys.map_err(|_| "credential_process printed no keys".to_owned())?;
        Ok(keys.found())
    }
}

/// Returns true if a profile names a source of keys. After a profile that only sets a region the search goes on.
fn names_keys(section: &Section) -> bool {
    let fields = [
        "aws_access_key_id",
        "role_arn",
        "sso_account_id",
        "credential_process",
    ];
    fields.iter().any(|field| section.contains_key(*field))
}

/// The token that a login left behind.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Token {
    access_token: String,
    expires_at: String,
}

/// The file's name is the SHA-1 of the login's name, or of its address where it has none.
fn token_file(home: &Path, login: &str) -> PathBuf {
    let digest = ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, login.as_bytes());
    let name: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    home.join(".aws/sso/cache").join(format!("{name}.json"))
}
