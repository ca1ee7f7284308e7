//! Message threads (beta `message-threads-2026-08-12`): the provider keeps the conversation of a session, and a request has only the
//! messages after the last answer. Off unless the model's flag `supportsMessageThreads` says otherwise, because a gateway that drops the unknown
//! field would turn a continuation into a request without its conversation.
//!
//! A request continues an answer only if everything before it is as it was sent. Pinion sends all other requests whole, and repeats a request
//! whole if the provider cannot continue the answer. Here is the change of the body; `message_thread` has the state of a thread, `request` writes
//! the body, `stream` reports answers.

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::answer::Fault;
use crate::compat::flag;
use crate::http::HttpRequest;
use crate::message_thread::{MessageThread, Prefix, Reply, State};
use crate::request::ModelRequest;

/// The header value that switches threads on.
pub(super) const BETA: &str = "message-threads-2026-08-12";

/// Refusals of a continuation after which the same request begins a new thread.
const LOST: [&str; 4] = [
    "thread_not_found",
    "thread_already_continued",
    "thread_continue_in_flight",
    "thread_fingerprint_mismatch",
];

/// Refusal of a request that cannot be part of a thread.
const UNSUPPORTED: &str = "thread_unsupported_request";

/// Members that a thread keeps from its first request on.
const FIXED: [&str; 6] = [
    "model",
    "system",
    "tools",
    "thinking",
    "output_config",
    "tool_choice",
];

/// The thread of a request; none for requests outside a session and for models without threads.
pub(super) fn thread(request: &ModelRequest) -> Option<&MessageThread> {
    let is_on = flag(&request.model, "supportsMessageThreads", false) && request.affinity().is_some();
    request.earlier.thread.as_ref().filter(|_| is_on)
}

/// Sends a request as a part of its session's thread.
#[derive(Debug)]
pub(crate) struct ThreadSender {
    thread: MessageThread,
    /// The last answer in the conversation.
    last: Option<Reply>,
    provider: String,
}

/// A request of a thread.
struct Planned {
    body: Vec<u8>,
    prefix: Prefix,
    /// The request without a thread.
    whole: Map<String, Value>,
}

impl ThreadSender {
    /// None if the request has no thread.
    pub(crate) fn of(request: &ModelRequest) -> Option<Self> {
        let answers = request.messages.iter().rev();
        let last = answers.filter_map(|message| message.as_assistant()).next();
        thread(request).map(|thread| Self {
            thread: thread.clone(),
            last: last.and_then(Reply::of),
            provider: request.model.provider.clone(),
        })
    }

    /// Sends the whole request or its new part by `send`. If the provider refuses the thread, the request is sent whole once more.
    ///
    /// # Errors
    /// Those of `send`.
    pub(crate) async fn send<R, F>(
        &self,
        http: HttpRequest,
        send: impl Fn(HttpRequest) -> F + Send,
    ) -> Result<R, Fault>
    where
        F: Future<Output = Result<R, Fault>> + Send,
    {
        let Some(planned) = self.plan(&http) else {
            return send(http).await;
        };
        let with = |body| HttpRequest {
            url: http.url.clone(),
            headers: http.headers.clone(),
            body,
        };
        let prefix = planned.prefix;
        match send(with(planned.body)).await {
            Ok(response) => {
                self.thread.set(State::Asked(prefix));
                Ok(response)
            }
            Err(fault) if is_lost(&fault) => {
                tracing::debug!(reason = fault.text, "a message thread begins anew");
                let Some(first) = with_thread(&planned.whole, &json!({"type": "create"})) else {
                    return Err(fault);
                };
                let response = send(with(first)).await?;
                self.thread.set(State::Asked(prefix));
                Ok(response)
            }
            Err(fault) if is_unsupported(&fault) => {
                tracing::debug!(reason = fault.text, "message threads are off for this session");
                let response = send(with(http.body.clone())).await?;
                self.thread.set(State::Off);
                Ok(response)
            }
            Err(fault) => Err(fault),
        }
    }

