//! The API families and what each must be able to do. To add one: a folder with `request` and `stream`, and a line in each
//! `match` here.

use reqwest::header::HeaderMap;
use wire::Model;

use crate::adaptive::thinks_adaptively;
use crate::answer::{Answer, Fault};
use crate::compat::flag;
use crate::error::LlmError;
use crate::event::ModelEvent;
use crate::framing::Framing;
use crate::http::HttpRequest;
use crate::ids::CallNumbers;
use crate::request::ModelRequest;
use crate::{
    anthropic, bedrock, google, mistral, openai_codex, openai_completions, openai_responses, opencode, tune,
};

/// Returns true for built-in API families. Models of other families can be listed, but get no requests.
#[must_use]
pub fn supports(api: &str) -> bool {
    api == crate::offline::API || Family::of(api).is_some()
}

/// Returns true if the provider takes the level `xhigh` from a model that names no levels. The rule is that of oh-my-pi, without Claude
/// models that choose the length themselves: their words for levels are in the built-in list only.
#[must_use]
pub fn takes_xhigh(model: &Model) -> bool {
    match Family::of(&model.api) {
        Some(Family::Anthropic) => !flag(model, "forceAdaptiveThinking", thinks_adaptively(&model.id)),
        Some(Family::OpenAiCompletions) => openai_completions::takes_efforts(model),
        Some(Family::OpenAiResponses | Family::OpenAiCodex) => flag(model, "supportsReasoningEffort", true),
        _ => false,
    }
}

/// Whether a stream goes on after an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    /// Yes.
    More,
    /// No: the provider said that it is done.
    Done,
}

/// Understands the stream of one answer. The driver in `stream` sends the first and the last event; a parser only
/// reports what happens in between.
pub(crate) trait StreamParser: Send {
    /// Takes one event of the stream.
    fn event(&mut self, name: &str, data: &str, out: &mut Vec<ModelEvent>) -> Result<Flow, Fault>;

    /// The body ended before the provider said that it is done. Ok when the answer is whole all the same.
    fn end(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), Fault>;

    /// Handles an abort; returns its error text (behaviour.md 3.6).
    fn abort(&mut self, out: &mut Vec<ModelEvent>) -> &'static str;

    /// The answer, to be changed.
    fn answer(&mut self) -> &mut Answer;

    /// The answer so far.
    fn answer_so_far(&self) -> &Answer;
}

/// API families that talk HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    /// `anthropic-messages`
    Anthropic,
    /// `openai-completions`
    OpenAiCompletions,
    /// `openai-responses` and `azure-openai-responses`
    OpenAiResponses,
    /// `openai-codex-responses`
    OpenAiCodex,
    /// `google-generative-ai` and `google-vertex`
    Google,
    /// `mistral-conversations`
    Mistral,
    /// `bedrock-converse-stream`
    Bedrock,
}

impl Family {
    /// The family that a model names.
    pub(crate) fn of(api: &str) -> Option<Self> {
        match api {
            "anthropic-messages" => Some(Self::Anthropic),
            "openai-completions" => Some(Self::OpenAiCompletions),
            "openai-responses" | openai_responses::azure::API => Some(Self::OpenAiResponses),
            openai_codex::API => Some(Self::OpenAiCodex),
            "google-generative-ai" | google::vertex::API => Some(Self::Google),
            "mistral-conversations" => Some(Self::Mistral),
            bedrock::API => Some(Self::Bedrock),
            _ => None,
        }
    }

    /// Writes a request in the provider's words.
    pub(crate) fn request(self, request: &ModelRequest) -> Result<HttpRequest, LlmError> {
        let mut http = match self {
            Self::Anthropic => anthropic::request::build(request),
            Self::OpenAiCompletions => openai_completions::request::build(request),
            Self::OpenAiResponses => openai_responses::request::build(request),
            Self::OpenAiCodex => openai_codex::request::build(request),
            Self::Google => google::request::build(request),
            Self::Mistral => mistral::request::build(request),
            Self::Bedrock => bedrock::request::build(request),
        }?;
        tune::apply(self, request, &mut http);
        opencode::route(request, &mut http.headers)?;
        Ok(http)
    }

    /// A parser for the answer to a request. `numbers` are for calls without an id.
    pub(crate) fn parser(self, request: &ModelRequest, numbers: &CallNumbers) -> Box<dyn StreamParser> {
        match self {
            Self::Anthropic => Box::new(anthropic::stream::MessagesParser::new(request)),
            Self::OpenAiCompletions => Box::new(openai_completions::stream::CompletionsParser::new(request)),
            Self::OpenAiResponses | Self::OpenAiCodex => {
                Box::new(openai_responses::stream::ResponsesParser::new(request))
            }
            Self::Google => Box::new(google::stream::GeminiParser::new(request, numbers.clone())),
            Self::Mistral => Box::new(openai_completions::stream::CompletionsParser::mistral(request)),
            Self::Bedrock => Box::new(bedrock::stream::ConverseParser::new(request)),
        }
    }

    /// The text of an HTTP error, as the provider's own SDK would show it (pi-core.md 4.3).
    pub(crate) fn error_text(self, status: u16, body: &str) -> String {
        match self {
            Self::Anthropic => anthropic::error_text(status, body),
            Self::OpenAiCompletions | Self::OpenAiResponses => openai_completions::error_text(status, body),
            Self::OpenAiCodex => openai_codex::error_text(status, body),
            Self::Google => google::error_text(status, body),
            Self::Mistral => mistral::error_text(status, body),
            Self::Bedrock => bedrock::error_text(status, "", body),
        }
    }

    /// Returns the text of an HTTP error; some providers send the reason in a header.
    pub(crate) fn refusal_text(self, status: u16, headers: &HeaderMap, body: &str) -> String {
        match self {
            Self::Bedrock => {
                let kind = headers
                    .get("x-amzn-errortype")
                    .and_then(|kind| kind.to_str().ok());
                bedrock::error_text(status, kind.unwrap_or_default(), body)
            }
            _ => self.error_text(status, body),
        }
    }

    /// The text of an HTTP error with the whole error object, as today's pi shows it; none for families without such a form.
    pub(crate) fn error_object_text(self, model: (&str, &str), status: u16, body: &str) -> Option<String> {
        match self {
            Self::OpenAiCompletions => openai_completions::error_object_text(status, body),
            Self::OpenAiResponses => {
                let name = match model {
                    (openai_responses::azure::API, _) => "Azure OpenAI",
                    (_, "openai") => "OpenAI",
                    (_, provider) => provider,
                };
                let text = match openai_completions::error_object(body) {
                    Some(error) => error.to_string(),
                    None => self.error_text(status, body),
                };
                Some(openai_responses::with_plan_help(format!(
                    "{name} API error ({status}): {text}"
                )))
            }
            _ => None,
        }
    }

    /// How the events of an answer are framed.
    pub(crate) fn framing(self) -> Framing {
        match self {
            Self::Bedrock => Framing::aws(),
            _ => Framing::sse(),
        }
    }

    /// Returns true if the family fills in this placeholder of a base URL.
    pub(crate) fn fills(self, placeholder: &str) -> bool {
        self == Self::Google && placeholder == "location"
    }
}
