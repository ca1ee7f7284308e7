//! An HTTP client of a server that opens streams of events at a bounded pace. A server that closes each stream at once and wants it
//! back after 0 ms (`retry: 0`) would otherwise be asked without end, as fast as it answers.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use http::{HeaderName, HeaderValue};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::common::client_side_sse::BoxedSseResponse;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until};

use crate::limits;

/// The times of the newest streams. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pace(Arc<Mutex<VecDeque<Instant>>>);

impl Pace {
    /// Waits until another stream may be opened.
    async fn wait(&self) {
        let mut opened = self.0.lock().await;
        if opened.len() >= limits::STREAMS
            && let Some(oldest) = opened.front().copied()
        {
            sleep_until(oldest + limits::STREAMS_PERIOD).await;
            // After the wait: a cancelled one must not make room for another stream.
            opened.pop_front();
        }
        opened.push_back(Instant::now());
    }
}

/// A client with a pace of its own. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Paced<C> {
    inner: C,
    pace: Pace,
}

impl<C> Paced<C> {
    pub(crate) fn new(inner: C) -> Self {
        Self {
            inner,
            pace: Pace::default(),
        }
    }
}

type Headers = HashMap<HeaderName, HeaderValue>;

impl<C: StreamableHttpClient + Sync> StreamableHttpClient for Paced<C> {
    type Error = C::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, StreamableHttpError<C::Error>> {
        self.inner
            .post_message(uri, message, session, token, headers)
            .await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
        most: usize,
    ) -> Result<StreamableHttpPostResponse, StreamableHttpError<C::Error>> {
        let inner = &self.inner;
        inner
            .post_message_with_max_sse_event_size(uri, message, session, token, headers, most)
            .await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<(), StreamableHttpError<C::Error>> {
        self.inner.delete_session(uri, session, token, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<BoxedSseResponse, StreamableHttpError<C::Error>> {
        self.pace.wait().await;
        self.inner.get_stream(uri, session, last, token, headers).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        token: Option<String>,
        headers: Headers,
        most: usize,
    ) -> Result<BoxedSseResponse, StreamableHttpError<C::Error>> {
        self.pace.wait().await;
        let inner = &self.inner;
        inner
            .get_stream_with_max_sse_event_size(uri, session, last, token, headers, most)
            .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn streams_are_opened_at_a_bounded_pace() {
        let (most, period) = (limits::STREAMS, limits::STREAMS_PERIOD);
        let (pace, start) = (Pace::default(), Instant::now());
        for _ in 0..most {
            pace.wait().await;
        }
        assert_eq!(Instant::now(), start, "a few at once");
        for _ in 0..3 * most {
            pace.wait().await;
        }
        assert_eq!(Instant::now(), start + 3 * period);
        for _ in 0..most {
            let cancelled = tokio::time::timeout(period / 100, pace.wait()).await;
            assert!(cancelled.is_err(), "a wait that was cancelled makes no room");
        }
    }
}
