//! Events and responses to lines. Everything but `message_update` is plain serde; `message_update` is written from text
//! that only grows, and paced, so that the bytes written stay within a small multiple of the answer (dialects.md 5,
//! row 18; docs/internals/decisions/25-linear-updates.md). Where the lines go is not known here.

mod answer;
mod continued_runs;
mod early_ends;
mod failures;
mod fallbacks;
mod json;
mod long_text;
mod message_ids;
mod pending;
mod prompts;
mod repeats;
mod steps;
mod subagents;
mod vocabulary;

use std::time::Instant;

use wire::subagent::SubagentLevel;
use wire::{Dialect, Event, Message, Reply, Response, StreamEvent, Usage};

pub use self::json::escape;
pub use self::repeats::Piece;
pub(crate) use self::repeats::Repeats;
#[cfg(test)]
pub(crate) use self::repeats::Segment;

use self::answer::{Answer, Prose};
use self::continued_runs::ContinuedRun;
use self::early_ends::EarlyEnds;
use self::fallbacks::Fallbacks;
use self::long_text::{LongText, ends_long_text, has_long_text};
use self::message_ids::MessageIds;
use self::pending::{Delta, Kind, Pending, Stage, block};
use self::prompts::{Line, Prompts};
use self::steps::{write_delta, write_event};
use self::subagents::Subagents;
use self::vocabulary::Vocabulary;
use crate::limits::SMALL_ANSWER;
use crate::manner::{Manner, Spoken, WantedUi};

/// The form of `message_update`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Form {
    /// Each update repeats the answer so far, in `partial` and in `message`; all older clients need this.
    #[default]
    Cumulative,
    /// Each update contains only the new text, as in today's pi.
    Delta,
}

/// Turns events and responses into lines, appended to a buffer of the caller.
///
/// Deltas are held back until [`flush_due`](Self::flush_due) finds them due or anything else is written, and
/// consecutive ones are merged; their concatenation is always exact and nothing overtakes them.
#[derive(Debug, Default)]
pub struct Encoder {
    /// Followed between lines.
    spoken: Spoken,
    /// The form of the answer that streams in; it changes between answers.
    form: Form,
    vocabulary: Vocabulary,
    prompts: Prompts,
    fallbacks: Fallbacks,
    continued_run: ContinuedRun,
    message_ids: MessageIds,
    /// The answer that streams in, kept for the cumulative form only.
    answer: Option<Answer>,
    /// For a cumulative answer to clients of today's oh-my-pi only.
    early_ends: Option<EarlyEnds>,
    pending: Pending,
    subagents: Subagents,
    /// Parts of the batch that are to be written again; none when each line must be complete in the batch.
    repeats: Option<Repeats>,
    /// The text of the newest answer, until the end of the run repeats it.
    long_text: LongText,
}

impl Encoder {
    /// An encoder of today's pi's vocabulary.
    #[must_use]
    pub fn new(form: Form) -> Self {
        Self::speaking(Spoken::new(match form {
            Form::Cumulative => Dialect::Pi,
            Form::Delta => Dialect::PiDelta,
        }))
    }

    /// Creates an encoder that follows the detected dialect of a connection.
    #[must_use]
    pub fn speaking(spoken: Spoken) -> Self {
        Self {
            form: form(spoken.manner()),
            spoken,
            ..Self::default()
        }
    }

    /// Writes updates in another form, from the next answer on.
    pub(crate) fn set_form(&self, form: Form) {
        self.spoken.choose_delta(Some(form == Form::Delta));
    }

    /// Speaks another dialect from the next line on.
    pub(crate) fn speak(&self, dialect: Dialect) {
        self.spoken.choose(dialect);
    }

    /// Sets the user interface frames to write, in any dialect.
    pub(crate) fn set_ui(&self, ui: WantedUi) {
        self.spoken.choose_ui(ui);
    }

    /// The current format of the connection: dialect and options.
    pub(crate) fn manner(&self) -> Manner {
        self.spoken.manner()
    }

    /// From now on, batches do not contain the text of a long answer. The caller writes them with
    /// [`take_lines`](Self::take_lines).
    pub fn share_long_text(&mut self) {
        self.repeats.get_or_insert_default();
    }

