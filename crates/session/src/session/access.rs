//! What a request needs before it is sent: key, headers, address, and the process or provider that answers it. The content of the
//! request is the business of the callers.

use std::sync::Arc;

use auth::Secret;
use auth::login::{AuthStore, Credentials};
use llm::{ModelRequest, ModelStream};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use wire::{AssistantMessage, Model, StopReason};

use crate::extensions::ExtensionProvider;
use crate::factory::Agent;

use super::clock::now_ms;

/// What a caller brings of its own.
#[derive(Debug, Default)]
pub(super) struct Given {
    /// Instead of the key that is known.
    pub(super) api_key: Option<Secret>,
    /// Over the headers that are known.
    pub(super) headers: Vec<(String, String)>,
    /// Past extensions that answer for the model themselves.
    pub(super) direct: bool,
}

/// The credentials and the address of a model.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) key: Option<Secret>,
    /// The key is the token of a login of our own.
    pub(super) is_login: bool,
    pub(super) headers: Vec<(String, String)>,
    pub(super) base_url: String,
}

/// Looks up keys and headers for each request anew (short-lived tokens), then begins it.
pub(super) async fn open(
    agent: Arc<Agent>,
    request: ModelRequest,
    cancel: CancellationToken,
    span: tracing::Span,
) -> Result<ModelStream, Box<AssistantMessage>> {
    open_with(agent, request, Given::default(), cancel, span).await
}

/// The same with what the caller brings.
pub(super) async fn open_with(
    agent: Arc<Agent>,
    mut request: ModelRequest,
    given: Given,
    cancel: CancellationToken,
    span: tracing::Span,
) -> Result<ModelStream, Box<AssistantMessage>> {
    let model = request.model.clone();
    // An entry of `auth.json` may have variables for its provider, which precede those of the process (pi-1.5-delta.md 6).
    request.environment = agent.registry.environment(&model.provider);
    let found = tokio::select! {
    // A `!command` that hangs must not hold up an abort; its thread ends with the command's own time limit.
            found = look_up(&agent, &model, given.api_key) => found,
            () = cancel.cancelled() => Err(String::new()),
        };
    let outcome = found.and_then(|found| {
        request.api_key = found.key;
        request.is_login = found.is_login;
        request.headers = found.headers;
        // Last: of two headers with one name the later one is sent (providers.md 10).
        request.headers.extend(given.headers);
        request.model.base_url = found.base_url;
        let Some((lender, provider)) = agent.lender_for(&model).filter(|_| !given.direct) else {
            return Ok(span.in_scope(|| agent.client.stream(request, cancel.clone())));
        };
        let lent = lender.lend(provider, &request)?;
        Ok(span.in_scope(|| agent.client.borrow(&request, lent, cancel.clone())))
    });
    outcome.map_err(|error| refused(&model, error, cancel.is_cancelled()))
}

/// The message of a request that was not sent.
pub(super) fn refused(model: &Model, error: String, aborted: bool) -> Box<AssistantMessage> {
    let mut message = AssistantMessage::begin(&model.api, &model.provider, &model.id, now_ms());
    message.stop_reason = if aborted {
        StopReason::Aborted
    } else {
        StopReason::Error
    };
    message.error_message = Some(if aborted {
        // With a full stop, as pi writes it before the response head (behaviour.md 3.6).
        "Request was aborted.".to_owned()
    } else {
        error
    });
    Box::new(message)
}

/// Key, headers and address of a model. `!command` values may take seconds, so a blocking thread looks them up.
pub(super) async fn look_up(
    agent: &Arc<Agent>,
    model: &Model,
    given: Option<Secret>,
) -> Result<Found, String> {
    let provider = model.provider.as_str();
    let given = match given {
        None if agent.registry.lent_login(provider).is_some() => Some(lent_key(agent, provider).await?),
        given => given,
    };
    let (registry, model) = (Arc::clone(&agent.registry), model.clone());
    let looked_up = tokio::task::spawn_blocking(move || {
        let now = u64::try_from(now_ms()).unwrap_or(0);
        // Not through `resolve_key`, which refuses a token that has ended: the sender renews it.
        let login = registry.login_token(&model.provider).filter(|_| given.is_none());
        let is_login = login.is_some();
        let key = match given.or(login) {
            Some(key) => Some(key),
            None => registry
                .resolve_key(&model.provider, now)
                .map_err(|error| error.to_string())?,
        };
        // After the key, since `authHeader` puts the key into a header (pi-core.md 8.2).
        let headers = registry
            .headers(&model, key.as_ref())
            .map_err(|error| error.to_string())?;
        let base_url = registry.base_url(&model).map_err(|error| error.to_string())?;
        Ok(Found {
            key,
            is_login,
            headers,
            base_url,
        })
    });
    looked_up.await.unwrap_or_else(|error| Err(error.to_string()))
}

/// The key of a login that an extension knows how to use, renewed if it has ended.
async fn lent_key(agent: &Arc<Agent>, provider: &str) -> Result<Secret, String> {
    let gone = || format!("The extension with the login for {provider} is gone");
    let lender = agent.lender.clone().ok_or_else(gone)?;
    let secrets = agent.registry.secrets();
    // Owned, since a renewal goes on after an abort: the provider accepts its token once (GUARANTEES.md, 24).
    let (renewing, id) = (lender.clone(), provider.to_owned());
    let store = AuthStore::new(agent.agent_dir.join("auth.json"));
    let credentials = store
        .lent(provider, secrets, move |stored| async move {
            credentials(
                &renewing,
                "provider.oauth.refresh",
                &json!({"provider": id, "credentials": stored}),
            )
            .await
        })
        .await
        .map_err(|error| error.to_string())?;
    let params = json!({"provider": provider, "credentials": credentials});
    let answer = lender.call("provider.oauth.key", &params).await?;
    let key = answer.get("apiKey").and_then(Value::as_str);
    let key = key.ok_or_else(|| format!("The extension gave no key for {provider}"))?;
    // Before they are used: the provider may repeat the key or a header in an error. The extension adds the headers itself.
    secrets.learn(key);
    let headers = answer.get("headers").and_then(Value::as_object);
    for (name, value) in headers.into_iter().flatten() {
        secrets.learn_header(name, value.as_str().unwrap_or_default());
    }
    Ok(Secret::new(key))
}

/// Has an extension get or renew credentials.
pub(super) async fn credentials(
    lender: &ExtensionProvider,
    method: &str,
    params: &Value,
) -> Result<Credentials, String> {
    match lender.call(method, params).await? {
        Value::Object(credentials) => Ok(credentials),
        _ => Err("the extension gave no credentials".to_owned()),
    }
}
