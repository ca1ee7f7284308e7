//! Short requests to servers that give credentials: bounded in time and size, their answers never quoted in errors beyond
//! their own error message. The callers decide what to request.

use std::time::Duration;

use reqwest::{Method, Url};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::http::HttpClients;
use crate::limits::{CREDENTIAL_TIMEOUT, MAX_CREDENTIAL_BYTES, METADATA_TIMEOUT};
use crate::secrets::percent_decoded;

/// One request.
#[derive(Debug, Default)]
pub(crate) struct Ask<'a> {
    /// Where to.
    pub(crate) url: &'a str,
    /// Headers; values may be secret.
    pub(crate) headers: Vec<(&'static str, String)>,
    /// A body makes it a POST.
    pub(crate) body: Option<String>,
    /// PUT instead of GET.
    pub(crate) put: bool,
    /// To a server of this machine's surroundings: no proxy, little patience.
    pub(crate) nearby: bool,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Reply {
    /// HTTP status.
    pub(crate) status: u16,
    /// The body.
    pub(crate) body: String,
}

impl Reply {
    /// The body of a success.
    pub(crate) fn ok(self, who: &str) -> Result<String, String> {
        if (200..300).contains(&self.status) {
            return Ok(self.body);
        }
        Err(format!("{who} answered {}{}", self.status, said(&self.body)))
    }

    /// The JSON of a success.
    pub(crate) fn json<T: DeserializeOwned>(self, who: &str) -> Result<T, String> {
        let body = self.ok(who)?;
        // The error of the parser could quote the body.
        serde_json::from_str(&body).map_err(|_| format!("{who} gave an answer of an unknown form"))
    }
}

/// What a server says of its refusal, in the forms that AWS and Google use.
fn said(body: &str) -> String {
    let json: serde_json::Value = serde_json::from_str(body).unwrap_or_default();
    let field = |name: &str| json.get(name).and_then(serde_json::Value::as_str);
    let text = ["error_description", "message", "Message", "error"]
        .into_iter()
        .find_map(field)
        .map(str::to_owned)
        .or_else(|| tag(body, "Message").map(str::to_owned));
    text.map(|text| format!(": {}", crate::text::cut(&text, 300)))
        .unwrap_or_default()
}

/// The text of the first XML element of a name.
pub(crate) fn tag<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    rest.split_once(&format!("</{name}>"))
        .map(|(text, _)| text.trim())
}

/// A text as it may stand in a path or a form: everything but letters, digits and `-_.~` in percent form.
#[must_use]
pub fn percent(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// The body of a form.
pub(crate) fn form(fields: &[(&str, &str)]) -> String {
    let pairs = fields
        .iter()
        .map(|(name, value)| format!("{name}={}", percent(value)));
    pairs.collect::<Vec<_>>().join("&")
}

/// A small text file; none when it does not exist. Blocks.
pub(crate) fn read_small(path: &std::path::Path) -> Result<Option<String>, String> {
    let shown = path.display();
    match files::Root::user().read(path, MAX_CREDENTIAL_BYTES as u64) {
        Ok(text) if text.cut => Err(format!("{shown} is too large")),
        Ok(text) => Ok(Some(text.text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{shown}: {error}")),
    }
}

/// Runs blocking work on a thread outside the runtime.
pub(crate) async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(error.to_string()))
}

/// Fields of a form that hold a credential.
const SECRET_FIELDS: [&str; 4] = ["assertion", "client_secret", "refresh_token", "WebIdentityToken"];

/// Keeps what a request carries out of texts from now on: a server may repeat it in a refusal.
fn learn(connector: &dyn HttpClients, ask: &Ask<'_>) {
    let secrets = connector.secrets();
    for (name, value) in &ask.headers {
        secrets.learn_header(name, value);
    }
    let pairs = ask.body.iter().flat_map(|body| body.split('&'));
    for (_, value) in pairs
        .filter_map(|pair| pair.split_once('='))
        .filter(|(name, _)| SECRET_FIELDS.contains(name))
    {
        secrets.learn(value);
        secrets.learn(&percent_decoded(value));
    }
}

/// Sends a request and reads the reply.
pub(crate) async fn fetch(connector: &dyn HttpClients, ask: Ask<'_>) -> Result<Reply, String> {
    learn(connector, &ask);
    let wait = if ask.nearby {
        METADATA_TIMEOUT
    } else {
        CREDENTIAL_TIMEOUT
    };
    let url = Url::parse(ask.url).map_err(|_| "the address is not valid".to_owned())?;
    let host = url.host_str().unwrap_or_default().to_owned();
    timeout(wait, exchange(connector, url, ask))
        .await
        .unwrap_or_else(|_| Err(format!("timed out after {} s", seconds(wait))))
        .map_err(|error| format!("{host}: {error}"))
}

fn seconds(wait: Duration) -> f64 {
    wait.as_secs_f64()
}

async fn exchange(connector: &dyn HttpClients, url: Url, ask: Ask<'_>) -> Result<Reply, String> {
    let client = if ask.nearby && url.scheme() == "http" {
        connector.direct()
    } else {
        connector.client(&url).await
    };
    let client = client?;
    let method = match (&ask.body, ask.put) {
        (_, true) => Method::PUT,
        (Some(_), _) => Method::POST,
        (None, false) => Method::GET,
    };
    let mut request = client.request(method, url);
    for (name, value) in ask.headers {
        request = request.header(name, value);
    }
    request = request.body(ask.body.unwrap_or_default());
    let mut response = request.send().await.map_err(|error| {
        let reason = if error.is_connect() {
            "cannot be reached"
        } else {
            "the request failed"
        };
        reason.to_owned()
    })?;
    let status = response.status().as_u16();
    let mut body = Vec::new();
    while let Some(piece) = response
        .chunk()
        .await
        .map_err(|_| "the answer broke off".to_owned())?
    {
        body.extend_from_slice(&piece);
        if body.len() > MAX_CREDENTIAL_BYTES {
            return Err("the answer is too large".to_owned());
        }
    }
    let mut body = String::from_utf8(body).map_err(|_| "the answer is no text".to_owned())?;
    if !(200..300).contains(&status) {
        // Before anything is cut off: half a credential would not be recognised.
        body = connector.secrets().redact(body);
    }
    Ok(Reply { status, body })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusal_shows_only_server_error_text() {
        let reply = |body: &str| Reply {
            status: 400,
            body: body.to_owned(),
        };
        for (body, text) in [
            (
                "{\"error\":\"invalid_grant\",\"error_description\":\"Bad.\"}",
                "S answered 400: Bad.",
            ),
            ("<E><Message> Denied </Message></E>", "S answered 400: Denied"),
            ("{\"access_token\":\"secret\"}", "S answered 400"),
        ] {
            assert_eq!(reply(body).ok("S"), Err(text.to_owned()));
        }
        let odd = Reply {
            status: 200,
            body: "\"secret\"".to_owned(),
        };
        let error = odd.json::<std::collections::HashMap<String, String>>("S");
        assert_eq!(error, Err("S gave an answer of an unknown form".to_owned()));
    }
}
