//! The web server: the protocol on a WebSocket for any number of clients, over plain HTTP, and a page, on one port
//! (web.md 1). It has a thread of its own, so that a thousand readers do not slow down the sessions.
//!
//! `server` listens and routes paths, `guard` controls access, `socket` (on `frames`) and `http` carry lines, `page`
//! has the files. Events flow one way: sessions, `broadcaster`, `log`, and from there to each client (`clients`) at its
//! own pace.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod broadcaster;
mod clients;
mod error;
mod frame_text;
mod frames;
mod guard;
mod http;
pub mod limits;
mod log;
mod memory;
mod page;
mod room;
mod rooms;
mod server;
mod socket;
mod state;
mod stream;
#[cfg(test)]
mod tests;
mod tls;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::thread;

use serve::queues::SessionQueues;
use session::{Lane, Outgoing, RequestSender};
use tokio::sync::mpsc::Receiver;
use tokio_util::sync::CancellationToken;

use crate::broadcaster::Broadcaster;
use crate::clients::Clients;
use crate::guard::Guard;
use crate::limits::{WEB_CLOSE_WAIT, WEB_CONNECTIONS, WEB_LAST_WORDS};
use crate::memory::Memory;
use crate::page::Page;
use crate::rooms::{Rooms, Served};
use crate::state::{Slot, WebState};

pub use crate::error::Error;
pub use crate::rooms::Link;

/// Address, page and access control of a web server.
#[derive(Debug, Clone, Default)]
pub struct WebOptions {
    /// Name or address to listen at.
    pub host: String,
    /// Port; 0 takes a free one.
    pub port: u16,
    /// What clients have to show; none: nothing, for loopback only.
    pub token: Option<String>,
    /// Origins of other pages that may use it, letter by letter.
    pub origins: Vec<String>,
    /// A page of the user's own instead of ours.
    pub ui: Option<PathBuf>,
    /// Certificate chain and key, as PEM files: TLS instead of plain TCP.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Listen beyond loopback without a token, too.
    pub insecure: bool,
    /// Connections at the same time, if the system allows fewer files than [`WEB_CONNECTIONS`] take.
    pub connections: Option<usize>,
    /// Bytes that all clients hold together, instead of [`limits::WEB_MEMORY_BYTES`].
    pub memory: Option<usize>,
    /// Version of the agent.
    pub version: String,
}

/// A running web server.
pub struct Web {
    bound: SocketAddr,
    state: Arc<WebState>,
    stop: CancellationToken,
    /// Cancelled once the thread of the server has ended.
    ended: CancellationToken,
}

impl Web {
    /// Starts the server. `queue` is the output of the first session, `joining` brings further sessions, `slot` takes
    /// commands.
    ///
    /// # Errors
    /// When it cannot listen at the address, when the address needs a token, or when the page or certificate is unreadable.
    pub fn open(
        options: WebOptions,
        queue: Receiver<Outgoing>,
        joining: Receiver<Lane>,
        slot: RequestSender,
    ) -> Result<Self, Error> {
        let lanes = SessionQueues::new(queue, Some(joining));
        Self::start(options, Source::Sessions(lanes, slot))
    }

