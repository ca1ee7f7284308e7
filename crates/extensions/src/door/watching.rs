//! Noticing that a child has ended or hangs, and ending it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::limits;
use crate::line::ToChild;

use super::Child;
use super::pending::Pending;
use super::routes::Routes;
use super::writing::Lines;

/// How long the outputs of a child that ended are read to their end.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Watches until the child is gone, then tells everybody.
pub(super) fn start(
    mut child: impl Child + 'static,
    pending: Arc<Pending>,
    lines: Lines,
    routes: Arc<Routes>,
    gone: watch::Sender<Option<String>>,
    end: CancellationToken,
) {
    tokio::spawn(async move {
        let reason = tokio::select! {
            how = child.ended() => {
                // What it said last is on its way.
                let _read_or_not = tokio::time::timeout(LAST_WORDS, end.cancelled()).await;
                how
            }
            () = hangs(&pending, &lines) => format!(
                "it did not answer for {} s and was ended", limits::PONG_WAIT.as_secs()
            ),
            () = end.cancelled() => {
                match tokio::time::timeout(LAST_WORDS, child.ended()).await {
                    Ok(how) => how,
                    Err(_) => "it was ended".to_owned(),
                }
            }
        };
        child.kill().await;
        end.cancel();
        pending.close(&reason);
        gone.send_replace(Some(reason.clone()));
        routes.close(&reason).await;
    });
}

/// Resolves when the child does not answer although somebody waits for it. A handler may take as long as it likes; only its
/// event loop has to go round.
async fn hangs(pending: &Pending, lines: &Lines) {
    loop {
        pending.something_is_awaited().await;
        tokio::time::sleep(limits::PING_EVERY).await;
        if !pending.is_awaited() {
            continue;
        }
        let (id, pong) = pending.enter(None);
        lines.send(&ToChild::Ping { id });
        let answered = tokio::time::timeout(limits::PONG_WAIT, pong).await;
        if answered.is_err() {
            return;
        }
    }
}
