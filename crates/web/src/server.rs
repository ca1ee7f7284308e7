//! Connections of a web server: the port, the limit of connections, paths. Sockets are handled in `socket`, commands
//! over plain HTTP in `http`.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use hyper::service::{Service as _, service_fn};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tungstenite::handshake::derive_accept_key;

use crate::clients::Resume;
use crate::guard::{BEARER_PROTOCOL, Wants};
use crate::limits::{WEB_BACKLOG, WEB_HANDSHAKES, WEB_HEAD_BYTES, WEB_HEAD_WAIT, WEB_LINGER, WEB_REFUSALS};
use crate::page::plain;
use crate::rooms::Served;
use crate::state::WebState;
use crate::stream::{Pulse, Stream};
use crate::{http, socket};

/// Told to every browser with every answer.
const ALWAYS: [(HeaderName, &str); 5] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
];

/// What answers requests.
pub(crate) fn service(served: Served) -> Router {
    Router::new().fallback(handle).with_state(served)
}

/// Accepts connections until it is stopped. Open connections end when their clients are disconnected.
pub(crate) async fn run(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    served: Served,
    most: usize,
    stop: CancellationToken,
) {
    let service = service(served);
    let places = Arc::new(Semaphore::new(most));
    let refusals = Arc::new(Semaphore::new(WEB_REFUSALS));
    let shakes = Arc::new(Semaphore::new(WEB_HANDSHAKES));
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else {
            // No descriptors are left, or the peer is gone already: others may leave in the meantime.
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            continue;
        };
        let _as_it_is = stream.set_nodelay(true);
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            // With TLS there are no words for it.
            if tls.is_none() {
                match Arc::clone(&refusals).try_acquire_owned() {
                    Ok(refusal) => drop(tokio::spawn(turn_away(Stream::new(stream, Some(refusal))))),
                    // Too many are being told already: this one may not hear it, if it has said something.
                    Err(_) => drop(stream.try_write(NO_ROOM)),
                }
            }
            continue;
        };
        let stream = Stream::new(stream, Some(place));
        let pulse = stream.pulse();
        let (service, tls, shakes) = (service.clone(), tls.clone(), Arc::clone(&shakes));
        tokio::spawn(async move {
            match tls {
                None => connection(stream, pulse, service).await,
                Some(tls) => {
                    let Ok(shaking) = shakes.try_acquire() else {
                        return;
                    };
                    let shaken = tokio::time::timeout(WEB_HEAD_WAIT, tls.accept(stream)).await;
                    drop(shaking);
                    if let Ok(Ok(stream)) = shaken {
                        connection(stream, pulse, service).await;
                    }
                }
            }
        });
    }
}

/// The response to connections above the limit.
const NO_ROOM: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nretry-after: 5\r\nconnection: close\r\n\r\n";

async fn turn_away(mut stream: Stream<TcpStream>) {
    let _whether_or_not = tokio::time::timeout(WEB_LINGER, stream.write_all(NO_ROOM)).await;
}

/// Serves a connection to its end, or until it becomes a socket.
pub(crate) async fn connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    pulse: Pulse,
    service: Router,
) {
    let service = TowerToHyperService::new(service);
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(WEB_HEAD_WAIT)
        .max_buf_size(WEB_HEAD_BYTES)
        .serve_connection(
            TokioIo::new(stream),
            service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
                request.extensions_mut().insert(pulse.clone());
                service.call(request)
            }),
        )
        .with_upgrades()
        .await;
    if let Err(error) = served {
        tracing::debug!("a connection ended: {error}");
    }
}

async fn handle(State(served): State<Served>, request: Request) -> Result<Response, Infallible> {
    let mut response = answer(served, request).await;
    let headers = response.headers_mut();
    for (name, value) in ALWAYS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    Ok(response)
}