    /// The repeats of the lines since the last call.
    pub(crate) fn take_repeats(&mut self) -> Repeats {
        self.repeats.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// The lines of a batch, which ends here, without their line feeds. The last piece of a line is no shared one.
    pub fn take_lines(&mut self, batch: Vec<u8>) -> Vec<Vec<Piece>> {
        self.take_repeats().lines(batch)
    }

    /// Appends a step of an answer as JSON, for callers that write updates themselves. Long text is shared as in other lines.
    pub fn step(&mut self, event: &StreamEvent, out: &mut Vec<u8>) {
        match &mut self.repeats {
            Some(repeats) if ends_long_text(event) => self.long_text.value(event, repeats, out),
            _ => json::value(out, event),
        }
    }

    /// Bytes that the reader of a batch gets up to here.
    fn position(&self, out: &[u8]) -> usize {
        out.len() + self.repeats.as_ref().map_or(0, Repeats::bytes)
    }

    /// An encoder that writes the same way, for another session.
    pub(crate) fn for_another(&self) -> Self {
        Self {
            message_ids: self.message_ids.for_another(),
            repeats: self.repeats.as_ref().map(|_| Repeats::default()),
            ..Self::speaking(self.spoken.clone())
        }
    }

    /// Takes an event. It is written to `out` at once unless it is a delta.
    pub fn event(&mut self, event: &Event, now: Instant, out: &mut Vec<u8>) {
        self.session_event(event, now, out);
        if !matches!(event, Event::MessageUpdate { .. }) {
            self.prompts.event(event, self.spoken.manner().dialect, out);
        }
    }

    /// Takes an event without reporting outcomes of prompts: the prompt of a sub-agent is not the client's.
    fn session_event(&mut self, event: &Event, now: Instant, out: &mut Vec<u8>) {
        if let Event::MessageUpdate {
            usage,
            assistant_message_event,
        } = event
        {
            return self.update(assistant_message_event, usage, now, out);
        }
        let dialect = self.spoken.manner().dialect;
        self.end_before(event, now, out);
        if !self.continued_run.keep(event, dialect) {
            self.line(event, now, out);
        }
        self.fallbacks.event(event, dialect, out);
    }

    fn end_before(&mut self, event: &Event, now: Instant, out: &mut Vec<u8>) {
        if let Some(end) = self.continued_run.end_before(event) {
            self.line(&end, now, out);
        }
    }

    /// Takes an event that the client does not get, and writes the outcome of prompts that follows from it. No deltas may wait.
    pub(crate) fn follow(&mut self, event: &Event, now: Instant, out: &mut Vec<u8>) {
        self.end_before(event, now, out);
        let start = out.len();
        if !self.subagents.leave_out(event) {
            self.line(event, now, out);
        }
        out.truncate(start);
        if let Some(repeats) = &mut self.repeats {
            repeats.truncate(start);
        }
        self.fallbacks.follow(event, out);
        self.prompts.event(event, self.spoken.manner().dialect, out);
    }

    fn line(&mut self, event: &Event, now: Instant, out: &mut Vec<u8>) {
        // Clients append deltas to the message they show, so no other event may overtake a delta.
        self.flush_own(now, out);
        // Read once per line: the reading thread may detect the dialect between two lines, never within one.
        let manner = self.spoken.manner();
        if let Event::SubagentEvent { payload } = event
            && manner.dialect.is_newest_omp()
        {
            let mut subagents = std::mem::take(&mut self.subagents);
            subagents.event(payload, self, now, out);
            self.subagents = subagents;
            return;
        }
        if let Event::MessageEnd { message } = event
            && let Some(message) = message.as_assistant()
        {
            if let Some(end) = self.early_ends.as_mut().and_then(|ends| ends.before_end(message)) {
                self.early_end(&end, &message.usage, now, out);
            }
            // The next answer is small again: it must not inherit the pace of this one.
            self.pending.reset();
            // In the delta form, the text is known from the ends of blocks.
            if let Some(answer) = self.answer.take() {
                self.long_text.keep(answer.into_long_text());
            }
        }
        match &mut self.repeats {
            Some(repeats) if has_long_text(event) && Vocabulary::is_plain(event, manner) => {
                self.long_text.line(event, repeats, out);
            }
            _ => self.vocabulary.event(event, manner, out),
        }
        if matches!(event, Event::AgentEnd { .. }) {
            self.long_text.forget();
            // Sub-agents end before the run that gave them their tasks.
            self.subagents = Subagents::default();
        }
        self.message_ids
            .event(event, self.prompts.may_wake(), manner.dialect, out);
        if let Event::MessageStart { message } = event
            && let Message::Assistant(message) = &**message
        {
            self.pending.reset();
            self.long_text.forget();
            // A client may change the form with `hello`. Within an answer the form stays, or its updates would not fit
            // together.
            self.form = form(manner);
            self.answer = (self.form == Form::Cumulative).then(|| Answer::begin(message));
            // Without the answer the text of a block is not known before its end.
            let is_wanted = self.answer.is_some() && manner.dialect.is_newest_omp();
            self.early_ends = is_wanted.then(EarlyEnds::default);
        }
    }

    /// Takes a response and writes it to `out`, after deltas that were held back.
    pub fn response(&mut self, response: &Response, now: Instant, out: &mut Vec<u8>) {
        // A client may take a response as the mark that all events before it have arrived.
        self.flush(now, out);
        if let Ok(Reply::Negotiated(negotiated)) = &response.outcome {
            self.spoken.choose_chunks(negotiated.protocol_version == 2);
        }
        if let Ok(Reply::SubagentSubscription(wanted)) = &response.outcome
            && wanted.level != SubagentLevel::Events
        {
            // Their answers go on unseen.
            self.subagents = Subagents::default();
        }
        let manner = self.spoken.manner();
        match self.prompts.line(response, manner.dialect) {
            Line::Usual => Vocabulary::response(response, manner, out),
            Line::Instead(response) => Vocabulary::response(&response, manner, out),
            Line::Changed(line) => json::line(out, &line),
            Line::Nothing => {}
        }
        self.prompts.response(response, manner.dialect, out);
    }

    /// Writes deltas that are due. To be called at the end of every batch and at [`next_deadline`](Self::next_deadline).
    pub fn flush_due(&mut self, now: Instant, out: &mut Vec<u8>) {
        let size = self.size();
        if self.pending.due(size, now) {
            self.flush_own(now, out);
        }
        self.subagents.flush_due(now, out);
    }

    /// Writes all deltas that were held back.
    pub fn flush(&mut self, now: Instant, out: &mut Vec<u8>) {
        self.flush_own(now, out);
        self.subagents.flush(now, out);
    }

    /// Writes the deltas of the session. Deltas of sub-agents keep their own pace.
    fn flush_own(&mut self, now: Instant, out: &mut Vec<u8>) {
        if self.pending.is_empty() {
            return;
        }
        let (deltas, usage) = self.pending.take();
        self.write_deltas(&deltas, &usage, now, out);
    }

    /// Writes all that was held back: no event of the session follows.
    pub(crate) fn finish(&mut self, now: Instant, out: &mut Vec<u8>) {
        self.flush(now, out);
        if let Some(end) = self.continued_run.take() {
            self.line(&end, now, out);
        }
    }

    /// Writes the deltas that were held back and must not come after this event: those of its own block when it is the start
    /// or end of one in a large answer, otherwise all.
    pub(crate) fn flush_before(&mut self, event: &Event, now: Instant, out: &mut Vec<u8>) {
        match event {
            Event::MessageUpdate {
                assistant_message_event,
                ..
            } => self.flush_block(block(assistant_message_event).0, now, out),
            _ => self.flush_own(now, out),
        }
        self.subagents.flush_before(event, now, out);
    }

    fn flush_block(&mut self, index: usize, now: Instant, out: &mut Vec<u8>) {
        // Deltas of a small answer keep their exact order across blocks.
        if self.size() <= SMALL_ANSWER {
            return self.flush_own(now, out);
        }
        let (deltas, usage) = self.pending.take_of(index);
        self.write_deltas(&deltas, &usage, now, out);
    }

    fn write_deltas(&mut self, deltas: &[Delta], usage: &Usage, now: Instant, out: &mut Vec<u8>) {
        if deltas.is_empty() {
            return;
        }
        let start = self.position(out);
        // All deltas of a flush show the same answer in `partial`, which is ahead of the first of them, as in pi.
        for delta in deltas {
            self.write_update(usage, delta.escaped.len(), out, |_, _, out| {
                write_delta(out, delta)
            });
        }
        self.pending.wrote(now, self.position(out) - start, self.size());
    }

    /// About how many bytes [`event`](Self::event) would write of deltas that were held back, before the event itself.
    pub(crate) fn bytes_before(&self, event: &Event) -> usize {
        let waits = match event {
            Event::MessageUpdate {
                assistant_message_event,
                ..
            } => match block(assistant_message_event) {
                // A delta is merged with waiting ones; it writes nothing of them.
                (_, Stage::Delta) => false,
                (index, _) => self.pending.has(index),
            },
            _ => !self.pending.is_empty(),
        };
        // Twice, since a cumulative update contains the answer as `partial` and as `message`.
        let own = match waits {
            true => self.size().saturating_mul(2) + self.pending.bytes(),
            false => 0,
        };
        own + self.subagents.bytes_before(event)
    }

    /// When deltas that are held back are due at the latest; `None` when nothing waits.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        let own = self.pending.deadline();
        own.into_iter().chain(self.subagents.next_deadline()).min()
    }

