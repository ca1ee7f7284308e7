//! Sending a request until there is a response to read, with the retries an SDK would make (pi-core.md 4.2). Retries of
//! whole runs are decided in `agent`.

use std::time::{Duration, SystemTime};

use jiff::fmt::rfc2822::DateTimeParser;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Response, StatusCode, Url};
use tokio::time::{sleep, timeout};

use super::{HttpRequest, Line};
use crate::access::Access;
use crate::answer::Fault;
use crate::family::Family;
use crate::limits::{ERROR_BODY_TIMEOUT, MAX_ERROR_BODY_BYTES, RETRY_BASE, RETRY_CAP};
use crate::retry::is_final;

/// How much is done for one request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// Attempts after the first.
    pub(crate) retries: u32,
    /// A provider that asks for a longer wait is not waited for.
    pub(crate) longest_wait: Duration,
    /// How long an attempt may wait for the beginning of a response.
    pub(crate) response: Duration,
}

/// A failed attempt.
pub(crate) struct Failure {
    pub(crate) fault: Fault,
    /// True if another attempt may succeed.
    pub(crate) again: bool,
}

/// Sends a request and gives the response once its status says success.
pub(crate) async fn send(
    line: &Line,
    family: Family,
    mut request: HttpRequest,
    access: &Access,
    patience: Patience,
) -> Result<Response, Fault> {
    let body = bytes::Bytes::from(std::mem::take(&mut request.body));
    let mut attempt = 0;
    loop {
        // For each attempt anew: signatures carry the time.
        let granted = line.grant(access, &request, &body).await?;
        let url = address(&granted.url)?;
        let sent = line.exchange(&url, &granted.headers, &body, access.wants_http1());
        let failure = match timeout(patience.response, sent).await {
            Ok(Ok(response)) if response.status().is_success() && !is_document(&response) => {
                tracing::debug!(status = response.status().as_u16(), "response");
                return Ok(response);
            }
            Ok(Ok(response)) => {
                access.refused(response.status().as_u16());
                refused(line, family, response).await
            }
            Ok(Err(failure)) => failure,
            Err(_) => Failure {
                fault: Fault::new(format!(
                    "Request timed out: no response for {} s",
                    patience.response.as_secs_f64()
                )),
                again: true,
            },
        };
        let asked = failure.fault.retry_after;
        let too_long = asked.is_some_and(|wait| wait > patience.longest_wait);
        if !failure.again || attempt >= patience.retries || too_long {
            return Err(failure.fault);
        }
        let wait = asked.unwrap_or_else(|| backoff(attempt));
        attempt += 1;
        line.log_retry(&failure.fault, attempt, wait);
        sleep(wait).await;
    }
}

/// A URL that can be asked.
fn address(url: &str) -> Result<Url, Fault> {
    Url::parse(url)
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https"))
        .ok_or_else(|| Fault::new("Invalid base URL of the model"))
}

/// Turns a response that is no success into a failure.
async fn refused(line: &Line, family: Family, mut response: Response) -> Failure {
    let status = response.status();
    let retry_after = retry_after(response.headers());
    let again = match response
        .headers()
        .get("x-should-retry")
        .map(|value| value.as_bytes())
    {
        Some(b"true") => true,
        Some(b"false") => false,
        _ => worth_repeating(status),
    };
    let mut body = Vec::new();
    let read = async {
        while let Ok(Some(piece)) = response.chunk().await {
            let room = MAX_ERROR_BODY_BYTES.saturating_sub(body.len());
            body.extend(piece.iter().take(room));
            if piece.len() >= room {
                break;
            }
        }
    };
    // A body that does not come is as good as none: the status says enough.
    let _ = timeout(ERROR_BODY_TIMEOUT, read).await;
    // Before anything is cut off: half a key would not be recognised.
    let body = line.hide(String::from_utf8_lossy(&body).into_owned());
    let body = body.trim();
    let text = line
        .shows_error_objects()
        .and_then(|model| family.error_object_text(model, status.as_u16(), body))
        .unwrap_or_else(|| family.refusal_text(status.as_u16(), response.headers(), body));
    let again = again && !is_final(&text);
    let status = Some(status.as_u16());
    Failure {
        fault: Fault {
            text,
            retry_after,
            status,
        },
        again,
    }
}

/// A success that is no stream: some servers and portals report errors so.
fn is_document(response: &Response) -> bool {
    let kind = response
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    ["application/json", "text/html"]
        .iter()
        .any(|document| kind.starts_with(document))
}

/// Statuses that may pass by themselves.
fn worth_repeating(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 409 | 429) || status.is_server_error()
}

/// What the server asks to wait: `retry-after-ms`, else `retry-after` in seconds or as a date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| {
        headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .map(str::trim)
    };
    if let Some(ms) = text("retry-after-ms").and_then(|value| value.parse::<f64>().ok()) {
        return Duration::try_from_secs_f64(ms / 1000.0).ok();
    }
    let value = text("retry-after")?;
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = DateTimeParser::new().parse_timestamp(value).ok()?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?;
    let then = Duration::from_millis(u64::try_from(date.as_millisecond()).ok()?);
    Some(then.saturating_sub(now))
}

/// 0.5 s, doubled with each attempt up to 8 s, less up to a quarter so that many clients do not come back at once.
fn backoff(attempt: u32) -> Duration {
    let full = RETRY_BASE.saturating_mul(1 << attempt.min(10)).min(RETRY_CAP);
    let nanos = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |now| now.subsec_nanos());
    full - full.mul_f64(0.25 * f64::from(nanos % 1000) / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::HeaderValue;

    fn asked(name: &'static str, value: &str) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        headers.insert(name, HeaderValue::from_str(value).unwrap());
        retry_after(&headers)
    }

    #[test]
    fn retry_after_is_read_in_three_formats() {
        assert_eq!(asked("retry-after-ms", "1500"), Some(Duration::from_millis(1500)));
        assert_eq!(asked("retry-after", "2"), Some(Duration::from_secs(2)));
        assert_eq!(
            asked("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT"),
            Some(Duration::ZERO)
        );
        let far = asked("retry-after", "Wed, 21 Oct 2065 07:28:00 GMT").unwrap();
        assert!(far > crate::limits::RETRY_AFTER_CAP);
        assert_eq!(asked("retry-after", "soon"), None);
        assert_eq!(asked("retry-after", "-1"), None);
    }

    #[test]
    fn backoff_doubles_up_to_cap() {
        for (attempt, full) in [(0, 500), (1, 1000), (4, 8000), (40, 8000)] {
            let wait = backoff(attempt);
            assert!(wait <= Duration::from_millis(full) && wait >= Duration::from_millis(full * 3 / 4));
        }
    }
}
