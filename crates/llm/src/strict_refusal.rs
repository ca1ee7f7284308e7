//! Providers that refuse strict schemas of tools although the model should accept them. Without a second request, each request with these
//! tools would fail.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use auth::text::cut;
use reqwest::Response;
use serde_json::{Map, json};
use wire::AssistantMessage;

use crate::answer::Fault;
use crate::compat::flag;
use crate::limits::{MAX_ERROR_TEXT_BYTES, STRICT_REFUSALS};
use crate::request::ModelRequest;

/// Words of errors that refuse a schema. An error about something else costs a second request, which fails as well.
const WORDS: [&str; 3] = ["schema", "strict", "grammar"];

/// Errors of Claude after which pi notes in the answer that its tools are plain.
const CLAUDE_LIMITS: [&str; 3] = [
    "The compiled grammar is too large",
    "Too many strict tools (",
    "Schemas contains too many parameters with union types (",
];

/// Why strict tools were refused before this response.
#[derive(Clone)]
struct Refusal(String);

/// Sessions and models whose strict tools were refused. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct StrictRefusals(Arc<Mutex<VecDeque<Refused>>>);

/// A model in a session. Tools that are strict again later would be another prompt for the provider's cache.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Refused {
    session: String,
    provider: String,
    model: String,
}

impl Refused {
    /// None for a request outside of sessions.
    fn of(request: &ModelRequest) -> Option<Self> {
        Some(Self {
            session: request.session_id.clone()?,
            provider: request.model.provider.clone(),
            model: request.model.id.clone(),
        })
    }
}

impl StrictRefusals {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Refused>> {
        // A panic elsewhere leaves a list that is right.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the tools of a request plain if the provider refused strict ones before.
    pub(crate) fn apply(&self, request: &mut ModelRequest) {
        let is_refused = Refused::of(request).is_some_and(|refused| self.lock().contains(&refused));
        if is_refused {
            make_plain(request);
        }
    }

    /// Waits for the response to a request. If the provider refuses a schema, `again` sends the request `strict` with plain tools; it is
    /// none for a request whose tools are plain.
    ///
    /// # Errors
    /// Those of the request that was sent last.
    pub(crate) async fn respond<F, G>(
        self,
        strict: Option<Arc<ModelRequest>>,
        first: F,
        again: impl FnOnce(ModelRequest) -> G + Send,
    ) -> Result<Response, Fault>
    where
        F: Future<Output = Result<Response, Fault>> + Send,
        G: Future<Output = Result<Response, Fault>> + Send,
    {
        let fault = match first.await {
            Ok(response) => return Ok(response),
            Err(fault) => fault,
        };
        let Some(strict) = strict.filter(|_| is_refusal(&fault)) else {
            return Err(fault);
        };
        // Copied only now: few requests are refused, and schemas are long.
        let mut plain = Arc::unwrap_or_clone(strict);
        make_plain(&mut plain);
        tracing::debug!(reason = fault.text, "the request is sent without strict tools");
        let refused = Refused::of(&plain);
        let is_noted = plain.conventions.strict_diagnostics;
        let mut response = again(plain).await?;
        if is_noted {
            response.extensions_mut().insert(Refusal(fault.text));
        }
        // Only after a success: the refusal may have been about another schema.
        self.note(refused);
        Ok(response)
    }

    fn note(&self, refused: Option<Refused>) {
        let mut known = self.lock();
        if let Some(refused) = refused.filter(|refused| !known.contains(refused)) {
            if known.len() >= STRICT_REFUSALS {
                known.pop_front();
            }
            known.push_back(refused);
        }
    }
}

/// Notes in an answer that its tools are plain because strict ones were refused, as pi does for Claude. `hide` takes credentials out of
/// the error.
pub(crate) fn note(response: &Response, message: &mut AssistantMessage, hide: impl FnOnce(String) -> String) {
    let Some(Refusal(text)) = response.extensions().get::<Refusal>() else {
        return;
    };
    let kind = match message.api.as_str() {
        "anthropic-messages" => "anthropic_strict_tools_fallback",
        "bedrock-converse-stream" => "bedrock_strict_tools_fallback",
        _ => return,
    };
    if !CLAUDE_LIMITS.iter().any(|limit| text.contains(limit)) {
        return;
    }
    let diagnostics = json!([{
        "type": kind,
        "timestamp": message.timestamp,
        "error": {"message": hide(cut(text, MAX_ERROR_TEXT_BYTES))},
        "details": {"reason": "strict_tool_limits_exceeded"},
    }]);
    let mut extra = Map::new();
    extra.insert("diagnostics".to_owned(), diagnostics);
    // An answer that has not begun has no other members.
    message.extra = extra.into();
}

/// Returns true if a tool of the request is sent with a strict schema.
pub(crate) fn has_strict(request: &ModelRequest) -> bool {
    let is_strict = request.conventions.strict_by_flag || flag(&request.model, "supportsStrictTools", false);
    is_strict && request.tools.iter().any(|tool| tool.prefers_strict)
}

fn make_plain(request: &mut ModelRequest) {
    let earlier = request.earlier.tools_mut();
    for tool in request.tools.iter_mut().chain(earlier) {
        tool.prefers_strict = false;
    }
}

/// Returns true if the provider may have refused a schema.
fn is_refusal(fault: &Fault) -> bool {
    let text = fault.text.to_lowercase();
    matches!(fault.status, Some(400 | 422)) && WORDS.iter().any(|word| text.contains(word))
}
