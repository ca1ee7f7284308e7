//! The entrance: a client that many sessions share. Everything costly is built with the first request that needs it.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::access::{Access, Vault};
use crate::answer::{Answer, Fault};
use crate::error::LlmError;
use crate::family::Family;
use crate::http::{ClientConfig, Connector, Patience, send};
use crate::login::{Keeper, ask};
use crate::offline::Offline;
use crate::request::ModelRequest;
use crate::stream::{Head, ModelStream, State, Waiting};

/// Asks models. Cheap to clone; clones share connections.
#[derive(Debug, Clone)]
pub struct Client {
    connector: Arc<Connector>,
    vault: Arc<Vault>,
    offline: Arc<Offline>,
    keeper: Option<Arc<Keeper>>,
}

impl Client {
    /// A client. Does no IO.
    #[must_use]
    pub fn new(config: ClientConfig) -> Self {
        let offline = Offline::new(config.script.clone(), config.word_delay);
        let connector = Arc::new(Connector::new(config.clone()));
        Self {
            keeper: Keeper::of(&config, Arc::clone(&connector)),
            connector,
            vault: Arc::default(),
            offline: Arc::new(offline),
        }
    }

    /// Asks a model. Failures come as the stream's last event, also those before the request is sent. Nothing happens until
    /// the stream is polled; that needs a tokio runtime with IO and time.
    #[must_use]
    pub fn stream(&self, request: ModelRequest, cancel: CancellationToken) -> ModelStream {
        let key = request.api_key.clone();
        let keeper = self.keeper.clone().filter(|_| request.is_login);
        let state = match self.start(&request) {
            Ok(state) => state,
            Err(error) => {
                let fault = Fault::new(error.to_string());
                State::Refused(Box::new((Answer::new(&request), fault)))
            }
        };
        ModelStream::new(state, cancel, key, keeper)
    }

    fn start(&self, request: &ModelRequest) -> Result<State, LlmError> {
        if request.model.api == crate::offline::API {
            return Ok(State::Playing(Box::new(self.offline.play(request)?)));
        }
        let api = &request.model.api;
        let family = Family::of(api).ok_or_else(|| LlmError::UnknownApi(api.clone()))?;
        if let Some((_, name)) = request.model.base_url.split_once('{')
            && let Some((name, _)) = name.split_once('}')
            && !family.fills(name)
        {
            let provider = request.model.provider.clone();
            return Err(LlmError::Placeholder {
                name: name.to_owned(),
                provider,
            });
        }
        let access = Arc::new(Access::of(request, &self.vault));
        let connector = Arc::clone(&self.connector);
        let patience = Patience {
            retries: request.provider_retries,
            longest_wait: request.max_retry_delay,
            idle: request.idle_timeout,
        };
        let idle = patience.idle;
        let post = move |http| {
            let (connector, access) = (Arc::clone(&connector), Arc::clone(&access));
            async move { send(&connector, family, http, &access, patience).await }
        };
        let head: Head = match &self.keeper {
            Some(keeper) if request.is_login => {
                Box::pin(ask(Arc::clone(keeper), family, request.clone(), post))
            }
            _ => Box::pin(post(family.request(request)?)),
        };
        Ok(State::Waiting(Box::new(Waiting {
            head,
            parser: family.parser(request),
            framing: family.framing(),
            idle,
        })))
    }
}
