//! The health address of a worker: `GET /live`, `/ready` and `/metrics` over HTTP/1.1, one request per connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use anyhow::{Context as _, Result};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::limits::{HEALTH_CONNECTIONS, HEALTH_WAIT};

/// What a worker reports.
#[derive(Debug, Default)]
pub(crate) struct Load {
    /// Sessions that this worker has.
    pub(crate) sessions: AtomicUsize,
    /// Sessions that it takes at most.
    pub(crate) most: AtomicUsize,
    /// Sessions that wait for any worker.
    pub(crate) waiting: AtomicUsize,
    /// Sessions that this worker took since its start.
    pub(crate) taken: AtomicU64,
    /// Sessions whose lease or store this worker lost.
    pub(crate) lost: AtomicU64,
    /// True when it takes no more sessions because it stops.
    pub(crate) draining: AtomicBool,
    /// True while a NATS server is connected.
    pub(crate) connected: AtomicBool,
}

/// Listens on an address until the worker ends.
pub(crate) async fn listen(address: &str, load: Arc<Load>) -> Result<()> {
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("--health {address} cannot be opened"))?;
    let places = Arc::new(Semaphore::new(HEALTH_CONNECTIONS));
    tokio::spawn(async move {
        while let Ok(place) = Arc::clone(&places).acquire_owned().await {
            // A failed accept concerns one connection; the pause keeps a lack of descriptors from using a whole core.
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(crate::limits::LOCK_PAUSE).await;
                continue;
            };
            let load = Arc::clone(&load);
            tokio::spawn(async move {
                drop(tokio::time::timeout(HEALTH_WAIT, serve(stream, &load)).await);
                drop(place);
            });
        }
    });
    Ok(())
}

async fn serve(mut stream: TcpStream, load: &Load) -> std::io::Result<()> {
    let mut request = Vec::new();
    let mut piece = [0; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.len() < 8192 {
        let count = stream.read(&mut piece).await?;
        if count == 0 {
            return Ok(());
        }
        request.extend(piece.iter().take(count));
    }
    let line = String::from_utf8_lossy(&request);
    let mut words = line.split_whitespace();
    let (status, body) = match (words.next(), words.next()) {
        (Some("GET"), Some(path)) => answer(path, load),
        _ => ("405 Method Not Allowed", String::new()),
    };
    let response = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(response.as_bytes()).await?;
    stream.shutdown().await
}

fn answer(path: &str, load: &Load) -> (&'static str, String) {
    match path {
        "/live" => ("200 OK", "ok\n".to_owned()),
        "/ready" if load.draining.load(Ordering::Relaxed) => {
            ("503 Service Unavailable", "draining\n".to_owned())
        }
        "/ready" if !load.connected.load(Ordering::Relaxed) => {
            ("503 Service Unavailable", "NATS is not connected\n".to_owned())
        }
        "/ready" => ("200 OK", "ok\n".to_owned()),
        "/metrics" => ("200 OK", metrics(load)),
        _ => ("404 Not Found", String::new()),
    }
}

fn metrics(load: &Load) -> String {
    let (owned, most) = (
        load.sessions.load(Ordering::Relaxed),
        load.most.load(Ordering::Relaxed),
    );
    let gauges = [
        ("pinion_worker_sessions", "Sessions of this worker.", owned as u64),
        (
            "pinion_worker_room",
            "Further sessions that this worker takes.",
            most.saturating_sub(owned) as u64,
        ),
        (
            "pinion_worker_waiting_sessions",
            "Sessions that wait for any worker.",
            load.waiting.load(Ordering::Relaxed) as u64,
        ),
        (
            "pinion_worker_draining",
            "1 while the worker takes no sessions because it stops.",
            u64::from(load.draining.load(Ordering::Relaxed)),
        ),
        (
            "pinion_worker_connected",
            "1 while a NATS server is connected.",
            u64::from(load.connected.load(Ordering::Relaxed)),
        ),
    ];
    let counters = [
        (
            "pinion_worker_taken_total",
            "Sessions taken since the start.",
            load.taken.load(Ordering::Relaxed),
        ),
        (
            "pinion_worker_lost_total",
            "Sessions whose lease or store was lost.",
            load.lost.load(Ordering::Relaxed),
        ),
    ];
    let one = |kind: &str, (name, help, value): (&str, &str, u64)| {
        format!("# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n")
    };
    let gauges = gauges.into_iter().map(|row| one("gauge", row));
    let counters = counters.into_iter().map(|row| one("counter", row));
    gauges.chain(counters).collect()
}

#[cfg(test)]
mod tests {
    use super::{Load, answer};
    use std::sync::atomic::Ordering;

    #[test]
    fn draining_worker_is_live_but_not_ready() {
        let load = Load::default();
        assert!(answer("/ready", &load).0.starts_with("503"));
        load.connected.store(true, Ordering::Relaxed);
        assert!(answer("/ready", &load).0.starts_with("200"));
        load.draining.store(true, Ordering::Relaxed);
        assert!(answer("/ready", &load).0.starts_with("503"));
        assert!(answer("/live", &load).0.starts_with("200"));
        load.most.store(7, Ordering::Relaxed);
        assert!(answer("/metrics", &load).1.contains("\npinion_worker_room 7\n"));
    }
}
