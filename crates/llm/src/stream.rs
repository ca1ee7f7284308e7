//! Drives one answer: waits for the response, feeds the parser, and ensures that exactly one last event is emitted in every
//! case. The families interpret the events.

use std::pin::Pin;
use std::time::Duration;

use auth::Secrets;
use auth::secrets::REPLACEMENT;
use bytes::Bytes;
use futures_util::{FutureExt, Stream, StreamExt};
use tokio::time::{Instant, Sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::Span;
use wire::{AssistantBlock, StopReason};

use crate::answer::{Answer, Fault};
use crate::event::ModelEvent;
use crate::family::{Flow, StreamParser};
use crate::framing::Framing;
use crate::http::broken_body;
use crate::json::{is_whole, mend_surrogates};
use crate::lent::Lending;
use crate::limits::{DRAIN_BYTES, DRAIN_TIMEOUT, MAX_BATCH_BYTES, MAX_BATCH_EVENTS, MAX_BODY_BYTES};
use crate::offline::Playing;
use crate::sse::SseScanner;
use crate::{strict_refusal, tape, trace};

/// Text of an abort before the response came (behaviour.md 3.6).
pub(crate) const ABORTED_EARLY: &str = "Request was aborted.";

/// Bytes from which the end of a text that was cut counts as the beginning of a credential. Fewer match ordinary words.
const SHORTEST_PART: usize = 4;

/// A response head on its way, retries included.
pub(crate) type Head = Pin<Box<dyn Future<Output = Result<reqwest::Response, Fault>> + Send>>;
/// The bytes of a response, unpacked.
type Body = Pin<Box<dyn Stream<Item = reqwest::Result<Bytes>> + Send>>;

/// The response is not there yet.
pub(crate) struct Waiting {
    /// Resolves to the response.
    pub(crate) head: Head,
    /// Understands what will come.
    pub(crate) parser: Box<dyn StreamParser>,
    /// How the events are framed.
    pub(crate) framing: Framing,
    /// How long the stream may be silent.
    pub(crate) idle: Duration,
}

/// The response is being read.
pub(crate) struct Reading {
    body: Body,
    scanner: Framing,
    parser: Box<dyn StreamParser>,
    /// Bytes so far, after unpacking.
    received: u64,
    idle: Duration,
    /// Lines of the scanner when `alive` was set.
    lines: u64,
    /// When the last line that said something came.
    alive: Instant,
    /// Fires at the earliest moment at which the stream can be idle; moved only then, not with every piece.
    timer: Pin<Box<Sleep>>,
}

/// Where an answer stands.
pub(crate) enum State {
    /// The request is under way.
    Waiting(Box<Waiting>),
    /// The response is being read.
    Reading(Box<Reading>),
    /// The offline provider answers.
    Playing(Box<Playing>),
    /// An extension streams the answer.
    Lending(Box<Lending>),
    /// Failed before anything was sent.
    Refused(Box<(Answer, Fault)>),
    /// The last event was given.
    Finished,
}

/// What a wait brought.
enum Wake {
    /// The caller aborted.
    Cancelled,
    /// The next bytes, their end or a fault.
    Piece(Option<reqwest::Result<Bytes>>),
    /// The stream may have been silent for too long.
    Timer,
}

/// The events of one answer. Dropping it aborts the request.
pub struct ModelStream {
    state: State,
    cancel: CancellationToken,
    /// Taken out of error texts, should a provider echo one.
    secrets: Secrets,
    /// Until the last event.
    span: Span,
    /// When the stream was created; answers are timed from here.
    began: Instant,
    /// Events that `next` has yet to give.
    batch: std::vec::IntoIter<ModelEvent>,
}

impl ModelStream {
    pub(crate) fn new(state: State, cancel: CancellationToken, secrets: Secrets, span: Span) -> Self {
        Self {
            state,
            cancel,
            secrets,
            span,
            began: Instant::now(),
            batch: Vec::new().into_iter(),
        }
    }

    /// What the caller's token would do.
    #[cfg(test)]
    pub(crate) fn abort_for_test(&self) {
        self.cancel.cancel();
    }

    /// The next event; none after the last one. Safe to drop while waiting: nothing is lost.
    pub async fn next(&mut self) -> Option<ModelEvent> {
        loop {
            if let Some(event) = self.batch.next() {
                return Some(event);
            }
            let mut batch = Vec::new();
            if !self.fill(&mut batch).await {
                return None;
            }
            self.batch = batch.into_iter();
        }
    }

    /// Appends everything that is ready, at least one event, to `out`; waits only when nothing is. False after the last
    /// event. Safe to drop while waiting: nothing is lost.
    pub async fn next_batch(&mut self, out: &mut Vec<ModelEvent>) -> bool {
        if self.batch.len() > 0 {
            out.extend(self.batch.by_ref());
            return true;
        }
        self.fill(out).await
    }

    /// A copy of the content that has arrived, with the arguments of open calls as far as they can be read. While the caller handles
    /// a batch of events, the content is that of the last one. Empty before the first event and after the last event of the stream, which
    /// has the message.
    #[must_use]
    pub fn partial_content(&self) -> Vec<AssistantBlock> {
        match &self.state {
            State::Reading(reading) => reading.parser.answer_so_far().partial_content(),
            State::Playing(playing) => playing.answer_so_far().partial_content(),
            State::Lending(lending) => lending.answer_so_far().partial_content(),
            State::Waiting(_) | State::Refused(_) | State::Finished => Vec::new(),
        }
    }

    /// Waits until there are events. Never waits once it has put one into `out`.
    async fn fill(&mut self, out: &mut Vec<ModelEvent>) -> bool {
        let before = out.len();
        while out.len() == before {
            match &mut self.state {
                State::Finished => return false,
                State::Refused(parts) => {
                    let (answer, fault) = parts.as_mut();
                    answer.failed(StopReason::Error, fault.clone(), out);
                    self.state = State::Finished;
                }
                State::Waiting(waiting) => {
                    let response = tokio::select! {
                        biased;
                        () = self.cancel.cancelled() => None,
                        response = &mut waiting.head => Some(response),
                    };
                    self.begin(response, out);
                }
                State::Reading(reading) => {
                    let wake = reading.wait(&self.cancel).await;
                    self.read(wake, out);
                }
                State::Lending(lending) => {
                    if lending.step(&self.cancel, out).await {
                        self.state = State::Finished;
                    }
                }
                State::Playing(playing) => {
                    if playing.step(&self.cancel, out).await {
                        self.state = State::Finished;
                    }
                }
            }
        }
        if out.last().is_some_and(ModelEvent::is_last) {
            self.state = State::Finished;
        }
        self.time(out);
        self.hide_key(out);
        if let Some(last) = out.last().filter(|event| event.is_last()) {
            trace::finish(&std::mem::replace(&mut self.span, Span::none()), last);
        }
        true
    }

    /// The wait for the response is over.
    fn begin(&mut self, response: Option<Result<reqwest::Response, Fault>>, out: &mut Vec<ModelEvent>) {
        let State::Waiting(waiting) = std::mem::replace(&mut self.state, State::Finished) else {
            return;
        };
        let mut parser = waiting.parser;
        match response {
            None => parser
                .answer()
                .failed(StopReason::Aborted, Fault::new(ABORTED_EARLY), out),
            Some(Err(fault)) => parser.answer().failed(StopReason::Error, fault, out),
            Some(Ok(response)) => {
                out.extend(tape::remark(&response).map(ModelEvent::Remark));
                let hide = |text| without_keys(&self.secrets, text);
                strict_refusal::note(&response, parser.answer().message(), hide);
                out.push(ModelEvent::Start(parser.answer().head()));
                let reading = Reading::new(response, parser, waiting.framing, waiting.idle);
                self.state = State::Reading(Box::new(reading));
            }
        }
    }

    /// Works off what a wait brought, and everything else that is there already.
    fn read(&mut self, wake: Wake, out: &mut Vec<ModelEvent>) {
        let State::Reading(reading) = &mut self.state else {
            return;
        };
        let full = out.len() + MAX_BATCH_EVENTS;
        let before = reading.received;
        let mut wake = wake;
        let finished = loop {
            match reading.take(wake, out) {
                Ok(Flow::More) => {}
                Ok(Flow::Done) => {
                    reading.parser.answer().done(out);
                    break true;
                }
                Err(Stopped::Aborted) => {
                    let text = reading.parser.abort(out);
                    reading
                        .parser
                        .answer()
                        .failed(StopReason::Aborted, Fault::new(text), out);
                    break true;
                }
                Err(Stopped::Failed(fault)) => {
                    reading.parser.answer().failed(StopReason::Error, fault, out);
                    break true;
                }
            }
            let is_full = out.len() >= full || reading.received - before >= MAX_BATCH_BYTES;
            if is_full || self.cancel.is_cancelled() {
                break false;
            }
            match reading.body.next().now_or_never() {
                Some(piece) => wake = Wake::Piece(piece),
                None => break false,
            }
        };
        if finished && let State::Reading(reading) = std::mem::replace(&mut self.state, State::Finished) {
            let whole = matches!(out.last(), Some(ModelEvent::Done(_)));
            if whole {
                drain(reading.body);
            }
        }
    }

    /// Notes in a final message how long the answer took. A provider of an extension may have measured it itself.
    fn time(&self, out: &mut [ModelEvent]) {
        let Some(ModelEvent::Done(message) | ModelEvent::Error { message, .. }) = out.last_mut() else {
            return;
        };
        if message.duration_ms.is_none() {
            // Half a millisecond more, since `as_millis` cuts and the original rounds.
            let rounded = self.began.elapsed() + Duration::from_micros(500);
            message.duration_ms = u64::try_from(rounded.as_millis()).ok();
        }
    }

    /// Takes credentials out of an error text, should the provider have echoed one.
    fn hide_key(&self, out: &mut [ModelEvent]) {
        if let Some(ModelEvent::Error { message, .. }) = out.last_mut() {
            message.error_message = message
                .error_message
                .take()
                .map(|text| without_keys(&self.secrets, text));
        }
    }
}

impl std::fmt::Debug for ModelStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ModelStream").finish_non_exhaustive()
    }
}

