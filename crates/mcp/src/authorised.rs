//! The HTTP client of a server with a login, in place of the `AuthClient` of `rmcp`. That one refreshes a token inside the POST of a call,
//! which `rmcp` drops when the call is aborted. A server may accept a refresh token only once, so the login would be lost with the
//! response. Here a task of its own gets and stores the tokens.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;

use http::{HeaderName, HeaderValue};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::auth::{AuthError, AuthorizationManager};
use rmcp::transport::common::client_side_sse::BoxedSseResponse;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use tokio::sync::Mutex;
use tokio_util::task::TaskTracker;

use crate::limits;

type Headers = HashMap<HeaderName, HeaderValue>;

/// Adds the token of the server's login, if there is one. Clones share the login.
#[derive(Clone)]
pub(crate) struct Authorised<C> {
    inner: C,
    manager: Arc<Mutex<AuthorizationManager>>,
    /// The tasks that may refresh a token: the end of the process waits for them.
    refreshes: TaskTracker,
}

impl<C> Authorised<C>
where
    C: StreamableHttpClient + Sync,
{
    pub(crate) fn new(inner: C, manager: AuthorizationManager, refreshes: TaskTracker) -> Self {
        Self {
            inner,
            manager: Arc::new(Mutex::new(manager)),
            refreshes,
        }
    }

    /// Sends a request with the token. If the server refuses the token, the request is sent once more, with a new one.
    async fn with_token<T, F, Fut>(&self, send: F) -> Result<T, StreamableHttpError<C::Error>>
    where
        F: Fn(Option<String>) -> Fut,
        Fut: Future<Output = Result<T, StreamableHttpError<C::Error>>>,
    {
        let token = self.token(None).await?;
        let refusal = match send(token.clone()).await {
            Err(StreamableHttpError::AuthRequired(refusal)) => refusal,
            done => return done,
        };
        let fresh = match token {
            Some(refused) => self.token(Some(refused)).await?,
            None => None,
        };
        match fresh {
            Some(fresh) => send(Some(fresh)).await,
            None => Err(StreamableHttpError::AuthRequired(refusal)),
        }
    }

    /// Returns the stored token, refreshed if it has expired or is the refused one; none if a login is required.
    async fn token(&self, refused: Option<String>) -> Result<Option<String>, StreamableHttpError<C::Error>> {
        let (manager, refreshes) = (Arc::clone(&self.manager), self.refreshes.clone());
        let work = self.refreshes.spawn(async move {
            let manager = manager.lock().await;
            // Nothing would wait for the tokens of a refresh that begins now.
            if refreshes.is_closed() {
                return Err(AuthError::InternalError("Pinion ends".to_owned()));
            }
            let mut token = manager.get_access_token().await?;
            if refused.as_ref() == Some(&token) {
                manager.refresh_token().await?;
                token = manager.get_access_token().await?;
            }
            Ok::<_, AuthError>(Some(token).filter(|token| refused.as_ref() != Some(token)))
        });
        match work.await? {
            // The server demands a login when it gets a request without a token.
            Err(AuthError::AuthorizationRequired | AuthError::TokenRefreshRejected(_)) => Ok(None),
            token => Ok(token?),
        }
    }
}

