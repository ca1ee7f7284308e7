//! A server of a session. A task of its own connects, lists and reconnects. Holders of a [`Server`] see the result and
//! send requests. Dropping the last handle ends the task.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, GetPromptRequest, GetPromptRequestParams,
    ListResourcesRequest, PaginatedRequestParams, ReadResourceRequest, ReadResourceRequestParams,
};
use serde_json::{Map, Value};
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::ask::Asker;
use crate::client::Progress;
use crate::config::ServerConfig;
use crate::error::McpError;
use crate::limits;
use crate::link::{Link, Surroundings};
use crate::listing::{self, Lists};
use crate::outcome::Outcome;

/// How a server is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// It is being connected.
    Connecting,
    /// It can be asked.
    Connected,
    /// It cannot be had; a new attempt may follow by itself.
    Failed(String),
    /// A login is required.
    NeedsLogin,
    /// It is not to be used.
    Disabled,
}

/// The published state of a server.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// How it is doing.
    pub status: Status,
    /// What it offers, also while it is away.
    pub lists: Arc<Lists>,
    /// Name and version that it gives itself.
    pub title: String,
    /// What it says about its use.
    pub instructions: Option<String>,
    asker: Option<Asker>,
}

/// A handle; clones share the server.
#[derive(Debug, Clone)]
pub struct Server {
    config: Arc<ServerConfig>,
    seen: watch::Receiver<Arc<Snapshot>>,
    orders: mpsc::Sender<()>,
    _guard: Arc<DropGuard>,
}

impl Server {
    /// Begins to connect. `news` is rung whenever something about it has changed.
    #[must_use]
    pub fn start(config: ServerConfig, around: Surroundings, news: Arc<Notify>) -> Self {
        let status = if config.enabled {
            Status::Connecting
        } else {
            Status::Disabled
        };
        let first = Snapshot {
            status,
            lists: Arc::default(),
            title: String::new(),
            instructions: None,
            asker: None,
        };
        let (show, seen) = watch::channel(Arc::new(first));
        let (orders, taken) = mpsc::channel(1);
        let stop = CancellationToken::new();
        let config = Arc::new(config);
        if config.enabled {
            let keeper = Keeper {
                config: Arc::clone(&config),
                around,
                show,
                news,
                orders: taken,
                failures: 0,
            };
            tokio::spawn(keeper.run(stop.clone()));
        }
        Self {
            config,
            seen,
            orders,
            _guard: Arc::new(stop.drop_guard()),
        }
    }

    /// Its configuration.
    #[must_use]
    pub fn config(&self) -> &ServerConfig {
        &self.config
    }

