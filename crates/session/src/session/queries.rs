//! Commands that only read and take their time: lists of models, sessions and files, exports. Each runs in a task, so that a
//! slow disk or server delays nothing else, and there is a bound on the tasks of a session.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use wire::Reply;
use wire::reply::Models;
use wire::table::Respond;

use crate::factory::Agent;
use crate::outbox::Responder;
use crate::{limits, strings};

use super::file_search::NewestQueries;

/// The queries that are running.
pub(super) struct Queries {
    tasks: JoinSet<()>,
    /// Each list of models occupies a blocking thread until the servers answer, and file work needs these threads, too.
    model_lists: Arc<Semaphore>,
    pub(super) file_searches: NewestQueries,
}

impl Default for Queries {
    fn default() -> Self {
        Self {
            tasks: JoinSet::new(),
            model_lists: Arc::new(Semaphore::new(limits::MODEL_LISTINGS)),
            file_searches: NewestQueries::default(),
        }
    }
}

impl Queries {
    /// Runs a query and sends its outcome. Refuses it if too many are running.
    pub(super) async fn run<R>(
        &mut self,
        responder: Responder<R>,
        query: impl Future<Output = Result<R, String>> + Send + 'static,
    ) where
        R: Into<Reply> + Send + 'static,
    {
        if self.tasks.len() >= limits::QUERIES {
            return responder.refuse(strings::too_many_queries(limits::QUERIES)).await;
        }
        self.tasks
            .spawn(async move { responder.respond(query.await).await });
    }

    /// Lists the models for which credentials exist, with the models of local servers.
    pub(super) async fn list_models(&mut self, responder: Responder<Models>, agent: Arc<Agent>) {
        let model_lists = Arc::clone(&self.model_lists);
        let list = async move {
            // The semaphore is never closed, and a list ends with the timeout of its servers.
            let _permit = model_lists.acquire().await;
            let models = agent.available_models().await;
            Ok(Models { models })
        };
        self.run(responder, list).await;
    }

    /// Returns true while a query is running.
    pub(super) fn are_running(&self) -> bool {
        !self.tasks.is_empty()
    }

    /// Waits for a query to end; returns `None` at once if none is running. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<()> {
        // A task that panicked is a defect; its command stays without a response.
        self.tasks.join_next().await.map(|_| ())
    }

    /// Lets the queries that did not end in time answer without the session.
    pub(super) fn detach(&mut self) {
        self.tasks.detach_all();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::oneshot;

    use super::*;
    use crate::outbox::{ClientId, Origin, Outbox, Outgoing, outbox};

    fn responder(outbox: &Outbox) -> Responder<Models> {
        let origin = Origin {
            client: ClientId::default(),
            id: None,
            command: "get_available_models",
        };
        Responder::new(origin, outbox)
    }

    fn outcome(outgoing: Option<Outgoing>) -> Result<(), String> {
        match outgoing {
            Some(Outgoing::Response(_, response)) => response.outcome.map(drop),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn query_over_limit_is_refused() {
        let (outbox, mut sent) = outbox(limits::OUTBOX);
        let mut queries = Queries::default();
        let mut releases = Vec::new();
        for _ in 0..limits::QUERIES {
            let (release, released) = oneshot::channel::<()>();
            releases.push(release);
            let query = async move {
                let _released = released.await;
                Ok(Models { models: Vec::new() })
            };
            queries.run(responder(&outbox), query).await;
        }
        assert!(sent.try_recv().is_err(), "all of them wait");
        let late = async { Ok(Models { models: Vec::new() }) };
        queries.run(responder(&outbox), late).await;
        assert_eq!(
            outcome(sent.recv().await),
            Err(strings::too_many_queries(limits::QUERIES))
        );
        drop(releases.pop());
        assert_eq!(queries.next().await, Some(()));
        assert_eq!(outcome(sent.recv().await), Ok(()));
        let again = async { Ok(Models { models: Vec::new() }) };
        queries.run(responder(&outbox), again).await;
        assert_eq!(outcome(sent.recv().await), Ok(()), "there is room again");
    }

    #[tokio::test]
    async fn detached_query_still_answers() {
        let (outbox, mut sent) = outbox(limits::OUTBOX);
        let mut queries = Queries::default();
        let query = async {
            tokio::time::sleep(Duration::from_millis(10)).await;
            Ok(Models { models: Vec::new() })
        };
        queries.run(responder(&outbox), query).await;
        queries.detach();
        assert!(!queries.are_running());
        drop(queries);
        assert_eq!(outcome(sent.recv().await), Ok(()));
    }
}