    /// None if threads are off for the session, or the body is not one of the Messages API.
    fn plan(&self, http: &HttpRequest) -> Option<Planned> {
        let known = self.thread.take()?;
        let whole: Map<String, Value> = serde_json::from_slice(&http.body).ok()?;
        let turns = whole.get("messages")?.as_array()?;
        let digests = self.digests(http, &whole, turns);
        let prefix = Prefix {
            turns: turns.len(),
            digest: *digests.last()?,
        };
        let body = match self.next(&known, turns, &digests) {
            Some((id, newer)) => {
                let is_kept = |name: &str| !["messages", "system", "tools"].contains(&name);
                let members = whole.iter().filter(|(name, _)| is_kept(name));
                let mut body: Map<String, Value> = members
                    .map(|(name, value)| (name.clone(), value.clone()))
                    .collect();
                body.insert("messages".to_owned(), Value::Array(newer.to_vec()));
                with_thread(&body, &json!({"type": "continue", "previous_message_id": id}))?
            }
            None => with_thread(&whole, &json!({"type": "create"}))?,
        };
        Some(Planned { body, prefix, whole })
    }

    /// The answer that the request continues, and the turns after it.
    fn next<'a>(
        &self,
        known: &'a State,
        turns: &'a [Value],
        digests: &[[u8; 32]],
    ) -> Option<(&'a str, &'a [Value])> {
        let State::Answered(prefix, reply) = known else {
            return None;
        };
        let is_same = digests.get(prefix.turns) == Some(&prefix.digest) && self.last.as_ref() == Some(reply);
        let (answer, newer) = turns.get(prefix.turns..)?.split_first()?;
        let is_answer = answer.get("role").and_then(Value::as_str) == Some("assistant");
        (is_same && is_answer && !newer.is_empty()).then_some((reply.id.as_str(), newer))
    }

    /// Digests of the settings with the first 0, 1, 2, ... turns.
    fn digests(&self, http: &HttpRequest, body: &Map<String, Value>, turns: &[Value]) -> Vec<[u8; 32]> {
        let mut digest = Sha256::new();
        let betas = http.headers.get("anthropic-beta").map(|value| value.as_bytes());
        for part in [
            self.provider.as_bytes(),
            http.url.as_bytes(),
            betas.unwrap_or_default(),
        ] {
            digest.update(part);
            digest.update([0]);
        }
        for name in FIXED {
            let value = body.get(name).map(ToString::to_string);
            digest.update(value.unwrap_or_default());
            digest.update([0]);
        }
        let mut all = vec![digest.clone().finalize().into()];
        for turn in turns {
            digest.update(without_mark(turn).to_string());
            digest.update([0]);
            all.push(digest.clone().finalize().into());
        }
        all
    }
}

/// The turn without the mark of the prompt cache, which moves with each request and says nothing to the model.
fn without_mark(turn: &Value) -> Value {
    let mut turn = turn.clone();
    let blocks = turn.get_mut("content").and_then(Value::as_array_mut);
    for block in blocks.into_iter().flatten().filter_map(Value::as_object_mut) {
        block.shift_remove("cache_control");
    }
    turn
}

/// The body with a thread. A body always has other members.
fn with_thread(body: &Map<String, Value>, thread: &Value) -> Option<Vec<u8>> {
    let mut bytes = serde_json::to_vec(body).ok()?;
    bytes.pop();
    bytes.extend_from_slice(format!(",\"thread\":{thread}}}").as_bytes());
    Some(bytes)
}

/// The code of a refusal.
fn code(fault: &Fault) -> Option<String> {
    let (_, body) = fault.text.split_once(' ')?;
    let body: Value = serde_json::from_str(body).ok()?;
    Some(body.pointer("/error/details/error_code")?.as_str()?.to_owned())
}

/// Returns true if the answer cannot be continued (any more).
fn is_lost(fault: &Fault) -> bool {
    fault.status.is_some() && code(fault).is_some_and(|code| LOST.contains(&code.as_str()))
}

/// Returns true if the provider cannot put the request into a thread, or does not know threads.
fn is_unsupported(fault: &Fault) -> bool {
    match code(fault) {
        Some(code) => fault.status.is_some() && code == UNSUPPORTED,
        None => fault.status == Some(400) && fault.text.contains("thread"),
    }
}
