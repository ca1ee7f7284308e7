//! Judging error texts: overflow, worth another try, final.

use wire::{AssistantMessage, StopReason};

use crate::bedrock;
use crate::{is_context_overflow, is_retryable, is_unavailable};

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
