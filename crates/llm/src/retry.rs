//! Classifies error texts by whether a failed run may be retried (pi-core.md 4.1, pi-1.5-delta.md 5). `agent` decides
//! how often and when.

use crate::pattern::{has_number, matches};

/// Never tried again: money or a plan has run out.
const FINAL: [&str; 16] = [
    "gousagelimiterror",
    "freeusagelimiterror",
    "monthly usage limit reached",
    "chatgpt usage limit",
    "available balance",
    "insufficient_quota",
    "out of budget",
    "quota exceeded",
    "exceeded your current quota",
    "billing",
    "subscription_sharing_usage_limit",
    "subscription_sharing*usage_limit",
    "\"code\":1308",
    "\"code\": 1308",
    "\"code\":\"1308\"",
    "\"code\": \"1308\"",
];

/// HTTP statuses that pass; 529 is Anthropic's "overloaded".
const STATUSES: [&str; 8] = ["429", "500", "502", "503", "504", "520", "524", "529"];

/// Faults that pass; `?` is at most one character. `<` keeps out `unterminated` and `ResourceNotFound`.
const PASSING: [&str; 54] = [
    "overloaded",
    "provider?returned?error",
    "provider?returned?an?error",
    "rate?limit",
    "too many requests",
    "throttling?error",
    "service?unavailable",
    "service is unavailable",
    "temporarily?unavailable",
    "server?error",
    "internal?error",
    "network?error",
    "connection?error",
    "connection?refused",
    "connection?lost",
    "websocket?closed",
    "websocket?error",
    "other side closed",
    "fetch failed",
    "upstream?connect",
    "reset before headers",
    "socket hang up",
    "ended without",
    "stream ended before message_stop",
    "http2 request did not get a response",
    "timed?out",
    "time?out",
    "<terminated",
    "retry delay",
    "server_busy",
    "servers are currently busy",
    "currently experiencing high demand",
    "model is at capacity",
    "exceeded request buffer limit while retrying upstream",
    "unable to forward upstream",
    "upstream?request?failed",
    "upstream_stream_read_error",
    "stream was interrupted",
    "http?2 stream failed",
    "getaddrinfo",
    "<enotfound",
    "eai_again",
    "econnreset",
    "econnrefused",
    "etimedout",
    "socket connection was closed",
    "stream ended before a terminal response event",
    "stream disconnected before completion",
    "cut short after the reply had begun",
    "pending stream has been canceled",
    "retry your request",
    "try your request again",
    "resourceexhausted",
    "subscription_sharing*unavailable",
];

/// HTTP statuses of a rejected key, a missing payment, a model that the key may not use or the provider does not know.
const REFUSALS: [&str; 4] = ["401", "402", "403", "404"];

/// Error texts of such refusals. Those of Bedrock name the exception and have no status.
const REFUSED: [&str; 14] = [
    "api?key",
    "unauthorized",
    "authentication",
    "permission?denied",
    "access?denied",
    "credential",
    "model_not_found",
    "not_found_error",
    "resourcenotfoundexception",
    "unrecognizedclientexception",
    "expiredtokenexception",
    "invalidsignatureexception",
    "servicequotaexceededexception",
    "model identifier is invalid",
];

/// Returns true if another model may answer where this one cannot: its quota is exhausted, its key is rejected or missing, or its
/// provider does not know it. Retryable errors and overflows must be checked first.
#[must_use]
pub fn is_unavailable(text: &str) -> bool {
    let text = text.to_lowercase();
    is_final(&text)
        || REFUSALS.iter().any(|status| has_number(&text, status))
        || REFUSED.iter().any(|pattern| matches(&text, pattern))
}

/// Returns true if a retry cannot help, after any delay.
pub(crate) fn is_final(text: &str) -> bool {
    let text = text.to_lowercase();
    FINAL.iter().any(|pattern| matches(&text, pattern))
}

/// Returns true if the run may be retried after this error. Overflows are classified elsewhere and must be checked first.
#[must_use]
pub fn is_retryable(text: &str) -> bool {
    let text = text.to_lowercase();
    if FINAL.iter().any(|pattern| matches(&text, pattern)) {
        return false;
    }
    let failed_to_reach = text.contains("request to ") && text.contains("failed, reason:");
    failed_to_reach
        || STATUSES.iter().any(|status| has_number(&text, status))
        || PASSING.iter().any(|pattern| matches(&text, pattern))
}
