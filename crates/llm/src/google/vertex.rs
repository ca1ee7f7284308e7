//! Gemini behind Google Cloud (providers.md 6): its addresses, and which key it takes. The body is that of `request`; tokens
//! come from `token`.

use auth::Secret;

use crate::error::LlmError;
use crate::http::join_url;
use crate::request::ModelRequest;

/// The API family.
pub(crate) const API: &str = "google-vertex";

/// Version of the API, unless the base URL names one.
const VERSION: &str = "v1";

/// Where requests without a place go.
const GLOBAL: &str = "https://aiplatform.googleapis.com";

/// Places that are a continent.
const CONTINENTS: [&str; 2] = ["us", "eu"];

/// The key of a request; none when ambient credentials are meant, which some clients write as a word.
pub(crate) fn key(request: &ModelRequest) -> Option<&Secret> {
    request.api_key.as_ref().filter(|key| {
        let key = key.expose().trim();
        let is_word = key == "gcp-vertex-credentials" || (key.starts_with('<') && key.ends_with('>'));
        !key.is_empty() && !is_word
    })
}

/// Where a request goes. A base URL of the user's own is taken to end where the models begin; the standard one gets
/// project and location, unless a key says whose request it is.
pub(super) fn url(request: &ModelRequest) -> Result<String, LlmError> {
    let base = request.model.base_url.trim();
    let models = format!("{}:streamGenerateContent?alt=sse", model_path(&request.model.id));
    if !base.is_empty() && !base.contains("{location}") {
        return Ok(join_url(base, &format!("{}{models}", version(base))));
    }
    if key(request).is_some() {
        return Ok(join_url(GLOBAL, &format!("{VERSION}/{models}")));
    }
    let value = |names: &[&str]| {
        request
            .environment
            .first(names)
            .ok_or_else(|| LlmError::Placeholder {
                name: names.join(" or "),
                provider: request.model.provider.clone(),
            })
    };
    let project = value(&["GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT"])?;
    let location = value(&["GOOGLE_CLOUD_LOCATION"])?;
    let models = if models.starts_with("projects/") {
        models
    } else {
        format!("projects/{project}/locations/{location}/{models}")
    };
    Ok(join_url(&host(&location), &format!("{VERSION}/{models}")))
}

/// The standard host of a location.
fn host(location: &str) -> String {
    match location {
        "global" => GLOBAL.to_owned(),
        continent if CONTINENTS.contains(&continent) => {
            format!("https://aiplatform.{continent}.rep.googleapis.com")
        }
        region => format!("https://{region}-aiplatform.googleapis.com"),
    }
}

/// The path of a model: as it is when it is one already, else that of its publisher.
fn model_path(id: &str) -> String {
    let whole = ["publishers/", "projects/", "models/"];
    if whole.iter().any(|start| id.starts_with(start)) {
        return id.to_owned();
    }
    let (publisher, model) = id.split_once('/').unwrap_or(("google", id));
    format!("publishers/{publisher}/models/{model}")
}

/// The version for a base URL, with a slash; empty when one of its parts is a version.
fn version(base: &str) -> String {
    let is_version = |part: &str| {
        let digits = part.strip_prefix('v').unwrap_or_default();
        let (major, minor) = digits.split_once("beta").unwrap_or((digits, ""));
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        !major.is_empty() && is_number(major) && is_number(minor)
    };
    if base.split('/').any(is_version) {
        String::new()
    } else {
        format!("{VERSION}/")
    }
}
