//! Making a connection, and ending it.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use http::{HeaderName, HeaderValue};
use process::{Boxed, ChildProcess, Spawn, SpawnSpec};
use rmcp::RoleClient;
use rmcp::model::SubscriptionFilter;
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt as _, Peer, RunningService,
    RunningServiceCancellationToken,
};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, Transport};
use serde_json::Value;
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::{Instant, timeout_at};

use crate::answers::BoundedAnswers;
use crate::ask::Asker;
use crate::client::{Client, Watching};
use crate::config::{HttpConfig, Reach, ServerConfig, StdioConfig};
use crate::error::{McpError, with_causes};
use crate::expand::Expander;
use crate::limits;
use crate::listing::Has;
use crate::oauth::{self, Logins};
use crate::open_questions::OpenQuestions;
use crate::paced::retries;
use crate::pipe::{Pipe, Tail};
use crate::post_limits::PostLimits;
use crate::probe::{Probe, Probing};
use crate::question::AskUser;
use crate::text::{line, plain};
use crate::web::Bounded;

/// A client of HTTP.
pub type HttpClient = reqwest::Client;
/// Gives the addresses of a name.
pub use reqwest::dns::Resolve;

/// Gives HTTP clients: with the agent's proxies and certificates.
pub trait Web: Send + Sync + fmt::Debug {
    /// The client for an address.
    fn client(&self, url: &str) -> Boxed<'_, Result<reqwest::Client, String>>;

    /// A new client that connects only to what `resolver` gives. Behind a proxy the proxy resolves names.
    fn resolving(&self, resolver: Arc<dyn Resolve>) -> Boxed<'_, Result<reqwest::Client, String>>;
}

/// What connections need of the agent. Clones share it.
#[derive(Clone)]
pub struct Surroundings {
    /// Starts programs.
    pub spawn: Arc<dyn Spawn>,
    /// Environment of every program; the variables of a server's configuration come on top.
    pub env: Vec<(OsString, OsString)>,
    /// Gives HTTP clients.
    pub web: Arc<dyn Web>,
    /// Variables.
    pub expand: Expander,
    /// Asks the user.
    pub ask: Arc<dyn AskUser>,
    /// Where logins are kept.
    pub logins: Logins,
    /// The directory that is worked in.
    pub cwd: PathBuf,
    /// Version of the agent.
    pub version: String,
}

impl fmt::Debug for Surroundings {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Surroundings")
            .field("cwd", &self.cwd)
            .finish_non_exhaustive()
    }
}

/// A connection that stands.
pub(crate) struct Link {
    /// Ends with the connection.
    over: JoinHandle<()>,
    stop: Option<RunningServiceCancellationToken>,
    /// Hears of changed lists, where the server does not send that by itself.
    listening: Option<AbortHandle>,
    child: Option<Box<dyn ChildProcess>>,
    pub(crate) asker: Asker,
    pub(crate) changed: Arc<Notify>,
    pub(crate) about: About,
    tail: Tail,
}

/// What a server says of itself.
#[derive(Debug, Clone)]
pub(crate) struct About {
    pub(crate) title: String,
    pub(crate) instructions: Option<String>,
    pub(crate) has: Has,
    /// The changes of lists that have to be asked for; none with a server of an older revision, which sends them by itself.
    changes: Option<SubscriptionFilter>,
}

