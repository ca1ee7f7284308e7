//! Judging error texts: overflow, worth another try, final.

use std::time::Duration;

use wire::{AssistantMessage, StopReason};

use crate::bedrock;
use crate::{is_context_overflow, is_retryable, is_unavailable, quota_wait};

fn failed(text: &str) -> AssistantMessage {
    let mut message = AssistantMessage::begin("a", "p", "m", 0);
    message.stop_reason = StopReason::Error;
    message.error_message = Some(text.to_owned());
    message
}

#[test]
fn context_overflows_are_recognised_by_text() {
    for text in [
        "400 {\"error\":{\"message\":\"prompt is too long: 213462 tokens > 200000 maximum\"}}",
        "413 {\"error\":{\"type\":\"request_too_large\"}}",
        "Input is too long for requested model.",
        "400 Your input exceeds the context window of this model.",
        "400 This model's maximum context length is 128000 tokens. However, ...",
        "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        "Please reduce the length of the messages or completion.",
        "400 The input (140000 tokens) is longer than the model's context length (131072 tokens).",
        "prompt token count of 150000 exceeds the limit of 128000",
        "the request exceeds the available context size",
        "tokens to keep from the initial prompt is greater than the context length",
        "invalid params, context window exceeds limit",
        "Your request exceeded model token limit: 262144",
        "Prompt contains 1 tokens: too large for model with 131,072 maximum context length",
        "Unhandled stop reason: model_context_window_exceeded",
        "prompt too long; exceeded max context length by 10 tokens",
        "context_length_exceeded",
        "too many tokens in prompt",
        "Token limit exceeded",
        "Mistral API error (413): x",
        "413 status code (no body)",
        "the prompt has 9000 tokens, but the configured context size is 4096",
        "Range of input length should be [1, 98304]",
        "maximum context length (32768)",
        "Input length 70000 exceeds maximum allowed input length of 65,536 tokens",
    ] {
        assert!(is_context_overflow(&failed(text), 1000), "{text}");
    }
    for text in [
        "Throttling error: too many tokens, please wait",
        "Service unavailable: prompt is too long",
        "429 rate limit: too many tokens per minute",
        "Too many requests: too many tokens",
        "400 status code (no body)",
        "4130 something",
        "500 Internal server error",
        "maximum context length of many",
    ] {
        assert!(!is_context_overflow(&failed(text), 1000), "{text}");
    }
    let mut wordless = failed("400 status code (no body)");
    wordless.provider = "cerebras".to_owned();
    assert!(is_context_overflow(&wordless, 1000));
}

#[test]
fn silent_overflows_are_recognised_by_token_counts() {
    let judge = |reason, input, cache_read, output| {
        let mut message = AssistantMessage::begin("a", "p", "m", 0);
        message.stop_reason = reason;
        message.usage.input = input;
        message.usage.cache_read = cache_read;
        message.usage.output = output;
        is_context_overflow(&message, 1000)
    };
    assert!(judge(StopReason::Stop, 900, 101, 5));
    assert!(!judge(StopReason::Stop, 900, 100, 5));
    assert!(judge(StopReason::Length, 990, 0, 0));
    assert!(!judge(StopReason::Length, 989, 0, 0));
    assert!(!judge(StopReason::Length, 990, 0, 1));
    assert!(!judge(StopReason::Aborted, 2000, 0, 0));
    let message = AssistantMessage::begin("a", "p", "m", 0);
    assert!(!is_context_overflow(&message, 0));
}

#[test]
fn transient_faults_are_retryable() {
    for text in [
        "529 {\"error\":{\"type\":\"overloaded_error\"}}",
        "429 Rate limit reached for gpt-mock",
        "500 status code (no body)",
        "{\"error\":{\"code\":503}}",
        "Connection error: connection refused",
        "Connection error: getaddrinfo ENOTFOUND api.example.org",
        "fetch failed",
        "HTTP/2 stream failed",
        "{\"code\":\"upstream_request_failed\"}",
        "service_temporarily_unavailable",
        "Something broke, try your request again",
        "terminated",
        "Anthropic stream ended before message_stop",
        "Stream ended without finish_reason",
        "Stream timed out: nothing came for 300 s",
        "Request timed out: no response for 300 s",
        "socket hang up",
        "Provider returned an error",
        "The server had an error; please retry your request",
        "request to https://x failed, reason: connect",
        // Node and Bun.
        "read ECONNRESET",
        "ECONNRESET: The socket connection was closed unexpectedly.",
        "connect ECONNREFUSED 127.0.0.1:11434",
        "connect ETIMEDOUT 104.18.7.192:443",
        "getaddrinfo ENOTFOUND api.anthropic.com",
        "getaddrinfo EAI_AGAIN api.openai.com",
        "terminated: other side closed (UND_ERR_SOCKET)",
        // Providers, in a stream and as a response.
        "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}",
        "503 The model is overloaded. Please try again later.",
        "The engine is currently overloaded, please try again later (engine_overloaded_error)",
        "Error Code server_error: The server had an error while processing your request",
        "rpc error: code = ResourceExhausted desc = Too many concurrent requests",
        "{\"error\":{\"code\":\"ServerOverloaded\",\"message\":\"Try again later\"}}",
        "OverloadedError: try again later",
    ] {
        assert!(is_retryable(text), "{text}");
    }
}