    /// Returns the current state.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.seen.borrow())
    }

    /// Connects anew, at once.
    pub fn reconnect(&self) {
        // The queue holds one order. If it is full, the pending order has the same effect.
        let _waiting = self.orders.try_send(());
    }

    /// Tries again if it is away; what it was given up for may be mended.
    pub fn nudge(&self) {
        if matches!(self.snapshot().status, Status::Failed(_) | Status::NeedsLogin) {
            self.reconnect();
        }
    }

    /// Waits until it is known whether it can be had.
    pub async fn settled(&mut self) {
        let settled = |seen: &Arc<Snapshot>| seen.status != Status::Connecting;
        let _ended = self.seen.wait_for(settled).await;
    }

    /// Calls a tool by the name that the server has for it.
    ///
    /// # Errors
    /// When there is no answer, or the server refuses. A tool that fails is an outcome.
    pub async fn call(
        &self,
        tool: &str,
        args: &Map<String, Value>,
        progress: mpsc::Sender<Progress>,
        cancel: &CancellationToken,
    ) -> Result<Outcome, McpError> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(args.clone());
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        Ok(Outcome::of_call(self.ask(request, Some(progress), cancel).await?))
    }

    /// Gets a prompt by the name that the server has for it.
    ///
    /// # Errors
    /// When there is no answer, or the server refuses.
    pub async fn prompt(&self, prompt: &str, args: Map<String, Value>) -> Result<Outcome, McpError> {
        let mut params = GetPromptRequestParams::new(prompt);
        if !args.is_empty() {
            params = params.with_arguments(args);
        }
        let request = ClientRequest::GetPromptRequest(GetPromptRequest::new(params));
        let answer = self.ask(request, None, &CancellationToken::new()).await?;
        Ok(Outcome::of_prompt(answer))
    }

    /// One page of its resources, as the server wrote it.
    ///
    /// # Errors
    /// When there is no answer, or the server refuses.
    pub async fn resources(
        &self,
        cursor: Option<String>,
        cancel: &CancellationToken,
    ) -> Result<Value, McpError> {
        let params = cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
        let request = ClientRequest::ListResourcesRequest(ListResourcesRequest {
            method: Default::default(),
            params,
            extensions: Default::default(),
        });
        self.ask(request, None, cancel).await
    }

    /// What an address of its holds.
    ///
    /// # Errors
    /// When there is no answer, or the server refuses.
    pub async fn read(&self, uri: &str, cancel: &CancellationToken) -> Result<Outcome, McpError> {
        let request =
            ClientRequest::ReadResourceRequest(ReadResourceRequest::new(ReadResourceRequestParams::new(uri)));
        Ok(Outcome::of_resource(self.ask(request, None, cancel).await?))
    }

    /// Sends a request. If it fails with the connection, the status says so before the error is returned.
    async fn ask(
        &self,
        request: ClientRequest,
        progress: Option<mpsc::Sender<Progress>>,
        cancel: &CancellationToken,
    ) -> Result<Value, McpError> {
        let asker = self.asker(cancel).await?;
        let answer = asker.ask_watched(request, progress, cancel).await;
        match answer {
            Err(login @ McpError::Login(_)) => {
                // The new connection is refused as well, so the status becomes `NeedsLogin`, and the next prompt tries again. A new login
                // can belong to another OAuth client, whose tokens the old connection cannot refresh.
                self.reconnect();
                self.noticed().await;
                Err(McpError::NotConnected {
                    server: self.config.name.clone(),
                    why: login.to_string(),
                })
            }
            Err(error) if asker.is_over() => {
                // Otherwise the next call would use the same dead connection.
                self.noticed().await;
                Err(error)
            }
            answer => answer,
        }
    }

    /// Waits until the end of a connection is known to everybody, so that who hears of it does not find the server connected.
    async fn noticed(&self) {
        let mut seen = self.seen.clone();
        let known = seen.wait_for(|seen| seen.status != Status::Connected);
        let _late = tokio::time::timeout(limits::NOTICE, known).await;
    }

    /// Returns the sender of requests. Waits while the server is connecting. A failed server is reconnected for the
    /// next call.
    async fn asker(&self, cancel: &CancellationToken) -> Result<Asker, McpError> {
        let mut waiting = self.clone();
        let wait = async {
            tokio::select! {
                () = waiting.settled() => {}
                () = cancel.cancelled() => {}
            }
        };
        // The smaller limit, so that a call never waits longer for a connection than for its answer.
        let _late = tokio::time::timeout(self.config.timeout.min(limits::START), wait).await;
        if cancel.is_cancelled() {
            return Err(McpError::Cancelled);
        }
        let seen = self.snapshot();
        if let (Status::Connected, Some(asker)) = (&seen.status, &seen.asker) {
            return Ok(asker.clone());
        }
        self.nudge();
        Err(McpError::NotConnected {
            server: self.config.name.clone(),
            why: match &seen.status {
                Status::Failed(why) => why.clone(),
                Status::NeedsLogin => McpError::Login(self.config.name.clone()).to_string(),
                Status::Disabled => "it is disabled".to_owned(),
                Status::Connecting | Status::Connected => "it is being connected".to_owned(),
            },
        })
    }
}

/// What follows the end of a connection.
enum After {
    /// Stop: all handles are dropped.
    Stop,
    /// Another one, at once.
    Again,
    /// It ended by itself.
    Lost(String),
}

/// Keeps a server connected.
struct Keeper {
    config: Arc<ServerConfig>,
    around: Surroundings,
    show: watch::Sender<Arc<Snapshot>>,
    news: Arc<Notify>,
    orders: mpsc::Receiver<()>,
    /// In a row.
    failures: u32,
}