async fn answer(served: Served, request: Request) -> Response {
    let (mut parts, body) = request.into_parts();
    let (session, path) = match served.route(&parts) {
        Ok(route) => route,
        Err(response) => return *response,
    };
    let is_upgrade = parts.headers.contains_key(header::UPGRADE);
    let wants = match path.as_str() {
        "/ws" if is_upgrade => Wants::Agent,
        "/api/command" | "/api/events" => Wants::Agent,
        _ => Wants::Public,
    };
    if let Err(refusal) = served.guard().admit(&parts, wants).await {
        return plain(refusal.status(), refusal.advice());
    }
    // Only clients that may talk to an agent make a gateway open a session.
    let Some(state) = served.state(session, wants).await else {
        return empty(StatusCode::SERVICE_UNAVAILABLE);
    };
    match path.as_str() {
        "/health" => health(&served, StatusCode::OK),
        "/ready" if state.clients.is_ending() => health(&served, StatusCode::SERVICE_UNAVAILABLE),
        "/ready" => health(&served, StatusCode::OK),
        "/api/command" => http::command(state, &parts, body).await,
        "/api/events" => http::events(&state, &parts),
        "/ws" if is_upgrade => {
            let resume = http::resume(&parts);
            // It is taken out by the check of the rules.
            let upgrade = parts.extensions.get::<OnUpgrade>().cloned();
            match (
                WebSocketUpgrade::from_request_parts(&mut parts, &()).await,
                upgrade,
            ) {
                (Ok(_fits), Some(upgrade)) => upgraded(upgrade, state, &resume, &parts),
                (Ok(_), None) => empty(StatusCode::UPGRADE_REQUIRED),
                (Err(refused), _) => refused.into_response(),
            }
        }
        _ if is_upgrade => empty(StatusCode::NOT_FOUND),
        _ => state.page.answer(&parts.method, &path, &parts.headers).await,
    }
}

/// Takes a request for a socket that fits the rules; `upgrade` becomes the connection when the answer is through.
fn upgraded(upgrade: OnUpgrade, state: Arc<WebState>, resume: &Resume, parts: &Parts) -> Response {
    let Some(subscription) = state.clients.join(resume) else {
        return empty(StatusCode::SERVICE_UNAVAILABLE);
    };
    let pulse = parts.extensions.get::<Pulse>().cloned().unwrap_or_default();
    // The connection's own task has ended by then: what it needed is not kept for the socket.
    tokio::spawn(async move {
        if let Ok(stream) = upgrade.await {
            socket::serve(TokioIo::new(stream), state, subscription, pulse).await;
        }
    });
    let key = parts.headers.get(header::SEC_WEBSOCKET_KEY);
    let accepted = derive_accept_key(key.map(HeaderValue::as_bytes).unwrap_or_default());
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    if let Ok(accepted) = HeaderValue::from_str(&accepted) {
        headers.insert(header::SEC_WEBSOCKET_ACCEPT, accepted);
    }
    // A browser insists that one of the subprotocols it named is taken; the token is none that should come back.
    let offers = parts
        .headers
        .get(header::SEC_WEBSOCKET_PROTOCOL)
        .and_then(|value| value.to_str().ok());
    let spoken = offers
        .into_iter()
        .flat_map(|offers| offers.split(','))
        .map(str::trim)
        .find(|name| !name.is_empty() && !name.starts_with(BEARER_PROTOCOL));
    if let Some(Ok(spoken)) = spoken.map(HeaderValue::from_str) {
        headers.insert(header::SEC_WEBSOCKET_PROTOCOL, spoken);
    }
    response
}

fn health(served: &Served, status: StatusCode) -> Response {
    let word = if status == StatusCode::OK { "ok" } else { "ending" };
    let body = json!({"status": word, "clients": served.count()}).to_string();
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// A status and nothing else (web.md 1.3).
pub(crate) fn empty(status: StatusCode) -> Response {
    let mut response = plain(status, "");
    response.headers_mut().remove(header::CONTENT_TYPE);
    response
}

/// Listens where it was asked to.
///
/// # Errors
/// When the name cannot be resolved, or the port is taken.
pub(crate) fn listen(host: &str, port: u16) -> std::io::Result<(std::net::TcpListener, SocketAddr)> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let listener = std::net::TcpListener::bind((bare, port))?;
    // It has a queue of 128: a connection beyond that seems open to its peer, and is none. Asked again, the kernel takes the new
    // length.
    rustix::net::listen(&listener, WEB_BACKLOG)?;
    listener.set_nonblocking(true)?;
    let bound = listener.local_addr()?;
    Ok((listener, bound))
}
