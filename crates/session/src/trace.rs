//! What a session does, as spans and events for logs: session, run, turn, tool call. Made from the events that clients get, of
//! which the events of every delta are left out. Requests to models are traced in `llm`; who reads all this is the
//! binary's business. Nothing that a user, a model or a tool said is in here.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tracing::field::Empty;
use tracing::level_filters::LevelFilter;
use tracing::{Level, Span, event, info_span};
use wire::Event;

/// The spans of one session. Clones share them. Without a reader there are none, and nothing is looked at.
#[derive(Clone, Default)]
pub(crate) struct Trace(Option<Arc<Mutex<Spans>>>);

struct Spans {
    session: Span,
    run: Span,
    turn: Span,
    /// By id of the call.
    calls: HashMap<String, Span>,
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() {
            "Trace(on)"
        } else {
            "Trace(off)"
        })
    }
}

impl Trace {
    /// For a session with this id.
    pub(crate) fn new(session_id: &str) -> Self {
        // Nothing here is logged as an error, so a reader of errors alone would see none of it.
        if LevelFilter::current() < LevelFilter::WARN {
            return Self(None);
        }
        Self(Some(Arc::new(Mutex::new(Spans {
            session: session_span(session_id),
            run: Span::none(),
            turn: Span::none(),
            calls: HashMap::new(),
        }))))
    }

    /// The innermost span that is open, for what happens on behalf of the session.
    pub(crate) fn current(&self) -> Span {
        let Some(spans) = self.lock() else {
            return Span::none();
        };
        let inner = [&spans.turn, &spans.run].into_iter().find(|span| !span.is_none());
        inner.unwrap_or(&spans.session).clone()
    }

    /// Notes an event that is sent.
    pub(crate) fn saw(&self, event: &Event) {
        // These are frequent and not traced, so that they do not take the lock.
        if matches!(event, Event::ToolExecutionUpdate { .. }) {
            return;
        }
        if let Some(mut spans) = self.lock() {
            spans.saw(event);
        }
    }

    /// Processes of tools or of the user's shell are ended.
    pub(crate) fn kills(&self, what: &'static str) {
        if let Some(spans) = self.lock() {
            event!(parent: &spans.session, Level::DEBUG, what, "processes are ended");
        }
    }

    fn lock(&self) -> Option<MutexGuard<'_, Spans>> {
        let spans = self.0.as_ref()?;
        Some(spans.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn session_span(id: &str) -> Span {
    info_span!(parent: None, "session", session.id = id)
}

impl Spans {
    fn saw(&mut self, event: &Event) {
        match event {
            Event::AgentStart => self.run = info_span!(parent: &self.session, "run"),
            Event::TurnStart => self.turn = info_span!(parent: &self.run, "turn"),
            // A span ends when its last handle is dropped.
            Event::TurnEnd { .. } => self.turn = Span::none(),
            Event::AgentEnd { will_retry, .. } => {
                event!(parent: &self.run, Level::DEBUG, will_retry, "the run ended");
                self.calls.clear();
                self.turn = Span::none();
                self.run = Span::none();
            }
            Event::ToolExecutionStart {
                tool_call_id,
                tool_name,
                ..
            } => {
                let span = info_span!(
                    parent: &self.turn,
                    "execute_tool",
                    otel.name = format!("execute_tool {tool_name}"),
                    gen_ai.operation.name = "execute_tool",
                    gen_ai.tool.name = tool_name,
                    gen_ai.tool.call.id = tool_call_id,
                    error.r#type = Empty,
                );
                self.calls.insert(tool_call_id.clone(), span);
            }
            Event::ToolExecutionEnd {
                tool_call_id,
                is_error,
                ..
            } => {
                if let Some(span) = self.calls.remove(tool_call_id).filter(|_| *is_error) {
                    span.record("error.type", "tool_error");
                }
            }
            Event::SessionChanged { session_id, .. } => {
                self.calls.clear();
                self.turn = Span::none();
                self.run = Span::none();
                self.session = session_span(session_id);
            }
            other => self.remark(other),
        }
    }

    /// What has no duration of its own.
    fn remark(&self, event: &Event) {
        // The session and not the run: retries and most compactions come after `agent_end`, where no run is open.
        let session = &self.session;
        match event {
            Event::AutoRetryStart {
                attempt,
                max_attempts,
                delay_ms,
                error_message,
            }
            | Event::SummarizationRetryScheduled {
                attempt,
                max_attempts,
                delay_ms,
                error_message,
            } => {
                event!(
                    parent: session, Level::WARN, attempt, max_attempts, delay_ms, error = error_message.as_str(),
                    "a failed request will be tried again"
                );
            }
            Event::AutoRetryEnd { success, attempt, .. } => {
                event!(parent: session, Level::INFO, success, attempt, "trying again is over");
            }
            Event::CompactionStart { reason } => {
                event!(parent: session, Level::INFO, ?reason, "compaction begins");
            }
            Event::CompactionEnd {
                reason,
                result,
                aborted,
                error_message,
                ..
            } => {
                let tokens_before = result.as_ref().map(|result| result.tokens_before);
                let tokens_after = result.as_ref().and_then(|result| result.estimated_tokens_after);
                let error = error_message.as_deref();
                event!(
                    parent: session, Level::INFO, ?reason, aborted, tokens_before, tokens_after, error,
                    "compaction ended"
                );
            }
            Event::SessionDamage { path, message, .. } => {
                event!(parent: session, Level::WARN, path = path.as_str(), "session file: {message}");
            }
            Event::StorageStatus { path, pending, error } => {
                let (path, error) = (path.as_str(), error.as_deref());
                event!(parent: session, Level::WARN, path, pending, error, "session file");
            }
            Event::Notice { level, message } => {
                event!(parent: session, Level::WARN, level = level.as_str(), "notice: {message}");
            }
            _ => {}
        }
    }
}