    /// Bytes of deltas that are held back.
    #[must_use]
    pub fn held_back(&self) -> usize {
        self.pending.bytes() + self.subagents.held_back()
    }

    /// Bytes of the answer so far; 0 in the delta form, where nothing is ever held back.
    fn size(&self) -> usize {
        self.answer.as_ref().map_or(0, Answer::size)
    }

    fn update(&mut self, event: &StreamEvent, usage: &Usage, now: Instant, out: &mut Vec<u8>) {
        if self.form == Form::Cumulative && self.answer.is_none() {
            // No message_start was seen; show at least the content.
            self.answer = Some(Answer::begin(&wire::AssistantMessage::begin("", "", "", 0)));
        }
        if let Some(end) = self.early_ends.as_mut().and_then(|ends| ends.before(event)) {
            self.early_end(&end, usage, now, out);
        }
        match event {
            StreamEvent::TextDelta { content_index, delta } => {
                self.delta(*content_index, Kind::Prose(Prose::Text), delta, usage, now, out);
            }
            StreamEvent::ThinkingDelta { content_index, delta } => {
                self.delta(
                    *content_index,
                    Kind::Prose(Prose::Thinking),
                    delta,
                    usage,
                    now,
                    out,
                );
            }
            StreamEvent::ToolcallDelta { content_index, delta } => {
                self.delta(*content_index, Kind::Call, delta, usage, now, out);
            }
            _ => self.edge(event, usage, now, out),
        }
    }

