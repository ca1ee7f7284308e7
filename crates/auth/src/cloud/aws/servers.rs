//! Servers that give temporary keys: STS for roles, the login's portal (SSO), the container's and the instance's metadata.
//! When each is asked is decided in `mod` and `profile`.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use reqwest::Url;
use serde::Deserialize;

use super::sign::{Job, sign};
use super::{Found, Keys, Search, plain, time};
use crate::cloud::fetch::{Ask, aside, fetch, form, percent, read_small, tag};

/// Where metadata of a container lives when only a path is given.
const CONTAINER: &str = "http://169.254.170.2";

/// Where metadata of an instance lives.
const INSTANCE: &str = "http://169.254.169.254";

/// How long a token for the instance's metadata is good, in seconds.
const INSTANCE_TOKEN_SECONDS: &str = "21600";

/// Session name of roles when nothing names another.
const SESSION: &str = "pinion";

/// Keys as container, instance and `credential_process` write them.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct JsonKeys {
    access_key_id: String,
    secret_access_key: String,
    #[serde(alias = "SessionToken")]
    token: Option<String>,
    expiration: Option<String>,
}

impl JsonKeys {
    /// Converts the response to our form.
    pub(super) fn found(self) -> Found {
        let keys = plain(
            &self.access_key_id,
            &self.secret_access_key,
            self.token.as_deref(),
        );
        (keys, self.expiration.as_deref().and_then(time))
    }
}

/// What the portal answers.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RoleReply {
    role_credentials: RoleKeys,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RoleKeys {
    access_key_id: String,
    secret_access_key: String,
    session_token: String,
    /// Milliseconds since 1970.
    expiration: u64,
}