/// The text without credentials. Texts are cut before this, so that the end of a text can be the beginning of a credential.
fn without_keys(secrets: &Secrets, text: String) -> String {
    let text = secrets.redact(text);
    let Some(shown) = text.strip_suffix("...") else {
        return text;
    };
    let part = secrets.open_end(shown.as_bytes());
    if part < SHORTEST_PART {
        return text;
    }
    let kept = shown.get(..shown.len() - part).unwrap_or_default();
    format!("{kept}{REPLACEMENT}...")
}

/// Why reading stops early.
enum Stopped {
    Aborted,
    Failed(Fault),
}

impl From<Fault> for Stopped {
    fn from(fault: Fault) -> Self {
        Self::Failed(fault)
    }
}

impl Reading {
    fn new(
        response: reqwest::Response,
        parser: Box<dyn StreamParser>,
        scanner: Framing,
        idle: Duration,
    ) -> Self {
        Self {
            body: Box::pin(response.bytes_stream()),
            scanner,
            parser,
            received: 0,
            idle,
            lines: 0,
            alive: Instant::now(),
            timer: Box::pin(tokio::time::sleep(idle)),
        }
    }

    /// Waits for the first of several events. Cancel-safe.
    async fn wait(&mut self, cancel: &CancellationToken) -> Wake {
        tokio::select! {
            biased;
            () = cancel.cancelled() => Wake::Cancelled,
            piece = self.body.next() => Wake::Piece(piece),
            () = &mut self.timer => Wake::Timer,
        }
    }