impl Link {
    /// Connects; takes no longer than [`limits::START`].
    pub(crate) async fn open(config: &ServerConfig, around: &Surroundings) -> Result<Self, McpError> {
        let watching = Watching::default();
        let changed = Arc::new(Notify::new());
        let client = Client {
            server: config.name.as_str().into(),
            version: around.version.as_str().into(),
            cwd: around.cwd.as_path().into(),
            ask: Arc::clone(&around.ask),
            watching: watching.clone(),
            changed: Arc::clone(&changed),
            questions: OpenQuestions::new(),
        };
        let probe = Probe::default();
        let attempt = Attempt {
            config,
            around,
            client: &client,
            probe: &probe,
            until: Instant::now() + limits::START,
        };
        let (running, child, tail) = match attempt.connect(Probe::first()).await {
            Err(error) if !matches!(error, McpError::Login(_)) => match probe.second() {
                Some(lifecycle) => attempt.connect(lifecycle).await?,
                None => return Err(error),
            },
            outcome => outcome?,
        };
        let about = about(&running);
        let listening = about.changes.clone().map(|changes| {
            let (peer, changed) = (running.peer().clone(), Arc::clone(&changed));
            tokio::spawn(listen(peer, changes, changed)).abort_handle()
        });
        Ok(Self {
            asker: Asker {
                server: config.name.clone(),
                peer: running.peer().clone(),
                client,
                watching,
                timeout: config.timeout,
            },
            listening,
            stop: Some(running.cancellation_token()),
            over: tokio::spawn(async move { drop(running.waiting().await) }),
            child,
            changed,
            about,
            tail,
        })
    }

    /// Waits for the end of the connection and says why it ended. Cancel-safe.
    pub(crate) async fn lost(&mut self) -> String {
        let over = async {
            if !self.over.is_finished() {
                let _how = (&mut self.over).await;
            }
        };
        let why = match &mut self.child {
            None => {
                over.await;
                "the connection was closed".to_owned()
            }
            Some(child) => tokio::select! {
                how = child.ended() => how,
                () = over => "it closed the connection".to_owned(),
            },
        };
        self.tail.explain(why)
    }

    /// Ends the connection properly: its input is closed, and a program that does not end then is killed.
    pub(crate) async fn end(mut self) {
        // The MCP specification has no shutdown request for stdio: close stdin, wait, then kill.
        if let Some(stop) = self.stop.take() {
            stop.cancel();
        }
        if let Some(listening) = &self.listening {
            listening.abort();
        }
        if !self.over.is_finished() {
            let _late = tokio::time::timeout(limits::STOP, &mut self.over).await;
        }
        if let Some(mut child) = self.child.take() {
            let _late = tokio::time::timeout(limits::STOP, child.ended()).await;
            // What it started may still be there.
            child.kill().await;
        }
    }
}

/// Hears of changed lists until the connection ends, or the server does not tell of them.
async fn listen(peer: Peer<RoleClient>, changes: SubscriptionFilter, changed: Arc<Notify>) {
    while let Ok(mut subscription) = peer.listen(changes.clone()).await {
        while let Ok(Some(_)) = subscription.next().await {
            changed.notify_one();
        }
        tokio::time::sleep(limits::BACKOFF.1).await;
        // It may have changed meanwhile.
        changed.notify_one();
    }
}

type Running = RunningService<RoleClient, Client>;
type Connected = Result<(Running, Option<Box<dyn ChildProcess>>, Tail), McpError>;

/// Attempts to connect to one server: the first may show that the server has to be greeted otherwise.
struct Attempt<'a> {
    config: &'a ServerConfig,
    around: &'a Surroundings,
    client: &'a Client,
    probe: &'a Probe,
    /// For all attempts.
    until: Instant,
}

