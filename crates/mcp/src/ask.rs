//! Requests to a server: with a time limit, cancelled when the caller is dropped, with leniently parsed responses.

use std::error::Error;
use std::time::Duration;

use rmcp::model::{CancelledNotificationParam, ClientRequest, InputResponses};
use rmcp::service::{Peer, PeerRequestOptions, RoleClient, ServiceError};
use rmcp::transport::streamable_http_client::AuthRequiredError;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::client::{Client, Progress, Watched, Watching};
use crate::error::McpError;
use crate::limits;
use crate::text::{line, plain};

/// The sender of requests to one server.
#[derive(Clone)]
pub(crate) struct Asker {
    pub(crate) server: String,
    pub(crate) peer: Peer<RoleClient>,
    /// Answers what the server asks before it answers.
    pub(crate) client: Client,
    pub(crate) watching: Watching,
    pub(crate) timeout: Duration,
}

impl std::fmt::Debug for Asker {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Asker")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

impl Asker {
    /// Asks and gives the result as the server meant it.
    pub(crate) async fn ask(&self, request: ClientRequest) -> Result<Value, McpError> {
        self.ask_watched(request, None, &CancellationToken::new()).await
    }

    /// Sends a request that may take long: progress restarts its time limit. A server of the revision of July 2026 may ask for input
    /// first; then the request is sent again with the input.
    pub(crate) async fn ask_watched(
        &self,
        mut request: ClientRequest,
        progress: Option<mpsc::Sender<Progress>>,
        cancel: &CancellationToken,
    ) -> Result<Value, McpError> {
        for _ in 0..limits::ROUNDS {
            let answer = self.ask_once(request.clone(), progress.clone(), cancel).await?;
            if answer.get("resultType").and_then(Value::as_str) != Some("input_required") {
                return Ok(answer);
            }
            let responses = tokio::select! {
                () = cancel.cancelled() => return Err(McpError::Cancelled),
                responses = self.input(&answer) => responses?,
            };
            let state = answer.get("requestState").and_then(Value::as_str);
            if !again_with(&mut request, responses, state.map(str::to_owned)) {
                break;
            }
        }
        Err(McpError::Refused("it asks for input without end".to_owned()))
    }

    /// What the server wants to know before it answers.
    async fn input(&self, answer: &Value) -> Result<InputResponses, McpError> {
        let wanted = answer.get("inputRequests").and_then(Value::as_object);
        let Some(wanted) = wanted.filter(|wanted| !wanted.is_empty()) else {
            // It wants to be asked again, but not at once.
            tokio::time::sleep(limits::BACKOFF.0).await;
            return Ok(InputResponses::new());
        };
        if wanted.len() > limits::QUESTIONS {
            return Err(McpError::Refused("it asks for too much input at once".to_owned()));
        }
        let mut responses = InputResponses::new();
        for (key, request) in wanted {
            responses.insert(
                key.clone(),
                self.client.input(request).await.map_err(McpError::Refused)?,
            );
        }
        Ok(responses)
    }

    async fn ask_once(
        &self,
        request: ClientRequest,
        progress: Option<mpsc::Sender<Progress>>,
        cancel: &CancellationToken,
    ) -> Result<Value, McpError> {
        // Without a time limit: that of `rmcp` goes on while the server waits for the user.
        let options = PeerRequestOptions::no_options();
        let sent = self.peer.send_request_with_option(request, options).await;
        let handle = sent.map_err(|error| self.failed(error))?;
        let watched = self.watching.watch(handle.progress_token.clone(), progress);
        let withdraw = Withdraw {
            peer: Some(self.peer.clone()),
            id: handle.id.clone(),
        };
        let answer = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(McpError::Cancelled),
            answer = handle.await_response() => answer,
            limit = self.overdue(&watched) => return Err(McpError::TimedOut {
                server: self.server.clone(),
                seconds: limit.as_secs(),
            }),
        };
        withdraw.disarm();
        let result = answer.map_err(|error| self.failed(error))?;
        // Large results are worth a thread of their own.
        let value = tokio::task::spawn_blocking(move || serde_json::to_value(result)).await;
        match value {
            Ok(Ok(value)) => Ok(value),
            _ => Err(McpError::Connect("its answer cannot be read".to_owned())),
        }
    }

    /// Waits until a request has taken too long. Returns the exceeded limit. Progress restarts that of one step, and both stand still
    /// while the user is asked.
    async fn overdue(&self, watched: &Watched) -> Duration {
        let (step, total) = (self.timeout, self.timeout * limits::TIMEOUT_FACTOR);
        let questions = &self.client.questions;
        let step_passes = async {
            loop {
                tokio::select! {
                    () = questions.pass(step) => return,
                    () = watched.progressed() => {}
                }
            }
        };
        tokio::select! {
            () = step_passes => step,
            () = questions.pass(total) => total,
        }
    }

    /// Returns true after the end of the connection.
    pub(crate) fn is_over(&self) -> bool {
        self.peer.is_transport_closed()
    }

    fn failed(&self, error: ServiceError) -> McpError {
        let gone = |why: String| McpError::NotConnected {
            server: self.server.clone(),
            why,
        };
        match error {
            ServiceError::McpError(error) => {
                let text = plain(&error.message, limits::ERROR);
                McpError::Refused(format!("{text} ({})", error.code.0))
            }
            ServiceError::Cancelled { .. } => McpError::Cancelled,
            ServiceError::TransportClosed => gone("it has ended".to_owned()),
            ServiceError::TransportSend(error) if wants_login(&*error.error) => {
                McpError::Login(self.server.clone())
            }
            // Its own text names a Rust type.
            ServiceError::TransportSend(error) => gone(line(&error.error.to_string(), limits::ERROR)),
            other => gone(line(&other.to_string(), limits::ERROR)),
        }
    }
}

/// Returns true for a request that the server refused for want of a login.
fn wants_login(error: &(dyn Error + 'static)) -> bool {
    std::iter::successors(Some(error), |error| Error::source(*error))
        .any(|error| error.is::<AuthRequiredError>())
}

/// Adds the input to a request. Returns false for a request that takes none.
fn again_with(request: &mut ClientRequest, responses: InputResponses, state: Option<String>) -> bool {
    let responses = Some(responses).filter(|responses| !responses.is_empty());
    let (input, kept) = match request {
        ClientRequest::CallToolRequest(call) => {
            (&mut call.params.input_responses, &mut call.params.request_state)
        }
        ClientRequest::GetPromptRequest(get) => {
            (&mut get.params.input_responses, &mut get.params.request_state)
        }
        ClientRequest::ReadResourceRequest(read) => {
            (&mut read.params.input_responses, &mut read.params.request_state)
        }
        _ => return false,
    };
    (*input, *kept) = (responses, state);
    true
}

/// Cancels a request at the server when the caller is dropped.
struct Withdraw {
    peer: Option<Peer<RoleClient>>,
    id: rmcp::model::RequestId,
}

impl Withdraw {
    fn disarm(mut self) {
        self.peer = None;
    }
}

impl Drop for Withdraw {
    fn drop(&mut self) {
        let Some(peer) = self.peer.take() else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let why = "nobody waits for it any more".to_owned();
        let params = CancelledNotificationParam::new(Some(self.id.clone()), Some(why));
        runtime.spawn(async move {
            let _gone = peer.notify_cancelled(params).await;
        });
    }
}
