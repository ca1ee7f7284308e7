//! Amazon Bedrock's ConverseStream (providers.md 8): requests in `request`, `messages` and `claude`, where they go in
//! `region`, their signature in `auth::cloud::aws`, answers in `frames` and `stream`.

mod claude;
pub(crate) mod frames;
mod messages;
mod region;
pub(crate) mod request;
pub(crate) mod stream;

use std::time::SystemTime;

use auth::cloud::aws::{self, Keys};
use auth::cloud::{CredentialCache, Key};
use auth::text::without_markup;
use auth::{Environment, HttpClients as _};
use reqwest::header::{HeaderName, HeaderValue};
use serde_json::Value;

use crate::access::Granted;
use crate::answer::Fault;
use crate::http::{Connector, HttpRequest, join_url};
use crate::request::ModelRequest;
use region::Target;

/// The API family.
pub(crate) const API: &str = "bedrock-converse-stream";

/// The service's name in signatures.
const SERVICE: &str = "bedrock";

/// What one request needs to get in.
#[derive(Debug)]
pub(crate) struct Access {
    environment: Environment,
    target: Target,
    /// Path of the request, below the endpoint.
    path: String,
    /// A bearer token is among the headers already.
    has_bearer: bool,
}

impl Access {
    /// What a request needs. Does no IO.
    pub(crate) fn of(request: &ModelRequest) -> Self {
        Self {
            environment: request.environment.clone(),
            target: Target::of(request),
            path: request::path(&request.model.id),
            has_bearer: request::bearer(request).is_some(),
        }
    }

    /// Some endpoints do not speak HTTP/2.
    pub(crate) fn wants_http1(&self) -> bool {
        self.environment.is_on("AWS_BEDROCK_FORCE_HTTP1")
    }

    /// What the keys depend on.
    pub(crate) fn cache_key(&self) -> Key {
        aws::cache_key(&self.environment)
    }

    /// Address and signature of one attempt.
    pub(crate) async fn grant(
        &self,
        cache: &CredentialCache<Keys>,
        connector: &Connector,
        request: &HttpRequest,
        body: &[u8],
    ) -> Result<Granted, Fault> {
        let region = self.target.region(&self.environment).await;
        let region = region.map_err(|why| Fault::new(format!("Could not find the AWS region: {why}")))?;
        let url = join_url(&self.target.endpoint(&region), &self.path);
        let mut headers = request.headers.clone();
        if !self.has_bearer {
            let load = aws::load(&self.environment, connector, &region);
            let keys = cache
                .get(&self.cache_key(), load)
                .await
                .map_err(|why| Fault::new(format!("Could not load AWS credentials: {why}")))?;
            keys.learn(connector.secrets());
            let job = aws::Job {
                method: "POST",
                url: &url,
                headers: &[("content-type", "application/json")],
                body,
                service: SERVICE,
                region: &region,
                time: SystemTime::now(),
            };
            for (name, value) in aws::sign(&job, &keys).map_err(Fault::new)? {
                let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| unsendable())?;
                let mut value = HeaderValue::from_str(&value).map_err(|_| unsendable())?;
                value.set_sensitive(true);
                headers.insert(name, value);
            }
        }
        Ok(Granted { url, headers })
    }
}

/// Keys with characters that no header takes.
fn unsendable() -> Fault {
    Fault::new("The AWS credentials have characters that cannot be sent")
}

/// What the original agent calls the exceptions it knows; clients and the judgement of errors match on these.
const PREFIXES: [(&str, &str); 5] = [
    ("internalserverexception", "Internal server error"),
    ("modelstreamerrorexception", "Model stream error"),
    ("validationexception", "Validation error"),
    ("throttlingexception", "Throttling error"),
    ("serviceunavailableexception", "Service unavailable"),
];

/// Start of the part of a signature error that repeats the signed request, security token included.
const SIGNED_TEXT: &str = "The Canonical String for this request should have been";

/// The text for an exception, from a response or from a stream.
fn exception_text(kind: &str, message: &str) -> String {
    let message = message.split(SIGNED_TEXT).next().unwrap_or_default().trim();
    let known = PREFIXES
        .iter()
        .find(|(name, _)| kind.eq_ignore_ascii_case(name))
        .map_or(kind, |(_, prefix)| prefix);
    if known.is_empty() {
        return message.to_owned();
    }
    format!("{known}: {message}")
}

/// The text of an HTTP error. `kind` is the exception's name as the response's header has it, perhaps with an address
/// behind a colon; without it the body may name it.
pub(crate) fn error_text(status: u16, kind: &str, body: &str) -> String {
    if body.is_empty() && kind.is_empty() {
        return format!("{status} status code (no body)");
    }
    let json: Value = serde_json::from_str(body).unwrap_or_default();
    let field = |name: &str| json.get(name).and_then(Value::as_str).unwrap_or_default();
    let kind = if kind.is_empty() { field("__type") } else { kind };
    let kind = kind.split(':').next().unwrap_or_default();
    let kind = kind.rsplit('#').next().unwrap_or_default();
    let message = match [field("message"), field("Message")] {
        ["", ""] => without_markup(body),
        ["", message] | [message, _] => message.to_owned(),
    };
    if kind.is_empty() {
        format!(
            "{status} {}",
            message.split(SIGNED_TEXT).next().unwrap_or_default()
        )
    } else {
        exception_text(kind, &message)
    }
}