impl Attempt<'_> {
    async fn connect(&self, lifecycle: ClientLifecycleMode) -> Connected {
        match &self.config.reach {
            Reach::Stdio(stdio) => self.start(stdio, lifecycle).await,
            Reach::Http(http) => Ok((self.reach(http, lifecycle).await?, None, Tail::default())),
        }
    }

    /// Greets the server at the other end of a transport.
    async fn greet(
        &self,
        way: impl Transport<RoleClient> + 'static,
        lifecycle: ClientLifecycleMode,
    ) -> Result<Running, ClientInitializeError> {
        let way = Probing::new(BoundedAnswers::new(way), self.probe);
        self.client.clone().serve_with_lifecycle(way, lifecycle).await
    }

    /// Starts a program and greets it.
    async fn start(&self, config: &StdioConfig, lifecycle: ClientLifecycleMode) -> Connected {
        let (name, around, tail) = (&self.config.name, self.around, Tail::default());
        // Expanding a value can run a command, which must not block the runtime.
        let (expander, config, cwd) = (around.expand.clone(), config.clone(), around.cwd.clone());
        let expanded = tokio::task::spawn_blocking(move || expander.stdio(&config, &cwd)).await;
        let (config, cwd) = expanded.map_err(McpError::connect)??;
        let spec = SpawnSpec {
            program: config.command.clone().into(),
            args: config.args.into_iter().map(Into::into).collect(),
            env: environment(&around.env, config.env),
            cwd: cwd.into(),
        };
        let started = around.spawn.spawn_child(spec).await;
        let (mut child, pipes) = started.map_err(|error| {
            McpError::connect(format!(
                "{} cannot be started: {error}",
                line(&config.command, limits::NAME)
            ))
        })?;
        let greeting = self.greet(Pipe::new(name, pipes, tail.clone()), lifecycle);
        let greeting = timeout_at(self.until, greeting);
        // A server that ends at once is reported without waiting for the time limit.
        let outcome = tokio::select! {
            greeted = greeting => match greeted {
                Ok(Ok(running)) => Ok(running),
                Ok(Err(error)) => {
                    // It may be about to say how it ended.
                    let how = tokio::time::timeout(std::time::Duration::from_millis(300), child.ended()).await;
                    Err(how.unwrap_or_else(|_| greeting_failed(&error)))
                }
                Err(_) => Err(too_late()),
            },
            how = child.ended() => Err(how),
        };
        match outcome {
            Ok(running) => Ok((running, Some(child), tail)),
            Err(why) => {
                child.kill().await;
                // Another task reads the log. It has ended by now or ends at once, so one turn lets it store the last lines.
                tokio::task::yield_now().await;
                Err(McpError::connect(tail.explain(why)))
            }
        }
    }
}

/// The error of a server that says nothing.
fn too_late() -> String {
    format!("it did not introduce itself within {} s", limits::START.as_secs())
}

/// The environment of a program: the common one, with the variables of its configuration.
fn environment(
    common: &[(OsString, OsString)],
    own: impl IntoIterator<Item = (String, String)>,
) -> Vec<(OsString, OsString)> {
    let own: Vec<(OsString, OsString)> = own
        .into_iter()
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    let is_kept = |name: &OsString| own.iter().all(|(other, _)| other != name);
    let mut env: Vec<_> = common.iter().filter(|(name, _)| is_kept(name)).cloned().collect();
    env.extend(own);
    env
}

impl Attempt<'_> {
    /// Reaches an address and greets who is there.
    async fn reach(&self, config: &HttpConfig, lifecycle: ClientLifecycleMode) -> Result<Running, McpError> {
        let (name, around) = (&self.config.name, self.around);
        let (expander, config) = (around.expand.clone(), config.clone());
        let expanded = tokio::task::spawn_blocking(move || expander.http(&config)).await;
        let config = expanded.map_err(McpError::connect)??;
        let url = checked(&config.url)?;
        let web = around.web.client(&url).await.map_err(McpError::connect)?;
        let posts = PostLimits::new(self.probe);
        let given_up = posts.guard();
        let web = Bounded::new(web, posts);
        let headers = headers(&config)?;
        // A configured header takes precedence over a stored login.
        let is_authorised = headers.contains_key(&http::header::AUTHORIZATION);
        let mut settings =
            StreamableHttpClientTransportConfig::with_uri(url.as_str()).custom_headers(headers);
        settings.retry_config = Arc::new(retries());
        let greeting = async {
            if is_authorised {
                let way = StreamableHttpClientTransport::with_client(web, settings);
                return Ok::<_, McpError>(self.greet(way, lifecycle).await);
            }
            // A login that cannot be used now is not a missing one: the connection fails and is tried again.
            let authorised = oauth::client(name, &url, &config, around, web).await?;
            let way = StreamableHttpClientTransport::with_client(authorised, settings);
            Ok(self.greet(way, lifecycle).await)
        };
        let greeted = timeout_at(self.until, greeting).await;
        match greeted.map_err(|_| McpError::Connect(too_late()))?? {
            Ok(running) => {
                let _token = given_up.disarm();
                Ok(running)
            }
            Err(error) if error.is_authorization_required() || error.auth_challenge().is_some() => {
                Err(McpError::Login(name.to_owned()))
            }
            Err(error) => Err(McpError::connect(greeting_failed(&error))),
        }
    }
}

