//! The header by which OpenCode routes the requests of a conversation, in whichever family it is asked.

use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderValue};

use crate::error::LlmError;
use crate::request::ModelRequest;

const NAME: &str = "x-opencode-session";

/// Sets it for a request of a session to OpenCode, unless the caller has set it.
pub(crate) fn route(request: &ModelRequest, headers: &mut HeaderMap) -> Result<(), LlmError> {
    let model = &request.model;
    let is_host =
        || Url::parse(&model.base_url).is_ok_and(|address| address.host_str() == Some("opencode.ai"));
    let is_opencode = matches!(model.provider.as_str(), "opencode" | "opencode-go") || is_host();
    if let Some(session) = request.session_id.as_deref().filter(|_| is_opencode)
        && !headers.contains_key(NAME)
    {
        let value = HeaderValue::from_str(session);
        let mut value = value.map_err(|_| LlmError::Header(NAME.to_owned()))?;
        value.set_sensitive(true);
        headers.insert(NAME, value);
    }
    Ok(())
}
