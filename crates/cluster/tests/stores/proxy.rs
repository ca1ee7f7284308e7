//! A TCP proxy that loses responses: what the server says is dropped, then the connection is cut.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Result;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// The proxy. It ends with the runtime of the test.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    loses: AtomicBool,
    lost: AtomicUsize,
}

impl Proxy {
    /// Passes everything on to a port.
    pub(crate) async fn start(target: u16) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let port = listener.local_addr()?.port();
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(connection(client, target, Arc::clone(&shared)));
            }
        });
        Ok(Self { port, state })
    }

    /// Loses the next response, and cuts the connection 300 ms later. Returns how many were lost before.
    pub(crate) fn lose_responses(&self) -> usize {
        self.state.loses.store(true, Ordering::SeqCst);
        self.lost()
    }

    /// Number of responses that were lost.
    pub(crate) fn lost(&self) -> usize {
        self.state.lost.load(Ordering::SeqCst)
    }
}

async fn connection(client: TcpStream, target: u16, state: Arc<State>) -> std::io::Result<()> {
    let server = TcpStream::connect(("127.0.0.1", target)).await?;
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let forward = tokio::spawn(async move { tokio::io::copy(&mut from_client, &mut to_server).await });
    let mut buffer = vec![0; 64 << 10];
    loop {
        let read = from_server.read(&mut buffer).await?;
        // Only the response to the append: earlier responses have gone through.
        if read == 0 || state.loses.swap(false, Ordering::SeqCst) {
            break;
        }
        to_client
            .write_all(buffer.get(..read).unwrap_or_default())
            .await?;
    }
    state.lost.fetch_add(1, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_millis(300)).await;
    forward.abort();
    Ok(())
}
