//! The API families and what each must be able to do. To add one: a folder with `request` and `stream`, and a line in each
//! `match` here.

use crate::answer::{Answer, Fault};
use crate::error::LlmError;
use crate::event::ModelEvent;
use crate::http::HttpRequest;
use crate::request::ModelRequest;
use crate::{anthropic, google, mistral, openai_completions, openai_responses};

/// Is an API family built in? Models of other families can be listed but not asked.
#[must_use]
pub fn supports(api: &str) -> bool {
    api == crate::offline::API || Family::of(api).is_some()
}

/// Does a stream go on after an event?
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

    /// Somebody aborted; gives the text for it (behaviour.md 3.6).
    fn abort(&mut self, out: &mut Vec<ModelEvent>) -> &'static str;

    /// The answer so far.
    fn answer(&mut self) -> &mut Answer;
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
    /// `google-generative-ai`
    Google,
    /// `mistral-conversations`
    Mistral,
}

impl Family {
    /// The family that a model names.
    pub(crate) fn of(api: &str) -> Option<Self> {
        match api {
            "anthropic-messages" => Some(Self::Anthropic),
            "openai-completions" => Some(Self::OpenAiCompletions),
            "openai-responses" | openai_responses::request::AZURE => Some(Self::OpenAiResponses),
            "google-generative-ai" => Some(Self::Google),
            "mistral-conversations" => Some(Self::Mistral),
            _ => None,
        }
    }

    /// Writes a request in the provider's words.
    pub(crate) fn request(self, request: &ModelRequest) -> Result<HttpRequest, LlmError> {
        match self {
            Self::Anthropic => anthropic::request::build(request),
            Self::OpenAiCompletions => openai_completions::request::build(request),
            Self::OpenAiResponses => openai_responses::request::build(request),
            Self::Google => google::request::build(request),
            Self::Mistral => mistral::request::build(request),
        }
    }

    /// A parser for the answer to a request.
    pub(crate) fn parser(self, request: &ModelRequest) -> Box<dyn StreamParser> {
        match self {
            Self::Anthropic => Box::new(anthropic::stream::Parser::new(request)),
            Self::OpenAiCompletions => Box::new(openai_completions::stream::Parser::new(request)),
            Self::OpenAiResponses => Box::new(openai_responses::stream::Parser::new(request)),
            Self::Google => Box::new(google::stream::Parser::new(request)),
            Self::Mistral => Box::new(openai_completions::stream::Parser::mistral(request)),
        }
    }

    /// The text of an HTTP error, as the provider's own SDK would show it (pi-core.md 4.3).
    pub(crate) fn error_text(self, status: u16, body: &str) -> String {
        match self {
            Self::Anthropic => anthropic::error_text(status, body),
            Self::OpenAiCompletions | Self::OpenAiResponses => openai_completions::error_text(status, body),
            Self::Google => google::error_text(status, body),
            Self::Mistral => mistral::error_text(status, body),
        }
    }
}
