//! Tasks that carry out requests of extensions: dialogs, built-in tools, requests to models. They end when the extension
//! withdraws its request.

use std::collections::HashMap;

use tokio::task::AbortHandle;
use tokio_util::sync::DropGuard;

use crate::limits;

use super::super::run_limits::SharedSpending;

/// The tasks of a session's extensions, by the id of the request.
#[derive(Debug, Default)]
pub(crate) struct RequestTasks {
    running: HashMap<u64, RequestTask>,
    /// What requests outside of runs used: those of extensions, and summaries.
    pub(crate) spending: SharedSpending,
}

#[derive(Debug)]
enum RequestTask {
    /// Aborted when the request is withdrawn.
    Plain(AbortHandle),
    /// A request to a model. It is cancelled, so that the provider's connection ends in order.
    Model { task: AbortHandle, _cancel: DropGuard },
}

impl RequestTask {
    fn is_running(&self) -> bool {
        match self {
            Self::Plain(task) | Self::Model { task, .. } => !task.is_finished(),
        }
    }
}

impl RequestTasks {
    /// Keeps a task until it ends.
    pub(crate) fn keep(&mut self, id: u64, task: AbortHandle) {
        self.forget_ended();
        self.running.insert(id, RequestTask::Plain(task));
    }

    /// Keeps a request to a model until it ends.
    pub(super) fn keep_model(&mut self, id: u64, task: AbortHandle, cancel: DropGuard) {
        self.forget_ended();
        let task = RequestTask::Model {
            task,
            _cancel: cancel,
        };
        self.running.insert(id, task);
    }

    fn forget_ended(&mut self) {
        // Tasks do not report their end, so ended ones are removed whenever the table grows.
        self.running.retain(|_, task| task.is_running());
    }

    /// Checks that one more request to a model may run.
    ///
    /// # Errors
    /// A message for the extension when there are too many.
    pub(super) fn check_models(&self) -> Result<(), String> {
        let models = self.running.values();
        let models = models.filter(|task| matches!(task, RequestTask::Model { .. }) && task.is_running());
        let most = limits::EXTENSION_REQUESTS;
        if models.count() >= most {
            return Err(format!("More than {most} requests of extensions are under way"));
        }
        Ok(())
    }

    /// Ends the task of a request.
    pub(crate) fn withdraw(&mut self, id: u64) {
        // A request to a model is cancelled by its dropped guard: its task goes on to count what it used.
        if let Some(RequestTask::Plain(task)) = self.running.remove(&id) {
            task.abort();
        }
    }

    /// Cancels all requests to models.
    pub(super) fn cancel_models(&mut self) {
        self.running
            // The guard that is dropped with the entry cancels the request.
            .retain(|_, task| matches!(task, RequestTask::Plain(_)));
    }

    /// Returns true if no task is running.
    pub(super) fn is_empty(&self) -> bool {
        // The table keeps ended tasks until the next one comes.
        !self.running.values().any(RequestTask::is_running)
    }
}

#[cfg(test)]
mod tests {
    use tokio_util::sync::CancellationToken;

    use super::RequestTasks;
    use crate::limits;

    #[tokio::test]
    async fn withdrawn_request_ends_its_task() {
        let mut tasks = RequestTasks::default();
        let running = tokio::spawn(std::future::pending::<()>());
        tasks.keep(1, running.abort_handle());
        assert!(!tasks.is_empty());
        tasks.withdraw(2);
        assert!(!tasks.is_empty());
        tasks.withdraw(1);
        assert!(running.await.unwrap_err().is_cancelled() && tasks.is_empty());
    }

    #[tokio::test]
    async fn ended_task_leaves_session_at_rest() {
        let mut tasks = RequestTasks::default();
        let ended = tokio::spawn(async {});
        tasks.keep(1, ended.abort_handle());
        ended.await.unwrap();
        assert!(tasks.is_empty());
    }

    #[tokio::test]
    async fn model_requests_are_bounded_and_cancelled() {
        let mut tasks = RequestTasks::default();
        let first = CancellationToken::new();
        for id in 0..limits::EXTENSION_REQUESTS {
            assert!(tasks.check_models().is_ok());
            let cancel = if id == 0 {
                first.clone()
            } else {
                CancellationToken::new()
            };
            let task = tokio::spawn(std::future::pending::<()>());
            tasks.keep_model(id as u64, task.abort_handle(), cancel.drop_guard());
        }
        assert!(tasks.check_models().unwrap_err().contains("under way"));
        tasks.withdraw(0);
        assert!(first.is_cancelled() && tasks.check_models().is_ok());
        tasks.cancel_models();
        assert!(tasks.is_empty());
    }
}
