//! The client side of a connection: its capabilities, its answers to requests of the server, and the handling of
//! notifications.

use std::collections::HashMap;
use std::future::Future;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{
    ClientCapabilities, ElicitRequestParams, ElicitResult, ErrorData, Implementation,
    InitializeRequestParams, ProgressNotificationParam, ProgressToken,
};
#[expect(deprecated, reason = "the servers of today use these")]
use rmcp::model::{
    CreateMessageRequestParams, CreateMessageResult, ListRootsResult, LoggingMessageNotificationParam, Root,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use rmcp::{ClientHandler, model::ClientConfig};
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};

use crate::limits;
use crate::open_questions::OpenQuestions;
use crate::question::{AskUser, Question, Reply};
use crate::text::{line, plain};

/// How far a call came.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// The completed amount.
    pub done: f64,
    /// Of how much.
    pub total: Option<f64>,
    /// The current step.
    pub message: Option<String>,
}

/// Where progress goes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Watching(Arc<Mutex<HashMap<ProgressToken, Watcher>>>);

/// Who hears of the progress of a request.
#[derive(Debug)]
struct Watcher {
    came: Arc<Notify>,
    sender: Option<mpsc::Sender<Progress>>,
}

impl Watching {
    /// Tells the progress of a request until the guard is dropped.
    pub(crate) fn watch(&self, token: ProgressToken, sender: Option<mpsc::Sender<Progress>>) -> Watched {
        let came = Arc::new(Notify::new());
        let watcher = Watcher {
            came: Arc::clone(&came),
            sender,
        };
        self.lock().insert(token.clone(), watcher);
        Watched {
            watching: self.clone(),
            token,
            came,
        }
    }

    fn tell(&self, token: &ProgressToken, progress: Progress) {
        if let Some(watcher) = self.lock().get(token) {
            watcher.came.notify_one();
            if let Some(sender) = &watcher.sender {
                let _full = sender.try_send(progress);
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<ProgressToken, Watcher>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// See [`Watching::watch`].
pub(crate) struct Watched {
    watching: Watching,
    token: ProgressToken,
    came: Arc<Notify>,
}

impl Watched {
    /// Waits for progress that was not waited for yet.
    pub(crate) async fn progressed(&self) {
        self.came.notified().await;
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.watching.lock().remove(&self.token);
    }
}

/// The agent, for one connection.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) server: Arc<str>,
    pub(crate) version: Arc<str>,
    pub(crate) cwd: Arc<Path>,
    pub(crate) ask: Arc<dyn AskUser>,
    pub(crate) watching: Watching,
    /// Lists have changed.
    pub(crate) changed: Arc<Notify>,
    /// What the server asks the user now.
    pub(crate) questions: OpenQuestions,
}

impl Client {
    async fn elicit(&self, params: ElicitRequestParams) -> Reply {
        let Some(_open) = self.questions.open() else {
            return Reply::Decline;
        };
        match Question::read(&self.server, &params) {
            Some(question) => self.ask.ask(question).await,
            None => Reply::Decline,
        }
    }

    #[expect(deprecated, reason = "roots are asked for by the servers of today")]
    fn roots(&self) -> ListRootsResult {
        let root = Root::new(file_url(&self.cwd));
        let name = self
            .cwd
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        let root = match name {
            Some(name) => root.with_name(name),
            None => root,
        };
        ListRootsResult::new(vec![root])
    }

    /// What a server wants to know before it answers a request.
    ///
    /// # Errors
    /// A text for the model: the client does not give that.
    pub(crate) async fn input(&self, request: &Value) -> Result<Value, String> {
        let method = request.get("method").and_then(Value::as_str).unwrap_or_default();
        let unreadable = |error: serde_json::Error| format!("it asks for input that cannot be read: {error}");
        match method {
            "elicitation/create" => {
                let params = request.get("params").cloned().unwrap_or_default();
                let params = serde_json::from_value(params).map_err(unreadable)?;
                let result = ElicitResult::from(self.elicit(params).await);
                serde_json::to_value(result).map_err(unreadable)
            }
            "roots/list" => serde_json::to_value(self.roots()).map_err(unreadable),
            other => Err(format!(
                "it asks for {}, which is not supported",
                line(other, limits::NAME)
            )),
        }
    }
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let able = json!({"roots": {"listChanged": false}, "elicitation": {"form": {}, "url": {}}});
        let able: ClientCapabilities = serde_json::from_value(able).unwrap_or_default();
        let implementation = Implementation::new("pinion", self.version.as_ref());
        InitializeRequestParams::new(able, implementation).with_protocol_version(crate::probe::LEGACY)
    }

    #[expect(deprecated, reason = "roots are asked for by the servers of today")]
    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Ok(self.roots())
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        tokio::select! {
            reply = self.elicit(params) => Ok(reply.into()),
            () = context.ct.cancelled() => Ok(Reply::Cancel.into()),
        }
    }

    #[expect(deprecated, reason = "the servers of today ask for it and are to be told no")]
    fn create_message(
        &self,
        _: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> impl Future<Output = Result<CreateMessageResult, ErrorData>> + Send + '_ {
        let refusal = "This client lends its model to nobody: sampling is not supported";
        std::future::ready(Err(ErrorData::new(
            rmcp::model::ErrorCode::METHOD_NOT_FOUND,
            refusal,
            None,
        )))
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let progress = Progress {
            done: params.progress,
            total: params.total,
            message: params.message.map(|message| plain(&message, limits::ERROR)),
        };
        self.watching.tell(&params.progress_token, progress);
    }

    #[expect(deprecated, reason = "the servers of today send it")]
    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let text = match &params.data {
            Value::String(text) => line(text, limits::LOG_LINE),
            other => line(&other.to_string(), limits::LOG_LINE),
        };
        tracing::debug!(server = %self.server, "{text}");
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }

    async fn on_prompt_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }

    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }
}

/// A directory as an address.
fn file_url(path: &Path) -> String {
    let mut url = "file://".to_owned();
    for byte in path.to_string_lossy().bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => {
                url.push(char::from(byte))
            }
            _ => url.push_str(&format!("%{byte:02X}")),
        }
    }
    url
}