impl Search<'_> {
    /// A role for a web identity, whose token is in a file.
    pub(super) async fn web_identity(
        self,
        file: &str,
        role: &str,
        session: Option<&str>,
    ) -> Result<Found, String> {
        let token = read_text(file).await?;
        let body = form(&[
            ("Action", "AssumeRoleWithWebIdentity"),
            ("Version", "2011-06-15"),
            ("RoleArn", role),
            ("RoleSessionName", session.unwrap_or(SESSION)),
            ("WebIdentityToken", &token),
        ]);
        self.sts(body, None).await
    }

    /// A role, taken with other keys.
    pub(super) async fn assume(
        self,
        role: &str,
        session: Option<&str>,
        external_id: Option<&str>,
        keys: &Keys,
    ) -> Result<Found, String> {
        let mut fields = vec![
            ("Action", "AssumeRole"),
            ("Version", "2011-06-15"),
            ("RoleArn", role),
            ("RoleSessionName", session.unwrap_or(SESSION)),
        ];
        fields.extend(external_id.map(|id| ("ExternalId", id)));
        self.sts(form(&fields), Some(keys)).await
    }

    async fn sts(self, body: String, keys: Option<&Keys>) -> Result<Found, String> {
        const FORM: &str = "application/x-www-form-urlencoded";
        let china = if self.region.starts_with("cn-") { ".cn" } else { "" };
        let own = self.environment.value("AWS_ENDPOINT_URL_STS");
        let standard = || format!("https://sts.{}.amazonaws.com{china}/", self.region);
        let url = own.unwrap_or_else(standard);
        let mut headers = vec![("content-type", FORM.to_owned())];
        if let Some(keys) = keys {
            keys.learn(self.connector.secrets());
            let job = Job {
                method: "POST",
                url: &url,
                headers: &[("content-type", FORM)],
                body: body.as_bytes(),
                service: "sts",
                region: self.region,
                time: SystemTime::now(),
            };
            for (name, value) in sign(&job, keys)? {
                let known = ["authorization", "x-amz-date", "x-amz-security-token"];
                let name = known.into_iter().find(|known| *known == name);
                headers.extend(name.map(|name| (name, value)));
            }
        }
        let ask = Ask {
            url: &url,
            headers,
            body: Some(body),
            ..Ask::default()
        };
        let xml = fetch(self.connector, ask).await?.ok("STS")?;
        let field = |name| tag(&xml, name);
        let found = || {
            let keys = plain(
                field("AccessKeyId")?,
                field("SecretAccessKey")?,
                field("SessionToken"),
            );
            Some((keys, field("Expiration").and_then(time)))
        };
        found().ok_or_else(|| "STS gave an answer of an unknown form".to_owned())
    }

    /// A role of a login.
    pub(super) async fn role_of_login(
        self,
        region: &str,
        account: &str,
        role: &str,
        token: &str,
    ) -> Result<Found, String> {
        let own = self.environment.value("AWS_ENDPOINT_URL_SSO");
        let base = own.unwrap_or_else(|| format!("https://portal.sso.{region}.amazonaws.com"));
        let url = format!(
            "{}/federation/credentials?role_name={}&account_id={}",
            base.trim_end_matches('/'),
            percent(role),
            percent(account)
        );
        let ask = Ask {
            url: &url,
            headers: vec![("x-amz-sso_bearer_token", token.to_owned())],
            ..Ask::default()
        };
        let reply: RoleReply = fetch(self.connector, ask).await?.json("The login's portal")?;
        let role = reply.role_credentials;
        let end = SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(role.expiration));
        let keys = plain(
            &role.access_key_id,
            &role.secret_access_key,
            Some(&role.session_token),
        );
        Ok((keys, end))
    }

    /// Keys of the container we run in; none when it names no server.
    pub(super) async fn container(self) -> Result<Option<Found>, String> {
        let get = |name| self.environment.value(name);
        let relative = get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
        let url = relative.map(|path| format!("{CONTAINER}{path}"));
        let Some(url) = url.or_else(|| get("AWS_CONTAINER_CREDENTIALS_FULL_URI")) else {
            return Ok(None);
        };
        if !may_be_asked(&url) {
            return Err(
                "AWS_CONTAINER_CREDENTIALS_FULL_URI must be https or an address of this machine".to_owned(),
            );
        }
        let token = match get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") {
            Some(file) => Some(read_text(&file).await?),
            None => get("AWS_CONTAINER_AUTHORIZATION_TOKEN"),
        };
        let ask = Ask {
            url: &url,
            headers: token.into_iter().map(|token| ("authorization", token)).collect(),
            nearby: true,
            ..Ask::default()
        };
        let keys: JsonKeys = fetch(self.connector, ask).await?.json("The container")?;
        Ok(Some(keys.found()))
    }

    /// Keys of the instance we run on; none when there is no such server. Most machines are no instances, so what went
    /// wrong says nothing to the user.
    pub(super) async fn instance(self) -> Option<Found> {
        if self.environment.is_on("AWS_EC2_METADATA_DISABLED") {
            return None;
        }
        let own = self.environment.value("AWS_EC2_METADATA_SERVICE_ENDPOINT");
        let base = own.unwrap_or_else(|| INSTANCE.to_owned());
        let base = base.trim_end_matches('/');
        let url = format!("{base}/latest/api/token");
        let ask = Ask {
            url: &url,
            headers: vec![(
                "x-aws-ec2-metadata-token-ttl-seconds",
                INSTANCE_TOKEN_SECONDS.to_owned(),
            )],
            put: true,
            nearby: true,
            ..Ask::default()
        };
        let token = fetch(self.connector, ask).await.ok()?.ok("").ok()?;
        let folder = format!("{base}/latest/meta-data/iam/security-credentials/");
        let roles = self.metadata(&folder, &token).await?;
        let role = roles.lines().next()?.trim();
        let keys = self
            .metadata(&format!("{folder}{}", percent(role)), &token)
            .await?;
        Some(serde_json::from_str::<JsonKeys>(&keys).ok()?.found())
    }

    async fn metadata(self, url: &str, token: &str) -> Option<String> {
        let ask = Ask {
            url,
            headers: vec![("x-aws-ec2-metadata-token", token.to_owned())],
            nearby: true,
            ..Ask::default()
        };
        fetch(self.connector, ask).await.ok()?.ok("").ok()
    }
}

/// A file's text without blanks around it.
async fn read_text(path: &str) -> Result<String, String> {
    let file = PathBuf::from(path);
    let text = aside(move || read_small(&file)).await?;
    let text = text.ok_or_else(|| format!("{path} does not exist"))?;
    Ok(text.trim().to_owned())
}

/// Keys come over plain HTTP only from this machine and from the addresses of AWS's own agents.
fn may_be_asked(url: &str) -> bool {
    let Ok(url) = Url::parse(url) else { return false };
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let agents = ["169.254.170.2", "169.254.170.23", "fd00:ec2::23"];
    let here = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    url.scheme() == "https" || (url.scheme() == "http" && (here || agents.contains(&host)))
}

#[cfg(test)]
mod tests {
    use super::may_be_asked;

    #[test]
    fn plain_http_credentials_only_from_local_addresses() {
        for url in [
            "https://x.example/a",
            "http://127.0.0.1:80/a",
            "http://[::1]/",
            "http://localhost/",
            "http://169.254.170.23/v1/credentials",
            "http://[fd00:ec2::23]/v1",
        ] {
            assert!(may_be_asked(url), "{url}");
        }
        for url in [
            "http://x.example/",
            "http://169.254.1.1/",
            "ftp://127.0.0.1/",
            "nonsense",
        ] {
            assert!(!may_be_asked(url), "{url}");
        }
    }
}