    /// The start or the end of a block.
    fn edge(&mut self, event: &StreamEvent, usage: &Usage, now: Instant, out: &mut Vec<u8>) {
        // The block's deltas come before its end.
        self.flush_block(block(event).0, now, out);
        if let Some(answer) = &mut self.answer {
            answer.apply(event);
        }
        let is_written = self.early_ends.as_mut().is_some_and(|ends| ends.take(event));
        if !is_written {
            self.write_edge(event, usage, now, out);
        }
    }

    /// Writes the end of a block that oh-my-pi ends before the provider does. Its text so far is all of it.
    fn early_end(&mut self, end: &StreamEvent, usage: &Usage, now: Instant, out: &mut Vec<u8>) {
        self.flush_block(block(end).0, now, out);
        self.write_edge(end, usage, now, out);
    }

    fn write_edge(&mut self, event: &StreamEvent, usage: &Usage, now: Instant, out: &mut Vec<u8>) {
        let (index, stage) = block(event);
        // Asked after the change of the answer: the cost of announcing a block is that of the answer with the block. The delta form
        // repeats nothing, so it leaves out nothing.
        let is_left_out = self.answer.as_mut().is_some_and(|answer| match stage {
            Stage::Start => !answer.announce(index),
            Stage::Delta | Stage::End => answer.leaves_out(index),
        });
        if is_left_out {
            return;
        }
        let start = self.position(out);
        if self.answer.is_none() && ends_long_text(event) {
            self.write_end(event, usage, out);
        } else {
            self.write_update(usage, 0, out, |answer, repeats, out| {
                write_event(out, event, answer, repeats);
            });
        }
        self.count_edge(start, now, out);
    }

    /// Counts the bytes of a start or an end of a block, which was written from `start` on.
    fn count_edge(&mut self, start: usize, now: Instant, out: &[u8]) {
        let bytes = self.position(out) - start;
        if let Some(answer) = &mut self.answer {
            answer.count_announced(bytes);
        }
        self.pending.wrote(now, bytes, self.size());
    }

