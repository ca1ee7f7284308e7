//! Limits on the POSTs that open a connection over HTTP. `rmcp` waits for their responses without a limit, also after the connection was
//! given up: a server that accepts requests without answering them would keep a task and a socket for each attempt.

use std::future::Future;

use futures_util::StreamExt as _;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, JsonRpcMessage};
use rmcp::transport::streamable_http_client::{StreamableHttpError, StreamableHttpPostResponse};
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::limits;
use crate::probe::{Probe, no_answer};

type Posted = Result<StreamableHttpPostResponse, StreamableHttpError<reqwest::Error>>;

/// Limits the POSTs of one connection. Clones share the connection.
#[derive(Debug, Clone)]
pub(crate) struct PostLimits {
    probe: Probe,
    given_up: CancellationToken,
}

impl PostLimits {
    pub(crate) fn new(probe: &Probe) -> Self {
        Self {
            probe: probe.clone(),
            given_up: CancellationToken::new(),
        }
    }

    /// Returns a guard that ends all requests of the connection when it is dropped.
    pub(crate) fn guard(&self) -> DropGuard {
        self.given_up.clone().drop_guard()
    }

    /// Waits for the response to a message, and ends with the connection. So does a stream of events in the response.
    pub(crate) async fn post(
        &self,
        message: &ClientJsonRpcMessage,
        exchange: impl Future<Output = Posted>,
    ) -> Posted {
        let posted = tokio::select! {
            posted = self.probed(message, exchange) => posted?,
            () = self.given_up.cancelled() => {
                let reason = "the connection was given up";
                return Err(StreamableHttpError::UnexpectedServerResponse(reason.into()));
            }
        };
        Ok(match posted {
            StreamableHttpPostResponse::Sse(events, session) => {
                let events = events.take_until(self.given_up.clone().cancelled_owned());
                StreamableHttpPostResponse::Sse(events.boxed(), session)
            }
            other => other,
        })
    }

    /// Answers `server/discover` in place of a server that does not. The handshake can only follow on the response: `rmcp` sends it after
    /// that.
    async fn probed(&self, message: &ClientJsonRpcMessage, exchange: impl Future<Output = Posted>) -> Posted {
        let id = match message {
            JsonRpcMessage::Request(request)
                if matches!(request.request, ClientRequest::DiscoverRequest(_))
                    && self.probe.is_limited() =>
            {
                request.id.clone()
            }
            _ => return exchange.await,
        };
        // Also in a stream: the response can have begun without an answer in it.
        let answer = async { exchange.await?.expect_initialized::<reqwest::Error>().await };
        let (answer, session) = match timeout(limits::PROBE, answer).await {
            Ok(answered) => answered?,
            Err(_) => {
                self.probe.note_silence();
                (no_answer(Some(id)), None)
            }
        };
        Ok(StreamableHttpPostResponse::Json(answer, session))
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use rmcp::model::{DiscoverRequest, DiscoverRequestParams, PingRequest, RequestId};
    use tokio::time::Instant;

    use super::*;

    fn message(request: ClientRequest) -> ClientJsonRpcMessage {
        ClientJsonRpcMessage::request(request, RequestId::Number(1))
    }

    fn silent_stream() -> Posted {
        Ok(StreamableHttpPostResponse::Sse(
            futures_util::stream::pending().boxed(),
            None,
        ))
    }

    #[tokio::test(start_paused = true)]
    async fn silent_server_counts_as_older_after_limit() {
        let discover = DiscoverRequest::new(DiscoverRequestParams {});
        let discover = message(ClientRequest::DiscoverRequest(discover));
        for is_stream in [false, true] {
            let probe = Probe::default();
            let start = Instant::now();
            let exchange = async {
                match is_stream {
                    true => silent_stream(),
                    false => pending().await,
                }
            };
            let answer = PostLimits::new(&probe).post(&discover, exchange).await;
            assert!(
                matches!(
                    answer,
                    Ok(StreamableHttpPostResponse::Json(JsonRpcMessage::Error(_), None))
                ),
                "{answer:?}"
            );
            assert_eq!(start.elapsed(), limits::PROBE);
            // A newer server that is slow gets more time when it is asked again.
            assert!(!probe.is_limited());
            let again = PostLimits::new(&probe);
            let again = timeout(10 * limits::PROBE, again.post(&discover, pending()));
            assert!(again.await.is_err());
        }
    }

    #[tokio::test]
    async fn requests_end_when_connection_is_given_up() {
        let posts = PostLimits::new(&Probe::default());
        let guard = posts.guard();
        let ping = message(ClientRequest::PingRequest(PingRequest {
            method: Default::default(),
            extensions: Default::default(),
        }));
        let posted = posts.post(&ping, ready(silent_stream())).await;
        let Ok(StreamableHttpPostResponse::Sse(mut events, None)) = posted else {
            panic!("{posted:?}");
        };
        drop(guard);
        assert!(events.next().await.is_none(), "the stream goes on");
        let posted = posts.post(&ping, pending()).await;
        assert!(posted.is_err(), "{posted:?}");
    }
}
