//! Requests as spans, in the words of OpenTelemetry's conventions for generative AI. Nothing that was said is in here, and
//! nothing happens per delta. Who reads the spans is the binary's business.

use tracing::field::Empty;
use tracing::{Span, info_span};
use wire::{AssistantMessage, StopReason};

use crate::event::ModelEvent;
use crate::request::ModelRequest;

/// The span of a request and its answer, inside the current one.
pub(crate) fn request(request: &ModelRequest) -> Span {
    let model = &request.model;
    info_span!(
        "chat",
        otel.name = format!("chat {}", model.id),
        otel.kind = "client",
        otel.status_code = Empty,
        otel.status_description = Empty,
        gen_ai.operation.name = "chat",
        gen_ai.provider.name = provider(&model.api, &model.provider),
        gen_ai.conversation.id = request.session_id,
        gen_ai.request.model = model.id,
        gen_ai.request.max_tokens = request.output_limit().map(number),
        gen_ai.response.model = Empty,
        gen_ai.response.id = Empty,
        gen_ai.response.finish_reasons = Empty,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        error.r#type = Empty,
    )
}

/// The conventions' name of who is asked; ours where they have none.
fn provider<'a>(api: &str, id: &'a str) -> &'a str {
    match (api, id) {
        ("azure-openai-responses", _) => "azure.ai.openai",
        ("bedrock-converse-stream", _) => "aws.bedrock",
        ("google-vertex", _) => "gcp.vertex_ai",
        ("google-generative-ai", "google") => "gcp.gemini",
        (_, "mistral") => "mistral_ai",
        (_, "xai") => "x_ai",
        _ => id,
    }
}

/// The last event of the answer.
pub(crate) fn finish(span: &Span, event: &ModelEvent) {
    if span.is_disabled() {
        return;
    }
    match event {
        ModelEvent::Done(message) => record(span, message),
        ModelEvent::Error { message, .. } => {
            record(span, message);
            let aborted = message.stop_reason == StopReason::Aborted;
            span.record("error.type", if aborted { "aborted" } else { "provider_error" });
            if !aborted {
                span.record("otel.status_code", "error");
                let text = message.error_message.as_deref().unwrap_or_default();
                span.record("otel.status_description", text);
                tracing::warn!(parent: span, error = text, "the request failed");
            }
        }
        _ => {}
    }
}

fn record(span: &Span, message: &AssistantMessage) {
    let usage = &message.usage;
    span.record(
        "gen_ai.response.model",
        message.response_model.as_deref().unwrap_or(&message.model),
    );
    if let Some(id) = message.response_id.as_deref() {
        span.record("gen_ai.response.id", id);
    }
    let reason = match message.stop_reason {
        StopReason::Stop => "stop",
        StopReason::Length => "length",
        StopReason::ToolUse => "tool_calls",
        StopReason::Error => "error",
        StopReason::Aborted => "aborted",
        StopReason::Deferred => "deferred",
        StopReason::Pending => "pending",
    };
    span.record("gen_ai.response.finish_reasons", format!("[\"{reason}\"]"));
    // The conventions count cached tokens as input.
    let input = usage.input + usage.cache_read + usage.cache_write;
    span.record("gen_ai.usage.input_tokens", number(input));
    span.record("gen_ai.usage.output_tokens", number(usage.output));
}

/// Collectors know signed numbers only.
fn number(tokens: u64) -> i64 {
    i64::try_from(tokens).unwrap_or(i64::MAX)
}