impl Keeper {
    async fn run(mut self, stop: CancellationToken) {
        loop {
            self.set(Status::Connecting);
            let opened = tokio::select! {
                opened = Link::open(&self.config, &self.around) => opened,
                // Ends an attempt that hangs: the order demands a new one at once.
                Some(()) = self.orders.recv() => {
                    self.failures = 0;
                    continue;
                }
                () = stop.cancelled() => return,
            };
            let after = match opened {
                Err(McpError::Login(_)) => {
                    self.set(Status::NeedsLogin);
                    if !self.ordered(None, &stop).await {
                        return;
                    }
                    continue;
                }
                Err(error) => After::Lost(error.to_string()),
                Ok(link) => self.keep(link, &stop).await,
            };
            match after {
                After::Stop => return,
                After::Again => self.failures = 0,
                After::Lost(why) => {
                    tracing::info!(server = self.config.name, "MCP server: {why}");
                    self.failures += 1;
                    self.set(Status::Failed(why));
                    if !self.ordered(self.pause(), &stop).await {
                        return;
                    }
                }
            }
        }
    }

    /// Lists what there is and keeps the lists fresh until the connection ends.
    async fn keep(&mut self, mut link: Link, stop: &CancellationToken) -> After {
        let since = Instant::now();
        let (asker, has) = (link.asker.clone(), link.about.has);
        let changed = Arc::clone(&link.changed);
        let config = Arc::clone(&self.config);
        let after = loop {
            let listing = listing::read(&asker, has, &config.offered);
            let listed = tokio::select! {
                listed = listing => listed,
                Some(()) = self.orders.recv() => break After::Again,
                why = link.lost() => break After::Lost(why),
                () = stop.cancelled() => break After::Stop,
            };
            match listed {
                Ok(lists) => self.publish(&link, lists),
                Err(error) => break After::Lost(format!("its tools and prompts cannot be listed: {error}")),
            }
            tokio::select! {
                // One listing for several notifications in a row.
                () = changed.notified() => tokio::time::sleep(limits::SETTLE).await,
                Some(()) = self.orders.recv() => break After::Again,
                why = link.lost() => break After::Lost(why),
                () = stop.cancelled() => break After::Stop,
            }
        };
        // Only a connection that lasted resets the count: a server that crashes after each start keeps its growing
        // delay.
        if since.elapsed() > limits::STEADY {
            self.failures = 0;
        }
        // Published before the process has ended, which may take long: new calls must not go to the old connection.
        match &after {
            After::Lost(why) => self.set(Status::Failed(why.clone())),
            After::Again => self.set(Status::Connecting),
            After::Stop => {}
        }
        link.end().await;
        after
    }

    fn publish(&self, link: &Link, lists: Lists) {
        let about = &link.about;
        self.show.send_replace(Arc::new(Snapshot {
            status: Status::Connected,
            lists: Arc::new(lists),
            title: about.title.clone(),
            instructions: about.instructions.clone(),
            asker: Some(link.asker.clone()),
        }));
        self.news.notify_one();
    }

    /// Shows how it is doing; what it offers stays.
    fn set(&self, status: Status) {
        self.show.send_if_modified(|seen| {
            let is_new = seen.status != status;
            // The lists of a lost connection stay, so that the model's tools do not change while the server
            // reconnects.
            *seen = Arc::new(Snapshot {
                status,
                asker: None,
                ..Snapshot::clone(seen)
            });
            is_new
        });
        self.news.notify_one();
    }

    /// Returns the delay before the next attempt; none: until an order comes.
    fn pause(&self) -> Option<Duration> {
        let (first, longest) = limits::BACKOFF;
        let doubled = 1_u32
            .checked_shl(self.failures.saturating_sub(1))
            .unwrap_or(u32::MAX);
        (self.failures < limits::ATTEMPTS).then(|| first.saturating_mul(doubled).min(longest))
    }

    /// Waits for the delay or an order. Returns false once all handles are dropped.
    async fn ordered(&mut self, pause: Option<Duration>, stop: &CancellationToken) -> bool {
        let waited = async {
            match pause {
                Some(pause) => tokio::time::sleep(pause).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = waited => true,
            order = self.orders.recv() => {
                // An order starts a new series of attempts, without the grown delay.
                self.failures = 0;
                order.is_some()
            }
            () = stop.cancelled() => false,
        }
    }
}
