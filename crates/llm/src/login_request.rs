//! A request with the token of a login: the token is looked up when the request is sent, and when it is refused the request
//! is sent once more with a new one.

use std::sync::Arc;

use auth::login::{LoginError, Token, TokenRefresher};

use crate::answer::Fault;
use crate::family::Family;
use crate::http::HttpRequest;
use crate::request::ModelRequest;

/// The status that says that a token does not count.
const UNAUTHORIZED: u16 = 401;

/// Sends a request by `send` and gives the response once its status says success. May be dropped at any time.
pub(crate) async fn ask<F>(
    refresher: Arc<TokenRefresher>,
    family: Family,
    request: ModelRequest,
    send: impl Fn(HttpRequest) -> F + Send,
) -> Result<reqwest::Response, Fault>
where
    F: Future<Output = Result<reqwest::Response, Fault>> + Send,
{
    let Some(known) = request.api_key.clone() else {
        return Err(Fault::new("The request has no token"));
    };
    let provider = request.model.provider.clone();
    let failed = |error: LoginError| Fault::new(refresher.hide(error.to_string()));
    let mut token = refresher.token(&provider, &known).await.map_err(failed)?;
    let mut is_first = true;
    loop {
        let http = family
            .request(&with(&request, &token))
            .map_err(|error| Fault::new(error.to_string()))?;
        match send(http).await {
            Err(fault) if is_first && fault.status == Some(UNAUTHORIZED) => {
                is_first = false;
                token = refresher
                    .instead_of(&provider, &token.access)
                    .await
                    .map_err(failed)?;
            }
            outcome => return outcome,
        }
    }
}

/// The request with a token in place of the one it was made with: as key, in headers that were made of it, and where
/// Copilot is.
fn with(request: &ModelRequest, token: &Token) -> ModelRequest {
    let mut request = request.clone();
    if let Some(old) = request.api_key.replace(token.access.clone()) {
        for (_, value) in &mut request.headers {
            if value.contains(old.expose()) {
                *value = value.replace(old.expose(), token.access.expose());
            }
        }
        let was = auth::login::copilot_address(old.expose(), None);
        if let Some(address) = &token.address
            && was.is_some_and(|was| was == request.model.base_url)
        {
            request.model.base_url.clone_from(address);
        }
    }
    request
}

#[cfg(test)]
mod tests {
    use super::*;
    use auth::Secret;

    #[test]
    fn renewed_token_replaces_old_one_in_request() {
        let model = serde_json::json!({"id": "m", "name": "M", "api": "openai-completions", "provider": "github-copilot",
            "baseUrl": "https://api.old.test", "reasoning": false, "input": ["text"], "contextWindow": 1, "maxTokens": 1,
            "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}});
        let mut request = ModelRequest::new(serde_json::from_value(model).unwrap(), 0);
        let old = "tid=1;proxy-ep=proxy.old.test";
        request.api_key = Some(Secret::new(old));
        request.headers = vec![
            ("Authorization".into(), format!("Bearer {old}")),
            ("x".into(), "y".into()),
        ];
        let token = Token {
            access: Secret::new("tid=2;proxy-ep=proxy.new.test"),
            address: Some("https://api.new.test".to_owned()),
        };
        let changed = with(&request, &token);
        assert_eq!(changed.headers[0].1, "Bearer tid=2;proxy-ep=proxy.new.test");
        assert_eq!(changed.headers[1].1, "y");
        assert_eq!(changed.model.base_url, "https://api.new.test");
        // An address that the user chose stays.
        request.model.base_url = "http://gateway.test".to_owned();
        assert_eq!(with(&request, &token).model.base_url, "http://gateway.test");
    }
}