impl<C> StreamableHttpClient for Authorised<C>
where
    C: StreamableHttpClient + Sync,
{
    type Error = C::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, StreamableHttpError<Self::Error>> {
        self.post_message_with_max_sse_event_size(uri, message, session, token, headers, limits::LINE)
            .await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _: Option<String>,
        headers: Headers,
        most: usize,
    ) -> Result<StreamableHttpPostResponse, StreamableHttpError<Self::Error>> {
        self.with_token(|token| {
            let (uri, message, session) = (uri.clone(), message.clone(), session.clone());
            let headers = headers.clone();
            async move {
                self.inner
                    .post_message_with_max_sse_event_size(uri, message, session, token, headers, most)
                    .await
            }
        })
        .await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        _: Option<String>,
        headers: Headers,
    ) -> Result<(), StreamableHttpError<Self::Error>> {
        self.with_token(|token| {
            let (uri, session, headers) = (uri.clone(), session.clone(), headers.clone());
            async move { self.inner.delete_session(uri, session, token, headers).await }
        })
        .await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<BoxedSseResponse, StreamableHttpError<Self::Error>> {
        self.get_stream_with_max_sse_event_size(uri, session, last, token, headers, limits::LINE)
            .await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        _: Option<String>,
        headers: Headers,
        most: usize,
    ) -> Result<BoxedSseResponse, StreamableHttpError<Self::Error>> {
        self.with_token(|token| {
            let (uri, session, last) = (uri.clone(), session.clone(), last.clone());
            let headers = headers.clone();
            async move {
                self.inner
                    .get_stream_with_max_sse_event_size(uri, session, last, token, headers, most)
                    .await
            }
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::atomic::{AtomicBool, Ordering};

    use http::{Method, Response, StatusCode};
    use rmcp::transport::auth::{
        CredentialStore as _, OAuthHttpClient, OAuthHttpClientFuture, OAuthHttpRequest, StoredCredentials,
    };
    use rmcp::transport::streamable_http_client::AuthRequiredError;
    use serde_json::{Value, json};
    use tokio::sync::Notify;

    use super::*;
    use crate::store::Logins;

    const URL: &str = "http://127.0.0.1/mcp";

    /// An authorisation server that takes the refresh token once, and answers when `answer` is notified.
    #[derive(Default)]
    struct AuthServer {
        is_spent: AtomicBool,
        asked: Notify,
        answer: Notify,
    }

    impl AuthServer {
        async fn answer(&self, method: &Method) -> (StatusCode, Value) {
            if method != Method::POST {
                return (StatusCode::NOT_FOUND, Value::Null);
            }
            if self.is_spent.swap(true, Ordering::Relaxed) {
                return (StatusCode::BAD_REQUEST, json!({"error": "invalid_grant"}));
            }
            self.asked.notify_one();
            self.answer.notified().await;
            let tokens = json!({"access_token": "new", "token_type": "bearer", "refresh_token": "r2"});
            (StatusCode::OK, tokens)
        }
    }

    impl OAuthHttpClient for AuthServer {
        fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
            Box::pin(async move {
                let (status, body) = self.answer(request.request.method()).await;
                let mut response = Response::new(body.to_string().into_bytes());
                *response.status_mut() = status;
                Ok(response)
            })
        }
    }

    /// A server that takes the new token only.
    #[derive(Clone)]
    struct Strict;

    type Posted = Result<StreamableHttpPostResponse, StreamableHttpError<io::Error>>;

    impl StreamableHttpClient for Strict {
        type Error = io::Error;

        async fn post_message(
            &self,
            _: Arc<str>,
            _: ClientJsonRpcMessage,
            _: Option<Arc<str>>,
            token: Option<String>,
            _: Headers,
        ) -> Posted {
            if token.as_deref() == Some("new") {
                return Ok(StreamableHttpPostResponse::Accepted);
            }
            let challenge = AuthRequiredError::new("Bearer".to_owned());
            Err(StreamableHttpError::AuthRequired(challenge))
        }

        async fn delete_session(
            &self,
            _: Arc<str>,
            _: Arc<str>,
            _: Option<String>,
            _: Headers,
        ) -> Result<(), StreamableHttpError<io::Error>> {
            Ok(())
        }

        async fn get_stream(
            &self,
            _: Arc<str>,
            _: Option<Arc<str>>,
            _: Option<String>,
            _: Option<String>,
            _: Headers,
        ) -> Result<BoxedSseResponse, StreamableHttpError<io::Error>> {
            Err(StreamableHttpError::ServerDoesNotSupportSse)
        }
    }

    async fn post(client: &Authorised<Strict>) -> Posted {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
        let message = serde_json::from_value(message).unwrap();
        client
            .post_message(URL.into(), message, None, None, Headers::new())
            .await
    }

    /// A client with a login whose token is refused.
    async fn client(logins: &Logins, server: &Arc<AuthServer>) -> Authorised<Strict> {
        let tokens = json!({"access_token": "old", "token_type": "bearer", "refresh_token": "r1"});
        let stored = json!({"client_id": "c", "token_response": tokens});
        let stored: StoredCredentials = serde_json::from_value(stored).unwrap();
        logins.of("p", URL).save(stored).await.unwrap();
        let manager = AuthorizationManager::new_with_oauth_http_client(URL, server.clone()).await;
        let mut manager = manager.unwrap();
        manager.set_credential_store(logins.of("p", URL));
        assert!(manager.initialize_from_store().await.unwrap());
        Authorised::new(Strict, manager, logins.refreshes().clone())
    }

    /// Aborts a request while its refresh is under way.
    async fn abort_during_refresh(client: &Authorised<Strict>, server: &AuthServer) {
        let mut posting = Box::pin(post(client));
        tokio::select! {
            posted = &mut posting => panic!("{posted:?}"),
            () = server.asked.notified() => {}
        }
    }

    async fn stored_refresh_token(logins: &Logins) -> Value {
        let stored = logins.of("p", URL).load().await.unwrap().unwrap();
        let stored = serde_json::to_value(stored).unwrap();
        stored["token_response"]["refresh_token"].clone()
    }

    #[tokio::test]
    async fn end_of_process_waits_for_token_refresh() {
        let dir = tempfile::tempdir().unwrap();
        let logins = Logins::new(dir.path().join("mcp-auth.json"));
        let server = Arc::new(AuthServer::default());
        let client = client(&logins, &server).await;
        abort_during_refresh(&client, &server).await;
        // In this order: the answer comes while the end waits.
        tokio::join!(biased; logins.finish(), async { server.answer.notify_one() });
        assert_eq!(stored_refresh_token(&logins).await, "r2");
        let posted = post(&client).await;
        assert!(matches!(posted, Err(StreamableHttpError::Auth(_))), "{posted:?}");
    }

    #[tokio::test]
    async fn refreshed_token_survives_aborted_request() {
        let dir = tempfile::tempdir().unwrap();
        let logins = Logins::new(dir.path().join("mcp-auth.json"));
        let server = Arc::new(AuthServer::default());
        let client = client(&logins, &server).await;
        abort_during_refresh(&client, &server).await;
        server.answer.notify_one();
        let posted = post(&client).await;
        assert!(
            matches!(posted, Ok(StreamableHttpPostResponse::Accepted)),
            "{posted:?}"
        );
        assert_eq!(stored_refresh_token(&logins).await, "r2");
    }
}
