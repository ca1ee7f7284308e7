//! Finds sessions that should have a worker and have none. Gateways and workers announce sessions; the others, for example sessions of a lost
//! worker, are found with the next look at the lists of wanted and leased sessions.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _};
use store::{SessionId, StoreError};
use tokio::sync::mpsc;

use super::health::Load;
use crate::bus::Bus;
use crate::limits::LOOK_PAUSE;

/// Sessions without a worker.
#[derive(Debug)]
pub(super) enum Found {
    /// All of them.
    All(Vec<SessionId>),
    /// Some that were announced.
    Announced(Vec<SessionId>),
}

/// Finds sessions until the receiver goes. `subscription` has the announcements.
pub(super) async fn run(
    bus: Arc<Bus>,
    load: Arc<Load>,
    mut subscription: async_nats::Subscriber,
    found: mpsc::Sender<Found>,
) {
    let mut look = tokio::time::interval((bus.lease_time / 4).min(LOOK_PAUSE));
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        let next = tokio::select! {
            _ = look.tick() => {
                load.connected.store(bus.is_connected(), Ordering::Relaxed);
                match without_worker(&bus).await {
                    Ok(free) => {
                        load.waiting.store(free.len(), Ordering::Relaxed);
                        Found::All(free)
                    }
                    // Without a server there is nothing to take; the next look tries again.
                    Err(_) => continue,
                }
            }
            Some(first) = subscription.next() => {
                // The worker with the least load is first.
                let most = load.most.load(Ordering::Relaxed).max(1);
                let share = load.sessions.load(Ordering::Relaxed) * 50 / most;
                tokio::time::sleep(Duration::from_millis(share as u64)).await;
                let mut names = vec![first.subject];
                while let Some(Some(more)) = subscription.next().now_or_never() {
                    names.push(more.subject);
                }
                let names = names.iter().filter_map(|subject| subject.rsplit('.').next());
                Found::Announced(names.filter_map(SessionId::decode).collect())
            }
        };
        if found.send(next).await.is_err() {
            return;
        }
    }
}

async fn without_worker(bus: &Bus) -> Result<Vec<SessionId>, StoreError> {
    let (wanted, leases) = (bus.all("wanted"), bus.all("lease"));
    let (wanted, leased) = tokio::try_join!(bus.wanted.names(&wanted), bus.leases.names(&leases))?;
    let leased: HashSet<String> = leased.into_iter().collect();
    let free = wanted.iter().filter(|name| !leased.contains(*name));
    Ok(free.filter_map(|name| SessionId::decode(name)).collect())
}