    /// Starts a gateway to sessions of workers. The page of each session is at `/SESSION/`.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_gateway(options: WebOptions, link: Link) -> Result<Self, Error> {
        Self::start(options, Source::Workers(link))
    }

    fn start(options: WebOptions, source: Source) -> Result<Self, Error> {
        let failed = |what: String| move |error: io::Error| Error::Setup(format!("{what}: {error}"));
        let page = match &options.ui {
            None => Page::Own,
            Some(dir) => Page::directory(dir)
                .map_err(failed(format!("The page in {} cannot be served", dir.display())))?,
        };
        let tls = options.tls.as_ref().map(|(chain, key)| tls::acceptor(chain, key));
        let tls = tls
            .transpose()
            .map_err(failed("The certificate cannot be used".to_owned()))?;
        let place = format!("{}:{}", options.host, options.port);
        let (listener, bound) = server::listen(&options.host, options.port)
            .map_err(failed(format!("Cannot listen at {place}")))?;
        if !bound.ip().is_loopback() && options.token.is_none() && !options.insecure {
            return Err(Error::Setup(format!(
                "{place} can be reached from other machines: give --web-token (without a value one is made up), or --web-insecure"
            )));
        }
        let guard = Guard::new(
            bound,
            &options.host,
            tls.is_some(),
            options.token,
            options.origins,
        );
        let most = options.connections.unwrap_or(WEB_CONNECTIONS);
        let memory = options.memory.map_or_else(Memory::default, Memory::new);
        let clients = Clients::new(memory.clone());
        let slot = match &source {
            Source::Sessions(_, slot) => Some(Slot::Sessions(slot.clone())),
            Source::Workers(_) => None,
        };
        let state = Arc::new(WebState::new(
            clients.clone(),
            Arc::new(guard),
            Arc::new(page),
            slot,
        ));
        let (stop, feed) = (
            CancellationToken::new(),
            Feed::new(source, &state, memory, options.version),
        );
        let (stopped, served) = (stop.clone(), feed.served(&state));
        let ended = CancellationToken::new();
        let done = ended.clone().drop_guard();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(failed("The web server cannot start".to_owned()))?;
        thread::Builder::new()
            .name("web".to_owned())
            .spawn(move || {
                runtime.block_on(async {
                    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else {
                        return;
                    };
                    tokio::spawn(server::run(listener, tls, served, most, stopped.clone()));
                    serve(feed, &clients, &stopped).await;
                });
                runtime.shutdown_background();
                drop(done);
            })
            .map_err(Error::Thread)?;
        Ok(Self {
            bound,
            state,
            stop,
            ended,
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.bound
    }

    /// Accepts no more commands and clients, and reports that at `/ready`; connected clients still get events. Closes
    /// the sessions' requests unless another transport holds it.
    pub fn drain(&self) {
        self.state.drain();
    }

    /// Accepts no more connections, disconnects all clients, and waits for that for a limited time.
    pub async fn close(self) {
        self.stop.cancel();
        self.ended.cancelled().await;
    }

    /// Resolves when it has ended by itself.
    pub async fn ended(&self) {
        self.ended.cancelled().await;
    }
}

/// Where the events come from, and where commands go.
enum Source {
    Sessions(SessionQueues, RequestSender),
    Workers(Link),
}

/// What writes the logs.
enum Feed {
    Sessions(Broadcaster, SessionQueues),
    Workers(Arc<Rooms>, Receiver<String>),
}

impl Feed {
    fn new(source: Source, state: &Arc<WebState>, memory: Memory, version: String) -> Self {
        match source {
            Source::Sessions(lanes, _) => {
                Self::Sessions(Broadcaster::new(state.clients.clone(), &version), lanes)
            }
            Source::Workers(link) => {
                let rooms = Rooms::new(Arc::clone(state), memory, version, &link);
                Self::Workers(Arc::new(rooms), link.lines)
            }
        }
    }

    fn served(&self, state: &Arc<WebState>) -> Served {
        match self {
            Self::Sessions(..) => Served::One(Arc::clone(state)),
            Self::Workers(rooms, _) => Served::Many(Arc::clone(rooms)),
        }
    }

    async fn run(self) {
        match self {
            Self::Sessions(broadcaster, lanes) => broadcaster.run(lanes).await,
            Self::Workers(rooms, lines) => rooms.run(lines).await,
        }
    }
}

/// Broadcasts until the sessions end or the server is stopped; then disconnects the clients and waits for that, up to a
/// limit.
async fn serve(feed: Feed, clients: &Clients, stopped: &CancellationToken) {
    let rooms = match &feed {
        Feed::Sessions(..) => None,
        Feed::Workers(rooms, _) => Some(Arc::clone(rooms)),
    };
    let mut speaking = pin!(feed.run());
    tokio::select! {
        () = &mut speaking => {}
        () = stopped.cancelled() => {
            // What sessions said at their end may still be on its way.
            let _all_said = tokio::time::timeout(WEB_LAST_WORDS, speaking).await;
        }
    }
    stopped.cancel();
    clients.end();
    if let Some(rooms) = &rooms {
        rooms.end();
    }
    let left = async {
        clients.all_left().await;
        if let Some(rooms) = &rooms {
            rooms.all_left().await;
        }
    };
    let _some_stay = tokio::time::timeout(WEB_CLOSE_WAIT, left).await;
}
