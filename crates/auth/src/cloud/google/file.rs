//! The forms of credential files, and the exchange of each for a token. Where the files are is decided in `mod`.

use std::pin::Pin;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Found, SCOPE, Token, TokenReply, jwt};
use crate::Secret;
use crate::cloud::fetch::{Ask, fetch, form};
use crate::http::HttpClients;

/// Where tokens are asked for when the file does not say.
const TOKEN_SERVER: &str = "https://oauth2.googleapis.com/token";

/// A file's content.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Credentials {
    ServiceAccount(jwt::Account),
    AuthorizedUser(User),
    ImpersonatedServiceAccount(Impersonated),
    #[serde(other)]
    Other,
}

/// A person who logged in.
#[derive(Deserialize)]
struct User {
    client_id: String,
    client_secret: String,
    refresh_token: String,
    #[serde(default)]
    token_uri: Option<String>,
    #[serde(default)]
    quota_project_id: Option<String>,
}

/// Credentials that impersonate a service account.
#[derive(Deserialize)]
struct Impersonated {
    service_account_impersonation_url: String,
    source_credentials: Value,
    #[serde(default)]
    delegates: Vec<String>,
    #[serde(default)]
    quota_project_id: Option<String>,
}

/// What the server of impersonations answers.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ImpersonatedReply {
    access_token: String,
    expire_time: String,
}

/// Gets a token for a file's content.
pub(super) async fn token(
    text: &str,
    quota: Option<String>,
    connector: &dyn HttpClients,
) -> Result<Found, String> {
    let json: Value = serde_json::from_str(text).map_err(|_| strange())?;
    exchange(json, quota, connector, true).await
}

/// The parser's own words could quote the file.
fn strange() -> String {
    "the credentials file has an unknown form".to_owned()
}

/// A step that may lead to one more.
type Step<'a> = Pin<Box<dyn Future<Output = Result<Found, String>> + Send + 'a>>;

fn exchange(
    json: Value,
    quota: Option<String>,
    connector: &dyn HttpClients,
    may_impersonate: bool,
) -> Step<'_> {
    Box::pin(async move {
        let kind = json.get("type").and_then(Value::as_str).map(str::to_owned);
        match Credentials::deserialize(json).map_err(|_| strange())? {
            Credentials::ServiceAccount(account) => {
                let assertion =
                    jwt::assertion(&account, account.token_uri.as_deref().unwrap_or(TOKEN_SERVER))?;
                let fields = [
                    ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"),
                    ("assertion", assertion.as_str()),
                ];
                let reply = ask_token(connector, account.token_uri.as_deref(), &fields).await?;
                Ok(reply.found(quota))
            }
            Credentials::AuthorizedUser(user) => {
                let fields = [
                    ("grant_type", "refresh_token"),
                    ("client_id", user.client_id.as_str()),
                    ("client_secret", user.client_secret.as_str()),
                    ("refresh_token", user.refresh_token.as_str()),
                ];
                let reply = ask_token(connector, user.token_uri.as_deref(), &fields).await?;
                Ok(reply.found(quota.or(user.quota_project_id)))
            }
            Credentials::ImpersonatedServiceAccount(own) if may_impersonate => {
                impersonate(own, quota, connector).await
            }
            Credentials::ImpersonatedServiceAccount(_) | Credentials::Other => Err(format!(
                "credentials of type {} are not supported",
                kind.unwrap_or_default()
            )),
        }
    })
}

async fn ask_token(
    connector: &dyn HttpClients,
    server: Option<&str>,
    fields: &[(&str, &str)],
) -> Result<TokenReply, String> {
    let ask = Ask {
        url: server.unwrap_or(TOKEN_SERVER),
        headers: vec![("content-type", "application/x-www-form-urlencoded".to_owned())],
        body: Some(form(fields)),
        ..Ask::default()
    };
    fetch(connector, ask).await?.json("The token server")
}

async fn impersonate(
    own: Impersonated,
    quota: Option<String>,
    connector: &dyn HttpClients,
) -> Result<Found, String> {
    let (source, _) = exchange(own.source_credentials, None, connector, false).await?;
    let body = json!({"scope": [SCOPE], "lifetime": "3600s", "delegates": own.delegates});
    let ask = Ask {
        url: &own.service_account_impersonation_url,
        headers: vec![
            ("content-type", "application/json".to_owned()),
            ("authorization", format!("Bearer {}", source.access.expose())),
        ],
        body: Some(body.to_string()),
        ..Ask::default()
    };
    let reply: ImpersonatedReply = fetch(connector, ask)
        .await?
        .json("The server of impersonations")?;
    let end: Option<jiff::Timestamp> = reply.expire_time.parse().ok();
    let token = Token {
        access: Secret::from(reply.access_token),
        quota_project: quota.or(own.quota_project_id),
    };
    Ok((token, end.map(Into::into)))
}
