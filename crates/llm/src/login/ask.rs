//! A request with the token of a login: the token is looked up when the request is sent, and when it is refused the request
//! is sent once more with a new one.

use std::sync::Arc;

use super::LoginError;
use super::keeper::{Keeper, Token};
use crate::answer::Fault;
use crate::family::Family;
use crate::http::{Connector, Patience, send};
use crate::request::ModelRequest;

/// The status that says that a token does not count.
const UNAUTHORIZED: u16 = 401;

/// Sends a request and gives the response once its status says success. May be dropped at any time.
pub(crate) async fn ask(
    keeper: Arc<Keeper>,
    connector: Arc<Connector>,
    family: Family,
    request: ModelRequest,
    patience: Patience,
) -> Result<reqwest::Response, Fault> {
    let Some(known) = request.api_key.clone() else {
        return Err(Fault::new("The request has no token"));
    };
    let provider = request.model.provider.clone();
    let failed = |error: LoginError| Fault::new(keeper.hide(error.to_string()));
    let mut token = keeper.token(&provider, &known).await.map_err(failed)?;
    let mut is_first = true;
    loop {
        let http = family
            .request(&with(&request, &token))
            .map_err(|error| Fault::new(error.to_string()))?;
        match send(&connector, family, http, patience).await {
            Err(fault) if is_first && fault.status == Some(UNAUTHORIZED) => {
                is_first = false;
                token = keeper
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
        let was = crate::registry::copilot_address(old.expose(), None);
        if let Some(address) = &token.address
            && was.is_some_and(|was| was == request.model.base_url)
        {
            request.model.base_url.clone_from(address);
        }
    }
    request
}
