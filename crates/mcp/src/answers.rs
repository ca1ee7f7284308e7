//! A bound on the answers to a server's own requests. A server that asks without taking the answers would otherwise make the agent
//! hold one for each of its requests.

use std::future::Future;
use std::sync::Arc;

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::limits;

/// A way to a server that ends when too many answers wait.
pub(crate) struct BoundedAnswers<T> {
    /// None after the end.
    inner: Option<T>,
    /// Places for answers that the server has not taken yet.
    places: Arc<Semaphore>,
    /// Cancelled when there is no place left: the connection ends.
    flooded: CancellationToken,
}

impl<T> BoundedAnswers<T> {
    pub(crate) fn new(inner: T) -> Self {
        Self {
            inner: Some(inner),
            places: Arc::new(Semaphore::new(limits::ANSWERS)),
            flooded: CancellationToken::new(),
        }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for BoundedAnswers<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        let is_answer = matches!(&item, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_));
        let place = is_answer.then(|| Arc::clone(&self.places).try_acquire_owned().ok());
        if matches!(place, Some(None)) {
            self.flooded.cancel();
        }
        let sending = self.inner.as_mut().map(|inner| inner.send(item));
        async move {
            let _place = place;
            match sending {
                Some(sending) => sending.await,
                // There is no error to give; the sender is dropped with the connection.
                None => std::future::pending().await,
            }
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        let inner = self.inner.as_mut()?;
        tokio::select! {
            biased;
            () = self.flooded.cancelled() => {}
            message = inner.receive() => return message,
        }
        // `close` would wait until the messages that have come are taken, and nothing takes them any more.
        self.inner = None;
        None
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        match &mut self.inner {
            Some(inner) => inner.close().await,
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::time::Duration;

    use serde_json::json;
    use tokio::time::timeout;

    use super::*;

    /// A server that takes nothing.
    struct Deaf;

    impl Transport<RoleClient> for Deaf {
        type Error = std::io::Error;

        fn send(
            &mut self,
            _: ClientJsonRpcMessage,
        ) -> impl Future<Output = Result<(), std::io::Error>> + Send + 'static {
            std::future::pending()
        }

        async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
            std::future::pending().await
        }

        async fn close(&mut self) -> Result<(), std::io::Error> {
            std::future::pending().await
        }
    }

    type Sending = Pin<Box<dyn Future<Output = Result<(), std::io::Error>> + Send>>;

    fn send(way: &mut BoundedAnswers<Deaf>, id: usize) -> Sending {
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": {}});
        Box::pin(way.send(serde_json::from_value(answer).unwrap()))
    }

    #[tokio::test(start_paused = true)]
    async fn connection_ends_when_answers_are_not_taken() {
        let mut way = BoundedAnswers::new(Deaf);
        let mut sending: Vec<_> = (0..limits::ANSWERS).map(|id| send(&mut way, id)).collect();
        let wait = Duration::from_secs(1);
        assert!(timeout(wait, way.receive()).await.is_err(), "it goes on");
        sending.pop();
        sending.push(send(&mut way, 1));
        assert!(timeout(wait, way.receive()).await.is_err(), "a place was free");
        sending.push(send(&mut way, 2));
        assert!(way.receive().await.is_none());
        assert!(timeout(wait, way.close()).await.is_ok());
    }
}
