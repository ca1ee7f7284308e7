//! Hooks of events without an answer: each gets its events in order, a few at once run concurrently with the session, and what
//! piles up has an end.

use std::collections::HashMap;
use std::sync::Arc;

use extensions::line::Failure;
use process::Reaper;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

use crate::limits;

use super::{Hook, Job, failed, run_one};

/// Those who are being told.
#[derive(Debug)]
pub(super) struct Telling {
    /// What waits for each, by its place among all.
    lanes: HashMap<usize, mpsc::Sender<Job>>,
    workers: JoinSet<()>,
    at_once: Arc<Semaphore>,
}

impl Default for Telling {
    fn default() -> Self {
        Self {
            lanes: HashMap::new(),
            workers: JoinSet::new(),
            at_once: Arc::new(Semaphore::new(limits::HOOKS_AT_ONCE)),
        }
    }
}

impl Telling {
    /// Tells a hook when it has dealt with what it was told before.
    pub(super) fn tell(
        &mut self,
        place: usize,
        hook: &Arc<Hook>,
        job: Job,
        reaper: &Reaper,
        failures: &mpsc::Sender<Failure>,
    ) {
        let (workers, at_once) = (&mut self.workers, &self.at_once);
        let lane = self.lanes.entry(place).or_insert_with(|| {
            let (lane, jobs) = mpsc::channel(limits::HOOK_LANE);
            let worker = Worker {
                hook: Arc::clone(hook),
                reaper: reaper.clone(),
                failures: failures.clone(),
                at_once: Arc::clone(at_once),
            };
            workers.spawn(worker.work(jobs));
            lane
        });
        // Without waiting: a slow hook must not hold up the session.
        if let Err(error) = lane.try_send(job) {
            let name = error.into_inner().name;
            let error = format!(
                "{} runs of it wait already; this one was left out",
                limits::HOOK_LANE
            );
            let _told = failures.try_send(failed(&hook.label(), &name, error));
        }
    }

    /// Waits until all have ended.
    pub(super) async fn finish(&mut self) {
        // Without senders the workers end after the jobs that wait.
        self.lanes.clear();
        while self.workers.join_next().await.is_some() {}
    }
}

impl Drop for Telling {
    /// Another session takes over: queued events are still delivered.
    fn drop(&mut self) {
        self.workers.detach_all();
    }
}

struct Worker {
    hook: Arc<Hook>,
    reaper: Reaper,
    failures: mpsc::Sender<Failure>,
    at_once: Arc<Semaphore>,
}

impl Worker {
    async fn work(self, mut jobs: mpsc::Receiver<Job>) {
        while let Some(job) = jobs.recv().await {
            let name = job.name.clone();
            if let Err(error) = run_one(&self.at_once, &self.reaper, &self.hook, job).await {
                // More than there is room for is the same again.
                let _told = self.failures.try_send(failed(&self.hook.label(), &name, error));
            }
        }
    }
}