    /// Works off what a wait brought. `Done` means that the answer is whole.
    fn take(&mut self, wake: Wake, out: &mut Vec<ModelEvent>) -> Result<Flow, Stopped> {
        match wake {
            Wake::Cancelled => Err(Stopped::Aborted),
            Wake::Timer => self.check_idle(),
            Wake::Piece(Some(Ok(piece))) => self.piece(&piece, out),
            Wake::Piece(Some(Err(_))) => Err(broken_body().into()),
            Wake::Piece(None) => self.end(out),
        }
    }

    /// Sets the timer anew, unless the silence was too long.
    fn check_idle(&mut self) -> Result<Flow, Stopped> {
        let until = self.alive + self.idle;
        if Instant::now() >= until {
            let text = format!("Stream timed out: nothing came for {} s", self.idle.as_secs_f64());
            return Err(Fault::new(text).into());
        }
        self.timer.as_mut().reset(until);
        Ok(Flow::More)
    }

    /// Takes bytes. Only lines that say something count as a sign of life, so that single bytes do not keep a dead answer
    /// alive; comments do count, they are how routers say that they wait.
    fn piece(&mut self, piece: &[u8], out: &mut Vec<ModelEvent>) -> Result<Flow, Stopped> {
        self.received += piece.len() as u64;
        if self.received > MAX_BODY_BYTES {
            return Err(Fault::new(format!("The response is larger than {MAX_BODY_BYTES} bytes")).into());
        }
        self.scanner.push(piece);
        while let Some(event) = self.scanner.next()? {
            let data = mend_surrogates(event.data);
            if self.parser.event(event.name, &data, out)? == Flow::Done {
                return Ok(Flow::Done);
            }
        }
        if self.scanner.lines() != self.lines {
            self.lines = self.scanner.lines();
            self.alive = Instant::now();
        }
        Ok(Flow::More)
    }

    /// Takes the end of the body.
    fn end(&mut self, out: &mut Vec<ModelEvent>) -> Result<Flow, Stopped> {
        match &mut self.scanner {
            Framing::Sse(scanner) => end_of_body(scanner, self.parser.as_mut(), out)?,
            // An incomplete frame contains no event.
            Framing::Aws(_) => self.parser.end(out)?,
        }
        Ok(Flow::Done)
    }
}

/// Takes the end of a body. The event that no blank line ended counts when it is whole; half of one is what a cut leaves.
pub(crate) fn end_of_body(
    scanner: &mut SseScanner,
    parser: &mut dyn StreamParser,
    out: &mut Vec<ModelEvent>,
) -> Result<(), Fault> {
    if let Some(event) = scanner.finish().filter(|event| is_whole(event.data))
        && parser.event(event.name, &mend_surrogates(event.data), out)? == Flow::Done
    {
        return Ok(());
    }
    parser.end(out)
}

/// Reads the rest of a finished response, so that its connection can be used again.
fn drain(mut body: Body) {
    while let Some(piece) = body.next().now_or_never() {
        if !matches!(piece, Some(Ok(_))) {
            return;
        }
    }
    tokio::spawn(timeout(DRAIN_TIMEOUT, async move {
        let mut left = DRAIN_BYTES;
        while let Some(Ok(piece)) = body.next().await {
            if piece.len() > left {
                break;
            }
            left -= piece.len();
        }
    }));
}