    /// Writes the end of a block with long text in the delta form.
    fn write_end(&mut self, event: &StreamEvent, usage: &Usage, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"type\":\"message_update\",\"usage\":");
        json::value(out, usage);
        out.extend_from_slice(b",\"assistantMessageEvent\":");
        self.step(event, out);
        out.extend_from_slice(b"}\n");
        self.add_message_id(out);
    }

    /// Adds the id of the answer to the `message_update` that was just written, for clients that read it.
    fn add_message_id(&self, out: &mut Vec<u8>) {
        let dialect = self.spoken.manner().dialect;
        if dialect.has_message_ids() {
            self.message_ids.update(dialect, out);
        }
    }

    /// Takes a delta of a block that was left out. True when it is now part of the answer, and nothing of it is to be written.
    /// Text is announced late, with all that came so far, once the answer has grown enough to pay for it.
    fn delta_left_out(
        &mut self,
        (index, kind): (usize, Kind),
        text: &str,
        usage: &Usage,
        now: Instant,
        out: &mut Vec<u8>,
    ) -> bool {
        let Some(answer) = self.answer.as_mut().filter(|answer| answer.leaves_out(index)) else {
            return false;
        };
        // Only text is announced late: a start of a call has its id and name, which are not kept apart from the JSON.
        let Kind::Prose(prose) = kind else {
            answer.grow_call(index, text);
            return true;
        };
        if !answer.announce(index) {
            let mut escaped = Vec::new();
            json::escape(&mut escaped, text);
            answer.grow_prose(index, prose, &escaped);
            return true;
        }
        // One delta with everything that was left out, so that the concatenation of the deltas stays the text of the block.
        let mut escaped = Vec::new();
        answer.open_prose(index, prose, &mut escaped);
        let event = match prose {
            Prose::Text => StreamEvent::TextStart { content_index: index },
            Prose::Thinking => StreamEvent::ThinkingStart { content_index: index },
        };
        let delta = Delta { index, kind, escaped };
        let start = self.position(out);
        self.write_update(usage, 0, out, |answer, repeats, out| {
            write_event(out, &event, answer, repeats);
        });
        self.write_update(usage, delta.escaped.len(), out, |_, _, out| {
            write_delta(out, &delta)
        });
        self.count_edge(start, now, out);
        // The delta at hand is not part of the answer yet; the caller adds it as to any other block.
        false
    }

    fn delta(
        &mut self,
        index: usize,
        kind: Kind,
        text: &str,
        usage: &Usage,
        now: Instant,
        out: &mut Vec<u8>,
    ) {
        if self.delta_left_out((index, kind), text, usage, now, out) {
            return;
        }
        let size = self.size();
        if !self.pending.takes(index, kind, size) {
            self.flush_own(now, out);
        }
        let escaped = self.pending.add(index, kind, text, usage);
        // The answer grows now, not when the delta is written: the cost of an update is decided by what it would show.
        if let Some(answer) = &mut self.answer {
            match kind {
                // The escaped text is shared, so each byte of an answer is escaped once.
                Kind::Prose(prose) => answer.grow_prose(index, prose, escaped),
                Kind::Call => answer.grow_call(index, text),
            }
        }
    }

    /// Writes a `message_update`; `head` writes the event's own fields without its braces, and `bytes` in addition to the answer.
    fn write_update(
        &mut self,
        usage: &Usage,
        bytes: usize,
        out: &mut Vec<u8>,
        head: impl FnOnce(Option<&Answer>, Option<&mut Repeats>, &mut Vec<u8>),
    ) {
        if let Some(answer) = &mut self.answer {
            answer.set_usage(usage);
            answer.write_update(self.repeats.as_mut(), bytes, out, |answer, repeats, out| {
                head(Some(answer), repeats, out);
            });
        } else {
            // The delta form repeats nothing, so it is neither paced nor counted.
            out.extend_from_slice(b"{\"type\":\"message_update\",\"usage\":");
            json::value(out, usage);
            out.extend_from_slice(b",\"assistantMessageEvent\":{");
            head(None, None, out);
            out.extend_from_slice(b"}}\n");
        }
        self.add_message_id(out);
    }
}

fn form(manner: Manner) -> Form {
    if manner.has_delta_updates() {
        Form::Delta
    } else {
        Form::Cumulative
    }
}
