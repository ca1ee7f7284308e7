//! Error bodies with the words and shapes the real services use, per protocol. Choosing when to send one is the
//! reply's business.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::api::Api;

/// The kinds of error every provider knows in its own words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// Too many requests or tokens.
    RateLimit,
    /// Internal error.
    Server,
    /// No capacity at the moment.
    Overloaded,
    /// The prompt does not fit the model.
    ContextOverflow,
    /// The request's body is too large.
    TooLarge,
    /// Bad or missing key.
    Auth,
    /// The request makes no sense.
    Invalid,
}

/// Status and body of an error. `status` and `message` replace the provider's own.
pub(crate) fn body(api: Api, kind: ErrorKind, status: Option<u16>, message: Option<&str>) -> (u16, Value) {
    match api {
        Api::Anthropic => anthropic(kind, status, message),
        Api::OpenAi => openai(kind, status, message, CHAT_OVERFLOW),
        Api::Responses => openai(kind, status, message, RESPONSES_OVERFLOW),
        Api::Google => google(kind, status, message),
        Api::Bedrock => bedrock(kind, status, message),
    }
}

const CHAT_OVERFLOW: &str = "This model's maximum context length is 128000 tokens. However, your messages resulted in \
                             130512 tokens. Please reduce the length of the messages.";
const RESPONSES_OVERFLOW: &str =
    "Your input exceeds the context window of this model. Please adjust your input and try again.";

fn anthropic(kind: ErrorKind, status: Option<u16>, message: Option<&str>) -> (u16, Value) {
    let (code, ty, text) = match kind {
        ErrorKind::RateLimit => (
            429,
            "rate_limit_error",
            "This request would exceed your organization's rate limit of 30,000 input tokens per minute.",
        ),
        ErrorKind::Server => (500, "api_error", "Internal server error"),
        ErrorKind::Overloaded => (529, "overloaded_error", "Overloaded"),
        ErrorKind::ContextOverflow => (
            400,
            "invalid_request_error",
            "prompt is too long: 213462 tokens > 200000 maximum",
        ),
        ErrorKind::TooLarge => (413, "request_too_large", "Request exceeds the maximum size"),
        ErrorKind::Auth => (401, "authentication_error", "invalid x-api-key"),
        ErrorKind::Invalid => (
            400,
            "invalid_request_error",
            "messages: at least one message is required",
        ),
    };
    let error = json!({"type": ty, "message": message.unwrap_or(text)});
    (
        status.unwrap_or(code),
        json!({"type": "error", "error": error, "request_id": "req_mock_0001"}),
    )
}

fn openai(kind: ErrorKind, status: Option<u16>, message: Option<&str>, overflow: &str) -> (u16, Value) {
    let (http, ty, code, text) = match kind {
        ErrorKind::RateLimit => (
            429,
            "tokens",
            Some("rate_limit_exceeded"),
            "Rate limit reached for gpt-mock in organization org-mock on tokens per min (TPM): Limit 30000, \
             Used 29000, Requested 2000. Please try again in 2s.",
        ),
        ErrorKind::Server => (
            500,
            "server_error",
            None,
            "The server had an error while processing your request. Sorry about that!",
        ),
        ErrorKind::Overloaded => (
            503,
            "server_error",
            None,
            "The engine is currently overloaded, please try again later",
        ),
        ErrorKind::ContextOverflow => (
            400,
            "invalid_request_error",
            Some("context_length_exceeded"),
            overflow,
        ),
        ErrorKind::TooLarge => (413, "invalid_request_error", None, "Request too large."),
        ErrorKind::Auth => (
            401,
            "invalid_request_error",
            Some("invalid_api_key"),
            "Incorrect API key provided: mock-key.",
        ),
        ErrorKind::Invalid => (400, "invalid_request_error", None, "Invalid request."),
    };
    let error = json!({"message": message.unwrap_or(text), "type": ty, "param": null, "code": code});
    (status.unwrap_or(http), json!({"error": error}))
}

fn google(kind: ErrorKind, status: Option<u16>, message: Option<&str>) -> (u16, Value) {
    let (code, name, text) = match kind {
        ErrorKind::RateLimit => (
            429,
            "RESOURCE_EXHAUSTED",
            "Resource has been exhausted (e.g. check quota).",
        ),
        ErrorKind::Server => (500, "INTERNAL", "An internal error has occurred. Please retry."),
        ErrorKind::Overloaded => (
            503,
            "UNAVAILABLE",
            "The model is overloaded. Please try again later.",
        ),
        ErrorKind::ContextOverflow => (
            400,
            "INVALID_ARGUMENT",
            "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
        ),
        ErrorKind::TooLarge => (413, "INVALID_ARGUMENT", "Request payload size exceeds the limit."),
        ErrorKind::Auth => (
            400,
            "INVALID_ARGUMENT",
            "API key not valid. Please pass a valid API key.",
        ),
        ErrorKind::Invalid => (400, "INVALID_ARGUMENT", "Request contains an invalid argument."),
    };
    let code = status.unwrap_or(code);
    (
        code,
        json!({"error": {"code": code, "message": message.unwrap_or(text), "status": name}}),
    )
}

fn bedrock(kind: ErrorKind, status: Option<u16>, message: Option<&str>) -> (u16, Value) {
    let (code, name, text) = match kind {
        ErrorKind::RateLimit => (
            429,
            "ThrottlingException",
            "Too many requests, please wait before trying again.",
        ),
        ErrorKind::Server => (
            500,
            "InternalServerException",
            "The system encountered an unexpected error during processing. Try your request again.",
        ),
        ErrorKind::Overloaded => (
            503,
            "ServiceUnavailableException",
            "The service is currently unavailable.",
        ),
        ErrorKind::ContextOverflow => (
            400,
            "ValidationException",
            "Input is too long for requested model.",
        ),
        ErrorKind::TooLarge => (413, "ValidationException", "Request body is too large."),
        ErrorKind::Auth => (
            403,
            "UnrecognizedClientException",
            "The security token included in the request is invalid.",
        ),
        ErrorKind::Invalid => (400, "ValidationException", "The request is invalid."),
    };
    let body = json!({"__type": name, "message": message.unwrap_or(text)});
    (status.unwrap_or(code), body)
}
