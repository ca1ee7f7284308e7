//! Noticing that a child has ended or hangs, and ending it.

use std::sync::Arc;
use std::time::Duration;

use ::process::ChildProcess;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::limits;
use crate::line::ToChild;

use super::pending::Pending;
use super::routes::Routes;
use super::writer::LineWriter;

/// What watching needs.
pub(super) struct Watchdog {
    pub(super) pending: Arc<Pending>,
    pub(super) lines: LineWriter,
    pub(super) routes: Arc<Routes>,
    /// Bytes that the child may hold.
    pub(super) memory: u64,
    /// How long it may say nothing.
    pub(super) silence: Duration,
    pub(super) end: CancellationToken,
}

impl Watchdog {
    /// Watches until the child is gone, then tells everybody.
    pub(super) fn start(self, mut child: impl ChildProcess + 'static, gone: watch::Sender<Option<String>>) {
        tokio::spawn(async move {
            let reason = self.reason(&mut child).await;
            child.kill().await;
            self.end.cancel();
            self.pending.close(&reason);
            gone.send_replace(Some(reason.clone()));
            self.routes.close(&reason).await;
        });
    }

    /// Waits until the child is gone, or has to go.
    async fn reason(&self, child: &mut impl ChildProcess) -> String {
        let mut hangs = std::pin::pin!(self.hangs());
        loop {
            let how = tokio::select! {
                how = child.ended() => {
                    // What it said last is on its way.
                    let _read_or_not = tokio::time::timeout(limits::LAST_WORDS, self.end.cancelled()).await;
                    how
                }
                () = &mut hangs => format!(
                    "it did not answer for {} s and was ended", self.silence.as_secs()
                ),
                () = self.end.cancelled() => match tokio::time::timeout(limits::LAST_WORDS, child.ended()).await {
                    Ok(how) => how,
                    Err(_) => "it was ended".to_owned(),
                },
                () = tokio::time::sleep(limits::MEMORY_EVERY) => {
                    match child.memory().filter(|held| *held > self.memory) {
                        Some(held) => format!("it held {} MiB of memory and was ended", held >> 20),
                        None => continue,
                    }
                }
            };
            return self.pending.fault().unwrap_or(how);
        }
    }
    /// Resolves when the child hangs: it sends nothing during a request. A handler may take any time, but its process
    /// must answer a ping.
    async fn hangs(&self) {
        let pending = &self.pending;
        loop {
            pending.something_is_awaited().await;
            // Most requests are answered within this time, so they cost no ping.
            tokio::time::sleep(limits::PING_EVERY).await;
            if !pending.is_awaited() {
                continue;
            }
            let heard = pending.heard();
            let (id, pong) = pending.enter(None);
            let _fits = self.lines.send(&ToChild::Ping { id });
            let answered = tokio::time::timeout(self.silence, pong).await;
            // Other lines are a sign of life, too: the child may be busy sending them.
            if answered.is_err() && pending.is_silent_since(heard) {
                return;
            }
        }
    }
}