/// The configured headers of every request.
fn headers(config: &HttpConfig) -> Result<HashMap<HeaderName, HeaderValue>, McpError> {
    let mut headers = HashMap::new();
    for (name, value) in &config.headers {
        let bad = || McpError::Config(format!("the header {} cannot be sent", line(name, limits::NAME)));
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
        let mut value = HeaderValue::from_str(value).map_err(|_| bad())?;
        // Debug output of the HTTP library hides sensitive values.
        value.set_sensitive(true);
        headers.insert(key, value);
    }
    Ok(headers)
}

/// The address, if it is one.
fn checked(url: &str) -> Result<String, McpError> {
    let parsed = reqwest::Url::parse(url)
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https"));
    match parsed {
        Some(url) => Ok(url.into()),
        None => Err(McpError::Config(
            "\"url\" should be an http or https address".to_owned(),
        )),
    }
}

/// What went wrong, without what the server said in full.
fn greeting_failed(error: &ClientInitializeError) -> String {
    let text = match error {
        ClientInitializeError::ConnectionClosed(_) => "it closed the connection".to_owned(),
        ClientInitializeError::ExpectedInitResponse(_) | ClientInitializeError::ExpectedInitResult(_) => {
            "it does not answer as an MCP server".to_owned()
        }
        ClientInitializeError::JsonRpcError(error) => format!("it refused: {}", error.message),
        ClientInitializeError::TransportError { error, .. } => with_causes(&*error.error),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => return greeting_failed(fallback),
        other => other.to_string(),
    };
    line(&text, limits::ERROR)
}

/// What the server said of itself when it was greeted.
fn about(running: &Running) -> About {
    let info = running.peer().peer_info();
    let is_modern = info
        .as_ref()
        .is_some_and(|info| !info.protocol_version.has_initialize());
    let value = info
        .and_then(|info| serde_json::to_value(&*info).ok())
        .unwrap_or_default();
    let has = |key: &str| {
        value
            .get("capabilities")
            .and_then(|able| able.get(key))
            .is_some_and(Value::is_object)
    };
    let text = |key: &str| value.get("serverInfo").and_then(|info| info.get(key)?.as_str());
    let title = format!(
        "{} {}",
        text("name").unwrap_or_default(),
        text("version").unwrap_or_default()
    );
    let tells =
        |key: &str| value.pointer(&format!("/capabilities/{key}/listChanged")) == Some(&Value::Bool(true));
    let mut changes = SubscriptionFilter::new();
    changes.tools_list_changed = tells("tools").then_some(true);
    changes.prompts_list_changed = tells("prompts").then_some(true);
    changes.resources_list_changed = tells("resources").then_some(true);
    About {
        changes: (is_modern && changes != SubscriptionFilter::new()).then_some(changes),
        title: line(&title, limits::NAME),
        instructions: value
            .get("instructions")
            .and_then(Value::as_str)
            .map(|text| plain(text, limits::INSTRUCTIONS)),
        has: Has {
            tools: has("tools"),
            prompts: has("prompts"),
            resources: has("resources"),
        },
    }
}
