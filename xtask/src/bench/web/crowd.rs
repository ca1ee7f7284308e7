//! A thousand clients of a web server in one thread. Each records how long every delta took to arrive from the model.
//! The group's module evaluates the times.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::oneshot;

use super::intake::{Way, head};
use crate::bench::limits::{PATIENCE, WEB_DELTAS};
use crate::bench::probe::{Probe, numbers};

/// Receive buffer of a client that never reads, bytes: the server shall notice soon.
const STALLED_BUFFER: u32 = 4 << 10;

/// How often the clients look whether something came, at most. It is counted as delay. Clients that were woken for each frame would
/// take as much of the server's time as the frames do; from a network it would get them in bunches, too.
const LOOK: Duration = Duration::from_micros(300);

/// How late the deltas came to all clients together.
#[derive(Debug, Default)]
pub(super) struct Delays(Vec<u32>);

impl Delays {
    /// The delay that this part of them does not exceed, ms.
    pub(super) fn within(&self, percent: usize) -> f64 {
        let at = (self.0.len() * percent).div_ceil(100).saturating_sub(1);
        self.0.get(at).map_or(f64::NAN, |us| f64::from(*us) / 1e3)
    }
}

/// What the clients note.
#[derive(Debug, Default)]
struct Notes {
    /// Clients whose request was granted.
    joined: usize,
    /// Clients that were sent away, or had another answer.
    gone: usize,
    /// Clients that have heard the last delta.
    whole: usize,
    /// Deltas that came at another place than where they belong.
    wrong: usize,
    /// Microseconds from the model to the client.
    delays: Vec<u32>,
}

/// Clients that are there. Dropping it sends them away.
#[derive(Debug)]
pub(super) struct Crowd {
    notes: Arc<Mutex<Notes>>,
    listening: usize,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Crowd {
    /// Brings clients that listen, and some that never read.
    pub(super) fn gather(
        address: &str,
        way: Way,
        (listening, stalled): (usize, usize),
        probe: &Arc<Probe>,
    ) -> Result<Self> {
        let notes = Arc::new(Mutex::new(Notes::default()));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .on_thread_park(|| thread::sleep(LOOK))
            .build()?;
        let (stop, stopped) = oneshot::channel();
        let (own, probe, address) = (Arc::clone(&notes), Arc::clone(probe), address.to_owned());
        let thread = thread::spawn(move || {
            runtime.block_on(async {
                for number in 0..listening + stalled {
                    let (notes, probe) = (Arc::clone(&own), Arc::clone(&probe));
                    match join(&address, way, number < stalled).await {
                        Ok((stream, rest)) => {
                            lock(&notes).joined += 1;
                            tokio::spawn(listen(stream, rest, way, number < stalled, notes, probe));
                        }
                        Err(_) => lock(&notes).gone += 1,
                    }
                }
                // The sender is dropped when the crowd ends.
                let _dropped = stopped.await;
            });
        });
        let crowd = Self {
            notes,
            listening,
            stop: Some(stop),
            thread: Some(thread),
        };
        crowd.until("all clients are there", |notes| {
            notes.joined + notes.gone == listening + stalled
        })?;
        ensure!(lock(&crowd.notes).gone == 0, "not every client was let in");
        Ok(crowd)
    }

    /// Waits until everybody who listens has heard the whole answer.
    pub(super) fn heard(&self) -> Result<Delays> {
        self.until("all clients heard everything", |notes| {
            notes.whole + notes.gone >= self.listening
        })?;
        let mut notes = lock(&self.notes);
        let mut delays = std::mem::take(&mut notes.delays);
        let (all, Notes { gone, wrong, .. }) = (self.listening * WEB_DELTAS, &*notes);
        ensure!(
            (delays.len(), *gone, *wrong) == (all, 0, 0),
            "{} of {all} deltas came, {wrong} at a wrong place; {gone} clients were sent away",
            delays.len()
        );
        delays.sort_unstable();
        Ok(Delays(delays))
    }

    fn until(&self, what: &str, fits: impl Fn(&Notes) -> bool) -> Result<()> {
        let end = Instant::now() + PATIENCE;
        while !fits(&lock(&self.notes)) {
            ensure!(
                Instant::now() < end,
                "waited in vain until {what}: {:?}",
                Brief(&lock(&self.notes))
            );
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It cannot fail but by a panic, which has been printed.
            let _ended = thread.join();
        }
    }
}

/// Notes without the delays, for an error.
struct Brief<'a>(&'a Notes);

impl std::fmt::Debug for Brief<'_> {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Notes {
            joined, gone, whole, ..
        } = self.0;
        write!(
            to,
            "{joined} came, {gone} are gone, {whole} heard all, {} deltas",
            self.0.delays.len()
        )
    }
}

fn lock(notes: &Mutex<Notes>) -> MutexGuard<'_, Notes> {
    notes.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Asks for events; gives the connection and what came after the answer's head.
async fn join(address: &str, way: Way, stalled: bool) -> Result<(TcpStream, Vec<u8>)> {
    let socket = TcpSocket::new_v4()?;
    if stalled {
        socket.set_recv_buffer_size(STALLED_BUFFER)?;
    }
    let mut stream = socket.connect(address.parse()?).await?;
    stream.write_all(way.request(address).as_bytes()).await?;
    let mut bytes = Vec::new();
    let (status, length) = loop {
        ensure!(stream.read_buf(&mut bytes).await? > 0, "closed");
        if let Some(head) = head(&bytes) {
            break head;
        }
    };
    ensure!(matches!(status, 101 | 200), "status {status}");
    bytes.drain(..length);
    Ok((stream, bytes))
}

async fn listen(
    mut stream: TcpStream,
    mut bytes: Vec<u8>,
    way: Way,
    stalled: bool,
    notes: Arc<Mutex<Notes>>,
    probe: Arc<Probe>,
) {
    if stalled {
        // It is there and does nothing, until everybody leaves.
        std::future::pending::<()>().await;
    }
    let mut next = 0;
    loop {
        bytes.reserve(8 << 10);
        if !matches!(stream.read_buf(&mut bytes).await, Ok(1..)) {
            lock(&notes).gone += 1;
            return;
        }
        let now = Instant::now();
        way.drain(&mut bytes, |event| {
            let Some(delta) = delta(event) else { return };
            let mut notes = lock(&notes);
            for number in numbers(delta) {
                notes.wrong += usize::from(number != next);
                next = (number + 1) % WEB_DELTAS;
                notes.whole += usize::from(next == 0);
                let sent = probe.sent_at(number).unwrap_or(now);
                let late = now.saturating_duration_since(sent).as_micros();
                notes.delays.push(u32::try_from(late).unwrap_or(u32::MAX));
            }
        });
    }
}

/// What an update of the answer adds to it.
fn delta(event: &str) -> Option<&str> {
    let (_, rest) = event.split_once("\"text_delta\"")?;
    let (_, rest) = rest.split_once("\"delta\":\"")?;
    Some(rest.split_once('"')?.0)
}