#[test]
fn permanent_faults_and_exhausted_plans_are_not_retryable() {
    for text in [
        "401 invalid x-api-key",
        "400 bad request (request id req_5003abc)",
        "An unknown error occurred",
        "429 You exceeded your current quota: insufficient_quota",
        "429 Monthly usage limit reached",
        "402 insufficient available balance",
        "429 {\"code\": 1308, \"message\": \"limit\"}",
        "429 {\"code\":\"1308\",\"message\":\"limit\"}",
        "403 billing problem, server error",
        "maximum is 15000 tokens",
        "Provider finish_reason: content_filter",
        // Words that contain `enotfound` or `terminated`.
        "ResourceNotFoundException: Could not resolve the foundation model",
        "404 {\"error\":{\"code\":\"ResourceNotFound\",\"message\":\"The resource was not found.\"}}",
        "400 Unterminated string in JSON at position 12",
        "429 {\"error\":{\"type\":\"GoUsageLimitError\"}}",
        "429 {\"error\":{\"code\":\"billing_hard_limit_reached\"}}",
    ] {
        assert!(!is_retryable(text), "{text}");
    }
}

#[test]
fn rejected_credentials_allow_fallback() {
    for text in [
        "401 {\"type\":\"error\",\"error\":{\"type\":\"authentication_error\",\"message\":\"invalid x-api-key\"}}",
        "litellm.AuthenticationError: Incorrect API key provided",
        "Could not load AWS credentials: no profile",
        "Invalid credential",
        "{\"error\":{\"message\":\"Unauthorized\"}}",
    ] {
        assert!(!is_retryable(text) && is_unavailable(text), "{text}");
    }
}

#[test]
fn bedrock_refusals_of_key_or_name_allow_fallback() {
    let judge = |status, kind: &str, message: &str| {
        let body = serde_json::json!({"message": message}).to_string();
        let text = bedrock::error_text(status, kind, &body);
        !is_retryable(&text) && is_unavailable(&text)
    };
    let invalid_name = "The provided model identifier is invalid.";
    for (status, kind, message) in [
        (403, "AccessDeniedException", "You don't have access."),
        (403, "UnrecognizedClientException", "The token is invalid."),
        (403, "ExpiredTokenException", "The token is expired."),
        (403, "InvalidSignatureException", "No match."),
        (404, "ResourceNotFoundException", "Could not resolve it."),
        (400, "ServiceQuotaExceededException", "Too much."),
        (400, "ValidationException", invalid_name),
    ] {
        assert!(judge(status, kind, message), "{kind}: {message}");
    }
    for message in ["text content blocks must be non-empty", "toolConfig is missing"] {
        assert!(!judge(400, "ValidationException", message), "{message}");
    }
}

#[test]
fn used_up_quotas_have_a_wait() {
    let details = |reason: &str, delay: &str| {
        format!(
            r#"429 {{"error":{{"code":429,"message":"No.","status":"RESOURCE_EXHAUSTED","details":[
            {{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"{reason}"}},
            {{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"{delay}"}}]}}}}"#
        )
    };
    let (named, limited) = (
        details("QUOTA_EXHAUSTED", "34.5s"),
        details("RATE_LIMIT_EXCEEDED", "600s"),
    );
    let table = [
        (
            r#"{"error":{"code":429,"message":"Resource has been exhausted (e.g. check quota).","status":"RESOURCE_EXHAUSTED"}}"#,
            Some(429),
            1_800_000,
        ),
        ("rpc failed: RESOURCE_EXHAUSTED", None, 45_000),
        (named.as_str(), Some(429), 34_500),
        (limited.as_str(), Some(429), 600_000),
        (
            "429 You exceeded your current quota, please check your plan and billing details.",
            Some(429),
            1_800_000,
        ),
        (
            "429 This request would exceed your account's rate limit. Please try again later.",
            Some(429),
            1_800_000,
        ),
        (
            "You have exhausted your capacity on this model. Your quota will reset after 1h2m3.5s.",
            Some(429),
            3_723_500,
        ),
        (
            "The usage limit has been reached, try again in ~5 min",
            Some(429),
            300_000,
        ),
        (
            "402 This request would exceed your available credits",
            Some(402),
            1_800_000,
        ),
        ("402 Payment Required", Some(402), 1_800_000),
        ("429 status code (no body)", Some(429), 1_800_000),
        ("403 Reached overall message rate limit", Some(403), 30_000),
        ("429 已达到 5 小时的使用上限。", Some(429), 1_800_000),
    ];
    for (text, status, ms) in table {
        assert_eq!(
            quota_wait(text, status),
            Some(Duration::from_millis(ms)),
            "{text}"
        );
    }
}

#[test]
fn limits_that_pass_are_no_quotas() {
    let minute = r#"429 {"error":{"status":"RESOURCE_EXHAUSTED","details":[
        {"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"RATE_LIMIT_EXCEEDED"}]}}"#;
    for (text, status) in [
        (minute, Some(429)),
        ("429 Too many requests", Some(429)),
        (
            "429 Rate limit reached for gpt-4o in organization org-a on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000. \
          Visit https://platform.openai.com/account/rate-limits to learn more.",
            Some(429),
        ),
        (
            "429 Online prediction concurrent requests quota exceeded",
            Some(429),
        ),
        ("503 The model is overloaded. Please try again later.", Some(503)),
        ("401 invalid x-api-key", Some(401)),
        ("403 Forbidden", Some(403)),
        ("402 A subscription is required for this endpoint", Some(402)),
        ("429 每分钟请求数已达上限", Some(429)),
        (
            "429 rate_limit_error: This request would exceed the rate limit for your organization of 50,000 input tokens per minute",
            Some(429),
        ),
        (
            "error-code?x#token-limit: You exceeded your current quota, please check your plan and billing details.",
            Some(429),
        ),
    ] {
        assert_eq!(quota_wait(text, status), None, "{text}");
    }
}
